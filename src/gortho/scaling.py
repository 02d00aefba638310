"""Detection of columns that were scaled one by one, which destroys a form."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gortho.forms import QuadraticForm
from gortho.samples import DataError

#: Scalers leave their mark (deviation 1, median 0, norm 1) to this precision.
MARK = 1e-6
#: They set the extremes of a column exactly, and its mean to rounding; looser, and large samples do so by chance.
EXACT_MARK = 1e-12
#: Where QuantileTransformer cuts off the normal distribution.
QUANTILE_CUT = 5.199337582605575


class ScaledFeatures(UserWarning):
    """The columns look as if they had been scaled or shifted one by one, which destroys a form."""


def scaling_marks(X: np.ndarray, form: QuadraticForm | None = None) -> tuple[str, bool] | None:
    """What a scaler of single columns or rows has left in the table ``X (N, columns)``, if anything.

    Returns the mark in words and whether it is beyond doubt: a mean of zero may come from a symmetric design.
    Unit rows are no mark under the Euclidean form, which they respect. Whole numbers are not judged.

    >>> X = np.random.default_rng(0).normal(size=(50, 2)) * [1, 5]
    >>> scaling_marks(X), scaling_marks(X / X.std(axis=0))[1]
    (None, True)
    """
    V = X[:, np.ptp(X, axis=0) > 0]
    if len(V) < 3 or V.shape[1] < 2 or bool((np.round(X) == X).all()):
        return None

    def near(values: Any, target: Any, tolerance: float = MARK) -> bool:
        return np.allclose(values, target, rtol=tolerance, atol=tolerance)

    size = np.abs(V).max()
    mean, deviation = (V / size).mean(axis=0) * size, (V / size).std(axis=0) * size
    if near(deviation, 1.0) or near(deviation * np.sqrt(len(V) / (len(V) - 1)), 1.0):
        return "every column has standard deviation 1, as after StandardScaler or PowerTransformer", True
    lower, median, upper = np.percentile(V, [25, 50, 75], axis=0)
    if near(median, 0.0) and near(upper - lower, 1.0):
        return "every column has median 0 and interquartile range 1, as after RobustScaler", True
    low, high = V.min(axis=0), V.max(axis=0)
    largest = np.maximum(-low, high)
    rare = bool((np.abs(V) >= largest).sum(axis=0).max() <= 2)  # a grid has many points on its edge
    ends = np.array([low[0], high[0]])
    chosen = near(ends, np.round(ends, 3), EXACT_MARK) or near(ends, [-QUANTILE_CUT, QUANTILE_CUT])
    chosen = chosen and bool(np.ptp(ends) > MARK)  # tiny numbers all look alike
    common = near(low, low[0], EXACT_MARK) and near(high, high[0], EXACT_MARK)
    if rare and (near(largest, 1.0, EXACT_MARK) or (common and chosen)):
        return (
            "every column ends at the same values, as after MinMaxScaler, MaxAbsScaler or QuantileTransformer",
            True,
        )
    for order, name in ((2, "l2"), (1, "l1"), (np.inf, "max")):
        respected = order == 2 and form is not None and form == QuadraticForm.euclidean(form.n)
        if not respected and near(np.linalg.norm(X / size, order, axis=1) * size, 1.0):
            return f"every row has {name} norm 1, as after Normalizer", True
    if near(mean / deviation, 0.0, EXACT_MARK):
        return "every column has mean 0, as after subtracting it: the origin has moved", False
    return None


def check_scaling(X: np.ndarray, form: QuadraticForm | None) -> None:
    """Refuse scaled columns when the form is known, warn when it is learnt."""
    marks = scaling_marks(X, form)
    if marks is None:
        return
    mark, certain = marks
    effect = (
        "a form learnt now is that of the changed columns, and there may be none once the origin has moved"
        if form is None
        else f"the given form, {form.law()}, does not hold for the changed columns"
    )
    message = (
        f"{mark}. A form xᵀAx ties the columns together, so changing them one by one destroys it: {effect}. Leave "
        "the scaler out of the pipeline (one scale common to all columns is fitted inside), or set allow_scaled=True "
        "if the data is like this by nature"
    )
    if form is not None and certain:
        raise DataError(message)
    warnings.warn(message, ScaledFeatures, stacklevel=5)
