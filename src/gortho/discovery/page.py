"""From a discovery to the report's plain numbers."""

from __future__ import annotations

import numpy as np

from gortho.discovery.result import Discovery
from gortho.discovery.words import named
from gortho.formulas import Formula
from gortho.formulas.writing import TEXT, Writer, body
from gortho.report import FormulaRows, ReportData, RestartRow, TwinRow
from gortho.report.motions import axis_generators
from gortho.report.words import spoken

CONFIDENCE_NOTE = (
    "This is how often answers with such evidence were right in the benchmarks. It depends on what is left "
    "unexplained, on how far the refits scatter, and on whether the form is broken a little."
)


def _twins(found: Discovery) -> list[TwinRow]:
    """Best model of the invariants, best model of the coordinates, and the difference."""
    e = found.evidence
    if e is None:
        return []
    m = e.typical
    return [
        TwinRow("Best of the invariants", e.twin, m.unexplained, m.unexplained_error),
        TwinRow("Best of the coordinates", e.free, m.free_unexplained),
        TwinRow("Gain of the second over the first", "", m.gain, m.gain_error),
    ]


def _generators(found: Discovery) -> np.ndarray | None:
    """The generators as matrices, along the axes if they can be; of several spaces, each moves the vectors of one."""
    wider = None if found.wider is None else found.wider.symmetry
    one = wider is None or (len(wider.forms) == 1 and not wider.linked and wider.skew is None)
    if found.candidate is not None and one:
        directions = None if wider is None else wider.directions.numpy()
        along = axis_generators(found.candidate.matrix.numpy(), directions)
        if along is not None:
            return along
    made = found.generators
    return made if made is None or made.ndim == 3 else made.sum(1)


def _noise(found: Discovery) -> str:
    noise = found.defect.noise
    return "" if noise is None else f"{100 * noise.share:.2g} % of the variance, from {noise.source}"


def _formula(found: Discovery, formula: Formula) -> FormulaRows:
    """The law for y: itself, its terms with error bars, and what is to be said of it."""
    text, about, *more = formula.lines()
    terms = [(body(formula, t, TEXT) or "1", t.coefficient, t.error) for t in formula.terms]
    inside = [f for t in formula.terms for f in t.monomials[0].factors if f.shape is not None]
    terms += [("inside: " + Writer(formula, TEXT).factor(f), f.shape or 0.0, f.shape_error) for f in inside]
    return FormulaRows(
        text, terms, [about.split("; ", 1)[1], *more], named(formula, found.wider, found.interval_factor)
    )


def _kept(found: Discovery) -> str:
    """What the group of the generators keeps, in a word or two."""
    symmetry = found.symmetry
    if symmetry is None:
        return "q"
    if len(symmetry.apart) and len(symmetry.forms) > 1:
        return "all forms"
    directions = len(symmetry.directions)
    kept = ["q"] * bool(symmetry.forms) + ["ω"] * (symmetry.skew is not None)
    return " and ".join(kept + ["the direction" + "s" * (directions > 1)] * bool(directions))


def report_data(found: Discovery) -> ReportData:
    """Everything the page shows."""
    form, e, symmetry = found.candidate, found.evidence, found.symmetry
    low, high = found.intervals or (None, None)
    values_low, values_high = found.eigenvalue_intervals or (None, None)
    best = found.restarts[0].form if found.restarts else None
    return ReportData(
        verdict=found.verdict.name,
        headline=found.headline(),
        reason=found.reason,
        beside=[] if found.wider is None else found.wider.lines(found.interval_factor),
        advice=found.advice,
        confidence=found.confidence,
        confidence_note=CONFIDENCE_NOTE,
        law=found.law(),
        formula=None if found.formula is None else _formula(found, found.formula),
        names=list(found.names),
        group_name=spoken(found.group_name or found.group_of_law),
        residual=symmetry.residual_name if symmetry is not None and len(symmetry.directions) else "",
        kept=_kept(found),
        signature=None if form is None else (*form.signature,),
        matrix=None if form is None else form.matrix.numpy(),
        matrix_low=low,
        matrix_high=high,
        skew=None if found.skew is None else found.skew.matrix.numpy(),
        skew_half=None
        if found.wider is None or not found.wider.skew_errors
        else found.interval_factor * np.array(found.wider.skew_errors),
        eigenvalues=None if form is None else form.eigenvalues.numpy(),
        eigenvalues_low=values_low,
        eigenvalues_high=values_high,
        generators=_generators(found),
        # Classes are fitted as scalars, one for each; this is what was asked for.
        output=f"class: {', '.join(map(str, found.classes))}" if found.classes else found.output,
        true=None if found.held_out is None else found.held_out[0],
        predicted=None if found.held_out is None else found.held_out[1],
        errors=list(found.peers),
        twins=_twins(found),
        free_p=None if e is None else e.typical.p,
        defect=None if e is None else (found.defect.low, found.defect.high),
        defect_words=found.exactly(),
        defect_open=not found.defect.informative,
        noise=_noise(found),
        tolerance=found.provenance.tolerance,
        classes=[str(c) for c in found.classes],
        violation="" if found.violation is None else str(found.violation),
        profiles=[] if found.violation is None else list(found.violation.profiles),
        boosts=np.array(list(found.certificate)) if found.certificate else None,
        equivariance_errors=np.array(list(found.certificate.values())) if found.certificate else None,
        unconstrained_equivariance_errors=np.array(list(found.free_certificate.values()))
        if found.free_certificate
        else None,
        restarts=[
            RestartRow(r.start, spoken(r.form.group_name), r.criterion, r.form.cosine(best), r.distance)
            for r in found.restarts
            if best is not None
        ],
        bootstrap_distances=None if e is None or not e.refit_distances else np.array(e.refit_distances),
        spectral_gap=None if e is None else e.spectral_gap,
        facts=found.provenance.facts(),
        notices=list(found.notices),
    )
