"""Quadratic forms: the value at the centre of everything (M1, M2).

A symmetric matrix A gives the quadratic form q(x) = xᵀAx, the inner product ⟨x, y⟩ = xᵀAy and the group
O(A) of all linear maps that preserve q. O(cA) = O(A) for every c ≠ 0, so data can determine A only up to scale
and sign. `QuadraticForm` therefore stores one representative of {cA}, the *gauge*: two forms with the same
group print, compare and save the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gortho import checks
from gortho.immutable import ZERO_TOLERANCE, MatrixForm, telling, unit_size

if TYPE_CHECKING:
    from gortho.groups import OrthogonalGroup

#: A number whose error is below this share of it is written without it, to six digits at most.
NO_ERROR = 1e-5
DIGITS = 6

#: A mixed term smaller than this fraction of √|A_ii A_jj|, which no choice of units changes, is not printed …
NO_MIXING = 2.5e-3
#: … nor, where its error is known, one that may be zero and is below this fraction of the largest.
SMALL_TERM = 0.1
#: A mixed term that is so small in any units is not printed up to this many half widths of its interval either.
BY_CHANCE = 2.0


class Signature(NamedTuple):
    """How many eigenvalues of A are positive, negative and zero.

    >>> Signature(1, 3, 0)
    Signature(positive=1, negative=3, zero=0)
    """

    positive: int
    negative: int
    zero: int = 0

    @property
    def group_name(self) -> str:
        """The name of O(A): "O(3)", "O(1,3)", "O(2) ⋉ degenerate 1"."""
        p, q, zero = self
        name = f"O({p},{q})" if p and q else f"O({p + q})"
        return f"{name} ⋉ degenerate {zero}" if zero else name


#: Names that need no brackets in a product: letters, digits, underscores and primes.
WORD = re.compile(r"[^\W\d²³¹⁰⁴-⁹][^\W²³¹⁰⁴-⁹]*['′]*")


def gauge(
    A: Float[Tensor, "n n"], tolerance: float = ZERO_TOLERANCE
) -> tuple[Float[Tensor, "n n"], Tensor, Signature]:
    """Pick the representative of {cA : c ≠ 0}; return it with its eigenvalues and signature (M2).

    ‖A‖_F = √n. Semi-definite forms are made positive; otherwise the minority of eigenvalues is positive, so that
    Minkowski is diag(1, -1, -1, -1); if there are equally many of both, the trace (if it vanishes, the first diagonal
    entry that does not, or else the first entry) is positive.
    """
    A = unit_size(A)
    eigenvalues = torch.linalg.eigvalsh(A)
    cut = tolerance * eigenvalues.abs().max()
    p, q = int((eigenvalues > cut).sum()), int((eigenvalues < -cut).sum())
    if p == q:
        marks = torch.cat([A.trace()[None], A.diagonal(), A.flatten()])
        flip = bool(marks[marks.abs() > cut][0] < 0)
    else:
        flip = p == 0 or (q != 0 and p > q)
    if flip:
        A, eigenvalues, p, q = -A, -eigenvalues.flip(0), q, p
    return A, eigenvalues, Signature(p, q, len(eigenvalues) - p - q)


class QuadraticForm(MatrixForm):
    """An immutable quadratic form q(x) = xᵀAx, known up to scale and sign (M1, M2).

    Args:
        A: symmetric matrix (n, n): nested list, array or tensor. It is stored gauge-fixed, in float64.
        names: names of the n coordinates, for printing.
        tolerance: an eigenvalue below this fraction of the largest counts as zero in the signature (1e-8).

    >>> form = QuadraticForm([[-2, 0], [0, 2]], names=["t", "x"])
    >>> print(form)
    q(x) = 1.00 t² - 1.00 x²   [O(1,1)]
    >>> form == QuadraticForm([[3, 0], [0, -3]])
    True
    """

    __slots__ = ("_eigenvalues", "signature")
    signature: Signature
    _eigenvalues: Tensor

    def __init__(self, A: Any, names: Sequence[str] | None = None, tolerance: float | None = None):
        A, names, tolerance = self._given(A, names, tolerance)
        if not 0 <= tolerance < 1:
            raise ValueError(
                f"tolerance = {tolerance}: give a fraction of the largest eigenvalue, 0 to below 1"
            )
        matrix, eigenvalues, signature = gauge(checks.symmetric(A), tolerance)
        self._keep(matrix, names, tolerance, _eigenvalues=eigenvalues, signature=signature)

    # Named forms

    @classmethod
    def euclidean(cls, n: int, names: Sequence[str] | None = None) -> QuadraticForm:
        """The length x₀² + … + x_{n-1}², whose group is O(n)."""
        return cls.from_signature(n, 0, names=names)

    @classmethod
    def minkowski(cls, n: int = 4, names: Sequence[str] | None = None) -> QuadraticForm:
        """The space-time interval x₀² - x₁² - … - x_{n-1}², whose group is O(1, n-1)."""
        return cls.from_signature(1, n - 1, names=names)

    @classmethod
    def from_signature(
        cls, p: int, q: int, zero: int = 0, names: Sequence[str] | None = None
    ) -> QuadraticForm:
        """diag(1, …, 1, -1, …, -1, 0, …, 0), put into the gauge."""
        if min(p, q, zero) < 0 or p + q < 1:
            raise ValueError(f"signature ({p}, {q}, {zero}): counts are not negative and p + q is at least 1")
        values = torch.tensor([1.0] * p + [-1.0] * q + [0.0] * zero, dtype=torch.float64)
        return cls(torch.diag(values), names)

    @classmethod
    def random(
        cls, p: int, q: int, zero: int = 0, *, condition: float = 10.0, seed: int = 0
    ) -> QuadraticForm:
        """Q diag(±λ, 0) Qᵀ with Q Haar and λ log-uniform in [1, condition] (the extremes attained)."""
        from gortho.groups import haar, random_generator

        generator = random_generator(seed)
        sizes = torch.rand(p + q, dtype=torch.float64, generator=generator)
        if p + q > 1:
            ends = torch.randperm(p + q, generator=generator)[:2]
            sizes[ends] = torch.tensor([0.0, 1.0], dtype=torch.float64)
        signs = torch.tensor([1.0] * p + [-1.0] * q, dtype=torch.float64)
        values = torch.cat([signs * condition**sizes, torch.zeros(zero, dtype=torch.float64)])
        Q = haar(p + q + zero, (), generator)
        return cls(Q * values @ Q.T)

    # The value

    @property
    def eigenvalues(self) -> Tensor:
        """Eigenvalues of the gauge-fixed A, ascending."""
        return self._eigenvalues.clone()

    @property
    def group_name(self) -> str:
        """The name of O(A)."""
        return self.signature.group_name

    def __call__(self, x: Any) -> Float[Tensor, ...]:
        """q(x) = xᵀAx for vectors ``(..., n)``."""
        x = checks.vectors(x, self.n)
        return ((x @ self._matrix.to(x)) * x).sum(-1)

    def inner(self, x: Any, y: Any) -> Float[Tensor, ...]:
        """⟨x, y⟩ = xᵀAy for vectors ``(..., n)``."""
        x, y = checks.vectors(x, self.n), checks.vectors(y, self.n, "y")
        return ((x @ self._matrix.to(x)) * y).sum(-1)

    def norm(self, x: Any) -> Float[Tensor, ...]:
        """The pseudonorm ‖x‖_A = sign(q) √|q|, which can be negative."""
        q = self(x)
        return q.sign() * q.abs().sqrt()

    def gram(self, X: Any) -> Float[Tensor, "... p p"]:
        """Gram(X)_ij = ⟨x_i, x_j⟩ for tuples ``(..., p, n)``, giving ``(..., p, p)``."""
        X = checks.vectors(X, self.n, "X")
        if X.ndim < 2:
            raise ValueError(f"X has shape {tuple(X.shape)}: a Gram matrix needs tuples (..., p, {self.n})")
        return X @ self._matrix.to(X) @ X.mT

    def group(self) -> OrthogonalGroup:
        """The group O(A) of linear maps that preserve q."""
        from gortho.groups import OrthogonalGroup

        return OrthogonalGroup(self)

    def of_image(self, M: Tensor, names: Sequence[str] | None = None) -> QuadraticForm:
        """The form q(Mz) of z, MᵀAM: what is zero stays zero, and all else does not become so, whatever the units.

        >>> QuadraticForm.euclidean(2).of_image(torch.diag(torch.tensor([1e4, 1.0]).double())).group_name
        'O(2)'
        """
        A = M.mT @ self._matrix @ M
        A = (A + A.mT) / 2
        return QuadraticForm(A, names, telling(torch.linalg.eigvalsh(A), self.signature.zero, self.tolerance))

    # Comparison

    def _other(self, other: Any) -> QuadraticForm:
        form = other if isinstance(other, QuadraticForm) else QuadraticForm(other)
        if form.n != self.n:
            raise ValueError(f"forms in {self.n} and {form.n} dimensions cannot be compared")
        return form

    def cosine(self, other: Any) -> float:
        """|cos(A, B)| by the Frobenius product: 1 for the same group, but weak evidence (M8)."""
        other = self._other(other)
        return min(1.0, float((self._matrix * other._matrix).sum().abs() / self.n))

    def algebra_distance(self, other: Any) -> float:
        """d_PA = √Σ sin²θ over the principal angles between so(A) and so(B) (M8).

        A direction that only the larger algebra has counts as a right angle.
        """
        from gortho.groups import algebra_distance

        return algebra_distance(self, self._other(other))

    # Printing

    def law(self, digits: int | None = None, half_widths: Any = None) -> str:
        """The form as a formula, without terms that are compatible with zero.

        Coefficients of order one have ``digits`` decimals, smaller ones one more significant digit than that: units may
        make them small, but not unimportant. Without ``digits``, they have as many as their intervals justify, and
        two decimals if these are unknown or negligible.
        With ``half_widths`` (n, n) of the entries' intervals, small terms
        whose interval contains zero are left out, and mixed terms that are small in any units if an interval of twice
        the width contains zero; without ``half_widths``, all of these.

        >>> QuadraticForm.minkowski(3, names=["E", "px", "py"]).law()
        'q(x) = 1.00 E² - 1.00 px² - 1.00 py²'
        >>> QuadraticForm([[1, 1e-5], [1e-5, 0.001]], names=["mm", "m"]).law()
        'q(x) = 1.41 mm² + 0.00141 m²'
        """
        return f"q(x) = {added_up(self.terms(half_widths), self.names, '·', digits, half_widths)}"

    def terms(self, half_widths: Any = None) -> list[tuple[int, int, float]]:
        """The terms c x_i x_j of the law, i ≤ j, as (i, j, c), without those that `law` leaves out."""
        A = self._matrix
        size, largest = A.abs(), A.abs().max()
        scale = A.diagonal().abs().sqrt()
        mixes_little = (size < NO_MIXING * scale[:, None] * scale).fill_diagonal_(False)
        if half_widths is None:
            left_out = mixes_little
        else:
            half = torch.as_tensor(half_widths)
            left_out = (size <= half) & (size < SMALL_TERM * largest)
            # Of many entries that are zero, a few are beyond their intervals by chance.
            left_out |= mixes_little & ((size <= BY_CHANCE * half) | half.isnan())
        left_out |= size < min(self.tolerance, ZERO_TOLERANCE) * largest  # rounding, not eigenvalues
        pairs = [(i, j) for i, j in torch.triu_indices(self.n, self.n).T.tolist() if not left_out[i, j]]
        return [(i, j, float(A[i, j]) * (1 if i == j else 2)) for i, j in pairs]


def added_up(
    terms: Sequence[tuple[int, int, float]],
    names: Sequence[str],
    times: str,
    digits: int | None = None,
    half_widths: Any = None,
    entries: int = 2,
) -> str:
    """Terms c x_i x_j as text; a mixed one stands for so many entries of a matrix, each with its half width.

    >>> added_up([(0, 0, 1.0), (0, 1, -2.5)], ["a", "b"], "·", 2)
    '1.00 a² - 2.50 a·b'
    """
    text, halves = "", [math.nan] * len(terms)
    if digits is None and half_widths is not None:
        halves = [float(half_widths[i][j]) * (1 if i == j else entries) for i, j, _ in terms]
        if all(half <= 10 * NO_ERROR * abs(c) for half, (*_, c) in zip(halves, terms) if half >= 0):
            # errors next to nothing, some just above the bound: the same digits for all
            halves = [math.nan] * len(terms)
    for (i, j, value), half in zip(terms, halves):
        sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
        one, other = (set_off(names[k]) for k in (i, j))
        written = coefficient(abs(value), 2 if digits is None else digits, half)
        text += f"{sign}{written} {f'{one}²' if i == j else f'{one}{times}{other}'}"
    return text


def set_off(name: str) -> str:
    """A name as a factor: in brackets unless it is a single word.

    >>> set_off("px"), set_off("E^2"), set_off("log(m)")
    ('px', '(E^2)', '(log(m))')
    """
    return name if WORD.fullmatch(name) else f"({name})"


def coefficient(value: float, digits: int, half: float = math.nan) -> str:
    """A positive number with so many decimals if its order is one, else with one more significant digit than that.

    Where half of its interval is known, and more than rounding, it has the digits that this leaves.

    >>> [coefficient(value, 2) for value in (1.414, 0.849, 0.178, 0.00173, 1.73e-6, 1e25)]
    ['1.41', '0.85', '0.178', '0.00173', '1.73e-06', '1.00e+25']
    """
    if math.isfinite(half) and half > NO_ERROR * value:
        return number(value, half)
    order = math.log10(value)
    if not -4 <= order < 7:
        return f"{value:.{digits}e}"
    return f"{value:.{digits if order > -0.5 else digits - math.floor(order)}f}"


def number(value: float, half: float = math.nan) -> str:
    """A number to the last digit that its error leaves, or to six digits without the zeros at their end.

    >>> number(0.5), number(0.49871, 0.003), number(1234567.8, 2e4), number(-2.2e-7, 1e-8), number(1 / 3)
    ('0.50', '0.499', '1230000', '-2.2e-07', '0.333333')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    order = math.floor(math.log10(abs(value)))
    if not math.isfinite(half) or half <= NO_ERROR * abs(value):
        if not -4 <= order < DIGITS:
            return re.sub(r"(\.\d*?)0+e", r"\1e", f"{value:.{DIGITS - 1}e}").replace(".e", "e")
        digits, _, decimals = f"{value:.{max(0, DIGITS - 1 - order)}f}".partition(".")
        return f"{digits}.{decimals.rstrip('0').ljust(2, '0')}" if decimals else digits
    half = float(f"{half:.0e}")  # as it is written
    last = min(math.floor(math.log10(half)), order)
    rounded = round(value, -last)
    if not -4 <= order < DIGITS + 1:
        return f"{rounded:.{max(0, order - last)}e}"
    return f"{rounded:.{max(0, -last)}f}"
