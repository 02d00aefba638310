"""A Gaussian process of the invariants, fitted together with the form by marginal likelihood.

The form is one more parameter of the kernel, so few samples tell it as exactly as the law is smooth: where a linear
family needs more samples than it has unknowns, the marginal likelihood weighs all functions at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from gortho.discovery.family import Standard
from gortho.nn.process import Chart, kernel
from gortho.reps import Scalar
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: Logarithms at the start: lengths, sizes of both parts and constant, and the noise; all for variables of order one.
LENGTH, SIZES, NOISE = 1.0, (0.0, -1.0, 0.0), -6.0
#: Spreads of their priors, and bounds of the noise.
LENGTH_SPREAD, SIZE_SPREAD, NOISE_BOUNDS = 1.5, 2.0, (-10.0, 1.0)
#: Prior variance of a constant, in units of the targets' variance: any constant will do.
CONSTANT = 100.0
#: Products of a vector with itself below this share of its squared size in the frame are zero but for rounding.
NULL = 1e-9
#: Coordinates that vary by less than this, in units of what they are made of, are constant but for rounding.
CONSTANT_BELOW = 1e-5
#: Weights times kernel, in units of the targets' deviation, at most: digits beyond it are lost in the sum.
LARGEST = 1e6
#: Logarithm of the noise that weights may take to be small, below this.
MOST_NOISE = 5.0
#: Rounds of a fit from several starts: steps, and how many go on; those of a fit that need not be the best.
ROUNDS, SHORT = ((40, 10), (120, 4), (400, 2)), ((25, 4), (100, 1))


def has_process(samples: Samples) -> bool:
    """Whether a process can predict the targets: numbers, from tuples in order."""
    return samples.rep == Scalar() and not samples.set_like and samples.mask is None


@dataclass(frozen=True)
class View:
    """Samples in one chart, standardised at a form that is near."""

    samples: Samples
    chart: Chart
    unit: Tensor
    shift: Tensor
    scale: Tensor
    standard: Standard  # of given scalars
    mean: float  # of the targets
    size: float

    @classmethod
    def of(cls, samples: Samples, A: Tensor, chart: Chart) -> View:
        """Units from these samples."""
        own = (samples.x @ A * samples.x).sum(2)
        unit, zero = own.abs().median(0).values, torch.zeros((), dtype=samples.x.dtype)
        whole = samples.x.square().sum(2).median(0).values.clamp_min(1e-300)
        unit = torch.where(unit > NULL * whole, unit, whole)
        mean, size = float(samples.y.mean()), max(float(samples.y.std()), 1e-300)
        raw = cls(samples, chart, unit, zero, zero + 1, Standard.of(samples), mean, size)
        z = raw.coordinates(A)
        deviation = z.std(0)
        return replace(raw, shift=z.mean(0), scale=torch.where(deviation > CONSTANT_BELOW, deviation, 1.0))

    @property
    def y(self) -> Tensor:
        """The targets, in standard units."""
        return (self.samples.y - self.mean) / self.size

    def coordinates(self, A: Tensor) -> Tensor:
        """The coordinates of the samples by a form, in standard units."""
        inputs = self.standard.inputs(self.samples)
        given = [s.flatten(1) for s in (inputs.point, inputs.sample) if s is not None]
        z = torch.cat([self.chart(inputs.x @ A @ inputs.x.mT, self.unit), *given], 1)
        return (z - self.shift) / self.scale

    def covariance(self, z: Tensor, logs: Tensor) -> Tensor:
        """Of the targets: kernel and noise; a sample of little weight is one of much noise."""
        w = self.samples.weights
        noise = (2 * logs[-1]).exp() * torch.ones_like(z[:, 0])
        K = CONSTANT + kernel(z, z, logs[:-1], self.chart.degree)
        return K + torch.diag(noise if w is None else noise / w.clamp_min(1e-6))


@dataclass(frozen=True)
class Process:
    """A fitted process: its form, ‖A‖ = √n, the logarithms of its kernel, and minus its log posterior."""

    view: View
    A: Tensor
    logs: Tensor
    loss: float
    moves: bool = True  # whether its form is fitted too

    @classmethod
    def start(cls, samples: Samples, A: Tensor, chart: Chart) -> Process:
        """Before any step."""
        A = unit_form(A)
        view = View.of(samples, A, chart)
        lengths = [LENGTH] * 2 * len(view.scale)
        return cls(view, A, torch.tensor([*lengths, *SIZES, NOISE], dtype=torch.float64), float("inf"))

    def on(self, samples: Samples) -> Process:
        """The same for other samples of the law, in the same units."""
        return replace(self, view=replace(self.view, samples=samples), loss=float("inf"))

    def weights(self) -> Tensor:
        """Of the samples in the mean, K⁻¹y."""
        return self._solved()[0]

    def left_out(self) -> Tensor:
        """Errors at each sample of the mean that is fitted to all others, in the units of the targets."""
        w, L = self._solved()
        left = w / torch.cholesky_inverse(L).diagonal() if bool(w.any()) else self.view.y
        return left * self.view.size

    def _solved(self) -> tuple[Tensor, Tensor]:
        """K⁻¹y and the factor of K, with as much noise as keeps rounding small in sums of large weights.

        Where even more noise than signal does not, no sample counts: the mean of the targets is left.
        """
        v, logs = self.view, self.logs.clone()
        z = v.coordinates(self.A)
        while float(logs[-1]) < MOST_NOISE:  # not so for NaN
            K = v.covariance(z, logs)
            L, failed = torch.linalg.cholesky_ex(K)
            if not int(failed):
                w = torch.cholesky_solve(v.y[:, None], L)[:, 0]
                if float(w.abs().sum() * (K.diagonal().max() - CONSTANT)) < LARGEST:
                    return w, L
            logs[-1] += 0.5
        return torch.zeros_like(v.y), torch.eye(len(v.y), dtype=v.y.dtype)

    @property
    def evidence(self) -> float:
        """Nats for each sample by which it is more likely than a constant with noise, less what its parameters cost.

        Errors of a share u of the variance would be worth log(1/u)/2.
        """
        n, samples = len(self.A), len(self.view.samples)
        parameters = n * (n + 1) // 2 - 1 + len(self.logs)
        return 0.5 - (self.loss + parameters * math.log(samples) / 2) / samples

    def refined(self, steps: int) -> Process:
        """Quasi-Newton steps of form and kernel together, or of the kernel alone."""
        n, v = len(self.A), self.view
        upper = torch.triu_indices(n, n)
        count, lengths = upper.shape[1], 2 * len(v.scale)

        def form(p: Tensor) -> Tensor:
            M = torch.zeros(n, n, dtype=p.dtype).index_put((upper[0], upper[1]), p[:count])
            return unit_form((M + M.mT) / 2)

        def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
            p = torch.tensor(values, requires_grad=True)
            logs = p[count:]
            L, failed = torch.linalg.cholesky_ex(v.covariance(v.coordinates(form(p)), logs))
            if int(failed):
                return 1e10, np.zeros_like(values)
            fit = torch.linalg.solve_triangular(L, v.y[:, None], upper=False).square().sum() / 2
            prior = ((logs[:lengths] - LENGTH) / LENGTH_SPREAD).square().sum() / 2
            prior = prior + (logs[lengths:-1] / SIZE_SPREAD).square().sum() / 2
            total = fit + L.diagonal().log().sum() + prior
            (slope,) = torch.autograd.grad(total, p)
            return float(total.detach()), slope.numpy()

        first = (2 * self.A - torch.diag(self.A.diagonal()))[upper[0], upper[1]]
        free = [(None, None) if self.moves else (a, a) for a in first.tolist()]
        bounds = free + [(-3, 6)] * lengths + [(-8, 6)] * 3 + [NOISE_BOUNDS]
        found = minimize(
            loss,
            torch.cat([first, self.logs]).numpy(),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": steps, "maxcor": 30},
        )
        p = torch.tensor(found.x)
        return replace(self, A=form(p) if self.moves else self.A, logs=p[count:], loss=float(found.fun))


def most_likely(
    samples: Samples, forms: Sequence[Tensor], rounds: Sequence[tuple[int, int]] = ROUNDS
) -> Process:
    """The most likely process from several forms: the better ones go on, in each chart by itself."""
    best = []
    for chart in Chart:
        going = [Process.start(samples, A, chart) for A in forms]
        for steps, most in rounds:
            going = sorted((p.refined(steps) for p in going), key=lambda p: p.loss)[:most]
        best.append(going[0])
    return min(best, key=lambda p: p.loss)
