"""How much verdicts, confidences and intervals of the defect are worth, and how much they depend on thresholds.

    python benchmarks/verdicts.py --jobs 16 --first-seed 0 --out results

Realistic laws, near misses without a form, laws that are broken by a known share, random laws, singular forms, laws
without a form, and classes. Every row keeps the whole evidence, so that other thresholds can be tried on it without
searching again; `--pages` makes only the pages. Seeds below 1,000 are for development: the thresholds and the
calibration of the confidence were set on them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import discovery as random_problems
import numpy as np
import torch
from _table import measure, write_page

import gortho
from gortho.discovery import defect, evidence, measured, verdict
from gortho.samples.frame import Frame
from gortho.stored import restored, stored
from gortho.studies.tasks.classes import class_problem, random_classes
from gortho.studies.tasks.random_laws import formless, random_law
from gortho.studies.tasks.realistic import (
    formless_problem,
    formless_realistic,
    frame_distance,
    problem,
    realistic,
)
from gortho.studies.tasks.violated import violated, violated_problem

if TYPE_CHECKING:
    import pandas as pd

#: A form is right when its signature is, and its distance to the truth (M18) is at most this.
NEAR = 0.1
#: A direction is right within this angle, in the frame.
DEGREES = 5.0
#: Kinds of problems, and how many of each by default.
KINDS = {
    "realistic": 160, "near miss": 80, "broken": 120, "random": 54, "singular": 12, "formless": 48, "classes": 42
}  # fmt: skip
#: Edges of the bins of confidence.
BINS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 1.0)
THRESHOLDS = (
    (verdict, "TOLERANCE"), (evidence, "CLEAR_GAIN"), (verdict, "MAX_UNEXPLAINED"), (verdict, "MAX_SPREAD"),
    (verdict, "SIGN_ERRORS"), (verdict, "TOLD_APART"), (evidence, "RULED_BY_FEW"), (verdict, "LEAST_CONFIDENT"),
    (evidence, "DOUBT"),
    (defect, "SIGNIFICANCE"), (defect, "GAIN_ERRORS"), (defect, "NOTABLE_GAIN"), (defect, "CERTAIN_SHARE"),
    (defect, "TWO_SIDED"),
)  # fmt: skip
HEADING = f"""# What verdicts are worth

2,000 samples each. *Right*: FOUND with the right signature and a form within {NEAR} of the truth (in the frame), if
there is one; NONE or UNDERDETERMINED, if there is none. *Wrong*: NONE if there is a form, FOUND if there is
none or with a wrong form. *Honest*: UNDERDETERMINED if there is a form, or a direction that breaks it. Laws that are
broken by a function of one direction, by some share of their variance, count as right if they are FOUND with the right
form and the interval of the defect contains that share, if they are NONE and the share is above zero, or if they are
FOUND with that direction: within {DEGREES:g} degrees, and with a form within {NEAR} of the truth apart from what a
direction leaves open. The same holds for near misses of this kind. What is FOUND about an origin is right if its form
is.

![how often answers are right, by confidence](verdicts.png)
"""


def task_of(p: dict) -> tuple[Any, float | None]:
    """The problem's samples, and the true defect where it is known."""
    kind, given = p["of"], {key: value for key, value in p.items() if key != "of"}
    if kind == "realistic":
        return realistic(**given), 0.0
    if kind == "near miss":
        return formless_realistic(**given), p["share"] if p["kind"] == "direction" else None
    if kind == "broken":
        whole, exact = (violated(**given | {"noise": 0.0} | more).y for more in ({}, {"share": 0.0}))
        # the two are orthogonal, but not on each sample of a law with heavy tails
        parts = (whole - exact).square().mean(), (exact - exact.mean(0)).square().mean()
        return violated(**given), float(parts[0] / sum(parts))
    if kind == "classes":
        return random_classes(**given), None
    if kind == "formless":
        return formless(p["law"], p["n"], p["points"], 2_000, p["noise"], p["seed"]), None
    form = gortho.QuadraticForm.random(
        *p["group"], condition=10 ** (p["seed"] % 3 / 2), seed=10_000 + p["seed"]
    )
    return random_law(form, p["points"], p["output"], 2_000, p["noise"], p["shape"], p["seed"]), 0.0


def problems(kind: str, count: int, first: int) -> list[dict]:
    """Problems of one kind, of seeds in a row."""
    makers = {
        "realistic": problem, "near miss": formless_problem, "broken": violated_problem, "classes": class_problem
    }  # fmt: skip
    if kind in makers:
        return [{"of": kind, **makers[kind](seed)} for seed in range(first, first + count)]
    name = {"random": "form"}.get(kind, kind)
    chosen = random_problems.problems(name, count, first)
    return [{"of": kind, **{k: v for k, v in p.items() if k != "kind"}} for p in chosen]


def run(p: dict) -> dict:
    """Discover on one problem; the truth is looked at only afterwards."""
    torch.set_num_threads(1)
    task, share = task_of(p)
    start = time.perf_counter()
    settings = gortho.Settings(given_axes=False)  # no search may start at the answer
    found = gortho.discover(task.x, task.y, task.output, seed=p["seed"], settings=settings)
    row = {**p, "verdict": found.verdict.name, "seconds": round(time.perf_counter() - start, 1)}
    row |= {"confidence": found.confidence, "low": found.defect.low, "high": found.defect.high, "true": share}
    # An open question may be one about a wider symmetry: then the defect is that of the wider one.
    row["wider"] = "" if found.wider is None else str(found.wider.symmetry)
    if found.wider is not None:
        row["wider right"] = _wider_right(found.wider.symmetry, task)
    row["stages"] = json.dumps({k: round(v, 2) for k, v in found.provenance.stages.items()})
    if found.evidence is not None:
        row["evidence"] = json.dumps(stored(found.evidence))
    if found.candidate is not None and not _formless(p):
        A, B = task.form.matrix.numpy(), found.candidate.matrix.numpy()
        row["near"] = (
            found.candidate.signature == task.form.signature
            and frame_distance(found.candidate, task.form, task.x) <= NEAR
        )
        row["signature"] = found.candidate.signature == task.form.signature
        row["d_PA"] = found.candidate.algebra_distance(task.form)
        if found.intervals is not None:
            low, high = found.intervals
            A = A * np.sign((A * B).sum())
            entries = np.triu_indices(len(A))
            row["covered"] = float(((low <= A) & (high >= A))[entries].mean())
    return row


def _wider_right(claimed: gortho.Symmetry, task: Any) -> bool:
    """Whether a direction or an origin tells what breaks the law."""
    if claimed.forms == () or claimed.special or claimed.spaces:
        return False
    L = torch.linalg.inv(Frame.of(task.x).W)
    A, B = (L.mT @ form.matrix @ L for form in (claimed.form, task.form))
    A, B = A / A.norm(), B / B.norm()
    if claimed.origin is not None:
        return not len(claimed.directions) and min(float((A - B).norm()), float((A + B).norm())) <= NEAR
    if task.along is None or len(claimed.directions) != 1:
        return False
    s = torch.nn.functional.normalize(L.mT @ task.along, dim=0)
    told = torch.nn.functional.normalize(L.mT @ claimed.form.matrix @ claimed.directions[0], dim=0)
    degrees = float(torch.rad2deg(torch.arccos((s @ told).abs().clamp(max=1.0))))
    # of A only what is not a multiple of ssᵀ (M16): what is left of it beside the span of B and ssᵀ
    basis = torch.linalg.qr(torch.stack([B.flatten(), torch.outer(s, s).flatten()], 1)).Q
    a = A.flatten()
    return degrees <= DEGREES and float((a - basis @ (basis.mT @ a)).norm()) <= NEAR


def _formless(p: Any) -> bool:
    return p["of"] in ("near miss", "formless") or (p["of"] == "classes" and p["kind"] != "levels")


def judged(rows: pd.DataFrame, again: bool = False) -> pd.DataFrame:
    """The rows, with what is right; verdicts as they were told, or by the thresholds as they are now."""
    found = []
    for _, row in rows.iterrows():
        name, sure, low, high = row.verdict, row.confidence, row.low, row.high
        if again and isinstance(row.get("evidence"), str):
            e = restored(json.loads(row.evidence), evidence.Evidence)
            told = verdict.judge(e, "O(A)", verdict.TOLERANCE)[0]
            name, sure, low, high = told.name, verdict.confidence(e, told), e.defect.low, e.defect.high
        none = _formless(row)
        near = str(row.get("signature" if row.of == "classes" else "near")) == "True"
        holds = bool(np.isnan(row.true)) or low <= row.true + 1e-9 <= high + 2e-9
        # With a direction or an origin the interval is that of what is left, not that of O(A).
        wider = isinstance(row.get("wider"), str) and bool(row.wider)
        told = str(row.get("wider right")) == "True" if wider else holds
        if none:
            right = name != "FOUND" or (row.kind == "direction" and told)
        elif row.of == "broken" and row.true > 0:
            right = name == "NONE" or (name == "FOUND" and (told if wider else near and holds))
        else:
            right = name == "FOUND" and near
        found.append(
            {
                "verdict": name,
                "confidence": sure,
                "low": low,
                "high": high,
                "right": right,
                "holds": holds,
                "wide": wider,
            }
            | {"honest": name == "UNDERDETERMINED" and not none, "formless": none, "near": near}
        )
    import pandas as pd

    return rows.drop(columns=["verdict", "confidence", "low", "high", "near"]).join(
        pd.DataFrame(found, index=rows.index)
    )


def by_kind(rows: pd.DataFrame) -> pd.DataFrame:
    """One line for each kind of problem."""
    import pandas as pd

    lines = []
    for kind, g in judged(rows).groupby("of"):
        wrong = ~g.right & ~g.honest
        line: dict[str, Any] = {"problems": kind, "count": len(g)}
        line |= {
            name: f"{part.mean():.1%}"
            for name, part in (("right", g.right), ("honest", g.honest), ("wrong", wrong))
        }
        line |= {v: int((g.verdict == v).sum()) for v in ("FOUND", "NONE", "UNDERDETERMINED")}
        known = g[~g.formless]
        line["form near"] = f"{known.near.mean():.1%}" if len(known) else ""
        line["entries in their 95 % intervals"] = f"{known.covered.mean():.1%}" if len(known) else ""
        line["median d_PA"] = f"{known.d_PA.median():.4f}" if len(known) else ""
        line["median seconds"] = f"{g.seconds.median():.1f}"
        lines.append(line)
    return pd.DataFrame(lines)


def by_share(rows: pd.DataFrame) -> pd.DataFrame:
    """Broken laws: does the interval of the defect hold the truth?"""
    import pandas as pd

    g = judged(rows[rows.of == "broken"])
    return pd.DataFrame(
        {
            "broken by": f"{share:.1%}",
            "laws": len(part),
            "FOUND": int((part.verdict == "FOUND").sum()),
            "with a direction or an origin": int(((part.verdict == "FOUND") & part.wide).sum()),
            "of these right": int(((part.verdict == "FOUND") & part.wide & part.right).sum()),
            "NONE": int((part.verdict == "NONE").sum()),
            "intervals of O(A)": int((~part.wide).sum()),
            "that hold the share": int((part.holds & ~part.wide).sum()),
            "FOUND, interval ends below": int(
                ((part.verdict == "FOUND") & ~part.wide & (part.high + 2e-9 < part.true)).sum()
            ),
            "median upper end": f"{part.high[~part.wide].median():.2%}",
        }
        for share, part in g.groupby("share")
    )


def reliability(rows: pd.DataFrame) -> pd.DataFrame:
    """Among answers with a confidence in a range, how many are right."""
    import pandas as pd

    g = judged(rows)
    g = g[g.verdict != "UNDERDETERMINED"]
    lines = []
    for low, high in itertools.pairwise(BINS):
        part = g[(g.confidence >= low) & (g.confidence < high)]
        if len(part):
            error = (part.right.mean() * (1 - part.right.mean()) / len(part)) ** 0.5
            lines.append(
                {
                    "confidence": f"{low:.2f} to {high:.2f}",
                    "answers": len(part),
                    "mean confidence": f"{part.confidence.mean():.3f}",
                    "right": f"{part.right.mean():.3f} ± {error:.3f}",
                }
            )
    return pd.DataFrame(lines)


@contextmanager
def changed(module: Any, name: str, factor: float) -> Iterator[None]:
    """A threshold halved or doubled for a while, wherever it is used."""
    kept, users = (
        getattr(module, name),
        [m for m in (defect, evidence, measured, verdict) if hasattr(m, name)],
    )
    for user in users:
        setattr(user, name, kept * factor)
    try:
        yield
    finally:
        for user in users:
            setattr(user, name, kept)


def sensitivity(rows: pd.DataFrame) -> pd.DataFrame:
    """How the rates move when a threshold is halved and doubled."""
    import pandas as pd

    def rates() -> dict[str, str]:
        g = judged(rows, again=True)
        form, none = g[~g.formless & (g.of != "broken")], g[g.formless]
        broken = g[g.of == "broken"]
        return {
            "right, with a form": f"{form.right.mean():.1%}",
            "wrong, with a form": f"{(~form.right & ~form.honest).mean():.1%}",
            "wrong, without a form": f"{(~none.right).mean():.1%}",
            "broken laws: interval holds": f"{broken.holds[~broken.wide].mean():.0%}",
        }

    lines = [{"threshold": "as they are", "value": ""} | rates()]
    for module, name in THRESHOLDS:
        for factor in (0.5, 2.0):
            with changed(module, name, factor):
                lines.append({"threshold": name, "value": f"{getattr(module, name):.3g}"} | rates())
    return pd.DataFrame(lines)


def tables(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The tables of the results page."""
    return [
        ("By kind of problem", by_kind(rows)),
        ("Laws that are broken by a known share of their variance", by_share(rows)),
        ("Confidence and how often it is right (FOUND and NONE together)", reliability(rows)),
        ("Each threshold halved and doubled", sensitivity(rows)),
    ]


def draw(path: Path, rows: pd.DataFrame) -> None:
    """The reliability diagram."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    g = judged(rows)
    g = g[(g.verdict != "UNDERDETERMINED") & (g.confidence > 0)].sort_values("confidence")
    figure, axes = plt.subplots(figsize=(5, 4.5), layout="constrained")
    axes.plot([0.4, 1], [0.4, 1], color="0.7", lw=1, label="perfectly reliable")
    parts = np.array_split(np.arange(len(g)), max(3, len(g) // 40))
    means = np.array([g.confidence.iloc[i].mean() for i in parts])
    right = np.array([g.right.iloc[i].mean() for i in parts])
    errors = np.array([((r * (1 - r) + 0.25 / len(i)) / len(i)) ** 0.5 for r, i in zip(right, parts)])
    axes.errorbar(
        means,
        right,
        errors,
        fmt="o",
        color="tab:blue",
        capsize=3,
        label=f"about {len(parts[0])} answers each",
    )
    axes.set(xlabel="confidence", ylabel="share of right answers", xlim=(0.4, 1.01), ylim=(0, 1.05))
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the number of problems")
    parser.add_argument("--pages", action="store_true", help="only make the pages again, from the rows")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "verdicts.csv"
    if not options.pages:
        lists = [problems(k, round(options.scale * c), options.first_seed) for k, c in KINDS.items()]
        order = np.random.default_rng(0).permutation(sum(map(len, lists)))
        work = [p for part in lists for p in part]
        measure(run, [work[i] for i in order], options.jobs, path)
    write_page(path, HEADING, tables)
    import pandas as pd

    draw(options.out / "verdicts.png", pd.read_csv(path))


if __name__ == "__main__":
    main()
