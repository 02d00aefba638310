"""Forms beside other rules of length, where all vectors lie on one side of the origin."""

import math

import numpy as np
import pytest
import torch
from helpers import normal

import gortho
from gortho.discovery import bent
from gortho.discovery.bent import TOLD_APART, BentFamily, bent_p, mean_direction
from gortho.discovery.family import Standard, differences
from gortho.discovery.verdict import Verdict
from gortho.objectives import ABSOLUTE
from gortho.samples.frame import Frame
from gortho.samples.values import Samples


def positive(low=0.3, high=2.5, count=600, n=3):
    generator = torch.Generator().manual_seed(0)
    return low + (high - low) * torch.rand(count, 1, n, dtype=torch.float64, generator=generator)


A = torch.tensor([[1.0, 0.3, -0.2], [0.3, 2.0, 0.1], [-0.2, 0.1, 0.7]], dtype=torch.float64)


def test_vectors_on_one_side():
    assert mean_direction(normal(200, 3)) is None
    x = positive()[:, 0]
    s = x @ mean_direction(x)
    assert float(s.min()) > 0 and float(s.median()) == pytest.approx(1.0)
    M = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(x @ M.mT @ mean_direction(x @ M.mT), s)  # in other coordinates, too


@pytest.mark.parametrize("bend", [0.25, -0.25])
def test_slopes_of_a_bent_family(bend):
    samples = Samples(positive(count=40), torch.zeros(40))
    family = BentFamily(samples, 20)
    family.bend, family.mean, family.unit = bend, mean_direction(samples.x[:, 0]), 2.0
    inputs = Standard.of(samples).inputs(samples)
    units = family.units(A, inputs)
    c = normal(family.columns, seed=2)
    directions = torch.stack([torch.eye(3, dtype=torch.float64), A @ A])
    J = torch.einsum("zcab,mab->zcm", family.jacobian(A, inputs, units, c), directions)
    by_differences = differences(lambda B: family.design(B, inputs, units).times(c[:, None]), A, directions)
    assert torch.allclose(J, by_differences, rtol=1e-5, atol=1e-6)


def test_a_form_beats_other_rules_of_length_and_a_sum_of_powers_does_not():
    x = positive()
    q = torch.einsum("zi,ij,zj->z", x[:, 0], A, x[:, 0])
    noise = 0.01 * normal(600, seed=3)
    for y, B, better in (
        (q**0.75, A, True),
        (q.log(), A, True),
        ((x[:, 0] ** 1.5).sum(1), torch.eye(3).double(), False),
    ):
        p = bent_p(Samples(x, y / y.std() + noise), B, ABSOLUTE, 0)
        assert p is not None and (p < TOLD_APART) == better


def test_where_the_question_does_not_arise():
    y = normal(600)
    assert bent_p(Samples(normal(600, 1, 3), y), A, ABSOLUTE, 0) is None
    assert bent_p(Samples(positive().repeat(1, 2, 1), y), A, ABSOLUTE, 0) is None


@pytest.mark.parametrize("power", [1.5, pytest.param(3.0, marks=pytest.mark.slow)])
def test_sums_of_powers_of_positive_columns_are_not_found(power):
    rng = np.random.default_rng(301)
    x = rng.uniform(0.5, 2, (800, 3))
    y = (x**power).sum(1)
    found = gortho.discover(x, y + 0.01 * y.std() * rng.normal(size=800), look_for="O")
    assert found.verdict is Verdict.UNDERDETERMINED and "one side of the origin" in found.reason


def test_a_law_of_one_coordinate_is_found_whatever_the_rule_of_length():
    x = positive(count=600)[:, 0].numpy()
    clock = gortho.discover(x, x[:, 0] + 0.01 * np.random.default_rng(0).normal(size=600), look_for="O")
    assert clock.form is not None and clock.form.signature.zero == 2 and clock.evidence.bent is None


def test_a_rival_over_decades_is_fitted_and_one_that_fails_is_not_beaten(monkeypatch):
    """Lengths that span decades: the bend goes on as a straight line, where exponentials would overflow."""
    x = (normal(400, 2, seed=1) * torch.tensor([0.3, 4.0])).exp()
    y = x[:, 0] * x[:, 1] * (1 + 0.05 * normal(400, seed=2))
    frame = Frame.of(x)
    A = frame.form_in(torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double())
    samples = Samples((x @ frame.W.mT)[:, None], y / y.std())
    rivals = []
    monkeypatch.setattr(bent, "paired_p", lambda own, rival: rivals.append(rival) or 0.0)
    bent_p(samples, A, ABSOLUTE, 0)
    assert len(rivals) == 2 and all(np.isfinite(errors).all() for errors in rivals)
    monkeypatch.setattr(bent, "paired_p", lambda own, rival: math.nan)
    assert bent_p(samples, A, ABSOLUTE, 0) == 1.0
