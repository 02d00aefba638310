"""A formula described in words: errors of its numbers, how good it is, and the law in the given coordinates."""

from __future__ import annotations

import math

from gortho.forms import NO_ERROR, coefficient, number, set_off
from gortho.formulas.values import MOST_LEFT, Formula
from gortho.formulas.writing import TEXT, Writer

#: A predictor that leaves this many times what the formula leaves, and this share of the variance, is not worth using.
FAR_WORSE, POOR = 100.0, 0.05
#: Samples far from a formula are named where they are so few: more are no single mistakes.
NAMED = 5


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
    compared = f"{own:.2g} of the held-out variance, the predictor {other:.2g}{without}"
    if formula.holds:
        return f"leaves {compared}"
    kind = "an approximation only"
    if formula.broken:
        kind = "an approximation, since the form is kept only nearly"
    elif formula.sided:
        kind = "an approximation, since samples that are alike lie on the same side of it"
    elif formula.within and formula.unexplained <= MOST_LEFT:
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
    inside = ""
    for i, j, value in form.terms(formula.form_halves or None):
        sign = ("-" if scale * value < 0 else "") if not inside else (" - " if scale * value < 0 else " + ")
        one, other = (set_off(form.names[k]) for k in (i, j))
        size = abs(scale * value)
        half = size * abs(term.error / c / factor.power)
        if _without_error(formula):
            half = math.nan
        elif formula.form_halves:
            half = math.hypot(half, abs(scale) * formula.form_halves[i][j] * (1 + (i != j)))
        written = coefficient(size, 2, half)
        # To be quoted: c² in metres and seconds has more digits than two.
        if _without_error(formula) and abs(float(written) - size) > NO_ERROR * size:
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
