"""Tables that are read whole: .npy, .feather, .xlsx (extra ``excel``) and .root (extra ``root``)."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .checks import as_float64, variable_names
from .chunks import Piece, pieces_of, slices
from .errors import DataError, listed, row_number, undamaged
from .labels import Codes
from .parquet import undamaged_arrow
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

    def pieces(columns: list[str], codes: Mapping[str, Codes]) -> Sequence[Piece]:
        found = [
            codes[name](column(name)) if name in codes else as_float64(column(name), f"column {name!r}")
            for name in columns
        ]
        for name, values in zip(columns, found):
            if values.shape != (total,):
                raise DataError(
                    f"column {name!r} has shape {values.shape}, not {(total,)}: one number in a row"
                )
        values = np.stack(found, axis=1)
        return pieces_of(total, lambda start, stop: partial(slices, [("", values[start:stop])], {}), where)

    def head(rows: int) -> Any:
        import pandas as pd

        return pd.DataFrame({name: pd.Series(list(column(name)[:rows])) for name in header})

    return Table(
        header, pieces, lambda name: [column(name)], head, total, where, notices, lambda name: elsewhere
    )


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


def _check_unpacked(path: Path) -> None:
    """Refuse a workbook that would fill the memory; an archive never yields more than it says."""
    with zipfile.ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > MAX_UNPACKED:
        raise DataError(
            f"the workbook unpacks to {size / 1e9:.1f} GB, and up to {MAX_UNPACKED / 1e9:g} GB is read: "
            "save it as .csv or .parquet"
        )


def excel_table(path: Path) -> Table:
    """The first sheet of a workbook; its first row has the names."""
    import pandas as pd

    try:
        _check_unpacked(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles
            book = pd.ExcelFile(path, engine="openpyxl")
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
