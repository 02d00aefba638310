"""Which objectives a search tries: as the caller chose, and by what the targets are."""

from __future__ import annotations

from gortho.objectives.entropy import LABELS
from gortho.objectives.objective import Errors, Objective
from gortho.objectives.squares import SQUARES
from gortho.samples.values import Samples


def objectives_for(samples: Samples, errors: str = "auto") -> tuple[Objective, ...]:
    """The objectives to choose from; the first one unless another is clearly better."""
    if samples.classes:
        return (LABELS,)
    try:
        return tuple(SQUARES.values()) if errors == "auto" else (SQUARES[Errors(errors)],)
    except ValueError:
        raise ValueError(f"errors = {errors!r}: choose 'auto', 'absolute' or 'relative'") from None
