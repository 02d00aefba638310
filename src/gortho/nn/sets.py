"""Coefficients for an unordered set of points: exactly permutation-equivariant, and cheap (M5).

Three levels see each other: pairs (functions of ⟨x_i, x_j⟩, few channels since there are k² of them), points
(functions of ⟨x_i, x_i⟩, scalars and the mean over their pairs) and the whole (a gated network of the means).
Inside, channels come first and samples last, ``(channels, k, samples)``; see `gortho.nn.invariants`.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gortho.nn.invariants import Columns, Products, Readout, Shapes, embedding

#: Weights of coefficients of points start at this share of the usual size.
SMALL_START = 0.01


def _gate(h: Tensor) -> tuple[Tensor, Tensor]:
    """silu of the first half of the channels, and the second half."""
    gate, value = h.chunk(2)
    return nn.functional.silu(gate), value


class SetCoefficients(nn.Module):
    """Coefficients c, c_i, c_ij, … of a set: renumbering the points renumbers them.

    ``width`` is that of the widest layer, a gated one of the whole; the whole carries half as many channels, a
    point an eighth and a pair a thirty-second, since there are k points and k² pairs to one whole. Short polynomials
    go to the readouts directly; only the deep part sees the invariants embedded. ``shapes`` has an axis for each leg;
    the last ``lively`` coefficients of points do not start near zero.
    """

    def __init__(
        self,
        shapes: Shapes,
        point_scalars: int,
        sample_scalars: int,
        width: int,
        depth: int,
        lively: int = 0,
    ):
        super().__init__()
        self.legs = [[len(shape) for shape in part] for part in shapes]
        flat = [legs for part in self.legs for legs in part]
        whole, point, pair = max(8, width // 2), max(8, width // 8), max(4, width // 32)
        rank = 4  # number of products of per-point coefficients in c_ij…
        self.rank = rank
        features = 2 + point_scalars
        # Three times as many products as there are quadratics of a point's own invariants: then sums like Σ m|r|²
        # are found by least squares in few steps, since random products are well conditioned.
        quadratics = (features + 1) * (features + 2) // 2
        products = min(64, 3 * quadratics)
        self.products = Products(features, products, fixed=quadratics <= products)
        self.ends = Columns(features, 2 * pair)
        self.pair_in = Columns(2, pair, bias=False)
        # Means of invariants and of their products count as first order.
        pooled = features + products + sample_scalars
        self.whole_in = Columns(features + sample_scalars + pair, whole)
        self.whole_up = nn.ModuleList(Columns(whole, 2 * whole) for _ in range(depth))
        # Where each coefficient is read off; products of point coefficients must not all start at zero. Only what
        # the output needs is made, because weights without a gradient stop training on several processes.
        self.wholes = sum(1 for legs in flat if legs == 0)
        self.points = [(1 if legs == 1 else 1 + legs * rank) if legs else 0 for legs in flat]
        self.pairs = sum(1 for legs in flat if legs == 2)
        if self.wholes:
            self.whole_products = Products(pooled, point)
            self.whole_readout = Readout(pooled, point, whole, self.wholes)
        if any(self.points):
            self.point_up = Columns(features + pair, 2 * point, bias=False)
            self.point_whole = Columns(whole, 2 * point)
            self.point_readout = Readout(features, products, point, sum(self.points), scale=SMALL_START)
            if lively:
                with torch.no_grad():
                    for layer in (self.point_readout.linear, self.point_readout.deep):
                        layer.weight[-lively:] /= SMALL_START
        if self.pairs:
            self.pair_readout = Columns(pair, self.pairs)
            nn.init.zeros_(self.pair_readout.weight)
            nn.init.zeros_(self.pair_readout.bias)

    def forward(
        self, gram: Tensor, point_scalars: Tensor | None, sample_scalars: Tensor | None
    ) -> list[list[Tensor]]:
        k = gram.shape[-1]
        g = gram.permute(1, 2, 0).contiguous()
        given = [g.diagonal().mT[None], g.mean(1)[None]]
        if point_scalars is not None:
            given.append(point_scalars.permute(2, 1, 0))
        f = torch.cat(given)
        flat = f.flatten(1)
        flat_products = self.products(flat)
        embedded = embedding(flat)
        left, right = self.ends(embedded).unflatten(1, (k, -1)).chunk(2)
        e = self.pair_in(torch.stack([g, embedding(g)]).flatten(1)).unflatten(1, (k, k, -1))
        e = nn.functional.silu(e + left[:, :, None] + right[:, None])
        row = e.mean(2)
        means = [embedded.unflatten(1, (k, -1)).mean(1), row.mean(1)]
        scalars = [] if sample_scalars is None else [sample_scalars.mT]
        w = self.whole_in(torch.cat([*means, *map(embedding, scalars)]))
        for layer in self.whole_up:  # w ← w + silu(Uw)·Vw
            w = torch.addcmul(w, *_gate(layer(w)))

        wholes: Iterator[Tensor] = iter(())
        if self.wholes:
            products = flat_products.unflatten(1, (k, -1))
            whole_f = torch.cat([f.mean(1), products.mean(1), *scalars])
            wholes = iter(self.whole_readout(whole_f, self.whole_products(whole_f), w))
        points: Iterator[Tensor] = iter(())
        if any(self.points):
            up = self.point_up(torch.cat([embedded, row.flatten(1)])).unflatten(1, (k, -1))
            gate, value = _gate(up + self.point_whole(w)[:, None])
            hidden = (gate * value).flatten(1)
            read = self.point_readout(flat, flat_products, hidden).unflatten(1, (k, -1))
            points = iter(read.split([size for size in self.points if size]))
        pairs: Iterator[Tensor] = iter(())
        if self.pairs:
            pairs = iter(self.pair_readout(e.flatten(1)).unflatten(1, (k, k, -1)))

        def coefficient(legs: int) -> Tensor:
            """c with its legs first and the samples last."""
            if legs == 0:
                return next(wholes)
            values = next(points)
            if legs == 1:
                return values[0]
            diagonal, *factors = values.split([1, *[self.rank] * legs])
            dense = factors[0]  # Σ_a Π u^a, grown one leg at a time
            for leg, factor in enumerate(factors[1:], 1):
                dense = dense.unsqueeze(-2) * factor[(slice(None), *[None] * leg)]
            dense = dense.sum(0)
            if legs == 2:
                dense = dense + next(pairs)
            d = diagonal[0]
            for _ in range(1, legs):  # d_i on the diagonal i = j = …
                d = torch.diag_embed(d.movedim(0, -1), dim1=0, dim2=1)
            return d + dense / k

        return [[coefficient(legs).movedim(-1, 0) for legs in part] for part in self.legs]
