"""Errors of the form, from refits, and the certificate that a predictor respects it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from scipy.stats import t as student_t
from torch import Tensor

from gortho.discovery.refits import align_signs
from gortho.discovery.verdict import ZERO_BOUND, ZERO_ERRORS, ZERO_SHARE
from gortho.forms import QuadraticForm
from gortho.reps import Rep
from gortho.samples.frame import Frame, form_distance, unit_form
from gortho.samples.values import Samples
from gortho.symmetry import Symmetry
from gortho.testing import equivariance_error

#: Largest rapidities at which the certificate of equivariance is measured.
BOOSTS = (0.25, 0.5, 1.0, 2.0, 3.0)
#: The spread of refits understates errors by this factor: so measured on the development seeds of the benchmarks.
UNDERSTATED = 1.8
#: Neighbouring eigenvalues count as distinct beyond this many times the sum of their errors.
APART = 2.0
#: The 95th percentile of the norm of a random symmetric matrix over its root mean square, by the dimension from one on.
NORMS = (1.96, 1.64, 1.48, 1.40, 1.34)
#: A refit strays where it is this many times as far from the middle of all as the median one; one in this many may.
STRAYS, ONE_IN = 5.0, 4
#: Errors of the form are not smaller than this share of its largest entry.
ROUNDING = 1e-9
#: A share of the variance that is left over below this is digits or a misfit, not noise that samples average away.
DIGITS = 1e-8


@dataclass(frozen=True)
class Spread:
    """How far refits are from the form, in the frame."""

    distances: tuple[float, ...]
    signature_votes: float  # share of refits with the form's signature
    weakest_eigenvalue: float  # smallest |λ| over its standard error as it is told, zero directions left out


def steady(matrices: Tensor, frame: Frame) -> Tensor:
    """The end of the search, the first, and its refits, without a few that stray while all others agree.

    Both in the given coordinates, of the forms in the frame. Normal errors lead nowhere that far, so errors of other
    forms are not narrowed by this.
    """
    given = unit_form(frame.W.mT @ matrices @ frame.W)
    given = align_signs(given, given[0])
    distances = torch.linalg.matrix_norm(given - given.median(0).values)
    strays = distances > STRAYS * distances.median()
    strays[0] = False
    return matrices if int(strays.sum()) * ONE_IN > len(given) - 1 else matrices[~strays]


def _eigenvalue_errors(A: Tensor, matrices: Tensor) -> Tensor:
    """Errors of the eigenvalues by first-order perturbation: δλ_i = v_iᵀ δA v_i."""
    _, Q = torch.linalg.eigh(A)
    return torch.einsum("ai,rab,bi->ri", Q, matrices, Q).std(0)


def without_noise_eigenvalues(A: Tensor, matrices: Tensor | None, frame: Frame) -> tuple[Tensor, int]:
    """A, in the frame, without eigenvalues that are small and not told from zero by the refits, and how many.

    Along a direction in which the inputs hardly vary, every eigenvalue is small in the frame: there it must be smaller
    still, as measured in columns of unit size.
    """
    if matrices is None:
        return A, 0
    values, Q = torch.linalg.eigh(A)
    back = frame.inverse
    varies = (back / back.norm(dim=1, keepdim=True) @ Q).square().sum(0).clamp(max=1.0)
    errors = _eigenvalue_errors(A, matrices)
    size = values.abs() / values.abs().max()
    errors = errors / values.abs().max()
    is_zero = (size < ZERO_SHARE) & (size < ZERO_ERRORS * errors + 1e-6)
    is_zero &= size + 2 * errors < ZERO_BOUND * varies
    if not bool(is_zero.any()) or bool(is_zero.all()):
        return A, 0
    return unit_form(Q * torch.where(is_zero, 0.0, values) @ Q.T), int(is_zero.sum())


def _with_null(A: Tensor, zero: int) -> Tensor:
    """A with its ``zero`` smallest eigenvalues set to zero."""
    values, Q = torch.linalg.eigh(A)
    return Q * values.index_fill(0, values.abs().argsort()[:zero], 0.0) @ Q.T


def spread(A: Tensor, matrices: Tensor, zero: int, frame: Frame | None = None) -> Spread:
    """How far the refits, without the end of the search that stands first, are from A, with its null directions.

    A sign is known as far as the error bars that are told allow it, so eigenvalues have the factor of these, and
    refits that stray in the given coordinates are left out of both.
    """
    forms = [_with_null(M, zero) for M in matrices[1:]]
    signature = QuadraticForm(A).signature
    values = torch.linalg.eigvalsh(A).abs()
    seen = values > 1e-9 * values.max()
    errors = UNDERSTATED * _eigenvalue_errors(A, matrices if frame is None else steady(matrices, frame))
    return Spread(
        tuple(form_distance(M, A) for M in forms),
        float(np.mean([QuadraticForm(M).signature == signature for M in forms])),
        float((values[seen] / errors[seen].clamp_min(1e-12)).min()),
    )


def given_errors(
    frame: Frame,
    candidate: QuadraticForm,
    matrices: Tensor,
    polynomial: bool = False,
    draws: Tensor | None = None,
    left: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Standard errors of the entries and of the eigenvalues of the gauge-fixed form, in the given coordinates.

    Refits with features share some of their imperfections, so their spread is widened; those of a polynomial do not.
    Errors are not below those of ``draws``, which the noise makes, where there are any; nor below what a misfit can do
    that leaves the share ``left`` of the variance, where this is no noise.
    """
    # Rounding is that of the frame: each entry has its own units.
    units = (
        frame.W.norm(dim=0) * torch.linalg.matrix_norm(frame.W.mT @ unit_form(matrices[0]) @ frame.W) ** -0.5
    )
    share = max(ROUNDING, left**0.5 if left < DIGITS else 0.0)
    rounding = share * candidate.n**0.5 * torch.outer(units, units)
    _, Q = torch.linalg.eigh(candidate.matrix)
    least = rounding, (Q.mT.abs() @ rounding @ Q.abs()).diagonal()
    factor = 1.0 if polynomial else UNDERSTATED
    # Intervals are made with Student's t of the few refits; draws are as many as one likes.
    of_few = norm.ppf(0.975) / student_t.ppf(0.975, max(1, len(matrices) - 1))
    for forms, times in ((steady(matrices, frame), factor), (draws, float(of_few))):
        if forms is not None:
            found = _errors_of(candidate.matrix, unit_form(frame.W.mT @ forms @ frame.W), times)
            least = torch.maximum(least[0], found[0]), torch.maximum(least[1], found[1])
    return least[0].numpy(), least[1].numpy()


def _errors_of(A: Tensor, forms: Tensor, factor: float) -> tuple[Tensor, Tensor]:
    """Errors of entries and eigenvalues by a spread of forms, which is widened by a factor."""
    forms = align_signs(forms, A)
    return factor * forms.std(0), _of_clusters(A, factor * (forms - forms.mean(0)))


def _of_clusters(A: Tensor, moves: Tensor) -> Tensor:
    """Errors of the eigenvalues, in order of size, where A moves by these symmetric matrices.

    Those that are not told apart push each other away, so that the largest of them is found too large and the smallest
    too small: each is as far off as the norm of what moves them all.
    """
    values, Q = torch.linalg.eigh(A)
    inside = Q.mT @ moves @ Q
    alone = inside.diagonal(dim1=1, dim2=2).std(0)
    apart = values.diff() > APART * (alone[1:] + alone[:-1])
    errors = torch.empty_like(alone)
    ends = [0, *(torch.nonzero(apart)[:, 0] + 1).tolist(), len(values)]
    for first, last in pairwise(ends):
        block = torch.linalg.matrix_norm(inside[:, first:last, first:last], ord=2)
        size = min(last - first, len(NORMS))
        errors[first:last] = (block.square().sum() / (len(moves) - 1)).sqrt() * NORMS[size - 1] / NORMS[0]
    return errors


def certificate(
    net: Callable[..., Tensor],
    symmetry: QuadraticForm | Symmetry,
    rep: Rep,
    held_out: Samples,
    kinds: Any = "vector",
    output_space: int = 0,
) -> dict[float, float]:
    """Relative equivariance error by largest boost, on held-out samples in the given coordinates, in float64."""
    few = held_out.rows(slice(0, 64))
    more: dict[str, Any] = {"samples": 4, "arguments": few.scalars, "output_space": output_space}
    return {
        boost: equivariance_error(net, symmetry, kinds, rep, few.x, max_boost=boost, **more)
        for boost in BOOSTS
    }
