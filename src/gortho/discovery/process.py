"""A Gaussian process of the invariants, fitted together with the form by marginal likelihood.

The form is one more parameter of the kernel, so if the law is smooth, few samples determine the form precisely: a
linear family needs more samples than unknowns, but the marginal likelihood weighs all functions at once. In the frame
inputs have the same spread in all directions, and so, a priori, has the form: its eigenvalues are probably of similar
size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from gortho.discovery.family import Standard
from gortho.discovery.spectral import entries_of, of_entries
from gortho.discovery.starts import CONSTANT, likely_forms
from gortho.forms import QuadraticForm
from gortho.nn.process import Chart, kernel
from gortho.reps import Scalar
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: Logarithms at the start: lengths, sizes of both parts and constant, and the noise; all for variables of order one.
LENGTH, SIZES, NOISE = 1.0, (0.0, -1.0, 0.0), -6.0
#: Spreads of their priors, and bounds of the noise.
LENGTH_SPREAD, SIZE_SPREAD, NOISE_BOUNDS = 1.5, 2.0, (-10.0, 1.0)
#: Products of a vector with itself below this share of its squared size in the frame are zero but for rounding.
NULL = 1e-9
#: Coordinates that vary by less than this, in units of what they are made of, are constant but for rounding.
CONSTANT_BELOW = 1e-5
#: Weights times kernel, in units of the targets' deviation, at most: digits beyond it are lost in the sum.
LARGEST = 1e6
#: Logarithm of the noise that weights may take to be small, below this.
MOST_NOISE = 5.0
#: Logarithms of a form's eigenvalues in the frame are spread by this, in Student's t of this many degrees of freedom.
FORM_SPREAD, FREEDOM = 0.25, 3.0
#: Curvature of the posterior, at least, and the step of the differences by which it is found.
FLAT, STEP = 0.1, 1e-4
#: Rounds of a fit from several starts: steps, and how many go on; those of a fit that need not be the best.
ROUNDS, SHORT = ((25, 10), (60, 4), (150, 2)), ((25, 4), (60, 1))
#: Up to this many samples are a handful; forms of each signature that are tried with it, and with more.
HANDFUL, KEPT, FEWER = 60, 8, 3
#: Fits that leave this many nats more than the best are given up; those that start again with other kernels, and steps.
HOPELESS, RESTARTED, KERNEL_STEPS = 60.0, 2, 120
#: Finalists, and their steps; rounds in which the best starts again with other kernels, at most.
FINALISTS, LAST_STEPS, POLISHED = 4, 400, 2
#: Steps of the kernel around the form that was found.
SETTLING_STEPS = 120
#: Logarithms of the lengths and of the noise that fits start from: a law may be smooth, or what looks like noise.
KERNELS = ((LENGTH, NOISE), (0.0, NOISE), (2.0, NOISE), (LENGTH, -3.0))


def has_process(samples: Samples) -> bool:
    """Whether a process can predict the targets: numbers, from tuples in order."""
    return samples.rep == Scalar() and not samples.set_like and samples.mask is None


def form_prior(A: Tensor) -> Tensor:
    """Minus the logarithm of the prior of forms ``(..., n, n)`` of size √n in the frame."""
    sizes = torch.linalg.eigvalsh(A).abs().clamp_min(1e-9).log() / FORM_SPREAD
    return (FREEDOM + 1) / 2 * (sizes.square() / FREEDOM).log1p().sum(-1)


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
        """Nats for each sample by which it is more likely than a constant with noise, by Laplace's approximation.

        Errors of a share u of the variance would be worth log(1/u)/2.
        """
        samples = len(self.view.samples)
        constant = (samples - 1 + math.log(1 + CONSTANT * samples)) / 2
        # What the priors allow, and the samples do not: the loss has no such normalisation.
        priors = (len(self.logs) - 4) * math.log(LENGTH_SPREAD) + 3 * math.log(SIZE_SPREAD)
        return (constant - self.laplace() - priors) / samples

    def laplace(self) -> float:
        """Minus the logarithm of the evidence: a fit that only just works at one place is worth less than its loss."""
        at = self._values()
        step = STEP * torch.eye(len(at), dtype=at.dtype)
        slopes = [(self._slope(at + d) - self._slope(at - d)) / (2 * STEP) for d in step[self._free :]]
        H = torch.stack(slopes)[:, self._free :]
        if not bool(torch.isfinite(H).all()):
            return math.inf
        return self.loss + float(torch.linalg.eigvalsh((H + H.mT) / 2).clamp_min(FLAT).log().sum()) / 2

    def with_kernel(self, length: float, noise: float) -> Process:
        """The same form with a kernel of these logarithms, before any step."""
        logs = torch.cat([torch.full_like(self.logs[:-4], length), self.logs.new_tensor([*SIZES, noise])])
        return replace(self, logs=logs, loss=math.inf)

    def settled(self) -> Process:
        """The same form with the most likely kernel from several starts, if one is more likely than that at hand."""
        still = replace(self, moves=False)
        kernels = [still.refined(0), *(still.with_kernel(*k).refined(SETTLING_STEPS) for k in KERNELS)]
        best = min(kernels, key=lambda p: p.loss)
        # The loss without the form's prior becomes that with it.
        return replace(best, moves=self.moves, loss=best.loss + self.loss - kernels[0].loss)

    def _values(self) -> Tensor:
        """Entries of the form and logarithms, as one vector."""
        return torch.cat([entries_of(self.A), self.logs])

    @property
    def _free(self) -> int:
        """Where the numbers begin that are fitted."""
        return 0 if self.moves else len(self.A) * (len(self.A) + 1) // 2

    def _split(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """Form and logarithms of such a vector."""
        entries, logs = p.split([len(p) - len(self.logs), len(self.logs)])
        return of_entries(entries, len(self.A)), logs

    def _posterior(self, p: Tensor) -> Tensor | None:
        """Minus the log posterior; None where the covariance is none."""
        v, (M, logs) = self.view, self._split(p)
        L, failed = torch.linalg.cholesky_ex(v.covariance(v.coordinates(unit_form(M)), logs))
        if int(failed):
            return None
        fit = torch.linalg.solve_triangular(L, v.y[:, None], upper=False).square().sum() / 2
        prior = ((logs[:-4] - LENGTH) / LENGTH_SPREAD).square().sum() / 2
        prior = prior + (logs[-4:-1] / SIZE_SPREAD).square().sum() / 2
        if self.moves:
            prior = prior + form_prior(unit_form(M))
            prior = prior + (M.square().sum() - len(M)).square() / 2  # the size of M means nothing
        return fit + L.diagonal().log().sum() + prior

    def _slope(self, p: Tensor) -> Tensor:
        p = p.clone().requires_grad_()
        total = self._posterior(p)
        return torch.full_like(p, math.nan) if total is None else torch.autograd.grad(total, p)[0]

    def refined(self, steps: int) -> Process:
        """Quasi-Newton steps of form and kernel together, or of the kernel alone."""
        at = self._values()

        def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
            p = torch.tensor(values, requires_grad=True)
            total = self._posterior(p)
            if total is None:
                return 1e10, np.zeros_like(values)
            (slope,) = torch.autograd.grad(total, p)
            return float(total.detach()), slope.numpy()

        entries = at[: len(at) - len(self.logs)].tolist()
        form = [(None, None) if self.moves else (a, a) for a in entries]
        bounds = form + [(-3, 6)] * (len(self.logs) - 4) + [(-8, 6)] * 3 + [NOISE_BOUNDS]
        options = {"maxiter": steps, "maxcor": 30}
        found = minimize(loss, at.numpy(), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        M, logs = self._split(torch.tensor(found.x))
        return replace(self, A=unit_form(M) if self.moves else self.A, logs=logs, loss=float(found.fun))


def most_likely(
    samples: Samples,
    forms: Sequence[Tensor],
    seed: int,
    thorough: bool = True,
    over: Callable[[], bool] = lambda: False,
) -> Process:
    """The most likely process from several forms, and from those that a scan finds: the better ones go on.

    Charts go on by themselves, since one may start slowly, and kernels from several starts, since lengths settle early.
    More than a handful of samples have fewer peaks, and each step takes longer: fewer forms are tried. Once time is
    ``over``, what has been fitted is all there is.
    """

    def further(processes: Sequence[Process], steps: int) -> list[Process]:
        return [p if over() else p.refined(steps) for p in processes]

    handful = len(samples) <= HANDFUL
    ends: list[Process] = []
    for chart in Chart:
        scanned = likely_forms(samples, chart, seed, KEPT if handful else FEWER)
        going = [Process.start(samples, A, chart) for A in (*forms, *scanned)]
        going[:1] = [going[0].refined(SHORT[0][0])]  # one of each chart, whatever the time
        for steps, most in ROUNDS if thorough and handful else SHORT:
            going = _leading(further(going, steps), most)
        ends += going
    ends = sorted(ends, key=lambda p: p.loss)
    ends = [p for p in ends if p.loss < ends[0].loss + HOPELESS]
    if thorough:
        again = ends[: RESTARTED if handful else 1]
        ends += further([p.with_kernel(*kernel) for p in again for kernel in KERNELS], KERNEL_STEPS)
    finalists = (FINALISTS if handful else 2) if thorough else 1
    likely = sorted(sorted(ends, key=lambda p: p.loss)[: 2 * finalists], key=Process.laplace)
    best = min(further(likely[:finalists], LAST_STEPS), key=Process.laplace)
    for _ in range(POLISHED if thorough and handful else 0):
        # Near the form, other kernels show where it is: lengths that have settled too early hold it back.
        still = [replace(best.with_kernel(*kernel), moves=False) for kernel in KERNELS]
        leading = sorted(further(still, KERNEL_STEPS), key=lambda p: p.loss)[:RESTARTED]
        moved = further([replace(p, moves=True) for p in leading], LAST_STEPS)
        better = min([best, *moved], key=Process.laplace)
        if better is best:
            break
        best = better
    return best if over() else best.settled()


def _leading(processes: Sequence[Process], most: int) -> list[Process]:
    """The best by their losses, one of each signature at least."""
    ordered = sorted(processes, key=lambda p: p.loss)
    first = {QuadraticForm(p.A).signature: p for p in reversed(ordered)}.values()
    return [*first, *(p for p in ordered if all(p is not other for other in first))][: max(most, len(first))]
