"""One call from samples to a verdict.

The way: check the samples at the door, split them, take their frame; starts (M6, M11), search (M12) and refits give the
form; freeze it and fit the predictor; compare with models that know no form; judge. All of it happens in the frame
(M18). The held-out part is used for the last two steps only.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho import checks
from gortho.checkpoints import Ended
from gortho.discovery import peers
from gortho.discovery.clock import Clock
from gortho.discovery.evidence import (
    SHOWN,
    Comparison,
    certificate,
    compare,
    given_errors,
    spread,
    without_noise_eigenvalues,
)
from gortho.discovery.large import Survey, allowed
from gortho.discovery.predictor import Fitted, Kind, Parts, committee, exact_law, final_predictor
from gortho.discovery.result import Discovery, Peer, Provenance, Restart
from gortho.discovery.search import (
    Errors,
    Interrupted,
    Search,
    Settings,
    as_good,
    refit,
    relative_weights,
    search,
)
from gortho.discovery.spectral import SpectralForm, spectral_form
from gortho.discovery.starts import (
    Start,
    correlation_starts,
    distinct,
    given_starts,
    stabiliser_starts,
    white_starts,
)
from gortho.discovery.verdict import Evidence, Verdict, confidence, few_samples, judge
from gortho.discovery.workers import one_thread
from gortho.forms import QuadraticForm
from gortho.nn.framed import InFrame
from gortho.reps import Rep
from gortho.samples.door import enter, frame_columns, hopeless
from gortho.samples.frame import Frame, form_distance, unit_form
from gortho.samples.values import Samples

#: More samples than this add time, not knowledge, to the search for the form (the predictor sees all).
SEARCH_SAMPLES = 10_000
#: Samples of the search's validation part, at most.
VALIDATION_SAMPLES = 1_000

#: Called with the stage, the share of the whole work done, and a line on the leading form.
Watch = Callable[[str, float, str], None]
_STAGES = {"search": (0.0, 0.4), "refits": (0.4, 0.55), "predictor": (0.55, 0.8), "peers": (0.8, 1.0)}
_STAGES_THEN_MEMBERS = {name: (a / 2, b / 2) for name, (a, b) in _STAGES.items()} | {"members": (0.5, 1.0)}

INTERRUPTED = (
    "The search was interrupted: this is the best form so far, and the evidence is not complete.",
    "Run it again and let it finish; --time-budget SECONDS ends by itself (Python: time_budget).",
)


def discover(
    X: Any,
    y: Any,
    output: str | Rep = "scalar",
    scalars: Any = None,
    seed: int = 0,
    *,
    sample_weight: Any = None,
    y_error: Any = None,
    errors: str = "auto",
    set_like: bool = False,
    names: Any = None,
    settings: Settings | None = None,
    time_budget: float | None = None,
    max_samples: int | None = None,
    known: Survey | None = None,
    watch: Watch | None = None,
) -> Discovery:
    """Is there a quadratic form whose group the data respects? Which one, how sure, and a predictor that respects it.

    Args:
        X: vectors ``(N, n)`` or tuples of vectors ``(N, p, n)``.
        y: targets, shaped as the output needs: ``(N,)`` scalar, ``(N, n)`` vector or covector, ``(N, n, n)``
            conjugation, bilinear or form.
        output: how the targets transform: a name, a sum of names, or a rep object.
        scalars: quantities no group touches (masses, charges), per point ``(N, p)``, ``(N, p, s)`` or per sample.
        seed: the same seed gives the same answer on the same machine.
        sample_weight: how much each sample counts, ``(N,)``.
        y_error: standard errors of the targets, one for each sample or entry, in place of weights.
        errors: "absolute", "relative", or "auto": which of them gives the better form on validation data.
        set_like: the points of a sample have no order.
        names: names of the n coordinates.
        settings: sizes of the work.
        time_budget: seconds; the work is cut down to fit (roughly), which may cost certainty.
        max_samples: more samples than this (50,000 by default) are thinned at random, with a notice.
        known: what a pass over all rows told, where X and y are a sample of them (`gortho.survey`).
        watch: called with (stage, share done, leading form) while it works.

    Ctrl-C ends the search with the best so far, judged UNDERDETERMINED.

    >>> import gortho, torch
    >>> x = torch.randn(300, 2, dtype=torch.float64)
    >>> found = gortho.discover(x, x[:, 0] ** 2 - x[:, 1] ** 2)
    >>> found.verdict.name, found.group_name
    ('FOUND', 'O(1,1)')
    """
    clock, seed = Clock(time_budget), checks.seed(seed)
    if settings is not None and not isinstance(settings, Settings):
        raise TypeError(f"settings is a {type(settings).__name__}: give gortho.Settings(...)")
    # A survey has thinned its rows to the budget already.
    limits = allowed(
        None if known else time_budget, len(X) if known and max_samples is None else max_samples, seed
    )
    samples, notices = enter(
        X,
        y,
        output,
        scalars,
        sample_weight=sample_weight,
        y_error=y_error,
        set_like=set_like,
        names=names,
        max_samples=limits.max_samples,
        seed=seed,
        why=limits.why,
    )
    if known is not None:
        notices = [*known.data.notices, *notices]
    refusal = hopeless(samples)
    if refusal:
        return Discovery(
            Verdict.UNDERDETERMINED,
            *refusal,
            confidence=0.0,
            output=repr(samples.rep),
            names=samples.names,
            provenance=provenance(samples, seed, clock),
            notices=tuple(notices),
        )
    with one_thread():
        posed = Posed.of(samples, seed, known, whole=len(samples) == len(X))
        found = _discover(
            samples, posed, as_errors(errors), settings or Settings(), seed, clock, watch, notices
        )
    return replace(found, columns=frame_columns(X))


def as_errors(errors: str) -> Errors | None:
    """The kind of errors by its name; None for "auto"."""
    try:
        return None if errors == "auto" else Errors(errors)
    except ValueError:
        raise ValueError(f"errors = {errors!r}: choose 'auto', 'absolute' or 'relative'") from None


@dataclass(frozen=True)
class Posed:
    """A problem as the stages see it: parts in the frame with targets of order one, and the way back."""

    parts: Parts
    given: Parts  # in the given coordinates
    frame: Frame
    unit: float  # of y
    x_unit: float = 1.0
    known: Survey | None = None  # of all rows, where the samples are some of them
    whole: bool = True  # whether every row that was given is among the samples

    @classmethod
    def of(cls, samples: Samples, seed: int, known: Survey | None = None, whole: bool = True) -> Posed:
        """Held-out, validation and training parts, and the frame of the training part."""
        sizes = [min(5_000, max(4, len(samples) // 6)), min(3_000, max(4, len(samples) // 8))]
        test, validation, train = samples.split([*sizes, len(samples) - sum(sizes)], seed)
        given = Parts(train, validation, test)
        x_unit, y_unit = train.units  # first of all, so that no square leaves the range of float64
        scaled = [part.in_units(x_unit, y_unit) for part in (train, validation, test)]
        frame = Frame.of(scaled[0].x)
        white = [part.in_frame(frame) for part in scaled]
        size = float(white[0].y.abs().max())
        size *= float((white[0].y / size).square().mean().sqrt())
        parts = Parts(*(w.with_targets(w.y / size) for w in white))
        return cls(parts, given, frame, size * y_unit, x_unit, known, whole)

    def weighted(self, errors: Errors) -> Parts:
        """The parts with the weights that go with these errors."""
        if errors is Errors.ABSOLUTE:
            return self.parts
        p = self.parts
        return Parts(
            *(replace(s, weights=relative_weights(s, p.train)) for s in (p.train, p.validation, p.held_out))
        )

    def out(self, A: Tensor) -> QuadraticForm:
        """A form of the frame in the given coordinates."""
        return self.frame.form_out(A, self.given.train.names)

    def network_out(self, fitted: Fitted) -> InFrame:
        """A predictor of the frame for the given coordinates."""
        return self.in_frame(fitted.network, self.out(fitted.form.matrix))

    def in_frame(self, network: Any, form: QuadraticForm) -> InFrame:
        """A network of the frame for the given coordinates, where the form is this one."""
        return InFrame(network, self.frame.W, self.unit, form, self.x_unit)

    def values_out(self, y: Tensor) -> Tensor:
        """Outputs of the frame in the given coordinates."""
        back = Frame(self.frame.inverse)
        return self.parts.train.rows(slice(0, 1)).values_in(back, y.double()) * self.unit


@dataclass(frozen=True)
class FoundForm:
    """The form of a search, with refits for its errors and what was learnt on the way; all in the frame."""

    search: Search
    A: Tensor  # the best estimate: where the search ended, or the form of an exact law
    refits: Tensor | None = None
    law: Fitted | None = None  # the short polynomial that the law is, where it is one
    spectral: SpectralForm | None = None
    kernel: peers.KernelRidge | None = None


def find_form(
    posed: Posed,
    *,
    settings: Settings,
    errors: Errors | None,
    seed: int,
    clock: Clock,
    progress: Callable[[str, float, Tensor], None] = lambda stage, share, A: None,
) -> FoundForm:
    """Search and refits: the one way to find a form. An interruption raises `Interrupted` with the best so far."""
    train = posed.parts.train.rows(slice(0, SEARCH_SAMPLES))
    validation = posed.parts.validation.rows(slice(0, VALIDATION_SAMPLES))
    with clock.stage("search"):
        try:
            kernel = peers.KernelRidge.fit(train, validation)
            spectral = _spectral(kernel, train)
            starts = _starts(posed, train, spectral, settings, seed)
        except KeyboardInterrupt:
            A = torch.eye(train.n, dtype=torch.float64)
            raise Interrupted(Search(A, Errors.ABSOLUTE, ())) from None
        found = search(
            train,
            validation,
            starts,
            settings=settings,
            errors=errors,
            seed=seed,
            clock=clock,
            progress=lambda share, A: progress("search", share, A),
        )
    try:
        with clock.stage("refits"):
            law = exact_law(QuadraticForm(found.A), posed.parts, seed)
            matrices = refit(
                Samples.cat([train, validation]),
                found if law is None else replace(found, A=law.form.matrix, errors=Errors.ABSOLUTE),
                settings=settings,
                seed=seed,
                clock=clock,
                progress=lambda share, A: progress("refits", share, A),
                degree=None if law is None else law.options["degree"],
            )
    except KeyboardInterrupt:
        raise Interrupted(found) from None
    A = found.A if law is None else law.form.matrix
    return FoundForm(found, A, matrices, law, spectral, kernel)


def _refits_of(
    fitted: Fitted, posed: Posed, found: Search, settings: Settings, seed: int, clock: Clock
) -> Tensor:
    """Refits of a form with its polynomial."""
    p = posed.weighted(found.errors)
    return refit(
        Samples.cat([p.train, p.validation]).rows(slice(0, SEARCH_SAMPLES)),
        replace(found, A=fitted.form.matrix, errors=Errors.ABSOLUTE),
        settings=settings,
        seed=seed,
        clock=clock,
        progress=lambda share, A: None,
        degree=fitted.options["degree"],
    )


def _starts(
    posed: Posed, train: Samples, spectral: SpectralForm | None, settings: Settings, seed: int
) -> list[Start]:
    starts = [] if posed.known is None else posed.known.starts(posed.frame)
    starts += correlation_starts(train) + stabiliser_starts(train)
    if spectral is not None:
        starts.append(Start("spectral", unit_form(spectral.form.matrix)))
    if settings.given_axes:
        starts += given_starts(posed.frame)
    return distinct(starts + white_starts(train.n, settings.starts, seed))


def _spectral(kernel: peers.KernelRidge, train: Samples) -> SpectralForm | None:
    """The form that the Jacobians of a smooth surrogate respect best (M6)."""
    few = train.rows(slice(0, 300))
    rest = [s.double().flatten(1) for s in few.scalars if s is not None]

    def surrogate(points: Tensor) -> Tensor:
        return kernel(torch.cat([points.flatten(1), *rest], dim=1))

    try:
        return spectral_form(surrogate, few.x, few.rep)
    except ValueError:  # a constant surrogate has no Jacobian to speak of
        return None


def _discover(
    samples: Samples,
    posed: Posed,
    errors: Errors | None,
    settings: Settings,
    seed: int,
    clock: Clock,
    watch: Watch | None,
    notices: list[str],
) -> Discovery:
    """The stages, each a function of values; an interruption keeps what there is."""
    shares = _STAGES if settings.members == 1 else _STAGES_THEN_MEMBERS

    def progress(stage: str, share: float, A: Tensor) -> None:
        if watch is not None:
            first, last = shares[stage]
            watch(stage, first + share * (last - first), str(posed.out(A)))

    interrupted = False
    fitted = comparison = None
    try:
        form = find_form(posed, settings=settings, errors=errors, seed=seed, clock=clock, progress=progress)
    except Interrupted as stop:
        form, interrupted = FoundForm(stop.found, stop.found.A), True
    found, fitted = form.search, form.law
    A, zero = without_noise_eigenvalues(form.A, form.refits)
    if zero and not as_good(posed.parts.train, found.errors, A, form.A, seed):
        A, zero = form.A, 0  # the refits do not tell it from zero, but the samples do
    parts = posed.weighted(found.errors)
    steps = settings.predictor_steps
    try:
        with clock.stage("predictor"):
            fitted = fitted or final_predictor(
                QuadraticForm(A),
                parts,
                steps=50 if interrupted else steps,
                seed=seed,
                clock=clock,
                progress=lambda share: progress("predictor", share, A),
            )
        interrupted |= fitted.ended is Ended.INTERRUPTED
        A = fitted.form.matrix
        if fitted.kind is Kind.POLYNOMIAL and form.law is None and not interrupted:
            with clock.stage("refits"):  # errors of the form as the polynomial has it
                form = replace(form, refits=_refits_of(fitted, posed, found, settings, seed, clock))
        if not interrupted and form.kernel is not None:
            with clock.stage("peers"):
                comparison = compare(
                    fitted,
                    parts,
                    steps=steps,
                    seed=seed,
                    clock=clock,
                    kernel=form.kernel,
                    progress=lambda share: progress("peers", share, A),
                )
            if settings.members > 1 and fitted.kind is not Kind.POLYNOMIAL:
                with clock.stage("members"):
                    fitted = committee(
                        fitted,
                        parts,
                        members=settings.members,
                        steps=steps,
                        seed=seed,
                        clock=clock,
                        progress=lambda share: progress("members", share, A),
                    )
    except KeyboardInterrupt:
        interrupted = True
    given = (A, zero, interrupted, seed, clock, notices)
    try:
        return _result(samples, posed, form, fitted, comparison, *given)
    except KeyboardInterrupt:
        return _result(samples, posed, form, fitted, None, *given)


def _result(
    samples: Samples,
    posed: Posed,
    form: FoundForm,
    fitted: Fitted | None,
    comparison: Comparison | None,
    A: Tensor,
    zero: int,
    interrupted: bool,
    seed: int,
    clock: Clock,
    notices: list[str],
) -> Discovery:
    """Judge, and put everything together."""
    found, matrices = form.search, form.refits
    candidate = posed.out(A)
    evidence = None
    verdict, (reason, advice), sure = Verdict.UNDERDETERMINED, INTERRUPTED, 0.0
    if comparison is not None and not interrupted:
        evidence = gathered(form, comparison, A, zero, posed)
        verdict, reason, advice = judge(evidence, candidate.group_name)
        sure = confidence(evidence) if verdict is Verdict.FOUND else 0.0
    notices = [*notices, *_few_notice(evidence, samples, posed, seed)]
    if found.wins is not None and found.errors is Errors.RELATIVE:
        notices.append(
            f"relative errors give the better form (on {100 * found.wins:.0f} % of the validation samples): errors are "
            "weighted by the size of the targets, in the fits and in the verdict"
        )
    exact = fitted is not None and fitted.kind is Kind.POLYNOMIAL
    errors = None if matrices is None else given_errors(posed.frame, candidate, matrices, exact)
    entry, eigen = errors or (None, None)
    network = None if fitted is None else posed.network_out(fitted)
    shown = {} if comparison is None else _shown(posed, comparison, network, candidate)
    return Discovery(
        verdict,
        reason,
        advice,
        sure,
        repr(samples.rep),
        samples.names,
        provenance(samples, seed, clock, found.errors, None if fitted is None else fitted.kind),
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
        **shown,
    )


def gathered(form: FoundForm, comparison: Comparison, A: Tensor, zero: int, posed: Posed) -> Evidence:
    """All measurements that the verdict rests on."""
    found, spectral = form.search, form.spectral
    around = None if form.refits is None else spread(A, form.refits, zero)
    return Evidence(
        samples=len(posed.parts.train),
        **asdict(comparison.everyone),
        restarts=len(found.restarts),
        near_best=len(found.near_best),
        agreeing=found.agreeing,
        refit_distances=[] if around is None else list(around.distances),
        signature_votes=0.0 if around is None else around.signature_votes,
        weakest_eigenvalue=0.0 if around is None else around.weakest_eigenvalue,
        zero_directions=zero,
        spectral_gap=None if spectral is None else spectral.gap,
        spectral_residual=None if spectral is None else spectral.residual,
        held_out=len(posed.parts.held_out),
        worst=list(comparison.worst),
        worst_share=comparison.worst_share,
        others=asdict(comparison.others),
        complete=comparison.complete,
    )


def _few_notice(e: Evidence | None, samples: Samples, posed: Posed, seed: int) -> list[str]:
    """A word on a few samples that rule the error, by their numbers where no row was left out."""
    if e is None or not e.few_rule:
        return []
    held_out = torch.randperm(len(samples), generator=torch.Generator().manual_seed(seed))[: e.held_out]
    sizes = posed.given.held_out.y.reshape(e.held_out, -1).norm(dim=1).numpy()
    return [few_samples(e, sizes, held_out[e.worst].tolist() if posed.whole else None)]


def _shown(posed: Posed, c: Comparison, network: InFrame | None, form: QuadraticForm) -> dict[str, Any]:
    """Held-out errors in the given coordinates, certificates, and true values beside predicted ones."""
    test = posed.given.held_out
    unit = posed.given.train.units[1]
    mean = (posed.given.train.y / unit).mean(0)
    variance = float((test.y / unit - mean).square().mean())
    rows = []
    for model, name, note in (
        (c.own, f"equivariant, {form.group_name}", "respects the form exactly"),
        (c.free, f"unconstrained ({c.free.name})", "best of its kind on validation data"),
    ):
        mse = float(((posed.values_out(model.held_out) - test.y) / unit).square().mean())
        rows.append(Peer(name, mse * unit * unit, mse / max(variance, 1e-300), model.parameters, note))
    pick = slice(0, max(1, SHOWN * len(test) // test.y.numel()))
    own = posed.values_out(c.own.held_out)[pick]
    free = None if c.plain is None else posed.in_frame(c.plain, form)
    return {
        "peers": tuple(rows),
        "held_out": (test.y[pick].flatten().numpy(), own.flatten().numpy()),
        "certificate": {} if network is None else certificate(network, form, test.rep, test),
        "free_certificate": {} if free is None else certificate(free, form, test.rep, test),
    }


def provenance(
    samples: Samples, seed: int, clock: Clock, errors: Errors = Errors.ABSOLUTE, kind: Kind | None = None
) -> Provenance:
    """What was given, and how the answer was found."""
    import gortho

    versions = {
        "gortho": gortho.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    stages = dict(clock.seconds) | {"rest": max(0.0, clock.total - sum(clock.seconds.values()))}
    return Provenance(len(samples), samples.points, samples.n, seed, errors, kind, stages, versions)
