"""Pictures and the page of a level form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gortho.level.result import LevelForm

BADGES = {
    "FOUND": ("✓", "Quadric found"),
    "NONE": ("○", "No quadric"),
    "UNDERDETERMINED": ("?", "The points cannot tell"),
}
#: Bars of the histograms.
BINS = 40


def outline(found: LevelForm, i: int, j: int) -> np.ndarray | None:
    """The outline ``(200, 2)`` of an ellipsoid seen along all coordinates but i and j; None for other quadrics.

    The shadow of {xᵀMx = 1} on some coordinates is the ellipse of their block of M⁻¹.
    """
    if found.candidate is None or found.centre is None or tuple(found.candidate.signature)[1:] != (0, 0):
        return None
    A = found.candidate.matrix.numpy() / found.level
    unit = np.sqrt(A.diagonal())
    shadow = np.linalg.inv(A / unit[:, None] / unit)[np.ix_([i, j], [i, j])]
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return found.centre[[i, j]] + circle @ np.linalg.cholesky(shadow).T / unit[[i, j]]


def draw_points(
    found: LevelForm,
    axes: Any,
    i: int = 0,
    j: int = 1,
    colours: Sequence[str] = ("#0072b2", "#d55e00", "#111"),
) -> None:
    """The points in coordinates i and j, outliers crossed, with the outline of the quadric."""
    assert found.points is not None and found.shown_outliers is not None
    out = found.shown_outliers.astype(bool)
    x, y = found.points[:, [i, j]].T
    dots = {"alpha": 0.5, "markersize": 3, "markeredgewidth": 0}
    axes.plot(x[~out], y[~out], "o", color=colours[0], label="points", **dots)
    if out.any():
        axes.plot(x[out], y[out], "x", color=colours[1], markersize=5, label="outliers")
    line = outline(found, i, j)
    if line is not None:
        axes.plot(*line.T, color=colours[2], linewidth=1, label="quadric")
    axes.set(xlabel=found.names[i], ylabel=found.names[j])


def draw_lengths(found: LevelForm, axes: Any, colours: tuple[str, ...] = ("#6b7280", "#0072b2")) -> None:
    """Histograms of the lengths over their mean, before and after."""
    assert found.points is not None and found.shown_outliers is not None
    x = found.points[~found.shown_outliers.astype(bool)]
    before, after = np.linalg.norm(x / np.abs(x).max(), axis=1), found.lengths(x)
    both = [before / before.mean(), after / after.mean()]
    edges = np.linspace(0, max(2.0, float(np.quantile(np.concatenate(both), 0.99))), 2 * BINS + 1)
    for values, label, colour in zip(both, ("as given", "by the form, about the centre"), colours):
        axes.hist(np.clip(values, edges[0], edges[-1]), edges, color=colour, alpha=0.6, label=label)
    axes.set(xlabel="length / mean length", ylabel="points")


def figure(found: LevelForm) -> Any:
    """The points in pairs of coordinates and their lengths, as a matplotlib figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'gortho[report]'") from error
    if found.candidate is None:
        raise ValueError(f"there is nothing to draw: {found.reason}")
    pairs = [(0, 1), (0, 2), (1, 2)] if found.candidate.n > 2 else [(0, 1)]
    panels = len(pairs) + bool(found.level)
    picture = Figure(figsize=(3.2 * panels, 3.2), layout="constrained")
    axes = np.atleast_1d(picture.subplots(1, panels))
    for place, (i, j) in zip(axes, pairs):
        draw_points(found, place, i, j)
    if found.level:
        draw_lengths(found, axes[-1])
        axes[-1].legend(fontsize=8, frameon=False, loc="upper left")
    return picture


def page(found: LevelForm) -> str:
    """The report as one HTML page that loads nothing from anywhere else."""
    try:
        from markupsafe import Markup

        from gortho.report import figures
        from gortho.report.svg import BLUE, GREY, INK, ORANGE, plot
        from gortho.report.templates import template
    except ImportError as error:
        raise ImportError("the report needs jinja2 and matplotlib: pip install 'gortho[report]'") from error

    def lengths(picture: Any, axes: Any) -> None:
        draw_lengths(found, axes, (GREY, BLUE))
        picture.legend(loc="outside upper left", ncols=2)

    pictures: dict[str, str] = {}
    if found.candidate is not None:
        data = _report_data(found)
        pictures = {"form": figures.form(data), "spectrum": figures.spectrum(data)}
        alt = f"Points in {found.names[0]} and {found.names[1]}"
        pictures["points"] = plot(
            "points", alt, lambda _, axes: draw_points(found, axes, colours=(BLUE, ORANGE, INK)), height=4
        )
        if found.level:
            pictures["lengths"] = plot("lengths", "Lengths before and after", lengths)
    definite = found.form is not None and not found.form.signature.negative
    return template("level.html").render(
        found=found,
        badge=BADGES[found.verdict.name],
        numbers=found.numbers(),
        pictures={name: Markup(svg) for name, svg in pictures.items()},
        calibration=str(found.calibration) if definite else "",
        facts=_facts(found),
    )


def _report_data(found: LevelForm) -> Any:
    from gortho.report.data import ReportData

    assert found.candidate is not None
    low, high = found.intervals or (None, None)
    values_low, values_high = found.eigenvalue_intervals or (None, None)
    return ReportData(
        verdict=found.verdict.name,
        headline=found.headline(),
        names=list(found.names),
        matrix=found.candidate.matrix.numpy(),
        matrix_low=low,
        matrix_high=high,
        eigenvalues=found.candidate.eigenvalues.numpy(),
        eigenvalues_low=values_low,
        eigenvalues_high=values_high,
    )


def _facts(found: LevelForm) -> dict[str, str]:
    facts = {"dimension": f"{len(found.names)}", "seed": f"{found.seed}"}
    e = found.evidence
    if e is not None:
        facts |= {
            "points": f"{e.points}",
            "outliers": f"{e.outliers}",
            "distance from the quadric": f"{e.distance:.3g} of the points' spread, against {e.cloud:.3g} for a cloud",
            "next best quadric": f"{e.gap:.3g} times as far away",
            "neighbours' distances": f"correlation {e.structure:.2f}, p = {e.structure_p:.2g}",
        }
    return facts
