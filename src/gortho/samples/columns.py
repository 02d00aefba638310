"""What a file offers by name: its columns or arrays, each with its first rows or why it has no numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .errors import DataError
from .kinds import kind_of

#: Rows that columns are looked at in.
LOOK = 20_000


def columns(path: Path, decimal: str = ".", rows: int = LOOK) -> Iterator[tuple[str, np.ndarray | str]]:
    """The name of each column, or array, and its first rows as float64; or why it cannot be read as numbers."""
    kind = kind_of(path)
    if kind.table is None:
        yield from (_npz if kind.zipped else _hdf5)(path, rows)
        return
    table = kind.table(path, decimal)
    for name in table.header:
        try:
            pieces = table.pieces([name], {})
            block = next((block for piece in pieces for _, block in piece.blocks(rows)), np.empty((0, 1)))
            yield name, block[:, 0]
        except DataError as error:
            yield name, str(error)


def _npz(path: Path, rows: int) -> Iterator[tuple[str, np.ndarray | str]]:
    with np.load(path, allow_pickle=False) as archive:
        for name in archive.files:
            try:
                yield name, _numbers(archive[name][:rows])
            except (ValueError, IndexError) as error:  # pickled objects, single numbers
                yield name, str(error)


def _hdf5(path: Path, rows: int) -> Iterator[tuple[str, np.ndarray | str]]:
    import h5py

    with h5py.File(path, "r") as file:
        found: dict[str, Any] = {}
        file.visititems(lambda name, item: found.update({name: item}) if hasattr(item, "shape") else None)
        for name, array in found.items():
            yield name, _numbers(array[:rows]) if array.shape else "it is a single value"


def _numbers(array: np.ndarray) -> np.ndarray | str:
    return array.astype(np.float64) if array.dtype.kind in "biuf" else f"it holds {array.dtype}, not numbers"
