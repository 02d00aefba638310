"""How exactly a law respects a form (M14): an interval for the fraction of its variance that the form cannot express.

δ = E|f - Πf|² / Var f, where f is the law and Πf the closest function that respects the form. The lower end is what
free models gain over all twins, beyond doubt; the upper end is all that the best twin leaves unexplained, minus known
noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from gortho.discovery.models import Measured
from gortho.samples.values import Samples

#: The gain of free models counts when the paired test on held-out samples is this sure …
SIGNIFICANCE = 1e-3
#: … when it is this many of its standard errors …
GAIN_ERRORS = 2.0
#: … lowers the error of the best twin by this share …
NOTABLE_GAIN = 0.05
#: … and is more than this share of the variance: less is what the twins have not learnt.
IMPERFECTION = 1e-5
#: Less than this share of the variance is no evidence: models do not learn to more digits …
ROUNDING = 1e-9
#: … and less than this is called rounding: data in float32 leave about 1e-14.
CALLED_ROUNDING = 1e-12
#: Of a gain that counts, this share is certain: the rest may be what the twins could have learnt.
CERTAIN_SHARE = 0.5
#: Standard errors on either side of an interval of 95 %.
TWO_SIDED = 1.96
#: An upper end above this share is uninformative: most of the variance is unexplained, and may be noise or law.
SAYS_NOTHING = 0.5
NOT_KNOWN = "not known: what is left over may be noise as well as a broken form"
#: Repeated inputs determine the noise if they have this many degrees of freedom.
REPEATS = 10


@dataclass(frozen=True)
class Noise:
    """What is known about the noise of the targets: its share of their variance, and how it is known."""

    share: float
    error: float  # standard error of the share
    source: str


@dataclass(frozen=True)
class Defect:
    """A 95 % interval of the share of the law's variance that the form cannot express.

    >>> str(Defect(0.0, 0.0004)), str(Defect(0.008, 0.012))
    ('violated by less than 0.04 % of the variance', 'broken by 0.8 to 1.2 % of the variance')
    >>> str(Defect(0.0, 5e-10)), str(Defect(0.0, 1e-14))
    ('violated by less than 5e-08 % of the variance', 'kept to rounding errors')
    """

    low: float
    high: float
    noise: Noise | None = None
    measure: str = "variance"  # what it is a share of
    usual: float | None = None  # the upper end without a few samples that make up most of the error

    def __str__(self) -> str:
        if not self.low > 0:
            apart = ""
            if self.usual is not None and self.usual <= SAYS_NOTHING:
                apart = f"{_percent(self.usual)} % without a few samples that make up most of the error"
            if not self.informative:
                return (apart and f"violated by less than {apart}") or NOT_KNOWN
            if self.high < CALLED_ROUNDING:
                return "kept to rounding errors"
            said = f"violated by less than {_percent(self.high)} % of the {self.measure}"
            return f"{said}, {apart}" if apart else said
        return f"broken by {_percent(self.low)} to {_percent(self.high)} % of the {self.measure}"

    @property
    def informative(self) -> bool:
        """Whether the interval says anything."""
        return self.low > 0 or self.high <= SAYS_NOTHING


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.0f}" if percent >= 9.5 else f"{percent:.2g}"


def contradicted(m: Measured) -> bool:
    """Whether a free model beats every twin beyond doubt, and notably."""
    least = max(NOTABLE_GAIN * m.unexplained, GAIN_ERRORS * m.gain_error, IMPERFECTION)
    return m.p < SIGNIFICANCE and m.gain > least


def defect(m: Measured, noise: Noise | None, broken: bool) -> Defect:
    """The interval from what twins and free models leave over of held-out samples, and from the noise.

    ``broken``: whether free models are beyond doubt better than all twins.
    """
    known, error = (0.0, 0.0) if noise is None else (noise.share, noise.error)
    known = min(known, m.unexplained, m.free_unexplained)  # these samples have no more
    law = max(1 - known, 1e-3)  # the law's share of the variance of y
    # Never below what these samples could have shown.
    left = max(m.unexplained - known, 0.0) + TWO_SIDED * math.hypot(m.unexplained_error, error)
    low = CERTAIN_SHARE * max(0.0, m.gain - TWO_SIDED * m.gain_error) if broken else 0.0
    return Defect(min(low / law, 1.0), min(max(left, low) / law, 1.0), noise)


def class_defect(m: Measured, broken: bool, held_out: int, classes: int) -> Defect:
    """The same for classes, of the log loss that the best model gains over class frequencies.

    What labels leave open is mostly chance, of which nobody knows the share: the upper end is what held-out samples
    show of the free models' gain, and never below what so many labels can tell by their likelihood, t² / 2N.
    """
    known = max(1 - min(m.unexplained, m.free_unexplained), 1e-3)
    resolved = TWO_SIDED**2 / (2 * max(held_out, 1) * math.log(max(classes, 2)))
    high = max(max(m.gain, 0.0) + TWO_SIDED * m.gain_error, resolved)
    low = CERTAIN_SHARE * max(0.0, m.gain - TWO_SIDED * m.gain_error) if broken else 0.0
    explained = "log loss that is explained"
    return Defect(min(low / known, 1.0), min(max(high, low) / known, 1.0), measure=explained)


def noise_of(train: Samples) -> Noise | None:
    """The noise of the targets from their given errors, or from samples that share their inputs.

    The samples have the weights that errors are counted with.
    """
    y = train.y.double().reshape(len(train), -1)
    w = train.each_weight.double()
    mean = (y * w[:, None]).sum(0) / w.sum()
    variance = float((w * (y - mean).square().mean(1)).mean())
    if train.noise is not None:
        return Noise(float((w * train.noise.square()).mean()) / variance, 0.0, "given errors of y")
    rows = torch.cat([t.double().flatten(1) for t in train.inputs if t is not None], dim=1)
    _, group, counts = torch.unique(rows, dim=0, return_inverse=True, return_counts=True)
    freedom = len(y) - len(counts)
    if freedom < REPEATS:
        return None
    means = torch.zeros(len(counts), y.shape[1], dtype=y.dtype).index_add_(0, group, y) / counts[:, None]
    squares = w * (y - means[group]).square().mean(1)
    repeated = counts[group] > 1
    # A group of c repeats has c - 1 degrees of freedom.
    share = float(squares[repeated].sum() / (1 - 1 / counts[group][repeated].double()).sum()) / variance
    return Noise(share, share * (2 / freedom) ** 0.5, f"{int(repeated.sum())} samples with repeated inputs")
