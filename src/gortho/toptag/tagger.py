"""The jet tagger: `gortho.nn.PairNet` of momenta, with the directions that a detector singles out by name.

Reference vectors, given (beams, time axis) or learnt, are the directions of its `Tagger.symmetry` (M16).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.nn.form import as_form_module
from gortho.nn.pairnet import PairNet
from gortho.symmetry import Symmetry
from gortho.toptag.axes import form_and_directions, independent, spurion_vectors


class Tagger(PairNet):
    """One logit for each jet, from momenta ``(B, N, 4)`` and a mask ``(B, N)`` of real constituents.

    Args:
        form: as of `PairNet`; Minkowski by default. Or a `Symmetry` O(A) with directions, which become the first of
            the spurions.
        spurions: names out of `gortho.toptag.axes.SPURIONS`, or vectors ``(S, n)``, that the tagger may refer to.
        options: of `PairNet`.

    >>> net = Tagger(spurions=("time",), width=8, pairs=8, depth=1)
    >>> net(torch.randn(3, 10, 4), torch.ones(3, 10, dtype=torch.bool)).shape
    torch.Size([3])
    >>> print(net.symmetry, "|", net.symmetry.residual_name)
    O(1,3), broken along (1.00, 0.00, 0.00, 0.00) | O(3)
    """

    def __init__(self, form: Any = None, *, spurions: Any = (), **options: Any):
        form, directions = form_and_directions(QuadraticForm.minkowski() if form is None else form)
        module = as_form_module(form)
        given = torch.cat([*directions, spurion_vectors(spurions, module.n)])
        super().__init__(module, spurions=given, **options)

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
