"""The form behind labelled jets, in whatever frame, from labels alone: a start that no random draw has to find.

A random form makes squares of momenta of the order of E², a million times m², and says nothing about labels; its
gradient does not lead anywhere either. But the jet as a whole, P = Σ x_i, is one vector, and its class depends on P²:
the search for the form is that of `gortho.discover` for classes. That constituents are massless is not used.
"""

from __future__ import annotations

import torch

from gortho.discovery import Settings
from gortho.discovery.clock import Clock
from gortho.discovery.find import find_form as search_form
from gortho.discovery.learning import held_out_errors
from gortho.discovery.models import paired_p
from gortho.discovery.posed import Posed
from gortho.discovery.workers import one_thread
from gortho.forms import QuadraticForm
from gortho.objectives import LABELS
from gortho.samples import Samples
from gortho.samples.door import one_hot
from gortho.studies.toptag.samples import Sample

#: Jets that the form is searched with, at random: more add time, not knowledge.
MOST = 80_000
#: A form in n dimensions has few unknowns; with fewer jets for each of them the search says nothing.
JETS_FOR_EACH = 5
#: Labels count as meaningless if chance explains them as well as this probability or more.
CHANCE = 1e-4


def find_form(sample: Sample) -> QuadraticForm:
    """The form that labels of jets with total momentum P depend on."""
    P = torch.where(sample.mask[..., None], sample.x, 0.0).double().sum(1).cpu()
    n = P.shape[-1]
    least = JETS_FOR_EACH * n * (n + 1) // 2
    if len(P) < least:
        raise ValueError(f"{len(P)} jets are too few to find a form in {n} dimensions: give {least}")
    rows = torch.randperm(len(P), generator=torch.Generator().manual_seed(0))[:MOST]
    labels, rep = one_hot(sample.label.long().cpu()[rows].numpy(), 2)
    posed = Posed.of(Samples(P[rows, None], torch.tensor(labels), rep, classes=(0, 1)), seed=0)
    settings = Settings(given_axes=False, refits=1)
    with one_thread():
        found = search_form(posed, (LABELS,), settings=settings, seed=0, clock=Clock())
        p = paired_p(*held_out_errors(found, posed.parts, seed=0))
    if p > CHANCE:
        raise ValueError(
            f"the labels of {len(P)} jets do not depend on the total momentum more than by chance (p = {p:.2g}): no "
            "form can be found from them; give more jets, or check the labels"
        )
    return posed.out(found.search.A)
