"""Families of laws: functions of squares xᵀAx of the vectors, of their differences or of their sum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gortho.groups import random_generator
from gortho.studies.tasks.inputs import uniform
from gortho.studies.tasks.laws import Law
from gortho.studies.tasks.random_laws import random_functions

#: What keeps a pole at q = 0 finite, as a share of the median of |q|.
SOFT = 0.05

#: Chooses vectors ``(N, m, n)`` of tuples ``(N, points, n)``.
Choice = Callable[[Tensor], Tensor]


def _each(x: Tensor) -> Tensor:
    return x


def _total(x: Tensor) -> Tensor:
    return x.sum(1, keepdim=True)


def _each_and_total(x: Tensor) -> Tensor:
    return torch.cat([x, _total(x)], dim=1) if x.shape[1] > 1 else x


def _pairs(x: Tensor) -> Tensor:
    if x.shape[1] == 1:
        return x
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
    return x[:, i] - x[:, j]


def _from_first(x: Tensor) -> Tensor:
    return x[:, :1] - x[:, 1:]


@dataclass(frozen=True)
class Ingredients:
    """What a law is made of: samples that set its units, A, the squares (xᵀAx or what stands for it), and chance."""

    x: Tensor
    A: Tensor
    square: Callable[[Tensor], Tensor]
    generator: torch.Generator

    def weights(self, count: int) -> Tensor:
        """Numbers of either sign and size 0.5 to 1.5, so that every part of a law matters."""
        size = uniform(self.generator, count, low=0.5, high=1.5)
        return size * (1 - 2 * torch.randint(2, (count,), generator=self.generator))

    def squares(self, choice: Choice) -> tuple[Callable[[Tensor], Tensor], Tensor, Tensor]:
        """Squares ``(N, m)`` of some vectors in units of their median size on the samples, these units, and weights."""
        units = self.square(choice(self.x)).abs().median(0).values
        return lambda x: self.square(choice(x)) / units, units, self.weights(len(units))

    def free(self, count: int, shape: str, scale: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """Random functions ``(N, count)`` of all inner products, each in units of its median size.

        They vary by about 1 on the samples, about values of either sign and the same size.
        """

        def inner(x: Tensor) -> Tensor:
            i, j = torch.triu_indices(x.shape[1], x.shape[1])
            return (self.square(x[:, i] + x[:, j]) - self.square(x[:, i] - x[:, j])) / 4

        units = inner(self.x).abs().median(0).values
        key = int(torch.randint(2**31, (), generator=self.generator))

        def function(x: Tensor) -> Tensor:
            return random_functions(scale(inner(x) / units), count, shape, random_generator(key))

        values, offset = function(self.x), self.weights(count)
        middle = values.median(0).values
        spread = (values - middle).abs().median(0).values  # not the variance, which may be that of one sample
        return lambda x: (function(x) - middle) / spread + offset


def quadratic_form(A: Tensor, x: Tensor) -> Tensor:
    return ((x @ A) * x).sum(-1)


def _potential(choice: Choice, function: Callable[[Tensor], Tensor]) -> Callable[[Ingredients], Law]:
    """y = Σ w φ(q(v)) over the chosen vectors v."""

    def build(c: Ingredients) -> Law:
        u, _, w = c.squares(choice)
        return lambda x: function(u(x)) @ w

    return build


def _central(choice: Choice, function: Callable[[Tensor], Tensor]) -> Callable[[Ingredients], Law]:
    """y = Σ w φ(q(v)) v over the chosen vectors v."""

    def build(c: Ingredients) -> Law:
        u, _, w = c.squares(choice)
        return lambda x: ((w * function(u(x)))[..., None] * choice(x)).sum(1)

    return build


def _polynomial(c: Ingredients) -> Law:
    function = c.free(1, "polynomial", lambda u: u)
    return lambda x: function(x)[:, 0]


def _network(c: Ingredients) -> Law:
    function = c.free(1, "network", torch.asinh)
    return lambda x: function(x)[:, 0]


def _wave(c: Ingredients) -> Law:
    """Three periods of √|q| up to its 95th percentile."""
    u, _, w = c.squares(_each)
    waves = 6 * math.pi / u(c.x).abs().sqrt().quantile(0.95, dim=0)
    return lambda x: (waves * u(x).abs().sqrt()).cos() @ w


def _mixture(c: Ingredients) -> Law:
    coefficients = c.free(c.x.shape[1], "network", torch.asinh)
    return lambda x: (coefficients(x)[..., None] * x).sum(1)


def _inertia(c: Ingredients) -> Law:
    """Σ m (q A⁻¹ - x xᵀ), the moment of inertia in the metric."""
    u, units, w = c.squares(_each)
    masses, inverse = w.abs(), torch.linalg.inv(c.A)
    return lambda x: (u(x) @ masses)[:, None, None] * inverse - (masses / units * x.mT) @ x


def _stress(c: Ingredients) -> Law:
    """Σ w (v vᵀ - q A⁻¹/2) / (|q| + soft) over pairs: Maxwell's stress of fields that fall off."""
    u, units, w = c.squares(_pairs)
    inverse = torch.linalg.inv(c.A)

    def law(x: Tensor) -> Tensor:
        v, q = _pairs(x), u(x)
        strength = w / (q.abs() + 2 * SOFT)
        return (strength[:, None] / units * v.mT) @ v - (strength * q).sum(1)[:, None, None] / 2 * inverse

    return law


def _linear_map(c: Ingredients) -> Law:
    """Σ w (B + B²/2) + cross terms, B = x xᵀA, and a multiple of the identity: B² = q B."""
    u, units, w = c.squares(_each)
    cross, one = c.weights(1), torch.eye(len(c.A), dtype=c.A.dtype)

    def law(x: Tensor) -> Tensor:
        q, v = u(x), x / units.sqrt()[:, None]
        own = ((w * (1 + q / 2))[:, None] * v.mT) @ v
        return (own + cross * v[:, 0, :, None] * v[:, -1, None, :]) @ c.A + (q @ w)[:, None, None] * one

    return law


@dataclass(frozen=True)
class LawFamily:
    """How targets come about: the output, the least number of vectors, and a maker of laws."""

    output: str
    points: int
    build: Callable[[Ingredients], Law]


#: Families of laws.
LAWS: dict[str, LawFamily] = {
    "polynomial": LawFamily("scalar", 1, _polynomial),
    "root": LawFamily("scalar", 1, _potential(_each_and_total, lambda u: u.abs().sqrt())),
    "logarithm": LawFamily("scalar", 1, _potential(_pairs, lambda u: (0.01 + u.abs()).log())),
    "well": LawFamily("scalar", 1, _potential(_pairs, lambda u: (1 - (1 - u.abs().sqrt()).exp()) ** 2)),
    "wave": LawFamily("scalar", 1, _wave),
    "power": LawFamily("scalar", 1, _potential(_pairs, lambda u: 1 / (u.abs() + SOFT))),
    "decay": LawFamily("scalar", 1, _potential(_each, lambda u: (-u.abs().sqrt()).exp())),
    "saturation": LawFamily("scalar", 1, _potential(_each_and_total, lambda u: u / (1 + u.abs()))),
    "network": LawFamily("scalar", 1, _network),
    "mass": LawFamily("scalar", 2, _potential(_total, lambda u: u.abs().sqrt())),
    "inverse square": LawFamily("vector", 1, _central(_each, lambda u: (u.abs() + SOFT) ** -1.5)),
    "pair force": LawFamily(
        "vector", 2, _central(_from_first, lambda u: (-u.abs().sqrt()).exp() / (u.abs() + SOFT))
    ),
    "spring": LawFamily("vector", 1, _central(_each, lambda u: 0.5 + torch.asinh(u))),
    "mixture": LawFamily("vector", 2, _mixture),
    "inertia": LawFamily("bilinear", 1, _inertia),
    "stress": LawFamily("bilinear", 1, _stress),
    "linear map": LawFamily("conjugation", 1, _linear_map),
}
