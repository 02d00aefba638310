"""One training step, run as it stands or recorded as a CUDA graph: loss, gradients, clipping, update.

A batch is the numbers of its samples and a key, such as the length that sets are cut to; what a loss does with them is
the caller's. On CUDA a whole step, from picking samples to updating weights, is recorded once for each key and then
replayed, because the kernels of a small network take less time than starting them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gortho.training.processes import OneProcess

#: Steps run before a CUDA graph is recorded.
WARM_UP = 3
#: The loss of samples with these numbers, under a key.
BatchLoss = Callable[[Tensor, int], Tensor]


def learning_rate(step: int, steps: int, peak: float, warmup: float = 0.02) -> float:
    """Linear warm-up, then a cosine to zero."""
    start = max(1, int(warmup * steps))
    if step < start:
        return peak * (step + 1) / start
    return peak * 0.5 * (1 + math.cos(math.pi * (step - start) / max(1, steps - start)))


def compiled(net: nn.Module, warm: Callable[[Any], Any], say: Callable[[str], Any]) -> Any:
    """The network compiled, after a first step that says how long it took; the network itself where that fails."""
    began = time.perf_counter()
    try:
        model = torch.compile(net, dynamic=False)
        warm(model)
    except Exception as error:  # no compiler, or a bug in one, must not end a training
        say(
            f"not compiled, which only costs time ({type(error).__name__}: {str(error).strip().splitlines()[:1]})"
        )
        return net
    finally:
        net.zero_grad(set_to_none=True)
    say(f"compiled in {time.perf_counter() - began:.0f} s")
    return model


class Stepper:
    """Steps as they stand.

    Args:
        optimizer: whose groups have a "peak", their largest learning rate.
        loss: of a batch.
        clipped: parameters whose gradients are clipped together, several times if there are several kinds.
        clip: largest norm of their gradients; 0 for none.
        fabric: of one process or several.
        leave_out: a step whose gradient overflows changes nothing and is counted; it needs a fused optimizer. Messages
            multiply what points carry, so a rare set can grow beyond float32, and one in a million must not undo all.
    """

    def __init__(
        self,
        optimizer: Any,
        loss: BatchLoss,
        clipped: Sequence[Iterable[Tensor]],
        *,
        clip: float = 1.0,
        fabric: Any = None,
        leave_out: bool = False,
    ):
        self.optimizer, self.loss, self.clip, self.leave_out = optimizer, loss, clip, leave_out
        self.clipped = [list(kind) for kind in clipped]
        self.fabric = fabric or OneProcess()
        device = self.fabric.device
        self.total, self.left_out = torch.zeros(2, dtype=torch.float64, device=device).unbind()

    def rate(self, step: int, steps: int) -> None:
        """Set the learning rates of this step."""
        for group in self.optimizer.param_groups:
            value = learning_rate(step, steps, group["peak"])
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(value)
            else:
                group["lr"] = value

    def begin(self, batches: Sequence[tuple[Tensor, int]]) -> None:
        """Before an epoch of these batches."""
        self.total.zero_()
        self.left_out.zero_()

    def __call__(self, rows: Tensor, key: int) -> None:
        """Train on these samples; the loss is added to ``total``, or the step to ``left_out``."""
        self._step(rows, key)

    def _step(self, rows: Tensor, key: int) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(rows, key)
        self.fabric.backward(loss)
        value = loss.detach()
        if self.leave_out or self.clip:
            most = self.clip or math.inf
            norms = [nn.utils.clip_grad_norm_(kind, most) for kind in self.clipped]
        if self.leave_out:
            overflow = ~torch.stack(norms).isfinite().all()
            # As gradient scalers do: the fused optimizer then changes nothing, without the CPU being asked.
            getattr(self.optimizer, "optimizer", self.optimizer).found_inf = overflow.float()
            self.left_out += overflow
            value = torch.where(overflow, 0.0, value)
        self.optimizer.step()
        self.total += value


class Recorded(Stepper):
    """Steps recorded as CUDA graphs, one for each key."""

    def __init__(self, *arguments: Any, batch_size: int, **options: Any):
        super().__init__(*arguments, **options)
        self.parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.rows = torch.zeros(batch_size, dtype=torch.int64, device=self.fabric.device)
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.pool: Any = None

    def begin(self, batches: Sequence[tuple[Tensor, int]]) -> None:
        """Record what is new, so that random numbers of the epoch are those of its steps alone."""
        for rows, key in {key: (rows, key) for rows, key in batches}.values():
            if key not in self.graphs:
                self.rows.copy_(rows)
                self.record(key)
        super().begin(batches)

    def __call__(self, rows: Tensor, key: int) -> None:
        self.rows.copy_(rows)
        if key not in self.graphs:
            self.record(key)
        self.graphs[key].replay()

    def record(self, key: int) -> None:
        """Record the step under this key; weights and optimizer are left as they were."""
        weights = [p.detach().clone() for p in self.parameters]
        states = {p: {k: v.clone() for k, v in s.items()} for p, s in self.optimizer.state.items()}
        counters = (self.total, self.left_out, self.rows)
        counted = [value.clone() for value in counters]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self._step(self.rows, key)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph, pool=self.pool):
            self._step(self.rows, key)
        self.pool = graph.pool()
        self.graphs[key] = graph
        with torch.no_grad():
            for p, before in zip(self.parameters, weights):
                p.copy_(before)
            for parameter, state in self.optimizer.state.items():
                for name, value in state.items():
                    if parameter in states:
                        value.copy_(states[parameter][name])
                    else:
                        value.zero_()
            for value, before in zip(counters, counted):
                value.copy_(before)
