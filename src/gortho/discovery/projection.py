"""Variable projection: for each form the best predictor is a linear solve, so only the form is searched for (M12)."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gortho.discovery.design import Design
from gortho.discovery.family import Family, Standard
from gortho.groups import symmetric_basis
from gortho.nn.tuples import SOFT
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: Ridges to choose from by generalised cross-validation, relative to the largest singular value.
RIDGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
#: More of them, for designs that are factored instead of squared: where almost nothing is left over.
FINE_RIDGES = (*RIDGES, 1e-8, 1e-10, 1e-12)
#: Below this criterion the squares of the design have too few digits.
FINE = 1e-9
#: Damping of Gauss-Newton at the start, its factors after a step that failed and one that went well, and its least.
DAMPING, HARDER, EASIER, LEAST_DAMPING = 1e-2, 6.0, 1 / 8, 1e-9
#: Tries of one step with ever more damping.
TRIES = 5
#: Steps end when one gains less than this share of the criterion.
GAIN = 1e-3
#: A random step from a form of size √n is not longer than this.
LARGEST_SHAKE = 1.0
#: A criterion below this, in units of the targets' variance, is rounding: the last step before it gains ten digits.
EXACT = 1e-30


@dataclass(frozen=True)
class Solve:
    """The best predictor of a family for one form."""

    A: Tensor
    units: Tensor
    coefficients: Tensor
    criterion: float  # generalised cross-validation: the mean squared error to expect on new samples
    residual: Tensor  # (N · components,)
    design: Design  # D, and V with the projection onto it, DVVᵀDᵀ
    V: Tensor

    def rest(self, columns: Tensor) -> Tensor:
        """What the family cannot follow of these columns ``(N · components, m)``."""
        return columns - self.design.times(self.V @ (self.V.mT @ self.design.transposed_times(columns)))


class Projection:
    """Samples in their frame, a family, and weights: what a form is fitted to.

    Args:
        samples: in their frame, float64; targets of order one.
        columns: about so many unknowns of the family.
        weights: of samples, ``(N,)``; squared errors are multiplied by them.
        seed: seed of the family.
        soft, degree: how smooth the family is, and whether it is one of polynomials.
        family: the family itself, where it is another one.
    """

    def __init__(
        self,
        samples: Samples,
        columns: int,
        weights: Tensor | None = None,
        seed: int = 0,
        soft: float = SOFT,
        degree: int | None = None,
        family: Family | None = None,
    ):
        # Polynomials may be the law itself, to rounding; of the other families nobody asks for so many digits.
        self.fine = degree is not None
        self.family = family or Family(samples, columns, seed, soft, degree)
        self.standard = Standard.of(samples)
        self.inputs = self.standard.inputs(samples)
        self.y = samples.y.reshape(len(samples), -1)
        weights = torch.ones(len(samples), dtype=self.y.dtype) if weights is None else weights
        self.root = (weights / weights.mean()).sqrt()
        self.directions = symmetric_basis(samples.n)
        self.unknowns = len(self.directions)  # beside those of the linear solve

    def solve(self, A: Tensor) -> Solve:
        """The ridge of least expected error, and its predictor."""
        units = self.family.units(A, self.inputs)
        D = self.family.design(A, self.inputs, units).weighted(self.root)
        y = (self.y * self.root[:, None]).flatten()
        squares = D.squares()
        size = squares.diagonal().sqrt()
        size = torch.where(size > 1e-12 * size.max(), size, math.inf)
        values, V = torch.linalg.eigh(squares / size / size[:, None])
        V = V / size[:, None]
        at = self._ridged(
            A, units, D, y, values.clamp_min(0.0), V, V.mT @ D.transposed_times(y[:, None])[:, 0]
        )
        if self.fine and at.criterion < FINE and len(y) > len(size):
            Q, R = torch.linalg.qr(D.dense() / size)
            U, sigma, Vt = torch.linalg.svd(R, full_matrices=False)
            b = sigma * (U.mT @ (Q.mT @ y))
            at = self._ridged(A, units, D, y, sigma.square(), Vt.mT / size[:, None], b, FINE_RIDGES)
        return at

    def _ridged(
        self,
        A: Tensor,
        units: Tensor,
        D: Design,
        y: Tensor,
        values: Tensor,
        V: Tensor,
        b: Tensor,
        ridges: tuple[float, ...] = RIDGES,
    ) -> Solve:
        """The solve by DV with orthogonal columns, of squared lengths ``values`` and inner products ``b`` with y."""
        lam = torch.tensor(ridges, dtype=y.dtype).square()[:, None] * values.max()
        damped = 1 / (values + lam)
        h = values * damped
        rest = (len(y) - h.sum(1) - self.unknowns).clamp_min(1.0)
        if ridges is RIDGES:
            left = (y.square().sum() - ((2 - h) * damped * b.square()).sum(1)).clamp_min(0.0)
        else:  # differences of squares have too few digits
            left = (y[:, None] - D.times(V @ (damped * b).mT)).square().sum(0)
        best = int((left / rest.square()).argmin())
        c = V @ (damped[best] * b)
        residual = y - D.times(c[:, None])[:, 0]
        criterion = float(residual.square().sum()) * len(y) / float(rest[best]) ** 2
        return Solve(A, units, c, criterion, residual, D, V * damped[best].sqrt())

    def jacobian(self, at: Solve, projected: bool = True) -> tuple[Tensor, Tensor]:
        """The projected Jacobian ``(N · components, m)`` by directions ``(m, n, n)`` across A itself."""
        J = (
            self.family.jacobian(at.A, self.inputs, at.units, at.coefficients)
            * self.root[:, None, None, None]
        )
        flat = self.directions.flatten(1)
        # A basis of the forms orthogonal to A: its size is a matter of gauge (M2).
        _, _, V = torch.linalg.svd((flat @ at.A.flatten())[None], full_matrices=True)
        across = V[1:] @ flat
        J = J.flatten(2).flatten(0, 1) @ across.mT
        return at.rest(J) if projected else J, across.unflatten(1, at.A.shape)

    def refine(self, A: Tensor, steps: int, damping: float = DAMPING) -> Solve:
        """Gauss-Newton steps from a form, each accepted only if the criterion falls."""
        at = self.solve(self.gauged(A))
        for _ in range(steps):
            if at.criterion < EXACT:
                break
            J, across = self.jacobian(at)
            H, g = J.mT @ J, J.mT @ at.residual
            if not float(H.diagonal().max()) > 0:  # the family is of no form, as that of multiples of a sum
                break
            scale = H.diagonal().clamp_min(1e-12 * float(H.diagonal().max()) + 1e-300)
            for _ in range(TRIES):
                step = torch.linalg.solve(H + damping * torch.diag(scale), g)
                new = self._moved(at, step, across)
                if new.criterion < at.criterion:
                    break
                damping *= HARDER
            else:
                break
            # Sharp features make slopes too steep and steps too short: go on while it pays.
            while 1 - new.criterion / at.criterion > 0.05:
                step = 2 * step
                far = self._moved(at, step, across)
                if far.criterion >= new.criterion:
                    break
                new = far
            gain = 1 - new.criterion / at.criterion
            at, damping = new, max(damping * EASIER, LEAST_DAMPING)
            if gain < GAIN:
                break
        return at

    def _moved(self, at: Solve, step: Tensor, across: Tensor) -> Solve:
        return self.solve(self.gauged(at.A + torch.tensordot(step, across, dims=1)))

    def gauged(self, A: Tensor) -> Tensor:
        """A of size √n: what does not matter is fixed (M2)."""
        return unit_form(A)

    def shaken(self, at: Solve, times: float, generator: torch.Generator) -> Tensor:
        """A form at random around this one, so many standard errors of Gauss-Newton away in every direction."""
        J, across = self.jacobian(at)
        if not len(across):  # a plane has but one skew form
            return at.A
        values, V = torch.linalg.eigh(J.mT @ J)
        values = values.clamp_min(1e-12 * float(values[-1]) + 1e-300)
        noise = torch.randn(len(values), dtype=J.dtype, generator=generator)
        step = V @ (noise * (times**2 * at.residual.square().mean() / values).sqrt())
        step = step * min(1.0, LARGEST_SHAKE / max(float(step.norm()), 1e-300))
        return self.gauged(at.A + torch.tensordot(step, across, dims=1))

    def squared_residuals(self, at: Solve) -> Tensor:
        """Mean squared residual of each sample, as weighted."""
        return at.residual.reshape(len(self.root), -1).square().mean(1)

    def reweighted(self, weights: Tensor) -> Projection:
        """The same with these weights beside its own."""
        other = copy.copy(self)
        weights = self.root.square() * weights
        other.root = (weights / weights.mean()).sqrt()
        return other

    def predict(self, at: Solve, samples: Samples) -> Tensor:
        """Predictions ``(N, components)`` for samples in the same frame and units."""
        D = self.family.design(at.A, self.standard.inputs(samples), at.units)
        return D.times(at.coefficients[:, None]).reshape(len(samples), -1)
