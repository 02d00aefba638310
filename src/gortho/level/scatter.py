"""Errors that vary along the surface: how large each point's are, from the distances of all."""

from __future__ import annotations

import numpy as np
from scipy.stats import f as fisher

from gortho.level.fit import EXACT, Fit, Quadric, carriers, feet, refine

#: Errors vary along the surface when chance would make their sizes go with the position with a smaller probability.
UNEVEN = 0.01
#: Sizes farther than this factor from the typical one are not believed.
LARGEST = 10.0
#: Times that sizes are estimated and the fit is repeated.
ROUNDS = 3


def sizes_of(on: np.ndarray, fit: Fit) -> tuple[np.ndarray, float]:
    """How large the errors of points are that stand at ``on`` (N, n), and the p of their being equal.

    The logarithms of the distances are fitted by a quadratic function of the position: they make no negative sizes,
    and none that a few large distances dominate.
    """
    r = np.abs(fit.residuals) * fit.sizes / np.sqrt(np.clip(1 - fit.leverage, 0.1, 1.0))
    inside = fit.inliers
    least = 1e-2 * np.median(r[inside])
    log, xi = np.log(np.maximum(r, least)), carriers(on)[0]
    weights, _, rank, _ = np.linalg.lstsq(xi[inside], log[inside], rcond=1e-6)
    told = xi @ weights
    left, all_of_it = log[inside] - told[inside], log[inside] - log[inside].mean()
    unknown, free = rank - 1, int(inside.sum()) - rank
    if free < 1 or unknown < 1:
        return np.ones(len(on)), 1.0
    rest = float(np.square(left).sum())
    ratio = (float(np.square(all_of_it).sum()) - rest) / unknown / max(rest / free, 1e-300)
    # Beyond the points that were fitted, the function says nothing.
    typical = float(np.median(told[inside]))
    low, high = told[inside].min(), told[inside].max()
    span = np.log(LARGEST)
    sizes = np.exp(np.clip(told, max(low, typical - span), min(high, typical + span)) - typical)
    return sizes / np.sqrt(np.square(sizes[inside]).mean()), float(fisher.sf(ratio, unknown, free))


def weighed(z: np.ndarray, fit: Fit, noise: np.ndarray) -> Fit:
    """The fit with errors of each point's own size, if they vary along the surface."""
    for k in range(ROUNDS):
        if fit.sigma <= EXACT:
            break
        on = feet(z, Quadric.of(fit.theta, z.shape[1]), noise)
        sizes, p = sizes_of(on, fit)
        if k == 0 and p >= UNEVEN:
            break
        fit = refine(z, fit.theta, noise, variance=fit.variance, sizes=sizes)
    return fit
