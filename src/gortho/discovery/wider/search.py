"""The search for wider symmetries, claim by claim, by the same variable projection as for a form (M12, M15-M17)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.looks import (
    FIRST,
    LAST,
    NEARLY_EXACT,
    ROWS_FOR_UNKNOWN,
    SCAN,
    Size,
    robust_weights,
    usual_mean,
)
from gortho.discovery.models import squared_errors
from gortho.discovery.predictor import LAW, POLYNOMIAL_COLUMNS, POLYNOMIAL_STEPS
from gortho.discovery.projection import LEAST_DAMPING, Solve
from gortho.discovery.refits import REFIT_STEPS
from gortho.discovery.search import NEAR_BEST
from gortho.discovery.wider.claim import Claim
from gortho.discovery.wider.family import WideProjection
from gortho.discovery.wider.starts import forms_of_space, starts_for
from gortho.samples.values import Samples

#: Size and smoothness of a family, steps with it, and how many starts go on.
Look = tuple[Size, float, int, int]
#: Criterion and θ of starts, the best first.
Ends = list[tuple[float, Tensor]]
#: The looks at one claim: the first is for scores alone.
FIRST_LOOKS: tuple[Look, ...] = ((SCAN, 1.0, 0, 8), (SCAN, 1.0, 6, 4), (FIRST, 0.3, 6, 3))
LAST_LOOKS: tuple[Look, ...] = ((LAST, 0.1, 8, 2), (LAST, 0.03, 10, 2))
#: Where weights that no few samples rule lead to a θ that lowers the criterion to this share, it is gone on from, so
#: many times.
TAMED, FARTHER = 4, 0.7
#: Forms to try in one space while those of others stay; of each signature this many are refined, in a first look and
#: for the remaining claims.
IN_SPACE, FEW_REFINED, MANY_REFINED = 24, 2, 12
#: Rounds through the spaces in a first look, each with other forms.
ROUNDS = 4
#: Starts from which polynomials are tried.
POLYNOMIAL_STARTS = 3
#: Steps of a refit, and how many standard errors from the end of the search it starts: what is open, must show.
WIDE_STEPS, WIDE_SHAKE = 4, 1.0
#: Rounds of the looks end where a start leaves more than this many times the best one's criterion.
HOPELESS = 5.0
#: So far from the best of other claims, after steps with the smallest family, no larger one is tried.
GIVEN_UP = 20.0


@dataclass(frozen=True)
class End:
    """Where a search for one claim ended.

    Attributes:
        theta: forms, directions, origin in the frame.
        errors: squared errors of the validation samples, ``(N,)``.
        degree: the polynomial that the law is, where it is one.
        others: where the other finalists ended: criterion and θ.
    """

    claim: Claim
    theta: Tensor
    criterion: float
    errors: Tensor
    degree: int | None = None
    others: tuple[tuple[float, Tensor], ...] = ()

    @property
    def error(self) -> float:
        """The mean squared error of usual validation samples."""
        return usual_mean(self.errors)


def projection(samples: Samples, claim: Claim, size: Size, seed: int, soft: float) -> WideProjection:
    """A look of some size at samples."""
    shapes = [shape for part in claim.template(samples).basis.shapes for shape in part]
    legs = len(shapes) if samples.set_like else sum(torch.Size(shape).numel() for shape in shapes)
    columns, count = size.room(samples, size.for_leg * legs)
    return WideProjection(samples.rows(slice(0, count)), claim, columns, seed, soft)


def first_look(
    claim: Claim,
    train: Samples,
    known: Sequence[Tensor],
    seed: int,
    before: Ends | None = None,
    best: float = math.inf,
) -> Ends:
    """A few good θ for a claim, by small families: starts, fewer and fewer of them.

    ``before`` are ends with one direction less, ``best`` the criterion of other claims: far from it, the look is short.
    """
    less = [theta for _, theta in before or []]
    ends: Ends = [(0.0, theta) for theta in starts_for(claim, train, list(known), seed, less)]
    exact = _polynomial_look(claim, train, [theta for _, theta in ends], seed)
    if exact:
        return exact
    if claim.apart:
        ends = _better(ends, train, claim, FIRST_LOOKS[0], seed)
        for place in range(ROUNDS):
            ends = _space_by_space(ends, train, claim, FEW_REFINED, seed + 1_000 * place)
        return ends
    for step in FIRST_LOOKS:
        ends = _better(ends, train, claim, step, seed)
        if step[2] and ends[0][0] > GIVEN_UP * best + NEARLY_EXACT:
            break
    return ends


def _space_by_space(ends: Ends, train: Samples, claim: Claim, refined: int, seed: int) -> Ends:
    """A few good θ, after forms of one space after the other were exchanged while those of the others stayed.

    A law says much of one form only where the others are nearly right, and few starts have them all. A wrong signature
    scores well before it is refined, so each of them has its turn; definite forms all lead to the same end.
    """
    size, soft, steps, keep = FIRST_LOOKS[-1]
    view = projection(train, claim, size, seed, soft)
    solves = [view.refine(ends[0][1], steps)]
    for space, d in enumerate(claim.dims or [train.n] * claim.forms):
        forms, _, _ = claim.split(solves[0].A, train.n)
        groups: dict[int, list[Solve]] = {}
        for A in forms_of_space(claim, train, space, IN_SPACE, seed):
            other = forms.clone()
            other[space] = A
            signs = int(torch.linalg.eigvalsh(A).sign().sum().abs())
            groups.setdefault(signs, []).append(view.solve(view.gauged(claim.join(other))))
        for signs, group in groups.items():
            best = sorted(group, key=lambda at: at.criterion)[: 1 if signs == d else refined]
            solves += [view.refine(at.A, steps) for at in best]
        solves = sorted(solves, key=lambda at: at.criterion)[:keep]
    return [(at.criterion, at.A) for at in solves]


def _polynomial_look(claim: Claim, train: Samples, starts: list[Tensor], seed: int) -> Ends:
    """Where polynomials of the invariants are the law itself, to rounding; else nothing."""
    for degree in (2, 1):
        columns = _polynomial(claim, train.rows(slice(0, 4)), degree, seed).family.columns
        rows = -(-max(SCAN.rows, ROWS_FOR_UNKNOWN * columns) // train.rep.size(train.n))
        if columns > POLYNOMIAL_COLUMNS or rows > len(train):
            continue
        view = _polynomial(claim, train.rows(slice(0, rows)), degree, seed)
        best = sorted(starts, key=lambda theta: view.solve(view.gauged(theta)).criterion)[:POLYNOMIAL_STARTS]
        at = min((view.refine(theta, POLYNOMIAL_STEPS) for theta in best), key=lambda at: at.criterion)
        return [(at.criterion, at.A)] if at.criterion < NEARLY_EXACT else []
    return []


def _polynomial(claim: Claim, samples: Samples, degree: int, seed: int) -> WideProjection:
    """Samples and the polynomials of the invariants up to a degree."""
    return WideProjection(samples, claim, 0, seed, degree=degree)


def last_look(claim: Claim, train: Samples, validation: Samples, ends: Ends, seed: int) -> End:
    """The best θ for a claim, by large and sharp families; exact where the law is a polynomial."""
    if ends[0][0] < NEARLY_EXACT:  # steps with a poorer family would only lead away
        start = End(claim, ends[0][1], ends[0][0], torch.zeros(0), None, tuple(ends))
        exact = _exact(start, train, validation, seed)
        if exact is not None:
            return exact
    if claim.apart:
        ends = _space_by_space(ends, train, claim, MANY_REFINED, seed)
    for step in LAST_LOOKS:
        ends = _better(ends, train, claim, step, seed)
    view = projection(train, claim, LAST, seed, LAST_LOOKS[-1][1])
    for _ in range(TAMED):
        tame = view.reweighted(robust_weights(view, view.solve(ends[0][1]))).refine(ends[0][1], REFIT_STEPS)
        further = view.refine(tame.A, LAST_LOOKS[-1][2])
        if further.criterion > FARTHER * ends[0][0]:
            break
        ends = [(further.criterion, further.A)]  # a few samples had held it up
    errors = _errors(view, view.solve(tame.A), validation)
    end = End(claim, tame.A, ends[0][0], errors, None, tuple(ends))
    return _exact(end, train, validation, seed) or end


def _better(ends: Ends, train: Samples, claim: Claim, step: Look, seed: int) -> Ends:
    """The best of the ends after some steps with one family; without steps, by their scores alone."""
    size, soft, steps, keep = step
    view = projection(train, claim, size, seed, soft)
    solves = [view.refine(theta, steps) for _, theta in ends]
    done = sorted(((at.criterion, at.A) for at in solves), key=lambda end: end[0])
    hopeless = HOPELESS * done[0][0] + NEARLY_EXACT if steps else math.inf
    return [end for end in done if end[0] <= hopeless][:keep]


def _errors(view: WideProjection, at: Solve, samples: Samples) -> Tensor:
    return torch.from_numpy(squared_errors(view.predict(at, samples), samples))


def polynomials(train: Samples, claim: Claim, seed: int) -> list[WideProjection]:
    """Polynomials of the invariants, of the degrees that the samples allow."""
    found: list[WideProjection] = []
    for degree in range(3):
        view = _polynomial(claim, train, degree, seed)
        columns = view.family.columns
        if columns > POLYNOMIAL_COLUMNS or view.y.numel() < 2 * columns:
            break
        found.append(view)
    return found


def _exact(end: End, train: Samples, validation: Samples, seed: int) -> End | None:
    """The end for the polynomial that the law is, if it is one."""
    for degree, view in enumerate(polynomials(train, end.claim, seed)):
        at = view.refine(end.theta, POLYNOMIAL_STEPS, LEAST_DAMPING)
        errors = _errors(view, at, validation)
        if float(errors.mean()) < LAW * validation.variance:
            return replace(end, theta=at.A, criterion=at.criterion, errors=errors, degree=degree)
    return None


def simplest(ends: Sequence[End], variance: float) -> list[End]:
    """The ends in the order in which to accept them: the first that explains about as well as the best comes first."""
    best = min(end.error for end in ends)
    good = [end for end in ends if end.error <= NEAR_BEST * best + NEARLY_EXACT * variance]
    return good + sorted((end for end in ends if end not in good), key=lambda end: end.error)


def refitted(end: End, samples: Samples, count: int, seed: int, clock: Clock) -> list[Tensor]:
    """θ refitted to resamples (the Bayesian bootstrap), each with a family of its own."""
    found: list[Tensor] = []
    for r in range(count):
        if len(found) >= 4 and clock.over():
            break
        number = seed * 104_729 + r
        generator = torch.Generator().manual_seed(number)
        drawn = samples.bootstrapped(generator)
        if end.degree is None:
            view = projection(drawn, end.claim, LAST, number, 0.03)
        else:
            view = _polynomial(end.claim, drawn, end.degree, number)
        start = view.shaken(view.solve(end.theta), WIDE_SHAKE, generator)
        found.append(view.refine(start, WIDE_STEPS).A)
    return found
