"""The search for the form: starts, a scan, Gauss-Newton by variable projection, refits for the errors (M12).

The criterion of a form is a funnel with rough walls: a law with a root, a logarithm or a pole is sharp near the cone
q = 0, and slopes there say little about where the bottom is. So forms are first bred by their scores alone, then
refined with smooth features, which see far, and last with sharp ones, which see exactly.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gortho import checks
from gortho.discovery.clock import Clock
from gortho.discovery.finish import finished
from gortho.discovery.looks import Size, few_for, projections, robust_weights, usual_criterion
from gortho.discovery.projection import Projection, Solve
from gortho.discovery.starts import Start, distinct, white_starts
from gortho.discovery.workers import each
from gortho.reps import DirectSum
from gortho.samples.frame import form_distance, unit_form
from gortho.samples.values import Samples

#: Called with the share of the stage done and the leading form, in the frame; may raise to stop.
Progress = Callable[[float, Tensor], None]

#: Relative errors count from this quantile of the targets' sizes on.
RELATIVE_FROM = 0.25
#: Two ends of the search are the same form below this distance in the frame.
SAME = 0.05
#: A start ends about as well as the best one if its criterion is within this factor of the best.
NEAR_BEST = 1.5
#: A finalist whose criterion is more than so many times the best one's is given up.
HOPELESS = 5.0
#: A criterion below this share of the variance: nothing better is looked for.
NEARLY_EXACT = 1e-7
#: If more than this share of the variance is left over, the search is made once more, with more forms.
LITTLE, ATTEMPTS = 0.05, 2


class Errors(enum.Enum):
    """What a fit makes small: errors of the targets, or errors relative to their size."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"


@dataclass(frozen=True)
class Settings:
    """Sizes of the work; the defaults are what the benchmarks were run with.

    Attributes:
        starts: random forms that the scan begins with, beside those that the data suggest.
        generations: rounds of the scan.
        finalists: how many ends of the search are looked at with the large family.
        refits: resamples that the errors of the form come from.
        predictor_steps: steps of Adam of the final predictor, after which come second-order ones.
        members: more than one: the final predictor is refitted this many times on all samples, and averaged.
        workers: processes that starts and refits run on; the answer does not depend on how many.
        given_axes: whether plain forms in the given coordinates are among the starts.
    """

    starts: int = 30
    generations: int = 6
    finalists: int = 3
    refits: int = 8
    predictor_steps: int = 300
    members: int = 1
    workers: int = 1
    given_axes: bool = True

    def __post_init__(self) -> None:
        least = {"starts": 0, "generations": 0}
        for name, value in vars(self).items():
            if name != "given_axes":
                object.__setattr__(self, name, checks.whole(value, f"Settings: {name}", least.get(name, 1)))
            elif not isinstance(value, bool | int) or value not in (0, 1):
                raise ValueError(f"Settings: given_axes = {value!r}: give True or False")


#: The scan, the first look at the forms that it bred, and the last at the finalists.
SCAN, FIRST, LAST = Size(700, 56, 32, 140), Size(900, 72, 38, 200), Size(4_500, 200, 60)
#: How smooth the family is in each round of the first look, steps, and how many starts at least go on.
ROUNDS = ((1.0, 6, 6), (0.3, 6, 4), (0.03, 6, 3))
#: The same for finalists: smoothness and steps.
FINAL_ROUNDS = ((0.3, 7), (0.03, 12))
#: Starts that the sharp family alone is tried at.
SHARP = 3
#: Steps by which the scan sees whether the law is nearly exact at a start, or whether two that are so far apart lead
#: to one form which leaves less than this share of the variance.
QUICK_STEPS, APART, SETTLED = 6, 0.3, 0.02
#: Steps of a refit, and how many of its own standard errors from the end of the search it starts.
REFIT_STEPS, SHAKE = 8, 4.0
#: Families of refits: smoothness, and unknowns as shares of those of the last look.
SOFTNESS, FAMILIES = (0.03, 0.015, 0.06), (1.0, 0.7)
#: Smoothness of the two scans, and how far children are from their parents in the first and the last round.
SCAN_SOFT = (1.0, 0.3)
WIDEST, NARROWEST = 0.6, 0.1
#: Forms that breed, and forms bred in a round.
PARENTS, CHILDREN = 6, 30


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
        errors: what was made small to find it, ABSOLUTE or RELATIVE.
        wins: share of validation samples on which that gave the better form, where both were tried.
        restarts: where the starts ended, the best first.
    """

    A: Tensor
    errors: Errors
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


def prepared(samples: Samples, errors: Errors) -> Samples:
    """Targets of order one, and weights, for these errors; samples in their frame.

    Scalars are invariants, and so is every function of them: relative errors of y are absolute ones of asinh(y/s).
    Tensors keep their targets and get weights.
    """
    rep, y = samples.rep, samples.y
    parts = rep.split(y, samples.n) if isinstance(rep, DirectSum) else [y]
    done = []
    for part, v in zip(rep.parts, parts):
        if part.rank == 0:
            if errors is Errors.RELATIVE:
                v = torch.asinh(v / _positive_quantile(v.abs(), RELATIVE_FROM))
            v = v - v.median()
        done.append(v / v.square().mean().sqrt().clamp_min(1e-300))
    y = rep.join(done) if isinstance(rep, DirectSum) else done[0]
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
    return relative if samples.weights is None else relative * samples.weights


def _positive_quantile(sizes: Tensor, share: float) -> Tensor:
    positive = sizes[sizes > 0].sort().values
    return positive[int(share * len(positive))] if len(positive) else sizes.new_ones(())


# The scan


def scan(
    samples: Samples, starts: list[Start], settings: Settings, seed: int, clock: Clock, harder: bool = False
) -> list[Start]:
    """Starts bred for their scores: the best forms, and those between and around them, round by round.

    A smooth family and a sharper one breed side by side: where one is misled, the other mostly is not.
    """
    generator = torch.Generator().manual_seed(seed)
    children = 2 * CHILDREN if harder else CHILDREN
    # Tensors mostly tell their form by a linear solve, and cost more.
    rounds = settings.generations if max(part.rank for part in samples.rep.parts) < 2 or harder else 2
    bred: list[Start] = []
    for projection in projections(samples, SCAN, SCAN_SOFT, seed):
        pool = _scored(projection, starts)
        ends = [(start, projection.refine(start.A, QUICK_STEPS)) for _, start in _apart(pool, 2, APART)]
        exact = [Start(start.label, at.A) for start, at in ends if at.criterion < NEARLY_EXACT]
        if exact:
            return exact
        if not harder and _agreed([at for _, at in ends]):
            return distinct(bred + [Start(start.label, at.A) for start, at in ends])
        for g in range(rounds):
            if clock.over() or pool[0][0] < NEARLY_EXACT:
                break
            spread = WIDEST * (NARROWEST / WIDEST) ** (g / max(1, rounds - 1))
            parents = [start for _, start in _apart(pool, PARENTS, spread / 2)]
            pool += _scored(projection, _children(parents, children, spread, generator))
            pool = sorted(pool, key=lambda pair: pair[0])[: 2 * CHILDREN]
        bred += [start for _, start in _apart(pool, PARENTS, SAME)]
    return distinct(bred)


def _agreed(ends: list[Solve]) -> bool:
    """Whether two starts lead to one form that explains most: there is nothing to breed for."""
    most = all(at.criterion < SETTLED for at in ends)
    return most and len(ends) > 1 and form_distance(ends[0].A, ends[1].A) < SAME


def _scored(projection: Projection, starts: list[Start]) -> list[tuple[float, Start]]:
    scores = [(projection.solve(start.A).criterion, start) for start in starts]
    return sorted(scores, key=lambda pair: pair[0])


def _children(parents: list[Start], count: int, spread: float, generator: torch.Generator) -> list[Start]:
    """Forms around the parents; every other one is moved by half of the difference of two of them."""
    n = len(parents[0].A)
    children = []
    for k in range(count):
        one = parents[k % len(parents)]
        pair = [parents[i].A for i in torch.randint(len(parents), (2,), generator=generator).tolist()]
        B, C = (M * torch.where((M * one.A).sum() < 0, -1.0, 1.0) for M in pair)
        noise = torch.randn(n, n, dtype=torch.float64, generator=generator)
        noise = (noise + noise.mT) / (2 * (n + 1)) ** 0.5
        children.append(Start(one.label, unit_form(one.A + 0.5 * (k % 2) * (B - C) + spread * noise)))
    return children


def _apart(pool: list[tuple[float, Start]], count: int, distance: float) -> list[tuple[float, Start]]:
    """The best few that are this far from each other."""
    kept: list[tuple[float, Start]] = []
    for score, start in pool:
        if all(form_distance(start.A, other.A) > distance for _, other in kept):
            kept.append((score, start))
        if len(kept) == count:
            break
    return kept


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
        done = _different(sorted(done, key=lambda r: r.criterion))
        left = min(len(done), max(keep, math.ceil(left / 2)))
        found = done + found[len(ends) :]
    return _different(sorted([*found, *sharp_look(looks[-1], suggested)], key=lambda r: r.criterion))


def sharp_look(projection: Projection, starts: list[Start]) -> list[Restart]:
    """Steps with the sharp family alone from the starts that it likes best: a smooth one may lead away from them."""
    best = _apart(_scored(projection, starts), SHARP, SAME)
    ends = [(start, projection.refine(start.A, ROUNDS[-1][1])) for _, start in best]
    return [Restart(start.label, at.A, at.criterion) for start, at in ends]


def _different(ends: list[Restart]) -> list[Restart]:
    """The ends without those that are the same form as a better one."""
    kept: list[Restart] = []
    for r in ends:
        if all(form_distance(r.A, other.A) > SAME for other in kept):
            kept.append(r)
    return kept


def _refined(projection: Projection, A: Tensor, steps: int) -> tuple[Tensor, float]:
    at = projection.refine(A, steps)
    return at.A, at.criterion


def last_look(
    samples: Samples, restarts: list[Restart], finalists: int, seed: int, workers: int
) -> list[Restart]:
    """The best few, each a form of its own, with the large family; the best first."""
    looks = projections(samples, LAST, [soft for soft, _ in FINAL_ROUNDS], seed + 1)
    kept = _different(restarts)[:finalists]
    smooth, sharp = looks
    for number in range(2):
        ends = each(_final, [(smooth, sharp, number, r.A) for r in kept], workers)
        done = [replace(r, A=A, criterion=criterion) for r, (A, criterion) in zip(kept, ends)]
        done = _different(sorted(done, key=lambda r: r.criterion))
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


# Which errors


def relative_wins(
    train: Samples, validation: Samples, absolute: Tensor, relative: Tensor, seed: int
) -> float:
    """The share of validation samples that the form found with relative errors explains better.

    Both forms are fitted both ways, with absolute and with relative errors, and compared sample by sample, so that no
    few samples decide.
    """
    wins = []
    for errors in Errors:
        whole = prepared(Samples.cat([train, validation]), errors)
        part, test = whole.rows(slice(0, len(train))), whole.rows(slice(len(train), None))
        (projection,) = projections(part, LAST, [FINAL_ROUNDS[-1][0]], seed + 2)
        sizes = []
        for A in (absolute, relative):
            p = projection.predict(projection.solve(A), test)
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
    errors: Errors | None,
    seed: int,
    clock: Clock,
    progress: Progress,
) -> Search:
    """The form that explains samples, in their frame, best; ``errors`` None tries both kinds."""
    kinds = tuple(Errors) if errors is None else (errors,)
    best = Search(starts[0].A, kinds[0], (Restart(starts[0].label, starts[0].A, math.inf),))
    found: dict[Errors, Search] = {}
    try:
        for attempt in range(ATTEMPTS):
            for number, kind in enumerate(kinds):
                if found and (clock.over() or best.restarts[0].criterion < NEARLY_EXACT):
                    break
                done = (attempt + number / len(kinds)) / ATTEMPTS
                known = best.restarts if found and best.restarts[0].criterion < LITTLE else ()
                one = _attempt(train, starts, kind, settings, seed, attempt, known, clock, done, progress)
                # What was found one way is a start for the other.
                starts = [*starts, *(Start(r.start, r.A) for r in one.restarts)]
                if kind not in found or one.restarts[0].criterion < found[kind].restarts[0].criterion:
                    found[kind] = one
                best = min(found.values(), key=lambda f: f.restarts[0].criterion)
            if clock.over() or best.restarts[0].criterion < LITTLE:
                break
        best = _chosen(found, train, validation, seed)
        whole = prepared(Samples.cat([train, validation]), best.errors)
        parts = whole.rows(slice(0, len(train))), whole.rows(slice(len(train), None))
        best = replace(best, A=finished(*parts, best.A, seed, clock))
        progress(1.0, best.A)
        return best
    except KeyboardInterrupt:
        raise Interrupted(best) from None


def _attempt(
    train: Samples,
    starts: list[Start],
    kind: Errors,
    settings: Settings,
    seed: int,
    attempt: int,
    known: tuple[Restart, ...],
    clock: Clock,
    done: float,
    progress: Progress,
) -> Search:
    """Scan, first and last look with one kind of errors; later attempts breed more, from another seed."""
    samples, seed = prepared(train, kind), seed + 7_919 * attempt
    if attempt:
        starts = [*starts, *white_starts(train.n, 3 * settings.starts, seed)]
    progress(done, starts[0].A)
    if known:  # the other kind of errors has explained nearly all: by these errors, too?
        finals = last_look(samples, list(known), settings.finalists, seed, settings.workers)
        if finals[0].criterion < LITTLE:
            return Search(finals[0].A, kind, tuple(finals))
    bred = scan(samples, starts, settings, seed, clock, harder=attempt > 0)
    suggested = [start for start in starts if start.label != "white"]
    ends = first_look(samples, bred, suggested, seed, settings.workers, clock)
    progress(done + 0.3 / ATTEMPTS, ends[0].A)
    finals = last_look(samples, ends, settings.finalists, seed, settings.workers)
    return Search(finals[0].A, kind, tuple(finals))


def _chosen(found: dict[Errors, Search], train: Samples, validation: Samples, seed: int) -> Search:
    """The form by absolute errors, unless relative ones win on more validation samples than by chance."""
    if len(found) == 1:
        return next(iter(found.values()))
    absolute, relative = found[Errors.ABSOLUTE], found[Errors.RELATIVE]
    share = relative_wins(train, validation, absolute.A, relative.A, seed)
    if share > 0.5 + len(validation) ** -0.5:
        return replace(relative, wins=share)
    return replace(absolute, wins=1 - share)


def as_good(samples: Samples, errors: Errors, simple: Tensor, A: Tensor, seed: int) -> bool:
    """Whether a simpler form explains samples about as well as this one."""
    (projection,) = projections(prepared(samples, errors), LAST, [FINAL_ROUNDS[-1][0]], seed + 4)
    return projection.solve(unit_form(simple)).criterion <= NEAR_BEST * projection.solve(A).criterion + 1e-9


# Refits


def refit(
    samples: Samples,
    found: Search,
    *,
    settings: Settings,
    seed: int,
    clock: Clock,
    progress: Progress,
    degree: int | None = None,
) -> Tensor:
    """The form refitted to resamples, ``(refits, n, n)``, ‖A‖ = √n, each with a family of its own.

    A law that is known to be a polynomial of some degree is refitted as such.

    Samples get random weights (the Bayesian bootstrap), the family other waves: the spread holds both the chance of the
    samples and the imperfection of the family.
    """
    whole = prepared(samples, found.errors)
    few, columns = few_for(whole, LAST)
    jobs = [(few, columns, found.A, seed * 104_729 + r, degree) for r in range(settings.refits)]
    forms: list[Tensor] = []
    step = max(1, settings.workers)
    for first in range(0, len(jobs), step):
        if len(forms) >= 4 and clock.over():
            break
        forms += each(_resampled, jobs[first : first + step], settings.workers)
        progress(len(forms) / len(jobs), found.A)
    # The end of the search is one more estimate.
    return align_signs(torch.stack([found.A, *forms]), found.A)


def _resampled(samples: Samples, columns: int, A: Tensor, seed: int, degree: int | None) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    weights = -torch.rand(len(samples), dtype=torch.float64, generator=generator).clamp_min(1e-12).log()
    given = weights if samples.weights is None else weights * samples.weights
    soft, share = SOFTNESS[seed % len(SOFTNESS)], FAMILIES[seed % len(FAMILIES)]
    projection = Projection(samples, int(share * columns), given, seed, soft, degree)
    at = projection.solve(A)
    if degree is None:
        projection = projection.reweighted(robust_weights(projection, at))
        at = projection.solve(A)
    return projection.refine(projection.shaken(at, SHAKE, generator), REFIT_STEPS).A


def align_signs(matrices: Tensor, A: Tensor) -> Tensor:
    """The matrices with the signs that bring them nearest to A (M2)."""
    return matrices * torch.where((matrices * A).sum((1, 2), keepdim=True) < 0, -1.0, 1.0)
