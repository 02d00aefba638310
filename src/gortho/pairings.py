"""Terms: the ways to build a tensor from vectors and the metric (M4, M5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

LETTERS = "abcdefgh"  # tensor indices
POINTS = "ijklmnop"  # legs, each running over the input vectors


@dataclass(frozen=True)
class Pairing:
    """One way to build a tensor: which index positions are paired by the metric, which are legs."""

    pairs: tuple[tuple[int, int], ...]
    legs: tuple[int, ...]


@dataclass(frozen=True)
class Factored:
    """Coefficients c_ij… = δ_ij… d_i + (1/k) Σ_a u^a_i v^a_j … of many points, which are never laid out one by one.

    Args:
        diagonal: d ``(..., k)``.
        factors: u, v, … ``(..., rank, k)``, one for each leg.
    """

    diagonal: torch.Tensor
    factors: tuple[torch.Tensor, ...]

    def contract(self, vectors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Σ c_ij… x_i ⊗ y_j ⊗ … for vectors ``(..., k, n)`` of each leg."""
        letters = LETTERS[: len(vectors)]
        rows = {id(v): v.mT.contiguous() for v in vectors}  # (..., n, k): long rows are quicker
        first, *others = (rows[id(v)] for v in vectors)
        legs = ",".join(f"...{a}i" for a in letters)
        alike = torch.einsum(f"{legs}->...{letters}", self.diagonal[..., None, :] * first, *others)
        sums = [u @ rows[id(v)].mT for u, v in zip(self.factors, vectors)]
        products = torch.einsum(f"{legs}->...{letters}", *(s.mT for s in sums))
        return alike + products / self.diagonal.shape[-1]

    def dense(self) -> torch.Tensor:
        """The coefficients one by one, ``(..., k, …, k)``."""
        points = POINTS[: len(self.factors)]
        product = torch.einsum(",".join(f"...z{i}" for i in points) + f"->...{points}", *self.factors)
        d = self.diagonal
        for _ in self.factors[1:]:
            d = torch.diag_embed(d, dim1=-2, dim2=-1)
        return d + product / self.diagonal.shape[-1]


@dataclass(frozen=True)
class Metric:
    """What assembling needs of a form: A, and A⁻¹ up to a factor (None when A is singular)."""

    lower: torch.Tensor
    upper: torch.Tensor | None

    @classmethod
    def of(cls, form: Any, like: torch.Tensor | None = None) -> Metric:
        """The metric of a `QuadraticForm`, with the adjugate scaled to ‖·‖_F = √n for A⁻¹."""
        A = form.matrix if like is None else form.matrix.to(like)
        if form.signature.zero:
            return cls(A, None)
        inverse = torch.linalg.inv(form.matrix)
        inverse = inverse * (
            torch.linalg.det(form.matrix).sign() * form.n**0.5 / torch.linalg.matrix_norm(inverse)
        )
        return cls(A, inverse.to(A))


@lru_cache
def matchings(positions: tuple[int, ...]) -> tuple[Pairing, ...]:
    """Every way to pair up some of the positions; the rest are legs."""
    if not positions:
        return (Pairing((), ()),)
    first, rest = positions[0], positions[1:]
    found = [Pairing(t.pairs, (first, *t.legs)) for t in matchings(rest)]
    for partner in rest:
        others = tuple(p for p in rest if p != partner)
        found += [Pairing(((first, partner), *t.pairs), t.legs) for t in matchings(others)]
    return tuple(found)
