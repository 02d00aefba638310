"""Twins (M13) and the defect (M14): like compared with like, and what an interval holds."""

import dataclasses

import numpy as np
import pytest
import torch

import gortho
from gortho import QuadraticForm, Samples, Settings, Verdict
from gortho.discovery import norms
from gortho.discovery.defect import Defect, Noise, contradicted, defect, noise_of
from gortho.discovery.models import Invariants, Measured, coordinates, measure, squared_errors
from gortho.discovery.norms import OtherNorm, changes
from gortho.discovery.predictor import Parts, linear_predictor, mean_error
from gortho.discovery.twins import best_of_both, model_of, with_predictor
from gortho.groups import random_generator
from gortho.objectives.learners import KernelRidge, Table, boosted_trees, polynomial
from gortho.reps import as_rep
from gortho.studies.tasks.violated import SHARES, violated, violated_problem

SMALL = Settings(starts=12, generations=3, refits=4, predictor_steps=150)


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=random_generator(seed))


# Models


def tables(samples, inputs=coordinates, at=300):
    parts = samples.rows(slice(0, at)), samples.rows(slice(at, None))
    return [Table.of(inputs(s), s) for s in parts]


@pytest.mark.parametrize("learn", [KernelRidge.fit, boosted_trees, polynomial])
def test_models_fit_and_heed_weights(learn):
    x = normal(400, 1, 2)
    truth = x[:, 0, 0] ** 2 + x[:, 0, 1]
    wrong = torch.arange(400) % 2 == 0
    y = torch.where(wrong, truth + 5.0, truth)
    weights = torch.where(wrong, 1e-6, 2.0).double()
    test = normal(200, 1, 2, seed=1)
    right = test[:, 0, 0] ** 2 + test[:, 0, 1]
    for whole, limit in ((Samples(x, truth), 0.3), (Samples(x, y, weights=weights), 0.4)):
        model = learn(*tables(whole))
        error = (model(coordinates(Samples(test, right)))[:, 0] - right).square().mean()
        assert float(error) < limit * float(right.var())


@pytest.mark.parametrize("constant", [0.0, 0.3])
def test_polynomials_leave_columns_alone_that_do_not_vary(constant):
    x = normal(400, 1, 2)
    fixed = torch.cat([x, torch.full_like(x, constant)], 1)
    truth = x[:, 0, 0] ** 2 + x[:, 0, 1]
    values = [
        polynomial(*tables(s))(coordinates(s))[:, 0] for s in (Samples(x, truth), Samples(fixed, truth))
    ]
    torch.testing.assert_close(values[0], truth, rtol=0, atol=1e-3)
    torch.testing.assert_close(values[1], truth, rtol=0, atol=1e-3)


def parts_of(samples):
    return Parts(*(samples.rows(slice(*at)) for at in ((0, 600), (600, 750), (750, 900))))


def share_left(values, parts, law):
    """Of what a law leaves over of held-out samples, what is left after a correction."""
    y = parts.held_out.y
    return float((values[1] - y).square().mean() / (law(parts.held_out) - y).square().mean())


def test_harmonics_that_there_is_no_room_for_are_not_computed(monkeypatch):
    x = normal(300, 1, 20)
    samples = Samples(x, x.square().sum((1, 2)), as_rep("scalar"))
    other = OtherNorm(lambda s: s.x.square().sum((1, 2)), Parts(samples, samples, samples))
    monkeypatch.setattr(
        norms, "harmonics", lambda v, degrees: pytest.fail("230,000 columns of 20 coordinates")
    )
    assert list(other.free()) == []


@pytest.mark.parametrize("output", ["scalar", "vector"])
@pytest.mark.parametrize("power, explained", [(4, True), (2, False)])
def test_harmonics_tell_other_norms_from_that_of_a_form(power, explained, output):
    """Charges times 1/|x|₄ in turned axes, beside charges times 1/|x|; and 1/|x|₂, of which noise alone is left."""
    x, charge = normal(900, 1, 3, seed=1), normal(900, 1, seed=4)
    turned = x @ torch.linalg.qr(normal(3, 3, seed=2))[0]
    leg = 1.0 if output == "scalar" else x[:, 0]

    def of(norm, q, leg):
        y = q / (norm + 0.3)
        return y[:, 0] if output == "scalar" else y * leg

    norm = (turned.abs() ** power).sum(2) ** (1 / power) * (1.2 if power == 4 else 1)
    y = of(norm, charge, leg)
    samples = Samples(x, y + 0.01 * normal(*y.shape, seed=3), as_rep(output), sample_scalars=charge)

    def law(s):
        return of(s.x.norm(dim=2), s.sample_scalars, s.x[:, 0])

    parts = parts_of(samples)
    other = OtherNorm(law, parts)
    best = min(share_left(values, parts, law) for _, values in other.free())
    assert best < 0.3 if explained else best > 0.9
    _, values = other.twin(Invariants.of(torch.eye(3, dtype=torch.float64), parts.train))
    assert share_left(values, parts, law) > (0.5 if explained else 0.9)


def test_harmonics_of_six_corners_and_of_no_samples_to_spare():
    x = normal(900, 1, 2, seed=1)
    angle = torch.atan2(x[:, 0, 1], x[:, 0, 0])
    samples = Samples(x, (6 * angle).cos())

    def law(s):
        return torch.zeros(len(s), dtype=torch.float64)

    names = [
        (name, share_left(v, parts_of(samples), law)) for name, v in OtherNorm(law, parts_of(samples)).free()
    ]
    assert names[0][1] > 0.9 and names[1][1] < 1e-6 and "degree 6" in names[1][0]
    few = samples.rows(slice(0, 20))
    assert not list(
        OtherNorm(law, Parts(few.rows(slice(0, 10)), few.rows(slice(10, 15)), few.rows(slice(15, 20)))).free()
    )


def test_a_law_that_ends_has_derivatives_at_its_end():
    """arcsin |x| up to |x| = 1: a step beyond is not taken, and the other one gives the slope."""
    x = normal(50, 1, 3, seed=1)
    x = x / x.norm(dim=2, keepdim=True) * torch.linspace(0.5, 1, 50, dtype=torch.float64)[:, None, None]
    (slope,) = changes(lambda s: s.x[:, 0].norm(dim=1).arcsin(), Samples(x, x[:, 0, 0]))
    assert slope.isfinite().all()
    r = x[:, 0].norm(dim=1)
    inside = r < 0.95
    assert torch.allclose(slope[inside, 0], (r / (1 - r * r).sqrt())[inside], rtol=0.02)
    assert (slope[~inside, 0] > 2).all()


def test_the_twin_of_harmonics_rescales_a_law():
    """Half the law, and one of other lengths, are mended by f and Df alone; D is left out where asked."""
    x = normal(900, 2, 3, seed=1)
    samples = Samples(x, (-(x[:, 0] - x[:, 1]).norm(dim=1)).exp())

    def law(s):
        return 0.5 * (-1.05 * (s.x[:, 0] - s.x[:, 1]).norm(dim=1)).exp()

    parts = parts_of(samples)
    other, nothing = OtherNorm(law, parts), lambda s: s.x.new_zeros(len(s), 1)
    assert share_left(other.twin(nothing)[1], parts, law) < 1e-3
    assert 1e-3 < share_left(other.twin(nothing, still=True)[1], parts, law) < 0.1


def test_kernel_ridge_is_differentiable():
    x = normal(400, 1, 2)
    model = KernelRidge.fit(*tables(Samples(x, torch.sin(x[:, 0, 0]))))
    z = x[:5, 0].clone().requires_grad_()
    model(z).sum().backward()
    assert float(z.grad.abs().sum()) > 0


def test_squared_errors_are_weighted():
    test = Samples(normal(200, 1, 2), normal(200))
    doubled, zero = dataclasses.replace(test, weights=torch.full((200,), 2.0)), torch.zeros(200)
    np.testing.assert_allclose(squared_errors(zero, doubled), 2 * squared_errors(zero, test))


def test_twins_see_nothing_but_invariants():
    """The inputs of twins do not change under the group, and do under another one."""
    form = gortho.QuadraticForm.random(1, 2, seed=3)
    samples = Samples(normal(50, 2, 3), normal(50), sample_scalars=normal(50, 1))
    seen = Invariants.of(form.matrix, samples)
    g, other = form.group().sample(1, seed=0)[0], gortho.QuadraticForm.euclidean(3).group().sample(1)[0]
    moved, wrong = (dataclasses.replace(samples, x=samples.x @ m.mT) for m in (g, other))
    assert torch.allclose(seen(samples), seen(moved), atol=1e-9)
    assert not torch.allclose(seen(samples), seen(wrong), atol=1e-2)
    assert seen(samples).shape == (50, 4)


# The defect


def test_words_for_the_defect():
    assert str(Defect(0.0, 4e-4)) == "violated by less than 0.04 % of the variance"
    assert "broken by 0.8 to 1.2 %" in str(Defect(0.008, 0.012)) and str(Defect(0.1, 0.9)).startswith(
        "broken"
    )


def test_an_interval_that_says_nothing_is_not_told_as_one():
    for high in (0.6, 0.89, 1.0):
        assert str(Defect(0.0, high)) == "not known: what is left over may be noise as well as a broken form"


def test_the_interval_from_errors():
    generator = np.random.default_rng(0)
    noise, bias = 0.01 * generator.chisquare(1, 400), 0.05 * generator.chisquare(1, 400)
    deviations = generator.chisquare(1, 400)
    broken = measure(noise + bias, noise, deviations, 1.0)
    assert contradicted(broken) and not contradicted(measure(noise, noise + bias, deviations, 1.0))
    blind, told = defect(broken, None, True), defect(broken, Noise(0.01, 0.0, "given"), True)
    assert 0 < blind.low < 0.05 < told.high < blind.high
    assert not contradicted(Measured(1e-12, 1e-14, 1e-14, 9.9e-13, 1e-14, 1e-9))  # rounding


def test_noise_is_known_from_errors_and_from_repeats():
    x, true = normal(500, 1, 2), normal(500)
    errors = torch.full((500,), 0.3, dtype=torch.float64)
    given = noise_of(Samples(x, true, noise=errors))
    assert given.share == pytest.approx(0.09 / float(true.var(unbiased=False)), rel=1e-6)
    assert noise_of(Samples(x, true)) is None
    repeated = Samples(x.repeat(2, 1, 1), torch.cat([true, true]) + 0.3 * normal(1000, seed=2))
    found = noise_of(repeated)
    assert abs(found.share - 0.09 / float(repeated.y.var())) < 3 * found.error and "repeated" in found.source


@pytest.mark.slow
def test_given_errors_of_y_tighten_the_defect():
    x = normal(600, 3)
    clean = (x**2).sum(1)
    y = clean + 0.3 * clean.std() * normal(600, seed=5)
    options = {"settings": SMALL, "look_for": "O"}
    blind, told = (
        gortho.discover(x, y, y_error=error, **options) for error in (None, float(0.3 * clean.std()))
    )
    assert blind.verdict is told.verdict is Verdict.FOUND
    assert told.defect.noise.source == "given errors of y"
    assert told.defect.high < 0.5 * blind.defect.high < 0.1
    y = x * clean[:, None] + 0.1 * normal(600, 3)
    vectors = gortho.discover(x, y, "vector", y_error=0.1, **options)
    assert vectors.defect.noise.share < 0.1 and vectors.verdict is Verdict.FOUND


@pytest.mark.parametrize("share", [0.0, 0.01])
def test_a_broken_law_is_told_by_how_much(share):
    task = violated(3, share, "wave", law="polynomial", group=(1, 2), samples=1_500, noise=0.02)
    found = gortho.discover(task.x, task.y, settings=SMALL, look_for="O")
    assert found.defect.low <= share <= found.defect.high and found.defect.high < share + 0.05
    assert (found.defect.low > 0) == (share > 0)
    assert found.verdict is (Verdict.NONE if share else Verdict.FOUND)
    if share == 0.01:
        near = gortho.discover(task.x, task.y, settings=SMALL, tolerance=0.05, look_for="O")
        assert near.verdict is Verdict.FOUND and near.approximate and "nearly respects" in str(near)


def test_a_bad_tolerance_is_refused():
    with pytest.raises(ValueError, match="tolerance = 2"):
        gortho.discover(normal(100, 2), normal(100), tolerance=2)


def test_the_violation_is_what_no_form_can_express():
    """Of the other parity than the law, on inputs that come with their mirror images."""
    task = violated(1, 0.1, "step", group=(2, 0), samples=4_000)
    exact = violated(1, 0.0, "step", group=(2, 0), samples=4_000)
    extra = task.y - exact.y
    assert float(extra.var() / task.y.var()) == pytest.approx(0.1, rel=0.1)
    q = exact.form.norm(task.x[:, 0])
    rank = q.argsort().argsort() // 200
    means = torch.stack([extra[rank == b].mean() for b in range(20)])
    assert float(means.square().mean() / extra.var()) < 0.02
    assert len({violated_problem(seed)["share"] for seed in range(40)}) == len(SHARES)


def test_few_samples_do_not_choose_the_models():
    """Of two twins one is exact but for a sample: it is chosen, and where all samples count the other one is shown."""
    y = torch.linspace(-1, 1, 100, dtype=torch.float64)
    samples = Samples(torch.randn(100, 1, 2, dtype=torch.float64), y)
    parts = Parts(samples, samples, samples)
    rough, sharp = y + 0.1, y + 0.001
    rough[0], sharp[0] = y[0] + 3.0, y[0] + 4.0
    models = [model_of(name, parts, [p, p]) for name, p in (("rough", rough), ("sharp", sharp))]
    c = best_of_both(models[0], models, models[:1], models[0], None, parts, True, None)
    assert c.twin.name == "sharp" and 0 in c.worst and c.worst_share > 0.99
    assert c.others.unexplained < 1e-3 * c.others.free_unexplained
    assert c.everyone.unexplained == pytest.approx(c.everyone.free_unexplained)
    rough[0] = y[0] + 0.1
    models[0] = model_of("rough", parts, [rough, rough])  # now no few samples rule the error of the best twin
    assert (
        best_of_both(models[0], models, models[:1], models[0], None, parts, True, None).twin.name == "rough"
    )


def test_the_share_that_a_later_predictor_leaves_is_its_own():
    x = torch.randn(200, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    samples = Samples(x, x.square().sum((1, 2)))
    parts = Parts(samples, samples, samples)
    before = model_of("equivariant", parts, [0 * samples.y] * 2)
    c = best_of_both(before, [before], [before], before, None, parts, True, None)
    later = linear_predictor(QuadraticForm.euclidean(2), samples, 0)
    c = with_predictor(c, later, parts)
    assert c.own_unexplained == pytest.approx(mean_error(later.network, samples) / samples.variance)
    assert c.own_unexplained < 1e-3 < c.direct_unexplained


def test_what_corrects_a_predictor_that_fails_does_not_stand_for_free_models():
    y = torch.linspace(-1, 1, 100, dtype=torch.float64)
    samples = Samples(torch.randn(100, 1, 2, dtype=torch.float64), y)
    parts = Parts(samples, samples, samples)
    failing = y.clone()
    failing[:10] += 5.0  # on held-out samples only
    own, corrected = (
        model_of(name, parts, [y, failing]) for name in ("equivariant", "equivariant, corrected")
    )
    twin, direct = (
        model_of(name, parts, [y + e, y + e]) for name, e in (("trees", -1e-9), ("network", 1e-3))
    )
    c = best_of_both(own, [twin], [corrected, direct], direct, None, parts, True, None)
    assert c.free.name == "network" and c.everyone.free_unexplained < 1e-5
