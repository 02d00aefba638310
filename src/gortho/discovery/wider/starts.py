"""Where searches for wider symmetries start: forms, directions, origins that the data suggest (M11, M16)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import torch
from torch import Tensor

from gortho.discovery.correlation import correlate, invariant_scalars
from gortho.discovery.starts import CORRELATED, SCALARS, Start, distinct, quadratic_monomials, white_starts
from gortho.discovery.wider.claim import Claim, filled
from gortho.discovery.wider.skew import hermitian_starts, one_vector, skew_starts
from gortho.groups import haar, random_generator, symmetric_basis
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: Forms at random, forms of each space, directions at random, and directions in all, at most.
WHITE, OF_SPACE, RANDOM, VECTORS = 8, 5, 3, 8
#: Forms of the first of several spaces that move together.
OF_LINKED = 6
#: Samples at which slopes of scalars are taken, neighbours for each number of a slope, and rounds that let go of
#: samples where slopes say something else.
SLOPED, NEIGHBOURS, ROUNDS = 1_500, 5, 5
#: Covectors at random that slopes are looked at beside, at so many samples, and the best of these.
SCANNED, SCANNED_AT, SCANNED_BEST = 200, 500, 3


def starts_for(
    claim: Claim, samples: Samples, known: list[Tensor], seed: int, before: list[Tensor]
) -> list[Tensor]:
    """θ to start from: every form with every direction or origin that comes to mind.

    ``before`` are good θ with one direction less.
    """
    few = samples.rows(slice(0, CORRELATED))
    n = few.n
    if claim.skew:
        return [claim.join(omega) for omega in skew_starts(few, seed)]
    if claim.unitary:
        return [claim.join(torch.stack(pair)) for pair in hermitian_starts(few, known, seed)]
    if claim.linked:
        return [claim.join(torch.stack(pair)) for pair in linked_starts(claim, few, seed)]
    if claim.spaces:
        each = [forms_of_space(claim, few, space, OF_SPACE, seed) for space in range(claim.forms)]
        return [claim.join(torch.stack(forms)) for forms in product(*each)]
    # Forms that were found before, the round one, and some of every signature.
    plain = [*known, torch.eye(n, dtype=torch.float64)]
    forms = [start.A for start in distinct([Start("plain", A) for A in plain] + white_starts(n, WHITE, seed))]
    if claim.origin:
        found = [claim.join(A, None, c) for A, c in [*_correlated_origins(few), *_sloped_origins(few)]]
        return found + [claim.join(A, None, c) for A in forms for c in _origins(few)]
    if not claim.directions:
        return [claim.join(A) for A in [*_orthogonal(few), *forms]]
    covectors, vectors = [*_never_along(few), *_covectors(few)], _vectors(few)
    vectors += list(haar(n, (), random_generator(seed))[:RANDOM])
    if claim.directions == 1:
        less = [(A, torch.zeros(0, n, dtype=A.dtype)) for A in forms]
    else:
        less = [(theta[: n * n].reshape(n, n), theta[n * n :].reshape(-1, n)) for theta in before]
    found = [claim.join(A, s) for s in _unseen(few, claim.directions) for A in forms]
    if claim.directions == 1:
        sloped = _sloped_directions(few, seed)
        found += [claim.join(A, (torch.linalg.pinv(A) @ a)[None]) for A, a in sloped]
    for A, s in less:
        inverse = torch.linalg.pinv(A)
        candidates = [inverse @ b for b in covectors] + vectors
        for v in [v / v.norm().clamp_min(1e-300) for v in candidates][:VECTORS]:
            if not len(s) or float((s @ v).abs().max()) < 0.9 * n**0.5:
                found.append(claim.join(A, torch.cat([s, v[None]])))
    return found


def linked_starts(claim: Claim, samples: Samples, seed: int) -> list[tuple[Tensor, ...]]:
    """Forms of the first space, with maps of the others to it: by the linear part of y, by the cross terms, at random.

    Where a scalar s has a part ⟨x, Tx'⟩ = xᵀATx', its moments with products of x and x' give AT.
    """
    n, apart = samples.n, replace(claim, linked=False)
    places = [[i for i, kind in enumerate(claim.spaces) if kind == space] for space in range(claim.maps + 1)]
    forms = forms_of_space(apart, samples, 0, OF_LINKED, seed)
    slopes = [_slopes(samples, own) for own in places[1:]]
    cross = [_cross_terms(samples, places[0], own) for own in places[1:]]
    found = [(A, *maps) for A in forms for maps in zip(*slopes)]
    for terms in zip(*cross):
        # the form of the second space is B = TᵀAT, and C = AT, so A = CB⁻¹Cᵀ
        others = [
            terms[0] @ torch.linalg.pinv(B) @ terms[0].mT
            for B in forms_of_space(apart, samples, 1, OF_LINKED, seed)
        ]
        found += [(A, *(torch.linalg.pinv(A) @ C for C in terms)) for A in [*forms, *others]]
    generator = random_generator(seed)
    found += [(A, *haar(n, (claim.maps,), generator)) for A in forms for _ in range(RANDOM)]
    return [tuple(unit_form(M) for M in start) for start in found]


def _slopes(samples: Samples, places: list[int]) -> list[Tensor]:
    """The linear part of vectors y in the vectors at these places."""
    if not one_vector(samples.rep):
        return []
    K = torch.linalg.lstsq(samples.x.flatten(1), samples.y - samples.y.mean(0)).solution.mT
    blocks = K.reshape(samples.n, samples.points, samples.n)
    return [blocks[:, i] for i in places]


def _cross_terms(samples: Samples, first: list[int], second: list[int]) -> list[Tensor]:
    """The parts of scalars, and of their ranks, in products of vectors of two spaces."""
    n, x = samples.n, samples.x
    products = torch.einsum("zia,zjb->zijab", x[:, first], x[:, second]).flatten(3).flatten(1, 2)
    own = [quadratic_monomials(x[:, i]) for i in range(samples.points)]
    found: list[Tensor] = []
    for s in invariant_scalars(samples).unbind(1)[:SCALARS]:
        for values in (s, s.argsort().argsort().to(s)):
            for cross in products.unbind(1):
                D = torch.cat([cross, *own, torch.ones_like(cross[:, :1])], 1)
                C = torch.linalg.lstsq(D, values[:, None]).solution[: n * n, 0].reshape(n, n)
                found.append(C)
    return found


def _covectors(samples: Samples) -> list[Tensor]:
    """Gradients in the mean of scalars made of x and y: multiples of As where a direction s enters."""
    flat = samples.x.flatten(1)
    flat = torch.cat([torch.ones_like(flat[:, :1]), flat], 1)
    scalars = invariant_scalars(samples)[:, :SCALARS]
    if not scalars.shape[1]:
        return []
    # ranks, since a few large values shall not decide
    ranks = scalars.argsort(0).argsort(0).to(flat) / len(flat) - 0.5
    slopes = torch.linalg.lstsq(flat, ranks).solution[1:].mT.reshape(-1, samples.n)
    _, sigma, V = torch.linalg.svd(slopes, full_matrices=False)
    return [v for v, size in zip(V, sigma) if float(size) > 0.1 * float(sigma[0])]


def _never_along(samples: Samples) -> list[Tensor]:
    """The covector that a vector y is most nearly orthogonal to: a multiple of As where y turns about s."""
    if not one_vector(samples.rep):
        return []
    return [torch.linalg.eigh(samples.y.mT @ samples.y)[1][:, 0]]


def _vectors(samples: Samples) -> list[Tensor]:
    """Mean values of vectors and axes of mean values of matrices: made of s where one enters."""
    found: list[Tensor] = []
    rep, n = samples.rep, samples.n
    for part, y in zip(rep.parts, rep.split(samples.y, n)):
        mean = y.mean(0)
        if part.rank == 1:
            found.append(mean)
        elif part.rank == 2:
            values, Q = torch.linalg.eigh((mean + mean.mT) / 2)
            found += list(Q[:, (values - values.median()).abs().argsort(descending=True)].mT)
    return found


def _unseen(samples: Samples, count: int) -> list[Tensor]:
    """So many directions that the linear part of a law of vectors does not see, as v × s does not see s."""
    if len(samples.rep.parts) > 1 or samples.rep.parts[0].rank != 1:
        return []
    K = torch.linalg.lstsq(samples.x.sum(1), samples.y - samples.y.mean(0)).solution.mT
    return [torch.linalg.svd(K)[2][-count:]]


def _correlated_origins(samples: Samples) -> list[tuple[Tensor, Tensor]]:
    """Forms and centres of quadratics, linear terms included, that correlate with functions of y (M11)."""
    found = []
    for s in invariant_scalars(samples).unbind(1)[:SCALARS]:
        found += [(c.A, c.origin) for c in correlate(samples.x, s) if c.origin is not None]
    return found


def _sloped(samples: Samples) -> Iterator[tuple[Tensor, Tensor]]:
    """Places ``(N, n)`` and unit slopes there of scalars: of planes through the nearest neighbours."""
    if samples.points > 1:
        return
    x, n = samples.x[:SLOPED, 0], samples.n
    near = torch.cdist(x, x).topk(min(len(x), NEIGHBOURS * (n + 1)), largest=False).indices
    around = torch.nn.functional.pad(x[near] - x[:, None], (0, 1), value=1.0)
    for s in invariant_scalars(samples).unbind(1)[:SCALARS]:
        g = torch.linalg.lstsq(around, s[:SLOPED][near][..., None]).solution[:, :n, 0]
        yield x, g / g.norm(dim=1, keepdim=True).clamp_min(1e-300)


def _wedge(g: Tensor, moved: Tensor) -> Tensor:
    """g ∧ v ``(N, pairs, m)`` of vectors ``(N, n)`` with each of ``(N, m, n)``."""
    i, j = torch.triu_indices(g.shape[1], g.shape[1], 1)
    return (g[:, None, i] * moved[..., j] - g[:, None, j] * moved[..., i]).mT


def _vanishing(rows: Tensor, rounds: int = ROUNDS) -> tuple[Tensor, float]:
    """Combinations of columns ``(N, pairs, m)``, the one that is smallest at usual samples first; its share."""
    weights = torch.ones(len(rows), dtype=rows.dtype)
    for _ in range(rounds):
        values, V = torch.linalg.eigh(torch.einsum("z,zpm,zpk->mk", weights, rows, rows))
        left = (rows @ V[:, 0]).square().sum(1)
        weights = 1 / (1 + left / left.median().clamp_min(1e-300))
    return V, float(values[0] / values.mean())


def _sloped_directions(samples: Samples, seed: int) -> list[tuple[Tensor, Tensor]]:
    """Forms and covectors a by slopes: those of a function of q(x) and ⟨a, x⟩ are sums of Ax and a (M6, M16).

    Beside a, g ∧ Ax = 0 is linear in A, for each a of many; the part aaᵀ of A is not seen, and taken either way.
    """
    found: list[tuple[float, Tensor, Tensor]] = []
    n = samples.n
    if n < 3:  # there is nothing beside a direction of a plane
        return []
    basis = symmetric_basis(n)
    for x, g in _sloped(samples):
        x, g = x[:SCANNED_AT], g[:SCANNED_AT]
        moved = torch.einsum("mab,zb->zma", basis, x)
        for a in haar(n, (SCANNED,), random_generator(seed))[:, 0]:
            beside = torch.linalg.svd(a[None])[2][1:]
            seen = torch.linalg.svd(torch.einsum("mab,a,b->m", basis, a, a)[None])[2][1:]
            own = torch.einsum("km,zma,ba->zkb", seen, moved, beside)
            V, size = _vanishing(_wedge(g @ beside.mT, own), 2)
            found.append((size, torch.einsum("k,km,mab->ab", V[:, 0], seen, basis), a))
    best = sorted(found, key=lambda one: one[0])[:SCANNED_BEST]
    return [
        (unit_form(A + sign * torch.linalg.matrix_norm(A, ord=2) * torch.outer(a, a)), a)
        for _, A, a in best
        for sign in (1, -1)
    ]


def _sloped_origins(samples: Samples) -> list[tuple[Tensor, Tensor]]:
    """Forms and centres by slopes: that of a function of q(x - c) is a multiple of A(x - c), however it winds (M6).

    g ∧ (Ax - a) = 0 is linear in A and a = Ac; slopes g are those of planes through the nearest neighbours.
    """
    found, n = [], samples.n
    for x, g in _sloped(samples):
        basis, zeros = symmetric_basis(n), torch.eye(n).to(x).expand(len(x), n, n)
        rows = _wedge(g, torch.cat([torch.einsum("mab,zb->zma", basis, x), -zeros], 1))
        V, _ = _vanishing(rows)
        A = torch.einsum("m,mab->ab", V[: len(basis), 0], basis)
        if float(torch.linalg.matrix_norm(A)) > 0:
            found.append((unit_form(A), torch.linalg.pinv(A) @ V[len(basis) :, 0]))
    return found


def _origins(samples: Samples) -> list[Tensor]:
    """Zero, the mean of the vectors, and where the vectors that y depends on linearly make it vanish."""
    flat = samples.x.flatten(0, 1)
    found = [torch.zeros(samples.n, dtype=flat.dtype), flat.mean(0)]
    if samples.rep.parts[0].rank == 1 and len(samples.rep.parts) == 1:
        total = samples.x.sum(1)
        solution = torch.linalg.lstsq(
            torch.cat([total, torch.ones_like(total[:, :1])], 1), samples.y
        ).solution
        found.append(-torch.linalg.pinv(solution[:-1].mT) @ solution[-1] / samples.points)
    return found


def _orthogonal(samples: Samples) -> list[Tensor]:
    """The form by which y is most nearly orthogonal to every input vector, as cross products are."""
    if not one_vector(samples.rep):
        return []
    rows = []
    for x in samples.x.unbind(1):
        plus, minus = (quadratic_monomials(x + sign * samples.y) for sign in (1, -1))
        rows.append((plus - minus) / 4)
    m = torch.cat(rows)
    _, V = torch.linalg.eigh(m.mT @ m)
    return [unit_form(torch.einsum("m,mab->ab", V[:, 0], symmetric_basis(samples.n)))]


def forms_of_space(claim: Claim, samples: Samples, space: int, count: int, seed: int) -> list[Tensor]:
    """Forms of the vectors of one space: those that correlate with y, the round one, some of every signature."""
    samples = samples.rows(slice(0, CORRELATED))
    n = claim.dims[space] if claim.dims else samples.n
    x = samples.x[:, [i for i, kind in enumerate(claim.spaces) if kind == space], :n]
    found: list[tuple[float, Tensor]] = []
    for s in invariant_scalars(samples).unbind(1)[:SCALARS]:
        found += [(c.strength * c.share, c.A) for c in correlate(x, s)]
    found.sort(key=lambda pair: -pair[0])
    starts = [Start("correlation", A) for _, A in found[:3]]
    starts.append(Start("round", torch.eye(n, dtype=torch.float64)))
    chosen = distinct(starts + white_starts(n, count, seed + space))[:count]
    return [filled(start.A, samples.n) for start in chosen]
