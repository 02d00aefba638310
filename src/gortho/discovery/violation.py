"""How a law breaks a form: the residual of the best twin on held-out samples, and what it depends on (M13).

The residual is analysed in the given coordinates: whether it is a constant vector, linear or quadratic in the
coordinates, a function of one of them, or of an invariant, which the twins could have learnt. Shares are fractions of
its mean square, minus what as many free parameters explain by chance.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from gortho.discovery.posed import Posed
from gortho.discovery.twins import Comparison
from gortho.report.data import Profile

#: A pattern is reported if it makes up this share of the residual.
TOLD = 0.1
#: One that has more free numbers must explain this share more.
CLEARLY_MORE = 0.1
#: Values that are larger than those of this quantile are cut back to it: a few samples shall not make the pattern.
USUAL = 0.99
#: Samples of equal number that means are taken over.
BINS = 12
#: Quadratic patterns are looked for where samples are this many times the products of coordinates.
ROWS_FOR_EACH = 4
#: Directions of more coordinates than this are told by their largest ones.
SHOWN = 6


@dataclass(frozen=True)
class Violation:
    """What is left over of a law, as parts of its mean square.

    Attributes:
        direction: unit vector in the given coordinates that the rest points along (a constant vector) or is linear in.
        vector: which vector of a sample that is, counted from 0.
        constant, linear, quadratic: shares of the rest that are constant, linear, quadratic in the coordinates.
        profiles: the rest against the direction, then each coordinate, then each invariant.
        names: names of the coordinates.
        points: vectors in a sample.
    """

    direction: tuple[float, ...]
    vector: int
    constant: float
    linear: float
    quadratic: float
    profiles: tuple[Profile, ...]
    names: tuple[str, ...]
    points: int = 1

    def alone(self, invariants: bool = False) -> Profile:
        """The coordinate, or the invariant, that tells most of the rest by itself."""
        first = 1 + self.points * len(self.names)
        return max(self.profiles[first:] if invariants else self.profiles[1:first], key=lambda p: p.share)

    def __str__(self) -> str:
        way = in_words(self.direction, self.names)
        of = f" of vector {self.vector + 1}" if self.points > 1 else ""
        one, invariant = self.alone(), self.alone(invariants=True)
        said = [
            (self.constant, f"points along {way}, whatever x is"),
            (self.linear, f"follows the direction {way}{of}"),
            (one.share, f"is a function of {one.name} alone"),
            (invariant.share, f"is a function of the invariant {invariant.name}, which better fits may still learn"),
            (self.quadratic, "is quadratic in the coordinates, but not in the way of one form"),
        ]  # fmt: skip
        best = said[0]
        for pattern in said[1:]:
            best = pattern if pattern[0] > best[0] + CLEARLY_MORE else best
        if best[0] < TOLD:
            return "What is left over follows no single direction, coordinate or product of coordinates."
        return f"Of what is left over, {100 * best[0]:.0f} % {best[1]}."


def in_words(direction: Sequence[float], names: Sequence[str]) -> str:
    """A direction by its components, or by the largest of many.

    >>> in_words([0.6, -0.8], ["t", "z"])
    '(0.60, -0.80)'
    """
    if len(direction) <= SHOWN:
        return f"({', '.join(f'{c + 0.0:.2f}' for c in np.round(direction, 2))})"
    order = sorted(range(len(direction)), key=lambda i: -abs(direction[i]))[:3]
    return f"({', '.join(f'{names[i]}: {direction[i]:.2f}' for i in order)}, …)"


def violation(posed: Posed, c: Comparison, A: Tensor) -> Violation:
    """What the best twin of a form leaves over."""
    test = posed.given.held_out
    R = _usual(posed.values_out(c.left).reshape(len(test), -1).double().numpy())
    x = test.x.double().sum(1, keepdim=True) if test.set_like else test.x.double()
    X = (x / posed.x_unit).flatten(1).numpy()
    names = tuple(test.names)
    points = x.shape[1]
    total = max(float(np.square(R).sum()), 1e-300)
    vectors = any(part.rank for part in posed.given.train.rep.parts) and R.shape[1] == test.n
    mean = R.mean(0) if vectors else np.zeros(R.shape[1])
    Z = (X - X.mean(0)) / np.maximum(X.std(0), 1e-300)
    varying = R - R.mean(0)
    whole = float(np.square(varying).sum()) / total
    linear, explained, slopes = _explained(varying, Z)
    pairs = list(itertools.combinations_with_replacement(range(Z.shape[1]), 2))
    quadratic = 0.0
    if len(pairs) * ROWS_FOR_EACH <= len(Z):
        both = np.concatenate([Z, *(Z[:, [i]] * Z[:, [j]] for i, j in pairs)], axis=1)
        quadratic = max(0.0, _explained(varying, both - both.mean(0))[0] - linear)
    constant = max(0.0, len(R) * float(mean @ mean) / total - 1 / len(R))
    component = np.linalg.svd(explained + mean, full_matrices=False)[2][0]
    along = (slopes @ component).reshape(points, -1) / np.maximum(X.std(0), 1e-300).reshape(points, -1)
    vector = int(np.square(along).sum(1).argmax())
    way = mean if constant > whole * linear else along[vector]
    way = way / max(float(np.linalg.norm(way)), 1e-300)
    way = way * (1 if way[np.abs(way).argmax()] > 0 else -1)
    s = R @ component
    columns = [("the direction", X.reshape(-1, points, test.n)[:, vector] @ way)]
    columns += [(n, v) for n, v in zip(_coordinate_names(names, points), (posed.x_unit * X).T)]
    columns += _invariants(posed, A)
    profiles = tuple(_profile(name, values, s) for name, values in columns)
    shares = constant, whole * linear, whole * quadratic
    return Violation(tuple(way.tolist()), vector, *shares, profiles, names, points)


def _usual(R: np.ndarray) -> np.ndarray:
    """Rows of usual size; larger ones keep their direction."""
    size = np.linalg.norm(R, axis=1)
    return R * np.minimum(1.0, np.quantile(size, USUAL) / np.maximum(size, 1e-300))[:, None]


def _explained(R: np.ndarray, Z: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The share of R that is linear in Z, less what chance gives; these values, and the coefficients."""
    slopes = np.linalg.lstsq(Z, R, rcond=None)[0]
    values = Z @ slopes
    left = np.square(R - values).sum() / max(float(np.square(R).sum()), 1e-300)
    freedom = max(1, len(Z) - Z.shape[1] - 1)
    return max(0.0, float(1 - left * (len(Z) - 1) / freedom)), values, slopes


def _profile(name: str, values: np.ndarray, s: np.ndarray) -> Profile:
    """Means of s in bins of equal number."""
    parts = [part for part in np.array_split(np.argsort(values, kind="stable"), BINS) if len(part) > 1]
    means = np.array([s[part].mean() for part in parts])
    errors = np.array([s[part].std(ddof=1) / len(part) ** 0.5 for part in parts])
    within = sum(float(np.square(s[part] - m).sum()) for part, m in zip(parts, means))
    left = within / max(float(np.square(s - s.mean()).sum()), 1e-300)
    share = max(0.0, 1 - left * (len(s) - 1) / max(1, len(s) - len(parts)))
    at = tuple(float(np.median(values[part])) for part in parts)
    return Profile(name, share, at, tuple(means.tolist()), tuple(errors.tolist()))


def _coordinate_names(names: Sequence[str], points: int) -> list[str]:
    if points == 1:
        return list(names)
    return [f"{name} of vector {i + 1}" for i in range(points) for name in names]


def _invariants(posed: Posed, A: Tensor) -> list[tuple[str, np.ndarray]]:
    """The inner products of the held-out samples, in the frame; of a set, the square of its sum."""
    held = posed.parts.held_out
    x = held.x.double().sum(1, keepdim=True) if held.set_like else held.x.double()
    gram = (x @ A @ x.mT).numpy()
    points = gram.shape[1]
    if points == 1:
        return [("q(x)", gram[:, 0, 0])]
    pairs = itertools.combinations_with_replacement(range(points), 2)
    named = [(f"q of {i + 1}, {j + 1}" if i < j else f"q of vector {i + 1}", i, j) for i, j in pairs]
    return [(name, gram[:, i, j]) for name, i, j in named]
