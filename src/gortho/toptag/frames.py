"""Momenta seen in another frame, x → Mx, and the form that goes with it; the form that needs no label (M9)."""

from __future__ import annotations

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.groups import random_generator
from gortho.toptag.train import Sample

#: Ratio of the largest to the smallest stretch of a hidden frame.
CONDITION = 4.0
#: Constituents that the label-free form is computed from.
MOST = 200_000


def hidden_frame(seed: int, condition: float = CONDITION) -> Tensor:
    """A random M ``(4, 4)`` of this condition, in float64: the frames of a normal matrix, other stretches between.

    >>> round(float(torch.linalg.cond(hidden_frame(1))), 6)
    4.0
    """
    left, _, right = torch.linalg.svd(
        torch.randn(4, 4, dtype=torch.float64, generator=random_generator(seed))
    )
    return left * torch.logspace(-0.5, 0.5, 4, base=condition, dtype=torch.float64) @ right


def seen(sample: Sample, M: Tensor) -> Sample:
    """The same jets, every momentum mapped by M."""
    x = sample.x.double() @ M.to(sample.x.device).mT
    return Sample(x.to(sample.x.dtype), sample.mask, sample.label)


def minkowski_in(M: Tensor | None) -> QuadraticForm:
    """The form of momenta that were mapped by M: M⁻ᵀ η M⁻¹."""
    eta = QuadraticForm.minkowski()
    if M is None:
        return eta
    inverse = torch.linalg.inv(M)
    return QuadraticForm(inverse.mT @ eta.matrix @ inverse)


def label_free(sample: Sample) -> QuadraticForm:
    """The form that comes closest to xᵀAx = 0 for all constituents: with massless ones it needs no label (M9)."""
    x = sample.x[sample.mask][:MOST].double().cpu()
    x = x / x.norm(dim=-1, keepdim=True)
    i, j = torch.triu_indices(4, 4)
    weight = torch.where(i == j, 1.0, 2.0**0.5).double()
    monomials = x[:, i] * x[:, j] * weight
    A = torch.zeros(4, 4, dtype=torch.float64)
    A[i, j] = torch.linalg.eigh(monomials.mT @ monomials).eigenvectors[:, 0] / weight
    return QuadraticForm(A + A.triu(1).mT)
