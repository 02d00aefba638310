"""Readers for tables with named columns: text (.csv, .tsv) and Parquet."""

from __future__ import annotations

import csv
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from .errors import DataError, listed, missing
from .raw import Raw
from .sampling import Limits, sample_stream

Columns = str | Sequence[str] | None
BLOCK = 2_000_000  # cells read at a time
WHITESPACE = r"\s+"
TARGET = re.compile(r"y$|y[_\d]|target|label", re.IGNORECASE)
INDEX = re.compile(r"$|Unnamed: \d+$|__index_level_\d+__$")  # row numbers that pandas writes along
READABLE = {"", "#n/a", "<na>", "n/a", "na", "none", "null", "true", "false"}  # missing, or logical
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Table:
    """A table on disk: its header, and a stream of blocks of the wanted columns as float64."""

    header: list[str]
    blocks: Callable[[list[str]], Iterator[np.ndarray]]
    line: Callable[[int], int] | None = None  # of a row, where the table is text


def read_text(
    path: Path,
    x: Columns,
    y: Columns,
    scalars: Columns,
    limits: Limits,
    targets: bool | None = True,
    decimal: str = ".",
) -> Raw:
    """Columns of a .csv or .tsv file, which is read piece by piece."""
    return _read(_text_table(path, decimal), x, y, scalars, limits, targets)


def read_parquet(
    path: Path, x: Columns, y: Columns, scalars: Columns, limits: Limits, targets: bool | None = True
) -> Raw:
    """Columns of a Parquet file, which is read piece by piece."""
    import pyarrow as pa

    try:
        return _read(_parquet_table(path), x, y, scalars, limits, targets)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"the file is truncated or damaged ({error}): write it again") from None


def _read(
    table: Table, x: Columns, y: Columns, scalars: Columns, limits: Limits, targets: bool | None
) -> Raw:
    repeated = sorted({name for name in table.header if table.header.count(name) > 1})
    if repeated:
        raise DataError(f"the header names {listed(repeated)} more than once: rename the columns")
    s_columns = pick(scalars, table.header, "scalars") if scalars is not None else []
    x_columns, y_columns, notices = _pick_samples(table.header, x, y, s_columns, targets)
    columns = x_columns + y_columns + s_columns
    if len(set(columns)) < len(columns):
        twice = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
        raise DataError(f"columns {listed(twice)} are used more than once: give each to x, y or scalars once")

    width = len(columns)
    values, rows, total = sample_stream(table.blocks(columns), width, limits.rows(width), limits.seed)
    X, Y, S = np.split(values, [len(x_columns), len(x_columns) + len(y_columns)], axis=1)
    notices += limits.notices(total, width)
    picked = {"x": tuple(x_columns), "y": tuple(y_columns), "scalars": tuple(s_columns)}
    return Raw(
        X,
        Y if y_columns else None,
        S if s_columns else None,
        columns=x_columns,
        rows=rows,
        notices=notices,
        picked={part: names for part, names in picked.items() if names},
        line=table.line,
    )


def pick(wanted: str | Sequence[str], header: list[str], what: str) -> list[str]:
    """The columns meant by names, or by slices "first:last" which include both ends.

    >>> pick("E, px:pz", ["E", "px", "py", "pz", "y"], "x")
    ['E', 'px', 'py', 'pz']
    """
    parts = [wanted] if wanted in header else wanted.split(",") if isinstance(wanted, str) else wanted
    picked: list[str] = []
    for part in (str(part).strip() for part in parts):
        ends = [part] if part in header or ":" not in part else [end.strip() for end in part.split(":", 1)]
        for end in ends:
            if end not in header:
                raise missing("column", end, header)
        first, last = header.index(ends[0]), header.index(ends[-1])
        if last < first:
            raise DataError(f"{what}: in {part!r}, {ends[1]!r} stands before {ends[0]!r}: swap them")
        picked += header[first : last + 1]
    if not picked:
        raise DataError(f"{what} names no column: available: {listed(header)}")
    return picked


def _pick_samples(
    header: list[str], x: Columns, y: Columns, scalars: list[str], targets: bool | None
) -> tuple[list[str], list[str], list[str]]:
    """The columns of x and y, as asked for or else by their names, and notices about the latter.

    There are none of y if targets are not wanted, or optional and absent.
    """
    x_columns = None if x is None else pick(x, header, "x")
    y_columns: list[str] | None = None
    if y is not None and targets is None:  # wanted only if they are there
        parts = [y] if y in header else y.split(",") if isinstance(y, str) else list(y)
        ends = [end.strip() for part in parts for end in (part, *part.split(":"))]
        y_columns = pick(y, header, "y") if any(end in header for end in ends) else []
    elif y is not None and targets:
        y_columns = pick(y, header, "y")
    free = [name for name in header if name not in {*scalars, *(x_columns or []), *(y_columns or [])}]
    if y_columns is None:
        y_columns = [name for name in free if TARGET.match(name)]
        coordinates = [name for name in y_columns if name[0] in "yY" and _after(name) in header]
        if coordinates and (targets is not False or x_columns is None):
            raise DataError(
                f"it is not clear whether {listed(coordinates)} are targets or coordinates, as there is also "
                f"{_after(coordinates[0])!r}: say which by {'x' if targets is False else 'y'}="
            )
        if not y_columns and targets:
            raise DataError(
                "no column is named y, y_..., target... or label...: say which is the target by y=; "
                f"available: {listed(free)}"
            )
    if x_columns is None:
        x_columns = [name for name in free if name not in y_columns and not INDEX.match(name)]
        if not x_columns:
            raise DataError(f"no columns are left for x: say which by x=; available: {listed(header)}")
    if targets is False:
        y_columns = []
    if x is not None and (y is not None or not y_columns):
        return x_columns, y_columns, []
    told = [f"{part} = {listed(names)}" for part, names in (("x", x_columns), ("y", y_columns)) if names]
    return x_columns, y_columns, [f"columns by name: {'; '.join(told)}"]


def _after(name: str) -> str:
    """The z coordinate that would go with a y coordinate."""
    return chr(ord(name[0]) + 1) + name[1:]


def variable_names(columns: list[str], points: int) -> tuple[str, ...]:
    """Names of the components, from columns that go point by point.

    >>> variable_names(["E_0", "px_0", "E_1", "px_1"], 2)
    ('E', 'px')
    """
    n = len(columns) // points
    if points == 1:
        return tuple(columns)
    stems = [re.sub(r"[_\d]+$", "", name) for name in columns]
    by_component = [stems[k * points : (k + 1) * points] for k in range(n)]
    if stems != stems[:n] * points and all(len(set(group)) == 1 for group in by_component):
        right = [columns[k * points + i] for i in range(points) for k in range(n)]
        raise DataError(
            f"the columns of x go component by component ({listed(columns[:points])}, ...): "
            f"give them point by point, x={','.join(right[: 2 * n])}" + (",..." if points > 2 else "")
        )
    return tuple(stems[:n] if len(set(stems[:n])) == n and all(stems[:n]) else columns[:n])


def _text_table(path: Path, decimal: str) -> Table:
    """A text table: the delimiter is found from the header."""
    delimiter = _delimiter(path)
    skip, header = next(_cells(path, delimiter), (0, []))
    if header and header[0].startswith("#"):
        header = [header[0].lstrip("# "), *header[1:]] if header[0] != "#" else header[1:]
    if not header:
        raise DataError("the file has no header: its first line must name the columns")
    if all(_is_number(cell, decimal) for cell in header):
        raise DataError(
            f"the file has no header: its first line holds numbers ({listed(header)}); "
            "put a line with the names of the columns before it"
        )

    def blocks(columns: list[str]) -> Iterator[np.ndarray]:
        import pandas as pd

        explained = False
        try:
            with (
                warnings.catch_warnings(),
                pd.read_csv(
                    path,
                    sep=delimiter,
                    header=None,
                    names=header,
                    skiprows=skip,
                    index_col=False,
                    dtype={name: np.float64 if name in columns else str for name in header},
                    skipinitialspace=True,
                    encoding="utf-8-sig",
                    decimal=decimal,
                    chunksize=max(1, BLOCK // len(header)),
                ) as reader,
            ):
                warnings.simplefilter("error", pd.errors.ParserWarning)
                for chunk in reader:
                    block = chunk[columns].to_numpy(np.float64)
                    if not explained and np.isnan(block).any():  # missing cells, or short lines
                        _explain(path, delimiter, decimal, skip, header, columns)
                        explained = True
                    yield block
        except DataError:
            raise
        except (ValueError, pd.errors.ParserWarning) as error:
            _explain(path, delimiter, decimal, skip, header, columns)
            raise DataError(f"the file cannot be read as a table: {error}") from None

    def line(row: int) -> int:
        below = (number for number, _ in _cells(path, delimiter) if number > skip)
        return next(itertools.islice(below, row, None))

    return Table(header, blocks, line)


def _delimiter(path: Path) -> str:
    with _open_text(path) as file:
        try:
            header = next((line for line in file if line.strip()), "")
        except UnicodeDecodeError as error:
            raise _not_utf8(error) from None
    bare = re.sub(r'"[^"]*"', "", header)
    found = max(",;\t", key=bare.count)
    return found if found in bare else WHITESPACE if len(header.split()) > 1 else ","


def _open_text(path: Path) -> TextIO:
    return open(path, encoding="utf-8-sig", newline="")


def _not_utf8(error: UnicodeDecodeError) -> DataError:
    found = error.object[error.start : error.start + 1]
    return DataError(f"the text is not UTF-8: it contains the byte {found!r}: save it as UTF-8")


def _cells(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that is not blank, with its line number, counted from 1."""
    with _open_text(path) as file:
        try:
            if delimiter == WHITESPACE:
                yield from ((number, line.split()) for number, line in enumerate(file, 1) if line.strip())
                return
            reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
            stripped = ([cell.strip() for cell in cells] for cells in reader)
            yield from ((reader.line_num, cells) for cells in stripped if cells not in ([], [""]))
        except UnicodeDecodeError as error:
            raise _not_utf8(error) from None
        except csv.Error as error:
            raise DataError(f"line {reader.line_num} cannot be read: {error}") from None


def _is_number(cell: str, decimal: str = ".") -> bool:
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return "_" not in cell and (decimal == "." or "." not in cell)


def _explain(
    path: Path, delimiter: str, decimal: str, skip: int, header: list[str], columns: list[str]
) -> None:
    """Raises a DataError for the first line with a wrong number of cells or a cell that is no number."""
    wanted = [(header.index(name), name) for name in columns]
    for line, cells in _cells(path, delimiter):
        if line <= skip:
            continue
        if len(cells) != len(header):
            raise DataError(
                f"line {line} has {len(cells)} cells and the header has {len(header)}: give each line as many"
            )
        for place, name in wanted:
            cell = cells[place]
            if cell.lower() in READABLE or _is_number(cell, decimal):
                continue
            fix = "replace it by a number, or drop the line or column"
            if DECIMAL_COMMA.fullmatch(cell):
                fix = "it has a decimal comma: say so by decimal=','"
            raise DataError(f"line {line}, column {name!r}: {cell!r} is not a number: {fix}")


def _parquet_table(path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    schema = file.schema_arrow

    def numeric(kind: pa.DataType) -> bool:
        return any(
            test(kind)
            for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
        )

    def blocks(columns: list[str]) -> Iterator[np.ndarray]:
        for batch in file.iter_batches(batch_size=max(1, BLOCK // len(columns)), columns=columns):
            for name in columns:
                if not numeric(schema.field(name).type):
                    raise DataError(
                        f"column {name!r} has type {schema.field(name).type}, first value "
                        f"{batch.column(name)[0].as_py()!r}, not numbers: convert or drop it"
                    )
            yield np.stack(
                [
                    batch.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
                    for name in columns
                ],
                axis=1,
            )

    return Table(list(schema.names), blocks)
