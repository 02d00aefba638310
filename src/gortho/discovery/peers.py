"""Unconstrained peers: what a model that knows of no form makes of the same data.

They serve three ends: the smooth surrogate for spectral starts (M6), the error to compare the equivariant predictor
with, and the test for structure in its residuals, which tells an approximate form from a true one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import ttest_rel
from torch import Tensor

from gortho.samples.values import Samples

#: Kernel matrices of more samples than this are not worth their cost.
MAX_KERNEL_SAMPLES = 1_000
_BANDWIDTHS = (0.4, 1.0, 3.0)
#: Boosted trees, at most.
TREES = 200
_RIDGES = (1e-8, 1e-5, 1e-3, 1e-1, 3.0)


def flat_inputs(samples: Samples) -> Tensor:
    """All coordinates and scalars of a sample in one row, float64 ``(N, d)``."""
    return torch.cat([t.double().flatten(1) for t in samples.inputs if t is not None], dim=1)


@dataclass
class KernelRidge:
    """Gaussian kernel ridge regression: closed form, smooth, differentiable."""

    centres: Tensor
    weights: Tensor
    shift: Tensor
    scale: Tensor
    bandwidth: float
    mean: Tensor
    shape: tuple[int, ...]
    validation: float

    @classmethod
    def fit(cls, train: Samples, validation: Samples) -> KernelRidge:
        """Fit the targets of ``train``; bandwidth and ridge by the error on ``validation``."""
        few = train.rows(slice(0, MAX_KERNEL_SAMPLES))
        Z, V = flat_inputs(few), flat_inputs(validation)
        Y = few.y.double().reshape(len(few), -1)
        W = validation.y.double().reshape(len(validation), -1)
        # A sample of little weight is one of much noise.
        noise = torch.ones(len(Z), dtype=Z.dtype) if few.weights is None else 1 / few.weights.clamp_min(1e-6)
        counts = 1.0 if validation.weights is None else validation.weights[:, None]
        shift, scale = Z.mean(0), Z.std(0).clamp_min(1e-30)
        Z, V = (Z - shift) / scale, (V - shift) / scale
        mean = Y.mean(0)
        typical = Z.shape[1] ** 0.5
        best: tuple[float, float, Tensor] | None = None
        for factor in _BANDWIDTHS:
            bandwidth = factor * typical
            K, to_validation = _kernel(Z, Z, bandwidth), _kernel(V, Z, bandwidth)
            for ridge in _RIDGES:
                L, failed = torch.linalg.cholesky_ex(K + ridge * torch.diag(noise))
                if int(failed):  # too little ridge for this kernel
                    continue
                weights = torch.cholesky_solve(Y - mean, L)
                error = float(((to_validation @ weights + mean - W).square() * counts).mean())
                if best is None or error < best[0]:
                    best = (error, bandwidth, weights)
        assert best is not None
        return cls(Z, best[2], shift, scale, best[1], mean, tuple(train.y.shape[1:]), best[0])

    def predict(self, samples: Samples) -> Tensor:
        """Values for samples, float64."""
        return self(flat_inputs(samples))

    def __call__(self, z: Tensor) -> Tensor:
        z = (z.double() - self.shift) / self.scale
        return (_kernel(z, self.centres, self.bandwidth) @ self.weights + self.mean).reshape(-1, *self.shape)

    @property
    def parameters(self) -> int:
        """Number of fitted weights."""
        return self.weights.numel()


def _kernel(a: Tensor, b: Tensor, bandwidth: float) -> Tensor:
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T
    return torch.exp(-squared.clamp_min(0) / (2 * bandwidth**2))


def boosted_trees(train: Samples, seed: int) -> Callable[[Samples], Tensor]:
    """Gradient-boosted trees for one scalar target: good where kernels are not, at kinks and corners."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        max_iter=TREES, learning_rate=0.08, early_stopping=True, random_state=seed
    )
    weights = None if train.weights is None else train.weights.double().numpy()
    model.fit(flat_inputs(train).numpy(), train.y.double().numpy(), sample_weight=weights)
    return lambda samples: torch.as_tensor(model.predict(flat_inputs(samples).numpy()))


def squared_errors(prediction: Tensor, samples: Samples) -> np.ndarray:
    """Mean squared error of each sample ``(N,)``, times its weight."""
    errors = (prediction.double() - samples.y.double()).reshape(len(samples), -1).square().mean(1)
    return (errors if samples.weights is None else errors * samples.weights).numpy()


def paired_p(better: np.ndarray, worse: np.ndarray) -> float:
    """One-sided p of a paired t-test that the first errors are smaller than the second, on the same samples."""
    if np.array_equal(better, worse):
        return 1.0
    # Squared errors have heavy tails: compare their square roots, which a few outliers cannot rule.
    return float(ttest_rel(np.sqrt(better), np.sqrt(worse), alternative="less").pvalue)
