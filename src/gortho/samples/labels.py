"""Labels of classes at the door."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from gortho.reps import DirectSum, Scalar
from gortho.samples.coding import MAX_CLASSES
from gortho.samples.errors import DataError

#: Samples of each class, at least.
MIN_OF_CLASS = 10


def as_labels(y: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Codes ``(N,)`` of labels of any kind, and the classes in order.

    >>> as_labels(["b", "a"] * 10)[1]
    ('a', 'b')
    """
    labels = np.asarray(y)
    if labels.ndim == 0 or not labels.size:
        raise DataError("y has no labels: give one for each sample")
    labels = labels.reshape(len(labels), -1)
    if labels.shape[1] != 1:
        raise DataError(f"y has {labels.shape[1]} columns: classes are one column of labels")
    column = labels[:, 0]
    missing = np.flatnonzero([_missing(label) for label in column.tolist()])
    if len(missing):
        raise DataError(f"y has no label in row {missing[0]} ({len(missing)} in all): leave these rows out")
    if column.dtype == object:  # numbers stay numbers, all else is text
        column = np.array(column.tolist())
        column = column if column.dtype.kind in "biuf" else column.astype(str)
    found, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
    classes = tuple(label.item() for label in found)
    if len(classes) < 2:
        raise DataError(f"all labels are {classes[0]!r}: give two classes or more")
    if len(classes) > MAX_CLASSES:
        raise DataError(
            f"y has {len(classes)} different labels, at most {MAX_CLASSES} are taken for classes: choose "
            "output='scalar' if it is a number"
        )
    least = int(counts.argmin())
    if counts[least] < MIN_OF_CLASS:
        raise DataError(
            f"class {classes[least]!r} has {counts[least]} samples, each needs {MIN_OF_CLASS}: give more, or leave it "
            "out"
        )
    return codes, classes


def _missing(label: Any) -> bool:
    """Nothing, not a finite number, or blank text."""
    if isinstance(label, str | bytes):
        return not label.strip()
    return bool(pd.isna(label)) or label in (math.inf, -math.inf)


def one_hot(codes: np.ndarray, classes: int) -> tuple[np.ndarray, DirectSum]:
    """Indicators ``(N, classes)``, and their rep."""
    return np.eye(classes)[codes], DirectSum((Scalar(),) * classes)
