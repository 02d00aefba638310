"""Residuals of a predictor for a law of another norm, and their twin, which uses only invariants (M13).

Let y = φ(N(x)) with a norm N = √q (1 + h(x/|x|)) that does not belong to a form. To first order the residual of a law f
of the form is h Df, where D is the derivative along the vector. So the residual is fitted by columns: harmonics h of
directions times constants, Df and f. Charges and poles are already in f, so small violations of such laws are also
seen. The twin has polynomials of the invariants instead of the harmonics.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gortho.discovery.predictor import LINEAR_ROWS, Parts
from gortho.objectives.learners import MONOMIALS, Table, linear, monomials_of
from gortho.samples.values import Samples

#: Step of the derivative along a vector, as a share of it: the predictor should not be queried beyond what it knows.
STEP = 0.02
#: Degrees of harmonics, up to those of a hexagon and of a cube; what does not fit into the columns is left out.
DEGREES = ((4,), (5, 6))
#: Samples for each column, at least.
ROWS_FOR_COLUMN = 3
#: Monomials of the invariants, at most, that stand for the harmonics.
OF_INVARIANTS = 60

#: Residuals count in full up to about this many times their median.
USUAL = 3.0

#: Predictions for samples.
Law = Callable[[Samples], Tensor]
#: Predictions of validation and of held-out samples.
Values = list[Tensor]


def vectors(samples: Samples) -> Tensor:
    """The vectors of samples and their differences ``(N, v, n)``."""
    x, k = samples.x.double(), samples.points
    i, j = torch.triu_indices(k, k, 1)
    return torch.cat([x, x[:, i] - x[:, j]], 1)


def changes(law: Law, samples: Samples) -> list[Tensor]:
    """The derivative Df of a law along each of the `vectors` ``(N, m)``: as equivariant as f is.

    A law such as arcsin ends somewhere: where one of both steps leads beyond, the other is left.
    """
    x, k = samples.x.double(), samples.points
    f = law(samples).reshape(len(x), -1)
    steps = [x * (torch.arange(k) == i)[:, None] for i in range(k)]
    for i, j in itertools.combinations(range(k), 2):
        half = (x[:, i] - x[:, j]) / 2
        steps.append(torch.stack([half * ((p == i) - (p == j)) for p in range(k)], 1))
    found = []
    for step in steps:
        ends = [law(replace(samples, x=x + s * STEP * step)).reshape(f.shape) for s in (1, -1)]
        there = [end.isfinite() for end in ends]
        up, down = (torch.where(known, end, f) for known, end in zip(there, ends))
        found.append((up - down) / (STEP * (there[0].double() + there[1]).clamp_min(1.0)))
    return found


def harmonics(v: Tensor, degrees: Sequence[int]) -> Tensor:
    """Monomials of these degrees of the directions of vectors ``(N, v, n)``, as ``(N, v, h)``."""
    unit = v / v.norm(dim=2, keepdim=True).clamp_min(1e-300)
    of = [c for d in degrees for c in itertools.combinations_with_replacement(range(v.shape[2]), d)]
    return torch.stack([unit[..., list(each)].prod(-1) for each in of], -1)


def _fixed(h: Tensor, m: int) -> Tensor:
    """Columns ``(N, m, m·h)`` that are free for each of m components."""
    return torch.einsum("nh,ab->nabh", h.flatten(1), torch.eye(m, dtype=h.dtype)).flatten(2)


def _columns(
    samples: Samples, f: Tensor, Df: list[Tensor], degrees: Sequence[int], most: int
) -> Tensor | None:
    """Columns ``(N, m, c)`` of harmonics times constants, Df and f: as many of these as there is room for."""
    v, m = vectors(samples), f.shape[1]
    odd = max(part.rank for part in samples.rep.parts) % 2
    lower = [d - odd for d in degrees]
    count = v.shape[1] * _count(v.shape[2], degrees)
    ends = list(itertools.accumulate([m * v.shape[1] * _count(v.shape[2], lower), count, count]))
    room = sum(end <= most for end in ends)
    if not room:  # of many coordinates there are more harmonics than memory holds
        return None
    parts = [_fixed(harmonics(v, lower), m)]
    if room > 1:
        h = harmonics(v, degrees)
        parts.append(torch.einsum("vnm,nvh->nmvh", torch.stack(Df), h).flatten(2))
    if room > 2:
        parts.append(torch.einsum("nm,nvh->nmvh", f, h).flatten(2))
    return torch.cat(parts, 2)


def _count(n: int, degrees: Sequence[int]) -> int:
    """How many monomials of these degrees n coordinates have."""
    return sum(math.comb(n + d - 1, d) for d in degrees)


class OtherNorm:
    """What is left over of a law of the invariants, fitted by columns that a change of its norm would cause."""

    def __init__(self, law: Law, parts: Parts):
        train = parts.train.rows(slice(0, LINEAR_ROWS // parts.train.y[0].numel()))
        self.sets = (train, parts.validation, parts.held_out)
        self.own = [law(s).double() for s in self.sets]
        self.f = [p.reshape(len(p), -1) for p in self.own]
        self.Df = [changes(law, s) for s in self.sets]
        self.most = min(MONOMIALS, len(train) // ROWS_FOR_COLUMN)

    def free(self) -> Iterator[tuple[str, Values]]:
        """With harmonics of directions, of the fourth degree and of more."""
        degrees: tuple[int, ...] = ()
        for more in DEGREES:
            degrees += more
            columns = [_columns(s, f, Df, degrees, self.most) for s, f, Df in zip(self.sets, self.f, self.Df)]
            given = [c for c in columns if c is not None]
            if given:
                yield f"harmonics of degree {max(degrees)}", self._fitted(given)

    def twin(self, invariants: Callable[[Samples], Tensor], still: bool = False) -> tuple[str, Values]:
        """With polynomials of the invariants; ``still``: of f alone, where D is not equivariant."""
        rows = [invariants(s) for s in self.sets]
        legs = [torch.stack([f] if still else [f, *Df]) for f, Df in zip(self.f, self.Df)]
        of = monomials_of(rows[0], max(1, min(OF_INVARIANTS, self.most // len(legs[0]))))
        columns = [torch.einsum("lnm,nh->nmlh", leg, of(r)).flatten(2) for leg, r in zip(legs, rows)]
        return "the law of another scale", self._fitted(columns)

    def _fitted(self, columns: list[Tensor]) -> Values:
        """Ridge regression with the same coefficients for all components, ruled by no few samples."""
        tables = []
        for c, s, f in zip(columns[:2], self.sets, self.f):
            table = Table.of(c.flatten(0, 1), s)
            weights = None if table.weights is None else table.weights.repeat_interleave(c.shape[1])
            tables.append(replace(table, targets=(table.targets - f).reshape(-1, 1), weights=weights))
        model = linear(_usual(tables[0]), tables[1])
        return [model(c.flatten(0, 1)).reshape(p.shape) + p for c, p in zip(columns[1:], self.own[1:])]


def _usual(table: Table) -> Table:
    """The table with weights that fall with the size of the targets: at poles a law leaves more than elsewhere."""
    weights = torch.ones(len(table.targets)) if table.weights is None else table.weights
    square = weights * table.targets.flatten().square()
    return replace(table, weights=weights / (1 + square / (USUAL**2 * square.median().clamp_min(1e-300))))
