"""`Chunks`: samples on disk that are read block by block, here or by several workers; `Raw`: rows of them in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .checks import as_float64
from .errors import LEAVE_OUT, DataError, row_number
from .labels import Codes
from .sampling import Limits, choose, sample_stream

#: Rows of a piece, about: what one worker reads at a time.
PIECE = 1_000_000
#: Numbers of a block in memory.
BLOCK = 2_000_000
#: Pieces that a first look is taken at.
LOOKED_AT = 16

#: Columns or arrays of a block of rows, by their names.
Named = Sequence[tuple[str, Any]]
#: Gives blocks of this many rows, or of a size that it chooses.
Reader = Callable[[int | None], Iterator[Named]]


@dataclass(frozen=True)
class Piece:
    """A run of rows of one file, which can be read by itself.

    `first` is the number of its first row, counted over all files; `where` tells in words where the row of a number
    stands; `file` is the name of its file, where there are several; `codes` are those of columns of labels.
    """

    first: int
    read: Reader
    where: Callable[[int], str] = row_number
    file: str = ""
    codes: Mapping[str, Codes] = field(default_factory=dict)

    def blocks(self, rows: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """The number of its first row, and the block as float64, for each block; errors name the file."""
        first = self.first
        try:
            for columns in self.read(rows):
                numbers = [self.codes.get(name, as_float64)(part, name) for name, part in columns]
                block = np.concatenate([n.reshape(len(n), math.prod(n.shape[1:])) for n in numbers], axis=1)
                yield first, block
                first += len(block)
        except DataError as error:
            raise DataError(f"{self.file}: {error}" if self.file else str(error)) from None

    def finite_blocks(
        self,
        labels: tuple[str, ...],
        rows: int | None = None,
        dropna: bool = False,
        told: Callable[[int], None] = lambda missing: None,
    ) -> Iterator[tuple[int, np.ndarray]]:
        """The blocks, or a DataError that names the first number that is not finite.

        With `dropna`, rows with missing numbers (NaN) are left out; `told` hears of how many.
        """
        for first, block in self.blocks(rows):
            numbers = np.arange(first, first + len(block))
            if dropna:
                there = ~np.isnan(block).any(axis=1)
                told(int((~there).sum()))
                block, numbers = block[there], numbers[there]
                if not len(block):
                    continue
            if not np.isfinite(block).all():
                row, column = (int(i) for i in np.argwhere(~np.isfinite(block))[0])
                place = self.where(int(numbers[row]))
                raise DataError(
                    f"{labels[column]} is {block[row, column]} in {place}: drop or impute such rows"
                    + (LEAVE_OUT if np.isnan(block[row, column]) else "")
                )
            yield first, block


def pieces_of(
    total: int, read: Callable[[int, int], Reader], where: Callable[[int], str] = row_number
) -> list[Piece]:
    """So many rows in pieces, by a function that gives the reader of rows from start to stop."""
    return [Piece(start, read(start, min(start + PIECE, total)), where) for start in range(0, total, PIECE)]


@dataclass(frozen=True)
class Chunks:
    """Samples on disk as pieces. The numbers of a row are those of x, y and the other parts, end to end.

    `shapes` are the shapes of each part of a row; `labels` name the numbers, for messages; `total` is the number of
    rows, None where only reading tells. `columns` are the names of x's columns, None for files of arrays; `picked` are
    the arrays or columns that are read, by their part ("x", "y", "scalars", …); `where` tells in words where a row
    stands; `classes` are those of labels, where y has their codes.
    """

    pieces: tuple[Piece, ...]
    shapes: dict[str, tuple[int, ...]]
    labels: tuple[str, ...]
    total: int | None = None
    columns: list[str] | None = None
    notices: list[str] = field(default_factory=list)
    picked: dict[str, tuple[str, ...]] = field(default_factory=dict)
    where: Callable[[int], str] = row_number
    dropna: bool = False
    classes: tuple[Any, ...] = ()

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def parts(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """The parts of rows, each in its shape."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()])[:-1]
        split = zip(self.shapes.items(), np.split(values, ends, axis=1))
        return {part: found.reshape(len(values), *shape) for (part, shape), found in split}

    def raw(self, values: np.ndarray, rows: np.ndarray, notices: list[str] | None = None) -> Raw:
        """Rows of the source, by their numbers."""
        return Raw(self, self.parts(values), rows, [*self.notices, *(notices or [])])

    def draw(self, limits: Limits) -> Raw:
        """The rows that may be read, at random where these are not all."""
        limit = limits.rows(self.width)
        blocks = ((first, block) for piece in self.pieces for first, block in piece.blocks())
        if self.total is None or (self.columns is not None and self.total > limit):
            stream = (block for _, block in blocks)
            values, rows, total = sample_stream(stream, self.width, limit, limits.seed)
        else:
            total, rows = self.total, choose(self.total, limit, limits.seed)
            kept = [block[rows[(rows >= k) & (rows < k + len(block))] - k] for k, block in blocks]
            values = np.concatenate([np.empty((0, self.width)), *kept])
        return self.raw(values, rows, limits.notices(total, self.width))

    def at_most(self, rows: int) -> bool:
        """Whether there are no more rows than this; reads so many where the file does not say."""
        if self.total is not None:
            return self.total <= rows
        seen = 0
        for piece in self.pieces:
            for _, block in piece.blocks():
                seen += len(block)
                if seen > rows:
                    return False
        return True

    def first_look(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """About so many rows and their numbers, from the beginnings of pieces all over the source."""
        step = -(-len(self.pieces) // LOOKED_AT)
        pieces = self.pieces[::step]
        each = -(-rows // len(pieces))
        looks = [next(piece.finite_blocks(self.labels, each, self.dropna), None) for piece in pieces]
        found = [look for look in looks if look is not None]
        numbers = [np.arange(first, first + len(block)) for first, block in found]
        return np.concatenate([block for _, block in found]), np.concatenate(numbers)


@dataclass(frozen=True)
class Raw:
    """Rows in memory as they stand in the file, before they are shaped and checked: parts by name, numbers of rows."""

    source: Chunks
    parts: dict[str, np.ndarray]
    rows: np.ndarray
    notices: list[str]
    kept: np.ndarray | None = None  # which rows of the file are left, if some are not

    def __len__(self) -> int:
        return len(self.parts["x"])

    def place(self, index: int) -> str:
        """Where a row that was read stands in the file, in words: by its line, or by its number from 0."""
        return self.source.where(int(self.rows[index]))


def slices(
    arrays: Named, rows: int | None = None, start: int = 0, stop: int | None = None
) -> Iterator[Named]:
    """Rows of arrays, or of datasets on disk, block by block."""
    width = sum(math.prod(array.shape[1:]) for _, array in arrays)
    step, stop = rows or max(1, BLOCK // max(1, width)), len(arrays[0][1]) if stop is None else stop
    for k in range(start, stop, step):
        yield [(name, array[k : min(k + step, stop)]) for name, array in arrays]
