"""The predictor: the form frozen, a short polynomial or a larger network fitted around it; all in the frame."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from gortho.discovery.clock import Clock
from gortho.discovery.models import paired_p, squared_errors
from gortho.discovery.process import Process
from gortho.discovery.projection import LEAST_DAMPING, Projection, Solve
from gortho.forms import QuadraticForm
from gortho.formulas.network import FormulaCoefficients
from gortho.nn.exact import EquivariantNet
from gortho.nn.invariants import Committee
from gortho.nn.process import ProcessCoefficients
from gortho.objectives import Objective
from gortho.reps import Rep, as_rep
from gortho.samples.values import Samples
from gortho.symmetry import Symmetry
from gortho.training import fit, predict
from gortho.training.checkpoints import Ended, History

#: A polynomial that leaves less than this share of the variance unexplained is taken for the law itself.
LAW = 1e-10
#: A network counts as better than a short polynomial below this p of a paired test.
CLEARLY = 0.05
#: A polynomial of a higher degree is taken if it lowers the error to this share.
NOTABLE = 0.99
#: Weights of polynomials and of linear features, and rows that they are fitted to, at most; steps of the form.
POLYNOMIAL_COLUMNS, LINEAR_COLUMNS, LINEAR_ROWS = 700, 300, 20_000
POLYNOMIAL_STEPS = 12
#: Numbers in the arrays of a last fit to all samples but those held out, at most; steps of its form, which is near.
WHOLE_ROOM, WHOLE_STEPS = 20_000_000, 4
#: More samples that raise the error of those fitted before by this factor have wrong ones among them.
SPOILT = 4.0
#: A network is trained only where simpler predictors leave more than this share of the variance unexplained.
NETWORK_FROM = 1e-3
#: Final fits go through the samples at least so often: with many samples a fixed number of steps would be too few.
PASSES = 25
#: Second-order steps of a final fit to 2,000 samples.
POLISH = 25
#: Samples in a step of a network of any loss, decay of its weights, passes without gain before it ends.
BATCH, DECAY, PATIENCE = 128, 1.0, 40
#: A committee whose members miss new samples by more than this factor is worse than the one predictor before it.
MISSES = 4.0


class Kind(enum.StrEnum):
    """What a predictor is."""

    LINEAR = "a linear combination of functions of the invariants"
    POLYNOMIAL = "a short polynomial of the invariants"
    TERMS = "a few terms of a polynomial of the invariants"
    NETWORK = "a network of the invariants"
    COMMITTEE = "the mean of several networks of the invariants"
    PROCESS = "a Gaussian process of the invariants"
    FORMULA = "a formula of the invariants"


class Parts(NamedTuple):
    """Samples in three parts; the held-out part is for judging."""

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
    process: Process | None = None  # where the network is the mean of one


def build_network(form: QuadraticForm | None, output: Any, options: dict[str, Any]) -> EquivariantNet:
    """The predictor's architecture around a frozen form, or the symmetry among the options, in float64."""
    options = dict(options)
    wider, process, formula = (options.pop(name, None) for name in ("symmetry", "process", "formula"))
    what = form if wider is None else Symmetry.from_json(wider)
    net = EquivariantNet(what, output=as_rep(output), **options)
    if process is not None:
        scalars = net.points * net.point_scalars + net.sample_scalars
        net.coefficients = ProcessCoefficients(net.points, scalars, n=net.n, **process)
    if formula is not None:
        net.double()  # and its A⁻¹
        net.coefficients = FormulaCoefficients(formula, net.rep.parts[0], net.form.metric(), net.n)
    return net.double().eval()


def fit_network(
    net: EquivariantNet,
    train: Samples,
    validation: Samples,
    steps: int,
    lr: float,
    seed: int,
    clock: Clock,
    progress: Callable[[float], None] = lambda share: None,
    **how: Any,
) -> History:
    """A final fit: steps of Adam, all of them since the cosine pays at its end, then second-order steps.

    ``how`` are arguments of `fit` for what shall be otherwise.
    """
    samples = len(train)
    batch_size = min(256, max(16, samples // 6))
    epochs = max(5, min(PASSES, steps // 10), math.ceil(steps * batch_size / samples))
    polish = max(10, int(POLISH * min(2.0, max(0.5, 2_000 / samples))))
    how = {"batch_size": batch_size, "epochs": epochs, "polish": polish, "convex": False} | how
    whole, asked, first = how["epochs"] + how["polish"], 0, math.nan

    def stop() -> bool:  # asked after each epoch and each second-order step
        nonlocal asked, first
        asked += 1
        if asked == 1:  # the first epoch takes longer, and tells nothing
            first = time.perf_counter()
        progress(min(1.0, asked / whole))
        if over := asked > 1 and clock.over():
            each = (time.perf_counter() - first) / (asked - 1)
            clock.seconds_missing += each * max(0, whole - asked)
        return over

    return fit(net, train, validation=validation, lr=lr, seed=seed, progress=False, stop=stop, **how)


def final_predictor(
    form: QuadraticForm,
    parts: Parts,
    objective: Objective,
    *,
    steps: int,
    seed: int,
    clock: Clock,
    progress: Callable[[float], None],
) -> Fitted:
    """The best of a short polynomial, linear features and a network around the form, on validation data.

    The simplest comes first: a later one must be clearly better. A polynomial moves the form to where it suits it best.
    Where the loss is not a square, only a network makes it small.
    """
    if not objective.least_squares:
        return network_by_loss(form, parts, objective, steps, seed, clock, progress)
    train, held = parts.train, parts.validation
    best = polynomial(form, parts, seed)
    progress(0.2)
    linear = linear_predictor(form, train, seed) if has_linear(form, train.rep) else None
    if linear is not None and (best is None or not no_worse(best.network, linear.network, held)):
        best = linear
    if best is not None and mean_error(best.network, held) < NETWORK_FROM * held.variance:
        progress(1.0)
        return best
    options = {**train.network_options(), "width": 64, "depth": 2, "seed": seed}
    net = build_network(form, train.rep, options).float()
    history = fit_network(
        net, train, held, steps, 5e-3, seed, clock, progress=lambda share: progress(0.2 + 0.8 * share)
    )
    net.double()
    progress(1.0)
    if best is None or not no_worse(best.network, net, held):
        return Fitted(form, net, Kind.NETWORK, options, history.how)
    return replace(best, ended=history.how)


def network_by_loss(
    form: QuadraticForm,
    parts: Parts,
    objective: Objective,
    steps: int,
    seed: int,
    clock: Clock,
    progress: Callable[[float], None],
) -> Fitted:
    """A small network around the form, whose training makes the loss of an objective small."""
    train = parts.train
    options = {**train.network_options(), "width": 32, "depth": 2, "seed": seed}
    net = build_network(form, train.rep, options)
    batch_size = min(BATCH, max(16, len(train) // 6))
    epochs = max(10, math.ceil(3 * steps * batch_size / len(train)))
    how: dict[str, Any] = {"batch_size": batch_size, "epochs": epochs, "polish": 0, "convex": True}
    how |= {"loss": objective, "weight_decay": DECAY, "patience": PATIENCE}
    history = fit_network(net, train, parts.validation, steps, 5e-3, seed, clock, progress, **how)
    return Fitted(form, net, Kind.NETWORK, options, history.how)


def exact_law(form: QuadraticForm, parts: Parts, seed: int) -> Fitted | None:
    """The short polynomial that the law is, with its form, if it is one."""
    short = polynomial(form, parts, seed)
    held = parts.validation
    return short if short is not None and mean_error(short.network, held) < LAW * held.variance else None


def polynomial(form: QuadraticForm, parts: Parts, seed: int, *, moves: bool = True) -> Fitted | None:
    """The polynomial of the invariants, and the form that suits it best if it moves, of the lowest degree that will do.

    If the law is such a polynomial, this is the best estimate that the samples allow: to rounding without noise. None
    if there are too many unknowns for it, or the form is singular.
    """
    best: tuple[float, Fitted] | None = None
    train = parts.train
    for degree in range(3):
        few = train.rows(slice(0, LINEAR_ROWS // train.rep.size(train.n)))
        projection = Projection(few, 0, few.weights, seed, degree=degree)
        columns = projection.family.columns
        if form.signature.zero or columns > POLYNOMIAL_COLUMNS or len(projection.y.flatten()) < 2 * columns:
            break
        moved = form
        if moves:
            moved = QuadraticForm(projection.refine(form.matrix, POLYNOMIAL_STEPS, LEAST_DAMPING).A)
        if moved.signature != form.signature:
            continue
        fitted = solved(
            moved, train, projection, {"features": 1, "degree": degree, "seed": seed}, Kind.POLYNOMIAL
        )
        error = mean_error(fitted.network, parts.validation)
        if best is None or error < NOTABLE * best[0]:
            best = error, fitted
        if best[0] < LAW * parts.validation.variance:
            break
    return None if best is None else best[1]


def with_validation(fitted: Fitted, parts: Parts, seed: int) -> Fitted:
    """The same polynomial with the form that training and validation samples tell together.

    Under noise this is the estimate of least error: the choice of the polynomial took fewer samples. The first one
    stays where validation samples are wrong, since an exact law shows it: the error of the training samples grows.
    """
    data = Samples.cat(parts[:2])
    degree = fitted.options["degree"]
    columns = Projection(data.rows(slice(0, 1)), 0, None, seed, degree=degree).family.columns
    few = data.rows(slice(0, WHOLE_ROOM // (data.rep.size(data.n) * max(columns, data.n**2))))
    if len(few) <= len(parts.train):
        return fitted
    projection = Projection(few, 0, few.weights, seed, degree=degree)
    moved = QuadraticForm(projection.refine(fitted.form.matrix, WHOLE_STEPS, LEAST_DAMPING).A)
    if moved.signature != fitted.form.signature:
        return fitted
    options = {"features": 1, "degree": degree, "seed": seed}
    whole = solved(moved, data, projection, options, fitted.kind)
    if mean_error(whole.network, parts.train) > SPOILT * mean_error(fitted.network, parts.train):
        return fitted
    return replace(whole, ended=fitted.ended)


def has_linear(form: QuadraticForm, rep: Rep) -> bool:
    """Whether linear features serve: tensors of a higher rank need the inverse of the form."""
    return not form.signature.zero or max(part.rank for part in rep.parts) < 2


def linear_predictor(form: QuadraticForm, train: Samples, seed: int) -> Fitted:
    """Coefficients linear in fixed functions of the invariants: one solve."""
    components = train.rep.size(train.n)
    columns = min(LINEAR_COLUMNS, len(train) * components // 3)
    few = train.rows(slice(0, LINEAR_ROWS // components))
    projection = Projection(few, columns, few.weights, seed)
    return solved(form, train, projection, {"features": columns, "seed": seed}, Kind.LINEAR)


def solved(
    form: QuadraticForm, train: Samples, projection: Projection, options: dict[str, Any], kind: Kind
) -> Fitted:
    """The solution of a projection at a form, as a network."""
    at = projection.solve(form.matrix)
    options = {**train.network_options(), **options}
    net = build_network(form, train.rep, options)
    take(net, projection, at)
    return Fitted(form, net, kind, options)


@torch.no_grad()
def take(net: EquivariantNet, projection: Projection, at: Solve) -> None:
    """Give a network of linear features the weights and units of a projection's solution."""
    linear: Any = net.coefficients
    linear.units.copy_(at.units / net.n**0.5)
    for parameter, w in zip(linear.weights, projection.family.weights(at.coefficients)):
        parameter.copy_(w)
    standard = projection.standard
    for shift, value in ((net.point_shift, standard.point), (net.sample_shift, standard.sample)):
        if value is not None:
            shift.copy_(value)


def mean_error(net: EquivariantNet, samples: Samples) -> float:
    """The mean squared error of a predictor on samples, by their weights."""
    return float(squared_errors(predict(net, *samples.inputs), samples).mean())


def no_worse(simple: EquivariantNet, net: EquivariantNet, held: Samples) -> bool:
    """Whether the network is not clearly better than the simple one, on the same validation samples."""
    better, worse = (squared_errors(predict(n, *held.inputs), held) for n in (net, simple))
    return paired_p(better, worse) > CLEARLY


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
