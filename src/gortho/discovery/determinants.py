"""Targets that are functions of a determinant alone: every form fits them."""

from __future__ import annotations

import numpy as np

from gortho.reps import Scalar
from gortho.samples.values import Samples

#: Samples that this is told from; the degree of the polynomials that stand for any function.
ROWS, DEGREE = 2_000, 11
#: A function of the determinant leaves less than this share of the variance.
LEFT = 0.01
NOTE = (
    "y is a function of det[x1 … xn], the volume that the vectors span, and of nothing else: all linear maps of "
    "determinant one keep it, so that no form can be told from it"
)


def looks_like_a_volume(samples: Samples) -> bool:
    """Whether y, of n vectors of n components, is a function of their determinant.

    Polynomials of the volume or of its logarithm then follow y, or y is alike where the volume is.
    """
    if samples.rep != Scalar() or samples.points != samples.n or samples.n < 2 or samples.set_like:
        return False
    few = samples.rows(slice(0, ROWS)).in_units(*samples.units)
    volume, y = np.linalg.det(few.x.numpy()), few.y.numpy()
    unit = np.median(np.abs(volume))
    if len(y) < 4 * DEGREE or not unit > 0 or not y.std() > 0:
        return False
    t = np.arcsinh(volume / unit)
    columns = np.polynomial.chebyshev.chebvander(t / np.abs(t).max(), DEGREE)
    columns = np.column_stack([columns, *((volume / np.abs(volume).max()) ** power for power in (1, 2, 3))])
    left = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    polynomial = np.square(left).sum() / (len(y) - columns.shape[1])
    neighbours = np.square(np.diff(y[np.argsort(volume)])).mean() / 2  # also where the function is steep
    return bool(min(polynomial, neighbours) < LEFT * y.var())
