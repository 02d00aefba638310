"""Kinds of files, recognised by their suffix, and checked against their first bytes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .errors import DataError
from .sheets import excel_table, feather_table, npy_table, parquet_table, root_table
from .tables import Table
from .text import text_table


@dataclass(frozen=True)
class Kind:
    """A kind of file: what it is called, how it begins, and the table in it (None for files of arrays)."""

    called: str
    begins: tuple[bytes, ...]
    table: Callable[[Path, str], Table] | None = None


ZIP = (b"PK\x03\x04", b"PK\x05\x06")
TEXT = Kind("a text file", (), text_table)
PARQUET = Kind("a Parquet file", (b"PAR1",), lambda path, _: parquet_table(path))
NPZ = Kind("an .npz archive", ZIP)
HDF5 = Kind("an HDF5 file", (b"\x89HDF",))
KINDS = {
    ".npz": NPZ,
    ".csv": TEXT,
    ".tsv": TEXT,
    ".parquet": PARQUET,
    ".h5": HDF5,
    ".hdf5": HDF5,
    ".npy": Kind("a numpy array", (b"\x93NUMPY",), lambda path, _: npy_table(path)),
    ".feather": Kind("a Feather file", (b"ARROW1", b"FEA1"), lambda path, _: feather_table(path)),
    ".xlsx": Kind("an Excel workbook", ZIP, lambda path, _: excel_table(path)),
    ".root": Kind("a ROOT file", (b"root",), lambda path, _: root_table(path)),
}
#: Files of arrays; other files, and folders, are tables.
ARRAYS = tuple(suffix for suffix, kind in KINDS.items() if kind.table is None)
#: Suffixes of tables of text that may be anything else as well.
PLAIN = (".txt", ".dat", ".asc")
#: How files begin that are often named wrongly: what they look like, and what to do.
PICTURE = "give the numbers themselves, as a table"
LOOKS = [
    (ZIP[0], "a zip archive such as .npz or .xlsx", "rename it to .npz or .xlsx, whichever it is"),
    (ZIP[1], "an empty zip archive", "save it again with what belongs in it"),
    (b"\x89HDF", "HDF5", "rename it to .h5"),
    (b"PAR1", "Parquet", "rename it to .parquet"),
    (b"\x93NUMPY", "a single numpy array", "rename it to .npy"),
    (b"ARROW1", "Feather", "rename it to .feather"),
    (b"\x1f\x8b", "gzip", "let its name end in .gz, or decompress it"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
    (b"\x80", "a pickle", "save the arrays by np.savez"),
    (b"\x89PNG", "a PNG picture", PICTURE),
    (b"\xff\xd8\xff", "a JPEG picture", PICTURE),
    (b"GIF8", "a GIF picture", PICTURE),
    (b"%PDF", "a PDF document", PICTURE),
]
#: How web pages begin, in small letters: what a server sends in place of a file that is not there.
WEB_PAGE = (b"<!doctype html", b"<html")


def kind_of(path: Path) -> Kind:
    """The kind of a file or folder, or a DataError that says what is wrong with it."""
    if path.is_dir():
        return PARQUET
    if not path.exists():
        raise DataError(f"{path} does not exist: check the name and the current directory, {Path.cwd()}")
    name = path.name.lower()
    packed = name.endswith(".gz")
    suffix = Path(name.removesuffix(".gz")).suffix
    kind = KINDS.get(suffix)
    if kind is None or (packed and kind is not TEXT):
        fix = "decompress it" if kind is not None else f"use {', '.join(KINDS)}, .csv.gz"
        if suffix in PLAIN:
            fix = "rename it to .csv, whatever separates its columns"
        raise DataError(
            f"{path.name} has the suffix {''.join(path.suffixes[-2:])!r}, which is not read: {fix}"
        )
    try:
        with (gzip.open if packed else open)(path, "rb") as file:
            head = file.read(4096)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{path.name} is not a gzip file, or a damaged one ({error}): write it again"
        ) from None
    except OSError as error:
        raise DataError(f"{path.name} cannot be opened ({error.strerror}): check its permissions") from None
    if not head:
        raise DataError(f"{path.name} is empty: save it again where it was made, or choose another file")
    known = next((entry for entry in LOOKS if head.startswith(entry[0])), None)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(WEB_PAGE):
        known = (b"", "a web page", "download the file itself")
    plain = known is None and b"\0" not in head
    if plain if kind is TEXT else head.startswith(kind.begins):
        return kind
    looks, fix = ("text", "rename it to .csv") if plain else ("binary data", "check how it was written")
    if known is not None:
        looks, fix = known[1:]
    raise DataError(f"{path.name} is not {kind.called} but looks like {looks}: {fix}")
