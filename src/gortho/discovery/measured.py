"""The errors of a twin and of a free model on the same held-out samples, as shares of the variance (M13)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from gortho.discovery.models import paired_p

#: A few samples rule an error when they make up more than this share of it.
RULED_BY_FEW = 0.5


@dataclass(frozen=True)
class Measured:
    """Best twin and best free model on held-out samples, as shares of the variance."""

    unexplained: float  # by the best twin
    unexplained_error: float  # standard error of it
    free_unexplained: float
    gain: float  # of the free model over the twin: positive where the form is in its way
    gain_error: float
    p: float  # one-sided, of a paired test: small when the free model is better
    bundles: int = 0  # of how many bundles the samples are, if of any


def by_bundle(values: np.ndarray, bundles: Tensor | None) -> np.ndarray:
    """The mean of each bundle; the values themselves where there are none."""
    if bundles is None:
        return values
    _, bundle, counts = np.unique(bundles.numpy(), return_inverse=True, return_counts=True)
    return np.bincount(bundle, values) / counts


def measure(
    errors: np.ndarray,
    of_free: np.ndarray,
    deviations: np.ndarray,
    variance: float,
    bundles: Tensor | None = None,
) -> Measured:
    """Squared errors of twin and free model, sample by sample, as shares of a variance.

    ``deviations`` are those of the same samples from the mean: how much they vary is part of the error of a share.
    Samples of one bundle count as one.
    """
    errors, of_free, deviations = (by_bundle(v, bundles) for v in (errors, of_free, deviations))
    count, variance = len(errors), max(variance, 1e-300)
    share, gain = errors / variance, (errors - of_free) / variance
    scatter = deviations / variance
    return Measured(
        float(share.mean()),
        float((share - share.mean() * scatter).std() / count**0.5),
        float(of_free.mean() / variance),
        float(gain.mean()),
        float((gain - gain.mean() * scatter).std() / count**0.5),
        paired_p(of_free, errors),
        0 if bundles is None else count,
    )
