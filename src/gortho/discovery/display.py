"""A discovery (`gortho.Discovery`) as a formula, as a sympy expression, as a cell of a notebook, as a figure."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np

from gortho.forms import WORD
from gortho.report.words import spoken

#: Names that LaTeX knows as letters.
GREEK = re.compile(
    r"(alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega)"
)
#: Points of the scatter of predictions.
SHOWN = 2_000


def short(found: Any) -> str:
    """One line: ``<Discovery FOUND: O(1,2), confidence 0.98, 400 samples in 3 dimensions>``."""
    p = found.provenance
    what = "no form" if found.candidate is None else spoken(str(found.symmetry or found.candidate.group_name))
    sure = f", confidence {found.confidence:.2f}" if found.form is not None else ""
    return f"<Discovery {found.verdict.name}: {what}{sure}, {p.samples} samples in {p.n} dimensions>"


def _half(found: Any) -> np.ndarray | None:
    return None if found.entry_errors is None else found.interval_factor * found.entry_errors


def symbol(name: str) -> str:
    r"""A name in LaTeX; what is no single word stands in brackets.

    >>> symbol("px"), symbol("x0"), symbol("mu_1"), symbol("m²")
    ('\\mathrm{px}', 'x_{0}', '\\mu_{1}', '\\left(\\text{m²}\\right)')
    """
    if WORD.fullmatch(name):
        stem, number = re.fullmatch(r"(.*?)_?(\d*)", name).groups()  # type: ignore[union-attr]
        low = f"_{{{number}}}" if number else ""
        if len(stem) == 1:
            return stem + low
        if GREEK.fullmatch(stem):
            return f"\\{stem}{low}"
        return f"\\mathrm{{{_escaped(stem)}}}{low}"
    return f"\\left(\\text{{{_escaped(name)}}}\\right)"


def _escaped(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    return "".join(special.get(c, f"\\{c}" if c in "_&%$#{}" else c) for c in text)


def latex(found: Any, digits: int = 2) -> str:
    """The law in LaTeX, without dollar signs; "" without a candidate."""
    if found.candidate is None:
        return ""
    names, text = [symbol(name) for name in found.names], ""
    for i, j, value in found.candidate.terms(_half(found)):
        sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
        number = f"{abs(value):.{digits}f}" if abs(value) >= 0.3 else f"{abs(value):.{digits + 1}g}"
        mantissa, _, exponent = number.partition("e")
        number = f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else mantissa
        product = f"{names[i]}^{{2}}" if i == j else f"{names[i]}\\,{names[j]}"
        text += f"{sign}{number}\\,{product}"
    return f"q(x) = {text}"


def sympy_form(found: Any, digits: int | None = None) -> Any:
    """The law as a sympy expression of symbols with the coordinates' names, rounded to so many significant digits."""
    try:
        import sympy
    except ImportError:
        raise ImportError("found.sympy() needs sympy: pip install sympy") from None
    if found.candidate is None:
        raise ValueError(f"there is no form: the verdict is {found.verdict} ({found.reason})")
    symbols = [sympy.Symbol(name, real=True) for name in found.names]
    parts = [
        (sympy.Float(value) if digits is None else sympy.Float(value, digits)) * symbols[i] * symbols[j]
        for i, j, value in found.candidate.terms(_half(found))
    ]
    return sympy.Add(*parts)


def as_html(found: Any) -> str:
    """Verdict, law and form as a piece of HTML, for notebooks."""
    rows = [f"<p><b>{found.verdict.name}</b>: {html.escape(found.headline())}</p>"]
    form = found.candidate
    if form is not None:
        label = "law" if found.form is not None else "best candidate, not accepted"
        rows.append(f"<p>{label}: {html.escape(found.law())} [{html.escape(spoken(form.group_name))}]</p>")
        rows.append(_matrix(found))
    rows.append(f"<p>why: {html.escape(found.reason)}<br>next: {html.escape(found.advice)}</p>")
    rows += [f"<p>note: {html.escape(notice)}</p>" for notice in found.notices]
    return "<div>" + "".join(rows) + "</div>"


def _matrix(found: Any) -> str:
    assert found.candidate is not None
    A, half = found.candidate.matrix.numpy(), _half(found)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in found.names)
    body = ""
    for i, name in enumerate(found.names):
        cells = [
            f"{A[i, j]:.3g}" + ("" if half is None or not np.isfinite(half[i, j]) else f" ± {half[i, j]:.1g}")
            for j in range(len(A))
        ]
        body += f"<tr><th>{html.escape(name)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    return f"<table><tr><th>A (± 95 %)</th>{head}</tr>{body}</table>"


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
    if found.candidate is None:
        raise ValueError(f"there is nothing to plot: the verdict is {found.verdict} ({found.reason})")
    drawn = Figure(figsize=(11, 3.6), layout="constrained")
    left, middle, right = drawn.subplots(1, 3)
    A, names = found.candidate.matrix.numpy(), found.names
    size = np.abs(A).max()
    drawn.colorbar(left.imshow(A, cmap="RdBu_r", vmin=-size, vmax=size), ax=left)
    left.set_xticks(range(len(A)), names)
    left.set_yticks(range(len(A)), names)
    left.set_title(f"{found.verdict.name}: {spoken(found.candidate.group_name)}")
    values = found.candidate.eigenvalues.numpy()
    half = None if found.eigenvalue_errors is None else found.interval_factor * found.eigenvalue_errors
    middle.errorbar(range(len(values)), values, yerr=half, fmt="o", capsize=3)
    middle.axhline(0, color="grey", linewidth=0.8)
    middle.set_xticks(range(len(values)))
    middle.set_title("eigenvalues (95 %)")
    if found.held_out is not None and found.classes:
        _confusion(right, found)
    elif found.held_out is not None:
        true, predicted = (part[:SHOWN] for part in found.held_out)
        right.scatter(true, predicted, s=6, alpha=0.5)
        right.axline((float(true.mean()), float(true.mean())), slope=1, color="grey", linewidth=0.8)
    right.set(xlabel="true", ylabel="predicted", title="held-out samples")
    return drawn
