"""What happened in training, and checkpoints of it: written whole or not at all, and read with a clear word."""

from __future__ import annotations

import enum
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from gortho.files import write_whole


class Ended(enum.StrEnum):
    """How a fit ended."""

    DONE = "done"
    EXACT = "exact"  # the validation loss is down to rounding
    PATIENCE = "patience"
    DIVERGED = "diverged"
    OVERFLOW = "overflow"  # too many steps had to be left out
    STOPPED = "stopped"  # the time given was spent
    INTERRUPTED = "interrupted"  # Ctrl-C


@dataclass
class History:
    """What happened in training: losses by epoch, and why it ended.

    With a known form, validation losses begin with those of the convex start; those of polishing come last.
    ``left_out`` counts the steps whose gradients were not finite, where those are left out.
    """

    train: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best_epoch: int = -1
    best_validation: float = math.inf
    seconds: float = 0.0
    left_out: int = 0
    ended: str = "all epochs done"
    how: Ended = Ended.DONE


def snapshot(net: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in net.state_dict().items()}


def save(
    path: Path, net: nn.Module, optimizer: Any, best: dict[str, Any], history: History, epoch: int
) -> None:
    tensors = {f"net.{k}": v for k, v in net.state_dict().items()} | {f"best.{k}": v for k, v in best.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{k}": torch.as_tensor(v) for k, v in state.items()}
    tensors = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
    note = {
        "epoch": str(epoch),
        "history": json.dumps(vars(history)),
        "format": "gortho training checkpoint 1",
    }
    write_whole(path, lambda place: save_file(tensors, place, metadata=note))


def load(path: Path, net: nn.Module, optimizer: Any) -> tuple[History, dict[str, Tensor], int]:
    try:
        with safe_open(path, framework="pt") as file:
            note = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except Exception as error:
        raise ValueError(f"checkpoint {path} cannot be read ({error}): delete it to start again") from None
    if "history" not in note:
        raise ValueError(f"{path} is not a training checkpoint: choose another file name")

    def section(prefix: str) -> dict[str, Tensor]:
        return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}

    try:
        net.load_state_dict(section("net."))
    except RuntimeError as error:
        raise ValueError(
            f"checkpoint {path} belongs to another network ({error}): delete it or choose another file"
        ) from None
    state = optimizer.state_dict()
    restored: dict[int, dict[str, Tensor]] = {}
    for key, value in section("optimizer.").items():
        index, name = key.split(".", 1)
        restored.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({**state, "state": restored})
    history = History(**json.loads(note["history"]))
    history.how = Ended(history.how)
    return history, section("best."), int(note["epoch"])
