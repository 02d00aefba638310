"""Many networks with their own forms, trained in one batched program (M7).

The parameters of all replicas are stacked and one vmapped gradient moves them all, so thirty replicas cost little
more than the arithmetic they do. Replicas can be dropped on the way, and each may see its own resample of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from gortho.forms import QuadraticForm
from gortho.nn.exact import EquivariantNet
from gortho.solvers import scaled_mse
from gortho.training import learning_rate

#: A data set as the networks take it: x, y, point scalars, sample scalars.
Data = Sequence[Tensor | None]

_DECAY = (0.9, 0.99)  # Adam's; the second is short, since the forms move a long way in few steps
_CLIP = 1.0


class Replicas:
    """Stacked networks of one architecture, each with its own `LearnableForm`."""

    def __init__(self, networks: Sequence[EquivariantNet], labels: Sequence[str]):
        self.base = networks[0]
        self.labels = list(labels)
        parameters, _ = stack_module_state(list(networks))  # type: ignore[arg-type]
        self.parameters = {name: p.detach().clone() for name, p in parameters.items()}
        self.buffers = dict(self.base.named_buffers())
        self.moments = [{name: torch.zeros_like(p) for name, p in self.parameters.items()} for _ in _DECAY]
        self.steps = 0
        self._loss = scaled_mse(self.base)

    def __len__(self) -> int:
        return len(self.labels)

    def _call(self, parameters: dict[str, Tensor], data: Data) -> Tensor:
        x, y, *scalars = data
        return self._loss(functional_call(self.base, (parameters, self.buffers), (x, *scalars)), y)  # type: ignore[arg-type]

    def train(
        self,
        data: Data,
        steps: int,
        *,
        lr: float,
        form_lr: float,
        batch_size: int = 256,
        weight_decay: float = 0.0,
        seed: int = 0,
        rows: Tensor | None = None,
        total: int | None = None,
    ) -> Iterator[int]:
        """Adam steps on all replicas at once; yields the number of steps done, so that the caller can look in.

        ``rows (replicas, N)`` gives each replica its own resample; by default all see the same batches. ``total`` is
        the length of the whole schedule when it is trained in several goes.
        """
        axes = [None if rows is None or t is None else 0 for t in data]
        step = vmap(grad_and_value(self._call), in_dims=(0, axes))
        generator = torch.Generator().manual_seed(seed)
        samples = len(data[0])  # type: ignore[arg-type]
        for _ in range(steps):
            if rows is None:
                batch = torch.randint(samples, (min(batch_size, samples),), generator=generator)
            else:
                batch = rows.gather(
                    1, torch.randint(samples, (len(self), min(batch_size, samples)), generator=generator)
                )
            gradients, _ = step(self.parameters, [None if t is None else t[batch] for t in data])
            self._update(
                gradients, learning_rate(self.steps, total or steps, 1.0, 0.03), lr, form_lr, weight_decay
            )
            self.steps += 1
            yield self.steps

    def _update(
        self, gradients: dict[str, Tensor], rate: float, lr: float, form_lr: float, weight_decay: float
    ) -> None:
        squares = torch.stack([g.flatten(1).square().sum(1) for g in gradients.values()])
        shrink = _CLIP / squares.sum(0).sqrt().clamp_min(_CLIP)  # each replica is clipped by itself
        corrections = [1 - decay ** (self.steps + 1) for decay in _DECAY]
        for name, gradient in gradients.items():
            g = gradient.nan_to_num(0.0, 0.0, 0.0) * shrink.nan_to_num(0.0).view(
                -1, *(1,) * (gradient.ndim - 1)
            )
            mean, square = (moment[name] for moment in self.moments)
            mean.mul_(_DECAY[0]).add_(g, alpha=1 - _DECAY[0])
            square.mul_(_DECAY[1]).addcmul_(g, g, value=1 - _DECAY[1])
            is_form = name.startswith("form.")
            direction = (mean / corrections[0]) / ((square / corrections[1]).sqrt() + 1e-8)
            p = self.parameters[name]
            if weight_decay and not is_form:
                p.mul_(1 - rate * lr * weight_decay)
            p.sub_(direction, alpha=rate * (form_lr if is_form else lr))

    @torch.no_grad()
    def losses(self, data: Data) -> Tensor:
        """Each replica's loss on the same data; what is not finite counts as infinite."""
        return vmap(self._call, in_dims=(0, None))(self.parameters, list(data)).nan_to_num(
            torch.inf, torch.inf
        )

    def keep(self, which: Tensor) -> None:
        """Drop all replicas but these."""
        self.labels = [self.labels[int(i)] for i in which]
        self.parameters = {name: p[which] for name, p in self.parameters.items()}
        self.moments = [{name: m[which] for name, m in moment.items()} for moment in self.moments]

    def form(self, index: int) -> QuadraticForm:
        """The form of one replica as it stands."""
        entries = self.parameters["form.entries"][index]
        return QuadraticForm(entries + entries.mT)

    def network(self, index: int, make: Callable[[], EquivariantNet]) -> EquivariantNet:
        """One replica as a network of its own."""
        net = make()
        net.load_state_dict({name: p[index] for name, p in self.parameters.items()} | self.buffers)
        return net
