"""The form behind labelled jets, without a start: it follows the frame and needs no massless constituents."""

import pytest
import torch

from gortho import QuadraticForm
from gortho.studies.toptag.blind import find_form
from gortho.studies.toptag.frames import hidden_frame, seen
from gortho.studies.toptag.samples import Sample


def jets(form, count, seed, spread=0.3):
    """Tuples of vectors whose total has a larger q in one class than in the other, anywhere on the two shells."""
    generator = torch.Generator().manual_seed(seed)
    n = form.n
    label = (torch.rand(count, generator=generator) < 0.5).double()
    total = torch.randn(count, n, dtype=torch.float64, generator=generator)
    q = form.norm(total)
    wanted = 1 + label + spread * torch.randn(count, dtype=torch.float64, generator=generator)
    possible = q * wanted > 0
    total = total[possible] * (wanted / q)[possible].sqrt()[:, None]
    boosts = form.group().sample(len(total), seed=seed, max_boost=3.0)
    total = (boosts @ total[..., None])[..., 0]
    parts = torch.randn(len(total), 5, n, dtype=torch.float64, generator=generator)
    parts += (total - parts.sum(1))[:, None] / 5
    mask = torch.ones(len(total), 7, dtype=torch.bool)
    mask[:, 5:] = False  # what padding holds does not count
    x = torch.cat([parts, torch.full((len(total), 2, n), 1e3, dtype=torch.float64)], dim=1)
    return Sample(x, mask, label[possible])


@pytest.mark.parametrize("signature", [pytest.param((2, 2), marks=pytest.mark.slow), (1, 2)])
def test_the_form_is_found_whatever_the_signature(signature):
    form = QuadraticForm.random(*signature, condition=3.0, seed=1)
    found = find_form(jets(form, 8_000, seed=2))
    assert found.group_name == form.group_name
    assert found.algebra_distance(form) < 0.02


def test_it_follows_the_frame():
    sample = jets(QuadraticForm.minkowski(), 5_000, seed=1)
    M = hidden_frame(1)
    inverse = torch.linalg.inv(M)
    moved = find_form(seen(sample, M))
    expected = QuadraticForm(inverse.mT @ find_form(sample).matrix @ inverse)
    assert moved.algebra_distance(expected) < 0.02


def test_labels_that_mean_nothing_are_refused():
    sample = jets(QuadraticForm.minkowski(), 2_000, seed=3)
    sample.label = sample.label[torch.randperm(len(sample), generator=torch.Generator().manual_seed(0))]
    with pytest.raises(ValueError, match="not depend on the total momentum more than by chance"):
        find_form(sample)


def test_one_jet_far_out_does_not_hide_the_form():
    sample = jets(QuadraticForm.minkowski(), 6_000, seed=2)
    background = int((sample.label == 0).nonzero()[0])
    sample.x[background] *= 32**0.5  # the fit is sure, beyond rounding, that it is a signal
    assert find_form(sample).algebra_distance(QuadraticForm.minkowski()) < 0.02


def test_too_few_jets():
    with pytest.raises(ValueError, match="too few to find a form in 4 dimensions: give 50"):
        find_form(jets(QuadraticForm.minkowski(), 40, seed=0))
