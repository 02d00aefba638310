"""A formula with slopes, and a form that is fitted together with its numbers."""

import numpy as np
import pytest
import torch

from gortho import QuadraticForm, Symmetry
from gortho.formulas import Factor, Monomial, Problem, Term
from gortho.formulas.find import proposals
from gortho.formulas.fitting import Rows
from gortho.formulas.network import columns, numbers_inside, together
from gortho.reps import Scalar
from gortho.samples import Samples
from gortho.studies.tasks import o5

ONE, TWO, APART = (1, 0), (0, 1), (1, -1)
WAVE = Term((Monomial((Factor("sin", ONE, ONE, rooted=True, shape=1.0),)),))
ANGLE = Term((Monomial((Factor("angle", ONE, TWO),)),))
CUBE = Term((Monomial((Factor("power", TWO, TWO, 1.5),)),))


def one(*factors):
    return Term((Monomial(factors),))


def drawn(n, count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 2, n, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize(
    "term",
    [
        WAVE,
        ANGLE,
        one(),
        one(
            Factor("power", ONE, TWO), Factor("power", ONE, ONE, -0.5), Factor("scalar", scalar=0, power=2.0)
        ),
        one(Factor("power", APART, APART, -0.5, shape=0.3)),
        one(Factor("power", ONE, ONE, 0.5, shape=0.3, scalar=1)),
        one(Factor("log", ONE, ONE, shape=0.1)),
        one(Factor("free", TWO, TWO, shape=0.7)),
        one(Factor("exp", ONE, ONE, shape=-0.4), Factor("cos", ONE, TWO, rooted=True, shape=2.0)),
        one(Factor("arcsin", ONE, ONE, rooted=True, shape=0.05, scalar=1)),
        Term(
            (Monomial((Factor("power", ONE, ONE, 2.0),)), Monomial((Factor("power", TWO, TWO, 2.0),))), "each"
        ),
    ],
)
def test_a_term_with_slopes_has_the_values_of_the_formula(term):
    x, form = drawn(3, 20), QuadraticForm.euclidean(3)
    samples = Samples(x, x[:, 0, 0], sample_scalars=1.5 + torch.rand(20, 2, dtype=torch.float64))
    expected = Rows.of(samples, Symmetry.of(form), "scalar").q.column(term)
    A, inside = form.matrix, torch.tensor(numbers_inside([term]), dtype=torch.float64)
    values = columns(x, A, samples.sample_scalars, [term], inside, Scalar())
    np.testing.assert_allclose(values[..., 0].numpy(), expected, rtol=1e-12)


def test_a_form_and_numbers_that_begin_elsewhere_end_at_the_law_to_rounding():
    x, truth = drawn(3, 40), torch.diag(torch.tensor([0.8, 1.0, 1.2], dtype=torch.float64))
    gram = x @ truth @ x.mT
    one, two = gram[:, 0, 0].sqrt(), gram[:, 1, 1].sqrt()
    y = (1.3 * one).sin() - two**3 / 2 + 2 * (gram[:, 0, 1] / (one * two)).arccos()
    start = torch.eye(3, dtype=torch.float64) + 0.02 * torch.ones(3, 3, dtype=torch.float64)
    law = together(Samples(x, y), start, [WAVE, CUBE, ANGLE])
    assert law.left < 1e-26
    assert law.unknowns == 3 + 1 + 5
    torch.testing.assert_close(law.A / law.A[1, 1], truth, atol=1e-12, rtol=0)
    assert law.terms[2].coefficient == pytest.approx(2.0, abs=1e-12)


def test_terms_outside_their_domain_are_no_law():
    x = drawn(2, 30)
    root = one(Factor("power", ONE, ONE, 0.5))
    assert together(Samples(x, x[:, 0, 0]), torch.diag(torch.tensor([1.0, -1.0]).double()), [root]) is None


def test_one_wave_is_proposed_in_the_place_of_several_functions():
    """Powers, exponentials and other waves of a length make up its sine: they once kept it out."""
    task = o5(1_000, seed=300)
    samples = Samples(task.x, task.y)
    found = list(proposals(Problem(samples, samples, samples, Symmetry.of(task.form), "scalar", None)))
    assert any(
        [len(t.shapes) for t in sorted(terms, key=lambda t: -len(t.shapes))] == [1, 0, 0] for terms in found
    )
