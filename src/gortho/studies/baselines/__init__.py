"""Methods to compare with, each behind the same small interface (`Method`)."""

from gortho.studies.baselines.augerino import Augerino
from gortho.studies.baselines.base import Method, form_of_generators, generator_distance
from gortho.studies.baselines.bnn import BNN
from gortho.studies.baselines.emlp import EMLP
from gortho.studies.baselines.liegan import LieGAN
from gortho.studies.baselines.liegg import LieGG
from gortho.studies.baselines.lig import LIG
from gortho.studies.baselines.mlp import MLP
from gortho.studies.baselines.sdba import SDBA

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
