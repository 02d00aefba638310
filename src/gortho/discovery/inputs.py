"""What users hand to a discovery: inputs, scalars and targets in the shapes the mathematics needs, or why not."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from gortho.samples import DataError
from gortho.reps import DirectSum, Rep, as_rep
from gortho.reps import Tensor as TensorRep

#: Fewer samples than this cannot be split into parts that mean anything.
MIN_SAMPLES = 20
#: Components of x whose sizes differ by more than this leave no digits for the form: choose other units.
MAX_UNITS_RATIO = 1e4


def as_tuples(X: Any) -> np.ndarray | Tensor:
    """Inputs as handed in, as a float64 array or tensor."""
    if isinstance(X, Tensor):
        return X.detach().double()
    array = np.asarray(X)
    return array.astype(np.float64) if array.dtype.kind in "fiu" else array


def split_scalars(scalars: Any, points: int) -> tuple[Any, Any]:
    """Tell per-point from per-sample scalars: ``(N, p)`` and ``(N, p, s)`` with p points belong to the points.

    A dictionary {"point": …, "sample": …} says it explicitly and may hold both.
    """
    if scalars is None:
        return None, None
    if isinstance(scalars, dict):
        unknown = set(scalars) - {"point", "sample"}
        if unknown:
            raise DataError(f"scalars has keys {sorted(unknown)}: use 'point' and 'sample'")
        point, sample = scalars.get("point"), scalars.get("sample")
    else:
        array = np.asarray(scalars.detach() if isinstance(scalars, Tensor) else scalars)
        per_point = array.ndim == 3 or (array.ndim == 2 and points > 1 and array.shape[1] == points)
        point, sample = (array, None) if per_point else (None, array)
    point = None if point is None else np.asarray(point, dtype=np.float64)
    sample = None if sample is None else np.asarray(sample, dtype=np.float64)
    if point is not None and point.ndim == 2:
        point = point[:, :, None]
    if sample is not None and sample.ndim == 1:
        sample = sample[:, None]
    return point, sample


def as_targets(y: np.ndarray, output: str | Rep, n: int) -> tuple[np.ndarray, Rep]:
    """Targets in the shape of their rep; several scalar columns make a sum of scalars."""
    rep = as_rep(output)
    if rep == TensorRep(0, 0) and y.ndim == 2:
        if y.shape[1] == 1:
            return y[:, 0], rep
        return y, DirectSum((TensorRep(0, 0),) * y.shape[1])
    expected = (len(y), *rep.shape(n))
    if y.shape != expected and y.size == np.prod(expected):
        return y.reshape(expected), rep
    if y.shape != expected:
        raise DataError(
            f"y has shape {y.shape}, but {rep} outputs for {len(y)} samples in {n} dimensions have shape {expected}: "
            "choose the output that fits, or reshape y"
        )
    return y, rep


def hopeless(x: np.ndarray, y: np.ndarray, names: tuple[str, ...]) -> tuple[str, str] | None:
    """Data that no method could learn a form from: reason and advice."""
    n = x.shape[-1]
    if n < 2:
        return (
            "With one coordinate every even function respects the same form.",
            "Give vectors of two or more coordinates.",
        )
    if len(x) < MIN_SAMPLES:
        return (
            f"{len(x)} samples are too few to fit a predictor and to test it on others.",
            f"Give at least {MIN_SAMPLES} samples, better some hundreds; a form in {n} dimensions has "
            f"{n * (n + 1) // 2 - 1} unknowns.",
        )
    flat = x.reshape(-1, n)
    rms = np.sqrt((flat**2).mean(0))
    large, small = int(rms.argmax()), int(rms.argmin())
    if rms[small] > 0 and rms[large] / rms[small] > MAX_UNITS_RATIO:
        factor = 10.0 ** round(np.log10(rms[large] / rms[small]))
        raise DataError(
            f"mixed units: {names[large]} has size {rms[large]:.3g}, {names[small]} {rms[small]:.3g}; a form over such "
            f"columns has no digits left. Choose units in which they are comparable, e.g. divide {names[large]} by "
            f"{factor:.0e}: the form is then stated in these units"
        )
    if np.ptp(y.reshape(len(y), -1), axis=0).max() <= 1e-12 * max(1e-300, np.abs(y).max()):
        return ("The target is constant: every form fits it.", "Give a target that varies with x.")
    units = np.where(rms > 0, rms, 1.0)
    _, singular, directions = np.linalg.svd((flat / units)[:20_000], full_matrices=False)
    rank = int((singular > 1e-7 * singular[0]).sum())
    if rank < n:
        terms = zip(directions[-1], names, units)
        told = " ".join(f"{c:+.2f}·{name}/{unit:.2g}" for c, name, unit in terms if abs(c) > 0.05)
        return (
            f"The inputs lie in a subspace of dimension {rank} of {n} ({told} is always zero): the form outside it is "
            "unseen.",
            "Drop the redundant coordinate, or give inputs that vary in every direction.",
        )
    return None
