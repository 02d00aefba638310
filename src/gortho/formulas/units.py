"""Formulas in other units of x and y: numbers of any size are fitted at order one, and written in the given units."""

from __future__ import annotations

from dataclasses import replace

from gortho.formulas.terms import Factor, Term
from gortho.formulas.values import Formula
from gortho.symmetry import Symmetry


def about(symmetry: Symmetry, x_unit: float) -> Symmetry:
    """The same symmetry for x in these units: only an origin has a size."""
    if symmetry.origin is None or x_unit == 1:
        return symmetry
    return Symmetry(
        symmetry.forms,
        spaces=symmetry.spaces,
        special=symmetry.special,
        directions=symmetry.directions,
        origin=symmetry.origin / x_unit,
        skew=symmetry.skew,
    )


def given(formula: Formula, symmetry: Symmetry, x_unit: float, y_unit: float) -> Formula:
    """A formula of x / x_unit for y / y_unit as one of x for y, which may have no logarithm."""
    fixed = len(formula.vectors) - len(symmetry.directions)
    terms = tuple(_term(term, x_unit, y_unit, fixed) for term in formula.terms)
    return replace(formula, terms=terms, symmetry=symmetry)


def _term(term: Term, x_unit: float, y_unit: float, fixed: int) -> Term:
    """Monomials that are summed are alike, so the first tells the factor of all."""
    first = term.monomials[0]
    power = sum(_degree(leg, fixed) for leg in first.legs)
    factor = y_unit / x_unit ** (power + sum(_size(f, fixed) * _power(f) for f in first.factors))
    monomials = (
        replace(m, factors=tuple(_factor(f, x_unit, fixed) for f in m.factors)) for m in term.monomials
    )
    return Term(tuple(monomials), term.summed, term.coefficient * factor, term.error * factor)


def _degree(weights: tuple[int, ...], fixed: int) -> int:
    """1 for a sum of vectors of a sample, 0 for a direction, which has no size."""
    return int(any(weights[:fixed]))


def _size(f: Factor, fixed: int) -> float:
    """The power of the unit of x in the quantity that a factor is a function of."""
    if f.kind == "scalar":
        return 0.0
    return (_degree(f.left, fixed) + _degree(f.right, fixed)) * (0.5 if f.rooted else 1.0)


def _power(f: Factor) -> float:
    """The power that a factor takes of its quantity, but for what goes into the number inside."""
    if f.kind == "free":
        assert f.shape is not None
        return f.shape
    return f.power if f.kind in ("power", "area") else 0.0


def _factor(f: Factor, x_unit: float, fixed: int) -> Factor:
    if f.shape is None or f.kind in ("free", "scalar"):
        return f
    change = x_unit ** _size(f, fixed)
    change = change if f.kind == "power" else 1 / change  # added to the quantity, or multiplied with it
    return replace(f, shape=f.shape * change, shape_error=f.shape_error * change)
