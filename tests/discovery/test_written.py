"""A formula that predicts: where it is exact, and nowhere else."""

from dataclasses import replace

import pytest
import torch
from helpers import normal

import gortho
from gortho import QuadraticForm
from gortho.discovery.clock import Clock
from gortho.discovery.confirmed import told_by, with_told
from gortho.discovery.find import FoundForm
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Kind, Parts, linear_predictor, mean_error
from gortho.discovery.process import Process
from gortho.discovery.search import Search
from gortho.discovery.smooth import predictor
from gortho.discovery.written import Written, _left_by, exact_formula, has_formula, shortened, terms_of
from gortho.formulas import Factor, Monomial, Term
from gortho.formulas.network import slopes_of_form, together
from gortho.nn.process import Chart
from gortho.objectives import ABSOLUTE
from gortho.reps import Vector, as_rep
from gortho.samples import Samples
from gortho.samples.door import enter
from gortho.samples.frame import form_distance, unit_form
from gortho.studies.tasks import o5
from gortho.training import predict

QUICK = gortho.Settings(starts=4, generations=1, finalists=2, refits=4, predictor_steps=100)


def written_of(x, y, start, seed=0):
    """A formula in the place of a process that began at a form."""
    posed = Posed.of(enter(x, y, "scalar")[0], seed)
    A = posed.frame.form_in(start)
    process = Process.start(posed.parts.train, A, Chart.LENGTHS).refined(60)
    best, parts = predictor(process, 0), posed.parts
    data = Samples.cat([parts.train, parts.validation, parts.held_out])
    return posed, Written(best, data, _left_by(best, parts), seed, Clock(None))


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


def test_a_law_is_confirmed_by_samples_that_it_was_not_fitted_to(few):
    _, posed, _, law = few
    told = told_by(law, posed.parts, 0, Clock(None))
    assert told is not None and told.holds(posed.parts)
    assert mean_error(told.fitted.network, posed.parts.held_out) < 1e-20
    form = FoundForm(Search(law.form.matrix, ABSOLUTE, ()), unit_form(law.form.matrix + 0.1))
    found = with_told(form, law, told, 3, 0)
    assert len(found.refits) == 4 and len(found.search.near_best) == 1
    assert all(form_distance(M, law.form.matrix) < 1e-10 for M in found.refits)


def test_a_law_that_held_out_samples_do_not_meet_is_not_confirmed(few):
    _, posed, _, law = few
    train, validation, held = posed.parts
    y = held.y.clone()
    y[0] += 1e-3
    other = Parts(train, validation, held.with_targets(y))
    told = told_by(law, other, 0, Clock(None))
    assert told is not None and not told.holds(other)
    y = validation.y.clone()
    y[0] += 1e-3  # nor is it the law of what it is fitted to
    assert told_by(law, Parts(train, validation.with_targets(y), held), 0, Clock(None)) is None
    assert told_by(replace(law, kind=Kind.PROCESS), posed.parts, 0, Clock(None)) is None


def test_a_direction_of_the_form_that_samples_leave_open_is_seen():
    x = torch.randn(40, 1, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    term = Term((Monomial((Factor("power", (1,), (1,), power=2.0),)),))
    A = torch.diag(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))

    def slopes(x):
        return slopes_of_form(Samples(x, torch.einsum("zpi,ij,zpj->z", x, A, x).square()), A, [term])

    assert float(slopes(x).min()) > 1e-3 * float(slopes(x).max())
    cone = torch.cat(
        [x[..., :2], x[..., :2].norm(dim=2, keepdim=True)], 2
    )  # adding diag(1, 1, -1) changes nothing
    assert float(slopes(cone).min()) < 1e-12 * float(slopes(cone).max())


@pytest.mark.parametrize(
    "spoil", ["noise", "one wrong sample", pytest.param("no such law", marks=pytest.mark.slow)]
)
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


TRUTH = torch.tensor([[1.0, 0.2, 0.0], [0.2, 1.5, 0.3], [0.0, 0.3, 0.8]], dtype=torch.float64)


def tensors(output, x):
    """A law that is no polynomial, and tells its form, for an output."""
    a, b = x.unbind(1)
    q = torch.einsum("zi,ij,zj->z", a, TRUTH, a)
    if output == "vector":
        return (-q / 2).exp()[:, None] * b + 3 * a
    if output == "covector":
        return ((-q / 2).exp()[:, None] * b + 3 * a) @ TRUTH
    square, metric = a[:, :, None] * a[:, None], torch.linalg.inv(TRUTH)
    if output == "form":
        square, metric = TRUTH @ square @ TRUTH, TRUTH
    return square + (-q / 2).exp()[:, None, None] * metric


def found_near(posed, output, seed=0):
    """A predictor and refits around a form that is nearly right, in the frame."""
    generator = torch.Generator().manual_seed(seed)
    shift = 1e-3 * torch.randn(5, 3, 3, dtype=torch.float64, generator=generator)
    forms = [posed.frame.form_in(TRUTH + s + s.mT) for s in shift]
    best = linear_predictor(QuadraticForm(forms[0]), posed.parts.train, 0)
    form = FoundForm(Search(forms[0], ABSOLUTE, ()), forms[0], torch.stack(forms))
    return exact_formula(form, best, posed.parts, 0, Clock(None))


@pytest.mark.parametrize(
    ("output", "noise"),
    [("vector", 0.0), ("covector", 0.0), ("bilinear", 0.0), ("form", 0.0), ("vector", 1e-3)],
)
def test_an_exact_law_of_any_output_predicts_and_its_refits_agree(output, noise):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(400, 2, 3, dtype=torch.float64, generator=generator)
    y = tensors(output, x)
    y = y + noise * y.std() * torch.randn(y.shape, dtype=y.dtype, generator=generator)
    posed = Posed.of(enter(x, y, output)[0], 0)
    form = found_near(posed, output)
    if noise:
        assert form.law is None
        return
    law, held = form.law, posed.parts.held_out
    assert law.kind is Kind.FORMULA and len(terms_of(law.network)) == 2
    assert mean_error(law.network, held) < 1e-20 * held.variance  # none of them was used
    truth = posed.frame.form_in(TRUTH)
    assert all(form_distance(A, truth) < 1e-9 for A in (form.A, *form.refits))
    values = predict(posed.network_out(law), x)
    torch.testing.assert_close(values, y, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("decimals", "serves"), [(5, True), (2, False)])
def test_one_term_leads_from_any_start_to_the_form_of_rounded_data(decimals, serves):
    x = normal(400, 2, 3)
    y = torch.einsum("zi,ij,zj->z", x[:, 0], TRUTH, x[:, 0]).sqrt()
    posed = Posed.of(enter(x.round(decimals=decimals), y, "scalar")[0], 0)
    forms = [found_near(posed, "scalar", seed) for seed in (0, 1)]
    assert [form.law is not None for form in forms] == [serves, serves]
    if serves:
        assert len(terms_of(forms[0].law.network)) == 1
        assert form_distance(forms[0].A, forms[1].A) < 1e-9
        assert form_distance(forms[0].A, posed.frame.form_in(TRUTH)) < 1e-5


def test_what_a_formula_leaves_open_stays_open_in_its_refits():
    """A law without inner products is exact, and says nothing of a form."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(100, 2, 3, dtype=torch.float64, generator=generator)
    linear = Term((Monomial((), 0, ((1, 0),)),))
    samples = Samples(x, 2 * x[:, 0], rep=Vector())
    law = together(samples, TRUTH, [linear])
    assert law.left < 1e-26
    torch.testing.assert_close(law.A, unit_form(TRUTH))


@pytest.mark.parametrize(("output", "serves"), [("vector", True), ("scalar + vector", False)])
def test_outputs_of_formulas(output, serves):
    x = torch.zeros(5, 2, 3, dtype=torch.float64)
    rep = as_rep(output)
    assert has_formula(Samples(x, torch.zeros(5, *rep.shape(3)), rep=rep)) is serves


def test_the_form_of_a_pole_is_that_of_its_formula():
    """Near a pole the linear family is poor, and with it the form of the search; the formula that it tells is exact."""
    x = normal(400, 2, 2)
    M = torch.tensor([[1.0, 0.4], [-0.7, 2.0]], dtype=torch.float64)
    d = (x[:, 0] - x[:, 1]) @ torch.linalg.inv(M).mT
    y = (x[:, 0] - x[:, 1]) * d.square().sum(1, keepdim=True) ** -1.5
    found = gortho.discover(x, y, output="vector", settings=QUICK, look_for="O")
    truth = QuadraticForm(torch.linalg.inv(M @ M.mT))
    assert found.form is not None and found.form.algebra_distance(truth) < 1e-12
    assert found.formula is not None and found.formula.exact
