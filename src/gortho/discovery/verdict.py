"""The verdict: what the evidence allows to say, and why (FOUND, NONE or UNDERDETERMINED).

A form is FOUND only if three things hold: a predictor that respects it explains the held-out data, nothing that
ignores it does better or finds structure in what it leaves over, and the data pins it down, so that independent
searches and refits to resamples end at the same one.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import norm

#: A found form leaves at most this share of the variance unexplained on held-out data.
MAX_UNEXPLAINED = 0.15
#: Above this share of unexplained variance, the inputs say nothing on the targets at all.
NOTHING_EXPLAINED = 0.95
#: Structure in the residuals counts when a free model removes this share of them …
STRUCTURE_GAIN = 0.15
#: … which is this share of the targets' variance (below, it is the networks' own imperfection) …
STRUCTURE_SHARE = 5e-3
#: … and the paired test on held-out samples is this sure.
SIGNIFICANCE = 1e-3
#: Refits farther than this from the found form (median distance in the frame) mean that the data does not pin it down.
MAX_SPREAD = 0.15
#: A few held-out samples rule the error when the worst 1 % make up more than this share of it …
RULED_BY_FEW = 0.5
#: … unless it is smaller than this share of the variance.
NO_ERROR = 1e-4
#: An eigenvalue is called zero, in the frame, when it is below this share of the largest …
ZERO_SHARE = 0.04
#: … and within so many of its standard errors of zero.
ZERO_ERRORS = 3.0


class Verdict(enum.Enum):
    """What the data says about a quadratic form; ``reason`` gives the meaning, a `Discovery` the grounds."""

    FOUND = "the data respects a quadratic form, and the form is pinned down"
    NONE = "the data does not respect any quadratic form"
    UNDERDETERMINED = "the data cannot tell whether, or which, quadratic form it respects"

    @property
    def reason(self) -> str:
        """What this verdict means, in plain words."""
        return self.value

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Evidence:
    """Everything the verdict rests on, measured on data that no fit has seen unless said otherwise."""

    samples: int
    unexplained: float  # relative mean squared error of the equivariant predictor, held out
    free_unexplained: float  # the same of the best unconstrained model
    free_p: float  # one-sided p of the paired test: small when the unconstrained model is better
    structure_gain: float  # share of the predictor's squared residuals that a free model removes
    structure_p: float
    restarts: int
    near_best: int  # restarts that end about as well as the best one
    agreeing: int  # of these, how many end at the same form
    refit_distances: list[float] = field(
        default_factory=list
    )  # of refits to the found form, in the frame (M18)
    signature_votes: float = 0.0  # share of refits with the found signature
    weakest_eigenvalue: float = math.inf  # smallest |λ| over its standard error, zero directions left out
    zero_directions: int = 0
    spectral_gap: float | None = None
    spectral_residual: float | None = None
    held_out: int = 0
    worst: list[int] = field(default_factory=list)  # the 1 % of held-out samples with the largest errors
    worst_share: float = 0.0  # their share of the predictor's squared error
    # The same without these samples: unexplained, free_unexplained, free_p, structure_gain, structure_p
    others: dict[str, Any] | None = None
    complete: bool = True  # whether every model had its full effort

    @property
    def few_rule(self) -> bool:
        """Whether a few held-out samples make up most of an error that is worth speaking of."""
        return self.worst_share > RULED_BY_FEW and self.unexplained > NO_ERROR

    def typical(self) -> Evidence:
        """The evidence without the worst samples, where they rule the error; else as it is."""
        if not self.few_rule or self.others is None:
            return self
        left = self.held_out - len(self.worst)
        return replace(self, **self.others, held_out=left, worst=[], worst_share=0.0, others=None)

    @property
    def spread(self) -> float:
        """Median distance of the refits."""
        return float(np.median(self.refit_distances)) if self.refit_distances else math.inf


def percent(share: float) -> str:
    """A share for a sentence: 760 %, 12 %, 0.3 %, below 0.01 %."""
    if share < NO_ERROR:
        return "below 0.01 %"
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def confidence(e: Evidence) -> float:
    """Probability that the signature is right and the form is not an artefact, from the evidence.

    The product of: no eigenvalue has changed its sign by chance (normal, by its error from refits), the share of
    refits, the found form counted as one of them, that have its signature, and how much the predictor explains.
    """
    sign = 1 - 2 * norm.sf(min(e.weakest_eigenvalue, 40.0))
    refits = len(e.refit_distances)
    votes = (e.signature_votes * refits + 1) / (refits + 1) if refits else 0.5
    explained = 1 - min(1.0, e.typical().unexplained / MAX_UNEXPLAINED) ** 2
    return float(max(0.0, min(0.999, sign * votes * explained)))


def few_samples(e: Evidence, sizes: np.ndarray, rows: list[int] | None) -> str:
    """The sentence on a few samples that rule the error; ``sizes`` are the |y| of the held-out samples."""
    numbers = "" if rows is None else ", ".join(map(str, rows[:5])) + ", …" * (len(rows) > 5)
    named = f" (number {numbers} of those given, counted from 0)" if numbers else ""
    verb = "makes" if len(e.worst) == 1 else "make"
    share = "over 99 %" if e.worst_share > 0.99 else percent(e.worst_share)
    return (
        f"{len(e.worst)} of {e.held_out} held-out samples{named} {verb} up {share} of the predictor's "
        f"squared error; the largest |y| there is {sizes[e.worst].max():.3g}, and the median over all "
        f"held-out samples is {np.median(sizes):.3g}."
    )


def judge(e: Evidence, group_name: str) -> tuple[Verdict, str, str]:
    """Verdict, reason and advice, in plain words.

    A law can hold where a predictor, at the edge of the data, does not: where a few held-out samples leave the answer
    open, the others are asked.
    """
    verdict, reason, advice = _judge(e, group_name)
    look = (
        " First look at the few samples that make up most of the error (see the note), or give more like them."
        if e.few_rule and e.unexplained > MAX_UNEXPLAINED
        else ""
    )
    if look and verdict is Verdict.UNDERDETERMINED:
        others = _judge(e.typical(), group_name)
        if others[0] is not Verdict.UNDERDETERMINED:
            verdict, reason, advice = others
            count = f"Without the worst {len(e.worst)} of {e.held_out} held-out samples (see the note)"
            reason = f"{count}, {reason[0].lower()}{reason[1:]}"
    return verdict, reason, advice + look


def _judge(e: Evidence, group_name: str) -> tuple[Verdict, str, str]:
    """The same from all samples that the evidence is of."""
    found = (
        f"A predictor that respects {group_name} leaves {percent(e.unexplained)} of the variance unexplained"
    )
    free = f"an unconstrained model of the same effort {percent(e.free_unexplained)}"
    if min(e.unexplained, e.free_unexplained) > NOTHING_EXPLAINED:
        return (
            Verdict.UNDERDETERMINED,
            "Neither a predictor with a form nor an unconstrained one explains the targets: "
            f"{percent(e.unexplained)} and {percent(e.free_unexplained)} of their variance stay unexplained on "
            "held-out samples.",
            "Check that y belongs to x, row by row, and is not mostly noise; more samples help only then.",
        )
    structure = (
        e.structure_gain > STRUCTURE_GAIN
        and e.structure_p < SIGNIFICANCE
        and e.structure_gain * e.unexplained > STRUCTURE_SHARE
    )
    better = (
        e.free_p < SIGNIFICANCE
        and e.free_unexplained < 0.75 * e.unexplained
        and e.unexplained - e.free_unexplained > STRUCTURE_SHARE
    )
    if structure or better:
        grounds = (
            f"{found}, {free}"
            if better
            else f"{found}, but a model that ignores the form predicts {percent(e.structure_gain)} of what is left over"
        )
        return (
            Verdict.NONE,
            f"{grounds}: the targets depend on more than the inner products of a form.",
            "Look whether a direction, an origin or a further quantity breaks the symmetry: pass it as a scalar or "
            "as one more vector, choose another output type, or use the unconstrained model.",
        )
    if e.unexplained > MAX_UNEXPLAINED:
        return (
            Verdict.UNDERDETERMINED,
            f"{found}, {free}: too much is left over to tell noise from a broken form.",
            "Give more samples or less noisy targets; if a quantity is missing, pass it as a scalar.",
        )
    if not e.complete:
        return (
            Verdict.UNDERDETERMINED,
            f"{found}, {free}, which the time budget cut short: whether it would do better is open.",
            "Give a larger time budget, or none.",
        )
    alone = e.near_best == 1
    pinned = e.near_best and e.agreeing >= 0.5 * e.near_best
    if not pinned or e.spread > MAX_SPREAD:
        ends = (
            "no other restart came as close as the best"
            if alone
            else f"{e.agreeing} of {e.near_best} equally good restarts end at this one"
        )
        return (
            Verdict.UNDERDETERMINED,
            f"{found}, but so do other forms: {ends}, and refits to resamples differ by {e.spread:.2g} in the median.",
            "The targets may not depend on the form at all (a constant, y proportional to x), or the inputs cover "
            "too few directions: give more samples, more varied inputs, or another output.",
        )
    singular = (
        f" It does not see {e.zero_directions} of the directions: the form is singular."
        if e.zero_directions
        else ""
    )
    refits = f"refits to resamples (median distance {e.spread:.2g})"
    agreed = (
        f"no other restart came as close as the best, but {refits} agree with it"
        if alone
        else f"{e.agreeing} of {e.near_best} equally good restarts and {refits} agree on the form"
    )
    return (
        Verdict.FOUND,
        f"{found}, {free}; {agreed}.{singular}",
        "Predict with it, and check the predictor on new data (gortho check).",
    )
