"""How often discovery is right: random problems with a form, with a singular form, and with none.

    python benchmarks/discovery.py --problems 108 --formless 200 --singular 18 --jobs 2

Writes results/discovery.csv (one row a problem, with the evidence) and results/discovery.md (the tables).
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from _table import measure, write_page

import gortho
from gortho.studies.tasks.random_laws import FORMLESS, SHAPES, formless, random_law

if TYPE_CHECKING:
    import pandas as pd

#: The verdict's rules were set with problems of seeds below these in sight; later seeds are new to them.
SEEN = {"form": 4_000, "formless": 4_000}
GROUPS = [(2, 0), (3, 0), (4, 0), (5, 0), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3)]
OUTPUTS = ["scalar", "vector", "conjugation", "bilinear"]
NOISES = [0.0, 0.01, 0.05]


def problems(kind: str, count: int, first_seed: int = 0) -> list[dict]:
    """The list of problems of one kind; every setting is met in turn."""
    chosen = []
    for i in range(count):
        seed = first_seed + i
        if kind == "form":
            group, output = GROUPS[i % 9], OUTPUTS[(i // 9) % 4]
            points, shape = 1 + (i * 7 + i // 9) % 4, SHAPES[(i + i // 9) % 3]
            noise = NOISES[(i // 2) % 3]
            chosen.append(
                dict(
                    kind=kind, group=group, output=output, points=points, shape=shape, noise=noise, seed=seed
                )
            )
        elif kind == "singular":
            group = [(2, 0, 1), (1, 1, 1), (2, 0, 2), (3, 0, 1), (1, 2, 1), (1, 1, 2)][i % 6]
            output = ["scalar", "covector"][(i // 6) % 2]
            chosen.append(
                dict(
                    kind=kind,
                    group=group,
                    output=output,
                    points=1 + i % 2,
                    shape=SHAPES[i % 3],
                    noise=NOISES[i % 3],
                    seed=seed,
                )
            )
        else:
            chosen.append(
                dict(
                    kind=kind,
                    law=FORMLESS[i % 6],
                    n=2 + (i // 6) % 4,
                    points=1 + (i // 24) % 3,
                    noise=NOISES[i % 3],
                    seed=seed,
                )
            )
    return chosen


def run(problem: dict) -> dict:
    """Discover on one problem; the truth is looked at only afterwards."""
    torch.set_num_threads(problem.get("threads", 1))
    p = problem
    if p["kind"] == "formless":
        task = formless(p["law"], p["n"], p["points"], 2_000, p["noise"], p["seed"])
    else:
        form = gortho.QuadraticForm.random(
            *p["group"], condition=10 ** (p["seed"] % 3 / 2), seed=10_000 + p["seed"]
        )
        task = random_law(form, p["points"], p["output"], 2_000, p["noise"], p["shape"], p["seed"])
    start = time.perf_counter()
    settings = gortho.Settings(given_axes=False)  # no search may start at the answer
    found = gortho.discover(task.x, task.y, task.output, seed=p["seed"], settings=settings)
    seconds = time.perf_counter() - start
    row = {
        **p,
        "group": task.form.group_name if p["kind"] != "formless" else "",
        "verdict": found.verdict.name,
    }
    row |= {"seconds": round(seconds, 1), "confidence": found.confidence, "candidate": ""}
    if found.candidate is not None:
        row["candidate"] = found.candidate.group_name
        row["right"] = found.verdict.name == "FOUND" and found.candidate.signature == task.form.signature
        row["d_PA"] = found.candidate.algebra_distance(task.form)
    if found.evidence is not None:
        e = found.evidence
        row |= {
            "unexplained": e.typical.unexplained,
            "free_unexplained": e.typical.free_unexplained,
            "spread": e.spread,
        }
    return row


def tables(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The tables of the results page."""
    import pandas as pd

    found: list[tuple[str, pd.DataFrame]] = []
    form = rows[rows.kind == "form"]
    if len(form):

        def summary(g: pd.DataFrame) -> pd.Series:
            return pd.Series(
                {
                    "problems": len(g),
                    "FOUND, signature right": f"{g.right.mean():.0%}",
                    "FOUND, signature wrong": int(((g.verdict == "FOUND") & ~g.right.astype(bool)).sum()),
                    "median d_PA": f"{g.d_PA.median():.4f}",
                    "largest d_PA": f"{g.d_PA.max():.3f}",
                    "median seconds": f"{g.seconds.median():.0f}",
                    "longest": f"{g.seconds.max():.0f}",
                }
            )

        new = (form.seed >= SEEN["form"]).map({True: "new", False: "seen"})
        total = form.assign(all="all", seeds=new)
        for title, key in (
            ("Over all", "all"),
            ("By whether the rules of the verdict were set with these seeds in sight", "seeds"),
            ("By group", "group"),
            ("By output", "output"),
            ("By noise", "noise"),
            ("By number of vectors", "points"),
            ("By law", "shape"),
        ):
            found.append((title, total.groupby(key)[total.columns.tolist()].apply(summary).reset_index()))
        bins = pd.cut(form.confidence[form.verdict == "FOUND"], [0, 0.5, 0.9, 0.99, 1.0])
        calibration = (
            form[form.verdict == "FOUND"]
            .groupby(bins, observed=True)
            .agg(
                problems=("right", "size"),
                stated=("confidence", "mean"),
                right=("right", lambda r: float(r.astype(float).mean())),
            )
        )
        found.append(
            (
                "Calibration: stated confidence against how often the signature was right",
                calibration.reset_index(),
            )
        )
    none = rows[rows.kind == "formless"]
    if len(none):
        counts = none.groupby(["law", "verdict"]).size().unstack(fill_value=0).reset_index()
        wrong = none[none.verdict == "FOUND"].seed
        title = f"No form: FOUND in {len(wrong)} of {len(none)} data sets ("
        title += (
            f"{(wrong >= SEEN['formless']).sum()} of {(none.seed >= SEEN['formless']).sum()} with new seeds)"
        )
        found.append((title, counts))
    singular = rows[rows.kind == "singular"]
    if len(singular):
        found.append(
            (
                "Singular forms",
                singular[["group", "output", "points", "noise", "verdict", "candidate", "d_PA"]],
            )
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=108, help="problems with a form")
    parser.add_argument("--formless", type=int, default=200, help="problems without one")
    parser.add_argument("--singular", type=int, default=18, help="problems with a singular form")
    parser.add_argument("--jobs", type=int, default=1, help="problems at a time, one thread each")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--tables", action="store_true", help="only make the tables from the rows measured before"
    )
    parser.add_argument("--out", default="results", help="folder of the tables")
    options = parser.parse_args()
    work = [
        p
        for kind, count in (
            ("form", options.problems),
            ("singular", options.singular),
            ("formless", options.formless),
        )
        for p in problems(kind, count, options.first_seed)
    ]
    # The long ones first, so that the last worker is not left alone with one of them.
    work.sort(key=lambda p: -p["points"] * math.prod(p.get("group", (p.get("n", 1),))[:1]))
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "discovery.csv"
    if not options.tables:
        measure(run, work, options.jobs, path)
    heading = "# Discovery on random problems\n\n"
    heading += "2,000 samples of x ~ N(0, I), forms of condition 1 to 10 in a random frame. "
    heading += "Plain forms in the given coordinates are left out of the starts.\n"
    write_page(path, heading, tables)


if __name__ == "__main__":
    main()
