"""One row of the tables of verdicts: what discovery says of a problem whose truth is known."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gortho.discovery import Discovery, Settings, discover
from gortho.forms import QuadraticForm
from gortho.samples.frame import Frame
from gortho.studies.baselines.ours import QUICK
from gortho.studies.experiments.rows import Row, facts
from gortho.studies.experiments.tables import frame_table, provenance, write_csv, write_page
from gortho.studies.tasks.realistic import frame_distance
from gortho.symmetry import Symmetry

P = TypeVar("P", bound="Problem")

#: A form is right when its signature is, and its distance to the truth (M18) is at most this.
NEAR = 0.1
#: A direction is right within this angle, in the frame.
DEGREES = 5.0


@dataclass(frozen=True)
class Problem(ABC):
    """What to measure: discovery on the problem of a seed.

    Attributes:
        of: the kind of problem.
        first_seed: where the seeds of the run began; some kinds count their settings from it.
        quick: fewer samples, and a short search.
    """

    of: str
    seed: int
    first_seed: int
    quick: bool = False

    #: Whether a search may start at plain forms in the given coordinates.
    given_axes: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"{self.of}, seed {self.seed}"

    @property
    def samples(self) -> int:
        """Samples to discover from."""
        return 500 if self.quick else 2_000

    def settings(self) -> dict[str, Any]:
        """What the task of this problem is made with."""
        return {}

    @abstractmethod
    def solve(self) -> Row:
        """Discover, and only then look at the truth."""

    def discovered(self, task: Any, **given: Any) -> tuple[Discovery, Row]:
        """What is discovered, and the verdict with the seconds of CPU time that it took."""
        settings = replace(QUICK if self.quick else Settings(), given_axes=self.given_axes)
        start = time.process_time()
        found = discover(task.x, task.y, task.output, seed=self.seed, settings=settings, **given)
        seconds = round(time.process_time() - start, 1)
        return found, {"verdict": found.verdict.name, "seconds": seconds, "confidence": found.confidence}

    def measure(self) -> list[Row]:
        """The row of this problem. A crash is a failure of discovery too: it is counted, not hidden."""
        torch.set_num_threads(1)
        try:
            row = self.solve()
        except Exception as error:
            row = {"verdict": f"crash: {error!r}"}
        return [self.settings() | row | asdict(self) | facts() | {"clock": "CPU time"}]


def apportioned(kinds: Mapping[Any, int], count: int) -> dict[Any, int]:
    """So many problems in all, in the proportions of these kinds; largest remainders first.

    >>> apportioned({"form": 128, "none": 48}, 176), apportioned({"form": 128, "none": 48}, 3)
    ({'form': 128, 'none': 48}, {'form': 2, 'none': 1})
    """
    total = sum(kinds.values())
    whole = {kind: count * n // total for kind, n in kinds.items()}
    by_remainder = sorted(kinds, key=lambda kind: -(count * kinds[kind] % total))
    for kind in by_remainder[: count - sum(whole.values())]:
        whole[kind] += 1
    return whole


def series(make: type[P], kinds: Mapping[str, int], first: int, count: int, quick: bool) -> list[P]:
    """So many problems of these kinds in all, each kind of seeds in a row."""
    return [
        make(of, seed, first, quick)
        for of, number in apportioned(kinds, count).items()
        for seed in range(first, first + number)
    ]


def against_truth(found: Discovery, truth: QuadraticForm, x: Tensor) -> Row:
    """How far the candidate is from the true form, and the share of its entries that lie in their intervals."""
    assert found.candidate is not None
    row: Row = {
        "signature": found.candidate.signature == truth.signature,
        "distance": frame_distance(found.candidate, truth, x),
        "d_PA": found.candidate.algebra_distance(truth),
    }
    if found.intervals is not None:
        low, high = found.intervals
        A, B = truth.matrix.numpy(), found.candidate.matrix.numpy()
        A = A * np.sign((A * B).sum())
        entries = np.triu_indices(len(A))
        row["covered"] = float(((low <= A) & (high >= A))[entries].mean())
    return row


def wider_right(claimed: Symmetry, task: Any) -> bool:
    """Whether a direction or an origin tells what breaks the law."""
    if claimed.forms == () or claimed.special or claimed.spaces:
        return False
    L = torch.linalg.inv(Frame.of(task.x).W)
    A, B = (L.mT @ form.matrix @ L for form in (claimed.form, task.form))
    A, B = A / A.norm(), B / B.norm()
    if claimed.origin is not None:
        return not len(claimed.directions) and min(float((A - B).norm()), float((A + B).norm())) <= NEAR
    if task.along is None or len(claimed.directions) != 1:
        return False
    s = torch.nn.functional.normalize(L.mT @ task.along, dim=0)
    told = torch.nn.functional.normalize(L.mT @ claimed.form.matrix @ claimed.directions[0], dim=0)
    degrees = float(torch.rad2deg(torch.arccos((s @ told).abs().clamp(max=1.0))))
    # of A only what is not a multiple of ssᵀ (M16): what is left of it beside the span of B and ssᵀ
    basis = torch.linalg.qr(torch.stack([B.flatten(), torch.outer(s, s).flatten()], 1)).Q
    a = A.flatten()
    return degrees <= DEGREES and float((a - basis @ (basis.mT @ a)).norm()) <= NEAR


def frame(rows: Sequence[Row], columns: Iterable[str]) -> pd.DataFrame:
    """The rows as a table; what a row lacks is NaN, in these columns also if every row does."""
    table = pd.DataFrame([{key: value for key, value in row.items() if value is not None} for row in rows])
    return table.reindex(columns=list(dict.fromkeys([*table.columns, *columns])))


def write(
    path: Path,
    rows: Sequence[Row],
    command: str,
    title: str,
    text: str,
    tables: Iterable[tuple[str, pd.DataFrame]],
    order: Sequence[str] = ("of", "seed"),
) -> None:
    """The page at ``path``, with titled tables, and all rows beside it."""
    parts = [text]
    for heading, table in tables:
        parts += [f"## {heading}", frame_table(table)]
    write_csv(rows, path.with_suffix(".csv"), order)
    write_page(path, title, *parts, provenance(rows, command))
