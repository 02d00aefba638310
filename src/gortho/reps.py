"""Representations: how a group element acts on the output of a network (M4, M5).

Outputs are tensors with ``up`` indices, which g moves, and ``down`` indices, which g⁻ᵀ moves. Every equivariant
tensor can be assembled from the input vectors x_i and the metric alone (first fundamental theorem of invariant
theory): each index is either a *leg*, carrying x_i (up) or A x_i (down), or one half of a *pair*, carrying A⁻¹
(two up), the identity (one of each) or A (two down). Coefficients are invariants. There is no division, so
there is no singularity on the null cone. *Odd* tensors (pseudoscalars, pseudovectors, …) change sign under
maps that exchange left and right; they are built with the volume form, see `gortho.volume` (M15).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from gortho import checks
from gortho.pairings import LETTERS, POINTS, Factored, Metric, Pairing, matchings

MAX_RANK = len(LETTERS)


class Rep:
    """A representation of the invertible maps of R^n, hence of every O(A)."""

    def shape(self, n: int) -> tuple[int, ...]:
        """Shape of one value."""
        raise NotImplementedError

    def act(self, g: Any, y: Any) -> torch.Tensor:
        """ρ(g) y for ``g (..., n, n)`` and values ``(..., *shape)``; leading axes broadcast."""
        raise NotImplementedError

    def differential(self, X: Any, y: Any) -> torch.Tensor:
        """dρ(X) y, the derivative of act(exp(tX), y) at t = 0."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[TensorRep, ...]:
        """The tensors this is a direct sum of."""
        raise NotImplementedError

    def split(self, y: torch.Tensor, n: int) -> list[torch.Tensor]:
        """The parts of a value, each in its own shape; a tensor is the only part of itself."""
        return [y]

    def join(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        """The inverse of `split`."""
        (only,) = values
        return only

    def size(self, n: int) -> int:
        """Number of components of one value."""
        return prod(self.shape(n))

    def __add__(self, other: Rep) -> DirectSum:
        return DirectSum(self.parts + other.parts)

    def __rmul__(self, times: int) -> DirectSum:
        if times < 1:
            raise ValueError(f"{times} copies of {self}: at least one is needed")
        return DirectSum(self.parts * times)


@dataclass(frozen=True)
class TensorRep(Rep):
    """Tensors with ``up`` indices (moved by g) then ``down`` indices (moved by g⁻ᵀ).

    Odd ones have an additional factor sign det g, which is det g for g in O(A): a pseudovector in three dimensions,
    such as an axis of rotation, does not change under x → -x (M15).

    >>> Tensor(1, 1).shape(3)      # matrices under conjugation g Y g⁻¹
    (3, 3)
    >>> 2 * Vector() + Scalar() + Tensor(1, 0, odd=True)
    vector + vector + scalar + pseudovector
    """

    up: int = 0
    down: int = 0
    odd: bool = False

    def __post_init__(self) -> None:
        if self.up < 0 or self.down < 0 or self.up + self.down > MAX_RANK:
            raise ValueError(f"Tensor({self.up}, {self.down}): ranks are from 0 to {MAX_RANK} in all")

    def __repr__(self) -> str:
        name = _NAMES.get((self.up, self.down))
        if name is None:
            return f"Tensor({self.up}, {self.down}{', odd=True' if self.odd else ''})"
        return f"pseudo{name}" if self.odd else name

    @property
    def even(self) -> TensorRep:
        """The even tensor with the same indices, which does not distinguish left from right."""
        return TensorRep(self.up, self.down)

    @property
    def rank(self) -> int:
        """Number of indices."""
        return self.up + self.down

    @property
    def parts(self) -> tuple[TensorRep, ...]:
        return (self,)

    def shape(self, n: int) -> tuple[int, ...]:
        return (n,) * self.rank

    def _check(self, g: Any, y: Any) -> tuple[torch.Tensor, torch.Tensor]:
        g = checks.square(g, "g")
        y = checks.as_tensor(y, "y")
        shape = self.shape(g.shape[-1])
        if tuple(y.shape[y.ndim - self.rank :]) != shape:
            raise ValueError(f"y has shape {tuple(y.shape)}, but values of {self} end in {shape}")
        return g.to(y), y

    def _apply(self, matrix: torch.Tensor, y: torch.Tensor, axis: int) -> torch.Tensor:
        a = LETTERS[: self.rank]
        return torch.einsum(f"...z{a[axis]},...{a}->...{a.replace(a[axis], 'z')}", matrix, y)

    def act(self, g: Any, y: Any) -> torch.Tensor:
        g, y = self._check(g, y)
        if self.rank == 0 and not self.odd:
            return y.expand(torch.broadcast_shapes(y.shape, g.shape[:-2]))
        return self.act_unchecked(g, y)

    def act_unchecked(self, g: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """As `act`, for tensors known to fit; traced by compilers."""
        inverse_transpose = torch.linalg.inv(g).mT if self.down else g
        for axis in range(self.rank):
            y = self._apply(g if axis < self.up else inverse_transpose, y, axis)
        if self.odd:
            y = y * torch.linalg.det(g).sign()[(..., *[None] * self.rank)]
        return y

    def differential(self, X: Any, y: Any) -> torch.Tensor:
        X, y = self._check(X, y)
        total = y.new_zeros(torch.broadcast_shapes(y.shape, (*X.shape[:-2], *(1,) * self.rank)))
        for axis in range(self.rank):
            total = total + self._apply(X if axis < self.up else -X.mT, y, axis)
        return total

    def terms(self, singular: bool = False) -> tuple[Pairing, ...]:
        """All ways to build this tensor from vectors and the metric; a singular A offers no A⁻¹."""
        if self.odd:
            raise ValueError(
                f"{self} distinguishes left from right: vectors and the metric do not build it, see gortho.volume"
            )
        terms = matchings(tuple(range(self.rank)))
        if singular:
            terms = tuple(t for t in terms if not any(b < self.up for _, b in t.pairs))
        return terms

    def assemble(
        self,
        coefficients: Sequence[torch.Tensor | Factored],
        X: torch.Tensor,
        lowered: torch.Tensor,
        metric: Metric,
    ) -> torch.Tensor:
        """Σ coefficients · (products of vectors and metric), the basis form of M4 and M5.

        Args:
            coefficients: for each of `terms`, a tensor ``(..., k, …, k)`` with one axis per leg, or factors of it.
            X: vectors ``(..., k, n)``; lowered: their A x_i.
        """
        total: torch.Tensor | None = None
        k, n = X.shape[-2:]
        # With few vectors, products and sums with the samples last are far quicker than thousands of tiny matrices.
        few = (
            X.ndim == lowered.ndim == 3
            and k * n <= 64
            and not any(isinstance(c, Factored) for c in coefficients)
        )
        if few:
            X, lowered = (
                v.permute(1, 2, 0).contiguous() if used else v
                for v, used in ((X, self.up), (lowered, self.down))
            )
        for term, c in zip(self.terms(metric.upper is None), coefficients, strict=True):
            vectors = [X if position < self.up else lowered for position in term.legs]
            if isinstance(c, Factored):
                value = c.contract(vectors)
            elif few:
                c = c.movedim(0, -1)
                for v in vectors:  # (k, …, samples) → (…, n, samples)
                    c = (c.unsqueeze(-2) * v[(slice(None), *[None] * (c.ndim - 2))]).sum(0)
                value = c.movedim(-1, 0)
            else:
                points, letters = POINTS[: len(vectors)], LETTERS[: len(vectors)]
                subscripts = ",".join(["..." + points, *(f"...{i}{a}" for i, a in zip(points, letters))])
                value = torch.einsum(f"{subscripts}->...{letters}", c, *vectors)
            value = self.with_pairs(term, value, metric)
            total = value if total is None else total + value
        if total is None:  # no term at all, e.g. (2,0) of no vectors
            raise ValueError(f"{self} has no equivariant value to build from")
        return total

    def with_pairs(self, term: Pairing, value: torch.Tensor, metric: Metric) -> torch.Tensor:
        """Products of legs ``(..., n, …)`` with the metric at the term's pairs, all indices in their places."""
        n = metric.lower.shape[-1]
        for first, second in term.pairs:
            if second < self.up:
                assert metric.upper is not None
                pair = metric.upper
            else:
                pair = torch.eye(n).to(value) if first < self.up else metric.lower
            value = value[..., None, None] * pair
        order = [*term.legs, *(position for pair_ in term.pairs for position in pair_)]
        lead = value.ndim - self.rank
        return value.permute(*range(lead), *(lead + order.index(i) for i in range(self.rank)))

    def fixed_values(self, form: Any, vectors: Any) -> torch.Tensor:
        """Values fixed by the stabiliser of ``vectors (k, n)`` in O(A), as a spanning set ``(m, *shape)`` (M4)."""
        E = checks.vectors(vectors, form.n, "vectors")
        metric, k = Metric.of(form, E), len(E)
        terms = self.terms(metric.upper is None)
        sizes = [k ** len(t.legs) for t in terms]
        choice = torch.eye(sum(sizes), dtype=E.dtype).split(sizes, dim=-1)
        coefficients = [c.reshape(-1, *(k,) * len(t.legs)) for c, t in zip(choice, terms)]
        return self.assemble(coefficients, E.expand(sum(sizes), -1, -1), (E @ metric.lower), metric)


@dataclass(frozen=True)
class DirectSum(Rep):
    """Several outputs at once; a value is the flattened parts, concatenated, ``(..., size)``."""

    summands: tuple[TensorRep, ...]

    def __post_init__(self) -> None:
        if not self.summands:
            raise ValueError("a direct sum needs at least one part")

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.summands))

    @property
    def parts(self) -> tuple[TensorRep, ...]:
        return self.summands

    def shape(self, n: int) -> tuple[int, ...]:
        return (sum(part.size(n) for part in self.summands),)

    def split(self, y: torch.Tensor, n: int) -> list[torch.Tensor]:
        if y.ndim == 0 or y.shape[-1] != self.size(n):
            raise ValueError(f"y has shape {tuple(y.shape)}, but values of {self} end in {self.shape(n)}")
        pieces = y.split([part.size(n) for part in self.summands], dim=-1)
        return [piece.reshape((*y.shape[:-1], *part.shape(n))) for piece, part in zip(pieces, self.summands)]

    def join(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        flat = [
            v.flatten(v.ndim - part.rank) if part.rank else v[..., None]
            for v, part in zip(values, self.summands)
        ]
        return torch.cat(flat, dim=-1)

    def fixed_values(self, form: Any, vectors: Any) -> torch.Tensor:
        blocks = [part.fixed_values(form, vectors) for part in self.summands]
        return torch.block_diag(*(b.reshape(len(b), -1) for b in blocks))

    def act(self, g: Any, y: Any) -> torch.Tensor:
        g, y = checks.square(g, "g"), checks.as_tensor(y, "y")
        return self.join([part.act(g, v) for part, v in zip(self.summands, self.split(y, g.shape[-1]))])

    def differential(self, X: Any, y: Any) -> torch.Tensor:
        X, y = checks.square(X, "X"), checks.as_tensor(y, "y")
        return self.join(
            [part.differential(X, v) for part, v in zip(self.summands, self.split(y, X.shape[-1]))]
        )


#: How a user writes it; in code of networks, where `torch.Tensor` is near, it is `TensorRep`.
Tensor = TensorRep

_NAMES = {
    (0, 0): "scalar",
    (1, 0): "vector",
    (0, 1): "covector",
    (1, 1): "conjugation",
    (2, 0): "bilinear",
    (0, 2): "form",
}
_BY_NAME = {
    prefix + name: TensorRep(*ranks, odd=bool(prefix))
    for prefix in ("", "pseudo")
    for ranks, name in _NAMES.items()
}


def Scalar() -> TensorRep:
    """Numbers: ρ(g) y = y."""
    return TensorRep(0, 0)


def Vector() -> TensorRep:
    """Vectors: ρ(g) y = g y."""
    return TensorRep(1, 0)


def Covector() -> TensorRep:
    """Covectors: ρ(g) y = g⁻ᵀ y."""
    return TensorRep(0, 1)


def Conjugation() -> TensorRep:
    """Linear maps: ρ(g) Y = g Y g⁻¹."""
    return TensorRep(1, 1)


def Bilinear() -> TensorRep:
    """Matrices like x xᵀ: ρ(g) Y = g Y gᵀ."""
    return TensorRep(2, 0)


def Form() -> TensorRep:
    """Matrices like A: ρ(g) Y = g⁻ᵀ Y g⁻¹."""
    return TensorRep(0, 2)


def as_rep(output: str | Rep) -> Rep:
    """Read a representation: a rep object, a name, or a sum such as ``"scalar + 2*vector"``.

    >>> as_rep("bilinear") == Tensor(2, 0)
    True
    >>> as_rep("scalar + 2*pseudovector")
    scalar + pseudovector + pseudovector
    """
    if isinstance(output, Rep):
        return output
    if not isinstance(output, str):
        raise TypeError(f"output = {output!r}: give a name or a rep object, such as 'vector' or Tensor(2, 0)")
    parts: list[TensorRep] = []
    for word in output.split("+"):
        general = re.fullmatch(r"\s*Tensor\((\d+),\s*(\d+)(?:,\s*odd=(True|False))?\)\s*", word)
        if general is not None:
            parts.append(TensorRep(int(general[1]), int(general[2]), general[3] == "True"))
            continue
        match = re.fullmatch(r"\s*(?:(\d+)\s*\*)?\s*([a-z]+)\s*", word)
        if match is None or match[2] not in _BY_NAME or match[1] == "0":
            raise ValueError(
                f"output {output!r}: {word.strip()!r} is unknown; choose from {', '.join(_BY_NAME)}, or "
                "class for labels (discover)"
            )
        parts += [_BY_NAME[match[2]]] * int(match[1] or 1)
    return parts[0] if len(parts) == 1 else DirectSum(tuple(parts))
