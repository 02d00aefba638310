"""SDBA: vector fields that annihilate a fitted function ("symmetry discovery beyond affine transformations").

Official (Shaw, Magner, Moon 2024): a function is fitted to the data, vector fields with coefficients from a feature
library act on it, and a matrix of coefficients with orthonormal columns, one for each field, is found by Riemannian
Adagrad such that the mean absolute (or squared) action of the fields on the function is smallest. The library of their
comparison with LieGAN is the affine one, Xx + b. The paper fits polynomials and looks for invariances; networks and
equivariance came in later work of the authors. Ours: the fitted function is the network of `MLP`; the fields act on x
and y together, by the given output action on y, and annihilate y - f(x); several generators at once are asked for,
n(n-1)/2 of them, with traceless linear parts by default; the analysis is in float64. The generators are the linear
parts of the fields, made orthonormal; fields that are mostly translations give none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gortho.discovery.spectral import InfinitesimalLaw
from gortho.reps import Rep, as_rep
from gortho.studies.baselines.base import Stand, Variant
from gortho.studies.baselines.liegg import generator_basis
from gortho.studies.baselines.mlp import MLP, Reader

LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "absolute": lambda r: r.abs().mean(),
    "squared": lambda r: r.square().mean(),
}


def riemannian_adagrad(
    objective: Callable[[Tensor], Tensor], W: Tensor, steps: int, lr: float
) -> tuple[Tensor, float]:
    """Minimise over matrices with orthonormal columns: tangent gradients, Adagrad's step, QR back; the best seen."""
    sizes = torch.zeros_like(W)
    best, lowest = W, float("inf")

    def tangent(G: Tensor) -> Tensor:
        inner = W.mT @ G
        return G - W @ (inner + inner.mT) / 2

    for _ in range(steps):
        W = W.detach().requires_grad_(True)
        value = objective(W)
        (gradient,) = torch.autograd.grad(value, W)
        if float(value.detach()) < lowest:
            best, lowest = W.detach(), float(value.detach())
        W = W.detach()
        G = tangent(gradient)
        sizes += G.square()
        Q, R = torch.linalg.qr(W - lr * tangent(G / (sizes.sqrt() + 1e-300)))
        W = Q * R.diagonal().sign()
    return best, lowest


class SDBA(Reader):
    """Train a plain network, then look for affine vector fields that annihilate y - f(x).

    Args:
        output: how the targets transform.
        traceless: look for fields with traceless linear part only; False is as published.
        dimension: number of fields, n(n-1)/2 by default.
        loss: "absolute", as in the published experiments, or "squared".
        iterations, field_lr: of Riemannian Adagrad, on all samples at once.
        samples: the action is averaged over so many samples.
        network: size and training of the network, as `MLP` takes them.
    """

    variants = (
        Variant(
            "SDBA",
            {"samples": Stand(20)} | {t: Stand(40) for t in ("regression", "noise", "suitability")},
            quick={"iterations": 500},
            read_off=("LieGG",),
        ),
    )
    place = 70
    tuning = (
        f"The network is that of the MLP: {MLP.tuning} Loss, learning rate and iterations are the published ones; "
        "others, tried on exact laws (synthetic and inertia, seed 1), found the algebra too (d_PA below 0.02)."
    )

    def __init__(
        self,
        output: str | Rep = "scalar",
        *,
        traceless: bool = True,
        dimension: int | None = None,
        loss: str = "absolute",
        iterations: int = 5_000,
        field_lr: float = 1e-2,
        samples: int = 500,
        **network: Any,
    ):
        super().__init__(output, **network)
        if loss not in LOSSES:
            raise ValueError(f"loss {loss!r}: choose one of {', '.join(LOSSES)}")
        self.traceless, self.dimension, self.loss = traceless, dimension, loss
        self.iterations, self.field_lr, self.samples = iterations, field_lr, samples

    def analyse(self, f: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
        """Find the fields that annihilate y - f(x) for any differentiable function of ``X (N, p, n)``."""
        X = torch.as_tensor(X).double()
        n = X.shape[-1]
        d = n * (n - 1) // 2 if self.dimension is None else self.dimension
        law = InfinitesimalLaw(f, X, as_rep(self.output))
        basis = generator_basis(n, self.traceless)
        linear = torch.stack([law.violation(b[None])[0] for b in basis], dim=1)
        shifts = law.J.sum(-2).reshape(-1, n)  # all points of a sample move together
        M = torch.cat([linear, shifts], dim=1)
        M = M / M.square().mean().sqrt().clamp_min(1e-300)
        start = torch.randn(
            M.shape[1], d, dtype=torch.float64, generator=torch.Generator().manual_seed(self.seed)
        )
        loss = LOSSES[self.loss]
        W, lowest = riemannian_adagrad(
            lambda W: loss(M @ W), torch.linalg.qr(start)[0], self.iterations, self.field_lr
        )
        parts = torch.einsum("kd,kab->dab", W[: len(basis)], basis)
        self.fields = torch.cat([parts, W[len(basis) :].T[:, :, None]], dim=-1)
        sigma, V = torch.linalg.svd(parts.flatten(1), full_matrices=False)[1:]
        mostly_linear = max(1, int((sigma > 0.5**0.5).sum()))  # a translation has no linear part to speak of
        self.generators = V[:mostly_linear].reshape(-1, n, n)
        self.notes |= {"action of the fields": lowest, "translations": float(W[len(basis) :].norm())}
        return self.generators
