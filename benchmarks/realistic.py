"""How often discovery is right on realistic problems: awkward inputs, laws with roots, poles and waves, near misses.

    python benchmarks/realistic.py --problems 128 --formless 48 --jobs 16 --first-seed 0 --out results

Writes results/realistic.csv (one row a problem) and results/realistic.md (the tables). Seeds below 1,000 are for
development; those from 1,000 on judge what was developed.
"""

from __future__ import annotations

import argparse
import ast
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from _table import measure, write_page

import gortho
from gortho.forms import Signature
from gortho.studies.tasks.realistic import (
    LAWS,
    formless_problems,
    formless_realistic,
    frame_distance,
    problems,
    realistic,
)

if TYPE_CHECKING:
    import pandas as pd

#: Discovery may have been developed with problems of seeds below this in sight.
JUDGING = 1_000
#: A form is right when its signature is, and its distance to the truth (M18) is at most this.
NEAR = 0.1
HEADING = f"""# Discovery on realistic problems

2,000 samples of ten kinds of inputs, seventeen laws, seven groups, each form in a hidden frame of condition 3.
A candidate is right when its signature is and its distance to the true form, in the frame where the inputs are
white, is at most {NEAR}. Verdicts: *right* is FOUND with a right candidate, *honest* is UNDERDETERMINED, and *wrong*
is NONE, FOUND with a candidate that is not right, or a crash. Seeds below {JUDGING:,} are for development, those from
{JUDGING:,} on for judging.
"""


def run(problem: dict) -> dict:
    """Discover on one problem; the truth is looked at only afterwards."""
    torch.set_num_threads(1)
    settings = {key: value for key, value in problem.items() if key != "truth"}
    make = realistic if problem["truth"] == "form" else formless_realistic
    task = make(**settings)
    start = time.perf_counter()
    found = gortho.discover(task.x, task.y, task.output, seed=problem["seed"])
    row = {**problem, "verdict": found.verdict.name, "seconds": round(time.perf_counter() - start, 1)}
    row |= {
        "confidence": found.confidence,
        "reason": found.reason,
        "facts": json.dumps(found.provenance.facts()),
    }
    if found.candidate is not None:
        row["candidate"] = found.candidate.group_name
        if problem["truth"] == "form":
            row |= against_truth(found, task.form, task.x)
    return row


def against_truth(found: gortho.Discovery, truth: gortho.QuadraticForm, x: torch.Tensor) -> dict:
    """How far the candidate is from the true form, and the share of its entries that lie in their intervals."""
    assert found.candidate is not None
    row = {
        "signature": found.candidate.signature == truth.signature,
        "distance": frame_distance(found.candidate, truth, x),
        "d_PA": found.candidate.algebra_distance(truth),
    }
    if found.intervals is not None:
        low, high = found.intervals
        A, B = truth.matrix.numpy(), found.candidate.matrix.numpy()
        A = A * np.sign((A * B).sum())
        entries = np.triu_indices(len(A))
        row["covered"] = float(((low <= A) & (high >= A))[entries].mean())
    return row


def with_judgement(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what follows from them: names for the tables, and what each verdict is worth."""
    for column in ("signature", "distance", "d_PA", "covered", "seconds"):
        if column not in rows:
            rows[column] = np.nan
    known = rows.verdict.isin([v.name for v in gortho.Verdict])
    near = (rows.signature.astype(str) == "True") & (rows.distance <= NEAR)
    right, honest = near & (rows.verdict == "FOUND"), rows.verdict == "UNDERDETERMINED"
    share = rows.noise.map("{:.0%}".format)
    return rows.assign(
        all="all",
        seeds=np.where(rows.seed < JUDGING, "development", "judging"),
        verdict=rows.verdict.where(known, "crash"),
        group=rows.group.map(lambda text: Signature(*ast.literal_eval(text)).group_name),
        output=rows.law.map({name: law.output for name, law in LAWS.items()}),
        noise=share.where((rows.noise == 0) | ~rows.relative, share + " relative"),
        near=near,
        right=right,
        honest=honest,
        wrong=~right & ~honest,
    )


def summary(g: pd.DataFrame) -> pd.Series:
    """One line of a table of problems with a form."""
    import pandas as pd

    wrong = g.verdict[g.wrong]
    return pd.Series(
        {
            "problems": len(g),
            "candidate right": f"{g.near.mean():.0%}",
            "verdict right": f"{g.right.mean():.0%}",
            "honest": f"{g.honest.mean():.0%}",
            "wrong": f"{g.wrong.mean():.0%}",
            "wrong NONE, FOUND, crash": ", ".join(
                str((wrong == v).sum()) for v in ("NONE", "FOUND", "crash")
            ),
            "entries in their 95 % intervals": f"{g.covered.mean():.0%}",
            "the same, candidate right": f"{g.covered[g.near].mean():.0%}",
            "median distance": f"{g.distance.median():.3f}",
            "median d_PA": f"{g.d_PA.median():.3f}",
            "median seconds": f"{g.seconds.median():.0f}",
            "longest": f"{g.seconds.max():.0f}",
        }
    )


def tables(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The tables of the results page."""
    found: list[tuple[str, pd.DataFrame]] = []
    rows = with_judgement(rows)
    form, none = (rows[rows.truth == truth] for truth in ("form", "none"))
    if len(form):
        for title, key in (
            ("Over all", "all"),
            ("By whether seeds are for development or for judging", "seeds"),
            ("By inputs", "inputs"),
            ("By law", "law"),
            ("By group", "group"),
            ("By output", "output"),
            ("By noise", "noise"),
            ("By share of outliers", "outliers"),
            ("By number of vectors", "points"),
        ):
            found.append((title, form.groupby(key)[form.columns.tolist()].apply(summary).reset_index()))
    if len(none):
        for key in ("kind", "inputs", "output"):
            counts = none.groupby([key, "seeds", "verdict"]).size().unstack(fill_value=0).reset_index()
            title = f"No form, by {key}: FOUND in {(none.verdict == 'FOUND').sum()} of {len(none)} data sets"
            found.append((title, counts))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=128, help="problems with a form")
    parser.add_argument("--formless", type=int, default=48, help="near misses without one")
    parser.add_argument("--jobs", type=int, default=1, help="problems at a time, one thread each")
    parser.add_argument("--first-seed", type=int, default=0, help=f"from {JUDGING} on: for judging")
    parser.add_argument(
        "--tables", action="store_true", help="only make the tables from the rows measured before"
    )
    parser.add_argument("--out", default="results", help="folder of the tables")
    options = parser.parse_args()
    work = [{"truth": "form", **p} for p in problems(options.problems, options.first_seed)]
    work += [{"truth": "none", **p} for p in formless_problems(options.formless, options.first_seed)]
    # The long ones first, so that the last worker is not left alone with one of them.
    work.sort(key=lambda p: -p["points"] * sum(p["group"]))
    path = Path(options.out) / "realistic.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not options.tables:
        measure(run, work, options.jobs, path)
    write_page(path, HEADING, tables)


if __name__ == "__main__":
    main()
