"""How often symmetries other than O(A) are found: directions, origins, handedness, several spaces, skew forms.

    python benchmarks/broken.py --problems 10 --jobs 16 --first-seed 1000 --out results

Writes results/broken.csv (one row a problem) and results/broken.md (the tables). Seeds below 1,000 are for development;
those from 1,000 on judge what was developed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from _table import measure, write_page

import gortho
from gortho.samples.frame import form_distance
from gortho.studies.tasks.broken import KINDS, OF_SPACES, BrokenTask, broken, modified_inertia

if TYPE_CHECKING:
    import pandas as pd

#: A direction is right within so many degrees, an origin within this share of its length, a skew form, and a map
#: between frames, within this distance of matrices of size one.
DEGREES, ORIGIN, SKEW = 3.0, 0.05, 0.1
NOISES = (0.0, 0.02)
#: New samples to predict.
NEW = 1_000
HEADING = f"""# Symmetries other than O(A)

2,000 samples, each law in a hidden frame of condition 3. *right* is FOUND with the group, the handedness and the parity
of the law, directions within {DEGREES:g} degrees, an origin within {ORIGIN:.0%}, a skew form and the map between frames
within {SKEW:g}. *error* is the mean squared error of predictions of 1,000 new samples without noise, as a share of
their variance.
"""


def run(problem: dict) -> dict:
    """Discover on one problem; the truth is looked at only afterwards."""
    torch.set_num_threads(1)
    kind, seed, noise = (problem[key] for key in ("kind", "seed", "noise"))
    task, new = drawn(kind, seed, noise)
    start = time.perf_counter()
    found = gortho.discover(task.x, task.y, task.output, task.scalars, seed=seed, set_like=task.set_like)
    row = {**problem, "verdict": found.verdict.name, "seconds": round(time.perf_counter() - start, 1)}
    row |= {"found": str(found.symmetry), "truth": str(task.symmetry), **against_truth(found, task)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # predictions of what was not accepted are measured, too
        mse = float(np.square(found.predict(new.x, new.scalars) - new.y.numpy()).mean())
    return row | {"mse": mse, "error": mse / float((new.y - new.y.mean(0)).square().mean())}


def drawn(kind: str, seed: int, noise: float) -> tuple[BrokenTask, BrokenTask]:
    """2,000 samples to discover from, and 1,000 others of the same law without noise."""
    if kind == "inertia":
        return modified_inertia(seed), modified_inertia(seed + 500_000, NEW)
    # noise is drawn after the inputs and the frame after it, so noise and frame do not depend on its size
    task, clean = (broken(kind, seed, 2_000 + NEW, n) for n in (noise, 0.0))
    return task.rows(slice(None, -NEW)), clean.rows(slice(-NEW, None))


def against_truth(found: gortho.Discovery, task: BrokenTask) -> dict:
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
    row: dict = {}
    if right and truth.linked:
        pairs = zip((symmetry.form.matrix, *symmetry.maps), (truth.form.matrix, *truth.maps))
        row["map off"] = max(form_distance(*pair) for pair in pairs)
        right &= row["map off"] <= SKEW
    if right and len(truth.directions):
        cos = (symmetry.directions * truth.directions).sum(1).abs().clamp(max=1.0)
        row["degrees"] = float(torch.rad2deg(torch.arccos(cos)).max())
        row["within interval"] = (
            row["degrees"] <= found.interval_factor * max(found.wider.angle_errors) + 1e-5
        )
        right &= row["degrees"] <= DEGREES
    if right and truth.skew is not None:
        row["skew off"] = form_distance(symmetry.skew.matrix, truth.skew.matrix)
        right &= row["skew off"] <= SKEW
    if right and truth.origin is not None:
        row["origin off"] = float((symmetry.origin - truth.origin).norm() / truth.origin.norm())
        right &= row["origin off"] <= ORIGIN
    return row | {"right": bool(right)}


def _or_nothing(value: float, unit: str = "") -> str:
    return "" if np.isnan(value) else f"{value:.2g}{unit}"


def tables(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The tables of the results page."""
    import pandas as pd

    for column in ("degrees", "origin off", "error", "mse", "seconds", "right"):
        if column not in rows:
            rows[column] = np.nan

    def line(g: pd.DataFrame) -> pd.Series:
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

    columns = rows.columns.tolist()
    return [("By law and noise", rows.groupby(["kind", "noise"])[columns].apply(line).reset_index())]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = [*KINDS, *OF_SPACES, "inertia"]
    parser.add_argument("--problems", type=int, default=10, help="problems of each kind and noise")
    parser.add_argument("--kinds", default=",".join(kinds), help="kinds of laws, between commas")
    parser.add_argument("--jobs", type=int, default=1, help="problems at a time, one thread each")
    parser.add_argument("--first-seed", type=int, default=0, help="from 1000 on: for judging")
    parser.add_argument("--tables", action="store_true", help="only make the tables from the rows")
    parser.add_argument("--out", default="results", help="folder of the tables")
    options = parser.parse_args()
    path = Path(options.out) / "broken.csv"
    if not options.tables:
        path.parent.mkdir(parents=True, exist_ok=True)
        seeds = range(options.first_seed, options.first_seed + options.problems)
        work = [
            {"kind": kind, "seed": seed, "noise": noise}
            for seed in seeds
            for kind in options.kinds.split(",")
            for noise in (NOISES if kind != "inertia" else NOISES[:1])
        ]
        measure(run, work, options.jobs, path)
    write_page(path, HEADING, tables)


if __name__ == "__main__":
    main()
