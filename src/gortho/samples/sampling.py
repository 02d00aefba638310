"""How many rows may be read, and which ones when that is not all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .errors import DataError

MAX_SAMPLES = 200_000
BYTES = 8 * 4  # a float64, and room for the copies made while reading and checking


def available_memory() -> int | None:
    """Bytes of memory that can be used without swapping; None where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def sizes(amount: float) -> str:
    """Bytes in words.

    >>> sizes(3_200_000)
    '3.2 MB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"


@dataclass(frozen=True)
class Limits:
    """The most rows to keep: as asked for, and as fits in `memory` bytes; with `every`, all or an error."""

    max_samples: int | None = None
    memory: int | None = None
    seed: int = 0
    every: bool = False

    def __post_init__(self) -> None:
        if self.max_samples is not None and self.max_samples < 2:
            raise DataError(f"max_samples is {self.max_samples}: it must be at least 2")

    @property
    def asked(self) -> int:
        if self.max_samples is None:
            return sys.maxsize if self.every else MAX_SAMPLES
        return int(self.max_samples)

    def rows(self, width: int) -> int:
        """The most rows of `width` numbers each."""
        if self.memory is None:
            return self.asked
        fitting = self.memory // (BYTES * max(width, 1))
        if fitting < 2:
            raise DataError(
                f"not even two rows of {width} numbers fit in the {sizes(self.memory)} of memory available: "
                "read fewer columns or free some memory"
            )
        return min(self.asked, fitting)

    def notices(self, total: int, width: int) -> list[str]:
        """Tells that rows were left out of `total`, if any were."""
        kept = self.rows(width)
        if total <= kept:
            return []
        if self.every and kept < self.asked:
            raise DataError(
                f"the {total} rows do not fit in the {sizes(self.memory or 0)} of memory available: split the file"
            )
        why = "pass a larger max_samples to use more" if kept == self.asked else "more do not fit in memory"
        return [f"a random subset of {kept} of the {total} rows is used (seed {self.seed}): {why}"]


def choose(total: int, limit: int, seed: int) -> np.ndarray:
    """Sorted indices of at most `limit` of `total` rows, uniformly at random."""
    if total <= limit:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, limit, replace=False))


def sample_stream(
    blocks: Iterable[np.ndarray], width: int, limit: int, seed: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """A uniform sample of at most `limit` rows from a stream of blocks of rows, in their order.

    Each row draws a random key and the smallest keys stay, so the length of the stream need not be known.
    Returns the rows, their numbers in the stream, and the length of the stream.
    """
    rng = np.random.default_rng(seed)
    keys, numbers, values = np.empty(0), np.empty(0, dtype=np.int64), np.empty((0, width))
    waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    total = held = 0
    threshold = np.inf

    def merge() -> None:
        nonlocal keys, numbers, values, held, threshold
        keys, numbers, values = (np.concatenate(part) for part in zip((keys, numbers, values), *waiting))
        waiting.clear()
        if len(keys) > limit:
            stay = np.sort(np.argpartition(keys, limit)[:limit])
            keys, numbers, values = keys[stay], numbers[stay], values[stay]
            threshold = keys.max()
        held = len(keys)

    for block in blocks:
        drawn = rng.random(len(block))
        stay = np.flatnonzero(drawn < threshold)
        waiting.append((drawn[stay], total + stay, block[stay]))
        total += len(block)
        held += len(stay)
        if held > 2 * limit:
            merge()
    merge()
    return values, numbers, total
