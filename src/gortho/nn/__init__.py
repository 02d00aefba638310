"""Equivariant networks: basis form (`EquivariantNet`), sets (`PairNet`), frame form, the paper's, forms that learn."""

from __future__ import annotations

from typing import Any

from gortho.nn.exact import EquivariantNet
from gortho.nn.form import FixedForm, LearnableForm
from gortho.nn.framenet import FrameNet
from gortho.nn.pairnet import PairNet
from gortho.nn.paper import HouseholderNet, PaperNet
from gortho.nn.plain import PlainNet
from gortho.nn.tensors import TensorNet

NETWORKS: dict[str, type[EquivariantNet]] = {
    net.kind: net for net in (EquivariantNet, FrameNet, PaperNet, HouseholderNet, PlainNet)
}


def network(kind: str, form: Any, **options: Any) -> EquivariantNet:
    """Make a network by the name of its kind: "basis", "frame", "paper", "householder" or "plain"."""
    if kind not in NETWORKS:
        raise ValueError(f"kind {kind!r}: choose from {', '.join(NETWORKS)}")
    return NETWORKS[kind](form, **options)


__all__ = [
    "NETWORKS",
    "EquivariantNet",
    "FixedForm",
    "FrameNet",
    "HouseholderNet",
    "LearnableForm",
    "PairNet",
    "PaperNet",
    "PlainNet",
    "TensorNet",
    "network",
]
