"""Targets from trajectories: dx/dt by smoothing splines, with the standard errors of the slopes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .checks import as_float64
from .errors import DataError

#: Points that a smoothing spline needs.
LEAST_POINTS = 5
#: Powers of ten that are tried for the weight of the curvature: the first, the end, and their distance.
STIFFNESS = (-16.0, 3.0, 1.0)
#: Random vectors that a trace comes from; of as many points or fewer it is exact.
PROBES = 64
#: Degrees of freedom count this many times, as is usual: else few points are now and then hardly smoothed at all.
DEARER = 1.4
#: What stands for zero in logarithms.
TINY = 1e-300
#: Curves with fresh noise that the errors of slopes come from.
COPIES = 16


class Derivatives(NamedTuple):
    """Smoothed x ``(N, n)``, slopes dx/dt ``(N, n)`` and the standard errors of the slopes ``(N, n)``."""

    x: np.ndarray
    slopes: np.ndarray
    errors: np.ndarray


def derivatives(x: Any, t: Any, by: Any = None, seed: int = 0) -> Derivatives:
    """Slopes of trajectories x(t), with rows in any order; `by` is the trajectory of each row.

    Each coordinate of each trajectory is smoothed by a cubic spline, chosen by generalised cross-validation. The
    noise is estimated from neighbours (deviations from a straight line between them); errors of the slopes are their
    spread when the spline is fitted again to the smooth curve with fresh noise of that size. They do not include the
    bias of smoothing. Pass the results on as ``discover(d.x, d.slopes, "vector", y_error=d.errors)``.

    >>> t = np.linspace(0, 3, 60)
    >>> d = derivatives(np.stack([np.cos(t), np.sin(t)], axis=1), t)
    >>> bool(np.abs(d.slopes[5:-5, 1] - np.cos(t)[5:-5]).max() < 1e-3)
    True
    """
    x, t = as_float64(x, "x"), as_float64(t, "t").reshape(-1)
    run = np.zeros(len(t)) if by is None else np.asarray(by).reshape(-1)
    if x.ndim != 2 or not len(x) == len(t) == len(run):
        raise DataError(
            f"x has shape {x.shape}, there are {len(t)} times and {len(run)} names of trajectories: x must be (N, n), "
            "with as many of each"
        )
    if not (np.isfinite(x).all() and np.isfinite(t).all()):
        raise DataError("x or the times hold NaN or infinite values: drop these rows")
    parts = [np.empty_like(x) for _ in range(3)]
    rng = np.random.default_rng(seed)
    for name in np.unique(run):
        rows = np.flatnonzero(run == name)
        rows = rows[np.argsort(t[rows], kind="stable")]
        told = f"trajectory {name:g}" if isinstance(name, float) else f"trajectory {name}"
        if len(rows) < LEAST_POINTS:
            raise DataError(f"{told} has {len(rows)} points: a slope needs {LEAST_POINTS}, drop shorter ones")
        if not (np.diff(t[rows]) > 0).all():
            raise DataError(f"{told} has two points at one time: name the trajectories by by=, or drop one")
        for k in range(x.shape[1]):
            for part, values in zip(parts, _smoothed(t[rows], x[rows, k], rng)):
                part[rows, k] = values
    return Derivatives(*parts)


def _smoothed(t: np.ndarray, x: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Smooth values, slopes and their errors of one coordinate, at the times t in order."""
    from scipy.interpolate import make_smoothing_spline

    unit, length = np.abs(x).max() or 1.0, t[-1] - t[0]
    u, v = (t - t[0]) / length, x / unit  # order one, so that any units do
    stiffness = _stiffness(u, v)
    spline = make_smoothing_spline(u, v, lam=stiffness)
    smooth, slopes, noise = spline(u), spline.derivative()(u), _noise(u, v)
    fresh = smooth[:, None] + noise * rng.standard_normal((len(u), COPIES))
    copies = make_smoothing_spline(u, fresh, lam=stiffness).derivative()(u)
    errors = np.sqrt(np.square(copies - slopes[:, None]).mean(1))
    floor = np.finfo(np.float64).eps * max(1.0, float(np.abs(slopes).max()))
    return smooth * unit, slopes * (unit / length), np.maximum(errors, floor) * (unit / length)


def _stiffness(t: np.ndarray, x: np.ndarray) -> float:
    """The weight of the curvature that generalised cross-validation prefers, for times from 0 to 1.

    scipy computes it too, but does not return it, and takes seconds for thousands of points, because its trace is
    exact. Here the trace of many points is estimated with random vectors.
    """
    from scipy.interpolate import make_smoothing_spline
    from scipy.optimize import minimize_scalar

    n = len(t)
    signs = np.random.default_rng(0).integers(0, 2, size=(n, PROBES)) * 2.0 - 1
    probes = np.eye(n) if n <= PROBES else signs
    both = np.column_stack([x, probes])

    def score(log: float) -> float:
        smooth = make_smoothing_spline(t, both, lam=10.0**log)(t)
        missed = np.square(x - smooth[:, 0]).mean()
        used = (probes * smooth[:, 1:]).sum() / (probes.shape[1] if n > PROBES else 1) / n
        return float(np.log(max(missed, TINY)) - 2 * np.log(max(1 - DEARER * used, TINY)))

    logs = np.arange(*STIFFNESS)
    best = logs[int(np.argmin([score(log) for log in logs]))]
    step = STIFFNESS[2]
    found = minimize_scalar(
        score, bounds=(best - step, best + step), method="bounded", options={"xatol": 0.02}
    )
    return float(10.0**found.x)


def _noise(t: np.ndarray, x: np.ndarray) -> float:
    """Standard deviation of the noise, from deviations of points from the line between their neighbours."""
    left = (t[2:] - t[1:-1]) / (t[2:] - t[:-2])
    missed = left * x[:-2] + (1 - left) * x[2:] - x[1:-1]
    return float(np.sqrt(np.mean(np.square(missed) / (1 + left**2 + (1 - left) ** 2))))
