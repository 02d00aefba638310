"""Spectral discovery: the form of any differentiable predictor in one linear solve (M6).

so(A) = {BΩ : Ω skew} with B = A⁻¹, and the infinitesimal law Df(x)[Xx] = dρ(X) f(x) for X = BΩ is linear in B. Stack
it over samples and over a basis of skew Ω: the smallest right singular vector is B, and the ratio of the two smallest
singular values, the gap, says how far the next best form is behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho import checks
from gortho.forms import QuadraticForm
from gortho.reps import DirectSum, Rep, as_rep


@dataclass(frozen=True)
class SpectralForm:
    """What the linear solve found: the form, and how well it stands apart.

    Attributes:
        form: the best form.
        gap: σ₂/σ₁ of the stacked law, the error of the next best form over that of this one. Near 1: no form stands out.
        residual: relative violation of the infinitesimal law by this form, 0 for an exact symmetry and about 1 for none.
        singular_values: all of them, ascending, relative to the largest.
    """

    form: QuadraticForm
    gap: float
    residual: float
    singular_values: np.ndarray

    def __str__(self) -> str:
        return f"{self.form}   gap {self.gap:.3g}, relative violation {self.residual:.2g}"


def symmetric_basis(n: int) -> Tensor:
    """Orthonormal basis of the symmetric matrices, float64 ``(n(n+1)/2, n, n)``."""
    i, j = torch.triu_indices(n, n)
    basis = torch.zeros(len(i), n, n, dtype=torch.float64)
    k = torch.arange(len(i))
    basis[k, i, j] = basis[k, j, i] = torch.where(i == j, 1.0, 0.5**0.5).double()
    return basis


def skew_basis(n: int) -> Tensor:
    """Basis E_ij - E_ji of the skew matrices, float64 ``(n(n-1)/2, n, n)``."""
    i, j = torch.triu_indices(n, n, 1)
    basis = torch.zeros(len(i), n, n, dtype=torch.float64)
    k = torch.arange(len(i))
    basis[k, i, j], basis[k, j, i] = 1.0, -1.0
    return basis


def _jacobians(f: Callable[[Tensor], Tensor], X: Tensor) -> tuple[Tensor, Tensor]:
    """Values ``(N, …)`` and Jacobians ``(N, …, p, n)`` of a function of batches."""
    x = X.detach().clone().requires_grad_(True)
    y = f(x)
    if not isinstance(y, Tensor) or not y.requires_grad:
        raise TypeError(
            "f must be a differentiable torch function of x: its output does not depend on x through autograd"
        )
    columns = y.reshape(len(y), -1).unbind(
        1
    )  # samples are independent, so one backward serves a whole column
    rows = [torch.autograd.grad(c.sum(), x, retain_graph=True)[0] for c in columns]
    return y.detach(), torch.stack(rows, dim=1).reshape(*y.shape, *X.shape[1:]).detach()


def spectral_form(
    f: Callable[[Tensor], Tensor],
    X: Any,
    output: str | Rep = "scalar",
    names: Any = None,
    max_samples: int = 2_000,
) -> SpectralForm:
    """The quadratic form whose group a differentiable function respects best, by one linear solve (M6).

    Args:
        f: differentiable function of batches ``X (N, n)`` or ``(N, p, n)``, such as a trained torch model.
        X: where to look; a few hundred samples are plenty.
        output: how the values of f transform.

    >>> import torch
    >>> print(spectral_form(lambda x: (x[:, 0]**2 - 4 * x[:, 1]**2).sin(), torch.randn(200, 2)).form.law())
    q(x) = -0.34 x0² + 1.37 x1²
    """
    X = checks.as_tensor(X, "X")
    checks.require_finite(X, "X")
    rep = as_rep(output)
    if X.ndim not in (2, 3) or 0 in X.shape:
        raise ValueError(f"X has shape {tuple(X.shape)}: give (N, n) or (N, p, n)")
    X = X[:max_samples]
    n = X.shape[-1]
    if n < 2:
        raise ValueError("in one dimension every function of x² has the same form: there is nothing to find")
    y, J = _jacobians(f, X)
    expected = (len(X), *rep.shape(n))
    if tuple(y.shape) != expected:
        raise ValueError(
            f"f returned shape {tuple(y.shape)}, but {rep} values of {len(X)} samples are {expected}"
        )
    y, J, points = y.double(), J.double(), X.double().reshape(len(X), -1, n)
    J = J.reshape(*y.shape, points.shape[1], n)
    # Each generator X = BΩ, for all basis elements of both: (symmetric, skew, n, n).
    generators = symmetric_basis(n)[:, None] @ skew_basis(n)[None]
    columns, sizes = [], []
    for by_skew in generators:
        left = torch.einsum("z...pa,sab,zpb->sz...", J, by_skew, points)
        right = torch.stack([_differential(rep, g, y, n) for g in by_skew])
        columns.append((left - right).flatten())
        sizes.append(float(left.square().sum() + right.square().sum()))
    M = torch.stack(columns, dim=1)
    _, sigma, V = torch.linalg.svd(torch.linalg.qr(M, mode="r")[1], full_matrices=False)
    B = torch.einsum("k,kab->ab", V[-1], symmetric_basis(n))
    size = float(torch.tensor(sizes).mean()) ** 0.5
    sigma = sigma.flip(0)
    tiny = torch.finfo(torch.float64).eps * float(sigma[-1]) if float(sigma[-1]) > 0 else 1.0
    return SpectralForm(
        QuadraticForm(_adjugate(B), names),
        gap=float(sigma[1] / sigma[0].clamp_min(tiny)) if len(sigma) > 1 else 1.0,
        residual=float(sigma[0]) / size if size > 0 else 1.0,
        singular_values=(sigma / sigma[-1].clamp_min(tiny)).numpy(),
    )


def _differential(rep: Rep, g: Tensor, y: Tensor, n: int) -> Tensor:
    if isinstance(rep, DirectSum):
        return rep.differential(g.expand(len(y), n, n), y)
    return rep.differential(g, y)


def _adjugate(B: Tensor) -> Tensor:
    """adj(B) ∝ B⁻¹, finite for singular B too (which says that A is singular)."""
    values, Q = torch.linalg.eigh(B)
    others = torch.stack([torch.cat([values[:i], values[i + 1 :]]).prod() for i in range(len(values))])
    return Q * others @ Q.T
