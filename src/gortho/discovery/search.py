"""The search for the form: a scan, then Gauss-Newton by variable projection (M12).

The criterion of a form is a funnel with rough walls: a law with a root, a logarithm or a pole is sharp near the cone
q = 0, and derivatives there say little about where the minimum is. So forms are first bred by their scores alone, then
refined with smooth features, which guide from afar, and finally with sharp ones, which locate the minimum precisely.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from gortho.discovery.breeding import apart, scan, scored
from gortho.discovery.clock import Clock
from gortho.discovery.finish import finished
from gortho.discovery.looks import (
    FIRST,
    LAST,
    NEARLY_EXACT,
    SAME,
    projections,
    robust_weights,
    usual_criterion,
)
from gortho.discovery.projection import Projection
from gortho.discovery.settings import Settings
from gortho.discovery.starts import Start, distinct, white_starts
from gortho.discovery.workers import each
from gortho.objectives import Objective
from gortho.samples.frame import form_distance, unit_form
from gortho.samples.values import Samples

#: Called with the share of the stage done and the leading form, in the frame; may raise to stop.
Progress = Callable[[float, Tensor], None]

#: A start ends about as well as the best one if its criterion is within this factor of the best.
NEAR_BEST = 1.5
#: A finalist whose criterion is more than this many times the best one's is given up.
HOPELESS = 5.0
#: If more than this share of the variance is unexplained, the search is repeated with more forms.
LITTLE, ATTEMPTS = 0.05, 2


#: How smooth the family is in each round of the first look, steps, and how many starts at least go on.
ROUNDS = ((1.0, 6, 6), (0.3, 6, 4), (0.03, 6, 3))
#: The same for finalists: smoothness and steps.
FINAL_ROUNDS = ((0.3, 7), (0.03, 12))
#: Starts that the sharp family alone is tried at.
SHARP = 3


@dataclass(frozen=True)
class Restart:
    """Where one start ended: its form in the frame, and the error to expect there, a share of the variance."""

    start: str
    A: Tensor
    criterion: float


@dataclass(frozen=True)
class Search:
    """What the search found, in the frame.

    Attributes:
        A: the best form, ‖A‖ = √n.
        objective: what was made small to find it.
        wins: share of validation samples on which that gave the better form, where others were tried.
        restarts: where the starts ended, the best first.
    """

    A: Tensor
    objective: Objective
    restarts: tuple[Restart, ...]
    wins: float | None = None

    @property
    def near_best(self) -> tuple[Restart, ...]:
        """The ends that are about as good as the best one."""
        limit = NEAR_BEST * self.restarts[0].criterion + 1e-9
        return tuple(r for r in self.restarts if r.criterion <= limit)

    @property
    def agreeing(self) -> int:
        """How many of these have the form of the best one."""
        return sum(form_distance(r.A, self.restarts[0].A) < AGREE for r in self.near_best)


#: Ends of the search agree below this distance in the frame.
AGREE = 0.15


class Interrupted(Exception):
    """Ctrl-C; carries what there is so far."""

    def __init__(self, found: Search):
        super().__init__("interrupted")
        self.found = found


# Gauss-Newton


def first_look(
    samples: Samples, starts: list[Start], suggested: list[Start], seed: int, workers: int, clock: Clock
) -> list[Restart]:
    """Steps from every start with a small, smooth family; the better half goes on with sharper ones.

    What the data suggest is looked at with the sharp family, too.
    """
    looks = projections(samples, FIRST, [soft for soft, _, _ in ROUNDS], seed)
    found = [Restart(start.label, start.A, math.inf) for start in starts]
    left = len(found)
    for projection, (_, steps, keep) in zip(looks, ROUNDS):
        if clock.over():
            break
        ends = each(_refined, [(projection, r.A, steps) for r in found[:left]], workers)
        done = [replace(r, A=A, criterion=criterion) for r, (A, criterion) in zip(found, ends)]
        done = distinct(sorted(done, key=lambda r: r.criterion), SAME)
        left = min(len(done), max(keep, math.ceil(left / 2)))
        found = done + found[len(ends) :]
    sharp = [] if clock.over() else sharp_look(looks[-1], suggested)
    return distinct(sorted([*found, *sharp], key=lambda r: r.criterion), SAME)


def sharp_look(projection: Projection, starts: list[Start]) -> list[Restart]:
    """Steps with the sharp family alone from the starts that it likes best: a smooth one may lead away from them."""
    best = apart(scored(projection, starts), SHARP, SAME)
    ends = [(start, projection.refine(start.A, ROUNDS[-1][1])) for start in best]
    return [Restart(start.label, at.A, at.criterion) for start, at in ends]


def _refined(projection: Projection, A: Tensor, steps: int) -> tuple[Tensor, float]:
    at = projection.refine(A, steps)
    return at.A, at.criterion


def last_look(
    samples: Samples, restarts: list[Restart], finalists: int, seed: int, workers: int
) -> list[Restart]:
    """The best few, each a form of its own, with the large family; the best first."""
    looks = projections(samples, LAST, [soft for soft, _ in FINAL_ROUNDS], seed + 1)
    kept = distinct(restarts, SAME)[:finalists]
    smooth, sharp = looks
    for number in range(2):
        ends = each(_final, [(smooth, sharp, number, r.A) for r in kept], workers)
        done = [replace(r, A=A, criterion=criterion) for r, (A, criterion) in zip(kept, ends)]
        done = distinct(sorted(done, key=lambda r: r.criterion), SAME)
        kept = [r for r in done if r.criterion <= HOPELESS * done[0].criterion]
    ends = each(_tamed, [(looks[-1], r.A) for r in kept], workers)
    kept = [replace(r, A=A, criterion=criterion) for r, (A, criterion) in zip(kept, ends)]
    return sorted(kept, key=lambda r: r.criterion)


def _final(smooth: Projection, sharp: Projection, number: int, A: Tensor) -> tuple[Tensor, float]:
    """The end of one of the final rounds: smooth steps are taken back where the sharp family does not like them."""
    if number == 0:
        ends = [sharp.solve(B) for B in (A, smooth.refine(A, FINAL_ROUNDS[0][1]).A)]
        at = min(ends, key=lambda at: at.criterion)
    else:
        at = sharp.refine(A, FINAL_ROUNDS[1][1])
    return at.A, at.criterion


def _tamed(projection: Projection, A: Tensor) -> tuple[Tensor, float]:
    """The end of a finalist that no few samples pull, and its criterion on usual samples."""
    tame = projection.reweighted(robust_weights(projection, projection.solve(A)))
    at = tame.refine(A, FINAL_ROUNDS[-1][1])
    return at.A, usual_criterion(projection, projection.solve(at.A))


# Which objective


def wins_of(other: Search, one: Search, train: Samples, validation: Samples, seed: int) -> float:
    """The share of validation samples that the form of the other search explains better.

    Both forms are fitted both ways, with the targets of either objective, and compared sample by sample, so that no
    few samples decide.
    """
    wins = []
    for objective in (one.objective, other.objective):
        whole = objective.prepared(Samples.cat([train, validation]))
        part, test = whole.rows(slice(0, len(train))), whole.rows(slice(len(train), None))
        (projection,) = projections(part, LAST, [FINAL_ROUNDS[-1][0]], seed + 2)
        sizes = []
        for found in (one, other):
            p = projection.predict(projection.solve(found.A), test)
            sizes.append((p - test.y.reshape(p.shape)).square().mean(1))
        ties = 0.5 * (sizes[1] == sizes[0]).double()
        wins.append(float(((sizes[1] < sizes[0]).double() + ties).mean()))
    return sum(wins) / len(wins)


def search(
    train: Samples,
    validation: Samples,
    starts: list[Start],
    *,
    settings: Settings,
    objectives: Sequence[Objective],
    seed: int,
    clock: Clock,
    progress: Progress,
) -> Search:
    """The form that explains samples, in their frame, best: by the first objective, or by another if it is better."""
    best = Search(starts[0].A, objectives[0], (Restart(starts[0].label, starts[0].A, math.inf),))
    found: dict[Objective, Search] = {}
    begun, tried = clock.total, 0
    try:
        for attempt in range(ATTEMPTS):
            for number, kind in enumerate(objectives):
                if found and (clock.over() or best.restarts[0].criterion < NEARLY_EXACT):
                    break
                done = (attempt + number / len(objectives)) / ATTEMPTS
                known = best.restarts if found and best.restarts[0].criterion < LITTLE else ()
                one = _attempt(train, starts, kind, settings, seed, attempt, known, clock, done, progress)
                tried += 1
                # What was found one way is a start for the other.
                starts = [*starts, *(Start(r.start, r.A) for r in one.restarts)]
                if kind not in found or one.restarts[0].criterion < found[kind].restarts[0].criterion:
                    found[kind] = one
                best = min(found.values(), key=lambda f: f.restarts[0].criterion)
            if best.restarts[0].criterion < LITTLE:
                break
            if clock.over():
                clock.seconds_missing += (clock.total - begun) * (ATTEMPTS * len(objectives) / tried - 1)
                break
        best = _chosen(found, train, validation, seed)
        whole = best.objective.prepared(Samples.cat([train, validation]))
        parts = whole.rows(slice(0, len(train))), whole.rows(slice(len(train), None))
        best = replace(best, A=finished(*parts, best.A, seed, clock))
        progress(1.0, best.A)
        return best
    except KeyboardInterrupt:
        raise Interrupted(best) from None


def _attempt(
    train: Samples,
    starts: list[Start],
    kind: Objective,
    settings: Settings,
    seed: int,
    attempt: int,
    known: tuple[Restart, ...],
    clock: Clock,
    done: float,
    progress: Progress,
) -> Search:
    """Scan, first and last look with one objective; later attempts breed more, from another seed."""
    samples, seed = kind.prepared(train), seed + 7_919 * attempt
    if attempt:
        starts = [*starts, *white_starts(train.n, 3 * settings.starts, seed)]
    progress(done, starts[0].A)
    if known:  # the other objective has explained nearly all: by this one, too?
        finals = last_look(samples, list(known), settings.finalists, seed, settings.workers)
        if finals[0].criterion < LITTLE:
            return Search(finals[0].A, kind, tuple(finals))
    bred = scan(samples, starts, settings, seed, clock, harder=attempt > 0)
    suggested = [start for start in starts if start.label != "white"]
    ends = first_look(samples, bred, suggested, seed, settings.workers, clock)
    progress(done + 0.3 / ATTEMPTS, ends[0].A)
    finalists = 1 if clock.over() else settings.finalists
    finals = last_look(samples, ends, finalists, seed, settings.workers)
    return Search(finals[0].A, kind, tuple(finals))


def _chosen(found: dict[Objective, Search], train: Samples, validation: Samples, seed: int) -> Search:
    """The form by the first objective, unless that by another wins on more validation samples than by chance."""
    best, *others = found.values()
    for other in others:
        share = wins_of(other, best, train, validation, seed)
        better = share > 0.5 + len(validation) ** -0.5
        best = replace(other, wins=share) if better else replace(best, wins=1 - share)
    return best


def as_good(samples: Samples, objective: Objective, simple: Tensor, A: Tensor, seed: int) -> bool:
    """Whether a simpler form explains samples about as well as this one."""
    (projection,) = projections(objective.prepared(samples), LAST, [FINAL_ROUNDS[-1][0]], seed + 4)
    return projection.solve(unit_form(simple)).criterion <= NEAR_BEST * projection.solve(A).criterion + 1e-9
