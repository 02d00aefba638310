"""Samples that stay together: what is remembered is no law."""

import numpy as np
import pytest
import torch
from helpers import normal

import gortho
from gortho import Settings, Verdict
from gortho.discovery.bundles import bundled, order_in_parts, same_inputs
from gortho.discovery.models import measure
from gortho.samples.values import Samples

SMALL = Settings(starts=12, generations=3, refits=4, predictor_steps=150)


def of(x, y=None, **more):
    x = torch.as_tensor(x, dtype=torch.float64)
    return Samples(x[:, None], x[:, 0] if y is None else torch.as_tensor(y), **more)


def test_the_same_inputs_are_recognised_up_to_rounding():
    x = normal(30, 3).repeat(4, 1)
    x[30:60] *= 1 + 1e-15
    numbers = same_inputs(of(x))
    assert len(set(numbers.tolist())) == 30 and torch.equal(numbers[:30], numbers[30:60])
    masses = torch.arange(120.0).double()[:, None]
    assert len(set(same_inputs(of(x, sample_scalars=masses)).tolist())) == 120


@pytest.mark.parametrize("far", [1e12, -1e18, 1e300])
def test_one_far_row_does_not_make_others_the_same(far):
    x = normal(300, 3)
    x[5] = far
    assert len(set(same_inputs(of(x)).tolist())) == 300
    x[100:200] = x[:100] * (1 + 1e-15)
    numbers = same_inputs(of(x))
    assert len(set(numbers.tolist())) == 200 and torch.equal(numbers[100:200], numbers[:100])


def test_inputs_are_the_same_in_columns_that_are_mostly_zero():
    x = normal(200, 3)
    x[:, 1] = 0
    x[:30, 1] = torch.arange(30.0).double() - 10
    x[:, 2] = 0
    again = x.clone()
    again[:, :2] += 1e-15
    numbers = same_inputs(of(torch.cat([x, again])))
    assert len(set(numbers.tolist())) == 200 and torch.equal(numbers[:200], numbers[200:])
    x[:, 0] = 1
    assert len(set(same_inputs(of(x)).tolist())) == 30
    x[2:, 1] = 0
    assert len(set(same_inputs(of(x)).tolist())) == 3


def test_independent_samples_have_no_bundles():
    samples, told = bundled(of(normal(500, 3)))
    assert samples.bundles is None and told == []


@pytest.mark.parametrize("counts", [[40] * 25, [1] * 300, [500, *[1] * 300], [1500, *[1] * 90], [3000, 1, 1]])
def test_bundles_stay_whole_and_every_part_has_samples(counts):
    x = normal(len(counts), 3).repeat_interleave(torch.tensor(counts), 0)
    samples, _ = bundled(of(x[torch.randperm(len(x), generator=torch.Generator().manual_seed(0))]))
    numbers = torch.arange(len(samples)) if samples.bundles is None else samples.bundles
    sizes = [len(samples) // 6, len(samples) // 8]
    parts = order_in_parts(samples, sizes, seed=0)
    assert sorted(torch.cat(parts).tolist()) == list(range(len(samples)))
    groups = [set(numbers[part].tolist()) for part in parts]
    assert all(groups) and not (groups[0] & groups[1] or groups[0] & groups[2] or groups[1] & groups[2])
    sizes = [
        min(size, (len(samples) - max(counts)) // 3) for size in sizes
    ]  # one input may be most of the samples
    assert all(size <= len(part) < size + max(counts) for size, part in zip(sizes, parts))


def test_a_trajectory_is_held_out_in_blocks():
    t = np.linspace(0, 30, 800)
    x = np.column_stack([t * np.cos(t), t * np.sin(t)])
    samples, (told,) = bundled(of(x))
    assert len(set(samples.bundles.tolist())) == 40 and "held out in 40 blocks" in told
    shuffled, _ = bundled(of(np.random.default_rng(0).permutation(x)))
    assert shuffled.bundles is None
    repeated, (told,) = bundled(of(normal(200, 2).repeat_interleave(4, 0)))
    assert "200 different inputs" in told and len(set(repeated.bundles.tolist())) == 200


def test_resamples_weigh_bundles_as_a_whole():
    samples, _ = bundled(of(normal(25, 3).repeat(4, 1)))
    weights = samples.bootstrapped(torch.Generator().manual_seed(0)).weights
    assert len(set(weights.tolist())) == 25 and torch.equal(weights[:25], weights[75:])


def test_bundles_count_as_one_sample():
    """What is sure of a hundred samples is not, of five bundles of twenty."""
    rng = np.random.default_rng(1)
    errors = np.repeat(rng.uniform(0.5, 1.5, 5), 20)
    of_free = errors * np.repeat(rng.uniform(0.6, 1.3, 5), 20)
    alone = measure(errors, of_free, np.ones(100), 1.0)
    together = measure(errors, of_free, np.ones(100), 1.0, torch.arange(5).repeat_interleave(20))
    assert together.gain == pytest.approx(alone.gain) and together.bundles == 5 and alone.bundles == 0
    assert together.gain_error == pytest.approx(20**0.5 * alone.gain_error) and together.p > 10 * alone.p


def test_random_numbers_at_a_few_places_are_no_law():
    """25 places with a number each, measured 40 times: invariants of almost any form tell the places apart."""
    rng = np.random.default_rng(0)
    places, values = rng.normal(size=(25, 2)), rng.normal(size=25)
    of_row = rng.integers(25, size=1000)
    found = gortho.discover(places[of_row], values[of_row] + 0.03 * rng.normal(size=1000), settings=SMALL)
    assert found.verdict is not Verdict.FOUND
    assert any("1,000 samples have 25 different inputs" in note for note in found.notices)


@pytest.mark.slow
def test_random_labels_at_a_few_places_are_no_law():
    rng = np.random.default_rng(1)
    places, labels = rng.normal(size=(30, 2)), rng.integers(2, size=30)
    of_row = rng.integers(30, size=600)
    found = gortho.discover(places[of_row], labels[of_row], output="class", settings=SMALL)
    assert found.verdict is not Verdict.FOUND


def test_repeated_measurements_of_a_law_do_no_harm():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2)).repeat(4, 0)
    y = x[:, 0] ** 2 - 2 * x[:, 1] ** 2
    found = gortho.discover(x, y + 0.05 * rng.normal(size=len(y)), settings=SMALL)
    assert found.verdict is Verdict.FOUND and found.group_name == "O(1,1)" and found.confidence > 0.9


def test_too_few_different_inputs_are_told():
    x = normal(12, 2).repeat(30, 1)
    found = gortho.discover(x, x[:, 0] + torch.arange(360.0).double(), settings=SMALL)
    assert found.verdict is Verdict.UNDERDETERMINED and found.reason.startswith(
        "12 different inputs are too few"
    )
