"""Networks of sets of momenta that know of no form: what invariance has to beat.

`SetNet` is a deep-sets network (as particle-flow networks are): a network for each constituent, a sum, a network of the
sum. `FlatNet` is an MLP of the leading constituents, one after another, which is what LieGG and Augerino are defined
for.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gortho.nn.pairnet import CALIBRATION
from gortho.nn.plain import mlp

#: Constituents of `FlatNet`.
LEADING = 20


class Rival(nn.Module):
    """A network of momenta in the trainer's terms: features of each constituent, standardised, then `score`."""

    form = None  # nothing that the trainer would have to treat apart
    x_scale: Tensor
    units: Tensor

    def __init__(self, features: int):
        super().__init__()
        self.register_buffer("x_scale", torch.ones(()))
        self.register_buffer("units", torch.stack([torch.zeros(features), torch.ones(features)]))

    def features(self, x: Tensor, mask: Tensor) -> Tensor:
        """Features ``(B, N, F)`` of each constituent."""
        raise NotImplementedError

    def score(self, features: Tensor, mask: Tensor) -> Tensor:
        """Logits ``(B,)``."""
        raise NotImplementedError

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = torch.where(mask[..., None], x / self.x_scale, 0.0)
        values = (self.features(x, mask) - self.units[0]) / self.units[1]
        return self.score(torch.where(mask[..., None], values, 0.0), mask)

    @torch.no_grad()
    def calibrate(self, x: Tensor, mask: Tensor) -> None:
        """Fit units to training jets."""
        x, mask = x[:CALIBRATION].to(self.x_scale), mask[:CALIBRATION].to(self.x_scale.device)
        self.x_scale.fill_(x[mask].square().mean().sqrt())
        values = self.features(torch.where(mask[..., None], x / self.x_scale, 0.0), mask)[mask]
        self.units[0], self.units[1] = values.mean(0), values.std(0).clamp(min=1e-6)


def spread_out(x: Tensor) -> Tensor:
    """Components as they are, and drawn apart where they are small: momenta span four decades."""
    return torch.cat([x, torch.asinh(30 * x), torch.asinh(1000 * x)], dim=-1)


def relative(x: Tensor, mask: Tensor) -> Tensor:
    """What particle-flow networks take: pT, its share, E, and η, φ relative to the jet (lab frame only)."""

    def polar(px: Tensor, py: Tensor, pz: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        pt = (px.square() + py.square() + 1e-12).sqrt()
        return pt, torch.asinh(pz / pt), torch.atan2(py, px)

    energy, px, py, pz = x.unbind(-1)
    px = torch.where(mask, px, 1.0)  # padding has no angle
    energy = torch.where(mask, energy, 1.0).clamp(min=1e-9)
    pt, eta, phi = polar(px, py, pz)
    jet_pt, jet_eta, jet_phi = polar(*x.sum(1, keepdim=True)[..., 1:].unbind(-1))
    turn = torch.remainder(phi - jet_phi + math.pi, 2 * math.pi) - math.pi
    rest = [eta - jet_eta, turn, (pt / jet_pt).log(), pt.log(), energy.log(), pt / jet_pt]
    return torch.stack(rest, dim=-1)


class SetNet(Rival):
    """Σ_i φ(x_i), then ρ: permutation-invariant, otherwise unconstrained.

    Args:
        inputs: "momenta" (E, px, py, pz, as they come, in any frame) or "relative" (pT, and η, φ about the jet's axis:
            a person's knowledge of the laboratory, not of the Lorentz group).
        width: of all layers.
    """

    def __init__(self, inputs: str = "momenta", width: int = 88, seed: int = 0):
        if inputs not in ("momenta", "relative"):
            raise ValueError(f"inputs = {inputs!r}: choose momenta or relative")
        count = 12 if inputs == "momenta" else 6
        super().__init__(count)
        self.inputs = inputs
        self.register_buffer("typical", torch.tensor(50.0))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.each = mlp(count, width, 2, width)
            self.whole = mlp(width, width, 2, 1)

    typical: Tensor

    def features(self, x: Tensor, mask: Tensor) -> Tensor:
        return spread_out(x) if self.inputs == "momenta" else relative(x, mask)

    def score(self, features: Tensor, mask: Tensor) -> Tensor:
        total = torch.where(mask[..., None], self.each(features), 0.0).sum(1)
        return self.whole(total / self.typical)[:, 0]


class FlatNet(Rival):
    """An MLP of the leading constituents, sorted by pT, one after another."""

    def __init__(self, width: int = 96, seed: int = 0):
        super().__init__(12)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.layers = mlp(12 * LEADING, width, 2, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return super().forward(x[:, :LEADING], mask[:, :LEADING])

    def features(self, x: Tensor, mask: Tensor) -> Tensor:
        return spread_out(x)

    def score(self, features: Tensor, mask: Tensor) -> Tensor:
        flat = features.flatten(1)
        return self.layers(nn.functional.pad(flat, (0, 12 * LEADING - flat.shape[1])))[:, 0]
