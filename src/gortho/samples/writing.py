"""`write`: predictions to a file, in the formats that `read` reads."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gortho.files import whole

from .errors import DataError
from .kinds import ARRAYS

SUFFIXES = (".npz", ".csv", ".tsv", ".parquet", ".h5", ".hdf5")


def check_writable(path: str | os.PathLike[str], suffixes: Sequence[str] = SUFFIXES) -> Path:
    """The path, once it is clear that it can be written to: a known suffix in an existing folder."""
    path = Path(path).expanduser()
    if path.suffix.lower() not in suffixes:
        raise DataError(
            f"{path.name} has the suffix {path.suffix!r}, which is not written: use {', '.join(suffixes)}"
        )
    if path.is_dir():
        raise DataError(f"{path} is a directory: give a file name")
    if not path.parent.is_dir():
        raise DataError(f"the folder {path.parent} does not exist: make it first")
    return path


def write(
    path: str | os.PathLike[str],
    y: np.ndarray,
    columns: Sequence[str] = ("y",),
    more: Mapping[str, np.ndarray] | None = None,
    kept: np.ndarray | None = None,
) -> Path:
    """Writes y (N, ...), row by row: as an array y, or as columns of a table; and `more` arrays (N,) by their names.

    One name for several values stands for name_0, name_1, ... Rows that were not kept are empty, or nan.
    """
    path = check_writable(path)
    table = path.suffix.lower() not in ARRAYS
    arrays = {name: in_all_rows(values, kept, table) for name, values in {"y": y, **(more or {})}.items()}
    with whole(path) as place:  # half a file of predictions looks like all of them
        _write(place, path.suffix.lower(), arrays, columns)
    return path


def in_all_rows(values: np.ndarray, kept: np.ndarray | None, table: bool = True) -> np.ndarray:
    """Values of the rows that were kept, at their places among all rows; the others are nan, or empty texts.

    In a table, classes that are whole numbers or logical stay so, and the others are None.

    >>> in_all_rows(np.array([1.0, 2.0]), np.array([True, False, True]))
    array([ 1., nan,  2.])
    >>> in_all_rows(np.array([1, 2]), np.array([True, False, True]))
    array([1, None, 2], dtype=object)
    """
    values = np.asarray(values)
    if kept is None:
        return values
    empty: Any = math.nan
    kind: Any = float
    if values.dtype.kind in "US":
        empty, kind = "", values.dtype
    elif table and values.dtype.kind in "biu":
        empty, kind = None, object
    filled = np.full((len(kept), *values.shape[1:]), empty, kind)
    filled[kept] = values
    return filled


def _write(path: Path, suffix: str, arrays: dict[str, Any], columns: Sequence[str]) -> None:
    if suffix == ".npz":
        with path.open("wb") as file:
            np.savez(file, **arrays)
    elif suffix in (".h5", ".hdf5"):
        import h5py

        with h5py.File(path, "w") as file:
            for name, values in arrays.items():
                file[name] = values.astype(object) if values.dtype.kind == "U" else values
    else:
        import pandas as pd

        y = arrays.pop("y")
        flat = y.reshape(len(y), -1)
        if len(columns) == 1 < flat.shape[1]:
            columns = [f"{columns[0]}_{k}" for k in range(flat.shape[1])]
        table = pd.DataFrame(flat, columns=list(columns)).assign(**arrays)
        if suffix == ".parquet":
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
