"""One pass over any number of samples: `Totals` (sums and ranges), and a random sample of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .chunks import Chunks, Piece
from .errors import row_number
from .sampling import Adds, Kept, add_up

#: Called with the rows read so far and those there are, None where that is not known.
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Plan:
    """What a pass adds up: `limit` rows are kept, and `also` is taken of each block."""

    limit: int
    seed: int = 0
    also: Callable[[np.ndarray, np.ndarray | None], Adds] | None = None


@dataclass(frozen=True, eq=False)
class Totals:
    """What adds up over rows: totals of two parts, added in any order, are the totals of both together.

    Attributes:
        rows: how many there are.
        low, high: the range of each number of a row: x, y and scalars, end to end.
        kept: a uniform sample of the rows.
        also: what the plan adds up besides, or None.
        missing: rows that were left out because numbers are missing.
    """

    rows: int
    low: np.ndarray
    high: np.ndarray
    kept: Kept
    also: Any = None
    missing: int = 0

    @classmethod
    def of(cls, block: np.ndarray, first: int, chunks: Chunks, plan: Plan) -> Totals:
        """The totals of a block of rows, of which the first has this number."""
        parts = chunks.parts(block)
        also = None if plan.also is None else plan.also(parts["x"], parts.get("y"))
        return cls(len(block), block.min(0), block.max(0), Kept.of(block, first, plan.limit, plan.seed), also)

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.rows + other.rows,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.kept + other.kept,
            None if self.also is None else self.also + other.also,
            self.missing + other.missing,
        )


def of_piece(
    piece: Piece, chunks: Chunks, plan: Plan, told: Callable[[int], None] | None = None
) -> Totals | None:
    """The totals of a piece; None if it is empty."""
    missing: list[int] = []

    def blocks() -> Iterator[Totals]:
        for first, block in piece.finite_blocks(chunks.labels, None, chunks.dropna, missing.append):
            yield Totals.of(block, first, chunks, plan)
            if told is not None:
                told(len(block))

    total = add_up(blocks())
    return None if total is None else replace(total, missing=sum(missing))


def scan(chunks: Chunks, plan: Plan, client: Any = None, progress: Progress | None = None) -> Totals:
    """One pass over all rows: piece by piece, or on the workers of a `dask.distributed.Client`.

    Workers read the files themselves, by the same paths. Numbers that are not finite are a DataError that names the
    first of them in its piece. Ctrl-C ends the pass, and the work of the workers, with nothing kept.
    """
    if client is None:
        done = 0

        def told(rows: int) -> None:
            nonlocal done
            done += rows
            if progress is not None:
                progress(done, chunks.total)

        parts = (of_piece(piece, chunks, plan, told) for piece in chunks.pieces)
        total = add_up(part for part in parts if part is not None)
    else:
        total = _scan_on(client, chunks, plan, progress)
    if total is None:
        raise ValueError("there are no rows")
    return total


def _scan_on(client: Any, chunks: Chunks, plan: Plan, progress: Progress | None) -> Totals | None:
    from dask.distributed import as_completed

    bare = replace(chunks, pieces=(), where=row_number)  # each task gets its own piece
    shared = client.scatter((bare, plan), broadcast=True, hash=False)
    level = client.map(_task, chunks.pieces, shared=shared, pure=False)
    counts = client.map(_rows, level, pure=False)
    while len(level) > 1:  # what nobody holds on to, workers forget as soon as it is added
        level = client.map(_sum, level[:-1:2], level[1::2], pure=False) + level[len(level) // 2 * 2 :]
    try:
        done = 0
        for batch in as_completed(counts, with_results=True).batches():
            done += sum(rows for _, rows in batch)
            if progress is not None:
                progress(done, chunks.total)
        return level[0].result() if level else None
    except BaseException:
        client.cancel([*counts, *level])
        raise


def _task(piece: Piece, shared: tuple[Chunks, Plan]) -> Totals | None:
    return of_piece(piece, *shared)


def _sum(a: Totals | None, b: Totals | None) -> Totals | None:
    return a if b is None else b if a is None else a + b


def _rows(totals: Totals | None) -> int:
    return 0 if totals is None else totals.rows
