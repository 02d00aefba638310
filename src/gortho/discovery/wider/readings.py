"""What else may be said of a law: which vectors would have to be axial for mirrors to be allowed (M15), translations.

A law is invariant under translations, too, if only differences of its vectors matter (M16).
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from gortho.discovery.looks import LAST, NEARLY_EXACT, projections, usual_error
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import LAW, Parts
from gortho.discovery.result import Discovery
from gortho.discovery.search import FINAL_ROUNDS, NEAR_BEST
from gortho.discovery.verdict import MAX_UNEXPLAINED
from gortho.discovery.wider.claim import Claim
from gortho.discovery.wider.claims import axial_choices
from gortho.discovery.wider.family import WideProjection
from gortho.discovery.wider.search import LAST_LOOKS, End, projection
from gortho.nn.exact import EquivariantNet
from gortho.nn.framed import InFrame
from gortho.objectives import SQUARES
from gortho.samples.values import Samples
from gortho.training import predict

#: Readings that are reported, at most.
READINGS = 3
#: Samples that translations are looked for in.
NOTED = 5_000
#: Vectors are null where their squares are below this share of the other products.
NULL = 0.01
#: A law that is known to rounding moves by less than this share of its spread where it does not depend on where x is.
MOVED = 1e-4
TRANSLATIONS = "only differences of the vectors matter: the law is invariant under translations, too"


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


# Translations


def differences(samples: Samples) -> Samples | None:
    """The samples with differences of their vectors alone; None where these are no samples of the same kind."""
    x = samples.x
    if samples.points < 2 or samples.point_scalars is not None or samples.mask is not None:
        return None
    return replace(samples, x=x - x.mean(1, keepdim=True) if samples.set_like else x[:, 1:] - x[:, :1])


def translations(A: Tensor, samples: Samples, seed: int) -> bool:
    """Whether a law with a form is explained, and as well by differences of the vectors."""
    apart = differences(samples)
    if apart is None or _null(A, samples):
        return False
    left = [
        projections(s, LAST, [FINAL_ROUNDS[-1][0]], seed + 4)[0].solve(A).criterion for s in (samples, apart)
    ]
    return left[0] < MAX_UNEXPLAINED * samples.variance and left[1] <= NEAR_BEST * left[0] + NEARLY_EXACT


def moves_along(net: EquivariantNet | InFrame, samples: Samples) -> bool:
    """Whether a law that is known to rounding is the same for vectors that are all moved by another sample's first."""
    if differences(samples) is None:
        return False
    moved = samples.x + samples.x[:, :1].roll(1, 0)
    moves = predict(net, moved, *samples.scalars) - predict(net, *samples.inputs)
    return bool(moves.abs().max() < MOVED * samples.variance**0.5)


def _null(A: Tensor, samples: Samples) -> bool:
    """Whether q(x_i) is next to nothing beside ⟨x_i, x_j⟩: then sums of the vectors would do as well as differences."""
    gram = (samples.x @ A @ samples.x.mT).abs()
    own = gram.diagonal(dim1=1, dim2=2)
    return float(own.median()) < NULL * float(gram.sum((1, 2)).sub(own.sum(1)).median())


def with_translations(found: Discovery, posed: Posed, seed: int) -> Discovery:
    """The discovery with a note, where translations change nothing."""
    if found.form is None or found.classes:
        return found
    few = posed.weighted(SQUARES[found.provenance.errors]).train.rows(slice(0, NOTED))
    exact = found.evidence is not None and found.evidence.own_unexplained < LAW
    if exact and found.network is not None:
        free = moves_along(found.network, posed.given.train.rows(slice(0, NOTED)))
    else:
        free = translations(posed.frame.form_in(found.form), few, seed)
    return replace(found, notices=(*found.notices, TRANSLATIONS)) if free else found
