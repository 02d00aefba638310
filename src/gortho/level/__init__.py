"""Level sets: the quadric (x - c)ᵀA(x - c) = k that points lie on, without any target (`level_form`)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gortho.level.find import level_form
    from gortho.level.result import Calibration, LevelForm


def __getattr__(name: str) -> Any:
    # The command line imports this package, and should not wait for torch.
    home = {"level_form": "find", "Calibration": "result", "LevelForm": "result"}.get(name)
    if home is None:
        raise AttributeError(f"module 'gortho.level' has no attribute {name!r}")
    return getattr(import_module(f"gortho.level.{home}"), name)


__all__ = ["Calibration", "LevelForm", "level_form"]
