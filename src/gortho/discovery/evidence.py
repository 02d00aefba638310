"""The evidence: everything that a verdict is based on, as a value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gortho.discovery.defect import (
    NOTABLE_GAIN,
    ROUNDING,
    TWO_SIDED,
    Defect,
    Noise,
    class_defect,
    contradicted,
    defect,
)
from gortho.discovery.models import RULED_BY_FEW, Measured

#: There is no form where models of the coordinates explain this share of what all twins leave over: less than that may
#: be what twins could have learnt, and leaves it open.
CLEAR_GAIN = 0.3
#: A gain of models of the coordinates that counts by its size, and is this sure by a paired test, leaves it open.
DOUBT = 0.02
#: … or half as sure, of fewer bundles of samples than this: a test of few cannot be surer.
DOUBT_OF_FEW, FEW_BUNDLES = 0.5, 30
#: No few held-out samples rule an error that is smaller than this share of the variance …
NO_ERROR = 1e-4
#: … and few they are only up to this share of them: of four samples one often has most of the error.
FEW = 0.05


@dataclass(frozen=True)
class Evidence:
    """Everything the verdict is based on, measured on held-out data unless stated otherwise."""

    samples: int
    held_out: int
    own_unexplained: float  # relative mean squared error of the predictor
    direct_unexplained: float  # of the best model of the coordinates that knows nothing of the predictor
    twin: str  # the best model of the form's invariants
    free: str  # the best model of the coordinates
    everyone: Measured
    others: Measured  # without the worst
    given: Measured | None = None  # of everyone in the given coordinates, where the variance depends on them
    worst: tuple[int, ...] = ()  # the 2 % of held-out samples with the largest errors
    worst_share: float = 0.0  # their share of the twin's squared error
    noise: Noise | None = None
    restarts: int = 1
    near_best: int = 1  # restarts that end about as well as the best one
    agreeing: int = 1  # of these, how many end at the same form
    refit_distances: tuple[float, ...] = ()  # of refits to the found form, in the frame (M18)
    signature_votes: float = 0.0  # share of refits with the found signature
    weakest_eigenvalue: float = math.inf  # smallest |λ| over its standard error, zero directions left out
    zero_directions: int = 0
    bent: float | None = (
        None  # p of its being better than other rules of length, where vectors lie on one side
    )
    shell: bool = False  # whether all vectors lie on one quadric, on which q(x) is known up to a constant
    spectral_gap: float | None = None
    classes: int = 0  # how many, where targets are labels: shares are of the log loss of class frequencies
    complete: bool = True  # whether every model had its full effort

    @property
    def few_rule(self) -> bool:
        """Whether a few held-out samples make up most of an error that is not negligible."""
        few = len(self.worst) <= FEW * self.held_out
        return few and self.worst_share > RULED_BY_FEW and self.everyone.unexplained > NO_ERROR

    @property
    def typical(self) -> Measured:
        """The measurement without the worst samples, if they dominate the error; otherwise with all samples.

        A law can hold where a predictor, at the edge of the data, does not.
        """
        return self.others if self.few_rule else self.everyone

    @property
    def left_over(self) -> float:
        """What the best twin leaves unexplained, apart from known noise."""
        return self.typical.unexplained - (0.0 if self.noise is None else self.noise.share)

    @property
    def resolved(self) -> float:
        """The least that may be left over as far as these samples tell, beside noise that is known."""
        if self.noise is None:
            return 0.0
        return TWO_SIDED * math.hypot(self.typical.unexplained_error, self.noise.error)

    @property
    def too_noisy(self) -> bool:
        """Whether the noise that is said to be known is beyond doubt more than all that models leave."""
        m = self.everyone
        return self.noise is not None and self.noise.share > 1.5 * m.unexplained + 3 * m.unexplained_error

    @property
    def broken(self) -> Measured | None:
        """The comparison in which models of the coordinates are better beyond doubt, if there is one."""
        # Of labels all samples count: without the worst, a model that is too sure of itself would look better.
        seen = (self.everyone,) if self.classes else (self.typical, self.others)
        return next((m for m in seen if contradicted(m)), None)

    def doubtful(self, tolerance: float) -> bool:
        """Whether models of the coordinates may be notably better, though not beyond doubt."""
        m = self.typical
        notable = m.gain > max(tolerance, ROUNDING, NOTABLE_GAIN * m.unexplained)
        doubt = DOUBT_OF_FEW if 0 < m.bundles < FEW_BUNDLES else DOUBT
        return self.broken is None and notable and m.p < doubt and not self.classes

    def spoiled(self, tolerance: float) -> bool:
        """Whether models of the coordinates explain the few samples that dominate the error of twins.

        If twins explain nearly all other samples, the predictor fails at the edge of the data, not the form.
        """
        m = self.everyone
        better = m.gain > max(tolerance, ROUNDING, CLEAR_GAIN * m.unexplained) and not self.classes
        return self.few_rule and better and self.others.unexplained > tolerance

    @property
    def defect(self) -> Defect:
        """How exactly the law respects the form (M14); for tensors, in the frame and in given coordinates."""
        broken = self.broken
        if self.classes:
            m = self.everyone if broken is None else broken
            return class_defect(m, broken is not None, self.held_out, self.classes)
        seen = [self.typical if broken is None else broken, *([] if self.given is None else [self.given])]
        ends = [defect(m, self.noise, broken is not None) for m in seen]
        low, high = min(d.low for d in ends), max(d.high for d in ends)
        if not self.few_rule:
            return Defect(low, high, self.noise)
        everyone = defect(self.everyone, self.noise, broken is not None)
        return Defect(low, max(high, everyone.high), self.noise, usual=high)

    @property
    def spread(self) -> float:
        """Median distance of the refits."""
        return float(np.median(self.refit_distances)) if self.refit_distances else math.inf
