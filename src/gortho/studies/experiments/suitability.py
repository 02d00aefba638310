"""Which method can do what, as tests: every mark is a measurement against a stated bound, none is an opinion."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gortho.studies.baselines.registry import fitted, standing
from gortho.studies.experiments import regression
from gortho.studies.experiments.fits import Job
from gortho.studies.experiments.rows import Row
from gortho.studies.experiments.tables import markdown, number, of, provenance, write_page

#: Bounds of the tests: relative MSE, d_PA, equivariance error of the predictor.
PREDICTS, FINDS, EXACT = 0.01, 0.05, 1e-8


def jobs(first: int, seeds: int, quick: bool) -> list[Job]:
    """What the regression table has of these methods, and data without a form."""
    size: dict[str, Any] = (
        {"samples": 500, "test_samples": 500, "quick": True} if quick else {"samples": 2_000}
    )
    methods = fitted("suitability")
    without = [
        Job("no form", method, seed=seed, **size)
        for seed in range(first, first + seeds)
        for method, stand in methods.items()
        if stand.at is None
    ]
    return regression.on_tasks(list(methods), first, seeds, quick) + without


def _mark(values: list[float], bound: float) -> str:
    if not values:
        return "no"
    mean = statistics.mean(values)
    return f"{'**yes**' if mean <= bound else 'no'} ({number(mean)})"


def _refusal(rows: Sequence[Row]) -> str:
    verdicts = [row["notes"].get("verdict") for row in rows]
    if not rows:
        return "no: has no such answer (not run)"
    if None in verdicts:
        return "no: names generators all the same"
    right = sum(v != "FOUND" for v in verdicts)
    return f"{'**yes**' if right == len(verdicts) else 'no'} ({right} of {len(verdicts)})"


def page(rows: Sequence[Row], out: Path, command: str) -> None:
    """suitability.md."""
    lines = []
    for method in standing("suitability"):
        own = {
            t: [r for r in rows if r["method"] == method and r["task"] == t]
            for t in (*regression.TASKS, "no form")
        }
        tasks = [r for t in regression.TASKS for r in own[t]]
        finds = not tasks or of(tasks, "d_PA")
        refusal = _refusal(own["no form"]) if finds else "finds no symmetry"
        lines.append(
            [
                method,
                _mark(of(tasks, "relative MSE"), PREDICTS),
                _mark(of(own["synthetic"], "d_PA"), FINDS),
                _mark(of(own["inertia"], "d_PA"), FINDS),
                _mark(of(tasks, "own equivariance error"), EXACT),
                refusal,
            ]
        )
    header = [
        "method",
        f"predicts (relative MSE ≤ {PREDICTS:g})",
        f"finds O(2,2) (d_PA ≤ {FINDS:g})",
        f"finds O(3) (d_PA ≤ {FINDS:g})",
        f"predictor respects the group it found (error ≤ {EXACT:g})",
        "refuses data without a form",
    ]
    text = (
        "The paper's table of suitable methods, as tests. A mark is the mean over seeds and tasks beside its bound. "
        "How far each predictor respects the *true* group is in regression.md. LIG, BNN and EMLP are measured by "
        "`gortho reproduce neighbours`."
    )
    write_page(
        out / "suitability.md",
        "Which method can do what",
        text,
        markdown(header, lines),
        provenance(rows, command),
    )
