"""A formula as the predictor, if form and coefficients, fitted together, match all samples to rounding or digits.

A process or a network knows a law where the samples are; an exact formula also holds beyond them. It is selected
without the held-out samples, which then test it; and once more if a process knows more about the law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.find import FoundForm, refits_of
from gortho.discovery.models import squared_errors
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import LAW, Fitted, Kind, Parts, build_network, mean_error
from gortho.discovery.process import has_process
from gortho.discovery.refits import align_signs
from gortho.discovery.settings import Settings
from gortho.discovery.smooth import FEW, Smooth, left_out_error
from gortho.discovery.twins import WORST
from gortho.forms import QuadraticForm
from gortho.formulas import Problem
from gortho.formulas.find import proposals, single_terms
from gortho.formulas.network import FormulaCoefficients, Together, together
from gortho.formulas.terms import Term
from gortho.formulas.values import DIGITS
from gortho.nn.exact import EquivariantNet
from gortho.nn.sets import LARGE
from gortho.samples.values import Samples
from gortho.stored import stored
from gortho.symmetry import Symmetry
from gortho.training import predict

#: A predictor that leaves more than this share of new samples is too far from a law, or noise is.
CLOSE = 0.3
#: Terms are also chosen by predictions for this many samples, this many times: if samples are few, or if the predictor
#: leaves less than this share.
TAUGHT, DRAWS, KNOWS = 150, 3, 1e-4
#: Rows that terms are chosen by and fitted to, at most.
ROWS = 1_500
#: Samples for each number that is fitted, at least: the formula is met by those that are left over.
FOR_EACH = 1.5
#: … and of a formula that is fitted once more, and tried by others, so many samples more than numbers.
LEFT_OVER = 3
#: The formula leaves less than this share of what the predictor leaves of new samples: it is not one more fit.
FAR_LESS = 0.01
#: A term goes where the others leave at most this many times as much, or this share of the variance, which is rounding.
MORE, ROUNDING = 1.5, 1e-26


def with_law(
    form: FoundForm, fitted: Fitted, posed: Posed, parts: Parts, settings: Settings, seed: int, clock: Clock
) -> FoundForm:
    """Errors of the form as the polynomial has it, or the formula that the law is."""
    if fitted.kind is Kind.POLYNOMIAL:
        with clock.stage("refits"):
            return replace(form, refits=refits_of(fitted, posed, form.search, settings, seed, clock))
    with clock.stage("formula"):
        return exact_formula(form, fitted, parts, seed, clock)


def exact_formula(form: FoundForm, best: Fitted, parts: Parts, seed: int, clock: Clock) -> FoundForm:
    """The form with the formula that the law is, and its refits, if it is one: held-out samples can then judge it.

    Few samples of numbers wait for a process, which tells more of them.
    """
    data, held = Samples.cat(parts[:2]), parts.validation
    if len(data) <= FEW and has_process(data):
        return form
    errors = np.sort(squared_errors(predict(best.network, *held.inputs), held))
    usual = errors[: len(errors) - math.ceil(WORST * len(errors))]  # an edge of the data hides no law
    written = Written(best, data, float(usual.mean()), seed, clock)
    law = written.fitted()
    if law is None:
        return form
    starts = [] if form.refits is None else [law.form.matrix, *written.refits(law, form.refits[1:])]
    return replace(form, A=law.form.matrix, law=law, refits=torch.stack(starts) if starts else None)


def smooth_or_written(
    fitted: Fitted, others: tuple[Tensor, ...], parts: Parts, seed: int, clock: Clock
) -> tuple[Fitted, Fitted | None]:
    """A formula that is exact, or a process that is better than the predictor, or that, from all samples.

    ``others`` are other estimates of the form. The second one is the process of the training samples alone, if it is
    better than the predictor there: held-out samples can tell its error.
    """
    smooth = Smooth(fitted, parts, others, seed, clock)
    one = smooth.fitted()
    data = Samples.cat(parts)
    law, best = None, one or fitted
    if has_process(data):
        law = Written(best, data, _left_by(best, parts), seed, clock).fitted()
    if law is None:
        fitted = best = smooth.with_held_out(one) or fitted
        if len(data) <= FEW and has_process(data):  # all together they tell a form that is nearer
            law = Written(best, data, _left_by(best, parts), seed, clock).fitted()
    return law or fitted, one


def _left_by(best: Fitted, parts: Parts) -> float:
    """The error of a predictor at samples that are new to it."""
    return mean_error(best.network, parts.held_out) if best.process is None else left_out_error(best.process)


class Written:
    """A formula in the place of a predictor that leaves so much of new samples, from these samples, in the frame.

    The form is fitted with it, unless it is known: then it does not move.
    """

    def __init__(self, best: Fitted, data: Samples, left: float, seed: int, clock: Clock, moves: bool = True):
        self.best, self.data, self.left, self.seed, self.clock = best, data, left, seed, clock
        self.moves, self.together = moves, partial(together, moves=moves)
        self.variance = max(self.data.variance, 1e-300)
        #: What terms are chosen by and fitted to.
        self.some = data.rows(slice(0, max(1, ROWS // data.y[0].numel())))

    def fitted(self) -> Fitted | None:
        """The formula and its form from all samples, if it is exact and far better than the best so far."""
        if not has_formula(self.data) or self.best.form.signature.zero or self.clock.over():
            return None
        share = self.left / self.variance
        few = len(self.data) <= FEW
        if not 0 < share < CLOSE or (share < LAW and self.best.kind in (Kind.POLYNOMIAL, Kind.TERMS)):
            return None
        some, limit = self.some, min(LAW, FAR_LESS * share)
        # A draw may mislead the choice of terms, but no formula is exact by chance.
        # A known form is soon fitted.
        draws = (DRAWS if self.moves else 2 * DRAWS) if few else int(share < KNOWS)
        taught = (self._taught(self.seed + k) for k in range(draws))
        shown = taught if few else chain([some], taught)
        found = self._law(chain.from_iterable(proposals(self._problem(s)) for s in shown), some, limit)
        if found is None and share < KNOWS:
            # One term may leave the digits of x, which more terms would follow.
            found = self._law(([term] for term in single_terms(self._problem(some))), some, DIGITS)
        return found

    def _law(self, proposed: Iterable[list[Term]], some: Samples, limit: float) -> Fitted | None:
        """The first sum of terms that leaves less than a share of the variance."""
        for terms in proposed:
            if self.clock.over():
                break
            law = self._exact(some, self.best.form.matrix, terms, limit)
            if law is not None:
                one = self._predictor(law)
                if mean_error(one.network, self.data) < limit * self.variance:
                    return one
        return None

    def _taught(self, seed: int) -> Samples:
        """What the best so far says of samples that are put together from the given ones.

        It knows the law of its own form, so that an error of the form is no noise there, and these are more.
        """
        generator, data = torch.Generator().manual_seed(seed), self.data

        def drawn(values: Tensor) -> Tensor:
            return values[torch.randint(len(data), (TAUGHT,), generator=generator)]

        x = torch.stack([drawn(data.x[:, i]) for i in range(data.points)], 1)
        point, sample = (None if s is None else drawn(s) for s in (data.point_scalars, data.sample_scalars))
        y = predict(self.best.network, x, point, sample).double()
        return replace(
            data, x=x, y=y, point_scalars=point, sample_scalars=sample, weights=None, noise=None, bundles=None
        )

    def _exact(self, samples: Samples, A: Tensor, terms: list[Term], limit: float) -> Together | None:
        law = self.together(samples, A, terms) if terms else None
        if law is None or not law.left < limit * self.variance:
            return None
        law = shortened(samples, law, self.together)
        form = QuadraticForm(law.A)
        same = form.signature == self.best.form.signature and float((form.matrix * law.A).sum()) > 0
        return law if same and len(samples) >= FOR_EACH * law.unknowns else None

    def again(self, whole: Fitted) -> Fitted | None:
        """The terms of a formula from these samples, if it is exact; by other samples its errors can be told."""
        law = self.together(self.some, whole.form.matrix, terms_of(whole.network))
        if law is None or not law.left < LAW * self.variance or len(self.some) < law.unknowns + LEFT_OVER:
            return None
        return self._predictor(law)

    def refits(self, whole: Fitted, starts: Tensor) -> list[Tensor]:
        """The form from samples with random weights, from other estimates on: what the law leaves open stays apart."""
        generator, found = torch.Generator().manual_seed(self.seed), []
        for A in align_signs(starts, whole.form.matrix):
            law = self.together(self.some.bootstrapped(generator), A, terms_of(whole.network))
            found.append(A if law is None else law.A)
        return found

    def _problem(self, samples: Samples) -> Problem:
        net = self.best.network
        return Problem(
            samples,
            samples,
            samples,
            Symmetry.of(self.best.form),
            repr(samples.rep),
            lambda some: predict(net, *some.inputs).double().numpy(),
        )

    def _predictor(self, law: Together) -> Fitted:
        form = QuadraticForm(law.A)
        options = {
            **self.data.network_options(),
            "width": 1,
            "depth": 0,
            "seed": self.seed,
            "formula": [stored(term) for term in law.terms],
        }
        return Fitted(form, build_network(form, self.data.rep, options), Kind.FORMULA, options)


def has_formula(samples: Samples) -> bool:
    """Whether formulas are written for such targets: one tensor of at most two indices, from few enough points."""
    (part, *others), many = samples.rep.parts, samples.set_like and samples.points > LARGE
    return not others and part.rank <= 2 and samples.mask is None and not many


def shortened(
    samples: Samples, law: Together, together: Callable[..., Together | None] = together
) -> Together:
    """The formula without terms that it does not need, the smallest first."""
    enough = ROUNDING * samples.variance
    while len(law.terms) > 1:
        sizes = law.sizes(samples)
        rest = [term for term, size in zip(law.terms, sizes) if size > min(sizes)]
        shorter = together(samples, law.A, rest)
        if shorter is None or not shorter.left <= max(MORE * law.left, enough):
            break
        law = shorter
    return law


def terms_of(network: EquivariantNet) -> tuple[Term, ...]:
    """The terms of a predictor that is a formula; none where it is another one."""
    coefficients = network.coefficients
    return tuple(coefficients.terms) if isinstance(coefficients, FormulaCoefficients) else ()
