"""The form refitted to resamples, each with a family of its own: where its errors come from."""

from __future__ import annotations

import torch
from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.looks import LAST, few_for, robust_weights
from gortho.discovery.projection import Projection
from gortho.discovery.search import Progress, Search
from gortho.discovery.settings import Settings
from gortho.discovery.workers import each
from gortho.samples.values import Samples

#: Steps of a refit, and how many of its own standard errors from the end of the search it starts.
REFIT_STEPS, SHAKE = 8, 4.0
#: Families of refits: smoothness, and unknowns as shares of those of the last look.
SOFTNESS, FAMILIES = (0.03, 0.015, 0.06), (1.0, 0.7)


def refit(
    samples: Samples,
    found: Search,
    *,
    settings: Settings,
    seed: int,
    clock: Clock,
    progress: Progress,
    degree: int | None = None,
) -> Tensor:
    """The form refitted to resamples, ``(refits, n, n)``, ‖A‖ = √n, each with a family of its own.

    A law that is known to be a polynomial of some degree is refitted as such.

    Samples get random weights (the Bayesian bootstrap), the family other waves: the spread holds both the chance of the
    samples and the imperfection of the family.
    """
    whole = found.objective.prepared(samples)
    few, columns = few_for(whole, LAST)
    jobs = [(few, columns, found.A, seed * 104_729 + r, degree) for r in range(settings.refits)]
    forms: list[Tensor] = []
    step = max(1, settings.workers)
    for first in range(0, len(jobs), step):
        if len(forms) >= 4 and clock.over():
            break
        forms += each(_resampled, jobs[first : first + step], settings.workers)
        progress(len(forms) / len(jobs), found.A)
    # The end of the search is one more estimate.
    return align_signs(torch.stack([found.A, *forms]), found.A)


def _resampled(samples: Samples, columns: int, A: Tensor, seed: int, degree: int | None) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    samples = samples.bootstrapped(generator)
    soft, share = SOFTNESS[seed % len(SOFTNESS)], FAMILIES[seed % len(FAMILIES)]
    projection = Projection(samples, int(share * columns), samples.weights, seed, soft, degree)
    at = projection.solve(A)
    if degree is None:
        projection = projection.reweighted(robust_weights(projection, at))
        at = projection.solve(A)
    return projection.refine(projection.shaken(at, SHAKE, generator), REFIT_STEPS).A


def align_signs(matrices: Tensor, A: Tensor) -> Tensor:
    """The matrices with the signs that bring them nearest to A (M2)."""
    return matrices * torch.where((matrices * A).sum((1, 2), keepdim=True) < 0, -1.0, 1.0)
