"""Figures of classes: which are taken for which, and whether probabilities are kept."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gortho.report.data import Array, ReportData
from gortho.report.svg import BLUE, INK, heat, plot
from gortho.report.words import percent

#: Classes of the table of confusions, the most frequent ones.
MAX_CLASSES = 8
#: Bins of equal number of the reliability.
BINS = 10


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
