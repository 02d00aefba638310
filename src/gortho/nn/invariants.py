"""Coefficients: functions of invariants, which may be as free as one likes (φ_n of the paper; M4, M5).

The invariants of a tuple are its Gram matrix and whatever scalars come with it. They are signed and may span
many orders of magnitude, so the deep part of a network sees them through a signed, scale-safe embedding. Laws of
nature are often short polynomials in the invariants, so products of learnt combinations stand beside that
embedding and reach the output directly.

Inside, features come first and samples last, ``(features, samples)``: rows are then long, so that processors take
many samples at a time however few the features are.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from gortho.pairings import Factored

#: Shapes of coefficients without their axis of samples, by part of the output and by term.
Shapes = Sequence[Sequence[tuple[int, ...]]]

#: Invariants beyond this size are all alike to the deep part; with calibrated units they are of order one.
LARGEST = 1e18


class Pairing(Enum):
    """Which entries of a Gram matrix ⟨x_i, x_j⟩ are invariants of their own: those of its symmetric or skew part."""

    SYMMETRIC = "symmetric"
    SKEW = "skew"
    BOTH = "both"  # of a hermitian form

    def count(self, points: int) -> int:
        """How many there are."""
        pairs = points * (points - 1) // 2
        return {Pairing.SYMMETRIC: points + pairs, Pairing.SKEW: pairs, Pairing.BOTH: points + 2 * pairs}[
            self
        ]


def embedding(x: Tensor) -> Tensor:
    """x(1 + log r)/r with r = √(1 + x²): linear near zero, logarithmic far out, odd and smooth on the null cone.

    It does what asinh does, from functions that processors have in vectorised form.
    """
    x = x.clamp(-LARGEST, LARGEST)  # no overflow in x², also in float32
    r = (x * x).add_(1).sqrt_()
    return r.log().add_(1).mul_(x / r)


class Columns(nn.Linear):
    """A linear layer on ``(features, samples)``."""

    def reset_parameters(self) -> None:
        if self.in_features:
            super().reset_parameters()
        elif self.bias is not None:  # one vector has no skew products: a constant is left
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight
        if self.in_features <= 12 < self.out_features:
            weight = weight.mT.contiguous().mT  # so laid out, its gradient is a flat product, much quicker
        return weight @ x if self.bias is None else torch.addmm(self.bias[:, None], weight, x)


class Products(nn.Module):
    """f ↦ (Pf)·(Qf): products of learnt combinations of invariants, on ``(features, samples)``.

    Products that span all quadratics need not be learnt (``fixed``): whoever combines them reaches each quadratic.
    """

    def __init__(self, features: int, products: int, fixed: bool = False):
        super().__init__()
        self.factors = Columns(features, 2 * products)  # P and Q
        if fixed:
            for name, values in list(self.factors.named_parameters()):
                delattr(self.factors, name)
                self.factors.register_buffer(name, values.detach())

    def forward(self, f: Tensor) -> Tensor:
        left, right = self.factors(f).chunk(2)
        return left * right


class Quadratics(nn.Module):
    """f ↦ f_i f_j for i ≤ j, on ``(features, samples)``."""

    def __init__(self, features: int):
        super().__init__()
        self.features = features

    def forward(self, f: Tensor) -> Tensor:
        return torch.cat([f[i] * f[i:] for i in range(self.features)])


class Readout(nn.Module):
    """b + Sf + T(products) + W(hidden): constant, linear, quadratic and deep parts of a coefficient.

    It works on ``(features, samples)``. All but the constant start at ``scale`` times the usual size, zero by
    default, so that training finds a short polynomial, where there is one, before the deep part stirs.
    """

    def __init__(self, features: int, products: int, hidden: int, out: int, scale: float = 0.0):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(out))
        self.linear = Columns(features, out, bias=False)
        self.quadratic = Columns(products, out, bias=False)
        self.deep = Columns(hidden, out, bias=False)
        with torch.no_grad():
            for layer in (self.linear, self.quadratic, self.deep):
                layer.weight.mul_(scale)

    def forward(self, f: Tensor, products: Tensor, hidden: Tensor) -> Tensor:
        total = torch.addmm(self.bias[:, None], self.linear.weight, f)
        total = torch.addmm(total, self.quadratic.weight, products)
        return torch.addmm(total, self.deep.weight, hidden)


class GatedMLP(nn.Module):
    """A residual network whose blocks multiply: h ← h + W(silu(Uh) · Vh)."""

    def __init__(self, features: int, width: int, depth: int):
        super().__init__()
        self.first = Columns(features, width)
        self.up = nn.ModuleList(Columns(width, 2 * width) for _ in range(depth))
        self.down = nn.ModuleList(Columns(width, width) for _ in range(depth))

    def columns(self, embedded: Tensor) -> Tensor:
        """The network on embedded invariants ``(features, samples)``."""
        h = self.first(embedded)
        for up, down in zip(self.up, self.down):
            gate, value = up(h).chunk(2)
            h = h + down(nn.functional.silu(gate) * value)
        return h

    def forward(self, f: Tensor) -> Tensor:
        """The network on invariants ``(samples, features)``."""
        return self.columns(embedding(f).mT).mT


def packed(gram: Tensor, pairing: Pairing = Pairing.SYMMETRIC) -> Tensor:
    """The invariants among the entries of ``(..., k, k)``: those with i ≤ j, or i < j of a skew matrix."""
    k = gram.shape[-1]
    i, j = torch.triu_indices(k, k, 1 if pairing is Pairing.SKEW else 0, device=gram.device)
    if pairing is not Pairing.BOTH:
        return gram[..., i, j]
    a, b = torch.triu_indices(k, k, 1, device=gram.device)
    symmetric, skew = (gram + gram.mT) / 2, (gram - gram.mT) / 2
    return torch.cat([symmetric[..., i, j], skew[..., a, b]], -1)


class TupleCoefficients(nn.Module):
    """Coefficients for an ordered tuple: one network of all invariants at once.

    Args:
        points: number of input vectors k.
        shapes: shapes of the coefficients, for each term of each tensor to be built (`gortho.nn.basis`).
        scalars: number of given scalars, per point and per sample, all laid flat.
        pairing: which entries of the Gram matrix are invariants.
    """

    def __init__(
        self,
        points: int,
        shapes: Shapes,
        scalars: int,
        width: int,
        depth: int,
        pairing: Pairing = Pairing.SYMMETRIC,
    ):
        super().__init__()
        self.shapes, self.pairing = shapes, pairing
        self.counts = [prod(shape) for part in shapes for shape in part]
        features = pairing.count(points) + scalars
        self.products = Products(features, width)
        self.deep = GatedMLP(features + width, width, depth)
        self.readout = Readout(features, width, width, sum(self.counts))

    def forward(
        self, gram: Tensor, point_scalars: Tensor | None, sample_scalars: Tensor | None
    ) -> list[list[Tensor]]:
        given = [s for s in (point_scalars, sample_scalars) if s is not None]
        f = torch.cat([packed(gram, self.pairing), *(s.flatten(1) for s in given)], dim=-1).mT.contiguous()
        products = self.products(f)
        hidden = self.deep.columns(embedding(torch.cat([f, products])))
        pieces = iter(self.readout(f, products, hidden).mT.split(self.counts, dim=-1))
        return [[next(pieces).unflatten(-1, (*s, 1)).squeeze(-1) for s in shapes] for shapes in self.shapes]


class Committee(nn.Module):
    """The mean of several coefficient networks; for scalar outputs without the largest and the smallest.

    Outputs are linear in coefficients, so it is the mean of outputs. Members agree where there are data; beyond, one
    may go astray, and a single coefficient shows which. With several coefficients to an output they need not be
    unique, so none is left out there.
    """

    def __init__(self, members: Sequence[nn.Module]):
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, *invariants: Any) -> list[list[Tensor | Factored]]:
        each = [member(*invariants) for member in self.members]
        return [self._together([_stacked(same) for same in zip(*part)]) for part in zip(*each)]

    def _together(self, part: list[Any]) -> list[Tensor | Factored]:
        one = part[0] if len(part) == 1 and isinstance(part[0], Tensor) else None
        if one is not None and one.ndim == 2 and len(self.members) > 2:  # (members, samples): a scalar
            part = [one.sort(0).values[1:-1]]
        return [c if isinstance(c, Factored) else c.mean(0) for c in part]


def _stacked(same: Sequence[Any]) -> Tensor | Factored:
    """The same coefficient of all members, one behind the other; of factors the mean itself."""
    if not isinstance(same[0], Factored):
        return torch.stack(list(same))
    first, *others = (torch.cat(legs, dim=-2) for legs in zip(*(c.factors for c in same)))
    diagonal = torch.stack([c.diagonal for c in same]).mean(0)
    return Factored(diagonal, (first / len(same), *others))
