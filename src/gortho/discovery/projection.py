"""Variable projection: for each form the best predictor is a linear solve, so only the form is searched (M12)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gortho.discovery.family import Family, Inputs, inputs_of
from gortho.discovery.spectral import symmetric_basis
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: Ridges to choose from by generalised cross-validation, relative to the largest singular value.
RIDGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12)
#: Damping of Gauss-Newton at the start, its factors after a step that failed and one that went well, and its least.
DAMPING, HARDER, EASIER, LEAST_DAMPING = 1e-2, 6.0, 1 / 8, 1e-9
#: Tries of one step with ever more damping.
TRIES = 5
#: Steps end when one gains less than this share of the criterion.
GAIN = 1e-3
#: A criterion below this, in units of the targets' variance, is rounding.
EXACT = 1e-24


@dataclass(frozen=True)
class Solve:
    """The best predictor of a family for one form."""

    A: Tensor
    units: Tensor
    coefficients: Tensor
    criterion: float  # generalised cross-validation: the mean squared error to expect on new samples
    freedom: float  # effective number of unknowns
    U: Tensor  # orthonormal columns of the design …
    filter: Tensor  # … and how much of each the ridge lets through
    residual: Tensor  # (N · components,)


class Projection:
    """Samples in their frame, a family, and weights: what a form is fitted to.

    Args:
        samples: in their frame, float64; targets of order one.
        columns: about so many unknowns of the family.
        weights: of samples, ``(N,)``; squared errors are multiplied by them.
        seed: seed of the family.
    """

    def __init__(self, samples: Samples, columns: int, weights: Tensor | None = None, seed: int = 0):
        self.family = Family(samples, columns, seed)
        self.inputs = inputs_of(samples)
        self.y = samples.y.reshape(len(samples), -1)
        weights = torch.ones(len(samples), dtype=self.y.dtype) if weights is None else weights
        self.root = (weights / weights.mean()).sqrt()
        self.directions = symmetric_basis(samples.n)

    def solve(self, A: Tensor) -> Solve:
        """The ridge of least expected error, and its predictor."""
        units = self.family.units(A, self.inputs.x)
        D = self.family.design(A, self.inputs, units) * self.root[:, None, None]
        D, y = D.flatten(0, 1), (self.y * self.root[:, None]).flatten()
        size = D.norm(dim=0)
        size = torch.where(size > 1e-12 * size.max(), size, math.inf)
        D = D / size
        if len(D) > 2 * D.shape[1]:
            Q, R = torch.linalg.qr(D)
            U, sigma, V = torch.linalg.svd(R, full_matrices=False)
            U = Q @ U
        else:
            U, sigma, V = torch.linalg.svd(D, full_matrices=False)
        b = U.mT @ y
        outside = float((y - U @ b).square().sum())
        best: tuple[float, Tensor] | None = None
        for ridge in RIDGES:
            h = sigma.square() / (sigma.square() + (ridge * sigma[0]).square())
            left = max(outside, 0.0) + float(((1 - h) * b).square().sum())
            rest = max(1.0, len(y) - float(h.sum()) - self.directions.shape[0])
            criterion = left * len(y) / rest**2
            if best is None or criterion < best[0]:
                best = criterion, h
        assert best is not None
        criterion, h = best
        coefficients = V.mT @ (h / sigma.clamp_min(1e-300) * b) / size
        return Solve(A, units, coefficients, criterion, float(h.sum()), U, h, y - U @ (h * b))

    def jacobian(self, at: Solve) -> tuple[Tensor, Tensor]:
        """The projected Jacobian ``(N · components, m)`` by directions ``(m, n, n)`` across A itself."""
        J = self.family.jacobian(at.A, self.inputs, at.units, at.coefficients) * self.root[:, None, None, None]
        flat = self.directions.flatten(1)
        a = flat @ at.A.flatten()
        # A basis of the forms orthogonal to A: its size is a matter of gauge (M2).
        _, _, V = torch.linalg.svd(a[None], full_matrices=True)
        across = V[1:] @ flat
        J = J.flatten(2).flatten(0, 1) @ across.mT
        J = J - at.U @ (at.filter[:, None] * (at.U.mT @ J))
        return J, across.unflatten(1, at.A.shape)

    def refine(self, A: Tensor, steps: int) -> Solve:
        """Gauss-Newton steps from a form, each accepted only if the criterion falls."""
        at = self.solve(unit_form(A))
        damping = DAMPING
        for _ in range(steps):
            if at.criterion < EXACT:
                break
            J, across = self.jacobian(at)
            H, g = J.mT @ J, J.mT @ at.residual
            scale = H.diagonal().clamp_min(1e-12 * float(H.diagonal().max()) + 1e-300)
            new = None
            for _ in range(TRIES):
                step = torch.linalg.solve(H + damping * torch.diag(scale), g)
                new = self.solve(unit_form(at.A + torch.einsum("m,mij->ij", step, across)))
                if new.criterion < at.criterion:
                    break
                damping *= HARDER
            else:
                break
            gain = 1 - new.criterion / at.criterion
            at, damping = new, max(damping * EASIER, LEAST_DAMPING)
            if gain < GAIN:
                break
        return at

    def predict(self, at: Solve, samples: Samples) -> Tensor:
        """Predictions ``(N, components)`` for samples in the same frame and units."""
        return self.family.design(at.A, inputs_of(samples), at.units) @ at.coefficients
