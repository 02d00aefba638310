"""How every form is found: starts, search, refits, and the exact law if there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.likelihood import likelihood_refits, most_likely
from gortho.discovery.models import coordinates
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Fitted, Parts, exact_law
from gortho.discovery.refits import refit
from gortho.discovery.search import Interrupted, Progress, Search, search
from gortho.discovery.settings import Settings
from gortho.discovery.spectral import SpectralForm, spectral_form
from gortho.discovery.starts import (
    Start,
    cone_starts,
    correlation_starts,
    distinct,
    given_starts,
    stabiliser_starts,
    white_starts,
)
from gortho.forms import QuadraticForm
from gortho.objectives import ABSOLUTE, Objective
from gortho.objectives.learners import KernelRidge, Table
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: More samples than this add time, not knowledge, to the search for the form (the predictor sees all).
SEARCH_SAMPLES = 10_000
#: A label says little, and the error of a form of classes falls with their number: its last fit sees more of them.
LIKELIHOOD_SAMPLES = 50_000
#: Samples of the search's validation part, at most.
VALIDATION_SAMPLES = 1_000


@dataclass(frozen=True)
class FoundForm:
    """The form of a search, with refits for its errors and what was learnt on the way; all in the frame."""

    search: Search
    A: Tensor  # the best estimate: where the search ended, or the form of an exact law
    refits: Tensor | None = None
    law: Fitted | None = None  # the short polynomial or formula that the law is, where it is one
    spectral: SpectralForm | None = None

    @property
    def estimates(self) -> tuple[Tensor, ...]:
        """Other estimates of the form: where other starts ended, and the refits."""
        return (*(r.A for r in self.search.restarts[1:]), *(() if self.refits is None else self.refits[1:]))


def find_form(
    posed: Posed,
    objectives: Sequence[Objective],
    *,
    settings: Settings,
    seed: int,
    clock: Clock,
    progress: Callable[[str, float, Tensor], None] = lambda stage, share, A: None,
) -> FoundForm:
    """Search and refits: the one way to find a form, by the best of some objectives.

    An interruption raises `Interrupted` with the best so far.
    """
    train = posed.parts.train.rows(slice(0, SEARCH_SAMPLES))
    validation = posed.parts.validation.rows(slice(0, VALIDATION_SAMPLES))
    with clock.stage("search"):
        try:
            spectral = _spectral(train, validation)
            starts = _starts(posed, train, spectral, settings, seed)
        except KeyboardInterrupt:
            A = torch.eye(train.n, dtype=torch.float64)
            raise Interrupted(Search(A, objectives[0], ())) from None
        found = search(
            train,
            validation,
            starts,
            settings=settings,
            objectives=objectives,
            seed=seed,
            clock=clock,
            progress=partial(progress, "search"),
        )
    shown = partial(progress, "refits")
    try:
        with clock.stage("refits"):
            if not found.objective.least_squares:
                found, matrices = _most_likely(posed, found, settings.refits, seed, shown)
                return FoundForm(found, found.A, matrices, None, spectral)
            law = exact_law(QuadraticForm(found.A), posed.parts, seed)
            found, law = _by_law(found, law, posed.parts, seed)
            matrices = _refits(Samples.cat([train, validation]), found, law, settings, seed, clock, shown)
    except KeyboardInterrupt:
        raise Interrupted(found) from None
    A = found.A if law is None else law.form.matrix
    return FoundForm(found, A, matrices, law, spectral)


def _by_law(found: Search, law: Fitted | None, parts: Parts, seed: int) -> tuple[Search, Fitted | None]:
    """Ends of the search that are equally good by its own family, told apart by the law that a polynomial may be."""
    near = found.near_best
    if 2 * found.agreeing > len(near):
        return found, law
    laws = [law] + [exact_law(QuadraticForm(r.A), parts, seed) for r in near[1:]]
    best = next((one for one in laws if one is not None), None)
    if best is None:
        return found, None
    ends = [r if one is None else replace(r, A=one.form.matrix, criterion=0.0) for r, one in zip(near, laws)]
    ends = sorted(ends, key=lambda r: r.criterion) + list(found.restarts[len(near) :])
    return replace(found, A=best.form.matrix, restarts=tuple(ends)), best


def _most_likely(
    posed: Posed, found: Search, refits: int, seed: int, progress: Progress
) -> tuple[Search, Tensor]:
    """The ends of the search brought to where the loss itself is least, and refits of that."""
    whole = Samples.cat(posed.weighted(found.objective)[:2]).rows(slice(0, LIKELIHOOD_SAMPLES))
    likely = most_likely(whole, found)
    return likely, likelihood_refits(whole, likely, refits, seed, progress)


def refits_of(
    fitted: Fitted, posed: Posed, found: Search, settings: Settings, seed: int, clock: Clock
) -> Tensor:
    """Refits of a form with its polynomial."""
    samples = Samples.cat(posed.weighted(found.objective)[:2]).rows(slice(0, SEARCH_SAMPLES))
    return _refits(samples, found, fitted, settings, seed, clock, lambda share, A: None)


def _refits(
    samples: Samples,
    found: Search,
    law: Fitted | None,
    settings: Settings,
    seed: int,
    clock: Clock,
    progress: Progress,
) -> Tensor:
    """Refits of the form by the search's family, or by the polynomial that the law is."""
    common: dict[str, Any] = {"settings": settings, "seed": seed, "clock": clock, "progress": progress}
    if law is not None:
        found = replace(found, A=law.form.matrix, objective=ABSOLUTE)
        common["degree"] = law.options["degree"]
    return refit(samples, found, **common)


def _starts(
    posed: Posed, train: Samples, spectral: SpectralForm | None, settings: Settings, seed: int
) -> list[Start]:
    starts = [] if posed.known is None else posed.known.starts(posed.frame)
    starts += correlation_starts(train) + cone_starts(train) + stabiliser_starts(train)
    if spectral is not None:
        starts.append(Start("spectral", unit_form(spectral.form.matrix)))
    if settings.given_axes:
        starts += given_starts(posed.frame)
    return distinct(starts + white_starts(train.n, settings.starts, seed))


def _spectral(train: Samples, validation: Samples) -> SpectralForm | None:
    """The form that the Jacobians of a smooth surrogate respect best (M6)."""
    kernel = KernelRidge.fit(
        Table.of(coordinates(train), train), Table.of(coordinates(validation), validation)
    )
    few = train.rows(slice(0, 300))
    rest = [s.double().flatten(1) for s in few.scalars if s is not None]

    def surrogate(points: Tensor) -> Tensor:
        values = kernel(torch.cat([points.flatten(1), *rest], dim=1))
        return values.reshape(-1, *few.y.shape[1:])

    try:
        return spectral_form(surrogate, few.x, few.rep)
    except ValueError:  # a constant surrogate has no Jacobian to speak of
        return None
