"""Gaussian processes of the invariants: the form by marginal likelihood, few samples, and the predictor they make."""

import dataclasses

import numpy as np
import pytest
import torch

from gortho import Discovery, EquivariantRegressor, Settings, discover
from gortho.discovery.clock import Clock
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Kind, linear_predictor
from gortho.discovery.process import Process, has_process
from gortho.discovery.smooth import Smooth, _clearly_better, predictor
from gortho.forms import QuadraticForm
from gortho.nn.process import Chart
from gortho.samples.door import enter
from gortho.samples.frame import form_distance, unit_form
from gortho.studies.tasks import o5, particle
from gortho.studies.tasks.random_laws import random_law
from gortho.testing import equivariance_error
from gortho.training import predict


def posed_of(task, seed=0):
    return Posed.of(enter(task.x, task.y, task.output)[0], seed)


def near(form, size, seed=0):
    E = torch.randn(form.n, form.n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return unit_form(form.matrix + size * (E + E.mT))


@pytest.fixture(scope="module")
def found():
    """The O5 law, of lengths and an angle, from sixty samples in a hidden frame."""
    task = o5(1_060, seed=7).hidden(7)
    answer = discover(
        task.x[:60], task.y[:60], seed=7, look_for="O", settings=Settings(refits=4, given_axes=False)
    )
    return task[60:], answer


def test_few_samples_of_a_smooth_law_tell_form_and_law(found):
    test, answer = found
    error = (predict(answer.network, test.x) - test.y).square().mean()
    assert answer.provenance.predictor is Kind.FORMULA  # which a process has led to
    assert answer.candidate.algebra_distance(test.form) < 1e-10
    assert float(error / test.y.var()) < 1e-20


def test_the_evidence_has_the_share_of_the_predictor_that_is_returned(found):
    _, answer = found
    assert answer.evidence.own_unexplained == pytest.approx(answer.peers[0].relative_mse, rel=1e-6)


def test_its_predictor_is_equivariant_and_can_be_saved(found, tmp_path):
    test, answer = found
    few = test.x[:50]
    assert equivariance_error(answer.network, answer.candidate, "vector", "scalar", few) < 1e-9
    answer.save(tmp_path / "run")
    torch.testing.assert_close(
        predict(Discovery.load(tmp_path / "run").network, few), predict(answer.network, few)
    )


@pytest.mark.parametrize("task, chart", [(o5, Chart.LENGTHS), (particle, Chart.PRODUCTS)])
def test_the_form_moves_to_where_the_samples_are_likely(task, chart):
    task = task(150, seed=3)
    parts = posed_of(task).parts
    truth = QuadraticForm(posed_of(task).frame.form_in(task.form))
    start = near(truth, 0.01)
    ended = Process.start(parts.train, start, chart).refined(60)
    assert form_distance(ended.A, truth.matrix) < 0.2 * form_distance(start, truth.matrix)


def test_the_network_is_the_mean_of_the_process_also_with_scalars_and_a_turned_sign():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(40, 2, 3, dtype=torch.float64, generator=generator)
    m = torch.rand(40, 2, 1, dtype=torch.float64, generator=generator)
    y = m[:, 0, 0] * x[:, 0].norm(dim=1) - m[:, 1, 0] * (x[:, 0] * x[:, 1]).sum(1)
    samples, _ = enter(x, y, "scalar", m)
    process = Process.start(samples, -torch.eye(3, dtype=torch.float64), Chart.LENGTHS).refined(20)
    v = process.view
    K = v.covariance(v.coordinates(process.A), process.logs)
    fit = (K - torch.diag(torch.full((40,), float((2 * process.logs[-1]).exp())))) @ process.weights()
    values = predict(predictor(process, 0).network, *samples.inputs)
    torch.testing.assert_close(values, fit * v.size + v.mean, rtol=1e-6, atol=1e-6)


def test_a_process_is_left_out_where_it_cannot_serve_or_tells_nothing():
    form = QuadraticForm.minkowski(3)
    vectors = random_law(form, 2, "vector", 40, 0.0, "network", seed=1)
    assert not has_process(enter(vectors.x, vectors.y, "vector")[0])
    noise = torch.randn(60, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    x = torch.randn(60, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    posed = Posed.of(enter(x, noise, "scalar")[0], 0)
    best = linear_predictor(QuadraticForm.euclidean(3), posed.parts.train, 0)
    assert Smooth(best, posed.parts, (), 0, Clock()).fitted() is None


def test_one_sample_does_not_decide_which_predictor_is_better():
    rng = np.random.default_rng(0)
    small, large = rng.chisquare(1, 100) * 1e-12, rng.chisquare(1, 100) * 1e-4
    large[3] = 10.0  # a t-test sees nothing but this one
    assert _clearly_better(small, large)
    assert not _clearly_better(large, small)
    assert not _clearly_better(large, np.roll(large, 1))


@pytest.mark.parametrize("make", [o5, particle])
def test_a_known_form_and_few_samples_are_enough_for_a_regressor(make):
    task = make(1_060, seed=11)
    train, test = task[:60], task[60:]
    x, y = train.x.numpy(), train.y.numpy()
    smooth = EquivariantRegressor(form=task.form, epochs=50, random_state=0).fit(x, y)
    network = EquivariantRegressor(form=task.form, epochs=50, predictor="network", random_state=0).fit(x, y)
    share = [1 - model.score(test.x.numpy(), test.y.numpy()) for model in (smooth, network)]
    assert share[0] < 0.01 and share[0] < 0.1 * share[1]
    assert equivariance_error(smooth.network_, task.form, "vector", "scalar", test.x[:50]) < 1e-10


def test_lengths_that_are_rounding_are_no_coordinates():
    # Momenta without mass: ⟨p,p⟩ is zero but for rounding, which another frame changes.
    form, generator = QuadraticForm.minkowski(), torch.Generator().manual_seed(4)
    p = torch.randn(40, 3, 4, dtype=torch.float64, generator=generator)
    p[..., 0] = p[..., 1:].norm(dim=-1)
    gram = form.gram(p)
    y = (1 + gram[:, 0, 1]).log() + gram[:, 1, 2] / gram[:, 0, 2]
    for chart in Chart:
        process = dataclasses.replace(
            Process.start(enter(p, y, "scalar")[0], form.matrix, chart), moves=False
        )
        net = predictor(process.refined(60), 0).network
        assert equivariance_error(net, form, "vector", "scalar", p, max_boost=2.0) < 1e-6


@pytest.mark.parametrize("seed", [1, *(pytest.param(s, marks=pytest.mark.slow) for s in (0, 2, 3))])
def test_no_draw_of_thirty_samples_is_far_off_where_the_form_is_known(seed):
    task = o5(1_030, seed=700 + seed)
    x, y = task.x.numpy(), task.y.numpy()
    model = EquivariantRegressor(form=task.form, epochs=50, random_state=seed).fit(x[:30], y[:30])
    assert 1 - model.score(x[30:], y[30:]) < 1e-3


def test_a_regressor_keeps_the_network_where_a_process_is_worse_or_refused():
    x = np.random.default_rng(0).normal(size=(200, 3))
    y = (x**2).sum(1) > 3.0  # a step: smooth functions ring
    fits = [
        EquivariantRegressor(form="euclidean", epochs=30, predictor=p, random_state=0).fit(x, y)
        for p in ("auto", "network")
    ]
    errors = [1 - model.score(x, y) for model in fits]
    assert errors[0] < 2 * errors[1] + 0.05
    with pytest.raises(ValueError, match="predictor = 'never': choose 'auto' or 'network'"):
        EquivariantRegressor(form="euclidean", epochs=1, predictor="never").fit(x, y)


def test_errors_at_left_out_samples_are_those_of_fits_without_them():
    task = o5(40, seed=2)
    samples, _ = enter(task.x, task.y, task.output)
    process = Process.start(samples, task.form.matrix, Chart.LENGTHS).refined(10)
    errors = process.left_out()
    for i in (0, 7):
        others = torch.arange(40) != i
        without = predictor(process.on(samples.rows(others)), 0).network
        one = samples.rows(~others)
        left = float((one.y - predict(without, *one.inputs))[0])
        assert left == pytest.approx(float(errors[i]), rel=1e-4)


def test_inputs_beyond_all_bounds_leave_the_mean():
    task = o5(40, seed=2)
    samples, _ = enter(task.x, task.y, task.output)
    process = Process.start(samples, task.form.matrix, Chart.PRODUCTS)
    lost = dataclasses.replace(process, logs=torch.full_like(process.logs, torch.nan))
    assert not lost.weights().any()
    torch.testing.assert_close(lost.left_out(), samples.y - samples.y.mean())
