"""One training loop for everything, on a CPU, a GPU or several processes.

Built on Lightning Fabric: hand `fit` a `Fabric` with more devices and the same code runs there. Every process
takes its share of each batch, so the gradient does not depend on how many processes there are. Batches follow
from (seed, epoch) alone, so a run killed at any moment goes on from its last checkpoint as if nothing had happened.
"""

from __future__ import annotations

import copy
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from tqdm import tqdm

from gortho import checks
from gortho.nn.exact import EquivariantNet
from gortho.nn.form import LearnableForm
from gortho.reps import DirectSum

Loss = Callable[[Tensor, Tensor], Tensor]

#: Steps and samples of the convex start: with a known form, a short polynomial is found by linear least squares.
CONVEX_STEPS = 50
CONVEX_SAMPLES = 4096
#: Least squares are solved directly as long as their matrix has no more entries than this, and so many columns.
LEAST_SQUARES_ENTRIES = 4_000_000
LEAST_SQUARES_COLUMNS = 1_000
#: Ridges to choose from on validation data, relative to the largest singular value.
RIDGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-9, 1e-11, 1e-13)
#: A smaller ridge, which means larger weights, must lower the loss to this share.
WORTH = 0.8
#: A step counts if it lowers the validation loss to this share: less than that may be luck, under noise.
NOTABLE = 0.99
#: Second-order steps look at so many samples at most: beyond, each step costs more than it gains.
POLISH_SAMPLES = 10_000
#: A validation loss below this, in units of the target's variance, is rounding: there is nothing left to learn.
EXACT = {torch.float32: 1e-13, torch.float64: 1e-20}


@dataclass
class History:
    """What happened in training: losses by epoch, and why it ended.

    With a known form, validation losses begin with those of the convex start; those of polishing come last.
    """

    train: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best_epoch: int = -1
    best_validation: float = math.inf
    seconds: float = 0.0
    ended: str = "all epochs done"


def scaled_mse(net: EquivariantNet) -> Loss:
    """Mean squared error in units of each output part's own scale, as found by `calibrate`."""
    rep, n = net.rep, net.n

    def loss(prediction: Tensor, target: Tensor) -> Tensor:
        pairs = [(prediction, target)]
        if isinstance(rep, DirectSum):
            pairs = list(zip(rep.split(prediction, n), rep.split(target, n)))
        errors = [((p - t) / net.y_scale[i]).square().mean() for i, (p, t) in enumerate(pairs)]
        return torch.stack(errors).mean()

    return loss


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


def check_data(net: EquivariantNet, x: Any, y: Any, scalars: tuple[Any, Any]) -> list[Tensor | None]:
    """Read a whole data set as tensors of the network's dtype, or say what is wrong with it."""
    like = net.x_scale
    data: list[Tensor | None] = []
    for value, what in zip((x, y, *scalars), ("x", "y", "point_scalars", "sample_scalars")):
        if value is None:
            data.append(None)
            continue
        tensor = checks.as_tensor(value, what).detach()
        checks.require_finite(tensor, what)
        data.append(tensor.to("cpu", like.dtype))
    X, Y = data[0], data[1]
    if X is None or Y is None:
        raise ValueError("x and y are both needed")
    checks.require_vectors(X, net.n)
    expected = (len(X), *net.rep.shape(net.n))
    if tuple(Y.shape) != expected:
        raise ValueError(
            f"y has shape {tuple(Y.shape)}, but {net.rep} outputs for {len(X)} samples are {expected}"
        )
    if any(s is not None and len(s) != len(X) for s in data[2:]):
        raise ValueError(f"scalars must have one row for each of the {len(X)} samples of x")
    return data


def fit(
    net: EquivariantNet,
    x: Any,
    y: Any,
    *,
    point_scalars: Any = None,
    sample_scalars: Any = None,
    validation: float | tuple = 0.15,
    loss: Loss | None = None,
    calibrate: bool = True,
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
) -> History:
    """Train a network and leave it in its best state on validation data.

    Args:
        net: an equivariant network; its form is trained too if it is a `LearnableForm`.
        x, y: samples, ``(N, p, n)`` or ``(N, n)``, and targets ``(N, *output shape)``; scalars as the network takes.
        validation: share held out at random, or a tuple (x, y, point_scalars, sample_scalars).
        loss: of (prediction, target); by default squared error in units of the target's scale.
        calibrate: fit the network's units to the training data first.
        lr, form_lr: peak learning rates of the weights and of the form (three times ``lr`` by default).
        patience: stop after so many epochs without a better validation loss.
        polish: so many steps of full-batch L-BFGS in float64 at the end, which on clean data gains orders of
            magnitude; kept only as far as validation gets better. One process only.
        checkpoint: file (.safetensors) written after each epoch and resumed from if it exists.
        fabric: a `lightning.fabric.Fabric` for GPUs or several processes; one CPU process by default.
        compile: compile the network first (torch.compile): nearly halves a step, after some seconds of compiling.
        progress: show a progress bar; by default when a person is watching.

    Ctrl-C ends training early and keeps the best state so far.
    """
    from lightning_fabric import Fabric

    if epochs < 1 or batch_size < 1:
        raise ValueError(f"epochs = {epochs}, batch_size = {batch_size}: both are at least 1")
    data = check_data(net, x, y, (point_scalars, sample_scalars))
    if isinstance(validation, tuple):
        held_out = check_data(net, validation[0], validation[1], (*validation[2:], None, None)[:2])
        train = data
    else:
        samples = len(data[0])  # type: ignore[arg-type]
        keep, out = split_indices(samples, validation, seed)
        if samples < 4 or not 0 < validation < 1 or not len(keep):
            raise ValueError(
                f"{samples} samples, validation share {validation}: give at least 4 and 0 < share < 1, with some left"
            )
        train = [None if t is None else t[keep] for t in data]
        held_out = [None if t is None else t[out] for t in data]
    X = train[0]
    assert X is not None and train[1] is not None
    if calibrate:
        net.calibrate(X, *train[1:])  # type: ignore[arg-type]
    if fabric is None:
        precision: Any = "64-true" if net.x_scale.dtype == torch.float64 else "32-true"
        fabric = Fabric(accelerator="cpu", devices=1, precision=precision)
    batch_size = min(batch_size, len(X) // fabric.world_size * fabric.world_size)
    if batch_size == 0 or batch_size % fabric.world_size:
        raise ValueError(f"batch_size {batch_size} must be a multiple of the {fabric.world_size} processes")
    steps_per_epoch = len(X) // batch_size

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
    train = [None if t is None else t.to(fabric.device) for t in train]
    held_out = [None if t is None else t.to(fabric.device) for t in held_out]

    history, best, first_epoch = History(), _snapshot(net), 0
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and path.exists():
        history, best, first_epoch = _load(path, net, optimizer)
    show = sys.stderr.isatty() if progress is None else progress
    bar = tqdm(
        range(first_epoch, epochs), disable=not show or fabric.global_rank != 0, desc="training", unit="epoch"
    )
    started = time.perf_counter() - history.seconds

    def keep_best(scores: Iterable[float]) -> None:
        nonlocal best
        for score in scores:
            history.validation.append(score)
            if score < history.best_validation:
                history.best_validation, history.best_epoch = score, len(history.validation) - 1
                best = _snapshot(net)

    was_checking, net.check_values = net.check_values, False
    model.train()
    try:
        if first_epoch == 0 and not form:
            few = [None if t is None else t[:CONVEX_SAMPLES] for t in train]
            for stage in net.convex_stages():
                if squares and solvable(net, stage, few):
                    keep_best(least_squares(net, stage, few, held_out))
                else:
                    keep_best(second_order(net, stage, few, held_out, loss, CONVEX_STEPS))
                net.load_state_dict(best)
        for epoch in bar:
            if history.best_validation < exact:
                history.ended = "the validation loss is down to rounding"
                break
            idle = min(len(history.train), len(history.validation) - 1 - history.best_epoch)
            if patience is not None and idle >= patience:  # asked here, so that a resumed run stops too
                history.ended = f"no better validation loss for {patience} epochs"
                break
            order = torch.randperm(len(X), generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch))
            total = 0.0
            for step in range(steps_per_epoch):
                for group in optimizer.param_groups:
                    group["lr"] = learning_rate(
                        epoch * steps_per_epoch + step, epochs * steps_per_epoch, group["peak"]
                    )
                rows = order[step * batch_size : (step + 1) * batch_size][
                    fabric.global_rank :: fabric.world_size
                ]
                inputs, target, *given = (None if t is None else t[rows.to(fabric.device)] for t in train)
                optimizer.zero_grad()
                value = loss(model(inputs, *given), target)  # type: ignore[arg-type]
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
                _save(path, net, optimizer, best, history, epoch + 1)
            if not math.isfinite(history.train[-1]):
                history.ended = (
                    f"the loss became {history.train[-1]} in epoch {epoch}: try a smaller lr than {lr}"
                )
                break
        if polish and history.best_validation >= exact:
            net.load_state_dict(best)
            keep_best(second_order(net, list(net.parameters()), train, held_out, loss, polish))
    except KeyboardInterrupt:
        history.ended = f"interrupted in epoch {len(history.train)}; the best state so far is kept"
    finally:
        net.check_values = was_checking
        net.load_state_dict(best)
        net.eval()
    return history


@torch.no_grad()
def evaluate(net: EquivariantNet, data: list[Tensor | None], loss: Loss, batch_size: int = 8192) -> float:
    """The loss over a data set [x, y, point_scalars, sample_scalars], in pieces that fit into memory."""
    x = data[0]
    assert x is not None
    total = 0.0
    for start in range(0, len(x), batch_size):
        inputs, target, *given = (None if t is None else t[start : start + batch_size] for t in data)
        total += float(loss(net(inputs, *given), target)) * len(inputs)  # type: ignore[arg-type]
    return total / len(x)


def second_order(
    net: EquivariantNet,
    parameters: list[nn.Parameter],
    train: list[Tensor | None],
    held_out: list[Tensor | None],
    loss: Loss,
    steps: int,
) -> Iterator[float]:
    """Full-batch L-BFGS in float64; yields the validation loss after each tenth step, the network in that state.

    It works on a copy: changing the dtype of the network itself would cut its parameters loose from the hooks by
    which several processes exchange gradients.
    """
    wide = copy.deepcopy(net).double()
    ids = {id(p) for p in parameters}
    chosen = [w for w, p in zip(wide.parameters(), net.parameters()) if id(p) in ids]
    samples = len(train[0])  # type: ignore[arg-type]
    rows = torch.randperm(samples, generator=torch.Generator().manual_seed(0))[:POLISH_SAMPLES]
    rows = rows.sort().values.to(net.x_scale.device)
    inputs, target, *given = (None if t is None else t[rows].double() for t in train)
    held_out = [None if t is None else t.double() for t in held_out]
    optimizer = torch.optim.LBFGS(
        chosen,
        max_iter=10,
        history_size=50,
        tolerance_grad=0.0,  # losses of 1e-9 are nothing unusual here: the defaults would stop at once
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(wide(inputs, *given), target)  # type: ignore[arg-type]
        value.backward()
        return value

    for _ in range(max(1, steps // 10)):
        optimizer.step(closure)
        score = evaluate(wide, held_out, loss)
        net.load_state_dict(wide.state_dict())
        yield score
        if score < EXACT[torch.float64]:
            return


def _rows(net: EquivariantNet, parameters: list[nn.Parameter], data: list[Tensor | None]) -> int:
    """How many samples a least-squares matrix of these parameters has room for."""
    columns, entries = sum(p.numel() for p in parameters), net.rep.size(net.n)
    return min(len(data[0]), LEAST_SQUARES_ENTRIES // (columns * entries))  # type: ignore[arg-type]


def solvable(net: EquivariantNet, parameters: list[nn.Parameter], data: list[Tensor | None]) -> bool:
    """Whether `least_squares` has room for these parameters, with more equations than unknowns if there are any."""
    columns = sum(p.numel() for p in parameters)
    rows = _rows(net, parameters, data)
    return columns <= LEAST_SQUARES_COLUMNS and (rows == len(data[0]) or rows > columns)  # type: ignore[arg-type]


def _directional(function: Callable[[Tensor], Tensor], at: Tensor, direction: Tensor) -> Tensor:
    return torch.func.jvp(function, (at,), (direction,))[1]


def least_squares(
    net: EquivariantNet,
    parameters: list[nn.Parameter],
    train: list[Tensor | None],
    held_out: list[Tensor | None],
    steps: int = 8,
    notable: float = NOTABLE,
) -> Iterator[float]:
    """Gauss-Newton in float64, the ridge of each step chosen on validation data; yields the validation losses.

    For weights that the output is linear in, one step is the whole solution: laws that are short polynomials of the
    invariants are then found to rounding. It goes on while a step at least halves the loss. Like `second_order` it
    works on a copy and leaves the network in the state of the last loss yielded.
    """
    wide = copy.deepcopy(net).double()
    ids = {id(p) for p in parameters}
    chosen = [name for name, p in net.named_parameters() if id(p) in ids]
    state = {name: value.detach() for name, value in wide.state_dict(keep_vars=True).items()}
    rows = _rows(net, parameters, train)
    inputs, target, *given = (None if t is None else t[:rows].double() for t in train)
    held_out = [None if t is None else t.double() for t in held_out]
    shapes = [state[name].shape for name in chosen]
    loss = scaled_mse(wide)

    def with_values(flat: Tensor) -> dict[str, Tensor]:
        pieces = flat.split([shape.numel() for shape in shapes])
        return state | {name: v.reshape(shape) for name, v, shape in zip(chosen, pieces, shapes)}

    def residuals(flat: Tensor) -> Tensor:
        prediction = torch.func.functional_call(wide, with_values(flat), (inputs, *given))
        pairs = [(prediction, target)]
        if isinstance(wide.rep, DirectSum):
            pairs = list(zip(wide.rep.split(prediction, wide.n), wide.rep.split(target, wide.n)))  # type: ignore[arg-type]
        parts = [(p - t) / (wide.y_scale[i] * p.numel() ** 0.5) for i, (p, t) in enumerate(pairs)]
        return torch.cat([part.flatten() for part in parts])

    def score(flat: Tensor) -> float:
        wide.load_state_dict(with_values(flat))
        return evaluate(wide, held_out, loss)

    flat = torch.cat([state[name].flatten() for name in chosen])
    lowest = score(flat)
    for _ in range(steps):
        directions = torch.eye(len(flat), dtype=flat.dtype, device=flat.device)
        column = partial(_directional, residuals, flat)
        J = torch.func.vmap(column, chunk_size=16)(directions).mT
        r = residuals(flat)
        units = J.norm(dim=0)
        units[units <= 1e-12 * units.max()] = math.inf  # what does not act does not move
        Q, R = torch.linalg.qr(J / units)
        U, sigma, V = torch.linalg.svd(R, full_matrices=False)
        projected = U.mT @ (Q.mT @ r)
        best: tuple[float, Tensor] | None = None
        for ridge in RIDGES:
            damped = sigma / (sigma.square() + (ridge * sigma[0]).square())
            moved = (
                (flat - V.mT @ (damped * projected) / units).to(net.x_scale.dtype).double()
            )  # as it is kept
            value = score(moved)
            if math.isfinite(value) and (best is None or value < WORTH * best[0]):
                best = value, moved
        if best is None or best[0] > notable * lowest:
            return
        enough = best[0] > 0.5 * lowest or best[0] < EXACT[net.x_scale.dtype]
        lowest, flat = best
        net.load_state_dict(with_values(flat))
        yield lowest
        if enough:
            return


def predict(net: EquivariantNet, x: Any, point_scalars: Any = None, sample_scalars: Any = None) -> Tensor:
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


def _snapshot(net: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in net.state_dict().items()}


def _save(path: Path, net: nn.Module, optimizer: Any, best: dict, history: History, epoch: int) -> None:
    tensors = {f"net.{k}": v for k, v in net.state_dict().items()} | {f"best.{k}": v for k, v in best.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{k}": torch.as_tensor(v) for k, v in state.items()}
    tensors = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
    note = {
        "epoch": str(epoch),
        "history": json.dumps(vars(history)),
        "format": "gortho training checkpoint 1",
    }
    temporary = path.with_name(path.name + f".{os.getpid()}.tmp")
    save_file(tensors, temporary, metadata=note)
    os.replace(temporary, path)  # a kill leaves either the old checkpoint or the new one


def _load(path: Path, net: nn.Module, optimizer: Any) -> tuple[History, dict[str, Tensor], int]:
    try:
        with safe_open(path, framework="pt") as file:
            note = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except Exception as error:
        raise ValueError(f"checkpoint {path} cannot be read ({error}): delete it to start anew") from None
    if "history" not in note:
        raise ValueError(f"{path} is no training checkpoint: choose another file name")

    def section(prefix: str) -> dict[str, Tensor]:
        return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}

    try:
        net.load_state_dict(section("net."))
    except RuntimeError as error:
        raise ValueError(
            f"checkpoint {path} belongs to another network ({error}): delete it or choose another file"
        ) from None
    state = optimizer.state_dict()
    restored: dict[int, dict[str, Tensor]] = {}
    for key, value in section("optimizer.").items():
        index, name = key.split(".", 1)
        restored.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({**state, "state": restored})
    return History(**json.loads(note["history"])), section("best."), int(note["epoch"])
