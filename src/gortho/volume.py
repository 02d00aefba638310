"""The volume form ε, the one tensor that SO(A) keeps and O(A) does not: what tells left from right (M15).

ε(x_1, …, x_n) = det[x_1 … x_n] becomes det(g) ε under g. With some of its slots filled by vectors and its other indices
free it gives odd tensors: pseudoscalars det[x_1 … x_n], pseudovectors A⁻¹ε(x_1 … x_{n-1}, ·), in three dimensions the
cross product, and so on. Two ε make products of the metric, so one is enough. All minors come from the expansion of
determinants, without any division.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations, permutations
from math import comb
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from gortho.pairings import LETTERS, POINTS, Metric, Pairing, matchings
from gortho.reps import TensorRep


@dataclass(frozen=True)
class OddTerm:
    """One way to build a tensor with ε: the positions of its free indices; the others are legs and pairs."""

    free: tuple[int, ...]
    rest: Pairing

    def shape(self, n: int, filling: int, vectors: int) -> tuple[int, ...]:
        """Shape of the coefficients: a choice of ``filling`` vectors for the slots, and a vector for each leg."""
        return (comb(filling, n - len(self.free)), *(vectors,) * len(self.rest.legs))


def odd_terms(rep: TensorRep, n: int, vectors: int) -> tuple[OddTerm, ...]:
    """All ways to build a tensor in R^n from ε and so many vectors.

    A tensor with indices needs no ε without free ones: ε(x_1 … x_n) times a vector or the metric is a sum of inner
    products times such with one (n + 1 indices in n dimensions cannot alternate).

    >>> len(odd_terms(TensorRep(0, 0), 3, 2)), len(odd_terms(TensorRep(1, 0), 3, 2))    # no volume of two vectors
    (0, 1)
    """
    positions = tuple(range(rep.rank))
    found = []
    for free in range(min(1, rep.rank), min(n, rep.rank) + 1):
        if vectors < n - free:
            continue
        for chosen in combinations(positions, free):
            others = tuple(p for p in positions if p not in chosen)
            found += [OddTerm(chosen, term) for term in matchings(others)]
    return tuple(found)


@lru_cache
def _expansion(count: int, n: int, m: int) -> tuple[list[Any], ...]:
    """Tables for the minors of m rows from those of m - 1: rows by their first ones and the last, columns likewise."""
    before = {rows: i for i, rows in enumerate(combinations(range(count), m - 1))}
    smaller = {columns: i for i, columns in enumerate(combinations(range(n), m - 1))}
    chosen, columns = list(combinations(range(count), m)), list(combinations(range(n), m))
    first, last = [before[rows[:-1]] for rows in chosen], [rows[-1] for rows in chosen]
    left = [[smaller[S[:t] + S[t + 1 :]] for S in columns] for t in range(m)]
    taken = [[S[t] for S in columns] for t in range(m)]
    return first, last, left, taken


def minors(Z: Float[Tensor, "*batch k n"], m: int) -> Float[Tensor, "*batch rows columns"]:
    """All minors of m of the vectors ``(..., k, n)`` in m of the coordinates, ``(..., C(k, m), C(n, m))``."""
    w = Z.new_ones(*Z.shape[:-2], 1, 1)
    for size in range(1, m + 1):
        first, last, left, taken = _expansion(Z.shape[-2], Z.shape[-1], size)
        w, rows = w[..., first, :], Z[..., last, :]
        # along the last row, whose entry t has the sign (-1)^(size - 1 - t)
        terms = ((-1) ** (size - 1 - t) * w[..., left[t]] * rows[..., taken[t]] for t in range(size))
        w = reduce(operator.add, terms)
    return w


@lru_cache
def _signs(n: int, free: int) -> np.ndarray:
    """ε with its first n - free indices as one ordered set: ``(C(n, n - free), n, …, n)``, entries 0 and ±1.

    An array, as a tensor that is made while a network is traced would stay in the cache without values.
    """
    sets = list(combinations(range(n), n - free))
    signs = np.zeros((len(sets), *(n,) * free))
    for place, filled in enumerate(sets):
        for order in permutations(i for i in range(n) if i not in filled):
            both = (*filled, *order)
            swaps = sum(a > b for i, a in enumerate(both) for b in both[i + 1 :])
            signs[(place, *order)] = (-1) ** swaps
    return signs


def partial_volumes(Z: Float[Tensor, "*batch k n"], free: int) -> Float[Tensor, "*batch *tensors"]:
    """ε(z_J, ·, …, ·) for every choice J of n - free of the vectors ``(..., k, n)``, ``(..., choices, n, …, n)``.

    >>> partial_volumes(torch.eye(3)[:2], 1)      # e_1 × e_2 = e_3
    tensor([[0., 0., 1.]])
    """
    n = Z.shape[-1]
    return torch.tensordot(minors(Z, n - free), Z.new_tensor(_signs(n, free).tolist()), dims=1)


class Volumes:
    """Partial volumes of vectors ``(N, k, n)``, each made when it is first asked for.

    Args:
        Z: the vectors in coordinates in which rounding is smallest.
        lower, upper: matrices that take a free index from there to a lower and to an upper index.
    """

    def __init__(self, Z: Tensor, lower: Tensor, upper: Tensor):
        self.Z, self.lower, self.upper = Z, lower, upper
        self._made: dict[tuple[bool, ...], Tensor] = {}

    def __call__(self, raised: tuple[bool, ...]) -> Tensor:
        """Partial volumes whose free indices are raised or not, ``(N, choices, n, …, n)``."""
        if raised not in self._made:
            value = partial_volumes(self.Z, len(raised))
            for axis, up in enumerate(raised):
                moved = torch.tensordot(value, self.upper if up else self.lower, dims=([2 + axis], [1]))
                value = moved.movedim(-1, 2 + axis)
            self._made[raised] = value
        return self._made[raised]


def odd_products(
    rep: TensorRep, term: OddTerm, volumes: Volumes, X: Tensor, lowered: Tensor, metric: Metric
) -> Tensor:
    """Every partial volume times products of vectors and metric, ``(N, products, components)``."""
    value = _product(rep, term, volumes, X, lowered, metric)
    return value.reshape(*value.shape[:2], -1)


def assemble_odd(
    rep: TensorRep,
    terms: Sequence[OddTerm],
    coefficients: Sequence[Tensor],
    volumes: Volumes,
    X: Tensor,
    lowered: Tensor,
    metric: Metric,
) -> Tensor:
    """Σ c · (partial volume and products of vectors and metric), for coefficients c ``(N, choices, k, …, k)``."""
    values = [
        _product(rep, term, volumes, X, lowered, metric, c)
        for term, c in zip(terms, coefficients, strict=True)
    ]
    if not values:
        raise ValueError(f"{rep} has no odd value to build from so few vectors")
    return reduce(operator.add, values)


def _product(
    rep: TensorRep,
    term: OddTerm,
    volumes: Volumes,
    X: Tensor,
    lowered: Tensor,
    metric: Metric,
    c: Tensor | None = None,
) -> Tensor:
    """Partial volumes times products of vectors and metric, each ``(N, products, n, …)``, or summed with c."""
    legs = [X if position < rep.up else lowered for position in term.rest.legs]
    f, points = len(term.free), POINTS[: len(legs)]
    free, letters = LETTERS[:f], LETTERS[f : f + len(legs)]
    factors = [volumes(tuple(position < rep.up for position in term.free)), *legs]
    subscripts = ["Zy" + free, *(f"Z{i}{a}" for i, a in zip(points, letters))]
    if c is None:
        value = torch.einsum(f"{','.join(subscripts)}->Zy{points}{free}{letters}", *factors)
        value = value.flatten(1, 1 + len(legs))
    else:
        value = torch.einsum(f"Zy{points},{','.join(subscripts)}->Z{free}{letters}", c, *factors)
    return rep.with_pairs(Pairing(term.rest.pairs, term.free + term.rest.legs), value, metric)
