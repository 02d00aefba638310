"""`Claim`: a symmetry to test other than O(A) of one form, and its unknowns as one vector θ (M15, M16, M17)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from gortho.discovery.wider.skew import compatible_with
from gortho.forms import QuadraticForm
from gortho.groups import skew_basis, symmetric_basis
from gortho.nn.exact import EquivariantNet
from gortho.reps import TensorRep
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples
from gortho.skew import SkewForm
from gortho.symmetry import Symmetry

#: Eigenvalues of a form that is claimed are zero below this share of the largest.
ZERO = 1e-9


@dataclass(frozen=True)
class Claim:
    """What is claimed of a law beside its form, without the numbers.

    Attributes:
        name: what it is called in words.
        directions: how many fixed directions there are.
        origin: whether the group acts about a point other than zero.
        special: SO(A) in place of O(A).
        spaces: number of the form of each vector, where there are several.
        output_space: with several forms, the one of the output.
        axial: places of axial input vectors.
        odd: the output has the parity that tells left from right.
        skew: a skew form in place of a quadratic one.
        unitary: a skew form beside a quadratic one, compatible with it.
        dims: with several forms of different dimension, these; the vectors are filled up with zeros, the forms too.
        linked: several spaces have one form, and move together; a map takes each of them to the frame of the first.
    """

    name: str
    directions: int = 0
    origin: bool = False
    special: bool = False
    spaces: tuple[int, ...] = ()
    output_space: int = 0
    axial: tuple[int, ...] = ()
    odd: bool = False
    skew: bool = False
    unitary: bool = False
    dims: tuple[int, ...] = ()
    linked: bool = False

    @property
    def forms(self) -> int:
        """How many quadratic forms there are to find."""
        return 0 if self.skew else 1 if self.linked else max(self.spaces, default=0) + 1

    @property
    def maps(self) -> int:
        """How many spaces have a map to the frame of the first."""
        return max(self.spaces) if self.linked else 0

    @property
    def matrices(self) -> int:
        """How many forms there are, and after them a skew one, or the maps."""
        return self.forms + self.maps + (self.skew or self.unitary)

    @property
    def apart(self) -> tuple[int, ...]:
        """The space of each vector, where inner products of several spaces mean nothing."""
        return () if self.linked else self.spaces

    def together(self, theta: Tensor, x: Tensor) -> Tensor:
        """Tuples in the frame of the first space."""
        if not self.linked:
            return x
        n = x.shape[-1]
        A, _, _ = self.split(theta, n)
        maps = torch.cat([torch.eye(n, dtype=x.dtype)[None], A[1:]])[list(self.spaces)]
        return torch.einsum("zia,iba->zib", x, maps)

    def of(self, samples: Samples) -> Samples:
        """The samples with outputs of this parity."""
        if not self.odd:
            return samples
        part = samples.rep.parts[0]
        return samples.with_targets(samples.y, TensorRep(part.up, part.down, odd=True))

    def split(self, theta: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Forms and maps ``(m, n, n)``, directions ``(d, n)`` and origin ``(1, n)``, or none ``(0, n)``."""
        sizes = [self.matrices * n * n, self.directions * n, n * self.origin]
        A, s, c = theta.split(sizes)
        return A.reshape(-1, n, n), s.reshape(-1, n), c.reshape(-1, n)

    def join(self, forms: Tensor, directions: Tensor | None = None, origin: Tensor | None = None) -> Tensor:
        """θ of its parts."""
        parts = [forms] + [p for p in (directions, origin) if p is not None]
        return torch.cat([p.flatten() for p in parts])

    def gauged(self, theta: Tensor, n: int) -> Tensor:
        """θ with forms and directions of size √n: their lengths mean nothing. Skew forms are made compatible."""
        A, s, c = self.split(theta, n)
        if self.unitary:
            A = torch.stack([A[0], compatible_with(A[0], A[1])])
        s = s * (n**0.5 / s.norm(dim=1, keepdim=True).clamp_min(1e-300))
        return self.join(unit_form(A), s, c)

    def loose(self, theta: Tensor, n: int) -> Tensor:
        """Changes of θ, one a row, that change no claim: sizes, the span's basis, the pencil A + t (Ab)(Ab)ᵀ (M16)."""
        A, s, c = self.split(theta, n)
        none = torch.zeros_like(c)
        rows = [self.join(A * (torch.arange(len(A)) == i)[:, None, None], 0 * s, none) for i in range(len(A))]
        for i, j in product(range(len(s)), repeat=2):
            moved = torch.zeros_like(s)
            moved[i] = s[j]
            rows.append(self.join(0 * A, moved, none))
            if i <= j:
                a, b = A[0] @ s[i], A[0] @ s[j]
                rows.append(self.join(a[:, None] * b + b[:, None] * a, 0 * s, none))
        return torch.stack(rows)

    def tangents(self, n: int) -> Tensor:
        """Directions in which θ may move, one a row."""
        skew = skew_basis(n).flatten(1) / 2**0.5
        maps = torch.eye(self.maps * n * n, dtype=torch.float64)
        symmetric = [filled(symmetric_basis(d), n).flatten(1) for d in self.dims or [n] * self.forms]
        rest = torch.eye((self.directions + self.origin) * n, dtype=torch.float64)
        return torch.block_diag(*symmetric, *[skew] * (self.skew or self.unitary), maps, rest)

    def symmetry(self, theta: Tensor, n: int) -> Symmetry:
        """The symmetry with these numbers."""
        A, s, c = self.split(theta, n)
        sizes = self.dims or [n] * self.forms
        forms = [QuadraticForm(M[:d, :d], tolerance=ZERO) for M, d in zip(A, sizes)]
        skew = SkewForm(A[-1], tolerance=ZERO) if self.skew or self.unitary else None
        origin = c[0] if self.origin else None
        return Symmetry(
            forms or None,
            spaces=self.spaces,
            special=self.special,
            directions=s,
            origin=origin,
            skew=skew,
            maps=A[1:] if self.linked else None,
        )

    def of_symmetry(self, symmetry: Symmetry) -> Tensor:
        """θ of a symmetry: forms and directions as gauge and signs have fixed them."""
        matrices = [filled(form.matrix, symmetry.n) for form in symmetry.forms[: self.forms]]
        matrices += [*symmetry.maps] if symmetry.skew is None else [symmetry.skew.matrix]
        return self.join(torch.stack(matrices), symmetry.directions, symmetry.origin)

    def options(self, samples: Samples) -> dict[str, Any]:
        """What a network of this claim is built with, beside the symmetry."""
        return {**samples.network_options(), "axial": list(self.axial), "output_space": self.output_space}

    def template(self, samples: Samples) -> EquivariantNet:
        """A network of this claim around plain forms; raises ValueError where there is no such law."""
        n = samples.n
        plain = torch.eye(n, dtype=torch.float64).expand(self.forms + self.maps, n, n)
        if self.skew or self.unitary:
            if n < 2 or (self.unitary and n % 2):
                raise ValueError(f"vectors of {n} components have no {self.name}")
            plain = torch.cat([plain, SkewForm.canonical(n // 2 * 2, n % 2).matrix[None]])
        axes = torch.eye(n, dtype=torch.float64)[: self.directions]
        theta = self.join(plain, axes, torch.zeros(n * self.origin))
        symmetry = self.symmetry(theta, n)
        return EquivariantNet(symmetry, output=samples.rep, features=1, degree=0, **self.options(samples))


def filled(A: Tensor, n: int) -> Tensor:
    """Forms ``(..., d, d)`` of the first d of n coordinates, ``(..., n, n)``."""
    more = n - A.shape[-1]
    return torch.nn.functional.pad(A, (0, more, 0, more))
