"""Where an answer comes from: what was given, how it was found, and what it was compared with."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field

import numpy as np
import torch

from gortho.discovery.clock import Clock
from gortho.discovery.predictor import Kind
from gortho.discovery.verdict import TOLERANCE
from gortho.forms import QuadraticForm
from gortho.objectives import Errors
from gortho.samples.values import Samples


@dataclass(frozen=True)
class Restart:
    """Where one start of the search ended: its form, in the given coordinates, and the error to expect there."""

    start: str
    form: QuadraticForm
    criterion: float
    distance: float  # to the best one, in the frame


@dataclass(frozen=True)
class Source:
    """The file that samples were read from, and the columns or arrays of each part ("x", "y", "scalars")."""

    file: str
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Provenance:
    """Where an answer comes from: what was given, and how it was found."""

    samples: int
    points: int
    n: int
    seed: int
    errors: Errors = Errors.ABSOLUTE
    predictor: Kind | None = None
    stages: dict[str, float] = field(default_factory=dict)  # seconds
    versions: dict[str, str] = field(default_factory=dict)
    source: Source | None = None
    tolerance: float = TOLERANCE  # the share of variance that a form may be broken by

    @classmethod
    def of(
        cls,
        samples: Samples,
        seed: int,
        clock: Clock,
        tolerance: float,
        errors: Errors = Errors.ABSOLUTE,
        predictor: Kind | None = None,
    ) -> Provenance:
        """What was given, with the seconds so far and the versions of today."""
        import gortho

        versions = {
            "gortho": gortho.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        }
        stages = dict(clock.seconds) | {"rest": max(0.0, clock.total - sum(clock.seconds.values()))}
        size = len(samples), samples.points, samples.n
        return cls(*size, seed, errors, predictor, stages, versions, tolerance=tolerance)

    @property
    def seconds(self) -> float:
        """Seconds in all."""
        return sum(self.stages.values())

    def facts(self) -> dict[str, str]:
        """The same in words, for the report."""
        facts = {
            "samples": f"{self.samples}",
            "vectors in a sample": f"{self.points}",
            "dimension": f"{self.n}",
            "errors": self.errors.value,
            "tolerance": f"{self.tolerance:g} of the variance",
            "seed": f"{self.seed}",
            "seconds": f"{self.seconds:.1f}",
            "seconds by stage": ", ".join(f"{name} {s:.1f}" for name, s in self.stages.items()),
        }
        if self.predictor is not None:
            facts["predictor"] = self.predictor.value
        if self.source is not None:
            facts["file"] = self.source.file
            facts |= {f"{part} read from": ", ".join(names) for part, names in self.source.columns.items()}
        return facts | self.versions
