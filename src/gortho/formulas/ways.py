"""Ways to build an output from vectors: products with the metric, and with the volume ε (M4, M15)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from gortho.reps import TensorRep
from gortho.terms import Metric, Term
from gortho.volume import odd_terms, partial_volumes


@dataclass(frozen=True)
class Way:
    """One way to build a tensor: indices that are vectors, pairs of the metric, and free indices of ε.

    Attributes:
        rest: the indices that are vectors, and the pairs.
        free: the free indices of ε; None without ε.
        filled: vectors in the other slots of ε: the first of the vectors that the way takes.
    """

    rest: Term
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


def _lowered(term: Term, up: int) -> bool:
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
    term = Term(way.rest.pairs, (*(way.free or ()), *way.rest.legs))
    return rep.with_pairs(term, value, metric).reshape(len(value), -1)
