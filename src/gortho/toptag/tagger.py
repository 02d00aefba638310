"""The jet tagger: `gortho.nn.PairNet` of momenta, with the directions that a detector singles out by name."""

from __future__ import annotations

from typing import Any

from gortho.forms import QuadraticForm
from gortho.nn.pairnet import PairNet

#: Directions that a detector singles out, as (E, px, py, pz).
SPURIONS: dict[str, list[list[float]]] = {
    "beams": [[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, -1.0]],
    "time": [[1.0, 0.0, 0.0, 0.0]],
}


class Tagger(PairNet):
    """One logit for each jet, from momenta ``(B, N, 4)`` and a mask ``(B, N)`` of real constituents.

    Args:
        form: as of `PairNet`; Minkowski by default.
        spurions: names out of `SPURIONS`, or vectors, that the tagger may refer to.
        options: of `PairNet`.

    >>> import torch
    >>> net = Tagger(spurions=("time",), width=8, pairs=8, depth=1)
    >>> net(torch.randn(3, 10, 4), torch.ones(3, 10, dtype=torch.bool)).shape
    torch.Size([3])
    """

    def __init__(self, form: Any = None, *, spurions: Any = (), **options: Any):
        form = QuadraticForm.minkowski() if form is None else form
        super().__init__(form, spurions=_named(spurions), **options)


def _named(spurions: Any) -> Any:
    """Names as vectors; vectors as they are."""
    names = (spurions,) if isinstance(spurions, str) else spurions
    if not all(isinstance(name, str) for name in names):
        return spurions
    unknown = [name for name in names if name not in SPURIONS]
    if unknown:
        raise ValueError(f"there is no spurion {unknown[0]!r}: use {', '.join(SPURIONS)}, or give vectors")
    return [vector for name in names for vector in SPURIONS[name]]
