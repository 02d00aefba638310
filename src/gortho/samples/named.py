"""Tables that belong together: scalars by the names of their columns, and rows in the same order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gortho.samples.errors import DataError, listed, missing

#: Names that scalars get in a formula if they have none.
PLAIN = re.compile(r"[sc](\d+(_\d+)?)?")
#: Names of the columns of each table of scalars: "point", "sample", or "" where one table was given.
Columns = Mapping[str, tuple[str, ...]]


def frame_columns(X: Any) -> tuple[str, ...]:
    """The names of a data frame's columns, those of several levels joined by dots; none for arrays."""
    columns = getattr(X, "columns", ())
    return tuple(".".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in columns)


def scalar_columns(scalars: Any) -> dict[str, tuple[str, ...]]:
    """The names of the scalars that were given as data frames.

    >>> import pandas as pd
    >>> scalar_columns(pd.DataFrame({"m": [1.0], "k": [2.0]}))
    {'': ('m', 'k')}
    """
    tables = scalars if isinstance(scalars, dict) else {"": scalars}
    return {str(part): names for part, table in tables.items() if (names := frame_columns(table))}


def told_columns(names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The names of a formula's scalars, if they are not the plain ones."""
    return {} if all(map(PLAIN.fullmatch, names)) else {"": names}


def scalars_by_name(scalars: Any, columns: Columns) -> Any:
    """Scalars with the columns of data frames in the order of `columns`; what is no data frame stays as it is."""
    if not isinstance(scalars, dict):
        return _selected(
            scalars, columns.get("") or (next(iter(columns.values())) if len(columns) == 1 else ())
        )
    single = columns.get("", ()) if len(scalars) == 1 else ()
    return {part: _selected(table, columns.get(part, single)) for part, table in scalars.items()}


def _selected(table: Any, names: tuple[str, ...]) -> Any:
    given = frame_columns(table)
    if not given or not names:
        return table
    absent = [name for name in names if name not in given]
    if absent:
        raise missing("scalar", absent[0], given)
    repeated = [name for name in names if given.count(name) > 1]
    if repeated:
        raise DataError(f"scalars have {repeated[0]!r} more than once: rename the columns")
    return table.iloc[:, [given.index(name) for name in names]]


def check_counts(given: Sequence[Any], counts: Sequence[int], columns: Columns) -> None:
    """Refuse scalars of points and of samples that are not as many as a predictor was made with."""
    for of, array, count in zip(("point", "sample"), given, counts):
        got = 0 if array is None else array.shape[-1]
        if got != count:
            names = columns.get(of) or columns.get("", ())
            told = f" ({listed(names)})" if names and count else ""
            raise DataError(
                f"the run was made with {count or 'no'} scalar{'s' * (count != 1)} for each {of}{told}, and "
                f"{got or 'none'} {'are' if got > 1 else 'is'} given: "
                + ("give them by scalars=" if count else "leave out scalars")
            )


def check_lengths(given: Sequence[Any], rows: int) -> None:
    """Refuse scalars that have not one row for each sample."""
    for array in given:
        if array is not None and len(array) != rows:
            raise DataError(
                f"X has {rows} row{'s' * (rows != 1)} and scalars has {len(array)}: they must have one row per sample "
                "each"
            )


def check_rows(**tables: Any) -> None:
    """Refuse tables whose labels say that row i of one does not belong to row i of the other."""
    flat: dict[str, Any] = {}
    for name, table in tables.items():
        parts: dict[Any, Any] = table if isinstance(table, dict) else {"": table}
        if isinstance(table, list | tuple) and all(getattr(part, "ndim", 0) >= 2 for part in table):
            parts = dict(enumerate(table))
        flat |= {name if part == "" else f"{name}[{part!r}]": one for part, one in parts.items()}
    labelled = {name: t.index for name, t in flat.items() if hasattr(getattr(t, "index", None), "equals")}
    for name, labels in labelled.items():
        first, known = next(iter(labelled.items()))
        if len(known) != len(labels) or known.equals(labels):
            continue
        if not known.difference(labels).size and not labels.difference(known).size:
            raise DataError(
                f"{first} and {name} have the same labels of rows in another order: give {name}.loc[{first}.index]"
            )
        if known.is_unique and labels.is_unique:
            _check_places(first, known, name, labels)


def _check_places(first: str, known: Any, name: str, labels: Any) -> None:
    """Refuse tables that have most of their labels in common, some of them in other rows: "d.iloc[1:], s.iloc[:-1]"."""
    places = labels.get_indexer(known)
    there = places >= 0
    moved = there & (places != range(len(places)))
    if 2 * there.sum() <= len(places) or not moved.any():
        return
    row = int(moved.argmax())
    raise DataError(
        f"{first} and {name} have {there.sum()} of {len(places)} labels of rows in common, but in different rows: "
        f"{known[row]!r} is that of row {row} of {first} and of row {places[row]} of {name}. Give the rows of both "
        f"with .loc[{first}.index.intersection({name}.index)]; if they belong together as they stand, give both with "
        ".reset_index(drop=True)"
    )
