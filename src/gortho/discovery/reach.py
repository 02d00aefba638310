"""The ranges of a predictor's samples: outside them it extrapolates, and warns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho.nn.framed import InFrame
from gortho.nn.invariants import Pairing, packed
from gortho.samples.errors import numbered
from gortho.samples.sampling import choose
from gortho.samples.values import Samples
from gortho.training import predict

#: Samples that the range is taken from.
ROWS = 20_000
#: A sample is far outside if one of its invariants is outside by more than this many widths of the range.
WIDTHS = 1.0
#: A constant has no width: it counts as this share of its size, far above rounding.
CONSTANT = 1e-6
#: Of predictions that are not finite: the root of a negative number in a formula, or powers that float64 cannot hold.
UNDEFINED = "{} of the predictions are no numbers: the law that predicts is not defined there, or too large"


class Extrapolated(UserWarning):
    """Predictions were asked far outside the samples that the predictor was fitted to."""


@dataclass(frozen=True, eq=False)
class Reach:
    """The ranges of the invariants that a predictor was fitted to, in its own units.

    The group moves vectors wherever it likes, so it is not the coordinates that tell whether a sample is like those of
    the fit, but the inner products and scalars, which are all that the predictor sees.
    """

    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, network: InFrame, samples: Samples) -> Reach:
        """What these samples span."""
        few = samples.rows(torch.as_tensor(choose(len(samples), ROWS, 0)))
        with collected(network) as pieces:
            predict(network, few.x, few.point_scalars, few.sample_scalars)
        seen = torch.cat(pieces)
        names = _names(network, samples)
        names = names if len(names) == seen.shape[1] else ("",) * seen.shape[1]
        return cls(names, seen.amin(0).numpy(), seen.amax(0).numpy())

    def warning(self, seen: Tensor) -> str:
        """What to say of samples with these invariants; nothing if none is far outside."""
        values = seen.numpy()
        if values.shape[1] != len(self.low):  # a set of other points
            return ""
        sizes = np.maximum(np.abs(self.low), np.abs(self.high))
        widths = np.maximum(self.high - self.low, CONSTANT * sizes)
        outside = np.maximum(self.low - values, values - self.high) / np.where(widths > 0, widths, 1.0)
        far = outside > WIDTHS
        rows = np.flatnonzero(far.any(1))
        if not len(rows):
            return ""
        row, worst = np.unravel_index(int(outside.argmax()), outside.shape)
        return (
            f"{len(rows)} of {len(values)} samples lie far outside those that the predictor was fitted to, most of all "
            f"{numbered([int(row)])}: {self.names[worst] or 'an inner product'} is {outside[row, worst]:.2g} "
            "times the width of its range beyond that range. What is predicted there is extrapolated: check units and "
            "columns, or fit to samples that reach so far"
        )


@contextmanager
def collected(network: InFrame) -> Iterator[list[Tensor]]:
    """The invariants ``(samples, k)`` of what is predicted meanwhile, piece by piece."""
    pieces: list[Tensor] = []
    net = network.net
    twice = net.turned is not None  # such networks look at each sample, and at it with axial vectors reversed
    calls = 0

    def look(_: Any, given: tuple[Any, ...]) -> None:
        nonlocal calls
        calls += 1
        if not twice or calls % 2:
            pieces.append(_flat(given, net.set_like, net.form.pairing))

    handle = net.coefficients.register_forward_pre_hook(look)
    try:
        yield pieces
    finally:
        handle.remove()


def _flat(given: tuple[Any, ...], set_like: bool, pairing: Pairing) -> Tensor:
    """Inner products and scalars of each sample side by side; of the points of a set, the least and the largest."""
    gram, point, sample = given
    if set_like:
        if isinstance(gram, tuple):  # of large sets: factors
            numbers = [(gram[0] * gram[1]).sum(-1)]
        else:
            numbers = [gram.diagonal(dim1=-2, dim2=-1), gram.flatten(1)]
        numbers += [] if point is None else point.unbind(-1)
        columns = [end(each, 1)[:, None] for each in numbers for end in (torch.amin, torch.amax)]
    else:
        columns = [packed(gram, pairing)] + ([] if point is None else [point.flatten(1)])
    return torch.cat(columns + ([] if sample is None else [sample]), -1).detach()


def _names(network: InFrame, samples: Samples) -> tuple[str, ...]:
    """What the columns of `_flat` are called."""
    net = network.net
    counts = (net.point_scalars, net.sample_scalars)
    directions = 0 if net.broken is None else len(net.broken.symmetry.directions)
    called = samples.labels.full(samples.names, samples.points, *counts, directions)
    if net.set_like:
        return ()
    pairs = combinations if net.form.pairing is Pairing.SKEW else combinations_with_replacement
    names = [f"⟨{a},{b}⟩" for a, b in pairs(called.vectors, 2)]
    if net.form.pairing is Pairing.BOTH:
        names += [f"ω({a},{b})" for a, b in combinations(called.vectors, 2)]
    return (*names, *called.scalars)
