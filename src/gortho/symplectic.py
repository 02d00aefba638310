"""The groups of skew forms: Sp(ω), and with a compatible quadratic form the unitary groups (M17).

Both are explicit in a standard frame S. For Sp(ω) it is a basis of pairs in which ω is Σ e_i∧f_i; for U(p,q) one in
which K = A⁻¹ω is a multiplication by i and A + iω the hermitian form Σ ±|z_i|².
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from scipy.linalg import schur
from torch import Tensor
from torch.nn.functional import pad

from gortho import checks
from gortho.forms import QuadraticForm
from gortho.groups import boosts, haar, preserves, random_generator, symmetric_basis, uniform
from gortho.skew import SkewForm, compatible, complex_structure


def as_real(z: Tensor) -> Tensor:
    """Complex matrices ``(..., m, m)`` as real ones of (x_1 … x_m, y_1 … y_m), ``(..., 2m, 2m)``."""
    top, bottom = torch.cat([z.real, -z.imag], -1), torch.cat([z.imag, z.real], -1)
    return torch.cat([top, bottom], -2)


class SymplecticGroup:
    """Sp(ω) = {g : gᵀωg = ω}.

    >>> group = SymplecticGroup(SkewForm.canonical(4))
    >>> group.name, len(group.algebra())
    ('Sp(4)', 10)
    """

    def __init__(self, skew: SkewForm):
        self.skew, self.name = skew, skew.group_name
        T, Q = (torch.as_tensor(M) for M in schur(skew.matrix.numpy(), output="real"))
        n, r = skew.n, skew.rank
        above = torch.cat([T.diagonal(1), T.new_zeros(1)])
        firsts = [i for i in range(n) if abs(float(above[i])) > skew.tolerance * float(above.abs().max())]
        # a pair of the Schur form is (i, i + 1) with ω(e_i, e_{i+1}) = above[i]
        turned = [(i, i + 1) if above[i] > 0 else (i + 1, i) for i in firsts]
        rest = [i for i in range(n) if all(i not in pair for pair in turned)]
        order = [i for i, _ in turned] + [j for _, j in turned] + rest
        sizes = torch.cat([above[firsts].abs().sqrt().repeat(2), T.new_ones(n - r)])
        self._standard, self._inverse = sizes[:, None] * Q[:, order].mT, Q[:, order] / sizes
        self._omega = SkewForm.canonical(r, n - r).matrix
        self._omega = self._omega / self._omega.max()

    def algebra(self) -> Tensor:
        """A basis of {X : Xᵀω + ωX = 0}, float64 ``(d, n, n)``: ωX symmetric; free where ω does not see."""
        n, r = self.skew.n, self.skew.rank
        E = pad(symmetric_basis(r).sign(), (0, n - r, 0, n - r))  # 1 where that has √½
        free = torch.eye((n - r) * n, dtype=torch.float64).reshape((n - r) * n, n - r, n)
        X = torch.cat([-self._omega @ E, pad(free, (0, 0, r, 0))])  # Ω⁻¹ = -Ω
        return self._inverse @ X @ self._standard

    def contains(self, g: Any, tolerance: float = 1e-10) -> Tensor:
        """Whether gᵀωg = ω, judged in the standard frame, relative to 1 + ‖h‖²; ``(...,)`` bool."""
        g = checks.square(g, "g", self.skew.n).double()
        h = self._standard @ g @ self._inverse
        return preserves(h, self._omega, self.skew.zero, tolerance)

    def sample(self, k: int, seed: int | torch.Generator = 0, max_boost: float = 1.0) -> Tensor:
        """``k`` random elements u₁ diag(eᵗ, e⁻ᵗ) u₂: u Haar on U(m), t uniform in [-max_boost, max_boost].

        What ω does not see gets maps and shears of the same size.
        """
        generator = random_generator(seed)
        n, m, zero = self.skew.n, self.skew.rank // 2, self.skew.zero

        within = partial(uniform, max_boost, generator)
        h = torch.eye(n, dtype=torch.float64).repeat(k, 1, 1)
        left, right = (as_real(haar(m, (k,), generator, torch.complex128)) for _ in range(2))
        t = within(k, m)
        h[:, : 2 * m, : 2 * m] = left * torch.cat([t.exp(), (-t).exp()], 1)[:, None] @ right
        if zero:
            h[:, 2 * m :, : 2 * m] = within(k, zero, 2 * m)
            h[:, 2 * m :, 2 * m :] = torch.linalg.matrix_exp(within(k, zero, zero))
        return self._inverse @ h @ self._standard


class UnitaryGroup:
    """U(p,q) = O(A) ∩ Sp(ω) of compatible forms.

    >>> plain = QuadraticForm.euclidean(4)
    >>> group = UnitaryGroup(plain, SkewForm.canonical(4))
    >>> group.name, len(group.algebra())
    ('U(2)', 4)
    """

    def __init__(self, form: QuadraticForm, skew: SkewForm):
        if not compatible(form, skew):
            raise ValueError(
                f"{form.group_name} and {skew.group_name} have no unitary group in common: (A⁻¹ω)² must be a negative "
                "number; give such forms, or one of them alone"
            )
        self.form, self.skew = form, skew
        p, q, _ = form.signature
        self.p, self.q = p // 2, q // 2
        #: Multiplication by i.
        self.K = complex_structure(form.matrix, skew.matrix)
        # The standard frame: coordinates (x, y) of z = x + iy, in which A is Σ ±(x² + y²) and K takes z to iz.
        S, K = form.group()._standard, form.group()._standard @ self.K @ form.group()._standard_inverse
        self._signs = torch.tensor([1.0] * self.p + [-1.0] * self.q, dtype=torch.complex128)
        J = torch.diag(torch.tensor([1.0] * p + [-1.0] * q, dtype=torch.complex128))
        U, _, _ = torch.linalg.svd(
            K + 1j * torch.eye(form.n, dtype=torch.complex128)
        )  # its range: where K is i
        E = U[:, : form.n // 2]
        values, V = torch.linalg.eigh(E.mH @ J @ E)
        order = values.argsort(descending=True)  # positive ones first
        v = E @ V[:, order] / values[order].abs().sqrt() * 2**0.5
        # K v = iv, so K takes Re v to -Im v: x along Re v and y along -Im v
        back = torch.cat([v.real, -v.imag], 1)
        self._standard = torch.linalg.solve(back, S)
        self._inverse = torch.linalg.solve(S, back)

    @property
    def name(self) -> str:
        """The name of the group: "U(2)", "U(1,1)"."""
        p, q = self.p, self.q
        return f"U({p},{q})" if p and q else f"U({p + q})"

    def algebra(self) -> Tensor:
        """A basis of the Lie algebra, float64 ``(m², n, n)``: i times the hermitian matrices, by the form's signs."""
        m = self.p + self.q
        found = []
        for i in range(m):
            for j in range(i, m):
                for value in (1j,) if i == j else (1.0 + 0j, 1j):
                    E = torch.zeros(m, m, dtype=torch.complex128)
                    E[i, j] += value
                    E[j, i] -= value.conjugate()
                    found.append(as_real(self._signs[:, None] * E))
        return self._inverse @ torch.stack(found) @ self._standard

    def contains(self, g: Any, tolerance: float = 1e-10) -> Tensor:
        """Whether g keeps A and ω; tolerances as in `OrthogonalGroup.contains`."""
        inside = self.form.group().contains(g, tolerance)
        return inside & SymplecticGroup(self.skew).contains(g, tolerance)

    def sample(self, k: int, seed: int | torch.Generator = 0, max_boost: float = 1.0) -> Tensor:
        """``k`` random elements u₁ b u₂: u Haar on U(p) × U(q), b boosts of min(p, q) pairs, as of O(p,q)."""
        generator = random_generator(seed)
        p, q = self.p, self.q

        def compact() -> Tensor:
            blocks = torch.zeros(k, p + q, p + q, dtype=torch.complex128)
            blocks[:, :p, :p] = haar(p, (k,), generator, blocks.dtype)
            blocks[:, p:, p:] = haar(q, (k,), generator, blocks.dtype)
            return blocks

        b = boosts(uniform(max_boost, generator, k, min(p, q)), p, p + q).to(torch.complex128)
        return self._inverse @ as_real(compact() @ b @ compact()) @ self._standard
