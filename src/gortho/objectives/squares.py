"""Squared errors of the targets, absolute or relative to their size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from gortho.nn.exact import EquivariantNet
from gortho.objectives.objective import (
    Errors,
    Loss,
    Objective,
    mean_target,
    of_order_one,
    weighted_mean,
)
from gortho.samples.values import Samples

#: Relative errors count from this quantile of the targets' sizes on.
RELATIVE_FROM = 0.25
#: Errors count as relative, in fits and comparisons, where targets at the higher of these quantiles of size …
SIZES = (0.25, 0.95)
#: … are larger than those at the lower one by this factor.
DECADE = 10.0


@dataclass(frozen=True)
class SquaredErrors(Objective):
    """Squared errors of the targets."""

    least_squares: ClassVar[bool] = True

    def each(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean square of the errors of each sample's entries."""
        rows = len(target)
        return (output.reshape(rows, -1) - target.reshape(rows, -1)).square().mean(1)

    def constant(self, samples: Samples) -> Tensor:
        """The mean of the targets, by weights."""
        return mean_target(samples)

    def start(self, net: EquivariantNet, samples: Samples) -> None:
        """Units of inputs and outputs."""
        net.calibrate(samples.x, samples.y, *samples.scalars)

    def loss(self, net: EquivariantNet) -> Loss:
        """Mean squared error in units of each output part's own scale, as found by `calibrate`."""
        rep, n = net.rep, net.n

        def loss(output: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
            pairs = zip(rep.split(output, n), rep.split(target, n))
            errors = [
                weighted_mean(((p - t) / net.y_scale[i]).square(), weights) for i, (p, t) in enumerate(pairs)
            ]
            return torch.stack(errors).mean()

        return loss

    def chance(self, parts: Sequence[Samples]) -> tuple[np.ndarray, float]:
        """Squared deviations of the held-out samples from the mean, and the variance of all samples."""
        everyone = Samples.cat(parts)
        variance = float(self.deviations(everyone, everyone).mean())
        return self.deviations(parts[2], parts[0]), max(variance, 1e-300)


@dataclass(frozen=True)
class RelativeErrors(SquaredErrors):
    """Squared errors of the targets, relative to their size.

    Scalars are invariants, and so is every function of them: relative errors of y are absolute ones of asinh(y/s).
    Tensors keep their targets and get weights.
    """

    errors: ClassVar[Errors] = Errors.RELATIVE

    def prepared(self, samples: Samples) -> Samples:
        """Numbers by their logarithms, nearly, and tensors with weights; of order one."""
        done = of_order_one(samples, lambda v: torch.asinh(v / _positive_quantile(v.abs(), RELATIVE_FROM)))
        if not any(part.rank for part in samples.rep.parts):
            return done
        weights = relative_weights(done, done)
        size = (weights / weights.mean() * done.y.reshape(len(done), -1).square().mean(1)).mean().sqrt()
        return replace(done, y=done.y / size, weights=weights)

    def final(self, parts: Sequence[Samples], given: Sequence[Samples]) -> Sequence[Samples]:
        """The parts with weights by which errors are relative.

        Targets that are all of about one size keep absolute errors, so that shares are those of the variance.
        """
        if not spans_decades(parts[0]):
            return parts
        return [replace(s, weights=relative_weights(s, parts[0])) for s in parts]


ABSOLUTE, RELATIVE = SquaredErrors(), RelativeErrors()
#: Squared errors by how they count.
SQUARES = {objective.errors: objective for objective in (ABSOLUTE, RELATIVE)}


def spans_decades(samples: Samples) -> bool:
    """Whether sizes of targets differ by more than a factor of ten, but for the few smallest and largest."""
    y = samples.y.reshape(len(samples), -1).norm(dim=1)
    low, high = torch.quantile(y[:10_000], torch.tensor(SIZES, dtype=y.dtype)).tolist()
    return high > DECADE * low


def relative_weights(samples: Samples, like: Samples) -> Tensor:
    """Weights by which squared errors become relative ones, beside given weights; ``like`` tells usual sizes."""
    size, usual = (s.y.reshape(len(s), -1).square().mean(1) for s in (samples, like))
    least = _positive_quantile(usual, RELATIVE_FROM).clamp_min(1e-6 * float(usual.mean()))
    scale = (1 / (least + usual)).mean()
    relative = 1 / (least + size) / scale
    return samples.by_weight(relative)


def _positive_quantile(sizes: Tensor, share: float) -> Tensor:
    positive = sizes[sizes > 0].sort().values
    return positive[int(share * len(positive))] if len(positive) else sizes.new_ones(())
