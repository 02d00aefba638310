"""How often symmetries other than O(A) are found: directions, origins, handedness, several spaces, skew forms."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import torch

from gortho.discovery import Discovery
from gortho.samples.frame import form_distance
from gortho.studies.experiments.problems import Problem, apportioned, frame, write
from gortho.studies.experiments.rows import Row
from gortho.studies.tasks.broken import KINDS, OF_SPACES, BrokenTask, broken, modified_inertia

#: A direction is right within so many degrees, an origin within this share of its length, a skew form, and a map
#: between frames, within this distance of matrices of size one.
DEGREES, ORIGIN, SKEW = 3.0, 0.05, 0.1
#: Laws and noises, and how many problems of each.
LAWS = {(kind, noise): 10 for noise in (0.0, 0.02) for kind in (*KINDS, *OF_SPACES, "inertia")}
del LAWS["inertia", 0.02]
#: Seeds below 1,000 are for development; those from here on were not seen.
FIRST_SEED = 28_000
#: New samples to predict.
NEW = 1_000
TEXT = f"""\
2,000 samples, each law in a hidden frame of condition 3. *right* is FOUND with the group, the handedness and the parity
of the law, directions within {DEGREES:g} degrees, an origin within {ORIGIN:.0%}, a skew form and the map between frames
within {SKEW:g}. *error* is the mean squared error of predictions of 1,000 new samples without noise, as a share of
their variance."""


@dataclass(frozen=True)
class Broken(Problem):
    """A law whose symmetry is another one than O(A)."""

    noise: float = 0.0
    table: str = "broken"
    given_axes: ClassVar[bool] = True

    def solve(self) -> Row:
        """Discover, and only then look at the truth."""
        task, new = self.drawn()
        found, row = self.discovered(task, scalars=task.scalars, set_like=task.set_like)
        row |= {"found": str(found.symmetry), "truth": str(task.symmetry), **against_truth(found, task)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # predictions of what was not accepted are measured, too
            mse = float(np.square(found.predict(new.x, new.scalars) - new.y.numpy()).mean())
        return row | {"mse": mse, "error": mse / float((new.y - new.y.mean(0)).square().mean())}

    def drawn(self) -> tuple[BrokenTask, BrokenTask]:
        """Samples to discover from, and 1,000 others of the same law without noise."""
        if self.of == "inertia":
            return modified_inertia(self.seed, self.samples), modified_inertia(self.seed + 500_000, NEW)
        # noise is drawn after the inputs and the frame after it, so noise and frame do not depend on its size
        task, clean = (broken(self.of, self.seed, self.samples + NEW, n) for n in (self.noise, 0.0))
        return task.rows(slice(None, -NEW)), clean.rows(slice(-NEW, None))


def jobs(first: int, count: int, quick: bool) -> list[Broken]:
    """So many problems, seed by seed."""
    counts = apportioned(LAWS, count)
    return [
        Broken(kind, first + i, first, quick, noise)
        for i in range(max(counts.values()))
        for (kind, noise), number in counts.items()
        if i < number
    ]


def against_truth(found: Discovery, task: BrokenTask) -> Row:
    """Whether the symmetry is right, and how far directions and origin are off."""
    truth, symmetry = task.symmetry, found.symmetry
    if symmetry is None:
        return {"right": False}
    odd = task.kind in ("torque", "chirality")
    right = symmetry.group_name == truth.group_name and symmetry.spaces == truth.spaces
    right &= odd == (found.wider is not None and found.wider.odd)
    right &= len(symmetry.directions) == len(truth.directions)
    right &= (symmetry.origin is None) == (truth.origin is None)
    right &= symmetry.linked == truth.linked
    row: Row = {}
    if right and truth.linked:
        pairs = zip((symmetry.form.matrix, *symmetry.maps), (truth.form.matrix, *truth.maps))
        row["map off"] = max(form_distance(*pair) for pair in pairs)
        right &= row["map off"] <= SKEW
    if right and len(truth.directions):
        assert found.wider is not None
        cos = (symmetry.directions * truth.directions).sum(1).abs().clamp(max=1.0)
        row["degrees"] = float(torch.rad2deg(torch.arccos(cos)).max())
        width = found.interval_factor * max(found.wider.angle_errors)
        row["within interval"] = bool(row["degrees"] <= width + 1e-5)
        right &= row["degrees"] <= DEGREES
    if right and truth.skew is not None:
        assert symmetry.skew is not None
        row["skew off"] = form_distance(symmetry.skew.matrix, truth.skew.matrix)
        right &= row["skew off"] <= SKEW
    if right and truth.origin is not None:
        assert symmetry.origin is not None
        row["origin off"] = float((symmetry.origin - truth.origin).norm() / truth.origin.norm())
        right &= row["origin off"] <= ORIGIN
    return row | {"right": bool(right)}


def _or_nothing(value: float, unit: str = "") -> str:
    return "" if np.isnan(value) else f"{value:.2g}{unit}"


def summary(g: pd.DataFrame) -> pd.Series:
    """One line of the table."""
    return pd.Series(
        {
            "problems": len(g),
            "right": f"{(g.right.astype(str) == 'True').mean():.0%}",
            "FOUND": int((g.verdict == "FOUND").sum()),
            "largest error of directions": _or_nothing(g.degrees.max(), "°"),
            "largest error of origins": _or_nothing(g["origin off"].max()),
            "median error": f"{g.error.median():.1e}",
            "largest MSE": f"{g.mse.max():.1e}",
            "median seconds": f"{g.seconds.median():.0f}",
        }
    )


def tables(rows: Sequence[Row]) -> list[tuple[str, pd.DataFrame]]:
    """Every law and noise."""
    table = frame(rows, ("degrees", "origin off", "error", "mse", "seconds", "right")).rename(
        columns={"of": "kind"}
    )
    lines = table.groupby(["kind", "noise"])[table.columns.tolist()].apply(summary).reset_index()
    return [("By law and noise", lines)]


def page(rows: Sequence[Row], out: Path, command: str) -> None:
    """broken.md and .csv."""
    path, order = out / "broken.md", ("of", "seed", "noise")
    write(path, rows, command, "Symmetries other than O(A)", TEXT, tables(rows), order)
