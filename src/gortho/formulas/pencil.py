"""If the form is undetermined along a direction b: the form for which the law is shortest (M16).

No law that knows b distinguishes A from A + t (Ab)(Ab)ᵀ. So t is chosen by convention: the form that weights all
coordinates as equally as t allows, unless another t makes the formula shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import least_squares, minimize_scalar

from gortho.forms import QuadraticForm
from gortho.formulas.find import short_formula
from gortho.formulas.fitting import refined, solve
from gortho.formulas.problem import Problem, first
from gortho.formulas.terms import Term
from gortho.formulas.values import Formula
from gortho.symmetry import Symmetry

#: Numbers (samples times components) that t is fitted to, at most.
FIT = 6_000
#: t is sought where the form's square along b is between these shares of what it was, so that no form is
#: all but singular.
WIDEST = (0.03, 30.0)
#: Conventions, in words.
EVEN = "that weighs all coordinates most alike"
SHORT = "with the shortest formula"


@dataclass(frozen=True, eq=False)
class Plainest:
    """A formula, the symmetry that it is written with, and how that was chosen; "" where it is as it was.

    ``spread`` are the symmetries that would do as well, moved along with that one.
    """

    formula: Formula | None
    symmetry: Symmetry
    convention: str = ""
    spread: Sequence[Symmetry] = ()


def moved(symmetry: Symmetry, t: float) -> Symmetry:
    """The same symmetry with A + t (Ab)(Ab)ᵀ, where it has one direction b."""
    form, b = symmetry.form, symmetry.directions[0]
    a = form.matrix @ b
    other = QuadraticForm(form.matrix + t * torch.outer(a, a), form.names, form.tolerance)
    return Symmetry(other, special=symmetry.special, directions=symmetry.directions, origin=symmetry.origin)


def even(symmetry: Symmetry) -> float:
    """The t for which the sizes of the form's eigenvalues are most alike, and their signs as they are."""
    A = symmetry.form.matrix.numpy()
    b = symmetry.directions[0].numpy()
    a, own = A @ b, float(b @ A @ b)

    def apart(log: float) -> float:
        values = np.linalg.eigvalsh(A + (np.exp(log) - 1) / own * np.outer(a, a))
        return float(np.log(np.abs(values) + 1e-300).std())

    if not abs(own) > symmetry.form.tolerance:
        return 0.0
    end = minimize_scalar(apart, bracket=(-1.0, 0.0), options={"xtol": 1e-12})
    return (float(np.exp(end.x)) - 1) / own


def plainest(problem: Problem) -> Plainest:
    """The shortest formula among those with forms that a direction leaves open."""
    given = problem.symmetry
    if len(given.directions) != 1 or len(given.forms) != 1:
        return Plainest(short_formula(problem), given)
    first = _tried(problem, even(given), EVEN)
    law = None if first is None else first.formula
    if first is not None and law is not None and law.holds and not any(_square(law, t) for t in law.terms):
        return first  # no other form can make it shorter
    found = [] if first is None else [first]
    found.append(Plainest(short_formula(problem), given, spread=problem.spread))
    best = min(found, key=_length)
    if best.formula is None:
        return best
    terms = [term for term in best.formula.terms if not _square(best.formula, term)]
    t = _fitted(problem, best.symmetry, terms)
    there = replace(problem, symmetry=best.symmetry, spread=best.spread)
    if t is not None and (third := _tried(there, t, SHORT)) is not None:
        best = min(best, third, key=_length)
    return best


def _tried(problem: Problem, t: float, convention: str) -> Plainest | None:
    """The formula with another form; None where that is of another kind."""
    own = problem.symmetry.form
    try:
        symmetry = moved(problem.symmetry, t)
    except ValueError:
        return None
    if symmetry.form.signature != own.signature:
        return None
    spread = [moved(other, t) for other in problem.spread]
    formula = short_formula(replace(problem, symmetry=symmetry, spread=spread))
    return Plainest(formula, symmetry, convention, spread)


def _length(found: Plainest) -> tuple[bool, int]:
    """Laws before approximations, short ones before long ones."""
    return (True, 1000) if found.formula is None else (not found.formula.holds, found.formula.numbers)


def _square(formula: Formula, term: Term) -> bool:
    """Whether it has the square of a product with b, which a form may hold."""
    squares = [f for m in term.monomials for f in m.factors if f.kind == "power" and f.power == 2]
    return any(any((*f.left[formula.points :], *f.right[formula.points :])) for f in squares)


def _fitted(problem: Problem, symmetry: Symmetry, terms: list[Term]) -> float | None:
    """The t for which these terms leave least."""
    if not terms:
        return None
    few = first(problem.train, FIT)
    b = symmetry.directions[0]
    own = float(b @ symmetry.form.matrix @ b)

    def residual(log: float) -> np.ndarray:
        rows = problem.rows(few, moved(symmetry, (float(np.exp(log)) - 1) / own))
        design = rows.design(refined(terms, rows))
        return rows.target - design @ solve(design, rows.target)

    def left(log: float) -> float:
        error = float(np.square(residual(log)).sum())
        return error if np.isfinite(error) else np.inf

    if not abs(own) > symmetry.form.tolerance:
        return None
    bounds = np.log(WIDEST)
    end = minimize_scalar(left, bounds=bounds, method="bounded", options={"xatol": 1e-5}).x
    if np.isfinite(residual(end)).all():
        # A sum of squares tells half of the digits of t, what it sums all of them.
        sharp: dict[str, Any] = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "bounds": bounds}
        end = least_squares(lambda log: residual(log[0]), [end], **sharp).x[0]
    return (float(np.exp(end)) - 1) / own
