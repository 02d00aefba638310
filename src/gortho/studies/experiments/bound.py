"""The least error of a form that any unbiased estimate can have: the Cramér-Rao bound under Gaussian noise.

The law of the synthetic task is a polynomial of its form, y = c₁ x xᵀA + c₂ q(x) x xᵀA. Whoever knows all but A, c₁
and c₂ has ten entries and two coefficients to estimate. The coefficients are a nuisance, and the size of A is a matter
of gauge, along which the Fisher information is zero (M2).
"""

from __future__ import annotations

import statistics
from functools import cache

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.groups import symmetric_basis
from gortho.studies.tasks import Task, synthetic

#: Forms drawn for the expected distance.
DRAWS = 400


def covariance(slopes: Tensor, noise: float) -> Tensor:
    """The bound σ²(JᵀJ)⁺ on the covariance of parameters, with the slopes J ``(values, parameters)`` of the law.

    Where the information is zero nothing is estimated: what does not change the law has no error.

    >>> J = torch.tensor([[1.0], [1.0], [1.0], [1.0]], dtype=torch.float64)
    >>> float(covariance(J, 2.0))  # the variance of a mean
    1.0
    """
    return noise**2 * torch.linalg.pinv(slopes.mT @ slopes, hermitian=True, rtol=1e-11)


def expected_distance(form: QuadraticForm, cov: Tensor, seed: int = 0) -> float:
    """The mean d_PA of forms about this one, with this covariance of the entries in the symmetric basis."""
    basis = symmetric_basis(form.n)
    values, V = torch.linalg.eigh(cov)
    draws = torch.randn(DRAWS, len(values), dtype=cov.dtype, generator=torch.Generator().manual_seed(seed))
    steps = (draws * values.clamp_min(0.0).sqrt()) @ V.mT
    return statistics.mean(
        form.algebra_distance(QuadraticForm(form.matrix + torch.tensordot(s, basis, dims=1))) for s in steps
    )


def polynomial_slopes(task: Task) -> Tensor:
    """Slopes of the synthetic law by the entries of its form and by its two coefficients ``(values, 10 + 2)``."""
    A, x = task.form.matrix, task.x[:, 0]
    terms = _terms(x, A)
    c = torch.linalg.lstsq(terms.flatten(0, -2), task.truth.flatten()[:, None]).solution[:, 0]

    def law(entries: Tensor) -> Tensor:
        return _terms(x, A + torch.tensordot(entries, symmetric_basis(len(A)), dims=1)) @ c

    at = torch.zeros(len(symmetric_basis(len(A))), dtype=A.dtype)
    by_entries = torch.func.jacfwd(law)(at)
    return torch.cat([by_entries, terms], -1).flatten(0, -2)


def _terms(x: Tensor, A: Tensor) -> Tensor:
    """x xᵀA and q(x) x xᵀA, ``(N, n, n, 2)``."""
    lowered = x @ A
    first = x[:, :, None] * lowered[:, None, :]
    return torch.stack([first, first * (x * lowered).sum(1)[:, None, None]], -1)


@cache
def synthetic_bound(samples: int, seed: int, noise: float, beyond: int = 0) -> float:
    """The bound on the mean d_PA from these samples of the synthetic task; ``beyond`` more belong to the same draw."""
    task = synthetic(samples + beyond, seed)[:samples]
    cov = covariance(polynomial_slopes(task), noise)
    entries = len(symmetric_basis(task.form.n))
    return expected_distance(task.form, cov[:entries, :entries], seed)
