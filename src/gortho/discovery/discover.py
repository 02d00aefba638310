"""One call from samples to a verdict.

The steps: check the samples, split them, and transform them to their frame; find the form by starts (M6, M11), search
(M12) and refits; freeze it and fit the predictor; compare with models without a form; judge; look for a formula. All
but the last step happen in the frame (M18). The verdict rests on held-out samples that no fit has seen; only outliers
are removed from them. The predictor that is returned may afterwards be fitted to all samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

from torch import Tensor

from gortho import checks
from gortho.discovery.answer import answer
from gortho.discovery.bundles import bundled
from gortho.discovery.clock import SHARES, SHARES_BEFORE_PARITY, Clock, too_small
from gortho.discovery.confirmed import told_by, with_told
from gortho.discovery.defect import noise_of
from gortho.discovery.find import FoundForm, find_form
from gortho.discovery.hints import GRADIENT, VOLUME, looks_like_a_gradient, looks_like_a_volume
from gortho.discovery.large import Survey, allowed
from gortho.discovery.law import with_formula
from gortho.discovery.outliers import SEARCHES, outlier_notices, outliers, with_ruling, without_outliers
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Fitted, Kind, Parts, committee, final_predictor, with_validation
from gortho.discovery.provenance import Provenance
from gortho.discovery.result import Discovery, with_reach
from gortho.discovery.search import Interrupted, as_good
from gortho.discovery.settings import Settings
from gortho.discovery.spreads import without_noise_eigenvalues
from gortho.discovery.twins import Comparison, compare, with_predictor
from gortho.discovery.verdict import TOLERANCE, Verdict
from gortho.discovery.wider.answer import Case
from gortho.discovery.wider.claims import Asked, even_rep
from gortho.discovery.wider.readings import with_translations
from gortho.discovery.wider.several import discover_several
from gortho.discovery.wider.widen import wanted, widen
from gortho.discovery.workers import one_thread
from gortho.discovery.written import smooth_or_written, with_law
from gortho.forms import QuadraticForm
from gortho.objectives import Objective, objectives_for
from gortho.progress import Watch, watched
from gortho.reps import Rep
from gortho.samples.arranged import columns_of, with_names
from gortho.samples.called import Labels
from gortho.samples.checks import no_array
from gortho.samples.door import CONSTANT_IN_MOST, constant_targets, enter, hopeless
from gortho.samples.named import check_rows, frame_columns, scalar_columns
from gortho.samples.spaces import are_spaces, side_by_side
from gortho.samples.values import Samples
from gortho.training.checkpoints import Ended

_STAGES = {"search": (0.0, 0.4), "refits": (0.4, 0.55), "predictor": (0.55, 0.75), "twins": (0.75, 0.9)}
_STAGES_THEN_MEMBERS = {name: (a / 2, b / 2) for name, (a, b) in _STAGES.items()} | {"members": (0.45, 0.9)}
_STAGES["wider"] = _STAGES_THEN_MEMBERS["wider"] = (0.9, 1.0)


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
    tolerance: float = TOLERANCE,
    set_like: bool = False,
    names: Any = None,
    settings: Settings | None = None,
    time_budget: float | None = None,
    max_samples: int | None = None,
    known: Survey | None = None,
    watch: Watch | None = None,
    look_for: Any = "auto",
    axial: Any = (),
    spaces: Any = (),
    labels: Any = None,
) -> Discovery:
    """Find the quadratic form whose group the data respect, if there is one, and a predictor that respects it exactly.

    Args:
        X: vectors ``(N, n)`` or tuples of vectors ``(N, p, n)``; or a list of such arrays, one for each kind of vector,
            which may have different dimensions.
        y: targets, in the shape that the output requires: ``(N,)`` scalar or labels, ``(N, n)`` vector or covector,
            ``(N, n, n)`` conjugation, bilinear or form.
        output: how the targets transform: a name, a sum of names, or a rep object; "class" for labels.
        scalars: invariant quantities (masses, charges), per point ``(N, p)``, ``(N, p, s)`` or per sample.
        seed: the same seed gives the same answer on the same machine.
        sample_weight: sample weights ``(N,)``.
        y_error: standard errors of the targets, one per sample or entry, instead of weights.
        errors: "absolute" or "relative"; "auto" uses the one that gives the better form on validation data.
        tolerance: a law that is broken by at most this fraction of its variance still counts as FOUND, approximately.
        set_like: the points of a sample have no order.
        names: names of the n coordinates; for kinds of different dimension, those of all kinds in order.
        settings: size of the search, see `Settings`.
        time_budget: seconds, approximately; the work is reduced to fit, so the answer may be less certain.
        max_samples: use a random subset of this many samples if there are more (50,000 by default), with a note.
        known: what a pass over all rows found, if X and y are a sample of them (`gortho.survey`).
        watch: called with (stage, fraction done, leading form) during the work; by default notebooks show a bar.
        look_for: what to try if O(A) fails: "auto" for all, or some of "O", "SO", "direction", "origin", "spaces",
            "skew"; "O" alone for none. If ``axial`` or an odd output is given, O(A) with this parity is always tried.
        axial: indices of the vectors of a sample that are axial, such as magnetic fields; True for all.
        spaces: index of the form of each vector of a sample, if there are several kinds: ``[0, 0, 1]``.
        labels: names for the formula: ``{"y": "energy", "vectors": ["p", "k"], "scalars": ["m1", "m2"]}``; a series
            and the columns of a data frame have their own.

    Ctrl-C stops the search and returns the best form so far, as UNDERDETERMINED.

    >>> import gortho, torch
    >>> x = torch.randn(300, 2, dtype=torch.float64)
    >>> found = gortho.discover(x, x[:, 0] ** 2 - x[:, 1] ** 2)
    >>> found.verdict.name, found.group_name
    ('FOUND', 'O(1,1)')
    """
    if not isinstance(tolerance, Real) or not 0 <= tolerance < 1:
        raise ValueError(f"tolerance = {tolerance!r}: give a share of the variance, from 0 to 1")
    if watch is not None and not callable(watch):
        raise TypeError(f"watch = {watch!r}: give a function of (stage, share, leading form), such as print")
    clock, seed = Clock(time_budget), checks.seed(seed)
    if not hasattr(X, "__len__") or hasattr(X, "toarray"):
        raise no_array(X, "X")
    dims: tuple[int, ...] = ()
    columns = frame_columns(X)
    if are_spaces(X):
        if spaces:
            raise ValueError("X is a list of arrays, one for each kind of vector: leave out spaces")
        check_rows(X=X, y=y, scalars=scalars, sample_weight=sample_weight, y_error=y_error)
        columns = columns_of(X)
        X, spaces, dims = side_by_side(X)
    if settings is not None and not isinstance(settings, Settings):
        raise TypeError(f"settings is a {type(settings).__name__}: give gortho.Settings(...)")
    kinds: list[tuple[str, ...]] = []
    if dims:
        kinds, names, labels = with_names(names, Labels.of(labels, y, scalars), columns, spaces, dims)
    limits = allowed(time_budget, max_samples, seed, read=None if known is None else len(X))
    clock.rows_left_out = limits.rows(0) < (len(X) if known is None else known.rows)
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
        labels=labels,
    )
    notices += [*too_small(time_budget), *([GRADIENT] if looks_like_a_gradient(samples) else [])]
    notices += [VOLUME] if looks_like_a_volume(samples) else []
    asked = Asked.of(look_for, axial, spaces, samples.rep, samples.points, set_like)
    clock.shares = SHARES_BEFORE_PARITY if asked.parity else SHARES
    samples = samples.with_targets(samples.y, even_rep(samples.rep))  # parity is told apart from O(A)
    if known is not None:
        notices = [*known.data.notices, *notices]

    def refused(reason: str, advice: str) -> Discovery:
        facts = Provenance.of(samples, seed, clock, tolerance)
        about = repr(samples.rep), samples.names, facts
        return Discovery(Verdict.UNDERDETERMINED, reason, advice, 0.0, *about, notices=tuple(notices))

    if refusal := hopeless(samples):
        return refused(*refusal)
    if samples.classes and (asked.axial or asked.spaces):
        raise ValueError("labels are told apart by one form of polar vectors: leave out axial and spaces")
    samples, told = bundled(samples)
    notices += told
    objectives, settings = objectives_for(samples, errors), settings or Settings()
    given = objectives, settings, seed, clock
    whole = len(samples) == len(X)
    with one_thread(), watched(watch) as watch:
        if len(set(dims)) > 1:
            found = discover_several(samples, asked, dims, kinds, *given, notices, tolerance, whole)
        else:
            posed = Posed.of(samples, seed, known, whole)
            if constant_targets(posed.given.train):
                return refused(*CONSTANT_IN_MOST)
            found = _discover(samples, posed, *given, watch, notices, tolerance, asked)
    from_tables: dict[str, Any] = {"columns": columns, "scalar_columns": scalar_columns(scalars)}
    return replace(with_reach(found, samples), **from_tables)


def _until_interrupted(find: Callable[[Posed], FoundForm], posed: Posed) -> tuple[FoundForm, bool]:
    """The form, and whether it is only the best so far because of an interruption."""
    try:
        return find(posed), False
    except Interrupted as stop:
        return FoundForm(stop.found, stop.found.A), True


def _without_outliers(
    find: Callable[[Posed], FoundForm], posed: Posed, seed: int, clock: Clock
) -> tuple[FoundForm, bool, Posed]:
    """The form, searched for again as long as there are outliers; whether it was interrupted; the remaining samples."""
    form, interrupted = _until_interrupted(find, posed)
    for _ in range(SEARCHES):
        if interrupted or not form.search.objective.least_squares or clock.over():
            break
        try:
            out = outliers(posed.parts, form.A, form.search.objective, seed)
        except KeyboardInterrupt:
            return form, True, posed
        if not bool(out.any()):
            break
        posed = posed.without(out)
        form, interrupted = _until_interrupted(find, posed)
    return form, interrupted, posed


def _of_rank(form: FoundForm, posed: Posed, seed: int) -> tuple[Tensor, int]:
    """The form without eigenvalues that are indistinguishable from zero, and the number of these."""
    A, zero = without_noise_eigenvalues(form.A, form.refits, posed.frame)
    if zero and not as_good(posed.parts.train, form.search.objective, A, form.A, seed):
        return form.A, 0  # the refits do not tell it from zero, but the samples do
    return A, zero


def _report(
    watch: Watch | None,
    shares: dict[str, tuple[float, float]],
    posed: Posed,
    stage: str,
    share: float,
    A: Tensor,
) -> None:
    """Report the fraction of the work that is done, and the leading form."""
    if watch is not None:
        first, last = shares[stage]
        watch(stage, first + share * (last - first), str(posed.out(A)))


def _discover(
    samples: Samples,
    posed: Posed,
    objectives: tuple[Objective, ...],
    settings: Settings,
    seed: int,
    clock: Clock,
    watch: Watch | None,
    notices: list[str],
    tolerance: float,
    asked: Asked,
) -> Discovery:
    """The stages, each a function of values; an interruption keeps what there is."""
    common: dict[str, Any] = {"seed": seed, "clock": clock}
    report = partial(_report, watch, _STAGES if settings.members == 1 else _STAGES_THEN_MEMBERS)

    def find(posed: Posed) -> FoundForm:
        return find_form(posed, objectives, settings=settings, progress=partial(report, posed), **common)

    form, interrupted, kept = _without_outliers(find, posed, **common)
    everything, posed, progress = posed, kept, partial(report, kept)
    notices = [*notices, *outlier_notices(everything, posed)]
    A, zero, objective = form.A, 0, form.search.objective
    parts, fitted, comparison = posed.weighted(objective), form.law, None
    steps, squares = settings.predictor_steps, objective.least_squares
    try:
        A, zero = _of_rank(form, posed, seed)
        with clock.stage("predictor"):
            how = common | {"progress": partial(progress, "predictor", A=A)}
            few = 50 if interrupted else steps
            fitted = fitted or final_predictor(QuadraticForm(A), parts, objective, steps=few, **how)
        interrupted |= fitted.ended is Ended.INTERRUPTED
        if squares and not (interrupted or form.law):
            form = with_law(form, fitted, posed, parts, settings, seed, clock)
            fitted = form.law or fitted
        A = fitted.form.matrix
        if not interrupted:

            def compared(one: Fitted, progress: Callable[[float], None]) -> Comparison:
                return compare(one, parts, objective, posed, steps=steps, progress=progress, **common)

            with clock.stage("twins"):
                comparison = compared(fitted, progress=partial(progress, "twins", A=A))
            if squares:
                how = common | {"progress": partial(progress, "members", A=A)}
                form, fitted, comparison = _handed_back(
                    form, fitted, comparison, parts, compared, settings, **how
                )
                A = fitted.form.matrix
    except KeyboardInterrupt:
        interrupted = True
    noise = noise_of(parts.train) if squares else None
    given = (noise, A, zero, interrupted, seed, clock, notices, tolerance)
    try:
        told = answer(samples, posed, form, fitted, comparison, *given)
        if comparison is None or not wanted(told, asked, tolerance):
            told = with_translations(told, posed, seed)
        else:
            case = Case(told, samples, posed, comparison, settings, seed, clock, tolerance)
            told = widen(case, form, asked, partial(progress, "wider", A=A))
        if watch is not None and not interrupted:
            watch("twins" if told.wider is None else "wider", 1.0, str(posed.out(A)))
        told = with_ruling(without_outliers(told, everything, posed), posed)
        seen = () if comparison is None or told.wider is not None else (comparison.own, comparison.twin)
        return with_formula(told, posed, form.refits, clock, *(model.held_out for model in seen))
    except KeyboardInterrupt:
        return answer(samples, posed, form, fitted, None, *given)


def _handed_back(
    form: FoundForm,
    fitted: Fitted,
    comparison: Comparison,
    parts: Parts,
    compared: Callable[..., Comparison],
    settings: Settings,
    seed: int,
    clock: Clock,
    progress: Callable[..., None],
) -> tuple[FoundForm, Fitted, Comparison]:
    """The predictor of numbers that is returned, fitted to more samples, and the comparison with it.

    It comes after the comparison on which the verdict is based, unless it is a law that held-out samples confirm.
    """
    common: dict[str, Any] = {"seed": seed, "clock": clock}
    if form.law is None:
        with clock.stage("predictor"):
            fitted, one = smooth_or_written(fitted, form.estimates, parts, **common)
            told = told_by(fitted, parts, **common)
            seen = one if told is None else told.fitted
            if seen is not None:
                comparison = with_predictor(comparison, seen, parts)
            if fitted.kind is Kind.POLYNOMIAL:
                fitted = with_validation(fitted, parts, seed)
        if told is not None and told.holds(parts):
            with clock.stage("twins"):
                form = with_told(form, fitted, told, settings.refits, seed)
                comparison = compared(told.fitted, progress=lambda share: None)
    if settings.members > 1 and fitted.kind in (Kind.LINEAR, Kind.NETWORK):
        with clock.stage("members"):
            fitted = committee(
                fitted,
                parts,
                members=settings.members,
                steps=settings.predictor_steps,
                progress=progress,
                **common,
            )
    return form, fitted, comparison
