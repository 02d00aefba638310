"""Vectors of several kinds, of different dimension, as one array: shorter ones are filled up with zeros (M17)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from gortho.samples.checks import as_array
from gortho.samples.errors import DataError


def are_spaces(X: Any) -> bool:
    """Whether X is a list of arrays, one for each kind of vector, rather than one array."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(getattr(part, "ndim", 0) >= 2 for part in X)


def side_by_side(parts: Sequence[Any]) -> tuple[np.ndarray, tuple[int, ...], tuple[int, ...]]:
    """Arrays ``(N, n_i)`` or ``(N, p_i, n_i)``, one for each kind, as ``(N, p, n)``, with spaces and dimensions.

    >>> x, spaces, dims = side_by_side([np.ones((5, 2, 3)), np.ones((5, 2))])
    >>> x.shape, spaces, dims, x[0, 2]
    ((5, 3, 3), (0, 0, 1), (3, 2), array([1., 1., 0.]))
    """
    arrays = [as_array(part, f"X[{i}]").astype(np.float64) for i, part in enumerate(parts)]
    arrays = [a[:, None] if a.ndim == 2 else a for a in arrays]
    shapes = [a.shape for a in arrays]
    if any(len(shape) != 3 for shape in shapes) or len({shape[0] for shape in shapes}) > 1:
        raise DataError(
            f"X is a list of arrays of shapes {shapes}: give (N, n) or (N, p, n) each, with the same N"
        )
    n = max(shape[2] for shape in shapes)
    padded = [np.pad(a, ((0, 0), (0, 0), (0, n - a.shape[2]))) for a in arrays]
    spaces = tuple(place for place, shape in enumerate(shapes) for _ in range(shape[1]))
    return np.concatenate(padded, 1), spaces, tuple(shape[2] for shape in shapes)


def apart(X: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """Rows of columns ``(N, ·)`` as vectors of these sizes: arrays ``(N, p_i, n_i)``, neighbours of one size together.

    >>> [part.shape for part in apart(np.ones((5, 8)), [3, 3, 2])]
    [(5, 2, 3), (5, 1, 2)]
    """
    flat = X.reshape(len(X), -1)
    if sum(sizes) != flat.shape[1] or min(sizes) < 1:
        raise DataError(
            f"x has {flat.shape[1]} columns, and vectors of {', '.join(map(str, sizes))} components need "
            f"{sum(sizes)}: change dims or the columns of x"
        )
    parts, at = [], 0
    for n, group in groupby(sizes):
        p = len(list(group))
        parts.append(flat[:, at : at + p * n].reshape(-1, p, n))
        at += p * n
    return parts
