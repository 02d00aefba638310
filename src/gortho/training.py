"""One training loop for everything, on a CPU, a GPU or several processes.

Hand `fit` a Lightning `Fabric` with more devices and the same code runs there. Every process
takes its share of each batch, so the gradient does not depend on how many processes there are. Batches follow
from (seed, epoch) alone, so a run killed at any moment goes on from its last checkpoint as if nothing had happened.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gortho import checkpoints, checks
from gortho.checkpoints import Ended, History, snapshot
from gortho.nn.exact import EquivariantNet
from gortho.nn.form import LearnableForm
from gortho.nn.framed import InFrame
from gortho.progress import somebody_watches, tqdm
from gortho.samples.values import Samples
from gortho.solvers import EXACT, Loss, evaluate, least_squares, scaled_mse, second_order, solvable

#: Steps and samples of the convex start: with a known form, a short polynomial is found by linear least squares.
CONVEX_STEPS = 50
CONVEX_SAMPLES = 4096


class OneProcess:
    """What `fit` needs of a Fabric, on one CPU process: importing the real one takes seconds."""

    device, world_size, global_rank = torch.device("cpu"), 1, 0

    def setup(self, net: Any, optimizer: Any) -> tuple[Any, Any]:
        """Network and optimizer as they are."""
        return net, optimizer

    def backward(self, loss: Tensor) -> None:
        """Gradients of the loss."""
        loss.backward()

    def clip_gradients(self, net: Any, optimizer: Any, max_norm: float, error_if_nonfinite: bool) -> None:
        """Gradients of at most this norm."""
        torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm, error_if_nonfinite=error_if_nonfinite)


class _Stopped(Exception):
    """The caller's ``stop`` said so."""


def learning_rate(step: int, steps: int, peak: float, warmup: float = 0.02) -> float:
    """Linear warm-up, then a cosine to zero."""
    start = max(1, int(warmup * steps))
    if step < start:
        return peak * (step + 1) / start
    return peak * 0.5 * (1 + math.cos(math.pi * (step - start) / max(1, steps - start)))


def split_indices(samples: int, validation: float, seed: int) -> tuple[Tensor, Tensor]:
    """Random training and validation indices."""
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(seed))
    held_out = max(1, round(samples * validation))
    return order[held_out:], order[:held_out]


def check_data(net: EquivariantNet, x: Any, y: Any, scalars: tuple[Any, Any], weights: Any = None) -> Samples:
    """Read a whole data set as tensors of the network's dtype, or say what is wrong with it."""
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
    checks.require_vectors(X, net.n)
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
    return Samples(**{**read, "x": X}, rep=net.rep, set_like=net.set_like)  # type: ignore[arg-type]


def fit(
    net: EquivariantNet,
    x: Any,
    y: Any = None,
    *,
    point_scalars: Any = None,
    sample_scalars: Any = None,
    weights: Any = None,
    validation: float | tuple | Samples = 0.15,
    loss: Loss | None = None,
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
        x, y: samples, ``(N, p, n)`` or ``(N, n)``, and targets ``(N, *output shape)``; scalars as the network takes.
            Or x alone, a `gortho.Samples`.
        weights: how much each sample counts, ``(N,)``.
        validation: share held out at random, samples, or a tuple (x, y, point_scalars, sample_scalars).
        loss: of (prediction, target, weights); by default squared error in units of the target's scale.
        calibrate: fit the network's units to the training data first.
        convex: with a known form, look for a short polynomial by least squares first.
        lr, form_lr: peak learning rates of the weights and of the form (three times ``lr`` by default).
        patience: stop after so many epochs without a better validation loss.
        stop: asked between epochs and second-order steps; training ends when it says so, as if interrupted.
        polish: so many steps of full-batch L-BFGS in float64 at the end, which on clean data gains orders of
            magnitude; kept only as far as validation gets better. One process only.
        checkpoint: file (.safetensors) written after each epoch and resumed from if it exists.
        fabric: a `lightning.fabric.Fabric` for GPUs or several processes; one CPU process by default.
        compile: compile the network first (torch.compile): nearly halves a step, after some seconds of compiling.
        progress: show a progress bar; by default when a person is watching.

    Ctrl-C ends training early and keeps the best state so far.
    """
    if epochs < 1 or batch_size < 1:
        raise ValueError(f"epochs = {epochs}, batch_size = {batch_size}: both are at least 1")
    dtype = net.x_scale.dtype
    given = (point_scalars, sample_scalars)
    data = x.to(dtype) if isinstance(x, Samples) else check_data(net, x, y, given, weights)
    if isinstance(validation, Samples):
        train, held_out = data, validation.to(dtype)
    elif isinstance(validation, tuple):
        held_out = check_data(net, validation[0], validation[1], (*validation[2:], None, None)[:2])
        train = data
    else:
        keep, out = split_indices(len(data), validation, seed)
        if len(data) < 4 or not 0 < validation < 1 or not len(keep):
            raise ValueError(
                f"{len(data)} samples, validation share {validation}: give at least 4 and 0 < share < 1, with some left"
            )
        train, held_out = data.rows(keep), data.rows(out)
    if calibrate:
        net.calibrate(train.x, train.y, *train.scalars)
    fabric = fabric or OneProcess()
    batch_size = min(batch_size, len(train) // fabric.world_size * fabric.world_size)
    if batch_size == 0 or batch_size % fabric.world_size:
        raise ValueError(f"batch_size {batch_size} must be a multiple of the {fabric.world_size} processes")
    steps_per_epoch = len(train) // batch_size

    form = list(net.form.parameters()) if isinstance(net.form, LearnableForm) else []
    ids = {id(p) for p in form}
    groups: list[dict[str, Any]] = [
        {
            "params": [p for p in net.parameters() if id(p) not in ids],
            "peak": lr,
            "weight_decay": weight_decay,
        }
    ]
    if form:
        groups.append({"params": form, "peak": 3 * lr if form_lr is None else form_lr, "weight_decay": 0.0})
    optimizer = torch.optim.AdamW(groups, lr=lr)
    model, optimizer = fabric.setup(torch.compile(net) if compile else net, optimizer)
    squares, loss = loss is None, loss or scaled_mse(net)
    exact = EXACT[net.x_scale.dtype]
    train, held_out = train.to(fabric.device), held_out.to(fabric.device)

    history, best, first_epoch = History(), snapshot(net), 0
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and path.exists():
        history, best, first_epoch = checkpoints.load(path, net, optimizer)
    show = somebody_watches() if progress is None else progress
    bar = tqdm(
        range(first_epoch, epochs), disable=not show or fabric.global_rank != 0, desc="training", unit="epoch"
    )
    started = time.perf_counter() - history.seconds

    def keep_best(scores: Iterable[float]) -> None:
        nonlocal best
        for score in scores:
            if stop():
                raise _Stopped
            history.validation.append(score)
            if score < history.best_validation:
                history.best_validation, history.best_epoch = score, len(history.validation) - 1
                best = snapshot(net)

    was_checking, net.check_values = net.check_values, False
    model.train()
    try:
        if convex and first_epoch == 0 and not form:
            few = train.rows(slice(0, CONVEX_SAMPLES))
            for stage in net.convex_stages():
                if squares and solvable(net, stage, few):
                    keep_best(least_squares(net, stage, few, held_out))
                else:
                    keep_best(second_order(net, stage, few, held_out, loss, CONVEX_STEPS))
                net.load_state_dict(best)
        for epoch in bar:
            if history.best_validation < exact:
                history.how, history.ended = Ended.EXACT, "the validation loss is down to rounding"
                break
            idle = min(len(history.train), len(history.validation) - 1 - history.best_epoch)
            if patience is not None and idle >= patience:  # asked here, so that a resumed run stops too
                history.how = Ended.PATIENCE
                history.ended = f"no better validation loss for {patience} epochs"
                break
            order = torch.randperm(
                len(train), generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch)
            )
            total = 0.0
            for step in range(steps_per_epoch):
                for group in optimizer.param_groups:
                    group["lr"] = learning_rate(
                        epoch * steps_per_epoch + step, epochs * steps_per_epoch, group["peak"]
                    )
                rows = order[step * batch_size : (step + 1) * batch_size][
                    fabric.global_rank :: fabric.world_size
                ]
                batch = train.rows(rows.to(fabric.device))
                optimizer.zero_grad()
                value = loss(model(*batch.inputs), batch.y, batch.weights)
                fabric.backward(value)
                if clip:
                    fabric.clip_gradients(model, optimizer, max_norm=clip, error_if_nonfinite=False)
                optimizer.step()
                total += float(value.detach())
            history.train.append(total / steps_per_epoch)
            score = evaluate(net, held_out, loss)
            keep_best([score])
            history.seconds = time.perf_counter() - started
            bar.set_postfix(train=f"{history.train[-1]:.2e}", validation=f"{score:.2e}")
            if path is not None and fabric.global_rank == 0:
                checkpoints.save(path, net, optimizer, best, history, epoch + 1)
            if not math.isfinite(history.train[-1]):
                history.how = Ended.DIVERGED
                history.ended = (
                    f"the loss became {history.train[-1]} in epoch {epoch}: try a smaller lr than {lr}"
                )
                break
        if polish and history.best_validation >= exact:
            net.load_state_dict(best)
            keep_best(second_order(net, list(net.parameters()), train, held_out, loss, polish))
    except _Stopped:
        history.how, history.ended = Ended.STOPPED, "the time given was spent; the best state so far is kept"
    except KeyboardInterrupt:
        history.how = Ended.INTERRUPTED
        history.ended = f"interrupted in epoch {len(history.train)}; the best state so far is kept"
    finally:
        net.check_values = was_checking
        net.load_state_dict(best)
        net.eval()
    return history


def predict(
    net: EquivariantNet | InFrame, x: Any, point_scalars: Any = None, sample_scalars: Any = None
) -> Tensor:
    """Predict for a whole data set in pieces, after checking it."""
    given = [
        None if s is None else checks.as_tensor(s, "scalars").to(net.x_scale)
        for s in (point_scalars, sample_scalars)
    ]
    X = checks.as_tensor(x, "x").to(net.x_scale)
    checks.require_vectors(X, net.n)
    with torch.no_grad():
        pieces = [
            net(X[i : i + 8192], *(None if s is None else s[i : i + 8192] for s in given))
            for i in range(0, len(X), 8192)
        ]
    return torch.cat(pieces)
