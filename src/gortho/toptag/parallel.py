"""Several processes, as torchrun starts them: which one this is, its share of the jets, and what all of them know.

Every process calls the same functions in the same order. With one process they do nothing.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def place() -> tuple[int, int]:
    """Number of this process, from 0, and how many there are."""
    if _started():
        return dist.get_rank(), dist.get_world_size()
    if "RANK" not in os.environ:
        return 0, 1
    return int(os.environ["RANK"]), int(os.environ.get("WORLD_SIZE", "1"))


def local_device() -> torch.device:
    """This process's own GPU, or the CPU where there is none."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)  # kernels and messages between GPUs go by the current device
    return device


def start(device: torch.device) -> tuple[int, int]:
    """Meet the other processes, over NCCL between GPUs and gloo between CPUs, and return `place`."""
    rank, world = place()
    if world > 1 and not _started():
        cuda = device.type == "cuda"
        if cuda:
            torch.cuda.set_device(device)
        dist.init_process_group("nccl" if cuda else "gloo")
        atexit.register(lambda: dist.destroy_process_group() if _started() else None)
    return rank, world


def shard(rows: Any, rank: int | None = None, world: int | None = None) -> np.ndarray:
    """The rows that this process reads: one contiguous piece of nearly equal length for each process.

    >>> shard(range(5), rank=1, world=2).tolist()
    [3, 4]
    """
    here, all_of_them = place()
    rank, world = here if rank is None else rank, all_of_them if world is None else world
    rows = np.asarray(rows)
    if len(rows) < world:
        raise ValueError(f"{len(rows)} jets for {world} processes: give each at least one")
    return np.array_split(rows, world)[rank]


def gather(value: Any) -> list[Any]:
    """Small values of all processes, by their numbers; all of them wait here for each other."""
    if not _started():
        return [value]
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    return found


def average_gradients(parameters: Iterable[Tensor]) -> None:
    """The mean of the gradients of all processes, in one message."""
    if not _started():
        return
    gradients = [p.grad for p in parameters if p.grad is not None]
    total = parameters_to_vector(gradients)
    dist.all_reduce(total)
    vector_to_parameters(total / dist.get_world_size(), gradients)


def _started() -> bool:
    return dist.is_available() and dist.is_initialized()
