"""Networks that know of no form, on the same jets with the same training: what invariance has to beat.

`SetNet` is a deep-sets network (as particle-flow networks are): a network for each constituent, a sum, a network of the
sum. `FlatNet` is an MLP of the leading constituents, one after another, which is what LieGG and Augerino are defined
for. The paper does not say what its networks for jets take or how they are trained; all of this is ours. Both train in
`gortho.studies.toptag.train.train`, like the tagger.

LieGG, official: stack the infinitesimal law of a trained network, take singular vectors. Ours: it is read off the
logit, for traceless generators (`gortho.studies.baselines.LieGG`), of any network here.

Augerino, official: random g = exp(Σ ε_i w_i G_i) on the inputs, a reward λ‖w‖, averages in predictions. Ours: a
logistic loss, the same g for all constituents of a jet, λ chosen on validation jets in short runs, and otherwise what
`gortho.studies.baselines.augerino` says.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from gortho.nn.pairnet import CALIBRATION
from gortho.nn.plain import mlp
from gortho.studies.baselines.augerino import Augmentation
from gortho.studies.baselines.liegg import LieGG
from gortho.studies.toptag.samples import Sample
from gortho.studies.toptag.train import train as fit
from gortho.training.checkpoints import Ended, History

#: Constituents of `FlatNet`.
LEADING = 20
#: A width of Augerino's earns no more reward beyond this (as in `gortho.studies.baselines.Augerino`).
LIMIT = 0.3
#: Strengths λ to choose from, and transformations to average over in predictions.
STRENGTHS = (0.003, 0.01, 0.03)
AVERAGING = 16
#: Peak learning rates of the network and of the generators with their widths.
LR, GENERATOR_LR = 3e-3, 1e-2
#: Jets on which LieGG stacks the law.
LAW_JETS = 2000


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


def read_generators(net: Rival, sample: Sample) -> LieGG:
    """LieGG on a trained network: its six generators, read off the logit in float64."""
    exact = copy.deepcopy(net).cpu().double().eval()
    some = sample[:LAW_JETS].to("cpu", torch.float64)
    reading = LieGG("scalar")
    reading.analyse(lambda x: exact(x, some.mask), some.x)
    return reading


class Augmented(nn.Module):
    """A rival under random transformations: one for each jet in training, an average over fixed ones otherwise."""

    def __init__(self, net: Rival, kind: str = "box", seed: int = 0):
        super().__init__()
        self.net, self.seed = net, seed
        self.augmentation = Augmentation(4, kind, seed=seed)

    @property
    def x_scale(self) -> Tensor:
        """Tells `logits` where the network lives."""
        return self.net.x_scale

    def calibrate(self, x: Tensor, mask: Tensor) -> None:
        """Fit the network's units to training jets."""
        self.net.calibrate(x, mask)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if self.training:
            return self.moved(x, mask, None)
        generator = torch.Generator().manual_seed(1_000_003 * self.seed + 2)
        return torch.stack([self.moved(x, mask, generator) for _ in range(AVERAGING)]).mean(0)

    def moved(self, x: Tensor, mask: Tensor, generator: torch.Generator | None) -> Tensor:
        """Scores of jets gx, one random g for each."""
        number = (len(x), len(self.augmentation.raw))
        epsilon = 2 * torch.rand(number, generator=generator) - 1
        g = self.augmentation(epsilon.to(x))
        return self.net(x @ g.mT, mask)


def train_augerino(
    make: Callable[[], Rival],
    kind: str,
    train: Sample,
    validation: Sample,
    *,
    epochs: int,
    batch_size: int,
    seed: int = 0,
    device: Any = "cpu",
) -> tuple[Augmented, History, float]:
    """Choose λ in runs of a fifth of the epochs, then train; returns network, history and λ."""

    def once(strength: float, epochs: int) -> tuple[Augmented, History]:
        net = Augmented(make(), kind, seed).to(device)
        history = fit(
            net,
            train,
            validation,
            epochs=epochs,
            batch_size=batch_size,
            average=0.0,
            graph=False,
            seed=seed,
            progress=False,
            kinds=[
                {"params": list(part.parameters()), "peak": peak}
                for part, peak in ((net.net, LR), (net.augmentation, GENERATOR_LR))
            ],
            penalty=lambda: -strength * net.augmentation.reward(LIMIT),
        )
        if history.how is Ended.INTERRUPTED:
            raise KeyboardInterrupt
        return net, history

    started = time.perf_counter()
    trials = {s: once(s, max(1, epochs // 5))[1].best_validation for s in STRENGTHS}
    best = min(trials, key=trials.__getitem__)
    net, history = once(best, epochs)
    history.seconds = time.perf_counter() - started
    return net, history, best


#: Networks that know of no form, by what tables call them, made for a width and a seed.
NETWORKS: dict[str, Callable[[int, int], Rival]] = {
    "MLP of leading momenta": FlatNet,
    "set network, momenta": partial(SetNet, "momenta"),
    "set network, η and φ about the jet": partial(SetNet, "relative"),
}
FLAT, MOMENTA, RELATIVE = NETWORKS
#: What LieGG reads off each of them, and the generators of Augerino.
READINGS = dict(
    zip(
        NETWORKS,
        ("LieGG on the MLP", "LieGG on the set network, momenta", "LieGG on the set network, η and φ"),
    )
)
AUGERINO = {"Augerino, box": "box", "Augerino, learnt generators": "learnt"}
