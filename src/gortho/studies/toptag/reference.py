"""Reading the public reference files of top tagging (HDF5 tables of pandas, 200 constituents a row), and archives."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from gortho.samples import DataError
from gortho.samples.errors import missing

from .jets import FILE, LABELS, SPLITS, Jets, edges, write_jets

KEY = "table"
CONSTITUENTS = 200
COMPONENTS = ("E", "PX", "PY", "PZ")
MOMENTA = [f"{name}_{i}" for i in range(CONSTITUENTS) for name in COMPONENTS]
TRUTH = ["truthE", "truthPX", "truthPY", "truthPZ"]
LABEL, SPLIT = "is_signal_new", "ttv"
#: Codes of `ttv`. That 0 is the training set is documented; the names of the files, where they say it, come first.
TTV = {0: "train", 1: "test", 2: "validation"}
ROWS = 10_000  # of 806 numbers: some 100 MB with all copies
#: A constituent is massless if |E - |p|| is below this share of E, or below this many GeV.
MASSLESS, MASSLESS_GEV = 1e-3, 1e-2
SORTED = 1e-4  # relative rise of pT that is rounding
PT_LIMITS = (300.0, 1000.0)  # of jets, in GeV: the files hold 550 to 650


def import_reference(
    files: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    hidden: bool = False,
    rows: int = ROWS,
) -> Jets:
    """Read reference files into a directory of jets, a few thousand rows at a time; every row is checked.

    The split is what the name of a file says (train, val or test), or else its column ttv.
    """
    if not files:
        raise DataError("there are no files to import: give at least one .h5 file")
    paths = [Path(file).expanduser() for file in files]
    out = Path(out).expanduser()
    if len({path.resolve() for path in paths}) < len(paths):
        raise DataError("a file is given twice: name each one once")
    _unused(out)
    sizes = {path: _size(path) for path in paths}
    told: list[dict[str, Any]] = []
    with tqdm(total=sum(sizes.values()), unit=" jets", desc="importing", disable=hidden) as bar:

        def pieces() -> Iterator[Jets]:
            for path in paths:
                told.append({"name": path.name, "sha256": _sha256(path), "rows": sizes[path]})
                for piece in _read(path, sizes[path], rows, told[-1]):
                    yield piece
                    bar.update(len(piece))

        write_jets(out / FILE, pieces(), {"source": "imported", "files_read": told})
    return Jets.open(out)


def import_archive(file: str | os.PathLike[str], out: str | os.PathLike[str]) -> Jets:
    """Write the jets of an .npz archive to a directory, once every value is checked."""
    _unused(Path(out).expanduser())
    jets = Jets.from_npz(file)
    jets.verify()
    return jets.save(out)


def _unused(out: Path) -> None:
    if (out / FILE).exists():
        raise DataError(f"{out} holds a data set already: give another directory, or remove it")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def name_split(path: Path) -> str | None:
    """The split that the name of a file says, if it says one.

    >>> name_split(Path("top/val.h5")), name_split(Path("jets.h5"))
    ('validation', None)
    """
    words = "".join(c if c.isalpha() else " " for c in path.stem.lower()).split()
    found = {split for split in SPLITS for word in words if word in (split, split[:3], split[:5])}
    return found.pop() if len(found) == 1 else None


@contextmanager
def _table(path: Path) -> Iterator[Any]:
    """The file as pandas' store; whatever goes wrong with it is told of the file."""
    try:
        import pandas as pd

        with pd.HDFStore(path, mode="r") as store:
            yield store
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None
    except ImportError as error:
        raise DataError(
            f"tables of pandas need the package tables ({error}): pip install 'gortho[hep]'"
        ) from None
    except Exception as error:
        said = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise DataError(
            f"{path} cannot be read ({said[-1][:200]}): check the name, and give the .h5 file as it was downloaded, or "
            "download it again"
        ) from None


def _size(path: Path) -> int:
    """Rows of the file's table, once it has all the columns."""
    with _table(path) as store:
        storer = store.get_storer(KEY)
        if not storer.is_table:
            raise DataError(f"{KEY!r} is in pandas' fixed format: write it by to_hdf(..., format='table')")
        rows, columns = int(storer.nrows), list(store.select(KEY, start=0, stop=0).columns)
        for name in [*MOMENTA, *TRUTH, SPLIT, LABEL]:
            if name not in columns:
                raise missing("column", name, [str(column) for column in columns])
        if rows == 0:
            raise DataError("the table has no rows: download it again")
    return rows


def _read(path: Path, size: int, rows: int, told: dict[str, Any]) -> Iterator[Jets]:
    """The jets of a file, checked, piece by piece; in the end `told` has what is worth knowing about it."""
    seen: set[int] = set()
    labels = np.zeros(2, dtype=np.int64)
    of_code = np.array([SPLITS.index(TTV[code]) for code in range(3)], dtype=np.int8)
    by_name = name_split(path)
    with _table(path) as store:
        for start in range(0, size, rows):
            table = store.select(KEY, start=start, stop=min(start + rows, size))
            momenta, counts, label, code = check_rows(table, start)
            split = of_code[code]
            if by_name is not None:
                _agree(by_name, code, start)
                split[:] = SPLITS.index(by_name)
            seen |= set(np.unique(code).tolist())
            labels += np.bincount(label, minlength=2)
            yield Jets(momenta, edges(counts), label, split)
        if labels.min() == 0 and size >= 100:
            only = int(labels.argmax())
            raise DataError(
                f"all {size} rows have {LABEL} = {only} ({LABELS[only]}): the labels are lost, download the file again"
            )
    told |= {"split": by_name or "by ttv", "ttv": sorted(seen), "jets": dict(zip(LABELS, labels.tolist()))}


def _refuse(bad: np.ndarray, words: Callable[..., str]) -> None:
    """An error about the first place where something is bad."""
    if bad.any():
        raise DataError(words(*(int(k) for k in np.argwhere(bad)[0])))


def _agree(by_name: str, code: np.ndarray, start: int) -> None:
    """A file of one split has one value of ttv, and 0 is the training set."""
    wrong = (code != 0) if by_name == "train" else (code == 0)
    _refuse(
        wrong | (code != code[0]),
        lambda row: (
            f"{SPLIT} is {code[row]} in row {start + row}, and the name says {by_name}: rename the file "
            f"(without train, val and test in its name {SPLIT} counts)"
        ),
    )


def check_rows(table: Any, start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Constituents one after another, how many each row has, labels, ttv; an error names the value and the row.

    `start` is the number of the first row in the file.
    """
    label = _codes(table, LABEL, 2, start, "1 is top, 0 is QCD")
    code = _codes(table, SPLIT, 3, start, "0 is train, 1 and 2 are test and validation")
    p = _numbers(table, MOMENTA, start).reshape(len(table), CONSTITUENTS, 4)
    energy, momentum = p[..., 0], p[..., 1:]
    size, pt = np.linalg.norm(momentum, axis=-1), np.hypot(momentum[..., 0], momentum[..., 1])
    off = np.abs(energy - size) > np.maximum(MASSLESS * energy, MASSLESS_GEV)
    real = (energy > 0) & (pt > 0)
    counts = real.sum(axis=1)
    gap = np.pad(real[:, 1:] & ~real[:, :-1], ((0, 0), (1, 0)))
    for bad, what in (
        (energy < 0, "energies cannot be negative, the file is damaged or in another layout"),
        (off & (energy < size), "it is below |p|, which no particle has: columns are mixed up or damaged"),
        (off, "it is above |p|, and constituents of the reference files are massless: check the columns"),
        (gap, "the one before it is 0; empty places come last, the columns are mixed up"),
    ):
        _refuse(bad, lambda row, i, what=what: f"E_{i} is {energy[row, i]:g} in row {start + row}: {what}")
    _refuse(counts == 0, lambda row: f"row {start + row} has no constituent: every E is 0; remove the row")
    _refuse(
        real[:, 1:] & (pt[:, 1:] > pt[:, :-1] * (1 + SORTED)),
        lambda row, i: (
            f"constituent {i + 1} of row {start + row} has pT {pt[row, i + 1]:g}, more than {pt[row, i]:g} before it: "
            "they come sorted by pT, the columns are mixed up"
        ),
    )
    total = (momentum * real[..., None]).sum(axis=1)
    jet_pt = np.hypot(total[:, 0], total[:, 1])
    _refuse(
        (jet_pt < PT_LIMITS[0]) | (jet_pt > PT_LIMITS[1]),
        lambda row: (
            f"the jet of row {start + row} has pT {jet_pt[row]:g}, and the files hold jets of 550 to 650 GeV: "
            "check the units (GeV, not MeV) and the columns"
        ),
    )
    truth = _numbers(table, TRUTH, start)[:, 0]
    _refuse(
        (truth > 0) != label,
        lambda row: (
            f"{LABEL} is {label[row]} in row {start + row}, and truthE is {truth[row]:g}: tops have a true momentum "
            "and QCD has none; the labels are shifted"
        ),
    )
    return momentum[real].astype(np.float32), counts, label, code


def _numbers(table: Any, columns: list[str], start: int) -> np.ndarray:
    """Columns as finite float64."""
    values = table[columns].to_numpy(dtype=np.float64)
    _refuse(
        ~np.isfinite(values),
        lambda row, column: (
            f"{columns[column]} is {values[row, column]} in row {start + row}: it must be a finite number, "
            "download the file again or remove the row"
        ),
    )
    return values


def _codes(table: Any, column: str, count: int, start: int, meaning: str) -> np.ndarray:
    """A column of small whole numbers."""
    values = _numbers(table, [column], start)[:, 0]
    _refuse(
        ~np.isin(values, np.arange(count)),
        lambda row: f"{column} is {values[row]:g} in row {start + row}: {meaning}; correct the column",
    )
    return values.astype(np.int8)
