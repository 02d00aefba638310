"""The choice of terms: steps that add, exchange or drop one, by an information criterion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from gortho.formulas.fitting import Rows, solve
from gortho.formulas.library import Candidate
from gortho.formulas.terms import Monomial, Term

#: What is left below this share of the sum of squares is rounding: no term is chosen to lower it.
ROUNDING = 1e-13
#: Columns that leave less than this share of themselves beside those chosen already are sums of them.
SAME = 1e-8
#: Searches begin from this many single columns, and from the best pair.
BEGINNINGS = 3
#: Steps, at most.
STEPS = 30
#: A term is left out of the choice where one sample makes up more than this share of its squares.
RULED = 0.3
#: The same function twice, with numbers inside that differ by less than this share, is one.
ALIKE = 0.1


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

    def gains(self, chosen: tuple[int, ...]) -> tuple[float, np.ndarray]:
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

    def best_added(self, chosen: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        """The chosen columns with the best one to add, and the criterion with it."""
        before, gains = self.gains(chosen)
        left = np.maximum(before - gains, 0.0)
        values = self.rows * np.log(left / self.total + ROUNDING) + self.price
        values[list(chosen)] = np.inf
        best = int(values.argmin())
        return float(values[best]) + float(self.price[list(chosen)].sum()), (*chosen, best)

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
            moves = [self.best_added(chosen)] if len(chosen) < most else []
            for place in range(len(chosen)):
                rest = chosen[:place] + chosen[place + 1 :]
                moves += [(self.criterion(rest), rest), self.best_added(rest)]
            value, step = min(moves)
            if value >= at - 1e-9 and pairs and len(chosen) > 1:  # one or two others in place of two
                ones = [self.best_added(rest) for rest in combinations(chosen, len(chosen) - 2)]
                value, step = min(ones + [self.best_added(more) for _, more in ones])
            if value >= at - 1e-9:
                break
            at, chosen = value, step
        return at, chosen


def choose(squares: Squares, most: int) -> tuple[int, ...]:
    """The columns of the best sum of at most so many."""
    singles = np.argsort(-squares.gains(())[1])[:BEGINNINGS]
    starts: list[tuple[int, ...]] = [(int(i),) for i in singles]
    if most > 1 and len(squares.b) > 1:
        starts.append(squares.best_pair())
    best = min(squares.improved(start, most) for start in starts)[1]
    return squares.improved(best, most, pairs=True)[1]


def prices(costs: np.ndarray, rows: int) -> np.ndarray:
    """What terms cost: log N for a number that is fitted, and twice the logarithm of how many there are as simple."""
    as_simple = np.array([np.sum(costs <= c) for c in costs])
    return np.log(rows) + 2 * np.log(as_simple)


@dataclass(frozen=True, eq=False)
class Choice:
    """Terms to choose from, their columns on some rows, and what the choice needs of these."""

    pool: list[Candidate]
    columns: np.ndarray
    rows: Rows
    squares: Squares

    @classmethod
    def of(cls, pool: list[Candidate], columns: np.ndarray, rows: Rows) -> Choice:
        """Of the terms whose columns are finite, not zero, and not ruled by one sample, unless y is."""
        squares = np.square(columns).reshape(*rows.y.shape, len(pool)).sum(1)
        y = np.square(rows.root * rows.y).sum(1)
        total = squares.sum(0)
        fine = (
            np.isfinite(total) & (total > 0) & (squares.max(0) <= max(RULED, 2 * y.max() / y.sum()) * total)
        )
        pool, columns = [c for c, k in zip(pool, fine) if k], columns[:, fine]
        N = len(rows.y)
        price = prices(np.array([c.cost for c in pool]), N)
        price += np.log(N) * np.array([len(c.term.shapes) for c in pool])
        return cls(pool, columns, rows, Squares.of(columns, rows.target, price, N))

    def part(self, places: Sequence[int]) -> Choice:
        """A choice among some of the terms."""
        return Choice.of([self.pool[i] for i in places], self.columns[:, list(places)], self.rows)

    def best(self, most: int) -> tuple[float, list[Term]]:
        """The best sum of at most so many terms, with its criterion before it."""
        squares = self.squares
        chosen = choose(squares, most)
        count = self._effective(chosen)
        if count < squares.rows:
            squares = replace(squares, rows=count)
            chosen = squares.improved(chosen, most)[1]
        return squares.criterion(chosen), [self.pool[i].term for i in chosen]

    def _effective(self, chosen: Sequence[int]) -> int:
        """Rows that count: as many normal errors as have the same spread of their squares as what is left."""
        design = self.columns[:, list(chosen)]
        left = self.rows.target - design @ solve(design, self.rows.target)
        squares = np.square(left).reshape(len(self.rows.y), -1).sum(1)
        if not squares.any():
            return len(squares)
        usual = 1 + 2 / self.rows.y.shape[1]  # of the square of a normal error with so many components
        return int(min(len(squares), max(1.0, usual * squares.sum() ** 2 / np.square(squares).sum())))

    def beside(self, new: list[Candidate]) -> Choice:
        """With further terms, but for those that are there already, or nearly so."""
        there: dict[tuple[Monomial, ...], list[float]] = {}
        for candidate in self.pool:
            if candidate.term.shapes:
                there.setdefault(_kind(candidate.term), []).append(candidate.term.shapes[0])
        added: list[Candidate] = []
        for candidate in new:
            shape, others = candidate.term.shapes[0], there.setdefault(_kind(candidate.term), [])
            if all(abs(shape - other) > ALIKE * abs(shape) for other in others):
                others.append(shape)
                added.append(candidate)
        columns = self.rows.design([c.term for c in added])
        return Choice.of(self.pool + added, np.concatenate([self.columns, columns], 1), self.rows)

    def criterion(self, terms: Sequence[Term]) -> float:
        """That of a sum of these terms, of which some may have other numbers inside."""
        design, y, N = self.rows.design(terms), self.rows.target, len(self.rows.y)
        left = float(np.square(y - design @ solve(design, y)).sum())
        count = len(terms) + sum(len(term.shapes) for term in terms)
        price = float(np.log(N) + 2 * np.log(len(self.pool)))
        return N * float(np.log(left / (y @ y) + ROUNDING)) + count * price


def _kind(term: Term) -> tuple[Monomial, ...]:
    """The term without the number inside."""
    return term.shaped([1.0] * len(term.shapes)).monomials
