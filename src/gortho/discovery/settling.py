"""What would settle an UNDERDETERMINED answer: more samples, in which direction, errors of y, or time."""

from __future__ import annotations

import torch
from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.defect import ROUNDING
from gortho.discovery.evidence import Evidence
from gortho.discovery.posed import Posed
from gortho.discovery.refits import align_signs
from gortho.discovery.twins import Comparison
from gortho.discovery.verdict import MAX_SPREAD, MAX_UNEXPLAINED, NOTHING_EXPLAINED, SIGN_ERRORS
from gortho.discovery.violation import in_words
from gortho.samples.frame import unit_form

#: More samples are advised up to this factor; beyond it, the kind of samples is what is wrong.
MOST = 100.0
#: and by no less than this one: errors are known to a factor themselves, so fewer would often not do.
LEAST = 2.0


def settling(e: Evidence, c: Comparison, posed: Posed, A: Tensor, refits: Tensor | None, clock: Clock) -> str:
    """What would settle it, in a sentence or two; "" where nothing can be said.

    Errors of the form fall as 1/√N: a spread s at N samples is as small as s' at N (s/s')².
    """
    samples = sum(map(len, posed.given))
    if not e.complete:
        return clock.enough(samples)
    if min(e.typical.unexplained, e.typical.free_unexplained) > NOTHING_EXPLAINED:
        return ""
    if e.left_over > MAX_UNEXPLAINED and not e.classes:
        rest = posed.values_out(c.left)
        size = float((rest / rest.abs().max().clamp_min(1e-300)).square().mean().sqrt() * rest.abs().max())
        return f"Errors of y of about {size:.2g} would account for all that is left over."
    if refits is None or not len(refits) > 1:
        return ""
    if e.spread > MAX_SPREAD:
        least = direction_least_known(posed, A, refits)
        # Without noise it is not for lack of samples that refits differ.
        more = _samples(samples, e.spread / MAX_SPREAD) if e.typical.unexplained > ROUNDING else ""
        return f"{more}Least is known of the direction {least} of x."
    if e.weakest_eigenvalue < SIGN_ERRORS:
        values, vectors = torch.linalg.eigh(A)
        weakest = _out(posed, vectors[:, values.abs().argmin()])
        return f"{_samples(samples, SIGN_ERRORS / max(e.weakest_eigenvalue, 1e-9))}That direction is {weakest} of x."
    return ""


def _samples(samples: int, ratio: float) -> str:
    if ratio**2 > MOST:
        return ""
    wanted = float(f"{samples * max(ratio**2, LEAST):.1g}")
    return f"About {wanted:,.0f} samples like these {samples:,} would settle it. "


def direction_least_known(posed: Posed, A: Tensor, refits: Tensor) -> str:
    """The direction of x, in the given coordinates, along which refits differ most."""
    apart = align_signs(unit_form(refits), A) - unit_form(A)
    _, vectors = torch.linalg.eigh((apart @ apart).mean(0))
    return _out(posed, vectors[:, -1])


def _out(posed: Posed, w: Tensor) -> str:
    v = posed.frame.inverse @ w
    v = v / v.norm()
    v = v if v[v.abs().argmax()] > 0 else -v
    return in_words(v.tolist(), posed.given.train.names)
