"""Formulas of laws that tell left from right: cross products, determinants, ε (M15)."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from gortho import QuadraticForm, Symmetry
from gortho.discovery.words import named
from gortho.formulas import Problem, short_formula
from gortho.formulas.units import given
from gortho.reps import as_rep
from gortho.samples import Samples
from gortho.volume import partial_volumes

EUCLID, MINKOWSKI = QuadraticForm.euclidean(3), QuadraticForm.minkowski()
TILTED = QuadraticForm([[1.0, 0.2, 0.0], [0.2, -1.5, 0.3], [0.0, 0.3, -0.8]])
PLANE = QuadraticForm([[1.0, 0.3], [0.3, -2.0]])


def problem(x, y, symmetry, output, axial=(), sample=None, noise=0.0, seed=9):
    """A problem whose symmetry is known; the predictor is off by a per cent."""
    rng = np.random.default_rng(seed)
    noisy, guess = y + noise * rng.normal(size=y.shape), y + 0.01 * y.std() * rng.normal(size=y.shape)
    sample = None if sample is None else torch.as_tensor(sample)
    whole = Samples(
        torch.as_tensor(x), torch.as_tensor(noisy), as_rep(output), None, sample, names=names_of(x.shape[2])
    )
    parts = [whole.rows(slice(*ends)) for ends in ((0, 200), (200, 250), (250, 300))]
    places = [slice(0, 200), slice(200, 250), slice(250, 300)]

    def predict(samples):
        return guess[places[next(i for i, part in enumerate(parts) if part is samples)]]

    return Problem(*parts, Symmetry.of(symmetry), output, predict, axial=axial)


def names_of(n):
    return tuple("abcd"[:n])


def vectors(*shape):
    return np.random.default_rng(3).normal(size=(300, *shape))


def inverse(form):
    return np.linalg.inv(form.matrix.numpy())


def volumes(x, free):
    return partial_volumes(torch.as_tensor(x), free).numpy()[:, 0]


X, Q = vectors(3, 3), np.random.default_rng(4).normal(size=(300, 1))
APART = X[:, 1] - X[:, 2]
FALL = np.linalg.norm(APART, axis=1, keepdims=True) ** -3
SO3 = Symmetry(EUCLID, special=True)
CROSS = np.cross(X[:, 0], X[:, 1])
LORENTZ = Q * (X[:, 0] + np.cross(X[:, 1], X[:, 2]))

#: inputs, targets, symmetry, output, what is axial, scalars, the formula
LAWS = [
    (X[:, :2], CROSS, EUCLID, "pseudovector", (), None, "1.00 x1 × x2"),
    (X, CROSS @ inverse(TILTED), TILTED, "pseudovector", (), None, "1.00 x1 × x2"),
    (X, 3 * CROSS, TILTED, "pseudocovector", (), None, "3.00 A(x1 × x2)"),
    (X, np.linalg.det(X), TILTED, "pseudoscalar", (), None, "1.00 det[x1 x2 x3]"),
    (X, LORENTZ, SO3, "vector", (), Q, "1.00 s x2 × x3 + 1.00 s x1"),
    (X, LORENTZ, EUCLID, "vector", (2,), Q, "1.00 s x2 × x3 + 1.00 s x1"),
    (
        X,
        np.cross(X[:, 0], APART) * FALL,
        EUCLID,
        "pseudovector",
        (),
        None,
        "1.00 (x1 × (x2-x3)) ⟨x2-x3,x2-x3⟩^-1.5",
    ),
    (
        X,
        (CROSS @ inverse(TILTED))[:, :, None] * X[:, 2, None],
        TILTED,
        "pseudobilinear",
        (),
        None,
        "1.00 (x1 × x2) x3ᵀ",
    ),
    (X, X[:, 2, :, None] * CROSS[:, None], TILTED, "pseudoconjugation", (), None, "1.00 x3 (x1 × x2)ᵀA"),
    (
        X,
        np.einsum("ab,zbc->zac", inverse(TILTED), volumes(X[:, :1], 2)),
        TILTED,
        "pseudoconjugation",
        (),
        None,
        "1.00 A⁻¹ε(x1,·,·)",
    ),
    (
        vectors(1, 2),
        volumes(vectors(1, 2), 1) @ inverse(PLANE),
        Symmetry(PLANE, special=True),
        "vector",
        (),
        None,
        "1.00 A⁻¹ε(x,·)",
    ),
    (
        vectors(3, 4),
        volumes(vectors(3, 4), 1),
        MINKOWSKI,
        "pseudocovector",
        (),
        None,
        "1.00 ε(x1,x2,x3,·)",
    ),
]


def in_sympy(formula, x, sample):
    sympy = pytest.importorskip("sympy")
    symbols = [sympy.Symbol(name, real=True) for name in (*formula.coordinates, *formula.scalars)]
    f, flat = sympy.lambdify(symbols, formula.sympy()), x.reshape(len(x), -1)
    flat = flat if sample is None else np.hstack([flat, sample])
    return np.array([np.asarray(f(*row), float).ravel() for row in flat])


def in_latex(formula, x, s):
    """What a reader of the LaTeX computes for one sample, who knows of ×, det, ε, ⟨,⟩ and A what is said of them."""
    A, n = formula.symmetry.form.matrix.numpy(), x.shape[1]
    inv = np.linalg.inv(A)
    text = formula.latex().split(" = ", 1)[1]
    for old, new in [
        (r"A^{-1}\varepsilon", r"inv\,\varepsilon"),
        (r"\rangle^{-1.5}", ")**-1.5"),
        (r"\varepsilon(", "eps("),
        (r"\det[", "det("),
        ("]", ")"),
        (r"\langle ", "inner("),
        (r"\cdot", "None"),
        (r")^{\top}A", r")^{\top}\,A"),
        ("A(", r"A\,("),
        (r" \times ", " ^ "),
    ]:
        text = text.replace(old, new)
    text = re.sub(r"x_\{(\d)\}\^\{\\top\}", r"row(x_{\1})", text)
    text = re.sub(r"\(([^()]*)\)\^\{\\top\}", r"row(\1)", text)
    text = re.sub(r"x_\{(\d)\}", r"x\1", text)

    class Column(np.ndarray):
        """u × v = A⁻¹ε(u, v, ·)."""

        def __xor__(self, other):
            return column(inv @ np.cross(self[:, 0], other[:, 0]))

    def column(v):
        return np.asarray(v, float).reshape(-1, 1).view(Column)

    def eps(*slots):
        given = np.array([v[:, 0] for v in slots if v is not None])[None]
        value = volumes(given, n - given.shape[1])[0]
        return value.reshape(n, -1)

    known = {f"x{i + 1}": column(v) for i, v in enumerate(x)} | {"x": column(x[0]), "A": A, "inv": inv}
    known |= {"s": s, "eps": eps, "row": lambda v: v.T, "inner": lambda u, v: (u.T @ A @ v).item()}
    known["det"] = lambda *v: np.linalg.det(np.hstack(v))
    total = 0.0
    for term in text.split(" + "):
        factors = [np.asarray(eval(factor, known)) for factor in term.split(r"\,")]
        value = factors[0]
        for factor in factors[1:]:
            value = value * factor if value.ndim == 0 or factor.ndim == 0 else value @ factor
        total = total + value
    return np.asarray(total).ravel()


@pytest.mark.parametrize("x, y, symmetry, output, axial, sample, expected", LAWS)
def test_handed_laws_are_written_as_they_are_computed(x, y, symmetry, output, axial, sample, expected):
    found = short_formula(problem(x, y, symmetry, output, axial, sample))
    assert str(found) == f"y = {expected}" and found.exact
    few, s = x[:7], None if sample is None else sample[:7]
    values = found(few, None if s is None else {"sample": s}).reshape(7, -1)
    assert np.allclose(values, y[:7].reshape(7, -1))
    assert np.allclose(in_sympy(found, few, s), values)
    latex = [in_latex(found, row, None if s is None else s[i].item()) for i, row in enumerate(few)]
    assert np.allclose(np.array(latex), values)


def test_bars_hold_the_truth_and_units_change_numbers_alone():
    x, inside = X[:, :2], 0
    for seed in range(20):
        found = short_formula(problem(x, 2 * CROSS, EUCLID, "pseudovector", noise=0.05, seed=seed))
        (term,) = found.terms
        assert found.holds and term.error < 0.02
        inside += abs(term.coefficient - 2) <= term.error
    assert inside >= 17  # 19 on the average
    moved = given(found, found.symmetry, 1e-25, 1.0)
    assert np.allclose(moved(1e-25 * x), found(x), rtol=1e-10)


def test_parity_is_respected():
    """Torque of polar vectors: no polar term is tried, whatever it would explain."""
    x, y = X[:, :2], CROSS + 0.1 * X[:, 0]
    found = short_formula(problem(x, y, EUCLID, "pseudovector"))
    assert found is None or all("×" in part for part in str(found).split("=")[-1].split("+"))
    free = short_formula(problem(x, y, SO3, "vector"))
    assert str(free) == "y = 1.00 x1 × x2 + 0.10 x1"


def test_what_the_signs_mean_is_said_where_it_does_not_go_without_saying():
    cross = short_formula(problem(X, CROSS, EUCLID, "pseudovector"))
    assert not named(cross)
    other = replace(cross, symmetry=Symmetry(TILTED))
    assert named(other) == ["× is the cross product of q, ⟨u × v,w⟩ = det[u v w]"]
    lowered = short_formula(problem(X, 3 * CROSS, TILTED, "pseudocovector"))
    assert named(lowered)[0] == "A is the matrix of q"
    square = (X[:, 0] ** 2).sum(1)[:, None, None] * np.eye(3)
    assert named(short_formula(problem(X, square, EUCLID, "bilinear"))) == [
        "A is the matrix of q, here the unit matrix"
    ]
    x = vectors(3, 4)
    space_time = short_formula(problem(x, volumes(x, 1), MINKOWSKI, "pseudocovector"))
    assert named(space_time) == ["ε(u1,u2,u3,u4) = det[u1 u2 u3 u4]"]
