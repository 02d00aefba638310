"""The fit: a quadric F(z) = zᵀAz + 2bᵀz + f = 0 through points with errors, without the bias of algebraic fits.

F is linear in θ = (A, b, f), so F(z) = θ·ξ(z) with carriers ξ. An error of variance σ²Σ in z gives F(z) the variance
σ²v, v = ∇FᵀΣ∇F + 2σ²tr(AΣAΣ), and the mean σ²tr(AΣ). Minimising ΣF² makes ellipsoids too small; instead θ solves

    (M - σ²N) θ = 0,   M = mean ξξᵀ/v,

with the N for which the mean of θ is right up to σ⁴ (hyper-renormalisation; Kanatani and others, 2012).
Points far from the quadric are left out, by the distances of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from scipy.spatial import cKDTree
from scipy.stats import norm, t

#: Points farther from the quadric than this many standard deviations of the others are outliers …
FAR = 4.0
#: … but not if they are nearer than this, in units of the points' own spread: it is rounding.
ROUNDING = 1e-12
#: Eigenvalues, levels and distances below this share of the largest are rounding, whatever their errors.
EXACT = 1e-9
#: Random starts, each a quadric through as many points as it has unknowns, and how many of them are followed.
STARTS, FOLLOWED = 200, 4
#: Points that starts are compared on.
SCORED = 1_000
#: Steps of the fit, at most, and the change of θ that ends it.
STEPS, CHANGE = 30, 1e-10
#: Squared slopes of F below this share of the median are taken for it, at the tip of a cone.
SMALL = 1e-12
#: The share of the points, those nearest to the quadric, by whose distances it is judged.
MAJORITY = 0.75
#: Points that agree to so many decimals, in units of their spread, are one.
SAME = 9


def unknowns(n: int) -> int:
    """Numbers that fix a quadric in n dimensions, its factor left out."""
    return (n + 1) * (n + 2) // 2 - 1


@dataclass(frozen=True, eq=False)
class Quadric:
    """F(z) = zᵀAz + 2bᵀz + f.

    >>> circle = Quadric(np.eye(2), np.zeros(2), -1.0)
    >>> circle(np.array([[1.0, 0.0], [2.0, 0.0]])), circle.level
    (array([0., 3.]), 1.0)
    """

    A: np.ndarray
    b: np.ndarray
    f: float

    @classmethod
    def of(cls, theta: np.ndarray, n: int) -> Quadric:
        """The quadric of coefficients θ."""
        i, j = np.triu_indices(n)
        A = np.zeros((n, n))
        A[i, j] = A[j, i] = theta[: len(i)] * np.where(i == j, 1.0, 0.5**0.5)
        return cls(A, theta[len(i) : -1], float(theta[-1]))

    def __call__(self, z: np.ndarray) -> np.ndarray:
        return ((z @ self.A + 2 * self.b) * z).sum(-1) + self.f

    @property
    def centre(self) -> np.ndarray:
        """c with F(z) = (z - c)ᵀA(z - c) - level; the shortest, where A is singular."""
        return -np.linalg.pinv(self.A, hermitian=True) @ self.b

    @property
    def level(self) -> float:
        """The constant that (z - c)ᵀA(z - c) has on the quadric."""
        return -float(self.b @ self.centre) - self.f

    def gradient(self, z: np.ndarray) -> np.ndarray:
        """∇F ``(N, n)``."""
        return 2 * (z @ self.A + self.b)


def carriers(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ξ(z) ``(N, d)`` with F(z) = θ·ξ(z), and its derivatives ``(N, d, n)``."""
    N, n = z.shape
    i, j = np.triu_indices(n)
    k, factor = np.arange(len(i)), np.where(i == j, 1.0, 2**0.5)
    xi = np.concatenate([factor * z[:, i] * z[:, j], 2 * z, np.ones((N, 1))], axis=1)
    J = np.zeros((N, xi.shape[1], n))
    J[:, k, i] += factor * z[:, j]
    J[:, k, j] += factor * z[:, i]
    J[:, len(i) + np.arange(n), np.arange(n)] = 2.0
    return xi, J


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted quadric.

    Attributes:
        theta: its coefficients, of length 1.
        variance: σ², of the points' errors, in units of ``noise``.
        inliers: which points were fitted ``(N,)``.
        residuals: distances from the quadric over √(noise) and over the points' ``sizes`` ``(N,)``, by sign of F.
        leverage: how much each point pulls the quadric to itself ``(N,)``, from 0 to 1.
        gap: root mean square distance from the next best quadric, over that from the best.
        second: the former, in units of the points' spread.
        sizes: how large each point's errors were taken to be, in units of all ``(N,)``.
    """

    theta: np.ndarray
    variance: float
    inliers: np.ndarray
    residuals: np.ndarray
    leverage: np.ndarray
    gap: float
    second: float
    sizes: np.ndarray

    @property
    def sigma(self) -> float:
        """Standard deviation of the distances, the fitted unknowns counted off."""
        free = max(1, int(self.inliers.sum()) - (len(self.theta) - 1))
        return float(np.sqrt(np.square(self.residuals[self.inliers]).sum() / free))


def refine(
    z: np.ndarray,
    theta: np.ndarray,
    noise: np.ndarray,
    inliers: np.ndarray | None = None,
    variance: float = 0.0,
    steps: int = STEPS,
    sizes: np.ndarray | None = None,
) -> Fit:
    """The unbiased fit, from a start θ, to points ``(N, n)`` with errors of covariance σ²Σ, Σ = ``noise`` (n, n).

    Without ``inliers``, outliers are left out on the way. With ``sizes`` ``(N,)`` the errors of each point are so many
    times larger.
    """
    sizes = np.ones(len(z)) if sizes is None else sizes
    n = z.shape[1]
    xi, S = carriers(z)[0], np.linalg.cholesky(noise)
    i, j = np.triu_indices(n)
    e = np.concatenate([noise[i, j] * np.where(i == j, 1.0, 2**0.5), np.zeros(n + 1)])
    chosen = inliers
    for _ in range(steps):
        JS, v = _errors(z, theta, variance, S, sizes)
        r = xi @ theta / np.sqrt(v)
        chosen = near(r, len(theta) - 1) if inliers is None else inliers
        before = theta
        theta, variance = _step(
            xi[chosen], JS[chosen], v[chosen], sizes[chosen, None] ** 2 * e, theta, variance
        )
        if 1 - abs(before @ theta) < CHANGE**2:
            break
    assert chosen is not None
    JS, v = _errors(z, theta, variance, S, sizes)
    w, count = 1 / v, int(chosen.sum())
    M = (xi[chosen] * w[chosen, None]).T @ xi[chosen] / count
    V = _outer(JS[chosen], w[chosen])
    leverage = w * ((xi @ _inverse(M, theta)) * xi).sum(1) / count
    r = xi @ theta / np.sqrt(v)
    second, rms = _second(M, V, theta), float(np.sqrt(np.square(r[chosen]).mean()))
    return Fit(theta, variance, chosen, r, leverage, second / max(rms, 1e-16), second, sizes)


def feet(z: np.ndarray, quadric: Quadric, noise: np.ndarray, steps: int = 3) -> np.ndarray:
    """The nearest points on the quadric, to first order in each step."""
    for _ in range(steps):
        g = quadric.gradient(z)
        size = ((g @ noise) * g).sum(1)
        z = z - (quadric(z) / np.maximum(size, SMALL * np.median(size)))[:, None] * (g @ noise)
    return z


def _errors(
    z: np.ndarray, theta: np.ndarray, variance: float, S: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of the carriers times S and the sizes of the errors, and v, the variance of F over σ².

    Both are taken at the feet: at the points themselves, weights would go with the errors that they weigh.
    """
    quadric = Quadric.of(theta, z.shape[1])
    JS = carriers(feet(z, quadric, S @ S.T, steps=1))[1] @ S * sizes[:, None, None]
    v = np.square(np.einsum("zdn,d->zn", JS, theta)).sum(1)
    v += 2 * variance * sizes**4 * np.square(S.T @ quadric.A @ S).sum()
    return JS, np.maximum(v, SMALL * np.median(v))


def _outer(JS: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The mean of w J Σ Jᵀ."""
    return np.tensordot(JS * w[:, None, None], JS, axes=([0, 2], [0, 2])) / len(w)


def _second(M: np.ndarray, V: np.ndarray, theta: np.ndarray) -> float:
    """Root mean square distance from the best of all quadrics whose coefficients are orthogonal to θ."""
    Q = np.linalg.eigh(np.outer(theta, theta))[1][:, :-1]
    V = Q.T @ V @ Q + SMALL * np.trace(V) * np.eye(len(V) - 1)
    return float(np.sqrt(max(0.0, eigh(Q.T @ M @ Q, V, eigvals_only=True)[0])))


def _inverse(M: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The inverse of M on what is orthogonal to θ."""
    P = np.eye(len(M)) - np.outer(theta, theta)
    return np.linalg.pinv(P @ M @ P, rcond=1e-13, hermitian=True)


def _step(
    xi: np.ndarray, JS: np.ndarray, v: np.ndarray, e: np.ndarray, theta: np.ndarray, variance: float
) -> tuple[np.ndarray, float]:
    """θ and σ² by (M - σ²N)θ = 0, with the weights 1/v of the θ before: Newton's step in σ²."""
    N, w = len(xi), 1 / v
    M = (xi * w[:, None]).T @ xi / N
    inverse = _inverse(M, theta)
    pull = xi @ inverse
    first = _outer(JS, w * (1 - w * (pull * xi).sum(1) / N))
    half = (xi * w[:, None]).T @ e / N
    back = np.einsum(
        "zdn,zn,ze->de", JS * (w * w)[:, None, None], np.einsum("zdn,zd->zn", JS, pull), xi, optimize=True
    )
    half = half - back / N**2
    K = first + half + half.T
    for _ in range(3):
        values, vectors = np.linalg.eigh(M - variance * K)
        at = int(np.argmin(np.abs(values)))
        found = vectors[:, at]
        slope = float(found @ K @ found)
        if not slope > 0:
            break
        variance += float(values[at]) / slope
    return found, max(variance, 0.0)


def scale(r: np.ndarray, count: int) -> np.ndarray:
    """Standard deviation of residuals ``(N, …)``, by the `MAJORITY` that is nearest, as ``count`` unknowns were fitted.

    It is the larger the more unknowns there are: a quadric can be laid through as many points, however far the others.
    """
    N = len(r)
    h = min(N, max(int(np.ceil(MAJORITY * N)), (N + count + 1) // 2))
    size = np.partition(np.abs(r), h - 1, axis=0)[h - 1]
    return size / norm.isf(0.5 - 0.5 * (h - 0.5) / N) * np.sqrt(N / max(N - count, 1))


def near(r: np.ndarray, count: int) -> np.ndarray:
    """Which residuals ``(N,)`` are within `FAR` standard deviations, or more where these are ill-known (Student)."""
    far = t.isf(norm.sf(FAR), max(len(r) - count, 1))
    return np.abs(r) <= max(far * float(scale(r, count)), ROUNDING)


def _score(xi: np.ndarray, JS: np.ndarray, thetas: np.ndarray) -> np.ndarray:
    """The scale of the distances of points from each of several quadrics ``(k, d)``."""
    F = np.abs(xi @ thetas.T)
    slope = np.sqrt(np.square(np.einsum("zdn,kd->zkn", JS, thetas)).sum(-1))
    return scale(F / np.maximum(slope, 1e-300), len(thetas[0]) - 1)


def robust(z: np.ndarray, noise: np.ndarray, seed: int = 0) -> Fit:
    """The fit of the points ``(N, n)`` from many starts, that which most points are nearest to."""
    rng = np.random.default_rng(seed)
    few = z if len(z) <= SCORED else z[rng.choice(len(z), SCORED, replace=False)]
    xi, J = carriers(few)
    JS = J @ np.linalg.cholesky(noise)
    d = xi.shape[1]
    chosen = np.argsort(rng.random((STARTS, len(few))), axis=1)[:, : d - 1]
    thetas = np.linalg.svd(xi[chosen])[2][:, -1]
    # Taubin's fit of all points is the first start.
    M, V = xi.T @ xi, np.tensordot(JS, JS, axes=([0, 2], [0, 2]))
    values, vectors = np.linalg.eig(np.linalg.solve(M + 1e-15 * np.trace(M) * np.eye(d), V))
    plain = vectors[:, np.argmax(values.real)].real
    thetas = np.concatenate([plain[None] / np.linalg.norm(plain), thetas])
    best = np.argsort(_score(xi, JS, thetas))[:FOLLOWED]
    fits = [refine(few, thetas[k], noise, steps=8) for k in dict.fromkeys([0, *best.tolist()])]
    start = min(fits, key=lambda fit: float(scale(fit.residuals, d - 1)))
    return refine(z, start.theta, noise, variance=start.variance)


def first_alike(z: np.ndarray) -> np.ndarray:
    """The number of the first point that is the same, for each point ``(N,)``.

    >>> first_alike(np.array([[2.0, 0.0], [1.0, 0.0], [2.0, 0.0]]))
    array([0, 1, 0])
    """
    _, first, place = np.unique(z.round(SAME), axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[place.ravel()])


def resampled(
    z: np.ndarray, fit: Fit, noise: np.ndarray, count: int, seed: int = 0, cells: int | None = None
) -> list[Fit]:
    """Refits: each inlier at its foot on the quadric, moved by its own error, larger by its leverage, of random sign.

    Points that are the same, as of repeated rows, have a common sign. With ``cells`` neighbours have: those nearest to
    the same one of so many points drawn at random.
    """
    rng = np.random.default_rng(seed)
    points, sizes = z[fit.inliers], fit.sizes[fit.inliers]
    quadric = Quadric.of(fit.theta, z.shape[1])
    foot = feet(points, quadric, noise)
    error = (points - foot) / np.clip(1 - fit.leverage[fit.inliers], 0.1, 1.0)[:, None]
    everyone, alike = np.ones(len(points), dtype=bool), first_alike(points)
    refits = []
    for _ in range(count):
        sign, group = rng.choice([-1.0, 1.0], cells or len(points)), alike
        if cells:
            group = cKDTree(foot[rng.choice(len(foot), cells, replace=False)]).query(foot)[1]
        refits.append(
            refine(foot + sign[group][:, None] * error, fit.theta, noise, everyone, fit.variance, 6, sizes)
        )
    return [replace(r, theta=r.theta * np.sign(r.theta @ fit.theta)) for r in refits]
