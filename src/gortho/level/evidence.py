"""What a level form rests on, and the verdict it allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import norm

from gortho.discovery.verdict import MAX_SPREAD, MAX_UNEXPLAINED, ZERO_ERRORS, Verdict, percent
from gortho.level.fit import EXACT, first_alike, robust

#: Structure counts when it is more than this share of the points' variance: below, it is the fit's own imperfection.
STRUCTURE_SHARE = 5e-3
#: … and when it is more than this share of the squared distances from the quadric: too much for errors.
MAX_STRUCTURE = 0.25
#: Neighbours that an outlier is compared with …
BESIDE = 5
#: … and the share of its distance within which their median is like it.
LIKE = 0.5
#: Clouds without a quadric that the points are compared with …
CLOUDS = 10
#: … and their points, at most.
CLOUD_POINTS = 400
#: Points lie on several quadrics when the next best is nearer than this, in units of their spread …
SEVERAL = 1e-7
#: … or its distance is not this many times the best one's …
MIN_GAP = 2.5
#: … or most of them lie in as many clumps as there are unknowns, no larger than this many times their distances …
CLUMP = 6.0
#: … where most is this share.
MOST = 0.95
#: Distances with less kurtosis are of two sizes: no errors with a single peak have less than equally likely ones.
SINGLE_PEAK = 1.8
#: Points for each unknown below which a cloud can be as near to a quadric: no ground to say that there is none.
POINTS_FOR_EACH = 3
#: Neighbours lie on the same side when chance makes them so with a smaller probability than this.
ALIKE = 0.01
#: Points do not lie on a quadric that more than this share of them is far away from.
MAX_OUTLIERS = 0.25
#: A centre is not pinned down when its standard error is above this, in units of the points' spread.
MAX_CENTRE_ERROR = 0.5


@dataclass(frozen=True)
class LevelEvidence:
    """The measurements behind the verdict; lengths are in units of the points' spread (the frame, M18)."""

    points: int
    outliers: int
    distance: float  # standard deviation of the distances from the quadric
    cloud: float  # the same for points without a quadric: the median of clouds
    nearest_cloud: float  # the least of the clouds
    gap: float  # distance from the next best quadric over that from the best
    second: float  # the former
    structure: float  # correlation of the distances of neighbours
    structure_p: float
    clump_size: float  # radius of as many clumps as there are unknowns, which hold most of the points
    unknowns: int
    kurtosis: float = 3.0  # of the distances, with two standard errors added
    spread: float = 0.0  # median distance of refits from the form
    centre_error: float = 0.0  # the largest standard error of the centre, along directions that have one
    weakest_eigenvalue: float = np.inf  # smallest |λ| over its standard error, zeros left out
    cone: bool = False  # whether the level is zero as far as is known
    runs_off: bool = False  # along a zero direction F is linear: a paraboloid

    @property
    def unexplained(self) -> float:
        """Mean squared distance from the quadric, as a share of what a cloud leaves."""
        return (self.distance / self.cloud) ** 2 if self.cloud > 0 else 1.0

    @property
    def structured(self) -> bool:
        """Whether neighbours lie on the same side of the quadric more often than by chance."""
        return self.structure_p < ALIKE


def clouds(points: int, noise: np.ndarray, seed: int) -> np.ndarray:
    """Distances that so many points without a quadric, normal clouds, have from their best one."""
    rng = np.random.default_rng(seed)
    shape = min(points, CLOUD_POINTS), len(noise)
    return np.array([robust(rng.normal(size=shape), noise, seed).sigma for _ in range(CLOUDS)])


def clump_size(z: np.ndarray, count: int) -> float:
    """The radius within which most points lie of the nearest of ``count`` points, each the farthest from those before.

    >>> clump_size(np.array([[0.0, 0.0], [1.0, 0.0], [1.1, 0.0]]), 2)
    0.1
    """
    away = np.linalg.norm(z - z[0], axis=1)
    for _ in range(count - 1):
        away = np.minimum(away, np.linalg.norm(z - z[away.argmax()], axis=1))
    return round(float(np.quantile(away, MOST, method="higher")), 12)


def neighbours_alike(z: np.ndarray, r: np.ndarray) -> tuple[float, float]:
    """Correlation of the residuals of nearest neighbours, and the one-sided p of none.

    >>> z = np.random.default_rng(0).normal(size=(300, 2))
    >>> neighbours_alike(z, np.sin(z[:, 0]))[1] < 1e-6 < neighbours_alike(z, z[::-1, 0])[1]
    True
    """
    # A point that is given twice, or rounded to another, is its own nearest neighbour.
    once = np.unique(first_alike(z))
    z, r = z[once], r[once]
    other = cKDTree(z).query(z, k=2)[1][:, 1]
    mutual = float((other[other] == np.arange(len(z))).mean())
    products, squares = r * r[other], float(np.square(r).mean())
    if not squares > 0:
        return 0.0, 1.0
    size = float(np.sqrt(np.square(products).sum() * (1 + mutual)))
    return float(products.mean() / squares), float(norm.sf(products.sum() / max(size, 1e-300)))


def beside(z: np.ndarray, r: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Which outliers ``(N,)`` have neighbours along the surface with like residuals, if most have: there it bends away.

    >>> place = np.arange(40.0)[:, None]
    >>> bends, alone = np.arange(40) >= 30, np.arange(40) == 9
    >>> bool(beside(place, 1.0 * bends, ~bends).sum() >= 9), bool(beside(place, 1.0 * alone, ~alone).any())
    (True, False)
    """
    found = np.zeros(len(z), dtype=bool)
    once = np.unique(first_alike(z))  # an outlier that is given twice has only itself beside it
    if inside.all() or len(once) <= BESIDE:
        return found
    near = cKDTree(z[once]).query(z[once], k=BESIDE + 1)[1][:, 1:]
    off = r[once] - np.median(r[once][near], axis=1)
    found[once] = ~inside[once] & (np.abs(off) < LIKE * np.abs(r[once]))
    # Of outliers at random some are alike by chance.
    return found if 2 * found.sum() > (~inside[once]).sum() else np.zeros_like(found)


def kurtosis_bound(r: np.ndarray) -> float:
    """Kurtosis of residuals ``(N,)``, 3 for a normal distribution, with two standard errors added.

    >>> sides = np.tile([1.0, -1.0], 50) + 0.1 * np.random.default_rng(0).normal(size=100)
    >>> kurtosis_bound(sides) < 1.2 < 2.5 < kurtosis_bound(np.random.default_rng(0).normal(size=100))
    True
    """
    q = r**2 / max(float(np.square(r).mean()), 1e-300)
    kurtosis = float(np.square(q).mean())
    return kurtosis + 2 * float(np.std(q**2 - 2 * kurtosis * q)) / len(r) ** 0.5


def _several(e: LevelEvidence) -> str:
    """Why several quadrics fit, if they do."""
    if e.second < SEVERAL:
        return "the next best lies as near"
    if e.gap < MIN_GAP:
        return f"the next best is only {e.gap:.2g} times as far away"
    if e.clump_size < CLUMP * e.distance:
        return f"they lie in {e.unknowns} clumps or fewer, no more than the unknowns"
    return ""


def _loose(e: LevelEvidence) -> list[str]:
    """What the points do not pin down."""
    loose = []
    if e.spread > MAX_SPREAD:
        loose.append(f"refits to resamples differ by {e.spread:.2g} in the median")
    if e.centre_error > MAX_CENTRE_ERROR:
        loose.append(f"the centre has an error of {e.centre_error:.2g} times the points' own spread")
    if e.weakest_eigenvalue < ZERO_ERRORS:
        loose.append(f"an eigenvalue is within {e.weakest_eigenvalue:.1f} standard errors of zero")
    return loose


def judge(e: LevelEvidence) -> tuple[Verdict, str, str]:
    """Verdict, reason and advice, in plain words."""
    away = f"The points are spread about the best quadric by {percent(e.distance)} of their own spread"
    cloud = f"a cloud without any quadric by {percent(e.cloud)}"
    several = _several(e)
    if several and e.unexplained < MAX_UNEXPLAINED:
        return (
            Verdict.UNDERDETERMINED,
            f"Several quadrics fit the points: {several}.",
            "Give points that cover more of the surface, in every direction.",
        )
    if e.outliers > MAX_OUTLIERS * e.points:
        return (
            Verdict.NONE,
            f"{e.outliers} of {e.points} points lie away from the quadric that is nearest to the others.",
            "Look at pairs of coordinates: the points may lie on two surfaces; fit them one at a time.",
        )
    if e.unexplained > MAX_UNEXPLAINED or e.distance > e.nearest_cloud:
        if e.points - e.outliers < POINTS_FOR_EACH * e.unknowns:
            return (
                Verdict.UNDERDETERMINED,
                f"{away}, {cloud}: so few points lie near some quadric, whatever they are.",
                f"Give at least {POINTS_FOR_EACH * e.unknowns} points, or points with smaller errors.",
            )
        return (
            Verdict.NONE,
            f"{away}, {cloud}: they do not lie on a quadric.",
            "Look at pairs of coordinates: points on two surfaces, or a missing coordinate, look like this; points "
            "with errors as large as their distances do, too.",
        )
    if e.structured and e.structure * e.unexplained > STRUCTURE_SHARE:
        return (
            Verdict.NONE,
            f"{away}, and neighbours lie on the same side of it (correlation {e.structure:.2f}): the surface is "
            "smooth, but no quadric.",
            "A quadric is its best approximation only; use another surface, or points of one part of it.",
        )
    if e.structured and e.structure > MAX_STRUCTURE and e.distance > EXACT:
        return (
            Verdict.UNDERDETERMINED,
            f"{away}, but neighbours lie on the same side of it (correlation {e.structure:.2f}): either their errors "
            "go together, or the surface is smooth, but no quadric.",
            "Give points whose errors do not depend on their place, or look at the distances of all points, outliers "
            "too, along the surface.",
        )
    if e.kurtosis < SINGLE_PEAK and e.distance > EXACT:
        return (
            Verdict.UNDERDETERMINED,
            f"{away}, but on both sides and hardly between (kurtosis {e.kurtosis:.1f} at most): they look like points "
            "of two surfaces with the quadric between them.",
            "Look at a histogram of the distances; if the points are of two kinds, fit them one at a time.",
        )
    if e.runs_off:
        return (
            Verdict.NONE,
            "The points lie on a quadric without a centre, a paraboloid.",
            "Along its axis the law is linear, not quadratic: there is no (x - c)ᵀA(x - c) that is constant.",
        )
    loose = _loose(e)
    if loose:
        return (
            Verdict.UNDERDETERMINED,
            f"{away}, but they do not pin it down: {', and '.join(loose)}.",
            "Give more points, points that cover more of the surface, or points with smaller errors.",
        )
    ahead = "far behind" if e.gap > 100 else f"{e.gap:.2g} times as far away"
    return (
        Verdict.FOUND,
        f"{away}, {cloud}; the next best quadric is {ahead}, and refits to resamples agree (median distance "
        f"{e.spread:.2g}).",
        "Take off the centre and use the form as the length of what is left.",
    )
