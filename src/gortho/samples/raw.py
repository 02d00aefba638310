"""What a reader hands over, before it is shaped and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .errors import row_number


@dataclass(frozen=True)
class Raw:
    """Numbers as they stand in the file.

    `y` is None where no targets were asked for. `columns` are the names of X's columns, None for files of
    arrays; `rows` are the numbers of the rows read, None for all; `where` tells in words where a row stands;
    `picked` are the arrays or columns read, by their part in it ("x", "y", "scalars");
    `more` are weights, errors, times and trajectories, by their part; `classes` are those of labels, where y has their
    codes.
    """

    X: np.ndarray
    y: np.ndarray | None
    scalars: np.ndarray | None = None
    columns: list[str] | None = None
    rows: np.ndarray | None = None
    notices: list[str] = field(default_factory=list)
    picked: dict[str, tuple[str, ...]] = field(default_factory=dict)
    where: Callable[[int], str] = row_number
    more: dict[str, np.ndarray] = field(default_factory=dict)
    classes: tuple[Any, ...] = ()

    def place(self, index: int) -> str:
        """Where a row that was read stands in the file, in words: by its line, or by its number from 0."""
        return self.where(index if self.rows is None else int(self.rows[index]))
