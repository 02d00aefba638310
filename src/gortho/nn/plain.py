"""The unconstrained peer: an MLP of the raw coordinates that knows of no form, in the same harness as the others."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gortho.nn.exact import EquivariantNet


def mlp(inputs: int, width: int, hidden: int, outputs: int) -> nn.Sequential:
    """A plain network with so many hidden layers."""
    layers: list[nn.Module] = []
    for size in [inputs, *[width] * (hidden - 1)]:
        layers += [nn.Linear(size, width), nn.SiLU()]
    return nn.Sequential(*layers, nn.Linear(width, outputs))


class PlainNet(EquivariantNet):
    """A plain MLP on all coordinates and scalars. Not equivariant; it ignores the form it is given."""

    kind = "plain"

    def build(self, width: int, depth: int) -> None:
        if self.set_like:
            raise ValueError("the plain network needs an order of the points: leave out set_like")
        inputs = self.points * (self.n + self.point_scalars) + self.sample_scalars
        self.layers = mlp(inputs, width, depth + 1, self.rep.size(self.n))

    def convex_stages(self) -> list[list[nn.Parameter]]:
        return []

    def values(self, X: Tensor, scalars: tuple[Tensor | None, Tensor | None]) -> list[Tensor]:
        given = [s.flatten(1) for s in scalars if s is not None]
        flat = self.layers(torch.cat([X.flatten(1), *given], dim=-1))
        return self.rep.split(flat.reshape(-1, *self.rep.shape(self.n)), self.n)
