"""The scan: an evolutionary search for forms that uses only their scores, no derivatives (M12)."""

from __future__ import annotations

import torch

from gortho.discovery.clock import Clock
from gortho.discovery.looks import NEARLY_EXACT, SAME, SCAN, projections
from gortho.discovery.projection import Projection, Solve
from gortho.discovery.settings import Settings
from gortho.discovery.starts import Start, distinct
from gortho.samples.frame import form_distance, unit_form
from gortho.samples.values import Samples

#: Steps by which the scan sees whether the law is nearly exact at a start, or whether two that are so far apart lead
#: to one form which leaves less than this share of the variance.
QUICK_STEPS, APART, SETTLED = 6, 0.3, 0.02
#: Smoothness of the two scans, and how far children are from their parents in the first and the last round.
SCAN_SOFT = (1.0, 0.3)
WIDEST, NARROWEST = 0.6, 0.1
#: Forms that breed, and forms bred in a round.
PARENTS, CHILDREN = 6, 30


def scan(
    samples: Samples, starts: list[Start], settings: Settings, seed: int, clock: Clock, harder: bool = False
) -> list[Start]:
    """Starts bred for their scores: the best forms, and those between and around them, round by round.

    A smooth family and a sharper one breed side by side: where one is misled, the other mostly is not.
    """
    generator = torch.Generator().manual_seed(seed)
    children = 2 * CHILDREN if harder else CHILDREN
    # Tensors mostly tell their form by a linear solve, and cost more.
    rounds = settings.generations if max(part.rank for part in samples.rep.parts) < 2 or harder else 2
    bred: list[Start] = []
    for projection in projections(samples, SCAN, SCAN_SOFT, seed):
        if bred and clock.over():
            break
        pool = scored(projection, starts)
        ends = [(start, projection.refine(start.A, QUICK_STEPS)) for start in apart(pool, 2, APART)]
        exact = [Start(start.label, at.A) for start, at in ends if at.criterion < NEARLY_EXACT]
        if exact:
            return exact
        if not harder and _agreed([at for _, at in ends]):
            return distinct(bred + [Start(start.label, at.A) for start, at in ends])
        for g in range(rounds):
            if clock.over() or pool[0][0] < NEARLY_EXACT:
                break
            spread = WIDEST * (NARROWEST / WIDEST) ** (g / max(1, rounds - 1))
            parents = apart(pool, PARENTS, spread / 2)
            pool += scored(projection, _children(parents, children, spread, generator))
            pool = sorted(pool, key=lambda pair: pair[0])[: 2 * CHILDREN]
        bred += apart(pool, PARENTS, SAME)
    return distinct(bred)


def _agreed(ends: list[Solve]) -> bool:
    """Whether two starts lead to one form that explains most: there is nothing to breed for."""
    most = all(at.criterion < SETTLED for at in ends)
    return most and len(ends) > 1 and form_distance(ends[0].A, ends[1].A) < SAME


def scored(projection: Projection, starts: list[Start]) -> list[tuple[float, Start]]:
    scores = [(projection.solve(start.A).criterion, start) for start in starts]
    return sorted(scores, key=lambda pair: pair[0])


def _children(parents: list[Start], count: int, spread: float, generator: torch.Generator) -> list[Start]:
    """Forms around the parents; every other one is moved by half of the difference of two of them."""
    n = len(parents[0].A)
    children = []
    for k in range(count):
        one = parents[k % len(parents)]
        pair = [parents[i].A for i in torch.randint(len(parents), (2,), generator=generator).tolist()]
        B, C = (M * torch.where((M * one.A).sum() < 0, -1.0, 1.0) for M in pair)
        noise = torch.randn(n, n, dtype=torch.float64, generator=generator)
        noise = (noise + noise.mT) / (2 * (n + 1)) ** 0.5
        children.append(Start(one.label, unit_form(one.A + 0.5 * (k % 2) * (B - C) + spread * noise)))
    return children


def apart(pool: list[tuple[float, Start]], count: int, distance: float) -> list[Start]:
    """The best few that are this far from each other."""
    return distinct([start for _, start in pool], distance)[:count]
