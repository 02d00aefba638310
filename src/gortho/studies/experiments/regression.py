"""The paper's regression and noise tables, with error bars, and its figure of learnt forms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gortho.studies.baselines.base import PAPER_NOISES
from gortho.studies.baselines.registry import fitted, standing
from gortho.studies.experiments.bound import synthetic_bound
from gortho.studies.experiments.figures import heat_maps
from gortho.studies.experiments.fits import Job
from gortho.studies.experiments.rows import Row
from gortho.studies.experiments.tables import markdown, method_table, provenance, write_csv, write_page

TASKS = {"synthetic": "Synthetic O(2,2)", "inertia": "Moment of inertia, O(3)"}
#: Standard deviations of the noise; the paper has the two in the middle.
NOISES = (0.1, 0.5, 1.0, 3.0)
#: What the paper prints, from one run each: MSE, cos, d_PA.
PRINTED = {
    ("synthetic", 0.0): {
        "G-Ortho-Nets": "1.80e-3, 0.99, 0.24",
        "LieGG": "7.53e-4, 0.93, 1.80",
        "Augerino": "2.63, 0.30, 1.99",
    },
    ("inertia", 0.0): {
        "G-Ortho-Nets": "1.88e-3, 0.99, 0.15",
        "LieGG": "2.61e-3, 0.99, 0.06",
        "Augerino": "7.86e-3, 0.57, 1.26",
    },
    ("synthetic", 0.5): {"G-Ortho-Nets": "0.2633, 0.9882, 0.2872", "LieGG": "10.98, 0.2468, 1.7108"},
    ("synthetic", 1.0): {"G-Ortho-Nets": "1.0161, 0.9778, 0.3504", "LieGG": "43.79, 0.2900, 1.7526"},
}


def jobs(first: int, seeds: int, quick: bool) -> list[Job]:
    """Both tasks with clean labels, all methods."""
    return on_tasks(list(fitted("regression")), first, seeds, quick)


def on_tasks(methods: Sequence[str], first: int, seeds: int, quick: bool) -> list[Job]:
    """These methods on both tasks with clean labels."""
    return [
        Job(task, method, seed=seed, **size(quick))
        for seed in range(first, first + seeds)
        for task in TASKS
        for method in methods
    ]


def size(quick: bool) -> dict[str, Any]:
    """Samples of each fit."""
    return {"samples": 1_000, "test_samples": 500, "quick": True} if quick else {"samples": 10_000}


def noise_jobs(first: int, seeds: int, quick: bool) -> list[Job]:
    """The synthetic task with noisy labels; quick: methods that are fitted at every noise, at one."""
    methods = fitted("noise")
    return [
        Job("synthetic", method, seed=seed, noise=noise, **size(quick))
        for seed in range(first, first + seeds)
        for noise in (PAPER_NOISES[1:] if quick else NOISES)
        for method, stand in methods.items()
        if stand.at is None or (noise in stand.at and not quick)
    ]


def _printed(task: str, noise: float) -> str:
    lines = [[name, figures] for name, figures in PRINTED[task, noise].items()]
    return "Printed in the paper (one run): MSE, cos, d_PA.\n\n" + markdown(["method", "figures"], lines)


HOW = """Every method gets the same {samples:,} samples and holds out its own validation data from them; test samples
are {tests:,} further ones. MSE is the mean over entries and test samples; relative MSE is in units of the targets'
variance, which differs between seeds because A does. The equivariance error is the largest of ‖f(gx) - ρ(g)f(x)‖,
relative to the output's scale, over random g of the *true* group (boosts to 1). d_PA is 0 for the right Lie algebra.
Values are mean ± standard deviation over seeds."""


def regression_page(rows: Sequence[Row], out: Path, command: str) -> None:
    """regression.md, .csv and the heat maps."""
    parts = [HOW.format(samples=rows[0]["samples"], tests=rows[0]["test_samples"])]
    columns = ("MSE", "relative MSE", "cos", "d_PA", "equivariance error", "seconds", "parameters")
    for task, title in TASKS.items():
        own = [row for row in rows if row["task"] == task]
        if own:
            parts += [f"## {title}", method_table(own, standing("regression"), columns), _printed(task, 0.0)]
    cases, first_seed = {}, min(row["seed"] for row in rows)
    for task, title in TASKS.items():
        first = [row for row in rows if row["task"] == task and row["seed"] == first_seed and row["form"]]
        chosen = ("gortho", "paper's form", "LieGG", "Augerino, box")
        cases[title] = [(m, row) for m in chosen for row in first if row["method"] == m]
    cases = {title: pairs for title, pairs in cases.items() if pairs}
    if cases:
        heat_maps(cases, out / "regression_forms.png")
        parts += [
            "## Learnt against true forms, first seed",
            "![heat maps of the forms](regression_forms.png)",
        ]
    write_csv(rows, out / "regression.csv")
    write_page(out / "regression.md", "Regression tasks", *parts, provenance(rows, command))


BOUND = """*Bound* is the Cramér-Rao bound on the mean d_PA: what the best unbiased estimate has on the same samples if
it is given that the law is c₁ x xᵀA + c₂ q(x) x xᵀA, and has to find A, c₁ and c₂. *Ratio* is d_PA in units of it, seed
by seed; single seeds may lie below one. Methods that find no form have none. LieGAN and Augerino's box, which do not
find this form without noise either (regression.md), were left out; the paper's form, Augerino and ours with the form
told have the paper's two noises, to save time."""


def with_bound(row: Row) -> Row:
    """A row with the bound on d_PA that belongs to its samples, and d_PA in units of it."""
    if not row["noise"] or row.get("d_PA") is None:
        return row
    bound = synthetic_bound(row["samples"], row["seed"], row["noise"], row["test_samples"])
    return row | {"bound": bound, "ratio": row["d_PA"] / bound}


def noise_page(rows: Sequence[Row], out: Path, command: str) -> None:
    """noise.md and .csv."""
    rows = [with_bound(row) for row in rows]
    parts = [HOW.format(samples=rows[0]["samples"], tests=rows[0]["test_samples"]), BOUND]
    columns = (
        "MSE", "noisy MSE", "relative MSE", "cos", "d_PA", "bound", "ratio", "equivariance error", "seconds"
    )  # fmt: skip
    for noise in NOISES:
        own = [row for row in rows if row["noise"] == noise]
        if own:
            parts += [f"## Label noise {noise:g}", method_table(own, standing("noise"), columns)]
            parts += [_printed("synthetic", noise)] if noise in PAPER_NOISES else []
    write_csv(rows, out / "noise.csv")
    write_page(out / "noise.md", "Label noise, synthetic O(2,2)", *parts, provenance(rows, command))
