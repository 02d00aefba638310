"""How often discovery is right on random problems: with a form, with a singular form, and with none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from gortho.studies.experiments.problems import Problem, frame, series, write
from gortho.studies.experiments.rows import Row
from gortho.studies.experiments.tables import number
from gortho.studies.tasks.random_laws import random_problem, random_task

#: Problems of each kind.
KINDS = {"form": 108, "singular": 18, "formless": 200}
#: The verdict's rules were set with problems of seeds below the first in sight; those of the second were not seen.
SEEN, FIRST_SEED = 4_000, 23_000
TEXT = (
    "2,000 samples of x ~ N(0, I), forms of condition 1 to 10 in a random frame. "
    "Plain forms in the given coordinates are left out of the starts."
)
#: Titles of the tables of problems with a form, and what each divides them by.
DIVIDED = {
    "Over all": "all",
    "By whether the rules of the verdict were set with these seeds in sight": "seeds",
    "By group": "group",
    "By output": "output",
    "By noise": "noise",
    "By number of vectors": "points",
    "By law": "shape",
}
#: What the table of singular forms shows.
SHOWN = ["group", "output", "points", "noise", "verdict", "candidate", "d_PA"]


@dataclass(frozen=True)
class Random(Problem):
    """A random law of a form, of a singular form, or of none."""

    table: str = "random"

    def settings(self) -> dict[str, Any]:
        """What the task of this problem is made with."""
        return random_problem(self.of, self.seed - self.first_seed)

    def solve(self) -> Row:
        """Discover, and only then look at the truth."""
        task = random_task(self.seed, **self.settings(), samples=self.samples)
        found, row = self.discovered(task)
        row |= {"candidate": "", "right": False}
        if self.of != "formless":
            row["group"] = task.form.group_name
        if found.candidate is not None:
            row["candidate"] = found.candidate.group_name
            row["right"] = row["verdict"] == "FOUND" and found.candidate.signature == task.form.signature
            row["d_PA"] = found.candidate.algebra_distance(task.form)
        if found.evidence is not None:
            row["unexplained"] = found.evidence.typical.unexplained
            row["free_unexplained"] = found.evidence.typical.free_unexplained
            row["spread"] = found.evidence.spread
        return row


def jobs(first: int, count: int, quick: bool) -> list[Random]:
    """So many problems, the long ones first, so that the last worker is not left alone with one of them."""
    made = series(Random, KINDS, first, count, quick)

    def size(job: Random) -> int:
        settings = job.settings()
        return settings["points"] * math.prod(settings.get("group", (settings.get("n", 1),))[:1])

    return sorted(made, key=lambda job: -size(job))


def summary(g: pd.DataFrame) -> pd.Series:
    """One line of a table of problems with a form."""
    return pd.Series(
        {
            "problems": len(g),
            "FOUND, signature right": f"{g.right.mean():.0%}",
            "FOUND, signature wrong": int(((g.verdict == "FOUND") & ~g.right).sum()),
            "median d_PA": number(g.d_PA.median()),
            "largest d_PA": number(g.d_PA.max()),
            "median seconds": f"{g.seconds.median():.0f}",
            "longest": f"{g.seconds.max():.0f}",
        }
    )


def calibration(form: pd.DataFrame) -> pd.DataFrame:
    """Of the forms that were found, how many are right, by the stated confidence."""
    found = form[form.verdict == "FOUND"]
    bins = pd.cut(found.confidence, [0, 0.5, 0.9, 0.99, 1.0])
    counted = found.groupby(bins, observed=True).agg(
        problems=("right", "size"), stated=("confidence", "mean"), right=("right", "mean")
    )
    return counted.reset_index()


def tables(rows: Sequence[Row]) -> list[tuple[str, pd.DataFrame]]:
    """Problems with a form by all that may matter, and what those without one are taken for."""
    table = frame(rows, ("right", "d_PA", "seconds", "confidence", "candidate", "shape"))
    table = table.assign(
        all="all",
        seeds=(table.seed >= SEEN).map({True: "new", False: "seen"}),
        right=table.right.astype(str) == "True",
    )
    found: list[tuple[str, pd.DataFrame]] = []
    form, singular, none = (table[table.of == of] for of in KINDS)
    if len(form):
        for title, key in DIVIDED.items():
            found.append((title, form.groupby(key)[form.columns.tolist()].apply(summary).reset_index()))
        title = "Calibration: stated confidence against how often the signature was right"
        found.append((title, calibration(form)))
    if len(none):
        counts = none.groupby(["law", "verdict"]).size().unstack(fill_value=0).reset_index()
        wrong = none[none.verdict == "FOUND"].seed
        new = f"{(wrong >= SEEN).sum()} of {(none.seed >= SEEN).sum()} with new seeds"
        found.append((f"No form: FOUND in {len(wrong)} of {len(none)} data sets ({new})", counts))
    if len(singular):
        found.append(("Singular forms", singular[SHOWN]))
    return found


def page(rows: Sequence[Row], out: Path, command: str) -> None:
    """random.md and .csv."""
    write(out / "random.md", rows, command, "Discovery on random problems", TEXT, tables(rows))
