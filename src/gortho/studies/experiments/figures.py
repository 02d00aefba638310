"""Figures of the tables: heat maps of forms, and errors against the number of samples."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from gortho.studies.experiments.fits import as_form
from gortho.studies.experiments.rows import Row

#: Colours that people with any colour vision can tell apart, and markers beside them.
STYLES = [("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#777777", "v")]


def pyplot() -> Any:
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise ImportError("figures need matplotlib: pip install 'gortho[report]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def heat_maps(cases: Mapping[str, Sequence[tuple[str, Row]]], path: Path) -> None:
    """True and learnt A side by side, a line a task: ``cases[task]`` has pairs (method, row) of one seed."""
    plt = pyplot()
    wide = 1 + max(len(pairs) for pairs in cases.values())
    figure, axes = plt.subplots(
        len(cases), wide, figsize=(2.2 * wide, 2.45 * len(cases)), layout="constrained", squeeze=False
    )
    for line, (task, pairs) in zip(axes, cases.items()):
        truth = as_form(pairs[0][1], "true form")
        shown = [("true A", truth.matrix.numpy(), "")]
        for method, row in pairs:
            A = as_form(row).matrix.numpy()
            A = A if (A * shown[0][1]).sum() >= 0 else -A  # the sign cannot be learnt
            shown.append((method, A, f"d_PA {row['d_PA']:.2g}"))
        limit = max(np.abs(A).max() for _, A, _ in shown)
        for axis, (name, A, note) in zip(line, shown):
            image = axis.imshow(A, cmap="RdBu_r", vmin=-limit, vmax=limit)
            axis.set_title(name, fontsize=9)
            axis.set_xlabel(note, fontsize=8)
            axis.set_xticks([])
            axis.set_yticks([])
            for (i, j), value in np.ndenumerate(A):
                colour = "white" if abs(value) > 0.6 * limit else "black"
                axis.text(
                    j, i, f"{round(value, 2) + 0.0:.2f}", ha="center", va="center", fontsize=6.5, color=colour
                )
        for axis in line[len(shown) :]:
            axis.axis("off")
        line[0].set_ylabel(task, fontsize=9)
        figure.colorbar(image, ax=list(line), shrink=0.75, pad=0.01)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def against_samples(axis: Any, lines: Mapping[str, Sequence[tuple[int, float]]]) -> None:
    """Each seed a dot, the mean over seeds a line, both logarithmic."""
    for (name, points), (colour, marker) in zip(lines.items(), cycle(STYLES)):
        if not points:
            continue
        sizes = sorted({n for n, _ in points})
        means = [statistics.mean(v for m, v in points if m == n) for n in sizes]
        axis.loglog(*zip(*points), marker, color=colour, alpha=0.35, ms=4)
        axis.loglog(sizes, means, color=colour, marker=marker, ms=5, label=name)
    axis.set_xlabel("training samples")
    axis.grid(alpha=0.25)
