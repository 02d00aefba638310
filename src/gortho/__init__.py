"""gortho: find the quadratic form behind your data, and predict with it.

Read the modules in this order: `forms` (the value), `groups` (O(A)), `reps` (how outputs transform), `nn`
(networks that respect a form exactly), `training` (one loop), `testing` (is it really equivariant?), `discovery`
(is there a form, and which one?), `report` (the answer as a page).
"""

from typing import TYPE_CHECKING, Any

from gortho import nn, reps, testing
from gortho.discovery import Discovery, Settings, Verdict, discover, spectral_form
from gortho.forms import QuadraticForm, Signature
from gortho.groups import OrthogonalGroup
from gortho.nn import EquivariantNet, LearnableForm
from gortho.reps import DirectSum, Tensor
from gortho.training import fit

if TYPE_CHECKING:
    from gortho.estimators import EquivariantRegressor, InvariantClassifier

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # scikit-learn takes most of a second to import, so it waits until its estimators are asked for.
    if name in ("EquivariantRegressor", "InvariantClassifier"):
        from gortho import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'gortho' has no attribute {name!r}")


__all__ = [
    "DirectSum",
    "Discovery",
    "EquivariantNet",
    "EquivariantRegressor",
    "InvariantClassifier",
    "LearnableForm",
    "OrthogonalGroup",
    "QuadraticForm",
    "Settings",
    "Signature",
    "Tensor",
    "Verdict",
    "discover",
    "fit",
    "nn",
    "reps",
    "spectral_form",
    "testing",
]
