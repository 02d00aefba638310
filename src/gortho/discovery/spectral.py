"""Spectral discovery: the form of any differentiable predictor in one linear solve (M6).

so(A) = {BΩ : Ω skew} with B = A⁻¹, and the infinitesimal law Df(x)[Xx] = dρ(X) f(x) for X = BΩ is linear in B. Stack
it over samples and over a basis of skew Ω: the smallest right singular vector is B, and the ratio of the two smallest
singular values, the gap, says how far the next best form is behind.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho import checks
from gortho.forms import QuadraticForm
from gortho.groups import skew_basis, symmetric_basis
from gortho.reps import DirectSum, Rep, Vector, as_rep
from gortho.samples.values import power_of_two


@dataclass(frozen=True)
class SpectralForm:
    """The result of the linear solve: the form, and how clearly it stands out.

    Attributes:
        form: the best form.
        gap: σ₂/σ₁ of the stacked law, the error of the next best form over this one's. Near 1: no form stands out.
        residual: relative violation of the infinitesimal law: 0 for an exact symmetry, about 1 for none.
        singular_values: all of them, ascending, relative to the largest.
    """

    form: QuadraticForm
    gap: float
    residual: float
    singular_values: np.ndarray

    def __str__(self) -> str:
        return f"{self.form}   gap {self.gap:.3g}, relative violation {self.residual:.2g}"


def entries_of(A: Tensor) -> Tensor:
    """The coefficients c_ab, a ≤ b, of ⟨x, x⟩ = Σ c_ab x_a x_b, row by row ``(n(n+1)/2,)``."""
    i, j = torch.triu_indices(len(A), len(A))
    return (2 * A - torch.diag(A.diagonal()))[i, j]


def of_entries(entries: Tensor, n: int) -> Tensor:
    """The symmetric matrix ``(n, n)`` with these coefficients."""
    i, j = torch.triu_indices(n, n)
    M = torch.zeros(n, n, dtype=entries.dtype).index_put((i, j), entries)
    return (M + M.mT) / 2


def _jacobians(f: Callable[[Tensor], Tensor], X: Tensor) -> tuple[Tensor, Tensor]:
    """Values ``(N, …)`` and Jacobians ``(N, …, p, n)`` of a function of batches."""
    x = X.detach().clone().requires_grad_(True)
    y = f(x)
    if not isinstance(y, Tensor) or not y.requires_grad:
        raise TypeError(
            "f must be a differentiable torch function of x: its output does not depend on x through autograd"
        )
    # Samples are independent, so one backward serves a whole column.
    columns = y.reshape(len(y), -1).unbind(1)
    rows = [torch.autograd.grad(c.sum(), x, retain_graph=True)[0] for c in columns]
    return y.detach(), torch.stack(rows, dim=1).reshape(*y.shape, *X.shape[1:]).detach()


class InfinitesimalLaw:
    """Df(x)[Xx] - dρ(X) f(x) at given samples: zero for every X in the Lie algebra of f's symmetry group.

    The Jacobians are taken once; the law is linear in X, so any linear family of generators can be solved for.
    """

    def __init__(self, f: Callable[[Tensor], Tensor], X: Tensor, rep: Rep):
        self.rep, self.n = rep, X.shape[-1]
        y, J = _jacobians(f, X)
        expected = (len(X), *rep.shape(self.n))
        if tuple(y.shape) != expected:
            raise ValueError(
                f"f returned shape {tuple(y.shape)}, but {rep} values of {len(X)} samples are {expected}"
            )
        self.points = X.double().reshape(len(X), -1, self.n)
        self.y, self.J = y.double(), J.double().reshape(*y.shape, self.points.shape[1], self.n)

    def in_own_units(self) -> InfinitesimalLaw:
        """The same law with points of order one, and each part of a sum in a unit of its own.

        What violates it then counts alike in all parts, whatever their units, and squares stay in range.
        """
        law, x_unit = copy.copy(self), power_of_two(self.points)
        law.points = self.points / x_unit
        counts, parts = [part.size(self.n) for part in self.rep.parts], []
        slopes = x_unit * self.J.reshape(len(self.y), sum(counts), -1)
        values = torch.cat([self.y.reshape(*slopes.shape[:2], 1), slopes], 2)
        for part, both in zip(self.rep.parts, values.split(counts, 1)):
            # A scalar counts by how it changes, whatever is added to it.
            seen = both if part.rank else both[..., 1:]
            both = both / power_of_two(seen)
            size = both[..., 1:].square().sum((1, 2)) * law.points.square().sum((1, 2))
            if part.rank:
                size = size + both[..., 0].square().sum(1)
            parts.append(both / (float(size.mean().sqrt()) or 1.0))
        y, J = torch.cat(parts, 1).split([1, values.shape[2] - 1], 2)
        law.y, law.J = y.reshape(self.y.shape), J.reshape(self.J.shape)
        return law

    def violation(self, generators: Tensor) -> tuple[Tensor, float]:
        """The flattened difference of both sides for generators ``(k, n, n)``; the sum of squares of both sides."""
        left = torch.einsum("z...pa,kab,zpb->kz...", self.J, generators, self.points)
        batch = (len(self.y),) if isinstance(self.rep, DirectSum) else ()
        right = torch.stack(
            [self.rep.differential(g.expand(*batch, self.n, self.n), self.y) for g in generators]
        )
        return (left - right).flatten(), float(left.square().sum() + right.square().sum())


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
        X: points at which f is evaluated; a few hundred are enough.
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
    law = InfinitesimalLaw(f, X, rep)
    if not law.J.any() and all(part.rank == 0 for part in rep.parts):
        raise ValueError("f is constant on X: all forms are kept, and there is none to find")
    law = law.in_own_units()
    generators = symmetric_basis(n)[:, None] @ skew_basis(n)[None]  # X = BΩ for all basis elements of both
    residuals, sizes = zip(*(law.violation(family) for family in generators))
    A, sigma = _best_form(torch.stack(residuals, dim=1), n)
    size = float(torch.tensor(sizes).mean()) ** 0.5
    tiny = torch.finfo(torch.float64).eps * float(sigma[-1]) if float(sigma[-1]) > 0 else 1.0
    return SpectralForm(
        QuadraticForm(A, names),
        gap=float(sigma[1].clamp_min(tiny) / sigma[0].clamp_min(tiny)) if len(sigma) > 1 else 1.0,
        residual=float(sigma[0]) / size if size > 0 else 1.0,
        singular_values=(sigma / sigma[-1].clamp_min(tiny)).numpy(),
    )


def _best_form(law: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The form of the B that keeps a law ``(rows, n(n+1)/2)``, linear in B, best; all singular values, ascending.

    It is adj(B) ∝ B⁻¹, finite for singular B too (which says that A is singular).
    """
    _, sigma, V = torch.linalg.svd(torch.linalg.qr(law, mode="r")[1])
    # Fewer rows than unknowns leave the others open.
    sigma = torch.cat([sigma, sigma.new_zeros(len(V) - len(sigma))])
    values, Q = torch.linalg.eigh(torch.einsum("k,kab->ab", V[-1], symmetric_basis(n)))
    others = torch.stack([torch.cat([values[:i], values[i + 1 :]]).prod() for i in range(len(values))])
    return Q * others @ Q.T, sigma.flip(0)


def stabiliser_form(x: Tensor, y: Tensor, rep: Rep) -> tuple[Tensor, float] | None:
    """The form for which tensors y are fixed by all maps that fix the vectors x, by a linear solve without a fit (M6).

    Generators X = BΩ with Ωx_i = 0 fix every x_i, whatever B = A⁻¹ is, so an equivariant y obeys dρ(BΩ) y = 0, which is
    linear in B and holds for any coefficients. Vectors always obey it; tensors of higher rank determine the form.

    Args:
        x: vectors ``(N, p, n)``, fewer than n - 1.
        y: tensors ``(N, *shape)``, single ones, not sums.

    Returns:
        A, up to a factor, and the gap σ₂/σ₁; None if there is nothing to solve.
    """
    _, k, n = x.shape
    if n - k < 2 or isinstance(rep, DirectSum) or rep.parts[0].rank == 0 or rep == Vector():
        return None
    complement = torch.linalg.qr(x.mT, mode="complete")[0][:, :, k:]
    size = y.flatten(1).norm(dim=1).clamp_min(1e-300)
    y = y / size.view(-1, *[1] * (y.ndim - 1))
    rows = []
    for a in range(n - k):
        for b in range(a + 1, n - k):
            p, q = complement[:, :, a], complement[:, :, b]
            omega = p[:, :, None] * q[:, None] - q[:, :, None] * p[:, None]
            rows.append(
                torch.stack([rep.differential(B @ omega, y).flatten() for B in symmetric_basis(n)], 1)
            )
    A, sigma = _best_form(torch.cat(rows), n)
    return A, float(sigma[1] / sigma[0].clamp_min(1e-300))
