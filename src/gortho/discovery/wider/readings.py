"""Equivalent readings of a handed law: which vectors would have to be axial for mirrors to be allowed (M15)."""

from __future__ import annotations

from dataclasses import replace

from gortho.discovery.looks import LAST, NEARLY_EXACT, usual_error
from gortho.discovery.predictor import Parts
from gortho.discovery.search import NEAR_BEST
from gortho.discovery.wider.claim import Claim
from gortho.discovery.wider.claims import axial_choices
from gortho.discovery.wider.projection import WideProjection
from gortho.discovery.wider.search import LAST_LOOKS, End, projection
from gortho.samples.values import Samples

#: Readings that are reported, at most.
READINGS = 3


def readings_of(end: End, parts: Parts, seed: int) -> tuple[str, ...]:
    """What else the law of an end may be said to keep, as sentences with O(A) for its group."""
    claim = end.claim
    if claim.skew and parts.train.n == 2:
        return ("SL(2): every linear map that keeps areas, whatever the form",)
    if claim.odd and not claim.axial:
        return ("SO(A), if the output is polar",)
    if not claim.special or len(parts.train.rep.parts) > 1:
        return ()
    limit = NEAR_BEST * end.error + NEARLY_EXACT * parts.validation.variance
    if claim.directions:
        return ("O(A), if the direction is axial",) if _mirrored(end, parts, seed) <= limit else ()
    found: list[str] = []
    for axial in axial_choices(parts.train.points)[1:]:
        for odd in (False, True):
            other = Claim("reading", axial=axial, odd=odd)
            try:
                view = _view(other, other.of(parts.train), seed)
            except ValueError:
                continue
            held = other.of(parts.validation)
            error = usual_error(view.predict(view.solve(end.theta), held), held)
            if error <= limit and len(found) < READINGS:
                vectors = " and ".join(f"x{i + 1}" for i in axial)
                verb = "are" if len(axial) > 1 or odd else "is"
                found.append(f"O(A), if {vectors}{' and the output' * odd} {verb} axial")
    return tuple(found)


def _mirrored(end: End, parts: Parts, seed: int) -> float:
    """The error of the law made even under x → -x, which leaves an axial direction alone where n is odd."""
    samples = parts.validation
    if samples.n % 2 == 0:
        return float("inf")
    view = _view(end.claim, parts.train, seed)
    at = view.solve(end.theta)
    sign = (-1.0) ** samples.rep.parts[0].rank
    there = view.predict(at, replace(samples, x=-samples.x))
    return usual_error((view.predict(at, samples) + sign * there) / 2, samples)


def _view(claim: Claim, samples: Samples, seed: int) -> WideProjection:
    return projection(samples, claim, LAST, seed, LAST_LOOKS[-1][1])
