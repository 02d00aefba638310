"""Predictors that respect a wider symmetry exactly, and their twins (M13, M15-M17); all in the frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.models import coordinates
from gortho.discovery.norms import OtherNorm
from gortho.discovery.predictor import (
    LINEAR_COLUMNS,
    LINEAR_ROWS,
    POLYNOMIAL_STEPS,
    Fitted,
    Kind,
    Parts,
    build_network,
    fit_network,
    mean_error,
    no_worse,
    take,
)
from gortho.discovery.projection import LEAST_DAMPING
from gortho.discovery.twins import Comparison, Given, best_of_both, corrected_by, model_of, side_of
from gortho.discovery.wider.claim import Claim
from gortho.discovery.wider.family import WideProjection
from gortho.discovery.wider.search import End, polynomials
from gortho.nn.invariants import packed
from gortho.samples.values import Samples
from gortho.symmetry import SingularError, Symmetry
from gortho.training import predict


def wide_predictor(end: End, parts: Parts, *, steps: int, seed: int, clock: Clock) -> Fitted:
    """The best of short polynomials, linear features and a network around a symmetry, on validation data."""
    claim, n = end.claim, parts.train.n
    train, held = claim.of(parts.train), claim.of(parts.validation)
    rows = train.rows(slice(0, LINEAR_ROWS // train.rep.size(n)))
    best: Fitted | None = None
    for degree, view in enumerate(polynomials(rows, claim, seed)):
        at = view.refine(end.theta, POLYNOMIAL_STEPS, LEAST_DAMPING)
        try:
            one = _linear(view, at.A, train, {"features": 1, "degree": degree, "seed": seed}, Kind.POLYNOMIAL)
        except SingularError:
            continue
        if best is None or mean_error(one.network, held) < mean_error(best.network, held):
            best = one
        if end.degree == degree:
            return best
    linear = linear_fit(claim, end.theta, train, seed)
    if best is None or not no_worse(best.network, linear.network, held):
        best = linear
    symmetry = claim.symmetry(end.theta, n)
    options = {**_options(claim, symmetry, train), "width": 64, "depth": 2, "seed": seed}
    net = build_network(None, train.rep, options).float()
    history = fit_network(net, train, held, steps, 5e-3, seed, clock)
    net.double()
    if no_worse(best.network, net, held):
        return replace(best, ended=history.how)
    return Fitted(net.form.value(), net, Kind.NETWORK, options, history.how)


def _options(claim: Claim, symmetry: Symmetry, samples: Samples) -> dict[str, Any]:
    return {**claim.options(samples), "symmetry": symmetry.to_json()}


def linear_fit(claim: Claim, theta: Tensor, train: Samples, seed: int) -> Fitted:
    """Coefficients linear in fixed functions of the invariants: one solve."""
    components = train.rep.size(train.n)
    columns = min(LINEAR_COLUMNS, len(train) * components // 3)
    view = WideProjection(train.rows(slice(0, LINEAR_ROWS // components)), claim, columns, seed)
    return _linear(view, theta, train, {"features": columns, "seed": seed}, Kind.LINEAR)


def _linear(view: WideProjection, theta: Tensor, train: Samples, more: dict[str, Any], kind: Kind) -> Fitted:
    """The solution of a projection at θ, as a network."""
    claim, n = view.claim, train.n
    symmetry = claim.symmetry(theta, n)
    at = view.solve(claim.of_symmetry(symmetry))
    options = {**_options(claim, symmetry, train), **more}
    net = build_network(None, train.rep, options)
    take(net, view, at)
    return Fitted(net.form.value(), net, kind, options)


def invariants_of(claim: Claim, theta: Tensor, train: Samples) -> Callable[[Samples], Tensor]:
    """The invariants of a claim and the given scalars as rows, in units of their medians, without constants."""
    view = WideProjection(train, claim, 8)

    def raw(samples: Samples) -> Tensor:
        inputs = view.standard.inputs(samples)
        gram = view.family.gram(theta, inputs)
        if samples.set_like:
            along = view.family.vectors(theta, inputs)[:, samples.points :]
            along = inputs.x @ claim.split(theta, samples.n)[0][0] @ along.mT
            gram = torch.cat([gram, along], 2)
            rows = [gram.flatten(1)]
        else:
            rows = [packed(gram, view.family.pairing)]
        if view.family.basis.handed:
            A = claim.split(theta, samples.n)[0][0]
            rows.append(view.family.every_product(A, view.family.vectors(theta, inputs)).flatten(1))
        return torch.cat(rows, 1)

    values = raw(train)
    units = values.abs().median(0).values
    units = torch.where(units > 0, units, values.abs().mean(0).clamp_min(1e-300))
    varies = values.std(0) > 1e-9 * values.abs().amax(0)

    def rows(samples: Samples) -> Tensor:
        rest = [s.double().flatten(1) for s in samples.scalars if s is not None]
        found = torch.cat([torch.asinh(raw(samples) / units)[:, varies], *rest], 1)
        return found if found.shape[1] else _nothing(samples)  # seen from an origin far away, none varies

    return rows


def _nothing(samples: Samples) -> Tensor:
    return samples.x.new_zeros(len(samples), 1)


def compare_wide(
    end: End, fitted: Fitted, parts: Parts, plain: Comparison | None, *, seed: int, clock: Clock, given: Given
) -> Comparison:
    """Twins of the symmetry beside free models: the best of before, if any, and those that correct its predictor."""
    claim = end.claim
    own = [predict(fitted.network, *s.inputs).double() for s in parts]
    left = Parts(*(s.with_targets(s.y.double() - p) for s, p in zip(parts, own)))
    predictor = model_of("equivariant", parts, own[1:], fitted.network)
    other = OtherNorm(lambda s: predict(fitted.network, *s.inputs), parts)
    twins = [predictor]
    # Kernels and trees of volumes respect SO(A), but no parity.
    free_of_indices = all(part.rank == 0 for part in parts.train.rep.parts)
    even = free_of_indices and not claim.odd and not claim.axial
    # Handed products of an output with indices have some themselves: no invariants.
    invariants = invariants_of(claim, end.theta, parts.train) if even else _nothing
    twins.append(corrected_by(*other.twin(invariants, still=claim.origin), parts))
    if even:
        twins += side_of(invariants, parts, own, seed)
    else:
        rest = linear_fit(claim, end.theta, claim.of(left.train), seed + 1).network
        corrected = [p + predict(rest, *s.inputs) for p, s in zip(own[1:], left[1:])]
        twins.append(model_of("equivariant, corrected", parts, corrected))
    free = list(side_of(coordinates, parts, own, seed))
    free += [corrected_by(*each, parts) for each in other.free()]
    direct = min((m for m in free if m.rows is not None), key=lambda m: m.validation)
    rows, done = free[0].rows, not clock.over()
    if plain is not None:
        direct, rows, done = plain.free, plain.plain, plain.complete and done
    assert rows is not None
    return best_of_both(predictor, twins, [direct, *free], direct, rows, parts, done, given)
