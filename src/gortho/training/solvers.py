"""Losses, and steps of second order: least squares solved directly, and L-BFGS.

Both work in float64 on a copy of the network, because changing the dtype of the network itself would cut its
parameters loose from the hooks by which several processes exchange gradients. Both yield validation losses and leave
the network in the state of the last one, so that the caller can keep the best.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from gortho.nn.exact import EquivariantNet
from gortho.samples.values import Samples

#: A loss of predictions, targets, and weights of the samples (None: all count alike).
Loss = Callable[[Tensor, Tensor, Tensor | None], Tensor]

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


def weighted_mean(errors: Tensor, weights: Tensor | None) -> Tensor:
    """The mean of errors ``(N, …)``, each sample with its weight (weights have mean one over a whole data set)."""
    if weights is None:
        return errors.mean()
    return (errors * weights.view(-1, *[1] * (errors.ndim - 1))).mean()


def scaled_mse(net: EquivariantNet) -> Loss:
    """Mean squared error in units of each output part's own scale, as found by `calibrate`."""
    rep, n = net.rep, net.n

    def loss(prediction: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
        pairs = zip(rep.split(prediction, n), rep.split(target, n))
        errors = [
            weighted_mean(((p - t) / net.y_scale[i]).square(), weights) for i, (p, t) in enumerate(pairs)
        ]
        return torch.stack(errors).mean()

    return loss


@torch.no_grad()
def evaluate(net: EquivariantNet, data: Samples, loss: Loss, batch_size: int = 8192) -> float:
    """The loss over a data set, in pieces that fit into memory."""
    total = 0.0
    for start in range(0, len(data), batch_size):
        piece = data.rows(slice(start, start + batch_size))
        total += float(loss(net(*piece.inputs), piece.y, piece.weights)) * len(piece)
    return total / len(data)


def second_order(
    net: EquivariantNet,
    parameters: list[nn.Parameter],
    train: Samples,
    held_out: Samples,
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
    rows = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))[:POLISH_SAMPLES]
    few = train.rows(rows.sort().values.to(net.x_scale.device)).to(torch.float64)
    held_out = held_out.to(torch.float64)
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
        value = loss(wide(*few.inputs), few.y, few.weights)
        value.backward()
        return value

    for _ in range(max(1, steps // 10)):
        optimizer.step(closure)
        score = evaluate(wide, held_out, loss)
        net.load_state_dict(wide.state_dict())
        yield score
        if score < EXACT[torch.float64]:
            return


def _rows(net: EquivariantNet, parameters: list[nn.Parameter], data: Samples) -> int:
    """How many samples a least-squares matrix of these parameters has room for."""
    columns, entries = sum(p.numel() for p in parameters), net.rep.size(net.n)
    return min(len(data), LEAST_SQUARES_ENTRIES // (columns * entries))


def solvable(net: EquivariantNet, parameters: list[nn.Parameter], data: Samples) -> bool:
    """Whether `least_squares` has room for these parameters, with more equations than unknowns if there are any."""
    columns = sum(p.numel() for p in parameters)
    rows = _rows(net, parameters, data)
    return columns <= LEAST_SQUARES_COLUMNS and (rows == len(data) or rows > columns)


def _directional(function: Callable[[Tensor], Tensor], at: Tensor, direction: Tensor) -> Tensor:
    return torch.func.jvp(function, (at,), (direction,))[1]


def least_squares(
    net: EquivariantNet,
    parameters: list[nn.Parameter],
    train: Samples,
    held_out: Samples,
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
    few, held_out = train.rows(slice(0, rows)).to(torch.float64), held_out.to(torch.float64)
    roots = None if few.weights is None else few.weights.sqrt()
    shapes = [state[name].shape for name in chosen]
    loss = scaled_mse(wide)

    def with_values(flat: Tensor) -> dict[str, Tensor]:
        pieces = flat.split([shape.numel() for shape in shapes])
        return state | {name: v.reshape(shape) for name, v, shape in zip(chosen, pieces, shapes)}

    def residuals(flat: Tensor) -> Tensor:
        prediction = torch.func.functional_call(wide, with_values(flat), few.inputs)
        pairs = zip(wide.rep.split(prediction, wide.n), wide.rep.split(few.y, wide.n))
        parts = [(p - t) / (wide.y_scale[i] * p.numel() ** 0.5) for i, (p, t) in enumerate(pairs)]
        if roots is not None:
            parts = [part * roots.view(-1, *[1] * (part.ndim - 1)) for part in parts]
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
            # As it is kept.
            moved = (flat - V.mT @ (damped * projected) / units).to(net.x_scale.dtype).double()
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
