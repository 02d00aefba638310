"""Vectors that a tagger refers to: the axes of a detector, by name or given, and the directions of a symmetry (M16)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gortho.symmetry import Symmetry

#: Directions that a detector singles out, as (E, px, py, pz).
SPURIONS: dict[str, list[list[float]]] = {
    "beams": [[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, -1.0]],
    "time": [[1.0, 0.0, 0.0, 0.0]],
}
#: Vectors of length one are dependent where their least singular value is no larger.
DEPENDENT = 1e-6


def independent(vectors: Tensor) -> Tensor:
    """The first of the vectors ``(S, n)`` that span all of them, in float64.

    >>> independent(torch.tensor([[1.0, 0], [2, 0], [0, 0], [1, 1]])).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    kept = vectors[:0].double()
    for v in vectors.double():
        more = torch.cat([kept, v[None]])
        unit = more / more.norm(dim=1, keepdim=True).clamp_min(1e-300)
        if float(torch.linalg.svdvals(unit)[-1]) > DEPENDENT and len(more) <= more.shape[1]:
            kept = more
    return kept


def form_and_directions(form: Any) -> tuple[Any, list[Tensor]]:
    """What a tagger is built around, and the directions ``(d, n)`` of a symmetry, if it is one."""
    if not isinstance(form, Symmetry):
        return form, []
    if len(form.forms) > 1 or form.special or form.origin is not None:
        raise ValueError(
            f"{form}: a tagger has one form and directions; give O(A), broken along some or none"
        )
    return form.form, [form.directions]


def spurion_vectors(spurions: Any, n: int) -> Tensor:
    """Given reference vectors as ``(S, n)``."""
    if isinstance(spurions, str):
        spurions = (spurions,)
    if len(spurions) and all(isinstance(name, str) for name in spurions):
        unknown = [name for name in spurions if name not in SPURIONS]
        if unknown:
            raise ValueError(
                f"there is no spurion {unknown[0]!r}: use {', '.join(SPURIONS)}, or give vectors"
            )
        spurions = [vector for name in spurions for vector in SPURIONS[name]]
    if not len(spurions):
        return torch.empty(0, n, dtype=torch.float64)
    vectors = torch.as_tensor(spurions, dtype=torch.float64)
    if vectors.ndim != 2 or vectors.shape[1] != n:
        raise ValueError(f"spurions have shape {tuple(vectors.shape)}: give (S, {n})")
    return vectors
