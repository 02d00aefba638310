"""Right, honest or wrong on realistic data: gortho beside LieGG, LieGAN, the spectral solve and SymCert.

    python benchmarks/side_by_side.py --symcert CHECKOUT --jobs 16 --out results

Writes results/side_by_side.csv (one row a problem), results/side_by_side.md and results/side_by_side.png.
SymCert runs from a checkout of github.com/Kendiukhov/certified-symmetry-discovery; without it its rows are left out.
`--again` measures gortho alone, and keeps what the other methods said of the same problems.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from _table import measure, write_page
from torch import Tensor

import gortho
from gortho.discovery.spectral import spectral_form
from gortho.forms import QuadraticForm
from gortho.samples.frame import Frame, form_distance
from gortho.studies.baselines import LieGAN, LieGG, form_of_generators
from gortho.studies.experiments.problems import NEAR
from gortho.studies.tasks.realistic import LAWS, formless_problem, formless_realistic, problem, realistic

if TYPE_CHECKING:
    import pandas as pd

#: Problems whose thresholds are fitted, and problems that judge; with a form and without.
FITTED, JUDGED = (20, 10), (40, 20)
FITTED_SEED, JUDGED_SEED = 60_000, 110_000
#: What SymCert is told: a degree, its own tolerance and level; and the share of the samples in its box.
DEGREE, DELTA, ALPHA, INSIDE = 4, 0.05, 0.05, 0.95
METHODS = ("gortho", "LieGG", "LieGAN", "spectral", "SymCert")
#: Colours that people with any colour vision can tell apart, from right to wrong.
COLOURS = ("#0072B2", "#BBBBBB", "#D55E00")
#: What methods are called in the figure.
SHOWN = {
    "spectral": "spectral solve alone",
    "SymCert": f"SymCert, degree {DEGREE}",
    "LieGG": "LieGG, thresholds fitted",
}
HEADING = f"""# Side by side on realistic data

Scalar laws of one vector, 2,000 samples: ten kinds of inputs, roots, logarithms, wells, waves, poles, noise and
outliers (`gortho.studies.tasks.realistic`), each form in a hidden frame of condition 3. Near misses without a form:
other norms, sums of laws of two forms, labels in a wrong order.

*With a form*: right is a claim with the right signature and a distance to the true form of at most {NEAR} in the frame
where the inputs are white; honest is an answer that leaves the question open; wrong is any other claim, or a denial.
*Without*: right is a denial, or an answer that leaves the question open; wrong is a claim.

- **gortho**: the verdict of `gortho.discover`. No number was fitted to these problems; one rule came after their first
  run: if equally good restarts end at different forms, NONE needs free models that are overwhelmingly better.
- **LieGG**: a trained network, and the null space of its infinitesimal law, given the number of generators. Its answer
  is the form that they preserve; its score is the ratio of the largest singular value of the null space to the next
  one.
- **LieGAN**: given the number of generators; its answer is the form that they preserve, its score how far they miss it.
- **spectral**: the linear solve for a form on the same network as LieGG's, and its relative violation.
- **SymCert**: given the degree {DEGREE} of a polynomial and a box that contains {INSIDE:.0%} of the samples, which are
  those that it gets; δ = {DELTA:g} at level {ALPHA:g}. A full set of certified generators is a claim, fewer leave
  it open, and a refutation of all generators is a denial. Most of these laws are not polynomials, so its guarantee
  does not hold here.

Methods that only give a score get two thresholds, a claim below the first and a denial above the second: the best ones
(right minus wrong answers) on {sum(FITTED)} other problems of the same kind. All but gortho are given inputs
that are white already. LieGG, LieGAN and SymCert were made for other questions, and can find symmetries without a form.

![right, honest and wrong answers of each method](side_by_side.png)
"""


def problems(judged: int = JUDGED_SEED) -> list[dict]:
    """Scalar laws of one vector, with a form and without, of seeds in a row."""
    found = []
    for part, counts, first in (("fitted", FITTED, FITTED_SEED), ("judged", JUDGED, judged)):
        for truth, count in zip(("form", "none"), counts):
            seed, taken = first, 0
            while taken < count:
                p = problem(seed) if truth == "form" else formless_problem(seed)
                family = LAWS[p["law"]]
                if family.output == "scalar" and family.points == 1 and p.get("kind") != "direction":
                    found.append({"part": part, "truth": truth, **p, "points": 1})
                    taken += 1
                seed += 1
    return found


Answer = tuple[str, float, QuadraticForm | None]


def by_gortho(x: Tensor, y: Tensor, seed: int) -> Answer:
    """The verdict; a symmetry other than O(A) is no claim of a form."""
    found = gortho.discover(x, y, seed=seed, settings=gortho.Settings(given_axes=False))
    if found.wider is not None:
        return "UNDERDETERMINED", found.confidence, found.candidate
    return found.verdict.name, found.confidence, found.candidate


def by_liegg(network: LieGG, n: int) -> Answer:
    """Generators of a network; how small the null space is beside the next singular value."""
    sigma, d = network.notes["singular values"], n * (n - 1) // 2
    return "", sigma[d - 1] / max(sigma[d], 1e-300), network.quadratic_form


def by_spectral(network: LieGG, x: Tensor) -> Answer:
    """The form of the same network by one linear solve, and how much of the law it violates."""
    found = spectral_form(network.function(), x)
    return "", found.residual, found.form


def by_liegan(x: Tensor, y: Tensor, seed: int) -> Answer:
    """Generators of the game, and how far they are from keeping any form."""
    generators = LieGAN("scalar", seed=seed).fit(x, y).generators
    assert generators is not None
    form = form_of_generators(generators)
    A = form.matrix / torch.linalg.matrix_norm(form.matrix)
    return "", float((generators.mT @ A + A @ generators).square().sum().sqrt()), form


def by_symcert(x: Tensor, y: Tensor, seed: int, checkout: str) -> Answer:
    """Certified generators of a polynomial fit; the inputs are scaled to its box."""
    if (source := str(Path(checkout) / "src")) not in sys.path:
        sys.path.insert(0, source)
    from hsd.certify import certified_dimension, refute_all  # type: ignore[import-not-found]
    from hsd.estimation import fit_ols_scalar  # type: ignore[import-not-found]
    from hsd.invariance import InvarianceProblem  # type: ignore[import-not-found]

    n = x.shape[-1]
    size = x[:, 0].abs().amax(1)
    inside = size <= size.quantile(INSIDE)
    box, y = (x[inside, 0] / size[inside].max()).numpy(), y[inside]
    posed = InvarianceProblem.build(n, DEGREE, "linear", "box", scale=1.0)
    fit = fit_ols_scalar(posed, box, ((y - y.mean()) / y.std()).numpy())
    dimension, certified = certified_dimension(posed, fit, DELTA, ALPHA)
    refuted = refute_all(posed, fit, ALPHA)
    if dimension >= n * (n - 1) // 2:
        return (
            "FOUND",
            refuted,
            form_of_generators(torch.as_tensor(certified.T[:, : n * n]).reshape(-1, n, n)),
        )
    return ("NONE" if refuted > DELTA and not dimension else "UNDERDETERMINED"), refuted, None


def run(p: dict, checkout: str | None = None, again: dict | None = None) -> dict:
    """All methods on one problem, or gortho again beside earlier answers; the truth is looked at only afterwards."""
    torch.set_num_threads(1)
    given = {k: v for k, v in p.items() if k not in ("part", "truth")}
    task = (realistic if p["truth"] == "form" else formless_realistic)(**given)
    frame, y, seed = Frame.of(task.x), task.y, p["seed"]
    x = task.x @ frame.W.mT
    answers: dict[str, tuple[float, Answer]] = {"gortho": _timed(lambda: by_gortho(task.x, y, seed))}
    if again is None:
        answers["LieGAN"] = _timed(lambda: by_liegan(x, y, seed))
        training, network = _timed(lambda: LieGG("scalar", seed=seed).fit(x, y))
        for method, solved in (
            ("LieGG", by_liegg(network, x.shape[-1])),
            ("spectral", by_spectral(network, x)),
        ):
            answers[method] = training, solved
        if checkout:
            answers["SymCert"] = _timed(lambda: by_symcert(x, y, seed, checkout))
    row = dict(p) if again is None else {k: v for k, v in again.items() if not k.startswith("gortho ")}
    for method, (seconds, (said, score, form)) in answers.items():
        row |= {f"{method} said": said, f"{method} score": score, f"{method} seconds": round(seconds, 1)}
        if form is not None and p["truth"] == "form":
            A, true = frame.form_in(form) if method == "gortho" else form.matrix, frame.form_in(task.form)
            near = form_distance(A, true)
            row |= {f"{method} distance": near, f"{method} signature": _signature(A) == _signature(true)}
    return row


def rerun(p: dict, rows: dict[tuple[str, ...], dict]) -> dict:
    """The same row with what gortho says today."""
    return run(p, again=rows[_key(p)])


def _key(row: dict) -> tuple[str, ...]:
    """What a problem is known by, in rows and in files."""
    return row["part"], row["truth"], str(row["seed"])


def _timed(f: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    value = f()
    return time.process_time() - start, value


def _signature(A: Tensor) -> tuple[int, ...]:
    values = torch.linalg.eigvalsh(A)
    return tuple(sorted((int((values > 0).sum()), int((values < 0).sum()))))


def by_method(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a problem and method."""
    import pandas as pd

    parts = []
    for method in (m for m in METHODS if f"{m} said" in rows):
        names = {f"{method} {name}": name for name in ("said", "score", "seconds", "distance", "signature")}
        parts.append(
            rows.reindex(columns=["part", "truth", *names]).rename(columns=names).assign(method=method)
        )
    return pd.concat(parts)


def outcome(said: str, row: Any) -> str:
    """What an answer is worth."""
    if row["truth"] == "none":
        return "wrong" if said == "FOUND" else "right"
    if said == "UNDERDETERMINED":
        return "honest"
    near = str(row["signature"]) == "True" and float(row["distance"]) <= NEAR
    return "right" if said == "FOUND" and near else "wrong"


def answered(score: float, claim: float, deny: float) -> str:
    """An answer by two thresholds."""
    return "FOUND" if score <= claim else "NONE" if score > deny else "UNDERDETERMINED"


def thresholds(rows: pd.DataFrame) -> tuple[float, float]:
    """The two thresholds of a score with the most right less wrong answers."""
    known = [
        (row, [outcome(said, row) for said in ("FOUND", "NONE", "UNDERDETERMINED")])
        for _, row in rows.iterrows()
    ]
    scores = sorted(rows.score)
    cuts = [-np.inf, *((a + b) / 2 for a, b in pairwise(scores)), np.inf]
    worth = {"right": 1, "honest": 0, "wrong": -1}

    def total(claim: float, deny: float) -> int:
        places = {"FOUND": 0, "NONE": 1, "UNDERDETERMINED": 2}
        return sum(worth[each[places[answered(row.score, claim, deny)]]] for row, each in known)

    return max(((a, b) for i, a in enumerate(cuts) for b in cuts[i:]), key=lambda pair: total(*pair))


def outcomes(rows: pd.DataFrame) -> pd.DataFrame:
    """The judged rows with what became of each, thresholds from the others."""
    import pandas as pd

    done, every = [], by_method(rows)
    for method in METHODS:
        own = every[every.method == method]
        judged = own[own.part == "judged"].copy()
        if not len(judged):
            continue
        if judged.said.isna().all():
            cuts = thresholds(own[own.part == "fitted"])
            judged["said"] = [answered(score, *cuts) for score in judged.score]
        judged["outcome"] = [outcome(row.said, row) for _, row in judged.iterrows()]
        done.append(judged)
    return pd.concat(done)


def tables(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Counts and shares of each method."""
    import pandas as pd

    done = outcomes(rows)
    lines = []
    for method in (m for m in METHODS if m in set(done.method)):
        g = done[done.method == method]
        line: dict[str, Any] = {"method": method}
        for truth, name in (("form", "with a form"), ("none", "without")):
            part = g[g.truth == truth]
            for what in ("right", "honest", "wrong") if truth == "form" else ("right", "wrong"):
                line[f"{name}: {what}"] = f"{int((part.outcome == what).sum())} of {len(part)}"
            if truth == "none":
                line["of the right ones denied"] = str(int((part.said == "NONE").sum()))
        near = g[g.truth == "form"].distance.astype(float)
        line |= {
            "median distance of its form": f"{near.median():.2g}",
            "median seconds": f"{g.seconds.median():.1f}",
        }
        lines.append(line)
    return [("Answers on problems that no threshold has seen", pd.DataFrame(lines))]


def draw(path: Path, rows: pd.DataFrame) -> None:
    """One bar a method and kind of problem, in numbers of problems; the best method first."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    done = outcomes(rows)
    right = {
        m: int((done[done.truth == "form"].query("method == @m").outcome == "right").sum()) for m in METHODS
    }
    methods = sorted((m for m in METHODS if m in set(done.method)), key=lambda m: -right[m])
    figure, panels = plt.subplots(
        1,
        2,
        figsize=(10.5, 0.55 * len(methods) + 2.0),
        layout="constrained",
        sharey=True,
        width_ratios=(2, 1),
    )
    for axes, (truth, title, parts) in zip(
        panels,
        (
            ("form", "laws that keep a form", ("right form", "left open", "wrong form, or denied")),
            ("none", "near misses without a form", ("denied", "left open", "claimed")),
        ),
    ):
        part = done[done.truth == truth]
        if truth == "form":
            what = part.outcome.map(dict(zip(("right", "honest", "wrong"), parts)))
        else:
            what = part.said.map(dict(zip(("NONE", "UNDERDETERMINED", "FOUND"), parts)))
        left = np.zeros(len(methods))
        for name, colour in zip(parts, COLOURS):
            count = np.array([int((what[part.method == m] == name).sum()) for m in methods])
            bars = axes.barh([SHOWN.get(m, m) for m in methods], count, left=left, color=colour, label=name)
            ink = "black" if name == "left open" else "white"
            axes.bar_label(
                bars, [str(c) if c else "" for c in count], label_type="center", color=ink, fontsize=10
            )
            left += count
        axes.set(xlim=(0, left.max()), xlabel="problems")
        axes.set_title(f"{int(left.max())} {title}", fontsize=12, pad=28)
        axes.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9, handlelength=1
        )
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(left=False)
    panels[0].invert_yaxis()
    panels[0].get_yticklabels()[0].set_fontweight("bold")
    figure.suptitle("Is there a quadratic form, and which one? 2,000 samples of realistic data", fontsize=13)
    figure.savefig(path, dpi=150)


def earlier(path: Path) -> list[dict]:
    """Rows of an earlier run, which goes on."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return [row for row in csv.DictReader(file) if row["gortho said"]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--symcert", help="a checkout of certified-symmetry-discovery")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=JUDGED_SEED, help="of the problems that judge")
    parser.add_argument(
        "--again", action="store_true", help="measure gortho again, keep the other methods' rows"
    )
    parser.add_argument("--quick", action="store_true", help="two problems of each part, to see that it runs")
    parser.add_argument("--pages", action="store_true", help="only make the page again, from the rows")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "side_by_side.csv"
    if not options.pages:
        work = problems(options.first_seed)
        asked = {_key(p) for p in work}
        if options.quick:
            kinds = dict.fromkeys((p["part"], p["truth"]) for p in work)
            work = [p for kind in kinds for p in [q for q in work if (q["part"], q["truth"]) == kind][:2]]
        order = np.random.default_rng(0).permutation(len(work))
        done = [row for row in earlier(path) if _key(row) in asked]
        known = {_key(row): row for row in done}
        if options.again:
            measure(partial(rerun, rows=known), [work[i] for i in order], options.jobs, path)
        else:
            left = [p for i in order if (p := work[i]) and _key(p) not in known]
            measure(partial(run, checkout=options.symcert), left, options.jobs, path, done)
    write_page(path, HEADING, tables)
    import pandas as pd

    draw(options.out / "side_by_side.png", pd.read_csv(path))


if __name__ == "__main__":
    main()
