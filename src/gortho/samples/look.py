"""`look`: what a file contains, before its columns are assigned to x and y."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .containers import USUAL, hdf5_arrays, npz_arrays
from .errors import DataError
from .files import named
from .kinds import NPZ, TEXT, Kind, kind_of
from .suspects import LEAST_ROWS, looks_like
from .tables import INDEX, TARGET, check_header, coordinates
from .text import DECIMAL_COMMA, READABLE, UNITS_ROW, count_rows

#: Rows from which kinds and ranges of columns are determined.
LOOKED_AT = 10_000
#: Values that are shown of a column that holds no numbers, and characters of each.
EXAMPLES, SHORT = 3, 24
MISSING = READABLE - {"true", "false"} | {"nan"}
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")


@dataclass(frozen=True)
class Column:
    """A column of a table, or an array: its kind ("numbers", "whole numbers", "logical", "dates", "text", "mixed",
    "nothing", "objects"), the range of its numbers, how many are missing, some of its values, the shape and the type of
    an array, what should be known before it is used, and whether its numbers may have decimal commas.
    """

    name: str
    kind: str
    low: float | None = None
    high: float | None = None
    missing: int = 0
    examples: tuple[str, ...] = ()
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    note: str = ""
    commas: bool = False


@dataclass(frozen=True)
class Look:
    """What a file holds: columns of a table or named arrays, rows in all, and the first rows that kinds are told from.

    `x` and `y` are the columns that their names and kinds suggest for vectors and target; there may be none.
    """

    called: str
    arrays: bool
    rows: int
    looked_at: int
    columns: tuple[Column, ...]
    x: tuple[str, ...] = ()
    y: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def look(path: str | os.PathLike[str], *, decimal: str = ".") -> Look:
    """Looks at a file of any kind that `read` reads: its columns or arrays, without choosing among them.

    Pickled objects are named and not loaded. What is wrong with the file as a whole is a `DataError`.
    """
    path = Path(path).expanduser()
    kind = kind_of(path)
    with named(path):
        return _table(path, kind, decimal) if kind.table is not None else _arrays(path, kind)


def _table(path: Path, kind: Kind, decimal: str) -> Look:
    assert kind.table is not None
    table = kind.table(path, decimal)
    check_header(table)
    frame = table.head(LOOKED_AT)
    rows = table.total if table.total is not None else count_rows(path, decimal)
    if not rows:
        raise DataError("the table has a header and no rows below it: save it with its rows")
    read = [_values(frame[name], kind is TEXT, decimal) for name in table.header]
    whole = [_all_whole(values) for values, _, _ in read]
    lattice = all(is_whole for is_whole, (values, _, _) in zip(whole, read) if values is not None)
    columns = tuple(
        _column(name, *found, is_whole, lattice) for name, found, is_whole in zip(table.header, read, whole)
    )
    x, y = _suggested(columns)
    notices = (*table.notices, *_units(frame, read))
    return Look(kind.called, False, rows, min(rows, LOOKED_AT), columns, x, y, notices)


def _units(frame: Any, read: list[tuple[np.ndarray | None, int, list[str]]]) -> tuple[str, ...]:
    """A word on a first row of text above columns of numbers."""
    first = [str(cell).strip() for cell in frame.iloc[0]]
    numbers = [(cell, others) for cell, (values, _, others) in zip(first, read) if values is not None]
    if not numbers or any(others != [cell] for cell, others in numbers):
        return ()
    return (f"the first row below the header holds no numbers ({', '.join(first[:EXAMPLES])}): {UNITS_ROW}",)


def _values(column: Any, text: bool, decimal: str) -> tuple[np.ndarray | None, int, list[str]]:
    """A column as numbers, None if it holds none; how many are missing; texts in it that are no numbers."""
    import pandas as pd

    kinds = pd.api.types
    if not text and kinds.is_numeric_dtype(column.dtype) and not kinds.is_bool_dtype(column.dtype):
        values = column.to_numpy(np.float64, na_value=math.nan)
        return values, int(np.isnan(values).sum()), []
    cells = column.dropna().astype(str).str.strip()
    cells = cells[~cells.str.lower().isin(MISSING)]
    missing = len(column) - len(cells)
    spelled = cells if decimal == "." else cells.str.replace(".", "?").str.replace(decimal, ".")
    numbers = pd.to_numeric(spelled, errors="coerce")
    others = list(dict.fromkeys(cells[numbers.isna()]))
    values = numbers.dropna().to_numpy(np.float64)
    return (values if len(values) else None), missing, others


def _all_whole(values: np.ndarray | None) -> bool:
    if values is None or not np.isfinite(values).any():
        return False
    finite = values[np.isfinite(values)]
    return bool((finite == np.round(finite)).all())


def _column(
    name: str, values: np.ndarray | None, missing: int, others: list[str], whole: bool, lattice: bool
) -> Column:
    """What is said of a column."""
    shown = tuple(text if len(text) <= SHORT else text[: SHORT - 1] + "…" for text in others[:EXAMPLES])
    if others:
        logical = values is None and {text.lower() for text in others} <= {"true", "false"}
        dates = all(DATE.fullmatch(text) for text in others)
        kind = "mixed" if values is not None else "logical" if logical else "dates" if dates else "text"
        commas = all(DECIMAL_COMMA.fullmatch(text) for text in others)
        note = f"{others[0]!r} is not a number" if kind == "mixed" and not commas else ""
        return Column(name, kind, missing=missing, examples=shown, note=note, commas=commas)
    finite = values[np.isfinite(values)] if values is not None else np.empty(0)
    if not len(finite):
        return Column(name, "nothing", missing=missing)
    note = "the same in all rows" if finite.min() == finite.max() else ""
    endless = int(np.isinf(values).sum()) if values is not None else 0
    if endless:
        note = f"{endless} infinite"
    if whole and not note and len(finite) >= LEAST_ROWS:
        note = looks_like(finite, lattice)
    kind = "whole numbers" if whole else "numbers"
    return Column(name, kind, float(finite.min()), float(finite.max()), missing, note=note)


def _suggested(columns: tuple[Column, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """x and y by their names; x without what may not be a coordinate, and no y where x, y and z are coordinates."""
    names = [column.name for column in columns]
    y = tuple(name for name in names if TARGET.match(name))
    y = () if coordinates(y, names) else y
    plain = [c.name for c in columns if c.kind.endswith("numbers") and not c.note]
    return tuple(name for name in plain if name not in y and not INDEX.match(name)), y


def _arrays(path: Path, kind: Kind) -> Look:
    """What is said of arrays, from their headers: "objects" are pickles in an .npz, and text in HDF5."""
    kinds = {"f": "numbers", "i": "whole numbers", "u": "whole numbers", "b": "logical"}
    columns: dict[str, Column] = {}
    for name, (shape, dtype) in (npz_arrays if kind is NPZ else hdf5_arrays)(path).items():
        of, note = kinds.get(dtype.kind, "text"), "" if shape else "a single value, not one row per sample"
        if dtype.hasobject and not (dtype.metadata and "vlen" in dtype.metadata):
            of, note = "objects", "pickled Python objects, which are not loaded because they can run code"
        columns[name] = Column(name, of, shape=tuple(shape), dtype=str(dtype), note=note)
    if not columns:
        raise DataError("the file holds no arrays: save it with x and y")
    usual = [next((columns[name] for name in names if name in columns), None) for names in USUAL.values()]
    x, y = ((c.name,) if c is not None and c.kind != "objects" else () for c in usual)
    first = columns[x[0]] if x else next(iter(columns.values()))
    rows = first.shape[0] if first.shape else 0
    return Look(kind.called, True, rows, 0, tuple(columns.values()), x, y)
