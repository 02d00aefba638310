"""The answer: the evidence is collected and judged, and the `Discovery` is built from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from gortho.discovery.bent import bent_p
from gortho.discovery.clock import Clock
from gortho.discovery.defect import Noise
from gortho.discovery.evidence import Evidence
from gortho.discovery.find import SEARCH_SAMPLES, FoundForm
from gortho.discovery.models import coordinates
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Fitted, Kind
from gortho.discovery.provenance import Provenance, Restart
from gortho.discovery.result import Discovery
from gortho.discovery.sandwich import draws
from gortho.discovery.search import Search
from gortho.discovery.settling import settling
from gortho.discovery.shell import on_shell
from gortho.discovery.spreads import certificate, given_errors, spread
from gortho.discovery.twins import Comparison, Model
from gortho.discovery.verdict import Verdict, confidence, judge, percent
from gortho.discovery.violation import Violation, violation
from gortho.forms import QuadraticForm
from gortho.nn.framed import InFrame
from gortho.objectives import ABSOLUTE, RELATIVE, Objective
from gortho.objectives.squares import spans_decades
from gortho.report.data import Peer
from gortho.report.words import spoken
from gortho.samples.errors import numbered
from gortho.samples.frame import form_distance
from gortho.samples.values import Samples
from gortho.symmetry import Symmetry

#: Held-out samples that the report shows.
SHOWN = 2_000
WEIGHTED = "held-out errors are means by the weights of the samples (1/error² where y_error was given)"
OUTLIERS = (
    "Look first at the few samples that the note names: outliers make most of the error. Drop what is wrong, or say by "
    "y_error or sample_weight how much they count."
)
TOO_NOISY = (
    "the errors of y (y_error, or what repeated inputs show) are larger than all that the models leave unexplained: "
    "check that they are standard errors, in the units of y"
)
IN_FITS = "in the fits, in the verdict and for the formula, but not in the lines on held-out errors"
INTERRUPTED = (
    "The search was interrupted: this is the best form so far, and the evidence is not complete.",
    "Run it again and let it finish, or with a time budget, at which it ends by itself.",
)


def answer(
    samples: Samples,
    posed: Posed,
    form: FoundForm,
    fitted: Fitted | None,
    comparison: Comparison | None,
    noise: Noise | None,
    A: Tensor,
    zero: int,
    interrupted: bool,
    seed: int,
    clock: Clock,
    notices: list[str],
    tolerance: float,
) -> Discovery:
    """Judge, and put everything together."""
    found, matrices = form.search, form.refits
    candidate = posed.out(A)
    evidence = seen = None
    ruling: tuple[Verdict, str, str, float] = (Verdict.UNDERDETERMINED, *INTERRUPTED, 0.0)
    if comparison is not None and not interrupted:
        evidence = gathered(form, comparison, A, zero, posed, noise, seed)
        seen = None if evidence.broken is None else violation(posed, comparison, A)
        ruling = _ruling(evidence, comparison, posed, A, matrices, seen, tolerance, clock)
    notices = [*notices, *_few_notice(evidence, posed), *_how_errors_count(samples, posed, found)]
    notices += [TOO_NOISY] if evidence is not None and evidence.too_noisy else []
    exact = fitted is not None and (form.law is fitted or fitted.kind is Kind.POLYNOMIAL)
    errors = None
    if matrices is not None:
        left = 0.0 if evidence is None else max(0.0, evidence.own_unexplained)
        drawn = _draws(posed, form, fitted, seed)
        errors = given_errors(posed.frame, candidate, matrices, exact, drawn, left)
    entry, eigen = errors or (None, None)
    network = None if fitted is None else posed.network_out(fitted)
    shown = {} if comparison is None else _shown(posed, comparison, network, candidate, found.objective)
    return Discovery(
        *ruling,
        repr(samples.rep),
        samples.names,
        Provenance.of(
            samples, seed, clock, tolerance, found.objective.errors, None if fitted is None else fitted.kind
        ),
        candidate=candidate,
        entry_errors=entry,
        eigenvalue_errors=eigen,
        refits=0 if matrices is None else len(matrices),
        network=network,
        network_options={} if fitted is None else fitted.options,
        evidence=evidence,
        restarts=tuple(
            Restart(r.start, posed.out(r.A), r.criterion, form_distance(r.A, found.A)) for r in found.restarts
        ),
        notices=tuple(notices),
        classes=posed.classes,
        violation=seen,
        **shown,
    )


def _ruling(
    evidence: Evidence,
    comparison: Comparison,
    posed: Posed,
    A: Tensor,
    refits: Tensor | None,
    seen: Violation | None,
    tolerance: float,
    clock: Clock,
) -> tuple[Verdict, str, str, float]:
    """The verdict, with its reason, the advice and the confidence."""
    verdict, reason, advice = judge(evidence, spoken(posed.out(A).group_name), tolerance)
    if verdict is Verdict.NONE:
        reason = f"{reason} {seen}"
    if verdict is Verdict.UNDERDETERMINED:
        advice = f"{advice} {settling(evidence, comparison, posed, A, refits, clock)}".strip()
        if evidence.few_rule:
            advice = f"{OUTLIERS} {advice}"
    return verdict, reason, advice, confidence(evidence, verdict)


def _how_errors_count(samples: Samples, posed: Posed, found: Search) -> list[str]:
    """Words on weights, and on errors that are relative by choice of the search."""
    notices = [] if samples.weights is None else [WEIGHTED]
    if found.wins is not None and found.objective == RELATIVE:
        notices.append(
            f"relative errors give the better form (on {100 * found.wins:.0f} % of the validation samples): errors are "
            f"weighted by the size of the targets, {IN_FITS if spans_decades(posed.parts.train) else 'in the search'}"
        )
    return notices


def _draws(posed: Posed, form: FoundForm, fitted: Fitted | None, seed: int) -> Tensor | None:
    """Forms as far from the found one as noise leads; labels have refits alone."""
    squares = form.search.objective.least_squares
    if not squares or fitted is None or fitted.form.signature.zero:
        return None
    if form.law is fitted and fitted.kind in (Kind.FORMULA, Kind.TERMS):  # what it leaves is rounding
        return None
    short = fitted.kind is Kind.POLYNOMIAL
    parts = posed.weighted(form.search.objective) if short else posed.parts
    degree = fitted.options["degree"] if short else None
    few = [s.rows(slice(0, SEARCH_SAMPLES)) for s in parts[:2]]
    return draws(few[0], few[1], fitted.form.matrix, form.search.objective, seed, degree)


def gathered(
    form: FoundForm, c: Comparison, A: Tensor, zero: int, posed: Posed, noise: Noise | None, seed: int
) -> Evidence:
    """All measurements that the verdict rests on."""
    found, spectral = form.search, form.spectral
    around = None if form.refits is None else spread(A, form.refits, zero, posed.frame)
    # A law of one coordinate is one whatever the rule of length.
    everyone = Samples.cat(posed.parts)
    return Evidence(
        samples=len(posed.parts.train),
        held_out=len(posed.parts.held_out),
        direct_unexplained=c.direct_unexplained,
        noise=noise,
        restarts=len(found.restarts),
        near_best=len(found.near_best),
        agreeing=found.agreeing,
        refit_distances=() if around is None else around.distances,
        signature_votes=0.0 if around is None else around.signature_votes,
        weakest_eigenvalue=0.0 if around is None else around.weakest_eigenvalue,
        zero_directions=zero,
        bent=None if form.law or zero == len(A) - 1 else bent_p(everyone, A, found.objective, seed),
        shell=on_shell(everyone),
        spectral_gap=None if spectral is None else spectral.gap,
        classes=len(posed.classes),
        **c.evidence(),
    )


def few_samples(e: Evidence, sizes: np.ndarray, rows: list[int] | None) -> str:
    """The sentence on a few samples that rule the error; ``sizes`` are the |y| of the held-out samples."""
    named = f" ({numbered(rows, most=5)})" if rows else ""
    share = "over 99 %" if e.worst_share > 0.99 else percent(e.worst_share)
    few = f"{len(e.worst)} of {e.held_out} held-out samples{named} make{'s' * (len(e.worst) == 1)} up {share}"
    few += " of the squared error of the best model of the invariants; "
    few += f"the largest |y| there is {sizes[list(e.worst)].max():.3g}"
    return f"{few}, and the median over all held-out samples is {np.median(sizes):.3g}."


def _few_notice(e: Evidence | None, posed: Posed) -> list[str]:
    """A word on a few samples that rule the error, by their numbers where no row was left out."""
    if e is None or not e.few_rule:
        return []
    sizes = posed.given.held_out.y.reshape(e.held_out, -1).norm(dim=1).numpy()
    numbers = None if posed.numbers is None else posed.numbers[-e.held_out :][list(e.worst)].tolist()
    return [few_samples(e, sizes, numbers)]


def with_few(found: Discovery, e: Evidence, posed: Posed) -> tuple[str, ...]:
    """The notices of a discovery, with the word on a few samples by other evidence than its own."""
    before = _few_notice(found.evidence, posed)
    return (*(n for n in found.notices if n not in before), *_few_notice(e, posed))


def _shown(
    posed: Posed, c: Comparison, network: InFrame | None, form: QuadraticForm, objective: Objective
) -> dict[str, Any]:
    """Held-out errors in the given coordinates, certificates, and true values beside predicted ones."""
    test = posed.given.held_out
    size = posed.parts.held_out.y[0].numel()
    pick = slice(0, max(1, SHOWN // size))
    rows, own = peers_of(posed, c, form, objective)

    def free(x: Tensor, point: Tensor | None, sample: Tensor | None) -> Tensor:
        moved = replace(
            test, x=x, point_scalars=point, sample_scalars=sample, y=x, weights=None, noise=None, bundles=None
        )
        values = c.plain(coordinates(replace(moved, x=x / posed.x_unit @ posed.frame.W.mT)))
        return posed.values_out(values.reshape(len(x), *test.y.shape[1:]))

    return {
        "peers": rows,
        "held_out": (test.y[pick].flatten().numpy(), own[pick].flatten().numpy()),
        "certificate": {} if network is None else certificate(network, form, test.rep, test),
        "free_certificate": certificate(free, form, test.rep, test),
    }


def _models(c: Comparison, form: QuadraticForm | Symmetry) -> tuple[tuple[Model, str, str], ...]:
    return (
        (c.own, f"equivariant, {spoken(form.group_name)}", "respects the form exactly"),
        (c.twin, f"best of the invariants ({c.twin.name})", "chosen on validation data"),
        (c.free, f"best of the coordinates ({c.free.name})", "chosen on validation data"),
    )


def peers_of(
    posed: Posed, c: Comparison, form: QuadraticForm | Symmetry, objective: Objective = ABSOLUTE
) -> tuple[tuple[Peer, ...], Tensor]:
    """Mean losses in the given coordinates, by the weights of the samples, and the predictor's values."""
    unit = posed.y_units
    parts = [s.in_units(1.0, unit) for s in posed.given]
    test, largest = parts[2], float(unit.max())
    share = 1.0 if test.weights is None else 1 / float(test.weights.mean())
    # The same error is the same share as in the reason, also where few weights are large.
    whole = max(share * objective.chance(parts)[1], 1e-300)
    rows = []
    for model, name, note in _models(c, form):
        values = posed.values_out(model.held_out)
        loss = share * float(objective.losses(values / unit, test).mean())
        mean = share * float(objective.losses(values / largest, posed.given[2].in_units(1.0, largest)).mean())
        rows.append(Peer(name, mean * largest * largest, loss / whole, model.parameters, note))
    return tuple(rows), posed.values_out(objective.expected(c.own.held_out))
