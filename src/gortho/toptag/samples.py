"""Jets for training: read from files, or some of them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho.processes import OneProcess
from gortho.processes import share as own_share
from gortho.samples import DataError
from gortho.toptag.jets import SPLITS, open_jets
from gortho.toptag.train import Sample


def load(
    paths: Sequence[Path], constituents: int = 64, jets: int | None = None, fabric: Any = None
) -> tuple[Sample, Sample, Sample]:
    """Training, validation and test jets of all files together; each file has those that it has.

    With ``jets`` that many are picked at random, always the same ones, in the shares that the splits have. Of several
    processes (torchrun) each reads its own part of the training and validation jets, and all of the test jets.
    """
    sets = [open_jets(Path(path)) for path in paths]
    rows = [[jets_.split(name) for name in SPLITS] for jets_ in sets]
    counts = [sum(len(r[s]) for r in rows) for s in range(len(SPLITS))]
    for name, count in zip(SPLITS, counts):
        if not count:
            given = ", ".join(str(path) for path in paths)
            raise DataError(
                f"there are no {name} jets in {given or 'no files'}: give data that has all three splits "
                "(an .npz needs an array split with 0 train, 1 validation, 2 test)"
            )
    keep = 1.0 if jets is None else jets / sum(counts)
    if keep > 1:
        raise DataError(f"{jets} jets are asked for and there are {sum(counts)}: ask for at most that many")
    joined = []
    for s, (name, count) in enumerate(zip(SPLITS, counts)):
        wanted = max(1, round(keep * count))
        some = np.random.default_rng(s).permutation(count)[:wanted]
        some = np.sort(some if name == "test" else own_share(some, fabric or OneProcess()))
        parts, first = [], 0
        for jets_, own in zip(sets, rows):
            mine = some[(some >= first) & (some < first + len(own[s]))] - first
            first += len(own[s])
            if len(mine):
                parts.append(Sample.of(jets_, own[s][mine], constituents))
        sample = functools.reduce(operator.add, parts)
        if sample.label.min() == sample.label.max():
            raise DataError(f"the {len(sample)} {name} jets are all of one class: give more jets, of both")
        _check(sample, name)
        joined.append(sample)
    return joined[0], joined[1], joined[2]


def _check(sample: Sample, name: str) -> None:
    """What `Jets.verify` would say of values that no training survives."""
    good = sample.x.flatten(1).isfinite().all(1)
    if not good.all():
        raise DataError(
            f"{int((~good).sum())} of the {len(sample)} {name} jets have momenta that are not finite in float32: "
            "remove them (gortho data toptag summary --verify names the first)"
        )
    other = sample.label[(sample.label != 0) & (sample.label != 1)]
    if len(other):
        raise DataError(f"a label of the {name} jets is {other[0]:g}: give 1 for top and 0 for QCD")


def take(sample: Sample, rows: Tensor | slice) -> Sample:
    """Some of the jets."""
    return Sample(sample.x[rows], sample.mask[rows], sample.label[rows])


def share(sample: Sample, fraction: float, seed: int = 0, least: int = 1) -> Sample:
    """A random share of the jets, at least so many, or all if there are fewer."""
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction {fraction}: it must lie above 0 and not above 1")
    count = min(len(sample), max(least, round(fraction * len(sample))))
    if count == len(sample):
        return sample
    generator = torch.Generator().manual_seed(seed)
    return take(sample, torch.randperm(len(sample), generator=generator)[:count].sort().values)
