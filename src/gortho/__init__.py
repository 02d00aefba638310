"""gortho: find the quadratic form behind your data, and predict with it.

Read the modules in this order: `forms` (the value), `groups` (O(A)), `reps` (how outputs transform), `symmetry` (the
symmetry of a law: O(A), or less), `nn` (networks that respect it exactly), `training` (one loop), `testing` (is it
really equivariant?), `discovery` (is there a form, and which one?), `report` (the answer as an HTML page).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gortho import nn, reps, testing
    from gortho.discovery import Discovery, Settings, Verdict, spectral_form, survey
    from gortho.discovery.discover import discover
    from gortho.estimators import EquivariantRegressor, InvariantClassifier
    from gortho.forms import QuadraticForm, Signature
    from gortho.groups import OrthogonalGroup
    from gortho.kept import Kept, keeps
    from gortho.level import LevelForm, level_form
    from gortho.nn import EquivariantNet, LearnableForm
    from gortho.reps import DirectSum, Tensor
    from gortho.samples import Frame, Samples, derivatives
    from gortho.scanning import Scan, scan
    from gortho.skew import SkewForm
    from gortho.symmetry import Symmetry
    from gortho.training import fit

__version__ = "0.2.0"

# torch and scikit-learn take seconds to import, so a name is imported when it is first used.
_HOMES = {
    "samples": ("Frame", "Samples", "derivatives"),
    "discovery": ("Discovery", "Settings", "Verdict", "discover", "spectral_form", "survey"),
    "estimators": ("EquivariantRegressor", "InvariantClassifier"),
    "forms": ("QuadraticForm", "Signature"),
    "groups": ("OrthogonalGroup",),
    "kept": ("Kept", "keeps"),
    "level": ("LevelForm", "level_form"),
    "nn": ("EquivariantNet", "LearnableForm"),
    "reps": ("DirectSum", "Tensor"),
    "scanning": ("Scan", "scan"),
    "skew": ("SkewForm",),
    "symmetry": ("Symmetry",),
    "testing": (),
    "training": ("fit",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name == home or name in names:
            module = import_module(f"gortho.{home}")
            value = globals()[name] = module if name == home else getattr(module, name)
            return value
    raise AttributeError(f"module 'gortho' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "DirectSum",
    "Discovery",
    "EquivariantNet",
    "EquivariantRegressor",
    "Frame",
    "InvariantClassifier",
    "Kept",
    "LearnableForm",
    "LevelForm",
    "OrthogonalGroup",
    "QuadraticForm",
    "Samples",
    "Scan",
    "Settings",
    "Signature",
    "SkewForm",
    "Symmetry",
    "Tensor",
    "Verdict",
    "derivatives",
    "discover",
    "fit",
    "keeps",
    "level_form",
    "nn",
    "reps",
    "scan",
    "spectral_form",
    "survey",
    "testing",
]
