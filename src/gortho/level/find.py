"""`level_form`: from points to the quadric that they lie on, with errors and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from gortho.discovery.verdict import Verdict
from gortho.forms import QuadraticForm
from gortho.level.evidence import (
    LevelEvidence,
    beside,
    clouds,
    clump_size,
    judge,
    kurtosis_bound,
    neighbours_alike,
)
from gortho.level.fit import EXACT, Fit, Quadric, feet, resampled, robust, unknowns
from gortho.level.result import LevelForm, with_spreads
from gortho.level.scatter import weighed
from gortho.level.settle import centre_in, free_columns, level_in, settle
from gortho.samples.checks import as_float64, check_inputs, variable_names
from gortho.samples.door import MIN_SAMPLES, redundant
from gortho.samples.errors import DataError, listed
from gortho.samples.frame import Frame
from gortho.samples.named import frame_columns
from gortho.samples.sampling import choose
from gortho.samples.suspects import check_sizes
from gortho.samples.values import power_of_two

#: Points of this size, or of one over it, have squares that float64 does not hold.
SMALLEST = 1e-150
#: Refits to resamples.
REFITS = 100
#: Points that are fitted, at most.
MAX_POINTS = 20_000
#: Points kept for pictures, at most.
SHOWN = 2_000
#: Points farther than this many median deviations from the median, in some column, do not count for the frame.
UNUSUAL = 10.0
#: Points over unknowns, at least.
SPARE = 5


def level_form(
    X: Any, *, x_error: Any = None, names: Sequence[str] | None = None, seed: int = 0
) -> LevelForm:
    """The quadric (x - c)ᵀA(x - c) = k that points lie on, with errors and a verdict; no target is needed.

    Args:
        X: points ``(N, n)``.
        x_error: errors of the columns relative to each other, one for each or one for all, if known; otherwise errors
            are assumed to be equal in all directions of the frame, in which the points have equal spread (M18).
        names: names of the n coordinates.
        seed: the same seed gives the same answer.

    >>> turns = np.linspace(0, 6, 40)
    >>> found = level_form(np.stack([3 + 2 * np.cos(turns), np.sin(turns)], axis=1), names=["u", "v"])
    >>> found.verdict.name, found.kind, found.law()
    ('FOUND', 'ellipse', 'q(x) = 0.34 u² + 1.37 v²')
    >>> found.centre.round(6) + 0.0
    array([3., 0.])
    """
    if names is None and hasattr(X, "columns"):
        names = frame_columns(X)
    raw = as_float64(X, "X", names)
    if raw.ndim != 2:
        raise DataError(f"X has shape {raw.shape}: give points (N, n), one in each row")
    x, _, _ = check_inputs(raw, names=names)
    n = x.shape[1]
    names = variable_names(n) if names is None else tuple(names)
    if len(names) != n:
        raise DataError(f"{len(names)} names ({listed(names)}) are given for {n} columns of X: give {n}")
    check_sizes(x, names)
    unit = _unit(x)
    errors = _column_errors(x_error, n)
    rows, notices = choose(len(x), MAX_POINTS, seed), []
    if len(rows) < len(x):
        notices.append(f"{len(rows)} of {len(x)} points, chosen at random, are fitted")
    x = x[rows]
    if stop := _hopeless(x, names):
        found = LevelForm(Verdict.UNDERDETERMINED, *stop, names, points=x[:SHOWN])
    else:
        found, noted = _answer(x / unit, rows, errors, names, seed)
        found, notices = _times(found, unit), notices + noted
    return replace(found, columns=frame_columns(X), seed=seed, notices=tuple(notices))


def _unit(x: np.ndarray) -> float:
    """The size of the points as a power of two, or an error where float64 does not hold its square, the level."""
    size = float(np.abs(x).max())
    if size and not SMALLEST < size < 1 / SMALLEST:
        raise DataError(
            f"the points are of size {size:.0e}, whose square float64 does not hold: give other units"
        )
    return power_of_two(torch.tensor(size, dtype=torch.float64))


def _times(found: LevelForm, unit: float) -> LevelForm:
    """The quadric of points that are so many times larger."""
    lengths = {name: getattr(found, name) for name in ("centre", "centre_errors", "points")}
    larger: dict[str, Any] = {name: None if part is None else part * unit for name, part in lengths.items()}
    return replace(found, level=found.level * unit**2, level_error=found.level_error * unit**2, **larger)


def _column_errors(x_error: Any, n: int) -> np.ndarray | None:
    if x_error is None:
        return None
    errors = as_float64(np.atleast_1d(x_error), "x_error").ravel()
    if errors.size not in (1, n) or not (np.isfinite(errors).all() and (errors > 0).all()):
        raise DataError(f"x_error = {x_error}: give one number above zero, or one for each of {n} columns")
    unit = np.exp2(np.floor(np.log2(errors.max())))  # of their ratios alone squares stay in range
    return np.broadcast_to(errors / unit, (n,))


def _hopeless(x: np.ndarray, names: Sequence[str]) -> tuple[str, str] | None:
    """Reason and advice if the points cannot determine a quadric."""
    n = x.shape[1]
    if n < 2:
        return ("With one coordinate a quadric is two numbers.", "Give points of two or more coordinates.")
    distinct = len(np.unique(x, axis=0))
    least = max(MIN_SAMPLES, unknowns(n) + SPARE)
    if distinct < least:
        return (
            f"{distinct} different points are too few: a quadric in {n} dimensions has {unknowns(n)} unknowns.",
            f"Give at least {least} different points.",
        )
    x = x[_usual(x)]
    unit = np.abs(x - np.median(x, axis=0)).max(0)
    if not (unit > 0).all():
        still = listed([name for name, size in zip(names, unit) if not size > 0])
        return (
            f"The points do not vary in {still}.",
            "Drop these coordinates, or give points that vary in them.",
        )
    if found := redundant(x - x.mean(0), unit, names):
        rank, told = found
        return (
            f"The points lie in a flat of dimension {rank} of {n} ({told} is constant): many quadrics hold it.",
            "Drop the redundant coordinate, or give points off the flat.",
        )
    return None


def _usual(x: np.ndarray) -> np.ndarray:
    """The points without a few distant ones, which would dominate the frame."""
    away = np.abs(x - np.median(x, axis=0))
    size = np.median(away, axis=0)
    usual = (away <= UNUSUAL * np.where(size > 0, size, np.inf)).all(1)
    return usual if usual.mean() > 0.5 else np.ones(len(x), dtype=bool)


def _fit(
    x: np.ndarray, errors: np.ndarray | None, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Fit]:
    """Centre m and W of z = W(x - m), where usual points have equal spread; the errors' covariance there; the fit."""
    usual = _usual(x)
    for last in (False, True):
        m = x[usual].mean(0)
        W = Frame.of(torch.from_numpy(x[usual] - m)).W.numpy()
        noise = np.eye(len(W)) if errors is None else (W * errors**2) @ W.T
        noise = noise / np.trace(noise) * len(W)
        z = (x - m) @ W.T
        fit = weighed(z, robust(z, noise, seed), noise)
        if last or (fit.inliers == usual).all() or fit.inliers.sum() <= len(fit.theta) + 1:
            break
        usual = fit.inliers
    return m, W, noise, fit


def _answer(
    x: np.ndarray, rows: np.ndarray, errors: np.ndarray | None, names: tuple[str, ...], seed: int
) -> tuple[LevelForm, list[str]]:
    """Fit, refits, evidence, verdict; and notices."""
    m, W, noise, fit = _fit(x, errors, seed)
    z = (x - m) @ W.T
    inside = fit.inliers
    evidence = _evidence(z, fit, noise, seed)
    cells = int(inside.sum()) // 10 if evidence.structured else None
    refits = [Quadric.of(f.theta, len(W)) for f in resampled(z, fit, noise, REFITS, seed, cells)]
    columns = W * x[inside].std(0)
    quadric, evidence = settle(z[inside], Quadric.of(fit.theta, len(W)), refits, evidence, columns)
    outside, notices = tuple(rows[~inside].tolist()), []
    if outside:
        shown = ", ".join(map(str, outside[:5])) + ", …" * (len(outside) > 5)
        notices.append(
            f"{len(outside)} of {len(x)} points are outliers and were left out (rows {shown} from 0)"
        )
    if (factor := np.ptp(np.log(fit.sizes[inside]))) > 0:
        notices.append(
            f"the errors of the points vary along the surface, by a factor of {np.exp(factor):.2g}: points with larger "
            "ones count less"
        )
    if evidence.structured and evidence.distance > EXACT:
        notices.append(
            f"neighbouring points lie on the same side of the quadric (correlation {evidence.structure:.2f}): their "
            "errors go together, or the surface differs a little from a quadric; intervals allow for it"
        )
    found = with_spreads(
        _in_units(quadric, refits, evidence, Frame(torch.from_numpy(W)), m, names, columns), x[inside]
    )
    if found.free_names:
        notices.append(
            f"the centre is free in {listed(found.free_names)}: it can be anywhere in the directions of the zero "
            "eigenvalues, and the one shown is the nearest to the points"
        )
    return replace(found, outliers=outside, points=x[:SHOWN], shown_outliers=~inside[:SHOWN]), notices


def _evidence(z: np.ndarray, fit: Fit, noise: np.ndarray, seed: int) -> LevelEvidence:
    """What is known before the refits."""
    inside = fit.inliers
    null = clouds(int(inside.sum()), noise, seed)
    on = feet(z, Quadric.of(fit.theta, z.shape[1]), noise)
    seen = inside | beside(on, fit.residuals, inside)
    most = np.abs(fit.residuals[inside]).max()  # lest a few outliers decide
    alike, p = neighbours_alike(on[seen], fit.residuals[seen].clip(-most, most))
    count = unknowns(z.shape[1])
    return LevelEvidence(
        points=len(z),
        outliers=int((~inside).sum()),
        distance=fit.sigma,
        cloud=float(np.median(null)),
        nearest_cloud=float(null.min()),
        gap=fit.gap,
        second=fit.second,
        structure=alike,
        structure_p=p,
        clump_size=clump_size(z[inside], count),
        unknowns=count,
        kurtosis=kurtosis_bound(fit.residuals[inside] / np.sqrt(np.clip(1 - fit.leverage[inside], 0.1, 1.0))),
    )


def _in_units(
    quadric: Quadric,
    refits: list[Quadric],
    evidence: LevelEvidence,
    frame: Frame,
    m: np.ndarray,
    names: Any,
    columns: np.ndarray,
) -> LevelForm:
    """The answer in the coordinates of the points, x = m + W⁻¹z."""
    form: QuadraticForm = frame.form_out(torch.from_numpy(quadric.A), names)
    A, W, back = form.matrix.numpy(), frame.W.numpy(), frame.inverse.numpy()
    values, Q = np.linalg.eigh(quadric.A)
    zero = np.abs(values) <= EXACT * np.abs(values).max()
    kept, anywhere = Q[:, ~zero], free_columns(Q[:, zero], refits, columns)

    def outside(one: Quadric) -> tuple[np.ndarray, np.ndarray, float]:
        """A of the size and sign of the form, centre and level."""
        B = W.T @ one.A @ W
        factor = len(W) ** 0.5 / np.linalg.norm(B) * np.sign((B * A).sum())
        return B * factor, m + back @ centre_in(one, kept), level_in(one, kept) * factor

    _, centre, level = outside(quadric)
    matrices, centres, levels = (np.array(part) for part in zip(*map(outside, refits)))
    Qx = np.linalg.eigh(A)[1]
    verdict, reason, advice = judge(evidence)
    free = evidence.points - evidence.outliers - unknowns(len(W))
    return LevelForm(
        verdict,
        reason,
        advice,
        names,
        candidate=form,
        centre=centre,
        level=0.0 if evidence.cone else level,
        entry_errors=matrices.std(0),
        eigenvalue_errors=np.einsum("ik,bij,jk->bk", Qx, matrices, Qx).std(0),
        centre_errors=np.where(anywhere, np.nan, centres.std(0)),
        level_error=float(levels.std()),
        free=free,
        evidence=evidence,
    )
