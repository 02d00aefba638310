"""Methods of the tables, ours among them, each behind the same small interface (`Method`).

A file of this package with a `Method` that has `variants` is all that the tables need of it (`registry`).
"""

from gortho.studies.baselines.augerino import Augerino
from gortho.studies.baselines.base import Method, Stand, Variant, form_of_generators, generator_distance
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
    "Stand",
    "Variant",
    "form_of_generators",
    "generator_distance",
]
