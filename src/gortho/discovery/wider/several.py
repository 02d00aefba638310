"""Vectors of several kinds and different dimensions: a form for each, without trying one O(A) for all first (M17)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gortho.discovery.answer import INTERRUPTED, SHOWN
from gortho.discovery.clock import Clock
from gortho.discovery.defect import noise_of
from gortho.discovery.evidence import Evidence
from gortho.discovery.find import SEARCH_SAMPLES, VALIDATION_SAMPLES
from gortho.discovery.law import with_formula
from gortho.discovery.models import Measured
from gortho.discovery.posed import Posed, split
from gortho.discovery.predictor import Parts
from gortho.discovery.provenance import Provenance
from gortho.discovery.result import Discovery
from gortho.discovery.settings import Settings
from gortho.discovery.verdict import Verdict
from gortho.discovery.wider.answer import Case, symmetry_out, wider_answer
from gortho.discovery.wider.claim import Claim
from gortho.discovery.wider.claims import Asked, spaces_name
from gortho.discovery.wider.search import first_look, last_look
from gortho.discovery.wider.widen import Court
from gortho.objectives import ABSOLUTE, Objective
from gortho.samples.errors import DataError
from gortho.samples.frame import Frame
from gortho.samples.values import Samples

NO_FORM_YET = "The search was interrupted before there was a form."


def output_spaces(samples: Samples, dims: tuple[int, ...]) -> list[int]:
    """The spaces that the output may move with; a scalar moves with none, and goes with the longest vectors."""
    ranks = [part.rank for part in samples.rep.parts]
    if max(ranks) == 0:
        return [dims.index(samples.n)]
    if max(ranks) > 1 or any(part.down or part.odd for part in samples.rep.parts):
        raise DataError(
            f"with vectors of {list(dims)} components outputs are scalars and vectors, not {samples.rep}"
        )
    return [space for space, d in enumerate(dims) if d == samples.n]


def posed_by_space(
    samples: Samples,
    spaces: tuple[int, ...],
    dims: tuple[int, ...],
    output: int,
    seed: int,
    names: Sequence[tuple[str, ...]],
    whole: bool = True,
) -> Posed:
    """Parts with each kind of vector in a frame of its own, and outputs in that of their space.

    ``whole``: whether every row that was given is among the samples.
    """
    given, numbers = split(samples, seed)
    train = given.train
    x_unit, y_unit = train.units
    places = [[i for i, kind in enumerate(spaces) if kind == space] for space in range(len(dims))]
    frames = tuple(Frame.of(train.x[:, own, :d] / x_unit) for own, d in zip(places, dims))

    def white(part: Samples) -> Samples:
        part = part.in_units(x_unit, y_unit)
        x = part.x.clone()
        for own, d, frame in zip(places, dims, frames):
            x[:, own, :d] = x[:, own, :d] @ frame.W.mT
        return replace(part, x=x, y=part.values_in(frames[output], part.y))

    parts = [white(part) for part in given]
    size = parts[0].part_sizes
    scaled = Parts(*(part.in_units(1.0, size) for part in parts))
    return Posed(
        scaled,
        given,
        frames[output],
        size * y_unit,
        x_unit,
        numbers=numbers if whole else None,
        frames=frames,
        names=tuple(names),
    )


def discover_several(
    samples: Samples,
    asked: Asked,
    dims: tuple[int, ...],
    names: Sequence[tuple[str, ...]],
    objectives: Sequence[Objective],
    settings: Settings,
    seed: int,
    clock: Clock,
    notices: list[str],
    tolerance: float,
    whole: bool = True,
) -> Discovery:
    """The verdict on a form for each kind of vector; ``names`` are those of the coordinates of each.

    ``whole``: whether every row that was given is among the samples.
    """
    if samples.classes or samples.set_like or asked.axial or asked.odd:
        raise ValueError(
            "vectors of different dimension are supported for numbers, ordered and polar vectors: leave out "
            "classes, set_like, axial and odd outputs"
        )
    if ABSOLUTE not in objectives:
        raise ValueError(
            "vectors of different dimension are supported with absolute errors: leave out errors"
        )
    ends, spaces, interrupted = [], asked.spaces, False
    try:
        with clock.stage("search"):
            for output in output_spaces(samples, dims):
                posed = posed_by_space(samples, spaces, dims, output, seed, names, whole)
                parts = posed.weighted(ABSOLUTE)
                claim = Claim(spaces_name(spaces, output), spaces=spaces, output_space=output, dims=dims)
                train = parts.train.rows(slice(0, SEARCH_SAMPLES))
                validation = parts.validation.rows(slice(0, VALIDATION_SAMPLES))
                end = last_look(claim, train, validation, first_look(claim, train, [], seed), seed)
                ends.append((end.error / validation.variance, posed, end))
    except KeyboardInterrupt:
        interrupted = True
    start = Discovery(
        Verdict.UNDERDETERMINED,
        NO_FORM_YET,
        INTERRUPTED[1],
        0.0,
        repr(samples.rep),
        names[dims.index(samples.n)],
        Provenance.of(samples, seed, clock, tolerance),
        notices=tuple(notices),
    )
    if not ends:
        return start
    _, posed, end = min(ends, key=lambda found: found[0])
    parts = posed.weighted(ABSOLUTE)
    nothing = Measured(1.0, 0.0, 1.0, 0.0, 0.0, 1.0)
    noise = noise_of(parts.train)
    empty = Evidence(len(parts.train), len(parts.held_out), 1.0, 1.0, "", "", nothing, nothing, noise=noise)
    true = posed.given.held_out.y.flatten().numpy()[:SHOWN]
    start = replace(
        start,
        reason=INTERRUPTED[0],
        names=names[end.claim.output_space],
        candidate=symmetry_out(posed, end.claim, end.theta).form_of(end.claim.output_space),
    )
    if interrupted:
        return start
    case = Case(
        replace(start, evidence=empty, held_out=(true, true)),
        samples,
        posed,
        None,
        settings,
        seed,
        clock,
        tolerance,
    )
    try:
        with clock.stage("twins"):
            trial = Court(case, parts).tried(end)
    except KeyboardInterrupt:
        return start
    direct = trial.comparison.direct_unexplained
    trial = replace(trial, evidence=replace(trial.evidence, direct_unexplained=direct))
    return with_formula(wider_answer(case, trial), posed, None, clock)
