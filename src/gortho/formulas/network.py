"""Formulas in torch: as the coefficients of a network, so that what is printed also predicts, and fitted with the form.

An exact law is found to rounding, whatever the start, if its numbers and the form are fitted jointly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from gortho.formulas.fitting import reshaped, solve
from gortho.formulas.terms import Monomial, Term, Weights, product_of, ways_of
from gortho.pairings import Metric
from gortho.reps import TensorRep
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples
from gortho.stored import restored

#: Gauss-Newton steps, at most, and the share of the sum of squares that one must gain for another to follow.
STEPS, ENOUGH = 40, 1e-3
#: Shares of a step that are tried, the whole one first.
SHORTER = (1.0, 0.3, 0.1, 0.01)
#: Directions in which the fit changes by less than this share are none: the size of a form is one of them.
FLAT = 1e-12


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


# Fitted with the form


@dataclass(frozen=True)
class Together:
    """Terms with their numbers, the form ‖A‖ = √n, and the mean square that they leave, by the weights."""

    terms: tuple[Term, ...]
    A: Tensor
    left: float

    @property
    def unknowns(self) -> int:
        """Numbers that are fitted: coefficients, those inside, and entries of the form but for its size."""
        n = len(self.A)
        return len(self.terms) + len(numbers_inside(self.terms)) + n * (n + 1) // 2 - 1

    def sizes(self, samples: Samples) -> list[float]:
        """Mean squares of the terms."""
        c = self.A.new_tensor([term.coefficient for term in self.terms])
        inside = self.A.new_tensor(numbers_inside(self.terms))
        made = columns(samples.x, self.A, scalars_of(samples), self.terms, inside, samples.rep.parts[0])
        return (c * made).square().mean((0, 1)).tolist()


def scalars_of(samples: Samples) -> Tensor:
    """All scalars of the samples, flat ``(N, s)``."""
    given = [s.flatten(1) for s in samples.scalars if s is not None]
    return torch.cat(given, 1) if given else samples.x.new_zeros(len(samples), 0)


class _Fit:
    """Residuals of samples as a function of one vector: the form's entries, numbers inside, coefficients."""

    def __init__(self, samples: Samples, A: Tensor, terms: Sequence[Term], moves: bool):
        self.x, self.y, self.terms = samples.x, samples.y.reshape(len(samples), -1), terms
        self.scalars, self.rep = scalars_of(samples), samples.rep.parts[0]
        w = samples.each_weight
        self.root = (w / w.mean()).sqrt()[:, None]
        self.A, self.moves = unit_form(A), moves
        self.upper = torch.triu_indices(samples.n, samples.n)[:, : None if moves else 0]
        self.sizes = [self.upper.shape[1], len(numbers_inside(terms)), len(terms)]

    def start(self) -> Tensor:
        """The form, the terms' own numbers inside, and the coefficients that are best with them."""
        A = self.A
        doubled = (2 * A - torch.diag(A.diagonal()))[self.upper[0], self.upper[1]]
        inside = A.new_tensor(numbers_inside(self.terms))
        design = self.root[..., None] * self._design(doubled, inside)
        return torch.cat([doubled, inside, _least_squares(design, self.root * self.y)])

    def form(self, entries: Tensor) -> Tensor:
        """The form of entries."""
        if not self.moves:
            return self.A
        M = entries.new_zeros(*self.x.shape[2:] * 2).index_put(tuple(self.upper), entries)
        return unit_form((M + M.mT) / 2)

    def _design(self, entries: Tensor, inside: Tensor) -> Tensor:
        """The columns of the terms."""
        return columns(self.x, self.form(entries), self.scalars, self.terms, inside, self.rep)

    def residual(self, p: Tensor) -> Tensor:
        """What is left of the targets ``(N, components)``."""
        entries, inside, c = p.split(self.sizes)
        return self.root * (self.y - self._design(entries, inside) @ c)

    def slopes(self, p: Tensor) -> Tensor:
        """Of the residuals ``(N, components, unknowns)``."""
        return torch.func.jacfwd(self.residual)(p)


def together(samples: Samples, A: Tensor, terms: Sequence[Term], *, moves: bool = True) -> Together | None:
    """The form and the numbers of terms that meet the targets best, from a form on; None where they are not finite.

    A form that is known does not move.
    """
    fit = _Fit(samples, A, terms, moves)
    p = fit.start()
    r = fit.residual(p)
    if not bool(torch.isfinite(r).all()):
        return None
    for _ in range(STEPS):
        J = fit.slopes(p)
        if not bool(torch.isfinite(J).all()):
            break
        step, before = _least_squares(J, r), r.square().sum()
        for share in SHORTER:
            moved = p - share * step
            there = fit.residual(moved)
            if bool(there.square().sum() < before):
                break
        else:
            break
        p, r = moved, there
        if bool(r.square().sum() > (1 - ENOUGH) * before):
            break
    entries, inside, c = p.split(fit.sizes)
    done = (replace(t, coefficient=float(v)) for t, v in zip(reshaped(terms, inside.numpy()), c))
    return Together(tuple(done), fit.form(entries), float(r.square().mean()))


def slopes_of_form(samples: Samples, A: Tensor, terms: Sequence[Term]) -> Tensor:
    """Singular values of the fit's Jacobian by directions across the form, with all other numbers refitted."""
    fit = _Fit(samples, A, terms, moves=True)
    J = fit.slopes(fit.start()).flatten(0, 1)
    by_form, others = J[:, : fit.sizes[0]], J[:, fit.sizes[0] :]
    Q = torch.linalg.qr(others).Q
    return torch.linalg.svdvals(by_form - Q @ (Q.mT @ by_form))[:-1]  # the last is that of the form's size


def _least_squares(J: Tensor, r: Tensor) -> Tensor:
    """The shortest solution, with columns of any size; not numbers where the columns are none."""
    return torch.from_numpy(solve(J.flatten(0, -2).numpy(), r.flatten().numpy(), FLAT))
