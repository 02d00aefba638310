"""More rows than memory holds: one pass collects moments, and the search gets a sample and better starts.

The pass reads all rows once, alone or on the workers of a Dask cluster. It keeps a uniform sample of bounded size, the
ranges of the columns, and the moments from which correlations are computed (M11), so that the correlation start uses
all rows. Search, fits and verdict then work with the sample.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho import checks
from gortho.discovery.clock import BUDGET, affordable, within_budget
from gortho.discovery.correlation import SPLINES, Moments, scalar_values, spline_values, varying
from gortho.discovery.starts import SCALARS, Start
from gortho.discovery.workers import one_thread
from gortho.forms import QuadraticForm
from gortho.samples.chunks import Chunks
from gortho.samples.door import as_targets
from gortho.samples.errors import DataError, listed
from gortho.samples.files import Dataset, checked, missing_notice, named, open_chunks, shaped
from gortho.samples.frame import Frame
from gortho.samples.sampling import Limits, available_memory
from gortho.samples.stream import Plan, Progress, Totals, scan
from gortho.samples.values import Samples
from gortho.samples.wanted import Columns, Wanted

#: More samples than this are thinned at random, with a notice, unless the caller asks for more.
MAX_SAMPLES = 50_000

#: Rows of the first look, which the frame and the ranks of the pass are taken from.
FIRST_LOOK = 20_000
#: Quantiles from which ranks are computed.
QUANTILES = 1_001
#: Correlations are added up in this many rows at a time, which stay in the processor's cache.
AT_A_TIME = 8_192
#: Correlations are added up where a sample has no more monomials and functions than this.
MOST_COLUMNS = 1_200
#: Forms that are started from.
FORMS = 3
#: A range in all rows this many times that of the sample is reported.
WIDER = 10.0


@dataclass(frozen=True)
class Correlating:
    """How blocks of rows become moments (M11): in which frame, with which functions of y.

    Ranks come from quantiles of the first look. They need not be exact: any smooth functions of y will do.
    """

    n: int
    output: Any
    frame: Frame
    scalars: Tensor  # which of the numbers made of x and y are correlated with
    quantiles: Tensor  # of each of them

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray, output: Any) -> Correlating | None:
        """Built from some rows; None if there is nothing to correlate, or too much."""
        n = x.shape[-1]
        frame = Frame.of(torch.as_tensor(x))
        values = scalar_values(_samples(x, y, output).in_frame(frame))
        scalars = varying(values).nonzero()[:SCALARS, 0]
        m = x[0].size
        if not len(scalars) or m * (m + 1) // 2 + m + SPLINES * len(scalars) > MOST_COLUMNS:
            return None
        shares = torch.linspace(0, 1, QUANTILES, dtype=torch.float64)
        return cls(n, output, frame, scalars, torch.quantile(values[:, scalars], shares, dim=0))

    def __call__(self, x: np.ndarray, y: np.ndarray | None) -> Moments:
        """The moments of a block, as (1, monomials, functions of the first scalar, of the second, …)."""
        assert y is not None
        x = x.reshape(len(x), -1, self.n)
        parts = [
            self._moments(x[k : k + AT_A_TIME], y[k : k + AT_A_TIME]) for k in range(0, len(x), AT_A_TIME)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def _moments(self, x: np.ndarray, y: np.ndarray) -> Moments:
        samples = _samples(x, y, self.output).in_frame(self.frame)
        values = scalar_values(samples)[:, self.scalars]
        shares = np.linspace(0, 1, QUANTILES)
        functions = []
        for value, quantiles in zip(values.unbind(1), self.quantiles.unbind(1)):
            ranks = np.nan_to_num(np.interp(value.numpy(), quantiles.numpy(), shares), nan=0.5)
            functions.append(spline_values(torch.as_tensor(ranks), SPLINES))
        return Moments.of(samples.x, torch.cat(functions, 1) if len(functions) > 1 else functions[0])

    def forms(self, moments: Moments) -> tuple[QuadraticForm, ...]:
        """The forms, in the given coordinates, that correlate best; the best first."""
        m = moments.points * moments.n
        size = 1 + m * (m + 1) // 2 + m
        found = []
        for k in range(len(self.scalars)):
            pick = torch.cat([torch.arange(size), size + SPLINES * k + torch.arange(SPLINES)])
            found += replace(moments, total=moments.total[pick][:, pick]).correlations()
        found.sort(key=lambda c: -c.strength * c.share)
        return tuple(self.frame.form_out(c.A) for c in found[:FORMS])


def _samples(x: np.ndarray, y: np.ndarray, output: Any) -> Samples:
    x = x.reshape(len(x), -1, x.shape[-1])
    targets, rep = as_targets(y, output, x.shape[-1])
    return Samples(torch.as_tensor(x), torch.as_tensor(targets), rep)


@dataclass(frozen=True, eq=False)
class Survey:
    """A file or folder prepared for a discovery: a sample, and what a pass over all rows collected.

    Attributes:
        data: the samples: all rows if they are few, otherwise a random subset.
        totals: sums and ranges over all rows; None if `data` has all of them.
        forms: the forms that correlate best with functions of y over all rows (M11), in the given coordinates.
    """

    data: Dataset
    totals: Totals | None = None
    forms: tuple[QuadraticForm, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows in the source, whether they are in the sample or not."""
        return len(self.data.X) if self.totals is None else self.totals.rows

    def starts(self, frame: Frame) -> list[Start]:
        """The forms to start from, in a frame."""
        return [Start("correlation of all rows", frame.form_in(form)) for form in self.forms]


def allowed(
    time_budget: float | None,
    max_samples: int | None,
    seed: int,
    memory: int | None = None,
    read: int | None = None,
) -> Limits:
    """The maximum number of rows of a discovery: as requested, as the time budget allows, as fits in memory.

    A survey that has ``read`` rows has already thinned them to the budget that was available then.
    """
    most = MAX_SAMPLES if read is None else read
    time_budget = None if time_budget is None else checks.seconds(time_budget)
    asked = most if max_samples is None else checks.whole(max_samples, "max_samples", 2)
    rows = affordable(time_budget, asked) if read is None else min(asked, within_budget(time_budget, read))
    return Limits(rows, memory, seed, why=Limits.why if rows == asked else BUDGET)


def survey(
    path: str | os.PathLike[str],
    *,
    x: str | Sequence[str] | None = None,
    y: str | Sequence[str] | None = None,
    scalars: str | Sequence[str] | None = None,
    points: int | None = None,
    output: str = "scalar",
    scalars_per_point: bool = False,
    decimal: str = ".",
    max_samples: int | None = None,
    memory_budget: int | None = None,
    seed: int = 0,
    weight: Columns = None,
    y_error: Columns = None,
    derivative: Columns = None,
    by: Columns = None,
    drop: Columns = None,
    dropna: bool = False,
    dims: Sequence[int] | None = None,
    time_budget: float | None = None,
    client: Any = None,
    progress: Progress | None = None,
) -> Survey:
    """Read a file or a folder of Parquet files of any size, for `discover`.

    If there are at most `max_samples` rows (50,000 by default), all are used. If there are more, one pass over all rows
    keeps a random sample of that size, and finds forms to start from. Memory holds the sample and a block of the file.

    Args:
        path: a file, or a folder of Parquet files, with all columns in each.
        x, y, scalars, points, output, scalars_per_point, decimal, memory_budget: as in `gortho.samples.read`.
        weight, y_error, derivative, by, drop, dropna, dims: likewise. Trajectories are read whole.
        max_samples: maximum number of rows to keep.
        time_budget: seconds for the discovery; fewer rows are kept if it is short.
        seed: the same seed selects the same rows, however the file is read.
        client: a `dask.distributed.Client`, whose workers read the pieces of the source under the same paths.
        progress: called with the number of rows read so far and, if known, of all rows.

    Use it as ``seen = gortho.survey("jets", x="E,px:pz", y="mass")``, and then
    ``gortho.discover(seen.data.X, seen.data.y, known=seen)``.
    """
    path, seed = Path(path).expanduser(), checks.seed(seed)
    budget = available_memory() if memory_budget is None else memory_budget
    wanted = Wanted(
        x, y, scalars, weight, y_error, derivative, by, drop, True, decimal,
        points, output, scalars_per_point, dropna, dims,
    )  # fmt: skip
    chunks = open_chunks(path, wanted, budget)
    limits = allowed(time_budget, max_samples, seed, budget)
    with named(path):
        limit = limits.rows(chunks.width)
        if derivative is not None or chunks.at_most(limit):
            return Survey(checked(chunks.draw(Limits(every=True)), wanted, str(path), limits))
        few = shaped(chunks.raw(*chunks.first_look(FIRST_LOOK)), wanted)
        if few.y is None:
            raise DataError("there are no targets: name them by y=")
        # Functions of the codes of classes are those of the classes.
        kind = "scalar" if wanted.labels else output
        correlating = (
            None if dims else Correlating.of(few.X, few.y, kind)
        )  # several forms: none for all columns
        with one_thread():
            totals = scan(chunks, Plan(limit, seed, correlating), client, progress)
        values, rows = totals.kept.in_order()
        data = checked(chunks.raw(values, rows), wanted, str(path), limits)
    left_out = [missing_notice(totals.missing, totals.rows + totals.missing)] if totals.missing else []
    if totals.rows <= limit:  # without those that are left out, there are few
        return Survey(replace(data, notices=[*data.notices, *left_out]))
    forms = () if correlating is None else correlating.forms(totals.also)
    notices = [thinned(limits, totals, chunks, bool(forms)), *beyond(totals, chunks)]
    return Survey(replace(data, notices=[*notices, *data.notices, *left_out]), totals, forms)


def thinned(limits: Limits, totals: Totals, chunks: Chunks, started: bool) -> str:
    """A note that only some rows are used, and what was computed from all of them."""
    (notice,) = limits.notices(totals.rows, chunks.width)
    return f"{notice}; ranges{' and the start by correlation' if started else ''} come from all rows"


def beyond(totals: Totals, chunks: Chunks) -> list[str]:
    """Notes on columns whose range in all rows is much wider than in the sample."""
    low, high = totals.kept.values.min(0), totals.kept.values.max(0)
    wide = np.flatnonzero(totals.high - totals.low > WIDER * (high - low))
    if not len(wide):
        return []
    names = [chunks.labels[k].removeprefix("column ").strip("'") for k in wide]
    k = wide[0]
    return [
        f"the sample does not reach as far as all rows do in {listed(names)} ({names[0]!r} goes from "
        f"{totals.low[k]:.4g} to {totals.high[k]:.4g}, in the sample from {low[k]:.4g} to {high[k]:.4g}): the answer "
        "is for rows like those of the sample"
    ]
