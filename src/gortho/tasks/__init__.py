"""Data with a known truth: each task draws samples of a law f(gx) = ρ(g) f(x) and knows its form."""

from gortho.tasks.laws import Task, inertia, second_vector, synthetic

__all__ = ["Task", "inertia", "second_vector", "synthetic"]
