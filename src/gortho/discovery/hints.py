"""Hints on targets: vectors that may be gradients, hence covectors; functions of a determinant, which all forms fit."""

from __future__ import annotations

import numpy as np

from gortho.reps import Scalar, Vector
from gortho.samples.values import Samples

#: Samples that hints come from.
ROWS = 2_000
#: y is parallel to Ax where the part across it makes up less than this share of its square …
PARALLEL = 0.01
#: … and to x itself unless that part is this many times as large.
MORE = 10.0
GRADIENT = (
    "in every sample y is nearly parallel to Ax with one symmetric matrix A, as the gradient of a function of xᵀAx is: "
    "if y is a gradient (a force, a slope by x), declare output='covector'; if a column of x has another unit than its "
    "column of y is made with, give both the same"
)
#: The degree of the polynomials that stand for any function of a determinant.
DEGREE = 11
#: A function of the determinant leaves less than this share of the variance.
LEFT = 0.01
VOLUME = (
    "y is a function of det[x1 … xn], the volume that the vectors span, and of nothing else: all linear maps of "
    "determinant one keep it, so that no form can be told from it"
)


def looks_like_a_gradient(samples: Samples) -> bool:
    """Whether vectors y, of one vector x each, are parallel to Ax for some symmetric A, but not to x.

    y_i (Ax)_j = y_j (Ax)_i is linear in A: the least singular vector is the best A.
    """
    if samples.rep != Vector() or samples.points != 1 or samples.n < 2:
        return False
    few = samples.rows(slice(0, ROWS)).in_units(*samples.units)
    x, y = few.x[:, 0].numpy(), few.y.numpy()
    there = (np.linalg.norm(x, axis=1) > 0) & (np.linalg.norm(y, axis=1) > 0)
    x, y = x[there] / np.linalg.norm(x[there], axis=1, keepdims=True), y[there]
    n = x.shape[1]
    upper = np.triu_indices(n)
    basis = np.zeros((len(upper[0]), n, n))
    basis[np.arange(len(basis)), upper[0], upper[1]] = basis[np.arange(len(basis)), upper[1], upper[0]] = 1.0
    if len(x) < 2 * len(basis):
        return False
    moved = np.einsum("kij,zj->zik", basis, x)
    i, j = np.triu_indices(n, 1)
    crossed = y[:, i, None] * moved[:, j] - y[:, j, None] * moved[:, i]
    best = np.linalg.svd(crossed.reshape(-1, len(basis)), full_matrices=False)[2][-1]

    def across(vectors: np.ndarray) -> float:
        size = np.maximum(np.linalg.norm(vectors, axis=1), 1e-300)
        return float(1 - np.square((vectors * y).sum(1) / size).sum() / np.square(y).sum())

    of_gradient = across(moved @ best)
    return of_gradient < PARALLEL and across(x) > MORE * of_gradient + PARALLEL


def looks_like_a_volume(samples: Samples) -> bool:
    """Whether y, of n vectors of n components, is a function of their determinant.

    Polynomials of the volume or of its logarithm then follow y, or y is alike where the volume is.
    """
    if samples.rep != Scalar() or samples.points != samples.n or samples.n < 2 or samples.set_like:
        return False
    few = samples.rows(slice(0, ROWS)).in_units(*samples.units)
    volume, y = np.linalg.det(few.x.numpy()), few.y.numpy()
    unit = np.median(np.abs(volume))
    if len(y) < 4 * DEGREE or not unit > 0 or not y.std() > 0:
        return False
    t = np.arcsinh(volume / unit)
    columns = np.polynomial.chebyshev.chebvander(t / np.abs(t).max(), DEGREE)
    columns = np.column_stack([columns, *((volume / np.abs(volume).max()) ** power for power in (1, 2, 3))])
    left = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    polynomial = np.square(left).sum() / (len(y) - columns.shape[1])
    neighbours = np.square(np.diff(y[np.argsort(volume)])).mean() / 2  # also where the function is steep
    return bool(min(polynomial, neighbours) < LEFT * y.var())
