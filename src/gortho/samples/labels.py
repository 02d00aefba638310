"""Labels of classes at the door."""

from __future__ import annotations

from typing import Any

import numpy as np

from gortho.reps import DirectSum, Scalar
from gortho.samples.errors import DataError

#: Samples of each class, at least.
MIN_OF_CLASS = 10
#: More classes than this are taken for a mistake: a number, not a class.
MAX_CLASSES = 50


def as_labels(y: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Codes ``(N,)`` of labels of any kind, and the classes in order.

    >>> as_labels(["b", "a"] * 10)[1]
    ('a', 'b')
    """
    labels = np.asarray(y)
    labels = labels.reshape(len(labels), -1)
    if labels.shape[1] != 1:
        raise DataError(f"y has {labels.shape[1]} columns: classes are one column of labels")
    column = labels[:, 0]
    if column.dtype.kind in "OUS":
        missing = [i for i, v in enumerate(column) if v is None or v != v or str(v).strip() == ""]
        column = column.astype(str)
    else:
        missing = np.flatnonzero(~np.isfinite(column.astype(np.float64))).tolist()
    if missing:
        raise DataError(f"y has no label in row {missing[0]} ({len(missing)} in all): leave these rows out")
    classes, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise DataError(f"all labels are {classes[0]!r}: give two classes or more")
    if len(classes) > MAX_CLASSES:
        raise DataError(
            f"y has {len(classes)} different labels, at most {MAX_CLASSES} are taken for classes: choose "
            "output='scalar' if it is a number"
        )
    rare = classes[counts < MIN_OF_CLASS]
    if len(rare):
        raise DataError(
            f"class {rare[0]!r} has {counts.min()} samples, each needs {MIN_OF_CLASS}: give more, or leave it out"
        )
    return codes, tuple(c.item() for c in classes)


def one_hot(codes: np.ndarray, classes: int) -> tuple[np.ndarray, DirectSum]:
    """Indicators ``(N, classes)``, and their rep."""
    return np.eye(classes)[codes], DirectSum((Scalar(),) * classes)
