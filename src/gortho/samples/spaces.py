"""Vectors of several kinds, of different dimension, as one array: shorter ones are padded with zeros (M17)."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from gortho.samples.checks import as_float64
from gortho.samples.errors import DataError
from gortho.samples.named import frame_columns
from gortho.samples.tables import component_names

#: Letters for coordinates of three kinds at most that have no names: x1, x2, … are the vectors.
LETTERS = "uvw"


def are_spaces(X: Any) -> bool:
    """Whether X is a list of arrays, one for each kind of vector, rather than one array."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(getattr(part, "ndim", 0) >= 2 for part in X)


def side_by_side(parts: Sequence[Any]) -> tuple[np.ndarray, tuple[int, ...], tuple[int, ...]]:
    """Arrays ``(N, n_i)`` or ``(N, p_i, n_i)``, one for each kind, as ``(N, p, n)``, with spaces and dimensions.

    >>> x, spaces, dims = side_by_side([np.ones((5, 2, 3)), np.ones((5, 2))])
    >>> x.shape, spaces, dims, x[0, 2]
    ((5, 3, 3), (0, 0, 1), (3, 2), array([1., 1., 0.]))
    """
    arrays = [as_float64(part, f"X[{i}]", frame_columns(part)) for i, part in enumerate(parts)]
    arrays = [a[:, None] if a.ndim == 2 else a for a in arrays]
    shapes = [a.shape for a in arrays]
    if any(len(shape) != 3 for shape in shapes) or len({shape[0] for shape in shapes}) > 1:
        raise DataError(
            f"X is a list of arrays of shapes {reprlib.repr(shapes)}: give (N, n) or (N, p, n) each, with the same N"
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


def coordinates_of(
    names: Sequence[str], spaces: Sequence[int], dims: Sequence[int]
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """What the coordinates of each kind of vector, and of each vector, are called.

    The names are those of all columns, or of the coordinates kind by kind, or of the longest kind, of which the others
    have the first ones; none are letters with a number.

    >>> coordinates_of(["rx", "ry", "rz", "u", "v"], [0, 1], [3, 2])[0]
    [('rx', 'ry', 'rz'), ('u', 'v')]
    >>> coordinates_of([], [0, 0, 1], [2, 1])
    ([('u0', 'u1'), ('v0',)], [('u0_1', 'u1_1'), ('u0_2', 'u1_2'), ('v0',)])
    """
    sizes = [dims[space] for space in spaces]
    counts = [list(spaces).count(space) for space in range(len(dims))]
    if names and len(names) == sum(sizes):
        columns = _cut(names, sizes)
        own = [[c for c, kind in zip(columns, spaces) if kind == space] for space in range(len(dims))]
        return [component_names([n for c in some for n in c], len(some)) for some in own], columns
    if not names:
        few = len(dims) <= len(LETTERS)
        stems = LETTERS if few else [f"u{place + 1}_" for place in range(len(dims))]
        kinds = [tuple(f"{stem}{k}" for k in range(d)) for stem, d in zip(stems, dims)]
    elif len(names) == sum(dims):
        kinds = _cut(names, dims)
    elif len(names) == max(dims):
        kinds = [tuple(names[:d]) for d in dims]
    else:
        raise DataError(
            f"{len(names)} names for vectors of {' and '.join(map(str, dims))} components: give {sum(dims)}"
        )
    seen = [list(spaces[: place + 1]).count(space) for place, space in enumerate(spaces)]
    each = [
        tuple(f"{name}_{i}" if counts[space] > 1 else name for name in kinds[space])
        for i, space in zip(seen, spaces)
    ]
    return kinds, each


def _cut(names: Sequence[str], sizes: Sequence[int]) -> list[tuple[str, ...]]:
    """Names in pieces of these sizes."""
    ends = np.cumsum(sizes)
    return [tuple(names[end - size : end]) for size, end in zip(sizes, ends)]
