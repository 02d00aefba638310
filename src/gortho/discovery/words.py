"""The answer in words: what `print` shows for a discovery."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gortho.discovery.verdict import Verdict, percent
from gortho.discovery.violation import in_words
from gortho.formulas import Formula
from gortho.formulas.telling import meanings
from gortho.report.words import moves, sentences, spoken, with_halves, with_interval, without_gauged

if TYPE_CHECKING:
    from gortho.discovery.result import Discovery
    from gortho.discovery.wider.value import Wider

NOT_FOUND = {
    Verdict.NONE: "The data does not respect any quadratic form.",
    Verdict.UNDERDETERMINED: "The data cannot tell whether, or which, quadratic form it respects.",
}


def headline(found: Discovery) -> str:
    """The verdict in one sentence."""
    # the same bound as on the pages
    sure = f"{100 * found.confidence:.0f} %" if found.confidence <= 0.99 else "above 99 %"
    if found.verdict is not Verdict.FOUND:
        told = NOT_FOUND[found.verdict]
        return f"{told[:-1]} (confidence {sure})." if found.verdict is Verdict.NONE else told
    how = "nearly respects" if found.approximate else "respects"
    if found.wider is not None:
        return f"The data {how} {found.wider.name(found.interval_factor)} (confidence {sure})."
    assert found.candidate is not None
    group = spoken(found.candidate.group_name)
    return f"The data {how} a quadratic form with group {group} (confidence {sure})."


def named(formula: Formula, wider: Wider | None = None, factor: float = 1.0) -> list[str]:
    """What a formula names: vectors by their columns, the origin and the directions; and what × and ε are.

    Numbers of the origin have the digits that so many of the wider symmetry's standard errors leave.
    """
    symmetry, names = formula.symmetry, formula.coordinates
    told = _columns(formula)
    if symmetry.origin is not None:
        errors = (wider and wider.origin_errors) or (math.nan,) * len(symmetry.origin)
        numbers = zip(symmetry.origin.tolist(), errors)
        written = [
            with_interval(v, factor * e, digits=1)[0] if math.isfinite(factor * e) else f"{v:.4g}"
            for v, e in numbers
        ]
        told.append(f"c is the origin ({', '.join(written)})".replace("−", "-"))
    directions = zip(formula.vectors[formula.points :], symmetry.directions.tolist())
    told += [f"{name} is the direction {in_words(s, names)}" for name, s in directions]
    return told + meanings(formula)


def _columns(formula: Formula) -> list[str]:
    """Which columns the vectors x1, x2, … of a formula are, where their names do not say so."""
    points, written = formula.points, str(formula)
    n = len(formula.coordinates) // points
    each = [[c for c in formula.coordinates[i * n : i * n + n] if c] for i in range(points)]
    stems = {tuple(c.removesuffix(f"_{i + 1}") for c in columns) for i, columns in enumerate(each)}
    plain = formula.vectors[:points] == tuple(f"x{i + 1}" for i in range(points))
    if points == 1 or n == 0 or not plain or len(stems) == 1:  # x_1, x_2: the first of x1, of x2
        return []
    return [f"x{i + 1} is ({', '.join(c)})" for i, c in enumerate(each) if f"x{i + 1}" in written]


def where(found: Discovery) -> list[str]:
    """The same of a discovery's formula as a line, if there is anything."""
    told = [] if found.formula is None else named(found.formula, found.wider, found.interval_factor)
    return [f"where {', and '.join(told)}"] if told else []


def beside(found: Discovery) -> list[str]:
    """What there is to say of the symmetry, and of the names in the formula, beside the law."""
    return where(found) + ([] if found.wider is None else found.wider.lines(found.interval_factor))


def text(found: Discovery) -> str:
    """The whole answer, in lines."""
    lines = [f"{found.verdict.name}: {headline(found)}"]
    if law := found.law():
        label = "form" if found.verdict is Verdict.FOUND else "best candidate, not accepted"
        lines.append(f"  {label}: {law}   [{found.group_of_law}]")
    if found.candidate is not None:
        lines.append(f"  {_eigenvalues(found)}")
    if found.formula is not None:
        first, *more = found.formula.lines()
        more = where(found) + more
        lines += [sentences(f"  formula: {first}"), *(sentences(f"    {line}") for line in more)]
    if found.wider is not None:
        lines += [sentences(f"  {line}") for line in found.wider.lines(found.interval_factor)]
    if found.evidence is not None:
        lines.append(f"  how exactly: {found.defect}")
    lines += [sentences(f"  why: {found.reason}"), sentences(f"  next: {found.advice}")]
    for peer in found.peers:
        if found.classes:
            told = f"log loss, {peer.model}: {peer.mse:.3g} ({percent(peer.relative_mse)} of that of class frequencies)"
        else:
            told = f"error, {peer.model}: {peer.relative_mse:.2e} of the variance (MSE {peer.mse:.2e})"
        lines.append(f"  held-out {told}")
    if found.certificate:
        boost, error = next(reversed(found.certificate.items()))
        how = "" if found.candidate is None else f" ({moves(found.candidate.signature, boost)})"
        lines.append(f"  equivariance error of the predictor{how}: {error:.1e}")
    return "\n".join(lines + [sentences(f"  note: {notice}") for notice in found.notices])


def _eigenvalues(found: Discovery) -> str:
    assert found.candidate is not None
    values = found.candidate.eigenvalues.numpy()
    values = np.where(np.abs(values) < found.candidate.tolerance * np.abs(values).max(), 0.0, values)
    if found.eigenvalue_errors is not None:
        half = found.interval_factor * found.eigenvalue_errors
        if np.isfinite(half).any():  # those of a convention are not numbers
            return f"eigenvalues (± 95 %): {with_halves(values, without_gauged(values, half))}"
    told = ", ".join(with_interval(float(value), math.nan)[0] for value in values).replace("−", "-")
    return f"eigenvalues: {told} (error bars not computed)"
