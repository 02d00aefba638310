"""Steps of second order: least squares solved directly, and L-BFGS.

Both work in float64 on a copy of the network, because changing the dtype of the network itself would cut its
parameters loose from the hooks by which several processes exchange gradients. Both yield validation losses and leave
the network in the state of the last one, so that the caller can keep the best.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gortho.nn.exact import EquivariantNet
from gortho.objectives import ABSOLUTE
from gortho.objectives.objective import Loss
from gortho.samples.values import Samples

#: Least squares are solved directly as long as their matrix has no more entries than this, and this many columns.
LEAST_SQUARES_ENTRIES = 4_000_000
LEAST_SQUARES_COLUMNS = 1_000
#: Ridges to choose from on validation data, relative to the largest singular value.
RIDGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-9, 1e-11, 1e-13)
#: A smaller ridge, which means larger weights, must lower the loss to this share.
WORTH = 0.8
#: A step counts if it lowers the validation loss to this share: less than that may be luck, under noise.
NOTABLE = 0.99
#: Samples that a loss is computed of at once: they fit into memory.
AT_ONCE = 8192
#: Second-order steps look at this many samples at most: beyond, each step costs more than it gains.
POLISH_SAMPLES = 10_000
#: A validation loss below this, in units of the target's variance, is rounding: there is nothing left to learn.
EXACT = {torch.float32: 1e-13, torch.float64: 1e-20}


@torch.no_grad()
def evaluate(net: EquivariantNet, data: Samples, loss: Loss) -> float:
    """The loss over a data set, in pieces that fit into memory."""
    total = 0.0
    for start in range(0, len(data), AT_ONCE):
        piece = data.rows(slice(start, start + AT_ONCE))
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


class _Flat:
    """Chosen parameters as one vector, in float64 on a copy of the network: residuals, their slopes, losses."""

    def __init__(
        self, net: EquivariantNet, parameters: list[nn.Parameter], train: Samples, held_out: Samples
    ):
        self.wide = copy.deepcopy(net).double()
        ids = {id(p) for p in parameters}
        self.names = [name for name, p in net.named_parameters() if id(p) in ids]
        self.state = {name: value.detach() for name, value in self.wide.state_dict(keep_vars=True).items()}
        self.shapes = [self.state[name].shape for name in self.names]
        self.few, self.held_out = train.to(torch.float64), held_out.to(torch.float64)
        self.roots = None if self.few.weights is None else self.few.weights.sqrt()
        self.loss = ABSOLUTE.loss(self.wide)

    def start(self) -> Tensor:
        """The vector as it is now."""
        return torch.cat([self.state[name].flatten() for name in self.names])

    def with_values(self, flat: Tensor) -> dict[str, Tensor]:
        """The state of the network with these parameters."""
        pieces = flat.split([shape.numel() for shape in self.shapes])
        return self.state | {n: v.reshape(shape) for n, v, shape in zip(self.names, pieces, self.shapes)}

    def residuals(self, flat: Tensor) -> Tensor:
        """Errors on the training samples, whose squares add up to the loss."""
        wide = self.wide
        prediction = torch.func.functional_call(wide, self.with_values(flat), self.few.inputs)
        pairs = zip(wide.rep.split(prediction, wide.n), wide.rep.split(self.few.y, wide.n))
        parts = [(p - t) / (wide.y_scale[i] * p.numel() ** 0.5) for i, (p, t) in enumerate(pairs)]
        if self.roots is not None:
            parts = [part * self.roots.view(-1, *[1] * (part.ndim - 1)) for part in parts]
        return torch.cat([part.flatten() for part in parts])

    def slopes(self, flat: Tensor) -> Tensor:
        """The Jacobian of the residuals."""
        directions = torch.eye(len(flat), dtype=flat.dtype, device=flat.device)

        def column(direction: Tensor) -> Tensor:
            return torch.func.jvp(self.residuals, (flat,), (direction,))[1]

        return torch.func.vmap(column, chunk_size=16)(directions).mT

    def score(self, flat: Tensor) -> float:
        """The validation loss."""
        self.wide.load_state_dict(self.with_values(flat))
        return evaluate(self.wide, self.held_out, self.loss)


def _steps(J: Tensor, r: Tensor) -> Iterator[Tensor]:
    """Steps that lower ‖r - J step‖, from the largest ridge to the smallest."""
    units = J.norm(dim=0)
    units[units <= 1e-12 * units.max()] = math.inf  # what does not act does not move
    Q, R = torch.linalg.qr(J / units)
    U, sigma, V = torch.linalg.svd(R, full_matrices=False)
    projected = U.mT @ (Q.mT @ r)
    for ridge in RIDGES:
        damped = sigma / (sigma.square() + (ridge * sigma[0]).square())
        yield V.mT @ (damped * projected) / units


def least_squares(
    net: EquivariantNet,
    parameters: list[nn.Parameter],
    train: Samples,
    held_out: Samples,
    steps: int = 8,
) -> Iterator[float]:
    """Gauss-Newton in float64, the ridge of each step chosen on validation data; yields the validation losses.

    For weights that the output is linear in, one step is the whole solution: laws that are short polynomials of the
    invariants are then found to rounding. It goes on while a step at least halves the loss. Like `second_order` it
    works on a copy and leaves the network in the state of the last loss yielded.
    """
    dtype = net.x_scale.dtype
    problem = _Flat(net, parameters, train.rows(slice(0, _rows(net, parameters, train))), held_out)
    flat = problem.start()
    lowest = problem.score(flat)
    for _ in range(steps):
        best: tuple[float, Tensor] | None = None
        for step in _steps(problem.slopes(flat), problem.residuals(flat)):
            moved = (flat - step).to(dtype).double()  # as it is kept
            value = problem.score(moved)
            if math.isfinite(value) and (best is None or value < WORTH * best[0]):
                best = value, moved
        if best is None or best[0] > NOTABLE * lowest:
            return
        enough = best[0] > 0.5 * lowest or best[0] < EXACT[dtype]
        lowest, flat = best
        net.load_state_dict(problem.with_values(flat))
        yield lowest
        if enough:
            return
