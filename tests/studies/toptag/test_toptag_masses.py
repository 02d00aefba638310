"""Constituents with masses: what changes, what stays, and what the tagger sees of it."""

import pytest
import torch
from helpers import normal

from gortho.nn.pairs import Setwise
from gortho.studies.toptag.frames import KAON, PION, with_masses
from gortho.studies.toptag.samples import Sample
from gortho.studies.toptag.tagger import Tagger


def massless(dtype=torch.float64, energies=(1.0, 80.0)):
    """Jets of energies in a range, a third of each padded."""
    direction = torch.nn.functional.normalize(normal(50, 12, 3), dim=-1)
    low, high = energies
    energy = low + (high - low) * torch.rand(50, 12, 1, generator=torch.Generator().manual_seed(1)).double()
    mask = torch.arange(12).expand(50, 12) < 8
    x = torch.cat([energy, energy * direction], dim=-1) * mask[..., None]
    return Sample(x.to(dtype), mask, torch.ones(50))


def squares(x):
    return x[..., 0] ** 2 - x[..., 1:].square().sum(-1)


def test_every_constituent_is_a_pion_or_a_kaon():
    before = massless()
    after = with_masses(before, seed=3)
    m = squares(after.x)[after.mask].clamp(min=0).sqrt()
    kaon = (m - KAON).abs() < 1e-6
    assert ((m - PION).abs()[~kaon] < 1e-6).all()
    assert 0.4 < kaon.double().mean() < 0.6
    assert torch.equal(after.x[..., 1:], before.x[..., 1:])
    assert (after.x[~after.mask] == 0).all() and torch.equal(after.mask, before.mask)


def test_the_seed_says_which():
    sample = massless(torch.float32)
    first, again, other = (with_masses(sample, seed).x for seed in (1, 1, 2))
    assert first.dtype == torch.float32 and torch.equal(first, again) and not torch.equal(first, other)


def own_squares(sample):
    """What the tagger sees of each constituent's square: the embedding at the smallest scale, zero if nothing."""
    net = Tagger(width=4, pairs=4, depth=1).to(sample.x.dtype)
    sides = net.sides(sample.x)
    points, _ = net.features(sides, Setwise(sample.mask, net.typical, False))
    return points[sample.mask][:, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_tagger_sees_masses_and_takes_rounding_for_none(dtype):
    sample = massless(dtype)
    assert (own_squares(sample) == 0).all()
    assert (own_squares(with_masses(sample)) > 0).all()


def test_the_masses_of_hard_constituents_are_lost_in_float32():
    hard = massless(torch.float32, energies=(500.0, 600.0))
    assert (own_squares(with_masses(hard)) == 0).all()
    assert (own_squares(with_masses(hard.to("cpu", torch.float64))) > 0).all()


def test_momenta_of_another_dimension_are_refused():
    with pytest.raises(ValueError, match="3 components"):
        with_masses(Sample(torch.ones(2, 2, 3), torch.ones(2, 2, dtype=torch.bool), torch.ones(2)))
