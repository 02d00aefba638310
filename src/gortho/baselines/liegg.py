"""LieGG: generators of a trained network's symmetry from the null space of the infinitesimal law.

Official: an unconstrained network is trained, the law Df(x)[Xx] = dρ(X) f(x) is stacked over samples with the n²
entries of X as unknowns, and the right singular vectors of the smallest singular values are the generators. Ours: it
covers every output action here, works in float64, keeps to traceless generators by default (so(A) is traceless, and a
scaling symmetry would otherwise take one generator's place), is told the dimension n(n-1)/2, and stops its network
early on validation data, which matters under noise.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gortho.baselines.base import form_of_generators
from gortho.discovery.spectral import InfinitesimalLaw
from gortho.forms import QuadraticForm
from gortho.nn.form import FixedForm
from gortho.nn.plain import PlainNet
from gortho.reps import Rep, as_rep
from gortho.training import fit, predict


class LieGG:
    """Train a plain network, then read its generators off."""

    def __init__(
        self,
        output: str | Rep = "scalar",
        traceless: bool = True,
        width: int = 128,
        steps: int = 12_000,
        seed: int = 0,
    ):
        self.output, self.traceless, self.width = output, traceless, width
        self.steps, self.seed = steps, seed

    def fit(self, X: Any, y: Any) -> LieGG:
        """Fit the network on ``X (N, p, n)`` and find the generators."""
        X, y = torch.as_tensor(X), torch.as_tensor(y)
        n = X.shape[-1]
        rep = as_rep(self.output)
        anything = FixedForm(QuadraticForm.euclidean(n))  # the plain network ignores it
        self.network = PlainNet(anything, X.shape[1], rep, width=self.width, depth=2, seed=self.seed)
        batch_size = min(256, max(16, len(X) // 8))
        self.history = fit(
            self.network,
            X.float(),
            y.float(),
            epochs=max(1, self.steps * batch_size // len(X)),
            batch_size=batch_size,
            lr=3e-3,
            seed=self.seed,
            progress=False,
        )
        law = InfinitesimalLaw(self.network.double(), X[:2_000].double(), rep)
        basis = torch.eye(n * n, dtype=torch.float64).reshape(-1, n, n)
        if self.traceless:
            trace = torch.eye(n, dtype=torch.float64).flatten() / n**0.5
            complement = torch.linalg.svd(trace[None])[2][1:]
            basis = complement.reshape(-1, n, n)
        M = torch.stack([law.violation(b[None])[0] for b in basis], dim=1)
        V = torch.linalg.svd(torch.linalg.qr(M, mode="r")[1], full_matrices=False)[2]
        self.generators = torch.einsum("dk,kab->dab", V[-(n * (n - 1) // 2) :], basis)
        return self

    def predict(self, X: Any) -> Tensor:
        """The network's predictions."""
        return predict(self.network, X)

    @property
    def quadratic_form(self) -> QuadraticForm:
        """The form its generators preserve best."""
        return form_of_generators(self.generators)
