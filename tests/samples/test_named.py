"""Scalars in tables: by the names of their columns, rows in the order of the vectors."""

import numpy as np
import pandas as pd
import pytest

import gortho
from gortho.samples import DataError
from gortho.samples.door import enter
from gortho.samples.errors import MissingError
from gortho.samples.named import check_rows, scalars_by_name

QUICK = gortho.Settings(starts=4, generations=1, refits=2, predictor_steps=20)


def samples(N=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    table = pd.DataFrame({"m": rng.uniform(1, 2, N), "k": rng.uniform(1, 3, N)})
    return X, table, table.m * (X**2 @ [1, -1, -1]) + table.k


def other_order(table):
    return table.iloc[::-1]


@pytest.fixture(scope="module")
def found():
    X, table, y = samples()
    return gortho.discover(X, y, scalars=table, settings=QUICK, look_for="O")


def test_scalars_of_a_discovery_are_taken_by_name(found, tmp_path):
    X, table, _ = samples()
    swapped = table[["k", "m"]].assign(other=0.0)
    expected = found.predict(X, scalars=table)
    for one in (found, gortho.Discovery.load(found.save(tmp_path))):
        assert np.array_equal(one.predict(X, scalars=swapped), expected)
        assert np.array_equal(one.predict(X, scalars=table.to_numpy()), expected)
        assert np.allclose(one.formula(X, scalars=swapped), one.formula(X, scalars=table), rtol=1e-12)
        assert one.invariants(X, swapped).equals(one.invariants(X, table))
    for ask in (found.predict, found.formula, found.invariants, found.equivariance_error):
        with pytest.raises(MissingError, match="'m'"):
            ask(X, scalars=table.rename(columns={"m": "M"}))
        with pytest.raises(DataError, match="another order"):
            ask(pd.DataFrame(X, columns=["x0", "x1", "x2"]), scalars=other_order(table))


def test_scalars_of_an_estimator_are_taken_by_name():
    X, table, y = samples()
    model = gortho.EquivariantRegressor(form=np.diag([1.0, -1, -1]), epochs=1).fit(X, y, scalars=table)
    assert np.array_equal(model.predict(X, table[["k", "m"]]), model.predict(X, table))
    with pytest.raises(MissingError, match="'m'"):
        model.predict(X, table.rename(columns={"m": "M"}))
    with pytest.raises(DataError, match="another order"):
        model.fit(pd.DataFrame(X), y, scalars=other_order(table))


def test_tables_of_points_and_samples_have_names_of_their_own():
    columns = {"point": ("m1", "m2"), "sample": ("k",)}
    given = {"point": pd.DataFrame([[2.0, 1.0]], columns=["m2", "m1"]), "sample": np.ones((1, 1))}
    selected = scalars_by_name(given, columns)
    assert selected["point"].to_numpy().tolist() == [[1.0, 2.0]]
    assert selected["sample"] is given["sample"]
    repeated = pd.DataFrame([[1.0, 2.0]], columns=["m", "m"])
    with pytest.raises(DataError, match="more than once"):
        scalars_by_name(repeated, {"": ("m",)})


def test_repeated_columns_of_x_are_refused():
    X, _, y = samples()
    table = pd.DataFrame(X, columns=["t", "u", "t"])
    with pytest.raises(DataError, match="the data frame has 't' more than once"):
        enter(table, y)
    assert enter(table, y, names=["t", "u", "v"])[0].names == ("t", "u", "v")


@pytest.mark.parametrize("part", ["y", "scalars", "sample_weight", "y_error"])
def test_rows_in_another_order_are_refused(part):
    X, table, y = samples()
    given = {"y": y, part: other_order(y if part == "y" else table.m)}
    with pytest.raises(DataError, match=f"X and {part} have the same labels"):
        enter(pd.DataFrame(X), **given)


def test_rows_are_compared_where_x_is_an_array():
    X, table, y = samples()
    with pytest.raises(DataError, match=r"y and scalars\['sample'\] have the same labels"):
        enter(X, y, scalars={"sample": other_order(table)})
    check_rows(X=pd.DataFrame(X, index=range(1000, 1120)), y=y, scalars=None)  # other labels tell nothing


def test_what_is_wrong_with_scalars_is_said_by_argument_and_column(found):
    X, table, _ = samples()
    absent, text = table.astype(object), table.astype(object)
    absent.loc[3, "k"], text.loc[4, "m"] = np.nan, "a"
    one = table.to_numpy()[:, :1]
    for given, message in (
        (None, r"made with 2 scalars for each sample \('m', 'k'\), and none is given: give them by scalars="),
        (one, r"2 scalars for each sample \('m', 'k'\), and 1 is given"),
        (table[:10], "X has 120 rows and scalars has 10"),
        (absent.astype(float), "scalars holds NaN .* row 3, column 'k'"),
        (text, "scalars holds 'a' in row 4, column 'm'"),
    ):
        with pytest.raises(DataError, match=message):
            found.predict(X, scalars=given)
    with pytest.raises(DataError, match="column 'k'"):
        enter(X, table.m, scalars={"sample": absent.astype(float)})


@pytest.mark.filterwarnings("error")
def test_arrays_that_are_read_only(found):
    X, table, _ = samples()
    expected, values = found.predict(X, table), table.to_numpy().copy()
    values.flags.writeable = X.flags.writeable = False
    assert np.array_equal(found.predict(X, values), expected)
