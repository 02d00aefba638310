"""Other ways to find a symmetry, behind one small interface: fit, predict, generators, quadratic form."""

from gortho.baselines.liegg import LieGG, form_of_generators, generator_distance

__all__ = ["LieGG", "form_of_generators", "generator_distance"]
