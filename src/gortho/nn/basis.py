"""What outputs are assembled from: even terms, of vectors and metric, and odd ones, with the volume form (M5, M15).

Let f = f_e + f_o be made of even and of odd terms. Both are equivariant under SO(A). A reflection r takes f_e to
ρ(r) f_e and f_o to -ρ(r) f_o, so O(A) allows one of them: f_e for a polar output, f_o for an axial one. Axial *inputs*
change their sign besides. With D for this change of sign and σ = ±1 for the output's parity,

    F(x) = ½ (f_e(x) + σ f_e(Dx)) + ½ (f_o(x) - σ f_o(Dx))

is equivariant under all of O(A), whatever f is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from gortho.nn.form import FormModule
from gortho.nn.invariants import Shapes
from gortho.pairings import Factored
from gortho.reps import TensorRep
from gortho.volume import assemble_odd, odd_terms

#: The longest wave in coefficients of sums over a set has this wave number, the next twice as much, and so on.
WAVE = 2.0
#: The even and the odd half of a value.
Halves = tuple[Tensor | None, Tensor | None]


def even_shapes(parts: Sequence[TensorRep], vectors: int, singular: bool) -> Shapes:
    """Shapes of the coefficients of outputs without odd terms."""
    return [[(vectors,) * len(term.legs) for term in part.terms(singular)] for part in parts]


def used_halves(part: TensorRep, n: int, special: bool, polar: bool, axial: bool) -> tuple[bool, bool]:
    """Whether an output may have even and odd terms, from vectors of which some are polar and some axial.

    With only axial ones Dx = -x, and each half has a parity of its own: that of its number of vectors.

    >>> used_halves(TensorRep(1, 0, odd=True), 3, special=False, polar=True, axial=False)
    (False, True)
    """
    if special or (polar and axial):
        return True, True
    flips = 1 if axial else 0
    even = part.odd == bool(flips * part.rank % 2)
    odd = part.odd != bool(flips * (n + part.rank) % 2)
    return even, odd


def joined(part: TensorRep, here: Halves, there: Halves | None) -> Tensor:
    """F(x) from the halves at x and, where some vectors are axial and some polar, at Dx."""
    sign = -1 if part.odd else 1
    even, odd = here
    if there is not None:
        even, odd = (
            None if a is None or b is None else (a + s * b) / 2 for a, b, s in zip(here, there, (sign, -sign))
        )
    if even is None:
        assert odd is not None
        return odd
    return even if odd is None else even + odd


class TupleBasis:
    """Products of the vectors of an ordered tuple.

    Args:
        parts: the tensors to be built.
        n: dimension of the vectors.
        vectors: number of vectors.
        halves: for each part whether it has even and odd terms (`used_halves`).
        singular: the form has no A⁻¹, and no volume.
        fillings: number of vectors to fill slots of ε with, if they are others.
    """

    def __init__(
        self,
        parts: Sequence[TensorRep],
        n: int,
        vectors: int,
        halves: Sequence[tuple[bool, bool]],
        singular: bool = False,
        fillings: int | None = None,
    ):
        self.parts, self.n, self.vectors, self.singular = parts, n, vectors, singular
        self.fillings = vectors if fillings is None else fillings
        self.even = [part.even.terms(singular) if e else () for part, (e, _) in zip(parts, halves)]
        self.odd = [
            odd_terms(part, n, self.fillings) if o and not singular else ()
            for part, (_, o) in zip(parts, halves)
        ]
        for part, even, odd in zip(parts, self.even, self.odd):
            if not even and not odd:
                why = (
                    "a singular form has no volume and no A⁻¹"
                    if singular
                    else "its parity asks for more or others"
                )
                raise ValueError(
                    f"{vectors} vector(s) in {n} dimensions make no {part} but zero under this symmetry ({why}): give "
                    "more vectors, check which are axial, or claim SO(A) instead of O(A)"
                )

    @property
    def handed(self) -> bool:
        """Whether there is any odd term."""
        return any(self.odd)

    @property
    def shapes(self) -> Shapes:
        """Shapes of the coefficients that `assemble` takes: for each part even terms, then odd ones."""
        return [
            [(self.vectors,) * len(term.legs) for term in even]
            + [term.shape(self.n, self.fillings, self.vectors) for term in odd]
            for even, odd in zip(self.even, self.odd)
        ]

    def assemble(
        self,
        coefficients: Sequence[Sequence[Tensor]],
        X: Tensor,
        form: FormModule,
        fillings: Tensor | None = None,
    ) -> list[Halves]:
        """The halves of every part from coefficients and vectors ``(batch, vectors, n)``."""
        metric = form.metric()
        lowered = form.lowered(X) if any(part.down for part in self.parts) else X
        volumes = form.volumes(X if fillings is None else fillings) if self.handed else None
        found: list[Halves] = []
        for part, even, odd, c in zip(self.parts, self.even, self.odd, coefficients):
            value = part.even.assemble(c[: len(even)], X, lowered, metric) if even else None
            turned = None
            if odd:
                assert volumes is not None
                turned = assemble_odd(part, odd, c[len(even) :], volumes, X, lowered, metric)
            found.append((value, turned))
        return found


class SetBasis(TupleBasis):
    """Products of the vectors of an unordered set, and of fixed directions beside them.

    Each leg runs over the points, all alike, or is one of the directions. Slots of ε are filled with at most n + 1 sums
    over the set, Σ u_i x_i with u_i coefficients too: no order of the points, and no choices of n among k of them.
    """

    def __init__(
        self,
        parts: Sequence[TensorRep],
        n: int,
        points: int,
        directions: int,
        halves: Sequence[tuple[bool, bool]],
        singular: bool = False,
    ):
        vectors = points + directions
        super().__init__(parts, n, vectors, halves, singular, fillings=min(n + 1, vectors))
        self.points, self.directions = points, directions

    def _blocks(self, legs: int) -> list[tuple[int, ...]]:
        choices = product((1, *[0] * self.directions), repeat=legs)
        return [(self.points,) * sum(choice) for choice in choices]

    @property
    def shapes(self) -> Shapes:
        """As those of a tuple, block by block, and then those of the sums."""
        blocks = []
        for even, odd in zip(self.even, self.odd):
            part = [shape for term in even for shape in self._blocks(len(term.legs))]
            for term in odd:
                choices = term.shape(self.n, self.fillings, 1)[0]
                part += self._blocks(len(term.rest.legs)) * choices
            blocks.append(part)
        return [*blocks, self._blocks(1) * self.fillings] if self.handed else blocks

    def assemble(
        self,
        coefficients: Sequence[Sequence[Tensor]],
        X: Tensor,
        form: FormModule,
        fillings: Tensor | None = None,
    ) -> list[Halves]:
        dense = []
        for part, even, odd in zip(coefficients, self.even, self.odd):
            given = iter(part)
            found = [self._together(given, len(term.legs)) for term in even]
            for term in odd:
                choices = term.shape(self.n, self.fillings, 1)[0]
                found.append(
                    torch.stack(
                        [laid_out(self._together(given, len(term.rest.legs))) for _ in range(choices)], 1
                    )
                )
            dense.append(found)
        if self.handed:
            given = iter(coefficients[-1])
            u = torch.stack([self._together(given, 1) for _ in range(self.fillings)], 1)
            fillings = unlike(u) @ X / X.shape[1] ** 0.5
        return super().assemble(dense, X, form, fillings)

    def _together(self, given: Iterator[Any], legs: int, before: int = 0, place: int = 0) -> Any:
        """One coefficient ``(batch, points + directions, …)`` from its blocks."""
        if place == legs or not self.directions:
            return laid_out(next(given)) if self.directions else next(given)
        axis = 1 + before
        blocks = [self._together(given, legs, before + 1, place + 1)]
        for _ in range(self.directions):
            blocks.append(self._together(given, legs, before, place + 1).unsqueeze(axis))
        return torch.cat(blocks, axis)


def laid_out(c: Tensor | Factored) -> Tensor:
    """A coefficient one by one."""
    return c.dense() if isinstance(c, Factored) else c


def unlike(u: Tensor) -> Tensor:
    """Coefficients ``(batch, sums, points)`` of sums over a set that differ: volumes of sums that are alike cancel.

    The first sum is that of all points. The others have waves of different lengths, and no mean.
    """
    u = u[:, 1:]
    numbers = torch.arange(1, u.shape[1] + 1, dtype=u.dtype, device=u.device)
    u = u + torch.sin(WAVE * numbers[:, None] * u)
    return torch.cat([torch.ones_like(u[:, :1]), u - u.mean(2, keepdim=True)], 1)


def axial_places(axial: bool | Sequence[int], points: int, set_like: bool) -> tuple[int, ...]:
    """Places of the axial vectors among so many, from what a caller said."""
    if isinstance(axial, bool):
        return tuple(range(points)) if axial else ()
    given = list(axial)
    places = tuple(i for i in range(points) if i in given)
    if len(places) < len(set(given)):
        raise ValueError(
            f"axial = {','.join(map(str, given))}: give places from 0 to {points - 1}, those of the axial vectors"
        )
    if set_like and len(places) not in (0, points):
        raise ValueError(f"axial = {list(axial)}: the points of a set are alike, give True, or nothing")
    return places
