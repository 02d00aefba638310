"""The jet tagger: `gortho.nn.PairNet` of momenta, with the directions that a detector singles out.

Reference vectors, given (beams, time axis) or learnt, are the directions of its `Tagger.symmetry` (M16).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.nn.pairnet import PairNet
from gortho.symmetry import Symmetry

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


def detector_axes(M: Tensor | None = None) -> Tensor:
    """What a detector singles out, as vectors ``(3, 4)``: the beams and the time axis, seen in the frame M."""
    vectors = torch.tensor([[1.0, 0, 0, 1], [1, 0, 0, -1], [1, 0, 0, 0]], dtype=torch.float64)
    return vectors if M is None else vectors @ M.mT


class Tagger(PairNet):
    """One logit for each jet, from momenta ``(B, N, 4)`` and a mask ``(B, N)`` of real constituents.

    Args:
        form, options: as of `PairNet`; Minkowski by default.

    >>> net = Tagger(spurions=[[1.0, 0, 0, 0]], width=8, pairs=8, depth=1)
    >>> net(torch.randn(3, 10, 4), torch.ones(3, 10, dtype=torch.bool)).shape
    torch.Size([3])
    >>> print(net.symmetry, "|", net.symmetry.residual_name)
    O(1,3), broken along (1.00, 0.00, 0.00, 0.00) | O(3)
    """

    def __init__(self, form: Any = None, **options: Any):
        if isinstance(form, Symmetry) and form.origin is not None:
            raise ValueError(
                f"{form}: a tagger knows no origin; give O(A), broken along some directions or none"
            )
        super().__init__(QuadraticForm.minkowski() if form is None else form, **options)

    @property
    def references(self) -> Tensor:
        """All vectors that the tagger refers to, given and learnt ``(S, n)``, in float64 on the CPU."""
        learnt = [] if self.learnt is None else [self.learnt.detach()]
        return torch.cat([self.spurions, *learnt]).double().cpu()

    @property
    def symmetry(self) -> Symmetry:
        """What leaves all scores as they are: O(A), broken along the references.

        What keeps some vectors keeps those that depend on them, so these are left out: of beams and time axis, the time
        axis.
        """
        return Symmetry(self.form.value(), directions=independent(self.references))

    def extra_repr(self) -> str:
        try:
            return str(self.symmetry)
        except ValueError:  # a learnt form may be singular for a while
            return self.form.value().group_name
