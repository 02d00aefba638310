"""The problem that a formula is sought for: samples, symmetry, values of the predictor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gortho.formulas.fitting import Rows
from gortho.formulas.library import Space, space_of
from gortho.formulas.terms import Term
from gortho.formulas.values import Formula
from gortho.samples.values import Samples
from gortho.symmetry import Symmetry

#: Numbers (samples times components) that terms are chosen by, and that coefficients are fitted to, at most.
CHOICE, FIT = 3_000, 20_000


@dataclass(frozen=True, eq=False)
class Problem:
    """What a formula is sought for: samples in the given coordinates, the symmetry, and the predictor's values.

    ``spread`` are symmetries that would do as well (refits), by which the form's error reaches the coefficients;
    ``widened`` is the factor that their spread is known to be too small by. ``logarithms`` may be in it or not.
    ``predicted`` are values for the held-out samples, where those of ``predict`` have seen them; ``twin`` are those of
    the best of all models of the invariants. ``axial`` are the
    places of axial vectors; ``numbers`` those of the samples among the given ones, part by part, where they are known.
    ``law`` are the terms that the predictor is made of, where it is a formula itself.
    """

    train: Samples
    validation: Samples
    held_out: Samples
    symmetry: Symmetry
    output: str
    predict: Callable[[Samples], np.ndarray]
    spread: Sequence[Symmetry] = ()
    widened: float = 1.0
    output_space: int = 0
    logarithms: bool = True
    predicted: np.ndarray | None = None
    twin: np.ndarray | None = None
    axial: tuple[int, ...] = ()
    numbers: Sequence[np.ndarray] = ()
    law: tuple[Term, ...] = ()

    @cached_property
    def seen(self) -> Samples:
        """Training and validation samples."""
        return Samples.cat([self.train, self.validation])

    @cached_property
    def fitted(self) -> Samples:
        """What coefficients are fitted to."""
        return self.seen.rows(slice(0, FIT // self.train.y[0].numel()))

    @cached_property
    def chosen(self) -> Rows:
        """What terms are chosen by."""
        return self.rows(first(self.train, CHOICE))

    def rows(self, samples: Samples, symmetry: Symmetry | None = None) -> Rows:
        """Samples as formulas see them."""
        return Rows.of(samples, symmetry or self.symmetry, self.output)

    def space(self, rows: Rows) -> Space:
        """What terms can be made of."""
        return space_of(rows.q, self.train, self.symmetry, self.axial)

    def rows_of(self, part: int, mask: np.ndarray) -> list[int]:
        """The numbers of some samples of a part; none where they are not known."""
        return sorted(self.numbers[part][mask].tolist()) if self.numbers else []

    def unexplained(self, values: np.ndarray, samples: Samples) -> float:
        """The share of the variance of samples that values leave, by their weights."""
        w, y = _weighted(samples)
        errors = np.square(values.reshape(y.shape) - y).mean(1)
        return float(np.average(errors, weights=w) / _variance(samples))


def first(samples: Samples, numbers: int) -> Samples:
    """The first of the samples, with so many numbers (samples times components) at most."""
    return samples.rows(slice(0, max(1, numbers // samples.y[0].numel())))


def _variance(samples: Samples) -> float:
    """Mean square of the targets about their mean, by the weights of the samples; not zero."""
    w, y = _weighted(samples)
    around = np.square(y - np.average(y, axis=0, weights=w)).mean(1)
    return max(float(np.average(around, weights=w)), 1e-300)


def _weighted(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Weights ``(N,)`` and targets ``(N, c)``."""
    return samples.each_weight.numpy(), samples.y.numpy().reshape(len(samples), -1)


def of_all(problem: Problem, formula: Formula) -> Formula:
    """The formula with shares of the variance of all samples, as other models have them;

    but of the held-out ones alone where some of these are far from it.
    """
    if formula.far[0]:
        return formula
    every = Samples.cat([problem.train, problem.validation, problem.held_out])
    of_weights = float(_weighted(problem.held_out)[0].mean() / _weighted(every)[0].mean())
    share = of_weights * _variance(problem.held_out) / _variance(every)
    names = ("unexplained", "predictor_unexplained", "twin_unexplained")
    return replace(formula, **{name: share * getattr(formula, name) for name in names})
