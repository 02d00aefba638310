"""From a messy file to an answer: what users hand in, and what they are told."""

import numpy as np
import pandas as pd
import pytest

import gortho
from gortho import EquivariantRegressor, InvariantClassifier, Settings
from gortho.samples import DataError

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


# Data frames


def test_predictions_match_columns_by_name(tmp_path):
    x, y = law()
    frame = pd.DataFrame(x, columns=["E", "px", "py"])
    found = gortho.discover(frame, y, settings=SMALL, names=["energy", "a", "b"])
    expected = found.predict(x)
    loaded = gortho.Discovery.load(found.save(tmp_path / "run"))
    for one in (found, loaded):
        np.testing.assert_allclose(one.predict(frame[["py", "E", "px"]].assign(extra="text")), expected)
        other = frame.rename(columns={"E": "energy", "px": "a", "py": "b"})[["b", "a", "energy"]]
        np.testing.assert_allclose(one.predict(other), expected)
        with pytest.raises(DataError, match=r"there is no column 'px': .*available: 'E', 'p_x', 'py'"):
            one.predict(frame.rename(columns={"px": "p_x"}))
        with pytest.raises(DataError, match="more than once"):
            one.predict(pd.concat([frame, frame], axis=1))
    assert found.equivariance_error(frame[["py", "E", "px"]]) < 1e-8


def test_a_run_without_names_takes_columns_in_order(plain):
    x, _ = law()
    np.testing.assert_array_equal(plain.predict(pd.DataFrame(x, columns=list("abc"))), plain.predict(x))
    np.testing.assert_array_equal(
        plain.predict(pd.DataFrame(x[:, ::-1], columns=["x2", "x1", "x0"])), plain.predict(x)
    )
    with pytest.raises(DataError, match="there is no column 'x0'"):
        plain.predict(pd.DataFrame(x[:, :2], columns=["a", "b"]))


def test_flat_frames_of_several_vectors():
    x = np.random.default_rng(0).normal(size=(300, 2, 2))
    y = x[:, 0, 0] * x[:, 1, 0] + x[:, 0, 1] * x[:, 1, 1]
    found = gortho.discover(x, y, settings=SMALL, names=["a", "b"])
    columns = ["a_0", "b_0", "a_1", "b_1"]
    flat = pd.DataFrame(x.reshape(300, 4), columns=columns)
    for renamed in (flat, flat.set_axis(["a1", "b1", "a2", "b2"], axis=1)):
        np.testing.assert_array_equal(found.predict(renamed.iloc[:, [3, 1, 0, 2]]), found.predict(x))
    with pytest.raises(DataError, match="there is no column 'b_1'"):
        found.predict(flat[["a_0", "b_0", "a_1"]])


def test_estimators_keep_to_the_names_of_features():
    x, y = law(60)
    frame = pd.DataFrame(x, columns=["E", "px", "py"])
    model = EquivariantRegressor(form="minkowski", epochs=2, random_state=0).fit(frame, y)
    assert list(model.feature_names_in_) == ["E", "px", "py"] and model.form_.names == ("E", "px", "py")
    model.predict(frame)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[["py", "E", "px"]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"px": "p_x"}))
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(x)
