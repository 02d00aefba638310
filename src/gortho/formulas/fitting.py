"""Columns of terms on samples; coefficients by least squares, parameters of functions by variable projection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gortho.formulas.terms import Quantities, Term
from gortho.samples.values import Samples
from gortho.symmetry import Symmetry

#: Gauss-Newton steps, at most, and the share of the sum of squares that one must gain for another to follow.
STEPS, ENOUGH = 15, 1e-6
#: One minus the leverage of a sample is not taken for smaller than this.
LEAST = 0.05
#: Steps for slopes by the numbers inside, as a share of them.
STEP = 1e-5


@dataclass(frozen=True, eq=False)
class Rows:
    """Samples as formulas see them: quantities, targets ``(N, c)``, and roots of the weights ``(N, 1)``."""

    q: Quantities
    y: np.ndarray
    root: np.ndarray

    @classmethod
    def of(cls, samples: Samples, symmetry: Symmetry, output: str) -> Rows:
        """Samples in the given coordinates."""
        given = [s.numpy().reshape(len(samples), -1) for s in samples.scalars if s is not None]
        scalars = np.concatenate(given, 1) if given else np.zeros((len(samples), 0))
        y = samples.y.numpy().reshape(len(samples), -1)
        weights = np.ones(len(y)) if samples.weights is None else samples.weights.numpy()
        return cls(Quantities(samples.x.numpy(), scalars, symmetry, output), y, np.sqrt(weights)[:, None])

    @property
    def target(self) -> np.ndarray:
        """The targets with their weights, flat."""
        return (self.root * self.y).ravel()

    def design(self, terms: Sequence[Term]) -> np.ndarray:
        """The terms' columns with their weights ``(N·c, terms)``; not finite where a term is not."""
        with np.errstate(all="ignore"):
            columns = [(self.root * self.q.column(term)).ravel() for term in terms]
        return np.stack(columns, 1) if columns else np.zeros((self.y.size, 0))


def solve(design: np.ndarray, y: np.ndarray, smallest: float = 1e-14) -> np.ndarray:
    """Least squares, with columns of any size; not numbers where the columns are none."""
    if not (np.isfinite(design).all() and np.isfinite(y).all()):
        return np.full(design.shape[1], np.nan)
    size = np.linalg.norm(design, axis=0)
    size = np.where(size > 0, size, 1.0)
    return np.linalg.lstsq(design / size, y, rcond=smallest)[0] / size


def reshaped(terms: Sequence[Term], shapes: np.ndarray) -> list[Term]:
    """The terms with other numbers inside, one after another."""
    found, start = [], 0
    for term in terms:
        count = len(term.shapes)
        found.append(term.shaped(shapes[start : start + count].tolist()) if count else term)
        start += count
    return found


def refined(terms: Sequence[Term], rows: Rows) -> list[Term]:
    """The terms with the numbers inside that suit them best: Gauss-Newton together with the coefficients."""
    terms, y = list(terms), rows.target
    shapes = np.array([s for term in terms for s in term.shapes])
    if not len(shapes):
        return terms

    def at(z: np.ndarray) -> tuple[list[Term], np.ndarray, np.ndarray, float]:
        moved = reshaped(terms, z)
        design = rows.design(moved)
        if not np.isfinite(design).all():
            return moved, design, np.zeros(len(terms)), np.inf
        c = solve(design, y)
        return moved, design, c, float(np.square(y - design @ c).sum())

    now = at(shapes)
    for _ in range(STEPS):
        if not np.isfinite(now[3]):
            break
        step = solve(slopes(now[0], now[2], rows, now[1]), y - now[1] @ now[2])[len(terms) :]
        step = np.clip(step, -np.abs(shapes) / 2, np.abs(shapes) / 2)
        for shorter in (1.0, 0.3, 0.05):
            there = at(shapes + shorter * step)
            if there[3] < now[3]:
                break
        gain = now[3] - there[3]
        if not gain > 0:
            break
        shapes, now, before = shapes + shorter * step, there, now[3]
        if gain < ENOUGH * before:
            break
    return now[0]


def slopes(
    terms: Sequence[Term], coefficients: np.ndarray, rows: Rows, design: np.ndarray | None = None
) -> np.ndarray:
    """Derivatives of the sum by coefficients, then by the numbers inside ``(N·c, k)``."""
    columns = [rows.design(terms) if design is None else design]
    for term, c in zip(terms, coefficients):
        shapes = np.array(term.shapes)
        for place, shape in enumerate(shapes):
            step = STEP * (abs(shape) or 1.0)
            moved = step * np.eye(len(shapes))[place]
            ends = [term.shaped((shapes + sign * moved).tolist()) for sign in (1.0, -1.0)]
            up, down = rows.design(ends).T
            columns.append((c * (up - down) / (2 * step))[:, None])
    return np.concatenate(columns, 1)


def standard_errors(J: np.ndarray, residual: np.ndarray, components: int) -> np.ndarray:
    """Standard errors of least squares that hold for errors of any size, sample by sample.

    This is the sandwich in its jackknife form (HC3): residuals of samples that pull at the fit count more.
    """
    size = np.linalg.norm(J, axis=0)
    if not (np.isfinite(size).all() and np.isfinite(residual).all()):
        return np.full(J.shape[1], np.inf)
    size = np.where(size > 0, size, 1.0)
    U = J / size
    bread = np.linalg.pinv(U.T @ U)
    leverage = np.einsum("nk,kl,nl->n", U, bread, U).reshape(-1, components).sum(1)
    meat = (U * residual[:, None]).reshape(-1, components, U.shape[1]).sum(1)
    meat = meat / np.clip(1 - leverage, LEAST, 1)[:, None]
    return np.sqrt(np.maximum(np.diag(bread @ (meat.T @ meat) @ bread), 0.0)) / size
