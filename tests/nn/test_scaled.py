"""Products of scalars and singular functions of lengths: their room, and laws of charges."""

import pytest
import torch
from helpers import normal

import gortho
from gortho.discovery.looks import FIRST, SCAN, few_for
from gortho.discovery.projection import Projection
from gortho.nn.tuples import SHARE, Scaled, TupleFeatures
from gortho.reps import as_rep
from gortho.samples.values import Samples


def test_without_scalars_or_room_there_are_none():
    assert len(Scaled(3, 0, 1_000, 0.1)) == 0 and TupleFeatures.room_for(2, 0) == 0
    least = Scaled.least(3, 2)
    assert len(Scaled(3, 2, int(SHARE * least), 0.1)) > 0
    assert len(Scaled(3, 2, int(SHARE * least) - 2, 0.1)) == 0
    assert len(TupleFeatures(2, 2, TupleFeatures.room_for(2, 2)).scaled) > 0


@pytest.mark.parametrize("power", [-1.0, -1.5, -2.0, -3.0])
@pytest.mark.parametrize("two", [False, True])
def test_small_families_have_laws_of_charges(power, two):
    """q₁q₂|r|^p of one vector, or of the distance of two, with charges of both signs."""
    x, charges = normal(1_000, 1 + two, 3), normal(1_000, 2, seed=1)
    r = x[:, 0] - x[:, 1] if two else x[:, 0]
    y = charges.prod(1) * r.norm(dim=1) ** power
    samples = Samples(x, y / y.std(), sample_scalars=charges)
    few, columns = few_for(samples, FIRST)
    criterion = Projection(few, columns).solve(torch.eye(3, dtype=torch.float64)).criterion
    assert criterion < 0.01


def test_scans_of_vectors_have_room_for_charges():
    x, charges = normal(1_000, 2, 3), normal(1_000, 2, seed=1)
    r = x[:, 0] - x[:, 1]
    y = (charges.prod(1) / r.norm(dim=1))[:, None] * r
    few, columns = few_for(Samples(x, y, as_rep("vector"), sample_scalars=charges), SCAN)
    assert Projection(few, columns).solve(torch.eye(3, dtype=torch.float64)).criterion < 1e-3


def test_a_force_between_charges_of_both_signs_is_found():
    x, charges = normal(500, 3), normal(500, 2, seed=1)
    y = (charges.prod(1) / x.norm(dim=1) ** 3)[:, None] * x
    small = gortho.Settings(starts=2, generations=0, finalists=1, refits=4, predictor_steps=40)
    found = gortho.discover(x, y, "vector", charges, settings=small, look_for="O")
    assert found.verdict is gortho.Verdict.FOUND and found.group_name == "O(3)"
    assert found.peers[0].relative_mse < 1e-4
