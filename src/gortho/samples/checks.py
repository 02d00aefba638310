"""Checks of arrays: whether every value is a usable number, and notes for the user."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from .errors import LEAVE_OUT, DataError, listed, row_number
from .sampling import Limits, choose
from .suspects import check_sizes, suspects

#: What to do about numbers that are missing.
IMPUTE = "drop or impute these rows"


def check_samples(
    X: Any,
    y: Any,
    point_scalars: Any = None,
    sample_scalars: Any = None,
    max_samples: int | None = None,
    seed: int = 0,
    *,
    names: Sequence[str] | None = None,
    weights: np.ndarray | None = None,
    place: Callable[[int], str] = "row {}".format,
    fix: str = IMPUTE,
    why: str = Limits.why,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None, np.ndarray | None, list[str]]:
    """The samples and their weights as finite float64 arrays without repeated rows, and notices for the user.

    X is (N, n) or (N, p, n); y is (N, ...); point_scalars are (N, p) or (N, p, s); sample_scalars are (N,)
    or (N, s). Lists, numpy, pandas and torch are taken. `names` are those of the n components; `place` says
    where a row stands in the file it comes from, `fix` what to do about missing numbers, and `why` not all
    rows are used, for messages.

    >>> X, y, _, _, _, notices = check_samples([[1, 0], [0, 1], [0, 1]], [1, 2, 2])
    >>> X.shape, notices
    ((2, 2), ['1 repeated rows (same x and y) were dropped, so that none is both fitted and tested on'])
    """
    if names is None and hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
    arrays = {"X": as_float64(X, "X", names), "y": as_float64(y, "y")}
    more = {"scalars of points": point_scalars, "scalars": sample_scalars, "weights": weights}
    arrays |= {name: as_float64(values, name) for name, values in more.items() if values is not None}
    _check_shapes(arrays)
    n = arrays["X"].shape[-1]
    names = variable_names(n) if names is None else tuple(names)
    if len(names) != n:
        raise DataError(f"{len(names)} names ({listed(names)}) are given for {n} components of X: give {n}")

    total = len(arrays["X"])
    for name, array in arrays.items():
        check_finite(name, array, place, names if name == "X" else None, fix)
    check_sizes(arrays["X"], names)
    limits = Limits(max_samples, None, seed, why=why)
    chosen = choose(total, limits.rows(0), seed)
    if len(chosen) < total:
        arrays = {name: array[chosen] for name, array in arrays.items()}
    notices = limits.notices(total, 0)

    arrays, repeated = _drop_repeated(arrays)
    notices += repeated
    if (arrays["y"] == arrays["y"][0]).all():
        notices.append(f"y is constant ({arrays['y'].flat[0]:.6g} in its first entry)")
    notices += _fixed_vector_notices(arrays["X"]) + suspects(arrays["X"], names)
    point, sample, weights = (arrays.get(name) for name in ("scalars of points", "scalars", "weights"))
    return arrays["X"], arrays["y"], point, sample, weights, notices


def weights_of(sample_weight: Any, y_error: Any, rows: int) -> np.ndarray | None:
    """Weights of the samples ``(N,)``, of mean one: given ones, or 1/error² where errors of y are given; never both.

    >>> weights_of(None, [1.0, 2.0], 2)
    array([1.6, 0.4])
    """
    if sample_weight is not None and y_error is not None:
        raise DataError(
            "sample_weight and y_error are both given: give one of them, weights are 1 / y_error²"
        )
    name, given = ("sample_weight", sample_weight) if y_error is None else ("y_error", y_error)
    if given is None:
        return None
    one = isinstance(given, Real) or getattr(given, "ndim", 1) == 0
    values = np.full(rows, float(given)) if one else as_float64(given, name)
    if len(values) != rows:
        raise DataError(f"{name} has {len(values)} rows and y has {rows}: give one for each sample")
    if y_error is not None:
        values = values.reshape(len(values), -1)
        if not np.isfinite(values).all() or not (values > 0).all():
            raise DataError(
                "y_error holds values that are not above zero: give a standard error for each sample"
            )
        values = 1 / np.square(values / values.mean()).mean(1)
    if values.ndim != 1 or not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
        raise DataError(f"{name} must be one finite number of at least 0 for each sample, and not all zero")
    values = values / values.max()  # sums then stay in range
    return values / values.mean()


def errors_of(y_error: Any, weights: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Errors ``(N,)`` of samples by their weights, some of those that came from errors.

    >>> errors_of([1.0, 2.0], weights_of(None, [1.0, 2.0], 2), np.array([0.4]))
    array([2.])
    """
    values = as_array(y_error, "y_error").astype(np.float64)
    first = values.reshape(len(weights), -1)[0] if values.ndim else values
    largest = np.abs(first).max()
    return largest * np.sqrt(np.square(first / largest).mean() * weights[0] / of)  # weights are 1/error²


def check_inputs(
    X: Any,
    point_scalars: Any = None,
    sample_scalars: Any = None,
    *,
    names: Sequence[str] | None = None,
    place: Callable[[int], str] = "row {}".format,
    fix: str = IMPUTE,
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Inputs without targets as finite float64 arrays, every row in its place; arguments as in `check_samples`.

    >>> check_inputs([[1, 0], [0, 1], [0, 1]])[0].shape
    (3, 2)
    """
    given = {"X": X, "scalars of points": point_scalars, "scalars": sample_scalars}
    arrays = {name: as_float64(array, name) for name, array in given.items() if array is not None}
    _check_shapes(arrays, least=1)
    for name, array in arrays.items():
        check_finite(name, array, place, names if name == "X" else None, fix)
    return arrays["X"], arrays.get("scalars of points"), arrays.get("scalars")


def variable_names(n: int) -> tuple[str, ...]:
    """Names for components that have none.

    >>> variable_names(3)
    ('x0', 'x1', 'x2')
    """
    return tuple(f"x{i}" for i in range(n))


def as_float64(
    values: Any,
    name: str,
    columns: Sequence[str] | None = None,
    place: Callable[[int], str] = row_number,
) -> np.ndarray:
    """The values as a float64 array, or a DataError which names the first that is not a real number, and its place."""
    for column, kind in getattr(getattr(values, "dtypes", None), "items", dict)():
        if str(kind) == "category":
            raise DataError(
                f"{name} holds column {str(column)!r}, a category: convert it to numbers or drop it"
            )
    array = as_array(values, name)
    if array.ndim == 0:
        raise no_array(values, name)
    if array.dtype.kind in "fiub" or (array.dtype.kind == "O" and _offender(array) is None):
        return np.ascontiguousarray(array, dtype=np.float64)
    index = _offender(array) or (0,) * array.ndim
    if array.size == 0:
        raise DataError(f"{name} is empty: give at least two samples")
    if array.dtype.kind == "c" or isinstance(array[index], complex):
        fix = "give real and imaginary parts as separate columns"
    else:
        fix = "convert it to a number or drop its column or row"
    value = array[index]
    if name == "y" and isinstance(value, str | bytes):
        fix += "; or give output='class' if these are labels"
    plain = value.item() if isinstance(value, np.generic) else value
    found = str(value) if array.dtype.kind in "mM" else repr(plain)
    raise DataError(
        f"{name} holds {found} {_where(index, place(index[0]), columns)}, not a real number: {fix}"
    )


def no_array(values: Any, name: str) -> DataError:
    """The error for what numpy makes no array of: generators, sparse matrices, None."""
    if isinstance(values, Iterator):
        return DataError(f"{name} has type {type(values).__name__} and is no array: give list({name})")
    if hasattr(values, "toarray"):
        return DataError(f"{name} has type {type(values).__name__} and is no array: give {name}.toarray()")
    return DataError(f"{name} is {reprlib.repr(values)}, not an array: give one row per sample")


def as_array(values: Any, name: str) -> np.ndarray:
    """The values as an array of any kind but half precision, or a DataError that says why not."""
    dtype = str(getattr(values, "dtype", "")).removeprefix("torch.")
    if dtype in ("float16", "bfloat16"):
        raise DataError(
            f"{name} has dtype {dtype}: differences such as E² - p² vanish in half precision, give the numbers as they "
            "were before they were rounded to it"
        )
    torch = sys.modules.get("torch")
    try:
        if torch is not None and isinstance(values, torch.Tensor):
            return (values if values.is_complex() else values.double()).numpy(force=True)
        if np.ma.isMaskedArray(values) and values.dtype.kind in "fiub":
            return np.ma.filled(values.astype(np.float64), np.nan)
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        rows = values if isinstance(values, list | tuple) else []
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in rows]
        for row, length in enumerate(lengths):
            if length != lengths[0]:
                raise DataError(
                    f"the rows of {name} differ in length: row 0 has {lengths[0]} values and row {row} has "
                    f"{length}: give every row the same number of values"
                ) from None
        raise DataError(f"{name} cannot be turned into an array of numbers: {error}") from None


def _offender(array: np.ndarray) -> tuple[int, ...] | None:
    """Index of the first entry that is no number (of the first that does not read as one, among text)."""
    for index, value in np.ndenumerate(array):
        if array.dtype.kind in "US":
            try:
                float(value)
            except ValueError:
                return index
        elif not isinstance(value, Real | Decimal):
            return index
    return None


def _where(index: tuple[int, ...], row: str, columns: Sequence[str] | None = None) -> str:
    """Where an entry stands, in words: vectors are called x1, x2, … as in formulas, columns are counted from 0."""
    where = [f"in {row}"]
    where += [f"vector x{index[1] + 1}"] if len(index) == 3 else []
    if len(index) > 1:
        last = index[-1]
        where.append(f"column {columns[last]!r}" if columns and last < len(columns) else f"column {last}")
    return ", ".join(where)


def check_vectors(X: np.ndarray) -> None:
    """Refuse what is neither a vector nor several of them in each row."""
    if X.ndim not in (2, 3):
        raise DataError(
            f"X has shape {X.shape}: it must be (N, n), one row of n components per sample, or (N, p, n) "
            "for samples of p points"
        )


def _check_shapes(arrays: dict[str, np.ndarray], least: int = 2) -> None:
    """Checks that the shapes belong together; scalars of one component get an axis for it."""
    X = arrays["X"]
    check_vectors(X)
    for name, array in arrays.items():
        if len(array) != len(X):
            hint = ": the samples of X seem to lie along its last axis, transpose it"
            raise DataError(
                f"X has {len(X)} rows and {name} has {len(array)}: they must have one row per sample each"
                + (hint if X.shape[-1] == len(array) else "")
            )
        if array.size == 0:
            raise DataError(
                f"{name} is empty (shape {array.shape}): give at least {'two samples' if least > 1 else 'one row'}"
            )
    if len(X) < least:
        raise DataError(f"there is {len(X)} sample: at least two are needed")
    if "scalars" in arrays:
        if arrays["scalars"].ndim > 2:
            raise DataError(f"scalars have shape {arrays['scalars'].shape}: they must be (N, s)")
        arrays["scalars"] = arrays["scalars"].reshape(len(X), -1)
    if "scalars of points" in arrays:
        found = arrays["scalars of points"].shape
        if X.ndim != 3 or len(found) not in (2, 3) or found[:2] != X.shape[:2]:
            fix = "give them for each sample" if X.ndim != 3 else f"they must be {X.shape[:2]} or (N, p, s)"
            raise DataError(f"scalars of points have shape {found} while X has shape {X.shape}: {fix}")
        arrays["scalars of points"] = arrays["scalars of points"].reshape(*X.shape[:2], -1)


def check_finite(
    name: str,
    array: np.ndarray,
    place: Callable[[int], str],
    columns: Sequence[str] | None,
    fix: str = IMPUTE,
) -> None:
    """Refuse numbers that are missing or infinite, with the place of the first."""
    bad = ~np.isfinite(array)
    if count := int(bad.reshape(len(array), -1).any(axis=1).sum()):
        index = tuple(int(i) for i in np.unravel_index(np.argmax(bad), bad.shape))
        fix = fix if np.isnan(array[index]) else fix.removesuffix(LEAVE_OUT)
        raise DataError(
            f"{name} holds NaN or infinite values in {count} of {len(array)} rows, the first "
            f"({array[index]}) {_where(index, place(index[0]), columns)}: {fix}"
        )


def _distinct(*arrays: np.ndarray) -> np.ndarray:
    """Indices of the first of each set of equal rows, in order."""
    table = np.concatenate([array.reshape(len(array), -1) for array in arrays], axis=1)
    table += 0.0  # -0.0 and 0.0 are equal
    keys = table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
    return np.sort(np.unique(keys, return_index=True)[1])


def _drop_repeated(arrays: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[str]]:
    notices = []
    total = len(arrays["X"])
    first = _distinct(*arrays.values())
    if len(first) < 2:
        raise DataError(f"all {total} rows are the same: at least two different samples are needed")
    if len(first) < total:
        arrays = {name: array[first] for name, array in arrays.items()}
        notices.append(
            f"{total - len(first)} repeated rows (same x and y) were dropped, so that none is both fitted "
            "and tested on"
        )
    shared = len(first) - len(_distinct(*(array for name, array in arrays.items() if name != "y")))
    if shared:
        notices.append(f"{shared} rows repeat the x of an earlier row with another y: kept, as noise in y")
    return arrays, notices


def _fixed_vector_notices(X: np.ndarray) -> list[str]:
    """With e the same in all samples, A and A + c (Ae)(Ae)ᵀ have the same functions of their inner products."""
    if X.ndim == 2:
        return []
    first = X[0]
    return [
        f"vector {i} of a sample, e, is the same in all samples: the form is determined up to multiples of (Ae)(Ae)ᵀ, "
        "which no prediction depends on; vary e, if you can, to find all of the form"
        for i in np.flatnonzero((first == X).all(axis=(0, 2)))
    ]
