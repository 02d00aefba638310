"""Coefficients for an unordered set of points: exactly permutation-equivariant, and cheap (M5).

Three levels see each other: pairs (functions of ⟨x_i, x_j⟩, few channels since there are k² of them), points
(functions of ⟨x_i, x_i⟩, scalars and the mean over their pairs) and the whole (a gated network of the means).
Inside, channels come first and samples last, ``(channels, k, samples)``; see `gortho.nn.invariants`.

Of many points pairs are met in the message sums of `gortho.nn.pairs` alone, and coefficients of several legs stay
products of coefficients of points: nothing of size k² is trained or laid out.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gortho.nn.invariants import Columns, Products, Quadratics, Readout, Shapes, embedding
from gortho.nn.pairs import head_messages
from gortho.pairings import Factored

#: Weights of coefficients of points start at this share of the usual size.
SMALL_START = 0.01
#: Sets of more points than this meet their pairs in message sums.
LARGE = 12
#: Scales at which message sums embed products, in units of `gortho.nn.units`; heads of these sums.
SCALES = (0.3,)
HEADS = 1


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
        whole, (point, pair) = max(8, width // 2), self.channels(width)
        rank = 4  # number of products of per-point coefficients in c_ij…
        self.rank = rank
        features = 2 + point_scalars
        self.products, products = self.make_products(features)
        self.make_pairs(features, pair)
        # Means of invariants and of their products count as first order.
        pooled = features + products + sample_scalars
        self.whole_in = Columns(features + sample_scalars + pair, whole)
        self.whole_up = nn.ModuleList(Columns(whole, 2 * whole) for _ in range(depth))
        # Where each coefficient is read off; products of point coefficients must not all start at zero. Only what
        # the output needs is made, because weights without a gradient stop training on several processes.
        self.wholes = sum(1 for legs in flat if legs == 0)
        self.points = [(1 if legs == 1 else 1 + legs * rank) if legs else 0 for legs in flat]
        self.pairs = 0 if isinstance(self, LargeSetCoefficients) else sum(1 for legs in flat if legs == 2)
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

    #: Where points are in ``(channels, points, samples)``.
    axis = 1

    @staticmethod
    def channels(width: int) -> tuple[int, int]:
        """Channels of a point and of a pair."""
        return max(8, width // 8), max(4, width // 32)

    def make_products(self, features: int) -> tuple[nn.Module, int]:
        """Products of a point's own invariants, and their number.

        They are three times as many as there are quadratics: then sums like Σ m|r|² are found by least squares in few
        steps, since random products are well conditioned.
        """
        quadratics = (features + 1) * (features + 2) // 2
        count = min(64, 3 * quadratics)
        return Products(features, count, fixed=quadratics <= count), count

    def make_pairs(self, features: int, pair: int) -> None:
        """What pairs are made with."""
        self.ends = Columns(features, 2 * pair)
        self.pair_in = Columns(2, pair, bias=False)

    def forward(
        self, gram: Tensor, point_scalars: Tensor | None, sample_scalars: Tensor | None
    ) -> list[list[Tensor | Factored]]:
        k = gram.shape[-1]
        g = gram.permute(1, 2, 0).contiguous()
        scalars = None if point_scalars is None else point_scalars.permute(2, 1, 0)
        f = _features(g.diagonal().mT, g.mean(1), scalars)
        embedded = embedding(f.flatten(1))
        left, right = self.ends(embedded).unflatten(1, (k, -1)).chunk(2)
        e = self.pair_in(torch.stack([g, embedding(g)]).flatten(1)).unflatten(1, (k, k, -1))
        e = nn.functional.silu(e + left[:, :, None] + right[:, None])
        pairs: Iterator[Tensor] = iter(())
        if self.pairs:
            pairs = iter(self.pair_readout(e.flatten(1)).unflatten(1, (k, k, -1)))
        return self.read(f, embedded, e.mean(2), sample_scalars, pairs)

    def read(
        self,
        f: Tensor,
        embedded: Tensor,
        row: Tensor,
        sample_scalars: Tensor | None,
        pairs: Iterator[Tensor],
    ) -> list[list[Tensor | Factored]]:
        """Coefficients from features of points, what they hear from their pairs, and terms of pairs themselves."""
        flat, shape, axis = f.flatten(1), f.shape[1:], self.axis
        flat_products = self.products(flat)
        means = [embedded.unflatten(1, shape).mean(axis), row.sum(axis) / shape[axis - 1]]
        scalars = [] if sample_scalars is None else [sample_scalars.mT]
        w = self.whole_in(torch.cat([*means, *map(embedding, scalars)]))
        for layer in self.whole_up:  # w ← w + silu(Uw)·Vw
            w = torch.addcmul(w, *_gate(layer(w)))

        wholes: Iterator[Tensor] = iter(())
        if self.wholes:
            products = flat_products.unflatten(1, shape)
            whole_f = torch.cat([f.mean(axis), products.mean(axis), *scalars])
            wholes = iter(self.whole_readout(whole_f, self.whole_products(whole_f), w))
        points: Iterator[Tensor] = iter(())
        if any(self.points):
            up = self.point_up(torch.cat([embedded, row.flatten(1)])).unflatten(1, shape)
            gate, value = _gate(up + self.point_whole(w).unsqueeze(axis))
            hidden = (gate * value).flatten(1)
            read = self.point_readout(flat, flat_products, hidden).unflatten(1, shape)
            points = iter(read.split([size for size in self.points if size]))

        def coefficient(legs: int) -> Tensor | Factored:
            if legs == 0:
                return next(wholes)
            values = next(points)
            if legs == 1:
                return values[0].movedim(axis - 1, 1)
            diagonal, *factors = values.split([1, *[self.rank] * legs])
            return self.several_legs(diagonal[0], factors, pairs)

        return [[coefficient(legs) for legs in part] for part in self.legs]

    def several_legs(
        self, diagonal: Tensor, factors: list[Tensor], pairs: Iterator[Tensor]
    ) -> Tensor | Factored:
        """c with the samples first, from d and from factors ``(rank, k, samples)``, laid out with terms of pairs."""
        k, legs = len(diagonal), len(factors)
        dense = factors[0]  # Σ_a Π u^a, grown one leg at a time
        for leg, factor in enumerate(factors[1:], 1):
            dense = dense.unsqueeze(-2) * factor[(slice(None), *[None] * leg)]
        dense = dense.sum(0)
        if legs == 2:
            dense = dense + next(pairs)
        for _ in range(1, legs):  # d_i on the diagonal i = j = …
            diagonal = torch.diag_embed(diagonal.movedim(0, -1), dim1=0, dim2=1)
        return (diagonal + dense / k).movedim(-1, 0)


class LargeSetCoefficients(SetCoefficients):
    """The same for many points, from both sides of their products (`gortho.nn.pairs.sides`)."""

    axis = 2  # (channels, samples, points): what a point hears is then laid out as what it says
    scales: Tensor

    @staticmethod
    def channels(width: int) -> tuple[int, int]:
        """Channels of a point, and of what it hears from its pairs."""
        return max(8, width // 16), HEADS * max(8, width // 16)

    def make_products(self, features: int) -> tuple[nn.Module, int]:
        """The quadratics themselves, as long as they are few."""
        count = features * (features + 1) // 2
        return (Quadratics(features), count) if count <= 64 else (Products(features, 64), 64)

    def make_pairs(self, features: int, pair: int) -> None:
        self.ends = Columns(features, HEADS + pair)
        self.pair_weight = nn.Parameter(torch.randn(len(SCALES), HEADS) / len(SCALES) ** 0.5)
        self.register_buffer("scales", torch.tensor(SCALES))

    def forward(  # type: ignore[override]
        self, both: tuple[Tensor, Tensor], point_scalars: Tensor | None, sample_scalars: Tensor | None
    ) -> list[list[Tensor | Factored]]:
        left, right = both
        own, mean = (left * right).sum(-1), (left * right.mean(1, keepdim=True)).sum(-1)
        f = _features(own, mean, None if point_scalars is None else point_scalars.movedim(-1, 0))
        embedded = embedding(f.flatten(1))
        a, v = self.ends_of(embedded, own.shape)
        row = head_messages(left, right, self.scales, self.pair_weight, a, v).movedim(0, 1)
        return self.read(f, embedded, row, sample_scalars, iter(()))

    def ends_of(self, embedded: Tensor, shape: torch.Size) -> tuple[Tensor, Tensor]:
        """Ends ``(samples, heads, points)`` and values, divided by the number of points: sums become means."""
        sizes = [HEADS, self.ends.out_features - HEADS]
        weight, bias = (
            torch.cat([of_a, of_v / shape[1]])
            for of_a, of_v in (t.split(sizes) for t in (self.ends.weight, self.ends.bias))
        )
        ends = torch.addmm(bias[:, None], weight, embedded).unflatten(1, shape)
        a, v = ends.movedim(0, 1).split(sizes, dim=1)
        return a, v

    def several_legs(self, diagonal: Tensor, factors: list[Tensor], pairs: Iterator[Tensor]) -> Factored:
        return Factored(diagonal, tuple(factor.movedim(0, 1) for factor in factors))


def _features(own: Tensor, mean: Tensor, point_scalars: Tensor | None) -> Tensor:
    """Squares of points, their products with the mean of all, and their scalars, channels first."""
    return torch.cat([own[None], mean[None], *([] if point_scalars is None else [point_scalars])])
