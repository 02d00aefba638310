"""Where a direction leaves the form open, the one is shown that makes the formula plain, and without error bars."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import normal

from gortho import QuadraticForm, Symmetry
from gortho.discovery.wider.answer import in_pencil, without_open
from gortho.formulas import Problem, pencil
from gortho.formulas.pencil import EVEN, SHORT, even, moved, plainest
from gortho.samples import Samples
from gortho.samples.called import Labels

UP = [0.6, 0.0, 0.8]


def fall(A, t, seed=0, potential=9.81):
    """Energies of falling bodies, with a form that is off along the direction by t."""
    rng = np.random.default_rng(seed)
    x = torch.tensor(rng.normal(size=(600, 2, 3)))
    y = (
        0.5 * torch.einsum("zi,ij,zj->z", x[:, 0], A, x[:, 0])
        + potential * x[:, 1] @ torch.tensor(UP).double()
    )
    y += 0.01 * torch.tensor(rng.normal(size=600))
    labels = Labels("E", ("v", "r"))
    parts = [Samples(x[k::3], y[k::3], labels=labels) for k in range(3)]
    b = torch.linalg.solve(A, torch.tensor(UP).double())  # so that ⟨r, b⟩ is the height, but for a factor
    symmetry = moved(Symmetry(QuadraticForm(A), directions=[b.tolist()]), t)
    return Problem(*parts, symmetry, "scalar", lambda samples: samples.y.numpy() + 0.01)


@pytest.mark.parametrize("t", [-0.3, 0.004, 0.8])
def test_free_fall_can_be_read_off(t):
    problem = fall(torch.eye(3).double(), t)
    found = plainest(problem)
    assert found.convention == EVEN and even(found.symmetry) == pytest.approx(0, abs=1e-9)
    assert found.symmetry != problem.symmetry or abs(t) < 0.01
    first, second = sorted(found.formula.terms, key=lambda term: -term.coefficient)
    assert first.coefficient == pytest.approx(9.81, abs=0.005) and first.error < 0.01
    assert second.coefficient == pytest.approx(0.5, abs=0.002) and len(found.formula.terms) == 2


def test_other_units_have_the_form_with_the_shortest_formula():
    A = torch.diag(torch.tensor([1.0, 4.0, 0.2], dtype=torch.float64))
    found = plainest(fall(A, 0.5))
    assert found.convention == SHORT and len(found.formula.terms) == 2
    assert found.symmetry.form.cosine(QuadraticForm(A)) > 0.99999


def test_the_forms_of_refits_move_along_with_the_form(monkeypatch):
    """Those of another one would tell other errors of the coefficients."""
    problem, seen = fall(torch.diag(torch.tensor([1.0, 4.0, 0.2], dtype=torch.float64)), 0.5), []

    def watched(problem):
        seen.append((problem.symmetry, *problem.spread))
        return formula_of(problem)

    formula_of = pencil.short_formula
    monkeypatch.setattr(pencil, "short_formula", watched)
    found = plainest(replace(problem, spread=[problem.symmetry] * 2))
    assert found.convention == SHORT and len(seen) == 3
    assert all(other == symmetry for symmetry, *spread in seen for other in spread)


def test_without_a_direction_nothing_is_open():
    problem = fall(torch.eye(3).double(), 0.0, potential=0.0)
    plain = Problem(
        problem.train, problem.validation, problem.held_out, Symmetry(QuadraticForm.euclidean(3)),
        "scalar", problem.predict,
    )  # fmt: skip
    found = plainest(plain)
    assert found.convention == "" and found.symmetry is plain.symmetry and len(found.formula.terms) == 1


def test_conventions_have_no_error_bars():
    along = Symmetry(QuadraticForm.euclidean(3), directions=[[0.0, 0.0, 1.0]])
    entries, values = without_open(along, np.full((3, 3), 0.01))
    assert np.isnan(entries).tolist() == [[False] * 3, [False] * 3, [False, False, True]]
    assert np.isnan(values).sum() == 1 and np.nanmax(values) < 0.05


@pytest.mark.parametrize("t", [-0.1, 0.0, 1.0, 50.0])
def test_errors_follow_the_gauge_of_the_form_that_is_chosen(t):
    T = normal(3, 3, seed=1)
    b = torch.linalg.solve(T, torch.tensor([0.0, 0.0, 1.0]).double())
    A, b = QuadraticForm(T.mT @ T).matrix, b / b.norm()
    a = A @ b
    other = A + t / float(b @ a) * torch.outer(a, a)
    size = 3**0.5 / float(torch.linalg.matrix_norm(other))  # what the gauge multiplies with
    assert in_pencil(A, QuadraticForm(other).matrix, b) == pytest.approx(size, rel=1e-9)
    assert t < 50 or size < 0.1


def test_a_product_of_three_coordinates_has_a_form_of_full_rank():
    """y = x y z keeps 2xy, whose trace is zero: the form nearest to a multiple of the identity would be singular."""
    A = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -0.3]]).double()
    x = torch.tensor(np.random.default_rng(0).normal(size=(600, 1, 3)))
    parts = [Samples(x[k::3], x[k::3, 0].prod(1), labels=Labels("y", ("x",))) for k in range(3)]
    symmetry = Symmetry(QuadraticForm(A), directions=[[0.0, 0.0, 1.0]])
    found = plainest(Problem(*parts, symmetry, "scalar", lambda samples: samples.y.numpy()))
    size = found.symmetry.form.eigenvalues.abs()
    assert float(size.max() / size.min()) < 1.001
    assert found.formula.exact and len(found.formula.terms) == 2 and "⟨x,b⟩³" in str(found.formula)


def test_a_law_that_only_a_singular_form_would_make_shorter_keeps_its_form():
    x = torch.randn(600, 1, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = x[:, 0, :2].square().sum(1) + 0.3 * x[:, 0, 2]
    parts = [Samples(x[k::3], y[k::3]) for k in range(3)]
    symmetry = Symmetry(QuadraticForm.euclidean(3), directions=[[0.0, 0.0, 1.0]])
    found = plainest(Problem(*parts, symmetry, "scalar", lambda samples: samples.y.numpy() + 0.01))
    assert not found.symmetry.form.signature.zero
