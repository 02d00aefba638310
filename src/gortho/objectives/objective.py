"""`Objective`: the loss that fits minimise and comparisons use, as one value.

Search, training, comparison and verdict are written once for all objectives. They ask one for each sample's loss, and
for what follows from it: what the search sees of the targets, how a network starts, what is compared, and which models
without geometry make the same loss small. A new objective needs `each` and `constant`; all else has a default.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gortho.nn.exact import EquivariantNet
from gortho.objectives.learners import TREE_TARGETS, Kernels, Predictor, Table, boosted_trees, polynomial
from gortho.samples.values import Samples

#: A loss of outputs, targets, and weights of the samples (None: all count alike).
Loss = Callable[[Tensor, Tensor, Tensor | None], Tensor]


class Errors(enum.Enum):
    """How errors count in the squares that the search makes small: as they are, or relative to the targets' size."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"


class Learnt(NamedTuple):
    """A model without geometry: its name, and its outputs for validation and held-out samples."""

    name: str
    outputs: list[Tensor]
    corrects: bool = False  # what the predictor says, in place of being a model of its own
    rows: Predictor | None = None  # values for other rows of inputs, where it knows nothing of the predictor


def weighted_mean(losses: Tensor, weights: Tensor | None) -> Tensor:
    """The mean of losses ``(N, …)``, each sample with its weight (weights have mean one over a whole data set)."""
    if weights is None:
        return losses.mean()
    return (losses * weights.view(-1, *[1] * (losses.ndim - 1))).mean()


def mean_target(samples: Samples) -> Tensor:
    """The mean of the targets by the weights of the samples."""
    y, w = samples.y.double(), samples.each_weight.double()
    return y.mean(0) if samples.weights is None else torch.tensordot(w / w.sum(), y, dims=1)


def of_order_one(samples: Samples, scale: Callable[[Tensor], Tensor] = lambda v: v) -> Samples:
    """Targets about zero and of size one, part by part; numbers on a scale of their own, about their median."""
    parts = []
    for part, v in zip(samples.rep.parts, samples.rep.split(samples.y, samples.n)):
        if part.rank == 0:
            v = scale(v)
            v = v - v.median()
        parts.append(v / v.square().mean().sqrt().clamp_min(1e-300))
    return replace(samples, y=samples.rep.join(parts))


@dataclass(frozen=True)
class Objective(ABC):
    """The loss that fits minimise and comparisons use.

    An *output* is what a network gives for a sample, such as logits; *what is compared* may be something else, such as
    log-probabilities. Parts are training, validation and held-out samples.
    """

    #: How errors count in the search.
    errors: ClassVar[Errors] = Errors.ABSOLUTE
    #: The loss is a square: then linear predictors are one solve, and what one leaves over can be fitted again.
    least_squares: ClassVar[bool] = False
    #: The loss of one sample has a bound: then no few samples rule the mean.
    bounded: ClassVar[bool] = False
    #: So many outputs, the first ones, are zero by convention: only differences to them count.
    gauge: ClassVar[int] = 0

    @abstractmethod
    def each(self, output: Tensor, target: Tensor) -> Tensor:
        """Each sample's loss ``(N,)``, at least zero, with derivatives by the output."""

    @abstractmethod
    def constant(self, samples: Samples) -> Tensor:
        """The output that is best for all samples alike, as it is compared."""

    # Fits

    def prepared(self, samples: Samples) -> Samples:
        """What the search sees, in the frame: targets of order one whose squared errors it makes small."""
        return of_order_one(samples)

    def final(self, parts: Sequence[Samples], given: Sequence[Samples]) -> Sequence[Samples]:
        """The parts, in the frame, with the targets and weights of final fits; ``given`` is as the caller gave it."""
        return parts

    def start(self, net: EquivariantNet, samples: Samples) -> None:
        """Units of a network, which then gives the best constant as long as its last weights are zero."""
        net.calibrate(samples.x, samples.y, *samples.scalars)
        net.y_scale.fill_(1.0)
        for i, value in enumerate(net.rep.split(self.constant(samples)[None], net.n)):
            if net.rep.parts[i].rank == 0:
                net.y_shift[i] = float(value)

    def loss(self, net: EquivariantNet) -> Loss:
        """What the training of a network makes small."""

        def loss(output: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
            return weighted_mean(self.each(output, target), weights)

        return loss

    # Comparisons

    def compared(self, output: Tensor, seen: int) -> Tensor:
        """What is compared of the outputs of a model that has seen so many samples."""
        return output

    def losses(self, compared: Tensor, samples: Samples) -> np.ndarray:
        """Each sample's loss ``(N,)``, times its weight."""
        return samples.by_weight(self.each(compared.double(), samples.y.double())).numpy()

    def expected(self, compared: Tensor) -> Tensor:
        """The targets to expect."""
        return compared

    def deviations(self, samples: Samples, like: Samples) -> np.ndarray:
        """Each sample's loss at the constant that is best for others."""
        return self.losses(self.constant(like).expand(samples.y.shape), samples)

    def chance(self, parts: Sequence[Samples]) -> tuple[np.ndarray, float]:
        """Losses of the held-out samples at the best constant, and the mean that shares are shares of."""
        losses = self.deviations(parts[2], parts[0])
        return losses, float(losses.mean())

    def output(self, expected: Tensor) -> Tensor:
        """The outputs that stand for expected targets."""
        return expected

    def learnt(
        self, rows: Sequence[Tensor], parts: Sequence[Samples], own: Sequence[Tensor], seed: int
    ) -> Iterator[Learnt]:
        """Models of these rows of inputs, alone and beside the predictor, whose outputs are ``own``.

        By default kernels, polynomials and trees, fitted to the targets and to what the predictor leaves over of them.
        """
        means = [self.expected(p) for p in own]
        left = [s.with_targets(s.y.double() - mean) for s, mean in zip(parts, means)]
        whole, rest = ((Table.of(rows[0], of[0]), Table.of(rows[1], of[1])) for of in (parts, left))
        kernels = Kernels.of(*whole)
        learners: list[tuple[str, bool, Predictor]] = [
            ("kernel ridge", False, kernels.fit(*whole)),
            ("kernel ridge", True, kernels.fit(*rest)),
            ("polynomial", True, polynomial(*rest)),
        ]
        if parts[0].y[0].numel() <= TREE_TARGETS:
            learners += [("boosted trees", of is rest, boosted_trees(*of, seed)) for of in (whole, rest)]
        for name, corrects, model in learners:
            values = [model(Z).reshape(s.y.shape) for Z, s in zip(rows[1:], parts[1:])]
            if corrects:
                values = [v + mean for v, mean in zip(values, means[1:])]
            yield Learnt(name, [self.output(v) for v in values], corrects, None if corrects else model)
