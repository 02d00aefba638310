"""The report page, read as text."""

import dataclasses
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from report_samples import HOSTILE, SAMPLES, classes, found, none, underdetermined, violated

from gortho import QuadraticForm
from gortho.report import FormulaRows, Peer, ReportData, figures, render
from gortho.report.motions import axis_generators, like_units, motion
from gortho.report.words import number, percent, with_interval

FIGURES = {"form", "spectrum", "generators", "errors", "scatter", "equivariance", "restarts"}


class Page(HTMLParser):
    """The tags and the visible text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self._hidden = [], "", False
        self.feed(html)
        self.figures = {attrs.get("id") for tag, attrs in self.tags if tag == "figure"}

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._hidden = tag in ("style", "script")

    def handle_endtag(self, tag):
        self._hidden = False

    def handle_data(self, text):
        self.text += "" if self._hidden else text


@pytest.fixture(scope="module")
def pages():
    return {name: render(sample()) for name, sample in SAMPLES.items()}


def test_found_tells_everything(pages):
    page = Page(pages["found"])
    assert page.figures == FIGURES
    for words in ("Symmetry found", "O(1, 3)", "boost E ↔ px", "rotation px ↔ py", "99%"):
        assert words in page.text
    assert found().headline in page.text and "12,345" in page.text and "95 % interval" in page.text
    assert "not accepted" not in page.text


def test_none_marks_its_candidate(pages):
    page = Page(pages["none"])
    assert "No such symmetry" in page.text and "Best candidate, not accepted" in page.text
    header = pages["none"].split("</header>")[0]
    assert "1.00" not in header.split("<body>")[1] and "Symmetry group" not in page.text
    assert "91%" not in page.text and "Confidence in" not in page.text  # it belongs to a found form


def test_a_violation_is_told_and_drawn(pages):
    page = Page(pages["violated"])
    assert page.figures == FIGURES - {"generators"} | {"defect", "profiles"}
    text = " ".join(page.text.split())
    for words in (
        "broken by 20 to 55 %",
        "more than the tolerance",
        "What breaks it.",
        "(0.00, 0.01, 1.00, 0.02)",
    ):
        assert words in text
    assert (
        "p < 10⁻¹⁶ (one-sided paired t-test of the square roots of the errors" in text
        and "kernel ridge" in text
    )
    assert "the direction (61 %); E (1 %)" in pages["violated"]


def test_an_approximate_form_says_so(pages):
    page = Page(pages["approximate"])
    assert "Symmetry found, not quite exact" in page.text and "nearly keeps it" in page.text
    assert "less the noise that is known (0.1 % of the variance, given)" in " ".join(page.text.split())
    assert page.figures == FIGURES | {"defect"} and "not quite exact" not in pages["found"]


def test_classes_have_confusions_and_reliability(pages):
    page = Page(pages["classes"])
    assert page.figures == (FIGURES - {"scatter"}) | {"defect", "confusion", "reliability"}
    assert "Log loss" in page.text and "log loss of class frequencies" not in page.text  # there are no twins
    truth = classes().true.reshape(-1, 3).argmax(1)
    picture = figures.confusion(classes())
    guess = classes().predicted.reshape(-1, 3).argmax(1)
    assert f">{np.sum((truth == 1) & (guess == 1))}<" in picture
    assert f"{100 * np.mean(truth == guess):.0f}% are right" in picture
    assert figures.reliability(found()) == "" == figures.confusion(found())


def test_probabilities_that_are_kept_lie_near_the_diagonal():
    alt = figures.reliability(classes())
    assert int(re.search(r"differ by (?:&lt; )?(\d+)%", alt)[1]) < 10
    sure = dataclasses.replace(classes(), predicted=np.tile([1.0, 0.0, 0.0], 600))
    assert int(re.search(r"differ by (\d+)%", figures.reliability(sure))[1]) > 50


def test_underdetermined_shows_no_form(pages):
    page = Page(pages["underdetermined"])
    assert "The data cannot tell" in page.text and underdetermined().advice in page.text
    assert not page.figures and "No predictor was tested" in page.text and "candidate" not in page.text


@pytest.mark.parametrize("name", ["none", "underdetermined"])
def test_sections_keep_their_order(pages, name):
    wanted = [
        "What was found",
        "How well it predicts",
        "Is it really symmetric?",
        "How sure are we?",
        "What was done",
    ]
    places = [pages[name].index(f"<h2>{title}</h2>") for title in wanted]
    assert places == sorted(places)


def test_barest_report():
    for verdict in ("FOUND", "NONE", "UNDERDETERMINED"):
        assert "Just this." in render(ReportData(verdict=verdict, headline="Just this."))


def test_hostile_text_stays_text(pages):
    page = Page(pages["broken"])
    assert "script" not in {tag for tag, _ in page.tags}
    assert HOSTILE in page.text and "{{ 7 * 7 }}" in page.text
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)


@pytest.mark.parametrize("name", SAMPLES)
def test_page_is_self_contained(pages, name):
    html, page = pages[name], Page(pages[name])
    assert not re.findall(r"(?:https?:)?//(?!www\.w3\.org/)[\w.]+\.\w+", html)
    assert not re.search(r"@import|url\((?!#)", html)
    for tag, attrs in page.tags:
        assert tag not in ("script", "iframe", "object", "img")
        for link in (attrs.get(key) for key in ("src", "href", "xlink:href")):
            assert link is None or link.startswith(("#", "data:"))


@pytest.mark.parametrize("name", SAMPLES)
def test_pictures_have_words_and_ids_are_unique(pages, name):
    page = Page(pages[name])
    for _, attrs in (tag for tag in page.tags if tag[0] == "svg"):
        assert attrs["role"] == "img" and attrs["aria-label"] and attrs["width"] == "100%"
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert not re.search(r"\b(nan|inf|None)\b", page.text)


def test_many_generators_are_cut_and_said_so(pages):
    assert "The first 10 of 36 are shown." in " ".join(Page(pages["wide"]).text.split())


def test_the_same_data_give_the_same_page(pages):
    assert render(found()) == pages["found"]


def test_data_are_checked():
    with pytest.raises(ValueError, match="MAYBE"):
        ReportData(verdict="MAYBE", headline="")
    with pytest.raises(ValueError, match="3 names"):
        dataclasses.replace(none(), names=["a", "b", "c"])


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_drawing_packages_are_optional(missing):
    code = f"""
import sys
sys.modules["{missing}"] = None
from gortho.report import ReportData, render
assert "matplotlib.figure" not in sys.modules and "jinja2.environment" not in sys.modules
try:
    render(ReportData("NONE", ""))
except ImportError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'gortho[report]'" in result.stdout


@pytest.mark.parametrize(
    "value, text",
    [(0, "0"), (1.2e-5, "1.2×10⁻⁵"), (-1e-7, "−10⁻⁷"), (0.9999, "1.00"), (12345.6, "12,346"), (-np.inf, "−∞"),
     (None, "—"), (6.02e23, "6.02×10²³"), (0.00123, "0.00123")],
)  # fmt: skip
def test_numbers_are_written_for_people(value, text):
    assert number(value) == text


def test_intervals_and_percentages():
    assert with_interval(-0.0004, 0.02) == ("0.000", "±0.020")
    assert with_interval(1.0, np.nan) == ("1.00", "")
    assert with_interval(0.0069, 2e-5) == ("0.006900", "±2×10⁻⁵")
    assert with_interval(-1.73e-6, 1e-8, digits=1) == ("−1.73×10⁻⁶", "±10⁻⁸")
    assert with_interval(1.0, 1e-15)[0] == "1.00000" and with_interval(0.5, 0.4)[0] == "0.500"
    assert with_interval(0.0, 1e-9)[0] == "0.000" and with_interval(2e6, 3e4)[0] == "2×10⁶"
    assert [percent(p) for p in (np.nan, 0, 0.001, 0.5, 0.999, 1)] == [
        "—",
        "0%",
        "< 1%",
        "50%",
        "> 99%",
        "100%",
    ]


@pytest.mark.parametrize("signature", [(3, 0), (1, 2), (2, 2)])
def test_motions_are_named_in_every_frame_and_unit(signature):
    for seed in range(3):
        frame = QuadraticForm.random(*signature, condition=20, seed=seed)
        units = np.diag(10.0 ** np.linspace(-2, 1, frame.n))
        form = QuadraticForm(units @ frame.matrix.numpy() @ units)
        made = axis_generators(form.matrix.numpy())
        kinds = [re.match(r"\w+", motion(g, form.names))[0] for g in made]
        p, q = signature
        assert kinds.count("boost") == p * q and kinds.count("rotation") == len(kinds) - p * q
        frame_of = np.linalg.inv(units)
        moved = [units @ g @ frame_of for g in made]
        A = frame.matrix.numpy()
        assert max(np.abs(g.T @ A + A @ g).max() for g in moved) < 1e-10
        assert np.linalg.matrix_rank(np.reshape(moved, (len(moved), -1))) == form.group().dimension


def test_mixed_units_do_not_make_boosts_of_rotations():
    form = np.diag([0.155, -1.72e-6, -1.73])  # ns, mm and m
    form[0, 2] = form[2, 0] = 7e-5
    names = [motion(g, ["t", "x", "y"]) for g in axis_generators(form)]
    assert names == ["boost t ↔ x", "boost t ↔ y", "rotation x ↔ y"]
    fixed = axis_generators(np.diag([1.0, -1, -1, -1]), np.array([[1.0, 0, 0, 0]]))
    assert [motion(g, ["E", "px", "py", "pz"]).split()[0] for g in fixed] == ["rotation"] * 3
    assert axis_generators(np.diag([1.0, 1.0, 0.0])) is None  # more than rotations and boosts


def test_colours_of_the_form_do_not_depend_on_units():
    matrix = np.diag([0.155, -1.72e-6, -1.73])
    matrix[0, 1] = matrix[1, 0] = 1e-9
    half = np.full((3, 3), 1e-8)
    data = dataclasses.replace(
        found(), names=["t", "x", "y"], matrix=matrix, matrix_low=matrix - half, matrix_high=matrix + half
    )
    tints = [float(t) for t in re.findall(r"fill-opacity:([\d.]+)", figures.form(data))]
    assert tints == [0.55, 0, 0, 0, 0.55, 0, 0, 0, 0.55]
    assert np.allclose(like_units(matrix) ** 2 * np.abs(matrix.diagonal()), 1)


def test_long_names_are_not_cut():
    model = "best of the invariants (equivariant, corrected by a polynomial of sizes of squares)"
    picture = figures.errors([Peer(model, 1.0, 0.1, 0)])
    assert model in picture and "…" not in picture
    label = figures.form(dataclasses.replace(found(3), names=["mmmmm", "x", "y"]))
    x, size = re.search(r'<text x="([\d.]+)"[^>]*font-size="([\d.]+)">mmmmm<', label).groups()
    assert float(x) >= 0.97 * 5 * float(size)  # it ends there, and an m is 0.97 em wide


def test_mixed_units_stay_apart_and_inside_their_cells():
    matrix = np.diag([0.00173123, 1.7312, 0.0069])
    wide = dataclasses.replace(
        found(), names=["V1", "I", "V2"], matrix=matrix, matrix_low=matrix - 1e-6, matrix_high=matrix + 1e-6,
        eigenvalues=np.array([0.00173, 0.0069, 1.73]), eigenvalues_low=None, eigenvalues_high=None, generators=None,
    )  # fmt: skip
    html = render(wide)
    assert "0.0069000" in html
    match = re.search(r'font-size="([\d.]+)">(0\.0017312\d*)<', html)
    cell = float(re.search(r'<rect [^>]*width="(\d+)"', figures.form(wide))[1])
    assert float(match[1]) * 0.6 * len(match[2]) <= cell
    marks = figures.spectrum(wide)
    heights = [
        float(y) for y in re.findall(r'<use [^>]*href="#spectrum-m[^>]* y="([\d.]+)"[^>]*var\(--blue', marks)
    ]
    assert min(-np.diff(heights[:3])) > 10  # rising, and told apart; the last is the legend's


def test_motions_are_named():
    assert motion(np.array([[0, 1.0], [0, 0]]), ["t", "x"]) == "shear t ↔ x"
    names = ["x", "y", "z"]
    assert motion(np.array([[0, 1, 1.0], [-1, 0, 0], [-1, 0, 0]]), names) == "rotation of x, y and z"
    assert motion(np.array([[0, 1, 0.3], [-1, 0, 0], [-0.3, 0, 0]]), names) == "rotation, mainly x ↔ y"
    assert motion(np.diag([0, 0, 1.0]), names) == "stretch"
    both = np.zeros((4, 4))
    both[0, 1], both[1, 0], both[2, 3], both[3, 2] = 1, -1, 0.5, 0.5
    assert motion(both, ["a", "b", "c", "d"]) == "mixed motion"
    assert motion(np.full((2, 2), np.nan), ["x", "y"]) == "mixed motion"


def words(data):
    return " ".join(Page(render(data)).text.split())


def test_an_open_defect_is_a_sentence():
    told = {"defect": (0.0, 0.9), "defect_words": "not known: it may be noise", "defect_open": True}
    text = words(dataclasses.replace(none(), verdict="UNDERDETERMINED", **told))
    assert (
        "How exactly the form is kept is not known: it may be noise." in text and "95 % interval:" not in text
    )
    exact = {"defect": (0.0, 1e-12), "defect_words": "kept to rounding errors"}
    text = words(dataclasses.replace(none(), verdict="UNDERDETERMINED", **exact))
    assert "the form is kept to rounding errors. This is" in text


def test_what_a_form_alone_leaves_over_is_not_said_of_more_than_a_form():
    text = words(violated())
    assert "What breaks it. Of what" in text and "one form alone" not in text
    more = {
        "defect": (0.0, 1e-4),
        "beside": ["a direction"],
        "residual": "O(2)",
        "kept": "q and the direction",
    }
    text = words(dataclasses.replace(violated(), verdict="FOUND", **more))
    assert "What breaks a form alone. Of what" in text and "The answer accounts for it." in text
    assert "keeps q and the direction unchanged" in text and "they make up O(2)" in text
    assert "search for one form alone" in text


def test_what_a_formula_names_is_told():
    formula = FormulaRows(
        "y = ⟨x,b⟩", [("⟨x,b⟩", 1.0, 0.1)], ["leaves nothing"], ["b is the direction (0, 1)"]
    )
    assert "Here b is the direction (0, 1)." in words(dataclasses.replace(found(), formula=formula))
    one = dataclasses.replace(found(), restarts=found().restarts[:1])
    assert "The one search" in words(one) and "All 12 searches" in words(found())
