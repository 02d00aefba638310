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


def spurion_vectors(spurions: Any, n: int) -> Tensor:
    """Given reference vectors as ``(S, n)``."""
    spurions = (spurions,) if isinstance(spurions, str) else spurions
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


def detector_axes(M: Tensor | None = None) -> Tensor:
    """Beams and time axis as vectors ``(3, 4)``, seen in the frame M."""
    vectors = spurion_vectors(tuple(SPURIONS), 4)
    return vectors if M is None else vectors @ M.mT


class Tagger(PairNet):
    """One logit for each jet, from momenta ``(B, N, 4)`` and a mask ``(B, N)`` of real constituents.

    Args:
        form: as of `PairNet`; Minkowski by default. Or a `Symmetry` O(A) with directions, which become the first of
            the spurions.
        spurions: names out of `SPURIONS`, or vectors ``(S, n)``, that the tagger may refer to.
        options: of `PairNet`.

    >>> net = Tagger(spurions=("time",), width=8, pairs=8, depth=1)
    >>> net(torch.randn(3, 10, 4), torch.ones(3, 10, dtype=torch.bool)).shape
    torch.Size([3])
    >>> print(net.symmetry, "|", net.symmetry.residual_name)
    O(1,3), broken along (1.00, 0.00, 0.00, 0.00) | O(3)
    """

    def __init__(self, form: Any = None, *, spurions: Any = (), **options: Any):
        directions = []
        if isinstance(form, Symmetry):
            if len(form.forms) > 1 or form.special or form.origin is not None:
                raise ValueError(
                    f"{form}: a tagger has one form and directions; give O(A), broken along some or none"
                )
            form, directions = form.form, [form.directions]
        module = as_form_module(QuadraticForm.minkowski() if form is None else form)
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
