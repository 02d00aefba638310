"""The scikit-learn estimators: they keep its rules, find and use forms, and refuse columns scaled one by one."""

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.estimator_checks import (
    check_estimators_dtypes,
    check_estimators_pickle,
    check_fit2d_1sample,
    check_fit_idempotent,
    check_sample_weights_pandas_series,
    check_supervised_y_2d,
    parametrize_with_checks,
)

from gortho import (
    EquivariantNet,
    EquivariantRegressor,
    InvariantClassifier,
    QuadraticForm,
    Settings,
    SkewForm,
    Symmetry,
    Verdict,
)
from gortho.discovery.result import NotAccepted
from gortho.scaling import ScaledFeatures, scaling_marks
from gortho.testing import equivariance_error

FORM = QuadraticForm.minkowski(3)
TILTED = QuadraticForm([[1.0, 0.4], [0.4, -0.8]])
SMALL = {"epochs": 2, "width": 8, "depth": 1, "random_state": 0}
TINY = Settings(starts=2, generations=0, finalists=1, refits=2, predictor_steps=20)
SEARCH = {"effort": "quick", "settings": TINY, **SMALL}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


X = normal(80, 2, 3)
Y = np.tanh(FORM.gram(X)[:, 0, 1].numpy())[:, None] * X[:, 0]


def known(output="vector", **options):
    return EquivariantRegressor(output, **{"form": FORM, **SMALL, **options})


# The rules of scikit-learn


def drawn_by_row(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": "batches and the validation part are drawn by row"
    }


@pytest.mark.slow  # a search in each
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [EquivariantRegressor(predictor="network", **SEARCH)], expected_failed_checks=drawn_by_row
)
def test_estimator_checks_where_the_form_is_learnt(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        InvariantClassifier("euclidean", allow_scaled=True, **SMALL),
        EquivariantRegressor(form="euclidean", allow_scaled=True, predictor="network", **SMALL),
    ],
    expected_failed_checks=drawn_by_row,
)
def test_estimator_checks(estimator, check):
    check(estimator)


BY_DEFAULT = EquivariantRegressor(form="euclidean", allow_scaled=True, **SMALL)


@pytest.mark.slow  # a Gaussian process in each
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([BY_DEFAULT], expected_failed_checks=drawn_by_row)
def test_estimator_checks_of_the_default(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "check",
    [
        check_estimators_dtypes,
        check_estimators_pickle,
        check_fit2d_1sample,
        check_fit_idempotent,
        check_sample_weights_pandas_series,
        check_supervised_y_2d,
    ],
)
def test_estimator_checks_where_a_gaussian_process_matters(check):
    check("EquivariantRegressor", clone(BY_DEFAULT))


def test_cross_validation_and_grid_search():
    y = FORM.gram(X)[:, 0, 1].numpy()[:, None] * X[:, 0]
    scores = cross_val_score(known(), X, y, cv=3)
    assert scores.shape == (3,) and scores.min() > 0.99
    search = GridSearchCV(known(), {"width": np.array([4, 8]), "form": ["euclidean", FORM]}, cv=2).fit(X, y)
    assert search.best_params_["form"] == FORM


@pytest.mark.parametrize("model", [known(), InvariantClassifier(FORM.matrix.numpy(), **SMALL)])
def test_clones_and_pickles(model):
    y = Y if isinstance(model, EquivariantRegressor) else np.where(Y[:, 0] > 0, "up", "down")
    copied = clone(model)
    assert copied.get_params().keys() == model.get_params().keys() and not hasattr(copied, "form_")
    fitted = copied.fit(X, y)
    loaded = pickle.loads(pickle.dumps(fitted))
    assert loaded.form_ == FORM
    np.testing.assert_array_equal(loaded.predict(X), clone(model).fit(X, y).predict(X))


@pytest.mark.parametrize("kind", [EquivariantRegressor, InvariantClassifier])
def test_the_same_data_give_the_same_model_by_default(kind):
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = x[:, 0] ** 2 - x[:, 1] ** 2 + 0.1 * x[:, 0]
    options = {"predictor": "network"} if kind is EquivariantRegressor else {}
    raw = []
    for state in (1, 2):
        np.random.seed(state)  # noqa: NPY002 - what random_state=None would draw from
        model = kind(form="minkowski", epochs=2, **options).fit(x, y if options else y > 0)
        raw.append(model.predict(x) if options else model.predict_proba(x))
    assert np.array_equal(*raw)


@pytest.mark.parametrize("state", [None, np.random.RandomState(3), 5])
def test_random_states(state):
    assert known(random_state=state).fit(X, Y).predict(X).shape == Y.shape


# Shapes


def test_tuples_and_flat_tables_give_the_same():
    flat = X.reshape(len(X), -1)
    model = known().fit(X, Y)
    expected = model.predict(X)
    assert expected.shape == Y.shape and expected.dtype == np.float64 and model.n_features_in_ == 6
    np.testing.assert_array_equal(model.predict(flat), expected)
    for form in (FORM, "minkowski"):
        np.testing.assert_array_equal(known(form=form, vector_dim=3).fit(flat, Y).predict(flat), expected)
    np.testing.assert_array_equal(known().fit(flat.tolist(), Y).predict(X.tolist()), expected)


def test_names_of_a_table_reach_the_form():
    table = pd.DataFrame(X[:, 0], columns=["t", "x", "y"])
    model = known("scalar", form="minkowski").fit(table, Y[:, 0])
    assert list(model.feature_names_in_) == ["t", "x", "y"]
    assert model.form_.law() == "q(x) = 1.00 t² - 1.00 x² - 1.00 y²"


@pytest.mark.parametrize(
    "output", ["scalar", "covector", "conjugation", "bilinear", "form", "scalar + vector"]
)
def test_every_output_comes_in_the_shape_of_its_targets(output):
    shape = {"scalar": (), "covector": (3,), "scalar + vector": (4,)}.get(output, (3, 3))
    y = normal(len(X), *shape, seed=1)
    model = known(output).fit(X, y)
    assert model.predict(X[:5]).shape == (5, *shape) and model.score(X, y) <= 1
    assert equivariance_error(model.predict, FORM, "vector", output, X) <= 1e-8
    flat = y.reshape(len(y), -1)
    assert known(output).fit(X, flat).predict(X[:5]).shape == (5, *flat.shape[1:])


def test_the_score_pools_all_components():
    model = known(epochs=20).fit(X, Y)
    residual = ((model.predict(X) - Y) ** 2).sum()
    assert model.score(X, Y) == pytest.approx(1 - residual / ((Y - Y.mean(axis=0)) ** 2).sum())


def test_sets_have_no_order_and_any_size():
    points = normal(60, 4, 3, seed=2)
    model = known(set_like=True, epochs=5).fit(points, points.sum(axis=1))
    value = model.predict(points)
    np.testing.assert_allclose(model.predict(points[:, [2, 0, 3, 1]]), value, rtol=0, atol=1e-12)
    assert model.predict(points[:, :3]).shape == (60, 3)
    assert equivariance_error(model.predict, FORM, "vector", "vector", points) <= 1e-8


# Weights and scalars


def test_weights_count_in_training():
    wrong, weights = Y.copy(), np.ones(len(Y))
    wrong[::4] *= -1
    weights[::4] = 1e-6
    assert (
        known(epochs=20).fit(X, wrong, weights).score(X, Y) > known(epochs=20).fit(X, wrong).score(X, Y) + 0.1
    )


@pytest.mark.slow
def test_weights_count_in_the_search():
    x, weights = normal(400, 2, seed=20), np.ones(400)
    y = np.tanh(TILTED(x).numpy())
    y[:150], weights[:150] = x[:150, 0] ** 2 + x[:150, 1] ** 2, 1e-6
    model = EquivariantRegressor(effort="quick", **SMALL)
    distances = [clone(model).fit(x, y, w).form_.algebra_distance(TILTED) for w in (weights, None)]
    assert distances[0] < 0.01 < distances[1]


def test_a_sample_of_weight_zero_is_not_there():
    weights = np.r_[np.zeros(30), np.ones(50)]
    np.testing.assert_array_equal(
        known().fit(X, Y, weights).predict(X), known().fit(X[30:], Y[30:]).predict(X)
    )
    labels = np.r_[np.full(30, "never"), np.where(Y[30:, 0] > 0, "up", "down")]
    assert list(InvariantClassifier(FORM, **SMALL).fit(X, labels, weights).classes_) == ["down", "up"]


@pytest.mark.parametrize("per_point", [False, True])
@pytest.mark.parametrize("form", [TILTED, "learn"], ids=["known", "learnt"])
def test_scalars_are_used_and_asked_for(form, per_point):
    x, new = normal(300, 2, 2, seed=21), normal(100, 2, 2, seed=22)
    mass, new_mass = (
        np.exp(0.5 * normal(len(v), 2 if per_point else 1, seed=s)) for v, s in ((x, 23), (new, 24))
    )

    def law(x, m):
        return m[:, 0] * TILTED.gram(x)[:, 0, 1].numpy()

    model = EquivariantRegressor(form=form, effort="quick", epochs=20, random_state=0)
    model.fit(x, law(x, mass), scalars=mass)
    assert model.form_.algebra_distance(TILTED) < 1e-3
    assert model.score(new, law(new, new_mass), scalars=new_mass) > 0.99
    with pytest.raises(ValueError, match="none is given: give them by scalars="):
        model.predict(new)
    with pytest.raises(ValueError, match="rows"):
        model.predict(new, new_mass[:-1])


def test_a_classifier_takes_weights_and_scalars():
    x = normal(300, 2, seed=25)
    cut = normal(300, seed=26)
    y = TILTED(x).numpy() > cut
    model = InvariantClassifier(TILTED, epochs=30, random_state=0).fit(x, y, np.ones(300), cut)
    assert model.score(x, y, scalars=cut) > 0.93
    assert InvariantClassifier(TILTED, epochs=30, random_state=0).fit(x, y).score(x, y) < 0.9


# What goes wrong is said


@pytest.mark.parametrize(
    "options, change, message",
    [
        ({}, {"X": np.where(X > 2, np.nan, X)}, "NaN"),
        ({}, {"y": np.where(Y > 1, np.inf, Y)}, "infinity"),
        ({}, {"y": Y[:-1]}, "inconsistent numbers of samples"),
        ({}, {"y": Y[:, :2]}, "y has shape"),
        ({}, {"X": X[:, :, :2]}, "dimension of the vectors is 2 by the shape of X"),
        ({"vector_dim": 2}, {}, "2 by vector_dim"),
        ({"form": "euclidean", "vector_dim": 4}, {"X": X.reshape(80, 6)}, "6 columns"),
        ({"form": "galilean"}, {}, "form = 'galilean'"),
        ({"form": None}, {}, "form = None: choose 'learn'"),
        ({"effort": "none"}, {}, "effort = 'none'"),
        ({"output": "spinor"}, {}, "spinor"),
        ({"predictor": "nonsense"}, {}, "predictor = 'nonsense'"),
        ({"predictor": "nonsense", "form": "SO(3)"}, {}, "predictor = 'nonsense'"),
        ({"form": [[1, 2, 0], [0, 1, 0], [0, 0, 1]]}, {}, "not symmetric"),
        ({}, {"X": X[:1], "y": Y[:1]}, "1 sample"),
    ],
)
def test_errors(options, change, message):
    data = {"X": X, "y": Y, **change}
    with pytest.raises(ValueError, match=message):
        known(**options).fit(**data)


def test_new_data_of_another_size_is_refused():
    model = known().fit(X, Y)
    for other in (X[:, :1], X[:, :, :2], X.reshape(80, 6)[:, :3]):
        with pytest.raises(ValueError, match="features"):
            model.predict(other)


@pytest.mark.parametrize("set_like", [False, True])
def test_new_vectors_of_another_dimension_are_refused(set_like):
    """As many numbers in all would be cut into other vectors."""
    regressor = known("scalar", set_like=set_like).fit(X, Y[:, 0])
    classifier = InvariantClassifier(FORM, set_like=set_like, **SMALL).fit(X, Y[:, 0] > 0)
    other = normal(80, 3, 2)
    for asked in (regressor.predict, classifier.predict, classifier.predict_proba):
        with pytest.raises(ValueError, match=r"shape \(80, 3, 2\).*shape \(N, 2, 3\)"):
            asked(other)
    for model in (regressor, classifier):
        with pytest.raises(ValueError, match=r"shape \(80, 3, 2\)"):
            model.score(other, Y[:, 0] > 0)


@pytest.mark.parametrize(
    "model, x, y, reason",
    [
        *((EquivariantRegressor(**given), X[:8, 0], X[:8, 0, 0] > 0, "too few") for given in (SEARCH, SMALL)),
        *((EquivariantRegressor(**given), X[:, 0], np.ones(80), "constant") for given in (SEARCH, SMALL)),
        (InvariantClassifier(**SEARCH), X[:8, 0], X[:8, 0, 0] > 0, "too few"),
    ],
)
def test_hopeless_data_gets_a_warning_and_the_euclidean_form(model, x, y, reason):
    with pytest.warns(NotAccepted, match=reason):
        fitted = clone(model).fit(x, y.astype(int))
    assert fitted.form_ == QuadraticForm.euclidean(3) and fitted.predict(x).shape == (len(x),)


# Columns scaled one by one

MIXED = np.random.default_rng(4).normal([1.0, 0.5, -2.0], [1.0, 3.0, 2.0], size=(60, 3))
SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    MinMaxScaler(),
    MinMaxScaler((-1, 1)),
    MinMaxScaler((2, 5)),
    MaxAbsScaler(),
    RobustScaler(),
    QuantileTransformer(n_quantiles=60),
    QuantileTransformer(n_quantiles=60, output_distribution="normal"),
    PowerTransformer(),
    Normalizer(),
    Normalizer("l1"),
    Normalizer("max"),
]


@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
def test_a_scaler_before_a_known_form_is_an_error_and_before_a_learnt_one_a_warning(scaler):
    y = MIXED[:, 0] ** 2
    with pytest.raises(ValueError, match=r"one by one destroys it.*1\.00 x0² - 1\.00 x1²"):
        make_pipeline(scaler, FunctionTransformer(), known("scalar")).fit(MIXED, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScaledFeatures)  # which ends the fit before its search
        with pytest.raises(ScaledFeatures, match="one by one destroys it"):
            make_pipeline(scaler, EquivariantRegressor(**SEARCH)).fit(MIXED, y)


@pytest.mark.filterwarnings("ignore::gortho.discovery.result.NotAccepted")  # what was scaled has no form
def test_a_form_is_learnt_from_scaled_columns_in_spite_of_the_warning():
    with pytest.warns(ScaledFeatures, match="one by one destroys it"):
        model = make_pipeline(StandardScaler(), EquivariantRegressor(**SEARCH)).fit(MIXED, MIXED[:, 0] ** 2)
    assert model.predict(MIXED).shape == (60,)


def test_scaled_columns_can_be_allowed():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScaledFeatures)
        make_pipeline(StandardScaler(), known("scalar", allow_scaled=True)).fit(MIXED, MIXED[:, 0] ** 2)


def test_flat_tuples_in_a_scaling_pipeline_are_refused():
    with pytest.raises(ValueError, match="StandardScaler"):
        make_pipeline(StandardScaler(), known()).fit(X.reshape(80, 6), Y)


def test_centring_moves_the_origin():
    with pytest.warns(ScaledFeatures, match="origin"):
        make_pipeline(StandardScaler(with_std=False), known("scalar")).fit(MIXED, MIXED[:, 0])


def test_honest_data_has_no_marks():
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 12)] * 2), axis=-1).reshape(-1, 2)
    uniform = np.random.default_rng(0).uniform(-1, 1, size=(200_000, 3))
    turned = np.concatenate([MIXED[:, :2], MIXED[:, 1::-1] * [1, -1]])
    whole = np.random.default_rng(1).integers(-3, 4, size=(50, 3)).astype(float)
    for data in (
        MIXED,
        X.reshape(80, 6),
        MIXED / MIXED.std(),
        grid + 0.1,
        uniform,
        turned,
        whole,
        MIXED[:, :1],
    ):
        assert scaling_marks(data) is None
    assert scaling_marks(Normalizer().fit_transform(MIXED), QuadraticForm.euclidean(3)) is None


# Forms


def test_a_known_form_beats_a_plain_network_on_few_samples():
    form = QuadraticForm.minkowski(4)

    def law(x):  # of the invariant mass of two momenta
        return np.sqrt(1 + form(x.sum(axis=1)).numpy() ** 2)

    x, new = normal(150, 2, 4, seed=30), normal(2000, 2, 4, seed=130)
    model = EquivariantRegressor(form="minkowski", random_state=0).fit(x, law(x))
    network = MLPRegressor(hidden_layer_sizes=(64, 64), max_iter=1000, random_state=0)
    plain = make_pipeline(StandardScaler(), network).fit(x.reshape(150, 8), law(x))
    assert model.form_ == form and model.score(new, law(new)) > 0.95
    assert plain.score(new.reshape(2000, 8), law(new)) < 0.8
    assert equivariance_error(model.predict, form, "vector", "scalar", new[:100]) <= 1e-8


def test_a_form_is_learnt_with_a_verdict():
    x = normal(400, 2, seed=5)
    y = np.tanh(TILTED(x).numpy())
    settings = Settings(starts=12, generations=3, refits=4, predictor_steps=150)
    model = EquivariantRegressor(settings=settings, epochs=30, random_state=0).fit(x, y)
    assert model.discovery_.verdict is Verdict.FOUND and model.form_ == model.discovery_.form
    assert model.form_.algebra_distance(TILTED) < 0.02
    new = normal(500, 2, seed=6)
    assert model.score(new, np.tanh(TILTED(new).numpy())) > 0.98
    assert equivariance_error(model.predict, model.form_, "vector", "scalar", new[:50]) <= 1e-8


def test_data_without_a_form_gets_a_warning_with_the_reason():
    x = normal(300, 2, seed=7)
    with pytest.warns(NotAccepted, match="establishes no form") as caught:
        model = EquivariantRegressor(settings=TINY, **SMALL).fit(x, x[:, 0] + np.sin(3 * x[:, 1]))
    assert model.discovery_.verdict is not Verdict.FOUND and model.form_ == model.discovery_.candidate
    assert any(model.discovery_.reason in str(w.message) for w in caught)


@pytest.mark.parametrize("output", ["vector", "conjugation"])
def test_a_quick_search_finds_the_form_of_other_outputs(output):
    x = normal(300, 2, seed=8) @ np.array([[3.0, 0.0], [1.0, 0.5]])  # far from isotropic
    lowered = x @ TILTED.matrix.numpy()
    y = TILTED(x).numpy()[:, None] * x if output == "vector" else x[:, :, None] * lowered[:, None, :]
    model = EquivariantRegressor(output, effort="quick", epochs=5, random_state=0).fit(x, y)
    assert model.form_.algebra_distance(TILTED) < 0.05 and not hasattr(model, "discovery_")
    assert model.search_.restarts[0].criterion < 1e-6 and model.form_errors_.shape == (2, 2)


@pytest.mark.parametrize("output", ["scalar", "vector"])
def test_units_do_not_matter_where_a_form_is_learnt(output):
    units = np.array([1e-4, 1e5])
    x = normal(300, 2, seed=9)
    y = np.tanh(TILTED(x).numpy())
    y, given = (y, y) if output == "scalar" else (y[:, None] * x, y[:, None] * x * units)
    model = EquivariantRegressor(output, effort="quick", epochs=10, random_state=0)
    plain = clone(model).fit(x, y).predict(x)
    other = clone(model).fit(x * units, given).predict(x * units)
    np.testing.assert_allclose(other / (units if output == "vector" else 1), plain, atol=1e-3)


# Classes


@pytest.mark.parametrize("bounds", [[0.2], [-0.5, 0.5]], ids=["two", "three"])
def test_a_classifier_learns_the_form_of_its_classes(bounds):
    def label(x):
        return np.array(["low", "middle", "high"])[np.digitize(TILTED(x).numpy(), bounds)]

    x, new = normal(400, 2, seed=10), normal(1000, 2, seed=11)
    model = InvariantClassifier(effort="quick", epochs=30, random_state=0).fit(x, label(x))
    assert model.form_.group_name == "O(1,1)" and model.form_.algebra_distance(TILTED) < 0.1
    probability = model.predict_proba(new)
    assert probability.min() > 1e-7  # nothing is certain
    assert probability.shape == (1000, len(bounds) + 1) and set(model.classes_) == set(label(new))
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert model.score(new, label(new)) > 0.95
    for column in range(probability.shape[1]):
        error = equivariance_error(
            lambda z, c=column: model.predict_proba(z)[:, c], model.form_, "vector", "scalar", new[:50]
        )
        assert error <= 1e-8


def test_a_classifier_asks_for_a_verdict():
    x = normal(900, 2, seed=14)
    labels = np.where(TILTED(x).numpy() > 0.2, "in", "out")
    settings = Settings(starts=8, generations=2, refits=5, predictor_steps=60)
    model = InvariantClassifier(settings=settings, epochs=20, random_state=0).fit(x, labels)
    assert model.discovery_.verdict is Verdict.FOUND and model.form_ == model.discovery_.form
    assert model.discovery_.classes == ("in", "out") and not hasattr(model, "search_")
    assert model.form_.algebra_distance(TILTED) < 0.05 and model.score(x, labels) > 0.95
    with pytest.warns(NotAccepted, match="depend on more than the inner products"):
        model.fit(x, x[:, 1] > 0.1)
    assert model.discovery_.verdict is Verdict.NONE


def test_labels_of_a_rare_class_get_a_warning():
    x = normal(200, 2, seed=15)
    with pytest.warns(NotAccepted, match="class 1 has 3 samples, each needs 10"):
        model = InvariantClassifier(**SMALL).fit(x, (np.arange(200) < 3).astype(int))
    assert model.form_ == QuadraticForm.euclidean(2) and model.predict(x).shape == (200,)


def test_labels_without_a_form_get_a_warning():
    x = normal(300, 2, seed=12)
    with pytest.warns(NotAccepted, match="unexplained"):
        InvariantClassifier(**SEARCH).fit(x, np.random.default_rng(0).integers(0, 2, 300))


def test_a_classifier_with_a_known_form_sees_sets():
    jets = normal(200, 5, 3, seed=13)
    y = FORM(jets.sum(axis=1)).numpy() > 0
    model = InvariantClassifier(FORM, set_like=True, epochs=20, random_state=0).fit(jets, y)
    assert model.score(jets, y) > 0.9
    np.testing.assert_allclose(model.predict_proba(jets[:, ::-1]), model.predict_proba(jets), atol=1e-12)


@pytest.mark.parametrize(
    "symmetry, output, law",
    [
        ("O(3), broken along (0.00, 0.00, 1.00)", "scalar", lambda x: (x**2).sum(1) + x[:, 2]),
        ("O(3) about (0.5, -0.3, 0.8)", "vector", lambda x: x - np.array([0.5, -0.3, 0.8])),
        (Symmetry(skew=SkewForm.canonical(4)), "vector", lambda x: 2 * x),
    ],
)
def test_a_symmetry_that_is_known(symmetry, output, law):
    symmetry = Symmetry.of(symmetry)
    x = np.random.default_rng(0).normal(size=(200, symmetry.n))
    model = EquivariantRegressor(output, symmetry, epochs=20, random_state=0).fit(x, law(x))
    assert model.symmetry_ == symmetry and model.score(x, law(x)) > 0.99
    few = torch.as_tensor(x[:20])[:, None]
    assert equivariance_error(model.network_, symmetry, "vector", output, few) < 1e-9
    assert clone(model).form is not None


def test_a_worse_polynomial_of_vectors_does_not_replace_the_network(monkeypatch):
    """Errors of vectors are compared per number, both of them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    y = x + 1.2 * rng.normal(size=x.shape)

    def nothing(form, parts, seed, moves):
        net = EquivariantNet(form, output="vector").double()
        net.y_scale.zero_()
        return SimpleNamespace(network=net)

    monkeypatch.setattr("gortho.estimators.polynomial", nothing)
    model = EquivariantRegressor("vector", "euclidean", epochs=20, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.3


@pytest.mark.parametrize("sizes", [(1e3, 1.0), (1.0, 1e3)])
def test_outputs_of_any_size_count_alike_where_a_polynomial_is_compared_with_the_network(sizes):
    """Only a network meets the first output; the second is noise, which neither does."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2, 3))
    law = np.tanh(3 * (x[:, 0] * x[:, 1]).sum(1))
    y = np.stack([law, rng.normal(size=400)], 1) * sizes
    both = [
        EquivariantRegressor(form="euclidean", epochs=60, predictor=kind).fit(x, y)
        for kind in ("auto", "network")
    ]
    scores = [r2_score(y, model.predict(x), multioutput="raw_values")[0] for model in both]
    assert scores[0] == scores[1] > 0.9


def test_names_of_symmetries_are_read_and_others_refused():
    x = np.random.default_rng(0).normal(size=(60, 2, 3))
    handed = EquivariantRegressor("vector", "SO(3)", epochs=20, random_state=0)
    y = np.cross(x[:, 0], x[:, 1]) + x[:, 0]
    assert handed.fit(x, y).score(x, y) > 0.99
    with pytest.raises(ValueError, match=r"form = 'round'.*SO\(3\)"):
        EquivariantRegressor("vector", "round").fit(x, y)


def test_arrays_in_reverse():
    x, q = X[:, 0], (X[:, 0] ** 2).sum(1)
    model = EquivariantRegressor(form="euclidean", **SMALL).fit(x[::-1], q[::-1])
    copied = EquivariantRegressor(form="euclidean", **SMALL).fit(x[::-1].copy(), q[::-1].copy())
    assert np.array_equal(model.predict(x), copied.predict(x))


@pytest.mark.parametrize("samples", [40, 200])
def test_a_formula_that_matches_all_samples_predicts(samples):
    """A law that is no polynomial, with a form that is told: exact also where no sample was."""
    rng = np.random.default_rng(3)
    A = np.array([[1.0, 0.3], [0.3, -0.7]])

    def law(X):
        u, v = (np.einsum("ni,ij,nj->n", X[:, i], A, X[:, j]) for i, j in ((0, 0), (0, 1)))
        return np.sin(u) + 0.5 * v

    X, far = rng.normal(size=(samples, 2, 2)), 2 * rng.normal(size=(500, 2, 2))
    model = EquivariantRegressor(form=A, allow_scaled=True, epochs=20).fit(X, law(X))
    assert np.abs(model.predict(far) - law(far)).max() < 1e-9 * np.abs(law(far)).max()
    np.testing.assert_allclose(model.form_.matrix.numpy() / A, (model.form_.matrix.numpy() / A)[0, 0])
    noisy = law(X) + 0.1 * rng.normal(size=samples)
    kept = EquivariantRegressor(form=A, allow_scaled=True, epochs=20).fit(X, noisy)
    assert np.square(kept.predict(far) - law(far)).mean() > 1e-12  # no formula is made of noise
