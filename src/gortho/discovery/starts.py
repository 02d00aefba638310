"""Where the search starts: correlations (M11), the spectral solution (M6), plain forms in both frames (M12)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gortho.discovery.correlation import (
    SAMPLES_FOR_EACH,
    SPLINES,
    alternate,
    correlate,
    invariant_scalars,
    splines,
)
from gortho.discovery.spectral import stabiliser_form
from gortho.groups import haar, random_generator
from gortho.samples.frame import Frame, form_distance, unit_form
from gortho.samples.values import Samples

#: Samples that correlations look at.
CORRELATED = 20_000
#: Scalars made of x and y that correlations are taken with, at most.
SCALARS = 6
#: Samples that the stabiliser's linear solve looks at.
SOLVED = 400
#: Starts nearer to each other than this are one.
SAME = 0.02


@dataclass(frozen=True)
class Start:
    """A form to start from, in the frame, and where it comes from."""

    label: str
    A: Tensor


def signatures(n: int) -> list[tuple[int, int]]:
    """Non-singular signatures that differ as groups: p of one sign, p = 0 … n//2."""
    return [(p, n - p) for p in range(n // 2 + 1)]


def correlation_starts(samples: Samples) -> list[Start]:
    """Forms whose quadratics correlate with functions of y, or of scalars made of x and y."""
    few = samples.rows(slice(0, CORRELATED))
    found: list[tuple[float, Tensor]] = []
    for s in invariant_scalars(few).unbind(1)[:SCALARS]:
        for c in correlate(few.x, s):
            found.append((c.strength * c.share, c.A))
        if few.points > 1:
            functions = splines(s, max(4, min(SPLINES, len(s) // SAMPLES_FOR_EACH)))
            forms = [A for _, A in found[-3:]] + [start.A for start in white_starts(few.n, 4, 0)]
            for A in forms:
                a = alternate(few.x, functions, A)
                found.append((a.strength, a.A))
    found.sort(key=lambda pair: -pair[0])
    return distinct([Start("correlation", A) for _, A in found])[:6]


def stabiliser_starts(samples: Samples) -> list[Start]:
    """The form by which tensors are fixed under whatever fixes the inputs, where that tells it (M6)."""
    few = samples.rows(slice(0, SOLVED))
    found = stabiliser_form(few.x, few.y, few.rep)
    return [] if found is None else [Start("stabiliser", unit_form(found[0]))]


def given_starts(frame: Frame) -> list[Start]:
    """Plain forms in the given coordinates, whose columns often share a unit: diag(±1), one sign alone in turn."""
    n, inverse = frame.n, frame.inverse
    diagonals = [torch.ones(n, dtype=torch.float64)]
    for axis in (0, n - 1) if n > 2 else (0,):
        diagonals.append(torch.ones(n, dtype=torch.float64).index_fill(0, torch.tensor([axis]), -1.0))
    if n > 3:
        diagonals.append(torch.tensor([1.0 if i < n // 2 else -1.0 for i in range(n)], dtype=torch.float64))
    return [Start("given axes", unit_form(inverse.mT * d @ inverse)) for d in diagonals]


def white_starts(n: int, count: int, seed: int) -> list[Start]:
    """Forms with eigenvalues ±1 in the frame, every signature in turn, turned at random."""
    generator = random_generator(seed)
    chosen = []
    for r in range(count):
        p, _ = signatures(n)[r % (n // 2 + 1)]
        signs = torch.tensor([-1.0] * p + [1.0] * (n - p), dtype=torch.float64)
        Q = haar(n, (), generator)
        sizes = 0.5 + torch.rand(n, dtype=torch.float64, generator=generator)
        chosen.append(Start("white", unit_form(Q * (signs * sizes) @ Q.mT)))
    return chosen


def distinct(starts: list[Start]) -> list[Start]:
    """The starts without repetitions, the first of each kept."""
    kept: list[Start] = []
    for start in starts:
        if all(form_distance(start.A, other.A) > SAME for other in kept):
            kept.append(start)
    return kept
