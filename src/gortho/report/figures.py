"""The figures of the report: each function returns inline SVG, or nothing where there is nothing to draw."""

import textwrap
from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from gortho.immutable import ZERO_TOLERANCE
from gortho.report.data import Array, Peer, Profile, ReportData, RestartRow
from gortho.report.motions import in_like_units, like_units, motion
from gortho.report.svg import BLUE, GREY, INK, MARKERS, ORANGE, SERIES, decades, heat, plot, plots
from gortho.report.words import number, percent, shorten, with_interval

MAX_GENERATORS, MAX_POINTS = 10, 2000
#: Generators of this many variables have numbers in their cells, unless they are below this share of the largest.
MOST_WRITTEN, NEARLY_NOTHING = 5, 0.005
#: Characters of a line above a bar.
LINE = 50
#: Quantities that what is left over is drawn against.
MAX_PROFILES = 12
#: Nothing smaller is drawn of a share.
LEAST = 1e-16
#: Classes of the table of confusions, the most frequent ones, and bins of equal number of the reliability.
MAX_CLASSES, BINS = 8, 10
#: Eigenvalues whose sizes differ by more than this factor are drawn on a logarithmic scale around zero.
WIDE_SPAN = 50


def _drawable(x: Array | None, y: Array | None, positive: bool = False) -> tuple[Array, Array]:
    """Return the pairs of finite numbers, with positive y only where the axis is logarithmic."""
    if x is None or y is None:
        return np.empty(0), np.empty(0)
    x, y = np.asarray(x, float).ravel(), np.asarray(y, float).ravel()
    keep = np.isfinite(x) & np.isfinite(y) & ((y > 0) | (not positive))
    return x[keep], y[keep]


def _legend(figure: Figure) -> None:
    """Put the legend above the plot, in as many even columns as its labels leave room for."""
    labels = figure.axes[0].get_legend_handles_labels()[1]
    most = max(1, 54 // (max(map(len, labels), default=0) + 6))
    columns = -(-len(labels) // -(-len(labels) // most)) if labels else 1
    figure.legend(loc="outside upper left", ncols=columns, handlelength=1.4, columnspacing=1.2)


def _matrix(letter: str, matrix: Array, half: Array | None, tints: Array, names: Sequence[str]) -> str:
    """Draw a matrix as a heat map, each cell with its value and half of its interval."""

    def texts(i: int, j: int) -> Sequence[str]:
        if letter == "ω" and i == j:  # zero
            return ()
        return (number(matrix[i, j]),) if half is None else with_interval(matrix[i, j], float(half[i, j]))

    alt = f"Heat map of the {len(matrix)} by {len(matrix)} matrix {letter} over {', '.join(names)}"
    return heat(tints, texts, names, alt, cell=(78, 54))


def form(data: ReportData) -> str:
    """Draw A, tinted in like units; what may be zero is not tinted."""
    if data.matrix is None:
        return ""
    low, high, units = data.matrix_low, data.matrix_high, like_units(data.matrix)
    tints, half = data.matrix * np.outer(units, units), None
    if low is not None and high is not None:
        tints = np.where((low < 0) & (high > 0), 0.0, tints)
        half = np.where(np.isfinite(high), high, np.nan) / 2 - low / 2
    return _matrix("A", data.matrix, half, tints, data.names)


def skew(data: ReportData) -> str:
    """Draw ω."""
    return "" if data.skew is None else _matrix("ω", data.skew, data.skew_half, data.skew, data.names)


def _entry(matrix: Array, tints: Array, i: int, j: int) -> Sequence[str]:
    """Write one entry of a small matrix, if it is tinted."""
    return (number(matrix[i, j], 2),) if len(matrix) <= MOST_WRITTEN and tints[i, j] else ()


def generators(data: ReportData) -> list[tuple[str, str]]:
    """Draw the first generators as small heat maps, each with the motion it stands for."""
    if data.generators is None:
        return []
    pictures = []
    for index, matrix in enumerate(data.generators[:MAX_GENERATORS]):
        name, tints = motion(matrix, data.names), in_like_units(matrix, data.matrix)
        tints = np.where(np.abs(tints) > NEARLY_NOTHING * np.abs(tints).max(), tints, 0.0)
        alt = f"Heat map of generator {index + 1}: {name}"
        cell = (58, 40) if len(matrix) <= MOST_WRITTEN else (34, 30)
        pictures.append((name, heat(tints, partial(_entry, matrix, tints), data.names, alt, cell)))
    return pictures


def spectrum(data: ReportData) -> str:
    """Draw the eigenvalues of A with their intervals and the line of zero."""
    if data.eigenvalues is None or not np.isfinite(data.eigenvalues).any():
        return ""
    values = np.asarray(data.eigenvalues, float)
    low = values if data.eigenvalues_low is None else np.asarray(data.eigenvalues_low, float)
    high = values if data.eigenvalues_high is None else np.asarray(data.eigenvalues_high, float)
    low, high = (np.where(np.isfinite(end), end, values) for end in (low, high))
    sizes = np.abs(values[np.isfinite(values)])
    sizes = sizes[sizes > ZERO_TOLERANCE * sizes.max(initial=0)]
    kinds = (
        ("adds to q", (low > 0), BLUE, "^"),
        ("takes away from q", (high < 0), ORANGE, "v"),
        ("sign not settled", ~((low > 0) | (high < 0)), GREY, "o"),
    )

    def draw(figure: Figure, axes: Axes) -> None:
        if len(sizes) and sizes.max() > WIDE_SPAN * sizes.min():
            axes.set_yscale("symlog", linthresh=10.0 ** np.floor(np.log10(sizes.min())), linscale=0.6)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value, 1)))
            axes.yaxis.set_minor_formatter(NullFormatter())
        axes.axhline(0, color=INK, linewidth=1)
        for label, chosen, colour, marker in kinds:
            if chosen.any():
                at = np.flatnonzero(chosen) + 1
                axes.vlines(at, low[chosen], high[chosen], color=colour, linewidth=14, alpha=0.3)
                axes.plot(at, values[chosen], marker, color=colour, label=label)
        axes.set(xlabel="direction", ylabel="weight in q (eigenvalue)", xlim=(0.4, len(values) + 0.6))
        axes.set_xticks(range(1, len(values) + 1))
        axes.grid(visible=False, axis="x")
        _legend(figure)

    return plot("spectrum", f"Eigenvalues of A: {', '.join(map(number, values))}", draw)


def scatter(true: Array | None, predicted: Array | None) -> str:
    """Draw predicted against true values, with the diagonal."""
    x, y = _drawable(true, predicted)
    if not x.size:
        return ""
    step = -(-x.size // MAX_POINTS)

    def draw(figure: Figure, axes: Axes) -> None:
        ends = [min(x.min(), y.min()), max(x.max(), y.max())]
        axes.plot(ends, ends, color=INK, linewidth=1, linestyle="--")
        axes.plot(x[::step], y[::step], "o", color=BLUE, alpha=0.35, markersize=3, markeredgewidth=0)
        axes.set(xlabel="true value", ylabel="predicted value")
        axes.set_aspect("equal", adjustable="box")

    return plot("scatter", f"Predicted against true value for {x.size} held-out numbers", draw, height=4)


def errors(rows: list[Peer], classes: bool = False) -> str:
    """Draw the held-out error of each model as a bar on a logarithmic scale, the equivariant one first."""
    what = "log loss" if classes else "mean squared error"
    if not any(np.isfinite(row.mse) and row.mse > 0 for row in rows):
        return ""

    labels = [textwrap.wrap(f"{row.model}: {number(row.mse)}", LINE)[:3] for row in rows]
    ends = np.cumsum([len(lines) + 1.6 for lines in labels])  # lower ends of the bars, in lines

    def draw(figure: Figure, axes: Axes) -> None:
        decades(axes, "x", [row.mse / 4 for row in rows], [row.mse for row in rows])
        start, end = axes.get_xlim()
        for place, (row, lines, lower) in enumerate(zip(rows, labels, ends)):
            shown = float(np.clip(np.nan_to_num(row.mse, nan=start, posinf=end), start, end))
            axes.barh(lower - 0.5, shown - start, left=start, height=1, color=GREY if place else BLUE)
            axes.annotate("\n".join(lines), (start, lower - 1), (2, 3), textcoords="offset points")
        axes.set(xlabel=f"{what} (held out)", yticks=[], ylim=(ends[-1] + 0.4, 0))
        axes.spines["left"].set_visible(False)

    alt = "Held-out error: " + "; ".join(f"{row.model} {number(row.mse)}" for row in rows)
    return plot("errors", alt, draw, height=0.7 + 0.2 * float(ends[-1]))


def equivariance(boosts: Array | None, exact: Array | None, free: Array | None) -> str:
    """Draw how far predictions break the symmetry as transformations grow."""
    named = (("equivariant predictor", exact, BLUE, "o-"), ("unconstrained model", free, ORANGE, "s--"))
    lines = [(label, *_drawable(boosts, y, True), colour, style) for label, y, colour, style in named]
    lines = [line for line in lines if line[1].size]
    if not lines:
        return ""

    def draw(figure: Figure, axes: Axes) -> None:
        for label, x, y, colour, style in lines:
            axes.plot(x, y, style, color=colour, label=label)
        decades(axes, "y", *(line[2] for line in lines))
        axes.set(xlabel="size of the transformation", ylabel="relative mismatch")
        _legend(figure)

    largest = "; ".join(f"{line[0]} at most {number(line[2].max())}" for line in lines)
    return plot("equivariance", f"Mismatch under transformations: {largest}", draw)


def restarts(rows: list[RestartRow]) -> str:
    """Draw the error of each search against its distance from the best one, marked by signature."""
    rows = [r for r in rows if np.isfinite(r.distance) and 0 < r.validation_error < np.inf]
    if len(rows) < 2:
        return ""
    # a distance of zero is put at the left edge
    edge = min((r.distance for r in rows if r.distance > 0), default=1e-3) / 3
    groups: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        groups.setdefault(row.signature, []).append((max(row.distance, edge), row.validation_error))

    def draw(figure: Figure, axes: Axes) -> None:
        for index, (signature, points) in enumerate(groups.items()):
            colour, marker = SERIES[index % len(SERIES)], MARKERS[index % len(MARKERS)]
            label = shorten(signature, 24)
            axes.plot(*zip(*points), marker, color=colour, alpha=0.75, markersize=7, label=label)
        best = min(rows, key=lambda row: row.validation_error)
        axes.plot(max(best.distance, edge), best.validation_error, "o", mfc="none", mec=INK, markersize=13)
        decades(axes, "x", [max(row.distance, edge) for row in rows])
        decades(axes, "y", [row.validation_error for row in rows])
        axes.set(xlabel="distance from the best form", ylabel="validation error")
        _legend(figure)

    counts = "; ".join(f"{len(points)} ended at {signature}" for signature, points in groups.items())
    return plot("restarts", f"Independent searches: {counts}", draw)


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


def _labels(data: ReportData) -> tuple[Array, Array] | None:
    """Codes of the true classes ``(N,)`` and probabilities ``(N, classes)``, of rows that are finite."""
    if not data.classes or data.true is None or data.predicted is None:
        return None
    truth, p = (np.asarray(v, float).reshape(-1, len(data.classes)) for v in (data.true, data.predicted))
    keep = np.isfinite(truth).all(1) & np.isfinite(p).all(1)
    return (truth[keep].argmax(1), p[keep]) if keep.any() else None


def confusion(data: ReportData) -> str:
    """Draw which class was predicted, in columns, for samples of each class, in rows."""
    found = _labels(data)
    if found is None:
        return ""
    truth, p = found
    names, guess = list(map(str, data.classes)), p.argmax(1)
    shown = np.sort(np.argsort(-np.bincount(truth, minlength=len(names)), kind="stable")[:MAX_CLASSES])
    counts = np.array([[np.sum((truth == i) & (guess == j)) for j in shown] for i in shown], float)
    totals = np.array([max(1, np.sum(truth == i)) for i in shown])
    shares = counts / totals[:, None]

    def texts(i: int, j: int) -> Sequence[str]:
        return f"{counts[i, j]:,.0f}", percent(shares[i, j])

    right = percent(float((truth == guess).mean()))
    alt = f"Predicted classes of {len(truth)} held-out samples by their true class: {right} are right"
    return heat(shares, texts, [names[i] for i in shown], alt, cell=(96, 54), longest=11)


def reliability(data: ReportData) -> str:
    """Draw how often the class came true against the probability it was given."""
    found = _labels(data)
    if found is None:
        return ""
    truth, p = found
    binary = len(data.classes) == 2
    given, came = (p[:, 1], truth == 1) if binary else (p.max(1), truth == p.argmax(1))
    parts = [part for part in np.array_split(np.argsort(given, kind="stable"), BINS) if len(part)]
    x, y = (np.array([values[part].mean() for part in parts]) for values in (given, came))
    sizes = np.array([len(part) for part in parts])
    # At least one count either way: a bin in which all are right is not known exactly.
    half = np.maximum(np.sqrt(y * (1 - y) / sizes), 1 / sizes)

    def draw(figure: Figure, axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="--")
        axes.errorbar(x, y, 1.96 * half, fmt="o", color=BLUE, ecolor=BLUE, elinewidth=1.2, capsize=2)
        what = f"probability of {data.classes[1]}" if binary else "probability of the predicted class"
        axes.set(xlabel=what, ylabel="how often it was so", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        axes.set_aspect("equal", adjustable="box")

    off = float((np.abs(y - x) * sizes).sum() / sizes.sum())
    alt = f"How often a class came true against its probability; they differ by {percent(off)} in the mean"
    return plot("reliability", alt, draw, height=4)
