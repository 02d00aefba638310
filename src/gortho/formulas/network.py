"""A formula as the coefficients of a network, so that what is printed also predicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from gortho.formulas.terms import Monomial, Term, Weights
from gortho.formulas.ways import product_of, ways_of
from gortho.reps import TensorRep
from gortho.stored import restored
from gortho.terms import Metric


def columns(
    x: Tensor, A: Tensor, scalars: Tensor, terms: Sequence[Term], shapes: Tensor, rep: TensorRep
) -> Tensor:
    """The terms without their coefficients ``(N, components, terms)``, of vectors ``(N, p, n)``, scalars ``(N, s)``.

    ``shapes`` are the numbers inside, one term's after another's.
    """
    lowered = x @ A
    metric, ways = Metric(A, torch.linalg.inv(A) if rep.up > 1 else None), ways_of(rep, len(A), False)
    totals: list[Any] = [0.0] * len(terms)
    for place, monomial, value in _values(lowered @ x.mT, scalars, terms, shapes):
        legs = torch.tensor(monomial.legs, dtype=x.dtype).reshape(-1, x.shape[1])
        made = product_of(ways[monomial.term], rep, legs @ x, legs @ lowered, metric)
        totals[place] = totals[place] + value[:, None] * made
    return torch.stack(totals, 2)


def _values(
    gram: Tensor, scalars: Tensor, terms: Sequence[Term], shapes: Tensor
) -> Iterator[tuple[int, Monomial, Tensor]]:
    """The products of the terms, each with the place of its term and the value of its factors ``(N,)``."""
    inside = [shapes[k] for k in range(len(shapes))]  # torch.export cannot store the unbinding of nothing
    for place, term in enumerate(terms):
        count = len(term.shapes)
        own, inside = inside[:count], inside[count:]
        for monomial in term.monomials:
            given, value = iter(own), torch.ones_like(gram[:, 0, 0])
            for factor in monomial.factors:
                shape = None if factor.shape is None else next(given)
                scalar = None if factor.scalar is None else scalars[:, factor.scalar]
                value = value * factor.value(partial(_inner, gram), scalar, shape, torch)
            yield place, monomial, value


def numbers_inside(terms: Sequence[Term]) -> list[float]:
    """The numbers inside, one term's after another's."""
    return list(chain.from_iterable(term.shapes for term in terms))


def _inner(gram: Tensor, left: Weights, right: Weights) -> Tensor:
    u, v = (torch.tensor(w, dtype=gram.dtype, device=gram.device) for w in (left, right))
    return torch.einsum("zij,i,j->z", gram, u, v)


class FormulaCoefficients(nn.Module):
    """The values of a formula, as the coefficients of an output without ε.

    Args:
        terms: its terms, as `stored` writes them.
        rep: the output.
        metric: that which outputs are assembled with; its A⁻¹ has a size of its own.
        n: dimension of the vectors; networks hand over Gram matrices divided by √n.
    """

    shapes: Tensor

    def __init__(self, terms: Sequence[Any], rep: TensorRep, metric: Metric, n: int):
        super().__init__()
        self.terms, self.root, self.ways = [restored(term, Term) for term in terms], n**0.5, rep.terms()
        size = 1.0 if metric.upper is None else float((metric.lower @ metric.upper).trace()) / n
        self.sizes = [size ** -sum(b < rep.up for _, b in way.pairs) for way in self.ways]
        given = ([term.coefficient for term in self.terms], numbers_inside(self.terms))
        weights, shapes = (torch.tensor(numbers, dtype=torch.float64) for numbers in given)
        self.weights = nn.Parameter(weights)
        self.register_buffer("shapes", shapes)

    def forward(
        self, gram: Tensor, point_scalars: Tensor | None, sample_scalars: Tensor | None
    ) -> list[list[Tensor]]:
        given = [s.flatten(1) for s in (point_scalars, sample_scalars) if s is not None]
        scalars = torch.cat(given, 1) if given else gram.new_zeros(gram.shape[0], 0)
        points = gram.shape[1]
        found = [gram.new_zeros(gram.shape[0], *(points,) * len(way.legs)) for way in self.ways]
        for place, monomial, value in _values(gram * self.root, scalars, self.terms, self.shapes):
            value = value * self.weights[place] * self.sizes[monomial.term]
            for weights in monomial.legs:
                value = value[..., None] * gram.new_tensor(weights)
            found[monomial.term] = found[monomial.term] + value
        return [found]
