"""The final predictor: the form frozen, a larger network fitted around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gortho.discovery.problem import Problem
from gortho.discovery.replicas import Data
from gortho.discovery.result import Discovery, build_network
from gortho.forms import QuadraticForm
from gortho.nn.form import LearnableForm
from gortho.training import History, evaluate, scaled_mse, second_order


def final_predictor(
    found: Discovery,
    candidate: QuadraticForm,
    problem: Problem,
    progress: Callable[[float, str], None],
) -> tuple[QuadraticForm, History]:
    """Freeze the form and fit the predictor; on clean data let both move together once more, in float64."""
    progress(0.0, str(candidate))
    found.network_options = {**problem.options, "width": 64, "depth": 2, "seed": problem.seed}
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
