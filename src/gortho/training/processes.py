"""One process or several: what training needs of a Lightning Fabric, and how torchrun's processes get one.

Every process calls the same functions in the same order.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from torch import Tensor


class OneProcess:
    """What training needs of a Fabric, on one process and one device: importing the real one takes seconds."""

    world_size, global_rank = 1, 0

    def __init__(self, device: torch.device | str = "cpu"):
        self.device = torch.device(device)

    def setup(self, net: Any, optimizer: Any) -> tuple[Any, Any]:
        """Network and optimizer as they are."""
        return net, optimizer

    def backward(self, loss: Tensor) -> None:
        """Gradients of the loss."""
        loss.backward()

    def all_gather(self, value: Tensor) -> Tensor:
        """The values of all processes."""
        return value[None]

    def barrier(self) -> None:
        """There is nobody to wait for."""


def gathered(fabric: Any, *values: float) -> Tensor:
    """A few numbers of all processes, ``(processes, numbers)``; all of them wait here for each other."""
    here = torch.tensor(values, dtype=torch.float64, device=fabric.device)
    return fabric.all_gather(here).reshape(fabric.world_size, len(values)).cpu()


def local_device() -> torch.device:
    """This process's own GPU, or the CPU where there is none."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)  # kernels and messages between GPUs go by the current device
    return device


def launched(device: torch.device | str = "cpu") -> Any:
    """The Fabric of the processes that torchrun started, which meet here; without torchrun, one process."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return OneProcess(device)
    from lightning_fabric import Fabric

    here = int(os.environ.get("LOCAL_WORLD_SIZE", str(world)))
    kind = torch.device(device).type
    fabric = Fabric(accelerator=kind, devices=here, num_nodes=world // here, strategy="ddp")
    fabric.launch()
    return fabric


def share(rows: Any, fabric: Any) -> np.ndarray:
    """The rows that a process reads: one contiguous piece of nearly equal length for each.

    >>> share(range(5), OneProcess()).tolist()
    [0, 1, 2, 3, 4]
    """
    rows = np.asarray(rows)
    if len(rows) < fabric.world_size:
        raise ValueError(f"{len(rows)} samples for {fabric.world_size} processes: give each at least one")
    return np.array_split(rows, fabric.world_size)[fabric.global_rank]
