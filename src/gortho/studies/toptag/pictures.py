"""Pictures of taggers: background rejection against signal efficiency, accuracy against training jets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from gortho.studies.experiments.figures import STYLES, against_samples, pyplot
from gortho.studies.experiments.rows import Row
from gortho.studies.toptag.metrics import GRID

DASHES = ("-", "--", ":")


def style(index: int) -> dict[str, Any]:
    """Colour and dashes of a curve, in an order that repeats no pair early."""
    colour, _ = STYLES[index % len(STYLES)]
    return {"color": colour, "ls": DASHES[index // len(STYLES) % len(DASHES)]}


def draw_roc(curves: Mapping[str, Sequence[Sequence[float | None]]], path: Path) -> None:
    """Curves by name, each with its seeds: the mean a line, the range over seeds a band."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(7.2, 4.8), layout="constrained")
    for i, (name, seeds) in enumerate(curves.items()):
        # Only where every seed can say: a mean over some of them would jump.
        shown = pd.DataFrame(seeds, columns=GRID, dtype=float).dropna(axis=1)
        if shown.empty:
            continue
        axis.semilogy(shown.columns, shown.mean(), lw=1.6, label=name, **style(i))
        if len(seeds) > 1:
            band = {"color": style(i)["color"], "alpha": 0.15, "lw": 0}
            axis.fill_between(shown.columns, shown.min(), shown.max(), **band)
    axis.plot(GRID, [1 / e for e in GRID], color="0.6", lw=1, ls=(0, (1, 3)))
    axis.annotate("chance", (0.4, 1.75), color="0.4", fontsize=8)
    axis.set(xlabel="signal efficiency εS (tops kept)", ylabel="background rejection 1/εB", xlim=(0, 1))
    axis.grid(alpha=0.25, which="both", lw=0.5)
    if len(curves) > 1:
        figure.legend(loc="outside right upper", fontsize=8, frameon=False)
        figure.set_size_inches(9.6, 4.8)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def draw_fractions(rows: Sequence[Row], methods: Sequence[str], path: Path) -> None:
    """Accuracy and AUC of methods against training jets."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
    for axis, (column, what) in zip(axes, {"accuracy": "accuracy", "auc": "AUC"}.items()):
        lines = {m: [(r["training jets"], r[column]) for r in rows if r["method"] == m] for m in methods}
        against_samples(axis, lines)
        axis.set(xlabel="training jets", ylabel=f"{what} on test jets", yscale="linear")
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=140)
    plt.close(figure)
