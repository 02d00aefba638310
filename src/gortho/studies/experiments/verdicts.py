"""How much verdicts, confidences and intervals of the defect are worth, on problems of many kinds.

Realistic laws, near misses without a form, laws that are broken by a known share, random laws, singular forms, laws
without a form, and classes. Every row keeps the whole evidence, so that other thresholds can be tried on it without
searching again (`judging`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gortho.stored import stored
from gortho.studies.experiments import judging
from gortho.studies.experiments.problems import (
    DEGREES,
    NEAR,
    Problem,
    against_truth,
    frame,
    series,
    wider_right,
    write,
)
from gortho.studies.experiments.rows import Row
from gortho.studies.tasks.classes import class_problem, random_classes
from gortho.studies.tasks.random_laws import random_problem, random_task
from gortho.studies.tasks.realistic import formless_problem, formless_realistic, problem, realistic
from gortho.studies.tasks.violated import violated, violated_problem

#: Kinds of problems, and how many of each.
KINDS = {
    "realistic": 160, "near miss": 80, "broken": 120, "random": 54, "singular": 12, "formless": 48, "classes": 42
}  # fmt: skip
#: Kinds whose settings are met in turn, as `random_problem` calls them.
IN_TURN = {"random": "form", "singular": "singular", "formless": "formless"}
#: Settings of the others, by the seed.
BY_SEED = {
    "realistic": problem, "near miss": formless_problem, "broken": violated_problem, "classes": class_problem
}  # fmt: skip
#: Thresholds and the calibration of the confidence were set on seeds below 1,000; those from here on were not seen.
FIRST_SEED = 230_000
TEXT = f"""\
2,000 samples each. *Right*: FOUND with the right signature and a form within {NEAR} of the truth (in the frame), if
there is one; NONE or UNDERDETERMINED, if there is none. *Wrong*: NONE if there is a form, FOUND if there is
none or with a wrong form. *Honest*: UNDERDETERMINED if there is a form, or a direction that breaks it. Laws that are
broken by a function of one direction, by some share of their variance, count as right if they are FOUND with the right
form and the interval of the defect contains that share, if they are NONE and the share is above zero, or if they are
FOUND with that direction: within {DEGREES:g} degrees, and with a form within {NEAR} of the truth apart from what a
direction leaves open. The same holds for near misses of this kind. What is FOUND about an origin is right if its form
is.

![how often answers are right, by confidence](verdicts.png)"""


@dataclass(frozen=True)
class Judged(Problem):
    """A problem of one of the kinds."""

    table: str = "verdicts"

    def settings(self) -> dict[str, Any]:
        """What the task of this problem is made with."""
        if self.of in IN_TURN:
            return random_problem(IN_TURN[self.of], self.seed - self.first_seed)
        return BY_SEED[self.of](self.seed)

    def task(self) -> tuple[Any, float | None]:
        """The problem's samples, and the true defect where it is known."""
        given = self.settings() | {"samples": self.samples}
        if self.of in IN_TURN:
            return random_task(self.seed, **given), None if self.of == "formless" else 0.0
        if self.of == "realistic":
            return realistic(**given), 0.0
        if self.of == "near miss":
            return formless_realistic(**given), given["share"] if given["kind"] == "direction" else None
        if self.of == "classes":
            return random_classes(**given), None
        whole, exact = (violated(**given | {"noise": 0.0} | more).y for more in ({}, {"share": 0.0}))
        # the two are orthogonal, but not on each sample of a law with heavy tails
        parts = (whole - exact).square().mean(), (exact - exact.mean(0)).square().mean()
        return violated(**given), float(parts[0] / sum(parts))

    def solve(self) -> Row:
        """Discover, and only then look at the truth."""
        task, share = self.task()
        found, row = self.discovered(task)
        row |= {"low": found.defect.low, "high": found.defect.high, "true": share}
        # An open question may be one about a wider symmetry: then the defect is that of the wider one.
        row["wider"] = "" if found.wider is None else str(found.wider.symmetry)
        if found.wider is not None:
            row["wider right"] = wider_right(found.wider.symmetry, task)
        row["stages"] = {name: round(seconds, 2) for name, seconds in found.provenance.stages.items()}
        if found.evidence is not None:
            row["evidence"] = stored(found.evidence)
        if found.candidate is not None and not judging.formless(self.settings() | row | {"of": self.of}):
            row |= against_truth(found, task.form, task.x)
            row["near"] = row["signature"] and row["distance"] <= NEAR
        return row


def jobs(first: int, count: int, quick: bool) -> list[Judged]:
    """So many problems, kinds mixed, so that a run that is stopped early has a bit of everything."""
    made = series(Judged, KINDS, first, count, quick)
    return [made[i] for i in np.random.default_rng(0).permutation(len(made))]


def page(rows: Sequence[Row], out: Path, command: str) -> None:
    """verdicts.md, .csv and .png."""
    table = frame(rows, judging.COLUMNS)
    write(out / "verdicts.md", rows, command, "What verdicts are worth", TEXT, judging.tables(table))
    judging.draw(out / "verdicts.png", table)
