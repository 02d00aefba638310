"""Starts by correlation: some function of y is a quadratic of x; one eigenproblem finds both (M11)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.interpolate import BSpline
from torch import Tensor

from gortho.discovery.spectral import of_entries
from gortho.reps import Conjugation, Covector, Form, Vector
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: Smooth functions of y: cubic B-splines of its ranks, this many at most, and samples for each of them at least.
SPLINES, SAMPLES_FOR_EACH = 12, 15
#: Monomials are correlated as long as there are this many samples for each of them.
SAMPLES_FOR_MONOMIAL = 3
#: Directions of the moments below this share of the largest are not seen.
SEEN = 1e-10
#: Canonical directions that are looked at.
DIRECTIONS = 3
#: Steps in which the two factors of a form that vectors share are fitted in turn, at most.
TURNS = 6


@dataclass(frozen=True)
class Correlation:
    """A form in the frame, how well its quadratic correlates with functions of y, and how far all vectors share it."""

    A: Tensor
    strength: float
    share: float
    origin: Tensor | None = None  # where the quadratic with its linear part has its centre


def splines(y: Tensor, count: int | None = None) -> Tensor:
    """Smooth functions of y: B-splines of its ranks, ``(N, count)``, as many as the samples allow by default."""
    count = max(4, min(SPLINES, len(y) // SAMPLES_FOR_EACH)) if count is None else count
    order = y.argsort()
    ranks = torch.empty_like(y)
    ranks[order] = (torch.arange(len(y), dtype=y.dtype) + 0.5) / len(y)
    return spline_values(ranks, count)


def spline_values(ranks: Tensor, count: int) -> Tensor:
    """Cubic B-splines on [0, 1] at ranks ``(N,)``."""
    knots = np.r_[[0] * 3, np.linspace(0, 1, count - 2), [1] * 3]
    return torch.as_tensor(BSpline.design_matrix(ranks.clamp(0, 1).numpy(), knots, 3).toarray())


def monomials(z: Tensor, out: Tensor) -> None:
    """Quadratic and linear monomials of the stacked tuple, into ``out (N, m(m+1)/2 + m)`` with m = p·n."""
    flat = z.flatten(1)
    m, at = flat.shape[1], 0
    for i in range(m):
        torch.mul(flat[:, i:], flat[:, i : i + 1], out=out[:, at : at + m - i])
        at += m - i
    out[:, at:] = flat


@dataclass(frozen=True)
class Moments:
    """Σ w vvᵀ over samples for v = (1, monomials of z, splines of y): they add up over chunks of data."""

    points: int
    n: int
    total: Tensor

    @classmethod
    def of(cls, z: Tensor, functions: Tensor) -> Moments:
        """The moments of vectors ``(N, p, n)`` in their frame and functions of y ``(N, m)``."""
        k, n = z.shape[1:]
        weight = 1 / (1 + z.square().sum((1, 2)) / (k * n))  # heavy tails count less
        size = k * n * (k * n + 3) // 2
        v = z.new_ones(len(z), 1 + size + functions.shape[1])  # one piece of memory: chunks of data are many
        monomials(z, v[:, 1 : 1 + size])
        v[:, 1 + size :] = functions
        v *= weight[:, None]
        return cls(k, n, v.mT @ v)

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.points, self.n, self.total + other.total)

    def correlations(self) -> list[Correlation]:
        """The forms of the first canonical directions, the strongest first."""
        m = self.points * self.n
        size = m * (m + 1) // 2 + m
        S = self.total[1:, 1:] - self.total[1:, :1] * self.total[:1, 1:] / self.total[0, 0]
        combinations, strengths = _canonical(S[:size, :size], S[:size, size:], S[size:, size:])
        found = []
        for v, strength in list(zip(combinations.unbind(1), strengths.tolist()))[:DIRECTIONS]:
            quadratic, linear = v.split([size - m, m])
            M = of_entries(quadratic, m)
            A, share = nearest_kronecker(M, self.points)
            if float(torch.linalg.matrix_norm(A)) > 0:
                found.append(Correlation(unit_form(A), strength, share, _centre(M, linear, self.points)))
        return found


def _centre(M: Tensor, linear: Tensor, points: int) -> Tensor:
    """The c, alike for all vectors, at which zᵀMz + bᵀz is nearest to (z - c)ᵀM(z - c) + constant: 2Mc = -b."""
    n = len(M) // points
    return torch.linalg.lstsq(2 * M.unflatten(1, (points, n)).sum(1), -linear[:, None]).solution[:, 0]


def _canonical(FF: Tensor, FH: Tensor, HH: Tensor) -> tuple[Tensor, Tensor]:
    """Combinations of F that correlate best with such of H, as columns, and how strongly; from FᵀF, FᵀH and HᵀH."""
    left, right = _root_inverse(FF), _root_inverse(HH)
    U, strengths, _ = torch.linalg.svd(left.mT @ FH @ right, full_matrices=False)
    return left @ U, strengths


def _root_inverse(S: Tensor) -> Tensor:
    """V with VᵀSV = I on the directions that S sees."""
    unit = S.diagonal().clamp_min(1e-300).sqrt()
    values, Q = torch.linalg.eigh(S / unit[:, None] / unit)
    seen = values > SEEN * values[-1]
    return (Q[:, seen] / values[seen].sqrt()) / unit[:, None]


def nearest_kronecker(M: Tensor, points: int) -> tuple[Tensor, float]:
    """The symmetric A of the C ⊗ A nearest to M, and the share of M that it is."""
    n = len(M) // points
    T = M.reshape(points, n, points, n).permute(0, 2, 1, 3).reshape(points**2, n * n)
    _, sigma, V = torch.linalg.svd(T, full_matrices=False)
    A = V[0].reshape(n, n)
    return (A + A.mT) / 2, float(sigma[0] ** 2 / sigma.square().sum().clamp_min(1e-300))


def strongest(F: Tensor, functions: Tensor) -> Tensor:
    """The combination of columns ``F (N, m)`` that correlates best with functions of y, as coefficients ``(m,)``."""
    F, H = (M - M.mean(0) for M in (F, functions))
    return _canonical(F.mT @ F, F.mT @ H, H.mT @ H)[0][:, 0]


def correlate(z: Tensor, y: Tensor) -> list[Correlation]:
    """The forms that quadratics of the vectors ``z (N, p, n)`` have in common with functions of ``y (N,)``."""
    N, k, n = z.shape
    m = k * n
    if SAMPLES_FOR_MONOMIAL * (m * (m + 1) // 2 + m) > N:
        return []
    return Moments.of(z, splines(y)).correlations()


def alternate(z: Tensor, functions: Tensor, A: Tensor) -> Correlation:
    """From a form, the C and A in turn whose Σ C_ij ⟨z_i, z_j⟩ correlates best with functions of y.

    Where vectors share a form this has k(k+1)/2 + n(n+1)/2 unknowns in place of the monomials of all of them.
    """
    k, n = z.shape[1:]
    weight = 1 / (1 + z.square().sum((1, 2)) / (k * n))
    one = weight[:, None] / weight.norm()

    def centred(F: Tensor) -> Tensor:
        F = F * weight[:, None]
        return F - one @ (one.mT @ F)

    def best(F: Tensor) -> tuple[Tensor, float]:
        F = centred(F)
        combinations, strengths = _canonical(F.mT @ F, F.mT @ H, H.mT @ H)
        return combinations[:, 0], float(strengths[0])

    H, strength = centred(functions), 0.0
    i, j = torch.triu_indices(k, k)
    a, b = torch.triu_indices(n, n)
    for _ in range(TURNS):
        c, _ = best((z @ A @ z.mT)[:, i, j])
        M = torch.einsum("zia,ij,zjb->zab", z, of_entries(c, k), z)
        v, new = best(M[:, a, b])
        A = unit_form(of_entries(v, n))
        if new < strength + 1e-4:
            break
        strength = new
    return Correlation(A, strength, 1.0)


def invariant_scalars(samples: Samples) -> Tensor:
    """Those of the `scalar_values` that vary, ``(N, m)``."""
    values = scalar_values(samples)
    return values[:, varying(values)]


def varying(values: Tensor) -> Tensor:
    """Which columns are finite and not constant."""
    if not values.shape[1]:
        return torch.zeros(0, dtype=torch.bool)
    spread = values.amax(0) - values.amin(0)
    return (spread > 1e-9 * values.abs().amax(0)) & values.isfinite().all(0)


def scalar_values(samples: Samples) -> Tensor:
    """Numbers made of x and y that no element of the group changes, whatever the form is, ``(N, m)``.

    Coefficients of a vector in the basis of the inputs; pairings of inputs with covectors and forms; traces.
    """
    x, y, rep = samples.x, samples.y, samples.rep
    k, n = samples.points, samples.n
    found: list[Tensor] = []
    for part, v in zip(rep.parts, rep.split(y, n)):
        if part.rank == 0:
            found.append(v[:, None])
        elif part == Vector() and k <= n:
            found.append(torch.linalg.lstsq(x.mT, v[:, :, None]).solution[:, :, 0])
        elif part == Covector():
            found.append((x @ v[:, :, None])[:, :, 0])
        elif part == Conjugation():
            found.append(torch.stack([M.diagonal(dim1=1, dim2=2).sum(1) for M in (v, v @ v)], 1))
        elif part == Form():
            found.append((x @ v @ x.mT).flatten(1))
    return torch.cat(found, 1) if found else x.new_zeros(len(x), 0)
