"""Vectors of one or several kinds by the names of their columns: as they were given to `discover`, and afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gortho.samples.called import Labels
from gortho.samples.checks import variable_names
from gortho.samples.door import as_names, as_tuples, by_name
from gortho.samples.errors import DataError
from gortho.samples.named import frame_columns
from gortho.samples.spaces import apart, are_spaces, coordinates_of, side_by_side


def columns_of(parts: Sequence[Any]) -> tuple[str, ...]:
    """The columns of data frames, one after the other, "" for each coordinate of an array; none without data frames.

    >>> import pandas as pd
    >>> columns_of([pd.DataFrame({"x": [1.0], "y": [2.0]}), np.ones((1, 1))])
    ('x', 'y', '')
    """
    each = [frame_columns(part) or ("",) * int(np.prod(part.shape[1:])) for part in parts]
    return tuple(name for own in each for name in own) if any(map(frame_columns, parts)) else ()


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
