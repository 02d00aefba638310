"""The final predictor: the form frozen, a larger network fitted around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gortho.checkpoints import History
from gortho.discovery.peers import paired_p, squared_errors
from gortho.discovery.problem import Problem, fit_predictor
from gortho.discovery.replicas import Data
from gortho.discovery.result import Discovery, build_network
from gortho.forms import QuadraticForm
from gortho.nn.exact import EquivariantNet
from gortho.nn.form import LearnableForm
from gortho.solvers import NOTABLE, evaluate, least_squares, scaled_mse, second_order, solvable
from gortho.training import predict

#: A polynomial that leaves less than this share of the variance unexplained is taken for the law itself.
LAW = 1e-10
#: What is noted of a predictor that is one.
POLYNOMIAL = "a short polynomial of the invariants"
#: A network counts as better than a short polynomial below this p of a paired test.
CLEARLY = 0.05


def final_predictor(
    found: Discovery,
    candidate: QuadraticForm,
    problem: Problem,
    progress: Callable[[float, str], None],
) -> tuple[QuadraticForm, History]:
    """Freeze the form and fit the predictor; let both move together where validation says that this is better."""
    progress(0.0, str(candidate))
    found.network_options = {**problem.options, "width": 64, "depth": 2, "seed": problem.seed}
    data, held = (
        [None if t is None else t.double() for t in part] for part in (problem.train, problem.validation)
    )
    short = polynomial(found, candidate, data, held)
    progress(0.3, str(candidate))
    if short is not None and short.validation < LAW:
        found.network = short.network
        found.facts["predictor"] = POLYNOMIAL
        return short.form, History(ended="a polynomial of the invariants is the law")
    net = build_network(candidate, found.output, found.network_options).float()
    history = problem.fit(net, lr=5e-3)
    net.double()
    found.network = net
    progress(0.7, str(candidate))
    if history.ended.startswith("interrupted"):
        return candidate, history
    if short is not None and _as_good(short.network, net, held):
        found.network = short.network
        found.facts["predictor"] = POLYNOMIAL
        return short.form, history
    fixed = evaluate(net, held, scaled_mse(net))
    if candidate.signature.zero == 0:
        joint = _move_together(net, candidate, data, held, fixed, problem.clock.polish)
        if joint is not None:
            candidate = joint
            found.network = _with_form(candidate, net, found)
    return candidate, history


def _as_good(simple: EquivariantNet, net: EquivariantNet, held: Data) -> bool:
    """Whether the network is not clearly better than the simple one, on the same validation samples."""
    x, y, *scalars = held
    assert y is not None
    errors = [squared_errors(predict(n, x, *scalars), y) for n in (net, simple)]
    return paired_p(*errors) > CLEARLY


def _with_form(form: QuadraticForm, net: EquivariantNet, found: Discovery) -> EquivariantNet:
    """The predictor with this form frozen inside and the weights of a network that learnt it."""
    whole = build_network(form, found.output, found.network_options)
    weights = {k: v for k, v in net.state_dict().items() if not k.startswith("form.")}
    whole.load_state_dict(weights, strict=False)
    return whole


def _moved_form(net: Any, candidate: QuadraticForm) -> QuadraticForm | None:
    """The form that a network has learnt, if it still has the candidate's signature and sign, as the weights expect."""
    A = net.form.matrix().detach()
    form = QuadraticForm(A, candidate.names)
    kept_sign = float((form.matrix * A).sum()) > 0
    return form if form.signature == candidate.signature and kept_sign else None


@dataclass
class Polynomial:
    """A short polynomial of the invariants, with the form that suits it best."""

    form: QuadraticForm
    network: EquivariantNet
    validation: float


def polynomial(found: Discovery, candidate: QuadraticForm, data: Data, held: Data) -> Polynomial | None:
    """Gauss-Newton on the form and the polynomial part of a network, of the lowest order that will do.

    If the law is such a polynomial, this is the best estimate that the samples allow: to rounding without noise. None
    if there are too many unknowns for it, or the form is singular.
    """
    best = None
    for order in range(3):
        net = build_network(candidate, found.output, found.network_options)
        net.calibrate(*data)  # type: ignore[arg-type]
        net.check_values = False
        weights = net.convex_stages()[order]
        if candidate.signature.zero or not solvable(net, weights, list(data)):
            break
        for _ in least_squares(net, weights, list(data), list(held)):
            pass
        net.form = LearnableForm(candidate.n, start=candidate).double()
        moving = [*net.form.parameters(), *weights]
        scores = list(least_squares(net, moving, list(data), list(held), notable=1.0))
        form = _moved_form(net, candidate)
        if not scores or form is None:
            continue
        if best is None or scores[-1] < NOTABLE * best.validation:
            best = Polynomial(form, _with_form(form, net, found), scores[-1])
        if best.validation < LAW:
            break
    return best


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
        moved = _moved_form(net, candidate)
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
