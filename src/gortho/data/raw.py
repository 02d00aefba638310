"""What a reader hands over, before it is shaped and checked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Raw:
    """Numbers as they stand in the file.

    `columns` are the names of X's columns, None for files of arrays; `rows` are the numbers of the rows read,
    None for all.
    """

    X: np.ndarray
    y: np.ndarray
    scalars: np.ndarray | None = None
    columns: list[str] | None = None
    rows: np.ndarray | None = None
    notices: list[str] = field(default_factory=list)
