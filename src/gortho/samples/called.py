"""`Labels`: names of the target, the vectors and the scalars of samples, for formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import takewhile
from typing import Any

from gortho.samples.errors import DataError


@dataclass(frozen=True)
class Labels:
    """Names for formulas; what is not given gets a plain one: y, x or x1, x2, …, s or s1, s2, …

    Attributes:
        y: the target.
        vectors: the vectors of a sample; in a formula of full names, fixed directions after them.
        scalars: scalars of points, point by point, then those of samples.
        coordinates: the coordinates of all vectors, vector by vector.
    """

    y: str = ""
    vectors: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    coordinates: tuple[str, ...] = ()

    @classmethod
    def of(cls, labels: Any, y: Any = None, scalars: Any = None) -> Labels:
        """From what a user gave: labels, or the names of a series and of a data frame's columns.

        >>> Labels.of({"y": "energy", "vectors": ["p", "k"], "scalars": "m1, m2"}).scalars
        ('m1', 'm2')
        """
        if isinstance(labels, Labels):
            return labels
        given = dict(labels or {}) if isinstance(labels, Mapping) or labels is None else None
        known = [f.name for f in fields(cls)]
        if given is None or set(given) - set(known):
            raise DataError(f"labels = {labels!r}: give a dictionary with some of {', '.join(known)}")
        made: dict[str, Any] = {k: v if k == "y" else _words(v) for k, v in given.items()}
        columns = [str(c) for c in getattr(y, "columns", ())]
        name = together(columns) if columns else getattr(y, "name", None)
        if isinstance(name, str):
            made.setdefault("y", name)
        columns = [str(c) for c in getattr(scalars, "columns", ())]
        name = getattr(scalars, "name", None)
        if columns or isinstance(name, str):
            made.setdefault("scalars", tuple(columns) or (name,))
        return cls(**made)

    def of_vector(self, names: Sequence[str], place: int) -> tuple[str, ...]:
        """Names of the coordinates of one of the vectors: its own, where ``names`` are those of the first.

        >>> Labels(coordinates=("E", "p", "u", "v")).of_vector(["E", "p"], 1)
        ('u', 'v')
        >>> Labels(coordinates=("E_1", "p_1", "E_2", "p_2")).of_vector(["E", "p"], 1)
        ('E', 'p')
        """
        n = len(names)
        first, own = self.coordinates[:n], self.coordinates[place * n : (place + 1) * n]
        return own if tuple(names) == first and len(own) == n else tuple(names)

    def full(
        self, names: Sequence[str], points: int, point_scalars: int, sample_scalars: int, directions: int = 0
    ) -> Labels:
        """All names: the given ones where their number fits, plain ones for the rest.

        >>> Labels(vectors=("p", "k")).full(["E", "q"], 2, 1, 0).scalars
        ('s1', 's2')
        """
        numbers = [f"{i + 1}" for i in range(points)] if points > 1 else [""]
        vectors = self.vectors if len(self.vectors) == points else tuple(f"x{i}" for i in numbers)
        fixed = [f"b{i + 1}" for i in range(directions)] if directions > 1 else ["b"] * directions
        own = [
            f"s{i}" + (f"_{k + 1}" if point_scalars > 1 else "")
            for i in numbers
            for k in range(point_scalars)
        ]
        letter = "c" if own else "s"
        whole = (
            [f"{letter}{k + 1}" for k in range(sample_scalars)]
            if sample_scalars > 1
            else [letter] * sample_scalars
        )
        scalars = self.scalars if len(self.scalars) == len(own + whole) else tuple(own + whole)
        every = self.coordinates if len(self.coordinates) == points * len(names) else tuple(
            f"{name}_{i}" if i else str(name) for i in numbers for name in names
        )  # fmt: skip
        return Labels(self.y or "y", (*vectors, *fixed), scalars, every)


def together(columns: Sequence[str]) -> str:
    """What the columns of one target are called: their common beginning, or all of them.

    >>> together(["energy"]), together(["F_x", "F_y"]), together(["ax", "ay", "az"]), together(["u", "v"])
    ('energy', 'F', 'a', '(u, v)')
    """
    if len(columns) == 1:
        return columns[0]
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*columns))
    stem = "".join(letters[0] for letters in same).rstrip("_ .[(")
    return stem or f"({', '.join(columns)})"


def _words(given: Any) -> tuple[str, ...]:
    names = given.split(",") if isinstance(given, str) else given
    return tuple(str(name).strip() for name in names)
