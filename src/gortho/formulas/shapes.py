"""Terms with a number inside that is fitted: waves, exponentials, shifted powers; a grid of them, the best refined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gortho.formulas.fitting import Rows, refined, solve
from gortho.formulas.library import Candidate, Space, legs, scalar_products
from gortho.formulas.values import Factor, Monomial, Quantities, Term

#: Waves up to the 95th percentile of their variable: so many radians apart, so many of them.
RADIANS, WAVES = 0.7, 28
#: Rates of exponentials, in units of the median.
RATES = (0.2, 0.6, 1.5, 4.0)
#: What is added to a square before its power or logarithm is taken, in units of its median.
SHIFTS = (0.03, 0.3, 3.0)
SHIFTED = (-1.5, -1.0, -0.5, 0.5)
#: Where powers that are no multiples of a half begin.
FREE = (-2.3, -1.2, -0.3, 0.3, 0.7, 1.2, 2.3)
#: Terms of the grid, at most, and those of it that are refined beside each set of other terms.
MOST, REFINED = 1_000, 3
#: What a term with a number inside costs more.
COST = 2


def factors(space: Space, q: Quantities) -> Iterator[tuple[Factor, int]]:
    """Functions of one square each, with costs."""
    for u, cost in space.squares():
        t = np.abs(q.inner(u, u))
        middle, far = np.quantile(t, [0.5, 0.95])
        absolute = (u, u) not in space.positive
        if middle <= 0:
            continue
        for rooted in (False, True):
            length, rate = (far**0.5, middle**0.5) if rooted else (far, middle)
            for k in range(1, WAVES + 1):
                for kind in ("sin", "cos"):
                    yield Factor(kind, u, u, absolute=rooted and absolute, rooted=rooted, shape=k * RADIANS / length), cost  # fmt: skip
            for r in RATES:
                for sign in (-1.0,) if rooted else (-1.0, 1.0):
                    yield Factor("exp", u, u, absolute=absolute, rooted=rooted, shape=sign * r / rate), cost
        for a in SHIFTS:
            for power in SHIFTED:
                yield Factor("power", u, u, power, absolute, shape=a * middle), cost
            yield Factor("log", u, u, absolute=absolute, shape=a * middle), cost
        for power in FREE:
            yield Factor("free", u, u, absolute=absolute, shape=power), cost
        for k in range(q.scalars.shape[1]):
            size = np.median(np.square(q.scalars[:, k]))
            for a in SHIFTS if size > 0 else ():
                for power in (0.5, -0.5):
                    yield Factor("power", u, u, power, absolute, shape=a * middle / size, scalar=k), cost


def grid(space: Space, q: Quantities, output_space: int = 0) -> list[Candidate]:
    """Terms with a number inside, from the simplest on."""
    found = []
    ways = legs(space, q, output_space)
    simple = [(s, c) for s, c in scalar_products(space) if c < 2]
    for factor, cost in factors(space, q):
        for way, weights, of_leg in ways:
            if of_leg and factor.left != weights[0]:
                continue
            for scalars, more in simple:
                term = Term((Monomial((*scalars, factor), way, weights),))
                found.append(Candidate(term, COST + cost + of_leg + more))
    return sorted(found, key=lambda candidate: candidate.cost)[:MOST]


@dataclass(frozen=True, eq=False)
class Grid:
    """The grid with its columns on samples."""

    candidates: list[Candidate]
    columns: np.ndarray

    @classmethod
    def of(cls, space: Space, rows: Rows, output_space: int = 0) -> Grid:
        """Of the terms that are finite and not zero there."""
        candidates = grid(space, rows.q, output_space)
        columns = rows.design([c.term for c in candidates])
        size = np.linalg.norm(columns, axis=0)
        keep = np.isfinite(size) & (size > 0)
        return cls([c for c, k in zip(candidates, keep) if k], columns[:, keep] / size[keep])

    def best(self, beside: Sequence[Term], rows: Rows) -> list[Candidate]:
        """Those that help most beside other terms, refined there; one of each kind, vector and square."""
        if not self.candidates:
            return []
        y, D = rows.target, self.columns
        if beside:
            X = rows.design(beside)
            y = y - X @ solve(X, y)
            D = D - X @ np.linalg.lstsq(X, D, rcond=1e-12)[0]
        own = np.einsum("nm,nm->m", D, D)
        gains = np.where(own > 1e-8, (y @ D) ** 2 / np.maximum(own, 1e-8), 0.0)
        found: list[Candidate] = []
        seen = set()
        for place in np.argsort(-gains):
            candidate = self.candidates[place]
            m = candidate.term.monomials[0]
            f = m.factors[-1]
            key = (f.kind, f.left, f.rooted, f.power, f.scalar, m.legs, m.term, len(m.factors))
            if key in seen:
                continue
            seen.add(key)
            found.append(Candidate(refined([candidate.term, *beside], rows)[0], candidate.cost))
            if len(found) == REFINED:
                break
        return found
