"""What is not denied: NONE stays open where a wider symmetry came near, or where the origin is too far to be seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gortho.discovery.result import Discovery
from gortho.discovery.twins import Comparison
from gortho.discovery.verdict import MORE, Verdict, percent
from gortho.discovery.wider.search import End
from gortho.samples.values import Samples

#: A wider symmetry that leaves at most this share of what O(A) leaves may be what the search has missed.
NEARLY = 0.1
#: With an origin more than so many standard deviations away, invariants hardly vary, and few digits are left of them.
FAR_AWAY = 100.0
#: Variances below this share of the largest are those of constants.
CONSTANT = 1e-10


def undenied(
    found: Discovery, ends: Sequence[End], plain: Comparison, validation: Samples, x: Tensor
) -> Discovery:
    """The discovery, with UNDERDETERMINED in the place of NONE where that would say more than was seen.

    ``ends`` are where the searches for wider symmetries ended; ``x`` are all vectors, in the given coordinates.
    """
    if found.verdict is not Verdict.NONE:
        return found
    spread = offset(x.flatten(0, 1))
    if spread > FAR_AWAY:
        return _open(
            found,
            f"But the vectors are {spread:,.0f} standard deviations away from the origin of their coordinates: from so "
            "far away neither a form about it nor one about another origin can be told.",
            "Give vectors relative to a point among them: subtract their mean, or what you know to be the centre.",
        )
    best = min(ends, key=lambda end: end.error, default=None)
    if best is None or best.error > NEARLY * plain.twin.usual:
        return found
    left, before = (percent(error / validation.variance) for error in (best.error, plain.twin.usual))
    return _open(
        found,
        f"But the search for {best.claim.name} leaves {left} of the variance of validation samples, O(A) {before}: it "
        "may have missed the right one.",
        MORE,
    )


def _open(found: Discovery, reason: str, advice: str) -> Discovery:
    return replace(
        found,
        verdict=Verdict.UNDERDETERMINED,
        confidence=0.0,
        reason=f"{found.reason} {reason}",
        advice=advice,
    )


def offset(x: Tensor) -> float:
    """How many standard deviations the mean of vectors ``(N, n)`` is away from zero, where they vary at all."""
    size = x.abs().amax(0).clamp_min(1e-300)
    m, rest = (x / size).mean(0), x / size - (x / size).mean(0)
    C = rest.mT @ rest / len(x)
    values, V = torch.linalg.eigh(C)
    varies = values > CONSTANT * values[-1]
    return float(((V.mT @ m)[varies].square() / values[varies]).sum().sqrt())
