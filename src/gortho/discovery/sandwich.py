"""Errors of the form by the noise alone: the sandwich of Gauss-Newton, as draws of forms.

Refits are tamed against outliers, and with that against their own random weights, so their spread is smaller than what
the noise makes. This is the other bound: errors are never below what these draws tell.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gortho.discovery.looks import FAR, LAST, few_for, robust_weights
from gortho.discovery.predictor import LINEAR_ROWS
from gortho.discovery.projection import Projection, Solve
from gortho.discovery.targets import Errors, prepared
from gortho.nn.tuples import SOFT
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: Forms that are drawn.
DRAWS = 200
#: One minus the leverage of a sample is not taken for smaller than this.
LEAST = 0.2
#: Draws are not farther from a form of size √n than this: beyond, the sandwich is no guide.
LARGEST = 0.3


def draws(
    train: Samples, validation: Samples, A: Tensor, errors: Errors, seed: int, degree: int | None
) -> Tensor | None:
    """Forms ``(DRAWS, n, n)``, ‖A‖ = √n, as far from A as noise leads; None where the samples cannot tell.

    ``degree`` is that of the polynomial that the law is. Without one, functions of several vectors are learnt by
    neurons beside the family that is at hand here, so their errors are left to the refits.
    """
    if degree is None and (train.points > 1 or train.set_like):
        return None
    if degree is None:
        whole = prepared(Samples.cat([train, validation]), errors).rows(slice(0, len(train)))
        few, columns = few_for(whole, LAST)
        projection = Projection(few, columns, few.weights, seed + 3, SOFT)
        weights = robust_weights(projection, projection.solve(A))
        # A weight that falls with the residual makes the fit less sure than a fixed one.
        slope = (2 * weights - 1) * weights
        widened = float(weights.mean() / slope.mean().clamp_min(weights.mean() / FAR))
        projection = projection.reweighted(weights)
    else:
        few = train.rows(slice(0, LINEAR_ROWS // train.rep.size(train.n)))
        projection, widened = Projection(few, 0, few.weights, seed, degree=degree), 1.0
    at = projection.solve(projection.gauged(A))
    J, across = projection.jacobian(at)
    root = _root(J, at, len(few))
    if root is None:
        return None
    noise = torch.randn(DRAWS, len(across), dtype=J.dtype, generator=torch.Generator().manual_seed(seed))
    steps = widened * torch.tensordot(noise @ root.mT, across, dims=1)
    size = torch.linalg.matrix_norm(steps)
    if not bool(torch.isfinite(size).all()):
        return None
    return unit_form(at.A + steps * (LARGEST / size.clamp_min(LARGEST))[:, None, None])


def _root(J: Tensor, at: Solve, samples: int) -> Tensor | None:
    """A root of the covariance of the steps, in its jackknife form: samples that pull at the fit count more."""
    values, Q = torch.linalg.eigh(J.mT @ J)
    if float(values[0]) <= 1e-12 * float(values[-1]):
        return None
    bread = Q / values @ Q.mT
    leverage = at.design.times(at.V).square().sum(1) + torch.einsum("nk,kl,nl->n", J, bread, J)
    leverage = leverage.reshape(samples, -1).sum(1)
    pulls = (J * at.residual[:, None]).reshape(samples, -1, J.shape[1]).sum(1)
    pulls = pulls / (1 - leverage).clamp(LEAST, 1.0)[:, None]
    return bread @ torch.linalg.qr(pulls, mode="r")[1].mT
