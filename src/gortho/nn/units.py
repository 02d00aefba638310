"""Units: the one scale that all vectors of a sample are divided by, so that weights see numbers of order one."""

from __future__ import annotations

import torch
from torch import Tensor

from gortho.nn.form import FormModule, LearnableForm
from gortho.samples.values import root_mean_square

#: Near the null cone inner products are small by cancellation: units that follow them further down than this would
#: blow up their rounding.
SMALLEST_SIZE = 0.3


def positive(scale: Tensor) -> Tensor:
    """A unit to divide by: a scale of zero (constant data) leaves the data as it is."""
    return torch.where(scale > 0, scale, torch.ones_like(scale))


def unit_of(form: FormModule, X: Tensor) -> Tensor:
    """The unit of tuples ``(batch, p, n)``: the size of components, with a known form that of inner products."""
    scale = positive(root_mean_square(X))
    if not isinstance(form, LearnableForm):
        p, n = X.shape[1:]
        isotropic = (n + 2 + p - 1) * n / p  # mean square of Euclidean inner products of N(0, I) vectors
        size = (form.gram(X / scale).square().mean() / isotropic) ** 0.25
        scale = scale * size.clamp_min(SMALLEST_SIZE)
    return scale
