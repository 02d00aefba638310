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

from gortho.discovery.replicas import Data

#: Kernel matrices of more samples than this are not worth their cost.
MAX_KERNEL_SAMPLES = 2_000
_BANDWIDTHS = (0.4, 1.0, 3.0)
_RIDGES = (1e-8, 1e-5, 1e-3, 1e-1, 3.0)


def flat_inputs(data: Data) -> Tensor:
    """All coordinates and scalars of a sample in one row, float64 ``(N, d)``."""
    x, _, *scalars = data
    return torch.cat([t.double().flatten(1) for t in (x, *scalars) if t is not None], dim=1)


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
    def fit(cls, train: Data, validation: Data, target: Tensor, held_out: Tensor) -> KernelRidge:
        """Fit ``target`` on the inputs of ``train``; bandwidth and ridge by the error on ``validation``."""
        Z, V = flat_inputs(train)[:MAX_KERNEL_SAMPLES], flat_inputs(validation)
        Y = target.double().reshape(len(target), -1)[:MAX_KERNEL_SAMPLES]
        W = held_out.double().reshape(len(held_out), -1)
        shift, scale = Z.mean(0), Z.std(0).clamp_min(1e-30)
        Z, V = (Z - shift) / scale, (V - shift) / scale
        mean = Y.mean(0)
        typical = Z.shape[1] ** 0.5
        best: tuple[float, float, Tensor] | None = None
        for factor in _BANDWIDTHS:
            bandwidth = factor * typical
            K, to_validation = _kernel(Z, Z, bandwidth), _kernel(V, Z, bandwidth)
            for ridge in _RIDGES:
                L, failed = torch.linalg.cholesky_ex(K + ridge * torch.eye(len(K), dtype=K.dtype))
                if int(failed):  # too little ridge for this kernel
                    continue
                weights = torch.cholesky_solve(Y - mean, L)
                error = float((to_validation @ weights + mean - W).square().mean())
                if best is None or error < best[0]:
                    best = (error, bandwidth, weights)
        assert best is not None
        return cls(Z, best[2], shift, scale, best[1], mean, tuple(target.shape[1:]), best[0])

    def predict(self, data: Data) -> Tensor:
        """Values for a data set, float64."""
        return self(flat_inputs(data))

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


def boosted_trees(train: Data, target: Tensor, seed: int) -> Callable[[Data], Tensor]:
    """Gradient-boosted trees for one scalar target: good where kernels are not, at kinks and corners."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        max_iter=300, learning_rate=0.08, early_stopping=True, random_state=seed
    )
    model.fit(flat_inputs(train).numpy(), target.double().numpy())
    return lambda data: torch.as_tensor(model.predict(flat_inputs(data).numpy()))


def squared_errors(prediction: Tensor, target: Tensor) -> np.ndarray:
    """Mean squared error of each sample ``(N,)``."""
    return (prediction.double() - target.double()).reshape(len(target), -1).square().mean(1).numpy()


def paired_p(better: np.ndarray, worse: np.ndarray) -> float:
    """One-sided p of a paired t-test that the first errors are smaller than the second, on the same samples."""
    if np.array_equal(better, worse):
        return 1.0
    # Squared errors have heavy tails: compare their square roots, which a few outliers cannot rule.
    return float(ttest_rel(np.sqrt(better), np.sqrt(worse), alternative="less").pvalue)
