"""A discovery in formulas, notebooks and figures."""

from dataclasses import replace

import numpy as np
import pytest

import gortho
from gortho import QuadraticForm, Settings, Symmetry
from gortho.discovery.display import _matrix, symbol
from gortho.discovery.page import report_data
from gortho.discovery.wider.value import Wider
from gortho.discovery.words import named
from gortho.forms import set_off
from gortho.formulas.terms import Factor, Monomial, Term
from gortho.formulas.values import Formula
from gortho.report.data import Peer
from gortho.report.words import percent

TINY = Settings(starts=2, generations=0, finalists=1, refits=2, predictor_steps=20)


def discovery(names):
    x = np.random.default_rng(0).normal(size=(200, 2))
    return gortho.discover(
        x, x[:, 0] ** 2 - 3 * x[:, 0] * x[:, 1] - 2 * x[:, 1] ** 2, settings=TINY, names=names
    )


@pytest.fixture(scope="module")
def found():
    return discovery(["E", "p_1"])


@pytest.fixture(scope="module")
def nothing():
    return gortho.discover(np.random.default_rng(0).normal(size=(50, 2)), np.ones(50))


def test_latex_has_the_terms_of_the_law(found):
    text = found.latex(4, of="q")
    assert text.count("\\,E^{2}") == text.count("\\,E\\,p_{1}") == text.count("\\,p_{1}^{2}") == 1
    plain = text.replace("\\,E\\,p_{1}", " E·p_1").replace("\\,E^{2}", " E²").replace("\\,p_{1}^{2}", " p_1²")
    assert plain == found.law(4)
    assert found._repr_latex_() == f"${found.latex()}$"
    tiny = replace(
        found, candidate=QuadraticForm([[1, 0], [0, -1e-7]], names=["E", "p_1"]), entry_errors=None
    )
    assert "\\cdot 10^{-7}" in tiny.latex()


def test_latex_defines_what_it_names(found):
    """Maps between spaces, origin and directions have their numbers beside the formula."""
    plain = found.formula
    form = plain.symmetry.form
    about = Symmetry(form, origin=[0.5, -3e-8])
    text = replace(found, formula=replace(plain, symmetry=about)).latex()
    assert r"c &= \begin{pmatrix} 0.5 \\ -3 \cdot 10^{-8} \end{pmatrix}" in text and "-c" in text
    along = Symmetry(form, directions=[[0.0, 2.0]])
    text = replace(found, formula=replace(plain, symmetry=along, vectors=("x", "b"))).latex()
    assert r"b &= \begin{pmatrix} 0 \\ 1 \end{pmatrix}" in text
    assert "pmatrix" not in found.latex()
    linked = Symmetry(form, spaces=[0, 1], maps=[[[1.0, 0.0], [0.0, -1.0]]])
    one, two = (1, 0), (0, 1)
    term = Term((Monomial((Factor("power", one, two),)),), coefficient=2.0)
    both = Formula("y", (term,), linked, "scalar", ("u", "v"), (), ("a", "b", "c", "d"))
    text = replace(found, formula=both).latex()
    assert r"\langle u, T\,v\rangle" in text and r"T &= \begin{pmatrix} 1 & 0 \\ 0 & -1" in text


def test_latex_is_set_by_a_typesetter(found):
    mathtext = pytest.importorskip("matplotlib.mathtext")
    for name in ("px", "x12", "mu", "E^2", "log(m) [GeV]", "a_b", "50 %", "p'"):
        mathtext.MathTextParser("agg").parse(
            f"${symbol(name)}^{{2}}$".replace("\\left(", "(").replace("\\right)", ")")
        )


def test_sympy_is_the_form(found):
    sympy = pytest.importorskip("sympy")
    expression = found.sympy(of="q")
    x = np.array([0.3, -1.2])
    value = expression.subs(dict(zip(sympy.symbols("E p_1", real=True), x)))
    assert float(value) == pytest.approx(float(x @ found.candidate.matrix.numpy() @ x))
    assert len(expression.args) == 3


def test_html_tells_verdict_law_and_form(found):
    page = found._repr_html_()
    assert f"<b>{found.verdict.name}</b>" in page and found.law() in page and page.count("<td>") == 4
    assert "<script>" not in replace(found, reason="<script>")._repr_html_()


def test_rounding_is_written_as_zero():
    page = _matrix("A", np.array([[1.0, -5e-17], [-5e-17, 1e-3]]), np.full((2, 2), 3e-9), ("a", "b"))
    assert page.count("<td>0 ± 3e-09</td>") == 2 and "<td>0.001 ± 3e-09</td>" in page


def test_short_repr(found, nothing):
    assert len(repr(found)) < 100 and found.verdict.name in repr(found) and "O(1,1)" in repr(found)
    assert "200 samples in 2 dimensions" in repr(found) and "no form" in repr(nothing)


def test_plot(found, nothing, tmp_path):
    pytest.importorskip("matplotlib")
    figure = found.plot()
    figure.savefig(tmp_path / "a.png")
    form, _, predicted = figure.axes[:3]
    assert [label.get_text() for label in form.get_xticklabels()] == ["E", "p_1"]
    np.testing.assert_array_equal(form.images[0].get_array(), found.candidate.matrix.numpy())
    assert len(predicted.collections[0].get_offsets()) == len(found.held_out[0])
    with pytest.raises(ValueError, match="nothing to plot"):
        nothing.plot()


def test_nothing_found_is_displayed_too(nothing):
    assert nothing.latex() == "" and nothing._repr_latex_() is None
    assert "constant" in nothing._repr_html_()
    with pytest.raises(ValueError, match="there is no form"):
        nothing.sympy()


@pytest.mark.parametrize("name, factor", [("px", "px"), ("x0", "x0"), ("µ", "µ"), ("E^2", "(E^2)"), ("m²", "(m²)"),
    ("log(E)", "(log(E))"), ("p [GeV]", "(p [GeV])"), ("a·b", "(a·b)"), ("0", "(0)"), ("x'", "x'")])  # fmt: skip
def test_names_that_are_no_words_are_set_off(name, factor):
    assert set_off(name) == factor
    law = QuadraticForm([[1, 0.5], [0.5, 1]], names=[name, "q"]).law()
    assert law == f"q(x) = 0.89 {factor}² + 0.89 {factor}·q + 0.89 q²"


def widened(found, symmetry, **more):
    """The discovery with another symmetry, as if that had been found."""
    return replace(found, wider=Wider(symmetry, "more than a form", None, **more))


def test_forms_of_several_spaces_are_all_told(found):
    other = QuadraticForm.euclidean(2)
    both = widened(found, Symmetry([found.candidate, other], spaces=[0, 1]))
    text = both.latex(of="q")
    assert text.startswith("q_{1}(x) = ") and "q_{2}(x) = 1.00" in text
    assert "the form of x2: " in both._repr_html_() and "the form of x2: " in str(both)
    data = report_data(both)
    assert data.group_name == "O(1,1) × O(2)" and data.kept == "all forms"


def test_names_of_a_formula_are_told_wherever_it_is(found):
    along = Symmetry(found.candidate, directions=[[0.0, 2.0]])
    law = replace(found.formula, symmetry=along, vectors=("x", "b"))
    broken = replace(widened(found, along, angle_errors=(0.5,)), formula=law)
    for text in (str(broken), broken._repr_html_()):
        assert "where b is the direction (0.00, 1.00)" in text
    data = report_data(broken)
    assert data.formula.named == ["b is the direction (0.00, 1.00)"] and data.kept == "q and the direction"
    assert data.residual == along.residual_name != data.group_name
    about = replace(
        found, formula=replace(found.formula, symmetry=Symmetry(found.candidate, origin=[0.5, 2.0]))
    )
    assert "where c is the origin (0.5, 2)" in str(about) and "where" not in str(found)


def test_a_line_tells_what_print_does(found):
    axial = widened(found, Symmetry(found.candidate), odd=True)
    assert "with an axial output" in repr(axial)
    along = Symmetry(found.candidate, directions=[[0.0, 2.0]])
    once = replace(widened(found, along, angle_errors=(0.5,), origin_errors=(0.1, 0.1)), refits=1)
    assert "±" not in once.headline() and "nan" not in str(once)  # one refit tells no error


def test_print_and_pages_are_as_sure(found):
    for confidence, told in ((0.9929, "above 99 %"), (0.99, "99 %"), (0.914, "91 %")):
        sure = replace(found, confidence=confidence)
        assert f"(confidence {told})" in sure.headline()
        assert percent(confidence).replace("> ", "above ").replace("%", " %") == told


def test_classes_are_told_as_such(found):
    peers = (Peer("network", 7.85e-06, 7.7e-06, 10),)
    labelled = replace(found, classes=("near", "far"), output="scalar + scalar", peers=peers, held_out=None)
    assert report_data(labelled).output == "class: near, far"
    assert "(below 0.01 % of that of class frequencies)" in str(labelled)


def test_invariants_say_what_they_are_for(found, nothing):
    about = widened(found, Symmetry(found.candidate, origin=[0.5, 2.0]))
    with pytest.raises(ValueError, match=r"one form alone, not for O\(1,1\) about"):
        about.invariants([[1.0, 2.0]])
    with pytest.raises(ValueError, match="not for the verdict UNDERDETERMINED"):
        nothing.invariants([[1.0, 2.0]])


def test_predict_names_the_place_that_is_missing(found):
    with pytest.raises(ValueError, match=r"x holds 1 value\(s\) .* nan at index \(1, 1\)"):
        found.predict([[1.0, 2.0], [1.0, np.nan]])


def test_an_origin_has_the_digits_that_its_errors_leave():
    about = Symmetry(QuadraticForm.euclidean(2), origin=[0.0014623, -9.81123])
    law = Formula("y", (Term((Monomial((Factor("power", (1,), (1,)),)),), "", 0.5, 0.01),), about)
    assert named(law) == ["c is the origin (0.001462, -9.811)"]
    wider = Wider(about, "an origin", 1.0, origin_errors=(0.01, 0.01))
    assert named(law, wider, 2.0) == ["c is the origin (0.00, -9.81)"]


def test_vectors_are_named_by_their_columns():
    form = Symmetry(QuadraticForm.euclidean(2))
    speed = Term((Monomial((Factor("power", (0, 1), (0, 1)),)),), "", 0.5, 0.01)
    law = Formula("E", (speed,), form, "scalar", ("x1", "x2"), (), ("rx", "ry", "vx", "vy"))
    assert named(law) == ["x2 is (vx, vy)"]  # x1 is not in it
    assert not named(replace(law, vectors=("r", "v")))
    assert not named(replace(law, coordinates=("x0_1", "x1_1", "x0_2", "x1_2")))
    assert not named(replace(law, coordinates=()))
