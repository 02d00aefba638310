"""The loss that fits minimise and comparisons use: squared errors, absolute or relative, and cross-entropy.

`objective` is what all of them have; `squares` and `entropy` are the members; `learners` are models without geometry
that make them small.
"""

from gortho.objectives.entropy import LABELS, CrossEntropy
from gortho.objectives.objective import Errors, Objective
from gortho.objectives.squares import ABSOLUTE, RELATIVE, SQUARES, RelativeErrors, SquaredErrors
from gortho.samples.values import Samples


def objectives_for(samples: Samples, errors: str = "auto") -> tuple[Objective, ...]:
    """The objectives that a search tries, by the kind of the targets and the name of the errors."""
    try:
        squares = tuple(SQUARES.values()) if errors == "auto" else (SQUARES[Errors(errors)],)
    except ValueError:
        raise ValueError(f"errors = {errors!r}: choose 'auto', 'absolute' or 'relative'") from None
    return (LABELS,) if samples.classes else squares


__all__ = [
    "ABSOLUTE",
    "LABELS",
    "RELATIVE",
    "SQUARES",
    "CrossEntropy",
    "Errors",
    "Objective",
    "RelativeErrors",
    "SquaredErrors",
    "objectives_for",
]
