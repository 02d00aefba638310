"""`Jets`: many jets of different length, in memory, and as Parquet files on disk.

A file has a row for each jet: the lists `px`, `py`, `pz` of its constituents in GeV, sorted by falling pT, the numbers
`label` (1 top, 0 QCD), `split` (0 train, 1 validation, 2 test) and, where it is known, `pthat`. Whatever reads Parquet
reads it. How the jets came to be is JSON in the metadata of the schema, under "gortho"; pages carry checksums.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gortho.files import whole
from gortho.samples import DataError
from gortho.samples.errors import missing

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

SPLITS = ("train", "validation", "test")
LABELS = ("QCD", "top")
#: The file of a directory of jets, and where its schema says how they came to be.
FILE, META = "jets.parquet", b"gortho"
COMPONENTS = ("px", "py", "pz")
#: Numbers of a jet, with their types; the last one may be missing.
NUMBERS = {"label": np.int8, "split": np.int8, "pthat": np.float32}
#: Jets that are written, or looked at, together.
BLOCK = 50_000


class Jets:
    """Jets as massless constituents: jet i owns `momenta[offsets[i]:offsets[i + 1]]`, px py pz in GeV, E = |p|.

    Constituents are sorted by falling transverse momentum. `label` is 1 for top, 0 for QCD; `split_code` is 0 train,
    1 validation, 2 test; `pthat` is the transverse momentum of the hard process where it is known, else None.
    """

    def __init__(
        self,
        momenta: np.ndarray,
        offsets: np.ndarray,
        label: np.ndarray,
        split: np.ndarray | None = None,
        pthat: np.ndarray | None = None,
        meta: Mapping[str, Any] | None = None,
        name: str = "",
    ):
        self.momenta, self.offsets, self.label = momenta, offsets, label
        self.split_code = np.zeros(len(label), dtype=np.int8) if split is None else split
        self.pthat, self.meta = pthat, dict(meta or {})
        self._check_shapes(f"{name}: " if name else "")

    def _check_shapes(self, name: str) -> None:
        """The arrays fit together; whether their values make sense is for `verify`."""
        if self.momenta.ndim != 2 or self.momenta.shape[1] != 3:
            raise DataError(f"{name}momenta have shape {self.momenta.shape}: they must be (M, 3): px, py, pz")
        if self.offsets.ndim != 1 or len(self.offsets) < 2:
            raise DataError(f"{name}offsets have shape {self.offsets.shape}: there must be at least one jet")
        n = len(self.offsets) - 1
        for what, values in (("label", self.label), ("split", self.split_code), ("pthat", self.pthat)):
            if values is not None and values.shape != (n,):
                raise DataError(
                    f"{name}{what} has shape {values.shape}, and offsets are of {n} jets: make the data again"
                )
        counts = self.counts
        if counts.min() < 0:
            row = int(np.argmax(counts < 0))
            raise DataError(
                f"{name}offsets fall from {self.offsets[row]} to {self.offsets[row + 1]} at jet {row}: they rise"
            )
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.momenta):
            raise DataError(
                f"{name}offsets run from {self.offsets[0]} to {self.offsets[-1]}, and there are {len(self.momenta)} "
                "constituents: the files are cut or do not belong together, make them again"
            )

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Jets:
        """Jets of a directory that `gortho data toptag` wrote, a Parquet file with their columns, or an .npz."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if Path(path).suffix == ".npz":
            return cls.from_npz(path)
        file = _file(Path(path).expanduser())
        try:
            with pq.ParquetFile(file, page_checksum_verification=True) as opened:
                table, told = opened.read(), opened.metadata.metadata or {}
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{file} is cut or damaged ({error}): copy or make it again") from None
        for column in (*COMPONENTS, "label", "split"):
            if column not in table.column_names:
                raise DataError(f"{file}: {missing('column', column, table.column_names)}")
        try:
            lists = [table[name].combine_chunks().cast(pa.list_(pa.float32())) for name in COMPONENTS]
            counts = [np.diff(np.asarray(part.offsets, dtype=np.int64)) for part in lists]
            momenta = [np.asarray(part.flatten()) for part in lists]
            numbers = {
                name: np.asarray(table[name].combine_chunks()).astype(dtype)
                for name, dtype in NUMBERS.items()
                if name in table.column_names
            }
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise DataError(
                f"{file} does not hold jets ({error}): px, py, pz are lists of numbers, label and split numbers"
            ) from None
        if any(not np.array_equal(other, counts[0]) for other in counts):
            raise DataError(f"{file}: px, py and pz have lists of different lengths: write it again")
        meta = json.loads(told.get(META, b"{}"))
        return cls(np.stack(momenta, axis=1), edges(counts[0]), meta=meta, name=str(file), **numbers)

    @classmethod
    def from_npz(cls, path: str | os.PathLike[str]) -> Jets:
        """Jets from an .npz archive with `momenta`, `offsets`, `label` and, if it has them, `split` and `pthat`."""
        path = Path(path).expanduser()
        types: dict[str, type] = {"momenta": np.float32, "offsets": np.int64, **NUMBERS}
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {
                    name: file[name].astype(dtype) for name, dtype in types.items() if name in file.files
                }
        except FileNotFoundError:
            raise DataError(f"{path} does not exist: check the name") from None
        except Exception as error:
            raise DataError(f"{path.name} cannot be read as .npz ({error}): write it again") from None
        for name in ("momenta", "offsets", "label"):
            if name not in arrays:
                raise DataError(f"{path.name} has no array {name!r}: it must have momenta, offsets, label")
        return cls(**arrays, meta={"source": path.name}, name=path.name)

    @classmethod
    def cat(cls, parts: Sequence[Jets]) -> Jets:
        """Jets one after another; hard processes are known where all parts know them."""
        if not parts:
            raise DataError("there are no jets to put together: give at least one file")
        if len(parts) == 1:
            return parts[0]
        columns = zip(*((part.momenta, part.counts, part.label, part.split_code) for part in parts))
        momenta, counts, label, split = map(np.concatenate, columns)
        known = [part.pthat for part in parts if part.pthat is not None]
        pthat = np.concatenate(known) if len(known) == len(parts) else None
        return cls(momenta, edges(counts), label, split, pthat)

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        tops = int(self.label.sum())
        return f"Jets({len(self)} jets: {tops} top, {len(self) - tops} QCD, {len(self.momenta)} constituents)"

    @property
    def counts(self) -> np.ndarray:
        """Constituents of each jet."""
        return np.diff(self.offsets)

    def split(self, name: str) -> np.ndarray:
        """Rows of the jets of a split: "train", "validation" or "test"."""
        if name not in SPLITS:
            raise DataError(f"there is no split {name!r}: use one of {', '.join(SPLITS)}")
        return np.flatnonzero(self.split_code == SPLITS.index(name))

    def __getitem__(self, rows: Any) -> Jets:
        """Some of the jets; rows as numpy takes them."""
        rows = np.atleast_1d(np.arange(len(self))[rows])
        if len(rows) == 0:
            raise DataError("no jet is selected: give at least one row")
        counts = self.counts[rows]
        offsets = edges(counts)
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        momenta = self.momenta[np.repeat(self.offsets[rows], counts) + inside]
        pthat = None if self.pthat is None else self.pthat[rows]
        return Jets(momenta, offsets, self.label[rows], self.split_code[rows], pthat)

    def padded(
        self,
        rows: Any = slice(None),
        max_constituents: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(E, px, py, pz) as (B, N, 4) with zeros behind the last constituent, and the mask (B, N) of real ones.

        N is `max_constituents`, or that of the longest jet; constituents of least pT are dropped. Without a dtype,
        float32.
        """
        import torch  # takes seconds, which commands that need no torch do not wait for

        rows = np.atleast_1d(np.arange(len(self))[rows])
        counts = self.counts[rows]
        longest = int(counts.max(initial=0)) if max_constituents is None else int(max_constituents)
        if longest < 1:
            raise DataError(f"max_constituents is {longest}: it must be at least 1")
        mask = np.arange(longest) < counts[:, None]
        index = (self.offsets[rows][:, None] + np.arange(longest))[mask]
        vectors = np.zeros((len(rows), longest, 4))
        vectors[mask] = with_energy(self.momenta[index])
        return torch.from_numpy(vectors).to(dtype or torch.float32), torch.from_numpy(mask)

    def total(self, block: int = BLOCK) -> np.ndarray:
        """Momenta of the jets themselves, (len, 4) as E, px, py, pz."""
        result = np.empty((len(self), 4))
        for start in range(0, len(self), block):
            at = self.offsets[start : start + block + 1]
            p = with_energy(self.momenta[at[0] : at[-1]])
            sums = np.concatenate([np.zeros((1, 4)), np.cumsum(p, axis=0)])[at - at[0]]
            result[start : start + block] = np.diff(sums, axis=0)
        return result

    def table(self) -> pa.Table:
        """Jets as an Arrow table with a row for each."""
        import pyarrow as pa

        offsets = pa.array(self.offsets, pa.int32())
        columns = {
            name: pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(p, dtype=np.float32)))
            for name, p in zip(COMPONENTS, self.momenta.T)
        }
        for name, values in zip(NUMBERS, (self.label, self.split_code, self.pthat)):
            if values is not None:
                columns[name] = pa.array(np.asarray(values, dtype=NUMBERS[name]))
        return pa.table(columns)

    def save(self, path: str | os.PathLike[str], **meta: Any) -> Jets:
        """Write to a directory, with more to say about the jets, and open it."""
        blocks = (self[start : start + BLOCK] for start in range(0, len(self), BLOCK))
        write_jets(Path(path).expanduser() / FILE, blocks, self.meta | meta)
        return Jets.open(path)

    def verify(self) -> None:
        """Look at every value: momenta, their order, labels, splits. An error names what is wrong."""
        counts = self.counts
        if counts.min() < 1:
            row = int(np.argmin(counts))
            raise DataError(f"jet {row} has {counts[row]} constituents: every jet needs at least one")
        for what, values, names in (("label", self.label, LABELS), ("split", self.split_code, SPLITS)):
            bad = ~np.isin(values, range(len(names)))
            if bad.any():
                row = int(np.argmax(bad))
                raise DataError(f"{what} of jet {row} is {values[row]}: it must be 0 to {len(names) - 1}")
        for start in range(0, len(self), BLOCK):
            first = self.offsets[start : start + BLOCK + 1]
            p = np.asarray(self.momenta[first[0] : first[-1]], dtype=np.float64)
            pt = np.hypot(p[:, 0], p[:, 1])
            rising = np.asarray(np.diff(pt, prepend=np.inf) > 1e-4 * np.maximum(pt, 1e-3))
            rising[first[:-1] - first[0]] = False
            wrong: tuple[tuple[Any, str], ...] = (
                (~np.isfinite(p).all(axis=1), "is not finite"),
                (pt == 0, "has no transverse momentum"),
                (rising, "has more transverse momentum than the one before it"),
            )
            for bad, what in wrong:
                if bad.any():
                    at = int(np.argmax(bad)) + int(first[0])
                    row = int(np.searchsorted(self.offsets, at, side="right")) - 1
                    raise DataError(
                        f"constituent {at - self.offsets[row]} of jet {row} {what}: "
                        f"{self.momenta[at].tolist()}, make the data again"
                    )


def write_jets(file: str | os.PathLike[str], pieces: Iterable[Jets], meta: Mapping[str, Any]) -> None:
    """Write jets piece by piece to a Parquet file, which gets its name when all of them are there.

    `meta`, how they came to be, is written last: whatever makes the pieces may add to it.
    """
    import pyarrow.parquet as pq

    path = Path(file).expanduser()
    if path.parent.exists() and not path.parent.is_dir():
        raise DataError(f"{path.parent} is a file: give a directory")
    path.parent.mkdir(parents=True, exist_ok=True)
    tables = (piece.table() for piece in pieces)
    first = next(tables, None)
    if first is None:
        raise DataError("there are no jets to write")
    options: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
    with whole(path) as temporary, pq.ParquetWriter(temporary, first.schema, **options) as writer:
        for table in itertools.chain([first], tables):
            if table.schema != first.schema:
                raise DataError("pthat must be given for all jets or for none")
            writer.write_table(table)
        writer.add_key_value_metadata({META: json.dumps(dict(meta))})


def edges(counts: np.ndarray) -> np.ndarray:
    """Offsets of jets with so many constituents."""
    return np.concatenate([[0], np.cumsum(counts)])


def by_falling_pt(momenta: np.ndarray, jet: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Order of constituents by jet and falling pT, at most `most` of each jet, and how many each jet keeps.

    `jet` are the numbers 0, 1, ... of the jets the constituents belong to.
    """
    pt = np.hypot(momenta[:, 0], momenta[:, 1])
    order = np.lexsort((-pt, jet))
    counts = np.bincount(jet)
    rank = np.arange(len(jet)) - np.repeat(edges(counts)[:-1], counts)
    return order[rank < most], np.minimum(counts, most)


def with_energy(momenta: np.ndarray) -> np.ndarray:
    """(E, px, py, pz) of massless momenta (M, 3), in float64."""
    p = np.asarray(momenta, dtype=np.float64)
    return np.concatenate([np.linalg.norm(p, axis=1, keepdims=True), p], axis=1)


def _file(path: Path) -> Path:
    """The Parquet file of a path, or an error that says what is there instead."""
    if not path.exists():
        raise DataError(f"{path} does not exist: give the directory of a data set, or a Parquet file")
    if not path.is_dir():
        return path
    if (path / FILE).exists():
        return path / FILE
    if (path / "momenta.npy").exists():
        raise DataError(
            f"{path} holds jets as gortho 0.1 wrote them: put its .npy files into one archive by np.savez('jets.npz', "
            "momenta=…, offsets=…, label=…, split=…), and give that to `gortho data toptag import jets.npz OUT`"
        )
    raise DataError(
        f"{path} has no {FILE}: it is no data set of jets, or one that is not finished; run the command that makes it "
        "again, it continues"
    )
