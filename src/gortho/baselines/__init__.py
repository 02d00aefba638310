"""Methods to compare with, each behind the same small interface (`Method`)."""

from gortho.baselines.augerino import Augerino
from gortho.baselines.base import Method, form_of_generators, generator_distance
from gortho.baselines.bnn import BNN
from gortho.baselines.emlp import EMLP
from gortho.baselines.liegan import LieGAN
from gortho.baselines.liegg import LieGG
from gortho.baselines.lig import LIG
from gortho.baselines.mlp import MLP
from gortho.baselines.sdba import SDBA

__all__ = [
    "BNN",
    "EMLP",
    "LIG",
    "MLP",
    "SDBA",
    "Augerino",
    "LieGAN",
    "LieGG",
    "Method",
    "form_of_generators",
    "generator_distance",
]
