"""A committee: the mean of several fits to all samples, each with another part for validation."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gortho.discovery.clock import Clock
from gortho.discovery.predictor import (
    Fitted,
    Kind,
    Parts,
    build_network,
    fit_network,
    linear_predictor,
    mean_error,
)
from gortho.nn.invariants import Committee
from gortho.samples.values import Samples

#: A committee whose members miss new samples by more than this factor is worse than the one predictor before it.
MISSES = 4.0


def committee(
    fitted: Fitted,
    parts: Parts,
    *,
    members: int,
    steps: int,
    seed: int,
    clock: Clock,
    progress: Callable[[float], None],
) -> Fitted:
    """Several fits to all samples, each with another part for validation, and the mean of them as one predictor.

    The held-out errors stay those of the single predictor, which had seen none of these samples. It stays itself where
    members miss their own validation samples by clearly more. A linear combination needs no mean: it is solved again.
    """
    data = Samples.cat(parts)
    if fitted.kind is Kind.LINEAR:
        return linear_predictor(fitted.form, data, fitted.options["seed"])
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))
    options = {**fitted.options, "members": members}
    whole = build_network(fitted.form, data.rep, options)
    whole.calibrate(data.x, data.y, *data.scalars)
    assert isinstance(whole.coefficients, Committee)
    units = dict(whole.named_buffers(recurse=False))
    missed = 0.0
    for k in range(members):
        held = torch.zeros(len(data), dtype=torch.bool)
        held[order[k::members]] = True
        net = build_network(fitted.form, data.rep, {**fitted.options, "seed": fitted.options["seed"] + 1 + k})
        net.float().load_state_dict(units, strict=False)
        fit_network(net, data.rows(~held), data.rows(held), steps, 5e-3, seed + k, clock, calibrate=False)
        whole.coefficients.members[k].load_state_dict(net.coefficients.state_dict())
        missed += mean_error(net, data.rows(held)) / members
        progress((k + 1) / members)
    if missed > MISSES * mean_error(fitted.network, parts.held_out):
        return fitted
    return Fitted(fitted.form, whole, Kind.COMMITTEE, options)
