"""Ways to build an output from vectors: products with the metric, and with the volume ε (M4, M15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

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


def product_of(
    way: Way, rep: TensorRep, vectors: Sequence[np.ndarray], lowered: Sequence[np.ndarray], A: np.ndarray
) -> np.ndarray:
    """The product of vectors ``(N, n)``, one for each that the way takes, metric and ε: ``(N, components)``."""
    value = np.ones(len(vectors[0]) if vectors else 1)
    if way.free is not None:
        filled = np.stack(vectors[: way.filled], 1) if way.filled else np.zeros((1, 0, len(A)))
        value = partial_volumes(torch.from_numpy(np.ascontiguousarray(filled)), len(way.free)).numpy()[:, 0]
        for axis, position in enumerate(way.free):
            if position < rep.up:
                value = np.moveaxis(np.tensordot(value, np.linalg.inv(A), (1 + axis, 0)), -1, 1 + axis)
    for place, position in enumerate(way.rest.legs, start=way.filled):
        leg = (vectors if position < rep.up else lowered)[place]
        value = value[..., None] * leg.reshape(len(leg), *(1,) * (value.ndim - 1), -1)
    raised = any(second < rep.up for _, second in way.rest.pairs)
    metric = Metric(torch.from_numpy(A), torch.from_numpy(np.linalg.inv(A)) if raised else None)
    term = Term(way.rest.pairs, (*(way.free or ()), *way.rest.legs))
    return rep.with_pairs(term, torch.from_numpy(value), metric).reshape(len(value), -1).numpy()
