"""The final predictor: the form frozen, a larger network fitted around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gortho.discovery.problem import Problem, fit_predictor
from gortho.discovery.replicas import Data
from gortho.discovery.result import Discovery, build_network
from gortho.forms import QuadraticForm
from gortho.nn.exact import EquivariantNet
from gortho.nn.form import LearnableForm
from gortho.training import History, evaluate, least_squares, scaled_mse, second_order, solvable

#: A polynomial that leaves less than this share of the variance unexplained is taken for the law itself.
LAW = 1e-6


def final_predictor(
    found: Discovery,
    candidate: QuadraticForm,
    problem: Problem,
    progress: Callable[[float, str], None],
) -> tuple[QuadraticForm, History]:
    """Freeze the form and fit the predictor; on clean data let both move together once more, in float64."""
    progress(0.0, str(candidate))
    found.network_options = {**problem.options, "width": 64, "depth": 2, "seed": problem.seed}
    candidate = sharpened(candidate, found, problem)
    net = build_network(candidate, found.output, found.network_options).float()
    history = problem.fit(net, lr=5e-3)
    net.double()
    found.network = net
    progress(0.6, str(candidate))
    if history.ended.startswith("interrupted"):
        return candidate, history
    data, held = (
        [None if t is None else t.double() for t in part] for part in (problem.train, problem.validation)
    )
    fixed = evaluate(net, held, scaled_mse(net))
    if candidate.signature.zero == 0:
        joint = _move_together(net, candidate, data, held, fixed, problem.clock.polish)
        if joint is not None:
            candidate = joint
            found.network = build_network(candidate, found.output, found.network_options)
            weights = {k: v for k, v in net.state_dict().items() if not k.startswith("form.")}
            found.network.load_state_dict(weights, strict=False)
    return candidate, history


def sharpened(candidate: QuadraticForm, found: Discovery, problem: Problem) -> QuadraticForm:
    """The form after Gauss-Newton steps together with the polynomial part of a network, where that part is the law.

    If polynomials of the invariants explain the data to `LAW` of its variance, form and law are found to rounding;
    if not, the candidate is handed back as it came.
    """
    net = build_network(candidate, found.output, found.network_options)
    data, held = (
        [None if t is None else t.double() for t in part] for part in (problem.train, problem.validation)
    )
    net.calibrate(*data)  # type: ignore[arg-type]
    net.check_values = False
    weights = net.convex_stages()[-1]
    if candidate.signature.zero or not solvable(net, weights, data):
        return candidate
    for _ in least_squares(net, weights, data, held):
        pass
    net.form = LearnableForm(candidate.n, start=candidate).double()
    best = None
    for score in least_squares(net, [*net.form.parameters(), *weights], data, held):
        if score < LAW:
            best = QuadraticForm(net.form.matrix().detach(), candidate.names)
    return best if best is not None and best.signature == candidate.signature else candidate


def _move_together(
    net: Any, candidate: QuadraticForm, data: Data, held: Data, fixed: float, steps: int
) -> QuadraticForm | None:
    """Second-order steps on form and weights; a better form only if validation says so clearly, else None.

    On success the weights of ``net`` are the moved ones, else those it came with.
    """
    before = {k: v.clone() for k, v in net.state_dict().items()}
    frozen = net.form
    net.form = LearnableForm(candidate.n, start=candidate).double()
    net.check_values = False
    best, state = fixed, None
    for score in second_order(net, list(net.parameters()), list(data), list(held), scaled_mse(net), steps):
        if score < best:
            best, state = score, {k: v.clone() for k, v in net.state_dict().items()}
    moved = None
    if state is not None and best < 0.7 * fixed:
        net.load_state_dict(state)
        A = net.form.matrix().detach()
        form = QuadraticForm(A, candidate.names)
        kept_sign = float((form.matrix * A).sum()) > 0  # in the gauge, as the weights expect
        if form.signature == candidate.signature and kept_sign:
            moved = form
    net.form, net.check_values = frozen, True
    weights = before if moved is None or state is None else state
    net.load_state_dict({k: v for k, v in weights.items() if not k.startswith("form.")}, strict=False)
    return moved


def refit_on_all(
    found: Discovery,
    candidate: QuadraticForm,
    problem: Problem,
    progress: Callable[[float, str], None],
) -> EquivariantNet:
    """Several fits to all samples, each with another part for validation, and the mean of them as one predictor.

    The held-out errors stay those of the single predictor, which had seen none of these samples.
    """
    members = problem.clock.settings.members
    parts = zip(problem.train, problem.validation, problem.held_out)
    data = [None if any(p is None for p in part) else torch.cat(part) for part in parts]  # type: ignore[arg-type]
    x = data[0]
    assert x is not None
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(problem.seed))
    single = dict(found.network_options)
    committee = build_network(candidate, found.output, {**single, "members": members})
    committee.calibrate(*data)  # type: ignore[arg-type]
    units = dict(committee.named_buffers(recurse=False))
    for k in range(members):
        held = torch.zeros(len(x), dtype=torch.bool)
        held[order[k::members]] = True
        train, validation = ([None if t is None else t[rows] for t in data] for rows in (~held, held))
        options = {**single, "seed": single["seed"] + 1 + k}
        net: EquivariantNet = build_network(candidate, found.output, options).float()
        net.load_state_dict(units, strict=False)
        fit_predictor(net, train, validation, problem.clock, 5e-3, problem.seed + k, calibrate=False)
        committee.coefficients.members[k].load_state_dict(net.coefficients.state_dict())  # type: ignore
        progress((k + 1) / members, str(candidate))
    found.network_options = {**single, "members": members}
    return committee
