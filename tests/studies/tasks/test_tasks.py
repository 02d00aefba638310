"""Tasks: each keeps its own law, in any frame, with any noise."""

import pytest
import torch

from gortho import QuadraticForm
from gortho.studies import tasks

MAKE = {
    "synthetic": lambda n: tasks.synthetic(n, seed=1),
    "synthetic, normal": lambda n: tasks.synthetic(n, seed=2, distribution="normal"),
    "inertia": lambda n: tasks.inertia(n, seed=3),
    "second vector": lambda n: tasks.second_vector(n, QuadraticForm.minkowski(3)),
    **{name: (lambda n, make=make: make(n, 4)) for name, make in tasks.PUBLIC.items()},
}


@pytest.mark.parametrize("name", MAKE)
def test_every_task_keeps_its_law_also_in_a_hidden_frame(name):
    task = MAKE[name](200)
    task.assert_law()
    hidden = task.hidden(seed=5)
    hidden.assert_law()
    assert hidden.form.signature == task.form.signature
    assert hidden.form.algebra_distance(task.form) > 0.1 or task.form.n == 2
    torch.testing.assert_close(hidden.given(hidden.y), task.y)


def test_a_wrong_form_or_law_is_noticed():
    task = MAKE["Particle"](100)
    with pytest.raises(AssertionError):
        tasks.Task(
            task.name, task.x, task.y, task.output, QuadraticForm.euclidean(4), law=task.law
        ).assert_law()
    with pytest.raises(AssertionError):
        tasks.Task(task.name, task.x, task.y + 1, task.output, task.form, law=task.law).assert_law()


def test_the_paper_prints_the_wrong_action_for_its_first_task():
    task = MAKE["synthetic"](100)
    with pytest.raises(AssertionError):
        tasks.Task(task.name, task.x, task.y, "bilinear", task.form, law=task.law).assert_law()


def test_noise_leaves_inputs_and_truth_alone():
    clean, noisy = (tasks.synthetic(2_000, seed=1, noise=s) for s in (0.0, 0.5))
    assert torch.equal(clean.x, noisy.x) and torch.equal(clean.y, noisy.truth)
    assert float((noisy.y - noisy.truth).std()) == pytest.approx(0.5, rel=0.05)
    assert torch.equal(noisy[:10].truth, clean.y[:10])


def test_public_tasks_are_the_published_ones():
    """Values worked out by hand from the definitions."""
    o5 = tasks.o5(1)
    x = torch.zeros(1, 2, 5, dtype=torch.float64)
    x[0, 0, 0], x[0, 1, 0], x[0, 1, 1] = 2.0, 3.0, 4.0
    expected = torch.tensor([2.0]).sin() - 125 / 2 + 3 / 5
    torch.testing.assert_close(o5.law(x), expected.double())
    particle = tasks.particle(1)
    p = torch.eye(4, dtype=torch.float64)[None]  # (11) = 1, (22) = -1, all else between different ones is 0
    torch.testing.assert_close(particle.law(p), torch.tensor([4 * 4 * (-1.0) * 1.0], dtype=torch.float64))
    inertia = tasks.PUBLIC["Inertia"](4_000, 0)
    assert float(inertia.point_scalars.mean()) == pytest.approx(0.806, abs=0.02)  # softplus of N(0, 1)
    assert float(inertia.x.square().mean()) == pytest.approx(1.0, abs=0.03)


def test_unknown_distributions_are_an_error():
    with pytest.raises(ValueError, match="uniform or normal"):
        tasks.synthetic(10, distribution="cauchy")
