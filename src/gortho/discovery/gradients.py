"""Targets that look like gradients: given as vectors, they may be covectors."""

from __future__ import annotations

import numpy as np

from gortho.reps import Vector
from gortho.samples.values import Samples

#: Samples that this is told from.
ROWS = 2_000
#: y is parallel to Ax where the part across it makes up less than this share of its square …
PARALLEL = 0.01
#: … and to x itself unless that part is so many times as large.
MORE = 10.0
NOTE = (
    "in every sample y is nearly parallel to Ax with one symmetric matrix A, as the gradient of a function of xᵀAx is: "
    "if y is a gradient (a force, a slope by x), declare output='covector'; if a column of x has another unit than its "
    "column of y is made with, give both the same"
)


def looks_like_a_gradient(samples: Samples) -> bool:
    """Whether vectors y, of one vector x each, are parallel to Ax for some symmetric A, but not to x.

    y_i (Ax)_j = y_j (Ax)_i is linear in A: the least singular vector is the best A.
    """
    if samples.rep != Vector() or samples.points != 1:
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
