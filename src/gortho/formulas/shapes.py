"""Terms with a fitted parameter: waves, exponentials, shifted powers; a grid of them, of which the best are refined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from gortho.formulas.fitting import STEP, Rows
from gortho.formulas.library import Candidate, Space, legs, scalar_products, sums_of
from gortho.formulas.selection import SAME
from gortho.formulas.terms import Factor, Monomial, Quantities, Term

#: Waves up to the 95th percentile of their variable: this many radians apart, this many of them.
RADIANS, WAVES = 0.7, 28
#: Rates of exponentials, in units of the median.
RATES = (0.2, 0.6, 1.5, 4.0)
#: What is added to a square before its power or logarithm is taken, in units of its median.
SHIFTS = (0.03, 0.3, 3.0)
SHIFTED = (-1.5, -1.0, -0.5, 0.5)
#: What a square is taken from, in units of its largest value.
ABOVE = (1.03, 1.4, 4.0)
#: The largest argument of an arcsin, which ends at one.
ARCS = (0.4, 0.7, 0.95)
#: Where powers that are no multiples of a half begin.
FREE = (-2.3, -1.2, -0.3, 0.3, 0.7, 1.2, 2.3)
#: Terms of the grid, at most, and those of it that are refined beside each set of other terms.
MOST, REFINED = 1_500, 10
#: Steps of a refinement.
REFINEMENTS = 8
#: What a term with a number inside costs more.
COST = 2


def factors(space: Space, q: Quantities) -> Iterator[tuple[tuple[Factor, ...], int]]:
    """Functions of one square each, with costs; the number inside is in the last factor."""
    known = range(q.scalars.shape[1])
    for u, cost in space.squares():
        t = np.abs(q.inner(u, u))
        middle, far = np.quantile(t, [0.5, 0.95])
        absolute = (u, u) not in space.positive
        if middle <= 0:
            continue
        plain = Factor("power", u, u, absolute=absolute)
        for rooted, power in ((False, 1.0), (True, 0.5)):
            one = Factor("sin", u, u, absolute=rooted and absolute, rooted=rooted)
            for k in range(1, WAVES + 1):
                wave = replace(one, shape=k * RADIANS / far**power)
                yield from (((wave,), cost), ((replace(wave, kind="cos"),), cost))
            for rate in RATES:
                fall = replace(one, kind="exp", absolute=absolute, shape=-rate / middle**power)
                yield (fall,), cost
                if rooted:
                    yield (replace(plain, power=-0.5), fall), cost + 1
                    continue
                yield (replace(fall, shape=rate / middle),), cost
                for sign in (-1, 1) if absolute else ():
                    yield (replace(fall, absolute=False, shape=sign * rate / middle),), cost
        arc, root = replace(plain, kind="arcsin", rooted=True), np.sqrt(t)
        for share in ARCS:  # of a length, or of a length times a positive scalar, such as a wavelength
            yield (replace(arc, shape=share / root.max()),), cost
            for k, s in zip(known, q.scalars.T):
                if (s > 0).all():
                    yield (replace(arc, shape=share / (root * s).max(), scalar=k),), cost
        added = [replace(plain, shape=a * middle) for a in SHIFTS]
        added += [replace(plain, falling=True, shape=a * t.max()) for a in ABOVE]
        for shifted in added:
            for power in SHIFTED:
                yield (replace(shifted, power=power),), cost
            yield (replace(shifted, kind="log"),), cost
        for power in FREE:
            yield (replace(plain, kind="free", shape=power),), cost
        for k in known:
            size = np.median(np.square(q.scalars[:, k]))
            for a, power in product(SHIFTS if size > 0 else (), (0.5, -0.5)):
                yield (replace(plain, power=power, shape=a * middle / size, scalar=k),), cost


@dataclass(frozen=True, eq=False)
class Grid:
    """Terms with a number inside, and their columns on few samples."""

    candidates: list[Candidate]
    columns: np.ndarray
    rows: Rows

    @classmethod
    def of(cls, space: Space, rows: Rows, output_space: int = 0, logarithms: bool = True) -> Grid:
        """All terms, from the simplest on, that are finite and not zero there."""
        found: list[tuple[Candidate, np.ndarray]] = []
        ways = [w for w in legs(space, rows.q, output_space) if space.fits(Monomial((), *w[:2]), rows.q.ways)]
        simple = [(s, c) for s, c in scalar_products(space) if c < 2]
        with np.errstate(all="ignore"):
            others = [
                (way, s, _value(rows, s) * rows.root * rows.q.tensor(*way[:2]), c + way[2])
                for way, (s, c) in product(ways, simple)
            ]
            apart = [sums_of(way[1]) for way, *_ in others]
            for chosen, cost in factors(space, rows.q):
                if chosen[-1].kind == "log" and not logarithms:
                    continue
                value = _value(rows, chosen)
                for ((number, weights, _), scalars, other, more), own in zip(others, apart):
                    if own and chosen[-1].left not in own:
                        continue
                    term = Term((Monomial((*scalars, *chosen), number, weights),))
                    found.append((Candidate(term, COST + cost + more), (value * other).ravel()))
        found = sorted(found, key=lambda pair: pair[0].cost)[:MOST]
        columns = np.stack([column for _, column in found], 1) if found else np.zeros((rows.y.size, 0))
        with np.errstate(all="ignore"):
            size = np.linalg.norm(columns, axis=0)
        keep = np.isfinite(size) & (size > 0)
        return cls([c for (c, _), k in zip(found, keep) if k], columns[:, keep] / size[keep], rows)

    def best(self, beside: Sequence[Term]) -> list[Candidate]:
        """Those that help most beside other terms, refined there; one of each kind, vector and square."""
        if not self.candidates:
            return []
        design = self.rows.design(beside)
        if not np.isfinite(design).all():
            return []
        basis = np.linalg.qr(design)[0]
        y = self.rows.target
        y = y - basis @ (basis.T @ y)
        D = self.columns - basis @ (basis.T @ self.columns)
        own = np.einsum("nm,nm->m", D, D)
        gains = np.where(own > SAME, (y @ D) ** 2 / np.maximum(own, SAME), 0.0)
        found: list[Candidate] = []
        seen = set()
        for place in np.argsort(-gains):
            candidate = self.candidates[place]
            m = candidate.term.monomials[0]
            key = (m.legs, m.term, *(replace(f, shape=None) for f in m.factors))
            if key not in seen:
                seen.add(key)
                found.append(Candidate(self._refined(candidate.term, basis, y), candidate.cost))
            if len(found) == REFINED:
                break
        return found

    def _refined(self, term: Term, basis: np.ndarray, y: np.ndarray) -> Term:
        """The term with the number inside that leaves least beside others: Gauss-Newton on one number."""

        def column(shape: float) -> np.ndarray:
            d = self.rows.design([term.shaped([shape])])[:, 0]
            return d - basis @ (basis.T @ d)

        def left(d: np.ndarray) -> np.floating:
            own = d @ d
            return y @ y - (y @ d) ** 2 / own if np.isfinite(own) and own > 0 else np.float64(np.inf)

        shape = term.shapes[0]
        d = column(shape)
        at = left(d)
        for _ in range(REFINEMENTS):
            h = STEP * abs(shape)
            c = (y @ d) / (d @ d)
            slope = c * (column(shape + h) - d) / h
            slope = slope - d * ((d @ slope) / (d @ d))
            size = slope @ slope
            if not np.isfinite(size) or size <= 0:
                break
            step = slope @ (y - c * d) / size
            step = float(np.clip(step, -abs(shape) / 2, abs(shape) / 2))
            moved = column(shape + step)
            if not left(moved) < at * (1 - 1e-9):
                break
            shape, d, at = shape + step, moved, left(moved)
        return term.shaped([shape])


def _value(rows: Rows, factors: Sequence[Factor]) -> np.ndarray:
    """A product of factors ``(N, 1)``."""
    value = np.ones(len(rows.y))
    for factor in factors:
        value = value * rows.q.factor(factor)
    return value[:, None]
