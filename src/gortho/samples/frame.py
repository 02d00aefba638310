"""`Frame`: the change of basis in which nothing depends on units (M18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.immutable import ZERO_TOLERANCE

#: Directions of x smaller than this share of the largest (in columns of unit size) do not vary.
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Frame:
    """z = Wx with E[zzᵀ] = I over all vectors of all samples, with axes determined by the samples themselves.

    Other units for x, x → Tx with any invertible T, give the same z. Second moments determine W up to a rotation;
    the axes are those along which fourth moments E[|z|² zzᵀ] are extreme, with the signs of E[|z|² z] (M18).

    >>> g = torch.Generator().manual_seed(0)
    >>> x = torch.randn(500, 1, 3, dtype=torch.float64, generator=g) * torch.tensor([1.0, 40.0, 0.05])
    >>> T = torch.randn(3, 3, dtype=torch.float64, generator=g)
    >>> one, other = (Frame.of(s) for s in (x, x @ T.mT))
    >>> torch.allclose(x @ one.W.mT, x @ T.mT @ other.W.mT, atol=1e-6)
    True
    """

    W: Tensor

    @classmethod
    def of(cls, x: Tensor) -> Frame:
        """The frame of vectors ``(..., n)``; zero vectors, such as missing points of a set, change nothing."""
        flat = x.reshape(-1, x.shape[-1]).double()
        there = (flat != 0).any(1)
        flat = flat[there] if bool(there.any()) else flat
        unit = flat.abs().amax(0).clamp_min(torch.finfo(torch.float64).tiny)  # squares then stay in range
        flat = flat / unit
        W = _whitener(flat.mT @ flat / len(flat))
        z = flat @ W.mT
        size = z.square().sum(1)
        # Bounded in the tails, so that a single far vector does not turn the axes.
        share = size / (1 + size / size.mean().clamp_min(1e-300))
        _, Q = torch.linalg.eigh((z * share[:, None]).mT @ z / len(z))
        lean = (z * share[:, None]).mean(0) @ Q
        cubes = ((z @ Q) * ((z @ Q).square().clamp_max(9.0))).mean(0)
        sign = torch.where(lean + cubes < 0, -1.0, 1.0).double()
        return cls((Q * sign).mT @ W / unit)

    @property
    def n(self) -> int:
        """Dimension."""
        return len(self.W)

    @property
    def inverse(self) -> Tensor:
        """x = W⁻¹z."""
        return torch.linalg.inv(self.W)

    def form_in(self, form: QuadraticForm | Tensor) -> Tensor:
        """A form of x as a matrix of z: W⁻ᵀAW⁻¹, of size √n."""
        A = form.matrix if isinstance(form, QuadraticForm) else form
        A_w = self.inverse.mT @ A @ self.inverse
        return unit_form((A_w + A_w.mT) / 2)

    def form_out(self, A_w: Tensor, names: Sequence[str] | None = None) -> QuadraticForm:
        """A form of z as a form of x: WᵀA_wW. Zeros are decided in the frame, where units do not matter."""
        A = self.W.mT @ A_w @ self.W
        A = (A + A.mT) / 2
        values = torch.linalg.eigvalsh(A_w).abs()
        zero = int((values <= ZERO_TOLERANCE * values.max()).sum())
        sizes = torch.linalg.eigvalsh(A).abs().sort().values / torch.linalg.eigvalsh(A).abs().max()
        between = float(sizes[zero] / 2) if not zero else float(sizes[zero - 1] + sizes[zero]) / 2
        return QuadraticForm(A, names, between if zero else min(ZERO_TOLERANCE, between))

    def distance(self, one: QuadraticForm | Tensor, other: QuadraticForm | Tensor) -> float:
        """Frobenius distance of the normalised matrices in this frame, minimal over both signs (M18)."""
        return form_distance(self.form_in(one), self.form_in(other))


def unit_form(A: Tensor) -> Tensor:
    """A, or several ``(..., n, n)``, of size √n."""
    return A * (A.shape[-1] ** 0.5 / torch.linalg.matrix_norm(A, keepdim=True))


def form_distance(one: Tensor, other: Tensor) -> float:
    """Frobenius distance of A/‖A‖ and B/‖B‖, minimal over both signs: 0 to √2 (M18).

    >>> form_distance(torch.eye(3), -5 * torch.eye(3))
    0.0
    """
    a, b = one / torch.linalg.matrix_norm(one), other / torch.linalg.matrix_norm(other)
    return float(min(torch.linalg.matrix_norm(a - b), torch.linalg.matrix_norm(a + b)))


def _whitener(second: Tensor) -> Tensor:
    """W with W S Wᵀ = I for second moments S; directions without variation stay small."""
    values, Q = torch.linalg.eigh(second)
    floor = RANK_TOLERANCE**2 * values[-1].clamp_min(1e-300)
    return (Q / values.clamp_min(floor).sqrt()).mT
