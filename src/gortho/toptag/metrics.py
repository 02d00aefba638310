"""How good a tagger is: accuracy, area under the ROC curve, and background rejection, with their errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

#: Signal efficiencies at which the rejection of background is given.
EFFICIENCIES = (0.3, 0.5)


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
    signal = np.sort(score[label])[::-1]
    kept = max(1, math.ceil(efficiency * len(signal) - 1e-9))
    background = score[~label]
    passed = int(np.sum(background >= signal[kept - 1]))
    if passed == 0:
        return math.inf, math.inf
    share = passed / len(background)
    return 1 / share, math.sqrt((1 - share) / passed) / share


def summary(label: Any, score: Any) -> dict[str, float | None]:
    """All of these as plain numbers, ready for JSON (an infinite rejection is None)."""
    found: dict[str, tuple[float, float]] = {"accuracy": accuracy(label, score), "auc": auc(label, score)}
    for efficiency in EFFICIENCIES:
        found[f"rejection_{efficiency}"] = rejection(label, score, efficiency)
    numbers: dict[str, float | None] = {}
    for name, (value, error) in found.items():
        numbers[name] = value if math.isfinite(value) else None
        numbers[f"{name}_error"] = error if math.isfinite(error) else None
    return numbers


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
