"""Realistic problems: every law keeps its form on every kind of inputs, near misses keep none, units do not matter."""

import itertools
import math
from collections import Counter

import pytest
import torch
from helpers import normal

from gortho import QuadraticForm
from gortho.groups import haar
from gortho.studies.tasks import realistic as tasks
from gortho.testing import equivariance_error

INPUTS, LAWS = list(tasks.INPUTS), list(tasks.LAWS)


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("law", LAWS)
def test_every_law_keeps_its_form_on_all_inputs_and_no_other(law, inputs):
    index = len(LAWS) * INPUTS.index(inputs) + LAWS.index(law)
    group = (1, 1 + index % 3) if inputs == "mass shell" else tasks.GROUPS[index % 7]
    points = max(1 + index % 3, tasks.LAWS[law].points)
    task = tasks.realistic(index, inputs, law, group, points, samples=300)
    assert task.form.signature == QuadraticForm.from_signature(*group).signature
    assert task.x.shape == (300, points, sum(group))
    task.assert_law(100, tolerance=1e-7)  # units of columns cost some digits
    y = task.given(task.y)
    assert torch.isfinite(y).all()
    assert float((y - y.mean(0)).square().mean() / y.square().mean()) > 0.01
    other = QuadraticForm(tasks._other_form(task.form.matrix, task.x, torch.Generator().manual_seed(index)))
    assert equivariance_error(task.law, other, "vector", task.output, task.x[:100], samples=8) > 0.03


def test_a_problem_is_drawn_from_its_seed_alone():
    for seed in (5, 18):
        one, again = (tasks.realistic(**tasks.problem(seed)) for _ in range(2))
        assert torch.equal(one.x, again.x) and torch.equal(one.y, again.y) and one.form == again.form
        near_miss, again = (tasks.formless_realistic(**tasks.formless_problem(seed)) for _ in range(2))
        assert torch.equal(near_miss.x, again.x) and torch.equal(near_miss.y, again.y)
    assert not torch.equal(tasks.realistic(0).x, tasks.realistic(1).x)


def test_inputs_have_the_shapes_that_their_names_say():
    def singular_values(inputs):
        x = tasks.INPUTS[inputs](4_000, 1, 3, torch.Generator().manual_seed(0))[:, 0]
        return x, torch.linalg.svdvals(x - x.mean(0)) / len(x) ** 0.5

    assert float(singular_values("normal")[1].std()) < 0.05
    assert float(singular_values("nearly planar")[1][-1]) == pytest.approx(0.05, rel=0.05)
    radii = singular_values("decades")[0].norm(dim=1).log10()
    assert float(radii.min()) == pytest.approx(-1, abs=0.01) and float(radii.max()) == pytest.approx(
        1, abs=0.01
    )
    assert float(singular_values("off-centre")[0].mean(0).norm()) == pytest.approx(3, abs=0.1)
    heavy = singular_values("heavy tails")[0]
    assert float((heavy**4).mean() / heavy.square().mean() ** 2) > 5
    correlation = torch.corrcoef(singular_values("correlated")[0].T)
    assert float(correlation[0, 1]) == pytest.approx(0.95, abs=0.01)
    particles = tasks.INPUTS["mass shell"](100, 2, 4, torch.Generator().manual_seed(0))
    masses = (particles[..., 0] ** 2 - particles[..., 1:].square().sum(-1)).sqrt()
    assert {round(float(m), 6) for m in masses.flatten()} == {0.14, 0.49, 0.94}
    assert float(singular_values("orbits")[1][-1]) > 0.05
    task = tasks.realistic(0, "units", group=(4, 0))
    assert 50 < float(task.x[:, 0].std(0).max() / task.x[:, 0].std(0).min()) < 1000
    with pytest.raises(ValueError, match="mass shell"):
        tasks.realistic(0, "mass shell", group=(2, 2))


@pytest.mark.parametrize("law", ["well", "inverse square", "inertia"])
@pytest.mark.parametrize("relative", [False, True])
def test_noise_and_outliers_are_the_shares_they_say(law, relative):
    task = tasks.realistic(1, "decades", law, noise=0.05, relative=relative, outliers=0.01)
    y, truth = task.given(task.y), task.given(task.truth)
    error, size = ((v.reshape(len(y), -1)).square().mean(1).sqrt() for v in (y - truth, truth))
    share = error / (size if relative else (truth - truth.mean(0)).square().mean().sqrt())
    usual = share.sort().values[: -len(y) // 50]
    assert float(usual.square().mean().sqrt()) == pytest.approx(0.05, rel=0.1)
    assert 10 <= int((share > 0.5).sum()) <= 20
    assert torch.equal(task.x, tasks.realistic(1, "decades", law).x)


@pytest.mark.parametrize("kind", tasks.FORMLESS[:4])
@pytest.mark.parametrize("law", ["well", "polynomial", "spring", "inertia", "linear map"])
def test_near_misses_do_not_keep_the_form_they_were_made_from(kind, law):
    task = tasks.formless_realistic(2, kind, "decades", law, (1, 2), 2, samples=300)
    assert torch.isfinite(task.y).all()
    torch.testing.assert_close(task.law(task.x), task.truth, rtol=1e-9, atol=1e-9)
    assert equivariance_error(task.law, task.form, "vector", task.output, task.x) > 0.05


def test_a_direction_has_the_share_of_the_variance_it_is_given():
    kept, broken = (
        tasks.formless_realistic(3, "direction", "normal", "well", samples=5_000, share=share)
        for share in (0.0, 0.09)
    )
    extra = broken.y - kept.y
    assert float(extra.var() / (extra.var() + kept.y.var())) == pytest.approx(0.09, rel=1e-6)


def test_shuffled_labels_are_those_of_a_law_with_a_form():
    task, shuffled = tasks.realistic(4), tasks.formless_realistic(4, "shuffled")
    assert shuffled.law is None and torch.equal(shuffled.x, task.x) and not torch.equal(shuffled.y, task.y)
    torch.testing.assert_close(shuffled.y.sort().values, task.y.sort().values)


def test_distance_does_not_depend_on_units_nor_sign():
    x, (A, B), T = normal(500, 2, 3), normal(2, 3, 3), torch.diag(torch.tensor([1.0, 40.0, 0.05]).double())
    A, B, T = A + A.mT, B + B.mT, T @ haar(3, (), torch.Generator().manual_seed(1))
    inverse = torch.linalg.inv(T)
    distance = tasks.frame_distance(A, B, x)
    assert distance > 0.1 and tasks.frame_distance(A, -3 * A, x) < 1e-7
    moved = (QuadraticForm(inverse.mT @ C @ inverse) for C in (A, -B))
    assert tasks.frame_distance(*moved, x @ T.mT) == pytest.approx(distance, rel=1e-6)
    assert tasks.frame_distance(B, A, x) == pytest.approx(distance) and distance <= math.sqrt(2)


def test_problems_meet_every_setting_in_turn():
    chosen = [tasks.problem(seed) for seed in range(1_000, 2_190)]
    assert all(set(p) <= {*tasks.realistic.__annotations__} for p in chosen)
    assert len({(p["inputs"], p["law"]) for p in chosen}) == 170
    assert set(Counter((p["inputs"], p["law"]) for p in chosen).values()) == {7}
    for key, least in (("group", 119), ("points", 300), ("noise", 200), ("relative", 500)):
        assert min(Counter(p[key] for p in chosen).values()) >= least, key
    pairs = Counter((p["inputs"], p["noise"], p["relative"]) for p in chosen)
    assert len(pairs) == 80
    near_misses = [tasks.formless_problem(seed) for seed in range(240)]
    assert min(Counter(p["kind"] for p in near_misses).values()) >= 30
    for p in itertools.chain(chosen[:40], near_misses[:40]):
        task = (tasks.formless_realistic if "kind" in p else tasks.realistic)(**p, samples=50)
        assert torch.isfinite(task.x).all() and torch.isfinite(task.y).all()


def test_unknown_names_and_missing_vectors_are_errors():
    for options, message in (
        ({"inputs": "cauchy"}, "choose inputs"),
        ({"law": "cubic"}, "laws from"),
        ({"law": "pair force"}, "at least 2"),
    ):
        with pytest.raises(ValueError, match=message):
            tasks.realistic(0, **options)
    with pytest.raises(ValueError, match="taxicab"):
        tasks.formless_realistic(0, "maximum")
