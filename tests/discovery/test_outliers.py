"""Outliers: told apart, named, and left out; but not poles, not large targets, and nothing is found in noise."""

import numpy as np
import pytest
import torch
from helpers import normal

import gortho
from gortho import Verdict
from gortho.discovery.outliers import outliers, scattered, with_ruling
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import exact_law, mean_error, with_validation
from gortho.objectives import ABSOLUTE, RELATIVE
from gortho.reps import as_rep
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

TINY = gortho.Settings(starts=2, generations=0, finalists=1, refits=4, predictor_steps=40)
A = torch.diag(torch.tensor([1.0, 0.5], dtype=torch.float64))


def law(seed=0, rows=600, noise=0.02):
    x = normal(rows, 2, seed=seed)
    q = torch.einsum("ni,ij,nj->n", x, A, x)
    return x, torch.sin(q) + noise * normal(rows, seed=seed + 1)


def spoiled(y, size, share=0.02, seed=5):
    rng = np.random.default_rng(seed)
    bad = rng.choice(len(y), round(share * len(y)), replace=False)
    y = y.clone()
    y[bad] += size * y.std() * torch.as_tensor(rng.uniform(0.5, 2, len(bad)) * rng.choice([-1, 1], len(bad)))
    return y, sorted(int(i) for i in bad)


def found_in(x, y, objective=ABSOLUTE):
    posed = Posed.of(Samples(x[:, None], y), 0)
    back = posed.frame.inverse
    out = outliers(posed.parts, unit_form(back.mT @ A @ back), objective, 0)
    return sorted(posed.numbers[out].tolist())


@pytest.mark.parametrize("size", [20, 100])
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.2])
def test_gross_errors_are_told_apart(size, noise):
    x, y = law(noise=noise)
    assert found_in(x, y) == []
    y, bad = spoiled(y, size)
    assert found_in(x, y) == bad


def test_large_targets_and_poles_are_no_outliers():
    x, _ = law()
    q = torch.einsum("ni,ij,nj->n", x, A, x)
    pole = 1 / (q - 1)
    assert found_in(x, pole) == [] and found_in(x, pole, RELATIVE) == []
    assert found_in(x, torch.exp(2 * q) * (1 + 0.2 * normal(600, seed=3))) == []  # errors relative to y


def test_what_is_far_in_one_place_is_no_outlier():
    x, y = law()
    away = (x - torch.tensor([0.5, 0.5])).norm(dim=1) < 0.2
    assert 5 < int(away.sum()) < 30
    y[away] += 50
    assert found_in(x, y) == []


def test_too_many_are_none():
    x, y = law()
    assert found_in(x, spoiled(y, 50, share=0.2)[0]) == []


def test_a_law_is_found_in_spite_of_outliers_and_they_are_named():
    x, y = law()
    y, bad = spoiled(y, 100)
    found = gortho.discover(x, y, settings=TINY, look_for="O")
    assert found.verdict is gortho.Verdict.FOUND and found.group_name == "O(2)"
    assert found.candidate.cosine(gortho.QuadraticForm(A)) > 0.999
    assert found.peers[0].relative_mse < 0.01
    assert f"{len(bad)} of 600 samples are outliers" in found.reason
    (note,) = [notice for notice in found.notices if "outlier" in notice]
    named = [int(n) for n in note.split("number ")[1].split(", …")[0].split(", ")]
    assert named == bad[:10] and "y_error" in note


@pytest.mark.parametrize("tails", [np.inf, 1.5])
def test_noise_stays_without_a_form(tails):
    rng = np.random.default_rng(2)
    y = rng.normal(size=250) if np.isinf(tails) else rng.standard_t(tails, size=250)
    y[::50] += 100
    found = gortho.discover(rng.normal(size=(250, 2)), y, settings=TINY, look_for="O")
    assert found.verdict is gortho.Verdict.UNDERDETERMINED


def test_what_a_wrong_model_leaves_over_is_no_outlier():
    """Clean samples of another law, a product of two forms, from which a fit of one form is far."""
    x, y = law(rows=1_000)
    other = torch.einsum("ni,ij,nj->n", x, torch.diag(torch.tensor([-0.3, 2.0], dtype=torch.float64)), x)
    assert found_in(x, y * other.abs().sqrt() + other**2) == []
    assert found_in(x, torch.tan(other)) == []  # poles that are no function of the form


def test_the_tail_of_a_law_hides_outliers_that_reach_no_further():
    x, _ = law()
    q = torch.einsum("ni,ij,nj->n", x, A, x)
    y = torch.exp(1.5 * q)
    assert found_in(x, y) == []
    low = torch.argsort(y)[40:52]  # ordinary samples, moved into the tail
    y[low] = torch.linspace(0.2, 0.9, 12, dtype=y.dtype) * y.max()
    assert found_in(x, y) == []


@pytest.mark.parametrize("row", [3, 10, 33])
def test_one_wrong_digit_of_x_leaves_an_exact_law_exact(row):
    """Its y is like others', and one such row made all numbers of the law wrong by percents."""
    x = normal(300, 2, seed=11)
    y = torch.einsum("ni,ij,nj->n", x, A, x)
    x[row, 0] = 2.5 * x[row, 0] + 0.3
    assert found_in(x, y) == [row]
    found = gortho.discover(x, y, settings=TINY, look_for="O")
    assert found.candidate.cosine(gortho.QuadraticForm(A)) > 1 - 1e-12
    (note,) = [notice for notice in found.notices if "outlier" in notice]
    assert f"number {row} of the samples" in note and "the largest |y|" not in note


@pytest.mark.parametrize("seed", [0, 1])
def test_a_far_sample_on_an_exact_law_is_no_outlier(seed):
    x = normal(300, 2, seed=seed)
    x[17] *= 200
    assert found_in(x, torch.einsum("ni,ij,nj->n", x, A, x)) == []


def test_wrong_validation_samples_do_not_spoil_an_exact_polynomial():
    x = normal(300, 2, seed=3)
    y = torch.einsum("ni,ij,nj->n", x, A, x)
    posed = Posed.of(Samples(x[:, None], y), 0)
    back = posed.frame.inverse
    form = gortho.QuadraticForm(unit_form(back.mT @ A @ back))
    y = posed.parts.validation.y.clone()
    y[0] += 1
    wrong = posed.parts._replace(validation=posed.parts.validation.with_targets(y, posed.parts.train.rep))
    law = exact_law(form, posed.parts, 0)
    for parts in (posed.parts, wrong):
        assert mean_error(with_validation(law, parts, 0).network, posed.parts.held_out) < 1e-24


def test_a_sample_that_is_nearly_all_of_the_spread_is_named_where_nothing_is_found():
    """What neither O(A) nor a polynomial explains: outliers are not told from the law, but one that rules y is."""
    x = np.random.default_rng(1).normal(size=(300, 2, 3))
    y = np.cross(x[:, 0], x[:, 1]) * np.sin(3 * x[:, :1, 0])
    for wrong in (False, True):
        y[17] = [900.0, -3.0, 4.0] if wrong else y[17]
        found = gortho.discover(x, y, "vector", look_for="O", settings=TINY)
        told = [
            notice
            for notice in found.notices
            if "samples (number 17 of" in notice and "of the spread of y" in notice
        ]
        assert found.form is None and bool(told) == wrong


def off_a_polynomial(x, y, output="scalar"):
    posed = Posed.of(Samples(x, y, as_rep(output)), 0)
    whole = Samples.cat([posed.parts.train, posed.parts.validation, posed.parts.held_out])
    off = scattered(whole, len(posed.parts.train) + len(posed.parts.validation))
    return sorted(posed.numbers[off].tolist())


def without_a_form(law, rows=500, seed=3):
    """A torque, a law with a direction and one with an origin, with noise of one percent."""
    x = normal(rows, 2, 3, seed=seed)
    s = torch.tensor([0.3, 0.5, 0.8], dtype=x.dtype)
    one = x[:, 0]
    y = {
        "torque": lambda: torch.linalg.cross(one, x[:, 1]),
        "direction": lambda: one.square().sum(1) * (one @ s),
        "origin": lambda: (1 + (one - s).square().sum(1)).sqrt(),
    }[law]()
    y = y + 0.01 * y.std() * normal(*y.shape, seed=seed + 1)
    return (x, y, "vector") if law == "torque" else (x[:, :1], y, "scalar")


@pytest.mark.parametrize("law", ["torque", "direction", "origin"])
@pytest.mark.parametrize("factor", [500.0, -1.0])
def test_outliers_of_laws_without_a_form(law, factor):
    x, y, output = without_a_form(law)
    assert off_a_polynomial(x, y, output) == []
    inside = x.flatten(1).norm(dim=1) < x.flatten(1).norm(dim=1).median()
    row = int((inside * y.reshape(len(y), -1).norm(dim=1)).argmax())
    y[row] *= factor
    assert off_a_polynomial(x, y, output) == [row]


def test_what_a_polynomial_misses_is_no_outlier():
    """Poles off the origin, noise in proportion to y, heavy tails of inputs and of noise, and far inputs."""
    for seed in range(3):
        x = normal(500, 1, 3, seed=seed)
        q = (x[:, 0] - 0.4).square().sum(1)
        noise = normal(500, seed=seed + 10)
        assert off_a_polynomial(x, 1 / q) == [] and off_a_polynomial(x, q**-0.5) == []
        assert off_a_polynomial(x, q**2 * (1 + 0.2 * noise)) == []
        heavy = x / normal(500, 1, 1, seed=seed + 20).abs()
        assert off_a_polynomial(heavy, (heavy[:, 0] - 0.4).square().sum(1).sqrt() + 0.01 * noise) == []
        assert off_a_polynomial(x, q + noise / normal(500, seed=seed + 30)) == []


def test_a_wrong_row_of_a_torque_is_an_outlier_whatever_the_form():
    """A fit of one form explains nothing of it, so that outliers were not told from the law, and it was left open."""
    x, y, output = without_a_form("torque")
    row = int(x.flatten(1).norm(dim=1).argmin())
    y[row] *= 500
    posed = Posed.of(Samples(x, y, as_rep(output)), 0)
    for form in (torch.eye(3), torch.diag(torch.tensor([1.0, -1.0, 1.0]))):
        out = outliers(posed.parts, form.double(), ABSOLUTE, 0)
        assert posed.numbers[out].tolist() == [row]


@pytest.mark.parametrize(("spike", "verdict"), [(1.0, Verdict.NONE), (1e4, Verdict.UNDERDETERMINED)])
def test_nothing_is_denied_where_a_few_samples_are_all_of_the_spread(spike, verdict):
    x = normal(500, 2)
    y = x[:, 0].clone()
    y[3] *= spike
    samples = Samples(x[:, None], y)
    denied = gortho.Discovery(Verdict.NONE, "r", "a", 0.99, "scalar", ("a", "b"), None)
    told = with_ruling(denied, Posed.of(samples, 0))
    assert told.verdict is verdict and (told.confidence == 0) == (verdict is Verdict.UNDERDETERMINED)
    assert any("of the spread of y" in note for note in told.notices) == (verdict is Verdict.UNDERDETERMINED)
