"""`Formula`: a short law for y as a value, with error bars, and how good it is."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gortho.formulas import symbols, telling, writing
from gortho.formulas.terms import Quantities, Term, Way, ways_of
from gortho.reps import TensorRep, as_rep
from gortho.symmetry import Symmetry

#: A formula is the law where its held-out error is at most this many times that of the predictor …
WITHIN = 1.25
#: … and this many times that of the best of all models of the invariants …
TWICE = 2.0
#: … or this share of the variance, which is rounding …
EXACT = 1e-10
#: … and of what may be an interpolation, which comes near any smooth law: what even single precision does not leave.
EXACT_PIECES = 1e-14
#: What one term leaves below this share is digits of x and y, however little more terms leave.
DIGITS = 1e-8
#: … if its numbers are known to this share: where they are not, other sums do as well …
KNOWN = 0.05
#: … and at most this share: a formula that leaves more is no law, whatever the predictor leaves.
MOST_LEFT = 0.25
#: One that is neither exact nor a polynomial may have this many fitted numbers: with more, it interpolates.
NUMBERS = 4
#: So many terms that make up one function of a square are an interpolation, unless they are a polynomial.
PIECES = 3


@dataclass(frozen=True)
class Formula:
    """A short law for y, in inner products, scalars and vectors, with error bars.

    Attributes:
        target: the name of y.
        terms: the terms, each with its coefficient and half of its 95 % interval.
        symmetry: the forms that inner products are taken with; directions and origin, where there are any.
        output: how y transforms.
        vectors, scalars, coordinates: the names.
        unexplained: what it leaves of the variance of held-out samples.
        predictor_unexplained: what the predictor leaves of the same.
        twin_unexplained: what the best of all models of the invariants leaves, where it is known.
        rivals: terms that do as well in place of one, as far as these samples tell: "log⟨x,x⟩ for √⟨x,x⟩".
        left_out, samples: of so many samples that it could be fitted to, those that are far from it do not count.
        far: of so many held-out samples, those far from formula and predictor are not in the two shares.
        form_halves: half 95 % intervals of the form's entries, where they are known.
        lacking: whether what it leaves over is a function of the same inner products and scalars.
        broken: whether the symmetry is known to be kept only nearly, so that no law can be written with it.
        which: where those that were left out of the fit, and of the shares, stand; "" where that is not known.

    >>> from gortho import QuadraticForm
    >>> from gortho.formulas.terms import Factor, Monomial
    >>> kinetic = Term((Monomial((Factor("scalar", scalar=0), Factor("power", (1,), (1,)))),), "", 0.5, 0.01)
    >>> law = Formula("energy", (kinetic,), Symmetry(QuadraticForm.euclidean(3)), "scalar", ("v",), ("m",))
    >>> print(law)
    energy = 0.50 m ⟨v,v⟩
    >>> float(law(np.array([[[3.0, 0.0, 4.0]]]), {"sample": np.array([2.0])})[0])
    25.0
    """

    target: str
    terms: tuple[Term, ...]
    symmetry: Symmetry
    output: str = "scalar"
    vectors: tuple[str, ...] = ("x",)
    scalars: tuple[str, ...] = ()
    coordinates: tuple[str, ...] = ()
    unexplained: float = math.nan
    predictor_unexplained: float = math.nan
    twin_unexplained: float = math.nan
    rivals: tuple[str, ...] = field(default=())
    left_out: int = 0
    samples: int = 0
    far: tuple[int, int] = (0, 0)
    which: tuple[str, str] = ("", "")
    form_halves: tuple[tuple[float, ...], ...] = ()
    broken: bool = False
    lacking: bool = False

    @property
    def within(self) -> bool:
        """Whether its error is that of the predictor, within a factor (`WITHIN`), or rounding.

        A predictor that is no better than the mean is no measure. Nor does a formula hold where another model of the
        same invariants is far better (`TWICE`).
        """
        good = WITHIN * self.predictor_unexplained if self.predictor_unexplained < 1 else 0.0
        good = min(good, math.inf if math.isnan(self.twin_unexplained) else TWICE * self.twin_unexplained)
        return self.unexplained <= max(good, DIGITS if len(self.terms) == 1 else EXACT)

    @property
    def exact(self) -> bool:
        """Whether it leaves nothing but rounding, and its numbers are known as a law's are that does."""
        limit = EXACT_PIECES if self.pieced and not self.polynomial else EXACT
        return self.unexplained <= limit and all(half <= KNOWN * abs(value) for half, value in self.halves)

    @property
    def halves(self) -> list[tuple[float, float]]:
        """Half 95 % intervals, where they are known, and the numbers that they belong to."""
        found: list[tuple[float, float]] = []
        for term in self.terms:
            inside = [(f.shape_error, f.shape) for f in term.monomials[0].factors if f.shape is not None]
            found += [(term.error, term.coefficient), *inside]
        return [pair for pair in found if math.isfinite(pair[0])]

    @property
    def polynomial(self) -> bool:
        """Whether it is a polynomial of inner products, scalars and vectors."""
        return all(term.polynomial for term in self.terms)

    @property
    def needs_no_form(self) -> bool:
        """Whether it has neither inner products nor indices: determinants and scalars alone."""
        factors = [f for term in self.terms for m in term.monomials for f in m.factors]
        return all(f.kind == "scalar" for f in factors) and not as_rep(self.output).parts[0].rank

    @property
    def numbers(self) -> int:
        """How many numbers were fitted: coefficients, and those inside functions."""
        return len(self.terms) + sum(len(term.shapes) for term in self.terms)

    @property
    def holds(self) -> bool:
        """Whether it may be called the law: as good as a good predictor, and exact, a polynomial, or of few numbers."""
        short = self.exact or self.polynomial or (self.numbers <= NUMBERS and not self.pieced)
        return self.close and short and not (self.broken or self.lacking)

    @property
    def close(self) -> bool:
        """Whether it is as good as the predictor, and leaves little."""
        return self.within and self.unexplained <= MOST_LEFT

    @property
    def pieced(self) -> bool:
        """Whether three terms or more make up one function of a square: an interpolation, if they are no polynomial."""
        seen: Counter[Any] = Counter()
        for term in self.terms:
            first = term.monomials[0]
            scalars = tuple(f for f in first.factors if f.kind == "scalar")
            squares = tuple((f.left, f.right) for f in first.factors if f.kind != "scalar")
            seen[(first.term, first.legs, scalars), squares] += 1
        # A constant, or what stands for one, is part of each of these functions.
        return any(
            count + seen[beside, ()] >= PIECES for (beside, squares), count in [*seen.items()] if squares
        )

    @property
    def points(self) -> int:
        """Vectors in a sample; directions come after them among the names."""
        return len(self.vectors) - len(self.symmetry.directions)

    def __call__(self, X: Any, scalars: Any = None) -> np.ndarray:
        """Its values ``(N, …)`` for inputs as in `discover`."""
        from gortho.samples.arranged import as_found
        from gortho.samples.door import flat_scalars

        forms, spaces = self.symmetry.forms, self.symmetry.spaces or [0] * self.points
        kinds = [form.names for form in forms] or [self.coordinates[: self.symmetry.n]]
        columns = [name for name in self.coordinates if name]  # shorter vectors are filled up
        points = np.asarray(as_found(X, kinds, spaces, columns), float)
        points = points[:, None] if points.ndim == 2 else points
        flat = flat_scalars(X, scalars, points.shape, self.scalars)
        if points.shape[1] != self.points or flat.shape[1] != len(self.scalars):
            raise ValueError(
                f"{points.shape[1]} vector(s) and {flat.shape[1]} scalar(s) a sample: the formula takes {self.points} "
                f"and {len(self.scalars)}"
            )
        with np.errstate(all="ignore"):
            total = self.values(Quantities(points, flat, self.symmetry, self.output))
        return total.reshape(len(points), *as_rep(self.output).shape(self.symmetry.n))

    def values(self, quantities: Quantities) -> np.ndarray:
        """Its values ``(N, components)`` of given quantities."""
        return np.asarray(sum(t.coefficient * quantities.column(t) for t in self.terms))

    def way(self, number: int) -> tuple[TensorRep, Way]:
        """How y transforms, and one of the ways to build it."""
        rep, form = as_rep(self.output).parts[0], self.symmetry.form
        return rep, ways_of(rep, form.n, form.signature.zero > 0)[number]

    def __str__(self) -> str:
        return writing.text(self)

    def __repr__(self) -> str:
        return f"<Formula {self}>"

    def lines(self) -> list[str]:
        """The formula, its error bars, and how good it is, in lines."""
        return telling.lines(self)

    def latex(self) -> str:
        """The formula in LaTeX, without dollar signs."""
        return writing.latex(self)

    def sympy(self) -> Any:
        """The formula in sympy, written out in the coordinates: an expression, or a matrix of such."""
        return symbols.expression(self)

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"
