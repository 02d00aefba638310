"""Short laws for y: found exactly, in any units, with honest error bars, and written with the names that users gave."""

import json
import math
import sys
import types
from dataclasses import replace

import numpy as np
import pytest
import torch

import gortho
from gortho import Discovery, QuadraticForm, Settings, Symmetry
from gortho.discovery import saving
from gortho.forms import number
from gortho.formulas import Factor, Formula, Monomial, Problem, Term, short_formula
from gortho.formulas.find import told_from_zero
from gortho.formulas.units import given
from gortho.formulas.values import EXACT
from gortho.formulas.writing import TEXT, body, without_number
from gortho.reps import as_rep
from gortho.runs import summary
from gortho.samples import Samples, read
from gortho.samples.called import Labels
from gortho.stored import restored, stored
from gortho.surveyed import labels_of, remembered

TINY = Settings(starts=2, generations=0, finalists=1, refits=4, predictor_steps=20)


def problem(
    x, y, form, output="scalar", *, noise=0.0, point=None, sample=None, predictor=0.01, spread=(), **options
):
    """A problem whose form is known, and whose predictor is off by this share of the spread of y, without its noise."""
    x, y = torch.as_tensor(x), torch.as_tensor(y)
    shake = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(9))
    guess = (y + predictor * y.std() * shake).numpy()
    scalars = [None if s is None else torch.as_tensor(s) for s in (point, sample)]
    whole = Samples(x, y + torch.as_tensor(noise), as_rep(output), *scalars, **options)
    ends = np.cumsum([0, len(x) * 7 // 10, len(x) * 3 // 20, len(x)])
    places = [
        slice(a, b) for a, b in zip([0, ends[1], ends[1] + len(x) * 3 // 20], [ends[1], ends[2], len(x)])
    ]
    parts = [whole.rows(place) for place in places]

    def predict(samples):
        return guess[places[next(i for i, part in enumerate(parts) if part is samples)]]

    return Problem(*parts, Symmetry.of(form), output, predict, spread)


def vectors(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def squares(x, form):
    return form(torch.as_tensor(x)).numpy()


def outer(x):
    return x[:, :, None] * x[:, None]


EUCLID = QuadraticForm.euclidean(3)


@pytest.mark.parametrize(
    "law, expected",
    [
        (lambda q: 0.5 * q, "y = 0.50 ⟨x,x⟩"),
        (lambda q: 2 * q**2 - 3 * q + 1, "y = 2.00 ⟨x,x⟩² - 3.00 ⟨x,x⟩ + 1.00"),
        (lambda q: 4 * np.sqrt(q), "y = 4.00 √⟨x,x⟩"),
        (lambda q: np.log(q) / 4, "y = 0.25 log⟨x,x⟩"),
        (lambda q: 7 / q, "y = 7.00 ⟨x,x⟩^-1"),
        (lambda q: q**0.35, "y = 1.00 ⟨x,x⟩^0.35"),
        (lambda q: 3 * np.cos(2.5 * np.sqrt(q)) + 1, "y = 3.00 cos(2.50 √⟨x,x⟩) + 1.00"),
        (lambda q: np.exp(-0.7 * q), "y = 1.00 exp(-0.70 ⟨x,x⟩)"),
        (lambda q: np.exp(-np.sqrt(q)) / np.sqrt(q), "y = 1.00 ⟨x,x⟩^-0.5 exp(-1.00 √⟨x,x⟩)"),
        (lambda q: 1 / (q + 0.5), "y = 1.00 (⟨x,x⟩ + 0.50)^-1"),
        (lambda q: 2 * np.arcsin(0.2 * np.sqrt(q)), "y = 2.00 arcsin(0.20 √⟨x,x⟩)"),
        (lambda q: 1 / np.sqrt(1 - 0.04 * q), "y = 5.00 (25.00 - ⟨x,x⟩)^-0.5"),
    ],
)
def test_laws_of_one_square_are_found_exactly(law, expected):
    x = vectors(0, 500, 1, 3)
    found = short_formula(problem(x, law(squares(x, EUCLID)[:, 0]), EUCLID))
    assert str(found) == expected and found.exact and found.holds


def test_angles():
    """The angle between two vectors, and that of Bragg, 2 arcsin(λ|q|/2); also in sympy and in other units."""
    x, wave = vectors(1, 400, 2, 3), np.random.default_rng(2).uniform(0.2, 0.3, size=(400, 1))
    lengths, products = np.sqrt(squares(x, EUCLID)), (x[:, 0] * x[:, 1]).sum(1)
    between = np.arccos(products / lengths.prod(1))
    found = short_formula(problem(x, between, EUCLID))
    assert str(found) == "y = 1.00 arccos(⟨x1,x2⟩/√(⟨x1,x1⟩⟨x2,x2⟩))" and found.exact
    assert r"\arccos\left(\frac{\langle x_{1}, x_{2}\rangle}{\sqrt{" in found.latex()
    _same_in_sympy(found, x[:3], between[:3])
    bragg = 2 * np.arcsin(wave[:, 0] * lengths[:, 0] / 2)
    found = short_formula(problem(x[:, :1], bragg, EUCLID, sample=wave))
    assert str(found) == "y = 2.00 arcsin(0.50 s √⟨x,x⟩)" and found.exact
    _same_in_sympy(found, np.hstack([x[:3, 0], wave[:3]]), bragg[:3])
    moved = given(found, found.symmetry, 1e-10, 1.0)
    assert np.allclose(moved(1e-10 * x[:, 0], {"sample": wave}), bragg)


def test_a_formula_that_is_far_better_than_the_predictor_says_so():
    x = vectors(1, 400, 1, 3)
    lines = [
        short_formula(problem(x, squares(x, EUCLID)[:, 0], EUCLID, predictor=p)).lines() for p in (0.4, 0.1)
    ]
    assert ["far better than the predictor: compute y by the formula" in told for told in lines] == [
        True,
        False,
    ]


def _same_in_sympy(formula, inputs, values):
    sympy = pytest.importorskip("sympy")
    names = (*formula.coordinates, *formula.scalars)
    f = sympy.lambdify([sympy.Symbol(name, real=True) for name in names], formula.sympy())
    assert np.allclose([f(*row) for row in inputs.reshape(len(values), -1)], values)


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e-4, 1e6), (3e5, 2e-9)])
def test_the_same_law_in_other_units(units):
    x = vectors(1, 400, 2, 3)
    q = squares(x[:, 0] - x[:, 1], EUCLID)
    found = short_formula(problem(units[0] * x, units[1] * 3 / np.sqrt(q), EUCLID))
    (term,) = found.terms
    assert found.exact and term.coefficient == pytest.approx(3 * units[1] * units[0], rel=1e-8)
    assert str(found).endswith("⟨x1-x2,x1-x2⟩^-0.5")


def with_outliers(seed, share, rows=600, noise=0.02):
    """A law with noise, and y, where some are off by up to ten times its spread, all to one side."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 1, 3))
    y = squares(x, EUCLID)[:, 0]
    error = noise * y.std() * rng.normal(size=rows)
    wrong = rng.choice(rows, int(share * rows), replace=False)
    error[wrong] += y.std() * rng.uniform(2, 10, len(wrong))
    return x, y, error


@pytest.mark.parametrize("share", [0.0, 0.01, 0.03])
def test_outliers_do_not_move_coefficients_and_error_bars_hold(share):
    inside = []
    for seed in range(20):
        x, y, error = with_outliers(100 + seed, share)
        found = short_formula(problem(x, y, EUCLID, noise=error, predictor=0.05))
        assert str(found).startswith("y = ") and found.holds and len(found.terms) == 1, str(found)
        (term,) = found.terms
        assert term.coefficient == pytest.approx(1, abs=0.01) and term.error < 0.01
        inside.append(abs(term.coefficient - 1) <= term.error)
        assert (found.left_out > 0) == (share > 0)
    assert sum(inside) >= 17  # 19 of 20, on the average


@pytest.mark.parametrize("where", ["x", "y"])
def test_a_sentinel_in_one_row_does_not_spoil_the_formula(where):
    x = vectors(11, 400, 1, 3)
    y = squares(x, EUCLID)[:, 0]
    if where == "x":
        x[5] = -999.0
    else:
        y[5] = -999.0
    found = short_formula(problem(x, y, EUCLID, predictor=1e-6))
    assert str(found) == "y = 1.00 ⟨x,x⟩" and found.left_out == 1
    assert any(
        "fitted without 1 of 340 samples, which are far from it: wrong ones" in line for line in found.lines()
    )


def test_samples_that_were_left_out_are_named(tmp_path, found):
    x, wrong = vectors(11, 400, 1, 3), np.zeros(400)
    y = squares(x, EUCLID)[:, 0]
    wrong[[5, 390]] = -999.0
    given = problem(x, y, EUCLID, noise=wrong, predictor=1e-6)
    formula = short_formula(replace(given, numbers=np.split(np.arange(400), [280, 340])))
    of_the_used = "of the samples used, counted from 0"
    assert formula.which == (f"number 5 {of_the_used}", f"number 390 {of_the_used}")
    np.savetxt(
        tmp_path / "t.csv", np.column_stack([x[:, 0], y]), delimiter=",", header="a,b,c,y", comments=""
    )
    data = read(tmp_path / "t.csv", x="a:c", y="y")
    told = remembered(replace(found, formula=formula), data).formula.lines()
    assert (
        "fitted without 1 of 340 samples, which are far from it (line 7 of the file): wrong ones" in told[2]
    )
    assert told[1].endswith("without 1 of 60 samples, which are far from both (line 392 of the file)")


def test_samples_that_only_the_formula_misses_are_no_mistakes():
    x = vectors(12, 500, 1, 3)
    q = squares(x, EUCLID)[:, 0]
    y = np.where(q > np.quantile(q, 0.97), 20.0, q)  # what no short formula has, but the predictor knows
    found = short_formula(problem(x, y, EUCLID, predictor=1e-3))
    assert found is None or not found.holds


def test_energy_with_masses_and_names():
    x, m = vectors(2, 400, 2, 3), 1 + vectors(3, 400, 2, 1) ** 2
    y = (0.5 * m[..., 0] * squares(x, EUCLID)).sum(1)
    labels = Labels("energy", (), ("m1", "m2"))
    found = short_formula(problem(x, y, EUCLID, point=m, labels=labels))
    assert sorted(str(found).removeprefix("energy = ").split(" + ")) == ["0.50 m1 ⟨x1,x1⟩", "0.50 m2 ⟨x2,x2⟩"]
    np.testing.assert_allclose(found(x, m[..., 0]), y, rtol=1e-9)


def test_relativity_has_a_mass_under_its_root():
    p, m = vectors(4, 500, 1, 3), np.random.default_rng(5).uniform(0.5, 2, (500, 1))
    y = np.sqrt(m[:, 0] ** 2 + squares(p, EUCLID)[:, 0]) - m[:, 0]
    found = short_formula(problem(p, y, EUCLID, sample=m, labels=Labels("T", ("p",), ("m",)), predictor=1e-3))
    assert str(found) == "T = 1.00 √(⟨p,p⟩ + 1.00 m²) - 1.00 m"


@pytest.mark.parametrize(
    "output, law, expected",
    [
        ("vector", lambda x, q: -x * (q**-1.5)[:, None], "y = -1.00 x ⟨x,x⟩^-1.5"),
        ("covector", lambda x, q: 2 * x, "y = 2.00 Ax"),
        ("bilinear", lambda x, q: q[:, None, None] * np.eye(3) - outer(x), "y = 1.00 ⟨x,x⟩ A⁻¹ - 1.00 x xᵀ"),
        ("conjugation", lambda x, q: 3 * outer(x) + np.eye(3), "y = 3.00 x xᵀA + 1.00 I"),
        ("form", lambda x, q: outer(x) - 2 * np.eye(3), "y = 1.00 Ax xᵀA - 2.00 A"),
    ],
)  # fmt: skip
def test_tensors(output, law, expected):
    x = vectors(6, 300, 3) + np.array([1.0, 0, 0])
    y = law(x, (x**2).sum(1))
    found = short_formula(problem(x[:, None], y, EUCLID, output))
    assert sorted(str(found).replace("- ", "+ -").split(" + ")) == sorted(
        expected.replace("- ", "+ -").split(" + ")
    )
    np.testing.assert_allclose(found(x), y, atol=1e-9)


def test_two_bodies_and_an_indefinite_form():
    x, m = vectors(7, 600, 2, 4), 1 + vectors(8, 600, 2, 1) ** 2
    form = QuadraticForm.minkowski()
    d = x[:, 0] - x[:, 1]
    y = (m[:, 0] * m[:, 1]) * d * (1 + squares(d, form) ** 2)[:, None]
    found = short_formula(problem(x, y, form, "vector", point=m, labels=Labels(scalars=("a", "b"))))
    assert sorted(str(found)[4:].split(" + ")) == ["1.00 a b (x1-x2)", "1.00 a b (x1-x2) ⟨x1-x2,x1-x2⟩²"]
    root = short_formula(problem(x, np.sqrt(np.abs(squares(d, form))), form))
    assert str(root) == "y = 1.00 √|⟨x1-x2,x1-x2⟩|"


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (lambda m, k, q: m**2 * k * q, "y = 1.00 m² k ⟨x,x⟩"),
        (lambda m, k, q: q / m**2, "y = 1.00 m^-2 ⟨x,x⟩"),
        (lambda m, k, q: 2 * k**3 * q, "y = 2.00 k³ ⟨x,x⟩"),
    ],
)
def test_products_of_powers_of_scalars(law, expected):
    x, s = vectors(7, 300, 1, 3), np.random.default_rng(8).uniform(1, 3, size=(300, 2))
    y = law(*s.T, squares(x[:, 0], EUCLID))
    found = short_formula(problem(x, y, EUCLID, sample=s, labels=Labels(scalars=("m", "k"))))
    assert str(found) == expected and found.exact


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_sum_whose_rest_depends_on_the_same_quantities_is_no_law(noise):
    """m^2.5 k q is not among the terms: without noise, what a sum leaves of it shows; with noise it does not."""
    x, s = vectors(7, 900, 1, 3), np.random.default_rng(8).uniform(1, 3, size=(900, 2))
    y = s[:, 0] ** 2.5 * s[:, 1] * squares(x[:, 0], EUCLID)
    made = noise * vectors(9, 900) * y.std()
    found = short_formula(
        problem(x, y, EUCLID, noise=made, sample=s, predictor=0.05, labels=Labels(scalars=("m", "k")))
    )
    assert found.lacking == (noise == 0) and (" = " in str(found)) == (noise > 0)
    assert ("what it leaves depends on the same inner products" in found.lines()[1]) == (noise == 0)


def test_exponentials_of_signed_squares():
    x = 0.7 * vectors(7, 400, 1, 3)
    form = QuadraticForm.minkowski(3)
    found = short_formula(problem(x, np.exp(-0.3 * squares(x[:, 0], form)), form))
    assert str(found) == "y = 1.00 exp(-0.30 ⟨x,x⟩)"


def test_three_pieces_of_one_function_are_an_interpolation():
    def term(*powers):
        return Term((Monomial(tuple(Factor("power", (1,), (1,), p) for p in powers)),), "", 1.0, 0.0)

    good = {"unexplained": 1e-3, "predictor_unexplained": 1e-3}
    law = Formula("y", (term(0.5), term(-0.5)), Symmetry(EUCLID), **good)
    assert law.holds and not law.pieced
    assert not replace(law, terms=(*law.terms, term(1.5))).holds
    assert not replace(law, terms=(*law.terms, term())).holds  # a constant is one of the pieces
    assert not replace(law, twin_unexplained=1e-4).holds
    assert replace(law, terms=(term(1), term(2), term())).holds  # a polynomial
    tiny = replace(law, terms=(*law.terms, term(1.5)), unexplained=1e-12, predictor_unexplained=1e-12)
    assert not tiny.exact and not tiny.holds  # smooth laws are met as closely by others
    assert replace(tiny, unexplained=1e-28).holds


def test_sums_over_points():
    x, m = vectors(9, 300, 4, 3), 1 + vectors(10, 300, 4, 1) ** 2
    y = 0.5 * (m[..., 0] * squares(x, EUCLID)).sum(1)
    labels = Labels(scalars=("m1", "m2", "m3", "m4"))
    for set_like in (False, True):
        found = short_formula(problem(x, y, EUCLID, point=m, labels=labels, set_like=set_like))
        assert str(found) == "y = 0.50 Σᵢ mᵢ ⟨xᵢ,xᵢ⟩"
        assert found.latex() == "y = 0.50\\,\\sum_{i}\\,m_{i}\\,\\langle x_{i}, x_{i}\\rangle"
    i, j = np.triu_indices(4, 1)
    pairs = 1 / np.sqrt(squares(x[:, i] - x[:, j], EUCLID))
    found = short_formula(
        problem(x, 2 * (m[:, i, 0] * m[:, j, 0] * pairs).sum(1), EUCLID, point=m, set_like=True)
    )
    assert str(found) == "y = 2.00 Σᵢ﹤ⱼ sᵢ sⱼ ⟨xᵢ-xⱼ,xᵢ-xⱼ⟩^-0.5"
    named = Labels(scalars=("up", "down", "left", "right"))  # no numbers to put an index for
    found = short_formula(problem(x, y, EUCLID, point=m, labels=named, set_like=True))
    assert str(found).startswith("y = 0.50 (up ⟨x1,x1⟩ + down ⟨x2,x2⟩ + ")


@pytest.mark.slow
def test_error_bars_cover():
    inside = every = 0
    for seed in range(40):
        x = vectors(100 + seed, 250, 2, 2)
        q = squares(x, QuadraticForm.euclidean(2))
        y = 0.7 * q[:, 0] + 2 * np.sqrt(q[:, 1])
        noise = np.random.default_rng(seed).normal(size=250) * (0.1 + 0.1 * q[:, 0])  # larger for larger q
        found = short_formula(problem(x, y, QuadraticForm.euclidean(2), noise=noise))
        truth = {"⟨x1,x1⟩": 0.7, "√⟨x2,x2⟩": 2.0}
        told = {body(found, term, TEXT): term for term in found.terms}
        for name in set(truth) & set(told):
            inside += abs(told[name].coefficient - truth[name]) <= told[name].error
            every += 1
    assert every >= 72 and 0.87 <= inside / every <= 1.0  # of 80


def test_the_error_of_the_form_widens_the_bars():
    x = vectors(11, 300, 1, 3)
    y, noise = squares(x, EUCLID)[:, 0], 0.03 * vectors(12, 300)
    spread = [Symmetry(QuadraticForm(np.diag([1 + 0.1 * k, 1.0, 1 - 0.1 * k]))) for k in (-1, 0, 1, 0.5)]
    sharp, blunt = (short_formula(problem(x, y, EUCLID, noise=noise, spread=s)) for s in ((), spread))
    assert blunt.terms[0].error > 5 * sharp.terms[0].error


def test_what_is_no_short_formula_is_called_an_approximation_or_nothing():
    x = vectors(13, 600, 2, 3)
    gram = EUCLID.gram(torch.as_tensor(x)).numpy()
    y = np.tanh(gram[:, 0, 1] + np.sin(gram[:, 0, 0])) * np.cos(gram[:, 1, 1] - gram[:, 0, 1])
    assert short_formula(problem(x, y, EUCLID, predictor=1e-3)) is None
    one = x[:, :1]
    q = squares(one, EUCLID)[:, 0]
    about = short_formula(problem(one, q + 0.3 * np.tanh(3 * q - 4), EUCLID, predictor=1e-4))
    assert not about.holds and about.unexplained < 0.05 and len(about.terms) <= 3
    assert str(about).startswith("y ≈ ") and "approximation" in about.lines()[1] and "approx" in about.latex()


def test_a_sum_whose_numbers_are_not_known_is_not_exact():
    """What interpolates leaves next to nothing, too, but its numbers may as well be others."""
    monomials = [Monomial((Factor(kind, (1,), (1,), shape=2.0),)) for kind in ("exp", "cos")]
    terms = [Term((m,), "", 0.3, 0.001) for m in monomials] + [Term((Monomial(),), "", 0.7, 0.001)]
    law = Formula("y", tuple(terms), Symmetry(EUCLID), unexplained=1e-15, predictor_unexplained=1e-15)
    assert law.exact and law.holds and "nothing" in law.lines()[1]
    loose = replace(law, terms=(replace(terms[0], error=0.08), *terms[1:]))
    assert not loose.exact and not loose.holds and "interpolation" in loose.lines()[1]


def test_areas():
    """The size of a torque, and the distance from a line; in sympy and in other units, too."""
    sympy = pytest.importorskip("sympy")
    x = vectors(3, 500, 2, 3)
    area = np.linalg.norm(np.cross(x[:, 0], x[:, 1]), axis=1)
    torque = short_formula(problem(x, 3 * area, EUCLID))
    assert str(torque) == "y = 3.00 √(⟨x1,x1⟩⟨x2,x2⟩ - ⟨x1,x2⟩²)" and torque.exact
    away = short_formula(problem(x, area / np.linalg.norm(x[:, 1], axis=1), EUCLID))
    assert "⟨x2,x2⟩^-0.5" in str(away) and away.exact
    torque = replace(torque, coordinates=tuple("abcdef"))
    computed = sympy.lambdify(sympy.symbols("a:f", real=True), torque.sympy())(*x.reshape(500, 6).T)
    np.testing.assert_allclose(computed, 3 * area, rtol=1e-9)
    far = given(torque, torque.symmetry, 1e3, 1.0)
    np.testing.assert_allclose(far(1e3 * x), torque(x), rtol=1e-9)
    boosted = QuadraticForm.minkowski(3)  # where the square of an area may be negative
    assert short_formula(problem(x, 3 * area, boosted)) is None


def test_terms_that_data_cannot_tell_apart_are_named():
    x = 2 + 0.05 * vectors(14, 400, 1, 3)
    y = np.sqrt(squares(x, EUCLID)[:, 0])
    found = short_formula(problem(x, y, EUCLID, noise=0.02 * vectors(15, 400)))
    assert found.rivals and " for " in found.rivals[0] and "do not tell it from" in found.lines()[-1]


def kinetic(vector="v", scalar="m", target="energy", **options):
    monomial = Monomial((Factor("scalar", scalar=0), Factor("power", (1,), (1,))))
    given = {"vectors": (vector,), "scalars": (scalar,), "coordinates": ("a", "b", "c")} | options
    return Formula(target, (Term((monomial,), "", 0.5, 1e-12),), Symmetry(EUCLID), **given)


def test_names_with_brackets_and_powers_are_set_off():
    law = kinetic("v [m/s]", "m^2", "E (kin)")
    assert str(law) == "(E (kin)) = 0.50 (m^2) ⟨(v [m/s]),(v [m/s])⟩"
    assert "\\text{m\\textasciicircum{}2}" in law.latex() and "\\text{v [m/s]}" in law.latex()


def test_latex_is_set_by_a_typesetter():
    mathtext = pytest.importorskip("matplotlib.mathtext")
    text = kinetic("p_1", "mu").latex()
    assert "p_{1}" in text and "\\mu" in text
    mathtext.MathTextParser("agg").parse(f"${text}$")


def test_sympy_has_the_values_of_the_formula():
    sympy = pytest.importorskip("sympy")
    law = kinetic()
    x, m = vectors(16, 3), 1.7
    value = law.sympy().subs(
        dict(zip(sympy.symbols("a b c", real=True), x)) | {sympy.Symbol("m", real=True): m}
    )
    assert float(value) == pytest.approx(float(law(x[None], np.array([[m]]))[0]))
    both = Term((Monomial((), 0, ((1,), (1,))),), "", 2.0, 0.0)
    matrix = Formula("y", (both,), Symmetry(EUCLID), "bilinear", coordinates=("a", "b", "c")).sympy()
    a, b, _ = sympy.symbols("a b c", real=True)
    assert matrix[0, 1] == 2.0 * a * b


def test_the_formula_refuses_other_numbers_of_inputs():
    with pytest.raises(
        ValueError, match=r"2 vector\(s\) and 1 scalar\(s\) a sample: the formula takes 1 and 1"
    ):
        kinetic()(np.zeros((5, 2, 3)), np.ones((5, 1)))


def test_a_predictor_that_fails_makes_no_formula_the_law():
    assert kinetic(unexplained=0.14, predictor_unexplained=0.14).holds
    assert not kinetic(unexplained=0.14, predictor_unexplained=6.97).holds
    assert kinetic(unexplained=1e-12, predictor_unexplained=6.97).holds


def test_json_keeps_everything():
    law = kinetic(unexplained=1e-3, predictor_unexplained=2e-3, twin_unexplained=2e-3, rivals=("1 for 2",))
    assert restored(json.loads(json.dumps(stored(law))), Formula) == law
    shaped = law.terms[0].shaped([]).monomials
    assert shaped == law.terms[0].monomials


@pytest.mark.parametrize(
    "value, half, text",
    [(0.5, math.nan, "0.50"), (0.49871, 0.003, "0.499"), (-1e-7, 2e-9, "-1.00e-07"), (12345.678, 20.0, "12350"),
     (0.0, 1.0, "0"), (2.0, 1e-9, "2.00"), (0.3, 0.7, "0.3")],
)  # fmt: skip
def test_numbers_have_the_digits_that_errors_leave(value, half, text):
    assert number(value, half) == text


def test_names_in_sums():
    assert without_number("x1", "x2") == ("x", "") and without_number("m_10", "m_11") == ("m", "")
    assert without_number("a1b", "a2b") == ("a", "b") and without_number("up", "down") is None


# In a discovery


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    p, m = rng.normal(size=(300, 2)), rng.uniform(0.5, 2.0, 300)
    x = np.column_stack([np.sqrt(m**2 + 0.09 * (p**2).sum(1)), p])
    return gortho.discover(x, m**2, names=["E", "px", "py"], labels={"y": "m2"}, settings=TINY)


def test_an_exact_law_is_quoted_with_the_digits_that_are_known():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2)) * [1e-8, 3]
    y = (299792458.0 * x[:, 0]) ** 2 - x[:, 1] ** 2
    told = str(gortho.discover(x, y, names=["t", "x"], settings=TINY, look_for="O"))
    assert "that is, y = 8.98755e+16 t² - 1.00 x²\n" in told


def test_a_discovery_tells_its_formula(found, tmp_path):
    assert found.formula.exact and str(found.formula).startswith("m2 = ")
    told = str(found)
    assert f"  formula: {found.formula}\n" in told
    assert "that is, m2 = 1.00 E² - 0.0900 px² - 0.0900 py²" in told
    assert str(found.formula) in found._repr_html_()
    assert found.latex().startswith("\\begin{aligned} m_{2} &= ") and found.latex(
        of="q"
    ) in found.latex().replace("&", "")
    assert found.latex(of="y") == found.formula.latex()
    content = summary(found)["formula"]
    assert content["holds"] and content["terms"][0]["term"] == "⟨x,x⟩"
    page = found.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
    assert "The law for y" in page and "⟨x,x⟩" in page


def test_sympy_of_a_discovery_is_the_law_for_y(found):
    sympy = pytest.importorskip("sympy")
    E, px, py = sympy.symbols("E px py", real=True)
    difference = sympy.expand(found.sympy()) - (E**2 - 0.09 * px**2 - 0.09 * py**2)
    assert all(abs(c) < 1e-6 for c in sympy.Poly(difference, E, px, py).coeffs())
    with pytest.raises(ValueError, match="choose 'y' for the formula"):
        found.sympy(of="x")


def test_saved_runs_keep_the_formula_and_older_ones_have_none(found, tmp_path):
    run = found.save(tmp_path / "run")
    again = Discovery.load(run)
    assert again.formula == found.formula and str(again) == str(found)
    content = json.loads((run / "discovery.json").read_text())
    content.pop("sha256")
    del content["formula"]
    content["sha256"] = saving._digest(content)
    (run / "discovery.json").write_text(json.dumps(content))
    assert Discovery.load(run).formula is None
    with pytest.raises(ValueError, match="no formula for y"):
        Discovery.load(run).latex(of="y")


def test_names_come_from_series_frames_and_files(tmp_path):
    import pandas as pd

    y, m = pd.Series([1.0, 2.0], name="energy"), pd.DataFrame({"m1": [1.0], "m2": [1.0]})
    assert Labels.of(None, y, m) == Labels("energy", (), ("m1", "m2"))
    assert Labels.of({"y": "E"}, y).y == "E" and Labels.of(None, np.ones(3)).y == ""
    with pytest.raises(ValueError, match=r"labels = .*give a dictionary with some of y, vectors"):
        Labels.of({"z": 1})
    table = pd.DataFrame(vectors(17, 30, 7), columns=["vx1", "vz1", "vx2", "vz2", "m1", "m2", "energy"])
    table.to_csv(tmp_path / "a.csv", index=False)
    data = read(
        tmp_path / "a.csv", x="vx1,vz1,vx2,vz2", y="energy", scalars="m1,m2", points=2, scalars_per_point=True
    )
    labels = labels_of(data)
    assert labels["y"] == "energy" and labels["scalars"] == ["m1", "m2"] and len(labels["coordinates"]) == 4
    np.savez(tmp_path / "a.npz", position=vectors(1, 30, 3), dipole=vectors(2, 30, 3), U=vectors(3, 30))
    assert labels_of(read(tmp_path / "a.npz", x="position,dipole", y="U"))["vectors"] == [
        "position",
        "dipole",
    ]


def test_invariants_go_to_pysr_where_it_is(found, monkeypatch):
    x = vectors(18, 20, 3)
    table = found.invariants(x)
    assert list(table) == ["q"]
    np.testing.assert_allclose(table["q"], found.form(torch.as_tensor(x)).numpy())
    monkeypatch.setitem(sys.modules, "pysr", None)
    with pytest.raises(ImportError, match=r"gortho\[pysr\]"):
        found.symbolic(x, x[:, 0])

    class PySRRegressor:
        def __init__(self, **options):
            self.options = options

        def fit(self, X, y):
            self.columns, self.rows = list(X), len(y)
            return self

    monkeypatch.setitem(sys.modules, "pysr", types.SimpleNamespace(PySRRegressor=PySRRegressor))
    model = found.symbolic(x, x[:, 0], niterations=3)
    assert model.options == {"niterations": 3} and model.columns == ["q"] and model.rows == 20


def test_classes_and_several_outputs_have_no_formula():
    x = vectors(19, 150, 2)
    y = np.stack([(x**2).sum(1), 2 * (x**2).sum(1)], 1)
    several = gortho.discover(x, y, settings=TINY, look_for="O")
    assert several.form is not None and several.formula is None
    assert any("one target at a time" in notice for notice in several.notices)


def test_an_origin_stands_in_the_formula():
    c = torch.tensor([0.5, -0.3, 0.8], dtype=torch.float64)
    x = vectors(20, 300, 1, 3)
    y = 2 * squares(x - c.numpy(), EUCLID)[:, 0]
    found = short_formula(problem(x, y, Symmetry(EUCLID, origin=c)))
    assert str(found) == "y = 2.00 ⟨x-c,x-c⟩" and found.unexplained <= EXACT
    along = Symmetry(EUCLID, directions=[[0, 0, 1.0]])
    weight = short_formula(problem(x, y * 0 + squares(x, EUCLID)[:, 0] / 2 + 9.8 * x[:, 0, 2], along))
    assert sorted(str(weight)[4:].split(" + ")) == ["0.50 ⟨x,x⟩", "9.80 ⟨x,b⟩"]


def test_a_pole_among_the_samples_stops_nothing():
    x = vectors(21, 400, 1, 3)
    x[350] = 0.0  # in the held-out part; and one that the choice does not see
    x[250] = 0.0
    q = squares(x, EUCLID)[:, 0]
    found = short_formula(problem(x, 3 * q + 1, EUCLID))
    assert str(found) == "y = 3.00 ⟨x,x⟩ + 1.00"
    y = np.sqrt(q) * np.sin(q)  # functions of all kinds are tried, and some are infinite there
    other = short_formula(problem(x, y, EUCLID))
    assert other is None or np.isfinite(other.unexplained)


def test_huge_numbers_have_a_formula_in_their_units():
    x = 1e30 * vectors(22, 150, 2)
    huge = gortho.discover(x, 3e-60 * (x**2).sum(1), settings=TINY, look_for="O")
    assert str(huge.formula) == "y = 3e-60 ⟨x,x⟩" and not huge.notices


@pytest.mark.parametrize("output", ["scalar", "vector"])
def test_where_no_term_is_worth_its_price_there_is_no_formula(output):
    """Noise, and a law that a few far outliers drown."""
    x = vectors(5, 900, 1, 3)
    noise = vectors(6, 900) if output == "scalar" else vectors(6, 900, 3)
    assert short_formula(problem(x, noise, EUCLID, output)) is None
    far = np.where(np.arange(900)[(...,) + (None,) * (noise.ndim - 1)] % 100 == 7, 1e4 * noise, 1e-3 * noise)
    short_formula(problem(x, far, EUCLID, output))


@pytest.mark.parametrize("known", [False, True])
def test_the_predictor_has_one_held_out_share(known):
    """Beside the formula and in the line on its error: of the variance of all samples, by their weights."""
    rng = np.random.default_rng(4)
    x, sigma = rng.normal(size=(300, 2)), rng.uniform(0.002, 0.03, 300)
    q = x[:, 0] ** 2 + 2 * x[:, 1] ** 2
    y = 1 / (1 + q) + sigma * rng.normal(size=300)
    settings = gortho.Settings(starts=2, generations=0, finalists=1, refits=4, predictor_steps=40)
    found = gortho.discover(x, y, y_error=sigma if known else None, settings=settings, errors="absolute")
    assert found.formula.far[0] == 0
    assert found.formula.predictor_unexplained == pytest.approx(found.peers[0].relative_mse, rel=1e-6)
    assert found.evidence.own_unexplained == pytest.approx(
        found.peers[0].relative_mse, rel=1e-6
    )  # and in the reason


def test_a_coefficient_that_may_be_zero_is_no_formula():
    term = Term((Monomial((Factor("power", (1,), (1,)),)),), coefficient=0.3, error=0.2)
    formula = Formula(
        "y", (term,), gortho.Symmetry(QuadraticForm.euclidean(2)), "scalar", ("x",), (), ("a", "b")
    )
    assert told_from_zero(formula)
    assert not told_from_zero(replace(formula, terms=(replace(term, error=0.4),)))


def test_sympy_is_the_formula_to_the_last_digit():
    """Small mixed terms of the form are not written, but they are in the formula: light masses are differences."""
    rng = np.random.default_rng(0)
    p, m = 30 * rng.normal(size=(400, 3)), rng.uniform(0.1, 91, 400)
    x = np.column_stack([np.sqrt(m**2 + (p**2).sum(1)), p])
    y = m * (1 + 0.001 * rng.normal(size=400))
    found = gortho.discover(x, y, names=["E", "px", "py", "pz"], settings=Settings(starts=12, refits=4))
    sympy = pytest.importorskip("sympy")
    with np.errstate(invalid="ignore"):  # roots of what noise makes negative
        computed = sympy.lambdify(sympy.symbols("E px py pz", real=True), found.sympy())(*x.T)
    np.testing.assert_allclose(computed, found.formula(x), rtol=1e-6, atol=1e-6)


def test_the_law_in_coordinates_has_the_digits_of_its_errors():
    form = QuadraticForm(torch.diag(torch.tensor([2.0, 0.5])), ["E", "p"])
    term = Term((Monomial((Factor("power", (1,), (1,), 0.5),)),), "", 0.7, 0.0007)
    law = Formula("m", (term,), Symmetry(form), unexplained=1e-4, predictor_unexplained=1e-4)
    A = form.matrix.numpy()
    assert f"that is, m = √({0.49 * A[0, 0]:.3f} E² + {0.49 * A[1, 1]:.4f} p²)" in law.lines()
    wide = replace(law, form_halves=((0.0, 0.0), (0.0, 0.02)))
    assert f"that is, m = √({0.49 * A[0, 0]:.3f} E² + {0.49 * A[1, 1]:.2f} p²)" in wide.lines()
    mixed = replace(law, symmetry=Symmetry(QuadraticForm([[2.0, 0.02], [0.02, 0.5]], ["E", "p"])))
    assert "E·p" in mixed.lines()[-1]
    assert "E·p" not in replace(mixed, form_halves=((0.0, 0.05), (0.05, 0.0))).lines()[-1]


def test_no_formula_is_the_law_of_a_form_that_is_kept_only_nearly():
    term = Term((Monomial((Factor("power", (1,), (1,)),)),), "", 0.5, 0.01)
    law = Formula("y", (term,), Symmetry(EUCLID), unexplained=2e-3, predictor_unexplained=2e-3)
    assert str(law).startswith("y =")
    nearly = replace(law, broken=True)
    assert str(nearly).startswith("y ≈") and "kept only nearly" in nearly.lines()[1]


def test_one_term_that_leaves_digits_is_the_law_of_rounded_data():
    """The mass of a pair without masses, from rounded momenta: more terms would follow the rounding."""
    p = 30 * vectors(5, 1500, 2, 3)
    x = np.concatenate([np.linalg.norm(p, axis=2, keepdims=True), p], axis=2)
    lowered = x[:, 1] * [1, -1, -1, -1]
    mass = np.sqrt(2 * (x[:, 0] * lowered).sum(1))
    law = short_formula(problem(np.round(x, 3), mass, QuadraticForm.minkowski()))
    assert str(law) == "y = 1.41421 √⟨x1,x2⟩" and law.holds and not law.exact
