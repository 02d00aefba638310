"""Generic regression models without geometry: rows of numbers in, rows of numbers out.

Given coordinates they are free of any form; given the invariants of a form they are its twins (M13). They also serve as
smooth surrogates for spectral starts (M6).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from gortho.samples.door import CONSTANT
from gortho.samples.values import Samples

#: Kernel matrices of more samples than this are not worth their cost.
MAX_KERNEL_SAMPLES = 1_000
_BANDWIDTHS = (0.4, 1.0, 3.0)
_MIDDLING, _RIDGES = 1e-3, (1e-8, 1e-5, 1e-1, 3.0)
#: Boosted trees, at most, and the targets that they are fitted to, each by itself.
TREES, TREE_TARGETS = 200, 4
#: Degree of polynomials, and their monomials, at most: the degree falls until they fit.
DEGREE, MONOMIALS = 3, 300
_POLYNOMIAL_RIDGES = (1e-10, 1e-7, 1e-5, 1e-3, 1e-2, 1e-1, 1.0)


@dataclass(frozen=True)
class Table:
    """Inputs ``(N, d)``, targets ``(N, m)`` and weights ``(N,)`` of samples, float64."""

    inputs: Tensor
    targets: Tensor
    weights: Tensor | None = None

    @classmethod
    def of(cls, inputs: Tensor, samples: Samples) -> Table:
        """The samples with these inputs in place of their vectors."""
        weights = None if samples.weights is None else samples.weights.double()
        return cls(inputs.double(), samples.y.double().reshape(len(samples), -1), weights)

    def error(self, prediction: Tensor) -> float:
        """Weighted mean squared error."""
        errors = (prediction - self.targets).square().mean(1)
        return float((errors if self.weights is None else errors * self.weights).mean())


#: Predictions ``(N, m)`` for inputs ``(N, d)``.
Predictor = Callable[[Tensor], Tensor]
#: Fits a table; what there is to choose is chosen on the second one.
Learner = Callable[[Table, Table, int], Predictor]


@dataclass(frozen=True)
class KernelRidge:
    """Gaussian kernel ridge regression: closed form, smooth, differentiable."""

    centres: Tensor
    weights: Tensor
    shift: Tensor
    scale: Tensor
    bandwidth: float
    mean: Tensor

    @classmethod
    def fit(cls, train: Table, validation: Table) -> KernelRidge:
        """Fit the targets; bandwidth and ridge by the error on ``validation``."""
        return Kernels.of(train, validation).fit(train, validation)

    def __call__(self, z: Tensor) -> Tensor:
        z = (z.double() - self.shift) / self.scale
        return _kernel(z, self.centres, self.bandwidth) @ self.weights + self.mean


@dataclass(frozen=True)
class Kernels:
    """Gaussian kernels of one set of inputs, factored once for all targets."""

    Z: Tensor
    V: Tensor
    noise: Tensor
    shift: Tensor
    scale: Tensor
    factors: dict[tuple[float, float], Tensor | None] = field(default_factory=dict)

    @classmethod
    def of(cls, train: Table, validation: Table) -> Kernels:
        """Kernels of the inputs of these tables, in units of their spread."""
        inputs = train.inputs[:MAX_KERNEL_SAMPLES]
        shift, scale = inputs.mean(0), inputs.std(0).clamp_min(1e-30)
        # A sample of little weight is one of much noise.
        weights = torch.ones(len(inputs)) if train.weights is None else train.weights[: len(inputs)]
        noise = torch.diag(1 / weights.double().clamp_min(1e-6))
        return cls((inputs - shift) / scale, (validation.inputs - shift) / scale, noise, shift, scale)

    def _factor(self, bandwidth: float, ridge: float) -> Tensor | None:
        """The Cholesky factor; None where there is too little ridge for this kernel."""
        key = bandwidth, ridge
        if key not in self.factors:
            L, failed = torch.linalg.cholesky_ex(_kernel(self.Z, self.Z, bandwidth) + ridge * self.noise)
            self.factors[key] = None if int(failed) else L
        return self.factors[key]

    def fit(self, train: Table, validation: Table) -> KernelRidge:
        """The best bandwidth at a middling ridge, then the best ridge."""
        targets = train.targets[: len(self.Z)]
        mean = targets.mean(0)
        fits: list[tuple[float, KernelRidge]] = []

        def attempt(bandwidth: float, ridge: float) -> None:
            L = self._factor(bandwidth, ridge)
            if L is not None:
                c = torch.cholesky_solve(targets - mean, L)
                error = validation.error(_kernel(self.V, self.Z, bandwidth) @ c + mean)
                fits.append((error, KernelRidge(self.Z, c, self.shift, self.scale, bandwidth, mean)))

        for factor in _BANDWIDTHS:
            attempt(factor * math.sqrt(self.Z.shape[1]), _MIDDLING)
        best = min(fits, key=lambda fit: fit[0])[1].bandwidth
        for ridge in _RIDGES:
            attempt(best, ridge)
        return min(fits, key=lambda fit: fit[0])[1]


def _kernel(a: Tensor, b: Tensor, bandwidth: float) -> Tensor:
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T
    return torch.exp(-squared.clamp_min(0) / (2 * bandwidth**2))


def boosted_trees(train: Table, validation: Table, seed: int = 0) -> Predictor:
    """Gradient-boosted trees: good where kernels are not, at kinks and corners."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    weights = None if train.weights is None else train.weights.numpy()
    models = []
    for target in train.targets.unbind(1):
        model = HistGradientBoostingRegressor(
            max_iter=TREES, learning_rate=0.08, early_stopping=True, random_state=seed
        )
        models.append(model.fit(train.inputs.numpy(), target.numpy(), sample_weight=weights))
    return lambda z: torch.as_tensor(np.stack([m.predict(z.numpy()) for m in models], 1))


def monomials_of(inputs: Tensor, most: int = MONOMIALS, highest: int = DEGREE) -> Callable[[Tensor], Tensor]:
    """All monomials of rows, in units of their spread, up to the degree at which there are no more than so many."""
    d = inputs.shape[1]
    degree = max((k for k in range(1, highest + 1) if math.comb(d + k, k) <= most), default=1)
    shift, scale = inputs.mean(0), inputs.std(0)
    # What does not vary says nothing.
    scale[scale < CONSTANT * inputs.abs().amax(0).clamp_min(1e-300)] = math.inf

    def monomials(z: Tensor) -> Tensor:
        z = (z.double() - shift) / scale
        columns = [torch.ones(len(z), dtype=z.dtype)]
        for k in range(1, degree + 1):
            columns += [z[:, list(of)].prod(1) for of in itertools.combinations_with_replacement(range(d), k)]
        return torch.stack(columns, 1)

    return monomials


def linear(train: Table, validation: Table) -> Predictor:
    """Ridge regression on columns as they are."""
    D = train.inputs
    root = torch.ones(len(D), 1, dtype=D.dtype) if train.weights is None else train.weights.sqrt()[:, None]
    size = (D * root).norm(dim=0).clamp_min(1e-300)
    U, s, Vt = torch.linalg.svd(D * root / size, full_matrices=False)
    b = U.mT @ (train.targets * root)
    V = validation.inputs / size
    fits = [Vt.mT @ ((s / (s.square() + ridge * s[0] ** 2))[:, None] * b) for ridge in _POLYNOMIAL_RIDGES]
    best = min(fits, key=lambda c: validation.error(V @ c))
    return lambda z: z.double() / size @ best


def polynomial(train: Table, validation: Table, seed: int = 0) -> Predictor:
    """Ridge regression on monomials: what bends little is seen best by it."""
    monomials = monomials_of(train.inputs)
    D, V = (replace(table, inputs=monomials(table.inputs)) for table in (train, validation))
    model = linear(D, V)
    return lambda z: model(monomials(z))
