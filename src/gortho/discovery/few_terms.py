"""A polynomial of few terms and its form, from few samples: terms that the samples do not require are left out.

Polynomials of degree two of four vectors have 66 coefficients, but a law has a handful. So each coefficient gets its
own prior variance, and marginal likelihood sends most of these to zero (sparse Bayesian learning) while the form is
fitted too. The noise starts large and decreases, so that the right form looks best already from far away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gortho.discovery.design import Design
from gortho.discovery.family import Family, Inputs
from gortho.discovery.predictor import LAW, Fitted, Kind, solved
from gortho.discovery.process import form_prior
from gortho.discovery.projection import DAMPING, Projection, Solve
from gortho.forms import QuadraticForm
from gortho.nn.tuples import TupleFeatures
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: Coefficients to choose from, at most.
MOST_COLUMNS = 200
#: Steps of all forms together; after some of them the worse half is given up.
STEPS, HALVED = 150, (40, 80)
#: Lengths of the steps of the form's entries and of the logarithms of variances, and how long slopes are remembered.
FORM_STEP, VARIANCE_STEP, MEMORY = 0.02, 0.15, (0.9, 0.95)
#: Slopes of the form, at most: a step is not ruled by one that was steep.
STEEPEST = 5.0
#: Logarithm of the variances at the start, and their bounds; of the noise at first and at last, all for unit targets.
VARIANCE, VARIANCES, NOISE = -1.0, (-14.0, 4.0), (-1.0, -5.0)
#: The share of the steps in which noise falls.
FALLING = 0.8
#: Forms that go on to a choice of terms; terms below this share of the largest are left out at once.
CHOSEN, SMALL = 4, 1e-3
#: Gauss-Newton steps of a form with chosen terms, after each choice and at the end.
REFINED, LAST = 6, 30
#: Squares of errors, in units of the variance, below this are rounding.
ROUNDING = 1e-28
#: Numbers that are left over after all unknowns, at least.
LEFT_OVER = 3


class Chosen(Family):
    """Polynomials of degree two with some of their terms."""

    def __init__(self, samples: Samples, chosen: Tensor):
        super().__init__(samples, 0, degree=2)
        self.chosen = chosen

    @property
    def columns(self) -> int:
        """Number of terms."""
        return len(self.chosen)

    def weights(self, coefficients: Tensor) -> list[Tensor]:
        """Of all terms, zero where one is left out."""
        every = coefficients.new_zeros(super().columns)
        every[self.chosen] = coefficients
        return super().weights(every)

    def design(self, A: Tensor, inputs: Inputs, units: Tensor) -> Design:
        """The columns of the terms."""
        return Design(super().design(A, inputs, units).dense()[:, self.chosen])


@dataclass(frozen=True)
class Terms:
    """A polynomial of few terms, its form in the frame, and what speaks for it."""

    samples: Samples
    projection: Projection
    at: Solve
    moves: bool = True  # whether its form is fitted too

    @classmethod
    def of(cls, samples: Samples, A: Tensor, chosen: Tensor, steps: int, moves: bool = True) -> Terms:
        """These terms after steps of the form, if it moves."""
        projection = Projection(samples, 0, samples.weights, degree=2, family=Chosen(samples, chosen))
        return cls(samples, projection, projection.refine(A, steps if moves else 0, DAMPING), moves)

    @classmethod
    def constant(cls, samples: Samples, A: Tensor) -> Terms:
        """The mean, which keeps every form."""
        return cls.of(samples, A, torch.tensor([0]), 0)

    @property
    def chosen(self) -> Tensor:
        """The numbers of the terms."""
        family = self.projection.family
        assert isinstance(family, Chosen)
        return family.chosen

    @property
    def evidence(self) -> float:
        """Nats for each sample by which it is more likely than a constant, by Laplace's approximation.

        Coefficients of terms of unit size, and entries of a form of size one, are of order one a priori.
        """
        at, D = self.at, self.at.design.dense()
        unit, size = max(self._variance, 1e-300) ** 0.5, len(at.A) ** 0.5
        J = D / D.square().mean(0).sqrt().clamp_min(1e-300)
        if self.moves:
            J = torch.cat([J, self.projection.jacobian(at, projected=False)[0] * size / unit], 1)
        left = J.shape[0] - J.shape[1]
        if left < LEFT_OVER:
            return -math.inf
        noise = max(float((at.residual / unit).square().sum()) / left, ROUNDING)
        told = torch.linalg.eigvalsh(J.mT @ J).clamp_min(0.0)
        choice = len(self.chosen) * math.log(Family(self.samples, 0, degree=2).columns)
        nats = (left * math.log(1 / noise) + J.shape[1] - float((told + noise).log().sum())) / 2 - choice
        return nats / len(self.samples)

    @property
    def _variance(self) -> float:
        w, y = self.projection.root.square(), self.samples.y
        return float((w * (y - (w * y).mean()).square()).mean())

    @property
    def exact(self) -> bool:
        """Whether it is the law, to rounding."""
        return self.evidence > 0 and self.at.criterion < LAW * self._variance

    def shortened(self) -> Terms:
        """Without the terms that are worth less than their choice, the smallest first."""
        best = self
        while len(best.chosen) > 1:
            size = best.at.coefficients.abs() * best.at.design.squares().diagonal().sqrt()
            kept = best.chosen[size > size.min()]
            shorter = Terms.of(self.samples, best.at.A, kept, REFINED, self.moves)
            if shorter.evidence <= best.evidence and math.isfinite(best.evidence):
                break
            best = shorter
        return best

    def fitted(self, seed: int) -> Fitted:
        """As a predictor."""
        options = {"features": 1, "degree": 2, "seed": seed}
        return solved(QuadraticForm(self.at.A), self.samples, self.projection, options, Kind.TERMS)


def few_terms(
    samples: Samples, forms: Sequence[Tensor], moves: bool = True, over: Callable[[], bool] = lambda: False
) -> Terms | None:
    """The polynomial of few terms that speaks most for itself, from several forms on; None where there is none."""
    unknowns = samples.n * (samples.n + 1) // 2 if moves else 1
    if len(samples) < unknowns + LEFT_OVER or Family(samples, 0, degree=2).columns > MOST_COLUMNS:
        return None
    ends = [
        Terms.of(samples, A, (sizes > SMALL * sizes.max()).nonzero()[:, 0], REFINED, moves).shortened()
        for A, sizes in _relevant(samples, torch.stack([unit_form(A) for A in forms]), moves, over)
    ]
    if not ends:
        return None
    best = max(ends, key=lambda one: one.evidence)
    return Terms.of(samples, best.at.A, best.chosen, LAST, moves)


def _relevant(
    samples: Samples, forms: Tensor, moves: bool, over: Callable[[], bool]
) -> list[tuple[Tensor, Tensor]]:
    """The most likely forms, each with the sizes of its terms."""
    batch = _Batch(samples, forms)
    parameters = [forms, torch.full((len(forms), batch.columns), VARIANCE, dtype=forms.dtype)]
    mean, square = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
    for step in range(STEPS):
        if over():
            return []
        noise = NOISE[0] + (NOISE[1] - NOISE[0]) * min(1.0, step / (FALLING * STEPS))
        loss, slopes, sizes = batch(parameters[0], parameters[1], noise)
        if step + 1 == STEPS:
            break
        for k, (slope, length) in enumerate(zip(slopes, (FORM_STEP * moves, VARIANCE_STEP))):  # Adam
            mean[k] = MEMORY[0] * mean[k] + (1 - MEMORY[0]) * slope
            square[k] = MEMORY[1] * square[k] + (1 - MEMORY[1]) * slope.square()
            root = (square[k] / (1 - MEMORY[1] ** (step + 1))).sqrt() + 1e-8
            parameters[k] = parameters[k] - length * mean[k] / (1 - MEMORY[0] ** (step + 1)) / root
        parameters[1] = parameters[1].clamp(*VARIANCES)
        if step in HALVED:
            better = loss.argsort()[: max(CHOSEN, len(loss) // 2)]
            parameters, mean, square = ([p[better] for p in of] for of in (parameters, mean, square))
    best = loss.argsort()[:CHOSEN]
    return list(zip(unit_form(parameters[0])[best], sizes[best]))


class _Batch:
    """The marginal likelihood of many forms at once, for samples with targets of unit size."""

    def __init__(self, samples: Samples, forms: Tensor):
        family = Family(samples, 0, degree=2)
        assert isinstance(family.features, TupleFeatures)
        self.features, self.inputs = family.features, Projection(samples, 0, degree=2).inputs
        self.y = samples.y / samples.y.square().mean().sqrt().clamp_min(1e-300)
        w = samples.weights
        self.noise = torch.diag(torch.ones_like(self.y) if w is None else 1 / w.clamp_min(1e-6))
        self.units = torch.ones(self.features.mixing.shape[1], dtype=self.y.dtype)
        self.scale = torch.ones(family.columns, dtype=self.y.dtype)
        self.scale = self._terms(forms).square().mean((0, 1)).sqrt().clamp_min(1e-300)

    @property
    def columns(self) -> int:
        return len(self.scale)

    def _terms(self, forms: Tensor) -> Tensor:
        """All terms ``(forms, N, columns)``, of size one in the mean over the forms at the start."""
        x, count = self.inputs.x, len(forms)
        gram = torch.einsum("zpi,fij,zqj->fzpq", x, forms, x).flatten(0, 1)
        point, sample = (
            None if s is None else s.repeat(count, *[1] * (s.ndim - 1))
            for s in (self.inputs.point, self.inputs.sample)
        )
        return self.features(gram, point, sample, self.units).unflatten(0, (count, len(x))) / self.scale

    def __call__(self, forms: Tensor, logs: Tensor, noise: float) -> tuple[Tensor, list[Tensor], Tensor]:
        """Minus the log likelihood of each form, its slopes by forms and logarithms, and the sizes of the terms."""
        with torch.enable_grad():
            moving = forms.detach().requires_grad_()
            unit = unit_form((moving + moving.mT) / 2)
            terms, prior = self._terms(unit), form_prior(unit)
        f, a = terms.detach(), logs.exp()[:, None]
        L = torch.linalg.cholesky((f * a) @ f.mT + math.exp(2 * noise) * self.noise)
        inverse = torch.cholesky_inverse(L)
        w = inverse @ self.y
        loss = w @ self.y / 2 + L.diagonal(dim1=1, dim2=2).log().sum(1) + prior.detach()
        by_terms = (inverse - w[:, :, None] * w[:, None]) @ f * a
        (by_form,) = torch.autograd.grad([terms, prior], moving, [by_terms, torch.ones_like(prior)])
        sizes = (w[:, None] @ f * a).abs()[:, 0]
        return loss, [by_form.clamp(-STEEPEST, STEEPEST), (f * by_terms).sum(1) / 2], sizes
