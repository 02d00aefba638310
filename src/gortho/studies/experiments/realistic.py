"""How often discovery is right on realistic problems: awkward inputs, laws with roots, poles and waves, near misses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from gortho.discovery import Verdict
from gortho.forms import Signature
from gortho.studies.experiments.judging import reliability
from gortho.studies.experiments.problems import (
    NEAR,
    Problem,
    against_truth,
    frame,
    series,
    wider_right,
    write,
)
from gortho.studies.experiments.rows import Row
from gortho.studies.tasks.law_families import LAWS
from gortho.studies.tasks.realistic import formless_problem, formless_realistic, problem, realistic

#: Problems with a form, and near misses without one.
KINDS = {"form": 128, "none": 48}
#: Discovery may have been developed with problems of seeds below the first in sight; those of the second were not seen.
JUDGING, FIRST_SEED = 1_000, 250_000
TEXT = f"""\
2,000 samples of ten kinds of inputs, seventeen laws, seven groups, each form in a hidden frame of condition 3.
A candidate is right when its signature is and its distance to the true form, in the frame where the inputs are
white, is at most {NEAR}. Verdicts: *right* is FOUND with a right candidate, *honest* is UNDERDETERMINED, and *wrong*
is NONE, FOUND with a candidate that is not right, or a crash. Seeds below {JUDGING:,} are for development, those from
{JUDGING:,} on for judging."""
#: Titles of the tables of problems with a form, and what each divides them by.
DIVIDED = {
    "Over all": "all",
    "By whether seeds are for development or for judging": "seeds",
    "By inputs": "inputs",
    "By law": "law",
    "By group": "group",
    "By output": "output",
    "By noise": "noise",
    "By share of outliers": "outliers",
    "By number of vectors": "points",
}


@dataclass(frozen=True)
class Realistic(Problem):
    """A law with a form, or a near miss."""

    table: str = "realistic"
    given_axes: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """What the task of this problem is made with."""
        return problem(self.seed) if self.of == "form" else formless_problem(self.seed)

    def solve(self) -> Row:
        """Discover, and only then look at the truth."""
        make = realistic if self.of == "form" else formless_realistic
        task = make(**self.settings(), samples=self.samples)
        found, row = self.discovered(task)
        row |= {"reason": found.reason, "facts": found.provenance.facts()}
        if found.candidate is not None:
            row["candidate"] = found.candidate.group_name
            if found.wider is not None:
                row["wider"] = str(found.wider.symmetry)
                row["wider right"] = wider_right(found.wider.symmetry, task)
            row |= against_truth(found, task.form, task.x) if self.of == "form" else {}
        return row


def jobs(first: int, count: int, quick: bool) -> list[Realistic]:
    """So many problems, the long ones first, so that the last worker is not left alone with one of them."""
    made = series(Realistic, KINDS, first, count, quick)
    size = {job: job.settings()["points"] * sum(job.settings()["group"]) for job in made}
    return sorted(made, key=lambda job: -size[job])


def judged(rows: Sequence[Row]) -> pd.DataFrame:
    """The rows with what follows from them: names for the tables, and what each verdict is worth."""
    columns = ("signature", "distance", "d_PA", "covered", "seconds", "kind", "confidence", "wider right")
    table = frame(rows, columns)
    known = table.verdict.isin([verdict.name for verdict in Verdict])
    near = (table.signature.astype(str) == "True") & (table.distance <= NEAR)
    right, honest = near & (table.verdict == "FOUND"), table.verdict == "UNDERDETERMINED"
    share = table.noise.map("{:.0%}".format)
    return table.assign(
        all="all",
        seeds=np.where(table.seed < JUDGING, "development", "judging"),
        verdict=table.verdict.where(known, "crash"),
        group=table.group.map(lambda signs: Signature(*signs).group_name),
        output=table.law.map({name: law.output for name, law in LAWS.items()}),
        noise=share.where((table.noise == 0) | ~table.relative, share + " relative"),
        near=near,
        right=right,
        honest=honest,
        wrong=~right & ~honest,
    )


def summary(g: pd.DataFrame) -> pd.Series:
    """One line of a table of problems with a form."""
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


def tables(rows: Sequence[Row]) -> list[tuple[str, pd.DataFrame]]:
    """Problems with a form by all that may matter, and what near misses are taken for."""
    found: list[tuple[str, pd.DataFrame]] = []
    table = judged(rows)
    form, none = (table[table.of == of] for of in KINDS)
    if len(form):
        for title, key in DIVIDED.items():
            found.append((title, form.groupby(key)[form.columns.tolist()].apply(summary).reset_index()))
    if len(none):
        for key in ("kind", "inputs", "output"):
            counts = none.groupby([key, "seeds", "verdict"]).size().unstack(fill_value=0).reset_index()
            title = f"No form, by {key}: FOUND in {(none.verdict == 'FOUND').sum()} of {len(none)} data sets"
            found.append((title, counts))
        found.append(("No form, but FOUND", _claimed(none)))
    found.append(
        ("Confidence and how often it is right (FOUND and NONE together)", reliability(_answers(table)))
    )
    return found


def _directed(none: pd.DataFrame) -> pd.Series:
    """Which near misses are told with the direction that breaks them."""
    return (none.kind == "direction") & (none["wider right"].astype(str) == "True")


def _claimed(none: pd.DataFrame) -> pd.DataFrame:
    """Near misses that are FOUND, the surest first; with the direction that breaks it the answer is right."""
    g = none[none.verdict == "FOUND"].sort_values("confidence", ascending=False)
    columns = {name: g[name] for name in ("seed", "kind", "inputs", "law", "confidence")}
    return pd.DataFrame(columns | {"right, by a direction": _directed(g).map({True: "yes", False: "no"})})


def _answers(table: pd.DataFrame) -> pd.DataFrame:
    """Answers with what they are worth: of near misses NONE is right, and a direction that breaks them."""
    none = table.of == "none"
    right = table.right.where(~none, (table.verdict == "NONE") | _directed(table))
    return table.assign(right=right)[table.verdict.isin(["FOUND", "NONE"])]


def page(rows: Sequence[Row], out: Path, command: str) -> None:
    """realistic.md and .csv."""
    write(out / "realistic.md", rows, command, "Discovery on realistic problems", TEXT, tables(rows))
