"""Formulas as text and in LaTeX, with the names given by users; numbers have as many digits as their errors justify."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gortho.forms import WORD, number, set_off
from gortho.formulas.terms import FUNCTIONS, PAIRS, Factor, Monomial, Term, Way, Weights
from gortho.reps import TensorRep

if TYPE_CHECKING:
    from gortho.formulas.values import Formula

#: Powers and indices that text has letters for.
POWERS, INDICES = {2.0: "²", 3.0: "³"}, {"i": "ᵢ", "j": "ⱼ"}
#: Names that LaTeX knows as letters.
GREEK = re.compile(
    r"(alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega)"
)


def symbol(name: str) -> str:
    r"""A name in LaTeX; what is no single word stands in brackets.

    >>> symbol("px"), symbol("x0"), symbol("mu_1"), symbol("m²")
    ('\\mathrm{px}', 'x_{0}', '\\mu_{1}', '\\left(\\text{m²}\\right)')
    """
    if WORD.fullmatch(name):
        stem, digits = re.fullmatch(r"(.*?)_?(\d*)", name).groups()  # type: ignore[union-attr]
        low = f"_{{{digits}}}" if digits else ""
        if len(stem) == 1:
            return stem + low
        if GREEK.fullmatch(stem):
            return f"\\{stem}{low}"
        return f"\\mathrm{{{_escaped(stem)}}}{low}"
    return f"\\left(\\text{{{_escaped(name)}}}\\right)"


def _escaped(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    return "".join(special.get(c, f"\\{c}" if c in "_&%$#{}" else c) for c in text)


def in_latex(text: str) -> str:
    """A number in LaTeX.

    >>> in_latex("-2.2e-07")
    '-2.2 \\\\cdot 10^{-7}'
    """
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def without_number(one: str, two: str) -> tuple[str, str] | None:
    """What stands before and after the one number in which two names differ.

    >>> without_number("m_1", "m_2"), without_number("x1", "y2")
    (('m', ''), None)
    """
    same = next((k for k, (a, b) in enumerate(zip(one, two)) if a != b), 0)
    start = one[:same].rstrip("0123456789")
    first, second = (re.fullmatch(r"(\d+)(.*)", name[len(start) :]) for name in (one, two))
    if first is None or second is None or first[2] != second[2]:
        return None
    return start.rstrip("_"), first[2]


@dataclass(frozen=True)
class Style:
    """How formulas are set: as text, or in LaTeX."""

    latex: bool

    def either(self, text: str, latex: str) -> str:
        """A sign as text or in LaTeX."""
        return latex if self.latex else text

    def bracket(self, inside: str) -> str:
        """Something in brackets."""
        return self.either(f"({inside})", f"\\left({inside}\\right)")

    def name(self, name: str) -> str:
        """A name as a factor."""
        return symbol(name) if self.latex else set_off(name)

    def indexed(self, one: str, two: str, mark: str) -> str | None:
        """A name with an index in place of its number."""
        parts = without_number(one, two)
        if parts is None or not all(WORD.fullmatch(name) for name in (one, two)):
            return None
        before, after = parts
        return f"{symbol(before + after)}_{{{mark}}}" if self.latex else before + INDICES[mark] + after

    def number(self, value: float, half: float = math.nan) -> str:
        """A number with the digits that its error leaves."""
        return in_latex(number(value, half)) if self.latex else number(value, half)

    def power(self, base: str, power: float, bracket: bool = False) -> str:
        """A power; roots as roots."""
        if power == 1:
            return base
        if power == 0.5:
            return self.either(f"√({base})" if bracket else f"√{base}", f"\\sqrt{{{base}}}")
        base = self.bracket(base) if bracket else base
        return base + self.either(POWERS.get(float(power), f"^{power:g}"), f"^{{{power:g}}}")

    def product(self, parts: list[str]) -> str:
        """Factors side by side."""
        return self.either(" ", "\\,").join(part for part in parts if part)


TEXT, LATEX = Style(False), Style(True)


def map_names(count: int) -> list[str]:
    """Names, in LaTeX, of the maps that take vectors of other kinds to the frame of the first."""
    return ["T"] if count == 1 else [f"T_{{{place + 1}}}" for place in range(count)]


class Writer:
    """Writes the terms of a formula; with marks, those of a sum over its first vector or pair."""

    def __init__(self, formula: Formula, style: Style, marks: str = ""):
        self.formula, self.style, self.marks = formula, style, marks
        self.vectors = [style.name(name) for name in formula.vectors]
        self.scalars = [style.name(name) for name in formula.scalars]
        self.fits = True
        points = formula.points
        if style.latex and formula.symmetry.linked:
            names = ["", *map_names(len(formula.symmetry.maps))]
            for place, space in enumerate(formula.symmetry.spaces):
                self.vectors[place] = style.product([names[space], self.vectors[place]])
        if formula.symmetry.origin is not None:
            self.vectors = [f"{v}-c" for v in self.vectors[:points]] + self.vectors[points:]
        each = len(formula.scalars) // points if points else 0
        for place, mark in enumerate(marks):
            other = 1 if place == 0 else 0
            self.vectors[place] = self._marked(formula.vectors, place, other, mark)
            self.vectors[place] += "" if formula.symmetry.origin is None else "-c"
            for k in range(each):
                own = place * each + k
                self.scalars[own] = self._marked(formula.scalars, own, other * each + k, mark)

    def _marked(self, names: tuple[str, ...], place: int, other: int, mark: str) -> str:
        """A name with a mark in place of the number in which another one differs; where there is none, it fits not."""
        found = self.style.indexed(names[place], names[other], mark)
        self.fits &= found is not None
        return found or names[place]

    def vector(self, weights: Weights, bracket: bool = False) -> str:
        """A sum of vectors: "x1-x2"."""
        if self.marks and all(weights[: self.formula.points]) and len(set(weights)) == 1:
            return self.style.either("Σx", "\\textstyle\\sum x")
        parts = [("+" if w > 0 else "-") + self.vectors[i] for i, w in enumerate(weights) if w]
        text = "".join(parts).removeprefix("+")
        return f"({text})" if bracket and (len(parts) > 1 or "-c" in text) else text

    def inner(self, left: Weights, right: Weights) -> str:
        """⟨u, v⟩."""
        u, v = self.vector(left), self.vector(right)
        return self.style.either(f"⟨{u},{v}⟩", f"\\langle {u}, {v}\\rangle")

    def factor(self, factor: Factor) -> str:
        """A function of an inner product, or a power of a scalar."""
        style, kind = self.style, factor.kind
        scalar = "" if factor.scalar is None else self.scalars[factor.scalar]
        if kind == "scalar":
            return style.power(scalar, factor.power)
        t = self.inner(factor.left, factor.right)
        if kind in PAIRS:
            squares = "".join(self.inner(w, w) for w in (factor.left, factor.right))
            if kind == "area":
                return style.power(f"{squares} - {style.power(t, 2)}", 0.5, bracket=True)
            root = style.power(squares, 0.5, bracket=True)
            cosine = style.either(f"{t}/{root}", f"\\frac{{{t}}}{{{root}}}")
            return style.either("arccos", "\\arccos") + style.bracket(cosine)
        if factor.absolute:
            t = style.either(f"|{t}|", f"\\left|{t}\\right|")
        if factor.rooted:
            t = style.power(t, 0.5)
        function, shape = style.either(kind, f"\\{kind}"), factor.shape or 0.0
        if kind == "free":
            exponent = style.number(shape, factor.shape_error)
            return style.either(f"{t}^{exponent}", f"{t}^{{{exponent}}}")
        if kind in FUNCTIONS:
            inside = style.product([style.number(shape, factor.shape_error), scalar, t])
            return function + style.bracket(inside)
        if shape:  # t + a, or a - t
            size = style.number(abs(shape), factor.shape_error)
            added = style.product([size, style.power(scalar, 2) if scalar else ""])
            sign = "-" if shape < 0 else ""
            t = f"{sign}{added} - {t}" if factor.falling else f"{t} {sign or '+'} {added}"
        if kind == "log":
            return function + (style.bracket(t) if shape or style.latex else t)
        return style.power(t, factor.power, bracket=bool(shape))

    def legs(self, monomial: Monomial) -> tuple[list[str], list[str]]:
        """The vectors and the metric that the output is made of."""
        part, way = self.formula.way(monomial.term)
        raised, transposed = self.style.either("A⁻¹", "A^{-1}"), self.style.either("ᵀ", "^{\\top}")
        metric = [raised if b < part.up else "A" if a >= part.up else "I" for a, b in way.rest.pairs]
        written = []
        for position, weights in zip(way.rest.legs, monomial.legs[way.filled :]):
            vector, lowered = self.vector(weights, bracket=True), "A" * (position >= part.up)
            row = part.rank == 2 and position == 1
            written.append(vector + transposed + lowered if row else lowered + vector)
        if way.free is not None:
            n, alone = self.formula.symmetry.form.n, all(f.kind == "scalar" for f in monomial.factors)
            crossed = n == 3 and len(way.free) == 1
            vectors = [self.vector(weights, bracket=crossed) for weights in monomial.legs[: way.filled]]
            place = len(written) if way.free == (1,) else 0
            written.insert(place, volume(part, way, n, vectors, self.style, alone))
        return written, metric

    def monomial(self, monomial: Monomial) -> str:
        """A product: scalars, vectors, functions, metric."""
        scalars = [self.factor(f) for f in monomial.factors if f.kind == "scalar"]
        functions = [self.factor(f) for f in monomial.factors if f.kind != "scalar"]
        legs, metric = self.legs(monomial)
        return self.style.product([*scalars, *legs, *functions, *metric])


def volume(rep: TensorRep, way: Way, n: int, vectors: list[str], style: Style, alone: bool) -> str:
    """ε with vectors in its slots, and with the metric that raises its free indices.

    ``alone`` is a product that nothing follows, which needs no brackets.

    >>> from gortho.formulas.terms import ways_of
    >>> rep = TensorRep(1, 0)
    >>> way = ways_of(rep, 3, False)[-1]
    >>> volume(rep, way, 3, ["r", "F"], TEXT, True), volume(rep, way, 3, ["r", "F"], LATEX, False)
    ('r × F', '(r \\\\times F)')
    """
    assert way.free is not None
    if not way.free:
        return style.either(f"det[{' '.join(vectors)}]", f"\\det[{', '.join(vectors)}]")
    raised, top = style.either("A⁻¹", "A^{-1}"), style.either("ᵀ", "^{\\top}")
    up = [position < rep.up for position in way.free]
    second = way.free == (1,)  # the column of a matrix stands first, and this is its row
    if n == 3 and len(way.free) == 1:
        cross = style.either(" × ", " \\times ").join(vectors)
        cross = cross if alone and up[0] and rep.rank == 1 else f"({cross})"
        return cross + top + "A" * (not up[0]) if second else "A" * (not up[0]) + cross
    dots = [style.either("·", "\\cdot")] * len(way.free)
    text = f"{style.either('ε', chr(92) + 'varepsilon')}({','.join([*vectors, *dots])})"
    if len(way.free) == 2:
        return raised * up[0] + text + raised * up[1]
    return text + top + raised * up[0] if second else raised * up[0] + text


def body(formula: Formula, term: Term, style: Style) -> str:
    """A term without its coefficient."""
    if not term.summed:
        return Writer(formula, style).monomial(term.monomials[0])
    marks = "i" if term.summed == "each" else "ij"
    writer = Writer(formula, style, marks)
    if writer.fits:
        run = {"each": ("Σᵢ", r"\sum_{i}"), "pairs": ("Σᵢ﹤ⱼ", r"\sum_{i<j}")}[term.summed]
        return style.product([style.either(*run), writer.monomial(term.monomials[0])])
    plain = Writer(formula, style)
    return f"({' + '.join(plain.monomial(m) for m in term.monomials)})"


def _written(formula: Formula, style: Style) -> str:
    """y = …, or y ≈ … for an approximation."""
    text = ""
    for term in formula.terms:
        c = term.coefficient
        sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
        text += sign + style.product([style.number(abs(c), term.error), body(formula, term, style)])
    holds = formula.holds or math.isnan(formula.unexplained)
    relation = "=" if holds else style.either("≈", "\\approx")
    return f"{style.name(formula.target)} {relation} {text or '0'}"


def text(formula: Formula) -> str:
    """The formula in one line: "energy = 0.50 m1 ⟨x1,x1⟩ + 0.50 m2 ⟨x2,x2⟩"."""
    return _written(formula, TEXT)


def latex(formula: Formula) -> str:
    """The formula in LaTeX."""
    return _written(formula, LATEX)
