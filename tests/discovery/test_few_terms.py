"""Polynomials of few terms: form and law from fewer samples than a polynomial has coefficients."""

import numpy as np
import pytest
import torch

from gortho import EquivariantRegressor
from gortho.discovery.clock import Clock
from gortho.discovery.confirmed import told_by
from gortho.discovery.few_terms import few_terms
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Kind, linear_predictor
from gortho.discovery.smooth import Smooth
from gortho.discovery.starts import Start, distinct
from gortho.forms import QuadraticForm
from gortho.samples import Samples
from gortho.samples.door import enter
from gortho.samples.frame import form_distance, unit_form
from gortho.studies.tasks import particle
from gortho.testing import equivariance_error
from gortho.training import predict


def posed_of(task, samples=30):
    posed = Posed.of(enter(task.x[:samples], task.y[:samples], task.output)[0], 0)
    parts = posed.parts
    return posed, Samples.cat([parts.train, parts.validation, parts.held_out])


def white(n=4):
    return linear_form([1.0, -1.0, -1.0, -1.0][:n])


def linear_form(values):
    return QuadraticForm(torch.diag(torch.tensor(values, dtype=torch.float64)))


@pytest.fixture(scope="module")
def hidden():
    task = particle(1_030, seed=602).hidden(602)
    return task, *posed_of(task)


def test_thirty_samples_tell_form_and_law_of_few_terms(hidden):
    task, posed, _ = hidden  # 66 coefficients and ten entries of the form, of which five and nine matter
    best = linear_predictor(white(), posed.parts.train, 0)
    found = Smooth(best, posed.parts, (), 0, Clock()).with_held_out(None)
    assert found.kind is Kind.TERMS
    test = task[30:]
    net = posed.network_out(found)
    assert posed.out(found.form.matrix).algebra_distance(test.form) < 1e-9
    assert float((predict(net, test.x) - test.y).square().mean() / test.y.var()) < 1e-18
    error = equivariance_error(net, posed.out(found.form.matrix), "vector", "scalar", test.x[:50])
    assert error < 1e-9
    told = told_by(found, posed.parts, 0, Clock())  # by the samples of training and validation
    assert told.holds(posed.parts)
    refits = told.refits(unit_form(found.form.matrix + 0.05)[None])
    assert form_distance(refits[0], found.form.matrix) < 1e-9


def test_noise_is_no_law_of_few_terms(hidden):
    _, _, samples = hidden
    y = torch.randn(30, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    noise = samples.with_targets(y, samples.rep)
    generator = torch.Generator().manual_seed(2)
    forms = [E + E.mT for E in torch.randn(20, 4, 4, dtype=torch.float64, generator=generator)]
    found = few_terms(noise, forms)
    assert not found.exact and found.evidence < 0.1


def test_a_known_form_and_few_samples_give_a_short_law_to_rounding():
    task = particle(1_030, seed=11)
    x, y = task.x.numpy(), task.y.numpy()
    model = EquivariantRegressor(form=task.form, epochs=5, random_state=0).fit(x[:30], y[:30])
    assert 1 - model.score(x[30:], y[30:]) < 1e-18


def test_where_nothing_is_better_than_the_mean_it_is_the_mean(hidden, monkeypatch):
    _, posed, samples = hidden
    best = linear_predictor(white(), posed.parts.train, 0)
    with torch.no_grad():
        for weights in best.network.coefficients.weights:
            weights *= -10  # far off
    smooth = Smooth(best, posed.parts, (), 0, Clock())
    monkeypatch.setattr(Smooth, "_from_few", lambda *_, **__: None)
    found = smooth.with_held_out(None)
    values = predict(found.network, *samples.inputs)
    torch.testing.assert_close(values, samples.y.mean().expand(30), rtol=0.02, atol=0.0)  # but for a ridge


def test_starts_that_differ_by_a_sign_are_one():
    rng = np.random.default_rng(0)
    A, B = (torch.tensor(m + m.T) for m in rng.normal(size=(2, 3, 3)))
    starts = [Start(name, M) for name, M in (("a", A), ("b", B), ("c", -2 * A), ("d", B + 1e-3 * A))]
    assert [start.label for start in distinct(starts)] == ["a", "b"]
    assert form_distance(A, B) > 0.02
