"""What breaks a symmetry inside a network: fixed directions, an origin, several spaces (M16, M17)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn

from gortho.nn.form import FixedForm, FixedVectors, FormModule
from gortho.nn.units import SMALLEST_SIZE, positive, unit_of
from gortho.symmetry import Symmetry


class Broken(nn.Module):
    """Directions as constant vectors beside those of a sample, an origin to subtract, a form or a frame for each space.

    Args:
        symmetry: the symmetry.
        output_space: number of the form of the output.
    """

    def __init__(self, symmetry: Symmetry, output_space: int = 0):
        super().__init__()
        self.symmetry = symmetry
        own = [i for i, space in enumerate(symmetry.spaces) if space == output_space]
        #: Places of the vectors that live where the output does; None for all.
        self.own = None if symmetry.linked else own or None
        #: The first of the vectors in whose frame the output is.
        self.first = own[0] if own else 0
        self.several = len(symmetry.forms) > 1 and not symmetry.linked
        if symmetry.linked:
            if output_space != 0:
                raise ValueError(f"{symmetry}: number the spaces so that the output is in space 0")
            self.frames = FixedVectors(symmetry.frames)
        if self.several:
            self.forms = nn.ModuleList(FixedForm(form) for form in symmetry.forms)
            self.register_buffer("space_scale", torch.ones(len(symmetry.forms)))
            kinds = torch.nn.functional.one_hot(torch.tensor(symmetry.spaces)).mT.float()
            self.register_buffer("kinds", kinds, persistent=False)
        if symmetry.origin is not None:
            self.origin = FixedVectors(symmetry.origin)
        if len(symmetry.directions):
            self.directions = FixedVectors(symmetry.directions)
            self.register_buffer("direction_scale", torch.ones(len(symmetry.directions)))

    @classmethod
    def of(cls, symmetry: Symmetry, output_space: int = 0) -> Broken | None:
        """What breaks this symmetry, if anything does."""
        none = symmetry.origin is None and not symmetry.spaces and not len(symmetry.directions)
        return None if none else cls(symmetry, output_space)

    space_scale: Tensor
    kinds: Tensor
    direction_scale: Tensor

    def _each(self) -> Iterable[FixedForm]:
        """The forms of the spaces."""
        return cast("Iterable[FixedForm]", self.forms)

    def centred(self, x: Tensor) -> Tensor:
        """x - c, in the frame in which all vectors move together."""
        if self.symmetry.linked:
            return (x[..., None, :] @ self.frames.value.mT)[..., 0, :]
        return x if self.symmetry.origin is None else x - self.origin.value

    def invariants(
        self, form: FormModule, X: Tensor, point: Tensor | None, set_like: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The Gram matrix, the vectors to build outputs from, and the scalars of the points.

        In a tuple directions count as vectors; in a set their products ⟨b, x_i⟩ are scalars of the points.
        """
        if self.several:
            X = X / (self.space_scale @ self.kinds)[:, None]
            blocks = [
                each.gram((X * kind[:, None])[..., : each.n]) for each, kind in zip(self._each(), self.kinds)
            ]
            return torch.stack(blocks).sum(0), X[:, self.own, : form.n], point
        if not len(self.symmetry.directions):
            return form.gram(X), X, point
        if set_like:
            return form.gram(X), *self.beside(form, X, point)
        fixed = (self.directions.value * self.direction_scale[:, None]).expand(X.shape[0], -1, -1)
        together = torch.cat([X, fixed], 1)
        return form.gram(together), together, point

    def beside(self, form: FormModule, X: Tensor, point: Tensor | None) -> tuple[Tensor, Tensor]:
        """The points of a set with the directions beside them, and their scalars with products ⟨b, x_i⟩."""
        assert isinstance(form, FixedForm)
        fixed = self.directions.value * self.direction_scale[:, None]
        together = torch.cat([X, fixed.expand(X.shape[0], -1, -1)], 1)
        along = ((X @ form.frame.mT) * form.signs) @ (fixed @ form.frame.mT).mT / form.n**0.5
        return together, along if point is None else torch.cat([point, along], -1)

    @torch.no_grad()
    def calibrate_spaces(self, X: Tensor) -> None:
        """Give each space a unit of its own: no group mixes them."""
        for place, (form, kind) in enumerate(zip(self._each(), self.kinds)):
            self.space_scale[place] = unit_of(form, X[:, kind > 0, : form.n])

    @torch.no_grad()
    def calibrate_directions(self, form: FormModule, X: Tensor) -> None:
        """Give directions a length at which their products with each other and with the vectors are of order one."""
        assert isinstance(form, FixedForm)
        vectors, directions = X @ form.frame.mT, self.directions.value @ form.frame.mT
        along = ((vectors * form.signs) @ directions.mT).square().mean((0, 1)).sqrt()
        own = (directions.square() * form.signs).sum(1).abs().sqrt()
        # as units do, lengths follow products that are small by cancellation only so far
        sizes = directions.norm(dim=1) * vectors.square().mean().sqrt()
        along = torch.maximum(along, SMALLEST_SIZE * sizes)
        root = form.n**0.5
        self.direction_scale.copy_(1 / positive(torch.maximum(along / root, own / root**0.5)))
