"""What fits make small and comparisons count: squared errors, absolute or relative, and cross-entropy.

`objective` is what all of them have; `squares` and `entropy` are the members, and `asked` chooses among them.
`learners` are models without geometry that make them small.
"""

from gortho.objectives.asked import objectives_for
from gortho.objectives.entropy import LABELS, CrossEntropy
from gortho.objectives.objective import Errors, Objective
from gortho.objectives.squares import ABSOLUTE, RELATIVE, SQUARES, RelativeErrors, SquaredErrors

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
