"""From a messy file to an answer: what users hand in, and what they are told."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner

import gortho
from gortho import EquivariantRegressor, InvariantClassifier, Settings, cli
from gortho.cli import searching
from gortho.discovery.hints import looks_like_a_gradient
from gortho.reps import as_rep
from gortho.samples import DataError, Samples

SMALL = Settings(starts=10, generations=2, refits=4, predictor_steps=100)
TINY = Settings(starts=2, generations=0, finalists=1, refits=2, predictor_steps=20)


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


@pytest.mark.parametrize("x_unit, y_unit", [(2.0**-500, 2.0**500), (2.0**990, 2.0**990)])
def test_numbers_of_any_size_give_the_same_answer(plain, x_unit, y_unit):
    x, y = law()
    found = gortho.discover(x * x_unit, y * y_unit, settings=SMALL)
    assert found.verdict is plain.verdict and found.group_name == plain.group_name == "O(1,2)"
    assert found.candidate.cosine(plain.candidate) > 1 - 1e-14
    np.testing.assert_allclose(found.predict(x * x_unit) / y_unit, plain.predict(x), rtol=1e-9, atol=1e-12)
    assert found.peers[0].relative_mse == pytest.approx(plain.peers[0].relative_mse, rel=1e-6)
    assert found.equivariance_error(x * x_unit) < 1e-8


@pytest.mark.parametrize(("output", "unit"), [("vector", 1e-150), ("conjugation", 1e150)])
def test_decimal_sizes_with_outputs_that_transform(output, unit):
    x, y = law()
    A = np.diag([1.0, -1.0, -1.0])
    value = y[:, None] * x if output == "vector" else y[:, None, None] * (x[:, :, None] * (x @ A)[:, None, :])
    found = gortho.discover(x * unit, value * unit, output, settings=SMALL)
    assert found.group_name == "O(1,2)"
    error = found.predict(x * unit) / unit - value
    assert np.median(np.square(error)) < 1e-3 * value.var()  # a few at the edge may be far off


@pytest.mark.parametrize(("unit", "form"), [(1e-150, "learn"), (1e300, "minkowski")])
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
    x, _ = law()
    y = np.square(x).sum(1)
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


# Time


def test_a_time_budget_thins_the_samples_once(tmp_path, monkeypatch):
    x, _ = law(3_000)
    y = np.square(x).sum(1)  # the simplest, as time is not spent on it
    found = gortho.discover(x, y, settings=TINY, look_for="O", time_budget=1)
    assert found.provenance.samples == 1_000
    assert [n for n in found.notices if "subset" in n] == [
        "a random subset of 1000 of the 3000 rows is used (seed 0): the time budget is not enough for more"
    ]
    assert "the search has 1 s of the time budget, which is below the minimum, about 3 s" in found.notices
    enough = gortho.discover(x[:900], y[:900], settings=TINY, look_for="O", time_budget=30)
    assert enough.provenance.samples == 900 and not any("time budget" in n for n in enough.notices)
    np.savez(tmp_path / "a.npz", X=x, y=y)
    monkeypatch.setitem(cli.EFFORTS, "quick", vars(TINY) | {"workers": None})
    del cli.EFFORTS["quick"]["workers"]
    for option, count, why in (
        ("--time-budget", 1_000, "time budget"),
        ("--max-samples", 700, "--max-samples"),
    ):
        arguments = [
            "discover",
            str(tmp_path / "a.npz"),
            "--effort",
            "quick",
            "--look-for",
            "O",
            "--json",
            option,
        ]
        arguments.append("1" if option == "--time-budget" else str(count))
        content = json.loads(CliRunner().invoke(cli.main, arguments).stdout)
        (notice,) = [notice for notice in content["notices"] if "subset" in notice]
        assert f"{count} of the 3000 rows" in notice and why in notice
        assert content["provenance"]["samples"] == count


def test_the_predictor_shows_its_progress():
    x, _ = law(300)
    shares = []
    y = np.sin(3 * x[:, 0] ** 2 - 3 * x[:, 1] ** 2) + x[:, 2]  # no short polynomial
    watch = lambda stage, share, line: shares.append((stage, share))  # noqa: E731
    gortho.discover(x, y, settings=TINY, look_for="O", watch=watch)
    moved = [share for stage, share in shares if stage == "predictor"]
    assert len(set(moved)) > 8 and moved == sorted(moved)


# Edges


@pytest.mark.parametrize(
    "options, message",
    [
        ({"seed": -1}, "seed = -1: give a whole number of at least 0"),
        ({"seed": 1.5}, "seed = 1.5"),
        ({"seed": True}, "seed = True"),
        ({"seed": 2**32}, "at most 4294967295"),
        ({"time_budget": 0}, "time_budget = 0: give a finite number of seconds above zero"),
        ({"time_budget": "long"}, "time_budget = 'long'"),
        ({"time_budget": float("inf")}, "time_budget = inf"),
        ({"max_samples": 0}, "max_samples = 0: give a whole number of at least 2"),
        ({"max_samples": 2.5}, "max_samples = 2.5"),
        ({"names": ["a", "a", "b"]}, "more than once"),
        ({"scalars": [[1], [2, 3]] * 30}, "the rows of scalars differ in length"),
        ({"scalars": ["a"] * 60}, "scalars holds 'a'"),
    ],
)
def test_bad_arguments_are_named(options, message):
    x, y = law(60)
    with pytest.raises(ValueError, match=message):
        gortho.discover(x, y, settings=TINY, **options)


@pytest.mark.parametrize(
    "name", ["starts", "generations", "finalists", "refits", "predictor_steps", "members", "workers"]
)
@pytest.mark.parametrize("value", [-1, 1.5, "many", None])
def test_bad_settings_are_named(name, value):
    with pytest.raises(ValueError, match=f"Settings: {name} = "):
        Settings(**{name: value})


def test_settings_are_settings():
    with pytest.raises(TypeError, match="settings is a dict"):
        gortho.discover(*law(60), settings={"starts": 3})
    assert Settings(starts=np.int64(3)).starts == 3


@pytest.mark.parametrize(
    "x, y, message",
    [
        (
            [[1, 2], [3]] * 20,
            np.zeros(40),
            "the rows of X differ in length: row 0 has 2 values and row 1 has 1",
        ),
        (np.ones((40, 2)), [[1], [2, 3]] * 20, "the rows of y differ in length"),
        (np.ones((40, 2)), None, "y is None"),
        (np.ones((40, 2)), 3.0, "y is 3.0"),
        (np.ones((40, 2), dtype=np.float16), np.zeros(40), "X has dtype float16"),
        (torch.ones(40, 2, dtype=torch.bfloat16), np.zeros(40), "X has dtype bfloat16"),
    ],
)
def test_bad_arrays_are_named(x, y, message):
    with pytest.raises(DataError, match=message):
        gortho.discover(x, y)


def test_half_precision_is_refused_in_predictions(plain):
    with pytest.raises(DataError, match="float16"):
        plain.predict(law()[0].astype(np.float16))


@pytest.mark.filterwarnings("error:The given NumPy array")
@pytest.mark.filterwarnings("error::FutureWarning")
def test_pandas_gives_no_warnings():
    x, _ = law(200)  # so few as 60 are looked at for long
    y = np.square(x).sum(1) - 3.0
    frame, series = pd.DataFrame(x, columns=["E", "px", "py"]), pd.Series(y)
    EquivariantRegressor(form="minkowski", epochs=2, random_state=0).fit(frame, series).predict(frame)
    InvariantClassifier(form="minkowski", epochs=2, random_state=0).fit(frame, series > 0).predict(frame)
    found = gortho.discover(frame.astype("Float64"), series.astype("Float64"), settings=TINY, look_for="O")
    assert found.names == ("E", "px", "py")


def test_rows_of_pandas_must_be_in_the_same_order():
    x, y = law(60)
    frame = pd.DataFrame(x, columns=["E", "px", "py"])
    with pytest.raises(DataError, match="same labels of rows in another order"):
        gortho.discover(frame.sample(frac=1, random_state=0), pd.Series(y), settings=TINY)


def test_a_single_class_is_said():
    x, _ = law(60)
    with pytest.raises(ValueError, match="y has one class, 'a': a classifier needs at least two"):
        InvariantClassifier(epochs=2, random_state=0).fit(x, ["a"] * 60)


def test_bad_random_states_are_named():
    with pytest.raises(ValueError, match="random_state = -1"):
        EquivariantRegressor(form="minkowski", random_state=-1).fit(*law(60))


def test_many_points_are_remarked_on():
    from gortho.samples.door import enter

    x = np.random.default_rng(0).normal(size=(30, 41, 2))
    assert any("samples of 41 vectors take long" in n for n in enter(x, x[:, 0, 0])[1])
    assert not any("take long" in n for n in enter(x[:, :40], x[:, 0, 0])[1])


# From a second trial


def named_law(seed=3):
    v = np.random.default_rng(seed).normal(size=(400, 3))
    return pd.DataFrame(v, columns=list("abc")), v @ np.diag([1.0, 2.0, 3.0]) * v


def test_a_formula_takes_columns_by_name():
    frame, terms = named_law()
    y = pd.Series(terms.sum(1), name="m_0 [GeV]")
    found = gortho.discover(frame, y, settings=SMALL)
    for columns in (["a", "b", "c"], ["c", "b", "a"]):
        np.testing.assert_allclose(found.formula(frame[columns]).ravel(), y, rtol=1e-8)
    with pytest.raises(DataError, match="'b'"):
        found.formula(frame[["a", "c"]])
    assert r"\text{m\_0 [GeV]}\right) &=" in found.latex()


def test_what_a_poor_predictor_leaves_does_not_make_a_law():
    frame, terms = named_law()
    formula = gortho.discover(frame, terms.sum(1), settings=SMALL).formula
    assert formula.holds
    assert not replace(formula, unexplained=0.37, predictor_unexplained=0.55).holds
    assert replace(formula, unexplained=0.2, predictor_unexplained=0.2, twin_unexplained=0.2).holds


@pytest.mark.parametrize("counting", [1, 4, 60])
def test_samples_of_weight_zero_are_left_out(counting):
    frame, terms = named_law()
    weights = np.zeros(len(frame))
    weights[:counting] = 1.0
    found = gortho.discover(frame, terms.sum(1), sample_weight=weights, settings=SMALL)
    assert f"{400 - counting} samples of weight zero are left out" in found.notices
    assert (found.verdict.name == "FOUND") == (counting == 60)


def test_samples_that_a_reason_speaks_of_are_named():
    v = np.random.default_rng(9).normal(size=(600, 3))
    y = np.sqrt((v**2).sum(1)) + np.sin(2 * v[:, 2])
    found = gortho.discover(v, y, settings=SMALL)
    assert "(see the note)" in found.reason
    assert any("held-out samples (number" in notice for notice in found.notices)


def test_a_closed_pipe_is_no_full_disk(monkeypatch, tmp_path):
    written = []

    def closed(*_, **__):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(searching.click, "echo", closed)
    with pytest.raises(BrokenPipeError):
        files = [("Report", written.append, tmp_path / "r.html")]
        searching.hand_over(searching.click.Context(searching.demo), "FOUND", files, 0, False)
    assert written == [tmp_path / "r.html"]


@pytest.mark.parametrize("x_unit, y_unit", [(1.0, 1e-24), (1e-25, 1.0), (1e25, 1e30)])
def test_formulas_of_numbers_of_any_size(x_unit, y_unit):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 2))
    y = y_unit / ((x**2).sum(1) + 0.5)
    found = gortho.discover(x * x_unit, y, settings=TINY)
    (term,) = found.formula.terms
    assert term.coefficient == pytest.approx(y_unit * x_unit**2, rel=1e-4)
    assert term.shapes == pytest.approx((0.5 * x_unit**2,), rel=1e-4)
    np.testing.assert_allclose(found.formula(x * x_unit), y, rtol=1e-4)


def test_weighted_errors_are_printed_weighted():
    """Half of the samples are worthless, and say so by their weights."""
    x, y = law()
    rng = np.random.default_rng(5)
    poor = rng.random(len(x)) < 0.5
    y = y + np.where(poor, 1.0, 0.0) * rng.normal(size=len(x))
    found = gortho.discover(x, y, sample_weight=np.where(poor, 1e-2, 1.0), settings=SMALL, look_for="O")
    assert found.peers[0].relative_mse < 0.15
    assert any("means by the weights" in notice for notice in found.notices)


def test_samples_are_named_by_their_lines_in_the_file(tmp_path):
    table = pd.DataFrame(np.arange(60.0).reshape(20, 3), columns=["a", "b", "y"])
    table.loc[[0, 5], "a"] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False)
    data = gortho.samples.read(tmp_path / "t.csv", x="a,b", y="y", dropna=True)
    notice = "2 of 4 held-out samples (number 0, 4, … of the samples used, counted from 0) make up all"
    # The header is line 1, and rows 0 and 5, lines 2 and 7, are gone.
    assert data.in_file(notice) == "2 of 4 held-out samples (line 3, line 8, … of the file) make up all"


def test_a_header_alone_is_said(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n")
    with pytest.raises(DataError, match="empty below its header"):
        gortho.samples.read(tmp_path / "t.csv", x="a,b", y="y")


def test_one_sample_is_a_table_of_one_row(plain):
    for one in (pd.Series([1.0, 2.0, 3.0]), np.ones(3), [1.0, 2.0, 3.0]):
        with pytest.raises(DataError, match="table of one row"):
            plain.predict(one)


def test_vectors_keep_the_names_of_their_columns():
    x = np.random.default_rng(0).normal(size=(100, 2))
    y = pd.DataFrame(3 * x * (x**2).sum(1, keepdims=True), columns=["F_x", "F_y"])
    found = gortho.discover(x, y, output="vector", settings=TINY)
    assert str(found.formula) == "F = 3.00 x ⟨x,x⟩"


def test_kinds_of_output_that_are_told_include_classes():
    x, y = law(50)
    with pytest.raises(ValueError, match="or class for labels"):
        gortho.discover(x, y, output="clas")


def test_columns_of_several_levels_are_joined():
    x = np.random.default_rng(0).normal(size=(15, 4))
    frame = pd.DataFrame(x, columns=pd.MultiIndex.from_product([["p1", "p2"], ["a", "b"]]))
    assert gortho.discover(frame, x[:, 0]).names == ("p1.a", "p1.b", "p2.a", "p2.b")


def test_constants_are_called_so():
    x = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="f is constant on X"):
        gortho.spectral_form(lambda z: 0 * z[:, 0] + 1, torch.tensor(x))
    with pytest.raises(ValueError, match="y has one class"):
        gortho.InvariantClassifier("euclidean").fit(x, np.zeros(30))


@pytest.mark.parametrize("output", ["scalar", "vector", "covector", "pseudoscalar", "class"])
def test_one_coordinate_has_an_answer_for_every_output(output):
    x = np.random.default_rng(0).normal(size=(60, 1))
    y = x if output.endswith("vector") else (x[:, 0] > 0).astype(float)
    found = gortho.discover(x, y, output)
    assert str(found.verdict) == "UNDERDETERMINED" and "One coordinate" in found.reason


def test_gradients_given_as_vectors_are_remarked_on():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1, 3))
    q = x[:, 0] @ np.diag([1.0, -2.0, 0.5])
    y = q * np.exp(-0.1 * (q * x[:, 0]).sum(1, keepdims=True))
    noisy = y + 0.02 * y.std() * rng.normal(size=y.shape)

    def told(y, output="vector"):
        return looks_like_a_gradient(Samples(torch.tensor(x), torch.tensor(y), as_rep(output)))

    assert told(y) and told(noisy) and not told(y, "covector")
    assert not told(3 * x[:, 0] * (x[:, 0] ** 2).sum(1, keepdims=True))
    assert not told(rng.normal(size=y.shape)) and not told(np.cross(x[:, 0], [0.0, 0.0, 1.0]))


def test_columns_named_by_quantity_and_unit(tmp_path):
    """ "x/m" is a name, not a path: each coordinate keeps a symbol of its own."""
    x = np.random.default_rng(0).normal(size=(300, 2))
    frame = pd.DataFrame(x, columns=["x/m", "z/m"]).assign(**{"V/J": x[:, 0] ** 2 + 3 * x[:, 1] ** 2})
    frame.loc[5, "x/m"] = np.nan
    file, run = tmp_path / "a.csv", tmp_path / "run"
    frame.to_csv(file, index=False)
    asked = [
        "discover",
        str(file),
        "--y",
        "V/J",
        "--dropna",
        "--effort",
        "quick",
        "--quiet",
        "--save",
        str(run),
    ]
    result = CliRunner().invoke(cli.main, asked)
    assert result.exit_code == 0, result.output
    found = gortho.Discovery.load(run)
    assert sorted(map(str, found.sympy().free_symbols)) == ["x/m", "z/m"]
    assert "V/J" in str(found.formula)
    # what was found without the rows that miss numbers can be checked and used without them
    checked = CliRunner().invoke(cli.main, ["check", str(run), str(file), "--dropna"])
    assert checked.exit_code == 0 and "299 samples" in checked.output
    made = CliRunner().invoke(
        cli.main, ["predict", str(run), str(file), "--dropna", "--out", str(tmp_path / "p.csv")]
    )
    p = pd.read_csv(tmp_path / "p.csv", skip_blank_lines=False)["V/J"]
    assert made.exit_code == 0 and "left out are empty there" in made.output
    assert len(p) == 300 and list(np.flatnonzero(p.isna())) == [
        5
    ]  # row by row, beside the file that was read
    assert np.allclose(p.drop(5), frame.drop(5)["V/J"], atol=1e-6)
    assert CliRunner().invoke(cli.main, ["check", str(run), str(file)]).exit_code == 2


def test_large_targets_are_not_far_under_relative_noise():
    """Errors in proportion to y are no outliers where y is large; one gross error still is."""
    from gortho.formulas.usual import far

    rng = np.random.default_rng(1)
    y = np.exp(rng.normal(size=(500, 1)) * 1.5)
    errors = np.square(0.01 * y * rng.normal(size=(500, 1))).sum(1)
    assert not far(errors, errors, y).any()
    errors[7] = 4 * float(y[7, 0]) ** 2
    assert far(errors, errors, y).nonzero()[0].tolist() == [7]
