"""The paper's own networks, kept to reproduce it and to show what they are not (M4, M5).

f(x) = φ_s(x₁/‖x₁‖_A)·φ_n(Gram) with φ_s free (`PaperNet`), or φ_s the reflection that aligns x₁ with a fixed
reference (`HouseholderNet`; for conjugation this is the symmetric form φ_s φ_n φ_s of Proposition 5.1). φ_n is
free in both, so neither is equivariant: measure it with `gortho.testing.equivariance_error`. For more than one
vector they cannot even represent f(x₁, x₂) = x₂.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gortho.groups import align_unit
from gortho.nn.exact import EquivariantNet
from gortho.nn.invariants import GatedMLP, packed

#: x₁ is divided by √|q(x₁)|, for vectors of unit scale never by less than this; `clamped` counts how often.
SMALLEST_NORM = 1e-3


class PaperNet(EquivariantNet):
    """The paper's decomposition with a learnt φ_s (Theorems 4.2 and 4.4). Not equivariant."""

    kind = "paper"
    takes_symmetries = False

    def build(self, width: int, depth: int) -> None:
        if self.set_like:
            raise ValueError("the paper's form singles out the first vector: it cannot take a set")
        scalars = self.points * self.point_scalars + self.sample_scalars
        invariants = self.points * (self.points + 1) // 2 + scalars
        size = self.rep.size(self.n)
        self.norm_net = nn.Sequential(GatedMLP(invariants, width, depth), nn.Linear(width, size))
        if any(part.rank for part in self.rep.parts):
            self.build_scale_net(width, depth)

    def convex_stages(self) -> list[list[nn.Parameter]]:
        return [list(self.norm_net[1].parameters())]

    def build_scale_net(self, width: int, depth: int) -> None:
        """Make φ_s."""
        self.scale_net = nn.Sequential(GatedMLP(self.n, width, depth), nn.Linear(width, self.n**2))
        last: Any = self.scale_net[1]
        with torch.no_grad():  # start near the identity, so that φ_s⁻¹ exists
            last.weight.mul_(0.1)
            last.bias.copy_(torch.eye(self.n).flatten())

    def unit(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """x₁/√|q(x₁)| and q(x₁)."""
        q = self.form.gram(X[:, :1])[:, 0]
        return X[:, 0] / q.abs().sqrt().clamp_min(SMALLEST_NORM), q

    @torch.no_grad()
    def clamped(self, x: Tensor) -> int:
        """How many samples have their first vector so near the null cone that its norm was clamped."""
        return int((self.unit(self._tuples(x) / self.x_scale)[1].abs().sqrt() < SMALLEST_NORM).sum())

    def scale_invariant(self, X: Tensor) -> Tensor:
        """φ_s ``(batch, n, n)``."""
        return self.scale_net(self.unit(X)[0]).unflatten(-1, (self.n, self.n))

    def values(self, X: Tensor, scalars: tuple[Tensor | None, Tensor | None]) -> list[Tensor]:
        gram = packed(self.form.gram(X)) / self.n**0.5
        given = [s.flatten(1) for s in scalars if s is not None]
        flat = self.norm_net(torch.cat([gram, *given], dim=-1))
        phi_n = self.rep.split(flat.reshape(-1, *self.rep.shape(self.n)), self.n)
        if not any(part.rank for part in self.rep.parts):
            return phi_n
        g = self.scale_invariant(X)
        return [part.act_unchecked(g, v) for part, v in zip(self.rep.parts, phi_n)]


class HouseholderNet(PaperNet):
    """The paper's decomposition with φ_s the aligning reflection of M3. Not equivariant, since φ_n is free."""

    kind = "householder"

    def build_scale_net(self, width: int, depth: int) -> None:
        """φ_s has no weights."""

    def scale_invariant(self, X: Tensor) -> Tensor:
        A = self.form.matrix()
        unit, q = self.unit(X)
        # References: eigenvectors at the two ends of the spectrum, held still while A learns, scaled to q(e) = ±1.
        ends = torch.linalg.eigh(A.detach())[1][..., [0, -1]].mT
        e = ends / ((ends @ A) * ends).sum(-1, keepdim=True).abs().sqrt()
        return align_unit(unit, torch.where(q > 0, e[1], e[0]), A)
