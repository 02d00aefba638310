"""The search for the form: many starts, Gauss-Newton by variable projection, refits for the errors (M12)."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gortho.discovery.projection import Projection, Solve
from gortho.discovery.starts import Start, distinct
from gortho.reps import DirectSum
from gortho.samples.frame import form_distance, unit_form
from gortho.samples.values import Samples

#: Rows (samples times components) and unknowns of the first look at every start, and of the last at the best few.
FIRST, LAST = (900, 64), (6_000, 220)
FIRST_FOR_LEG, LAST_FOR_LEG = 22, 44
#: Unknowns of a family, at most.
MAX_COLUMNS = 240
#: Gauss-Newton steps of each.
LAST_STEPS = 15
#: Rounds of the first look: steps, and how many starts at least go on.
ROUNDS = ((3, 6), (4, 4), (6, 3))
#: How many of the starts are looked at again.
FINALISTS = 3
#: Samples for each unknown of a family, at least.
ROWS_FOR_UNKNOWN = 3
#: Relative errors count from this quantile of the targets' sizes on.
RELATIVE_FROM = 0.25
#: Residuals beyond so many median ones count less and less.
FAR = 4.0


class Errors(enum.Enum):
    """What a fit makes small: errors of the targets, or errors relative to their size."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"


def prepared(samples: Samples, errors: Errors) -> Samples:
    """Targets of order one, and weights, for these errors; samples in their frame.

    Scalars are invariants, and so is every function of them: relative errors of y are absolute ones of asinh(y/s). A
    tensor is divided by nothing, but weighted.
    """
    rep, y = samples.rep, samples.y
    parts = rep.split(y, samples.n) if isinstance(rep, DirectSum) else [y]
    scalars = all(part.rank == 0 for part in rep.parts)
    weights = samples.weights
    done = []
    for part, v in zip(rep.parts, parts):
        if part.rank == 0:
            if errors is Errors.RELATIVE:
                s = v.abs().quantile(RELATIVE_FROM) if len(v) < 10**6 else v[: 10**6].abs().quantile(RELATIVE_FROM)
                v = torch.asinh(v / torch.where(s > 0, s, v.abs().mean().clamp_min(1e-300)))
            v = v - v.median()
        done.append(v / v.square().mean().sqrt().clamp_min(1e-300))
    y = rep.join(done) if isinstance(rep, DirectSum) else done[0]
    if errors is Errors.RELATIVE and not scalars:
        size = y.reshape(len(y), -1).square().mean(1)
        s = size.quantile(RELATIVE_FROM).clamp_min(1e-6 * float(size.mean()))
        relative = 1 / (s + size)
        weights = relative if weights is None else weights * relative
    return replace(samples, y=y, weights=weights)


@dataclass(frozen=True)
class Size:
    """How much of the data, and how large a family, a projection takes."""

    samples: int
    columns: int


def size_for(samples: Samples, rows: int, columns: int, for_leg: int) -> Size:
    """The size for about so many rows and unknowns, at least so many unknowns for each leg."""
    components = samples.rep.size(samples.n)
    legs = sum(samples.points ** len(t.legs) for part in samples.rep.parts for t in part.terms())
    columns = max(columns, min(for_leg * legs, MAX_COLUMNS))
    columns = min(columns, len(samples) * components // ROWS_FOR_UNKNOWN)
    unknowns = samples.n * (samples.n + 1) // 2
    rows = max(rows, ROWS_FOR_UNKNOWN * columns, 4 * unknowns)
    return Size(min(len(samples), max(-(-rows // components), 4 * unknowns)), max(columns, 8))


@dataclass(frozen=True)
class Restart:
    """Where one start ended: its form in the frame and the error to expect, a share of the variance."""

    start: str
    A: Tensor
    criterion: float
    finalist: bool = False


def robust_weights(projection: Projection, at: Solve) -> Tensor:
    """Weights that let no few samples rule: one where the residual is usual, less and less beyond."""
    r = at.residual.reshape(len(projection.root), -1).square().mean(1)
    usual = r.median().clamp_min(1e-300)
    return 1 / (1 + r / (FAR**2 * usual))


def first_look(train: Samples, starts: list[Start], seed: int) -> list[Restart]:
    """A few steps from every start with a small family, more from the better half, and so on; the best first."""
    size = size_for(train, *FIRST, FIRST_FOR_LEG)
    small = train.rows(slice(0, size.samples))
    projection = Projection(small, size.columns, small.weights, seed)
    found = [Restart(start.label, start.A, math.inf) for start in starts]
    left = len(found)
    for steps, keep in ROUNDS:
        done = []
        for r in found[:left]:
            at = projection.refine(r.A, steps)
            done.append(replace(r, A=at.A, criterion=at.criterion))
        found = sorted(done, key=lambda r: r.criterion) + found[left:]
        left = max(keep, math.ceil(left / 2))
    return found


def last_look(train: Samples, restarts: list[Restart], seed: int) -> list[tuple[Restart, Solve, Projection]]:
    """The best few again with a large family."""
    size = size_for(train, *LAST, LAST_FOR_LEG)
    large = train.rows(slice(0, size.samples))
    projection = Projection(large, size.columns, large.weights, seed + 1)
    found = []
    kept: list[Restart] = []
    for r in restarts:
        if all(form_distance(r.A, k.A) > 0.05 for k in kept):
            kept.append(r)
    for r in kept[:FINALISTS]:
        at = projection.refine(r.A, LAST_STEPS)
        found.append((Restart(r.start, at.A, at.criterion, True), at, projection))
    return sorted(found, key=lambda f: f[0].criterion)
