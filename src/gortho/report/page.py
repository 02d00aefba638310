"""The page itself: figures and words set into the template."""

import numpy as np
from markupsafe import Markup

from gortho.report import figures
from gortho.report.data import Array, ReportData
from gortho.report.templates import template

BADGES = {
    "FOUND": ("✓", "Symmetry found"),
    "NONE": ("○", "No such symmetry"),
    "UNDERDETERMINED": ("?", "The data cannot tell"),
}
#: What the kinds of elementary motions are.
KINDS = {
    "rotation": "A rotation turns two variables into each other.",
    "boost": "A boost mixes a direction that adds to q with one that takes away from it, as time and space in special "
    "relativity.",
    "shear": "A shear adds a multiple of one variable to another.",
    "stretch": "A stretch multiplies what q does not see.",
    "mainly": "Where it says mainly, other variables take part a little.",
}
APPROXIMATE = ("≈", "Symmetry found, not quite exact")


def _quantiles(values: Array | None) -> tuple[int, float, float] | None:
    """Return how many finite values there are, their median and the value that 95% stay below."""
    finite = np.empty(0) if values is None else np.asarray(values, float)[np.isfinite(values)]
    if not finite.size:
        return None
    return finite.size, float(np.median(finite)), float(np.quantile(finite, 0.95))


def page(data: ReportData) -> str:
    """Set the data into the template."""
    pictures = {
        "form": figures.form(data),
        "skew": figures.skew(data),
        "spectrum": figures.spectrum(data),
        "defect": figures.defect(data),
        "profiles": figures.profiles(data.profiles),
        "scatter": "" if data.classes else figures.scatter(data.true, data.predicted),
        "confusion": figures.confusion(data),
        "reliability": figures.reliability(data),
        "errors": figures.errors(data.errors, bool(data.classes)),
        "equivariance": figures.equivariance(
            data.boosts, data.equivariance_errors, data.unconstrained_equivariance_errors
        ),
        "restarts": figures.restarts(data.restarts),
    }
    # Of no other verdict is the group of interest.
    moved = figures.generators(data) if data.verdict == "FOUND" else []
    return template("page.html").render(
        data=data,
        badge=APPROXIMATE if data.approximate else BADGES[data.verdict],
        sure=data.verdict == "FOUND" and bool(np.isfinite(data.confidence)),
        found=data.verdict == "FOUND",
        pictures={name: Markup(svg) for name, svg in pictures.items()},
        generators=[(name, Markup(svg)) for name, svg in moved],
        kinds=[words for kind, words in KINDS.items() if any(kind in name for name, _ in moved)],
        bootstrap=_quantiles(data.bootstrap_distances),
        mismatch=_quantiles(data.equivariance_errors),
    )
