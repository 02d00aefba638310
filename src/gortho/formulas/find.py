"""`short_formula`: the law for y as a short sum that is as good as the predictor, the best approximation, or None."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student_t

from gortho.formulas.fitting import refined, slopes, solve, standard_errors
from gortho.formulas.library import Candidate, library
from gortho.formulas.problem import CHOICE, Problem, first, of_all
from gortho.formulas.selection import Choice, Squares
from gortho.formulas.shapes import COST as SHAPED
from gortho.formulas.shapes import Grid
from gortho.formulas.terms import Term
from gortho.formulas.usual import far, lacks, robust
from gortho.formulas.values import DIGITS, EXACT, WITHIN, Formula
from gortho.formulas.writing import TEXT, body
from gortho.samples.errors import numbered

#: Terms of a formula, and of one that is an approximation only, at most.
TERMS, FEW_TERMS = 6, 3
#: An approximation is given where it leaves at most this share of the variance more than the predictor.
ABOUT = 0.05
#: Numbers that terms with numbers inside are scanned by.
SCAN = 1_000
#: A term stays where its coefficient is at least this many times half of its 95 % interval.
SURE = 2.0
#: Terms that are looked at for one that leaves nothing but digits.
OF_DIGITS = 5
#: What rounding leaves of a coefficient, as a share of y over the size of its term.
ROUNDED = 4e-15
#: A polynomial is taken unless other terms are better by this, in the criterion.
PREFERENCE = 10.0
#: Sums with one function of a square in the place of several that are proposed, for each sum.
PROPOSED = 6
#: Rounds in which terms with numbers inside are sought.
ROUNDS = 3
#: Plain terms that compete with those that have numbers inside.
KEPT = 120
#: Terms are rivals where the criterion differs by less than this, and this many are reported.
RIVAL, RIVALS = 6.0, 2


def short_formula(problem: Problem) -> Formula | None:
    """The shortest formula that is as good as the predictor; else a short approximation; else None.

    A few samples that are far from it rule neither its terms nor its numbers (`gortho.formulas.usual`).
    """
    with np.errstate(all="ignore"):
        formula = robust(problem, _short_formula, _again)
    return of_all(problem, formula) if formula is not None and told_from_zero(formula) else None


def told_from_zero(formula: Formula) -> bool:
    """Whether no coefficient may be zero by its 95 % interval; of a sum, such terms are left out before."""
    return not any(abs(term.coefficient) <= term.error for term in formula.terms)


def proposals(problem: Problem) -> Iterator[list[Term]]:
    """Sums that may be the law, whatever they leave: of plain terms, with numbers inside, and shorter ones."""
    with np.errstate(all="ignore"):
        plain = _plain(problem)
        if not plain.pool:
            return
        grid, terms = _grid(problem), _simplest(plain)
        shaped = _with_shapes(plain, grid, terms)
        yield from (terms, shaped)
        for some in (shaped,) if shaped == terms else (shaped, terms):
            merged = sorted(_merged(plain, grid, some), key=lambda one: one[0])
            yield from (others for _, others in merged[:PROPOSED])


def single_terms(problem: Problem) -> list[Term]:
    """Terms that may be the law, each alone; see `_alone`."""
    with np.errstate(all="ignore"):
        return _alone(_plain(problem))


def _short_formula(problem: Problem) -> Formula | None:
    if problem.law:
        known = _without_doubtful(problem, problem.law)
        if known.exact:
            return known
    plain = _plain(problem)
    if not plain.pool:
        return None
    terms = _simplest(plain)
    formula = _settled(problem, terms)
    if formula is None or not (formula.exact or formula.polynomial or len(formula.terms) == 1):
        terms = _with_shapes(plain, _grid(problem), terms)
        formula = _settled(problem, terms)
    if formula is None or not formula.exact:
        # One term that leaves nothing but digits: more terms would follow the rounding of x.
        one = [term for term in _alone(plain) if _left(problem, [term]) <= DIGITS][:1]
        formula = _without_doubtful(problem, one) if one else formula
    if formula is not None and formula.holds:
        return replace(formula, rivals=_rivals(formula, plain))
    choices = [plain]
    if terms:
        columns = plain.rows.design(terms)
        choices.append(Choice.of([Candidate(term, 1) for term in terms], columns, plain.rows))
    chosen = [choice.best(FEW_TERMS)[1] for choice in choices if choice.pool]
    short = [_without_doubtful(problem, some) for some in chosen if some]
    if not short:
        return None
    about = min(short, key=lambda formula: formula.unexplained)
    return about if about.unexplained <= about.predictor_unexplained + ABOUT else None


def _alone(plain: Choice) -> list[Term]:
    """The terms that explain most alone, those without absolute values first."""
    best = [plain.pool[i].term for i in np.argsort(-plain.squares.gains(())[1])[:OF_DIGITS]]
    return sorted(best, key=lambda t: any(f.absolute for m in t.monomials for f in m.factors))


def _again(problem: Problem, formula: Formula) -> Formula:
    """The formula with its numbers fitted to the samples of another problem."""
    found = _without_doubtful(problem, formula.terms)
    return replace(found, rivals=_rivals(found, _plain(problem))) if found.holds else found


def _plain(problem: Problem) -> Choice:
    """The terms without numbers inside that can be told apart on few samples."""
    rows = problem.chosen
    found = library(problem.space(rows), rows.q, problem.output_space)
    if not problem.logarithms:
        found = [c for c in found if not c.term.logarithm]
    return Choice.of(found, rows.design([c.term for c in found]), rows)


def _simplest(plain: Choice) -> list[Term]:
    """The best polynomial, or the best sum of all kinds of terms where that is clearly better."""
    value, terms = plain.best(TERMS)
    polynomials = [i for i, candidate in enumerate(plain.pool) if candidate.term.polynomial]
    if not polynomials:
        return terms
    other, of_polynomials = plain.part(polynomials).best(TERMS)
    return of_polynomials if other <= value + PREFERENCE else terms


def _settled(problem: Problem, terms: Sequence[Term]) -> Formula | None:
    """The formula of these terms, without those in doubt, if it is as good as the predictor on validation samples."""
    predicted = problem.predict(problem.validation)
    allowed = max(WITHIN * problem.unexplained(predicted, problem.validation), EXACT)
    return _without_doubtful(problem, terms) if terms and _left(problem, terms) <= allowed else None


def _left(problem: Problem, terms: Sequence[Term]) -> float:
    """What terms that are fitted to few samples leave of the validation samples."""
    c = solve(problem.chosen.design(terms), problem.chosen.target)
    there = problem.rows(problem.validation)
    values = there.design(terms) @ c / np.repeat(there.root[:, 0], there.y.shape[1])
    left = problem.unexplained(values, problem.validation)
    return left if np.isfinite(left) else np.inf


def _grid(problem: Problem) -> Grid:
    """Terms with numbers inside, on few samples."""
    sparse = problem.rows(first(problem.train, SCAN))
    return Grid.of(problem.space(problem.chosen), sparse, problem.output_space, problem.logarithms)


def _with_shapes(plain: Choice, grid: Grid, terms: list[Term]) -> list[Term]:
    """The choice among plain terms and those with numbers inside, which are sought beside what is there already."""
    rows = plain.rows
    near = {term.monomials for term in terms}
    order = [int(i) for i in np.argsort(-plain.squares.gains(())[1])[:KEPT]]
    order += [i for i, c in enumerate(plain.pool) if c.term.monomials in near and i not in order]
    simple = choice = plain.part(order)
    best = (plain.criterion(terms), terms)
    for _ in range(ROUNDS):
        sets = [[], choice.best(1)[1], choice.best(2)[1], terms]
        choice = choice.beside([candidate for beside in sets for candidate in grid.best(beside)])
        terms = refined(choice.best(TERMS)[1], rows)
        if not terms:
            break
        # What made up for numbers that were not refined yet is needed no more.
        shaped = [Candidate(term, SHAPED) for term in terms if term.shapes]
        terms = refined(simple.beside(shaped).best(TERMS)[1], rows)
        if not terms:
            break
        value, terms = min(
            [(plain.criterion(terms), terms), *_merged(plain, grid, terms)], key=lambda one: one[0]
        )
        if not value < best[0]:
            break
        best = (value, terms)
    return best[1]


def _merged(plain: Choice, grid: Grid, terms: Sequence[Term]) -> Iterator[tuple[float, list[Term]]]:
    """Sums with one function of a square in the place of several, which may have made it up; their criteria first."""
    squares = [
        {(f.left, f.right) for m in t.monomials for f in m.factors if f.kind != "scalar"} for t in terms
    ]
    for square in sorted({pair for some in squares for pair in some}):
        rest = [term for term, own in zip(terms, squares) if own != {square}]
        if len(rest) < len(terms) - 1:
            for candidate in grid.best(rest):
                shorter = refined([*rest, candidate.term], plain.rows)
                yield plain.criterion(shorter), shorter


def _without_doubtful(problem: Problem, terms: Sequence[Term]) -> Formula:
    """The formula without terms that may be zero, as far as the errors of noise and of the form tell."""
    while True:
        formula = _fitted(problem, terms)
        sure = [abs(t.coefficient) / max(t.error, 1e-300) for t in formula.terms]
        least = int(np.argmin(sure))
        if len(sure) == 1 or not sure[least] < SURE:
            return formula
        terms = [*formula.terms[:least], *formula.terms[least + 1 :]]


def _fitted(problem: Problem, terms: Sequence[Term]) -> Formula:
    """The formula of these terms, with coefficients, error bars and what it leaves of the held-out samples."""
    rows = problem.rows(problem.fitted)
    terms = refined(terms, rows)
    D = rows.design(terms)
    c = solve(D, rows.target)
    J = slopes(terms, c, rows)
    residual = rows.target - D @ c
    halves = norm.ppf(0.975) * standard_errors(J, residual, rows.y.shape[1])
    halves = np.hypot(halves, _of_the_form(problem, terms, c))
    # No coefficient is known beyond rounding, however little is left.
    sizes = np.linalg.norm(D, axis=0)
    halves[: len(c)] = np.maximum(halves[: len(c)], ROUNDED * np.linalg.norm(rows.target) / sizes)
    inside = iter(halves[len(terms) :])
    shaped = [term.shaped(term.shapes, [next(inside) for _ in term.shapes]) for term in terms]
    done = [
        replace(term, coefficient=float(value), error=float(half))
        for term, value, half in zip(shaped, c, halves)
    ]
    # The largest first: it is the law, and the others correct it.
    size = np.abs(c) * sizes
    labels = problem.train.labels_in_full(len(problem.symmetry.directions))
    formula = Formula(
        labels.y,
        tuple(done[i] for i in np.argsort(-size, kind="stable")),
        problem.symmetry,
        problem.output,
        labels.vectors,
        labels.scalars,
        labels.coordinates,
    )
    return _measured(problem, formula)


def _measured(problem: Problem, formula: Formula) -> Formula:
    """The formula with what it and the predictor leave of the held-out samples, but for those far from both."""
    held = problem.held_out
    rows = problem.rows(held)
    with np.errstate(all="ignore"):
        values = formula.values(rows.q)
    predicted = problem.predict(held) if problem.predicted is None else problem.predicted
    predicted = predicted.reshape(rows.y.shape)
    own, other = (np.square(rows.root * (rows.y - v)).sum(1) for v in (values, predicted))
    # Where the predictor does well, the sample is right and the formula is not.
    out = far(np.minimum(own, other), own, rows.root * rows.y)
    kept = held.rows(~out)
    left = problem.unexplained(values[~out], kept)
    which = problem.rows_of(2, out)
    return replace(
        formula,
        lacking=left > DIGITS and lacks(formula, problem.rows(problem.fitted), rows, ~out),
        unexplained=left if np.isfinite(left) else np.inf,
        predictor_unexplained=problem.unexplained(predicted[~out], kept),
        twin_unexplained=math.nan if problem.twin is None else problem.unexplained(problem.twin[~out], kept),
        far=(int(out.sum()), len(held)),
        which=("", numbered(which) if which else ""),
    )


def _of_the_form(problem: Problem, terms: Sequence[Term], c: np.ndarray) -> np.ndarray:
    """Half 95 % intervals of coefficients and numbers inside that come from the error of the form.

    With the form of a refit they move by one Gauss-Newton step.
    """
    moved = []
    few = first(problem.fitted, CHOICE)
    for symmetry in problem.spread:
        rows = problem.rows(few, symmetry)
        J = slopes(terms, c, rows)
        moved.append(solve(J, rows.target - rows.design(terms) @ c))
    if len(moved) < 2 or not np.isfinite(moved).all():
        return np.zeros(len(c) + sum(len(term.shapes) for term in terms))
    factor = student_t.ppf(0.975, len(moved) - 1) * problem.widened
    return factor * np.std(moved, axis=0, ddof=1)


def _rivals(formula: Formula, plain: Choice) -> tuple[str, ...]:
    """Terms that would do as well in the place of one, in words."""
    if formula.exact:
        return ()
    terms, rows = list(formula.terms), plain.rows
    every = [*terms, *(candidate.term for candidate in plain.pool)]
    made = np.concatenate([rows.design(terms), plain.columns], 1)
    squares = Squares.of(made, rows.target, np.zeros(len(every)), len(rows.y))
    own = tuple(range(len(terms)))
    limit = squares.criterion(own) + RIVAL
    names = {t.monomials for t in terms}
    found: list[tuple[float, str]] = []
    for place in own:
        rest = own[:place] + own[place + 1 :]
        before, gains = squares.gains(rest)
        left = np.maximum(before - gains, 0.0)
        values = len(rows.y) * np.log(left / squares.total + 1e-300)
        for i in np.argsort(values)[: RIVALS + len(terms) + 1]:
            if values[i] <= limit and every[i].monomials not in names:
                old, new = (body(formula, t, TEXT) for t in (terms[place], every[i]))
                found.append((float(values[i]), f"{new or '1'} for {old or '1'}"))
    return tuple(text for _, text in sorted(found)[:RIVALS])
