"""The predictor: the form frozen, a short polynomial or a larger network fitted around it; all in the frame."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gortho.checkpoints import Ended, History
from gortho.discovery.clock import Clock
from gortho.discovery.peers import paired_p, squared_errors
from gortho.forms import QuadraticForm
from gortho.nn.exact import EquivariantNet
from gortho.nn.form import FixedForm, LearnableForm
from gortho.reps import as_rep
from gortho.samples.values import Samples
from gortho.solvers import NOTABLE, least_squares, solvable
from gortho.training import fit, predict

#: A polynomial that leaves less than this share of the variance unexplained is taken for the law itself.
LAW = 1e-10
#: A network counts as better than a short polynomial below this p of a paired test.
CLEARLY = 0.05
#: Final fits go through the samples at least so often: with many samples a fixed number of steps would be too few.
PASSES = 25
#: Second-order steps of a final fit to 2,000 samples.
POLISH = 60


class Kind(enum.StrEnum):
    """What a predictor is."""

    POLYNOMIAL = "a short polynomial of the invariants"
    NETWORK = "a network of the invariants"
    COMMITTEE = "the mean of several networks of the invariants"


@dataclass(frozen=True)
class Parts:
    """Samples in three parts, in their frame; the held-out part is for judging only."""

    train: Samples
    validation: Samples
    held_out: Samples


@dataclass(frozen=True)
class Fitted:
    """A predictor with its form frozen inside, in the frame."""

    form: QuadraticForm
    network: EquivariantNet
    kind: Kind
    options: dict[str, Any]
    ended: Ended = Ended.DONE


def build_network(form: QuadraticForm, output: Any, options: dict[str, Any]) -> EquivariantNet:
    """The predictor's architecture around a frozen form, in float64."""
    net = EquivariantNet(FixedForm(form), output=as_rep(output), **options).double()
    return net.eval()


def fit_network(
    net: EquivariantNet,
    train: Samples,
    validation: Samples,
    steps: int,
    lr: float,
    seed: int,
    clock: Clock,
    calibrate: bool = True,
) -> History:
    """A final fit: steps of Adam, all of them since the cosine pays at its end, then second-order steps."""
    samples = len(train)
    batch_size = min(256, max(16, samples // 6))
    return fit(
        net,
        train,
        validation=validation,
        epochs=max(5, min(PASSES, steps // 10), math.ceil(steps * batch_size / samples)),
        batch_size=batch_size,
        lr=lr,
        polish=max(10, int(POLISH * min(2.0, max(0.5, 2_000 / samples)))),
        seed=seed,
        calibrate=calibrate,
        progress=False,
        stop=clock.over,
    )


def final_predictor(
    form: QuadraticForm,
    parts: Parts,
    *,
    steps: int,
    seed: int,
    clock: Clock,
    progress: Callable[[float], None],
) -> Fitted:
    """A polynomial where one will do, with the form that suits it best; else a network around the form."""
    options = {**parts.train.network_options(), "width": 64, "depth": 2, "seed": seed}
    short = polynomial(form, parts, options)
    progress(0.3)
    if short is not None and short.validation < LAW:
        return Fitted(short.form, short.network, Kind.POLYNOMIAL, options)
    net = build_network(form, parts.train.rep, options).float()
    history = fit_network(net, parts.train, parts.validation, steps, 5e-3, seed, clock)
    net.double()
    progress(1.0)
    if short is not None and _as_good(short.network, net, parts.validation):
        return Fitted(short.form, short.network, Kind.POLYNOMIAL, options)
    return Fitted(form, net, Kind.NETWORK, options, history.how)


def _as_good(simple: EquivariantNet, net: EquivariantNet, held: Samples) -> bool:
    """Whether the network is not clearly better than the simple one, on the same validation samples."""
    errors = [squared_errors(predict(n, *held.inputs), held) for n in (net, simple)]
    return paired_p(*errors) > CLEARLY


@dataclass(frozen=True)
class Polynomial:
    """A short polynomial of the invariants, with the form that suits it best."""

    form: QuadraticForm
    network: EquivariantNet
    validation: float


def polynomial(form: QuadraticForm, parts: Parts, options: dict[str, Any]) -> Polynomial | None:
    """Gauss-Newton on the form and the polynomial part of a network, of the lowest order that will do.

    If the law is such a polynomial, this is the best estimate that the samples allow: to rounding without noise. None
    if there are too many unknowns for it, or the form is singular.
    """
    best = None
    train, held, rep = parts.train, parts.validation, parts.train.rep
    for order in range(3):
        net = build_network(form, rep, options)
        net.calibrate(train.x, train.y, *train.scalars)
        net.check_values = False
        weights = net.convex_stages()[order]
        if form.signature.zero or not solvable(net, weights, train):
            break
        for _ in least_squares(net, weights, train, held):
            pass
        net.form = LearnableForm(form.n, start=form).double()
        moving = [*net.form.parameters(), *weights]
        scores = list(least_squares(net, moving, train, held, notable=1.0))
        moved = _moved_form(net, form)
        if not scores or moved is None:
            continue
        if best is None or scores[-1] < NOTABLE * best.validation:
            best = Polynomial(moved, _with_form(moved, net, options), scores[-1])
        if best.validation < LAW:
            break
    return best


def _moved_form(net: Any, form: QuadraticForm) -> QuadraticForm | None:
    """The form that a network has learnt, if it still has the signature and sign that the weights expect."""
    A = net.form.matrix().detach()
    moved = QuadraticForm(A)
    kept_sign = float((moved.matrix * A).sum()) > 0
    return moved if moved.signature == form.signature and kept_sign else None


def _with_form(form: QuadraticForm, net: EquivariantNet, options: dict[str, Any]) -> EquivariantNet:
    """The predictor with this form frozen inside and the weights of a network that learnt it."""
    whole = build_network(form, net.rep, options)
    whole.load_state_dict(
        {k: v for k, v in net.state_dict().items() if not k.startswith("form.")}, strict=False
    )
    return whole


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

    The held-out errors stay those of the single predictor, which had seen none of these samples.
    """
    data = Samples.cat([parts.train, parts.validation, parts.held_out])
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))
    options = {**fitted.options, "members": members}
    whole = build_network(fitted.form, data.rep, options)
    whole.calibrate(data.x, data.y, *data.scalars)
    units = dict(whole.named_buffers(recurse=False))
    for k in range(members):
        held = torch.zeros(len(data), dtype=torch.bool)
        held[order[k::members]] = True
        net = build_network(fitted.form, data.rep, {**fitted.options, "seed": fitted.options["seed"] + 1 + k})
        net.float().load_state_dict(units, strict=False)
        fit_network(net, data.rows(~held), data.rows(held), steps, 5e-3, seed + k, clock, calibrate=False)
        whole.coefficients.members[k].load_state_dict(net.coefficients.state_dict())  # type: ignore
        progress((k + 1) / members)
    return Fitted(fitted.form, whole, Kind.COMMITTEE, options)
