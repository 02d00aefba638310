"""The choice of terms: columns of all candidates, on some rows, and the best sums of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gortho.formulas.fitting import Rows, solve
from gortho.formulas.library import Candidate
from gortho.formulas.selection import ROUNDING, Squares, choose, prices
from gortho.formulas.terms import Monomial, Term

#: A term is left out of the choice where one sample makes up more than this share of its squares.
RULED = 0.3
#: The same function twice, with numbers inside that differ by less than this share, is one.
ALIKE = 0.1


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
