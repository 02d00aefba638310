"""From a discovery to the report's plain numbers."""

from __future__ import annotations

import numpy as np

from gortho.discovery.result import Discovery
from gortho.report import ErrorRow, ReportData, RestartRow

CONFIDENCE_NOTE = (
    "Confidence is the chance that the signature is right, from bootstrap errors of the eigenvalues, the refits' votes "
    "and what the predictor leaves unexplained; the calibration benchmark compares it with how often it was right."
)


def report_data(found: Discovery) -> ReportData:
    """Everything the page shows."""
    form, e = found.candidate, found.evidence
    low, high = found.intervals or (None, None)
    values = None if form is None else form.eigenvalues.numpy()
    wobble = None if found.eigenvalue_errors is None else 1.96 * found.eigenvalue_errors
    best = found.restarts[0].form if found.restarts else None
    return ReportData(
        verdict=found.verdict.name,
        headline=found.headline(),
        reason=found.reason,
        advice=found.advice,
        confidence=found.confidence,
        confidence_note=CONFIDENCE_NOTE,
        law="" if form is None else form.law(),
        names=list(found.names),
        group_name="" if form is None else form.group_name,
        signature=None if form is None else tuple(form.signature),  # type: ignore[arg-type]
        matrix=None if form is None else form.matrix.numpy(),
        matrix_low=low,
        matrix_high=high,
        eigenvalues=values,
        eigenvalues_low=None if values is None or wobble is None else values - wobble,
        eigenvalues_high=None if values is None or wobble is None else values + wobble,
        generators=found.generators,
        output=found.output,
        true=None if found.held_out is None else found.held_out[0],
        predicted=None if found.held_out is None else found.held_out[1],
        errors=[ErrorRow(p.model, p.mse, p.relative_mse, p.parameters, p.note) for p in found.peers],
        paired_p=None if e is None else 2 * min(e.free_p, 1 - e.free_p),
        boosts=np.array(list(found.certificate)) if found.certificate else None,
        equivariance_errors=np.array(list(found.certificate.values())) if found.certificate else None,
        unconstrained_equivariance_errors=np.array(list(found.free_certificate.values()))
        if found.free_certificate
        else None,
        restarts=[
            RestartRow(
                r.start, r.form.group_name, r.validation, r.form.cosine(best), r.form.algebra_distance(best)
            )
            for r in found.restarts
            if best is not None
        ],
        bootstrap_distances=None if e is None or not e.refit_distances else np.array(e.refit_distances),
        spectral_gap=None if e is None else e.spectral_gap,
        history=[(np.array(r.steps), np.array(r.history), r.start) for r in found.restarts],
        facts=found.facts,
        notices=found.notices,
    )
