"""What a formula leaves over: samples that are far from it, and functions of the same inner products that it lacks.

A few wrong samples shall affect neither its terms nor its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.stats import chi2, norm
from sklearn.ensemble import HistGradientBoostingRegressor

from gortho.formulas.fitting import Rows
from gortho.formulas.problem import Problem
from gortho.formulas.values import Formula
from gortho.samples.errors import numbered
from gortho.samples.values import Samples

#: A sample is far from a formula where normal errors, with the median of all, would be so with this many sigmas.
FAR = 5.0
#: What is smaller than this share of the mean square of y is not far.
LEAST = 1e-6
#: More than this share of the samples are not far by mistake: the formula is wrong, or errors are so.
MOST_FAR = 0.05
#: Rounds in which terms are chosen without the samples that are far.
ROUNDS = 3
#: Fitted numbers of a formula that needs no second look.
PLAIN = 2
#: A formula lacks something where trees explain this share of what it leaves of held-out samples …
LACKING = 0.3
#: … of those with an error of at most so many times the median …
MEDIANS = 10.0
#: … learnt from so many samples at least.
LEARNT = 200

#: A formula for a problem; and the same formula with its numbers fitted anew.
Once = Callable[[Problem], Formula | None]
Again = Callable[[Problem, Formula], Formula]


def far(squares: np.ndarray, scale: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which squared errors ``(N,)`` are far beyond those of ``scale``; none where these are too many to be mistakes.

    ``y`` are the targets ``(N, c)``: what is small beside them is not far. Nor is an error that is usual relative to
    the size of its target, as those of large ones are under relative noise.
    """
    components = y.shape[1]
    beyond = float(chi2.isf(2 * norm.sf(FAR), components) / chi2.median(components))
    finite = np.where(np.isfinite(squares), squares, np.inf)
    limit = beyond * float(np.median(np.where(np.isfinite(scale), scale, np.inf)))
    sizes = np.square(y).sum(1)
    usual = sizes[finite <= limit]
    found = finite > max(limit, LEAST * float(usual.mean()) if len(usual) else 0.0)
    with np.errstate(all="ignore"):
        relative, typical = finite / sizes, np.where(np.isfinite(scale), scale, np.inf) / sizes
    found &= ~(relative <= beyond * float(np.median(np.nan_to_num(typical, nan=np.inf))))
    # So many by chance, with few samples.
    most = MOST_FAR + 2 * (MOST_FAR / len(found)) ** 0.5
    return found if found.mean() <= most else np.zeros(len(found), bool)


def kept_by(problem: Problem, formula: Formula) -> np.ndarray:
    """The samples of training and validation that are not far from a formula, as a mask."""
    rows = problem.rows(problem.seen)
    with np.errstate(all="ignore"):
        errors = np.square(rows.root * (rows.y - formula.values(rows.q))).sum(1)
    return ~far(errors, errors, rows.root * rows.y)


def usual(problem: Problem) -> np.ndarray:
    """The samples but for those with the most extreme x and y, whatever the law, as a mask."""
    both = problem.seen
    kept = np.ones(len(both), bool)
    for values in (both.x.numpy(), both.y.numpy()):
        flat = values.reshape(len(both), -1)
        middle = np.median(flat, axis=0)
        size = np.median(np.abs(flat - middle), axis=0)
        away = (np.abs(flat - middle) / np.where(size > 0, size, 1.0)).max(1)
        kept &= away <= np.quantile(away, 1 - MOST_FAR)
    return kept


def without(problem: Problem, kept: np.ndarray) -> Problem:
    """The problem with some of its samples."""
    of_train, of_validation = np.split(kept, [len(problem.train)])
    validation = problem.validation.rows(of_validation)

    def predict(samples: Samples) -> np.ndarray:
        if samples is validation:
            return problem.predict(problem.validation)[of_validation]
        return problem.predict(samples)

    return replace(problem, train=problem.train.rows(of_train), validation=validation, predict=predict)


def robust(problem: Problem, once: Once, again: Again) -> Formula | None:
    """The formula of all samples, or of those that are not far from it where some are.

    Where the formula of all is none, or no simple law, terms are chosen first by the samples that are usual by
    themselves: a single row with a sentinel for x can spoil every term.
    """
    best = first = once(problem)
    starts: list[np.ndarray] = []
    if first is not None:
        kept = kept_by(problem, first)
        if not kept.all():
            starts.append(kept)
            best = _told(problem, again(without(problem, kept), first), kept)
    if first is None or not (first.holds and (first.polynomial or first.numbers <= PLAIN)):
        starts.append(usual(problem))
    for start in starts:
        best = _better(best, _settled(problem, start, once, again))
    return best


def _told(problem: Problem, formula: Formula, kept: np.ndarray) -> Formula:
    """The formula with how many samples it was fitted without, and which."""
    out = np.split(~kept, [len(problem.train)])
    rows = sorted(row for part, mask in enumerate(out) for row in problem.rows_of(part, mask))
    which = (numbered(rows) if rows else "", formula.which[1])
    return replace(formula, left_out=int((~kept).sum()), samples=len(kept), which=which)


def _settled(problem: Problem, kept: np.ndarray, once: Once, again: Again) -> Formula | None:
    """The formula of the samples that are not far from it, from a first choice of samples on.

    Where terms and samples do not settle, the numbers of the last terms are fitted to the samples that are not far.
    """
    found = None
    for _ in range(ROUNDS):
        formula = once(without(problem, kept))
        if formula is None:
            break
        found, now = formula, kept_by(problem, formula)
        if np.array_equal(now, kept):
            return _told(problem, found, kept)
        kept = now
    return found and _told(problem, again(without(problem, kept), found), kept)


def _better(one: Formula | None, other: Formula | None) -> Formula | None:
    """The second where it is a law and the first is none; or where it is as short and leaves no more."""
    if one is None or other is None:
        return one or other
    if one.holds != other.holds:
        return other if other.holds else one
    return other if other.numbers <= one.numbers and other.unexplained <= one.unexplained else one


def lacks(formula: Formula, seen: Rows, held: Rows, kept: np.ndarray) -> bool:
    """Whether trees of inner products and scalars predict what a formula for numbers leaves of held-out samples.

    ``seen`` are the samples that it was fitted to, ``kept`` the held-out ones that are not far from it.
    """
    if held.y.shape[1] > 1:
        return False
    with np.errstate(all="ignore"):
        left, there = (rows.root[:, 0] * (rows.y - formula.values(rows.q))[:, 0] for rows in (seen, held))
    fine = np.isfinite(left)
    fine &= np.abs(left) <= MEDIANS * np.median(np.abs(left[fine])) if fine.any() else fine
    if fine.sum() < LEARNT or not np.isfinite(there[kept]).all():
        return False
    trees = HistGradientBoostingRegressor(random_state=0, early_stopping=True)
    trees.fit(seen.q.features[fine], left[fine])
    missed = there[kept] - trees.predict(held.q.features[kept])
    usual = np.abs(there[kept]) <= MEDIANS * np.median(np.abs(there[kept]))
    return bool(np.square(missed[usual]).sum() < (1 - LACKING) * np.square(there[kept][usual]).sum())
