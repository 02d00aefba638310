"""Samples that stay together: those with the same inputs, and neighbours on a trajectory.

If one of them is used for training and another for testing, any model that remembers the inputs looks good, and so does
any form: its invariants are a label of the inputs. So bundles are held out, resampled and counted as a whole.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import torch
from torch import Tensor

from gortho.samples.frame import Frame
from gortho.samples.values import Samples

#: Numbers that differ by less, as a share of themselves or of the usual size in their column, are the same.
SAME_INPUTS = 1e-12
#: Rows follow a trajectory if the median step from one to the next is below this share of a random distance …
SHORT_STEPS = 0.1
#: … and are then bundled in so many blocks.
BLOCKS = 40
#: Pairs of rows from which random distances are measured.
PAIRS = 10_000


def bundled(samples: Samples) -> tuple[Samples, list[str]]:
    """The samples with their bundles, if there are any, and a notice that says so."""
    if _follow_each_other(samples):
        blocks = torch.arange(len(samples)) // -(-len(samples) // BLOCKS)
        return replace(samples, bundles=blocks), [
            "rows that follow each other are close to each other, as on a trajectory: they are held out in "
            f"{BLOCKS} blocks; shuffle them if they are independent"
        ]
    groups = same_inputs(samples)
    different = int(groups.max()) + 1
    if different == len(samples):
        return samples, []
    told = f"{len(samples):,} samples have {different:,} different inputs: samples with the same inputs stay together"
    return replace(samples, bundles=groups), [told] if different < 0.9 * len(samples) else []


def same_inputs(samples: Samples) -> Tensor:
    """The number of its input for each sample ``(N,)``, the same number for the same inputs."""
    rows = torch.cat([t.double().flatten(1) for t in samples.inputs if t is not None], dim=1)
    usual = _usual_size(rows.abs())
    values, order = rows.sort(dim=0)
    size = values.abs()
    steps = values.diff(dim=0) > SAME_INPUTS * torch.maximum(size[1:], size[:-1]).maximum(usual)
    numbers = torch.zeros_like(order)
    numbers.scatter_(0, order[1:], steps.cumsum(0))
    return torch.unique(numbers, dim=0, return_inverse=True)[1]


def _usual_size(size: Tensor) -> Tensor:
    """The median size in each column, without zeros and their rounding; few huge numbers do not count."""
    large = size.kthvalue(-(-len(size) * 19 // 20), dim=0).values
    return size.where(size > SAME_INPUTS * large, torch.nan).nanmedian(0).values.nan_to_num(0.0)


def _follow_each_other(samples: Samples) -> bool:
    x = samples.x.double()
    z = (x @ Frame.of(x / samples.units[0]).W.mT).flatten(1)
    pairs = torch.randint(len(z), (2, PAIRS), generator=torch.Generator().manual_seed(0))
    steps, usual = (z[1:] - z[:-1]).norm(dim=1), (z[pairs[0]] - z[pairs[1]]).norm(dim=1).median()
    steps = steps[steps > 0]  # repeated inputs, one after the other, are no trajectory
    return len(steps) >= 4 * BLOCKS and bool(steps.median() < SHORT_STEPS * usual)


def order_in_parts(samples: Samples, sizes: list[int], seed: int) -> list[Tensor]:
    """The numbers of samples in random parts of about these sizes, and of all others; bundles stay whole."""
    generator = torch.Generator().manual_seed(seed)
    if samples.bundles is None:
        order = torch.randperm(len(samples), generator=generator)
        return list(order.split([*sizes, len(samples) - sum(sizes)]))
    _, bundle, counts = torch.unique(samples.bundles, return_inverse=True, return_counts=True)
    rank = torch.randperm(len(counts), generator=generator) + len(counts) * (
        counts > min(sizes)
    )  # large ones last
    rank = rank[bundle]
    order = rank.argsort(stable=True)
    bounds = [*(1 + rank[order].diff().nonzero()[:, 0]).tolist(), len(samples)]  # where bundles end
    beside = (len(samples) - int(counts.max())) // (len(sizes) + 1)  # one bundle may be most of the samples
    ends = [0]
    for left, size in zip(range(len(sizes), 0, -1), sizes):
        enough = ends[-1] + min(size, beside)
        # At least one bundle is left for each part to come.
        ends.append(min(next(end for end in bounds if end >= enough and end > ends[-1]), bounds[-1 - left]))
    return [order[start:stop] for start, stop in itertools.pairwise([*ends, len(samples)])]
