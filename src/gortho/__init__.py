"""gortho: find the quadratic form behind your data, and predict with it.

Read the modules in this order: `forms` (the value), `groups` (O(A)), `reps` (how outputs transform), `nn`
(networks that respect a form exactly), `training` (one loop), `testing` (is it really equivariant?), `discovery`
(is there a form, and which one?), `report` (the answer as a page).
"""

from gortho import nn, reps, testing
from gortho.discovery import Discovery, Settings, Verdict, discover, spectral_form
from gortho.estimators import EquivariantRegressor, InvariantClassifier
from gortho.forms import QuadraticForm, Signature
from gortho.groups import OrthogonalGroup
from gortho.nn import EquivariantNet, LearnableForm
from gortho.reps import DirectSum, Tensor
from gortho.training import fit

__version__ = "0.1.0"

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
