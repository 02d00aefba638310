"""Labels in files: each class gets a number as it is read, so that all else sees numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import DataError

#: More classes than this are taken for a mistake: a number, not a class.
MAX_CLASSES = 50


@dataclass(frozen=True)
class Codes:
    """The number of each label by its text, and the classes in order: whole numbers, numbers, logical or text.

    >>> codes = Codes.of([["b", "a"], ["a"]])
    >>> codes.classes, codes(["a", "b", None]).tolist()
    (('a', 'b'), [0.0, 1.0, nan])
    >>> Codes.of([["2", "10"]]).classes
    (2, 10)
    """

    codes: dict[str, int]
    classes: tuple[Any, ...]

    @classmethod
    def of(cls, blocks: Iterable[Any]) -> Codes:
        """From all labels of a column, block by block."""
        import pandas as pd

        texts: set[str] = set()
        for block in blocks:
            texts |= {_text(label) for label in pd.factorize(np.asarray(block, dtype=object))[1]}
            if len(texts) > MAX_CLASSES:
                raise DataError(
                    f"y has more than {MAX_CLASSES} different labels: choose output='scalar' if it is a number"
                )
        values = _values(texts - {""})
        classes = tuple(sorted(set(values.values())))
        return cls({text: classes.index(value) for text, value in values.items()}, classes)

    def __call__(self, labels: Any) -> np.ndarray:
        """The codes of labels as float64, NaN where there is none."""
        import pandas as pd

        places, different = pd.factorize(np.asarray(labels, dtype=object))  # -1, the last, where missing
        return np.array([*(self.codes.get(_text(label), math.nan) for label in different), math.nan])[places]


def _text(label: Any) -> str:
    return (label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label)).strip()


def _values(texts: set[str]) -> dict[str, Any]:
    """What all texts can be read as."""
    readers: tuple[Callable[[str], Any], ...] = (int, float, _logical)
    for read in readers:
        try:
            values = {text: read(text) for text in texts}
        except (ValueError, KeyError):
            continue
        if all(math.isfinite(value) for value in values.values()):
            return values
    return {text: text for text in texts}


def _logical(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


@dataclass(frozen=True)
class Coded:
    """An array of labels, on disk or in memory, that reads as codes."""

    array: Any
    codes: Codes

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.array.shape

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, key: Any) -> np.ndarray:
        part = np.asarray(self.array[key])
        return self.codes(part.ravel()).reshape(part.shape)
