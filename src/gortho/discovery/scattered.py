"""Samples off a polynomial of the coordinates that explains all others: outliers of laws without O(A).

If a law is handed, or has a direction or an origin, a fit of one form cannot show which samples are wrong. A
polynomial of all coordinates assumes no symmetry. It is only used if it leaves normal errors for all other samples,
since the tail of a law that it misses, such as a pole, is not an outlier; and only for samples among the others, since
it means nothing beyond them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gortho.discovery.models import coordinates
from gortho.objectives.learners import monomials_of
from gortho.samples.values import Samples

#: The largest error of all others, in sigmas by their median: normal ones, by which noise may vary a little …
NORMAL = 8.0
#: … and the least of an outlier.
OUTLYING = 25.0
#: Errors below this share of the spread of y are rounding.
ROUNDING = 1e-6
#: A fit whose typical error is above this share of the spread of y does not tell.
CLOSE = 0.2
#: Samples for each monomial, and the share of them that may be outliers, at most.
ROWS_FOR_MONOMIAL, MOST = 8, 0.02
#: Monomials, and samples that they are fitted to, at most: more take longer and tell no more.
MONOMIALS, ROWS = 150, 5_000
#: A sample is among the others where its leverage is not beyond this quantile of theirs.
AMONG = 0.9
#: Degrees of polynomials, and rounds of each fit with weights by the one before.
DEGREES, ROUNDS, TAMED = 3, 12, 4.0
#: The median size of a normal number: noise of vectors may be along one of their components, so all count as numbers.
MEDIAN = 0.6745


def deviations(samples: Samples) -> Tensor:
    """Squared distances of the targets from their median, by the weights of the samples."""
    y = samples.y.double().reshape(len(samples), -1)
    return (y - y.median(0).values).square().sum(1) * samples.each_weight


def scattered(samples: Samples, seen: int) -> Tensor:
    """Which samples are off a polynomial that explains all others, by a fit to the first ones: a mask."""
    X, y = coordinates(samples), samples.y.double().reshape(len(samples), -1)
    root, spread = samples.each_weight.double().sqrt()[:, None], deviations(samples)
    seen = min(seen, ROWS)
    for degree in range(1, DEGREES + 1):
        count = math.comb(X.shape[1] + degree, degree)
        if ROWS_FOR_MONOMIAL * count > seen or count > MONOMIALS:
            break
        D = monomials_of(X[:seen], count, degree)(X) * root
        squares, leverage = _robust(D, y * root, spread, seen)
        typical = max(float(squares[:seen].median()), ROUNDING**2 * float(spread.median())) / MEDIAN**2
        among = leverage <= torch.quantile(leverage[:seen], AMONG)
        off = among & (squares > OUTLYING**2 * typical)
        if not bool(off.any()) or float(off.double().mean()) > MOST:
            continue
        normal = float(squares[among & ~off].max()) <= NORMAL**2 * typical
        if normal and typical < CLOSE**2 * float(spread.median()) / MEDIAN**2:
            return off
    return torch.zeros(len(y), dtype=torch.bool)


def _robust(D: Tensor, y: Tensor, squares: Tensor, seen: int) -> tuple[Tensor, Tensor]:
    """Squared errors of a fit to the first samples in which those far off count next to nothing; and leverages."""
    for _ in range(ROUNDS):
        size = squares[:seen].median().clamp_min(1e-300)
        root = 1 / (1 + squares[:seen] / (TAMED**2 * size))
        Q, R = torch.linalg.qr(D[:seen] * root[:, None])
        inverse = torch.linalg.pinv(R)  # columns may be constant
        squares = (y - D @ (inverse @ (Q.mT @ (y[:seen] * root[:, None])))).square().sum(1)
    return squares, (D @ inverse).square().sum(1)
