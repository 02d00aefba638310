"""Small parts of the search, one by one: designs by their factors, breeding, likely forms, the finish."""

import pytest
import torch
from helpers import normal

from gortho import QuadraticForm, Settings
from gortho.discovery.breeding import apart, scan
from gortho.discovery.clock import Clock
from gortho.discovery.design import Design
from gortho.discovery.finish import finished
from gortho.discovery.looks import usual_error
from gortho.discovery.starts import Start, likely_forms, scores, white_forms
from gortho.nn.process import Chart
from gortho.reps import as_rep
from gortho.samples.frame import form_distance, unit_form
from gortho.samples.values import Samples

A = unit_form(torch.diag(torch.tensor([1.0, -1.0, -2.0], dtype=torch.float64)))


def of(law, count=150, points=1, seed=0):
    x = normal(count, points, 3, seed=seed)
    return Samples(x, law(torch.einsum("zi,ij,zj->z", x[:, 0], A, x[:, -1])), as_rep("scalar"))


@pytest.mark.parametrize("basis", [None, normal(7, 3, 2, seed=1)], ids=["functions", "products"])
def test_a_design_by_its_factors_is_the_matrix(basis):
    design = Design(normal(7, 4), basis)
    D = design.dense()
    c, y = normal(D.shape[1], 2, seed=2), normal(len(D), 2, seed=3)
    torch.testing.assert_close(design.squares(), D.mT @ D)
    torch.testing.assert_close(design.times(c), D @ c)
    torch.testing.assert_close(design.transposed_times(y), D.mT @ y)
    root = normal(7, seed=4).abs()
    rows = root.repeat_interleave(len(D) // 7)
    torch.testing.assert_close(design.weighted(root).dense(), rows[:, None] * D)


def test_forms_that_are_near_a_better_one_are_left_out():
    near = unit_form(A + 0.01 * torch.eye(3, dtype=torch.float64))
    far = torch.eye(3, dtype=torch.float64)
    pool = [(score, Start("", unit_form(M))) for score, M in ((0.1, A), (0.2, near), (0.3, far))]
    assert apart(pool, 3, 0.2) == [pool[0][1], pool[2][1]]
    assert apart(pool, 1, 0.2) == [pool[0][1]]


def test_breeding_comes_nearer():
    samples = of(lambda q: q.abs().sqrt())
    starts = [Start("one", unit_form(QuadraticForm.random(1, 2, seed=s).matrix)) for s in range(3)]
    bred = scan(samples, starts, Settings(generations=2), 0, Clock())
    assert min(form_distance(s.A, A) for s in bred) < 0.5 * min(form_distance(s.A, A) for s in starts)


def test_forms_of_every_signature_are_drawn_and_the_true_one_is_likely():
    for forms, signature in zip(white_forms(3, 20, 0), ((0, 3), (1, 2), (2, 1))):
        negative = (torch.linalg.eigvalsh(forms) < 0).sum(1)
        assert set(negative.tolist()) <= {signature[0], 3 - signature[0]}
    samples = of(lambda q: torch.tanh(q), 40)
    others = torch.cat(white_forms(3, 20, 0))
    assert scores(samples, A[None], Chart.LENGTHS)[0] < scores(samples, others, Chart.LENGTHS).median()
    assert len(likely_forms(samples, Chart.LENGTHS, 0, 2)) >= 2


def test_the_finish_comes_nearer():
    train, validation = of(torch.sin, 200), of(torch.sin, 60, seed=1)
    start = unit_form(A + 0.03 * torch.eye(3, dtype=torch.float64))
    assert form_distance(finished(train, validation, start, 0, Clock()), A) < 0.5 * form_distance(start, A)


def test_a_few_wrong_samples_are_no_usual_error():
    samples = of(lambda q: q)
    off = samples.y.clone()[:, None]
    off[:2] += 1e6
    assert usual_error(off, samples) == 0 < usual_error(off + 1, samples)
