"""`short_formula`: the law for y as a short sum, as good as the predictor; or the best approximation; or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student_t

from gortho.formulas.fitting import Rows, refined, slopes, solve, standard_errors
from gortho.formulas.library import Candidate, Space, library, space_of
from gortho.formulas.selection import Squares, choose, prices
from gortho.formulas.shapes import Grid
from gortho.formulas.values import EXACT, WITHIN, Formula, Term
from gortho.formulas.writing import TEXT, body
from gortho.samples.values import Samples
from gortho.symmetry import Symmetry

#: Terms of a formula, and of one that is an approximation only, at most.
TERMS, FEW_TERMS = 6, 3
#: An approximation is given where it leaves at most this share of the variance.
ABOUT = 0.05
#: Numbers (samples times components) that terms are chosen by, and that coefficients are fitted to, at most.
CHOICE, FIT = 3_000, 20_000
#: Numbers that terms with numbers inside are scanned by.
SCAN = 1_000
#: A term is left out of the choice where one sample makes up more than this share of its squares.
RULED = 0.5
#: A term stays where its coefficient is at least this many times half of its 95 % interval.
SURE = 1.5
#: Rounds in which terms with numbers inside are sought.
ROUNDS = 3
#: Plain terms that compete with those that have numbers inside.
KEPT = 120
#: Terms are rivals where the criterion differs by less than this, and this many are told.
RIVAL, RIVALS = 6.0, 2


@dataclass(frozen=True, eq=False)
class Problem:
    """What a formula is sought for: samples in the given coordinates, the symmetry, and the predictor's values.

    ``spread`` are symmetries that would do as well (refits), by which the form's error reaches the coefficients;
    ``widened`` is the factor that their spread is known to be too small by.
    """

    train: Samples
    validation: Samples
    held_out: Samples
    symmetry: Symmetry
    output: str
    predict: Callable[[Samples], np.ndarray]
    spread: Sequence[Symmetry] = ()
    widened: float = 1.0
    output_space: int = 0

    def rows(self, samples: Samples, symmetry: Symmetry | None = None) -> Rows:
        """Samples as formulas see them."""
        return Rows.of(samples, symmetry or self.symmetry, self.output)

    def space(self, rows: Rows) -> Space:
        """What terms can be made of."""
        options = self.train.network_options()
        counts = options["point_scalars"], options["sample_scalars"]
        return space_of(rows.q, self.train.points, self.symmetry.spaces, counts, self.train.set_like)

    def unexplained(self, values: np.ndarray, samples: Samples) -> float:
        """The share of the variance of samples that values leave, by their weights."""
        w = np.ones(len(samples)) if samples.weights is None else samples.weights.numpy()
        y = samples.y.numpy().reshape(len(samples), -1)
        # Every term of a tensor may be zero, so its mean means nothing there; the same as in the table of errors.
        around = y - np.average(y, axis=0, weights=w)
        errors = np.square(values.reshape(y.shape) - y).mean(1)
        return float((w * errors).sum() / max((w * np.square(around).mean(1)).sum(), 1e-300))


def short_formula(problem: Problem) -> Formula | None:
    """The shortest formula that is as good as the predictor; else a short approximation; else None."""
    train = problem.train
    components = train.y[0].numel()
    few = problem.rows(train.rows(slice(0, max(1, CHOICE // components))))
    pool, columns = _pool(problem, few)
    if not pool:
        return None
    whole = Samples.cat([train, problem.validation]).rows(slice(0, FIT // components))
    allowed = _allowed(problem)
    squares = _squares(pool, columns, few)
    terms = _chosen(pool, squares, TERMS)
    formula = None
    if _left(problem, terms, few) <= allowed:
        formula = _without_doubtful(problem, terms, whole)
    if formula is None or not (formula.exact or len(formula.terms) <= FEW_TERMS):
        terms = _with_shapes(problem, pool, columns, squares, few, terms, allowed)
        formula = _without_doubtful(problem, terms, whole)
    if formula.within:
        return replace(formula, rivals=_rivals(formula, pool, columns, few))
    shorter = [_fitted(problem, chosen, whole) for chosen in _short(pool, squares, few, terms)]
    about = min(shorter, key=lambda short: short.unexplained)
    return about if about.unexplained <= ABOUT else None


def _allowed(problem: Problem) -> float:
    """What a formula may leave of the validation samples."""
    predicted = problem.predict(problem.validation)
    return max(WITHIN * problem.unexplained(predicted, problem.validation), EXACT)


def _pool(problem: Problem, rows: Rows) -> tuple[list[Candidate], np.ndarray]:
    """The terms that can be told apart on these samples, and their columns."""
    found = library(problem.space(rows), rows.q, problem.output_space)
    columns = rows.design([c.term for c in found])
    y = np.square(rows.root * rows.y).sum(1)
    with np.errstate(all="ignore"):
        squares = np.square(columns).reshape(len(rows.y), -1, len(found)).sum(1)
        total = squares.sum(0)
        ruled = squares.max(0) > max(RULED, 2 * y.max() / y.sum()) * total
        keep = np.isfinite(total) & (total > 0) & ~ruled
    return [c for c, k in zip(found, keep) if k], columns[:, keep]


def _squares(pool: Sequence[Candidate], columns: np.ndarray, rows: Rows) -> Squares:
    return Squares.of(columns, rows.target, _prices(pool, rows), len(rows.y))


def _chosen(pool: Sequence[Candidate], squares: Squares, most: int) -> list[Term]:
    return [pool[i].term for i in choose(squares, most)]


def _prices(pool: Sequence[Candidate], rows: Rows) -> np.ndarray:
    inside = np.array([len(c.term.shapes) for c in pool])
    return prices(np.array([c.cost for c in pool]), len(rows.y)) + inside * np.log(len(rows.y))


def _left(problem: Problem, terms: Sequence[Term], rows: Rows) -> float:
    """What terms that are fitted to these rows leave of the validation samples."""
    c = solve(rows.design(terms), rows.target)
    there = problem.rows(problem.validation)
    values = there.design(terms) @ c / np.repeat(there.root[:, 0], there.y.shape[1])
    left = problem.unexplained(values, problem.validation)
    return left if np.isfinite(left) else np.inf


def _with_shapes(
    problem: Problem,
    pool: list[Candidate],
    columns: np.ndarray,
    squares: Squares,
    rows: Rows,
    terms: list[Term],
    allowed: float,
) -> list[Term]:
    """The choice among plain terms and those with numbers inside, which are sought beside what is there already."""
    sparse = problem.rows(problem.train.rows(slice(0, max(1, SCAN // rows.y.shape[1]))))
    grid = Grid.of(problem.space(rows), sparse, problem.output_space)
    near = {term.monomials for term in terms}
    order = list(np.argsort(-squares.gains(()))[:KEPT])
    order += [i for i, c in enumerate(pool) if c.term.monomials in near and i not in order]
    kept = [pool[i] for i in order]
    made = columns[:, order]
    best = (_left(problem, terms, rows), terms)
    for _ in range(ROUNDS):
        squares = _squares(kept, made, rows)
        sets = [[], _chosen(kept, squares, 1), _chosen(kept, squares, 2), terms]
        new = [candidate for beside in sets for candidate in grid.best(beside)]
        kept, made = kept + new, np.concatenate([made, rows.design([c.term for c in new])], 1)
        fine = np.isfinite(made).all(0) & (np.abs(made).max(0) > 0)
        kept, made = [c for c, k in zip(kept, fine) if k], made[:, fine]
        terms = refined(_chosen(kept, _squares(kept, made, rows), TERMS), rows)
        left = _left(problem, terms, rows)
        done = left >= 0.5 * best[0]  # no longer much better
        best = min(best, (left, terms), key=lambda pair: pair[0])
        if best[0] <= allowed or done:
            break
    return best[1]


def _short(pool: list[Candidate], squares: Squares, rows: Rows, terms: list[Term]) -> list[list[Term]]:
    """Short choices: of plain terms, and of those that were found."""
    own = [Candidate(term, 1) for term in terms]
    sources = ((pool, squares), (own, _squares(own, rows.design(terms), rows)))
    return [_chosen(candidates, of, FEW_TERMS) for candidates, of in sources]


def _without_doubtful(problem: Problem, terms: Sequence[Term], samples: Samples) -> Formula:
    """The formula without terms that may be zero, as far as the errors of noise and of the form tell."""
    while True:
        formula = _fitted(problem, terms, samples)
        sure = [abs(t.coefficient) / max(t.error, 1e-300) for t in formula.terms]
        if len(sure) == 1 or min(sure) >= SURE:
            return formula
        least = int(np.argmin(sure))
        terms = [t for i, t in enumerate(formula.terms) if i != least]


def _fitted(problem: Problem, terms: Sequence[Term], samples: Samples) -> Formula:
    """The formula of these terms, with coefficients, error bars and what it leaves of the held-out samples."""
    rows = problem.rows(samples)
    terms = refined(terms, rows)
    c = solve(rows.design(terms), rows.target)
    J = slopes(terms, c, rows)
    residual = rows.target - rows.design(terms) @ c
    halves = norm.ppf(0.975) * standard_errors(J, residual, rows.y.shape[1])
    halves = np.hypot(halves, _of_the_form(problem, terms, c, samples))
    shape_halves = iter(halves[len(terms) :])
    done = []
    for term, value, half in zip(terms, c, halves):
        inside = [next(shape_halves) for _ in term.shapes]
        done.append(replace(term.shaped(term.shapes, inside), coefficient=float(value), error=float(half)))
    # The largest first: it is the law, and the others correct it.
    size = np.abs(c) * np.linalg.norm(rows.design(terms), axis=0)
    labels = samples.labels_in_full(len(problem.symmetry.directions))
    formula = Formula(
        labels.y,
        tuple(done[i] for i in np.argsort(-size, kind="stable")),
        problem.symmetry,
        problem.output,
        labels.vectors,
        labels.scalars,
        labels.coordinates,
    )
    held = problem.held_out
    there = problem.rows(held)
    with np.errstate(all="ignore"):
        values = sum(t.coefficient * there.q.column(t) for t in formula.terms)
    left = problem.unexplained(np.asarray(values), held)
    return replace(
        formula,
        unexplained=left if np.isfinite(left) else np.inf,
        predictor_unexplained=problem.unexplained(problem.predict(held), held),
    )


def _of_the_form(problem: Problem, terms: Sequence[Term], c: np.ndarray, samples: Samples) -> np.ndarray:
    """Half 95 % intervals of coefficients and numbers inside that come from the error of the form.

    With the form of a refit they move by one Gauss-Newton step.
    """
    moved = []
    few = samples.rows(slice(0, max(1, CHOICE // samples.y[0].numel())))
    for symmetry in problem.spread:
        rows = problem.rows(few, symmetry)
        J = slopes(terms, c, rows)
        moved.append(solve(J, rows.target - rows.design(terms) @ c))
    if len(moved) < 2 or not np.isfinite(moved).all():
        return np.zeros(len(c) + sum(len(term.shapes) for term in terms))
    factor = student_t.ppf(0.975, len(moved) - 1) * problem.widened
    return factor * np.std(moved, axis=0, ddof=1)


def _rivals(formula: Formula, pool: list[Candidate], columns: np.ndarray, rows: Rows) -> tuple[str, ...]:
    """Terms that would do as well in the place of one, in words."""
    if formula.exact:
        return ()
    terms = list(formula.terms)
    simple = [Candidate(t, 0) for t in terms]
    every = [*simple, *pool]
    made = np.concatenate([rows.design(terms), columns], 1)
    squares = Squares.of(made, rows.target, np.zeros(len(every)), len(rows.y))
    own = tuple(range(len(terms)))
    limit = squares.criterion(own) + RIVAL
    found: list[tuple[float, str]] = []
    for place in own:
        rest = own[:place] + own[place + 1 :]
        left = np.maximum(squares.left(rest) - squares.gains(rest), 0.0)
        values = len(rows.y) * np.log(left / squares.total + 1e-300)
        names = {t.monomials for t in terms}
        for i in np.argsort(values)[: RIVALS + len(terms) + 1]:
            if values[i] <= limit and every[i].term.monomials not in names:
                old, new = (body(formula, t, TEXT) for t in (terms[place], every[i].term))
                found.append((float(values[i]), f"{new or '1'} for {old or '1'}"))
    return tuple(text for _, text in sorted(found)[:RIVALS])
