"""Text tables, .csv and .tsv, plain or compressed: their format is detected, and they are read block by block."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import warnings
import zlib
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from . import chunks
from .chunks import Named, Piece
from .errors import DataError, listed, undamaged
from .tables import LOOKED_AT, Table

WHITESPACE = r"\s+"
READABLE = {"", "#n/a", "<na>", "n/a", "na", "none", "null", "true", "false"}  # missing, or logical
#: 1,234.5, 1,234,567 and 1.234,5, 1.234.567: groups of three digits, and decimals after the other sign.
FORTRAN = re.compile(r"[-+]?[\d.]+[dD][-+]?\d+")
WITH_UNIT = re.compile(r"[-+]?\d[\d.]*(?:[eE][-+]?\d+)? *[^\W\d_].*")
THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:(?:,\d{3})+\.\d*|(?:\.\d{3})+,\d*|(?:,\d{3}){2,}|(?:\.\d{3}){2,})")
UNITS_ROW = "where the line has the units of the columns, begin it with #, or drop it"
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Layout:
    """How a text table is written: the delimiter, the sign of decimals, the header and the lines down to it."""

    path: Path
    delimiter: str
    decimal: str
    header: list[str]
    skip: int
    comments: tuple[int, ...] = ()  # numbers of the lines below it, from 0, that begin with #


def text_table(path: Path, decimal: str) -> Table:
    """A text table: the delimiter is found from the header; lines that begin with # are comments."""
    layout = _layout(path.absolute(), decimal)

    def where(row: int) -> str:
        with closing(_cells(path, layout.delimiter)) as cells:
            below = (number for number, _ in cells if number > layout.skip)
            return f"line {next(itertools.islice(below, row, None))}"

    def pieces(columns: list[str], labels: Collection[str]) -> list[Piece]:
        return [Piece(0, partial(text_blocks, layout, columns, [*labels]), where)]

    def head(rows: int) -> Any:
        import pandas as pd

        with closing(_frames(layout, [], rows)) as frames:
            frame = next(frames, pd.DataFrame(columns=layout.header, dtype=str))
        if frame[layout.header[-1]].isna().any():  # missing cells, or short lines
            _explain(layout, [], rows)
        return frame

    def elsewhere(name: str) -> str:
        with _readable(), _open_text(path) as file:
            for number, line in enumerate(itertools.islice(file, LOOKED_AT), 1):
                if number > layout.skip and name in re.split(r'[\s,;|"]+', line):
                    return f"; line {number} has it: begin the lines above it with #, or drop them"
        return ""

    return Table(layout.header, pieces, head, None, where, elsewhere=elsewhere)


def count_rows(path: Path, decimal: str) -> int:
    """Lines below the header that are neither blank nor comments: the rows, unless cells have several lines."""
    skip = _layout(path.absolute(), decimal).skip
    with _readable(), _open_bytes(path) as file:
        below = (line.lstrip() for line in itertools.islice(file, skip, None))
        return sum(1 for line in below if line and not line.startswith(b"#"))


def _layout(path: Path, decimal: str) -> Layout:
    """The header is the first line that is no comment, or the comment above it where that line holds numbers."""
    above, first, comments = "", "", 0
    with _readable(), _open_text(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                first = line
                break
            above, comments = (line, number) if line.strip() else (above, comments)
    delimiter = _delimiter(first or above)
    with closing(_cells(path, delimiter)) as lines:
        skip, cells = next(lines, (0, []))
    if all(_is_number(cell, decimal) for cell in cells):
        named = next(_split([above.lstrip().lstrip("#").strip()], delimiter), (0, []))[1] if above else []
        if not named or (cells and len(named) != len(cells)):
            shown = f"its first line holds numbers ({listed(cells)}); put" if cells else "put"
            raise DataError(f"the file has no header: {shown} a line with the names of the columns first")
        skip, cells = comments, named
    return Layout(path, delimiter, decimal, cells, skip, _comments(path, skip))


def _comments(path: Path, skip: int) -> tuple[int, ...]:
    """The numbers, from 0, of the lines that begin with #, after so many lines."""
    with _readable(), _open_bytes(path) as file:
        return tuple(
            number for number, line in enumerate(file) if number >= skip and line.lstrip().startswith(b"#")
        )


def text_blocks(
    layout: Layout, columns: list[str], labels: list[str], rows: int | None = None
) -> Iterator[Named]:
    """Columns of a text file below its header, block by block."""
    explained, numbers = False, [name for name in columns if name not in labels]
    with closing(_frames(layout, numbers, rows)) as frames:
        for frame in frames:
            if not explained and frame[numbers].isna().any(axis=None):  # missing cells, or short lines
                _explain(layout, numbers)
                explained = True
            yield [(name, frame[name].to_numpy()) for name in columns]


def _frames(layout: Layout, numbers: list[str], rows: int | None) -> Generator[Any]:
    """The table below its header, block by block: numbers where told, all else as text."""
    import pandas as pd

    header = layout.header
    try:
        with (
            warnings.catch_warnings(),
            _readable(),
            pd.read_csv(
                layout.path,
                sep=layout.delimiter,
                header=None,
                names=header,
                skiprows=[*range(layout.skip), *layout.comments] if layout.comments else layout.skip,
                index_col=False,
                dtype={name: np.float64 if name in numbers else str for name in header},
                skipinitialspace=True,
                encoding="utf-8-sig",
                decimal=layout.decimal,
                chunksize=rows or max(1, chunks.BLOCK // len(header)),
            ) as reader,
        ):
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield from reader
    except DataError:
        raise
    except pd.errors.EmptyDataError:  # a header, and nothing below it
        return
    except (ValueError, pd.errors.ParserWarning) as error:
        _explain(layout, numbers)
        raise DataError(f"the file cannot be read as a table: {error}") from None


def _delimiter(line: str) -> str:
    bare = re.sub(r'"[^"]*"', "", line.strip("\n"))
    found = max(",;\t|", key=bare.count)
    return found if found in bare else WHITESPACE if len(line.split()) > 1 else ","


def _open_bytes(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb")


def _open_text(path: Path) -> TextIO:
    return io.TextIOWrapper(_open_bytes(path), encoding="utf-8-sig", newline="")


def _cells(path: Path, delimiter: str) -> Generator[tuple[int, list[str]]]:
    """The cells of each line that is neither blank nor a comment, with its line number, counted from 1."""
    with _readable(), _open_text(path) as file:
        yield from _split(file, delimiter)


@contextmanager
def _readable() -> Iterator[None]:
    """Within: what is wrong with the bytes of a text file is said as a DataError."""
    try:
        with undamaged(EOFError, zlib.error, gzip.BadGzipFile):
            yield
    except UnicodeDecodeError as error:
        found = error.object[error.start : error.start + 1]
        raise DataError(f"the text is not UTF-8: it contains the byte {found!r}: save it as UTF-8") from None


def _split(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    if delimiter == WHITESPACE:
        numbered = ((number, line.split()) for number, line in enumerate(lines, 1))
        yield from ((number, cells) for number, cells in numbered if cells and not cells[0].startswith("#"))
        return
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if cells not in ([], [""]) and not cells[0].startswith("#"):
                yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(f"line {reader.line_num} cannot be read: {error}") from None


def _is_number(cell: str, decimal: str = ".") -> bool:
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return "_" not in cell and (decimal == "." or "." not in cell)


def _explain(layout: Layout, columns: list[str], rows: int | None = None) -> None:
    """Raises a DataError for the first of so many lines with a wrong number of cells or a cell that is no number."""
    header = layout.header
    wanted = [(header.index(name), name) for name in columns]
    with closing(_cells(layout.path, layout.delimiter)) as found:
        below = (each for each in found if each[0] > layout.skip)
        for number, (line, cells) in enumerate(itertools.islice(below, rows)):
            if len(cells) != len(header):
                count = f"{len(cells)} cell{'s' * (len(cells) != 1)}"
                raise DataError(
                    f"line {line} has {count} and the header has {len(header)}: give each line as many"
                )
            for place, name in wanted:
                cell = cells[place]
                if cell.lower() in READABLE or _is_number(cell, layout.decimal):
                    continue
                units = number == 0 and not any(_is_number(cells[p], layout.decimal) for p, _ in wanted)
                fix = _fix(cell, layout.decimal, units)
                raise DataError(f"line {line}, column {name!r}: {cell!r} is not a number: {fix}")


def _fix(cell: str, decimal: str, units: bool) -> str:
    """What to do about a cell that is no number, or a row of them that may be the units of the columns."""
    comma = decimal == ","
    if FORTRAN.fullmatch(cell):
        return "it has an exponent of Fortran: write E in place of D in all numbers"
    if _is_number(re.sub("[\u2012-\u2015\u2212]", "-", cell), decimal):
        return "its minus sign is a dash of typesetting: write - in all numbers"
    if WITH_UNIT.fullmatch(cell):
        return "it has a unit behind the number: write numbers alone, and units in the header"
    if THOUSANDS.fullmatch(cell) or (comma and re.fullmatch(r"[-+]?\d+\.\d{3}", cell)):
        return "it has thousands separators: write all numbers without them"
    if DECIMAL_COMMA.fullmatch(cell):
        return "it has a decimal comma: say so by decimal=','"
    if comma and _is_number(cell):
        return "it has a decimal point: leave out decimal=','"
    return UNITS_ROW if units else "replace it by a number, or drop the line, or the column by drop="
