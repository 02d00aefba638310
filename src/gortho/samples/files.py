"""`read`: from a file on disk to checked samples; `open_chunks`: to samples that are read block by block."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from . import checks, tables
from .chunks import Chunks
from .containers import hdf5_chunks, npz_chunks, read_hdf5, read_npz
from .errors import LEAVE_OUT, DataError, MissingError
from .kinds import Kind, kind_of
from .raw import Raw
from .sampling import Limits, available_memory
from .slopes import derivatives
from .wanted import Columns, Wanted

#: What to do about numbers that are missing in a file.
FIX = f"{checks.IMPUTE}{LEAVE_OUT}"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Checked samples: X (N, n) or (N, p, n), y (N, ...); scalars per point (N, p, s) or sample (N, s).

    `y` is None where no targets were read. `columns` names the arrays or columns that were, by their part: "x",
    "y", "scalars" and so on. `weights` (N,), of mean one, are those of the file, or come from errors of y, which
    `y_error` (N,) has too. Of classes, y has the labels. `place` says where a row stands in the file, if it is known.
    """

    X: np.ndarray
    y: np.ndarray | None
    point_scalars: np.ndarray | None = None
    sample_scalars: np.ndarray | None = None
    names: tuple[str, ...] = ()
    source: str = ""
    notices: list[str] = field(default_factory=list)
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    weights: np.ndarray | None = None
    y_error: np.ndarray | None = None
    place: Callable[[int], str] | None = None

    def in_file(self, notice: str) -> str:
        """A notice with the places of samples in the file, where they are known, for their numbers."""
        numbers = re.search(r"number ([\d, ]*\d)(, …)? of the samples used, counted from 0", notice)
        if self.place is None or numbers is None:
            return notice
        places = ", ".join(self.place(int(number)) for number in numbers[1].split(","))
        return notice.replace(numbers[0], f"{places}{numbers[2] or ''} of the file")


def read(
    path: str | os.PathLike[str],
    *,
    x: Columns = None,
    y: Columns = None,
    scalars: Columns = None,
    points: int | None = None,
    output: str = "scalar",
    max_samples: int | None = None,
    seed: int = 0,
    scalars_per_point: bool = False,
    memory_budget: int | None = None,
    targets: bool | None = True,
    decimal: str = ".",
    weight: Columns = None,
    y_error: Columns = None,
    derivative: Columns = None,
    by: Columns = None,
    drop: Columns = None,
    dropna: bool = False,
) -> Dataset:
    """Read samples from tables (columns by name) or files of arrays (arrays by name).

    Tables are .csv, .tsv (also .gz), .parquet or a folder of them, .feather, .npy, .xlsx and .root; .npz, .h5 and .hdf5
    hold arrays. Columns are given as a list or as "E,px:pz", point by point for samples of several points. Several
    arrays of x, as "position,dipole", each (N, n), are the points of a sample in this order. Scalars of a table are per
    sample unless `scalars_per_point`; an array of scalars is per point if its second axis has the length `points`.
    `memory_budget` is in bytes; the memory available, if None. Text files may have `decimal` commas.

    `weight` and `y_error` name the sample weights and the errors of y. With `derivative`, the time, y is dx/dt along
    trajectories numbered by `by` (`derivatives`). `drop` names columns of a table that are not coordinates. Missing
    numbers are an error, or with `dropna` their rows are left out, with a notice.

    With `targets=False` only the inputs are read: every row in its place, repeated ones too, and y is None. With
    `targets=None` the targets, named by y or by the usual names, are read if the file has them.
    """
    path = Path(path).expanduser()
    labels = output == "class"
    wanted = Wanted(x, y, scalars, weight, y_error, derivative, by, drop, targets, decimal, labels)
    kind = kind_of(path)
    budget = available_memory() if memory_budget is None else memory_budget
    every = targets is False or derivative is not None
    with named(path):
        limits = Limits(None if derivative is not None else max_samples, budget, seed, every)
        raw = _raw(path, kind, wanted, limits)
        shape = Shape(points, output, scalars_per_point, dropna)
        return checked(raw, shape, str(path), Limits(max_samples, None, seed))


def _raw(path: Path, kind: Kind, wanted: Wanted, limits: Limits) -> Raw:
    if kind.table is not None:
        return tables.read_table(kind.table(path, wanted.decimal), wanted, limits)
    return (read_npz if kind.zipped else read_hdf5)(path, wanted, limits)


def open_chunks(
    path: str | os.PathLike[str], wanted: Wanted, memory_budget: int | None = None, dropna: bool = False
) -> Chunks:
    """The samples of a file, or of all Parquet files in a folder, to be read block by block."""
    path = Path(path).expanduser()
    kind = kind_of(path)
    budget = available_memory() if memory_budget is None else memory_budget
    with named(path):
        if kind.table is not None:
            found = tables.choose_columns(kind.table(path, wanted.decimal), wanted)
        else:
            found = (npz_chunks if kind.zipped else hdf5_chunks)(path, wanted, budget)
        return replace(found, dropna=dropna)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Within: errors about data name the file."""
    try:
        yield
    except MissingError as error:
        raise MissingError(f"{path.name}: {error}", error.name) from None
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None
    except MemoryError:
        raise DataError(
            f"{path.name} does not fit in memory: lower max_samples, or use fewer columns"
        ) from None


@dataclass(frozen=True)
class Shape:
    """How the numbers of a file become samples: vectors in each, kind of output, whether scalars belong to points,
    whether rows with missing numbers are left out.
    """

    points: int | None = None
    output: str = "scalar"
    scalars_per_point: bool = False
    dropna: bool = False


def shaped(raw: Raw, shape: Shape) -> Dataset:
    """Numbers as they stand in the file as samples, not checked yet."""
    X = shape_points(raw.X, shape.points)
    p = X.shape[1] if X.ndim == 3 else 1
    n, columns = X.shape[-1], raw.columns
    names = checks.variable_names(n) if columns is None else tables.variable_names(columns, p)
    point, sample = shape_scalars(raw, p, shape.scalars_per_point)
    target = None if raw.y is None else shape_output(raw.y, shape.output, n)
    return Dataset(X, target, point, sample, names, "", raw.notices, raw.picked)


def checked(raw: Raw, shape: Shape, source: str, limits: Limits) -> Dataset:
    """Numbers as they stand in the file as checked samples."""
    if not len(raw.X) and raw.columns is not None:
        raise DataError("the table is empty below its header: give at least two samples")
    raw = without_missing(raw) if shape.dropna else raw
    made = "time" in raw.more
    raw = with_slopes(raw, shape, limits.seed) if "time" in raw.more else raw
    d = shaped(raw, shape)
    X, point, sample, target, notices = d.X, d.point_scalars, d.sample_scalars, d.y, d.notices
    weights = errors = None
    if target is None:
        X, point, sample = checks.check_inputs(X, point, sample, names=d.names, place=raw.place)
    else:
        if raw.classes and np.isnan(target).any():
            first, count = int(np.isnan(target).argmax()), int(np.isnan(target).sum())
            raise DataError(
                f"y has no label in {raw.place(first)} ({count} in all): {FIX}; NA, None, null and nan count as "
                "missing, so a class needs another name"
            )
        weight = raw.more.get("weight")
        weight = weight[:, 0] if weight is not None and weight.ndim == 2 and weight.shape[1] == 1 else weight
        y_error = raw.more.get("y_error")
        given = checks.weights_of(weight, y_error, len(X))
        X, target, point, sample, weights, more = checks.check_samples(
            X,
            target,
            point,
            sample,
            limits.max_samples,
            limits.seed,
            names=d.names,
            weights=given,
            place=raw.place,
            fix=FIX,
            why=limits.why,
        )
        notices = notices + more
        if raw.classes:
            target = np.array(raw.classes)[target.astype(int)]
        if y_error is not None and given is not None and weights is not None:
            errors = checks.errors_of(y_error, given, weights)
    place = None if made or len(X) < len(raw.X) else raw.place
    return Dataset(X, target, point, sample, d.names, source, notices, d.columns, weights, errors, place)


def without_missing(raw: Raw) -> Raw:
    """The rows in which no number is missing, and a notice of how many are not."""
    arrays = [a for a in (raw.X, raw.y, raw.scalars, *raw.more.values()) if a is not None]
    there = ~np.any([np.isnan(a.reshape(len(a), -1)).any(axis=1) for a in arrays], axis=0)
    if there.all():
        return raw
    notice = missing_notice(int((~there).sum()), len(there))
    return replace(
        raw,
        X=raw.X[there],
        y=None if raw.y is None else raw.y[there],
        scalars=None if raw.scalars is None else raw.scalars[there],
        more={part: array[there] for part, array in raw.more.items()},
        rows=(np.arange(len(there)) if raw.rows is None else raw.rows)[there],
        notices=[*raw.notices, notice],
    )


def missing_notice(missing: int, total: int) -> str:
    """Tells of rows that were left out."""
    return f"{missing} of {total} rows were left out because a number is missing"


def with_slopes(raw: Raw, shape: Shape, seed: int) -> Raw:
    """The points of trajectories with their slopes as targets, and the errors of the slopes."""
    if shape.output != "vector" or (shape.points or 1) > 1 or raw.X.ndim != 2:
        raise DataError(
            "slopes of trajectories are vectors: choose output='vector', and one vector in a sample"
        )
    for name, array in {"x": raw.X, "the time": raw.more["time"]}.items():
        bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        if bad.any():
            raise DataError(
                f"{name} is missing or infinite in {raw.place(int(bad.argmax()))}: drop such rows"
            )
    x, slopes, errors = derivatives(raw.X, raw.more["time"], raw.more.get("by"), seed)
    notice = "x and y = dx/dt come from smoothing splines, y with the errors of its slopes"
    more = {part: array for part, array in raw.more.items() if part == "weight"}
    more = more or {"y_error": errors}
    return replace(raw, X=x, y=slopes, more=more, notices=[*raw.notices, notice])


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
            "change their number or the columns of x"
        )
    return X if points == 1 else X.reshape(len(X), points, -1)


def shape_output(y: np.ndarray, output: str, n: int) -> np.ndarray:
    """y as the kind of output asks: (N,) or (N, k), (N, n), (N, n, n) row by row, or (N, k) for a sum."""
    from gortho.reps import as_rep  # imports torch, which takes seconds

    if output == "class":
        return y.reshape(len(y))
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
            f"{int(np.prod(shape))}, shape ({', '.join(map(str, ('N', *shape)))}), as X has n = {n} components: "
            "change y or output"
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
