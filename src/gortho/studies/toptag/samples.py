"""`Sample`: jets for training as padded tensors, read from files, or some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho.samples import DataError
from gortho.studies.toptag.jets import BLOCK, SPLITS, Jets
from gortho.training.processes import OneProcess
from gortho.training.processes import share as own_share


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
    every = Jets.cat([Jets.open(path) for path in paths])
    parts = {name: every.split(name) for name in SPLITS}
    for name, rows in parts.items():
        if not len(rows):
            raise DataError(
                f"there are no {name} jets in {', '.join(map(str, paths))}: give data that has all three splits "
                "(an .npz needs an array split with 0 train, 1 validation, 2 test)"
            )
    keep = 1.0 if jets is None else jets / len(every)
    if keep > 1:
        raise DataError(f"{jets} jets are asked for and there are {len(every)}: ask for at most that many")
    found = []
    for seed, (name, rows) in enumerate(parts.items()):
        some = np.random.default_rng(seed).permutation(len(rows))[: max(1, round(keep * len(rows)))]
        mine = np.sort(some if name == "test" else own_share(some, fabric or OneProcess()))
        found.append(Sample.of(every, rows[mine], constituents))
        _check(found[-1], name)
    return found[0], found[1], found[2]


def _check(sample: Sample, name: str) -> None:
    """What no training survives."""
    good = sample.x.flatten(1).isfinite().all(1)
    if not good.all():
        raise DataError(
            f"{int((~good).sum())} of the {len(sample)} {name} jets have momenta that are not finite in float32: "
            "remove them (gortho data toptag summary --verify names the first)"
        )
    other = sample.label[(sample.label != 0) & (sample.label != 1)]
    if len(other):
        raise DataError(f"a label of the {name} jets is {other[0]:g}: give 1 for top and 0 for QCD")
    if sample.label.min() == sample.label.max():
        raise DataError(f"the {len(sample)} {name} jets are all of one class: give more jets, of both")


def share(sample: Sample, fraction: float, seed: int = 0, least: int = 1) -> Sample:
    """A random share of the jets, at least so many, or all if there are fewer."""
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction {fraction}: it must lie above 0 and not above 1")
    count = min(len(sample), max(least, round(fraction * len(sample))))
    if count == len(sample):
        return sample
    generator = torch.Generator().manual_seed(seed)
    return sample[torch.randperm(len(sample), generator=generator)[:count].sort().values]
