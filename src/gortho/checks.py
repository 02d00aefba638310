"""Turn what a caller hands in into tensors the mathematics can trust, or say what is wrong and how to mend it.

Everything public checks at its own door, so that nothing fails deep inside torch. Shapes and dtypes are
checked always; values (NaN, inf) only where the caller has not checked the whole data set before.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

FLOATS = (torch.float32, torch.float64)
#: What to do about a matrix with other entries.
NUMBERS = "give finite numbers"


def as_tensor(value: Any, what: str, *, integers: bool = False) -> Tensor:
    """Read a tensor, array or nested list as float32 or float64; lists become float64.

    Half precision is refused because Gram products like E² - p² cancel; integers are refused for data (they
    usually mean that the wrong columns were read) but welcome in a matrix typed by hand (``integers=True``).
    """
    if isinstance(value, Tensor):
        tensor = value
    else:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ValueError(
                f"{what} is not a rectangular array of numbers ({error}): give equal rows"
            ) from None
        if array.dtype.kind not in "fiub":
            raise TypeError(f"{what} has dtype {array.dtype}: give real numbers (float32 or float64)")
        if isinstance(value, (list, tuple, int, float)):  # Python numbers are doubles
            array = array.astype(np.float64)
        # torch warns of arrays that are read-only
        tensor = torch.as_tensor(np.require(array, requirements=["C", "W"]))
    if tensor.dtype in FLOATS:
        return tensor
    if tensor.dtype in (torch.float16, torch.bfloat16):
        raise TypeError(
            f"{what} has dtype {tensor.dtype}: inner products cancel in half precision; use {what}.float()"
        )
    if tensor.is_complex() or tensor.dtype == torch.bool or not integers:
        raise TypeError(
            f"{what} has dtype {tensor.dtype}: convert it to float32 or float64, e.g. {what}.double()"
        )
    return tensor.double()


def require_finite(tensor: Tensor, what: str, fix: str = "drop or repair these samples") -> None:
    """Refuse NaN and infinity, with their number and the place of the first; torch.func hides values."""
    if torch._C._are_functorch_transforms_active():
        return
    bad = ~torch.isfinite(tensor)
    if bool(bad.any()):
        where = tuple(int(i) for i in bad.nonzero()[0])
        value = tensor[where].item()
        raise ValueError(
            f"{what} holds {int(bad.sum())} value(s) that are not finite, the first is {value} at index {where}: {fix}"
        )


def require_vectors(x: Tensor, n: int, what: str = "x") -> None:
    """Check dtype, the last axis and that there is something to compute on."""
    if x.dtype not in FLOATS:
        as_tensor(x, what)
    if x.ndim == 0 or x.shape[-1] != n:
        raise ValueError(
            f"{what} has shape {tuple(x.shape)}, but its last axis must have length {n}, the dimension of the form"
        )
    if 0 in x.shape:
        raise ValueError(f"{what} is empty, shape {tuple(x.shape)}: give at least one sample")


def vectors(x: Any, n: int, what: str = "x") -> Tensor:
    """Read ``x`` as vectors ``(..., n)`` and check shape, dtype and values."""
    tensor = as_tensor(x, what)
    require_vectors(tensor, n, what)
    require_finite(tensor, what)
    return tensor


def square(g: Any, what: str, n: int | None = None) -> Tensor:
    """Read ``g`` as matrices ``(..., n, n)``."""
    tensor = as_tensor(g, what, integers=True)
    if tensor.ndim < 2 or tensor.shape[-1] != tensor.shape[-2] or n not in (None, tensor.shape[-1]):
        expected = "(..., n, n)" if n is None else f"(..., {n}, {n})"
        raise ValueError(f"{what} has shape {tuple(tensor.shape)}, expected {expected}")
    if 0 in tensor.shape:
        raise ValueError(f"{what} is empty, shape {tuple(tensor.shape)}: give at least one 1x1 matrix")
    require_finite(tensor, what, NUMBERS)
    return tensor


def symmetric(A: Any) -> Tensor:
    """Read one non-zero symmetric matrix as float64; asymmetry beyond rounding is an error."""
    raw = as_tensor(A, "A", integers=True)
    if raw.ndim != 2 or raw.shape[0] != raw.shape[1] or raw.shape[0] == 0:
        raise ValueError(f"A has shape {tuple(raw.shape)}: a quadratic form needs one square matrix (n, n)")
    require_finite(raw, "A", NUMBERS)
    # Asymmetry is judged in the precision in which the matrix was made.
    rounding = 1e-5 if raw.dtype == torch.float32 else 1e-9
    matrix = raw.detach().to("cpu", torch.float64)
    largest = float(matrix.abs().max())
    if largest == 0.0:
        raise ValueError("A is the zero matrix: every linear map preserves it, so it singles out no group")
    gap = (matrix - matrix.T).abs()
    if float(gap.max()) > rounding * largest:
        i, j = divmod(int(gap.argmax()), matrix.shape[0])
        raise ValueError(
            f"A is not symmetric: A[{i},{j}] = {matrix[i, j]:.6g} but A[{j},{i}] = {matrix[j, i]:.6g}; "
            "xᵀAx sees only the symmetric part, pass (A + A.T) / 2 if that is meant"
        )
    return (matrix + matrix.T) / 2


def whole(value: Any, what: str, least: int, most: int | None = None) -> int:
    """Read a whole number of at least ``least``, and at most ``most``.

    >>> whole(np.int64(3), "seed", 0)
    3
    """
    if isinstance(value, Integral) and not isinstance(value, bool | np.bool_):
        number = int(value)
        if number >= least and (most is None or number <= most):
            return number
    upper = "" if most is None else f" and at most {most}"
    raise ValueError(f"{what} = {value!r}: give a whole number of at least {least}{upper}")


#: The largest seed: what all generators of random numbers take.
LARGEST_SEED = 2**32 - 1


def seed(value: Any) -> int:
    """Read a seed."""
    return whole(value, "seed", 0, LARGEST_SEED)


def seconds(value: Any) -> float:
    """Read a time budget."""
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_) and 0 < float(value) < math.inf:
        return float(value)
    raise ValueError(f"time_budget = {value!r}: give a finite number of seconds above zero")
