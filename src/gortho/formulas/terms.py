"""What formulas are made of: factors, ways to build an output from vectors (M4, M15), terms, and their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho.pairings import Metric, Pairing
from gortho.reps import TensorRep, as_rep
from gortho.symmetry import Symmetry
from gortho.volume import odd_terms, partial_volumes

#: Functions of a number inside times t; and of all inner products of a pair of vectors.
FUNCTIONS, PAIRS = ("exp", "sin", "cos", "arcsin"), ("angle", "area")

#: A sum of the vectors of a sample, by its whole weights.
Weights = tuple[int, ...]


@dataclass(frozen=True)
class Factor:
    """A function of one inner product ⟨u, v⟩, or a power of a scalar.

    Attributes:
        kind: "scalar" s^power; "power" t^power; "log" log t; "free" t^shape; "exp", "sin", "cos", "arcsin" of
            shape · t; "angle" the angle between u and v; "area" that of their parallelogram, |u × v|.
        left, right: the vectors u and v of t = ⟨u, v⟩.
        power: the exponent.
        absolute: t is |⟨u, v⟩|.
        rooted: t is √|⟨u, v⟩|.
        falling: t is -⟨u, v⟩: what is taken from a number, as in (1 - v²)^-0.5.
        shape: a number that was fitted; of powers and logarithms it is added to t.
        shape_error: half of its 95 % interval.
        scalar: which scalar; of powers, the one whose square the shape multiplies, of arcsin, one that t is times.
    """

    kind: str
    left: Weights = ()
    right: Weights = ()
    power: float = 1.0
    absolute: bool = False
    rooted: bool = False
    falling: bool = False
    shape: float | None = None
    shape_error: float = 0.0
    scalar: int | None = None

    def value(self, inner: Callable[[Weights, Weights], Any], scalar: Any, shape: Any, of: Any = np) -> Any:
        """Its values ``(N,)`` by inner products, the scalar and the fitted number; not finite outside its domain.

        ``of`` is numpy, or torch for slopes.
        """
        if self.kind == "scalar":
            return scalar**self.power
        t = inner(self.left, self.right)
        if self.kind in PAIRS:
            sizes = inner(self.left, self.left) * inner(self.right, self.right)
            # Beyond the ends of clip is rounding: these are a Gram determinant and a cosine.
            if self.kind == "area":
                return of.sqrt(of.clip(sizes - t * t, 0.0, None))
            return of.arccos(of.clip(t / of.sqrt(sizes), -1.0, 1.0))
        t = of.sqrt(abs(t)) if self.rooted else abs(t) if self.absolute else t
        t = -t if self.falling else t
        if self.kind == "free":
            return t**shape
        if self.kind in FUNCTIONS:
            return getattr(of, self.kind)(shape * t if scalar is None else shape * t * scalar)
        if shape is not None:
            t = t + shape * (1.0 if scalar is None else scalar * scalar)
        return of.log(t) if self.kind == "log" else t if self.power == 1 else t**self.power


@dataclass(frozen=True)
class Monomial:
    """A product of factors and vectors: ``term`` says how the output is built (`ways_of`), ``legs`` of what."""

    factors: tuple[Factor, ...] = ()
    term: int = 0
    legs: tuple[Weights, ...] = ()


@dataclass(frozen=True)
class Term:
    """A coefficient times a monomial, or times a sum of alike ones over all vectors ("each") or over "pairs" of them.

    ``error`` is half of the coefficient's 95 % interval.
    """

    monomials: tuple[Monomial, ...]
    summed: str = ""
    coefficient: float = math.nan
    error: float = math.nan

    @property
    def shapes(self) -> tuple[float, ...]:
        """The fitted numbers inside, each once: those of a sum are alike."""
        return tuple(f.shape for f in self.monomials[0].factors if f.shape is not None)

    @property
    def polynomial(self) -> bool:
        """Whether it is a product of whole powers, none below zero."""
        factors = [factor for monomial in self.monomials for factor in monomial.factors]
        return all(
            f.kind in ("power", "scalar") and f.shape is None and f.power in (1, 2, 3) for f in factors
        )

    @property
    def logarithm(self) -> bool:
        """Whether a logarithm is in it."""
        return any(factor.kind == "log" for monomial in self.monomials for factor in monomial.factors)

    def shaped(self, shapes: Sequence[float], errors: Sequence[float] | None = None) -> Term:
        """The same with other numbers inside."""
        halves = [0.0] * len(shapes) if errors is None else list(errors)

        def changed(monomial: Monomial) -> Monomial:
            given: Any = ({"shape": float(a), "shape_error": float(half)} for a, half in zip(shapes, halves))
            factors = [f if f.shape is None else replace(f, **next(given)) for f in monomial.factors]
            return replace(monomial, factors=tuple(factors))

        return replace(self, monomials=tuple(changed(m) for m in self.monomials))


@dataclass(frozen=True)
class Way:
    """One way to build a tensor: indices that are vectors, pairs of the metric, and free indices of ε.

    Attributes:
        rest: the indices that are vectors, and the pairs.
        free: the free indices of ε; None without ε.
        filled: vectors in the other slots of ε: the first of the vectors that the way takes.
    """

    rest: Pairing
    free: tuple[int, ...] | None = None
    filled: int = 0

    @property
    def odd(self) -> bool:
        """Whether it changes its sign in a mirror."""
        return self.free is not None

    @property
    def count(self) -> int:
        """Vectors that it takes."""
        return self.filled + len(self.rest.legs)


@lru_cache
def ways_of(rep: TensorRep, n: int, singular: bool) -> tuple[Way, ...]:
    """All ways, those without ε first; a singular form has no A⁻¹ to raise an index with.

    >>> [(way.odd, way.count) for way in ways_of(TensorRep(1, 0), 3, False)]     # x, and x1 × x2
    [(False, 1), (True, 2)]
    """
    even = tuple(Way(term) for term in rep.even.terms(singular))
    odd = tuple(Way(t.rest, t.free, n - len(t.free)) for t in odd_terms(rep, n, n))
    if singular:
        up = rep.up
        odd = tuple(w for w in odd if all(i >= up for i in w.free or ()) and _lowered(w.rest, up))
    return even + odd


def _lowered(term: Pairing, up: int) -> bool:
    """Whether no pair is A⁻¹."""
    return not any(second < up for _, second in term.pairs)


def product_of(way: Way, rep: TensorRep, legs: Tensor, lowered: Tensor, metric: Metric) -> Tensor:
    """The product of vectors ``(N, k, n)``, as many as the way takes, metric and ε: ``(N, components)``."""
    value = legs.new_ones(len(legs))
    if way.free is not None:
        value = partial_volumes(legs[:, : way.filled], len(way.free))[:, 0]
        for axis, position in enumerate(way.free):
            if position < rep.up:
                assert metric.upper is not None
                value = torch.tensordot(value, metric.upper, ([1 + axis], [0])).movedim(-1, 1 + axis)
    for place, position in enumerate(way.rest.legs, start=way.filled):
        leg = (legs if position < rep.up else lowered)[:, place]
        value = value[..., None] * leg.reshape(len(leg), *(1,) * (value.ndim - 1), -1)
    term = Pairing(way.rest.pairs, (*(way.free or ()), *way.rest.legs))
    return rep.with_pairs(term, value, metric).reshape(len(value), -1)


class Quantities:
    """The numbers that formulas are made of: inner products, scalars and products of vectors, of given samples."""

    def __init__(self, x: np.ndarray, scalars: np.ndarray, symmetry: Symmetry, output: str):
        rep = as_rep(output)
        self.rep = rep.parts[0]
        self.scalars = scalars
        origin = symmetry.origin
        moved = np.asarray(x, float) - (0.0 if origin is None else origin.numpy())
        if symmetry.linked:
            moved = np.einsum("zia,iba->zib", moved, symmetry.frames.numpy())
        fixed = np.broadcast_to(symmetry.directions.numpy(), (len(x), *symmetry.directions.shape))
        self.vectors = np.concatenate([moved, fixed], 1)
        # Shorter vectors are filled up with zeros, and their forms, too.
        forms = [np.pad(form.matrix.numpy(), (0, symmetry.n - form.n)) for form in symmetry.forms]
        spaces = [*(symmetry.apart or [0] * x.shape[1]), *[0] * len(symmetry.directions)]
        A, form = torch.from_numpy(forms[0]), symmetry.form
        singular = form.signature.zero > 0
        self.ways = ways_of(self.rep, form.n, singular)
        self.metric = Metric(A, None if singular or form.n < symmetry.n else torch.linalg.inv(A))
        self.lowered = np.stack([self.vectors[:, i] @ forms[s] for i, s in enumerate(spaces)], 1)
        self.gram = np.einsum("zin,zjn->zij", self.lowered, self.vectors)
        self._inners: dict[tuple[Weights, Weights], np.ndarray] = {}
        self._tensors: dict[tuple[int, tuple[Weights, ...]], np.ndarray] = {}

    @property
    def features(self) -> np.ndarray:
        """All inner products and scalars ``(N, …)``, as a model takes them."""
        i, j = np.triu_indices(self.gram.shape[1])
        return np.concatenate([self.gram[:, i, j], self.scalars], 1)

    def inner(self, left: Weights, right: Weights) -> np.ndarray:
        """⟨u, v⟩ of two sums of vectors ``(N,)``."""
        if (left, right) not in self._inners:
            value = np.einsum("zij,i,j->z", self.gram, np.array(left, float), np.array(right, float))
            self._inners[left, right] = value
        return self._inners[left, right]

    def tensor(self, term: int, legs: tuple[Weights, ...]) -> np.ndarray:
        """The product of vectors, metric and ε ``(N, components)``."""
        if (term, legs) not in self._tensors:
            weights = np.reshape(legs, (-1, self.vectors.shape[1])).astype(float)
            made, lowered = (torch.from_numpy(weights @ of) for of in (self.vectors, self.lowered))
            value = product_of(self.ways[term], self.rep, made, lowered, self.metric)
            self._tensors[term, legs] = value.numpy()
        return self._tensors[term, legs]

    def factor(self, factor: Factor) -> np.ndarray:
        """The values of a factor ``(N,)``."""
        scalar = None if factor.scalar is None else self.scalars[:, factor.scalar]
        return np.asarray(factor.value(self.inner, scalar, factor.shape))

    def column(self, term: Term) -> np.ndarray:
        """The values of a term without its coefficient ``(N, components)``."""
        total: Any = 0.0
        for monomial in term.monomials:
            value = self.tensor(monomial.term, monomial.legs)
            for factor in monomial.factors:
                value = value * self.factor(factor)[:, None]
            total = total + value
        return np.asarray(total)
