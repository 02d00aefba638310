"""Comparison with SymCert: the same polynomial laws, the same samples; what each method claims, and whether it is so.

    python benchmarks/symcert.py --symcert ../certified-symmetry-discovery --jobs 1 --first-seed 40000 --out results

SymCert is Kendiukhov's "Certified Symmetry Discovery" (github.com/Kendiukhov/certified-symmetry-discovery); `--symcert`
names a checkout of it, and without one only gortho is measured. Writes results/symcert.csv, one row for a method and a
problem, and results/symcert.md. Rows that are there already are kept: the same command again goes on where it was, and
`--pages` only makes the page again.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from _polynomials import CLEAR, DELTA, GROUPS, KINDS, NEARLY, OWN, Polynomial, affine, defects, hidden
from _table import measure, write_page
from torch import Tensor

import gortho
from gortho.studies.tasks.realistic import frame_distance

if TYPE_CHECKING:
    import pandas as pd

#: Noise of the hidden laws, and of SymCert's own, as a share of the law's root mean square: from SymCert's own grid.
NOISES, OWN_NOISE = (0.01, 0.1), 0.03
#: Samples of the hidden laws, as in our other tables, and of SymCert's own, from its grid.
SAMPLES, OWN_SAMPLES = 2_000, 1_600
#: SymCert's error rate, as in all of its tables.
ALPHA = 0.05
#: A second SymCert is told a larger class of polynomials than the law needs, as where nobody knows the degree.
METHODS = {"gortho": 0, "SymCert": 0, "SymCert, degree + 2": 2}
#: What may come of an answer.
OUTCOMES = ("detected", "part", "false claim", "denied", "rightly denied", "open")
HEADING = f"""# Compared with SymCert

[SymCert](https://github.com/Kendiukhov/certified-symmetry-discovery) certifies generators: it fits a polynomial
by least squares, and says which affine maps ξ(x) = Sx + b have, with confidence {1 - ALPHA:.0%} for all of them
at once, a defect ρ below a tolerance δ. ρ is 0 for a symmetry: for a function the mean cosine between its
gradient and ξ, for a vector field the bracket with ξ divided by its two parts, over the box of the samples.
Both methods get the same samples, a vector x and a number or a vector y.

| | gortho | SymCert |
| --- | --- | --- |
| is given | how y transforms | how y transforms, the degree of the law (exactly here), the box, δ = {DELTA:g} |
| assumes | – | the law is a polynomial of that degree, noise is Gaussian and only in y |
| group or form given | neither | neither: all linear maps for functions, all affine ones for fields |
| says | a form with errors; NONE; UNDERDETERMINED | a space of generators; that there is none; nothing |
| cannot say | symmetries that preserve no form, such as scalings | reflections; a form only by one more linear solve |
| laws other than polynomials | yes | if a bound on the misfit of the polynomial is given |
| several vectors, a predictor | yes | no |
| error rate | measured (this page, [verdicts](verdicts.md)) | proven, if its assumptions hold |

*Hidden forms*: {SAMPLES:,} samples, x uniform in [-1, 1]ⁿ, the form random with condition 3. *Kept*: u + cu² or
(1 + cu)x with u = xᵀAx. *Nearly kept*: plus so little of another polynomial that the worst generator of O(A)
has ρ of about {NEARLY:.3g}. *Broken*: plus so much of it that every affine map has ρ above {CLEAR:g}. *None*:
random polynomials without any symmetry. n = 2 to 4, signatures, numbers and vectors in turn. *SymCert's own
laws* come from its tables: {OWN_SAMPLES:,} samples, its boxes; of its ten fields the four with a symmetry and two
without, to save time, and two of its functions. There it was also given a degree too large by two, as in its own
table of functions; noise is a fraction of the law's root mean square.

Answers are counted by SymCert's rule. *Detected*: all generators that the law respects to within δ are claimed, and
the law respects all claimed generators to within δ. *Part*: some are claimed, all correctly. *False claim*: a claimed
generator has ρ > δ. *Denied*: the answer is that there is no symmetry, but there is one; *rightly denied*: there is
none; *open*: neither. What gortho claims is the Lie algebra of `found.symmetry`. Seconds are on one core, and include
everything that a user waits for. Starts in the given axes, which might be the answer, were left out.

**Where SymCert is better.** It answers in a fraction of a second. Its error rate is proven. On its own
laws, with 3% noise and the degree known, it decides all 40 problems, and gortho leaves 6 open. It finds symmetries that
preserve no form: the scaling of the oscillator, and the shift of the symmetric top in addition to its rotation, where
gortho finds only a part. Neither method denied a symmetry that there was.

**Where gortho is better.** With more noise, where SymCert mostly leaves the answer open; and where the degree is not
known: given a degree too large by two, SymCert leaves open most of what it decided before. And gortho gives the form
with its errors, and a predictor.
"""


def problems(seeds: int, first: int) -> list[dict]:
    """Hidden laws of every kind and noise, and SymCert's own laws: one of each in a round, ``seeds`` rounds."""
    cells = [
        {"of": "hidden", "law": k, "noise": noise, "samples": SAMPLES} for k in KINDS for noise in NOISES
    ]
    cells += [{"of": "own", "law": name, "noise": OWN_NOISE, "samples": OWN_SAMPLES} for name in OWN]
    found = []
    for j in range(seeds):
        for i, cell in enumerate(cells):
            p: dict[str, Any] = {**cell, "group": "", "output": "", "seed": first + 100 * j + i}
            if cell["of"] == "hidden":  # groups and outputs take turns, the same for both noises
                p |= {
                    "group": "{},{}".format(*GROUPS[(i // 2 + j) % 7]),
                    "output": ("scalar", "vector")[(i // 2 + j) % 2],
                }
            found.append(p)
    return found


def planned(seeds: int, first: int, symcert: bool) -> list[dict]:
    """Problems and the methods that are to be asked."""
    return [
        {**p, "method": method}
        for p in problems(seeds, first)
        for method, more in METHODS.items()
        # larger classes only for SymCert's own laws: for n = 4 they take longer than all the rest
        if method == "gortho" or (symcert and (not more or p["of"] == "own"))
    ]


def earlier(path: Path, work: list[dict]) -> list[dict]:
    """Rows of an earlier run that are among the work."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return [row for row in csv.DictReader(file) if _key(row) in map(_key, work) and row["n"]]


def _key(p: Any) -> tuple[str, ...]:
    return tuple(str(p[name]) for name in ("law", "noise", "samples", "seed", "method"))


def law_of(p: Any) -> Polynomial:
    """The law of a problem."""
    if p["of"] == "own":
        return OWN[p["law"]]
    one, two = map(int, p["group"].split(","))
    return hidden(p["law"], (one, two), p["output"], p["seed"])


# The two methods: each gives a verdict, what it said, and the generators it claims


def by_gortho(problem: Polynomial, x: Tensor, y: Tensor, seed: int) -> tuple[dict, np.ndarray]:
    """`gortho.discover`, told how y transforms and nothing else; no search may start at the answer."""
    found = gortho.discover(x, y, problem.output, seed=seed, settings=gortho.Settings(given_axes=False))
    said = {"verdict": found.verdict.name, "confidence": found.confidence}
    said |= {"low": found.defect.low, "high": found.defect.high}
    claim = np.zeros((0, problem.n * (problem.n + 1)))
    if found.verdict.name == "FOUND":
        symmetry = found.symmetry
        said["claim"] = str(symmetry)
        if problem.form is not None:
            said["distance"] = frame_distance(symmetry.form, problem.form, x)
        claim = affine(symmetry.generators.reshape(-1, problem.n, problem.n), symmetry.origin)
    return said, claim


def by_symcert(
    problem: Polynomial, x: Tensor, y: Tensor, degree: int, checkout: str
) -> tuple[dict, np.ndarray]:
    """SymCert as its README and experiments use it, told a degree and the box, with its own tolerance and level."""
    if (source := str(Path(checkout) / "src")) not in sys.path:
        sys.path.insert(0, source)
    from hsd import DefectProblem, fit_ols  # type: ignore[import-not-found]
    from hsd.certify import certified_dimension, refute_all  # type: ignore[import-not-found]
    from hsd.estimation import fit_ols_scalar  # type: ignore[import-not-found]
    from hsd.invariance import InvarianceProblem  # type: ignore[import-not-found]

    scalar = problem.output == "scalar"
    # linear generators for functions and affine ones for fields are its own choices
    if scalar:
        posed = InvarianceProblem.build(problem.n, degree, "linear", "box", scale=1.0)
    else:
        posed = DefectProblem.build(problem.n, degree, "affine", "box", scale=1.0)
    fit = (fit_ols_scalar if scalar else fit_ols)(posed, x.numpy(), y.numpy())
    dimension, certified = certified_dimension(posed, fit, DELTA, ALPHA)
    refuted = refute_all(posed, fit, ALPHA)
    claim = np.zeros((dimension, problem.n * (problem.n + 1)))
    claim[:, : posed.P] = certified.T
    verdict = "FOUND" if dimension else "NONE" if refuted > DELTA else "UNDERDETERMINED"
    return {"verdict": verdict, "low": refuted}, claim


def run(p: dict, checkout: str | None = None) -> dict:
    """One method on one problem; the truth is looked at only afterwards."""
    torch.set_num_threads(1)
    problem = law_of(p)
    x, y = problem.samples(p["samples"], p["noise"], p["seed"])
    start = time.process_time()
    if p["method"] == "gortho":
        said, claim = by_gortho(problem, x, y, p["seed"])
    else:
        said, claim = by_symcert(problem, x, y, problem.degree + METHODS[p["method"]], checkout or "")
    row = {**p, "n": problem.n, **said, "seconds": round(time.process_time() - start, 2)}
    return row | against_truth(problem, claim)


def against_truth(problem: Polynomial, claim: np.ndarray) -> dict:
    """How many generators the law keeps to within the tolerance, how many are claimed, and the worst of these."""
    true = defects(problem)
    kept = int((true.spectrum() <= DELTA).sum())
    row: dict[str, Any] = {"kept": kept, "claimed": len(claim), "violation": problem.violation}
    if len(claim):
        row["worst"] = float(true.among(claim)[-1])
    return row


def outcome(row: Any) -> str:
    """What came of one row, by the rule of SymCert's tables: a claim is false if one of its generators is."""
    if row["claimed"]:
        if row["worst"] > DELTA:
            return "false claim"
        return "detected" if row["claimed"] >= row["kept"] else "part"
    if row["verdict"] == "NONE":
        return "denied" if row["kept"] else "rightly denied"
    return "open"


# The page


def counted(rows: pd.DataFrame, *by: str) -> pd.DataFrame:
    """One line for each method and whatever else is named: what came of the answers."""
    import pandas as pd

    rows = rows.assign(outcome=[outcome(row) for _, row in rows.iterrows()])
    lines = []
    for key, g in rows.groupby([*by, "method"], sort=False):
        line: dict[str, Any] = dict(zip((*by, "method"), key)) | {"problems": len(g)}
        line |= {name: int((g.outcome == name).sum()) for name in OUTCOMES}
        true = g[g.outcome.isin(("detected", "part"))].worst
        line["median worst ρ of what is rightly claimed"] = f"{true.median():.4f}" if len(true) else ""
        line["median seconds"] = f"{g.seconds.median():.2f}"
        lines.append(line)
    return pd.DataFrame(lines)


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows as `problems` lists them, gortho first: they come as they are done."""
    return rows.assign(_m=rows.method.map(list(METHODS).index)).sort_values(["seed", "_m"]).drop(columns="_m")


def intervals(rows: pd.DataFrame) -> pd.DataFrame:
    """gortho's own claim about the hidden laws: the share of the variance that its form cannot express."""
    import pandas as pd

    g = rows[(rows.method == "gortho") & (rows.of == "hidden") & (rows.law != "none")]
    holds = (g.low <= g.violation + 1e-9) & (g.violation <= g.high + 1e-9)
    return pd.DataFrame(
        {
            "law": law,
            "problems": len(part),
            "true share": f"{part.violation.min():.3%} to {part.violation.max():.3%}",
            "FOUND": int((part.verdict == "FOUND").sum()),
            "interval holds it": int(holds[part.index].sum()),
            "false claims with an interval that holds it": int(
                ((part.worst > DELTA) & holds[part.index]).sum()
            ),
            "median upper end": f"{part.high.median():.3%}",
        }
        for law, part in g.groupby("law", sort=False)
    )


def tables(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The tables of the results page."""
    rows = in_order(rows)
    rows["problem"] = rows.of.map({"hidden": "hidden forms", "own": "SymCert's own laws"})
    hidden_laws, own = rows[rows.of == "hidden"], rows[rows.of == "own"]
    return [
        ("All problems", counted(rows, "problem", "noise")),
        ("Hidden forms, by kind of law and noise", counted(hidden_laws, "law", "noise")),
        ("SymCert's own laws", counted(own, "law")),
        ("How exactly, in gortho's own terms", intervals(rows)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--symcert", help="a checkout of certified-symmetry-discovery")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--seeds", type=int, default=5, help="problems of each kind and noise, and of each law"
    )
    parser.add_argument("--first-seed", type=int, default=40_000)
    parser.add_argument("--pages", action="store_true", help="only make the page again, from the rows")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    if options.symcert and not (Path(options.symcert) / "src" / "hsd").is_dir():
        parser.error(f"{options.symcert} has no src/hsd: give a checkout of certified-symmetry-discovery")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "symcert.csv"
    if not options.pages:
        work = planned(options.seeds, options.first_seed, bool(options.symcert))
        done = earlier(path, work)
        left = [p for p in work if _key(p) not in map(_key, done)]
        measure(partial(run, checkout=options.symcert), left, options.jobs, path, done)
    write_page(path, HEADING, tables)


if __name__ == "__main__":
    main()
