"""Coefficients for an unordered set of points: exactly permutation-equivariant, and cheap (M5).

Three levels see each other: pairs (functions of ⟨x_i, x_j⟩, few channels since there are k² of them), points
(functions of ⟨x_i, x_i⟩, scalars and the mean over their pairs) and the whole (a gated network of the means).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from gortho.nn.invariants import GatedMLP, Products, Readout
from gortho.reps import Tensor as TensorRep


class SetCoefficients(nn.Module):
    """Coefficients c, c_i, c_ij, … of a set: renumbering the points renumbers them.

    ``width`` is that of the widest layer, a gated one of the whole; the whole carries half as many channels, a
    point an eighth and a pair a thirty-second, since there are k points and k² pairs to one whole. Short polynomials
    go to the readouts directly; only the deep part sees the invariants through asinh.
    """

    def __init__(
        self,
        parts: Sequence[TensorRep],
        point_scalars: int,
        sample_scalars: int,
        width: int,
        depth: int,
        singular: bool = False,
    ):
        super().__init__()
        self.legs = [[len(t.legs) for t in part.terms(singular)] for part in parts]
        flat = [legs for part in self.legs for legs in part]
        whole, point, pair = max(8, width // 2), max(8, width // 8), max(4, width // 32)
        rank = 4  # number of products of per-point coefficients in c_ij…
        self.rank = rank
        features = 2 + point_scalars
        # Three times as many products as there are quadratics of a point's own invariants: then sums like Σ m|r|² are
        # found by least squares in few steps, since the random products are well conditioned.
        products = max(point, min(64, 3 * (features + 1) * (features + 2) // 2))
        self.products = Products(features, products)
        self.point_in = nn.Linear(features, point)
        self.pair_in = nn.Linear(2, pair)
        self.ends = nn.Linear(point, 2 * pair, bias=False)
        # Means of invariants and of their products count as first order.
        pooled = features + products + sample_scalars
        self.whole = GatedMLP(features + sample_scalars + pair, whole, depth, embed=False)
        # Where each coefficient is read off; products of point coefficients must not all start at zero. Only what
        # the output needs is made, because weights without a gradient stop training on several processes.
        self.wholes = sum(1 for legs in flat if legs == 0)
        self.points = [(1 if legs == 1 else 1 + legs * rank) if legs else 0 for legs in flat]
        self.pairs = sum(1 for legs in flat if legs == 2)
        if self.wholes:
            self.whole_products = Products(pooled, point)
            self.whole_readout = Readout(pooled, point, whole, self.wholes)
        if any(self.points):
            self.point_up = nn.Linear(point + pair, 2 * point)
            self.point_whole = nn.Linear(whole, 2 * point, bias=False)
            self.point_readout = Readout(features, products, point, sum(self.points), scale=0.01)
        if self.pairs:
            self.pair_readout = nn.Linear(pair, self.pairs)
            nn.init.zeros_(self.pair_readout.weight)
            nn.init.zeros_(self.pair_readout.bias)

    def forward(
        self, gram: Tensor, point_scalars: Tensor | None, sample_scalars: Tensor | None
    ) -> list[list[Tensor]]:
        k = gram.shape[-1]
        given = [gram.diagonal(dim1=-2, dim2=-1)[..., None], gram.mean(-1, keepdim=True)]
        f = torch.cat(given if point_scalars is None else [*given, point_scalars], dim=-1)
        products = self.products(f)
        embedded = torch.asinh(f)
        h = self.point_in(embedded)
        left, right = self.ends(h).chunk(2, dim=-1)
        e = self.pair_in(torch.stack([gram, torch.asinh(gram)], dim=-1))
        e = nn.functional.silu(e + left[..., :, None, :] + right[..., None, :, :])
        row = e.mean(-2)
        given = [] if sample_scalars is None else [sample_scalars]
        w = self.whole(torch.cat([embedded.mean(-2), row.mean(-2), *map(torch.asinh, given)], dim=-1))

        wholes: Iterator[Tensor] = iter(())
        if self.wholes:
            whole_f = torch.cat([f.mean(-2), products.mean(-2), *given], dim=-1)
            wholes = iter(self.whole_readout(whole_f, self.whole_products(whole_f), w).unbind(-1))
        points: Iterator[Tensor] = iter(())
        if any(self.points):
            up = self.point_up(torch.cat([h, row], dim=-1)) + self.point_whole(w)[..., None, :]
            gate, value = up.chunk(2, dim=-1)
            read = self.point_readout(f, products, nn.functional.silu(gate) * value)
            points = iter(read.split([size for size in self.points if size], dim=-1))
        pairs = iter(self.pair_readout(e).unbind(-1)) if self.pairs else iter(())

        def coefficient(legs: int) -> Tensor:
            if legs == 0:
                return next(wholes)
            values = next(points)
            if legs == 1:
                return values[..., 0]
            diagonal, *factors = values.split([1, *[self.rank] * legs], dim=-1)
            diagonal = diagonal[..., 0]
            for _ in range(1, legs):  # d_i on the diagonal i = j = …
                diagonal = torch.diag_embed(diagonal)
            if legs == 2:
                return diagonal + (factors[0] @ factors[1].mT + next(pairs)) / k
            dense = factors[0]  # Σ_a Π u^a, grown one leg at a time
            for leg, factor in enumerate(factors[1:], 1):
                for _ in range(leg):
                    factor = factor.unsqueeze(-3)
                dense = dense.unsqueeze(-2) * factor
            return diagonal + dense.sum(-1) / k

        return [[coefficient(legs) for legs in part] for part in self.legs]
