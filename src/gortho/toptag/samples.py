"""`Sample`: jets for training as padded tensors, read from files, or some of them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho.processes import OneProcess
from gortho.processes import share as own_share
from gortho.samples import DataError
from gortho.toptag.jets import BLOCK, SPLITS, Jets, open_jets


@dataclass
class Sample:
    """Jets as padded tensors: momenta ``(M, N, n)``, which of them are real ``(M, N)``, and labels ``(M,)``."""

    x: Tensor
    mask: Tensor
    label: Tensor

    @classmethod
    def of(cls, jets: Jets, rows: Any = slice(None), max_constituents: int = 64) -> Sample:
        """Chosen rows of `Jets`."""
        rows = np.atleast_1d(np.arange(len(jets))[rows])
        if len(rows) == 0:
            raise ValueError("no jet is selected: give at least one row")
        pieces = [jets.padded(rows[i : i + BLOCK], max_constituents) for i in range(0, len(rows), BLOCK)]
        x, mask = (torch.cat(part) for part in zip(*pieces))
        return cls(x, mask, torch.from_numpy(np.asarray(jets.label[rows], dtype=np.float32)))

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, rows: Tensor | slice) -> Sample:
        return Sample(self.x[rows], self.mask[rows], self.label[rows])

    def __add__(self, other: Sample) -> Sample:
        pairs = ((self.x, other.x), (self.mask, other.mask), (self.label, other.label))
        return Sample(*map(torch.cat, pairs))

    def to(self, device: Any, dtype: torch.dtype | None = None) -> Sample:
        """The same jets elsewhere."""
        return Sample(self.x.to(device, dtype), self.mask.to(device), self.label.to(device, dtype))


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


def share(sample: Sample, fraction: float, seed: int = 0, least: int = 1) -> Sample:
    """A random share of the jets, at least so many, or all if there are fewer."""
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction {fraction}: it must lie above 0 and not above 1")
    count = min(len(sample), max(least, round(fraction * len(sample))))
    if count == len(sample):
        return sample
    generator = torch.Generator().manual_seed(seed)
    return sample[torch.randperm(len(sample), generator=generator)[:count].sort().values]
