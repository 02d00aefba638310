"""Skew and hermitian forms: their groups, and networks that respect them to rounding, and no larger group (M17)."""

import pickle

import pytest
import torch
from helpers import normal, seeds, stir
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gortho import EquivariantNet, QuadraticForm, Symmetry
from gortho.groups import haar, random_generator
from gortho.reps import as_rep
from gortho.skew import SkewForm, compatible, complex_structure
from gortho.testing import equivariance_error

EXACT, BROKEN = 1e-10, 1e-3
NAMES = ["Sp(2)", "Sp(4)", "Sp(6)", "Sp(2) ⋉ degenerate 1", "U(1)", "U(2)", "U(1,1)", "U(3)", "U(1,2)"]
OUTPUTS = ["scalar", "vector", "covector", "scalar + 2*vector", "conjugation", "bilinear", "form"]


def basis(n, condition, seed):
    """A change of basis of the given condition."""
    U, V = haar(n, (2,), random_generator(seed))
    return U * torch.logspace(0, 1, n, base=condition, dtype=torch.float64) @ V


@st.composite
def skew_symmetries(draw, names=NAMES):
    plain = Symmetry.parse(draw(st.sampled_from(names)))
    T = basis(plain.n, draw(st.sampled_from([1.0, 3.0, 30.0])), draw(seeds))
    return plain.in_basis(T), T


@settings(max_examples=60)
@given(skew_symmetries(), seeds)
def test_groups(made, seed):
    """Elements and generators keep the forms, products and inverses are elements, and other maps are none."""
    symmetry, _ = made
    g, h = symmetry.sample(2, seed)
    assert bool(symmetry.contains(torch.stack([g, h, g @ h, torch.linalg.inv(g)]), 1e-9).all())
    assert bool(symmetry.contains(torch.eye(symmetry.n)))
    assert not bool(symmetry.contains(2 * g)) and not bool(
        symmetry.contains(normal(symmetry.n, symmetry.n, seed=seed))
    )
    X, omega = symmetry.generators, symmetry.skew.matrix
    size = torch.linalg.matrix_norm(X).max() * torch.linalg.matrix_norm(omega)
    for B in [omega, *(form.matrix for form in symmetry.forms)]:
        assert float((X.mT @ B + B @ X).abs().max()) <= 1e-10 * float(size)
    assert torch.linalg.matrix_rank(X.flatten(1)) == len(X)
    r, zero = symmetry.skew.rank, symmetry.skew.zero
    assert len(X) == ((symmetry.n // 2) ** 2 if symmetry.forms else r * (r + 1) // 2 + zero * symmetry.n)


@settings(max_examples=30)
@given(skew_symmetries())
def test_symmetries_are_values(made):
    symmetry, T = made
    assert Symmetry.from_json(symmetry.to_json()) == symmetry == pickle.loads(pickle.dumps(symmetry))
    assert Symmetry.from_json(symmetry.to_json()).skew.matrix.equal(symmetry.skew.matrix)
    assert str(Symmetry.parse(str(symmetry))) == str(symmetry) == symmetry.residual_name
    assert (
        eval(repr(symmetry), {"Symmetry": Symmetry, "SkewForm": SkewForm, "QuadraticForm": QuadraticForm})
        == symmetry
    )
    assert symmetry.in_basis(torch.linalg.inv(T)) == Symmetry.parse(str(symmetry))
    other = normal(symmetry.n, symmetry.n)
    assert (symmetry == Symmetry(skew=other - other.mT)) == (str(symmetry) == "Sp(2)")  # a plane has but one
    assert not symmetry.plain


def calibrated(symmetry, points, rep, x, **options):
    net = stir(EquivariantNet(symmetry, points, rep, width=8, depth=1, **options), seed=5).double()
    net.calibrate(x, torch.zeros(len(x), *net.rep.shape(net.n), dtype=torch.float64))
    return net


@settings(max_examples=40)
@given(skew_symmetries(), st.sampled_from(OUTPUTS), st.integers(1, 4), st.sampled_from([0, 40]), seeds)
def test_networks_respect_their_skew_form(made, output, points, features, seed):
    symmetry, T = made
    assume(not (symmetry.forms and max(part.rank for part in as_rep(output).parts) > 1))
    x = normal(6, points, symmetry.n, seed=seed) @ T.mT
    x[0, 1:] = -2.5 * x[0, :1]  # all products vanish there
    net = calibrated(symmetry, points, output, x, features=features)
    assert net.symmetry == symmetry
    assert equivariance_error(net, symmetry, "vector", net.rep, x, samples=6) <= EXACT


@pytest.mark.parametrize("output", ["scalar", "vector"])
def test_one_vector_has_no_product_under_a_skew_form(output):
    symmetry, x = Symmetry.parse("Sp(2)"), normal(6, 1, 2)
    net = calibrated(symmetry, 1, output, x, features=100)
    assert equivariance_error(net, symmetry, "vector", net.rep, x) <= EXACT


@pytest.mark.parametrize("output", ["scalar", "vector", "covector"])
@pytest.mark.parametrize("name", ["Sp(4)", "Sp(6)", "U(2)", "U(1,1)", "U(1,2)"])
def test_and_no_larger_group(name, output):
    """A symplectic network changes under SL(n) and O(n), a unitary one under O(A) and under Sp(ω)."""
    plain = Symmetry.parse(name)
    T = basis(plain.n, 3.0, 1)
    symmetry, x = plain.in_basis(T), normal(20, 3, plain.n, seed=2) @ T.mT
    net = calibrated(symmetry, 3, output, x)
    assert equivariance_error(net, symmetry, "vector", net.rep, x) <= EXACT
    larger = [symmetry.form, symmetry.skew] if symmetry.forms else [QuadraticForm.euclidean(plain.n)]
    for group in larger:
        assert equivariance_error(net, group, "vector", net.rep, x) > BROKEN
    g = torch.diag(torch.tensor([2.0, 0.5] + [1.0] * (plain.n - 2), dtype=torch.float64))
    if symmetry.skew.in_basis(g) != symmetry.skew:
        with torch.no_grad():
            moved, expected = net(x @ g.mT), net.rep.act(g, net(x))
        assert float((moved - expected).abs().max()) > BROKEN * float(expected.abs().max())


@given(seeds, st.sampled_from([2, 4, 6]))
def test_complex_structures(seed, n):
    """K² = -1 and AK is skew, for every positive A and every skew form that sees all directions."""
    M, N = normal(n, n, seed=seed), normal(n, n, seed=seed + 1)
    A, omega = M @ M.mT + torch.eye(n), N - N.mT
    assume(float(torch.linalg.svdvals(omega)[-1]) > 1e-2)
    K = complex_structure(A, omega)
    eye = torch.eye(n, dtype=torch.float64)
    assert torch.allclose(K @ K, -eye, atol=1e-8) and torch.allclose(A @ K, -(A @ K).mT, atol=1e-7)
    assert compatible(QuadraticForm(A), SkewForm((A @ K - (A @ K).mT) / 2))
