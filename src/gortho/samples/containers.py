"""Readers for files of named arrays: .npz and HDF5."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import chunks
from .checks import as_float64
from .chunks import Chunks, Named, Reader, pieces_of, slices
from .errors import DataError, missing, undamaged
from .labels import Codes
from .sampling import BYTES, sizes
from .wanted import MORE, Wanted

#: The names of the arrays that are read, by their part in a sample.
Picked = dict[str, tuple[str, ...]]
#: Shapes and types of arrays, by their names.
Headers = dict[str, tuple[tuple[int, ...], np.dtype]]
#: Arrays that are taken for x and y where nothing is said.
USUAL = {"x": ("X", "x"), "y": ("y", "Y")}
#: What readers raise of a bad file.
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, KeyError, ValueError)


def _pick(
    what: str, wanted: Any, usual: Sequence[str], has: Callable[[str], bool], names: list[str]
) -> tuple[str, ...]:
    """The arrays' names: those asked for, or the first of the usual ones that exists."""
    if wanted is None:
        for name in usual:
            if has(name):
                return (name,)
        raise DataError(f"{missing('array', usual[0], names)}; name it by {what}=")
    several = not isinstance(wanted, str) or ("," in wanted and not has(wanted))
    parts = map(str, wanted.split(",") if isinstance(wanted, str) else wanted)
    picked = tuple(part if has(part) else part.strip() for part in parts) if several else (wanted,)
    for name in picked or ("",):
        if not name or not has(name):
            raise missing("array", name, names)
    if len(picked) > 1 and what != "x":
        raise DataError(f"{what}={','.join(picked)}: in a file of arrays, {what} is the name of one array")
    return picked


def _picks(wanted: Wanted, has: Callable[[str], bool], names: list[str]) -> Picked:
    """The names of the arrays by part; without y if targets are not wanted, or optional and absent."""
    if wanted.drop is not None:
        raise DataError(
            "drop= names columns of a table: in a file of arrays, say which are coordinates by x="
        )
    y = wanted.y
    picked = {"x": _pick("x", wanted.x, USUAL["x"], has, names)}
    hoped = USUAL["y"] if y is None else [y] if isinstance(y, str) else y
    if wanted.needs_y or (wanted.needs_y is None and any(has(name) for name in hoped)):
        picked["y"] = _pick("y", y, USUAL["y"], has, names)
    for part in ("scalars", *MORE):
        if getattr(wanted, part) is not None:
            picked[part] = _pick(part, getattr(wanted, part), (), has, names)
    return picked


def _names(picked: Picked) -> list[str]:
    return [name for names in picked.values() for name in names]


def _codes(arrays: Mapping[str, Any], picked: Picked, wanted: Wanted) -> dict[str, Codes]:
    """The codes of the array of labels, by its name; none where y is no labels."""
    if not wanted.labels or "y" not in picked:
        return {}
    (name,) = picked["y"]
    labels, step = arrays[name], chunks.BLOCK
    if math.prod(labels.shape[1:]) != 1:
        raise DataError(f"y has shape {labels.shape}: classes are one column of labels")
    return {name: Codes.of(np.ravel(labels[k : k + step]) for k in range(0, max(len(labels), 1), step))}


def chunks_of(
    arrays: Mapping[str, Any],
    picked: Picked,
    codes: Mapping[str, Codes],
    read: Callable[[int, int], Reader] | None = None,
) -> Chunks:
    """Arrays as samples, not read yet; `read` gives the reader of rows from start to stop, if not of the arrays.

    Several arrays of x, of one vector each, become points of a sample.
    """
    first = picked["x"][0]
    for name, array in arrays.items():
        if not array.shape:
            raise DataError(f"{name!r} is not an array: give one row per sample")
        if len(array) != len(arrays[first]):
            hint = ": the samples of X seem to lie along its last axis, transpose it"
            raise DataError(
                f"{first!r} has {len(arrays[first])} rows and {name!r} has {len(array)}: they must have one row per "
                f"sample each{hint if arrays[first].shape[-1] == len(array) else ''}"
            )
    shapes = {part: tuple(arrays[names[0]].shape[1:]) for part, names in picked.items()}
    several = [arrays[name].shape for name in picked["x"]]
    if len(several) > 1:
        if len(several[0]) != 2 or len(set(several)) > 1:
            told = ", ".join(f"{name!r} {shape}" for name, shape in zip(picked["x"], several))
            raise DataError(
                f"the arrays of x have the shapes {told}: several arrays must each be (N, n), with the same N and n"
            )
        shapes["x"] = len(several), *shapes["x"]

    def in_memory(start: int, stop: int) -> Reader:
        return partial(slices, [(name, arrays[name][start:stop]) for name in _names(picked)])

    total = len(arrays[first])
    classes = next((found.classes for found in codes.values()), ())
    pieces = tuple(replace(piece, codes=codes) for piece in pieces_of(total, read or in_memory))
    return Chunks(pieces, shapes, labels_of(shapes), total, picked=picked, classes=classes)


def labels_of(shapes: dict[str, tuple[int, ...]]) -> tuple[str, ...]:
    """Names for the numbers of a row of arrays.

    >>> labels_of({"x": (2, 2), "y": ()})
    ('x[0, 0]', 'x[0, 1]', 'x[1, 0]', 'x[1, 1]', 'y')
    """
    names = []
    for part, shape in shapes.items():
        for index in np.ndindex(*shape):
            names.append(f"{part}[{', '.join(map(str, index))}]" if index else part)
    return tuple(names)


def npz_chunks(path: Path, wanted: Wanted, memory: int | None) -> Chunks:
    """Arrays of a numpy archive, which is read as a whole; pickled objects, which could run code, are refused."""
    headers = npz_arrays(path)
    picked = _picks(wanted, headers.__contains__, list(headers))
    for name in _names(picked):
        if headers[name][1].hasobject:
            raise DataError(
                f"array {name!r} holds pickled Python objects, which are not loaded because they can run code: "
                "save it as numbers, np.savez(file, X=X.astype(float), ...)"
            )
    needed = sum(math.prod(headers[name][0]) for name in _names(picked)) * BYTES
    if memory is not None and needed > memory:
        raise DataError(
            f"reading needs {sizes(needed)} of memory and {sizes(memory)} are available; an .npz "
            "cannot be read in part: store the arrays as HDF5 (.h5) or Parquet (.parquet) instead"
        )
    with undamaged(*DAMAGE), np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in _names(picked)}
    codes = _codes(arrays, picked, wanted)
    arrays = {name: array if name in codes else as_float64(array, name) for name, array in arrays.items()}
    return chunks_of(arrays, picked, codes)


def npz_arrays(path: Path) -> Headers:
    """Shapes and types of all arrays of a numpy archive, by their headers alone."""
    found: Headers = {}
    with undamaged(*DAMAGE), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    old = np.lib.format.read_magic(member) == (1, 0)
                    read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
                    shape, _, dtype = read(member)
                found[name.removesuffix(".npy")] = shape, dtype
    return found


def hdf5_arrays(path: Path) -> Headers:
    """Shapes and types of all datasets of an HDF5 file."""
    import h5py

    found: Headers = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            found[name] = item.shape, item.dtype

    with undamaged(*DAMAGE), h5py.File(path, "r") as file:
        file.visititems(visit)
    return found


def hdf5_chunks(path: Path, wanted: Wanted, memory: int | None) -> Chunks:
    """Datasets of an HDF5 file, by name or path, not read yet."""
    import h5py

    def read(start: int, stop: int) -> Reader:
        return partial(hdf5_blocks, path.absolute(), _names(picked), start, stop)

    with undamaged(*DAMAGE), h5py.File(path, "r") as file:
        try:
            picked = _picks(
                wanted, lambda name: isinstance(file.get(name), h5py.Dataset), list(hdf5_arrays(path))
            )
        except DataError as error:
            tables: list[str] = []
            file.visititems(lambda name, item: tables.append(name) if "pandas_type" in item.attrs else None)
            if not tables:
                raise
            raise DataError(
                f"{error}. The file holds the pandas table {tables[0]!r}, in pandas' own layout, which "
                "is not read: save it by DataFrame.to_parquet or to_csv instead"
            ) from None
        datasets = {name: file[name] for name in _names(picked)}
        codes = _codes(datasets, picked, wanted)
        return chunks_of(datasets, picked, codes, read)


def hdf5_blocks(
    path: Path, names: list[str], start: int, stop: int, rows: int | None = None
) -> Iterator[Named]:
    """Rows of datasets of an HDF5 file, block by block."""
    import h5py

    with undamaged(*DAMAGE), h5py.File(path, "r") as file:
        yield from slices([(name, file[name]) for name in names], rows, start, stop)
