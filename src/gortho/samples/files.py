"""`read`: from a file on disk to checked samples; `open_chunks`: to samples that are read block by block."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from . import checks
from .chunks import Chunks, Raw
from .containers import hdf5_chunks, npz_chunks
from .errors import LEAVE_OUT, DataError, MissingError
from .kinds import NPZ, kind_of
from .sampling import Limits, available_memory
from .slopes import derivatives
from .tables import choose_columns, component_names
from .wanted import Columns, Wanted

#: What to do about numbers that are missing in a file.
FIX = f"{checks.IMPUTE}{LEAVE_OUT}"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Checked samples: X (N, n) or (N, p, n), y (N, ...); scalars per point (N, p, s) or sample (N, s).

    `y` is None where no targets were read. `columns` names the arrays or columns that were, by their part: "x",
    "y", "scalars" and so on. `weights` (N,), of mean one, are those of the file, or come from errors of y, which
    `y_error` (N,) has too. Of classes, y has the labels. `place` says where a row stands in the file, if it is known.
    `kept` tells which rows of the file were read, if some were left out because a number is missing.
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
    kept: np.ndarray | None = None

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
    dims: Sequence[int] | None = None,
) -> Dataset:
    """Read samples from tables (columns by name) or files of arrays (arrays by name).

    Tables are .csv, .tsv (also .gz), .parquet or a folder of them, .feather, .npy, .xlsx and .root; .npz, .h5 and .hdf5
    hold arrays. Columns are given as a list or as "E,px:pz", point by point for samples of several points. Several
    arrays of x, as "position,dipole", each (N, n), are the points of a sample in this order. Scalars of a table are per
    sample unless `scalars_per_point`; an array of scalars is per point if its second axis has the length `points`.
    `memory_budget` is in bytes; the memory available, if None. Text files may have `decimal` commas.

    `weight` and `y_error` name the sample weights and the errors of y. With `derivative`, the time, y is dx/dt along
    trajectories numbered by `by` (`derivatives`). `drop` names columns of a table that are not coordinates. Missing
    numbers are an error, or with `dropna` their rows are left out, with a notice. `dims` are the components of each
    vector of a row, where they differ: then X has the columns as they stand.

    With `targets=False` only the inputs are read: every row in its place, repeated ones too, and y is None. With
    `targets=None` the targets, named by y or by the usual names, are read if the file has them.
    """
    path = Path(path).expanduser()
    wanted = Wanted(
        x, y, scalars, weight, y_error, derivative, by, drop, targets, decimal,
        points, output, scalars_per_point, dropna, dims,
    )  # fmt: skip
    chunks = open_chunks(path, wanted, memory_budget)
    # What is read as a whole is thinned later: archives, once all rows are checked, and trajectories.
    archive = kind_of(path) is NPZ
    whole = archive or derivative is not None
    memory = None if archive else available_memory() if memory_budget is None else memory_budget
    with named(path):
        raw = chunks.draw(Limits(None if whole else max_samples, memory, seed, whole or targets is False))
        return checked(raw, wanted, str(path), Limits(max_samples, None, seed))


def open_chunks(path: str | os.PathLike[str], wanted: Wanted, memory_budget: int | None = None) -> Chunks:
    """The samples of a file, or of all Parquet files in a folder, to be read block by block."""
    path = Path(path).expanduser()
    kind = kind_of(path)
    memory = available_memory() if memory_budget is None else memory_budget
    with named(path):
        if kind.table is not None:
            found = choose_columns(kind.table(path, wanted.decimal), wanted)
        else:
            found = (npz_chunks if kind is NPZ else hdf5_chunks)(path, wanted, memory)
        return replace(found, dropna=wanted.dropna)


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


def shaped(raw: Raw, wanted: Wanted) -> Dataset:
    """Numbers as they stand in the file as samples, not checked yet."""
    X, columns = shape_points(raw.parts["x"], wanted.points), raw.source.columns
    p, n = X.shape[1] if X.ndim == 3 else 1, X.shape[-1]
    names = checks.variable_names(n) if columns is None else component_names(columns, p)
    point, sample = shape_scalars(raw, p, wanted.scalars_per_point)
    y = None if "y" not in raw.parts else shape_output(raw.parts["y"], wanted.output, max(wanted.dims or [n]))
    return Dataset(X, y, point, sample, names, "", raw.notices, raw.source.picked)


def checked(raw: Raw, wanted: Wanted, source: str, limits: Limits) -> Dataset:
    """Numbers as they stand in the file as checked samples."""
    if not len(raw) and raw.source.columns is not None:
        few = "one row" if wanted.targets is False else "two samples"
        raise DataError(f"the table is empty below its header: give at least {few}")
    raw = without_missing(raw) if wanted.dropna else raw
    place = None if "time" in raw.parts else raw.place
    raw = with_slopes(raw, wanted, limits.seed) if "time" in raw.parts else raw
    d = replace(shaped(raw, wanted), source=source, place=place)
    point, sample = d.point_scalars, d.sample_scalars
    if d.y is None:
        X, point, sample = checks.check_inputs(d.X, point, sample, names=d.names, place=raw.place, fix=FIX)
        return replace(d, X=X, point_scalars=point, sample_scalars=sample, kept=raw.kept)
    missing = np.flatnonzero(np.isnan(d.y)) if raw.source.classes else np.empty(0)
    if len(missing):
        raise DataError(
            f"y has no label in {raw.place(int(missing[0]))} ({len(missing)} in all): {FIX}; NA, None, null and nan "
            "count as missing, so a class needs another name"
        )
    weight, y_error = raw.parts.get("weight"), raw.parts.get("y_error")
    weight = weight[:, 0] if weight is not None and weight.ndim == 2 and weight.shape[1] == 1 else weight
    given = checks.weights_of(weight, y_error, len(d.X))
    X, y, point, sample, weights, notices = checks.check_samples(
        d.X, d.y, point, sample, limits.max_samples, limits.seed,
        names=d.names, weights=given, place=raw.place, fix=FIX, why=limits.why,
    )  # fmt: skip
    errors = None
    if y_error is not None and given is not None and weights is not None:
        errors = checks.errors_of(y_error, given, weights)
    return replace(
        d,
        X=X,
        y=np.array(raw.source.classes)[y.astype(int)] if raw.source.classes else y,
        point_scalars=point,
        sample_scalars=sample,
        notices=d.notices + notices,
        weights=weights,
        y_error=errors,
        place=place if len(X) == len(raw) else None,
    )


def without_missing(raw: Raw) -> Raw:
    """The rows in which no number is missing, and a notice of how many are not."""
    arrays = raw.parts.values()
    there = ~np.any([np.isnan(array.reshape(len(array), -1)).any(axis=1) for array in arrays], axis=0)
    if there.all():
        return raw
    notice = missing_notice(int((~there).sum()), len(there))
    parts = {part: array[there] for part, array in raw.parts.items()}
    return replace(raw, parts=parts, rows=raw.rows[there], notices=[*raw.notices, notice], kept=there)


def missing_notice(missing: int, total: int) -> str:
    """Tells of rows that were left out."""
    return f"{missing} of {total} rows were left out because a number is missing"


def with_slopes(raw: Raw, wanted: Wanted, seed: int) -> Raw:
    """The points of trajectories with their slopes as targets, and the errors of the slopes."""
    x, time = raw.parts["x"], raw.parts["time"]
    if wanted.output != "vector" or (wanted.points or 1) > 1 or x.ndim != 2:
        raise DataError(
            "slopes of trajectories are vectors: choose output='vector', and one vector in a sample"
        )
    for name, array in {"x": x, "the time": time}.items():
        bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        if bad.any():
            raise DataError(
                f"{name} is missing or infinite in {raw.place(int(bad.argmax()))}: drop such rows"
            )
    x, slopes, errors = derivatives(x, time, raw.parts.get("by"), seed)
    notice = "x and the target dx/dt come from smoothing splines, dx/dt with the errors of its slopes"
    parts = {name: values for name, values in raw.parts.items() if name not in ("time", "by")}
    more = {} if "weight" in parts else {"y_error": errors}
    return replace(raw, parts=parts | {"x": x, "y": slopes, **more}, notices=[*raw.notices, notice])


def shape_points(X: np.ndarray, points: int | None) -> np.ndarray:
    """X as (N, n), or (N, p, n) for several points."""
    checks.check_vectors(X)
    if points is None:
        return X
    if points < 1:
        raise DataError(f"points is {points}: it must be at least 1")
    if X.ndim == 3:
        if X.shape[1] != points:
            raise DataError(f"X has {X.shape[1]} points per sample (shape {X.shape}), not points={points}")
        return X
    if X.shape[1] % points:
        raise DataError(
            f"X has shape {X.shape}: its columns cannot be split evenly among points={points}: "
            "change their number or the columns of x"
        )
    return X if points == 1 else X.reshape(len(X), points, -1)


def shape_output(y: np.ndarray, output: str, n: int) -> np.ndarray:
    """y as the kind of output asks; labels as ``(N,)``."""
    from .door import as_targets  # imports torch, which takes seconds

    if output == "class":
        return y.reshape(len(y))
    try:
        return as_targets(y, output, n)[0]
    except ValueError as error:
        raise DataError(str(error)) from None


def shape_scalars(raw: Raw, p: int, per_point: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The scalars as those of points, (N, p, s), and those of samples, (N, s); one of them is None."""
    values = raw.parts.get("scalars")
    if values is None:
        return None, None
    if raw.source.columns is None:
        per_point = p > 1 and values.ndim in (2, 3) and values.shape[1] == p
    elif per_point and (p == 1 or values.shape[1] % p):
        raise DataError(
            f"{values.shape[1]} columns of scalars cannot be split among {p} points: scalars_per_point needs "
            "several points, and as many scalars for each"
        )
    if not per_point:
        return None, values
    return values.reshape(len(values), p, -1), None
