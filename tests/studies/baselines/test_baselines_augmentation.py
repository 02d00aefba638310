"""Augerino and LieGAN: averaging, generators, scalars, seeds."""

import math

import pytest
import torch
from helpers import normal, stir

from gortho import QuadraticForm
from gortho.nn.plain import PlainNet
from gortho.studies.baselines.augerino import Augerino, Augmentation
from gortho.studies.baselines.base import generator_distance
from gortho.studies.baselines.liegan import LieGAN

QUICK = {"steps": 20, "trial_steps": 5, "width": 16, "batch_size": 32, "averaging": 2}


def law_2d(form, samples=600, seed=0):
    """q(x) x for vectors N(0, I₂)."""
    x = normal(samples, 1, 2, seed=seed)
    return x, form(x[:, 0])[:, None] * x[:, 0]


def untrained(output="vector", widths=(0.1,), basis=None, scalars=0):
    """An Augerino with stirred weights and given transformations, as if it had been fitted."""
    method = Augerino(output, averaging=8)
    method.network = stir(PlainNet(2, 1, output, point_scalars=scalars, width=16), size=1.0)
    method.augmentation = aug = Augmentation(2, "box")
    with torch.no_grad():
        if basis is not None:
            aug.frame = basis.reshape(-1, 4)
        aug.raw = torch.nn.Parameter(torch.tensor(widths).expm1().log().expand(len(aug.frame)).clone())
    return method


@pytest.mark.parametrize("output", ["scalar", "vector", "conjugation", "bilinear"])
def test_averaging_over_nothing_is_the_plain_network(output):
    method = untrained(output, widths=(1e-12,))
    x = normal(50, 1, 2)
    torch.testing.assert_close(
        method.predict(x, samples=8), method.predict(x, samples=0), rtol=1e-5, atol=1e-5
    )
    wide = untrained(output, widths=(0.5,))
    assert (wide.predict(x, samples=8) - wide.predict(x, samples=0)).abs().max() > 1e-2


@pytest.mark.parametrize("output", ["scalar", "vector"])
def test_averaging_over_the_whole_group_is_equivariant(output):
    rotation = torch.tensor([[[0.0, -1.0], [1.0, 0.0]]])
    method = untrained(output, widths=(math.pi,), basis=rotation)
    x = normal(20, 1, 2)
    g = torch.matrix_exp(0.7 * rotation[0].double())
    errors = []
    for samples in (0, 200):
        moved = method.predict(x @ g.T, samples=samples)
        expected = method.network.rep.act(g, method.predict(x, samples=samples))
        errors.append(float((moved - expected).norm() / method.predict(x, samples=0).norm()))
    assert errors[0] > 0.1 and errors[1] < 0.25 * errors[0]


@pytest.mark.parametrize(
    "form", [QuadraticForm.euclidean(2), QuadraticForm.minkowski(2)], ids=["O(2)", "O(1,1)"]
)
def test_learnt_generators_find_the_symmetry(form):
    x, y = law_2d(form, 1_000)
    quick = {"steps": 600, "regularisation": 0.01, "averaging": 4, "width": 32, "batch_size": 64}
    method = Augerino("vector", generators="learnt", lr=1e-2, generator_lr=0.1, **quick).fit(x, y)
    assert method.generators.shape == (1, 2, 2)
    assert method.distance(form) < 0.15  # a random generator: about 0.9
    assert method.quadratic_form.cosine(form) > 0.98
    assert (method.predict(x) - y).square().mean() < 0.1 * y.square().mean()


def test_box_finds_distinct_elementary_matrices():
    x, m = normal(200, 2, 3), normal(200, 2, 1, seed=1)
    y = (m * x).sum(1)
    method = Augerino("vector", regularisation=(0.01, 0.1), **QUICK).fit(x, y, m)
    flat = method.generators.flatten(1)
    assert method.generators.shape == (3, 3, 3) and method.generators.dtype == torch.float64
    torch.testing.assert_close(flat @ flat.T, torch.eye(3, dtype=torch.float64))
    assert ((flat.abs() - 1).abs() < 1e-6).sum() == 3  # one entry each
    assert method.notes["lambda"] in (0.01, 0.1) and set(method.notes["trials"]) == {0.01, 0.1}
    assert method.parameters > len(method.notes["widths"]) == 9


def test_best_box_widths_are_the_ones_returned():
    x, y = law_2d(QuadraticForm.euclidean(2))
    method = Augerino("vector", regularisation=0.1, **QUICK).fit(x, y)
    chosen = int(method.generators.flatten(1).abs().argmax())
    assert chosen == max(range(4), key=lambda i: method.notes["widths"][i])


def test_augerino_passes_scalars_untouched():
    method = untrained("vector", widths=(0.3,), scalars=1)
    x, m = normal(30, 1, 2), normal(30, 1, 1, seed=1)
    assert not torch.equal(method.predict(x, m), method.predict(x, m + 1))
    seen = []
    forward = method.network.forward
    method.network.forward = lambda x, s: (seen.append(s), forward(x, s))[1]
    method.predict(x, m)
    assert len(seen) == 8 and all(torch.equal(s, m.float()) for s in seen)


@pytest.mark.parametrize("kind", ["box", "learnt"])
def test_augerino_repeats_itself(kind):
    x, y = law_2d(QuadraticForm.euclidean(2), 100)
    runs = [Augerino("vector", seed, generators=kind, **QUICK).fit(x, y) for seed in (1, 1, 2)]
    assert torch.equal(runs[0].predict(x), runs[1].predict(x))
    assert torch.equal(runs[0].generators, runs[1].generators)
    assert not torch.equal(runs[0].predict(x), runs[2].predict(x))


def test_wrong_settings_are_named():
    with pytest.raises(ValueError, match="choose from box, learnt"):
        Augerino(generators="free")
    with pytest.raises(ValueError, match="choose from cosine, norm"):
        LieGAN(regulariser="none")


def test_liegan_finds_rotations_of_a_round_cloud():
    form = QuadraticForm.euclidean(2)
    x = normal(2_000, 1, 2)
    x = torch.cat([x, 0.5 * x + normal(2_000, 1, 2, seed=1)], dim=1)
    y = form.gram(x)[:, 0, 1]
    method = LieGAN("scalar", steps=600, width=64, strength=0.03, lr=1e-2, discriminator_lr=1e-3).fit(x, y)
    assert method.generators.shape == (1, 2, 2)
    assert method.distance(form) < 0.2
    assert method.quadratic_form.cosine(form) > 0.95


def test_liegan_takes_scalars_and_repeats_itself_but_does_not_predict():
    x, m = normal(100, 2, 3), normal(100, 2, 1, seed=1)
    y = (m * x).sum(1)
    runs = [LieGAN("vector", seed, steps=10, width=16).fit(x, y, m) for seed in (1, 1, 2)]
    flat = runs[0].generators.flatten(1)
    torch.testing.assert_close(flat @ flat.T, torch.eye(3, dtype=torch.float64))
    assert torch.equal(runs[0].generators, runs[1].generators)
    assert generator_distance(runs[0].generators, runs[2].quadratic_form) > 0
    assert not torch.equal(runs[0].generators, runs[2].generators)
    inputs = 2 * 3 + 3 + 2
    assert runs[0].parameters == 3 * 9 + (inputs + 1) * 16 + 17 * 16 + 17
    with pytest.raises(NotImplementedError, match="no predictor"):
        runs[0].predict(x, m)
