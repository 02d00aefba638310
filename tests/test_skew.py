"""Skew forms as values, and what symmetries with them refuse."""

import re

import pytest
import torch

from gortho import EquivariantNet, QuadraticForm, Symmetry
from gortho.skew import SkewForm
from gortho.symplectic import UnitaryGroup

J = [[0.0, 1.0], [-1.0, 0.0]]


def test_the_gauge():
    """Scale and sign mean nothing."""
    one, other = SkewForm(J), SkewForm(-5 * torch.tensor(J))
    assert one == other and hash(one) == hash(other) and one != SkewForm.canonical(4)
    assert torch.equal(one.matrix, torch.tensor(J, dtype=torch.float64)) and one != "ω"
    assert SkewForm(one).matrix.equal(one.matrix) and SkewForm(one, names=["q", "p"]).names == ("q", "p")


def test_units_change_no_group():
    T = torch.diag(torch.tensor([1e-9, 1.0, 1.0, 1.0, 1.0], dtype=torch.float64))
    assert SkewForm.canonical(4, 1).in_basis(T).group_name == "Sp(4) ⋉ degenerate 1"
    assert SkewForm.canonical(4, 1).in_basis(T).law().count("∧") == 2


def test_a_form_holds_no_graph():
    omega = torch.tensor(J, requires_grad=True)
    assert not SkewForm(omega).matrix.requires_grad and SkewForm(omega) == SkewForm(J)


def test_products():
    skew = SkewForm.canonical(4)
    x, y = torch.randn(2, 5, 4, dtype=torch.float64)
    assert torch.allclose(skew(x, y), -skew(y, x)) and torch.allclose(skew(x, x), torch.zeros(5).double())


def test_printing():
    skew = SkewForm([[0, 2, 0.001], [-2, 0, 0], [-0.001, 0, 0]], names=["q", "p", "t (s)"])
    # no choice of units makes the only term of t large or small
    assert skew.law() == "ω(x, y) = 1.22 q∧p + 0.000612 q∧(t (s))"
    assert skew.law(half_widths=torch.full((3, 3), 0.01)) == "ω(x, y) = 1.22 q∧p"
    assert str(skew).endswith("[Sp(2) ⋉ degenerate 1]") and skew.rank == 2 and skew.zero == 1
    assert eval(repr(skew), {"SkewForm": SkewForm}) == skew
    wide = SkewForm([[0, 1, 0.05], [-1, 0, 0.5], [-0.05, -0.5, 0]])
    assert "x0∧x2" not in wide.law(half_widths=torch.full((3, 3), 0.3))


@pytest.mark.parametrize(("half", "law"), [(0.0004, "1.2247 q∧p"), (0.04, "1.22 q∧p")])
def test_a_term_has_the_digits_of_its_own_entry(half, law):
    skew = SkewForm([[0, 1, 0], [-1, 0, 0], [0, 0, 0]], names=["q", "p", "t"])
    assert skew.law(half_widths=torch.full((3, 3), half)) == f"ω(x, y) = {law}"


@pytest.mark.parametrize(
    ("matrix", "message"),
    [(torch.eye(2), "not a skew form"), (torch.zeros(2, 2), "not zero"), ([[0.0, 1.0]], "shape")],
)
def test_what_is_no_skew_form(matrix, message):
    with pytest.raises(ValueError, match=message):
        SkewForm(matrix)


def test_what_else_is_refused():
    with pytest.raises(ValueError, match="2 names"):
        SkewForm(SkewForm.canonical(4).matrix, names=["q", "p"])
    with pytest.raises(ValueError, match="even rank"):
        SkewForm.canonical(3)
    with pytest.raises(AttributeError, match="does not change"):
        SkewForm(J).rank = 1
    with pytest.raises(ValueError, match="written by to_json"):
        SkewForm.from_json("{}")


def test_symmetries_with_a_skew_form():
    plain, skew = QuadraticForm.euclidean(4), SkewForm.canonical(4)
    assert Symmetry.of(skew) == Symmetry(skew=skew) == Symmetry.parse("Sp(4)")
    assert Symmetry(plain, skew=skew).group_name == "U(2)"
    with pytest.raises(ValueError, match="keeps no quadratic form"):
        print(Symmetry.of(skew).form)
    with pytest.raises(ValueError, match="supported alone or beside one"):
        Symmetry(plain, skew=skew, special=True)
    with pytest.raises(ValueError, match="no unitary group in common"):
        Symmetry(QuadraticForm([[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 3, 0], [0, 0, 0, 5]]), skew=skew)
    with pytest.raises(ValueError, match="no unitary group in common"):  # (A⁻¹ω)² = 1: real, not complex
        UnitaryGroup(QuadraticForm([[0, 1], [1, 0]]), SkewForm(J))
    for name in ("U(0)", "Sp(0)", "Sp(3)"):
        with pytest.raises(
            ValueError, match=rf"'{re.escape(name)}' is not a group: write 'Sp\(4\)', with an even"
        ):
            Symmetry.parse(name)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Sp(4)", {"set_like": True}, "leave out axial"),
        ("Sp(4)", {"output": "pseudovector"}, "leave out axial"),
        ("U(2)", {"output": "bilinear"}, "scalars, vectors and covectors"),
    ],
)
def test_networks_that_there_are_not(name, options, message):
    with pytest.raises(ValueError, match=message):
        EquivariantNet(name, 3, **options)
