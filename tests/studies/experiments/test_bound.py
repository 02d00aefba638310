"""The Cramér-Rao bound of a form: as known analytically, as reached by maximum likelihood, and by discovery."""

import statistics

import pytest
import torch

from gortho.discovery.posed import Posed
from gortho.discovery.predictor import polynomial, with_validation
from gortho.forms import QuadraticForm
from gortho.groups import symmetric_basis
from gortho.samples.door import enter
from gortho.studies.experiments.bound import (
    covariance,
    expected_distance,
    polynomial_slopes,
    synthetic_bound,
)
from gortho.studies.experiments.regression import with_bound
from gortho.studies.tasks import synthetic


def test_the_bound_of_a_straight_line_is_that_of_least_squares():
    x = torch.linspace(-1, 2, 50, dtype=torch.float64)
    cov = covariance(torch.stack([torch.ones_like(x), x], 1), 0.3)
    assert float(cov[1, 1]) == pytest.approx(0.09 / float((x - x.mean()).square().sum()))


def test_what_does_not_change_the_law_adds_no_error():
    x = torch.randn(200, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    a, b = 2.0, 0.5  # y = a b x: only the product is known
    cov = covariance(torch.stack([b * x, a * x], 1), 0.1)
    by_parameters = torch.tensor([b, a], dtype=torch.float64)
    assert float(by_parameters @ cov @ by_parameters) == pytest.approx(0.01 / float(x.square().sum()))


def test_the_slopes_are_those_of_the_law_and_the_size_of_the_form_is_free():
    task = synthetic(50, seed=3)
    J = polynomial_slopes(task)
    values = torch.linalg.eigvalsh(J.mT @ J)
    assert J.shape == (50 * 16, 12)
    assert abs(float(values[0])) < 1e-9 * float(values[-1]) < float(values[1])


def test_maximum_likelihood_reaches_the_bound():
    """Least squares with the true law, from the truth on: no estimate knows more."""
    task, noise = synthetic(300, seed=1), 0.1
    basis, J = symmetric_basis(4), polynomial_slopes(task)
    bound = expected_distance(task.form, covariance(J, noise)[:10, :10])
    distances = []
    for seed in range(60):
        y = task.with_noise(noise, seed).y
        step = torch.linalg.lstsq(J, (y - task.y).flatten()[:, None], driver="gelsd", rcond=1e-9).solution
        A = task.form.matrix + torch.tensordot(step[:10, 0], basis, dims=1)
        distances.append(task.form.algebra_distance(QuadraticForm(A)))
    assert statistics.mean(distances) == pytest.approx(bound, rel=0.12)


def test_the_form_of_a_polynomial_is_as_near_as_the_noise_allows():
    ratios = []
    for seed in range(6):
        task = synthetic(3_000, seed).with_noise(1.0, seed)
        samples, _ = enter(task.x, task.y, task.output)
        posed = Posed.of(samples, seed)
        near = QuadraticForm(posed.frame.form_in(task.form))
        fitted = polynomial(near, posed.parts, seed)
        distances = [
            posed.out(f.form.matrix).algebra_distance(task.form)
            for f in (fitted, with_validation(fitted, posed.parts, seed))
        ]
        ratios.append([d / synthetic_bound(3_000, seed, 1.0) for d in distances])
    few, all_ = (statistics.mean(r) for r in zip(*ratios))
    assert all_ < 1.4 and all_ < few


def test_rows_are_compared_with_their_own_bound():
    row = {"samples": 500, "test_samples": 100, "seed": 2, "noise": 0.5, "d_PA": 0.02}
    seen = with_bound(row)
    assert seen["ratio"] == pytest.approx(0.02 / synthetic_bound(500, 2, 0.5, 100))
    assert "ratio" not in with_bound(row | {"d_PA": None})
