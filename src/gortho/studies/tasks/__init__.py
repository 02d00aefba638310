"""Data with a known truth: each task draws samples of a law f(gx) = ρ(g) f(x) and knows its form."""

from gortho.studies.tasks.laws import PUBLIC, Task, inertia, o5, particle, second_vector, synthetic

__all__ = ["PUBLIC", "Task", "inertia", "o5", "particle", "second_vector", "synthetic"]
