"""One problem on its way through the stages: the parts of the data, the output, the sizes of the work."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gortho.checkpoints import History
from gortho.discovery.joint import Settings, search
from gortho.discovery.replicas import Data
from gortho.nn.exact import EquivariantNet
from gortho.reps import Rep
from gortho.training import fit

#: Final fits go through the samples at least so often: with many samples a fixed number of steps would be too few.
PASSES = 50


def as_data(parts: tuple, rows: Tensor) -> list[Tensor | None]:
    return [None if part is None else torch.as_tensor(part)[rows] for part in parts]


def single(data: Data) -> list[Tensor | None]:
    return [None if t is None else t.float() for t in data]


class Clock:
    """Sizes of the work: fixed by the settings, or cut down to a time budget after timing a few steps."""

    def __init__(self, settings: Settings, budget: float | None):
        if budget is not None and budget <= 0:
            raise ValueError(f"time_budget = {budget}: give seconds above zero")
        self.settings, self.budget = settings, budget
        self.share = 1.0
        self.polish = 100

    def fit(self, white: list[list[Tensor | None]], options: dict[str, Any], seed: int) -> Settings:
        """The settings that fit the budget."""
        if self.budget is None:
            return self.settings
        trial = replace(self.settings, steps=8, drops=())
        start = time.perf_counter()
        search(
            white[0],
            white[1],
            options,
            extra=[],
            settings=trial,
            seed=seed,
            progress=lambda share, line: None,
        )
        step = (time.perf_counter() - start) / 8
        # Search, refits and the rest take about as long as the search alone would without dropping.
        self.share = min(1.0, self.budget / (3.0 * step * self.settings.steps * 0.5 + 1e-9))
        self.polish = max(10, int(100 * self.share))
        return replace(
            self.settings,
            steps=max(60, int(self.settings.steps * self.share)),
            refit_steps=max(60, int(self.settings.refit_steps * self.share)),
        )

    @property
    def steps(self) -> int:
        """Steps of the final fits, fewer for a small budget."""
        return max(50, int(self.settings.predictor_steps * self.share))


@dataclass
class Problem:
    """Data in three parts, and how to fit networks to it; the held-out part is for judging only."""

    train: Data
    validation: Data
    held_out: Data
    rep: Rep
    options: dict[str, Any]  # points, scalars and order, as the networks take them
    clock: Clock
    seed: int

    def fit(self, net: EquivariantNet, lr: float) -> History:
        """Train a network on the training part; every model is given the same effort."""
        return fit_predictor(net, self.train, self.validation, self.clock, lr, self.seed)


def fit_predictor(
    net: EquivariantNet,
    train: Data,
    validation: Data,
    clock: Clock,
    lr: float,
    seed: int,
    calibrate: bool = True,
) -> History:
    """A final fit: steps of Adam, all of them since the cosine pays at its end, then second-order steps."""
    x, y, *scalars = single(train)
    assert x is not None
    samples = len(x)
    batch_size = min(256, max(16, samples // 6))
    return fit(
        net,
        x,
        y,
        point_scalars=scalars[0],
        sample_scalars=scalars[1],
        validation=tuple(single(validation)),
        epochs=max(5, int(PASSES * clock.share), math.ceil(clock.steps * batch_size / samples)),
        batch_size=batch_size,
        lr=lr,
        polish=max(10, int(clock.polish * min(2.0, max(0.5, 2_000 / samples)))),
        seed=seed,
        calibrate=calibrate,
        progress=False,
    )
