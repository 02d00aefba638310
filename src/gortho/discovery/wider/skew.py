"""Skew forms in the search: where it starts, and how far refits are from its end (M11, M17)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gortho.discovery.correlation import (
    SAMPLES_FOR_EACH,
    SPLINES,
    correlate,
    invariant_scalars,
    splines,
    strongest,
)
from gortho.discovery.refits import align_signs
from gortho.discovery.spreads import ROUNDING, UNDERSTATED, Spread
from gortho.discovery.starts import CORRELATED, SCALARS
from gortho.groups import haar, random_generator, skew_basis
from gortho.reps import Rep
from gortho.samples.frame import Frame, form_distance, unit_form
from gortho.samples.values import Samples
from gortho.skew import SkewForm, complex_structure

#: Skew forms at random, of each signature beside a quadratic form, and that correlations give, at most.
WHITE, HERMITIAN, CORRELATIONS = 12, 8, 8
#: How far K² may be from -1 in a complex structure K.
NO_STRUCTURE = 1e-6
#: Singular values below this share of the largest, in the frame, are zero.
ZERO = 1e-8


def wedges(x: Tensor) -> Tensor:
    """x_i ∧ x_j for pairs of vectors ``(N, k, n)``: ``(N, pairs, n(n-1)/2)``."""
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
    a, b = torch.triu_indices(x.shape[2], x.shape[2], 1)
    return x[:, i][:, :, a] * x[:, j][:, :, b] - x[:, i][:, :, b] * x[:, j][:, :, a]


def correlated(samples: Samples) -> list[Tensor]:
    """Skew forms whose products, or squares of products, correlate with functions of y (M11).

    ω(x_i, x_j) is linear in x_i ∧ x_j, and its square is a quadratic form of rank one there.
    """
    if samples.points < 2:
        return []
    few, n = samples.rows(slice(0, CORRELATED)), samples.n
    W = wedges(few.x)
    found: list[Tensor] = []
    for s in invariant_scalars(few).unbind(1)[:SCALARS]:
        functions = splines(s, max(4, min(SPLINES, len(s) // SAMPLES_FOR_EACH)))
        v = strongest(W.flatten(1), functions).reshape(W.shape[1:])
        found.append(torch.linalg.svd(v, full_matrices=False)[2][0])
        for c in correlate(W, s)[:1]:
            values, Q = torch.linalg.eigh(c.A)
            found += list(Q[:, values.abs().argsort(descending=True)[:2]].mT)
    basis = skew_basis(n)
    return [unit_form(torch.tensordot(v, basis, dims=1)) for v in found][:CORRELATIONS]


def white(n: int, count: int, seed: int) -> list[Tensor]:
    """Skew forms with singular values of about one in the frame, turned at random."""
    generator = random_generator(seed)
    found = []
    for Q in _both_hands(n, count, generator):
        sizes = 0.5 + torch.rand(n // 2, dtype=torch.float64, generator=generator)
        plain = SkewForm.canonical(n // 2 * 2, n % 2).matrix.clone()
        plain[: n // 2, n // 2 : n // 2 * 2] = torch.diag(sizes)
        plain[n // 2 : n // 2 * 2, : n // 2] = -torch.diag(sizes)
        found.append(unit_form(Q @ plain @ Q.mT))
    return found


def skew_starts(samples: Samples, seed: int) -> list[Tensor]:
    """Skew forms to start from."""
    n = samples.n
    return correlated(samples) + white(n, 1 if n == 2 else WHITE, seed)  # in a plane there is but one


def hermitian_starts(samples: Samples, known: Sequence[Tensor], seed: int) -> list[tuple[Tensor, Tensor]]:
    """Pairs of a quadratic form and a compatible skew one: known forms, and hermitian ones of every signature."""
    n, m = samples.n, samples.n // 2
    eye = torch.eye(n, dtype=torch.float64)
    skew = correlated(samples)[:3] + white(n, WHITE // 2, seed)
    forms = (eye, *known[:1])
    found = [(A, A @ K) for A in forms for K in _slopes(samples)] + [(A, w) for A in forms for w in skew]
    found = [(A, compatible_with(A, (w - w.mT) / 2)) for A, w in found]
    for place, Q in enumerate(_both_hands(n, HERMITIAN, random_generator(seed))):
        q = place // 2 % (m // 2 + 1)
        signs = torch.tensor([1.0] * (m - q) + [-1.0] * q, dtype=torch.float64)
        J = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
        A, omega = torch.diag(signs.repeat(2)), torch.kron(J, torch.diag(signs))
        found.append((Q @ A @ Q.mT, Q @ omega @ Q.mT))
    return [(A, omega) for A, omega in found if hermitian(A, omega)]


def hermitian(A: Tensor, omega: Tensor) -> bool:
    """Whether there is a complex structure of the two: there is none where A⁻¹ω has real eigenvalues."""
    K = complex_structure(A, omega)
    return bool(((K @ K + torch.eye(len(A), dtype=K.dtype)).abs() < NO_STRUCTURE).all())


def _both_hands(n: int, count: int, generator: torch.Generator) -> list[Tensor]:
    """Random orthogonal matrices, each followed by its mirror image: skew forms of both orientations, that is."""
    found = []
    for Q in haar(n, ((count + 1) // 2,), generator):
        found += [Q, torch.cat([-Q[:, :1], Q[:, 1:]], 1)]
    return found[:count]


def one_vector(rep: Rep) -> bool:
    """Whether the output is one vector, polar or axial."""
    return [(part.up, part.down) for part in rep.parts] == [(1, 0)]


def _slopes(samples: Samples) -> list[Tensor]:
    """Mean slopes of a vector y by each input vector, without their trace: multiples of K where y has terms Kx."""
    if not one_vector(samples.rep):
        return []
    L = torch.linalg.lstsq(samples.x.flatten(1), samples.y).solution.mT  # (n, p·n)
    eye = torch.eye(samples.n, dtype=L.dtype)
    return [block - block.trace() / samples.n * eye for block in L.split(samples.n, 1)]


def compatible_with(A: Tensor, omega: Tensor) -> Tensor:
    """The skew form AK, of size √n, that is compatible with A and nearest in kind to ω."""
    AK = A @ complex_structure(A, omega)
    return unit_form((AK - AK.mT) / 2)


def skew_spread(omega: Tensor, refits: Sequence[Tensor]) -> Spread:
    """How far refits are from ω: as for forms, with the eigenvalues of the hermitian iω for those of A."""
    values, Q = torch.linalg.eigh(1j * omega)
    matrices = torch.stack([omega, *refits]).to(Q)
    errors = torch.einsum("ai,rab,bi->ri", Q.conj(), 1j * matrices, Q).real.std(0)
    seen = values.abs() > ZERO * values.abs().max()
    ranks = [
        int((torch.linalg.svdvals(M) > ZERO * torch.linalg.svdvals(M)[0]).sum()) for M in (omega, *refits)
    ]
    return Spread(
        tuple(form_distance(M, omega) for M in refits),
        float(np.mean([rank == ranks[0] for rank in ranks[1:]])),
        float((values.abs()[seen] / errors[seen].clamp_min(1e-12)).min()),
    )


def skew_out(frame: Frame, omega: Tensor, names: Sequence[str]) -> SkewForm:
    """A skew form of the frame in the given coordinates; what counts as zero is told in the frame (M18)."""
    out = frame.W.mT @ omega @ frame.W
    inside, outside = (torch.linalg.svdvals(M) for M in (omega, out))
    rank = int((inside > ZERO * inside[0]).sum())
    sizes = torch.cat([outside / outside[0], torch.zeros(1, dtype=outside.dtype)])
    return SkewForm(out, names, min(ZERO, float(sizes[rank - 1] + sizes[rank]) / 2))


def skew_errors(frame: Frame, skew: SkewForm, matrices: Tensor, exact: bool) -> tuple[tuple[float, ...], ...]:
    """Standard errors of the entries of a skew form in the given coordinates, widened unless the law is exact."""
    forms = align_signs(unit_form(frame.W.mT @ matrices @ frame.W), skew.matrix)
    errors = (1.0 if exact else UNDERSTATED) * forms.std(0)
    return tuple(map(tuple, errors.clamp_min(ROUNDING * float(skew.matrix.abs().max())).tolist()))
