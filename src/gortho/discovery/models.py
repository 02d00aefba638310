"""What models without geometry see, coordinates or invariants, and how their errors are compared (M13)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import ttest_rel
from torch import Tensor

from gortho.objectives import ABSOLUTE
from gortho.samples.values import Samples

#: A few samples rule an error when they make up more than this share of it.
RULED_BY_FEW = 0.5


def coordinates(samples: Samples) -> Tensor:
    """All coordinates and scalars of a sample in one row ``(N, d)``."""
    return torch.cat([t.double().flatten(1) for t in samples.inputs if t is not None], dim=1)


@dataclass(frozen=True)
class Invariants:
    """Inner products of a form, in units of their medians and on a scale that decades do not rule.

    ``squares``: of all vectors, their sums and differences, and the sum of all, beside the mixed products.
    """

    A: Tensor
    units: Tensor
    squares: bool = False

    @classmethod
    def of(cls, A: Tensor, samples: Samples, squares: bool = False) -> Invariants:
        """The invariants of a form, with units from samples."""
        v = _products(A, samples, squares)
        units = v.abs().median(0).values
        return cls(A, torch.where(units > 0, units, v.abs().mean(0).clamp_min(1e-300)), squares)

    def __call__(self, samples: Samples) -> Tensor:
        """Invariants and scalars ``(N, d)``."""
        rest = [s.double().flatten(1) for s in samples.scalars if s is not None]
        return torch.cat([torch.asinh(_products(self.A, samples, self.squares) / self.units), *rest], dim=1)


def _products(A: Tensor, samples: Samples, squares: bool) -> Tensor:
    x, k = samples.x.double(), samples.points
    gram = x @ A @ x.mT
    i, j = torch.triu_indices(k, k)
    products = gram[:, i, j]
    if not squares or k == 1:
        return products
    own = gram.diagonal(dim1=1, dim2=2)
    i, j = torch.triu_indices(k, k, 1)
    both, mixed = own[:, i] + own[:, j], gram[:, i, j]
    return torch.cat([products, both - 2 * mixed, both + 2 * mixed, gram.sum((1, 2))[:, None]], 1)


def squared_errors(prediction: Tensor, samples: Samples) -> np.ndarray:
    """Mean squared error of each sample ``(N,)``, times its weight."""
    return ABSOLUTE.losses(prediction, samples)


def paired_p(better: np.ndarray, worse: np.ndarray, bundles: Tensor | None = None) -> float:
    """One-sided p of a paired t-test that the first errors are smaller than the second, on the same samples.

    Samples of one bundle count as one.
    """
    better, worse = by_bundle(better, bundles), by_bundle(worse, bundles)
    if np.array_equal(better, worse):
        return 1.0
    # Squared errors have heavy tails: compare their square roots, which a few outliers cannot rule.
    with warnings.catch_warnings():  # errors that differ by rounding alone
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(ttest_rel(np.sqrt(better), np.sqrt(worse), alternative="less").pvalue)


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
