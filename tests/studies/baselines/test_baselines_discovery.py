"""LieGG and SDBA against laws whose algebra is known; the plain network that they read."""

import pytest
import torch
from helpers import normal, relative_mse

from gortho import QuadraticForm
from gortho.studies import tasks
from gortho.studies.baselines.liegg import OFFICIAL, LieGG, largest_gap
from gortho.studies.baselines.mlp import MLP
from gortho.studies.baselines.sdba import SDBA, riemannian_adagrad
from gortho.studies.tasks.random_laws import random_law

QUICK = {"width": 48, "depth": 1, "steps": 600, "lr": 1e-2}


@pytest.fixture(scope="module")
def small():
    form = QuadraticForm.random(1, 1, condition=3, seed=2)
    return random_law(form, 1, "vector", 1_500, 0.0, "polynomial", seed=1)


@pytest.fixture(scope="module")
def inertia():
    return tasks.inertia(400, masses=3, seed=1)


def inertia_of(task):
    """The exact law as a function of the positions, the masses held fixed."""
    return lambda r: task.law(r, task.point_scalars)


@pytest.mark.parametrize(
    ("method", "settings", "bound"), [(LieGG, {}, 0.1), (SDBA, {"iterations": 1_000, "field_lr": 0.03}, 0.15)]
)
def test_a_trained_network_shows_the_algebra_of_a_clean_law(small, method, settings, bound):
    fitted = method("vector", **settings, **QUICK).fit(small.x[:1_200], small.y[:1_200])
    assert fitted.distance(small.form) < bound
    assert fitted.quadratic_form.cosine(small.form) > 0.98
    gram = fitted.generators.flatten(1) @ fitted.generators.flatten(1).T
    torch.testing.assert_close(gram, torch.eye(1, dtype=torch.float64))
    prediction = fitted.predict(small.x[1_200:])
    assert prediction.shape == (300, 2) and prediction.dtype == torch.float64
    assert relative_mse(prediction, small.y[1_200:]) < 0.25
    assert fitted.generators.dtype == torch.float64 and fitted.tuning


@pytest.mark.parametrize("seed", [0, 1])
def test_the_gap_counts_the_generators_of_an_exact_law(seed):
    task = tasks.synthetic(300, seed=seed)
    method = LieGG("conjugation", dimension="gap", traceless=False)
    assert method.analyse(task.law, task.x).shape == (6, 4, 4)
    assert method.distance(task.form) < 1e-7 and method.notes["dimension"] == 6
    assert method.quadratic_form.cosine(task.form) > 1 - 1e-9
    assert len(LieGG("conjugation", dimension=2).analyse(task.law, task.x)) == 2


def test_a_gap_among_rounding_errors_is_none():
    assert largest_gap(torch.tensor([1e-40, 1e-17, 3e-16, 0.1, 1.0], dtype=torch.float64)) == 3
    assert largest_gap(torch.tensor([1e-3, 1e-2, 0.9, 1.0], dtype=torch.float64)) == 2
    assert largest_gap(torch.zeros(3, dtype=torch.float64)) == 3


def test_the_wrong_action_finds_another_algebra():
    for seed in range(3):
        task = tasks.synthetic(300, seed=seed)
        wrong = LieGG("conjugation", action="bilinear")
        wrong.analyse(task.law, task.x)
        assert wrong.distance(task.form) > 1 and wrong.quadratic_form.cosine(task.form) < 0.97


def test_scaling_takes_a_generator_unless_generators_are_traceless(inertia):
    everything = LieGG("bilinear", dimension="gap", traceless=False)
    found = everything.analyse(inertia_of(inertia), inertia.x).flatten(1)
    identity = torch.eye(3, dtype=torch.float64).flatten() / 3**0.5
    assert len(found) == 4 and float((found @ identity).norm()) == pytest.approx(1, abs=1e-9)
    traceless = LieGG("bilinear", dimension="gap")
    assert len(traceless.analyse(inertia_of(inertia), inertia.x)) == 3
    assert traceless.distance(inertia.form) < 1e-7


def test_fewer_samples_than_unknowns_leave_the_rest_free():
    task = tasks.o5(4, seed=0)
    method = LieGG("scalar", dimension="gap")
    assert len(method.analyse(task.law, task.x)) == 24 - 4
    assert method.distance(task.form) < 1e-7  # the algebra is among what four samples allow


def test_sdba_finds_several_fields_at_once_and_no_translation(inertia):
    method = SDBA("bilinear", iterations=1_000, field_lr=0.03)
    assert method.analyse(inertia_of(inertia), inertia.x).shape == (3, 3, 3)
    assert method.distance(inertia.form) < 0.05 and method.notes["translations"] < 0.05
    assert method.quadratic_form.cosine(inertia.form) > 0.99


def test_sdba_knows_translations():
    method = SDBA("scalar", dimension=3, iterations=500, field_lr=0.1, loss="squared")
    method.analyse(lambda x: (x[:, 0] - x[:, 1]).square().sum(-1).exp(), normal(200, 2, 2) / 4)
    assert method.notes["translations"] == pytest.approx(2**0.5, abs=0.02)
    assert method.generators.shape == (1, 2, 2) and method.distance(QuadraticForm.euclidean(2)) < 0.05
    assert method.fields.shape == (3, 2, 3)


def test_riemannian_adagrad_finds_the_smallest_subspace():
    values = torch.tensor([5.0, 3.0, 2.0, 0.1, 0.05], dtype=torch.float64)
    start = torch.linalg.qr(normal(5, 2))[0]
    W, lowest = riemannian_adagrad(lambda W: (values[:, None] * W).square().sum(), start, 1_000, 0.1)
    torch.testing.assert_close(W.T @ W, torch.eye(2, dtype=torch.float64))
    assert lowest == pytest.approx(0.1**2 + 0.05**2, rel=1e-3)


def test_scalars_go_into_the_network_and_stay_fixed_in_the_law():
    task = tasks.inertia(1_500, masses=2, seed=3)
    train, test = task[:1_200], task[1_200:]
    method = LieGG("bilinear", **QUICK).fit(train.x, train.y, train.point_scalars)
    prediction = method.predict(test.x, test.point_scalars)
    assert prediction.shape == (300, 3, 3) and prediction.dtype == torch.float64
    assert relative_mse(prediction, test.y) < 0.05
    other = method.predict(test.x, test.point_scalars.flip(0))
    assert relative_mse(other, test.y) > 0.1
    assert method.distance(task.form) < 0.1
    with pytest.raises(ValueError, match="point_scalars"):
        method.predict(test.x)


def test_the_plain_network_has_no_generators(small):
    method = MLP("vector", width=16, depth=1, steps=30, seed=1).fit(small.x, small.y)
    assert method.generators is None and method.quadratic_form is None and method.distance(small.form) is None
    assert method.parameters == (2 * 16 + 16) + (16 * 16 + 16) + (16 * 2 + 2)
    again = MLP("vector", width=16, depth=1, steps=30, seed=1).fit(small.x, small.y)
    assert torch.equal(method.predict(small.x), again.predict(small.x)) and method.tuning


def test_the_published_network_is_the_small_one():
    method = LieGG("scalar", official=True, steps=10)
    assert (method.width, method.depth, method.steps) == (OFFICIAL["width"], OFFICIAL["depth"], 10)


def test_wrong_settings_are_named(small):
    with pytest.raises(ValueError, match="gap"):
        LieGG(dimension="guess")
    with pytest.raises(ValueError, match="1 to 3"):
        LieGG("scalar", dimension=7).analyse(lambda x: x[:, 0].square().sum(-1), small.x)
    with pytest.raises(ValueError, match="absolute"):
        SDBA(loss="cosine")
