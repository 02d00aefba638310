"""A discovery (`gortho.Discovery`) as a formula, a sympy expression, rich output in a notebook, or a figure."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from gortho.discovery.words import where
from gortho.forms import QuadraticForm, coefficient
from gortho.formulas.symbols import expression
from gortho.formulas.telling import meanings
from gortho.formulas.values import Formula
from gortho.formulas.writing import LATEX, in_latex, map_names, symbol
from gortho.report.words import spoken

#: Points of the scatter of predictions.
SHOWN = 2_000
#: Entries below this share of the largest are rounding.
NOTHING = 1e-12
#: Matrices of up to this size have their entries written in them.
WRITTEN = 6


def short(found: Any) -> str:
    """One line: ``<Discovery FOUND: O(1,2), confidence 0.98, 400 samples in 3 dimensions>``."""
    p = found.provenance
    nothing = "no form" if found.candidate is None else found.candidate.group_name
    wider = found.wider if found.symmetry is not None else None
    what = spoken(str(found.symmetry or nothing) if wider is None else wider.name(found.interval_factor))
    sure = f", confidence {found.confidence:.2f}" if found.symmetry is not None else ""
    return f"<Discovery {found.verdict.name}: {what}{sure}, {p.samples} samples in {p.n} dimensions>"


def half_widths(found: Any) -> np.ndarray | None:
    """Those of the intervals of the entries of A ``(n, n)``, if there are any."""
    return None if found.entry_errors is None else found.interval_factor * found.entry_errors


def _skew_half(found: Any) -> np.ndarray:
    return found.interval_factor * np.array(found.wider.skew_errors)


def _asked(found: Any, of: str | None) -> str | None:
    """Which law is meant; an error where there is none of it."""
    if of not in (None, "y", "q"):
        raise ValueError(f"of = {of!r}: choose 'y' for the formula, 'q' for the form, or leave it out")
    if of == "y" and found.formula is None:
        raise ValueError("there is no formula for y: the form alone is told by of='q'")
    return of


def latex(found: Any, digits: int | None = None, of: str | None = None) -> str:
    """The law in LaTeX, without dollar signs; "" without a candidate."""
    of = _asked(found, of)
    if of == "y":
        return found.formula.latex()
    names, laws = [symbol(name) for name in found.names], []
    for label, form, half in _forms(found):
        letters = [symbol(name) for name in form.names]

        def product(i: int, j: int, letters: list[str] = letters) -> str:
            return f"{letters[i]}^{{2}}" if i == j else f"{letters[i]}\\,{letters[j]}"

        laws.append(f"{label} = " + _latex_sum(form.terms(half), product, digits, half))
    if found.skew is not None:
        half = _skew_half(found)
        terms = _latex_sum(
            found.skew.terms(half), lambda i, j: f"{names[i]} \\wedge {names[j]}", digits, half, 1
        )
        laws.append(f"\\omega(x, y) = {terms}")
    text = ",\\; ".join(laws)
    if of == "q" or found.formula is None or not text:
        return text
    lines = [found.formula.latex(), text, *_definitions(found.formula)]
    lines = [re.sub(r" (=|\\approx) ", r" &\1 ", line, count=1) for line in lines]
    rows = " \\\\ ".join(lines)
    return f"\\begin{{aligned}} {rows} \\end{{aligned}}"


def _forms(found: Any) -> list[tuple[str, QuadraticForm, np.ndarray | None]]:
    """The candidate with its half intervals; of several spaces with forms of their own, each with its number."""
    if found.candidate is None:
        return []
    if found.wider is None or not found.wider.symmetry.apart:
        return [("q(x)", found.candidate, half_widths(found))]
    forms, half = found.wider.symmetry.forms, found.wider.half_widths
    return [
        (f"q_{{{place + 1}}}(x)", form, half(place, found.interval_factor))
        for place, form in enumerate(forms)
    ]


def _definitions(formula: Formula) -> list[str]:
    """What the formula names beside vectors and scalars: maps between spaces, origin, directions, in numbers."""
    symmetry, found = formula.symmetry, []
    for name, T in zip(map_names(len(symmetry.maps)), symmetry.maps.tolist()):
        found.append(f"{name} = {_latex_matrix(T)}")
    if symmetry.origin is not None:
        found.append(f"c = {_latex_matrix([[value] for value in symmetry.origin.tolist()])}")
    for name, s in zip(formula.vectors[formula.points :], symmetry.directions.tolist()):
        found.append(f"{symbol(name)} = {_latex_matrix([[value] for value in s])}")
    return found + meanings(formula, LATEX)


def _latex_matrix(rows: list[list[float]]) -> str:
    cells = " \\\\ ".join(" & ".join(in_latex(f"{value:.4g}") for value in row) for row in rows)
    return f"\\begin{{pmatrix}} {cells} \\end{{pmatrix}}"


def _latex_sum(
    terms: list[tuple[int, int, float]],
    product: Callable[[int, int], str],
    digits: int | None,
    halves: np.ndarray | None,
    entries: int = 2,
) -> str:
    text = ""
    for i, j, value in terms:
        sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
        half = (
            math.nan
            if digits is not None or halves is None
            else float(halves[i][j]) * (1 if i == j else entries)
        )
        number = coefficient(abs(value), 2 if digits is None else digits, half)
        text += f"{sign}{in_latex(number)}\\,{product(i, j)}"
    return text


def sympy_law(found: Any, digits: int | None = None, of: str | None = None) -> Any:
    """The formula for y, or the form, as an expression of the coordinates, to so many significant digits.

    Of a skew form alone, ω(x, y), with y's symbols primed.
    """
    try:
        import sympy
    except ImportError:
        raise ImportError("found.sympy() needs sympy: pip install sympy") from None
    of = _asked(found, of)
    if found.candidate is None and found.skew is None:
        raise ValueError(f"there is no form: the verdict is {found.verdict} ({found.reason})")
    if found.formula is not None and of != "q":
        law = expression(found.formula)
        return law if digits is None else law.evalf(digits)
    x, y = ([sympy.Symbol(name + mark, real=True) for name in found.names] for mark in ("", "'"))

    def number(value: float) -> Any:
        return sympy.Float(value) if digits is None else sympy.Float(value, digits)

    if found.candidate is not None:
        parts = [number(value) * x[i] * x[j] for i, j, value in found.candidate.terms(half_widths(found))]
    else:
        terms = found.skew.terms(_skew_half(found))
        parts = [number(value) * (x[i] * y[j] - x[j] * y[i]) for i, j, value in terms]
    return sympy.Add(*parts)


def as_html(found: Any) -> str:
    """Verdict, law and form as a piece of HTML, for notebooks."""
    rows = [f"<p><b>{found.verdict.name}</b>: {html.escape(found.headline())}</p>"]
    if law := found.law():
        label = "form" if found.symmetry is not None else "best candidate, not accepted"
        rows.append(f"<p>{label}: {html.escape(law)} [{html.escape(found.group_of_law)}]</p>")
    if found.formula is not None:
        first, *more = found.formula.lines()
        told = [first, *where(found), *more]
        rows.append("<p>formula: " + "<br>".join(map(html.escape, told)) + "</p>")
    if found.candidate is not None:
        rows.append(_matrix("A", found.candidate.matrix.numpy(), half_widths(found), found.names))
    if found.skew is not None:
        rows.append(_matrix("ω", found.skew.matrix.numpy(), _skew_half(found), found.names))
    if found.wider is not None:
        rows.append("<p>" + "<br>".join(map(html.escape, found.wider.lines(found.interval_factor))) + "</p>")
    rows.append(f"<p>why: {html.escape(found.reason)}<br>next: {html.escape(found.advice)}</p>")
    rows += [f"<p>note: {html.escape(notice)}</p>" for notice in found.notices]
    return "<div>" + "".join(rows) + "</div>"


def _matrix(label: str, A: np.ndarray, half: np.ndarray | None, names: tuple[str, ...]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body, shown = "", np.where(np.abs(A) <= NOTHING * np.abs(A).max(), 0.0, A)
    for i, name in enumerate(names):
        cells = [
            f"{shown[i, j]:.3g}"
            + ("" if half is None or not np.isfinite(half[i, j]) else f" ± {half[i, j]:.1g}")
            for j in range(len(A))
        ]
        body += f"<tr><th>{html.escape(name)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    return f"<table><tr><th>{label} (± 95 %)</th>{head}</tr>{body}</table>"


def _confusion(axes: Any, found: Any) -> None:
    """Which share of each class is taken for which."""
    true, guess = (part.reshape(-1, len(found.classes)).argmax(1) for part in found.held_out)
    counts = np.zeros((len(found.classes),) * 2)
    np.add.at(counts, (guess, true), 1.0)
    axes.imshow(counts / np.maximum(counts.sum(0), 1), cmap="Blues", vmin=0, vmax=1, origin="lower")
    axes.set_xticks(range(len(counts)), map(str, found.classes))
    axes.set_yticks(range(len(counts)), map(str, found.classes))


def figure(found: Any) -> Any:
    """A matplotlib figure: the form, its eigenvalues, and predicted against true held-out values, or classes."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("found.plot() needs matplotlib: pip install 'gortho[report]'") from None
    if found.candidate is None and found.skew is None:
        raise ValueError(f"there is nothing to plot: the verdict is {found.verdict} ({found.reason})")
    drawn = Figure(figsize=(11, 3.6), layout="constrained")
    left, middle, right = drawn.subplots(1, 3)
    names, form = found.names, found.candidate
    A = (found.skew if form is None else form).matrix.numpy()
    size = np.abs(A).max()
    drawn.colorbar(left.imshow(A, cmap="RdBu_r", vmin=-size, vmax=size), ax=left)
    left.set_xticks(range(len(A)), names)
    left.set_yticks(range(len(A)), names)
    for i, j in np.ndindex(A.shape) if len(A) <= WRITTEN else ():
        dark = abs(A[i, j]) > 0.6 * size
        left.text(j, i, f"{A[i, j]:.2g}", ha="center", va="center", color="white" if dark else "black")
    left.set_title(f"{found.verdict.name}: {found.group_of_law}")
    values = np.linalg.svd(A, compute_uv=False) if form is None else form.eigenvalues.numpy()
    half = None if found.eigenvalue_errors is None else found.interval_factor * found.eigenvalue_errors
    middle.errorbar(range(len(values)), values, yerr=half, fmt="o", capsize=3)
    middle.axhline(0, color="grey", linewidth=0.8)
    middle.set_xticks(range(len(values)), range(1, len(values) + 1))
    middle.set(xlabel="direction", ylabel="weight in ω" if form is None else "weight in q (eigenvalue)")
    middle.set_title("singular values" if form is None else "eigenvalues (95 %)")
    if found.held_out is not None and found.classes:
        _confusion(right, found)
    elif found.held_out is not None:
        true, predicted = (part[:SHOWN] for part in found.held_out)
        right.scatter(true, predicted, s=6, alpha=0.5)
        right.axline((float(true.mean()), float(true.mean())), slope=1, color="grey", linewidth=0.8)
    right.set(xlabel="true", ylabel="predicted", title="held-out samples")
    return drawn
