"""Would another rule of length do as well as the form? Asked where all vectors lie on one side of the origin.

Let s(x) > 0 be the coordinate along the mean vector. A law y = φ(q(x)) = φ(s² t) with t = q(x)/s² depends on the
direction of x by t, a quadratic of the direction. Over few directions every smooth function of the direction is nearly
such a quadratic: sums of powers of positive columns and products of them then look like laws of a form, and no model of
the coordinates is better. So two rivals are fitted, y = φ(s² ψ(t)) with a form of their own and ψ bent a little up or
down. They agree with a form to second order about the mean direction, and no further. A law of a form beats both; other
laws are no better than one of them.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from gortho.discovery.family import Family, Inputs
from gortho.discovery.looks import LAST, few_for, robust_weights
from gortho.discovery.models import paired_p
from gortho.discovery.projection import Projection, Solve
from gortho.nn.tuples import SOFT
from gortho.objectives import Objective
from gortho.reps import Scalar
from gortho.samples.values import Samples

#: Vectors lie on one side where all but this share of them have a coordinate along the mean above …
FEW = 0.02
#: … this share of the median one.
ONE_SIDE = 0.1
#: How far rivals bend: the second derivative of ψ where the first one is one and t is typical.
BENT = 0.25
#: Rivals bend up to here, in the exponent.
STRAIGHT = 3.0
#: A form is told from its rivals below this p.
TOLD_APART = 1e-3
ONE_SIDED = (
    "all vectors lie on one side of the origin (as where every column is positive), and over so few directions other "
    "rules of length than a form's do as well: sums of other powers and products of columns look like this, too."
)
MORE_DIRECTIONS = (
    "Give vectors in more directions, of both signs where that is possible, or less noisy targets; predict with it "
    "only for vectors like these."
)
#: Steps of a rival's form, which starts at the found one.
RIVAL_STEPS = 12


class BentFamily(Family):
    """Functions of s² ψ(t) in place of ⟨x, x⟩ = s² t, where ψ(t) = 1 + (exp(b (t - 1)) - 1) / b in units of t.

    Where |b (t - 1)| is above `STRAIGHT`, ψ goes on as a straight line: t may span decades.
    """

    bend: float
    mean: Tensor  # s = ⟨mean, x⟩, about one
    unit: float  # of t

    def _t(self, A: Tensor, inputs: Inputs) -> tuple[Tensor, Tensor]:
        x = inputs.x[:, 0]
        s = (x @ self.mean).square()
        return torch.einsum("za,ab,zb->z", x, A, x) / (s * self.unit), s

    def gram(self, A: Tensor, inputs: Inputs) -> Tensor:
        """The bent squares ``(N, 1, 1)``."""
        t, s = self._t(A, inputs)
        u = self.bend * (t - 1)
        bent = u.clamp(-STRAIGHT, STRAIGHT)
        return (self.unit * s * (1 + (torch.expm1(bent) + bent.exp() * (u - bent)) / self.bend))[
            :, None, None
        ]

    def jacobian(self, A: Tensor, inputs: Inputs, units: Tensor, coefficients: Tensor) -> Tensor:
        """Derivative of the predictions by the entries of A."""
        slope = torch.exp((self.bend * (self._t(A, inputs)[0] - 1)).clamp(-STRAIGHT, STRAIGHT))
        return super().jacobian(A, inputs, units, coefficients) * slope[:, None, None, None]


def mean_direction(x: Tensor) -> Tensor | None:
    """The covector along which nearly all vectors ``(N, n)`` have positive coordinates, about one, if there is one."""
    mean = torch.linalg.lstsq(x, torch.ones(len(x), 1, dtype=x.dtype)).solution[:, 0]  # E[xxᵀ]⁻¹ E[x]
    s = x @ mean
    middle = float(s.median())
    return mean / middle if middle > 0 and float((s < ONE_SIDE * middle).double().mean()) <= FEW else None


def bent_p(samples: Samples, A: Tensor, objective: Objective, seed: int) -> float | None:
    """How sure it is that the form is better than its rivals: the larger p of two paired tests.

    None where the question does not arise: several vectors, outputs with indices, vectors on all sides of the origin.
    """
    if samples.points > 1 or samples.rep != Scalar() or samples.n < 2 or samples.classes:
        return None
    mean = mean_direction(samples.x[:, 0])
    if mean is None:
        return None
    there = samples.x[:, 0] @ mean > ONE_SIDE
    few, columns = few_for(objective.prepared(samples.rows(there)), LAST)
    plain = Projection(few, columns, few.weights, seed, SOFT)
    plain = plain.reweighted(robust_weights(plain, plain.solve(plain.gauged(A))))
    own = plain.refine(A, RIVAL_STEPS)
    x = few.x[:, 0]
    t = torch.einsum("za,ab,zb->z", x, own.A, x) / (x @ mean).square()
    p = 0.0
    for bend in (BENT, -BENT):
        family = BentFamily(few, columns, seed, SOFT)
        family.bend, family.mean, family.unit = bend, mean, float(t.abs().median().clamp_min(1e-12))
        rival = Projection(few, columns, None, seed, SOFT, family=family)
        rival.root = plain.root
        told_apart = paired_p(_left_out(own), _left_out(rival.refine(own.A, RIVAL_STEPS)))
        p = max(p, 1.0 if math.isnan(told_apart) else told_apart)  # a rival that fails is not beaten
    return p


def _left_out(at: Solve) -> np.ndarray:
    """Squared errors of the samples, each predicted from all others."""
    leverage = at.design.times(at.V).square().sum(1).clamp(max=0.99)
    return (at.residual / (1 - leverage)).square().numpy()
