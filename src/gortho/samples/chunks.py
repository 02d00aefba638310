"""`Chunks`: samples on disk that are read block by block, here or by several workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from .checks import as_float64
from .errors import LEAVE_OUT, DataError, row_number
from .raw import Raw
from .wanted import MORE

#: Rows of a piece, about: what one worker reads at a time.
PIECE = 1_000_000
#: Numbers of a block in memory.
BLOCK = 2_000_000
#: Pieces that a first look is taken at.
LOOKED_AT = 16


@dataclass(frozen=True)
class Piece:
    """A run of rows of one file, which can be read by itself.

    `first` is the number of its first row, counted over all files; `read` gives blocks of so many rows, or of a size
    that it chooses, as float64; `where` tells in words where the row of a number stands; `file` is the name of its
    file, where there are several.
    """

    first: int
    read: Callable[[int | None], Iterator[np.ndarray]]
    where: Callable[[int], str] = row_number
    file: str = ""

    def blocks(self, rows: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """The number of its first row, and the block, for each block; errors name the file."""
        first = self.first
        try:
            for block in self.read(rows):
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


@dataclass(frozen=True)
class Chunks:
    """Samples on disk as pieces. The numbers of a row are those of x, y and scalars, end to end.

    `shapes` are the shapes of each part of a row; `labels` name the numbers, for messages; `total` is the number of
    rows, None where only reading tells. The rest is as in `Raw`.
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

    @classmethod
    def of_arrays(cls, raw: Raw) -> Chunks:
        """Arrays in memory, or mapped into it, in the same way."""
        arrays = {"x": raw.X, "y": raw.y, "scalars": raw.scalars, **raw.more}
        given = {part: array for part, array in arrays.items() if array is not None}
        total = len(raw.X)
        for part, array in given.items():
            if len(array) != total:
                raise DataError(
                    f"x has {total} rows and {part} has {len(array)}: they must have one row per sample each"
                )
        pieces = tuple(
            Piece(
                start, partial(slices, [array[start : start + PIECE] for array in given.values()]), raw.where
            )
            for start in range(0, total, PIECE)
        )
        shapes = {part: tuple(array.shape[1:]) for part, array in given.items()}
        labels, found = labels_of(shapes), (raw.columns, raw.notices, raw.picked, raw.where)
        return cls(pieces, shapes, labels, total, *found, classes=raw.classes)

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def part(self, name: str, values: np.ndarray) -> np.ndarray | None:
        """One part of rows: "x", "y" or "scalars"; None where there is none."""
        start = 0
        for part, shape in self.shapes.items():
            stop = start + math.prod(shape)
            if part == name:
                return values[:, start:stop].reshape(len(values), *shape)
            start = stop
        return None

    def raw(self, values: np.ndarray, rows: np.ndarray) -> Raw:
        """Rows of the source, by their numbers, as a reader hands them over."""
        X = self.part("x", values)
        assert X is not None
        y, scalars = self.part("y", values), self.part("scalars", values)
        rest = {part: self.part(part, values) for part in MORE}
        more = {part: array for part, array in rest.items() if array is not None}
        found = (list(self.notices), self.picked, self.where, more, self.classes)
        return Raw(X, y, scalars, self.columns, rows, *found)

    def all_rows(self) -> Raw:
        """All rows, in memory."""
        blocks = [block for piece in self.pieces for _, block in piece.blocks()]
        values = np.concatenate([np.empty((0, self.width)), *blocks])
        return self.raw(values, np.arange(len(values)))

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


def labels_of(shapes: dict[str, tuple[int, ...]]) -> tuple[str, ...]:
    """Names for the numbers of a row of arrays.

    >>> labels_of({"x": (2, 2), "y": ()})
    ('x[0, 0]', 'x[0, 1]', 'x[1, 0]', 'x[1, 1]', 'y')
    """
    names = []
    for part, shape in shapes.items():
        for index in np.ndindex(*shape):
            names.append(f"{part}[{', '.join(map(str, index))}]" if index else part)
    return tuple(names)


def slices(
    arrays: Sequence[Any], rows: int | None, start: int = 0, stop: int | None = None
) -> Iterator[np.ndarray]:
    """Rows of arrays, or of datasets, side by side, block by block."""
    step = rows or max(1, BLOCK // max(1, sum(math.prod(array.shape[1:]) for array in arrays)))
    stop = len(arrays[0]) if stop is None else stop
    for k in range(start, stop, step):
        few = [as_float64(array[k : min(k + step, stop)], "an array") for array in arrays]
        yield np.concatenate([part.reshape(len(part), -1) for part in few], axis=1)
