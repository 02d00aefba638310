"""Writing jets: tables with list columns, files that are there as a whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gortho.files import whole
from gortho.samples import DataError

from .jets import COMPONENTS, META, NUMBERS

if TYPE_CHECKING:
    import pyarrow as pa


def as_table(
    momenta: np.ndarray, counts: np.ndarray | Sequence[int], numbers: Mapping[str, np.ndarray | None]
) -> pa.Table:
    """Jets as an Arrow table: all their constituents one after another, how many each has, and numbers of each."""
    import pyarrow as pa

    counts = np.asarray(counts, dtype=np.int64)
    lengths = {name: len(values) for name, values in numbers.items() if values is not None}
    if counts.sum() != len(momenta) or set(lengths.values()) - {len(counts)}:
        told = ", ".join(f"{length} of {name}" for name, length in lengths.items())
        raise DataError(
            f"{len(counts)} jets of {counts.sum()} constituents do not fit {len(momenta)} momenta, {told}"
        )
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    p = np.asarray(momenta, dtype=np.float32)
    columns = {
        name: pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(p[:, i])))
        for i, name in enumerate(COMPONENTS)
    }
    for name, values in numbers.items():
        if values is not None:
            columns[name] = pa.array(np.asarray(values, dtype=NUMBERS[name]))
    return pa.table(columns)


class JetsWriter:
    """Writes a Parquet file of jets piece by piece; only `finish` gives it its name."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path).expanduser()
        folder = self.path.parent
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder} is a file: give a directory")
        folder.mkdir(parents=True, exist_ok=True)
        self._open = ExitStack()
        self._writer: Any = None

    def append(
        self,
        momenta: np.ndarray,
        counts: np.ndarray | Sequence[int],
        label: np.ndarray,
        split: np.ndarray,
        pthat: np.ndarray | None = None,
    ) -> None:
        """Add jets: all their constituents one after another, and how many each has."""
        import pyarrow.parquet as pq

        table = as_table(momenta, counts, {"label": label, "split": split, "pthat": pthat})
        if self._writer is None:
            temporary = self._open.enter_context(whole(self.path))
            self._writer = pq.ParquetWriter(
                temporary, table.schema, compression="zstd", write_page_checksum=True
            )
        if table.schema != self._writer.schema:
            raise DataError("pthat must be given for all jets or for none")
        self._writer.write_table(table)

    def finish(self, meta: Mapping[str, Any]) -> None:
        """Say how the jets came to be, and give the file its name."""
        if self._writer is None:
            raise DataError("there are no jets to write")
        self._writer.add_key_value_metadata({META: json.dumps(dict(meta))})
        self._writer.close()
        self._writer = None
        self._open.close()

    def __enter__(self) -> JetsWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._writer is not None:
            with suppress(OSError):  # a full disk has been told of
                self._writer.close()
            self._open.__exit__(*(error if error[0] else (DataError, DataError("not finished"), None)))


def by_falling_pt(momenta: np.ndarray, jet: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Order of constituents by jet and falling pT, at most `most` of each jet, and how many each jet keeps.

    `jet` are the numbers 0, 1, ... of the jets the constituents belong to.
    """
    pt = np.hypot(momenta[:, 0], momenta[:, 1])
    order = np.lexsort((-pt, jet))
    counts = np.bincount(jet)
    rank = np.arange(len(jet)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[rank < most], np.minimum(counts, most)


def versions(names: Iterable[str]) -> dict[str, str]:
    """Installed versions of packages."""
    from importlib.metadata import version

    return {name: version(name) for name in names}
