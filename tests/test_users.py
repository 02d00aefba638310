"""From a messy file to an answer: what users hand in, and what they are told."""

import numpy as np
import pytest

import gortho
from gortho import EquivariantRegressor, InvariantClassifier, Settings

SMALL = Settings(starts=10, generations=2, refits=4, predictor_steps=100)


def law(rows=400, seed=0, n=3):
    """x and y of a law with form diag(1, -1, ...)."""
    x = np.random.default_rng(seed).normal(size=(rows, n))
    q = x[:, 0] ** 2 - np.square(x[:, 1:]).sum(1)
    return x, q / (1 + np.abs(q))


# Sizes of numbers


@pytest.fixture(scope="module")
def plain():
    x, y = law()
    return gortho.discover(x, y, settings=SMALL)


@pytest.mark.parametrize(
    "x_unit, y_unit", [(2.0**-500, 2.0**500), (2.0**500, 2.0**-500), (2.0**990, 2.0**990)]
)
def test_numbers_of_any_size_give_the_same_answer(plain, x_unit, y_unit):
    x, y = law()
    found = gortho.discover(x * x_unit, y * y_unit, settings=SMALL)
    assert found.verdict is plain.verdict and found.group_name == plain.group_name == "O(1,2)"
    assert found.candidate.cosine(plain.candidate) > 1 - 1e-14
    np.testing.assert_allclose(found.predict(x * x_unit) / y_unit, plain.predict(x), rtol=1e-9, atol=1e-12)
    assert found.peers[0].relative_mse == pytest.approx(plain.peers[0].relative_mse, rel=1e-6)
    assert found.equivariance_error(x * x_unit) < 1e-8


@pytest.mark.parametrize("unit", [1e-150, 1e150])
@pytest.mark.parametrize("output", ["vector", "conjugation"])
def test_decimal_sizes_with_outputs_that_transform(unit, output):
    x, y = law()
    A = np.diag([1.0, -1.0, -1.0])
    value = y[:, None] * x if output == "vector" else y[:, None, None] * (x[:, :, None] * (x @ A)[:, None, :])
    found = gortho.discover(x * unit, value * unit, output, settings=SMALL)
    assert found.group_name == "O(1,2)"
    error = found.predict(x * unit) / unit - value
    assert np.median(np.square(error)) < 1e-3 * value.var()  # a few at the edge may be far off


@pytest.mark.parametrize("unit", [1e-150, 1e150, 1e300])
@pytest.mark.parametrize("form", ["learn", "minkowski"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_estimators_with_numbers_of_any_size(unit, form):
    x, y = law(300)
    options = {"form": form, "effort": "quick", "epochs": 20, "random_state": 0}
    model = EquivariantRegressor(**options).fit(x * unit, y / unit)
    assert model.form_.group_name == "O(1,2)" and model.score(x * unit, y / unit) > 0.99
    classes = InvariantClassifier(**options).fit(x * unit, y > 0)
    assert classes.form_.group_name == "O(1,2)" and classes.score(x * unit, y > 0) > 0.9
