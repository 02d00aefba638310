"""`Formula`: a short law for y as a value, with error bars; its terms, their factors, and how good it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gortho.formulas.ways import product_of, ways_of
from gortho.reps import as_rep
from gortho.symmetry import Symmetry

#: A formula is the law where its held-out error is at most this many times that of the predictor …
WITHIN = 1.25
#: … or this share of the variance, which is rounding …
EXACT = 1e-10
#: What one term leaves below this share is digits of x and y, however little more terms leave.
DIGITS = 1e-8
#: … if its numbers are known to this share: where they are not, other sums do as well …
KNOWN = 0.05
#: … and at most this share: a formula that leaves more is no law, whatever the predictor leaves.
MOST_LEFT = 0.25
#: One that is neither exact nor a polynomial may have this many fitted numbers: with more, it interpolates.
NUMBERS = 4

#: Functions of a number inside times t; and of all inner products of a pair of vectors.
FUNCTIONS, PAIRS = ("exp", "sin", "cos", "arcsin"), ("angle", "area")

#: A sum of the vectors of a sample, by its whole weights.
Weights = tuple[int, ...]


@dataclass(frozen=True)
class Factor:
    """A function of one inner product ⟨u, v⟩, or a power of a scalar.

    Attributes:
        kind: "scalar" s^power; "power" t^power; "log" log t; "free" t^shape; "exp", "sin", "cos", "arcsin" of
            shape · t; "angle" the angle between u and v; "area" that of their parallelogram, |u × v|.
        left, right: the vectors u and v of t = ⟨u, v⟩.
        power: the exponent.
        absolute: t is |⟨u, v⟩|.
        rooted: t is √|⟨u, v⟩|.
        falling: t is -⟨u, v⟩: what is taken from a number, as in (1 - v²)^-0.5.
        shape: a number that was fitted; of powers and logarithms it is added to t.
        shape_error: half of its 95 % interval.
        scalar: which scalar; of powers, the one whose square the shape multiplies, of arcsin, one that t is times.
    """

    kind: str
    left: Weights = ()
    right: Weights = ()
    power: float = 1.0
    absolute: bool = False
    rooted: bool = False
    falling: bool = False
    shape: float | None = None
    shape_error: float = 0.0
    scalar: int | None = None

    def value(self, inner: np.ndarray | None, scalar: np.ndarray | None) -> np.ndarray:
        """Its values ``(N,)`` where the inner product and the scalar have these; not finite outside its domain."""
        if self.kind == "scalar":
            assert scalar is not None
            return scalar**self.power
        assert inner is not None
        t = np.sqrt(np.abs(inner)) if self.rooted else np.abs(inner) if self.absolute else inner
        t = -t if self.falling else t
        a = 0.0 if self.shape is None else self.shape
        if self.kind == "free":
            return t**a
        if self.kind == "angle":
            return np.arccos(np.clip(t, -1.0, 1.0))  # beyond is rounding: t is a cosine
        if self.kind == "area":
            return np.sqrt(np.maximum(t, 0.0))  # below is rounding: t is a Gram determinant
        if self.kind in FUNCTIONS:
            return getattr(np, self.kind)(a * t if scalar is None else a * t * scalar)
        if a:
            t = t + a * (1.0 if scalar is None else scalar * scalar)
        return np.log(t) if self.kind == "log" else t if self.power == 1 else t**self.power


@dataclass(frozen=True)
class Monomial:
    """A product of factors and vectors: ``term`` says how the output is built (`ways_of`), ``legs`` of what."""

    factors: tuple[Factor, ...] = ()
    term: int = 0
    legs: tuple[Weights, ...] = ()


@dataclass(frozen=True)
class Term:
    """A coefficient times a monomial, or times a sum of alike ones over all vectors ("each") or over "pairs" of them.

    ``error`` is half of the coefficient's 95 % interval.
    """

    monomials: tuple[Monomial, ...]
    summed: str = ""
    coefficient: float = math.nan
    error: float = math.nan

    @property
    def shapes(self) -> tuple[float, ...]:
        """The fitted numbers inside, each once: those of a sum are alike."""
        return tuple(f.shape for f in self.monomials[0].factors if f.shape is not None)

    @property
    def polynomial(self) -> bool:
        """Whether it is a product of whole powers, none below zero."""
        factors = [factor for monomial in self.monomials for factor in monomial.factors]
        return all(
            f.kind in ("power", "scalar") and f.shape is None and f.power in (1, 2, 3) for f in factors
        )

    @property
    def logarithm(self) -> bool:
        """Whether a logarithm is in it."""
        return any(factor.kind == "log" for monomial in self.monomials for factor in monomial.factors)

    def shaped(self, shapes: Sequence[float], errors: Sequence[float] | None = None) -> Term:
        """The same with other numbers inside."""
        halves = [0.0] * len(shapes) if errors is None else list(errors)

        def changed(monomial: Monomial) -> Monomial:
            given: Any = ({"shape": float(a), "shape_error": float(half)} for a, half in zip(shapes, halves))
            factors = [f if f.shape is None else replace(f, **next(given)) for f in monomial.factors]
            return replace(monomial, factors=tuple(factors))

        return replace(self, monomials=tuple(changed(m) for m in self.monomials))


class Quantities:
    """The numbers that formulas are made of: inner products, scalars and products of vectors, of given samples."""

    def __init__(self, x: np.ndarray, scalars: np.ndarray, symmetry: Symmetry, output: str):
        rep = as_rep(output)
        self.rep = rep.parts[0]
        self.ways = ways_of(self.rep, symmetry.form.n, symmetry.form.signature.zero > 0)
        self.scalars = scalars
        origin = symmetry.origin
        moved = np.asarray(x, float) - (0.0 if origin is None else origin.numpy())
        if symmetry.linked:
            moved = np.einsum("zia,iba->zib", moved, symmetry.frames.numpy())
        fixed = np.broadcast_to(symmetry.directions.numpy(), (len(x), *symmetry.directions.shape))
        self.vectors = np.concatenate([moved, fixed], 1)
        forms = [_filled(form.matrix.numpy(), symmetry.n) for form in symmetry.forms]
        spaces = [*(symmetry.apart or [0] * x.shape[1]), *[0] * len(symmetry.directions)]
        self.A = forms[0]
        self.lowered = np.stack([self.vectors[:, i] @ forms[s] for i, s in enumerate(spaces)], 1)
        self.gram = np.einsum("zin,zjn->zij", self.lowered, self.vectors)
        self._inners: dict[tuple[Weights, Weights], np.ndarray] = {}
        self._tensors: dict[tuple[int, tuple[Weights, ...]], np.ndarray] = {}

    def inner(self, left: Weights, right: Weights) -> np.ndarray:
        """⟨u, v⟩ of two sums of vectors ``(N,)``."""
        if (left, right) not in self._inners:
            value = np.einsum("zij,i,j->z", self.gram, np.array(left, float), np.array(right, float))
            self._inners[left, right] = value
        return self._inners[left, right]

    def tensor(self, term: int, legs: tuple[Weights, ...]) -> np.ndarray:
        """The product of vectors, metric and ε ``(N, components)``."""
        if (term, legs) not in self._tensors:
            chosen = [np.array(weights, float) for weights in legs]
            vectors, lowered = (
                [np.einsum("zin,i->zn", of, w) for w in chosen] for of in (self.vectors, self.lowered)
            )
            value = product_of(self.ways[term], self.rep, vectors, lowered, self.A)
            self._tensors[term, legs] = np.broadcast_to(value, (len(self.vectors), value.shape[1]))
        return self._tensors[term, legs]

    def factor(self, factor: Factor) -> np.ndarray:
        """The values of a factor ``(N,)``."""
        u, v = factor.left, factor.right
        inner = None if factor.kind == "scalar" else self.inner(u, v)
        if factor.kind in PAIRS:
            t, sizes = self.inner(u, v), self.inner(u, u) * self.inner(v, v)
            inner = t / np.sqrt(sizes) if factor.kind == "angle" else sizes - t * t
        scalar = None if factor.scalar is None else self.scalars[:, factor.scalar]
        return factor.value(inner, scalar)

    def column(self, term: Term) -> np.ndarray:
        """The values of a term without its coefficient ``(N, components)``."""
        total: Any = 0.0
        for monomial in term.monomials:
            value = self.tensor(monomial.term, monomial.legs)
            for factor in monomial.factors:
                value = value * self.factor(factor)[:, None]
            total = total + value
        return np.asarray(total)


def _filled(A: np.ndarray, n: int) -> np.ndarray:
    """A form of vectors that are filled up with zeros to n components."""
    return np.pad(A, (0, n - len(A)))


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
        rivals: terms that do as well in place of one, as far as these samples tell: "log⟨x,x⟩ for √⟨x,x⟩".
        left_out, samples: of so many samples that it could be fitted to, those that are far from it do not count.
        far: of so many held-out samples, those far from formula and predictor are not in the two shares.
        form_halves: half 95 % intervals of the form's entries, where they are known.
        broken, sided: whether the symmetry is kept only nearly; whether samples alike lie on one side of the formula.
        which: where those that were left out of the fit, and of the shares, stand; "" where that is not known.

    >>> from gortho import QuadraticForm
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
    rivals: tuple[str, ...] = field(default=())
    left_out: int = 0
    samples: int = 0
    far: tuple[int, int] = (0, 0)
    which: tuple[str, str] = ("", "")
    form_halves: tuple[tuple[float, ...], ...] = ()
    broken: bool = False
    sided: bool = False

    @property
    def within(self) -> bool:
        """Whether its error is that of the predictor, within a factor (`WITHIN`), or rounding.

        A predictor that is no better than the mean is no measure.
        """
        good = WITHIN * self.predictor_unexplained if self.predictor_unexplained < 1 else 0.0
        return self.unexplained <= max(good, DIGITS if len(self.terms) == 1 else EXACT)

    @property
    def exact(self) -> bool:
        """Whether it leaves nothing but rounding, and its numbers are known as a law's are that does."""
        return self.unexplained <= EXACT and all(half <= KNOWN * abs(value) for half, value in self.halves)

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
        short = self.exact or self.polynomial or self.numbers <= NUMBERS
        return self.within and self.unexplained <= MOST_LEFT and short and not (self.broken or self.sided)

    @property
    def points(self) -> int:
        """Vectors in a sample; directions come after them among the names."""
        return len(self.vectors) - len(self.symmetry.directions)

    def __call__(self, X: Any, scalars: Any = None) -> np.ndarray:
        """Its values ``(N, …)`` for inputs as in `discover`."""
        from gortho.samples.door import as_tuples, by_name, flat_scalars
        from gortho.samples.spaces import are_spaces, side_by_side

        X = side_by_side(X)[0] if are_spaces(X) else X
        forms = self.symmetry.forms
        names = forms[0].names if forms else self.coordinates[: self.symmetry.n]
        points = np.asarray(as_tuples(by_name(X, names, self.coordinates, self.points)), float)
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

    def __str__(self) -> str:
        from gortho.formulas.writing import text

        return text(self)

    def __repr__(self) -> str:
        return f"<Formula {self}>"

    def lines(self) -> list[str]:
        """The formula, its error bars, and how good it is, in lines."""
        from gortho.formulas.telling import lines

        return lines(self)

    def latex(self) -> str:
        """The formula in LaTeX, without dollar signs."""
        from gortho.formulas.writing import latex

        return latex(self)

    def sympy(self) -> Any:
        """The formula in sympy, written out in the coordinates: an expression, or a matrix of such."""
        from gortho.formulas.symbols import expression

        return expression(self)

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"
