"""LieGG: generators of a trained network's symmetry from the null space of the infinitesimal law.

Official (Moskalev et al. 2022): an unconstrained network is trained, the law Df(x)[Xx] = dρ(X) f(x) is stacked over
samples with the n² entries of X as unknowns, and the right singular vectors of the smallest singular values are the
generators. The published code covers invariant outputs, dρ = 0. Ours: it covers every output action here, works in
float64, keeps to traceless generators by default (so(A) is traceless, and a scaling symmetry would otherwise take one
generator's place), is told the dimension n(n-1)/2, and stops its network early on validation data, which matters
under noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gortho.discovery.spectral import InfinitesimalLaw
from gortho.reps import Rep, as_rep
from gortho.studies.baselines.base import Stand, Variant
from gortho.studies.baselines.mlp import MLP, Reader
from gortho.studies.tasks import Task

#: Singular values below this share of the largest one are rounding: no gap among them means anything.
ROUNDING = 1e-11
#: The network and budget of the published O(5) example: two hidden layers of 32 units with SiLU, Adam with batches
#: of 500 for 900,000 samples. It has no biases and a constant learning rate; ours has both biases and a cosine, and
#: stops early.
OFFICIAL: dict[str, Any] = {
    "width": 32,
    "depth": 1,
    "steps": 1_800,
    "lr": 3e-3,
    "batch_size": 500,
    "weight_decay": 1e-4,
    "polish": 0,
}


#: Actions of the same shape as the right one.
WRONG = {"conjugation": "bilinear", "bilinear": "conjugation"}


def wrong_action(task: Task) -> dict[str, str] | None:
    """An action of the same shape as the task's, where there is one."""
    return {"action": WRONG[task.output]} if task.output in WRONG else None


def ablation(place: float) -> dict[str, Stand]:
    """Where ablations stand."""
    return {"regression": Stand(place), "noise": Stand(place)}


def generator_basis(n: int, traceless: bool) -> Tensor:
    """Orthonormal basis ``(k, n, n)`` of all matrices, or of those without a trace, in float64."""
    if not traceless:
        return torch.eye(n * n, dtype=torch.float64).reshape(-1, n, n)
    trace = torch.eye(n, dtype=torch.float64).flatten()
    return torch.linalg.svd(trace[None])[2][1:].reshape(-1, n, n)


def largest_gap(ascending: Tensor) -> int:
    """How many singular values come before the largest ratio of neighbours; rounding-level ones count as equal."""
    floored = ascending.clamp_min(ROUNDING * float(ascending[-1]))
    if float(floored[-1]) == 0 or len(floored) == 1:
        return len(floored)
    return int((floored[1:] / floored[:-1]).argmax()) + 1


class LieGG(Reader):
    """Train a plain network, then read its generators off.

    Args:
        output: how the targets transform.
        traceless: look for traceless generators only; False looks in all of gl(n), as published.
        dimension: number of generators: "known" is n(n-1)/2, "gap" takes the largest ratio of successive singular
            values, or a number.
        action: the action that the generators are asked for, by default that of the output. Another one of the same
            shape, such as "bilinear" (g f gᵀ) for "conjugation" (g f g⁻¹), asks a wrong question: an ablation.
        official: take the small network of the published example (`OFFICIAL`): an ablation.
        samples: the law is stacked over so many samples.
        network: size and training of the network, as `MLP` takes them.
    """

    variants = (
        Variant(
            "LieGG",
            {
                "regression": Stand(30),
                "noise": Stand(30),
                "suitability": Stand(30),
                "samples": Stand(10),
                "neighbours": Stand(30),
            },
            quick={"steps": 600},
            read_off=("LIG",),
        ),
        Variant("LieGG, dimension by gap", ablation(31), {"dimension": "gap"}, read_off=("LieGG",)),
        Variant("LieGG, all of gl(n)", ablation(32), {"traceless": False}, read_off=("LieGG",)),
        Variant("LieGG, wrong action", ablation(33), told=wrong_action, read_off=("LieGG",)),
        Variant("LieGG, small network", {"regression": Stand(34)}, {"official": True}, quick={"steps": 300}),
    )
    place = 60
    tuning = (
        f"The network is that of the MLP: {MLP.tuning} Nothing else is tuned: the dimension n(n-1)/2 and the output "
        "action are told."
    )

    def __init__(
        self,
        output: str | Rep = "scalar",
        *,
        traceless: bool = True,
        dimension: int | str = "known",
        action: str | Rep | None = None,
        official: bool = False,
        samples: int = 2_000,
        **network: Any,
    ):
        super().__init__(output, **((OFFICIAL | network) if official else network))
        if isinstance(dimension, str) and dimension not in ("known", "gap"):
            raise ValueError(f'dimension {dimension!r}: choose "known", "gap" or a number')
        self.traceless, self.dimension, self.samples = traceless, dimension, samples
        self.action = output if action is None else action

    def analyse(self, f: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
        """Find the generators of any differentiable function of ``X (N, p, n)``; they are kept and returned."""
        X = torch.as_tensor(X).double()
        n = X.shape[-1]
        law = InfinitesimalLaw(f, X, as_rep(self.action))
        basis = generator_basis(n, self.traceless)
        M = torch.stack([law.violation(b[None])[0] for b in basis], dim=1)
        sigma, V = torch.linalg.svd(M, full_matrices=True)[1:] if len(M) < len(basis) else _small_svd(M)
        ascending = torch.zeros(len(basis), dtype=torch.float64)
        ascending[len(basis) - len(sigma) :] = sigma.flip(0)
        if isinstance(self.dimension, int):
            d = self.dimension
        else:
            d = n * (n - 1) // 2 if self.dimension == "known" else largest_gap(ascending)
        if not 1 <= d <= len(basis):
            raise ValueError(f"dimension {d}: there are 1 to {len(basis)} generators in this search")
        self.generators = torch.einsum("dk,kab->dab", V.flip(0)[:d], basis)
        self.notes |= {
            "dimension": d,
            "singular values": (ascending / ascending[-1].clamp_min(1e-300)).tolist(),
        }
        return self.generators


def _small_svd(M: Tensor) -> tuple[Tensor, Tensor]:
    """Singular values and right singular vectors of a tall matrix, by way of its triangular factor."""
    return torch.linalg.svd(torch.linalg.qr(M, mode="r")[1])[1:]
