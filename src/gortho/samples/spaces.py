"""Vectors of several kinds, of different dimension, as one array: shorter ones are padded with zeros (M17)."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from gortho.samples.called import Labels
from gortho.samples.checks import as_array, variable_names
from gortho.samples.door import as_names, as_tuples, by_name
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
    arrays = [as_array(part, f"X[{i}]").astype(np.float64) for i, part in enumerate(parts)]
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


def columns_of(parts: Sequence[Any]) -> tuple[str, ...]:
    """The columns of data frames, one after the other, "" for each coordinate of an array; none without data frames.

    >>> import pandas as pd
    >>> columns_of([pd.DataFrame({"x": [1.0], "y": [2.0]}), np.ones((1, 1))])
    ('x', 'y', '')
    """
    each = [frame_columns(part) or ("",) * int(np.prod(part.shape[1:])) for part in parts]
    return tuple(name for own in each for name in own) if any(map(frame_columns, parts)) else ()


def as_found(
    X: Any, kinds: Sequence[Sequence[str]], spaces: Sequence[int], columns: Sequence[str] = ()
) -> Any:
    """Inputs as in `discover` for a law that was found, ``(N, n)`` or ``(N, p, n)``; data frames by name.

    ``kinds`` are the names of the coordinates of each kind of vector, ``spaces`` the kind of each vector, and
    ``columns`` those of data frames that were given, as from `columns_of`.

    >>> import pandas as pd
    >>> as_found([pd.DataFrame({"y": [2.0], "x": [1.0]}), np.ones((1, 1))], [("x", "y"), ("u",)], [0, 1])
    array([[[1., 2.],
            [1., 0.]]])
    """
    dims = [len(kind) for kind in kinds]
    sizes = [dims[space] for space in spaces]
    if are_spaces(X):
        return side_by_side(_by_names(X, kinds, spaces, columns))[0]
    if len(set(dims)) == 1:
        return as_tuples(by_name(X, kinds[0], columns, len(sizes)))
    each = coordinates_of([name for kind in kinds for name in kind], spaces, dims)[1]
    names = _or_plain([name for own in each for name in own], coordinates_of([], spaces, dims)[1], X)
    if frame_columns(X) and len(set(names)) < len(names):
        raise DataError("vectors have columns of the same names: give a list of tables, one for each kind")
    flat = as_tuples(by_name(X, names, columns))
    if flat.shape[1:] == (sum(sizes),):
        return side_by_side(apart(np.asarray(flat), sizes))[0]
    if flat.shape[1:] != (len(sizes), max(sizes)):
        raise DataError(
            f"X has shape {tuple(flat.shape)}: give a list of arrays (N, n), one for each kind of vector, of "
            f"{', '.join(map(str, sizes))} components"
        )
    return flat


def _by_names(
    X: Sequence[Any], kinds: Sequence[Sequence[str]], spaces: Sequence[int], columns: Sequence[str]
) -> list[Any]:
    """The parts of a list with the columns of data frames in the order that was found; of the right dimensions."""
    counts = [part.shape[1] if part.ndim > 2 else 1 for part in X]
    dims = [len(kind) for kind in kinds]
    if len(set(dims)) == 1 and len(spaces) != sum(counts):
        spaces = [0] * sum(counts)  # a set of other points
    plain = coordinates_of([], spaces, dims)[0]
    sizes = [dims[space] for space in spaces]
    parts = []
    for part, first in zip(X, np.cumsum([0, *counts])):
        if frame_columns(part) and first < len(sizes):
            kind, at = spaces[first], sum(sizes[:first])
            own, names = columns[at : at + sizes[first]], _or_plain(kinds[kind], [plain[kind]], part)
            numbered = all(map(str.startswith, own, kinds[kind])) and names == variable_names(len(names))
            part = by_name(part, names, () if numbered or "" in own else own)
        parts.append(part)
    given = [part.shape[-1] for part, count in zip(parts, counts) for _ in range(count)]
    if given != sizes:
        there, found = (", ".join(map(str, numbers)) for numbers in (given, sizes))
        raise DataError(
            f"X has vectors of {there} components, and the law was found with {found}: give these"
        )
    return parts


def _or_plain(names: Sequence[str], plain: Sequence[Sequence[str]], table: Any) -> Sequence[str]:
    """The names, or those of coordinates without names if that is what they are, and the table has others."""
    unnamed = tuple(names) == tuple(name for own in plain for name in own)
    there = set(names) <= set(frame_columns(table))
    return variable_names(len(names)) if unnamed and not there else names


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


def with_names(
    names: Any, labels: Labels, columns: Sequence[str], spaces: Sequence[int], dims: Sequence[int]
) -> tuple[list[tuple[str, ...]], Any, Labels]:
    """Names of the coordinates of each kind, and of the longest, and labels with those of each vector.

    ``columns`` are those of `columns_of`. Kinds of one dimension have the names of the first data frame.
    """
    if len(set(dims)) > 1:
        plain = [name for own in coordinates_of([], spaces, dims)[1] for name in own]
        known = [name or other for name, other in zip(columns, plain)]
        kinds, each = coordinates_of(as_names(names, known) or [], spaces, dims)
        n = max(dims)
        flat = tuple(name for own in each for name in (*own, *[""] * (n - len(own))))  # filled up
        return kinds, kinds[dims.index(n)], replace(labels, coordinates=flat)
    if names is None and columns:
        vectors = [tuple(columns[i : i + dims[0]]) for i in range(0, len(columns), dims[0])]
        names = next(own for own in vectors if all(own))
        if all(columns) and len(set(columns)) == len(columns):
            labels = replace(labels, coordinates=labels.coordinates or tuple(columns))
    return [], names, labels
