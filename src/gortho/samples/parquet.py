"""Parquet files, and folders of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import chunks
from .chunks import Piece
from .errors import DataError, missing, undamaged
from .labels import Codes
from .tables import Table


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


def undamaged_arrow() -> AbstractContextManager[None]:
    """Within: what pyarrow raises of a bad file is said as a DataError."""
    import pyarrow as pa

    return undamaged(pa.ArrowException, OSError)


def parquet_table(path: Path) -> Table:
    """A Parquet file, or those of a folder one after the other. The first of them has the header."""
    import pyarrow.parquet as pq

    folder = path.is_dir()
    files = parquet_files(path) if folder else [path]
    names = [file.relative_to(path).as_posix() if folder else file.name for file in files]
    headers: list[list[str]] = []
    groups: list[list[int]] = []  # rows of the row groups of each file
    for file, name in zip(files, names):
        try:
            with undamaged_arrow():
                found = pq.read_metadata(file)
                headers.append(list(found.schema.to_arrow_schema().names))
        except DataError as error:
            raise DataError(f"{name}: {error}" if folder else str(error)) from None
        groups.append([found.row_group(k).num_rows for k in range(found.num_row_groups)])
    firsts = np.cumsum([0, *(sum(rows) for rows in groups)]).tolist()

    where = partial(_where, firsts, names if folder else None)

    def labels(column: str) -> Iterator[Any]:
        for file in files:
            with undamaged_arrow(), pq.ParquetFile(file) as opened:
                for batch in opened.iter_batches(chunks.BLOCK, columns=[column]):
                    yield _as_text(batch, column)

    def pieces(columns: list[str], codes: Mapping[str, Codes]) -> list[Piece]:
        made = []
        for file, name, header, first, rows in zip(files, names, headers, firsts, groups):
            for column in columns:
                if column not in header:
                    raise DataError(f"{name}: {missing('column', column, header)}")
            for start, several in _runs(rows):
                read = partial(parquet_blocks, file.absolute(), columns, several, codes)
                place = partial(_where, [first], [name] if folder else None)
                made.append(Piece(first + start, read, place, name if folder else ""))
        return made

    def head(rows: int) -> Any:
        with undamaged_arrow(), pq.ParquetFile(files[0]) as opened:
            for batch in opened.iter_batches(rows):
                return batch.to_pandas()
            return opened.schema_arrow.empty_table().to_pandas()

    return Table(headers[0], pieces, labels, head, firsts[-1], where)


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


def _as_text(batch: Any, name: str) -> Any:
    import pyarrow as pa

    return batch.column(name).cast(pa.string()).to_numpy(zero_copy_only=False)


def parquet_blocks(
    path: Path, columns: list[str], groups: list[int], codes: Mapping[str, Codes], rows: int | None = None
) -> Iterator[np.ndarray]:
    """Columns of some row groups of a Parquet file, block by block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def numeric(kind: Any) -> bool:
        tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
        return any(test(kind) for test in tests)

    with undamaged_arrow(), pq.ParquetFile(path) as file:
        for batch in file.iter_batches(rows or max(1, chunks.BLOCK // len(columns)), groups, columns):
            for name in columns:
                kind = batch.schema.field(name).type
                if not numeric(kind) and name not in codes:
                    raise DataError(
                        f"column {name!r} has type {kind}, first value {batch.column(name)[0].as_py()!r}, not numbers: "
                        "convert or drop it"
                    )
            yield np.stack(
                [
                    codes[name](_as_text(batch, name))
                    if name in codes
                    else batch.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
                    for name in columns
                ],
                axis=1,
            )
