"""A law of few samples that came after the comparison: does it hold for samples that it was not fitted to?

Few samples lead to an exact law only when all are taken together, after the models of both sides have failed. The law
is fitted once more, to the samples of training and validation alone: which terms it has was chosen with all samples,
but none of its numbers. If the held-out samples then meet it to rounding, and no direction of its form is left open, it
is what the form is found by, and the comparison is made again with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.few_terms import LAST, Terms, few_terms
from gortho.discovery.find import FoundForm
from gortho.discovery.predictor import LAW, Fitted, Kind, Parts, mean_error
from gortho.discovery.refits import align_signs
from gortho.discovery.search import Restart
from gortho.discovery.written import Written, terms_of
from gortho.formulas.network import slopes_of_form
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: A form is open along a direction in which the law's slope is less than this share of the steepest.
OPEN = 1e-6
#: Refits start this far from the law's form, a share of its size.
SHAKE = 0.1


@dataclass(frozen=True)
class Told:
    """A law fitted without the held-out samples, and what it says of its form.

    Attributes:
        fitted: the law as a predictor.
        slopes: singular values of its Jacobian by directions across the form, with all other numbers refitted.
        refits: forms from resamples, one from each form to start at.
    """

    fitted: Fitted
    slopes: Tensor
    refits: Callable[[Tensor], list[Tensor]]

    def holds(self, parts: Parts) -> bool:
        """Whether held-out samples meet it to rounding, and its form is the only one."""
        held = parts.held_out
        met = mean_error(self.fitted.network, held) < LAW * held.variance
        return met and float(self.slopes.min()) > OPEN * float(self.slopes.max())


def told_by(law: Fitted, parts: Parts, seed: int, clock: Clock) -> Told | None:
    """The same law from the samples of training and validation; None where they do not lead to it."""
    data, A = Samples.cat(parts[:2]), law.form.matrix
    if law.kind is Kind.FORMULA:
        written = Written(law, data, 0.0, seed, clock)
        again = written.again(law)
        if again is None:
            return None
        slopes = slopes_of_form(written.some, again.form.matrix, terms_of(again.network))
        return Told(again, slopes, lambda starts: written.refits(again, starts))
    if law.kind is not Kind.TERMS:
        return None
    whole = few_terms(Samples.cat(parts), [A])
    if whole is None:
        return None
    terms = Terms.of(data, whole.at.A, whole.chosen, LAST)
    if not terms.exact:
        return None
    slopes = torch.linalg.svdvals(terms.projection.jacobian(terms.at)[0])
    return Told(terms.fitted(seed), slopes, lambda starts: _refits(terms, starts, seed))


def _refits(terms: Terms, starts: Tensor, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [Terms.of(terms.samples.bootstrapped(generator), A, terms.chosen, LAST).at.A for A in starts]


def with_told(form: FoundForm, law: Fitted, told: Told, refits: int, seed: int) -> FoundForm:
    """The form of the law, as where the search ended, and its refits.

    No other end of the search is an equal: by few samples many look exact, and none has met the held-out ones.
    """
    A, generator = law.form.matrix, torch.Generator().manual_seed(seed)
    E = torch.randn(refits, *A.shape, dtype=A.dtype, generator=generator)
    starts = torch.stack([unit_form(A + SHAKE * unit_form(e + e.mT)) for e in E])
    found = replace(form.search, A=A, restarts=(Restart("law", A, 0.0),))
    matrices = align_signs(torch.stack([A, *told.refits(starts)]), A)
    return replace(form, search=found, A=A, refits=matrices, law=law)
