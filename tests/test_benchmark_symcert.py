"""The benchmark beside SymCert: its problems are what they are called, and its page is what its rows say."""

import csv
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import gortho

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def laws():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield importlib.import_module("_polynomials")
    sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def bench(laws):
    return importlib.import_module("symcert")


@pytest.mark.parametrize("output", ["scalar", "vector"])
@pytest.mark.parametrize("group", [(2, 0), (1, 2), (2, 2)])
def test_laws_keep_what_their_kind_says(laws, group, output):
    n = sum(group)
    dimension = n * (n - 1) // 2
    problems = {kind: laws.hidden(kind, group, output, seed=7) for kind in laws.KINDS}
    found = {kind: laws.defects(problem).spectrum() for kind, problem in problems.items()}
    # ρ is the root of an eigenvalue, so rounding is 1e-8
    assert found["kept"][dimension - 1] < 1e-6 and found["kept"][dimension] > laws.CLEAR
    assert 1e-4 < found["nearly kept"][dimension - 1] < laws.DELTA / 2
    assert found["broken"][0] > laws.CLEAR and found["none"][0] > laws.CLEAR
    own = laws.affine(problems["kept"].form.group().algebra())
    assert laws.defects(problems["kept"]).among(own)[-1] < 1e-6
    assert problems["kept"].violation == 0 < problems["nearly kept"].violation < problems["broken"].violation


def test_polynomials_have_the_degree_that_symcert_is_told(laws):
    for kind in laws.KINDS:
        for output in ("scalar", "vector"):
            problem = laws.hidden(kind, (1, 1), output, seed=3)
            x, y = problem.samples(300, noise=0.0, seed=0)
            columns = np.stack(
                [x[:, list(m)].prod(1).numpy() for m in laws.monomials(2, range(problem.degree + 1))], 1
            )
            left = y.numpy() - columns @ np.linalg.lstsq(columns, y.numpy(), rcond=None)[0]
            assert np.abs(left).max() < 1e-10 * np.abs(y.numpy()).max()


def test_symcerts_own_laws_have_the_defects_of_its_tables(laws):
    """Dimensions of the algebras, and smallest defects, as SymCert's result files have them."""
    published = {
        "Hopf": (1, 0.0), "oscillator": (2, 0.0), "symmetric top": (2, 0.0), "flow to a sphere": (3, 0.0),
        "Van der Pol": (0, 0.24829), "asymmetric top": (0, 0.20628), "anisotropic": (0, 0.10525),
    }  # fmt: skip
    for name, (dimension, least) in published.items():
        found = laws.defects(laws.OWN[name]).spectrum()
        assert (found < 1e-6).sum() == dimension
        assert found[0] == pytest.approx(least, rel=0.01, abs=1e-6)
    turn = laws.affine([[[0.0, 1.0], [-1.0, 0.0]]])
    nearly = laws.defects(laws.OWN["invariant + 0.02 x³"])
    assert nearly.among(turn)[-1] == pytest.approx(0.025244, rel=0.01)


def test_noise_is_a_share_of_the_laws_size(laws):
    problem = laws.hidden("kept", (2, 0), "vector", seed=1)
    clean, noisy = (problem.samples(20_000, noise, seed=5) for noise in (0.0, 0.1))
    assert (clean[0] == noisy[0]).all()
    size = clean[1].square().sum(1).mean().sqrt()
    assert float((noisy[1] - clean[1]).std() / size) == pytest.approx(0.1, rel=0.05)


def test_affine_generators_vanish_at_their_origin(laws):
    S, c = np.array([[[0.0, -1.0], [1.0, 0.0]]]), np.array([0.5, 2.0])
    row = laws.affine(S, c)[0]
    np.testing.assert_allclose(row[:4].reshape(2, 2) @ c + row[4:], 0)


def test_a_claim_is_false_when_one_generator_is(laws, bench):
    problem = laws.hidden("kept", (1, 2), "scalar", seed=7)
    right = laws.affine(problem.form.group().algebra())
    wrong = laws.affine(gortho.QuadraticForm.euclidean(3).group().algebra())
    nothing = np.zeros((0, 12))
    said = {"verdict": "FOUND"}
    assert bench.outcome(said | bench.against_truth(problem, right)) == "detected"
    assert bench.outcome(said | bench.against_truth(problem, right[:1])) == "part"
    assert (
        bench.outcome(said | bench.against_truth(problem, np.concatenate([right, wrong[:1]])))
        == "false claim"
    )
    assert bench.outcome({"verdict": "NONE"} | bench.against_truth(problem, nothing)) == "denied"
    assert bench.outcome({"verdict": "UNDERDETERMINED"} | bench.against_truth(problem, nothing)) == "open"
    none = bench.against_truth(laws.hidden("none", (1, 2), "scalar", seed=7), nothing)
    assert bench.outcome({"verdict": "NONE"} | none) == "rightly denied"


def test_both_methods_are_asked_about_the_same_samples(bench):
    problems = bench.problems(5, 40_000)
    assert len({p["seed"] for p in problems}) == len(problems)
    for p in problems[::7]:
        one, two = (bench.law_of(p).samples(50, p["noise"], p["seed"]) for _ in range(2))
        assert (one[0] == two[0]).all() and (one[1] == two[1]).all()
    cells = {(p["law"], p["noise"]) for p in problems}
    assert all(sum((p["law"], p["noise"]) == cell for p in problems) == 5 for cell in cells)


def test_the_page_is_made_from_the_rows(bench):
    pd = pytest.importorskip("pandas")
    path = ROOT / "results" / "symcert.csv"
    rows = pd.read_csv(path, keep_default_na=False, na_values=["nan", ""])
    page = path.with_suffix(".md").read_text()
    assert page.startswith(bench.HEADING)
    for title, table in bench.tables(rows):
        assert f"## {title}" in page
        for line in table.itertuples(index=False):
            assert (
                "| " + " | ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in line) + " |" in page
            )
    with open(path, newline="") as file:
        counted = sum(1 for _ in csv.DictReader(file))
    whole = bench.counted(bench.in_order(rows), "of")
    assert whole.problems.sum() == counted == whole[list(bench.OUTCOMES)].to_numpy().sum()
