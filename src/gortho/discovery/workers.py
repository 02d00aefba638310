"""Threads and processes: one thread for small kernels; one function mapped over many arguments, in processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from threadpoolctl import threadpool_limits

T = TypeVar("T")

#: How often workers look whether the process that started them is still there.
PARENT_SECONDS = 1.0


@contextmanager
def one_thread() -> Iterator[None]:
    """Small kernels gain nothing from a second thread, and lose much time when something else runs beside."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):  # of numpy and scipy: the last digit depends on their number
            yield
    finally:
        torch.set_num_threads(threads)


def each(function: Callable[..., T], arguments: Sequence[tuple[Any, ...]], workers: int = 1) -> list[T]:
    """The values of the function, in the order of the arguments."""
    if workers <= 1 or len(arguments) <= 1:
        return [function(*given) for given in arguments]
    from joblib import Parallel, delayed

    return Parallel(n_jobs=workers)(delayed(apart)(function, given) for given in arguments)


def as_done(
    function: Callable[..., T], arguments: Iterable[tuple[Any, ...]], workers: int
) -> Generator[T, None, None]:
    """The values of the function as they are done, in any order, on the pool that joblib is set to.

    Arguments are taken when a worker is free. Workers of this machine end with the process that started them, and
    leave Ctrl-C to it; closing the iterator ends them.
    """
    from joblib import Parallel, delayed

    pool = Parallel(
        n_jobs=workers,
        return_as="generator_unordered",
        batch_size=1,
        pre_dispatch="n_jobs",
        initializer=serve,  # with the process, not with its first task: there may be none
        initargs=(os.getpid(),),
    )
    return pool(delayed(apart)(function, given) for given in arguments)


def apart(function: Callable[..., T], given: tuple[Any, ...]) -> T:
    """The value of the function, in one thread, as workers find it."""
    with one_thread():
        return function(*given)


def serve(parent: int) -> None:
    """Make this process a worker of its parent: it ends with it, and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)  # nobody is left to take what it works on
