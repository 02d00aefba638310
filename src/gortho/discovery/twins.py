"""Like with like (M13): models that see coordinates, and their twins, which see only the invariants of the form.

Every model is fitted to the targets and to the residuals of the predictor, once given coordinates and once given
invariants, with the same effort. A form is contradicted if the best free model beats the best twin: fits that are
equally poor on both sides are no evidence against it. Which model is the best of its side is chosen on validation
samples; held-out samples only compare the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.models import RULED_BY_FEW, Invariants, Measured, coordinates, measure
from gortho.discovery.norms import OtherNorm
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import NETWORK_FROM, Fitted, Parts, fit_network, has_linear, linear_predictor
from gortho.forms import QuadraticForm
from gortho.nn.form import FixedForm
from gortho.nn.plain import PlainNet
from gortho.objectives import ABSOLUTE, Objective
from gortho.objectives.learners import TREE_TARGETS, Learner, Predictor, Table, boosted_trees, polynomial
from gortho.samples.values import Samples
from gortho.training import predict
from gortho.training.checkpoints import Ended

#: Models of what the predictor leaves over.
CORRECTED = "equivariant, corrected"
#: The share of held-out samples, with the largest errors of either side, that may rule a comparison.
WORST = 0.02


#: Measures predictions of twin and free model, in the frame, in the given coordinates.
Given = Callable[[Tensor, Tensor], "Measured"]


@dataclass(frozen=True)
class Model:
    """A fitted model: its name, its error on validation samples, its predictions of the held-out ones, its size."""

    name: str
    validation: float
    held_out: Tensor
    usual: float = math.inf  # the error on validation samples, without the worst
    parameters: int = 0
    rows: Predictor | None = None  # of rows of coordinates, where the model is one of these alone


@dataclass(frozen=True)
class Comparison:
    """The equivariant predictor, the best of all twins and the best free model, on held-out samples."""

    own: Model
    twin: Model
    free: Model
    plain: Predictor  # a smooth model of rows of coordinates: how far from equivariant such models are
    own_unexplained: float
    direct_unexplained: float  # by the best free model that knows nothing of the predictor
    everyone: Measured
    others: Measured  # without the worst
    given: Measured | None  # of everyone in the given coordinates, for targets whose variance depends on them
    worst: tuple[int, ...]  # held-out samples with the largest errors of either side
    worst_share: float  # of the twin's squared error
    left: Tensor  # what the best twin leaves over of the held-out targets
    complete: bool  # whether every model had its full effort

    def evidence(self) -> dict[str, Any]:
        """What `Evidence` keeps of it."""
        kept = ("own_unexplained", "everyone", "others", "given", "worst", "worst_share", "complete")
        return {name: getattr(self, name) for name in kept} | {"twin": self.twin.name, "free": self.free.name}


def compare(
    fitted: Fitted,
    parts: Parts,
    objective: Objective,
    posed: Posed,
    *,
    steps: int,
    seed: int,
    clock: Clock,
    progress: Callable[[float], None],
) -> Comparison:
    """Fit both sides, and measure the best of each on held-out samples."""
    own = [predict(fitted.network, *s.inputs).double() for s in parts]
    predictor = model_of("equivariant", parts, own[1:], fitted.network, objective=objective)
    invariants = Invariants.of(fitted.form.matrix, parts.train)
    twins, ended = [predictor], fitted.ended
    if _unit_free(parts.train):
        twins += side_of(invariants, parts, own, seed, objective)
    progress(0.4)
    free = list(side_of(coordinates, parts, own, seed, objective))
    if objective.least_squares:
        more = _left_over(fitted, invariants, parts, own, seed, posed.frame.inverse)
        twins, free = [*twins, *more[0]], [*free, *more[1]]
        progress(0.7)
        ended = _networks(twins, free, invariants, parts, steps, seed, clock)
    plain = next(m.rows for m in free if m.rows is not None)
    direct = _best([m for m in free if not m.name.startswith(CORRECTED)])
    progress(1.0)
    # A model that was cut short says what it can, but is not one of the same effort.
    done = ended is not Ended.STOPPED and not clock.over()
    return best_of_both(predictor, twins, free, direct, plain, parts, done, posed.measured, objective)


def _left_over(
    fitted: Fitted, invariants: Invariants, parts: Parts, own: list[Tensor], seed: int, axes: Tensor
) -> tuple[list[Model], list[Model]]:
    """Twins and free models of what a predictor leaves over: of other norms, in other coordinates, of tensors."""
    left = Parts(*(s.with_targets(s.y.double() - p) for s, p in zip(parts, own)))
    other = OtherNorm(lambda s: predict(fitted.network, *s.inputs), parts)
    twins = [corrected_by(*other.twin(invariants), parts)]
    if _unit_free(parts.train):
        squares = Invariants.of(fitted.form.matrix, parts.train, squares=True)
        twins += _sharp("squares", squares, parts, left, own, seed)
    elif has_linear(fitted.form, parts.train.rep):
        rest = linear_predictor(fitted.form, left.train, seed + 1).network
        corrected = [p + predict(rest, *s.inputs) for p, s in zip(own[1:], left[1:])]
        twins.append(model_of(CORRECTED, parts, corrected))
    free = [
        *_sharp("the given coordinates", partial(_in_axes, axes), parts, left, own, seed),
        *(corrected_by(*each, parts) for each in other.free()),
    ]
    return twins, free


def _networks(
    twins: list[Model],
    free: list[Model],
    invariants: Invariants,
    parts: Parts,
    steps: int,
    seed: int,
    clock: Clock,
) -> Ended:
    """Add a network of the coordinates, where twins leave something, and its twin, where it is better than they."""
    if _best(twins).validation <= NETWORK_FROM * ABSOLUTE.deviations(parts.validation, parts.train).mean():
        return Ended.DONE
    before = clock.seconds_missing
    network, _, ended = _network(parts, steps, seed, clock)
    free.append(network)
    if ended is Ended.DONE and _unit_free(parts.train) and network.validation < _best(twins).validation:
        of_invariants = Parts(*(_as_vectors(invariants, s) for s in parts))
        twin, net, ended = _network(of_invariants, steps, seed, clock)
        twins.append(twin)
        if (
            ended is Ended.DONE and _best(twins) is twin
        ):  # what is left over of it tells more than of the predictor
            other = OtherNorm(lambda s: predict(net, *_as_vectors(invariants, s).inputs), parts)
            free += [
                model_of(f"network of the invariants, corrected by {n}", parts, v) for n, v in other.free()
            ]
    elif ended is Ended.STOPPED:
        clock.seconds_missing += clock.seconds_missing - before  # its twin would have taken as long
    if ended is Ended.INTERRUPTED:
        raise KeyboardInterrupt
    return ended


def with_predictor(c: Comparison, fitted: Fitted, parts: Parts) -> Comparison:
    """The same comparison, with the errors of a predictor that came after it in those of the first one's place."""
    values = [predict(fitted.network, *s.inputs).double() for s in parts[1:]]
    own = model_of("equivariant", parts, values, fitted.network)
    left = float(ABSOLUTE.losses(own.held_out, parts.held_out).mean())
    return replace(c, own=own, own_unexplained=left / ABSOLUTE.chance(parts)[1])


def side_of(
    inputs: Callable[[Samples], Tensor],
    parts: Parts,
    own: list[Tensor],
    seed: int,
    objective: Objective = ABSOLUTE,
) -> Iterator[Model]:
    """All learners of an objective with these inputs: alone, and beside the predictor."""
    for learnt in objective.learnt([inputs(s) for s in parts], parts, own, seed):
        name = f"{CORRECTED} by {learnt.name}" if learnt.corrects else learnt.name
        yield model_of(name, parts, learnt.outputs, rows=learnt.rows, objective=objective)


def _in_axes(axes: Tensor, samples: Samples) -> Tensor:
    return coordinates(replace(samples, x=samples.x.double() @ axes.mT))


def _sharp(
    name: str, inputs: Callable[[Samples], Tensor], parts: Parts, left: Parts, own: list[Tensor], seed: int
) -> Iterator[Model]:
    """Models of what is left over that see other inputs, and the sizes of these: norms, roots and kinks."""
    rows = [inputs(s) for s in parts]
    sizes = [Z.abs() for Z in rows]
    fits: list[tuple[str, list[Tensor], Learner]] = [(f"a polynomial of sizes of {name}", sizes, polynomial)]
    if parts.train.y[0].numel() <= TREE_TARGETS:
        fits.append((f"boosted trees of {name}", rows, boosted_trees))
    for told, given, learn in fits:
        model = learn(Table.of(given[0], left.train), Table.of(given[1], left.validation), seed)
        values = [model(Z).reshape(s.y.shape) + p for Z, s, p in zip(given[1:], parts[1:], own[1:])]
        yield model_of(f"{CORRECTED} by {told}", parts, values)


def corrected_by(name: str, values: Sequence[Tensor], parts: Parts) -> Model:
    """The predictor, with what it leaves over fitted by a model of this name."""
    return model_of(f"{CORRECTED} by {name}", parts, values)


def model_of(
    name: str,
    parts: Parts,
    outputs: Sequence[Tensor],
    network: torch.nn.Module | None = None,
    rows: Predictor | None = None,
    objective: Objective = ABSOLUTE,
) -> Model:
    validation, held_out = (objective.compared(v, len(parts.train)) for v in outputs)
    size = 0 if network is None else sum(p.numel() for p in network.parameters())
    errors = np.sort(objective.losses(validation, parts.validation))
    usual = errors[: len(errors) - math.ceil(WORST * len(errors))]
    return Model(name, float(errors.mean()), held_out.double(), float(usual.mean()), size, rows)


def _best(models: Sequence[Model], usual: bool = False) -> Model:
    """The one with the least error on validation samples, or on usual ones of these."""
    return min(models, key=lambda m: m.usual if usual else m.validation)


def _as_vectors(inputs: Callable[[Samples], Tensor], samples: Samples) -> Samples:
    """The samples with one row of other inputs in place of their vectors."""
    return Samples(inputs(samples)[:, None], samples.y, samples.rep, weights=samples.weights)


def _network(parts: Parts, steps: int, seed: int, clock: Clock) -> tuple[Model, PlainNet, Ended]:
    """A network of all coordinates, or of what stands in their place."""
    train, validation = parts.train, parts.validation
    options = {**train.network_options(), "set_like": False}
    form = FixedForm(QuadraticForm.euclidean(train.n))
    net = PlainNet(form, output=train.rep, width=128, depth=2, seed=seed, **options)
    history = fit_network(net, train, validation, steps, 3e-3, seed, clock)
    values = [predict(net, *s.inputs) for s in (validation, parts.held_out)]
    return model_of("network", parts, values, net), net, history.how


def best_of_both(
    own: Model,
    twins: Sequence[Model],
    free: Sequence[Model],
    direct: Model,
    plain: Predictor,
    parts: Parts,
    complete: bool,
    given: Given,
    objective: Objective = ABSOLUTE,
) -> Comparison:
    """The comparison on held-out samples, in the frame and in the given coordinates.

    Models are chosen on validation samples: where a few rule the error of the best twin, by the others. Each side may
    then show the better of both choices where all samples count; so may free models that know nothing of the predictor.
    """
    test = parts.held_out
    deviations, whole = objective.chance(parts)
    usual = not objective.bounded and _best(twins).usual < (1 - RULED_BY_FEW) * _best(twins).validation
    twin, best = (_best(side, usual) for side in (twins, free))
    errors, of_free = (objective.losses(m.held_out, test) for m in (twin, best))
    worst = np.argsort(errors + of_free)[::-1][: math.ceil(WORST * len(errors))]
    others = np.delete(np.arange(len(errors)), worst)
    worst_share, shown, of_all = 0.0, twin, best
    if not objective.bounded:
        worst_share = float(errors[worst].sum() / max(errors.sum(), 1e-300))
        # Where the predictor fails on held-out samples, all that correct it do.
        shown, of_all = (
            min(choices, key=lambda m: objective.losses(m.held_out, test).mean())
            for choices in ((_best(twins), twin), (_best(free), best, direct))
        )
    all_errors, all_of_free = (objective.losses(m.held_out, test) for m in (shown, of_all))
    return Comparison(
        own,
        twin,
        best if worst_share > RULED_BY_FEW else of_all,
        plain,
        float(objective.losses(own.held_out, test).mean()) / whole,
        float(objective.losses(direct.held_out, test).mean()) / whole,
        measure(all_errors, all_of_free, deviations, whole, test.bundles),
        measure(
            errors[others],
            of_free[others],
            deviations[others],
            float(deviations[others].mean()),
            None if test.bundles is None else test.bundles[others],
        ),
        None if _unit_free(parts.train) else given(twin.held_out, best.held_out),
        tuple(int(i) for i in worst),
        worst_share,
        test.y.double() - objective.expected(twin.held_out),
        complete,
    )


def _unit_free(samples: Samples) -> bool:
    return all(part.rank == 0 for part in samples.rep.parts)
