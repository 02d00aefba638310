"""Threads and processes: one thread for small kernels; one function on many arguments, on several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

T = TypeVar("T")


@contextmanager
def one_thread() -> Iterator[None]:
    """Small kernels gain nothing from a second thread, and lose much time when something else runs beside."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def each(function: Callable[..., T], arguments: Sequence[tuple[Any, ...]], workers: int = 1) -> list[T]:
    """The values of the function, in the order of the arguments."""
    if workers <= 1 or len(arguments) <= 1:
        return [function(*given) for given in arguments]
    from joblib import Parallel, delayed

    return Parallel(n_jobs=workers)(delayed(_on_one_thread)(function, given) for given in arguments)


def _on_one_thread(function: Callable[..., T], given: tuple[Any, ...]) -> T:
    torch.set_num_threads(1)
    return function(*given)
