"""Systems of other kinds on our tasks: flows (LIG), finite groups (BNN), networks told a group, right or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gortho.studies.baselines.registry import fitted, standing
from gortho.studies.experiments.fits import Job
from gortho.studies.experiments.rows import Row
from gortho.studies.experiments.tables import (
    markdown,
    method_table,
    provenance,
    spread,
    write_csv,
    write_page,
)

TASKS = {
    "synthetic": "Synthetic, O(2,2)",
    "inertia": "Moment of inertia, O(3)",
    "O5": "O5, O(5)",
    "Particle": "Particle, O(1,3)",
}
#: Has a table of its own: it neither predicts nor has generators.
ORBITS_ONLY = "BNN"
#: What BNN's notes hold, and how the table calls it.
MEASURED = {
    "spread within orbits": "spread within orbits",
    "collapse": "the same over spread between",
    "orbit accuracy": "nearest neighbour in the same orbit",
    "orbit accuracy of x itself": "nearest by x itself",
    "table's distance": "worst product from the next column",
    "table is a group's": "Cayley table of a group",
}
SHIFTS = "cyclic shifts: "


def jobs(first: int, seeds: int, quick: bool) -> list[Job]:
    """Every system on every task."""
    size: dict[str, Any] = (
        {"samples": 500, "test_samples": 500, "quick": True} if quick else {"samples": 2_000}
    )
    methods = fitted("neighbours")
    return [
        Job(task, method, seed=seed, **size)
        for seed in range(first, first + seeds)
        for task in (list(TASKS)[:1] if quick else TASKS)
        for method in methods
    ]


def _orbits(rows: Sequence[Row]) -> str:
    """What BNN made of the orbits of each group, beside cyclic shifts of the same samples."""
    lines = []
    for task, title in TASKS.items():
        notes = [row["notes"] for row in rows if row["task"] == task and row["method"] == ORBITS_ONLY]
        for label, prefix in ((title, ""), ("cyclic shifts of the same samples", SHIFTS)):
            if notes:
                cells = [spread([float(n[prefix + key]) for n in notes]) for key in list(MEASURED)[:-1]]
                groups = sum(int(n[prefix + "table is a group's"]) for n in notes)
                lines.append([label, *cells, f"{groups} of {len(notes)}"])
    return markdown(["orbits of", *MEASURED.values()], lines)


HOW = """Every method gets the same {samples:,} samples; test samples are {tests:,} further ones. *Told* are networks
that are given the form, *wrong* those given one with the same axes and another group: O(4) for O(2,2) and O(1,3),
O(1,2) and O(1,4) for O(3) and O(5). They show what knowing the group is worth, and what a wrong guess costs; results
without the group are in regression.md and public.md. EMLP is our own small network after its paper, not the authors'
code; its published results are in public.md. LIG finds flows, and no form of its own: d_PA is that of the linear parts
of its fields, its predictor is the MLP, and it is given how outputs transform. The equivariance error is that under the
*true* group. Values are mean ± standard deviation over seeds."""

ORBITS = """BNN learns from orbits, but samples of a law have none. So it was *given* the true group: samples, each
as one long signal, were moved by random elements of it. If its bispectrum is invariant and complete, there is no
spread within orbits, the nearest neighbour of every held-out signal lies in its own orbit, and products of columns are
columns. Bispectra have length one, so independent ones are √2 apart. For comparison, the same network was trained on
cyclic shifts of the same samples, a group that suits it. The tables above have no row for it: it neither predicts nor
has generators or a form."""


def page(rows: Sequence[Row], out: Path, command: str) -> None:
    """neighbours.md and .csv."""
    parts = [HOW.format(samples=rows[0]["samples"], tests=rows[0]["test_samples"])]
    columns = ("MSE", "relative MSE", "cos", "d_PA", "equivariance error", "seconds", "parameters")
    order = [name for name in standing("neighbours") if name != ORBITS_ONLY]
    for task, title in TASKS.items():
        own = [row for row in rows if row["task"] == task]
        if own:
            parts += [f"## {title}", method_table(own, order, columns)]
    parts += ["## Finite groups", ORBITS, _orbits(rows)]
    write_csv(rows, out / "neighbours.csv")
    write_page(out / "neighbours.md", "Neighbours", *parts, provenance(rows, command))
