"""How good a tagger is: accuracy, area under the ROC curve, and background rejection, with their errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

#: Signal efficiencies at which the rejection of background is given.
EFFICIENCIES = (0.3, 0.5)
#: Those at which curves are kept.
GRID = [round(float(e), 3) for e in np.linspace(0.05, 1.0, 39)]
#: A rejection is drawn where at least this many background jets pass: beyond, it is chance.
LEAST_PASSED = 5


def accuracy(label: Any, score: Any) -> tuple[float, float]:
    """Share of jets on the right side of zero (scores are logits), with its binomial error."""
    label, score = _checked(label, score)
    right = float(np.mean((score > 0) == label))
    return right, math.sqrt(right * (1 - right) / len(label))


def auc(label: Any, score: Any) -> tuple[float, float]:
    """Area under the ROC curve, ties counted half, with its error after Hanley and McNeil (1982).

    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])[0]
    0.75
    """
    label, score = _checked(label, score)
    signal, background = int(label.sum()), int((~label).sum())
    area = float(roc_auc_score(label, score))
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    square = area * (1 - area) + (signal - 1) * (one - area**2) + (background - 1) * (two - area**2)
    return area, math.sqrt(max(0.0, square) / (signal * background))


def rejection(label: Any, score: Any, efficiency: float) -> tuple[float, float]:
    """1/εB at the cut that keeps at least this share of signal, with the binomial error of εB carried over.

    Where no background passes, both are infinite.
    """
    if not 0 < efficiency <= 1:
        raise ValueError(f"efficiency {efficiency}: it must lie above 0 and not above 1")
    label, score = _checked(label, score)
    false, true, _ = roc_curve(label, score, drop_intermediate=False)
    share = float(false[np.argmax(true >= efficiency - 1e-12)])
    if share == 0:
        return math.inf, math.inf
    return 1 / share, math.sqrt((1 - share) / round(share * np.sum(~label))) / share


def summary(label: Any, score: Any) -> dict[str, float | None]:
    """All of these as plain numbers, ready for JSON (an infinite rejection is None)."""
    found = {"accuracy": accuracy(label, score), "auc": auc(label, score)}
    found |= {f"rejection_{e}": rejection(label, score, e) for e in EFFICIENCIES}
    numbers = {f"{name}{what}": v for name, pair in found.items() for what, v in zip(("", "_error"), pair)}
    return {name: v if math.isfinite(v) else None for name, v in numbers.items()}


def roc(label: Any, score: Any) -> list[float | None]:
    """1/εB at the efficiencies of `GRID`; None where too few background jets pass to say."""
    background = float(np.sum(~np.asarray(label, dtype=bool)))
    values = [rejection(label, score, e)[0] for e in GRID]
    return [v if v <= background / LEAST_PASSED else None for v in values]


def _checked(label: Any, score: Any) -> tuple[np.ndarray, np.ndarray]:
    """Labels as booleans and scores as float64, one each for every jet, of both classes."""
    label, score = np.asarray(label), np.asarray(score, dtype=np.float64)
    if label.ndim != 1 or label.shape != score.shape:
        raise ValueError(
            f"labels have shape {label.shape}, scores {score.shape}: give one of each for every jet"
        )
    if not np.isfinite(score).all():
        raise ValueError("some scores are not finite: the training went wrong, try a smaller lr")
    label = label.astype(bool)
    if label.all() or not label.any():
        raise ValueError("all jets are of one class: signal and background are both needed")
    return label, score
