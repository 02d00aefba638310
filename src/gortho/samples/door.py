"""The entry to a discovery: what users pass becomes `Samples`, or an error says why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho.reps import DirectSum, Rep, Scalar, as_rep
from gortho.samples.called import Labels
from gortho.samples.checks import (
    as_array,
    as_float64,
    check_finite,
    check_samples,
    errors_of,
    no_array,
    variable_names,
    weights_of,
)
from gortho.samples.errors import DataError, missing
from gortho.samples.frame import RANK_TOLERANCE
from gortho.samples.labels import as_labels, check_counts
from gortho.samples.named import (
    Columns,
    check_lengths,
    check_rows,
    frame_columns,
    scalars_by_name,
    told_columns,
)
from gortho.samples.sampling import Limits
from gortho.samples.values import Samples

#: Fewer samples than this cannot be split into parts that mean anything.
MIN_SAMPLES = 20
#: Samples of more vectors than this are remarked on: inner products grow with the square of their number.
MANY_POINTS = 40
#: What varies by less than this share of its size is constant.
CONSTANT = 1e-12
CONSTANT_TARGET = ("The target is constant: every form fits it.", "Give a target that varies with x.")
CONSTANT_IN_MOST = (
    "The target is the same in all samples but a few, which are not among those that a form is fitted to.",
    "Give more samples in which the target differs.",
)
#: Rows from which the rank of the inputs is computed.
RANK_ROWS = 20_000


def as_tuples(X: Any) -> np.ndarray | Tensor:
    """Inputs as handed in, as a float64 array or tensor."""
    if isinstance(X, Tensor):
        as_array(X, "X")
        return X.detach().double()
    array = as_array(X, "X")
    if array.ndim == 0:
        raise no_array(X, "X")
    return array.astype(np.float64) if array.dtype.kind in "fiu" else array


def by_name(X: Any, names: Sequence[str], columns: Sequence[str] = (), points: int = 1) -> Any:
    """A data frame's columns in the order of `columns`, or else of `names`, as ``(N, n)`` or ``(N, points, n)``.

    The columns of several vectors are those stored, or the names with the number of the vector, from 0 or from 1, with
    or without an underscore. What is no data frame is handed back as it is. Coordinates without names of their own
    (x0, x1, …) are taken in order, if there are as many.

    >>> import pandas as pd
    >>> by_name(pd.DataFrame({"p": [1.0], "extra": [0.0], "E": [2.0]}), ["E", "p"])
    array([[2., 1.]])
    """
    given, size = frame_columns(X), points * len(names)
    if not given:
        if len(getattr(X, "shape", (1,) * (isinstance(X, list) and not any(map(np.ndim, X))))) == 1:
            raise DataError(
                f"X has shape ({len(X)},): a single sample is a table of one row, such as X.iloc[[0]] of a data frame "
                "or X[None] of an array"
            )
        return X
    ways = [list(columns)] if len(set(columns)) == len(columns) == size else []
    if points == 1:
        ways.append([str(name) for name in names])
    else:
        numbers = [range(first, first + points) for first in (0, 1)]
        ways += [
            [f"{name}{sign}{i}" for i in some for name in names] for some in numbers for sign in ("_", "")
        ]
    order = next((way for way in ways if set(way) <= set(given)), None)
    if order is None and tuple(names) == variable_names(len(names)) and not columns and len(given) == size:
        order = list(given)
    if order is None:
        raise missing("column", next(name for name in ways[0] if name not in given), given)
    repeated = [name for name in order if given.count(name) > 1]
    if repeated:
        raise DataError(f"the data frame has {repeated[0]!r} more than once: rename the columns")
    values = as_float64(X.iloc[:, [given.index(name) for name in order]], "X", order)
    return values if points == 1 else values.reshape(len(values), points, len(names))


def split_scalars(scalars: Any, points: int, columns: Columns = MappingProxyType({})) -> tuple[Any, Any]:
    """Tell per-point from per-sample scalars: ``(N, p)`` and ``(N, p, s)`` with p points belong to the points.

    A dictionary {"point": …, "sample": …} says it explicitly and may hold both. The columns of data frames are
    selected by name where `columns` has names.
    """
    scalars = scalars_by_name(scalars, columns)
    given = scalars if isinstance(scalars, dict) else {}
    if set(given) - {"point", "sample"}:
        unknown = sorted(set(given) - {"point", "sample"})
        raise DataError(f"scalars has keys {unknown}: use 'point' and 'sample'")
    if scalars is not None and not isinstance(scalars, dict):
        array = _numbers(scalars, "scalars")
        per_point = array.ndim == 3 or (array.ndim == 2 and points > 1 and array.shape[1] == points)
        given = {"point" if per_point else "sample": array}
    point, sample = (
        None if given.get(of) is None else _numbers(given[of], f"scalars[{of!r}]")
        for of in ("point", "sample")
    )
    if point is not None and point.ndim == 2:
        point = point[:, :, None]
    if sample is not None and sample.ndim == 1:
        sample = sample[:, None]
    return point, sample


def _numbers(table: Any, what: str) -> np.ndarray:
    """A table as finite numbers, or an error that names the column."""
    names = frame_columns(table)
    array = as_float64(table, what, names)
    check_finite(what, array, "row {}".format, names)
    return array


def flat_scalars(X: Any, scalars: Any, shape: tuple[int, ...], names: tuple[str, ...]) -> np.ndarray:
    """All scalars of samples X of this shape, those of the points first, as ``(N, s)``; of data frames by name."""
    check_rows(X=X, scalars=scalars)
    given = split_scalars(scalars, shape[1], told_columns(names))
    check_lengths(given, shape[0])
    flat = [part.reshape(shape[0], -1) for part in given if part is not None]
    return np.concatenate(flat, 1) if flat else np.zeros((shape[0], 0))


def as_targets(y: np.ndarray, output: str | Rep, n: int) -> tuple[np.ndarray, Rep]:
    """Targets in the shape of their rep; several scalar columns make a sum of scalars."""
    rep = as_rep(output)
    if rep == Scalar() and y.ndim == 2:
        if y.shape[1] == 1:
            return y[:, 0], rep
        return y, DirectSum((Scalar(),) * y.shape[1])
    expected = (len(y), *rep.shape(n))
    if y.shape != expected and y.size == np.prod(expected):
        return y.reshape(expected), rep
    if y.shape != expected:
        raise DataError(
            f"y has shape {y.shape}, but output={str(rep)!r} for {len(y)} samples in {n} dimensions has {expected}: "
            "choose the output that fits, or reshape y"
        )
    return y, rep


def one_hot(codes: np.ndarray, classes: int) -> tuple[np.ndarray, DirectSum]:
    """Indicators ``(N, classes)``, and their rep."""
    return np.eye(classes)[codes], DirectSum((Scalar(),) * classes)


def as_names(names: str | Sequence[str] | None, columns: Sequence[str]) -> list[str] | None:
    """Names of the coordinates as given, or else those of the columns; each only once."""
    given = names.split(",") if isinstance(names, str) else [] if names is None else list(names)
    told = [str(name).strip() if isinstance(names, str) else str(name) for name in given]
    if len(set(told)) < len(told):
        raise DataError(f"names holds a name more than once: {', '.join(told)}")
    return told or list(columns) or None


def enter(
    X: Any,
    y: Any,
    output: str | Rep = "scalar",
    scalars: Any = None,
    *,
    sample_weight: Any = None,
    y_error: Any = None,
    set_like: bool = False,
    names: Sequence[str] | None = None,
    max_samples: int | None = None,
    seed: int = 0,
    why: str = Limits.why,
    labels: Any = None,
) -> tuple[Samples, list[str]]:
    """Checked samples in float64, and what the user should know about them."""
    check_rows(X=X, y=y, scalars=scalars, sample_weight=sample_weight, y_error=y_error)
    called = Labels.of(labels, y, scalars)
    raw = as_tuples(X)
    points = raw.shape[1] if raw.ndim == 3 else 1
    given = split_scalars(scalars, points)
    columns = frame_columns(X) if raw.ndim == 2 else ()
    if names is None and len(set(columns)) < len(columns):
        repeated = next(name for name in columns if columns.count(name) > 1)
        raise DataError(f"the data frame has {repeated!r} more than once: rename the columns, or give names=")
    names = as_names(names, columns)
    classes: tuple[Any, ...] = ()
    if output == "class":
        y, classes = as_labels(y.detach() if isinstance(y, Tensor) else y)
    rows = len(as_float64(y, "y"))
    if classes and y_error is not None:
        raise DataError("labels have no errors: leave out y_error, or give sample_weight")
    whole = weights_of(sample_weight, y_error, rows)
    x, targets, point, sample, weights, notices = check_samples(
        X, y, *given, max_samples, seed, names=names, weights=whole, why=why
    )
    x = x[:, None, :] if x.ndim == 2 else x
    n = x.shape[-1]
    notices += _shape_notices(x, output == "scalar" and targets.ndim == 2 and targets.shape[1] == n)
    rep: Rep
    if classes:
        targets, rep = one_hot(targets.astype(int), len(classes))
    else:
        targets, rep = as_targets(targets, output, n)
    if not called.coordinates and raw.ndim == 2:
        called = replace(called, coordinates=tuple(map(str, names or ())))
    noise = None
    if y_error is not None and whole is not None and weights is not None:
        noise = errors_of(y_error, whole, weights)
    parts = {"point_scalars": point, "sample_scalars": sample, "weights": weights, "noise": noise}
    entered = Samples(
        torch.tensor(x),
        torch.tensor(targets),
        rep,
        set_like=set_like,
        names=tuple(map(str, names or ())),
        classes=classes,
        labels=called,
        **{name: torch.tensor(part) for name, part in parts.items() if part is not None},
    )
    entered, notices = _without_weightless(entered, notices)
    if classes:  # some may have been left out since
        check_counts(entered.y.sum(0).int().tolist(), classes)
    return entered, notices


def _shape_notices(x: np.ndarray, vectors: bool) -> list[str]:
    """Words on targets that look like vectors, and on samples of many points."""
    _, points, n = x.shape
    notices = [f"y has {n} columns, like x: did you mean output='vector'?"] if vectors else []
    if points > MANY_POINTS:
        notices.append(
            f"samples of {points} vectors take long: fewer, or sums of them, may show the same form"
        )
    return notices


def _without_weightless(samples: Samples, notices: list[str]) -> tuple[Samples, list[str]]:
    """Samples of weight zero are left out: nothing shall be tested on them, either."""
    if samples.weights is None or bool(samples.weights.all()):
        return samples, notices
    counts = torch.nonzero(samples.weights)[:, 0]
    told = f"{len(samples) - len(counts)} samples of weight zero are left out"
    return samples.rows(counts), [*notices, told]


def constant_targets(samples: Samples) -> bool:
    """Whether the targets are the same in all samples."""
    y = samples.y.reshape(len(samples), -1)
    return bool((y.amax(0) - y.amin(0) <= CONSTANT * y.abs().amax(0)).all())


def constant_columns(samples: Samples) -> list[str]:
    """Coordinates that are the same number, not zero, in all vectors: "name is value" for each."""
    flat = samples.x.reshape(-1, samples.n)
    low, high = flat.amin(0), flat.amax(0)
    size = torch.maximum(low.abs(), high.abs())
    fixed = ((high - low <= CONSTANT * size) & (size > 0)).tolist()
    return [f"{name} is {float(v):.6g}" for name, v, same in zip(samples.names, high, fixed) if same]


def _one_coordinate(name: str, points: int) -> tuple[str, str]:
    """What a form means in one dimension: reason and advice."""
    of = f"{name}²" if points == 1 else f"products of the {points} numbers {name}"
    return (
        f"One coordinate has one quadratic form only, {name}², so there is none to find. Its group is "
        f"{name} → ±{name}: numbers y respect it if they are functions of {of}, the same at {name} and at -{name}.",
        f"If {name} is a component of a vector, give its other components, too. If it is not, there is no form to look "
        f"for: fit y as a function of {name}.",
    )


def hopeless(samples: Samples) -> tuple[str, str] | None:
    """Samples that no method could learn a form from: reason and advice."""
    n, names = samples.n, samples.names
    if n < 2:
        return _one_coordinate(names[0], samples.points)
    different = len(torch.unique(samples.x[:RANK_ROWS].flatten(1), dim=0))
    if different < MIN_SAMPLES:
        what = "different inputs" if different < len(samples) else "samples"
        return (
            f"{different} {what} are too few to fit a predictor and to test it on others.",
            f"Give at least {MIN_SAMPLES} samples, preferably several hundred; a form in {n} dimensions has "
            f"{n * (n + 1) // 2 - 1} unknowns.",
        )
    if constant_targets(samples):
        return CONSTANT_TARGET
    constant = constant_columns(samples)
    if constant:
        return (
            f"{' and '.join(constant)} in every sample: this is not a coordinate, and any form with it fits as well.",
            "Leave it out of x (--drop NAME if x is found automatically); pass a property of the sample as a scalar.",
        )
    flat = samples.x.reshape(-1, n)[:RANK_ROWS].numpy()
    if found := redundant(flat, np.abs(flat).max(axis=0), names):
        rank, told = found
        return (
            f"The inputs lie in a subspace of dimension {rank} of {n} ({told} is always zero): the form outside it is "
            "unseen.",
            "Drop the redundant coordinate, or give inputs that vary in every direction.",
        )
    return None


def redundant(x: np.ndarray, units: np.ndarray, names: Sequence[str]) -> tuple[int, str] | None:
    """The dimension of what vectors ``(N, n)`` span, and a combination of coordinates that is zero; None if it is n."""
    units = np.where(units > 0, units, 1.0)
    _, singular, directions = np.linalg.svd(x / units, full_matrices=False)
    rank = int((singular > RANK_TOLERANCE * singular[0]).sum())
    terms = zip(directions[-1], names, units)
    told = " ".join(f"{c:+.2f}·{name}/{unit:.2g}" for c, name, unit in terms if abs(c) > 0.05)
    return None if rank == x.shape[1] else (rank, told)
