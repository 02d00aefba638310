"""Masses for constituents: nothing then lies on the null cone, where a form shows even without labels (M9)."""

from __future__ import annotations

import torch

from gortho.toptag.train import Sample

#: Masses of charged pions and kaons in GeV.
PION, KAON = 0.13957, 0.49368


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
    return Sample(x.to(sample.x.dtype), sample.mask, sample.label)
