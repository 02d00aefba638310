"""A formula that predicts: where it is exact, and nowhere else."""

from dataclasses import replace

import pytest
import torch

from gortho.discovery.clock import Clock
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Kind, mean_error
from gortho.discovery.process import Process
from gortho.discovery.smooth import predictor
from gortho.discovery.written import Written, shortened, terms_of
from gortho.formulas import Factor, Monomial, Term
from gortho.formulas.together import together
from gortho.nn.process import Chart
from gortho.samples import Samples
from gortho.samples.door import enter
from gortho.samples.frame import form_distance
from gortho.studies.tasks import o5
from gortho.training import predict


def written_of(x, y, start, seed=0):
    """A formula in the place of a process that began at a form."""
    posed = Posed.of(enter(x, y, "scalar")[0], seed)
    A = posed.frame.form_in(start)
    process = Process.start(posed.parts.train, A, Chart.LENGTHS).refined(60)
    return posed, Written(predictor(process, 0), posed.parts, seed, Clock(None))


@pytest.fixture(scope="module")
def few():
    task = o5(60, seed=301)
    posed, written = written_of(task.x, task.y, task.form.matrix + 1e-3)
    return task, posed, written, written.fitted()


def test_a_process_of_few_samples_leads_to_the_law_beyond_them(few):
    task, posed, written, law = few
    assert law.kind is Kind.FORMULA
    assert len(terms_of(law.network)) == 3
    assert form_distance(law.form.matrix, posed.frame.form_in(task.form)) < 1e-12
    far = 3 * task.x  # beyond all samples
    z = far / posed.x_unit @ posed.frame.W.mT
    one, two = far.norm(dim=-1).unbind(1)
    truth = one.sin() - two**3 / 2 + (far[:, 0] * far[:, 1]).sum(-1) / (one * two)
    torch.testing.assert_close(predict(law.network, z) * posed.unit, truth, rtol=1e-10, atol=1e-10)
    assert (
        mean_error(written.best.network, written.data) > 1e-20 * written.variance
    )  # the process is not exact


def test_its_error_is_told_by_samples_that_it_was_not_fitted_to(few):
    _, posed, written, law = few
    one = written.from_training(law)
    assert one is not None and mean_error(one.network, posed.parts.held_out) < 1e-20


@pytest.mark.parametrize("spoil", ["noise", "one wrong sample", "no such law"])
def test_what_is_not_exact_is_no_formula(spoil):
    task = o5(60, seed=302)
    y = task.y.clone()
    if spoil == "noise":
        y += 1e-4 * y.std() * torch.randn(60, dtype=y.dtype, generator=torch.Generator().manual_seed(0))
    elif spoil == "one wrong sample":
        y[7] += 0.01 * y.std()
    else:
        y = (task.x[:, 0].norm(dim=-1).sin() * task.x[:, 1].norm(dim=-1).exp()).tanh()
    assert written_of(task.x, y, task.form.matrix + 1e-3)[1].fitted() is None


def test_terms_that_are_not_needed_go():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(30, 1, 2, dtype=torch.float64, generator=generator)
    q = x.square().sum((1, 2))
    of = Factor("power", (1,), (1,))
    powers = [Term((Monomial((replace(of, power=p),)),)) for p in (0.5, 1.0, 2.0)]
    samples = Samples(x, 2 * q)
    law = shortened(samples, together(samples, torch.eye(2, dtype=torch.float64), powers))
    assert [term.monomials for term in law.terms] == [powers[1].monomials]
