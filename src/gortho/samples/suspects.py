"""Columns that may not be coordinates: identifiers, dates, categories, whole numbers among real ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .errors import DataError

#: Beyond this size all floating-point numbers are whole.
EXACT = 2.0**53
#: Fewer rows than this tell nothing about a column.
LEAST_ROWS = 20
#: A column with at most this many values, each in this many rows on average, may be a category.
VALUES, ROWS_EACH = 20, 5
#: Numbers this many median deviations from the median are far from the others.
FAR = 10.0
#: Ranges of whole numbers that clocks and calendars write: years, seconds and milliseconds since 1970.
CLOCKS = {
    "a year": (1900, 2100),
    "seconds since 1970": (1e9, 2.2e9),
    "milliseconds since 1970": (1e12, 2.2e12),
}
#: Sizes of columns may differ by this factor: entries of a form differ by its square, which float64 must hold.
MOST_APART = 1e145


def check_sizes(X: np.ndarray, names: Sequence[str]) -> None:
    """Raises a DataError where no form of these columns can be written in float64.

    >>> try:
    ...     check_sizes(np.array([[1e90, 2e-90]]), ["a", "b"])
    ... except DataError as error:
    ...     print(str(error).partition(":")[0])
    the sizes of 'a' (1e+90) and 'b' (2e-90) are too far apart for one form
    """
    sizes = np.abs(X.reshape(-1, X.shape[-1])).max(axis=0)
    there = np.flatnonzero(sizes)
    if not len(there):
        return
    large, small = there[np.argmax(sizes[there])], there[np.argmin(sizes[there])]
    if sizes[large] / MOST_APART > sizes[small]:
        raise DataError(
            f"the sizes of {names[large]!r} ({sizes[large]:.0e}) and {names[small]!r} ({sizes[small]:.0e}) are too far "
            "apart for one form: give one of them in other units"
        )


def suspects(X: np.ndarray, names: Sequence[str]) -> list[str]:
    """Notices on columns that may not be coordinates, and on numbers that may stand for missing ones."""
    return others(X, names) + codes(X, names)


def others(X: np.ndarray, names: Sequence[str]) -> list[str]:
    """A notice that names the columns of X ``(N, n)`` or ``(N, p, n)`` that may not be coordinates, if there are any.

    Whole numbers are suspicious only beside real ones: indices of a lattice are coordinates.

    >>> x = np.random.default_rng(0).normal(size=(30, 2))
    >>> others(np.column_stack([np.arange(30), x]), ["event", "px", "py"])[0][:62]
    "some columns may not be coordinates: 'event' (counts the rows)"
    """
    flat = X.reshape(-1, X.shape[-1])
    whole = ((flat == np.round(flat)) & (np.abs(flat) < EXACT)).all(axis=0)
    if len(X) < LEAST_ROWS or not whole.any():
        return []
    found = {name: looks_like(flat[:, k], bool(whole.all())) for k, name in enumerate(names) if whole[k]}
    told = [f"{name!r} ({kind})" for name, kind in found.items() if kind]
    if not told:
        return []
    return [
        f"some columns may not be coordinates: {', '.join(told)}. A form takes squares and products of them: leave out "
        "what has none, or give it as scalars="
    ]


def codes(X: np.ndarray, names: Sequence[str]) -> list[str]:
    """A notice on numbers such as -999 that stand far from all others, again and again: codes for missing values?

    >>> x = np.random.default_rng(0).normal(size=(30, 2))
    >>> x[3:6, 1] = -999
    >>> codes(x, ["vx", "vy"])[0][:26]
    "'vy' is -999 in 3 of 30 ro"
    """
    told = []
    for k, name in enumerate(names):
        values = X.reshape(-1, X.shape[-1])[:, k]
        middle = np.median(values)
        width = np.median(np.abs(values - middle))
        far, counts = np.unique(values[np.abs(values - middle) > FAR * width], return_counts=True)
        told += [
            f"{name!r} is {value:g} in {count} of {len(values)} rows"
            for value, count in zip(far, counts)
            if count > 1 and set(f"{abs(value):.0f}") == {"9"} and abs(value) > 90 and value == round(value)
        ]
    return (
        [f"{', '.join(told)}, far from all others: if that stands for missing, leave these rows out"]
        if told
        else []
    )


def looks_like(values: np.ndarray, lattice: bool) -> str:
    """What a column of whole numbers looks like; "" if nothing but coordinates, as in a lattice."""
    distinct = np.unique(values)
    low, high = distinct[0], distinct[-1]
    if low == high:
        return ""  # said elsewhere
    if len(distinct) == len(values) and high - low == len(values) - 1:
        return "counts the rows"
    if low >= 19000101 and high <= 21001231:
        month, day = distinct // 100 % 100, distinct % 100
        if ((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all():
            return "dates as YYYYMMDD"
    for name, (first, last) in CLOCKS.items():
        if low >= first and high <= last:
            return name
    if lattice:
        return ""
    if len(distinct) <= VALUES and len(distinct) * ROWS_EACH <= len(values):
        return f"{len(distinct)} values only, a category?"
    return "whole numbers"
