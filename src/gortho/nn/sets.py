"""Coefficients for an unordered set of points: exactly permutation-equivariant, and cheap (M5).

Three levels see each other: pairs (functions of ⟨x_i, x_j⟩, few channels since there are k² of them), points
(functions of ⟨x_i, x_i⟩, scalars and the mean over their pairs) and the whole (a gated network of the means).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gortho.nn.invariants import GatedMLP, Products, Readout
from gortho.reps import Tensor as TensorRep


class SetCoefficients(nn.Module):
    """Coefficients c, c_i, c_ij, … of a set: renumbering the points renumbers them.

    ``width`` is that of the network of the whole; points have a quarter and pairs an eighth as many channels.
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
        point, pair = max(8, width // 4), max(4, width // 8)
        rank = 4  # number of products of per-point coefficients in c_ij…
        self.rank = rank
        features = 2 + point_scalars
        self.products = Products(features, point)
        self.point_in = nn.Linear(features + point, point)
        self.pair_in = nn.Linear(2, pair)
        self.left, self.right = nn.Linear(point, pair, bias=False), nn.Linear(point, pair, bias=False)
        pooled = (
            features + point + sample_scalars
        )  # means of invariants and of their products count as first order
        self.whole_products = Products(pooled, point)
        self.whole = GatedMLP(pooled + point + pair, width, depth)
        self.point_up = nn.Linear(point + pair, 2 * point)
        self.point_whole = nn.Linear(width, 2 * point, bias=False)
        self.point_down = nn.Linear(point, point)
        # Where each coefficient is read off; products of point coefficients must not all start at zero.
        self.wholes = sum(1 for legs in flat if legs == 0)
        self.points = [(1 if legs == 1 else 1 + legs * rank) if legs else 0 for legs in flat]
        self.pairs = sum(1 for legs in flat if legs == 2)
        if self.wholes:
            self.whole_readout = Readout(pooled, point, width, self.wholes)
        if any(self.points):
            self.point_readout = Readout(features, point, point, sum(self.points), scale=0.01)
        if self.pairs:
            self.pair_readout = nn.Linear(pair, self.pairs)
            nn.init.zeros_(self.pair_readout.weight)
            nn.init.zeros_(self.pair_readout.bias)

    def forward(
        self, gram: Tensor, point_scalars: Tensor | None, sample_scalars: Tensor | None
    ) -> list[list[Tensor]]:
        k = gram.shape[-1]
        own = gram.diagonal(dim1=-2, dim2=-1)
        given = (
            [own, gram.mean(-1)] if point_scalars is None else [own, gram.mean(-1), *point_scalars.unbind(-1)]
        )
        f = torch.stack(given, dim=-1)
        products = self.products(f)
        h = self.point_in(torch.asinh(torch.cat([f, products], dim=-1)))
        embedded = self.pair_in(torch.stack([gram, torch.asinh(gram)], dim=-1))
        e = nn.functional.silu(embedded + self.left(h)[..., :, None, :] + self.right(h)[..., None, :, :])
        row = e.mean(-2)
        means = [f.mean(-2), products.mean(-2), *([] if sample_scalars is None else [sample_scalars])]
        whole_f = torch.cat(means, dim=-1)
        whole_products = self.whole_products(whole_f)
        w = self.whole(torch.cat([whole_f, whole_products, row.mean(-2)], dim=-1))
        up = self.point_up(torch.cat([h, row], dim=-1)) + self.point_whole(w)[..., None, :]
        gate, value = up.chunk(2, dim=-1)
        h = h + self.point_down(nn.functional.silu(gate) * value)

        wholes = iter(self.whole_readout(whole_f, whole_products, w).unbind(-1)) if self.wholes else iter(())
        sizes = [size for size in self.points if size]
        points = iter(self.point_readout(f, products, h).split(sizes, dim=-1)) if sizes else iter(())
        pairs = iter(self.pair_readout(e).unbind(-1)) if self.pairs else iter(())

        def coefficient(legs: int) -> Tensor:
            if legs == 0:
                return next(wholes)
            values = next(points)
            if legs == 1:
                return values[..., 0]
            factors = values[..., 1:].unflatten(-1, (legs, self.rank))
            dense, diagonal = factors[..., 0, :], values[..., 0]
            for leg in range(
                1, legs
            ):  # Σ_a Π u^a, grown one leg at a time, and d_i on the diagonal i = j = …
                following = factors[..., leg, :]
                for _ in range(leg):
                    following = following.unsqueeze(-3)
                dense = dense.unsqueeze(-2) * following
                diagonal = torch.diag_embed(diagonal)
            dense = dense.sum(-1) / k + diagonal
            return dense + next(pairs) / k if legs == 2 else dense

        return [[coefficient(legs) for legs in part] for part in self.legs]
