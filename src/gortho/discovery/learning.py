"""A form without a verdict: search and refits as in `discover`, for estimators that predict with the best form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gortho.discovery.clock import Clock
from gortho.discovery.find import SEARCH_SAMPLES, FoundForm, find_form
from gortho.discovery.looks import LAST, projections
from gortho.discovery.models import squared_errors
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Parts
from gortho.discovery.search import FINAL_ROUNDS, Interrupted, Search
from gortho.discovery.settings import Settings
from gortho.discovery.spreads import given_errors, spread, without_noise_eigenvalues
from gortho.discovery.verdict import MAX_SPREAD, NOTHING_EXPLAINED, percent
from gortho.discovery.workers import one_thread
from gortho.forms import QuadraticForm
from gortho.objectives import objectives_for
from gortho.samples import Samples
from gortho.training import predict


@dataclass(frozen=True)
class Learnt:
    """A form found without a verdict, the standard errors of its entries, and a reason to doubt it, if there is one."""

    form: QuadraticForm
    errors: np.ndarray
    search: Search
    doubt: str | None


def learn_form(samples: Samples, settings: Settings, seed: int) -> Learnt:
    """The form by search and refits as in `discover`, of classes by their likelihood; no predictor, no verdict."""
    posed = Posed.of(samples, seed)
    try:
        with one_thread():
            objectives = objectives_for(samples)
            found = find_form(posed, objectives, settings=settings, seed=seed, clock=Clock())
            own, constant = held_out_errors(found, posed.parts, seed)
    except Interrupted:
        raise KeyboardInterrupt from None
    left = own.mean() / constant.mean()
    assert found.refits is not None
    A, zero = without_noise_eigenvalues(found.A, found.refits, posed.frame)
    form, distance = posed.out(A), float(np.median(spread(A, found.refits, zero).distances))
    doubt = None
    if not left <= NOTHING_EXPLAINED:
        doubt = f"{percent(min(1.0, left))} of the variance stay unexplained on held-out samples."
    elif distance > MAX_SPREAD:
        doubt = f"refits to resamples differ by {distance:.2g} in the median."
    return Learnt(form, given_errors(posed.frame, form, found.refits)[0], found.search, doubt)


def held_out_errors(found: FoundForm, parts: Parts, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Squared errors of held-out samples: by the exact law, or the family within the range of y; by the mean."""
    if found.law is not None:
        test = parts.held_out
        own = predict(found.law.network, *test.inputs)
        return squared_errors(own, test), squared_errors(parts.train.y.mean(0).expand_as(test.y), test)
    train = parts.train.rows(slice(0, SEARCH_SAMPLES))
    both = found.search.objective.prepared(Samples.cat([train, parts.held_out]))
    train, test = both.rows(slice(0, len(train))), both.rows(slice(len(train), None))
    (projection,) = projections(train, LAST, [FINAL_ROUNDS[-1][0]], seed)
    own = projection.predict(projection.solve(found.search.A), test).reshape(test.y.shape)
    own = own.clamp(train.y.amin(0), train.y.amax(0))
    return squared_errors(own, test), squared_errors(train.y.mean(0).expand_as(test.y), test)
