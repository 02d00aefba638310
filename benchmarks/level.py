"""The quadric that points lie on, without a target: bias of the radius, outliers, and intervals.

    python benchmarks/level.py --out results

*radius*: the mean error of a unit sphere's radius over 60 samples of 300 points, ± the standard error of the mean: a
plain algebraic fit, Taubin's, and the fit here. *outliers*: 200 points on quadrics of five signatures in random frames,
of which a tenth or a fifth are far off; how many are FOUND with the right signature and a form within twice the noise
of the truth. *entries*: how many entries of A lie in their 95 % intervals.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _table import write

import gortho
from gortho.level.fit import Quadric, carriers, refine
from gortho.samples.frame import Frame, form_distance

SIGNATURES = ((2, 0), (3, 0), (1, 2), (1, 3), (2, 2))
NOISE = 0.02


def surface(p: int, q: int, points: int, rng: np.random.Generator) -> np.ndarray:
    """Points with |a|² - |b|² = 1, a of p and b of q coordinates."""
    a, b = rng.normal(size=(points, p)), rng.normal(size=(points, q))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    return np.concatenate([a * np.sqrt(1 + (b**2).sum(1))[:, None], b], axis=1)


def moved(
    z: np.ndarray, p: int, q: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The points in a random frame about a random centre, the form there, and the centre."""
    n = p + q
    left, right = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    T = left * np.linspace(1, 2, n) @ right
    back, c = np.linalg.inv(T), T @ rng.normal(size=n) * 2
    return z @ T.T + c, back.T @ np.diag([1.0] * p + [-1.0] * q) @ back, c


def radius(noise: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, int(1000 * noise)])
    errors: dict[str, list[float]] = {"plain fit": [], "Taubin's fit": [], "here": []}
    for _ in range(60):
        z = surface(3, 0, 300, rng) + noise * rng.normal(size=(300, 3))
        xi, J = carriers(z)
        values, vectors = np.linalg.eig(np.linalg.solve(xi.T @ xi, np.tensordot(J, J, axes=([0, 2], [0, 2]))))
        taubin = vectors[:, values.real.argmax()].real
        fits = (np.linalg.svd(xi)[2][-1], taubin, refine(z, taubin, np.eye(3)).theta)
        for found, theta in zip(errors.values(), fits):
            quadric = Quadric.of(theta, 3)
            found.append(float((np.linalg.eigvalsh(quadric.A / quadric.level) ** -0.5).mean() - 1))
    row = {name: f"{100 * np.mean(e):.2f} ± {100 * np.std(e) / 60**0.5:.2f} %" for name, e in errors.items()}
    return {"what": "radius", "noise": f"{noise:.0%}", **row}


def outliers(share: float, count: int, seed: int) -> dict[str, Any]:
    right = 0
    for k in range(count):
        (p, q), rng = SIGNATURES[k % len(SIGNATURES)], np.random.default_rng([seed, k, int(100 * share)])
        z = surface(p, q, 200, rng)
        x, A, _ = moved(z + NOISE * rng.normal(size=z.shape), p, q, rng)
        bad = rng.choice(200, round(200 * share), replace=False)
        x[bad] += 6 * x.std(0) * rng.normal(size=(len(bad), p + q))
        found = gortho.level_form(x)
        if found.verdict is gortho.Verdict.FOUND and sorted(found.form.signature[:2]) == sorted((p, q)):
            good = np.delete(x, bad, axis=0)
            frame = Frame.of(torch.from_numpy(good - good.mean(0)))
            true = frame.form_in(gortho.QuadraticForm(A))
            right += form_distance(frame.form_in(found.form), true) < 2 * NOISE
    return {"what": f"outliers, {share:.0%}", "noise": f"{NOISE:.0%}", "here": f"{right} of {count} right"}


def intervals(p: int, q: int, points: int, noise: float, count: int, seed: int) -> dict[str, Any]:
    rng, hits = np.random.default_rng([seed, p, q, points]), []
    for _ in range(count):
        z = surface(p, q, points, rng)
        x, A, _ = moved(z + noise * rng.normal(size=z.shape), p, q, rng)
        found = gortho.level_form(x)
        B = gortho.QuadraticForm(A).matrix.numpy()
        B = B * np.sign((B * found.candidate.matrix.numpy()).sum())
        low, high = found.intervals
        hits += list(((low <= B) & (high >= B))[np.triu_indices(p + q)])
    what = f"entries of O({f'{p},{q}' if q else p}) in their intervals, {points} points"
    return {"what": what, "noise": f"{noise:.0%}", "here": f"{np.mean(hits):.1%} of {len(hits)}"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30, help="quadrics of each row")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [radius(noise, options.seed) for noise in (0.02, 0.05, 0.1, 0.15)]
    rows += [outliers(share, options.count, options.seed) for share in (0.1, 0.2)]
    for case in (
        (2, 0, 100, 0.05),
        (3, 0, 25, 0.05),
        (3, 0, 200, 0.05),
        (1, 2, 200, 0.02),
        (2, 2, 100, 0.03),
    ):
        rows.append(intervals(*case, options.count, options.seed))
    columns = ("what", "noise", "plain fit", "Taubin's fit", "here")
    text = (__doc__ or "").partition("\n\n")[2].partition("\n\n")[2].strip()
    table = [{c: row.get(c, "") for c in columns} for row in rows]
    print(write(options.out, "level", "Quadrics that points lie on", text, table))


if __name__ == "__main__":
    main()
