"""Objectives: one loss in training and comparison, the best constant, what the search sees; and new ones."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from helpers import normal

from gortho import EquivariantNet, QuadraticForm, Settings, fit
from gortho.discovery.clock import Clock
from gortho.discovery.defect import contradicted
from gortho.discovery.find import find_form
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import final_predictor
from gortho.discovery.twins import compare
from gortho.objectives import ABSOLUTE, LABELS, RELATIVE, SQUARES, Errors, Objective, objectives_for
from gortho.objectives.objective import weighted_mean
from gortho.objectives.squares import relative_weights
from gortho.reps import as_rep
from gortho.samples import Samples
from gortho.samples.door import one_hot
from gortho.training import predict

FORM = QuadraticForm.minkowski(3)
WEIGHTS = torch.linspace(0.5, 1.5, 90, dtype=torch.float64)


@dataclasses.dataclass(frozen=True)
class Deviations(Objective):
    """Absolute errors, of vectors their lengths."""

    def each(self, output, target):
        return (output - target).reshape(len(target), -1).norm(dim=1)

    def constant(self, samples):
        return samples.y.double().median(0).values


@dataclasses.dataclass(frozen=True)
class Counts(Objective):
    """The deviance of Poisson counts; outputs are logarithms of rates."""

    def each(self, output, target):
        return 2 * (output.exp() - target - target * output + torch.xlogy(target, target))

    def constant(self, samples):
        return torch.tensordot(samples.each_weight, samples.y, 1).div(samples.each_weight.sum()).log()

    def expected(self, compared):
        return compared.exp()

    def output(self, expected):
        return expected.clamp_min(0.01).log()


def samples_for(objective, rep="scalar"):
    """Weighted samples whose targets an objective takes."""
    if objective is LABELS:
        y, rep = one_hot(np.arange(90) % 7 // 3, 3)
        return Samples(normal(90, 1, 3), torch.tensor(y), rep, weights=WEIGHTS)
    rep = as_rep(rep)
    y = normal(90, *rep.shape(3), seed=1)
    return Samples(normal(90, 1, 3), y.exp().round() if objective == Counts() else y, rep, weights=WEIGHTS)


MEMBERS = [ABSOLUTE, RELATIVE, LABELS, Deviations(), Counts()]


@pytest.mark.parametrize("objective", MEMBERS)
def test_training_and_comparison_have_one_loss(objective):
    """In training squared errors are in units of the targets, which a comparison divides by."""
    samples = samples_for(objective)
    net = EquivariantNet(FORM, output=samples.rep).double()
    objective.start(net, samples)
    output = normal(*samples.y.shape, seed=3)
    unit = float(net.y_scale.square().mean()) if objective.least_squares else 1.0
    trained = float(objective.loss(net)(output, samples.y, samples.weights))
    losses = objective.losses(objective.compared(output, 10**6), samples)
    assert losses.shape == (90,) and losses.min() >= 0
    assert losses.mean() == pytest.approx(unit * trained)
    assert losses.mean() == pytest.approx(float(weighted_mean(objective.each(output, samples.y), WEIGHTS)))


@pytest.mark.parametrize("objective", MEMBERS)
def test_no_constant_is_better_than_the_best(objective):
    samples = samples_for(objective)
    samples = samples if objective != Deviations() else dataclasses.replace(samples, weights=None)
    best = objective.constant(samples)
    least = objective.losses(best.expand(samples.y.shape), samples).mean()
    assert objective.deviations(samples, samples).mean() == least
    for step in (0.1, -0.1):
        for entry in torch.eye(best.numel(), dtype=torch.float64):
            moved = objective.compared(
                (best + step * entry.reshape(best.shape)).expand(samples.y.shape), 10**6
            )
            assert objective.losses(moved, samples).mean() > least - 1e-12


@pytest.mark.parametrize("objective", [LABELS, Counts()])
def test_a_network_starts_at_the_best_constant(objective):
    samples = samples_for(objective)
    net = EquivariantNet(FORM, output=samples.rep).double()
    objective.start(net, samples)
    started = objective.compared(predict(net, samples.x), 10**6)
    torch.testing.assert_close(started, objective.constant(samples).expand(samples.y.shape))


@pytest.mark.parametrize("objective", [ABSOLUTE, RELATIVE, Deviations()])
@pytest.mark.parametrize("rep", ["scalar", "vector", "scalar + vector"])
def test_prepared_targets_have_no_unit(objective, rep):
    samples = samples_for(objective, rep)
    large = objective.prepared(samples.with_targets(1e12 * samples.y**3))
    w = large.each_weight / large.each_weight.mean()
    assert 0.3 < float((w * large.y.reshape(90, -1).square().mean(1)).mean()) < 3
    torch.testing.assert_close(large.y, objective.prepared(samples.with_targets(samples.y**3)).y)


def test_relative_errors_of_numbers_keep_their_order():
    y = normal(90).exp() ** 4
    relative = RELATIVE.prepared(Samples(normal(90, 1, 3), y)).y
    assert torch.equal(relative.argsort(), y.argsort())  # a monotone function of y is as good an invariant


def test_relative_weights_make_errors_relative():
    y = 10.0 ** torch.linspace(0, 3, 50, dtype=torch.float64)
    samples = Samples(normal(50, 1, 2), torch.stack([y, -y], 1), as_rep("vector"))
    squares = (relative_weights(samples, samples) * y.square()).sort().values
    assert float(squares[-1] / squares[25]) < 2 and float(squares[-1] / squares[12]) < 3
    given = dataclasses.replace(samples, weights=torch.linspace(1, 2, 50).double())
    ratio = relative_weights(given, samples) / relative_weights(samples, samples)
    torch.testing.assert_close(ratio, given.weights)
    parts = [samples] * 3
    assert ABSOLUTE.final(parts, parts) is parts and RELATIVE.final(parts, parts)[0].weights is not None
    alike = [samples.with_targets(samples.y.sign())] * 3
    assert RELATIVE.final(alike, alike) is alike


def test_the_log_loss_is_that_of_the_right_classes_with_weights():
    y = torch.eye(3, dtype=torch.float64)[[0, 2, 1]]
    logits, weights = torch.randn(3, 3, dtype=torch.float64), torch.tensor([1.0, 2.0, 0.0]).double()
    samples = Samples(torch.ones(3, 1, 2).double(), y, "scalar + scalar + scalar", weights=weights)
    losses = LABELS.losses(logits.log_softmax(1), samples)
    assert losses[1] == pytest.approx(-2 * float(logits.log_softmax(1)[1, 2])) and losses[2] == 0
    assert LABELS.constant(samples).exp().tolist() == pytest.approx([1 / 3, 1e-6, 2 / 3])
    assert LABELS.compared(100 * logits, 9).min() >= math.log(1 / 30) - 1e-12


def test_the_name_of_the_errors_chooses():
    numbers = samples_for(ABSOLUTE)
    assert objectives_for(numbers) == (ABSOLUTE, RELATIVE) == tuple(SQUARES.values())
    assert objectives_for(numbers, "relative") == (RELATIVE,) and ABSOLUTE != RELATIVE
    assert objectives_for(dataclasses.replace(numbers, classes=(0, 1)), "relative") == (LABELS,)
    assert [o.errors for o in MEMBERS].count(Errors.RELATIVE) == 1
    with pytest.raises(ValueError, match="errors = 'squared': choose 'auto', 'absolute' or 'relative'"):
        objectives_for(numbers, "squared")


# A new objective


def test_fit_takes_a_new_objective():
    """Of ten equal samples nine lie on the law: absolute errors find it, and squares a mean."""
    x = normal(30, 1, 3).repeat(10, 1, 1)
    law = torch.sin(FORM(x[:, 0]))
    y = torch.where(torch.arange(300) < 30, law + 20, law)
    left = []
    for objective in (Deviations(), ABSOLUTE):
        net = EquivariantNet(FORM, width=16, depth=1).double()
        history = fit(net, x, y, loss=objective, epochs=60, polish=50, validation=(x, y), progress=False)
        assert objective.losses(predict(net, x), Samples(x, y)).mean() == pytest.approx(
            history.best_validation * (float(net.y_scale**2) if objective.least_squares else 1)
        )
        left.append(float((predict(net, x) - law).abs().median()))
    assert left[0] < 0.1 < 1 < left[1]
    net = EquivariantNet(FORM, output="vector").double()
    history = fit(net, x, 2 * x[:, 0], loss=Deviations(), epochs=1, progress=False)
    assert history.best_validation < 1e-3


@pytest.mark.parametrize("broken", [False, True])
def test_all_stages_take_a_new_objective(broken):
    """Counts, whose rates depend on a form, or on a direction, too: the form is found, and contradicted where it is."""
    x = normal(2_000, 1, 3)
    form = QuadraticForm.random(1, 2, condition=3.0, seed=2)
    q = form(x[:, 0])
    rate = (1.5 * torch.tanh(q / q.std()) + 1 + 0.8 * broken * x[:, 0, 0]).exp()
    samples = Samples(x, torch.poisson(rate, generator=torch.Generator().manual_seed(1)))
    posed, clock, objective = Posed.of(samples, 0), Clock(), Counts()
    settings = Settings(starts=8, generations=1, refits=2)
    found = find_form(posed, (objective,), settings=settings, seed=0, clock=clock)
    assert found.search.objective == objective and len(found.refits) == 3
    assert broken or posed.out(found.A).algebra_distance(form) < 0.15
    parts = posed.weighted(objective)
    how = {"steps": 60, "seed": 0, "clock": clock, "progress": lambda share: None}
    fitted = final_predictor(QuadraticForm(found.A), parts, objective, **how)
    seen = compare(fitted, parts, objective, posed, **how)
    assert seen.everyone.unexplained < 0.9 and contradicted(seen.everyone) is broken
    assert (seen.own_unexplained < 0.8) or broken
    best = objective.losses(seen.twin.held_out, parts.held_out)
    assert seen.everyone.unexplained == pytest.approx(best.mean() / objective.chance(parts)[1])
