"""Tables that are no text: .npy, .feather, .xlsx (extra ``excel``) and .root (``root``) as a whole, Parquet in part."""

from __future__ import annotations

import warnings
import zipfile
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import chunks
from .checks import as_float64, variable_names
from .chunks import Named, Piece, Reader, pieces_of, slices
from .errors import DataError, listed, missing, row_number, undamaged
from .tables import Table


def whole_table(
    header: list[str],
    total: int,
    column: Callable[[str], Any],
    where: Callable[[int], str] = row_number,
    notices: tuple[str, ...] = (),
    elsewhere: str = "",
) -> Table:
    """A table in memory, by a function that gives a column."""

    def pieces(columns: list[str], labels: Collection[str]) -> list[Piece]:
        found = {name: column(name) for name in columns}
        found = {
            n: np.asarray(v) if n in labels else as_float64(v, f"column {n!r}", place=where)
            for n, v in found.items()
        }
        for name, values in found.items():
            if values.shape != (total,):
                raise DataError(
                    f"column {name!r} has shape {values.shape}, not {(total,)}: one number in a row"
                )

        def read(start: int, stop: int) -> Reader:
            return partial(slices, [(name, values[start:stop]) for name, values in found.items()])

        return pieces_of(total, read, where)

    def head(rows: int) -> Any:
        import pandas as pd

        return pd.DataFrame({name: pd.Series(list(column(name)[:rows])) for name in header})

    return Table(header, pieces, head, total, where, notices, lambda name: elsewhere)


def npy_table(path: Path) -> Table:
    """A single numpy array: fields of a structured one, or columns x0, x1, … of a matrix."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"the file is damaged, or holds Python objects ({error}): write it again") from None
    if array.dtype.names:
        return whole_table(list(array.dtype.names), len(array), lambda name: array[name])
    if array.ndim != 2:
        raise DataError(
            f"the array has shape {array.shape}: a matrix (N, columns) is read, or an .npz with X and y"
        )
    header = list(variable_names(array.shape[1]))
    return whole_table(header, len(array), lambda name: array[:, header.index(name)])


def feather_table(path: Path) -> Table:
    """A Feather (Arrow) file."""
    import pyarrow.feather as feather

    with undamaged_arrow():
        table = feather.read_table(path)
    return whole_table(table.column_names, table.num_rows, lambda name: table.column(name).to_numpy())


#: Bytes that a workbook may unpack to; its reader takes a multiple of them in memory.
MAX_UNPACKED = 1_000_000_000


def excel_table(path: Path) -> Table:
    """The first sheet of a workbook; its first row has the names."""
    import pandas as pd

    try:
        with zipfile.ZipFile(path) as archive:  # which never yields more than it says
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MAX_UNPACKED:
            raise DataError(
                f"the workbook unpacks to {size / 1e9:.1f} GB, and up to {MAX_UNPACKED / 1e9:g} GB is read: "
                "save it as .csv or .parquet"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles
            with pd.ExcelFile(path, engine="openpyxl") as book:
                frame = book.parse(book.sheet_names[0])
    except ImportError:
        raise ImportError("reading .xlsx needs openpyxl: pip install 'gortho[excel]'") from None
    except DataError:
        raise
    except Exception as error:  # whatever a broken archive makes of its reader
        raise DataError(f"the workbook cannot be read ({error}): write it again") from None
    frame.columns = frame.columns.map(str)
    sheets = [str(name) for name in book.sheet_names]
    only = (
        f"only the first sheet of {listed(sheets)} is read: put yours first, or save it as a file of its own"
    )
    told = (only,) if len(sheets) > 1 else ()
    return whole_table(
        list(frame.columns),
        len(frame),
        frame.__getitem__,
        lambda row: f"row {row + 2} of the sheet",
        told,
        f"; {only}" if told else "",
    )


#: What ROOT calls its tables.
TREES = ("TTree", "TNtuple", "TNtupleD", "ROOT::RNTuple")


def root_table(path: Path) -> Table:
    """Branches of the tree in a ROOT file; "tree/branch" where there are several trees."""
    try:
        import uproot
    except ImportError:
        raise ImportError("reading .root needs uproot: pip install 'gortho[root]'") from None
    with undamaged(Exception):  # whatever a broken file makes of its reader
        file = uproot.open(path)
        kinds = {name: kind for name, kind in file.classnames().items() if kind in TREES}
        trees = {name.split(";")[0]: file[name] for name in kinds}
    if not trees:
        raise DataError("the file has no tree")
    if len(trees) == 1:
        ((_, tree),) = trees.items()
        branches = {name: (tree, name) for name in tree.keys()}  # noqa: SIM118
    else:
        branches = {f"{t}/{name}": (tree, name) for t, tree in trees.items() for name in tree.keys()}  # noqa: SIM118

    def column(name: str) -> Any:
        tree, branch = branches[name]
        try:
            return tree[branch].array(library="np")
        except Exception as error:  # whatever a broken file makes of its reader
            raise DataError(f"branch {name!r} cannot be read ({error}): write the file again") from None

    return whole_table(list(branches), max(int(tree.num_entries) for tree in trees.values()), column)


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

    def pieces(columns: list[str], labels: Collection[str]) -> list[Piece]:
        made = []
        for file, name, header, first, rows in zip(files, names, headers, firsts, groups):
            for column in columns:
                if column not in header:
                    raise DataError(f"{name}: {missing('column', column, header)}")
            for start, several in _runs(rows):
                read = partial(parquet_blocks, file.absolute(), columns, several, [*labels])
                place = partial(_where, [first], [name] if folder else None)
                made.append(Piece(first + start, read, place, name if folder else ""))
        return made

    def head(rows: int) -> Any:
        with undamaged_arrow(), pq.ParquetFile(files[0]) as opened:
            return next(opened.iter_batches(rows), opened.schema_arrow.empty_table()).to_pandas()

    return Table(headers[0], pieces, head, firsts[-1], where)


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
    path: Path, columns: list[str], groups: list[int], labels: list[str], rows: int | None = None
) -> Iterator[Named]:
    """Columns of some row groups of a Parquet file, block by block."""
    import pyarrow.parquet as pq

    with undamaged_arrow(), pq.ParquetFile(path) as file:
        for batch in file.iter_batches(rows or max(1, chunks.BLOCK // len(columns)), groups, columns):
            yield [(name, _values(batch.column(name), name, name in labels)) for name in columns]


def _values(column: Any, name: str, label: bool) -> np.ndarray:
    """A column of a batch as numbers, or as text."""
    import pyarrow as pa
    from pyarrow.types import is_boolean, is_decimal, is_float16, is_floating, is_integer

    if not label and not any(test(column.type) for test in (is_integer, is_floating, is_boolean, is_decimal)):
        found = f"type {column.type}, first value {column[0].as_py()!r}"
        raise DataError(f"column {name!r} has {found}, not numbers: convert or drop it")
    if not label and is_float16(column.type):  # refused, as everywhere
        return as_float64(column.to_numpy(zero_copy_only=False), f"column {name!r}")
    return column.cast(pa.string() if label else pa.float64(), safe=False).to_numpy(zero_copy_only=False)
