"""Likely forms from few samples: hundreds are scored at once by a simple Gaussian process, before any step.

With few samples the posterior of a form has many peaks, and steps lead only to the nearest one.
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from gortho.discovery.starts import Start, distinct, signatures
from gortho.groups import haar, random_generator
from gortho.nn.process import Chart
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

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
