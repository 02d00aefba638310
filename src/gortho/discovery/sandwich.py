"""Errors of the form by the noise alone: the sandwich of Gauss-Newton, as draws of forms.

Refits are robust against outliers, and thereby also against their own random weights, so their spread is smaller than
the noise implies. This is the other bound: errors are never below the spread of these draws. Residuals need not be
noise: neighbours with similar residuals, as where other bodies pull at a planet, count as one sample, not as many.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from gortho.discovery.looks import FAR, LAST, few_for, robust_weights
from gortho.discovery.predictor import LINEAR_ROWS
from gortho.discovery.projection import Projection, Solve
from gortho.nn.tuples import SOFT
from gortho.objectives import Objective
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: Forms that are drawn.
DRAWS = 200
#: One minus the leverage of a sample is not taken for smaller than this.
LEAST = 0.2
#: Groups of neighbours that are assumed to have similar residuals, and samples in each, at least.
GROUPS, MEMBERS = 40, 10
#: Draws are not farther from a form of size √n than this: beyond, the sandwich is no guide.
LARGEST = 0.3


def draws(
    train: Samples, validation: Samples, A: Tensor, objective: Objective, seed: int, degree: int | None
) -> Tensor | None:
    """Forms ``(DRAWS, n, n)``, ‖A‖ = √n, as far from A as noise leads; None where the samples cannot tell.

    ``degree`` is that of the polynomial that the law is. Without one, functions of several vectors are learnt by
    neurons beside the family that is at hand here, so their errors are left to the refits.
    """
    if degree is None and (train.points > 1 or train.set_like):
        return None
    if degree is None:
        whole = objective.prepared(Samples.cat([train, validation])).rows(slice(0, len(train)))
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
    pulls, bread = _pulls(J, at, len(few))
    if bread is None:
        return None
    noise = torch.randn(DRAWS, len(across), dtype=J.dtype, generator=torch.Generator().manual_seed(seed))
    roots = [bread @ torch.linalg.qr(p, mode="r")[1].mT for p in (pulls, _of_neighbours(pulls, few, seed))]
    root = max(roots, key=lambda r: float(r.square().sum()))
    steps = widened * torch.tensordot(noise[:, : root.shape[1]] @ root.mT, across, dims=1)
    size = torch.linalg.matrix_norm(steps)
    if not bool(torch.isfinite(size).all()):
        return None
    return unit_form(at.A + steps * (LARGEST / size.clamp_min(LARGEST))[:, None, None])


def _pulls(J: Tensor, at: Solve, samples: int) -> tuple[Tensor, Tensor | None]:
    """How each sample pulls at the steps, in the jackknife form, and the inverse of JᵀJ, where there is one."""
    values, Q = torch.linalg.eigh(J.mT @ J)
    if float(values[0]) <= 1e-12 * float(values[-1]):
        return J, None
    bread = Q / values @ Q.mT
    leverage = at.design.times(at.V).square().sum(1) + torch.einsum("nk,kl,nl->n", J, bread, J)
    leverage = leverage.reshape(samples, -1).sum(1)
    pulls = (J * at.residual[:, None]).reshape(samples, -1, J.shape[1]).sum(1)
    return pulls / (1 - leverage).clamp(LEAST, 1.0)[:, None], bread


def _of_neighbours(pulls: Tensor, samples: Samples, seed: int) -> Tensor:
    """The pulls of groups of samples that lie near each other: those of noise cancel, those of a misfit add up."""
    different = len(torch.unique(samples.x.flatten(1), dim=0))
    groups = min(GROUPS, len(samples) // MEMBERS, different)
    if groups < 2 * pulls.shape[1]:
        return pulls
    of = KMeans(groups, n_init=1, max_iter=20, random_state=seed % 2**32).fit_predict(
        samples.x.flatten(1).numpy()
    )
    return pulls.new_zeros(groups, pulls.shape[1]).index_add_(0, torch.as_tensor(of.astype(np.int64)), pulls)
