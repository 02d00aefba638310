"""A problem as the stages see it: samples split into parts, in their frame, with targets of order one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gortho.discovery.bundles import order_in_parts
from gortho.discovery.large import Survey
from gortho.discovery.models import Measured, measure, squared_errors
from gortho.discovery.predictor import Fitted, Parts
from gortho.forms import QuadraticForm
from gortho.nn.framed import InFrame
from gortho.objectives import Objective
from gortho.samples.frame import Frame
from gortho.samples.values import Samples


def split(samples: Samples, seed: int) -> tuple[Parts, Tensor]:
    """Held-out, validation and training parts, and the numbers of their samples, part by part."""
    sizes = [min(5_000, max(4, len(samples) // 6)), min(3_000, max(4, len(samples) // 8))]
    test, validation, train = order_in_parts(samples, sizes, seed)
    return Parts(*map(samples.rows, (train, validation, test))), torch.cat([train, validation, test])


@dataclass(frozen=True)
class Posed:
    """A problem as the stages see it: parts in the frame with targets of order one, and the way back."""

    parts: Parts
    given: Parts  # in the given coordinates
    frame: Frame
    unit: float | Tensor  # of outputs, or of each entry of several: that of y, and one of logits
    x_unit: float = 1.0
    known: Survey | None = None  # of all rows, where the samples are some of them
    numbers: Tensor | None = None  # of the samples, part by part, where they are the rows that were given
    frames: tuple[Frame, ...] = ()  # of the kinds of vectors, where their dimensions differ
    names: tuple[tuple[str, ...], ...] = ()  # of their coordinates

    @classmethod
    def of(cls, samples: Samples, seed: int, known: Survey | None = None, whole: bool = True) -> Posed:
        """The samples in parts, in the frame of the training part.

        ``whole``: whether every row that was given is among the samples.
        """
        given, numbers = split(samples, seed)
        return cls._in_frame(given, known, numbers if whole else None)

    @classmethod
    def _in_frame(cls, given: Parts, known: Survey | None, numbers: Tensor | None) -> Posed:
        # First of all, so that no square leaves the range of float64.
        x_unit, y_unit = given.train.indicators().units
        scaled = [part.indicators().in_units(x_unit, y_unit) for part in given]
        frame = Frame.of(scaled[0].x)
        white = [part.in_frame(frame) for part in scaled]
        size = white[0].part_sizes
        parts = Parts(*(w.in_units(1.0, size) for w in white))
        unit = 1.0 if given.train.classes else size * y_unit
        return cls(parts, given, frame, unit, x_unit, known, numbers)

    def without(self, out: Tensor) -> Posed:
        """The problem without some of the samples, by a mask of all, part by part."""
        kept = [part.rows(~mask) for part, mask in zip(self.given, out.split([*map(len, self.given)]))]
        return self._in_frame(Parts(*kept), self.known, None if self.numbers is None else self.numbers[~out])

    def weighted(self, objective: Objective) -> Parts:
        """The parts with the targets and weights that final fits have for an objective."""
        return Parts(*objective.final(self.parts, self.given))

    @property
    def everyone(self) -> Samples:
        """All samples, in the given coordinates, part by part."""
        return Samples.cat(self.given)

    @property
    def y_units(self) -> Tensor:
        """Units of the given targets in which no part of them hides the others, and squares stay in range."""
        return torch.ones(()) if self.classes else self.given.train.part_sizes

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes, where targets are labels."""
        return self.given.train.classes

    def out(self, A: Tensor) -> QuadraticForm:
        """A form of the frame in the given coordinates."""
        return self.frame.form_out(A, self.given.train.names)

    def network_out(self, fitted: Fitted) -> InFrame:
        """A predictor of the frame for the given coordinates."""
        return InFrame(fitted.network, self.frame.W, self.unit, self.out(fitted.form.matrix), self.x_unit)

    def values_out(self, y: Tensor) -> Tensor:
        """Outputs of the frame in the given coordinates."""
        back = Frame(self.frame.inverse)
        return self.parts.train.rows(slice(0, 1)).values_in(back, y.double()) * self.unit

    def measured(self, twin: Tensor, free: Tensor) -> Measured:
        """Predictions of the held-out samples, in the frame, as the given coordinates see their errors."""
        parts = [s.in_units(1.0, self.y_units) for s in self.given]
        test, everyone = parts[2], Samples.cat(parts)
        errors, of_free = (squared_errors(self.values_out(v) / self.y_units, test) for v in (twin, free))
        mean = everyone.y.mean(0)
        deviations = [squared_errors(mean.expand(len(s), *mean.shape), s) for s in (test, everyone)]
        return measure(errors, of_free, deviations[0], float(deviations[1].mean()), test.bundles)
