"""Level sets: the quadric (x - c)ᵀA(x - c) = k that points lie on, without any target (`level_form`)."""

from gortho.level.find import level_form
from gortho.level.result import Calibration, LevelForm

__all__ = ["Calibration", "LevelForm", "level_form"]
