"""Discovery: right where there is a form, silent where there is none, and one and the same A throughout."""

import dataclasses
import importlib
import json
import re

import numpy as np
import pytest
import torch
from helpers import stir

import gortho
from gortho import Discovery, QuadraticForm, Settings, Symmetry, Verdict
from gortho.discovery.posed import split
from gortho.discovery.predictor import build_network
from gortho.discovery.provenance import Provenance
from gortho.discovery.spectral import spectral_form
from gortho.discovery.verdict import NONE_RIGHT
from gortho.discovery.wider.widen import Court
from gortho.formulas.terms import Factor, Monomial, Term
from gortho.nn.framed import InFrame
from gortho.reps import Metric, as_rep
from gortho.samples import DataError
from gortho.samples.frame import Frame
from gortho.samples.values import Samples
from gortho.stored import stored
from gortho.studies import tasks
from gortho.studies.baselines import LieGG, form_of_generators, generator_distance
from gortho.studies.tasks.random_laws import formless, random_law

SMALL = Settings(starts=10, generations=2, refits=4, predictor_steps=100)
TINY = Settings(starts=2, generations=0, finalists=1, refits=2, predictor_steps=20)
STAGES = ("search", "refits", "predictor", "twins")


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


# The spectral method (M6)


@pytest.mark.parametrize(
    "output", ["scalar", "vector", "covector", "conjugation", "bilinear", "form", "scalar + vector"]
)
@pytest.mark.parametrize("signature", [(2, 0), (1, 2), (2, 2)])
def test_spectral_form_is_exact_on_exact_laws(output, signature):
    form = QuadraticForm.random(*signature, condition=5, seed=3)
    rep, metric = as_rep(output), Metric.of(form)

    def law(x):
        q = (x[:, 0] @ form.matrix * x[:, 1]).sum(-1)
        parts = []
        for part in rep.parts:
            shapes = [(2,) * len(t.legs) for t in part.terms()]
            c = [(1 + i + q.sin()).view(-1, *[1] * len(s)).expand(-1, *s) for i, s in enumerate(shapes)]
            c = [v * torch.arange(1, v[0].numel() + 1).view(v.shape[1:]) for v in c]
            parts.append(part.assemble(c, x, x @ form.matrix, metric))
        return rep.join(parts) if len(parts) > 1 else parts[0]

    solution = spectral_form(law, normal(100, 2, form.n), output)
    assert solution.form.algebra_distance(form) < 1e-9
    assert solution.gap > 1e6 and solution.residual < 1e-12


def test_spectral_form_reads_a_trained_model_and_knows_when_there_is_none():
    form = QuadraticForm([[1, 0.3], [0.3, -2]])
    x = normal(1500, 2)
    y = torch.sin(form(x))
    net = torch.nn.Sequential(
        torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh()
    )
    torch.manual_seed(0)
    model = torch.nn.Sequential(net, torch.nn.Linear(64, 1), torch.nn.Flatten(0)).double()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(400):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    solution = spectral_form(model, x[:300])
    assert solution.form.signature == form.signature
    assert solution.form.cosine(form) > 0.99
    none = spectral_form(lambda x: (x**3).sum(-1) + x[:, 0] * x[:, 1], normal(300, 3))
    assert none.residual > 2 * solution.residual and none.gap < 3 < solution.gap


@pytest.mark.parametrize("samples", [1, 2])
def test_spectral_form_says_where_samples_are_too_few_for_one_form(samples):
    found = spectral_form(lambda x: (x[:, 0] ** 2 - x[:, 1:].square().sum(1)).sin(), normal(samples, 3))
    assert found.gap == 1.0 and len(found.singular_values) == 6


def test_spectral_form_refuses_what_it_cannot_differentiate():
    with pytest.raises(TypeError, match="differentiable"):
        spectral_form(lambda x: torch.zeros(len(x)), normal(10, 2))
    with pytest.raises(ValueError, match="vector values of 10 samples"):
        spectral_form(lambda x: x.sum(-1), normal(10, 2), "vector")


# The whole way


@pytest.fixture(scope="module")
def lorentz():
    """A found O(1,2) form in a skewed frame, from noisy vectors."""
    form = QuadraticForm.random(1, 2, condition=4, seed=5)
    task = random_law(form, 2, "vector", 1_200, 0.02, "polynomial", seed=1)
    names = ["t", "x", "y"]
    return task, gortho.discover(task.x, task.y, "vector", names=names, settings=SMALL, seed=2)


def test_a_form_is_found_with_its_errors(lorentz):
    task, found = lorentz
    assert found.verdict is Verdict.FOUND and found.form.signature == task.form.signature
    assert found.form.algebra_distance(task.form) < 0.05
    assert found.confidence > 0.9 and found.group_name == "O(1,2)"
    low, high = found.intervals
    truth = task.form.matrix.numpy()
    assert ((low - 0.02 <= truth) & (truth <= high + 0.02)).all()
    assert found.evidence.everyone.unexplained < 0.01
    assert found.defect.low == 0 and found.defect.high < 0.01 and str(found.defect) in str(found)
    assert "t²" in str(found) and "O(1,2)" in str(found) and "eigenvalues (± 95 %): " in str(found)
    # Student's t with 4 degrees: the end of the search is one more estimate beside the refits.
    assert found.refits == 5 and np.isclose(found.interval_factor, 2.776, atol=1e-3)
    assert np.allclose(high - low, 2 * found.interval_factor * found.entry_errors)
    assert found.generators.shape == (3, 3, 3)


def test_the_predictor_is_exactly_equivariant_and_beats_the_noise(lorentz):
    task, found = lorentz
    assert max(found.certificate.values()) < 1e-10 < min(found.free_certificate.values())
    assert found.equivariance_error(task.x[:20], max_boost=2.0) < 1e-10
    clean = random_law(task.form, 2, "vector", 1_200, 0.0, "polynomial", seed=1)
    error = np.square(found.predict(clean.x) - clean.y.numpy()).mean() / clean.y.var().item()
    assert error < 2e-3


def test_printed_saved_and_predicting_form_are_one(lorentz, tmp_path):
    task, found = lorentz
    used = found.network.form.value()
    assert torch.equal(used.matrix, found.form.matrix) and used.names == found.form.names == ("t", "x", "y")
    assert found.law() in str(found)
    loaded = gortho.Discovery.load(found.save(tmp_path / "run"))
    assert torch.equal(loaded.form.matrix, found.form.matrix)
    assert torch.equal(loaded.network.form.value().matrix, found.form.matrix)
    assert np.array_equal(loaded.predict(task.x), found.predict(task.x))
    assert str(loaded) == str(found) and loaded.evidence == found.evidence
    stored = json.loads((tmp_path / "run" / "discovery.json").read_text())
    assert stored["candidate"]["matrix"] == found.form.matrix.tolist()
    # Gram products inside the network are those of the printed matrix.
    x = task.x[:5]
    assert torch.allclose(found.network.form.gram(x), found.form.gram(x), rtol=1e-12)
    # The form inside, in the frame, is the printed one in other coordinates.
    inside = Frame(found.network.W).form_out(found.network.net.form.value().matrix)
    assert inside.algebra_distance(found.form) < 1e-9


def exported(found, path, x):
    """What a written predictor gives."""
    found.export(path)
    if path.suffix == ".pt2":
        return torch.export.load(path).module()(x=x).detach().numpy()
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()  # beyond these, onnxruntime keeps scales in float32
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return onnxruntime.InferenceSession(path, options).run(None, {"x": x.numpy()})[0]


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
def test_export_predicts_the_same(lorentz, tmp_path, suffix):
    task, found = lorentz
    y = exported(found, tmp_path / f"model{suffix}", task.x[:7])
    assert np.allclose(y, found.predict(task.x[:7]), rtol=1e-9)
    with pytest.raises(ValueError, match="suffix"):
        found.export(tmp_path / "model.txt")


def predictor(kind):
    """A discovery made by hand around a network, and inputs for it."""
    form, x = gortho.QuadraticForm(np.diag([1.0, 1.0, -1.0])), normal(7, 2, 3)
    rep, options = "scalar", {"points": 2, "seed": 1, "width": 8, "depth": 1}
    if kind == "formula":
        one, both = (1.0, 0.0), (1.0, -1.0)
        waves = Factor("sin", one, one, shape=0.7)
        terms = [
            Term((Monomial((f,)),), coefficient=1.5) for f in (waves, Factor("power", both, both, power=-1.0))
        ]
        options["formula"] = [stored(term) for term in terms]
    elif kind == "process":
        options["process"] = {"chart": "lengths and cosines", "centres": 9}
    elif kind == "class":
        rep = "3*scalar"
    elif kind == "odd":
        rep = "pseudovector"
    elif kind == "origin":
        options["symmetry"] = Symmetry([form], origin=torch.tensor([1.0, 2.0, 0.5])).to_json()
    W = torch.diag(torch.tensor([1.0, 2.0, -0.5], dtype=torch.float64)) + 0.1
    net = stir(build_network(None if "symmetry" in options else form, rep, options))
    framed = InFrame(net, W, 1.3, x_unit=0.8)
    found = Discovery(
        Verdict.FOUND, "", "", 1.0, rep, ("a", "b", "c"), Provenance(40, 2, 3, 0), form,
        network=framed, network_options=options, classes=("u", "v", "w") if kind == "class" else (),
    )  # fmt: skip
    return found, x


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize("kind", ["formula", "process", "class", "odd", "origin"])
def test_predictors_of_all_kinds_are_exported(kind, suffix, tmp_path):
    found, x = predictor(kind)
    y = exported(found, tmp_path / f"model{suffix}", x)
    expected = found.predict_proba(x.numpy()) if kind == "class" else found.predict(x.numpy())
    assert np.isfinite(expected).all() and expected.std() > 0
    np.testing.assert_allclose(y, expected, rtol=1e-9, atol=1e-12)


def test_invariants_need_the_scalars_of_the_run(tmp_path):
    found, x = predictor("class")
    with pytest.raises(ValueError, match="other scalars than were given: it needs none"):
        found.invariants(x.numpy(), np.ones(7))
    scaled = dataclasses.replace(found, network_options={**found.network_options, "sample_scalars": 1})
    with pytest.raises(ValueError, match="needs 1 for each sample"):
        scaled.invariants(x.numpy())
    assert list(scaled.invariants(x.numpy(), np.ones((7, 1)))) == ["q11", "q12", "q22", "s"]


def test_places_that_cannot_be_written_are_named(tmp_path):
    found, _ = predictor("class")
    (tmp_path / "file").touch()
    for write, path in ((found.to_html, tmp_path / "none" / "x.html"), (found.save, tmp_path / "file" / "x")):
        with pytest.raises(OSError, match=rf"{path} cannot be written") as caught:
            write(path)
        assert ".part" not in str(caught.value) and "Errno" not in str(caught.value)


def test_loading_something_else_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"discovery\.json"):
        gortho.Discovery.load(tmp_path)
    (tmp_path / "discovery.json").write_text('{"format": "other"}')
    with pytest.raises(ValueError, match="not a saved discovery"):
        gortho.Discovery.load(tmp_path)


# Units


UNITS = torch.diag(torch.tensor([1.0, 40.0, 0.05], dtype=torch.float64))
TURNED = UNITS @ torch.tensor([[1.0, 0.5, -0.3], [0.2, -1.2, 0.4], [0.9, 0.0, 0.7]], dtype=torch.float64)


@pytest.fixture(scope="module")
def rooted():
    """A law that is no polynomial, of O(1,2), with some noise; its answer in plain units."""
    x = normal(600, 3, seed=3) + 0.2 * normal(600, 3, seed=4) ** 2
    q = QuadraticForm.random(1, 2, condition=3, seed=8)(x)
    y = q.abs().sqrt() + 0.02 * normal(600, seed=5)
    return x, y, gortho.discover(x, y, settings=SMALL)


@pytest.mark.parametrize(
    "T",
    [pytest.param(UNITS, marks=pytest.mark.slow, id="units"), pytest.param(TURNED, id="turned and skewed")],
)
def test_units_do_not_matter(rooted, T):
    x, y, plain = rooted
    found = gortho.discover(x @ T.mT, 1e6 * y, settings=SMALL)
    assert plain.verdict is Verdict.FOUND and found.verdict is plain.verdict
    assert found.form.signature == plain.form.signature
    assert abs(found.confidence - plain.confidence) < 0.02
    back = T.mT @ found.form.matrix @ T
    assert Frame.of(x).distance(back, plain.form) < 0.02
    here, there = plain.predict(x), found.predict(x @ T.mT) / 1e6
    assert np.square(here - there).mean() < 1e-3 * np.var(here)


@pytest.mark.parametrize(
    ("of_x", "of_y"), [(1e-25, 1e-24), pytest.param(1e100, 1e100, marks=pytest.mark.slow)]
)
def test_neither_very_small_nor_very_large_numbers_change_the_answer(rooted, of_x, of_y):
    x, y, plain = rooted
    found = gortho.discover(of_x * x, of_y * y, settings=SMALL)
    # The last digits of x and y differ, as they are no powers of two; nothing else does.
    assert found.verdict is plain.verdict and found.form.signature == plain.form.signature
    assert Frame.of(x).distance(found.form, plain.form) < 1e-3
    assert found.confidence == pytest.approx(plain.confidence, abs=0.01)
    np.testing.assert_allclose(found.predict(of_x * x) / of_y, plain.predict(x), rtol=0.01, atol=0.02)
    assert found.evidence.own_unexplained == pytest.approx(plain.evidence.own_unexplained, rel=0.05)


def test_sets_with_masses_in_a_hidden_frame():
    """The moment of inertia seen in skewed coordinates r' = M r: there it is bilinear under O(M⁻ᵀM⁻¹)."""
    task = tasks.inertia(450, masses=3, seed=1)
    M = torch.tensor([[1.0, 0.5, 0.0], [0.0, 1.2, -0.4], [0.2, 0.0, 0.7]], dtype=torch.float64)
    truth = QuadraticForm(torch.linalg.inv(M).T @ torch.linalg.inv(M))
    found = gortho.discover(
        task.x @ M.T, M @ task.y @ M.T, "bilinear", task.point_scalars, set_like=True, settings=SMALL
    )
    assert found.verdict is Verdict.FOUND and found.form.signature == (3, 0, 0)
    assert found.form.algebra_distance(truth) < 0.05
    shuffled = [2, 0, 1]
    x, m = task.x[:9] @ M.T, task.point_scalars[:9]
    assert np.allclose(
        found.predict(x, m), found.predict(x[:, shuffled], m[:, shuffled]), rtol=1e-9, atol=1e-9
    )


def test_singular_forms_are_told_as_such():
    x = normal(900, 3, seed=2)
    found = gortho.discover(x, torch.sin(x[:, 0] ** 2 + 0.5 * x[:, 1] ** 2), settings=SMALL)
    assert found.verdict is Verdict.FOUND
    assert found.form.signature == (2, 0, 1) and "degenerate 1" in found.group_name
    assert "singular" in found.reason


@pytest.mark.parametrize(
    "kind",
    [
        "taxicab",
        "noise",
        *(pytest.param(k, marks=pytest.mark.slow) for k in ("quartic", "permutation", "network")),
    ],
)
def test_no_form_is_never_found(kind):
    task = formless(kind, n=3, samples=400 if kind in ("taxicab", "noise") else 1_000, seed=3)
    found = gortho.discover(task.x, task.y, settings=SMALL)
    assert found.verdict is (Verdict.UNDERDETERMINED if kind == "noise" else Verdict.NONE)
    assert found.form is None and found.candidate is not None
    assert found.confidence == (0.0 if kind == "noise" else NONE_RIGHT)
    assert "not accepted" in str(found)
    with pytest.warns(gortho.discovery.result.NotAccepted) as warned:
        found.predict(task.x[:3])
    assert warned[0].filename == __file__


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_form_the_data_does_not_see_is_underdetermined(noise):
    x = normal(400, 3, seed=1)
    y = 2 * x + noise * normal(400, 3, seed=2)  # equivariant under every linear map
    found = gortho.discover(x, y, "vector", settings=SMALL)
    assert found.verdict is Verdict.UNDERDETERMINED and "other forms" in found.reason


@pytest.mark.parametrize(
    ("x", "y", "word"),
    [
        (normal(100, 3), torch.ones(100), "constant"),
        (normal(100, 1), normal(100), "x0 → ±x0: numbers y respect it if they are functions of x0²"),
        (normal(10, 3), normal(10), "10 samples"),
        (normal(100, 1) * torch.tensor([1.0, 2.0, -1.0]), normal(100), "subspace of dimension 1"),
    ],
)
def test_hopeless_data_is_told_at_once(x, y, word):
    found = gortho.discover(x, y)
    assert found.verdict is Verdict.UNDERDETERMINED and word in found.reason and found.advice
    assert found.candidate is None
    with pytest.raises(ValueError, match="no predictor"):
        found.predict(x)


def test_bad_input_names_value_and_fix():
    x = normal(100, 3)
    with pytest.raises(DataError, match="output='vector'"):
        gortho.discover(x, x[:, 0], "vector")
    bad = x.clone()
    bad[7, 1] = float("nan")
    with pytest.raises(DataError, match="7"):
        gortho.discover(bad, x[:, 0])
    with pytest.raises(DataError, match="use 'point' and 'sample'"):
        gortho.discover(x, x[:, 0], scalars={"mass": x[:, 0]})
    with pytest.raises(ValueError, match="time_budget"):
        gortho.discover(x, x[:, 0], time_budget=-1)
    with pytest.raises(ValueError, match="errors = 'squared': choose 'auto', 'absolute' or 'relative'"):
        gortho.discover(x, x[:, 0], errors="squared")
    with pytest.raises(DataError, match="both given"):
        gortho.discover(x, x[:, 0], sample_weight=torch.ones(100), y_error=0.1)


def test_many_samples_are_thinned_with_a_notice():
    x = normal(3_000, 2)
    found = gortho.discover(x, x[:, 0] * x[:, 1], settings=TINY, max_samples=500)
    assert any("500" in notice for notice in found.notices)
    assert found.provenance.samples == 500 and found.provenance.facts()["samples"] == "500"


@pytest.mark.slow
def test_samples_of_large_error_count_little():
    """Half of the samples obey another form, but with an error that says so."""
    x = normal(400, 3, seed=1)
    true, wrong = QuadraticForm.random(3, 0, seed=2), QuadraticForm.random(1, 2, seed=3)
    hit = torch.arange(400) % 2 == 0
    y = torch.where(hit, torch.asinh(wrong(x)), torch.asinh(true(x)))
    options = {"settings": TINY, "errors": "absolute"}
    found = gortho.discover(x, y, y_error=torch.where(hit, 100.0, 0.01), **options)
    assert Frame.of(x).distance(found.candidate, true) < 0.05
    weighted = gortho.discover(x, y, sample_weight=torch.where(hit, 1e-8, 1.0), **options)
    assert Frame.of(x).distance(weighted.candidate, found.candidate) < 0.01
    blind = gortho.discover(x, y, **options)
    assert Frame.of(x).distance(blind.candidate, true) > 0.05


# Stops


@pytest.fixture(scope="module")
def plain_task():
    return random_law(QuadraticForm.euclidean(2), 1, "scalar", 300, noise=0.05, seed=1)


@pytest.mark.parametrize("stage", STAGES)
def test_interruption_keeps_the_best_so_far(plain_task, stage):
    seen = []

    def stop(at, share, line):
        seen.append(at)
        if at == stage:
            raise KeyboardInterrupt

    found = gortho.discover(plain_task.x, plain_task.y, settings=SMALL, watch=stop)
    assert seen[-1] in STAGES[STAGES.index(stage) :]
    assert found.verdict is Verdict.UNDERDETERMINED and "interrupted" in found.reason
    assert found.candidate is not None and found.form is None and found.confidence == 0
    assert found.evidence is None and found.restarts and "nan" not in str(found)
    if stage in ("search", "refits"):
        assert found.entry_errors is None and "(error bars not computed)" in str(found)
    else:
        assert found.entry_errors.shape == (2, 2)
    if stage == "twins":
        with pytest.warns(gortho.discovery.result.NotAccepted):
            assert np.isfinite(found.predict(plain_task.x[:5])).all()


def test_an_interrupted_discovery_can_be_saved_and_loaded(plain_task, tmp_path):
    def stop(stage, share, line):
        if stage == "refits":
            raise KeyboardInterrupt

    found = gortho.discover(plain_task.x, plain_task.y, settings=SMALL, watch=stop)
    loaded = gortho.Discovery.load(found.save(tmp_path / "run"))
    assert str(loaded) == str(found) and loaded.candidate == found.candidate


@pytest.fixture(scope="module")
def watched(plain_task):
    """What `watch` was told, and the answer."""
    seen = []
    options = {"settings": TINY, "seed": 4, "watch": lambda *args: seen.append(args)}
    return seen, gortho.discover(plain_task.x, plain_task.y, **options)


def test_watch_sees_every_stage_in_order(watched):
    seen, found = watched
    assert tuple(dict.fromkeys(stage for stage, _, _ in seen)) == STAGES
    shares = [share for _, share, _ in seen]
    assert shares == sorted(shares) and shares[0] >= 0 and shares[-1] == 1
    assert all("x0" in line for _, _, line in seen)
    stages = found.provenance.stages
    assert set(stages) == {*STAGES, "formula", "rest"} and min(stages.values()) >= 0
    assert found.provenance.seconds == pytest.approx(sum(stages.values()))


def test_a_spent_time_budget_is_never_called_found(plain_task):
    """With no time at all every rival is cut short, so that none of them is one of the same effort."""
    found = gortho.discover(plain_task.x, plain_task.y, settings=SMALL, time_budget=1e-9)
    assert not found.evidence.complete
    assert found.verdict is Verdict.UNDERDETERMINED and "time budget" in found.reason + found.advice
    assert re.search(r"about \d+ s would do", found.advice)
    assert found.candidate is not None and np.isfinite(found.entry_errors).all()


def test_same_seed_same_answer_with_time_to_spare(plain_task, watched):
    _, whole = watched
    enough, other = (
        gortho.discover(plain_task.x, plain_task.y, settings=TINY, seed=seed, time_budget=1e6)
        for seed in (4, 5)
    )
    assert enough.evidence.complete and enough.evidence == whole.evidence
    assert torch.equal(enough.candidate.matrix, whole.candidate.matrix)
    assert np.array_equal(enough.held_out[1], whole.held_out[1])
    assert not torch.equal(other.candidate.matrix, whole.candidate.matrix)


# The pieces


def test_answer_and_evidence_are_frozen(lorentz):
    _, found = lorentz
    for value, name in ((found, "verdict"), (found.evidence, "samples"), (found.provenance, "seed")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, None)


def test_an_outlier_is_told_by_its_number():
    x = normal(300, 2)
    y = x[:, 0] ** 2 + x[:, 1] ** 2
    y[123] += 50
    found = gortho.discover(x, y, settings=TINY, seed=0)
    assert any("1 of 300 samples (number 123 of" in notice for notice in found.notices)
    assert "1 of 300 samples is an outlier, and left out" in found.reason and found.verdict is Verdict.FOUND


def test_an_outlier_has_no_number_where_rows_were_dropped():
    """Numbers would be those of what is left of the rows, not of the rows as given."""
    x = normal(300, 2)
    y = x[:, 0] ** 2 + x[:, 1] ** 2
    y[123] += 50
    twice = torch.cat([torch.arange(300), torch.arange(40)])  # 40 rows come twice
    found = gortho.discover(x[twice], y[twice], settings=TINY, seed=0)
    assert found.provenance.samples == 300
    told = [notice for notice in found.notices if "outlier" in notice]
    assert len(told) == 1 and "number" not in told[0]


def test_liegg_finds_the_algebra_of_a_clean_law():
    form = QuadraticForm.random(1, 1, condition=3, seed=2)
    task = random_law(form, 1, "vector", 1_500, 0.0, "polynomial", seed=1)
    liegg = LieGG("vector", width=64, steps=1_500).fit(task.x, task.y)
    assert generator_distance(liegg.generators, form) < 0.1
    assert liegg.quadratic_form.cosine(form) > 0.98
    assert form_of_generators(form.group().algebra()).algebra_distance(form) < 1e-9


@pytest.mark.slow
def test_a_hundred_samples_of_four_vectors_are_few_but_no_error():
    """Too few for neurons at the end of the search."""
    x = normal(104, 4, 4, seed=4)
    total = x.sum(1)
    y = (total[:, 0] ** 2 - total[:, 1:].square().sum(1)).abs().sqrt()
    found = gortho.discover(x, y, settings=TINY, look_for="O")
    assert found.candidate is not None and found.verdict in Verdict


def test_a_column_in_far_smaller_units_keeps_its_term():
    """Kilometres beside astronomical units: the term is small, but known, and the group says that it is there."""
    x = normal(600, 3, seed=6)
    y = x.square().sum(1)
    found = gortho.discover(x * torch.tensor([1.0, 1.0, 1.5e8]), y, names=["x", "y", "z"], settings=SMALL)
    assert found.group_name == "O(3)" and "z²" in found.law() and "0.000" not in str(found).split("\n")[2]


@pytest.mark.parametrize("option", [{"tolerance": "a"}, {"watch": 3}, {"axial": "x"}, {"axial": [3]}])
def test_options_that_mean_nothing_are_named(option):
    x = torch.randn(30, 3)
    with pytest.raises((ValueError, TypeError), match=f"{next(iter(option))} = .*: give"):
        gortho.discover(x, x[:, 0], **option)


@pytest.mark.filterwarnings("ignore::gortho.discovery.result.NotAccepted")
def test_one_target_does_not_hide_another_by_its_units(tmp_path):
    """The second target keeps no form, which a large unit of the first does not hide."""
    unit = 1e6
    x = normal(400, 3)
    q = x[:, 0] ** 2 - x[:, 1] ** 2 + 2 * x[:, 2] ** 2
    other = q + x.prod(1) + 0.5 * x[:, 0]
    y = torch.stack([unit * (q + 0.01 * normal(400, seed=1)), other], 1)
    found = gortho.discover(x, y, settings=SMALL, look_for="O")
    assert found.verdict is Verdict.NONE and found.defect.low > 0.003
    again = Discovery.load(found.save(tmp_path / "run"))
    assert np.array_equal(again.predict(x), found.predict(x))
    left = (found.predict(x) - y.numpy()).std(0) / y.std(0).numpy()
    assert (left < 0.5).all()


def test_targets_that_differ_in_a_few_samples_alone_are_told():
    x, y = normal(60, 3), torch.zeros(60)
    held_out = split(Samples(x[:, None], y), 0)[1][-1]
    y[held_out] = 1.0
    found = gortho.discover(x, y)
    assert found.verdict is Verdict.UNDERDETERMINED and "the same in all samples but a few" in found.reason


def test_one_input_may_be_most_of_the_samples():
    x = normal(500, 3)
    x[50:] = x[-1].clone()
    y = x[:, 0] ** 2 - x[:, 1] ** 2 + 2 * x[:, 2] ** 2 + 0.1 * normal(500, seed=1)
    found = gortho.discover(x[torch.randperm(500)], y, settings=SMALL, look_for="O")
    assert found.verdict is Verdict.UNDERDETERMINED  # y does not belong to x


def test_what_does_not_apply_is_refused():
    x, labels = normal(40, 3), ["a", "b"] * 20
    for option in ({"axial": [0]}, {"spaces": [0]}):
        with pytest.raises(ValueError, match="leave out axial and spaces"):
            gortho.discover(x, labels, "class", **option)
    parts = [normal(40, 2), normal(40, 3)]
    for option in ({"errors": "nonsense"}, {"errors": "relative"}):
        with pytest.raises(ValueError, match="errors"):
            gortho.discover(parts, x.square().sum(1), **option)
    with pytest.raises(ValueError, match="errors"):
        gortho.discover(x, labels, "class", errors="nonsense")


def test_ctrl_c_between_stages_keeps_the_form(plain_task, monkeypatch):
    def interrupt(*given):
        raise KeyboardInterrupt

    for name in ("outliers", "_of_rank"):
        with monkeypatch.context() as patch:
            patch.setattr(importlib.import_module("gortho.discovery.discover"), name, interrupt)
            found = gortho.discover(plain_task.x, plain_task.y, settings=SMALL)
        assert found.verdict is Verdict.UNDERDETERMINED and found.candidate is not None


def test_ctrl_c_keeps_the_form_of_vectors_of_different_dimension(monkeypatch):
    def interrupt(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(Court, "tried", interrupt)
    x, z = normal(150, 3), normal(150, 2)
    found = gortho.discover([x, z], x.square().sum(1) - 2 * z.square().sum(1), settings=SMALL)
    assert found.verdict is Verdict.UNDERDETERMINED and "interrupted" in found.reason
    assert found.candidate is not None
