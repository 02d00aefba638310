"""Formulas as text and in LaTeX, with the names given by users; numbers have as many digits as their errors justify."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from gortho.forms import WORD, number, set_off
from gortho.formulas.handed import volume, way_of
from gortho.formulas.terms import FUNCTIONS, PAIRS, Factor, Monomial, Term, Weights
from gortho.formulas.values import Formula

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

    def name(self, name: str) -> str:
        """A name as a factor."""
        return symbol(name) if self.latex else set_off(name)

    def indexed(self, one: str, two: str, mark: str) -> str | None:
        """A name with an index in place of its number."""
        parts = without_number(one, two)
        if parts is None or not all(WORD.fullmatch(name) for name in (one, two)):
            return None
        before, after = parts
        if self.latex:
            return f"{symbol(before + after)}_{{{mark}}}"
        return before + {"i": "ᵢ", "j": "ⱼ"}[mark] + after

    def number(self, value: float, half: float = math.nan) -> str:
        """A number with the digits that its error leaves."""
        return in_latex(number(value, half)) if self.latex else number(value, half)

    def power(self, base: str, power: float, bracket: bool = False) -> str:
        """A power; roots as roots."""
        if power == 1:
            return base
        if power == 0.5:
            return f"\\sqrt{{{base}}}" if self.latex else f"√({base})" if bracket else f"√{base}"
        if bracket:
            base = f"\\left({base}\\right)" if self.latex else f"({base})"
        if self.latex:
            return f"{base}^{{{power:g}}}"
        return base + {2.0: "²", 3.0: "³"}.get(float(power), f"^{power:g}")

    def product(self, parts: list[str]) -> str:
        """Factors side by side."""
        return ("\\," if self.latex else " ").join(part for part in parts if part)


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
        each = len(formula.scalars) // points if points and len(formula.scalars) >= points else 0
        for place, mark in enumerate(marks):
            other = 1 if place == 0 else 0
            self._mark(self.vectors, formula.vectors, place, other, mark, formula.symmetry.origin is not None)
            for k in range(each):
                self._mark(self.scalars, formula.scalars, place * each + k, other * each + k, mark)

    def _mark(
        self,
        written: list[str],
        names: tuple[str, ...],
        place: int,
        other: int,
        mark: str,
        moved: bool = False,
    ) -> None:
        found = self.style.indexed(names[place], names[other], mark)
        if found is None:
            self.fits = False
        else:
            written[place] = f"{found}-c" if moved else found

    def vector(self, weights: Weights, bracket: bool = False) -> str:
        """A sum of vectors: "x1-x2"."""
        if self.marks and all(weights[: self.formula.points]) and len(set(weights)) == 1:
            return "\\textstyle\\sum x" if self.style.latex else "Σx"
        parts = [("+" if w > 0 else "-") + self.vectors[i] for i, w in enumerate(weights) if w]
        text = "".join(parts).removeprefix("+")
        if not bracket or (len(parts) == 1 and "-c" not in text):
            return text
        return f"({text})"

    def inner(self, left: Weights, right: Weights) -> str:
        """⟨u, v⟩."""
        u, v = self.vector(left), self.vector(right)
        return f"\\langle {u}, {v}\\rangle" if self.style.latex else f"⟨{u},{v}⟩"

    def factor(self, factor: Factor) -> str:
        """A function of an inner product, or a power of a scalar."""
        style = self.style
        if factor.kind == "scalar":
            assert factor.scalar is not None
            return style.power(self.scalars[factor.scalar], factor.power)
        t = self.inner(factor.left, factor.right)
        if factor.absolute:
            t = f"\\left|{t}\\right|" if style.latex else f"|{t}|"
        if factor.rooted:
            t = style.power(t, 0.5)
        if factor.kind == "free":
            shape = style.number(factor.shape or 0.0, factor.shape_error)
            return f"{t}^{{{shape}}}" if style.latex else f"{t}^{shape}"
        function = f"\\{factor.kind}" if style.latex else factor.kind
        bracket = ("\\left(", "\\right)") if style.latex else ("(", ")")
        if factor.kind in PAIRS:
            squares = "".join(self.inner(w, w) for w in (factor.left, factor.right))
            if factor.kind == "area":
                return style.power(f"{squares} - {style.power(t, 2)}", 0.5, bracket=True)
            root = style.power(squares, 0.5, bracket=True)
            cosine = f"\\frac{{{t}}}{{{root}}}" if style.latex else f"{t}/{root}"
            return f"{chr(92) * style.latex}arccos{bracket[0]}{cosine}{bracket[1]}"
        if factor.kind in FUNCTIONS:
            shape = style.number(factor.shape or 0.0, factor.shape_error)
            given = [] if factor.scalar is None else [self.scalars[factor.scalar]]
            return f"{function}{bracket[0]}{style.product([shape, *given, t])}{bracket[1]}"
        if factor.shape:
            t = self._shifted(factor, t)
        if factor.kind == "log":
            return f"{function}{bracket[0]}{t}{bracket[1]}" if factor.shape or style.latex else f"log{t}"
        return style.power(t, factor.power, bracket=bool(factor.shape))

    def _shifted(self, factor: Factor, t: str) -> str:
        """t + a, or a - t."""
        shape = factor.shape or 0.0
        written = self.style.number(abs(shape), factor.shape_error)
        of = [] if factor.scalar is None else [self.style.power(self.scalars[factor.scalar], 2)]
        sign, added = "-" if shape < 0 else "", self.style.product([written, *of])
        return f"{sign}{added} - {t}" if factor.falling else f"{t} {sign or '+'} {added}"

    def legs(self, monomial: Monomial) -> tuple[list[str], list[str]]:
        """The vectors and the metric that the output is made of."""
        part, way = way_of(self.formula, monomial.term)
        raised = "^{-1}" if self.style.latex else "⁻¹"
        metric = [f"A{raised}" if b < part.up else "A" if a >= part.up else "I" for a, b in way.rest.pairs]
        transposed, written = "^{\\top}" if self.style.latex else "ᵀ", []
        for position, weights in zip(way.rest.legs, monomial.legs[way.filled :]):
            vector = self.vector(weights, bracket=True)
            if part.rank == 2 and position == 1:
                written.append(vector + transposed + ("A" if position >= part.up else ""))
            else:
                written.append(("A" if position >= part.up else "") + vector)
        if way.free is not None:
            written.insert(len(written) if way.free == (1,) else 0, self._volume(monomial))
        return written, metric

    def _volume(self, monomial: Monomial) -> str:
        """ε with its vectors."""
        part, way = way_of(self.formula, monomial.term)
        n, alone = self.formula.symmetry.form.n, all(f.kind == "scalar" for f in monomial.factors)
        crossed = n == 3 and len(way.free or ()) == 1
        vectors = [self.vector(weights, bracket=crossed) for weights in monomial.legs[: way.filled]]
        return volume(part, way, n, vectors, self.style.latex, alone)

    def monomial(self, monomial: Monomial) -> str:
        """A product: scalars, vectors, functions, metric."""
        scalars = [self.factor(f) for f in monomial.factors if f.kind == "scalar"]
        functions = [self.factor(f) for f in monomial.factors if f.kind != "scalar"]
        legs, metric = self.legs(monomial)
        return self.style.product([*scalars, *legs, *functions, *metric])


def body(formula: Formula, term: Term, style: Style) -> str:
    """A term without its coefficient."""
    if not term.summed:
        return Writer(formula, style).monomial(term.monomials[0])
    marks = "i" if term.summed == "each" else "ij"
    writer = Writer(formula, style, marks)
    if writer.fits:
        run = {"each": ("Σᵢ", r"\sum_{i}"), "pairs": ("Σᵢ﹤ⱼ", r"\sum_{i<j}")}[term.summed][style.latex]
        return style.product([run, writer.monomial(term.monomials[0])])
    plain = Writer(formula, style)
    return f"({' + '.join(plain.monomial(m) for m in term.monomials)})"


def _written(formula: Formula, style: Style) -> str:
    text = ""
    for term in formula.terms:
        c = term.coefficient
        sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
        text += sign + style.product([style.number(abs(c), term.error), body(formula, term, style)])
    return text or "0"


def _holds(formula: Formula) -> bool:
    return formula.holds or math.isnan(formula.unexplained)


def text(formula: Formula) -> str:
    """The formula in one line: "energy = 0.50 m1 ⟨x1,x1⟩ + 0.50 m2 ⟨x2,x2⟩"."""
    return f"{set_off(formula.target)} {'=' if _holds(formula) else '≈'} {_written(formula, TEXT)}"


def latex(formula: Formula) -> str:
    """The formula in LaTeX."""
    relation = "=" if _holds(formula) else "\\approx"
    return f"{symbol(formula.target)} {relation} {_written(formula, LATEX)}"
