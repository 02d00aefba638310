"""`Jets`: many jets of different length, in memory or mapped from a directory with checksums."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from gortho.samples import DataError

if TYPE_CHECKING:
    import torch

FORMAT = "gortho-jets-1"
SPLITS = ("train", "validation", "test")
LABELS = ("QCD", "top")
META = "meta.json"
#: Arrays of a directory, with their type and the shape of one entry; the last one may be missing.
ARRAYS: dict[str, tuple[type, tuple[int, ...]]] = {
    "momenta": (np.float32, (3,)),
    "offsets": (np.int64, ()),
    "label": (np.int8, ()),
    "split": (np.int8, ()),
    "pthat": (np.float32, ()),
}
OPTIONAL = ("pthat",)
BLOCK = 1 << 22


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
        path: Path | None = None,
    ):
        self.momenta, self.offsets, self.label = momenta, offsets, label
        self.split_code = np.zeros(len(label), dtype=np.int8) if split is None else split
        self.pthat, self.meta, self.path = pthat, dict(meta or {}), path
        self._check_shapes()

    def _check_shapes(self) -> None:
        """The arrays fit together; whether their values make sense is for `verify`."""
        name = f"{self.path}: " if self.path else ""
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
        """Jets in a directory, mapped into memory, not read. `verify` reads and checks all of it."""
        directory = Path(path).expanduser()
        meta = read_meta(directory)
        arrays = {}
        for name, (dtype, shape) in ARRAYS.items():
            file = directory / f"{name}.npy"
            if name in OPTIONAL and file.name not in meta["files"]:
                continue
            if not file.exists():
                raise DataError(f"{directory} has no {file.name}: copy the whole directory, or make it again")
            expected = meta["files"].get(file.name, {}).get("bytes")
            if file.stat().st_size != expected:
                raise DataError(
                    f"{file} has {file.stat().st_size} bytes, and {META} says {expected}: "
                    "it was cut or changed, make it again"
                )
            values = np.load(file, mmap_mode="r", allow_pickle=False)
            if values.dtype != dtype or values.shape[1:] != shape:
                raise DataError(f"{file} holds {values.dtype} {values.shape}: make it again")
            arrays[name] = values
        # small ones are faster without the map
        return cls(
            arrays["momenta"],
            np.array(arrays["offsets"]),
            np.array(arrays["label"]),
            np.array(arrays["split"]),
            np.array(arrays["pthat"]) if "pthat" in arrays else None,
            meta,
            directory,
        )

    @classmethod
    def from_npz(cls, path: str | os.PathLike[str]) -> Jets:
        """Jets from an .npz archive with `momenta`, `offsets`, `label` and, if it has them, `split` and `pthat`."""
        path = Path(path).expanduser()
        try:
            with np.load(path, allow_pickle=False) as file:
                missing = [name for name in ("momenta", "offsets", "label") if name not in file.files]
                if missing:
                    raise DataError(
                        f"{path.name} has no array {missing[0]!r}: it must have momenta, offsets, label"
                    )
                arrays = {name: file[name] for name in ARRAYS if name in file.files}
                typed: dict[str, np.ndarray] = {
                    name: np.asarray(values, dtype=ARRAYS[name][0]) for name, values in arrays.items()
                }
        except FileNotFoundError:
            raise DataError(f"{path} does not exist: check the name") from None
        except DataError:
            raise
        except Exception as error:
            raise DataError(f"{path.name} cannot be read as .npz ({error}): write it again") from None
        return cls(
            typed["momenta"],
            typed["offsets"],
            typed["label"],
            typed.get("split"),
            typed.get("pthat"),
            {"source": path.name},
        )

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
        """Some of the jets, copied into memory; rows as numpy takes them."""
        rows = np.atleast_1d(np.arange(len(self))[rows])
        if len(rows) == 0:
            raise DataError("no jet is selected: give at least one row")
        counts = self.counts[rows]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        momenta = np.asarray(self.momenta[np.repeat(self.offsets[rows], counts) + inside])
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
        p = np.asarray(self.momenta[index], dtype=np.float64)
        vectors = np.zeros((len(rows), longest, 4))
        vectors[mask] = np.concatenate([np.linalg.norm(p, axis=1, keepdims=True), p], axis=1)
        return torch.from_numpy(vectors).to(dtype or torch.float32), torch.from_numpy(mask)

    def total(self, block: int = 50_000) -> np.ndarray:
        """Momenta of the jets themselves, (len, 4) as E, px, py, pz."""
        result = np.empty((len(self), 4))
        for start in range(0, len(self), block):
            stop = min(start + block, len(self))
            low, high = self.offsets[start], self.offsets[stop]
            p = np.asarray(self.momenta[low:high], dtype=np.float64)
            p = np.concatenate([np.linalg.norm(p, axis=1, keepdims=True), p], axis=1)
            sums = np.concatenate([np.zeros((1, 4)), np.cumsum(p, axis=0)])
            edges = self.offsets[start : stop + 1] - low
            result[start:stop] = sums[edges[1:]] - sums[edges[:-1]]
        return result

    def save(self, path: str | os.PathLike[str], **meta: Any) -> Jets:
        """Write to a directory, and open it."""
        with JetsWriter(path) as writer:
            step = 50_000
            for start in range(0, len(self), step):
                stop = min(start + step, len(self))
                writer.append(
                    self.momenta[self.offsets[start] : self.offsets[stop]],
                    self.counts[start:stop],
                    self.label[start:stop],
                    self.split_code[start:stop],
                    None if self.pthat is None else self.pthat[start:stop],
                )
            writer.finish({name: value for name, value in self.meta.items() if name != "files"} | meta)
        return Jets.open(path)

    def verify(self) -> None:
        """Read everything: checksums, finite momenta, order by pT, labels and splits. An error names what is wrong."""
        if self.path is not None:
            for name, entry in self.meta["files"].items():
                found = sha256(self.path / name)
                if found != entry["sha256"]:
                    raise DataError(
                        f"{self.path / name} has changed: its SHA-256 is {found[:12]}..., and {META} says "
                        f"{entry['sha256'][:12]}...: copy or make it again"
                    )
        counts = self.counts
        if counts.min() < 1:
            row = int(np.argmin(counts))
            raise DataError(f"jet {row} has {counts[row]} constituents: every jet needs at least one")
        for what, values, allowed in (
            ("label", self.label, len(LABELS)),
            ("split", self.split_code, len(SPLITS)),
        ):
            bad = (values < 0) | (values >= allowed)
            if bad.any():
                row = int(np.argmax(bad))
                raise DataError(f"{what} of jet {row} is {values[row]}: it must be 0 to {allowed - 1}")
        for start in range(0, len(self), 50_000):
            low, high = self.offsets[start], self.offsets[min(start + 50_000, len(self))]
            p = np.asarray(self.momenta[low:high], dtype=np.float64)
            pt = np.hypot(p[:, 0], p[:, 1])
            rising = np.asarray(np.diff(pt, prepend=np.inf) > 1e-4 * np.maximum(pt, 1e-3))
            first = self.offsets[start : start + 50_000] - low
            rising[first[first < len(pt)]] = False
            wrong: tuple[tuple[Any, str], ...] = (
                (~np.isfinite(p).all(axis=1), "is not finite"),
                (pt == 0, "has no transverse momentum"),
                (rising, "has more transverse momentum than the one before it"),
            )
            for bad, what in wrong:
                if bad.any():
                    at = int(np.argmax(bad)) + int(low)
                    row = int(np.searchsorted(self.offsets, at, side="right")) - 1
                    raise DataError(
                        f"constituent {at - self.offsets[row]} of jet {row} {what}: "
                        f"{self.momenta[at].tolist()}, make the data again"
                    )


def open_jets(path: Path) -> Jets:
    """A directory that `gortho data toptag` wrote, or an .npz archive."""
    return Jets.from_npz(path) if path.suffix == ".npz" else Jets.open(path)


def read_meta(directory: Path) -> dict[str, Any]:
    """The description of a directory of jets, or an error that says what is there instead."""
    file = directory / META
    if not directory.is_dir():
        what = "is a file" if directory.exists() else "does not exist"
        raise DataError(f"{directory} {what}: give the directory of a data set")
    if not file.exists():
        raise DataError(
            f"{directory} has no {META}: it is no data set of jets, or one that is not finished; run the command "
            "that makes it again, it goes on where it was"
        )
    try:
        meta = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{file} is not JSON ({error}): make the data again") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT or not isinstance(meta.get("files"), dict):
        found = meta.get("format") if isinstance(meta, dict) else type(meta).__name__
        raise DataError(f"{file} has format {found!r}, and {FORMAT!r} is read: make the data again")
    return meta


def sha256(path: Path) -> str:
    """Checksum of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is there as a whole or not at all."""
    temporary = path.with_name(f"{path.name}.part")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


class JetsWriter:
    """Writes a directory of jets piece by piece; only `finish` makes it readable."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path).expanduser()
        if self.path.exists() and not self.path.is_dir():
            raise DataError(f"{self.path} is a file: give a directory")
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / META).unlink(missing_ok=True)
        self._files = {name: (self.path / f"{name}.npy.part").open("w+b") for name in ARRAYS}
        self._lengths = dict.fromkeys(ARRAYS, 0)
        for name in ARRAYS:
            self._header(name)
        self._add("offsets", np.zeros(1))
        self._optional: bool | None = None

    def _header(self, name: str) -> None:
        dtype, shape = ARRAYS[name]
        header = {
            "descr": npy.dtype_to_descr(np.dtype(dtype)),
            "fortran_order": False,
            "shape": (self._lengths[name], *shape),
        }
        self._files[name].seek(0)
        npy.write_array_header_1_0(self._files[name], header)  # numpy leaves room for the length to grow

    def _add(self, name: str, values: np.ndarray) -> None:
        self._files[name].write(np.ascontiguousarray(values, dtype=ARRAYS[name][0]).tobytes())
        self._lengths[name] += len(values)

    def append(
        self,
        momenta: np.ndarray,
        counts: np.ndarray | Sequence[int],
        label: np.ndarray,
        split: np.ndarray,
        pthat: np.ndarray | None = None,
    ) -> None:
        """Add jets: all their constituents one after another, and how many each has."""
        counts = np.asarray(counts, dtype=np.int64)
        if counts.sum() != len(momenta) or not len(counts) == len(label) == len(split):
            raise DataError(
                f"{len(counts)} jets of {counts.sum()} constituents do not fit {len(momenta)} momenta, "
                f"{len(label)} labels, {len(split)} splits"
            )
        if self._optional is None:
            self._optional = pthat is not None
        if self._optional != (pthat is not None):
            raise DataError("pthat must be given for all jets or for none")
        before = self._lengths["momenta"]
        self._add("momenta", momenta)
        self._add("offsets", before + np.cumsum(counts))
        self._add("label", label)
        self._add("split", split)
        if pthat is not None:
            self._add("pthat", pthat)

    def finish(self, meta: Mapping[str, Any]) -> None:
        """Give the files their names, and write meta.json with their checksums."""
        if self._lengths["label"] == 0:
            raise DataError("there are no jets to write")
        files = {}
        for name, file in self._files.items():
            self._header(name)
            file.flush()
            os.fsync(file.fileno())
            file.close()
            part, final = self.path / f"{name}.npy.part", self.path / f"{name}.npy"
            if name in OPTIONAL and not self._optional:
                part.unlink()
                final.unlink(missing_ok=True)
                continue
            part.replace(final)
            files[final.name] = {"sha256": sha256(final), "bytes": final.stat().st_size}
        content = {
            "format": FORMAT,
            "jets": self._lengths["label"],
            "constituents": self._lengths["momenta"],
            "labels": list(LABELS),
            "splits": list(SPLITS),
            "units": "GeV",
        }
        content |= {key: value for key, value in meta.items() if key not in content} | {"files": files}
        write_atomically(self.path / META, (json.dumps(content, indent=1) + "\n").encode())

    def __enter__(self) -> JetsWriter:
        return self

    def __exit__(self, *error: object) -> None:
        for name, file in self._files.items():
            file.close()
            (self.path / f"{name}.npy.part").unlink(missing_ok=True)


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
