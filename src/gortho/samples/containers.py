"""Readers for files of named arrays: .npz and HDF5."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import chunks
from .checks import as_float64
from .chunks import Chunks, Piece, slices
from .coding import Coded, Codes
from .errors import DataError, missing
from .raw import Raw
from .sampling import BYTES, Limits, choose, sizes
from .wanted import MORE, Wanted

BLOCK = 2_000_000  # numbers read at a time


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
    parts = [str(part).strip() for part in (wanted.split(",") if isinstance(wanted, str) else wanted)]
    picked = tuple(parts) if several else (wanted,)
    for name in picked or ("",):
        if not name or not has(name):
            raise missing("array", name, names)
    if len(picked) > 1 and what != "x":
        raise DataError(f"{what}={','.join(picked)}: in a file of arrays, {what} is the name of one array")
    return picked


def _picks(wanted: Wanted, has: Callable[[str], bool], names: list[str]) -> dict[str, tuple[str, ...]]:
    """The names of the arrays by part; without y if targets are not wanted, or optional and absent."""
    if wanted.drop is not None:
        raise DataError(
            "drop= names columns of a table: in a file of arrays, say which are coordinates by x="
        )
    usual, y = ("y", "Y"), wanted.y
    picked = {"x": _pick("x", wanted.x, ("X", "x"), has, names)}
    hoped = usual if y is None else [y] if isinstance(y, str) else y
    if wanted.needs_y or (wanted.needs_y is None and any(has(name) for name in hoped)):
        picked["y"] = _pick("y", y, usual, has, names)
    for part in ("scalars", *MORE):
        if getattr(wanted, part) is not None:
            picked[part] = _pick(part, getattr(wanted, part), (), has, names)
    return picked


def _raw(arrays: dict[str, np.ndarray], picked: dict[str, tuple[str, ...]], **more: Any) -> Raw:
    """Each part of the arrays by name; several arrays of x, of one vector each, become points of a sample."""
    values = {part: [as_float64(arrays[name], name) for name in names] for part, names in picked.items()}
    x = values["x"]
    if len(x) > 1 and (x[0].ndim != 2 or any(array.shape != x[0].shape for array in x)):
        told = ", ".join(f"{name!r} {array.shape}" for name, array in zip(picked["x"], x))
        raise DataError(
            f"the arrays of x have the shapes {told}: several arrays must each be (N, n), with the same N and n"
        )
    X = x[0] if len(x) == 1 else np.stack(x, axis=1)
    y, scalars = (values[part][0] if part in values else None for part in ("y", "scalars"))
    rest = {part: values[part][0] for part in MORE if part in values}
    return Raw(X, y, scalars, picked=picked, more=rest, **more)


def _codes(arrays: dict[str, Any], picked: dict[str, tuple[str, ...]], wanted: Wanted) -> dict[str, Codes]:
    """The codes of the array of labels, by its name; none where y is no labels."""
    if not wanted.labels or "y" not in picked:
        return {}
    (name,) = picked["y"]
    labels = arrays[name]
    if math.prod(labels.shape[1:]) != 1:
        raise DataError(f"y has shape {labels.shape}: classes are one column of labels")
    return {name: Codes.of(np.ravel(labels[k : k + BLOCK]) for k in range(0, max(len(labels), 1), BLOCK))}


def _coded(arrays: dict[str, Any], codes: dict[str, Codes]) -> dict[str, Any]:
    return {name: Coded(array, codes[name]) if name in codes else array for name, array in arrays.items()}


def _classes(codes: dict[str, Codes]) -> tuple[Any, ...]:
    return next((c.classes for c in codes.values()), ())


def _names(picked: dict[str, tuple[str, ...]]) -> list[str]:
    return [name for names in picked.values() for name in names]


def read_npz(path: Path, wanted: Wanted, limits: Limits) -> Raw:
    """Arrays of a numpy archive; object arrays, which could run code when loaded, are refused."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            picked = _picks(wanted, names.__contains__, names)
            needed = sum(_npy_numbers(archive, name) for name in _names(picked)) * BYTES
        if limits.memory is not None and needed > limits.memory:
            raise DataError(
                f"reading needs {sizes(needed)} of memory and {sizes(limits.memory)} are available; an .npz "
                "cannot be read in part: store the arrays as HDF5 (.h5) or Parquet (.parquet) instead"
            )
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in _names(picked)}
            codes = _codes(arrays, picked, wanted)
            arrays = _coded(arrays, codes)
            return _raw({name: array[()] for name, array in arrays.items()}, picked, classes=_classes(codes))
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"the file is truncated or damaged ({error}): write it again") from None


def _npy_numbers(archive: zipfile.ZipFile, name: str) -> int:
    """How many numbers a member holds, by its header alone."""
    shape, dtype = _npy_header(archive, name if name in archive.namelist() else f"{name}.npy")
    if dtype.hasobject:
        raise DataError(
            f"array {name!r} holds pickled Python objects, which are not loaded because they can run code: "
            "save it as numbers, np.savez(file, X=X.astype(float), ...)"
        )
    return math.prod(shape)


def _npy_header(archive: zipfile.ZipFile, entry: str) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and the type of a member, by its header alone."""
    with archive.open(entry) as member:
        version = np.lib.format.read_magic(member)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else None
        shape, _, dtype = (reader or np.lib.format.read_array_header_2_0)(member)
    return shape, dtype


def npz_arrays(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Shapes and types of all arrays of a numpy archive, by their headers alone."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name.removesuffix(".npy"): _npy_header(archive, name)
                for name in archive.namelist()
                if name.endswith(".npy")
            }
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"the file is truncated or damaged ({error}): write it again") from None


def hdf5_arrays(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Shapes and types of all datasets of an HDF5 file."""
    import h5py

    found: dict[str, tuple[tuple[int, ...], np.dtype]] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            found[name] = item.shape, item.dtype

    with _undamaged(), h5py.File(path, "r") as file:
        file.visititems(visit)
    return found


def npz_chunks(path: Path, wanted: Wanted, memory: int | None) -> Chunks:
    """Arrays of a numpy archive, which is read as a whole."""
    return Chunks.of_arrays(read_npz(path, wanted, Limits(memory=memory)))


def read_hdf5(path: Path, wanted: Wanted, limits: Limits) -> Raw:
    """Datasets of an HDF5 file, by name or path; only the rows that are used are kept in memory."""
    with _datasets(path, wanted) as (datasets, picked, codes):
        return _read_datasets(_coded(datasets, codes), picked, limits, _classes(codes))


def hdf5_chunks(path: Path, wanted: Wanted, memory: int | None) -> Chunks:
    """The same datasets, not read yet."""
    with _datasets(path, wanted) as (datasets, picked, codes):
        total, coded = _length(datasets, picked), _coded(datasets, codes)
        few = _raw({name: dataset[:2] for name, dataset in coded.items()}, picked, classes=_classes(codes))
    shapes = {"x": few.X, "y": few.y, "scalars": few.scalars, **few.more}
    step = chunks.PIECE
    return replace(
        Chunks.of_arrays(few),
        pieces=tuple(
            Piece(
                start,
                partial(hdf5_blocks, path.absolute(), _names(picked), codes, start, min(start + step, total)),
            )
            for start in range(0, total, step)
        ),
        shapes={part: array.shape[1:] for part, array in shapes.items() if array is not None},
        total=total,
    )


def hdf5_blocks(
    path: Path, names: list[str], codes: dict[str, Codes], start: int, stop: int, rows: int | None = None
) -> Iterator[np.ndarray]:
    """Rows of datasets of an HDF5 file, side by side, block by block."""
    import h5py

    with _undamaged(), h5py.File(path, "r") as file:
        datasets = list(_coded({name: file[name] for name in names}, codes).values())
        width = sum(math.prod(dataset.shape[1:]) for dataset in datasets)
        yield from slices(datasets, rows or max(1, BLOCK // max(1, width)), start, stop)


@contextmanager
def _undamaged() -> Iterator[None]:
    """Within: what h5py says of a bad file is said as a DataError."""
    try:
        yield
    except DataError:
        raise
    except (OSError, RuntimeError, KeyError) as error:
        raise DataError(f"the file is truncated or damaged ({error}): write it again") from None


@contextmanager
def _datasets(
    path: Path, wanted: Wanted
) -> Iterator[tuple[dict[str, Any], dict[str, tuple[str, ...]], dict[str, Codes]]]:
    """The wanted datasets of an HDF5 file, open, their names by part, and the codes of labels."""
    import h5py

    with _undamaged(), h5py.File(path, "r") as file:
        names: list[str] = []
        pandas: list[str] = []

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                names.append(name)
            elif "pandas_type" in item.attrs:
                pandas.append(name)

        file.visititems(visit)
        try:
            picked = _picks(wanted, lambda name: isinstance(file.get(name), h5py.Dataset), names)
        except DataError as error:
            if not pandas:
                raise
            raise DataError(
                f"{error}. The file holds the pandas table {pandas[0]!r}, in pandas' own layout, which "
                "is not read: save it by DataFrame.to_parquet or to_csv instead"
            ) from None
        found = {name: file[name] for name in _names(picked)}
        yield found, picked, _codes(found, picked, wanted)


def _length(datasets: dict[str, Any], picked: dict[str, tuple[str, ...]]) -> int:
    """Rows of the datasets, which must be the same for all."""
    first = datasets[picked["x"][0]]
    for name, dataset in datasets.items():
        if not dataset.shape:
            raise DataError(f"dataset {name!r} is not an array: give one row per sample")
        if len(dataset) != len(first):
            raise DataError(
                f"{picked['x'][0]!r} has {len(first)} rows and {name!r} has {len(dataset)}: "
                "they must have one row per sample each"
            )
    return len(first)


def _read_datasets(
    datasets: dict[str, Any], picked: dict[str, tuple[str, ...]], limits: Limits, classes: tuple[Any, ...]
) -> Raw:
    total = _length(datasets, picked)
    width = sum(math.prod(dataset.shape[1:]) for dataset in datasets.values())
    rows = choose(total, limits.rows(width), limits.seed)
    arrays = {name: _read_rows(dataset, rows) for name, dataset in datasets.items()}
    return _raw(arrays, picked, rows=rows, notices=limits.notices(total, width), classes=classes)


def _read_rows(dataset: Any, rows: np.ndarray) -> np.ndarray:
    """The given rows (sorted), through blocks: picking them one by one is slow in HDF5."""
    if len(rows) == len(dataset):
        return dataset[()]
    step = max(1, BLOCK // max(1, math.prod(dataset.shape[1:])))
    parts = np.split(rows, np.flatnonzero(np.diff(rows // step)) + 1)
    return np.concatenate([dataset[part[0] : part[-1] + 1][part - part[0]] for part in parts])
