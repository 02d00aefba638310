"""Scalars in tables: by the names of their columns, rows in the order of the vectors."""

import numpy as np
import pandas as pd
import pytest

import gortho
from gortho.samples import DataError
from gortho.samples.arranged import as_found, columns_of
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


@pytest.mark.parametrize("part", ["y", "scalars"])
def test_rows_that_are_shifted_are_refused(part):
    X, table, y = samples()
    X, other = pd.DataFrame(X, index=[f"e{i}" for i in range(120)]), y if part == "y" else table.m
    other.index = X.index
    for one, two in ((X[1:], other[:-1]), (X.drop("e60"), other.drop("e70"))):
        with pytest.raises(
            DataError, match=f"X and {part} have 118 of 119 labels of rows in common"
        ) as caught:
            enter(one, **{"y": y.to_numpy()[1:], part: two})
    assert "'e61' is that of row 60 of X and of row 61 of" in str(caught.value)
    assert "X.index.intersection" in str(caught.value) and ".reset_index(drop=True)" in str(caught.value)
    both = X.index[1:].intersection(other.index[:-1])
    check_rows(X=X.loc[both], **{part: other.loc[both]})
    check_rows(X=X[1:].reset_index(drop=True), **{part: other[:-1].reset_index(drop=True)})


def test_labels_that_tell_nothing_about_places():
    X, _, y = samples()
    X = pd.DataFrame(X)
    check_rows(X=X, y=y.rename({3: 1000}))  # all that they have in common are in the same rows
    check_rows(X=X[X.index % 3 == 0], y=y[:40])  # numbers of a few
    check_rows(X=X[1:].set_axis([0, 0, *range(117)]), y=y[:-1])  # groups


def test_rows_of_the_tables_of_a_list_are_compared():
    table, y = kinds()
    r, s = table.iloc[:, :3], table.iloc[:, 3:]
    with pytest.raises(
        DataError, match=r"X\[0\] and X\[1\] have the same labels .* give X\[1\].loc\[X\[0\].index\]"
    ):
        gortho.discover([r, other_order(s)], y)
    with pytest.raises(DataError, match=r"X\[0\] and y have 199 of 200 labels"):
        gortho.discover([r, s], pd.Series(y, index=range(1, 201)))


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


def kinds():
    """A table of vectors of three and of two components, and a law of their squares."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 5)), columns=["rx", "ry", "rz", "u", "v"])
    return table, (table**2 @ [1, 2, 3, 1, -3]).to_numpy()


@pytest.fixture(scope="module")
def several():
    table, y = kinds()
    return gortho.discover([table.iloc[:, :3], table.iloc[:, 3:]], y, settings=QUICK)


def test_vectors_of_different_dimension_are_taken_by_name(several, tmp_path):
    table, y = kinds()
    r, s = table[["rz", "rx", "ry"]].assign(other=0.0), table[["v", "u"]]
    assert several.columns == tuple(table)
    for one in (several, gortho.Discovery.load(several.save(tmp_path))):
        for X in (
            [r, s],
            [table.iloc[:, :3].to_numpy(), s],
            table[["v", "rz", "u", "ry", "rx"]],
            table.to_numpy(),
        ):
            assert np.allclose(one.predict(X), y) and np.allclose(one.formula(X), y)


def test_vectors_of_other_kinds_are_refused(several):
    table, _ = kinds()
    r, s = table.iloc[:, :3], table.iloc[:, 3:]
    for ask in (several.predict, several.formula, several.equivariance_error):
        for X in ([s.to_numpy(), r.to_numpy()], [r], [r, s, s]):
            with pytest.raises(DataError, match=r"vectors of .* components, and the law was found with 3, 2"):
                ask(X)
        for X in ([s, r], [r.rename(columns={"rx": "x"}), s], table.rename(columns={"rx": "x"})):
            with pytest.raises(MissingError, match="'rx'"):
                ask(X)
        with pytest.raises(DataError, match="a list of arrays"):
            ask(table.to_numpy()[:, :4])


@pytest.mark.parametrize("names", [["x", "y", "z", "px", "py", "pz"], ["x", "y", "z"] * 2])
def test_a_list_of_tables_of_one_dimension_is_taken_by_name(names):
    X = np.random.default_rng(0).normal(size=(150, 2, 3))
    r, p = (pd.DataFrame(X[:, i], columns=names[3 * i : 3 * i + 3]) for i in (0, 1))
    y = (X[:, 0] * X[:, 1] * [1, 2, 3]).sum(1)
    for given in ([r, p], [r, X[:, 1]], [X[:, 0], p]):
        found = gortho.discover(given, y, settings=QUICK, look_for="O")
        named = [tuple(part) for part in given if hasattr(part, "columns")]
        assert found.names == named[0]
        turned = [part.iloc[:, [2, 0, 1]] if hasattr(part, "columns") else part for part in given]
        for ask in (found.predict, found.formula, found.invariants):
            assert np.allclose(ask(turned), ask(X))
            with pytest.raises(MissingError):
                ask([part.set_axis(list("abc"), axis=1) for part in (r, p)])


def test_names_of_lists():
    table, _ = kinds()
    r, s = table.iloc[:, :3], table.iloc[:, 3:]
    plain = [("u0", "u1", "u2"), ("v0", "v1")]
    assert columns_of([r, s.to_numpy()]) == ("rx", "ry", "rz", "", "")
    assert columns_of([r.to_numpy(), s.to_numpy()]) == ()
    found = as_found([r, s], plain, [0, 1])  # as they stand, where coordinates have no names
    assert np.array_equal(found[:, 0], r) and np.array_equal(found[:, 1, :2], s)
    assert np.array_equal(as_found(table, plain, [0, 1]), found)
    known = [("x", "y", "z"), ("x", "y")]
    with pytest.raises(DataError, match="the same names: give a list"):
        as_found(table.set_axis(list("xyzuv"), axis=1), known, [0, 1])
