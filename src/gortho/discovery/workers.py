"""The same function on many arguments, here or on several processes: the answers do not depend on how many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

T = TypeVar("T")


def each(function: Callable[..., T], arguments: Sequence[tuple[Any, ...]], workers: int = 1) -> list[T]:
    """The values of the function, in the order of the arguments."""
    if workers <= 1 or len(arguments) <= 1:
        return [function(*given) for given in arguments]
    from joblib import Parallel, delayed

    return Parallel(n_jobs=workers)(delayed(_on_one_thread)(function, given) for given in arguments)


def _on_one_thread(function: Callable[..., T], given: tuple[Any, ...]) -> T:
    torch.set_num_threads(1)
    return function(*given)
