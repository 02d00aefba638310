"""Where fits of the form start: correlations (M11), the spectral solution (M6), simple and random forms (M12).

With few samples, hundreds of forms are scored at once by a simple Gaussian process, before any step: the posterior of a
form has many peaks then, and steps lead only to the nearest one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

import torch
from torch import Tensor

from gortho.discovery.correlation import alternate, correlate, invariant_scalars, splines
from gortho.discovery.spectral import stabiliser_form
from gortho.groups import haar, random_generator, symmetric_basis
from gortho.nn.process import Chart
from gortho.samples.frame import Frame, unit_form
from gortho.samples.values import Samples

#: Samples that correlations look at.
CORRELATED = 20_000
#: Scalars made of x and y that correlations are taken with, at most.
SCALARS = 6
#: Share of the samples that are extreme, and how many for each entry of the form at least.
EXTREME, SAMPLES_FOR_ENTRY = 0.05, 4
#: Vectors and differences that cones are looked for in, reweightings, and cones that are kept, at most.
MOST_VECTORS, VANISHING_STEPS, CONES = 10, 6, 8
#: Samples that the stabiliser's linear solve looks at.
SOLVED = 400
#: Starts nearer to each other than this are one.
DISTINCT = 0.02
#: Forms of each signature that are scored, with this many samples; fewer with more, since each takes longer.
SCORED, SAMPLES = 1_000, 60
#: Forms that are looked at for being different.
LOOKED = 120
#: Forms nearer to each other than this lead to the same peak.
NEAR = 0.25
#: Spread of the logarithms of the eigenvalues of definite forms.
DEFINITE = 0.2
#: The plain kernels: constant and size of a polynomial, and noise.
PLAIN = tuple(product((0.3, 1.0), (0.3, 1.0, 3.0), (0.03, 0.3)))
#: Prior variance of a constant, in units of the targets' variance: any constant will do.
CONSTANT = 100.0
#: Numbers to be worked on at once, at most.
AT_ONCE = 1_000_000

#: Whatever has a form A.
Formed = TypeVar("Formed", bound=Any)


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
            functions = splines(s)
            forms = [A for _, A in found[-3:]] + [start.A for start in white_starts(few.n, 4, 0)]
            for A in forms:
                a = alternate(few.x, functions, A)
                found.append((a.strength, a.A))
    found.sort(key=lambda pair: -pair[0])
    return distinct([Start("correlation", A) for _, A in found])[:6]


def cone_starts(samples: Samples) -> list[Start]:
    """Forms that vanish where functions of |q| are extreme: laws with roots, wells or poles at q = 0.

    The form whose E[q²] over the samples with the lowest, or the highest, values of a scalar is the least share of that
    over all: one eigenproblem for each vector and each difference of two. Weights 1/(1 + q²/median q²) let go of
    samples that are extreme for another reason.
    """
    few = samples.rows(slice(0, CORRELATED))
    x = few.x
    i, j = torch.triu_indices(few.points, few.points, 1)
    vectors = torch.cat([x, x[:, i] - x[:, j]], 1).unbind(1)[:MOST_VECTORS]
    count = max(SAMPLES_FOR_ENTRY * few.n * (few.n + 1) // 2, int(EXTREME * len(x)))
    if 4 * count > len(x):
        return []
    found: list[tuple[float, Tensor]] = []
    for s in invariant_scalars(few).unbind(1)[:SCALARS]:
        order = s.argsort()
        for v in vectors:
            for scale_free in (False, True):
                size = v.norm(dim=1, keepdim=True).clamp_min(1e-300)  # a vector may be zero
                m = quadratic_monomials(v / size if scale_free else v)
                found += [vanishing(m, order[:count], few.n), vanishing(m, order[-count:], few.n)]
    found.sort(key=lambda pair: pair[0])
    return distinct([Start("cone", A) for _, A in found])[:CONES]


def quadratic_monomials(v: Tensor) -> Tensor:
    """Products of coordinates ``(N, n(n+1)/2)`` whose inner product with a form's coordinates is q."""
    return torch.einsum("za,zb,mab->zm", v, v, symmetric_basis(v.shape[1]))


def vanishing(m: Tensor, rows: Tensor, n: int) -> tuple[float, Tensor]:
    """The form that is smallest on these rows of monomials, as a share of its size on all, and this share."""
    S = m.mT @ m / len(m)
    one = torch.eye(len(S), dtype=m.dtype)
    root, failed = torch.linalg.cholesky_ex(S + 1e-12 * one)
    if int(failed):  # null vectors, on which one form vanishes, with moments that a few samples make large
        root = torch.linalg.cholesky(S + 1e-12 * S.diagonal().max() * one)
    near = torch.linalg.solve_triangular(root, m[rows].mT, upper=False).mT  # of unit moments over all samples
    weights = torch.ones(len(near), dtype=m.dtype)
    for _ in range(VANISHING_STEPS):
        _, V = torch.linalg.eigh((near * weights[:, None]).mT @ near)
        q2 = (near @ V[:, 0]).square()
        weights = 1 / (1 + q2 / q2.median().clamp_min(1e-12))
    a = torch.linalg.solve_triangular(root.mT, V[:, :1], upper=True)[:, 0]
    return float(q2.median()), unit_form(torch.einsum("m,mab->ab", a, symmetric_basis(n)))


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


def distinct(starts: list[Formed], near: float = DISTINCT) -> list[Formed]:
    """The starts, or other forms, without repetitions, the first of each kept."""
    if not starts:
        return []
    flat = torch.stack([start.A / torch.linalg.matrix_norm(start.A) for start in starts]).flatten(1)
    apart = (2 - 2 * (flat @ flat.mT).abs()) > near**2  # squared distances, of the nearer sign
    kept: list[int] = []
    for i, far in enumerate(apart.tolist()):
        if all(far[j] for j in kept):
            kept.append(i)
    return [starts[i] for i in kept]


def likely_forms(samples: Samples, chart: Chart, seed: int, kept: int) -> list[Tensor]:
    """The most likely of many forms of each signature, ``(n, n)`` each: a right one may score late."""
    found = []
    scored = min(SCORED, int(SCORED * (SAMPLES / len(samples)) ** 3))
    for forms in white_forms(samples.n, scored, seed):
        order = scores(samples, forms, chart).argsort()[:LOOKED]
        starts = [Start("likely", forms[i]) for i in order.tolist()]
        found += [start.A for start in distinct(starts, NEAR)[:kept]]
    return found


def white_forms(n: int, count: int, seed: int) -> list[Tensor]:
    """Forms turned at random, by signature: with eigenvalues ±1; of definite ones, there is but one of these."""
    generator, found = random_generator(seed), []
    for p, q in signatures(n):
        Q = haar(n, (count,), generator)
        sizes = torch.tensor([-1.0] * p + [1.0] * q, dtype=torch.float64).expand(count, n)
        if not p:
            sizes = (DEFINITE * torch.randn(count, n, dtype=torch.float64, generator=generator)).exp()
        found.append(unit_form(Q * sizes[:, None] @ Q.mT))
    return found


def scores(samples: Samples, forms: Tensor, chart: Chart) -> Tensor:
    """Minus the log likelihood of the best of some plain kernels, form by form."""
    y = (samples.y - samples.y.mean()) / samples.y.std().clamp_min(1e-300)
    at_once = max(1, AT_ONCE // len(y) ** 2)
    return torch.cat([_scores(samples.x, y, some, chart) for some in forms.split(at_once)])


def _scores(x: Tensor, y: Tensor, forms: Tensor, chart: Chart) -> Tensor:
    gram = torch.einsum("zpi,fij,zqj->fzpq", x, forms, x)
    unit = gram.diagonal(dim1=2, dim2=3).abs().median(1, keepdim=True).values.clamp_min(1e-300)
    z = chart(gram, unit)
    z = (z - z.mean(1, keepdim=True)) / z.std(1, keepdim=True).clamp_min(1e-9)
    inner, noise = z @ z.mT / z.shape[-1], torch.eye(len(y), dtype=y.dtype)
    best = torch.full((len(forms),), torch.inf, dtype=y.dtype)
    for constant, size, deviation in PLAIN:
        K = CONSTANT + size**2 * (constant + inner) ** chart.degree + deviation**2 * noise
        L, failed = torch.linalg.cholesky_ex(K)
        fit = torch.linalg.solve_triangular(L, y[:, None].expand(len(K), -1, 1), upper=False)
        loss = fit.square().sum((1, 2)) / 2 + L.diagonal(dim1=1, dim2=2).log().sum(1)
        best = torch.minimum(best, torch.where(failed == 0, loss, torch.inf))
    return best
