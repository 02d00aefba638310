"""Training of equivariant networks: units, a convex start, the loop, a second-order finish.

Pass `fit` a Lightning `Fabric` with more devices, and the same code runs there. Every process takes its part of each
batch, so the gradient does not depend on how many processes there are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gortho import checks
from gortho.nn.exact import EquivariantNet
from gortho.nn.form import LearnableForm
from gortho.nn.framed import InFrame
from gortho.objectives import ABSOLUTE, Objective
from gortho.objectives.objective import Loss
from gortho.samples.values import Samples
from gortho.training.checkpoints import History
from gortho.training.loop import Run
from gortho.training.processes import OneProcess
from gortho.training.solvers import EXACT, evaluate, least_squares, second_order, solvable
from gortho.training.steppers import Stepper

#: Steps and samples of the convex start: with a known form, a short polynomial is found by linear least squares.
CONVEX_STEPS = 50
CONVEX_SAMPLES = 4096


def split_indices(samples: int, validation: float, seed: int) -> tuple[Tensor, Tensor]:
    """Random training and validation indices."""
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(seed))
    held_out = max(1, round(samples * validation))
    return order[held_out:], order[:held_out]


def check_data(net: EquivariantNet, x: Any, y: Any, scalars: tuple[Any, Any], weights: Any = None) -> Samples:
    """Convert a whole data set to tensors of the network's dtype, or raise an error that says what is wrong."""
    like = net.x_scale
    read: dict[str, Tensor | None] = {}
    given = {"x": x, "y": y, "point_scalars": scalars[0], "sample_scalars": scalars[1], "weights": weights}
    for what, value in given.items():
        tensor = None if value is None else checks.as_tensor(value, what).detach()
        if tensor is not None:
            checks.require_finite(tensor, what)
            tensor = tensor.to("cpu", like.dtype)
        read[what] = tensor
    X, Y = read["x"], read["y"]
    if X is None or Y is None:
        raise ValueError("x and y are both needed")
    checks.require_vectors(X, net.n_in)
    expected = (len(X), *net.rep.shape(net.n))
    if tuple(Y.shape) != expected:
        raise ValueError(
            f"y has shape {tuple(Y.shape)}, but {net.rep} outputs for {len(X)} samples are {expected}"
        )
    if any(s is not None and len(s) != len(X) for s in list(read.values())[2:]):
        raise ValueError(f"scalars and weights must have one row for each of the {len(X)} samples of x")
    w = read["weights"]
    if w is not None:
        if w.shape != (len(X),) or bool((w < 0).any()) or not float(w.sum()) > 0:
            raise ValueError("weights must be one number of at least 0 for each sample, and not all 0")
        read["weights"] = w / w.mean()
    X = X[:, None, :] if X.ndim == 2 else X
    point, sample = read["point_scalars"], read["sample_scalars"]
    return Samples(X, Y, net.rep, point, sample, read["weights"], set_like=net.set_like)


def fit(
    net: EquivariantNet,
    x: Any,
    y: Any = None,
    *,
    point_scalars: Any = None,
    sample_scalars: Any = None,
    weights: Any = None,
    validation: float | tuple[Any, ...] | Samples = 0.15,
    loss: Objective | Loss | None = None,
    calibrate: bool = True,
    convex: bool = True,
    epochs: int = 200,
    batch_size: int = 256,
    lr: float = 3e-3,
    form_lr: float | None = None,
    weight_decay: float = 0.0,
    clip: float = 1.0,
    patience: int | None = None,
    polish: int = 0,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    fabric: Any = None,
    compile: bool = False,
    progress: bool | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> History:
    """Train a network and leave it in its best state on validation data.

    Args:
        net: an equivariant network; its form is trained too if it is a `LearnableForm`.
        x, y: samples, ``(N, p, n)`` or ``(N, n)``, and targets ``(N, *output shape)``; scalars as the network expects.
            Or x alone, a `gortho.Samples`.
        weights: sample weights ``(N,)``.
        epochs, batch_size: maximum number of passes over the training samples, and samples per step.
        validation: fraction held out at random, samples, or a tuple (x, y, point_scalars, sample_scalars).
        loss: an `Objective`, or a function of (prediction, target, weights); by default squared error in units of the
            target's scale.
        calibrate: first set the network's units from the training data, as the objective requires.
        convex: with a known form, look for a short polynomial by least squares first.
        lr, form_lr: peak learning rates of the weights and of the form (three times ``lr`` by default).
        weight_decay: AdamW's weight decay of the weights; the form has none.
        clip: maximum norm of a gradient.
        patience: stop after this many epochs without a better validation loss.
        stop: called between epochs and second-order steps; training ends if it returns True, as if interrupted.
        polish: number of full-batch L-BFGS steps in float64 at the end, which gain orders of magnitude on clean
            data; kept only as long as the validation loss improves. One process only.
        seed: seed of the split and of the order of the samples.
        checkpoint: file (.safetensors) written after each epoch and resumed from if it exists.
        fabric: a `lightning_fabric.Fabric` for GPUs or several processes; one CPU process by default.
        compile: compile the network first (torch.compile), which takes a few seconds and nearly halves the time of a
            step.
        progress: show a progress bar; by default in a terminal or a notebook.

    Ctrl-C ends training early and keeps the best state so far.
    """
    if epochs < 1 or batch_size < 1:
        raise ValueError(f"epochs = {epochs}, batch_size = {batch_size}: both are at least 1")
    given = (point_scalars, sample_scalars)
    train, held_out = _parts(net, x, y, given, weights, validation, seed)
    objective, given_loss = (loss, None) if isinstance(loss, Objective) else (ABSOLUTE, loss)
    if calibrate:
        objective.start(net, train)
    fabric = fabric or OneProcess()
    batch_size = min(batch_size, len(train) // fabric.world_size * fabric.world_size)
    if batch_size == 0 or batch_size % fabric.world_size:
        raise ValueError(f"batch_size {batch_size} must be a multiple of the {fabric.world_size} processes")
    optimizer = torch.optim.AdamW(_groups(net, lr, form_lr, weight_decay), lr=lr)
    model, optimizer = fabric.setup(torch.compile(net) if compile else net, optimizer)
    squares, criterion = given_loss is None and objective.least_squares, given_loss or objective.loss(net)
    train, held_out = train.to(fabric.device), held_out.to(fabric.device)
    run = Run(net, optimizer, fabric, checkpoint=checkpoint, stop=stop)

    def batch_loss(rows: Tensor, key: int) -> Tensor:
        batch = train.rows(rows)
        return criterion(model(*batch.inputs), batch.y, batch.weights)

    def batches(epoch: int) -> list[tuple[Tensor, int]]:
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch))
        whole = order[: len(train) // batch_size * batch_size].split(batch_size)
        return [(rows[fabric.global_rank :: fabric.world_size].to(fabric.device), 0) for rows in whole]

    exact = EXACT[net.x_scale.dtype]
    step = Stepper(optimizer, batch_loss, [net.parameters()], clip=clip, fabric=fabric)
    was_checking, net.check_values = net.check_values, False
    try:
        with run.until_it_ends():
            if convex and run.first == 0 and not isinstance(net.form, LearnableForm):
                _convex_start(run, net, train.rows(slice(0, CONVEX_SAMPLES)), held_out, criterion, squares)
            run.epochs(
                epochs,
                batches,
                step,
                lambda net: evaluate(net, held_out, criterion),
                patience=patience,
                exact=exact,
                progress=progress,
            )
            if polish and run.history.best_validation >= exact:
                run.back_to_the_best()
                run.keep_best(second_order(net, list(net.parameters()), train, held_out, criterion, polish))
    finally:
        net.check_values = was_checking
    return run.history


def _parts(
    net: EquivariantNet, x: Any, y: Any, scalars: tuple[Any, Any], weights: Any, validation: Any, seed: int
) -> tuple[Samples, Samples]:
    """Training and validation samples, from the arguments of `fit`."""
    if isinstance(x, Samples):
        beside = {"y": y, "point_scalars": scalars[0], "sample_scalars": scalars[1], "weights": weights}
        if given := [name for name, value in beside.items() if value is not None]:
            raise ValueError(
                f"{' and '.join(given)} beside Samples, which hold their own: leave out {given[0]}"
            )
        data = _checked(net, x, "x")
    else:
        data = check_data(net, x, y, scalars, weights)
    if isinstance(validation, Samples):
        return data, _checked(net, validation, "validation")
    if isinstance(validation, tuple):
        return data, check_data(net, validation[0], validation[1], (*validation[2:], None, None)[:2])
    keep, out = split_indices(len(data), validation, seed)
    if len(data) < 4 or not 0 < validation < 1 or not len(keep):
        raise ValueError(
            f"{len(data)} samples, validation share {validation}: give at least 4 and 0 < share < 1, with some left"
        )
    return data.rows(keep), data.rows(out)


def _checked(net: EquivariantNet, samples: Samples, what: str) -> Samples:
    """Samples in the network's dtype, if they are of its kind."""
    shape = (len(samples), *net.rep.shape(net.n))
    if samples.rep != net.rep or samples.n != net.n_in or tuple(samples.y.shape) != shape:
        raise ValueError(
            f"{what} is {samples} with targets {tuple(samples.y.shape)}, but the network gives {net.rep} {shape} for "
            f"vectors in R^{net.n_in}: make the samples or the network for the other"
        )
    return samples.to(net.x_scale.dtype)


def _groups(
    net: EquivariantNet, lr: float, form_lr: float | None, weight_decay: float
) -> list[dict[str, Any]]:
    """Parameters with their peak learning rates: weights, and a learnt form."""
    form = list(net.form.parameters()) if isinstance(net.form, LearnableForm) else []
    ids = {id(p) for p in form}
    rest = [p for p in net.parameters() if id(p) not in ids]
    groups: list[dict[str, Any]] = [{"params": rest, "peak": lr, "weight_decay": weight_decay}]
    if form:
        groups.append({"params": form, "peak": 3 * lr if form_lr is None else form_lr, "weight_decay": 0.0})
    return groups


def _convex_start(
    run: Run, net: EquivariantNet, few: Samples, held_out: Samples, loss: Loss, squares: bool
) -> None:
    """Short polynomials, stage by stage."""
    for stage in filter(None, net.convex_stages()):  # an empty one has nothing to solve for
        if squares and solvable(net, stage, few):
            run.keep_best(least_squares(net, stage, few, held_out))
        else:
            run.keep_best(second_order(net, stage, few, held_out, loss, CONVEX_STEPS))
        run.back_to_the_best()


def predict(
    net: EquivariantNet | InFrame, x: Any, point_scalars: Any = None, sample_scalars: Any = None
) -> Tensor:
    """Predict for a whole data set in pieces, after checking it."""
    given = [
        None if s is None else checks.as_tensor(s, "scalars").to(net.x_scale)
        for s in (point_scalars, sample_scalars)
    ]
    X = checks.as_tensor(x, "x").to(net.x_scale)
    checks.require_vectors(X, net.n_in)
    checks.require_finite(X, "x")  # here, where places are still those of the given coordinates
    with torch.no_grad():
        pieces = [
            net(X[i : i + 8192], *(None if s is None else s[i : i + 8192] for s in given))
            for i in range(0, len(X), 8192)
        ]
    return torch.cat(pieces)
