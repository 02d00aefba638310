"""`Wanted`: the roles of the columns or arrays of a file, and how their numbers become samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .errors import DataError

Columns = str | Sequence[str] | None
#: Parts of a sample that a file may hold beside x, y and scalars.
MORE = ("weight", "y_error", "time", "by")


@dataclass(frozen=True)
class Wanted:
    """The parts of the samples by the names of their columns or arrays, and how to read them.

    Attributes:
        x, y, scalars: None where the names themselves shall tell.
        weight: how much each sample counts.
        y_error: standard errors of y.
        time, by: samples are points of trajectories at these times, one trajectory for each value of `by`; y is dx/dt.
        drop: columns of a table that are not coordinates.
        targets: whether y is read: yes, no, or None for where it is there.
        decimal: sign between whole and part in text files.
        points: vectors in each sample.
        output: the kind of y; "class" for a column of labels, text or numbers.
        scalars_per_point: whether the scalars of a table belong to points.
        dropna: whether rows with missing numbers are left out.
        dims: components of each vector of a sample, where they differ; vectors among the targets are of the longest.
    """

    x: Columns = None
    y: Columns = None
    scalars: Columns = None
    weight: Columns = None
    y_error: Columns = None
    time: Columns = None
    by: Columns = None
    drop: Columns = None
    targets: bool | None = True
    decimal: str = "."
    points: int | None = None
    output: str = "scalar"
    scalars_per_point: bool = False
    dropna: bool = False
    dims: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise DataError(f"decimal={self.decimal!r}: choose '.' or ','")
        if self.by is not None and self.time is None:
            raise DataError("by= is given without derivative=: say which column holds the time")
        if self.time is not None and self.y is not None:
            raise DataError("y= and derivative= are both given: y is made of x and the time")
        if self.weight is not None and self.y_error is not None:
            raise DataError("weight= and y_error= are both given: give one of them, weights are 1 / y_error²")
        if self.time is not None and self.y_error is not None:
            raise DataError(
                "y_error= and derivative= are both given: leave out y_error=, slopes have errors of their own"
            )
        if self.labels and self.y_error is not None:
            raise DataError("labels have no errors: leave out y_error=, or give weight=")

    @property
    def labels(self) -> bool:
        """Whether y is a column of labels."""
        return self.output == "class"

    @property
    def needs_y(self) -> bool | None:
        """Whether y is read from the file."""
        return False if self.time is not None else self.targets
