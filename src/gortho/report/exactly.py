"""Figures of how exactly a form is kept: the interval of the defect, and what is left over against what."""

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gortho.report.data import Profile, ReportData
from gortho.report.svg import BLUE, GREY, INK, ORANGE, decades, plot, plots
from gortho.report.words import number, shorten

#: Quantities that what is left over is drawn against.
MAX_PROFILES = 12
#: Nothing smaller is drawn of a share.
LEAST = 1e-16


def defect(data: ReportData) -> str:
    """Draw the interval of the share that the form cannot express, on a logarithmic scale, with the tolerance."""
    if data.defect is None or data.defect_open or not np.isfinite(data.defect).all():
        return ""
    low, high = data.defect
    high = max(high, LEAST)
    broken = low > 0
    left = max(low, LEAST) if broken else high / 30

    def draw(figure: Figure, axes: Axes) -> None:
        decades(axes, "x", [left / 2, min(1.0, 2 * high)], [data.tolerance or high])
        start, end = axes.get_xlim()
        axes.set_xlim(start, min(end, 1.0))
        colour = ORANGE if data.tolerance and low > data.tolerance else BLUE
        axes.plot([left if broken else start, high], [0, 0], color=colour, linewidth=9, solid_capstyle="butt")
        ends = "|" if broken else "<"
        axes.plot(left if broken else start, 0, ends, color=INK, markersize=10, clip_on=False)
        axes.plot(high, 0, "|", color=INK, markersize=14)
        if data.tolerance:
            axes.axvline(data.tolerance, color=GREY, linestyle="--", linewidth=1.2)
            axes.annotate(
                "tolerance", (data.tolerance, 0.9), (4, 0), textcoords="offset points", color=GREY, va="top"
            )
        axes.set(xlabel=f"share of the {data.measure} that the form cannot express", yticks=[], ylim=(-1, 1))
        axes.spines["left"].set_visible(False)

    interval = f"{number(low)} to {number(high)}" if broken else f"less than {number(high)}"
    return plot("defect", f"Interval of the share that the form cannot express: {interval}", draw, height=1.5)


def profiles(rows: list[Profile]) -> str:
    """Draw what is left over, in means with two standard errors, against each quantity."""
    rows = [row for row in rows if len(row.at)][:MAX_PROFILES]
    if not rows:
        return ""

    def draw(row: Profile, axes: Axes) -> None:
        axes.axhline(0, color=INK, linewidth=0.8)
        told = row.share > 0.1
        axes.errorbar(
            row.at,
            row.means,
            2 * np.asarray(row.errors),
            fmt="o",
            markersize=3.5,
            color=ORANGE if told else GREY,
            elinewidth=1,
        )
        axes.set_title(f"{shorten(row.name, 20)}: {100 * row.share:.0f} %", fontsize=10)
        axes.locator_params(nbins=4)

    alt = "What is left over against: " + "; ".join(f"{r.name} ({100 * r.share:.0f} %)" for r in rows)
    return plots("profiles", alt, [partial(draw, row) for row in rows])
