"""Fixed functions of the invariants, and coefficients that are linear in them (M12).

Laws as they come are made of powers, roots, logarithms and poles of inner products and of distances, and of products
and waves of them. A coefficient that is linear in such functions is fitted by one linear solve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gortho.nn.invariants import Shapes
from gortho.nn.tuples import SOFT, TupleFeatures, Waves, some_products


class SetFeatures:
    """Functions of an unordered set's invariants: of the whole, of each point and of each pair.

    Args:
        point_scalars, sample_scalars: number of given scalars.
        room: about so many functions of the whole; points and pairs have fewer.
    """

    INVARIANTS = 6  # ⟨x_i, x_i⟩, ⟨x_i, mean⟩, q(x_i - mean), ⟨x_i, x_j⟩, q(x_i - x_j), q(mean)

    def __init__(
        self,
        point_scalars: int,
        sample_scalars: int,
        room: int,
        seed: int = 0,
        soft: float = SOFT,
        degree: int | None = None,
    ):
        self.soft, self.degree = soft, degree
        generator = torch.Generator().manual_seed(seed)
        variables = 3 + point_scalars + sample_scalars
        if degree is not None:
            self.products = torch.triu_indices(variables, variables).unbind()
        else:
            self.products = some_products(variables, max(room // 3, 6), generator)
            self.point_waves = Waves(variables, room // 4, generator)
            self.pair_waves = Waves(2, room // 8, generator)
            self.whole_products = some_products(variables, room // 6, generator)
            self.whole_waves = Waves(variables, room // 3, generator)
        two = torch.zeros(1, 2, 2, dtype=torch.float64)
        point = two.new_zeros(1, 2, point_scalars) if point_scalars else None
        sample = two.new_zeros(1, sample_scalars) if sample_scalars else None
        whole, points, pairs = (f.shape[-1] for f in self(two, point, sample, two.new_ones(self.INVARIANTS)))
        #: Functions by number of legs; those of two have a diagonal and the pairs.
        self.counts = [whole, points, points + pairs]

    @staticmethod
    def invariants(gram: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Invariants of points ``(N, k, 3)``, of pairs ``(N, k, k, 2)`` and of the whole ``(N, 1)``."""
        k = gram.shape[1]
        count = torch.full_like(gram[:, 0, 0], float(k)) if mask is None else mask.sum(1)
        own = gram.diagonal(dim1=1, dim2=2)
        to_mean = gram.sum(2) / count[:, None]
        centre = gram.sum((1, 2)) / count.square()
        points = torch.stack([own, to_mean, own - 2 * to_mean + centre[:, None]], 2)
        return points, torch.stack([gram, own[:, :, None] + own[:, None] - 2 * gram], 3), centre[:, None]

    def _points(self, b: Tensor, given: list[Tensor]) -> Tensor:
        i, j = self.products
        v = torch.cat([b, *given], 2)
        if self.degree is not None:
            return torch.cat([torch.ones_like(b[:, :, :1]), v, v[:, :, i] * v[:, :, j]][: 1 + self.degree], 2)
        e = torch.asinh(b)
        ev = torch.cat([e, *given], 2)
        q = b[:, :, ::2]
        r = (q.square() + self.soft**2).sqrt()
        parts = [torch.ones_like(b[:, :, :1]), v, e, 1 / r, q / r.square(), r.sqrt(), r.log()]
        return torch.cat([*parts, v[:, :, i] * v[:, :, j], self.point_waves(ev)], 2)

    def _pairs(self, b: Tensor, point: Tensor | None) -> Tensor:
        e, d = torch.asinh(b), b[..., 1:]
        r = (d.square() + self.soft**2).sqrt()
        if self.degree is not None:
            f = b[..., : min(1, self.degree)]
        else:
            f = torch.cat([b, e, 1 / r, d / r.square(), r**-3, r.sqrt(), r.log(), self.pair_waves(e)], 3)
        if point is None or not f.shape[3]:
            return f
        products = (point[:, :, None] * point[:, None]).unbind(3)
        return torch.cat([f, *(f * s[..., None] for s in products)], 3)

    def __call__(
        self,
        gram: Tensor,
        point: Tensor | None,
        sample: Tensor | None,
        units: Tensor,
        mask: Tensor | None = None,
    ) -> list[Tensor]:
        """Functions of the whole ``(N, m0)``, of points ``(N, k, m1)`` and of pairs ``(N, k, k, m2)``."""
        k = gram.shape[1]
        points, pairs, centre = self.invariants(gram, mask)
        b, c, q = points / units[:3], pairs / units[3:5], centre / units[5:]
        given = [] if point is None else [point]
        given += [] if sample is None else [sample[:, None].expand(-1, k, -1)]
        phi, psi = self._points(b, given), self._pairs(c, point)
        other = 1 - torch.eye(k, dtype=gram.dtype, device=gram.device)
        both = other if mask is None else other * mask[:, :, None] * mask[:, None]
        psi = psi * both[..., None]
        if mask is not None:
            phi = phi * mask[..., None]
        rows = psi.sum(2) / k
        pooled = torch.cat([phi, rows], 2).mean(1)
        means = torch.cat([b, *given], 2).mean(1)
        whole = [pooled]
        if self.degree is None:
            i, j = self.whole_products
            r = (q.square() + self.soft**2).sqrt()
            whole += [q, torch.asinh(q), r.sqrt(), r.log(), 1 / r]
            whole += [means[:, i] * means[:, j], self.whole_waves(torch.asinh(means))]
        elif self.degree == 2:
            i, j = self.products
            whole.append(means[:, i] * means[:, j])
        real = torch.ones_like(gram) if mask is None else mask[:, :, None] * mask[:, None]
        return [torch.cat(whole, 1), torch.cat([phi, rows], 2), torch.cat([psi, real[..., None]], 3)]


def features_for(
    legs: Sequence[int],
    points: int,
    point_scalars: int,
    sample_scalars: int,
    set_like: bool,
    columns: int,
    seed: int = 0,
    soft: float = SOFT,
    degree: int | None = None,
) -> TupleFeatures | SetFeatures:
    """Features for terms with so many legs each, with about so many weights in all."""
    if not set_like:
        room = max(8, columns // sum(points**number for number in legs))
        return TupleFeatures(points, points * point_scalars + sample_scalars, room, seed, soft, degree)
    room = columns
    while True:
        features = SetFeatures(point_scalars, sample_scalars, room, seed, soft, degree)
        if degree is not None:
            return features
        total = sum(weight_shape(features, number, points)[0] for number in legs)
        if total <= columns or room < 12:
            return features
        room = int(0.8 * room)


def combine(
    features: Tensor | list[Tensor], weights: Sequence[Tensor], shapes: Sequence[tuple[int, ...]]
) -> list[Tensor]:
    """Coefficients ``(N, *shape)`` of terms, linear in the features.

    With features of a tuple, weights are ``(entries of the shape, count)``; of a set, ``(count,)``.
    """
    if isinstance(features, Tensor):
        return [(features @ w.mT).reshape(features.shape[0], *shape) for w, shape in zip(weights, shapes)]
    whole, points, pairs = features
    found = []
    for w, shape in zip(weights, shapes):
        if len(shape) < 2:
            found.append((points if shape else whole) @ w)
        else:
            diagonal, off = w.split([points.shape[2], pairs.shape[3]])
            found.append(torch.diag_embed(points @ diagonal) + pairs @ off)
    return found


class LinearCoefficients(nn.Module):
    """Coefficients of a network that are linear in fixed features, for a tuple or a set."""

    def __init__(self, features: TupleFeatures | SetFeatures, shapes: Shapes, points: int):
        super().__init__()
        self.features, self.shapes = features, shapes
        terms = [shape for part in shapes for shape in part]
        sizes: list[tuple[int, ...]]
        if isinstance(features, TupleFeatures):
            units, sizes = features.mixing.shape[1], [(math.prod(shape), features.count) for shape in terms]
        else:
            units = features.INVARIANTS
            sizes = [weight_shape(features, len(shape), points) for shape in terms]
        self.register_buffer("units", torch.ones(units))
        self.weights = nn.ParameterList(nn.Parameter(torch.zeros(size)) for size in sizes)

    units: Tensor

    def forward(
        self, gram: Tensor, point_scalars: Tensor | None, sample_scalars: Tensor | None
    ) -> list[list[Tensor]]:
        f = self.features(gram, point_scalars, sample_scalars, self.units)
        weights = iter(self.weights)
        return [combine(f, [next(weights) for _ in part], part) for part in self.shapes]


def weight_shape(features: TupleFeatures | SetFeatures, legs: int, points: int) -> tuple[int, ...]:
    """Shape of the weights of a term with so many legs."""
    if isinstance(features, TupleFeatures):
        return (points**legs, features.count)
    if legs > 2:
        raise ValueError(f"{legs} legs over a set: at most two are supported by linear features")
    return (features.counts[legs],)
