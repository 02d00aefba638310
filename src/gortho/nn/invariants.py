"""Coefficients: functions of invariants, which may be as free as one likes (φ_n of the paper; M4, M5).

The invariants of a tuple are its Gram matrix and whatever scalars come with it. They are signed and may span
many orders of magnitude, so the deep part of a network sees them through asinh, which is linear near zero and
logarithmic far out, keeps the sign and is smooth on the null cone. Laws of nature are often short polynomials
in the invariants, so products of learnt combinations stand beside that embedding and reach the output directly.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gortho.reps import Tensor as TensorRep


class Products(nn.Module):
    """f ↦ (Pf)·(Qf): products of learnt combinations of invariants."""

    def __init__(self, features: int, products: int):
        super().__init__()
        self.factors = nn.Linear(features, 2 * products)  # P and Q

    def forward(self, f: Tensor) -> Tensor:
        left, right = self.factors(f).chunk(2, dim=-1)
        return left * right


class Readout(nn.Module):
    """b + Sf + T(products) + W(hidden): constant, linear, quadratic and deep parts of a coefficient.

    All but the constant start at ``scale`` times the usual size, zero by default, so that training finds a short
    polynomial, where there is one, before the deep part stirs.
    """

    def __init__(self, features: int, products: int, hidden: int, out: int, scale: float = 0.0):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(out))
        self.linear = nn.Linear(features, out, bias=False)
        self.quadratic = nn.Linear(products, out, bias=False)
        self.deep = nn.Linear(hidden, out, bias=False)
        with torch.no_grad():
            for layer in (self.linear, self.quadratic, self.deep):
                layer.weight.mul_(scale)

    def forward(self, f: Tensor, products: Tensor, hidden: Tensor) -> Tensor:
        return self.bias + self.linear(f) + self.quadratic(products) + self.deep(hidden)


class GatedMLP(nn.Module):
    """A residual network whose blocks multiply: h ← h + W(silu(Uh) · Vh), on asinh of its input (if ``embed``)."""

    def __init__(self, features: int, width: int, depth: int, embed: bool = True):
        super().__init__()
        self.embed = embed
        self.first = nn.Linear(features, width)
        self.up = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        self.down = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, f: Tensor) -> Tensor:
        h = self.first(torch.asinh(f) if self.embed else f)
        for up, down in zip(self.up, self.down):
            gate, value = up(h).chunk(2, dim=-1)
            h = h + down(nn.functional.silu(gate) * value)
        return h


def packed(gram: Tensor) -> Tensor:
    """The entries i ≤ j of ``(..., k, k)`` as ``(..., k(k+1)/2)``."""
    k = gram.shape[-1]
    i, j = torch.triu_indices(k, k, device=gram.device)
    return gram[..., i, j]


class TupleCoefficients(nn.Module):
    """Coefficients for an ordered tuple: one network of all invariants at once.

    Args:
        points: number of input vectors k.
        vectors: number of vectors the legs run over (k for the basis form).
        parts: the tensors to be built; ``singular`` drops terms with A⁻¹.
        scalars: number of given scalars, per point and per sample, all laid flat.
    """

    def __init__(
        self,
        points: int,
        vectors: int,
        parts: Sequence[TensorRep],
        scalars: int,
        width: int,
        depth: int,
        singular: bool = False,
    ):
        super().__init__()
        self.shapes = [[(vectors,) * len(t.legs) for t in part.terms(singular)] for part in parts]
        self.counts = [vectors ** len(t.legs) for part in parts for t in part.terms(singular)]
        features = points * (points + 1) // 2 + scalars
        self.products = Products(features, width)
        self.deep = GatedMLP(features + width, width, depth)
        self.readout = Readout(features, width, width, sum(self.counts))

    def forward(
        self, gram: Tensor, point_scalars: Tensor | None, sample_scalars: Tensor | None
    ) -> list[list[Tensor]]:
        given = [s for s in (point_scalars, sample_scalars) if s is not None]
        f = torch.cat([packed(gram), *(s.flatten(1) for s in given)], dim=-1)
        products = self.products(f)
        hidden = self.deep(torch.cat([f, products], dim=-1))
        pieces = iter(self.readout(f, products, hidden).split(self.counts, dim=-1))
        return [[next(pieces).unflatten(-1, (*s, 1)).squeeze(-1) for s in shapes] for shapes in self.shapes]
