"""How many rows may be read, and which ones if not all."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np

from .errors import DataError

MAX_SAMPLES = 200_000
BYTES = 8 * 4  # a float64, and room for the copies made while reading and checking


def available_memory() -> int | None:
    """Bytes of memory that can be used without swapping; None where the system does not say."""
    import psutil

    try:
        return psutil.virtual_memory().available
    except OSError:
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
    why: str = "pass a larger max_samples to use more"

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
        why = self.why if kept == self.asked else "more do not fit in memory"
        return [f"a random subset of {kept} of the {total} rows is used (seed {self.seed}): {why}"]


def choose(total: int, limit: int, seed: int) -> np.ndarray:
    """Sorted indices of at most `limit` of `total` rows, uniformly at random."""
    if total <= limit:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, limit, replace=False))


def keys(seed: int, first: int, count: int) -> np.ndarray:
    """A random key for each of the rows from number `first` on, no two alike: a function of seed and number alone.

    So the rows with the smallest keys are the same whatever blocks a file is read in, and by whom. (SplitMix64.)

    >>> bool((keys(7, 0, 9)[5:] == keys(7, 5, 4)).all())
    True
    """
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    z = state + np.arange(first + 1, first + count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class Kept:
    """A uniform sample of at most `limit` rows of a source: those with the smallest keys, and their numbers.

    Samples of parts of a source add up to the sample of the whole, in any order.

    >>> x = np.arange(100.0)[:, None]
    >>> whole = Kept.of(x, 0, 5, seed=1)
    >>> parts = Kept.of(x[60:], 60, 5, seed=1) + Kept.of(x[:60], 0, 5, seed=1)
    >>> bool((whole.in_order()[1] == parts.in_order()[1]).all())
    True
    """

    limit: int
    keys: np.ndarray
    numbers: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, block: np.ndarray, first: int, limit: int, seed: int) -> Kept:
        """The sample of a block whose first row has the number `first`."""
        return cls._least(limit, keys(seed, first, len(block)), np.arange(first, first + len(block)), block)

    @classmethod
    def _least(cls, limit: int, drawn: np.ndarray, numbers: np.ndarray, values: np.ndarray) -> Kept:
        if len(drawn) > limit:
            stay = np.argpartition(drawn, limit - 1)[:limit]
            drawn, numbers, values = drawn[stay], numbers[stay], values[stay]
        return cls(limit, drawn, numbers, values)

    def __add__(self, other: Kept) -> Kept:
        both = ((self.keys, other.keys), (self.numbers, other.numbers), (self.values, other.values))
        return Kept._least(self.limit, *map(np.concatenate, both))

    def __len__(self) -> int:
        return len(self.keys)

    def in_order(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and their numbers, in the order of the source."""
        order = np.argsort(self.numbers)
        return self.values[order], self.numbers[order]


class Adds(Protocol):
    """Anything that adds up over rows."""

    def __add__(self, other: Any) -> Any: ...


T = TypeVar("T", bound=Adds)


def add_up(parts: Iterable[T]) -> T | None:
    """The sum of parts as they come, neighbours in pairs, pairs of pairs and so on: few are held at a time.

    Rounding errors grow with the logarithm of the number of parts; and the order, so the last digit, is that of `scan`
    on several workers.
    """
    stack: list[tuple[int, T]] = []
    for part in parts:
        level = 0
        while stack and stack[-1][0] == level:
            part, level = stack.pop()[1] + part, level + 1
        stack.append((level, part))
    if not stack:
        return None
    total = stack.pop()[1]
    while stack:
        total = stack.pop()[1] + total
    return total


def sample_stream(
    blocks: Iterable[np.ndarray], width: int, limit: int, seed: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """A uniform sample of at most `limit` rows from a stream of blocks of rows, in their order.

    The length of the stream need not be known. Returns the rows, their numbers in the stream, and its length.
    """
    total = 0

    def parts() -> Iterator[Kept]:
        nonlocal total
        for block in chain([np.empty((0, width))], blocks):
            yield Kept.of(block, total, limit, seed)
            total += len(block)

    kept = add_up(parts())
    assert kept is not None
    return *kept.in_order(), total
