"""Readers for tables with named columns: text (.csv, .tsv), Parquet, and folders of Parquet files."""

from __future__ import annotations

import csv
import itertools
import re
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from . import chunks
from .chunks import Chunks, Piece
from .errors import DataError, listed, missing, row_number
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
    """A table on disk: its header, and pieces of the wanted columns; `total` rows, None where only reading tells."""

    header: list[str]
    pieces: Callable[[list[str]], list[Piece]]
    total: int | None = None
    where: Callable[[int], str] = row_number


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
    """Columns of a Parquet file, or of all Parquet files in a folder, which are read piece by piece."""
    return _read(_parquet_table(path), x, y, scalars, limits, targets)


def table_chunks(
    path: Path, x: Columns, y: Columns, scalars: Columns, targets: bool | None = True, decimal: str = "."
) -> Chunks:
    """The same columns, not read yet."""
    parquet = path.is_dir() or path.suffix.lower() == ".parquet"
    return _choose(_parquet_table(path) if parquet else _text_table(path, decimal), x, y, scalars, targets)


def _choose(table: Table, x: Columns, y: Columns, scalars: Columns, targets: bool | None) -> Chunks:
    """The wanted columns of a table."""
    repeated = sorted({name for name in table.header if table.header.count(name) > 1})
    if repeated:
        raise DataError(f"the header names {listed(repeated)} more than once: rename the columns")
    s_columns = pick(scalars, table.header, "scalars") if scalars is not None else []
    x_columns, y_columns, notices = _pick_samples(table.header, x, y, s_columns, targets)
    columns = x_columns + y_columns + s_columns
    if len(set(columns)) < len(columns):
        twice = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
        raise DataError(f"columns {listed(twice)} are used more than once: give each to x, y or scalars once")
    parts = {"x": x_columns, "y": y_columns, "scalars": s_columns}
    given = {part: tuple(names) for part, names in parts.items() if names}
    return Chunks(
        tuple(table.pieces(columns)),
        {part: (len(names),) for part, names in given.items()},
        tuple(f"column {name!r}" for name in columns),
        table.total,
        x_columns,
        notices,
        given,
        table.where,
    )


def _read(
    table: Table, x: Columns, y: Columns, scalars: Columns, limits: Limits, targets: bool | None
) -> Raw:
    found = _choose(table, x, y, scalars, targets)
    blocks = (block for piece in found.pieces for _, block in piece.blocks())
    values, rows, total = sample_stream(blocks, found.width, limits.rows(found.width), limits.seed)
    found.notices.extend(limits.notices(total, found.width))
    return found.raw(values, rows)


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

    def where(row: int) -> str:
        below = (number for number, _ in _cells(path, delimiter) if number > skip)
        return f"line {next(itertools.islice(below, row, None))}"

    def pieces(columns: list[str]) -> list[Piece]:
        read = partial(text_blocks, path.absolute(), delimiter, decimal, skip, header, columns)
        return [Piece(0, read, where)]

    return Table(header, pieces, None, where)


def text_blocks(
    path: Path,
    delimiter: str,
    decimal: str,
    skip: int,
    header: list[str],
    columns: list[str],
    rows: int | None = None,
) -> Iterator[np.ndarray]:
    """Columns of a text file below its header, block by block."""
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
                chunksize=rows or max(1, BLOCK // len(header)),
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


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files in a folder and below it, in the order of their names; hidden ones are left out."""
    files = [
        file
        for file in sorted(folder.rglob("*.parquet"))
        if file.is_file() and not any(part[0] in "._" for part in file.relative_to(folder).parts)
    ]
    if not files:
        raise DataError("it is a directory without .parquet files: give a folder of Parquet files, or a file")
    return files


@contextmanager
def _whole() -> Iterator[None]:
    """Within: what pyarrow says of a bad file is said as a DataError."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"the file is truncated or damaged ({error}): write it again") from None


def _parquet_table(path: Path) -> Table:
    """A Parquet file, or those of a folder one after the other. The first of them has the header."""
    import pyarrow.parquet as pq

    folder = path.is_dir()
    files = parquet_files(path) if folder else [path]
    names = [file.relative_to(path).as_posix() if folder else file.name for file in files]
    headers: list[list[str]] = []
    groups: list[list[int]] = []  # rows of the row groups of each file
    for file, name in zip(files, names):
        try:
            with _whole():
                found = pq.read_metadata(file)
                headers.append(list(found.schema.to_arrow_schema().names))
        except DataError as error:
            raise DataError(f"{name}: {error}" if folder else str(error)) from None
        groups.append([found.row_group(k).num_rows for k in range(found.num_row_groups)])
    firsts = np.cumsum([0, *(sum(rows) for rows in groups)]).tolist()

    where = partial(_where, firsts, names if folder else None)

    def pieces(columns: list[str]) -> list[Piece]:
        made = []
        for file, name, header, first, rows in zip(files, names, headers, firsts, groups):
            for column in columns:
                if column not in header:
                    raise DataError(f"{name}: {missing('column', column, header)}")
            for start, several in _runs(rows):
                read = partial(parquet_blocks, file.absolute(), columns, several)
                place = partial(_where, [first], [name] if folder else None)
                made.append(Piece(first + start, read, place, name if folder else ""))
        return made

    return Table(headers[0], pieces, firsts[-1], where)


def _where(firsts: list[int], names: list[str] | None, row: int) -> str:
    """Where a row stands, by its number over all files, in words."""
    k = bisect_right(firsts, row) - 1
    return f"row {row}" if names is None else f"row {row - firsts[k]} of {names[k]}"


def _runs(rows: list[int]) -> Iterator[tuple[int, list[int]]]:
    """Neighbouring row groups of about a piece together: the number of the first row, and the groups."""
    start = held = 0
    several: list[int] = []
    for group, count in enumerate(rows):
        several.append(group)
        held += count
        if held >= chunks.PIECE or group == len(rows) - 1:
            yield start, several
            start, held, several = start + held, 0, []


def parquet_blocks(
    path: Path, columns: list[str], groups: list[int], rows: int | None = None
) -> Iterator[np.ndarray]:
    """Columns of some row groups of a Parquet file, block by block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def numeric(kind: Any) -> bool:
        tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
        return any(test(kind) for test in tests)

    with _whole(), pq.ParquetFile(path) as file:
        for batch in file.iter_batches(rows or max(1, BLOCK // len(columns)), groups, columns):
            for name in columns:
                kind = batch.schema.field(name).type
                if not numeric(kind):
                    raise DataError(
                        f"column {name!r} has type {kind}, first value {batch.column(name)[0].as_py()!r}, not numbers: "
                        "convert or drop it"
                    )
            yield np.stack(
                [
                    batch.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
                    for name in columns
                ],
                axis=1,
            )
