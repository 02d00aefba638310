"""Symmetries other than O(A): tried if O(A) fails, and accepted only after comparison with twins (M13, M15-M17)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.defect import SIGNIFICANCE
from gortho.discovery.find import SEARCH_SAMPLES, VALIDATION_SAMPLES, FoundForm
from gortho.discovery.looks import NEARLY_EXACT, SAME
from gortho.discovery.models import paired_p, squared_errors
from gortho.discovery.predictor import Kind, Parts
from gortho.discovery.provenance import Provenance
from gortho.discovery.result import Discovery
from gortho.discovery.search import NEAR_BEST
from gortho.discovery.spreads import spread
from gortho.discovery.verdict import MAX_UNEXPLAINED, ZERO_SHARE, Verdict, judge, percent
from gortho.discovery.wider.answer import Case, Trial, symmetry_out, wider_answer
from gortho.discovery.wider.claim import Claim
from gortho.discovery.wider.claims import Asked, aligned, angles, claims_for, representative
from gortho.discovery.wider.doubt import undenied
from gortho.discovery.wider.fit import compare_wide, wide_predictor
from gortho.discovery.wider.readings import readings_of
from gortho.discovery.wider.search import HOPELESS, End, Ends, first_look, last_look, refitted, simplest
from gortho.discovery.wider.skew import skew_spread
from gortho.samples.frame import form_distance
from gortho.samples.values import Samples
from gortho.symmetry import SingularError, Symmetry

#: The share of the time, about, that first looks at all claims take.
LOOKED = 0.6
#: Claims that are searched for to the end, and of these how many are put to the test of twins.
CLAIMS, TESTED = 3, 2
#: A claim whose family leaves this many times more than the best free model is not put to the test.
FAR_WORSE = 10.0
#: … unless it leaves less than this share of what the best twin of O(A) does: free models may know a law better.
NEAR_LAW = 0.01
#: Where a claim leaves less than this share of what the best free model does, smaller groups are not tried; nothing
#: else is beside a skew form.
CLEAR = 0.1
#: … or no more than a free model that leaves less than this share of the variance.
TRUSTED = 0.01
#: Handedness helps where it lowers the criterion to this share.
HELPS = 0.7
#: Of a time budget, this share may be spent before wider symmetries are begun with.
ROOM = 0.5
#: The search for wider symmetries takes about so many times as long as all that comes before it.
WIDER = 2.0
#: An origin within this many standard errors of zero is none.
ORIGIN_ERRORS = 3.0
ABOUT_ZERO = "It may as well be zero, so that this is O(A); a few samples may make it look better."
NO_TIME = "the time budget leaves no room to look for symmetries other than O(A)"


def wanted(found: Discovery, asked: Asked, tolerance: float) -> bool:
    """Whether O(A) has failed, and something wider may be looked for."""
    e = found.evidence
    if e is None or found.classes or (asked.look_for == {"O"} and not asked.parity):
        return False
    better = e.broken is not None or e.doubtful(tolerance)  # models of the coordinates
    return found.verdict is Verdict.NONE or (found.form is None and (better or e.left_over > MAX_UNEXPLAINED))


def widen(case: Case, form: FoundForm, asked: Asked, progress: Callable[[float], None]) -> Discovery:
    """The discovery with the simplest wider symmetry that holds; as it was, and a note, where none does."""
    found, clock, plain = case.found, case.clock, case.plain
    assert plain is not None
    if clock.budget is not None and clock.total > (1.0 if asked.parity else ROOM) * clock.budget:
        clock.seconds_missing += WIDER * (clock.total + clock.seconds_missing)
        return cut_short(replace(found, notices=(*found.notices, NO_TIME)), clock)
    parts = case.posed.weighted(form.search.objective)
    court = Court(case, parts)
    ends: list[End] = []
    with clock.stage("wider"):
        for claims in _rounds(claims_for(parts.train.rows(slice(0, SEARCH_SAMPLES)), asked), asked, clock):
            if court.failed and clock.over():
                break
            some = _searched(parts, form, claims, plain.free.validation, case.seed, clock, progress)
            accepted = court.accepted(some, progress)
            if accepted is not None:
                return wider_answer(case, accepted, readings_of(accepted.end, parts, case.seed))
            ends += some
        over = clock.over()
    left_open = next((t for t in court.failed if court.beats(t) and court.explains(t)), None)
    opened = found
    if left_open is not None:  # its law, its errors and its predictor go with its reason
        opened = wider_answer(case, left_open)
        if not left_open.evidence.complete:
            opened = replace(opened, advice=f"{opened.advice} {clock.enough(len(case.samples))}")
    opened = cut_short(opened, clock) if over else opened
    opened = undenied(opened, ends, plain, parts.validation, case.posed.given.train.x)
    if not ends:
        return opened
    facts = found.provenance
    return replace(
        opened,
        provenance=Provenance.of(
            case.samples, case.seed, clock, facts.tolerance, facts.errors, facts.predictor
        ),
        notices=(*opened.notices, *_what_was_tried(opened, ends, court.failed, parts.validation.variance)),
    )


def _what_was_tried(found: Discovery, ends: list[End], trials: list[Trial], variance: float) -> Iterator[str]:
    """Notes on the claims: what their searches leave, and the reasons of those that were tested."""
    # Those that were tested have a sentence on held-out samples; errors of a search are lower where y is noise.
    tested = {trial.end.claim.name for trial in trials}
    rest = [end for end in ends if end.claim.name not in tested]
    left = ", ".join(f"{end.claim.name} {percent(end.error / variance)}" for end in rest)
    denied = found.verdict is Verdict.NONE
    said = "wider symmetries do not hold either" if denied else "wider symmetries were tried, too"
    yield said + (f"; what the search leaves unexplained: {left}" if left else "")
    for trial in trials:
        if trial.reason != found.reason:
            yield f"{trial.end.claim.name}: {trial.reason.replace(' (see the note)', '')}"


def _rounds(claims: list[Claim], asked: Asked, clock: Clock) -> list[list[Claim]]:
    """The claims that are searched for and tested together: with a time budget, the parity that was given is first."""
    return [claims[:1], claims[1:]] if asked.parity and clock.has_budget else [claims]


@dataclass
class Court:
    """Where claims are tested, one after the other; ``failed`` are the trials that ended without a symmetry."""

    case: Case
    parts: Parts
    failed: list[Trial] = field(default_factory=list)

    def accepted(self, ends: list[End], progress: Callable[[float], None]) -> Trial | None:
        """The test that one of the best ends has passed, if one has."""
        assert self.case.plain is not None
        limit = FAR_WORSE * self.case.plain.free.validation + NEARLY_EXACT * self.parts.validation.variance
        limit = max(limit, NEAR_LAW * self.case.plain.twin.usual)
        before = len(self.failed)
        for end in [end for end in ends if end.error <= limit][:TESTED]:
            # A claim that explains everything and is open does not speak against others, as an origin far away, which
            # is nearly a direction, does not speak against that.
            refuted = [trial for trial in self.failed if not self.explains(trial)]
            if (refuted and end.error >= refuted[0].end.error) or (self.failed and self.case.clock.over()):
                continue  # no better than what has failed
            try:
                trial = self.tried(end)
            except SingularError:  # no such law is written
                continue
            if _about_zero(trial, self.parts.train.n):
                trial = replace(trial, verdict=Verdict.NONE, reason=ABOUT_ZERO)
            if trial.verdict is Verdict.FOUND and self.beats(trial):
                return trial
            self.failed.append(trial)
            progress(LOOKED + (1 - LOOKED) * (len(self.failed) - before) / TESTED)
        return None

    def explains(self, trial: Trial) -> bool:
        """Whether it explains all that free models do, but is not pinned down."""
        broken = trial.evidence.broken
        return trial.verdict is Verdict.UNDERDETERMINED and (
            broken is None or broken.gain <= self.case.tolerance
        )

    def beats(self, trial: Trial) -> bool:
        """Whether its best twin is better than the best one of O(A) alone, beyond doubt."""
        assert self.case.plain is not None
        twins = (trial.comparison.twin, self.case.plain.twin)
        held = self.parts.held_out
        better, worse = (squared_errors(twin.held_out, held) for twin in twins)
        return paired_p(better, worse, held.bundles) < SIGNIFICANCE

    def tried(self, end: End) -> Trial:
        """Predictor, twins and refits of a claim, and the verdict; no refits where twins rule the claim out."""
        claim, n, parts, case = end.claim, self.parts.train.n, self.parts, self.case
        assert case.found.evidence is not None
        common: dict[str, Any] = {"seed": case.seed, "clock": case.clock}
        fitted = wide_predictor(end, parts, steps=case.settings.predictor_steps, **common)
        if fitted.kind is Kind.POLYNOMIAL:  # what is said is what is predicted with
            moved = claim.of_symmetry(Symmetry.from_json(fitted.options["symmetry"]))
            end = replace(end, theta=moved, degree=fitted.options["degree"])
        end = replace(end, theta=representative(claim, claim.gauged(end.theta, n), n))
        c = compare_wide(end, fitted, parts, case.plain, given=case.posed.measured, **common)
        evidence = replace(case.found.evidence, zero_directions=0, bent=None, **c.evidence())
        if claim.skew or claim.unitary or claim.directions > 1:  # what is claimed is another form, or a plane
            evidence = replace(evidence, shell=False)
        refits: list[Tensor] = []
        if evidence.broken is None or evidence.broken.gain <= case.tolerance:
            whole = claim.of(Samples.cat(parts[:2]).rows(slice(0, SEARCH_SAMPLES)))
            again = refitted(end, whole, case.settings.refits, **common)
            refits = [aligned(claim, theta, end.theta, n) for theta in again]
            evidence = replace(evidence, **_pinned(end, refits, n))
        symmetry = symmetry_out(case.posed, claim, end.theta)
        return Trial(end, fitted, c, refits, evidence, *judge(evidence, str(symmetry), case.tolerance))


def cut_short(found: Discovery, clock: Clock) -> Discovery:
    """Nothing is denied before all symmetries have been looked for: what a time budget leaves of NONE is open."""
    if found.verdict is not Verdict.NONE:
        return found
    return replace(
        found,
        verdict=Verdict.UNDERDETERMINED,
        confidence=0.0,
        reason=f"{found.reason} O(A) fails, but the time budget was spent before all other symmetries had been tried.",
        advice=f"Give a larger time budget, of at least {clock.advised} s, or none.",
    )


def _searched(
    parts: Parts,
    form: FoundForm,
    claims: list[Claim],
    free: float,
    seed: int,
    clock: Clock,
    progress: Callable[[float], None],
) -> list[End]:
    """Where the searches for all claims ended, in the order in which to accept them."""
    train = parts.train.rows(slice(0, SEARCH_SAMPLES))
    validation = parts.validation.rows(slice(0, VALIDATION_SAMPLES))
    known = [form.A, *(r.A for r in form.search.restarts[:2])]
    looks: list[tuple[Claim, Ends]] = []
    ends_with: dict[int, Ends] = {}  # so many directions
    begun = clock.total
    for place, claim in enumerate(claims):  # two directions come after one, and start from it
        progress(LOOKED * place / len(claims))
        best = min((ends[0][0] for _, ends in looks), default=math.inf)
        if (claim.unitary or claim.linked) and best <= free:
            continue  # the group is a part of others that do as well as any model
        settled = best <= CLEAR * free or (best <= free and free <= TRUSTED * parts.train.variance)
        if claim.directions + claim.special > 1 and settled:
            continue
        if claim.special and claim.directions > 1 and not _handedness_helps(looks, claim.directions - 1):
            continue
        first = first_look(claim, claim.of(train), known, seed, ends_with.get(claim.directions - 1), best)
        ends_with[claim.directions] = first
        if first[0][0] < NEARLY_EXACT:
            end = last_look(claim, claim.of(train), claim.of(validation), first, seed)
            if end.degree is not None:
                return [end]  # the simplest claim by which the law is exact
        looks.append((claim, first))
        if clock.over():
            clock.seconds_missing += (clock.total - begun) * (len(claims) / (place + 1) - 1) / LOOKED
            break
        if claim.skew and first[0][0] <= CLEAR * free:
            break
    if not looks:
        return []
    best = min(ends[0][0] for _, ends in looks)
    limit = HOPELESS * best + NEARLY_EXACT
    kept = sorted(ends[0][0] for _, ends in looks)[: 1 if clock.over() else CLAIMS]
    ends = [
        last_look(claim, claim.of(train), claim.of(validation), first, seed)
        for claim, first in looks
        if first[0][0] <= min(limit, kept[-1])
    ]
    return simplest(ends, validation.variance)


def _handedness_helps(looks: list[tuple[Claim, Ends]], directions: int) -> bool:
    """Whether a law with so many directions is much better with handedness."""
    best = {claim.special: ends[0][0] for claim, ends in looks if claim.directions == directions}
    return True not in best or best[True] <= HELPS * best.get(False, math.inf)


def _pinned(end: End, refits: list[Tensor], n: int) -> dict[str, Any]:
    """How well finalists and refits agree: on the forms, the directions and the origin, in the frame (M18)."""
    claim = end.claim
    near = [t for criterion, t in end.others if criterion <= NEAR_BEST * end.others[0][0] + 1e-9]
    if end.degree is not None:  # a law that is known as such needs no second opinion but that of refits
        near = [end.theta]
    agreeing = sum(_distance(claim, aligned(claim, t, end.theta, n), end.theta, n) < 2 * SAME for t in near)
    each = []
    for place in range(claim.matrices - claim.maps):
        A, *others = (claim.split(t, n)[0][place] for t in (end.theta, *refits))
        if claim.dims:
            A, *others = (M[: claim.dims[place], : claim.dims[place]] for M in (A, *others))
        symmetric = place < claim.forms
        each.append(spread(A, torch.stack([A, *others]), 0) if symmetric else skew_spread(A, others))
    return {
        "restarts": len(end.others),
        "near_best": len(near),
        "agreeing": agreeing,
        "refit_distances": tuple(_distance(claim, t, end.theta, n) for t in refits),
        "signature_votes": min(s.signature_votes for s in each),
        "weakest_eigenvalue": min(s.weakest_eigenvalue for s in each),
    }


def _distance(claim: Claim, one: Tensor, two: Tensor, n: int) -> float:
    """The largest distance of forms, sine of angles of directions, and distance of origins."""
    (A, s, c), (B, t, d) = (claim.split(theta, n) for theta in (one, two))
    parts = [form_distance(M, N) for M, N in zip(A, B)]
    parts += torch.deg2rad(angles(s, t)).sin().tolist()
    if claim.origin:  # along null directions it may be anywhere
        values, Q = torch.linalg.eigh(B[0])
        seen = Q[:, values.abs() > ZERO_SHARE * values.abs().max()]
        parts += ((c - d) @ seen).norm(dim=1).tolist()
    return max(parts)


def _about_zero(trial: Trial, n: int) -> bool:
    """Whether all that a claim adds to O(A) is an origin, and refits do not tell that from zero."""
    claim = trial.end.claim
    if claim != replace(Claim(claim.name), origin=True) or len(trial.refits) < 2:
        return False
    parts = [claim.split(theta, n) for theta in (trial.end.theta, *trial.refits)]
    # Ac too, since an origin may be anywhere along null directions.
    seen = torch.stack([torch.cat([c[0], c[0] @ A[0]]) for A, _, c in parts])
    return bool((seen[0].abs() <= ORIGIN_ERRORS * seen[1:].std(0)).all())
