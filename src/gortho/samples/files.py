"""`read`: from a file on disk to checked samples; `open_chunks`: to samples that are read block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from . import checks, tables
from .chunks import Chunks
from .containers import hdf5_chunks, npz_chunks, read_hdf5, read_npz
from .errors import DataError
from .raw import Raw
from .sampling import Limits, available_memory

READERS: dict[str, Callable[..., Raw]] = {
    ".npz": read_npz,
    ".csv": tables.read_text,
    ".tsv": tables.read_text,
    ".parquet": tables.read_parquet,
    ".h5": read_hdf5,
    ".hdf5": read_hdf5,
}
CALLED = {read_npz: "an .npz archive", tables.read_text: "a text file", tables.read_parquet: "a Parquet file"}
SIGNATURES: list[tuple[bytes, str, Callable[..., Raw] | None, str]] = [
    (b"PK\x03\x04", "a zip archive such as .npz or .xlsx", read_npz, "rename it to .npz if it is one"),
    (b"PK\x05\x06", "an empty zip archive", read_npz, "write it again"),
    (b"\x89HDF", "HDF5", read_hdf5, "rename it to .h5"),
    (b"PAR1", "Parquet", tables.read_parquet, "rename it to .parquet"),
    (b"\x93NUMPY", "a single numpy array", None, "save X and y together by np.savez"),
    (b"\x1f\x8b", "gzip", None, "decompress it"),
    (b"\xff\xfe", "UTF-16 text", None, "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", None, "save it as UTF-8"),
    (b"\x80", "a pickle", None, "save the arrays by np.savez"),
]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Checked samples: X (N, n) or (N, p, n), y (N, ...); scalars per point (N, p, s) or sample (N, s).

    `y` is None where no targets were read. `columns` names the arrays or columns that were, by their part: "x",
    "y", "scalars".
    """

    X: np.ndarray
    y: np.ndarray | None
    point_scalars: np.ndarray | None = None
    sample_scalars: np.ndarray | None = None
    names: tuple[str, ...] = ()
    source: str = ""
    notices: list[str] = field(default_factory=list)
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read(
    path: str | os.PathLike[str],
    *,
    x: str | Sequence[str] | None = None,
    y: str | Sequence[str] | None = None,
    scalars: str | Sequence[str] | None = None,
    points: int | None = None,
    output: str = "scalar",
    max_samples: int | None = None,
    seed: int = 0,
    scalars_per_point: bool = False,
    memory_budget: int | None = None,
    targets: bool | None = True,
    decimal: str = ".",
) -> Dataset:
    """Reads samples from .npz, .h5/.hdf5 (arrays by name), .csv, .tsv, .parquet or a folder of the latter (columns).

    Columns are given as a list or as "E,px:pz", point by point for samples of several points. Several arrays of x,
    as "position,dipole", each (N, n), are the points of a sample in this order. Scalars of a table are per sample
    unless `scalars_per_point`; an array of scalars is per point if its second axis has the length `points`.
    `memory_budget` is in bytes; the memory available, if None. Text files may have `decimal` commas.

    With `targets=False` only the inputs are read: every row in its place, repeated ones too, and y is None. With
    `targets=None` the targets, named by y or by the usual names, are read if the file has them.
    """
    path = Path(path).expanduser()
    reader = _reader(path)
    _check_decimal(decimal)
    if reader is tables.read_text:
        reader = partial(reader, decimal=decimal)
    budget = available_memory() if memory_budget is None else memory_budget
    with named(path):
        raw = reader(path, x, y, scalars, Limits(max_samples, budget, seed, targets is False), targets)
        shape = Shape(points, output, scalars_per_point)
        return checked(raw, shape, str(path), max_samples=max_samples, seed=seed)


def open_chunks(
    path: str | os.PathLike[str],
    *,
    x: str | Sequence[str] | None = None,
    y: str | Sequence[str] | None = None,
    scalars: str | Sequence[str] | None = None,
    decimal: str = ".",
    memory_budget: int | None = None,
) -> Chunks:
    """The samples of a file, or of all Parquet files in a folder, to be read block by block; arguments as in `read`."""
    path = Path(path).expanduser()
    reader = _reader(path)
    _check_decimal(decimal)
    with named(path):
        if reader is read_npz:
            return npz_chunks(
                path, x, y, scalars, available_memory() if memory_budget is None else memory_budget
            )
        if reader is read_hdf5:
            return hdf5_chunks(path, x, y, scalars)
        return tables.table_chunks(path, x, y, scalars, decimal=decimal)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Within: errors about data name the file."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None
    except MemoryError:
        raise DataError(
            f"{path.name} does not fit in memory: lower max_samples, or use fewer columns"
        ) from None


def _check_decimal(decimal: str) -> None:
    if decimal not in (".", ","):
        raise DataError(f"decimal={decimal!r}: choose '.' or ','")


@dataclass(frozen=True)
class Shape:
    """How the numbers of a file become samples: vectors in each, kind of output, whether scalars belong to points."""

    points: int | None = None
    output: str = "scalar"
    scalars_per_point: bool = False


def shaped(raw: Raw, shape: Shape) -> Dataset:
    """Numbers as they stand in the file as samples, not checked yet."""
    X = shape_points(raw.X, shape.points)
    p = X.shape[1] if X.ndim == 3 else 1
    n, columns = X.shape[-1], raw.columns
    names = checks.variable_names(n) if columns is None else tables.variable_names(columns, p)
    point, sample = shape_scalars(raw, p, shape.scalars_per_point)
    target = None if raw.y is None else shape_output(raw.y, shape.output, n)
    return Dataset(X, target, point, sample, names, "", raw.notices, raw.picked)


def checked(raw: Raw, shape: Shape, source: str, *, max_samples: int | None = None, seed: int = 0) -> Dataset:
    """Numbers as they stand in the file as checked samples."""
    d = shaped(raw, shape)
    X, point, sample, target, notices = d.X, d.point_scalars, d.sample_scalars, d.y, d.notices
    if target is None:
        X, point, sample = checks.check_inputs(X, point, sample, names=d.names, place=raw.place)
    else:
        X, target, point, sample, _, more = checks.check_samples(
            X, target, point, sample, max_samples, seed, names=d.names, place=raw.place
        )
        notices = notices + more
    return Dataset(X, target, point, sample, d.names, source, notices, d.columns)


def _reader(path: Path) -> Callable[..., Raw]:
    """The reader for the file's suffix, once its first bytes agree with it."""
    if path.is_dir():
        return tables.read_parquet
    if not path.exists():
        raise DataError(f"{path} does not exist: check the name and the current directory, {Path.cwd()}")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        fix = "save X and y together by np.savez" if path.suffix == ".npy" else f"use {', '.join(READERS)}"
        raise DataError(f"{path.name} has the suffix {path.suffix!r}, which is not read: {fix}")
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise DataError(f"{path.name} cannot be opened ({error.strerror}): check its permissions") from None
    if not head:
        raise DataError(f"{path.name} is empty: write it again")

    known = next((entry for entry in SIGNATURES if head.startswith(entry[0])), None)
    found = known[2] if known else None if b"\0" in head else tables.read_text
    if found is not reader:
        looks, fix = ("binary data", "check how it was written")
        if known:
            looks, fix = known[1], known[3]
        elif found is tables.read_text:
            looks, fix = "text", "rename it to .csv"
        raise DataError(
            f"{path.name} is not {CALLED.get(reader, 'an HDF5 file')}: it begins with {head[:8]!r} "
            f"(this looks like {looks}): {fix}"
        )
    return reader


def shape_points(X: np.ndarray, points: int | None) -> np.ndarray:
    """X as (N, n), or (N, p, n) for several points."""
    if points is None:
        return X
    if points < 1:
        raise DataError(f"points is {points}: it must be at least 1")
    if X.ndim == 3:
        if X.shape[1] != points:
            raise DataError(f"X has {X.shape[1]} points per sample (shape {X.shape}), not points={points}")
        return X
    if X.ndim != 2 or X.shape[1] % points:
        raise DataError(
            f"X has shape {X.shape}: its columns cannot be split evenly among points={points}: "
            "change points or the columns of x"
        )
    return X if points == 1 else X.reshape(len(X), points, -1)


def shape_output(y: np.ndarray, output: str, n: int) -> np.ndarray:
    """y as the kind of output asks: (N,) or (N, k), (N, n), (N, n, n) row by row, or (N, k) for a sum."""
    from gortho.reps import as_rep  # imports torch, which takes seconds

    try:
        rep = as_rep(output)
    except ValueError as error:
        raise DataError(str(error)) from None
    if output == "scalar":
        if y.ndim > 2:
            raise DataError(f"y has shape {y.shape}: scalar outputs must be (N,) or (N, k)")
        return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    shape = rep.shape(n)
    found = int(np.prod(y.shape[1:]))
    if found != np.prod(shape) or (y.ndim > 2 and y.shape[1:] != shape):
        raise DataError(
            f"y has {found} values per sample (shape {y.shape}), and output={output!r} expects "
            f"{int(np.prod(shape))}, shape {('N', *shape)}, as X has n = {n} components: change y or output"
        )
    return y.reshape(len(y), *shape)


def shape_scalars(raw: Raw, p: int, per_point: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The scalars as those of points, (N, p, s), and those of samples, (N, s); one of them is None."""
    values = raw.scalars
    if values is None:
        return None, None
    if raw.columns is None:
        per_point = p > 1 and values.ndim in (2, 3) and values.shape[1] == p
    elif per_point and (p == 1 or values.shape[1] % p):
        raise DataError(
            f"{values.shape[1]} columns of scalars cannot be split among {p} points: scalars_per_point needs "
            "several points, and as many scalars for each"
        )
    if not per_point:
        return None, values
    return values.reshape(len(values), p, -1), None
