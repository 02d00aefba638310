"""Labels of classes: each class gets a number, so that everything else sees numbers; in files, while they are read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from .errors import DataError

#: More classes than this are taken for a mistake: a number, not a class.
MAX_CLASSES = 50
#: Kinds of arrays that are kept as they are: logical, whole numbers, numbers, text.
PLAIN = "biufU"
#: What Python reads as a number, and people write as a name: 1_1 is not 11, and 01 not 1.
CODE = re.compile(r"_|^[+-]?0\d")
LOGICAL = {"true": True, "false": False}
#: Samples of each class, at least.
MIN_OF_CLASS = 10


def as_labels(y: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Codes ``(N,)`` of labels of any kind, and the classes in order.

    >>> as_labels(["b", "a"] * 10)[1]
    ('a', 'b')
    """
    import pandas as pd

    labels = np.asarray(y)
    if labels.ndim == 0 or not labels.size:
        raise DataError("y has no labels: give one for each sample")
    labels = labels.reshape(len(labels), -1)
    if labels.shape[1] != 1:
        raise DataError(f"y has {labels.shape[1]} columns: classes are one column of labels")
    column = labels[:, 0]
    if column.dtype.kind not in PLAIN:
        column = pd.Series(column).astype(object).to_numpy()
    cells = pd.Series(column.tolist(), dtype=object)
    blank = np.array([isinstance(cell, str | bytes) and not cell.strip() for cell in cells])
    missing = np.flatnonzero(cells.isna() | cells.isin([math.inf, -math.inf]) | blank)
    if len(missing):
        raise DataError(f"y has no label in row {missing[0]} ({len(missing)} in all): leave these rows out")
    if column.dtype == object:  # numbers stay numbers, all else is text
        plain = np.array(column.tolist())
        column = plain if plain.dtype.kind in PLAIN else np.array([*map(_text, cells)])
    found, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
    classes = tuple(label.item() for label in found)
    if len(classes) < 2:
        raise DataError(f"all labels are {classes[0]!r}: give two classes or more")
    if len(classes) > MAX_CLASSES:
        raise DataError(
            f"y has {len(classes)} different labels, at most {MAX_CLASSES} are taken for classes: choose "
            "output='scalar' if it is a number"
        )
    check_counts(counts.tolist(), classes)
    return codes, classes


def check_counts(counts: Sequence[int], classes: Sequence[Any]) -> None:
    """Each class needs some samples."""
    count, label = min(zip(counts, classes), key=lambda pair: pair[0])
    if count < MIN_OF_CLASS:
        told = f"{count} sample" if count == 1 else f"{count} samples"
        raise DataError(f"class {label!r} has {told}, each needs {MIN_OF_CLASS}: give more, or leave it out")


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

    def __call__(self, labels: Any, name: str = "") -> np.ndarray:
        """The codes of labels ``(N,)`` or ``(N, 1)`` as float64 ``(N,)``, NaN where there is none."""
        import pandas as pd

        given = np.ravel(np.asarray(labels, dtype=object))
        places, different = pd.factorize(given)  # -1, the last, where missing
        return np.array([*(self.codes.get(_text(label), math.nan) for label in different), math.nan])[places]


def _text(label: Any) -> str:
    return (label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label)).strip()


def _values(texts: set[str]) -> dict[str, Any]:
    """What all texts can be read as; numbers only where no two of them become one."""
    if all(text.lower() in LOGICAL for text in texts):
        return {text: LOGICAL[text.lower()] for text in texts}
    readers: tuple[Callable[[str], Any], ...] = (int, float)
    for read in () if any(CODE.search(text) for text in texts) else readers:
        try:
            values = {text: read(text) for text in texts}
        except ValueError:
            continue
        if all(map(math.isfinite, values.values())) and len({*values.values()}) == len(
            {*map(Decimal, texts)}
        ):
            return values
    return {text: text for text in texts}
