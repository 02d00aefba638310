"""Do all vectors lie on one quadric xᵀBx = const? Then q(x) is known up to a constant, and A is as good as A + tB."""

from __future__ import annotations

import torch

from gortho.samples.values import Samples

#: Vectors lie on a quadric where xᵀBx varies by less than this, with B of size one where x has unit spread.
THIN = 1e-3
#: Samples for each entry of B, at least.
FOR_EACH = 3
ON_A_SHELL = (
    "all vectors lie on one quadric (xᵀBx is the same for all of them, as on a sphere or a mass shell): there the form "
    "A says no more than A + tB for any number t."
)
OFF_THE_SHELL = (
    "Give vectors of several lengths, or several vectors in each sample; predict with it only on the quadric."
)


def on_shell(samples: Samples) -> bool:
    """Whether the vectors of samples of one vector each, whose outputs depend on it by q(x) alone, lie on a quadric."""
    outputs = all(part.down == 0 and part.up < 2 for part in samples.rep.parts)
    x = samples.x[:, 0].double()
    n = x.shape[1]
    i, j = torch.triu_indices(n, n)
    if samples.points > 1 or not outputs or len(x) < FOR_EACH * len(i):
        return False
    rest = x - x.mean(0)
    values, V = torch.linalg.eigh(rest.mT @ rest / len(x))
    if not float(values[0]) > 1e-12 * float(values[-1]):  # a constant coordinate is another matter
        return False
    w = x @ V / values.sqrt()
    squares = w[:, i] * w[:, j] * torch.where(i == j, 1.0, 2**0.5)
    squares = squares - squares.mean(0)
    return float(torch.linalg.svdvals(squares)[-1]) < THIN * len(x) ** 0.5
