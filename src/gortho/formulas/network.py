"""A formula as the coefficient of a network with a number for an output: what is printed then predicts, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from gortho.formulas.values import FUNCTIONS, Factor, Term, Weights
from gortho.stored import restored


def columns(gram: Tensor, scalars: Tensor, terms: Sequence[Term], shapes: Tensor) -> Tensor:
    """The terms without their coefficients ``(N, terms)``, of inner products ``(N, p, p)`` and scalars ``(N, s)``.

    ``shapes`` are the numbers inside, one term's after another's, of all samples ``(s,)`` or of each ``(N, s)``.
    """
    found, inside = [], list(shapes.unbind(-1))
    for term in terms:
        count = len(term.shapes)
        own, inside = inside[:count], inside[count:]
        total = torch.zeros_like(gram[:, 0, 0])
        for monomial in term.monomials:
            given, value = iter(own), torch.ones_like(total)
            for factor in monomial.factors:
                value = value * _factor(factor, gram, scalars, given)
            total = total + value
        found.append(total)
    return torch.stack(found, 1)


def numbers_inside(terms: Sequence[Term]) -> list[float]:
    """The numbers inside, one term's after another's."""
    return list(chain.from_iterable(term.shapes for term in terms))


def _inner(gram: Tensor, left: Weights, right: Weights) -> Tensor:
    u, v = (torch.tensor(w, dtype=gram.dtype, device=gram.device) for w in (left, right))
    return torch.einsum("zij,i,j->z", gram, u, v)


def _factor(f: Factor, gram: Tensor, scalars: Tensor, shapes: Iterator[Tensor]) -> Tensor:
    """As `Factor.value`, with slopes."""
    s = None if f.scalar is None else scalars[:, f.scalar]
    if f.kind == "scalar":
        assert s is not None
        return s**f.power
    t = _inner(gram, f.left, f.right)
    if f.kind == "angle":
        t = t / (_inner(gram, f.left, f.left) * _inner(gram, f.right, f.right)).sqrt()
        return torch.arccos(t.clamp(-1.0, 1.0))
    t = t.abs().sqrt() if f.rooted else t.abs() if f.absolute else t
    if f.kind == "free":
        return t ** next(shapes)
    if f.kind in FUNCTIONS:
        of = next(shapes) * t
        return getattr(torch, f.kind)(of if s is None else of * s)
    if f.shape is not None:
        t = t + next(shapes) * (1.0 if s is None else s * s)
    return t.log() if f.kind == "log" else t if f.power == 1 else t**f.power


class FormulaCoefficients(nn.Module):
    """The values of a formula, as the coefficient of a scalar output.

    Args:
        terms: its terms, as `stored` writes them.
        n: dimension of the vectors; networks hand over Gram matrices divided by √n.
    """

    shapes: Tensor

    def __init__(self, terms: Sequence[Any], n: int):
        super().__init__()
        self.terms, self.root = [restored(term, Term) for term in terms], n**0.5
        given = ([term.coefficient for term in self.terms], numbers_inside(self.terms))
        weights, shapes = (torch.tensor(numbers, dtype=torch.float64) for numbers in given)
        self.weights = nn.Parameter(weights)
        self.register_buffer("shapes", shapes)

    def forward(
        self, gram: Tensor, point_scalars: Tensor | None, sample_scalars: Tensor | None
    ) -> list[list[Tensor]]:
        given = [s.flatten(1) for s in (point_scalars, sample_scalars) if s is not None]
        scalars = torch.cat(given, 1) if given else gram.new_zeros(len(gram), 0)
        return [[columns(gram * self.root, scalars, self.terms, self.shapes) @ self.weights]]
