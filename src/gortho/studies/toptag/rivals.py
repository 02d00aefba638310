"""Networks that know of no form, on the same jets with the same training: what invariance has to beat.

They are those of `gortho.studies.baselines.sets`, trained in `gortho.studies.toptag.train.train` like the tagger. The
paper does not say what its networks for jets take or how they are trained; all of this is ours.

LieGG, official: stack the infinitesimal law of a trained network, take singular vectors. Ours: it is read off the
logit, for traceless generators (`gortho.studies.baselines.LieGG`), of any network here.

Augerino, official: random g = exp(Σ ε_i w_i G_i) on the inputs, a reward λ‖w‖, averages in predictions. Ours: a
logistic loss, the same g for all constituents of a jet, λ chosen on validation jets in short runs, and otherwise what
`gortho.studies.baselines.augerino` says.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from gortho.studies.baselines.augerino import Augmentation
from gortho.studies.baselines.liegg import LieGG
from gortho.studies.baselines.sets import FlatNet, Rival, SetNet
from gortho.studies.toptag.samples import Sample
from gortho.studies.toptag.train import train as fit
from gortho.training.checkpoints import Ended, History

#: A width of Augerino's earns no more reward beyond this (as in `gortho.studies.baselines.Augerino`).
LIMIT = 0.3
#: Strengths λ to choose from, and transformations to average over in predictions.
STRENGTHS = (0.003, 0.01, 0.03)
AVERAGING = 16
#: Peak learning rates of the network and of the generators with their widths.
LR, GENERATOR_LR = 3e-3, 1e-2
#: Jets on which LieGG stacks the law.
LAW_JETS = 2000


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
