"""Skew forms ω(x, y) = xᵀωy = -ω(y, x), which measure areas as quadratic forms measure lengths (M17).

The linear maps that preserve ω are the symplectic group Sp(ω). As with quadratic forms, data determine ω only up to a
factor, so `SkewForm` stores one representative of {cω}. A quadratic form A and a skew one ω are *compatible* when
K = A⁻¹ω has K² = -λ² for a number λ: K/λ is then a multiplication by i, A + iω/λ a hermitian form, and O(A) ∩ Sp(ω) a
unitary group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gortho import checks
from gortho.forms import NO_MIXING, SMALL_TERM, QuadraticForm, added_up
from gortho.immutable import ZERO_TOLERANCE, MatrixForm, telling, unit_size

#: How far (A⁻¹ω)² may be from a negative number, in the standard frame of A, in compatible forms.
COMPATIBLE = 1e-7
#: Newton steps towards a complex structure, at most.
ROUNDS = 12


class SkewForm(MatrixForm):
    """An immutable skew form ω(x, y) = xᵀωy, known up to scale and sign (M17).

    Args:
        matrix: skew matrix (n, n), ωᵀ = -ω. It is stored with ‖ω‖_F = √n and a positive first non-zero entry.
        names: names of the n coordinates, for printing.
        tolerance: a singular value below this fraction of the largest counts as zero (1e-8).

    >>> area = SkewForm([[0, -3], [3, 0]], names=["q", "p"])
    >>> print(area)
    ω(x, y) = 1.00 q∧p   [Sp(2)]
    >>> area([1.0, 0.0], [0.0, 2.0])
    tensor(2., dtype=torch.float64)
    """

    __slots__ = ("rank",)
    rank: int

    def __init__(self, matrix: Any, names: Sequence[str] | None = None, tolerance: float | None = None):
        matrix, names, tolerance = self._given(matrix, names, tolerance)
        omega = _gauged(checks.square(matrix, "ω").detach().to("cpu", torch.float64))
        sizes = torch.linalg.svdvals(omega)
        self._keep(omega, names, tolerance, rank=int((sizes > tolerance * sizes[0]).sum()))

    @classmethod
    def canonical(cls, n: int, zero: int = 0, names: Sequence[str] | None = None) -> SkewForm:
        """Σ x_i∧x_{m+i} in n = 2m dimensions, positions before momenta, and ``zero`` more that ω does not see."""
        if n < 2 or n % 2 or zero < 0:
            raise ValueError(f"n = {n}, zero = {zero}: a skew form has an even rank of at least 2")
        omega = torch.zeros(n + zero, n + zero, dtype=torch.float64)
        omega[: n // 2, n // 2 : n] = torch.eye(n // 2)
        return cls(omega - omega.mT, names)

    # The value

    @property
    def zero(self) -> int:
        """Number of dimensions that ω does not see."""
        return self.n - self.rank

    @property
    def group_name(self) -> str:
        """The name of Sp(ω): "Sp(4)", "Sp(2) ⋉ degenerate 1"."""
        return f"Sp({self.rank})" + (f" ⋉ degenerate {self.zero}" if self.zero else "")

    def __call__(self, x: Any, y: Any) -> Float[Tensor, ...]:
        """ω(x, y) for vectors ``(..., n)``."""
        x, y = checks.vectors(x, self.n), checks.vectors(y, self.n, "y")
        return ((x @ self._matrix.to(x)) * y).sum(-1)

    def in_basis(self, T: Tensor) -> SkewForm:
        """The same form in other coordinates z = Tx: T⁻ᵀωT⁻¹."""
        back = torch.linalg.inv(checks.square(T, "T", self.n).double())
        omega = _skew_part(back.mT @ self._matrix @ back)
        return SkewForm(omega, tolerance=telling(torch.linalg.svdvals(omega), self.zero, self.tolerance))

    # Printing

    def terms(self, half_widths: Any = None) -> list[tuple[int, int, float]]:
        """The terms c x_i∧x_j, i < j, as (i, j, c), without those that `law` leaves out."""
        omega = self.matrix
        size, largest = omega.abs(), omega.abs().max()
        if half_widths is None:
            scale = size.amax(1)  # no choice of units of one coordinate changes size / scale / scale much
            left_out = size < NO_MIXING * torch.minimum(scale[:, None], scale)
        else:
            left_out = (size <= torch.as_tensor(half_widths)) & (size < SMALL_TERM * largest)
        left_out |= size < min(self.tolerance, ZERO_TOLERANCE) * largest  # rounding, not singular values
        pairs = torch.triu_indices(self.n, self.n, 1).T.tolist()
        return [(i, j, float(omega[i, j])) for i, j in pairs if not left_out[i, j]]

    def law(self, digits: int | None = None, half_widths: Any = None) -> str:
        """The form as a formula, where x_i∧x_j stands for x_i y_j - x_j y_i; small terms as in `QuadraticForm.law`.

        >>> SkewForm.canonical(4).law()
        'ω(x, y) = 1.00 x0∧x2 + 1.00 x1∧x3'
        """
        return f"ω(x, y) = {added_up(self.terms(half_widths), self.names, '∧', digits, half_widths, 1)}"


def _skew_part(M: Tensor) -> Tensor:
    return (M - M.mT) / 2


def _gauged(omega: Tensor) -> Tensor:
    """The representative of {cω : c ≠ 0}; raises if ω is not skew, or zero."""
    checks.require_finite(omega, "ω", checks.NUMBERS)
    largest, n = omega.abs().max(), len(omega)
    if float((omega + omega.mT).abs().max()) > 1e-6 * float(largest) or float(largest) == 0:
        raise ValueError("ω is not a skew form: give a matrix with ωᵀ = -ω that is not zero")
    omega = unit_size(_skew_part(omega))
    entries = omega[tuple(torch.triu_indices(n, n, 1))]
    first = entries[entries.abs() > ZERO_TOLERANCE * entries.abs().max()][0]
    return -omega if bool(first < 0) else omega


# Beside a quadratic form


def complex_structure(A: Float[Tensor, "n n"], omega: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    """The K = A⁻¹ω (-(A⁻¹ω)²)^(-1/2) of A and ω: K² = -1 and AK is skew.

    By Newton's iteration K ← (K - K⁻¹)/2, which squares the error. If A⁻¹ω has real eigenvalues there is no such K,
    and the result is not one.
    """
    K = torch.linalg.solve(A, omega)
    for _ in range(ROUNDS):
        inverse, size = torch.linalg.inv_ex(K)[0], torch.linalg.matrix_norm(K)
        ratio = (torch.linalg.matrix_norm(inverse) / size).sqrt()  # quicker from far away
        if not bool(ratio.isfinite()):
            break
        before, K = K, (ratio * K - inverse / ratio) / 2
        if bool(torch.linalg.matrix_norm(K - before) <= 1e-9 * size):
            break
    return K


def compatible(form: QuadraticForm, skew: SkewForm) -> bool:
    """Whether A + iω is a hermitian form up to the scale of ω, so that O(A) ∩ Sp(ω) is a unitary group."""
    if form.n != skew.n or form.signature.zero or skew.zero:
        return False
    group = form.group()  # its standard frame is where A is diag(±1)
    K = group._standard @ torch.linalg.solve(form.matrix, skew.matrix) @ group._standard_inverse
    square = K @ K
    scale = -square.diagonal().mean()
    off = torch.linalg.matrix_norm(square + scale * torch.eye(form.n, dtype=torch.float64))
    return bool(scale > 0) and bool(off <= COMPATIBLE * torch.linalg.matrix_norm(K) ** 2)
