"""Groups that move vectors of several kinds: each kind by a group of its own, or all by one, in their own frames (M17).

Elements are ``(..., kinds, n, n)``, a matrix for each kind of vector.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gortho import checks
from gortho.forms import QuadraticForm
from gortho.groups import random_generator
from gortho.stabiliser import SAME


class ProductGroup:
    """O(A_1) × O(A_2) × …: kinds that move independently; shorter vectors are filled up with zeros."""

    def __init__(self, forms: tuple[QuadraticForm, ...]):
        self.forms, self.n = forms, max(form.n for form in forms)

    @property
    def name(self) -> str:
        return " × ".join(form.group_name for form in self.forms)

    def algebra(self) -> Tensor:
        """A basis of the Lie algebra, float64 ``(m, kinds, n, n)``."""
        found = []
        for place, form in enumerate(self.forms):
            own = form.group().algebra()
            spread = own.new_zeros(len(own), len(self.forms), self.n, self.n)
            spread[:, place, : form.n, : form.n] = own
            found.append(spread)
        return torch.cat(found)

    def contains(self, g: Any, tolerance: float = 1e-10) -> Tensor:
        """Whether g is one of the elements; tolerances as in `OrthogonalGroup.contains`."""
        g = elements(g, len(self.forms), self.n)
        each = [
            form.group().contains(g[..., i, : form.n, : form.n], tolerance)
            for i, form in enumerate(self.forms)
        ]
        return torch.stack(each).all(0)

    def sample(self, k: int, seed: int | torch.Generator = 0, max_boost: float = 1.0) -> Tensor:
        """``k`` random elements."""
        generator = random_generator(seed)
        g = torch.eye(self.n, dtype=torch.float64).repeat(k, len(self.forms), 1, 1)
        for place, form in enumerate(self.forms):
            g[:, place, : form.n, : form.n] = form.group().sample(k, generator, max_boost)
        return g


class LinkedGroup:
    """O(A) of the first kind, by which the others move, too: T⁻¹ g T, where T takes their vectors to its frame."""

    def __init__(self, form: QuadraticForm, maps: Tensor):
        self.form, self.maps = form, torch.cat([torch.eye(form.n, dtype=torch.float64)[None], maps])

    @property
    def name(self) -> str:
        return self.form.group_name

    def _spread(self, g: Tensor) -> Tensor:
        """What moves the first kind, as all kinds have it."""
        return torch.linalg.solve(self.maps, g[..., None, :, :] @ self.maps)

    def algebra(self) -> Tensor:
        """A basis of the Lie algebra, float64 ``(m, kinds, n, n)``."""
        return self._spread(self.form.group().algebra())

    def contains(self, g: Any, tolerance: float = 1e-10) -> Tensor:
        """Whether g is one of the elements, the same one for all kinds; tolerances as in `OrthogonalGroup.contains`."""
        g = elements(g, len(self.maps), self.form.n).double()
        inside = self.form.group().contains(g[..., 0, :, :], tolerance)
        there, here = self.maps @ g, g[..., :1, :, :] @ self.maps
        sizes = torch.linalg.matrix_norm(self.maps) * (1 + torch.linalg.matrix_norm(g))
        return inside & (torch.linalg.matrix_norm(there - here) <= tolerance * sizes).all(-1)

    def sample(self, k: int, seed: int | torch.Generator = 0, max_boost: float = 1.0) -> Tensor:
        """``k`` random elements."""
        return self._spread(self.form.group().sample(k, seed, max_boost))


def elements(g: Any, kinds: int, n: int) -> Tensor:
    """Matrices for each of several kinds of vectors, checked."""
    g = checks.square(g, "g", n)
    if kinds > 1 and (g.ndim < 3 or g.shape[-3] != kinds):
        raise ValueError(f"g has shape {tuple(g.shape)}: give (..., {kinds}, {n}, {n})")
    return g


def unit_maps(given: Any, n: int) -> Tensor:
    """Maps ``(m, n, n)`` of size √n, largest entry positive, if they are invertible: their factors mean nothing."""
    if given is None or len(given) == 0:
        return torch.zeros(0, n, n, dtype=torch.float64)
    T = torch.stack([checks.square(one, "maps", n).double() for one in given])
    size = torch.linalg.matrix_norm(T, keepdim=True)
    if T.ndim != 3 or not bool((torch.linalg.svdvals(T)[:, -1] > SAME * size[:, 0, 0]).all()):
        raise ValueError(
            f"maps to the frame of the first space are invertible ({n}, {n}) matrices, one for each space"
        )
    factor = n**0.5 / size
    # a stored map must come back to the last bit
    T = torch.where((factor - 1).abs() > 1e-14, T * factor, T)
    flat = T.flatten(1)
    return T * flat.gather(1, flat.abs().argmax(1, keepdim=True)).sign()[:, :, None]
