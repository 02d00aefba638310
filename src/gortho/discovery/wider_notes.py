"""What else the data shows: that only differences of vectors matter, or only products by a skew form (M16, M17)."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gortho.discovery.correlation import SAMPLES_FOR_EACH, SPLINES, splines, strongest
from gortho.discovery.looks import LAST, NEARLY_EXACT, projections
from gortho.discovery.models import KernelRidge, Table, squared_errors
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Parts
from gortho.discovery.result import Discovery
from gortho.discovery.search import FINAL_ROUNDS, NEAR_BEST
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: A skew form is spoken of where its products leave less than this share of the variance unexplained.
SKEW_LEAVES = 0.05
#: Samples that translations are looked for in.
NOTED = 5_000
TRANSLATIONS = "only differences of the vectors matter: the law does not change with translations, either"


def differences(samples: Samples) -> Samples | None:
    """The samples with differences of their vectors alone; None where these are no samples of the same kind."""
    x = samples.x
    if samples.points < 2 or samples.point_scalars is not None or samples.mask is not None:
        return None
    return replace(samples, x=x - x.mean(1, keepdim=True) if samples.set_like else x[:, 1:] - x[:, :1])


def translations(A: Tensor, samples: Samples, seed: int) -> bool:
    """Whether a law with a form is explained as well by differences of the vectors."""
    apart = differences(samples)
    if apart is None:
        return False
    left = [
        projections(s, LAST, [FINAL_ROUNDS[-1][0]], seed + 4)[0].solve(A).criterion for s in (samples, apart)
    ]
    return left[1] <= NEAR_BEST * left[0] + NEARLY_EXACT


def with_translations(found: Discovery, posed: Posed, seed: int) -> Discovery:
    """The discovery with a note, where translations change nothing."""
    if found.form is None or found.classes:
        return found
    parts = posed.weighted(found.provenance.errors)
    if not translations(posed.frame.form_in(found.form), parts.train.rows(slice(0, NOTED)), seed):
        return found
    return replace(found, notices=(*found.notices, TRANSLATIONS))


def skew_products(x: Tensor) -> Tensor:
    """x_i ∧ x_j for pairs of vectors ``(N, k, n)``: ``(N, pairs, n(n-1)/2)``."""
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
    a, b = torch.triu_indices(x.shape[2], x.shape[2], 1)
    return x[:, i][:, :, a] * x[:, j][:, :, b] - x[:, i][:, :, b] * x[:, j][:, :, a]


def skew_form(parts: Parts) -> tuple[Tensor, float] | None:
    """The skew J whose products x_iᵀJx_j explain a scalar best, and what they leave of the variance (M17)."""
    train, k, n = parts.train, parts.train.points, parts.train.n
    if k < 2 or train.set_like or train.y.ndim > 1:
        return None
    wedge = skew_products(train.x)
    functions = splines(train.y, max(4, min(SPLINES, len(train) // SAMPLES_FOR_EACH)))
    v = strongest(wedge.flatten(1), functions).reshape(wedge.shape[1:])
    _, _, V = torch.linalg.svd(v, full_matrices=False)  # C ⊗ J, as for symmetric forms (M11)
    J = torch.zeros(n, n, dtype=wedge.dtype)
    a, b = torch.triu_indices(n, n, 1)
    J[a, b] = V[0]
    tables = [Table.of(skew_products(s.x) @ V[0], s) for s in (train, parts.validation, parts.held_out)]
    model = KernelRidge.fit(tables[0], tables[1])
    errors = squared_errors(model(tables[2].inputs)[:, 0], parts.held_out)
    return unit_form(J - J.mT), float(errors.mean()) / parts.held_out.variance


def skew_note(posed: Posed, parts: Parts) -> list[str]:
    """A word on the skew form that explains the targets, if one does."""
    found = skew_form(parts)
    if found is None or found[1] > SKEW_LEAVES:
        return []
    J = unit_form(posed.frame.W.mT @ found[0] @ posed.frame.W)
    rank = int(torch.linalg.matrix_rank(found[0], rtol=1e-2))
    kept = f"Sp({rank})" if rank == len(J) else f"a skew form of rank {rank}"
    entries = "; ".join(
        f"{float(J[i, j]):+.3f} ({posed.given.train.names[i]} ∧ {posed.given.train.names[j]})"
        for i in range(len(J))
        for j in range(i + 1, len(J))
    )
    return [
        f"the targets depend on the vectors by products x_iᵀJx_j of a skew form alone, {kept}: they leave "
        f"{100 * found[1]:.2g} % of the variance unexplained; J = {entries}. There is no predictor for it"
    ]
