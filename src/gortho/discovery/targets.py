"""Targets as the search sees them: of order one, for absolute or for relative errors."""

from __future__ import annotations

import enum
from dataclasses import replace

import torch
from torch import Tensor

from gortho.samples.values import Samples

#: Relative errors count from this quantile of the targets' sizes on.
RELATIVE_FROM = 0.25


class Errors(enum.Enum):
    """What a fit makes small: errors of the targets, or errors relative to their size."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"


def prepared(samples: Samples, errors: Errors) -> Samples:
    """Targets of order one, and weights, for these errors; samples in their frame.

    Scalars are invariants, and so is every function of them: relative errors of y are absolute ones of asinh(y/s).
    Tensors keep their targets and get weights.
    """
    rep, y = samples.rep, samples.y
    parts = rep.split(y, samples.n)
    done = []
    for part, v in zip(rep.parts, parts):
        if part.rank == 0:
            if errors is Errors.RELATIVE:
                v = torch.asinh(v / _positive_quantile(v.abs(), RELATIVE_FROM))
            v = v - v.median()
        done.append(v / v.square().mean().sqrt().clamp_min(1e-300))
    y = rep.join(done)
    done_samples = replace(samples, y=y)
    if errors is Errors.RELATIVE and any(part.rank for part in rep.parts):
        weights = relative_weights(done_samples, done_samples)
        size = (weights / weights.mean() * y.reshape(len(y), -1).square().mean(1)).mean().sqrt()
        return replace(done_samples, y=y / size, weights=weights)
    return done_samples


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
