"""A formula described in words: errors, how good it is, the law in the given coordinates, what its signs mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from gortho.forms import NO_ERROR, coefficient, number, set_off
from gortho.formulas.terms import Way
from gortho.formulas.writing import LATEX, TEXT, Style, Writer
from gortho.reps import TensorRep

if TYPE_CHECKING:
    from gortho.formulas.values import Formula

#: A predictor that leaves this many times what the formula leaves, and this share of the variance, is not worth using.
FAR_WORSE, POOR = 100.0, 0.05
#: Samples far from a formula are named where they are so few: more are no single mistakes.
NAMED = 5
#: A form whose entries are this near to those of the identity is it: then × is the cross product of school.
SAME = 1e-6


def errors(formula: Formula) -> str:
    """Half 95 % intervals of the coefficients, and of the numbers inside functions, in the order of the formula."""
    if _without_error(formula):
        return f"below {NO_ERROR:.0e} of each number"
    return ", ".join(f"{half:.1g}" for half, _ in formula.halves)


def _without_error(formula: Formula) -> bool:
    """Whether all numbers are known to as many digits as are written."""
    found = formula.halves
    return bool(found) and all(half <= NO_ERROR * abs(value) for half, value in found)


def quality(formula: Formula) -> str:
    """How good it is, in words."""
    own, other = formula.unexplained, formula.predictor_unexplained
    (count, held_out), without = formula.far, ""
    if count:
        without = f", without {count} of {held_out} samples, which are far from both{_named(formula.which[1], count)}"
    if formula.exact:
        return f"leaves nothing of the held-out variance but rounding{without}"
    compared = f"{own:.2g} of the held-out variance, the predictor {other:.2g}"
    if formula.holds:
        return f"leaves {compared}{without}"
    if formula.twin_unexplained < other:
        compared += f", the best model of the same invariants {formula.twin_unexplained:.2g}"
    compared += without
    kind = "an approximation only"
    if formula.broken:
        kind = "an approximation, since the form is kept only nearly"
    elif formula.lacking:
        kind = "an approximation: what it leaves depends on the same inner products"
    elif formula.close:
        kind = f"an interpolation with {formula.numbers} numbers"
    return f"{kind}: leaves {compared}"


def _named(which: str, count: int) -> str:
    return f" ({which})" if which and count <= NAMED else ""


def in_coordinates(formula: Formula) -> str:
    """A power of one vector's square with the coefficient inside: "mass = √(1.00 E² - 0.0900 p²)"; "" for others."""
    (term, *others), symmetry = formula.terms, formula.symmetry
    form, (monomial, *_) = symmetry.form, term.monomials
    functions = [f for f in monomial.factors if f.kind != "scalar"]
    if others or term.summed or len(functions) != 1 or formula.points > 1 or not symmetry.plain:
        return ""
    factor, c = functions[0], term.coefficient
    if factor.kind != "power" or factor.shape or factor.absolute or monomial.legs or monomial.term:
        return ""
    scale = c if factor.power == 1 else abs(c) ** (1 / factor.power)
    inside, known = "", _without_error(formula)
    for i, j, value in form.terms(formula.form_halves or None):
        sign = ("-" if scale * value < 0 else "") if not inside else (" - " if scale * value < 0 else " + ")
        one, other = (set_off(form.names[k]) for k in (i, j))
        size = abs(scale * value)
        half = size * abs(term.error / c / factor.power)
        if formula.form_halves:
            half = math.hypot(half, abs(scale) * formula.form_halves[i][j] * (1 + (i != j)))
        written = coefficient(size, 2, math.nan if known else half)
        # To be quoted: c² in metres and seconds has more digits than two.
        if known and abs(float(written) - size) > NO_ERROR * size:
            written = number(size)
        inside += f"{sign}{written} {f'{one}²' if i == j else f'{one}·{other}'}"
    writer = Writer(formula, TEXT)
    scalars = [writer.factor(f) for f in monomial.factors if f.kind == "scalar"]
    inside = f"({inside})" if scalars and factor.power == 1 else inside
    written = TEXT.product([*scalars, TEXT.power(inside, factor.power, bracket=True)])
    return f"{set_off(formula.target)} = {'-' if c < 0 and factor.power != 1 else ''}{written}"


def lines(formula: Formula) -> list[str]:
    """The formula and what is to be said of it."""
    found = [str(formula), f"± 95 %: {errors(formula)}; {quality(formula)}"]
    if formula.left_out:
        without = f"fitted without {formula.left_out} of {formula.samples} samples, which are far from it"
        why = ": wrong ones, or the form is not known well enough there"
        found.append(without + _named(formula.which[0], formula.left_out) + why)
    if formula.holds and formula.predictor_unexplained > max(FAR_WORSE * formula.unexplained, POOR):
        found.append("far better than the predictor: compute y by the formula")
    expanded = in_coordinates(formula)
    if expanded:
        found.append(f"that is, {expanded}")
    if formula.rivals:
        found.append(f"these samples do not tell it from one with {', or '.join(formula.rivals)}")
    return found


def meanings(formula: Formula, style: Style = TEXT) -> list[str]:
    """What A, × and ε are in a formula, where it has them and it does not go without saying."""
    used = [formula.way(m.term) for term in formula.terms for m in term.monomials]
    n, A = formula.symmetry.form.n, formula.symmetry.form.matrix
    told, plain = [], float((A - torch.eye(n, dtype=A.dtype)).abs().max()) <= SAME
    if any(_has_metric(rep, way, n) for rep, way in used) and style is not LATEX:
        told.append(f"A is the matrix of q{', here the unit matrix' * plain}")
    free = {len(way.free) for _, way in used if way.free}
    if n == 3 and 1 in free and not plain:
        text, latex = "⟨u × v,w⟩ = det[u v w]", r"\langle u \times v, w\rangle = \det[u, v, w]"
        told.append(style.either(f"× is the cross product of q, {text}", latex))
    if free and (n != 3 or 2 in free):
        letters = [style.either(f"u{i}", f"u_{{{i}}}") for i in range(1, n + 1)]
        commas, spaces = ",".join(letters), style.either(" ", ", ").join(letters)
        told.append(style.either(f"ε({commas}) = det[{spaces}]", f"\\varepsilon({commas}) = \\det[{spaces}]"))
    return told


def _has_metric(rep: TensorRep, way: Way, n: int) -> bool:
    """Whether A or its inverse is written with it."""
    pairs = any(second < rep.up or first >= rep.up for first, second in way.rest.pairs)
    legs = any(position >= rep.up for position in way.rest.legs)
    crossed = n == 3 and len(way.free or ()) == 1
    return pairs or legs or any((position < rep.up) != crossed for position in way.free or ())
