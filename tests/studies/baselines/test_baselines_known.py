"""EMLP: null spaces against what theory says, exact equivariance, and the price of a wrong group."""

import pytest
import torch
from helpers import normal, relative_mse

from gortho import QuadraticForm
from gortho.nn.form import FixedForm
from gortho.reps import TensorRep
from gortho.studies import tasks
from gortho.studies.baselines.emlp import EMLP, EMLPNet, invariants, maps
from gortho.studies.baselines.network import KnownForm, other_group
from gortho.testing import equivariance_error

FORMS = {
    "O(3)": QuadraticForm.euclidean(3),
    "O(1,3)": QuadraticForm.minkowski(),
    "O(2,2), skewed": QuadraticForm.random(2, 2, condition=4, seed=1),
}
QUICK = {"width": 8, "depth": 2, "steps": 250, "lr": 1e-2}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_null_spaces_are_those_of_the_first_fundamental_theorem(form):
    """Invariant tensors are products of the metric: one matching for 2 indices, three for 4, none for odd numbers."""
    found = {
        (u, d): len(invariants(form, u, d))
        for u, d in [(1, 0), (2, 0), (1, 1), (0, 2), (2, 1), (2, 2), (0, 4)]
    }
    assert found == {(1, 0): 0, (2, 0): 1, (1, 1): 1, (0, 2): 1, (2, 1): 0, (2, 2): 3, (0, 4): 3}
    metric = invariants(form, 0, 2)[0]
    torch.testing.assert_close(metric.abs() / metric.norm(), form.matrix.abs() / form.matrix.norm())
    torch.testing.assert_close(
        maps(form, TensorRep(1, 0), TensorRep(1, 0))[0].abs() * form.n**0.5, torch.eye(form.n).double()
    )


def test_reflections_rule_out_the_volume_form():
    assert len(invariants(QuadraticForm.euclidean(3), 3, 0)) == 0  # SO(3) would have one
    assert len(invariants(QuadraticForm.euclidean(2), 2, 0)) == 1  # SO(2) would have two


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    "output", ["scalar", "vector", "bilinear", "conjugation", "form", "scalar + 2*vector"]
)
def test_it_is_equivariant_to_rounding(form, output):
    net = EMLPNet(FixedForm(form), 2, output, width=8, depth=2, point_scalars=1, seed=1).double()
    x, m = normal(30, 2, form.n), normal(30, 2, 1, seed=1)
    assert equivariance_error(net, form, "vector", output, x, samples=4, arguments=(m,)) < 1e-10
    other = equivariance_error(net, other_group(form), "vector", output, x, samples=4, arguments=(m,))
    assert other > 1e-3  # and under no other group
    assert not torch.allclose(net(x, m), net(x, m + 1))


def test_the_other_group_differs():
    assert other_group(QuadraticForm.minkowski()).group_name == "O(4)"
    assert other_group(QuadraticForm.euclidean(5)).group_name == "O(1,4)"
    for form in FORMS.values():
        assert form.algebra_distance(other_group(form)) > 0.5


@pytest.mark.slow
def test_knowing_the_group_pays_and_a_wrong_one_costs():
    task = tasks.particle(1_500, seed=3)
    train, test = task[:700], task[700:]
    errors = {}
    for name, form in (("right", task.form), ("wrong", other_group(task.form))):
        method = EMLP(form, "scalar", 1, **QUICK).fit(train.x, train.y)
        errors[name] = relative_mse(method.predict(test.x), test.y)
        assert method.generators is None and method.quadratic_form is None and method.tuning
    assert errors["right"] < 0.1 and errors["wrong"] > 0.4
    assert method.notes["told"] == "O(4)" and method.parameters == sum(
        p.numel() for p in method.network.parameters()
    )


def test_our_network_told_the_wrong_group_fails_too():
    task = tasks.particle(1_200, seed=3)
    train, test = task[:700], task[700:]
    error = {}
    for form in (task.form, other_group(task.form)):
        method = KnownForm(form, "scalar", 1, steps=150).fit(train.x, train.y)
        error[method.notes["told"]] = relative_mse(method.predict(test.x), test.y)
    assert error["O(1,3)"] < 1e-6 and error["O(4)"] > 0.3


def test_inertia_with_scalars_repeats_itself():
    task = tasks.inertia(200, masses=2, seed=3)
    few = {"width": 8, "depth": 1, "steps": 20}
    runs = [EMLP(task.form, "bilinear", s, **few).fit(task.x, task.y, task.point_scalars) for s in (1, 1, 2)]
    first, again, other = (run.predict(task.x, task.point_scalars) for run in runs)
    assert first.shape == (200, 3, 3) and torch.equal(first, again) and not torch.equal(first, other)


def test_what_it_cannot_take_is_named():
    with pytest.raises(ValueError, match="degenerate"):
        EMLPNet(FixedForm(QuadraticForm([[1.0, 0.0], [0.0, 0.0]])), 1, "scalar")
    with pytest.raises(ValueError, match="order"):
        EMLPNet(FixedForm(QuadraticForm.euclidean(2)), 2, "scalar", set_like=True)
