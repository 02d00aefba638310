"""What the predictor of a saved run keeps of its promises on new data: its equivariance, and its accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.stats import entropy
from sklearn.metrics import log_loss

from gortho.discovery import Discovery
from gortho.discovery.outliers import MOST
from gortho.discovery.spreads import BOOSTS
from gortho.reps import as_rep
from gortho.runs import ERRORS, stored_columns
from gortho.samples import DataError, Dataset
from gortho.samples.door import as_targets
from gortho.samples.sampling import choose
from gortho.samples.values import part_sizes
from gortho.surveyed import scalars_of

#: A certificate holds up to this relative equivariance error, in float64.
CERTIFIED = 1e-8
#: Rows on which the equivariance is measured.
CERTIFICATE_ROWS = 500
#: The error on new data may be this many times the stored one, and this share of the variance more.
WORSE, MORE = 2.0, 1e-6
#: The log loss this share of that of the class frequencies more: a few labels near a sharp bound cost as much.
MORE_LOSS = 0.05
#: Wrong labels that may be missing among the held-out ones by chance (once in twenty times), each at the largest loss.
UNSEEN = 3.0


@dataclass
class Certificate:
    """What a predictor keeps of its promises on given data."""

    samples: int
    equivariance: dict[float, float]  # by largest boost; only 0 where the group has rotations alone
    mse: float | None = None
    relative_mse: float | None = None
    stored_relative_mse: float | None = None
    accuracy: float | None = None  # of classes
    log_loss: float | None = None
    relative_log_loss: float | None = None  # a share of that of the class frequencies
    stored_relative_log_loss: float | None = None
    compared: bool = True  # with the stored error
    failures: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    def __str__(self) -> str:
        lines = [
            f"equivariance error, {f'boosts to {boost:g}' if boost else 'rotations'}: {error:.1e}"
            for boost, error in self.equivariance.items()
        ]
        here, stored = self.relative_mse, self.stored_relative_mse
        if self.relative_log_loss is not None:
            here, stored = self.relative_log_loss, self.stored_relative_log_loss
            lines.append("log loss of the predictions, as a share of that of the class frequencies:")
            told = f"{here:.2e} (log loss {self.log_loss:.3g}, {self.accuracy:.1%} of the labels right)"
        elif here is not None:
            lines.append("error of the predictions, as a share of the variance:")
            told = f"{here:.2e} (MSE {self.mse:.2e})"
        if here is not None:
            lines.append(f"  at discovery, held out: {'not stored' if stored is None else f'{stored:.2e}'}")
            lines.append(f"  here: {told}")
        if not self.holds:
            lines.append("The check FAILS:")
        elif here is None:
            lines.append("Equivariance holds; accuracy was not checked: the file has no targets.")
        elif stored is None:
            lines.append("Equivariance holds; accuracy was not checked: the run stores no error.")
        elif not self.compared:
            lines.append(
                "Equivariance holds; accuracy was not compared: the run was made with weights or errors of y, which "
                "the file does not have."
            )
        else:
            lines.append("The check passes: equivariance and accuracy.")
        return "\n".join(lines + [f"  {failure}" for failure in self.failures])


def certify(found: Discovery, data: Dataset) -> Certificate:
    """Measure the equivariance of the predictor on these inputs and, with targets, its error beside the stored one."""
    assert found.network is not None and found.candidate is not None
    rows = choose(len(data.X), CERTIFICATE_ROWS, 0)
    few = data.X[rows], scalars_of(data, rows)
    positive, negative, zero = found.candidate.signature
    boosts = BOOSTS if (positive and negative) or zero else (0.0,)
    result = Certificate(
        samples=len(data.X),
        equivariance={boost: found.equivariance_error(*few, max_boost=boost) for boost in boosts},
    )
    worst = max(result.equivariance.values())
    if not worst <= CERTIFIED:
        result.failures.append(f"the equivariance error {worst:.1e} is above {CERTIFIED:.0e}")
    if data.y is None:
        return result
    result.compared = data.weights is not None or not any(stored_columns(found, part) for part in ERRORS)
    if found.classes:
        _certify_labels(found, data, result)
        return result
    y = as_targets(data.y, found.output, len(found.names))[0]
    mean = partial(np.average, axis=0, weights=data.weights)  # slopes have errors
    predicted = found.predict(data.X, scalars_of(data))
    result.mse = float(mean(np.square(predicted - y)).mean())
    unit = part_sizes(torch.tensor(y), as_rep(found.output), len(found.names)).numpy()  # as at discovery
    y, predicted = y / unit, predicted / unit
    squares = np.square(predicted - y)
    left, variance = float(mean(squares).mean()), float(mean(np.square(y - mean(y))).mean())
    result.relative_mse = left / variance if variance > 0 else math.inf if left > 0 else 0.0
    if found.peers:
        stored = result.stored_relative_mse = found.peers[0].relative_mse
        limit = WORSE * stored + MORE
        if result.compared and not result.relative_mse <= limit:
            result.failures.append(
                f"the error, {result.relative_mse:.2e} of the variance, is more than {WORSE:g} times that at "
                f"discovery, {stored:.2e}: {_why(squares, y, data, limit)}"
            )
    return result


def _why(squares: np.ndarray, y: np.ndarray, data: Dataset, limit: float) -> str:
    """What an error above a limit, as a share of the variance, may come from: a few samples, or all of them."""
    rows = len(y)
    weights = np.ones(rows) if data.weights is None else data.weights
    errors = squares.reshape(rows, -1).mean(1) * weights
    order = np.argsort(errors)
    most = order[
        : rows - int(MOST * rows)
    ]  # the variance without those that may be outliers, as at discovery
    variance = np.average(np.square(y[most] - np.average(y[most], 0, weights[most])), 0, weights[most]).mean()
    good = np.cumsum(errors[order]) <= limit * variance * np.cumsum(weights[order])
    few = rows - int(good.nonzero()[0].max(initial=-1)) - 1
    if not 0 < few <= MOST * rows:
        return "this data follows another law, has other units or more noise"
    where = "" if data.place is None else f" (the worst in {data.place(int(order[-1]))})"
    return (
        f"without {few} of {rows} samples{where} it is not. They may be outliers, which discovery leaves out: look at "
        "them"
    )


def _certify_labels(found: Discovery, data: Dataset, result: Certificate) -> None:
    """The log loss on these labels, beside the stored one."""
    codes = _codes(found, data.y)
    p = found.predict_proba(data.X, scalars_of(data))
    chance = float(entropy(np.bincount(codes, data.weights)))
    result.accuracy = float(np.average(p.argmax(1) == codes, weights=data.weights))
    result.log_loss = float(log_loss(codes, p, labels=range(p.shape[1]), sample_weight=data.weights))
    result.relative_log_loss = result.log_loss / chance if chance > 0 else math.inf
    if found.peers:
        stored = result.stored_relative_log_loss = found.peers[0].relative_mse
        held_out = max(
            1, found.provenance.samples // 5 if found.evidence is None else found.evidence.held_out
        )
        unseen = -UNSEEN * math.log(found.least_probability) / held_out / chance if chance > 0 else 0.0
        limit = WORSE * stored + max(MORE_LOSS, unseen)
        if result.compared and not result.relative_log_loss <= limit:
            result.failures.append(
                f"the log loss, {result.relative_log_loss:.2g} of that of the class frequencies, is above {limit:.2g}, "
                f"the most that {held_out} held-out labels at discovery with {stored:.2g} allow: these labels follow "
                "another law"
            )


def _codes(found: Discovery, labels: Any) -> np.ndarray:
    """The places of labels among the classes of a run, whether they were read as text or as numbers."""
    numbers = not any(isinstance(c, str) for c in found.classes)
    places = {float(c) if numbers else str(c): k for k, c in enumerate(found.classes)}
    try:
        return np.array([places[float(label) if numbers else str(label)] for label in labels])
    except (KeyError, ValueError):
        unknown = next(c for c in labels if str(c) not in map(str, found.classes))
        raise DataError(
            f"{str(unknown)!r} is not a class of the run, which has {', '.join(map(str, found.classes))}"
        ) from None
