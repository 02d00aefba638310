"""Formulas in sympy, written out in the coordinates."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from gortho.formulas.terms import Factor, Term, Weights
from gortho.reps import as_rep

if TYPE_CHECKING:
    from gortho.formulas.values import Formula

#: Mixed terms of a form below this share of their squares are rounding.
ROUNDING = 1e-9


def expression(formula: Formula) -> Any:
    """The formula as an expression of the coordinates and scalars; tensors as matrices (of rank 2 at most)."""
    try:
        import sympy
    except ImportError:
        raise ImportError("sympy() needs sympy: pip install sympy") from None
    rep, symmetry = as_rep(formula.output).parts[0], formula.symmetry
    if rep.rank > 2:
        raise ValueError(f"{rep} has {rep.rank} indices: sympy's matrices have two")
    names = np.array(formula.coordinates).reshape(formula.points, symmetry.n)
    # Shorter vectors are filled up with zeros, which have no names.
    vectors = [sympy.Matrix([sympy.Symbol(name, real=True) if name else 0 for name in row]) for row in names]
    if symmetry.linked:
        vectors = [sympy.Matrix(T.tolist()) * v for T, v in zip(symmetry.frames, vectors)]
    if symmetry.origin is not None:
        vectors = [v - sympy.Matrix(symmetry.origin.tolist()) for v in vectors]
    vectors += [sympy.Matrix(s) for s in symmetry.directions.tolist()]
    scalars = [sympy.Symbol(name, real=True) for name in formula.scalars]
    spaces = [*(symmetry.apart or [0] * formula.points), *[0] * len(symmetry.directions)]
    forms = [sympy.diag(_matrix(sympy, form), sympy.zeros(symmetry.n - form.n)) for form in symmetry.forms]

    plain = _functions(sympy)

    def total(weights: Weights) -> Any:
        return sum((w * vectors[i] for i, w in enumerate(weights) if w), sympy.zeros(symmetry.n, 1))

    def inner(left: Weights, right: Weights) -> Any:
        A = forms[spaces[next(i for i, w in enumerate(left) if w)]]
        u, v, n = total(left), total(right), range(symmetry.n)
        return sympy.Add(*(A[i, j] * u[i] * v[j] for i in n for j in n))

    def factor(f: Factor) -> Any:
        scalar = None if f.scalar is None else scalars[f.scalar]
        shape = None if f.shape is None else sympy.Float(f.shape)
        f = replace(f, power=sympy.nsimplify(f.power))
        if f.rooted and not f.absolute:  # never below zero, so that |…| is not written
            return replace(f, rooted=False).value(lambda *uv: sympy.sqrt(inner(*uv)), scalar, shape, plain)
        return f.value(inner, scalar, shape, plain)

    def leg(term: int, legs: tuple[Weights, ...]) -> Any:
        way, A = formula.way(term)[1], forms[0]
        for first, second in way.rest.pairs:
            return A.inv() if second < rep.up else A if first >= rep.up else sympy.eye(symmetry.n)
        rest = zip(way.rest.legs, legs[way.filled :])
        parts = {place: total(w) if place < rep.up else A * total(w) for place, w in rest}
        if way.free is not None:
            value = _volume(sympy, [total(w) for w in legs[: way.filled]], way.free, symmetry.n)
            up = [place < rep.up for place in way.free]
            value = A.inv() * value if up and up[0] else value
            if len(up) != 1:
                return value * A.inv() if up and up[1] else value
            parts[way.free[0]] = value
        ordered = [parts[place] for place in sorted(parts)]
        return sympy.Integer(1) if not parts else ordered[0] if rep.rank == 1 else ordered[0] * ordered[1].T

    def whole(term: Term) -> Any:
        products = [sympy.Mul(*map(factor, m.factors)) * leg(m.term, m.legs) for m in term.monomials]
        return sympy.Float(term.coefficient) * sum(products[1:], products[0])

    parts = [whole(term) for term in formula.terms]
    return sum(parts[1:], parts[0])


def _functions(sympy: Any) -> SimpleNamespace:
    """Those of `Factor.value`, by their names in numpy."""
    alike = {name: getattr(sympy, name) for name in ("sqrt", "log", "exp", "sin", "cos")}
    return SimpleNamespace(**alike, arcsin=sympy.asin, arccos=sympy.acos, clip=lambda t, least, most: t)


def _volume(sympy: Any, vectors: list[Any], free: tuple[int, ...], n: int) -> Any:
    """det[x_1 … x_n], or with unit vectors in the places of free indices: a column, or a matrix."""
    units = [sympy.Matrix([int(i == k) for i in range(n)]) for k in range(n)]

    def det(*last: Any) -> Any:
        return sympy.Matrix.hstack(*vectors, *last).det(method="berkowitz")

    if not free:
        return det()
    return sympy.Matrix(n, n if len(free) == 2 else 1, lambda i, j: det(*[units[i], units[j]][: len(free)]))


def _matrix(sympy: Any, form: Any) -> Any:
    """A, with zeros for mixed terms that are rounding."""
    A = form.matrix.numpy()
    size = np.sqrt(np.abs(np.outer(A.diagonal(), A.diagonal())))
    kept = np.where(np.abs(A) < ROUNDING * size, 0.0, A)
    return sympy.Matrix([[sympy.Float(v) if v else 0 for v in row] for row in kept.tolist()])
