"""Polynomial laws that keep a form, nearly keep it, or keep none, and how far a law is from keeping a generator.

A generator is an affine map ξ(x) = Sx + b. Its *defect* ρ is that of "Certified Symmetry Discovery" (Kendiukhov, 2026),
with means over the box [-1, 1]ⁿ: for a scalar law f the mean cosine between ∇f and ξ, ρ² = E(∇f·ξ)² / E|∇f|²|ξ|²; for a
vector field F the bracket by its two parts, ρ² = E|DF ξ - Dξ F|² / (E|DF ξ|² + E|Dξ F|²). It is 0 for a symmetry. Both
sides are quadratic in the generator, so the worst one of a claimed algebra is an eigenvalue, not a search.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.linalg import eigh
from torch import Tensor

from gortho import QuadraticForm
from gortho.groups import random_generator

#: A law ``(N, n) -> (N,)`` or ``(N, n)``.
Field = Callable[[Tensor], Tensor]
#: A generator counts as kept up to this defect: the tolerance of SymCert's own tables.
DELTA = 0.05
#: A law that nearly keeps its form: the worst defect among the generators of its group.
NEARLY = DELTA / 4
#: A law that is broken, or keeps nothing: the smallest defect among all affine generators, at least.
CLEAR = 1.5 * DELTA
#: Condition of the hidden forms.
CONDITION = 3.0
GROUPS = ((2, 0), (1, 1), (3, 0), (1, 2), (4, 0), (1, 3), (2, 2))
KINDS = ("kept", "nearly kept", "broken", "none")
#: Points at which means over the box are taken.
POINTS = 4_096


@dataclass(frozen=True)
class Polynomial:
    """A law on the box [-1, 1]ⁿ, its degree, and the form it was made from, where there is one.

    ``violation`` is the share of the law's variance that its form cannot express: law and violation have different
    parities on a symmetric box, so nothing of one is part of the other.
    """

    law: Field
    n: int
    output: str
    degree: int
    form: QuadraticForm | None = None
    violation: float = 0.0

    def samples(self, count: int, noise: float, seed: int) -> tuple[Tensor, Tensor]:
        """Uniform in the box, with Gaussian noise as a share of the root mean square of the law."""
        generator = random_generator(seed)
        x = 2 * torch.rand(count, self.n, dtype=torch.float64, generator=generator) - 1
        y = self.law(x)
        size = self.law(_points(self.n)).square().reshape(POINTS, -1).sum(1).mean().sqrt()
        return x, y + noise * size * torch.randn(y.shape, dtype=y.dtype, generator=generator)


def _points(n: int) -> Tensor:
    unit = torch.quasirandom.SobolEngine(n, scramble=True, seed=0).draw(POINTS, dtype=torch.float64)
    return 2 * unit - 1


# Defects


@dataclass(frozen=True)
class Defects:
    """ρ² of generators as the ratio of two quadratic forms of them."""

    top: np.ndarray
    bottom: np.ndarray

    def among(self, generators: np.ndarray) -> np.ndarray:
        """Defects among generators ``(m, n² + n)`` and their sums, from the smallest on; the last is the worst."""
        top, bottom = (generators @ q @ generators.T for q in (self.top, self.bottom))
        bottom = bottom + 1e-13 * np.trace(bottom) / len(bottom) * np.eye(len(bottom))
        return np.sqrt(eigh(top, bottom, eigvals_only=True).clip(0))

    def spectrum(self) -> np.ndarray:
        """Those among all affine generators: as many as are small are nearly kept together."""
        return self.among(np.eye(len(self.top)))


def defects(problem: Polynomial) -> Defects:
    """How far the law is from keeping each of the n² + n affine generators."""
    return _squares(*_brackets(problem, problem.law))


def _squares(whole: Tensor, parts: Tensor) -> Defects:
    top, bottom = (torch.einsum("zpk,zqk->pq", t, t).numpy() / len(t) for t in (whole, parts))
    return Defects(top, bottom)


def _brackets(problem: Polynomial, law: Field) -> tuple[Tensor, Tensor]:
    """What a law does to each generator at the points, and the parts that it is measured by: both linear in the law."""
    x, n = _points(problem.n), problem.n
    slopes = torch.func.vmap(torch.func.jacrev(lambda z: law(z[None])[0]))(x)
    eye = torch.eye(n, dtype=x.dtype)
    linear = torch.einsum("ai,zb->zabi", eye, x).flatten(1, 2)  # x_b ∂_a, entry (a, b) of S
    fields = torch.cat([linear, eye.expand(len(x), n, n)], 1)
    if problem.output == "scalar":
        parts = torch.einsum("zi,zpj->zpij", slopes, fields)
        return torch.einsum("zpii->zp", parts)[..., None], parts.flatten(2)
    along = torch.einsum("zij,zpj->zpi", slopes, fields)
    value = torch.einsum("ai,zb->zabi", eye, law(x)).flatten(1, 2)
    turned = torch.cat([value, torch.zeros(len(x), n, n, dtype=x.dtype)], 1)
    return along - turned, torch.cat([along, turned], 2)


def affine(maps: Any, origin: Any = None) -> np.ndarray:
    """Generators ξ(x) = S(x - c) as rows ``(m, n² + n)``, from S ``(m, n, n)`` and c."""
    maps = np.asarray(maps, dtype=float)
    shift = np.zeros(maps.shape[:2]) if origin is None else -maps @ np.asarray(origin)
    return np.concatenate([maps.reshape(len(maps), -1), shift], 1)


# Laws of hidden forms


def monomials(n: int, degrees: range) -> list[tuple[int, ...]]:
    """Monomials of these degrees, each as the list of its variables."""
    return [m for d in degrees for m in itertools.combinations_with_replacement(range(n), d)]


def random_polynomial(n: int, degrees: range, output: str, generator: torch.Generator) -> Field:
    """A polynomial with random coefficients for every monomial, in units of the monomials' own sizes on [-1, 1]ⁿ."""
    which = monomials(n, degrees)
    # E x^2k = 1 / (2k + 1)
    size = [np.prod([2 * m.count(i) + 1 for i in range(n)]) ** 0.5 for m in which]
    shape = (len(which),) if output == "scalar" else (len(which), n)
    weights = torch.randn(*shape, dtype=torch.float64, generator=generator)
    weights = weights * torch.tensor(size, dtype=torch.float64).reshape(-1, *(1,) * (len(shape) - 1))
    return lambda x: torch.stack([x[:, list(m)].prod(1) for m in which], 1) @ weights


def exact_law(form: QuadraticForm, output: str, generator: torch.Generator) -> Field:
    """u + cu² or (1 + cu)x, with u = xᵀAx in units of its size on the box, and c of either sign."""
    A = form.matrix
    box = 2 * torch.rand(POINTS, form.n, dtype=torch.float64, generator=generator) - 1
    A = A / torch.einsum("zi,ij,zj->z", box, A, box).square().mean().sqrt()
    c = 0.3 + 0.5 * float(torch.rand((), generator=generator))
    c = c if torch.rand((), generator=generator) < 0.5 else -c

    def law(x: Tensor) -> Tensor:
        u = torch.einsum("zi,ij,zj->z", x, A, x)
        return u + c * u**2 if output == "scalar" else (1 + c * u)[:, None] * x

    return law


def hidden(kind: str, group: tuple[int, int], output: str, seed: int) -> Polynomial:
    """A law of one of the `KINDS`, of degree four for numbers and three for vectors."""
    generator, n = random_generator(seed), sum(group)
    degree, odd = (4, 3) if output == "scalar" else (3, 2)
    if kind == "none":
        while True:
            law = random_polynomial(n, range(1, degree + 1), output, generator)
            problem = Polynomial(law, n, output, degree)
            if defects(problem).spectrum()[0] > CLEAR:
                return problem
    form = QuadraticForm.random(*group, condition=CONDITION, seed=seed)
    exact = exact_law(form, output, generator)
    problem = Polynomial(exact, n, output, degree, form=form)
    if kind == "kept":
        return problem
    other, factor = _violation(problem, kind, odd, generator)
    x = _points(problem.n)
    kept, left = exact(x), factor * other(x)
    share = left.square().mean() / ((kept - kept.mean(0)).square().mean() + left.square().mean())
    return Polynomial(
        lambda x: exact(x) + factor * other(x), n, output, degree, form=form, violation=float(share)
    )


def _violation(problem: Polynomial, kind: str, odd: int, generator: torch.Generator) -> tuple[Field, float]:
    """Another law of the other parity, and how much of it makes a law nearly kept, or broken."""
    assert problem.form is not None
    mine, own = _brackets(problem, problem.law), affine(problem.form.group().algebra())
    eye = np.eye(problem.n * (problem.n + 1))
    # Where no factor will do, another violation is drawn.
    steps = np.geomspace(1e-4, 0.5, 100)
    while True:
        other = random_polynomial(problem.n, range(odd, odd + 1), problem.output, generator)
        its = _brackets(problem, other)
        both = _squares(*(torch.cat(pair, 1) for pair in zip(mine, its)))
        for factor in steps:
            mixed = np.concatenate([eye, factor * eye], 1)
            found = Defects(mixed @ both.top @ mixed.T, mixed @ both.bottom @ mixed.T)
            if found.among(own)[-1] > NEARLY if kind == "nearly kept" else found.spectrum()[0] > CLEAR:
                return other, float(factor)


# The laws of SymCert's own tables: textbook systems, and functions of the plane


def _field(*components: Callable[..., Tensor]) -> Field:
    """A vector field by its components, each a function of the coordinates."""
    return lambda x: torch.stack([component(*x.unbind(1)) for component in components], 1)


def _planar(function: Callable[..., Tensor]) -> Field:
    return lambda x: function(*x.unbind(1))


def _systems() -> dict[str, Polynomial]:
    hopf = _field(lambda x, y: x - y - x * (x**2 + y**2), lambda x, y: x + y - y * (x**2 + y**2))
    top = (_field(lambda x, y, z: -y * z, lambda x, y, z: x * z, lambda x, y, z: 0 * x),
           _field(lambda x, y, z: -y * z, lambda x, y, z: x * z, lambda x, y, z: -x * y / 3))  # fmt: skip
    fields = {
        "Hopf": (hopf, 2, 3),
        "oscillator": (_field(lambda x, y: -y, lambda x, y: x), 2, 1),
        "symmetric top": (top[0], 3, 2),
        "flow to a sphere": (lambda x: x * (1 - x.square().sum(1, keepdim=True)), 3, 3),
        "Van der Pol": (_field(lambda x, y: y, lambda x, y: -x + y * (1 - x**2)), 2, 3),
        "asymmetric top": (top[1], 3, 2),
    }
    return {name: Polynomial(law, n, "vector", degree) for name, (law, n, degree) in fields.items()}


def _functions() -> dict[str, Polynomial]:
    def round_law(x: Tensor, y: Tensor) -> Tensor:
        return x**2 + y**2 - 0.5 * (x**2 + y**2) ** 2

    laws = {
        "invariant + 0.02 x³": _planar(lambda x, y: round_law(x, y) + 0.02 * x**3),
        "anisotropic": _planar(lambda x, y: x**2 + 0.6 * y**2 - 0.3 * x**4),
    }
    return {name: Polynomial(law, 2, "scalar", 4) for name, law in laws.items()}


#: Of SymCert's first and seventh experiments: the fields with a symmetry, two without, and functions of the plane.
OWN: dict[str, Polynomial] = _systems() | _functions()
