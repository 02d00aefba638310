"""The same jets with other momenta: seen in another frame, x → Mx, with the form that goes with it, or with masses.

Of massless constituents a form shows even without labels (M9); with masses nothing lies on the null cone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.groups import random_generator
from gortho.studies.toptag.samples import Sample

#: Ratio of the largest to the smallest stretch of a hidden frame.
CONDITION = 4.0
#: Constituents that the label-free form is computed from.
MOST = 200_000
#: Masses of charged pions and kaons in GeV.
PION, KAON = 0.13957, 0.49368


def hidden_frame(seed: int) -> Tensor:
    """A random M ``(4, 4)`` of condition 4, in float64: the frames of a normal matrix, other stretches between.

    >>> round(float(torch.linalg.cond(hidden_frame(1))), 6)
    4.0
    """
    left, _, right = torch.linalg.svd(
        torch.randn(4, 4, dtype=torch.float64, generator=random_generator(seed))
    )
    return left * torch.logspace(-0.5, 0.5, 4, base=CONDITION, dtype=torch.float64) @ right


def seen(sample: Sample, M: Tensor) -> Sample:
    """The same jets, every momentum mapped by M."""
    x = sample.x.double() @ M.to(sample.x.device).mT
    return replace(sample, x=x.to(sample.x.dtype))


def minkowski_in(M: Tensor | None) -> QuadraticForm:
    """The form of momenta that were mapped by M: M⁻ᵀ η M⁻¹."""
    eta = QuadraticForm.minkowski()
    if M is None:
        return eta
    inverse = torch.linalg.inv(M)
    return QuadraticForm(inverse.mT @ eta.matrix @ inverse)


def compared(form: QuadraticForm, truth: QuadraticForm) -> dict[str, Any]:
    """Both forms, and how near they are, as JSON takes it."""
    matrices = {"form": form.matrix.tolist(), "true form": truth.matrix.tolist()}
    return {"cos": form.cosine(truth), "d_PA": form.algebra_distance(truth)} | matrices


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


def with_masses(sample: Sample, seed: int = 0) -> Sample:
    """The same momenta with E = √(p² + m²): each constituent is a pion or a kaon, with equal chance.

    In float32 a mass is seen only up to about 700 times its size in energy: 100 GeV for a pion, 360 GeV for a kaon.

    Args:
        sample: jets as (E, px, py, pz) in GeV, in no hidden frame.
        seed: which are pions and which are kaons.
    """
    if sample.x.shape[-1] != 4:
        raise ValueError(f"momenta have {sample.x.shape[-1]} components: masses need (E, px, py, pz)")
    coin = torch.rand(sample.mask.shape, generator=torch.Generator().manual_seed(seed)).to(sample.x.device)
    mass = torch.where(coin < 0.5, PION, KAON).double()
    p = sample.x[..., 1:].double()
    energy = (p.square().sum(-1) + mass.square()).sqrt()
    x = torch.cat([energy[..., None], p], dim=-1)
    x = torch.where(sample.mask[..., None], x, 0.0)
    return replace(sample, x=x.to(sample.x.dtype))
