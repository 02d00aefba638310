"""The time of a discovery: how much has passed, by stage, and whether the budget is spent."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gortho import checks

#: Shares of a time budget that are spent when each stage ends.
SHARES = {"search": 0.4, "refits": 0.6, "predictor": 0.8, "twins": 1.0, "members": 1.0}
#: … where a parity was given: plain O(A), which comes first, is not what is asked for.
SHARES_BEFORE_PARITY = {"search": 0.1, "refits": 0.15, "predictor": 0.3, "twins": 0.5}

#: Samples that a second of a budget is enough for, and the least that a budget cuts them to.
ROWS_PER_SECOND, LEAST_ROWS = 500, 1_000
BUDGET = "the time budget is not enough for more"
#: Rows that were chosen for a budget before they were read are thinned again if what reading leaves of it is enough for
#: this many times fewer only.
TOO_MANY = 1.5
#: A larger budget is advised with this margin, in steps of this many seconds: what is cut short is known roughly.
MARGIN, STEP = 1.5, 10
#: What is never cut takes about this many seconds: smaller budgets are not kept.
LEAST_BUDGET = 3.0


def too_small(budget: float | None) -> list[str]:
    """A notice where a time budget is too small to be kept."""
    if budget is None or float(f"{budget:.2g}") >= LEAST_BUDGET:  # as it is printed
        return []
    return [
        f"the search has {budget:.2g} s of the time budget, which is below the minimum, about {LEAST_BUDGET:g} s"
    ]


def affordable(budget: float | None, rows: int) -> int:
    """So many rows, or what a time budget allows where that is less: the work that is not cut grows with them.

    >>> affordable(20, 50_000), affordable(None, 50_000)
    (10000, 50000)
    """
    return rows if budget is None else min(rows, max(LEAST_ROWS, int(ROWS_PER_SECOND * budget)))


def within_budget(budget: float | None, rows: int) -> int:
    """So many rows that were chosen for a budget; fewer, where reading them has left too little of it.

    >>> within_budget(18, 10_000), within_budget(5, 10_000)
    (10000, 2500)
    """
    few = affordable(budget, rows)
    return few if rows > TOO_MANY * few else rows


class Clock:
    """Seconds since the start, seconds by stage, and the end of the stage's share of the budget, if there is one."""

    def __init__(self, budget: float | None = None):
        self.budget = None if budget is None else checks.seconds(budget)
        self.started = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self.seconds_missing = 0.0  # seconds, about, that what was cut short would have taken
        self.rows_left_out = False  # whether there were more samples than are used
        self.shares = SHARES
        self._end: float | None = None

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Within: the stage runs, and may use its share of the budget."""
        begun = time.perf_counter()
        self._end = None if self.budget is None else self.started + self.shares.get(name, 1.0) * self.budget
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun
            self._end = None

    def over(self) -> bool:
        """Whether the stage's share of the budget is spent."""
        return self._end is not None and time.perf_counter() > self._end

    def enough(self, samples: int) -> str:
        """A sentence on the time budget that would have been enough."""
        which = f" (max_samples={samples})" if self.rows_left_out else ""
        return f"With these {samples:,} samples{which}, about {self.advised} s would do."

    @property
    def advised(self) -> int:
        """Seconds that would have been enough, with a margin."""
        return STEP * math.ceil(MARGIN * (self.total + self.seconds_missing) / STEP)

    @property
    def has_budget(self) -> bool:
        """Whether there is a budget at all."""
        return self.budget is not None

    @property
    def total(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started
