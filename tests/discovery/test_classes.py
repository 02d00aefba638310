"""Classes: their form in a hidden frame, refusals, probabilities that no group element changes."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch
from helpers import normal
from scipy.stats import t

import gortho
from gortho import QuadraticForm, Settings, Verdict
from gortho.discovery import likelihood
from gortho.discovery.defect import class_defect
from gortho.discovery.evidence import Evidence
from gortho.discovery.likelihood import ShortModel, likelihood_refits, most_likely
from gortho.discovery.models import Measured
from gortho.discovery.posed import Posed
from gortho.discovery.search import Restart, Search
from gortho.discovery.spreads import given_errors
from gortho.discovery.verdict import judge
from gortho.objectives import LABELS
from gortho.reps import as_rep
from gortho.runs import probabilities
from gortho.samples import DataError, Dataset
from gortho.samples.door import enter
from gortho.samples.labels import MAX_CLASSES, MIN_OF_CLASS, as_labels
from gortho.samples.values import Samples

SMALL = Settings(starts=10, generations=2, refits=4, predictor_steps=100)
TINY = Settings(starts=2, generations=0, finalists=1, refits=2, predictor_steps=20)


def hidden(seed, n=3, condition=3.0):
    """A form of signature (1, n-1) in some frame."""
    return QuadraticForm.random(1, n - 1, condition=condition, seed=seed)


def values(x, form):
    """q over its standard deviation; of two vectors, their inner product."""
    A = form.matrix.numpy()
    q = np.einsum("ni,ij,nj->n", x, A, x) if x.ndim == 2 else np.einsum("ni,ij,nj->n", x[:, 0], A, x[:, 1])
    return q / q.std()


def labelled(samples, seed, bounds=(0.1,), sharp=0.05, shape=()):
    """Inputs, class numbers by noisy bounds of q, and the form."""
    random, form = np.random.default_rng(seed), hidden(seed)
    x = random.normal(size=(samples, *shape, 3))
    return x, np.digitize(values(x, form) + sharp * random.logistic(size=samples), bounds), form


# At the door


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["b", "a"], ("a", "b")),
        ([3, 1], (1, 3)),
        ([True, False], (False, True)),
        ([0.5, 2.0], (0.5, 2.0)),
        (np.array([2, 1], dtype=object), (1, 2)),
        (np.array(["x", 1], dtype=object), ("1", "x")),
        (pd.Series(["u", "t"], dtype="category"), ("t", "u")),
        (torch.tensor([7, 5]), (5, 7)),
    ],
)
def test_labels_of_any_kind(labels, classes):
    repeated = np.tile(np.asarray(labels), MIN_OF_CLASS)
    codes, found = as_labels(repeated)
    assert found == classes and [type(c) for c in found] == [type(c) for c in classes]
    assert [str(found[c]) for c in codes] == [str(label) for label in repeated]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array(["2021", "2020"], dtype="datetime64[s]"), ("2020-01-01 00:00:00", "2021-01-01 00:00:00")),
        (np.array(["2021", "2020"], dtype="datetime64[ns]"), ("2020-01-01 00:00:00", "2021-01-01 00:00:00")),
        (np.array([2, 1], dtype="timedelta64[h]"), ("0 days 01:00:00", "0 days 02:00:00")),
        (np.array([b"b", b"a"]), ("a", "b")),
    ],
)
def test_dates_durations_and_bytes_become_text(labels, classes):
    repeated = np.tile(labels, MIN_OF_CLASS)
    for given in (repeated, pd.Series(repeated)):
        codes, found = as_labels(given)
        assert found == classes and codes[:2].tolist() == [1, 0]
    if labels.dtype.kind in "mM":
        with pytest.raises(DataError, match="no label in row 0"):
            as_labels(np.concatenate([np.array(["NaT"], dtype=labels.dtype), repeated]))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * 20, "all labels are 'a': give two classes"),
        (["a"] * 20 + ["b"], "class 'b' has 1 sample, each needs 10"),
        ([1] * 20 + [2] * 3, "class 2 has 3 samples"),
        (["a", "b", None] * 10, r"no label in row 2 \(10 in all\)"),
        (["a", "b", " "] * 10, "no label in row 2"),
        ([1.0, 2.0, np.nan] * 10, "no label in row 2"),
        (pd.Series([1, 2, None] * 10, dtype="Int64"), "no label in row 2"),
        (np.repeat(np.arange(MAX_CLASSES + 1), 10), "51 different labels, .* output='scalar'"),
        (np.zeros((20, 2)), "2 columns: classes are one column"),
        ([], "no labels"),
    ],
)
def test_labels_that_cannot_be_classes(labels, message):
    with pytest.raises(DataError, match=message) as told:
        as_labels(labels)
    assert "np." not in str(told.value)


# The likelihood


@pytest.mark.parametrize("bounds", [(0.1,), (-0.4, 0.3)])
def test_the_form_is_as_exact_as_the_likelihood_allows(bounds):
    """At most a third worse than the logistic regression that is told the law: linear in the products of x."""
    from sklearn.linear_model import LogisticRegression

    own, told = [], []
    for seed in range(40, 44):
        x, codes, form = labelled(2_000, seed, bounds)
        posed = Posed.of(enter(x, codes, "class")[0], seed)
        parts = posed.weighted(LABELS)
        train = Samples.cat([parts.train, parts.validation])
        start = posed.frame.form_in(QuadraticForm(form.matrix + 0.3 * torch.eye(3)))
        own.append(posed.out(ShortModel.of(train, LABELS, start).fit(start)[0]).algebra_distance(form))
        i, j = np.triu_indices(3)
        rows = posed.given.train.x[:, 0].numpy(), posed.given.validation.x[:, 0].numpy()
        z = np.concatenate(rows)
        z, labels = z[:, i] * z[:, j], train.y.argmax(1).numpy() > len(bounds) - 1
        weights = LogisticRegression(C=1e6, max_iter=3_000).fit(z, labels).coef_[0]
        B = torch.zeros(3, 3).double().index_put((torch.tensor(i), torch.tensor(j)), torch.tensor(weights))
        told.append(QuadraticForm((B + B.mT) / 2).algebra_distance(form))
    assert np.mean(own) < 4 / 3 * np.mean(told) and np.mean(own) < 0.08


def test_a_shell_of_one_form_tells_it_as_well_as_a_boundary(monkeypatch):
    """Inside and outside of a shell are one class, which no monotone function of the invariant tells apart."""
    generator = torch.Generator().manual_seed(3)
    A = torch.diag(torch.tensor([1.0, 0.6, -0.8], dtype=torch.float64))
    x = torch.randn(6_000, 1, 3, dtype=torch.float64, generator=generator)
    inside = ((x @ A * x).sum((1, 2)) - 1.0).abs() < 0.3
    samples = Samples(x, torch.stack([~inside, inside], 1).double(), "scalar", classes=(0, 1))
    start = A + 0.1 * torch.eye(3, dtype=torch.float64)
    distances = []
    for bumps in (likelihood.BUMPS, 0):
        monkeypatch.setattr(likelihood, "BUMPS", bumps)
        found = QuadraticForm(ShortModel.of(samples, LABELS, start).fit(start)[0])
        distances.append(found.algebra_distance(QuadraticForm(A)))
    assert distances[0] < 0.02 and distances[0] < 0.5 * distances[1]


def test_intervals_of_the_likelihood_cover():
    inside = []
    for seed in range(60, 68):
        x, codes, form = labelled(800, seed)
        posed = Posed.of(enter(x, codes, "class")[0], seed)
        parts = posed.weighted(LABELS)
        start = posed.frame.form_in(QuadraticForm(form.matrix + 0.3 * torch.eye(3)))
        likely = most_likely(parts.train, Search(start, LABELS, (Restart("near", start, 0.0),)))
        refits = likelihood_refits(parts.train, likely, 8, seed, lambda share, A: None)
        found = posed.out(likely.A)
        half = t.ppf(0.975, 8) * given_errors(posed.frame, found, refits)[0]
        sign = np.sign(float((found.matrix * form.matrix).sum()))
        inside.append((found.matrix - sign * form.matrix).abs().numpy() <= half)
    assert np.mean(inside) > 0.85


# Verdicts


@pytest.fixture(scope="module")
def three():
    """Three classes with names, and what was found."""
    x, codes, form = labelled(1_500, 21, (-0.4, 0.3))
    labels = np.array(["space", "light", "time"])[codes]
    return x, labels, form, gortho.discover(x, labels, output="class", settings=SMALL, seed=1)


def covered(found, form):
    """The share of entries inside their intervals."""
    low, high = found.intervals
    A = form.matrix.numpy() * np.sign((form.matrix * found.candidate.matrix).sum().item())
    return ((low <= A) & (high >= A)).mean()


def test_three_classes(three):
    x, labels, form, found = three
    assert found.verdict is Verdict.FOUND and found.group_name == "O(1,2)"
    assert found.classes == ("light", "space", "time") and found.candidate.algebra_distance(form) < 0.08
    assert covered(found, form) > 0.7
    assert (found.predict(x) == labels).mean() > 0.85
    p = found.predict_proba(x)
    assert p.shape == (1_500, 3) and np.allclose(p.sum(1), 1)
    assert "log loss" in found.reason and found.defect.low == 0 and found.defect.high < 0.1
    assert "class frequencies" in str(found) and "the variance" not in str(found)
    assert found.confidence > 0.9


def test_probabilities_are_those_that_the_log_loss_was_told_of(three):
    x, labels, _, found = three
    held_out = Posed.of(enter(x, labels, "class")[0], 1).given.held_out
    told = found.held_out[1].reshape(-1, 3)
    np.testing.assert_allclose(found.predict_proba(held_out.x[:, 0]), told, atol=2e-3)
    loss = -np.log((told * held_out.y.numpy()).sum(1)).mean()
    assert loss == pytest.approx(found.peers[0].mse)


def test_probabilities_do_not_change_under_the_group(three):
    x, _, _, found = three
    g = found.candidate.group().sample(1, seed=3, max_boost=1.0)[0].numpy()
    before, after = found.predict_proba(x[:200]), found.predict_proba(x[:200] @ g.T)
    assert np.abs(after - before).max() < 1e-10 and before.std(0).min() > 0.1
    assert max(found.certificate.values()) < 1e-10 < 1e-3 < max(found.free_certificate.values())


def test_a_saved_run_predicts_the_same(three, tmp_path):
    x, _, _, found = three
    again = gortho.Discovery.load(found.save(tmp_path / "run"))
    assert again.classes == found.classes and again.defect == found.defect
    assert (again.predict(x) == found.predict(x)).all()
    assert np.array_equal(again.predict_proba(x), found.predict_proba(x))


def test_a_figure_and_a_report_of_classes(three, tmp_path):
    found = three[3]
    picture = found.plot()
    right = picture.axes[2]
    assert [t.get_text() for t in right.get_xticklabels()] == ["light", "space", "time"]
    shares = right.images[0].get_array()
    assert np.allclose(shares.sum(0), 1) and shares.diagonal().min() > 0.7
    page = found.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="confusion"' in page and 'id="reliability"' in page and 'id="scatter"' not in page


@pytest.mark.slow
def test_a_rare_class():
    x, _, form = labelled(3_000, 23)
    q = values(x, form) + 0.02 * np.random.default_rng(0).logistic(size=3_000)
    found = gortho.discover(x, q > np.quantile(q, 0.95), output="class", settings=SMALL)
    assert found.classes == (False, True) and found.candidate.group_name == "O(1,2)"
    assert found.verdict is not Verdict.NONE and found.candidate.algebra_distance(form) < 0.2
    assert 0.02 < found.predict(x).mean() < 0.08


@pytest.mark.slow
def test_sharp_classes_of_pairs_of_vectors_with_numbers_for_names():
    x, codes, form = labelled(2_000, 24, sharp=0.02, shape=(2,))
    found = gortho.discover(x, 2 * codes + 5, output="class", settings=SMALL)
    assert found.verdict is Verdict.FOUND and found.candidate.algebra_distance(form) < 0.08
    assert found.classes == (5, 7) and found.predict(x[:3]).dtype.kind == "i"


@pytest.mark.slow
def test_sets_of_vectors():
    """The class of a set depends on the square of its sum; the order of its points does not count."""
    random, form = np.random.default_rng(25), hidden(25)
    x = random.normal(size=(2_000, 4, 3))
    q = values(x.sum(1), form) + 0.03 * random.logistic(size=2_000)
    found = gortho.discover(x, q > 0, output="class", settings=SMALL, set_like=True)
    assert found.verdict is Verdict.FOUND and found.candidate.algebra_distance(form) < 0.08
    assert np.abs(found.predict_proba(x[:50]) - found.predict_proba(x[:50, ::-1].copy())).max() < 1e-10


def test_scalars_count():
    """The bound of each sample is a number that comes with it."""
    random, form = np.random.default_rng(26), hidden(26)
    x, bound = random.normal(size=(2_000, 3)), random.normal(size=2_000)
    labels = values(x, form) + 0.05 * random.logistic(size=2_000) > bound
    found = gortho.discover(x, labels, output="class", settings=SMALL, scalars=bound)
    assert found.verdict is Verdict.FOUND and found.candidate.algebra_distance(form) < 0.1
    assert (found.predict(x, bound) == labels).mean() > 0.85


@pytest.mark.slow
def test_samples_without_weight_do_not_count():
    """Half of the labels are those of another form, with next to no weight."""
    x, codes, form = labelled(3_000, 27)
    other = values(x, hidden(28)) > 0.1
    light = np.arange(3_000) % 2 == 1
    found = gortho.discover(
        x,
        np.where(light, other, codes),
        output="class",
        settings=SMALL,
        sample_weight=np.where(light, 1e-6, 1.0),
    )
    assert found.candidate.algebra_distance(form) < 0.15


def test_labels_that_mean_nothing_are_refused(three):
    x, labels, _, _ = three
    shuffled = np.random.default_rng(0).permutation(labels[:500])
    found = gortho.discover(x[:500], shuffled, output="class", settings=SMALL)
    assert found.verdict is Verdict.UNDERDETERMINED and "Neither" in found.reason


@pytest.mark.parametrize("seed", [31, pytest.param(32, marks=pytest.mark.slow)])
def test_classes_with_a_direction_have_no_form(seed):
    """A half-space, and a bound that is tilted: the classes depend on one coordinate by itself."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(2_000, 3))
    tilted = x[:, 2] if seed == 31 else values(x, hidden(seed)) + x[:, 2]
    found = gortho.discover(x, tilted > 0.1 * random.logistic(size=2_000), output="class", settings=SMALL)
    assert found.verdict is Verdict.NONE and found.defect.low > 0.05 and found.form is None


@pytest.mark.slow
def test_bounds_that_are_nearly_quadratic_are_told_apart():
    """Cubes of |x|: an ellipsoid comes near, and log losses near chance's own show that it is not the bound."""
    random = np.random.default_rng(33)
    x = random.normal(size=(8_000, 3))
    size = np.abs(x) ** 3 @ [1 / 3, 2 / 3, 1]
    found = gortho.discover(
        x, size + 0.08 * random.logistic(size=8_000) > np.median(size), output="class", settings=SMALL
    )
    assert found.verdict is Verdict.NONE and 0.003 < found.defect.low < 0.06 < found.defect.high


def test_probabilities_are_for_classes():
    x = np.random.default_rng(0).normal(size=(200, 2))
    found = gortho.discover(x, x[:, 0] ** 2 - x[:, 1] ** 2, settings=TINY)
    with pytest.raises(ValueError, match="probabilities are for classes"):
        found.predict_proba(x)


def test_sharp_classes_are_not_ruled_by_the_surest_mistake():
    """Without noise models are as sure as they like; one sample beyond the bound must not make up all of the loss."""
    x = np.random.default_rng(0).normal(size=(600, 4))
    q = x[:, 0] ** 2 - np.square(x[:, 1:]).sum(1)
    found = gortho.discover(x, np.where(q > 0, 1.0, 0.0), output="class", settings=SMALL, look_for="O")
    assert list(probabilities(found, Dataset(x[:2], None))) == ["p_0", "p_1"]
    assert found.group_name == "O(1,3)" and found.evidence.everyone.unexplained < 0.4


def test_classes_are_not_told_of_errors_of_y():
    m = Measured(3.78, 0.1, 3.5, 0.1, 0.1, 0.5)
    e = Evidence(100, 20, 3.78, 3.5, "twin", "free", m, m, classes=2)
    e = dataclasses.replace(e, everyone=dataclasses.replace(m, unexplained=0.97, free_unexplained=0.9))
    for evidence in (e, dataclasses.replace(e, everyone=m)):
        _, reason, advice = judge(evidence, "O(3)")
        assert "y_error" not in advice and "%" not in reason.replace("97 %", "").replace("90 %", "")
        assert "378" not in reason and "variance" not in reason


def test_log_losses_and_probabilities_have_the_same_least(three, monkeypatch):
    """What is printed at discovery is what the probabilities give."""
    x, _, _, found = three
    logits = torch.tensor([[0.0, -40.0, 1.0], [3.0, 1.0, 0.0]], dtype=torch.float64)
    truth = Samples(torch.zeros(2, 1, 2), torch.eye(3)[[1, 0]])
    least = found.least_probability
    assert least == pytest.approx(1 / (3 * 1_501))
    losses = LABELS.losses(LABELS.compared(logits, 1_500), truth)
    monkeypatch.setattr(type(found), "_values", lambda *_: logits.numpy())
    p = found.predict_proba(x)
    assert p.sum(1) == pytest.approx(1.0) and p.min() == pytest.approx(least, rel=1e-3)
    assert -np.log([p[0, 1], p[1, 0]]) == pytest.approx(losses, rel=1e-3)


@pytest.mark.parametrize("held_out", [66, 6600])
def test_few_labels_promise_no_exact_symmetry(held_out):
    alike = Measured(0.2, 0.05, 0.2, 0.0, 0.0, 0.5)  # a free model that has learnt nothing beside the twin
    found = class_defect(alike, False, held_out, 2)
    # A difference of t² / 2N in the mean log loss is what chance does to the likelihood of N labels.
    assert found.low == 0 and found.high == pytest.approx(1.96**2 / (2 * held_out) / math.log(2) / 0.8)


def test_a_class_without_weight_is_told():
    x = normal(300, 2)
    labels = np.where(x[:, 0] ** 2 > x[:, 1] ** 2, "a", "b").astype(object)
    labels[:12] = "c"
    with pytest.raises(DataError, match="class 'c' has 0 samples, each needs 10"):
        gortho.discover(x, labels, "class", sample_weight=np.arange(300) >= 12)


def test_models_of_classes_serve_where_training_lacks_a_class():
    """A class may be in one block of a trajectory alone, which is held out."""
    rows = [normal(60, 2, seed=seed) for seed in range(3)]
    y = torch.eye(3, dtype=torch.float64)[(rows[0][:, 0] > 0).long()]
    parts = [Samples(x[:, None], y, as_rep("3*scalar"), classes=("a", "b", "c")) for x in rows]
    for learnt in LABELS.learnt(rows, parts, [torch.zeros(60, 3)] * 3, 0):
        assert all(logs.shape == (60, 3) and torch.isfinite(logs).all() for logs in learnt.outputs)
