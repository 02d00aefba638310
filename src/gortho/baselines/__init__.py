"""Methods to compare with, each behind the same small interface (`Method`)."""

from gortho.baselines.base import Method, form_of_generators, generator_distance
from gortho.baselines.liegg import LieGG

__all__ = ["LieGG", "Method", "form_of_generators", "generator_distance"]
