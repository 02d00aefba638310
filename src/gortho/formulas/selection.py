"""Stepwise selection of columns: steps that add, exchange or drop one, by an information criterion."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, repeat

import numpy as np

#: What is left below this share of the sum of squares is rounding: no term is chosen to lower it.
ROUNDING = 1e-13
#: Columns that leave less than this share of themselves beside those chosen already are sums of them.
SAME = 1e-8
#: Searches begin from this many single columns, and from the best pair.
BEGINNINGS = 3
#: Steps, at most.
STEPS = 30


@dataclass(frozen=True)
class Squares:
    """Sums of products of unit columns with each other and with the target, all that a search needs."""

    G: np.ndarray
    b: np.ndarray
    total: float
    rows: int
    price: np.ndarray  # what each column costs in the criterion

    @classmethod
    def of(cls, columns: np.ndarray, y: np.ndarray, price: np.ndarray, rows: int) -> Squares:
        """Of columns ``(N, M)``; ``rows`` independent ones count."""
        unit = columns / np.linalg.norm(columns, axis=0)
        return cls(unit.T @ unit, unit.T @ y, float(y @ y), rows, price)

    def left(self, chosen: tuple[int, ...]) -> float:
        """The sum of squares that these columns leave."""
        if not chosen:
            return self.total
        S = list(chosen)
        solution = np.linalg.lstsq(self.G[np.ix_(S, S)], self.b[S], rcond=None)[0]
        return max(self.total - float(self.b[S] @ solution), 0.0)

    def criterion(self, chosen: tuple[int, ...]) -> float:
        """N log(what is left) + the prices: lower is better."""
        left = self.left(chosen)
        return self.rows * float(np.log(left / self.total + ROUNDING)) + float(self.price[list(chosen)].sum())

    def gains(self, chosen: tuple[int, ...]) -> np.ndarray:
        """What each column takes off the sum of squares, beside those chosen."""
        return self._after(chosen)[1]

    def _after(self, chosen: tuple[int, ...]) -> tuple[float, np.ndarray]:
        """The sum of squares that the chosen columns leave, and what each further one takes off it."""
        if not chosen:
            return self.total, self.b**2
        S = list(chosen)
        rows = self.G[S]
        both = np.linalg.lstsq(rows[:, S], np.column_stack([self.b[S], rows]), rcond=None)[0]
        solution, mixed = both[:, 0], both[:, 1:]
        own = 1.0 - np.einsum("km,km->m", rows, mixed)
        seen = self.b - self.b[S] @ mixed
        left = max(self.total - float(self.b[S] @ solution), 0.0)
        return left, np.where(own > SAME, seen**2 / np.maximum(own, SAME), 0.0)

    def best_added(self, chosen: tuple[int, ...]) -> tuple[float, int]:
        """The best column to add, by the criterion, and the criterion with it."""
        before, gains = self._after(chosen)
        left = np.maximum(before - gains, 0.0)
        values = self.rows * np.log(left / self.total + ROUNDING) + self.price
        values[list(chosen)] = np.inf
        best = int(values.argmin())
        return float(values[best]) + float(self.price[list(chosen)].sum()), best

    def best_pair(self) -> tuple[int, ...]:
        """The best two columns of all."""
        det = 1.0 - self.G**2
        np.fill_diagonal(det, 0.0)
        b = self.b
        taken = b[:, None] ** 2 + b**2 - 2 * self.G * b[:, None] * b
        left = self.total - np.where(det > SAME, taken / np.maximum(det, SAME), 0.0)
        values = self.rows * np.log(np.maximum(left, 0.0) / self.total + ROUNDING)
        values += self.price[:, None] + self.price
        return tuple(int(i) for i in np.unravel_index(values.argmin(), values.shape))

    def improved(
        self, chosen: tuple[int, ...], most: int, pairs: bool = False
    ) -> tuple[float, tuple[int, ...]]:
        """Where steps that add, exchange or drop one column, or exchange two, end, with at most so many."""
        at = self.criterion(chosen)
        for _ in range(STEPS):
            moves = []
            if len(chosen) < most:
                value, best = self.best_added(chosen)
                moves.append((value, (*chosen, best)))
            for place in range(len(chosen)):
                rest = chosen[:place] + chosen[place + 1 :]
                moves.append((self.criterion(rest), rest))
                value, best = self.best_added(rest)
                moves.append((value, (*rest, best)))
            value, step = min(moves)
            if value >= at - 1e-9 and pairs:
                value, step = min(
                    map(self._two_others, combinations(chosen, 2), repeat(chosen)), default=(at, ())
                )
            if value >= at - 1e-9:
                break
            at, chosen = value, step
        return at, chosen

    def _two_others(self, pair: tuple[int, ...], chosen: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        """The best one or two columns in place of two."""
        rest = tuple(i for i in chosen if i not in pair)
        value, one = self.best_added(rest)
        other, two = self.best_added((*rest, one))
        return min((value, (*rest, one)), (other, (*rest, one, two)))


def choose(squares: Squares, most: int) -> tuple[int, ...]:
    """The columns of the best sum of at most so many."""
    singles = np.argsort(-squares.gains(()))[:BEGINNINGS]
    starts: list[tuple[int, ...]] = [(int(i),) for i in singles]
    if most > 1 and len(squares.b) > 1:
        starts.append(squares.best_pair())
    best = min(squares.improved(start, most) for start in starts)[1]
    return squares.improved(best, most, pairs=True)[1]


def prices(costs: np.ndarray, rows: int) -> np.ndarray:
    """What terms cost: log N for a number that is fitted, and twice the logarithm of how many there are as simple."""
    as_simple = np.array([np.sum(costs <= c) for c in costs])
    return np.log(rows) + 2 * np.log(as_simple)
