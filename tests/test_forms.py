"""Quadratic forms: gauge, signature, products, comparison, printing, storing; and forms that learn."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
import torch
from helpers import ORDERED_SIGNATURES, normal, principal_angles

import gortho
from gortho import LearnableForm, QuadraticForm, Signature


def diagonal(*values):
    return torch.diag(torch.tensor(values, dtype=torch.float64))


# Gauge (M2)


@pytest.mark.parametrize("signature", ORDERED_SIGNATURES)
@pytest.mark.parametrize("factor", [1.0, -1.0, 1e-9, -4e7])
def test_gauge_does_not_see_scale_and_sign(signature, factor):
    p, q, zero = signature
    A = QuadraticForm.random(p, q, zero, seed=3).matrix
    form, scaled = QuadraticForm(A), QuadraticForm(factor * A)
    torch.testing.assert_close(scaled.matrix, form.matrix, rtol=0, atol=1e-14)
    assert torch.linalg.matrix_norm(form.matrix).item() == pytest.approx(math.sqrt(form.n), rel=1e-14)
    few, many = sorted((p, q))
    assert form.signature == (Signature(many, 0, zero) if few == 0 else Signature(few, many, zero))


def test_minkowski_is_plus_minus_minus_minus():
    assert QuadraticForm(diagonal(-5, 5, 5, 5)).matrix.diagonal().tolist() == [1, -1, -1, -1]
    assert QuadraticForm.minkowski().matrix.diagonal().tolist() == [1, -1, -1, -1]


def test_semidefinite_is_positive():
    assert QuadraticForm(diagonal(-1, -2, 0)).eigenvalues.min() >= 0


@pytest.mark.parametrize("sign", [1, -1])
def test_as_many_of_both_signs_take_the_trace(sign):
    assert QuadraticForm(sign * diagonal(3, -1)).matrix.trace() > 0
    # No trace: the first diagonal entry; no diagonal: the first entry.
    assert QuadraticForm(sign * diagonal(1, -1)).matrix[0, 0] > 0
    assert QuadraticForm([[0, sign], [sign, 0]]).matrix[0, 1] > 0
    assert QuadraticForm([[0, 0, 0], [0, 0, sign], [0, sign, 0]]).matrix[1, 2] > 0


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_gauge_of_tiny_and_huge_matrices(scale):
    assert QuadraticForm(scale * diagonal(1, -1)) == QuadraticForm.minkowski(2)


# Signature and names


def test_signature_has_a_stated_tolerance():
    A = diagonal(1, 1e-4, -1e-9)
    assert QuadraticForm(A).signature == (2, 0, 1)
    assert QuadraticForm(A, tolerance=1e-10).signature == (1, 2, 0)
    assert QuadraticForm(A, tolerance=1e-3).signature == (1, 0, 2)
    assert QuadraticForm(QuadraticForm(A, tolerance=1e-3)).signature == (1, 0, 2)
    with pytest.raises(ValueError, match=r"tolerance = 2\.0"):
        QuadraticForm(A, tolerance=2)


@pytest.mark.parametrize(
    ("signature", "name"),
    [
        ((3, 0), "O(3)"),
        ((0, 3), "O(3)"),
        ((3, 1), "O(1,3)"),
        ((2, 2), "O(2,2)"),
        ((2, 1, 1), "O(1,2) ⋉ degenerate 1"),
        ((2, 0, 2), "O(2) ⋉ degenerate 2"),
    ],
)
def test_group_name(signature, name):
    assert QuadraticForm.from_signature(*signature).group_name == name


@pytest.mark.parametrize("counts", [(0, 0, 2), (-1, 2, 0)])
def test_signatures_that_are_none(counts):
    with pytest.raises(ValueError, match="signature"):
        QuadraticForm.from_signature(*counts)


# Products


def test_products_on_batches():
    form = QuadraticForm.random(2, 2, seed=1)
    X, A = normal(7, 3, 5, 4), form.matrix
    gram = form.gram(X)
    assert gram.shape == (7, 3, 5, 5)
    by_hand = torch.einsum("...ia,ab,...jb->...ij", X, A, X)
    torch.testing.assert_close(gram, by_hand)
    torch.testing.assert_close(form(X), gram.diagonal(dim1=-2, dim2=-1))
    torch.testing.assert_close(form.inner(X[..., :1, :], X), gram[..., 0, :])
    norm = form.norm(X)
    torch.testing.assert_close(norm * norm.abs(), form(X))
    assert (norm < 0).any() and (norm > 0).any()
    assert form.gram(X.float()).dtype == torch.float32


def test_products_take_arrays_and_lists():
    form = QuadraticForm.minkowski(2)
    assert form.norm([[5.0, 3.0], [3.0, 5.0]]).tolist() == [4.0, -4.0]
    assert form(np.array([3.0, 5.0])).item() == -16.0


# Comparison (M8)


def test_cosine():
    E, M = QuadraticForm.euclidean(4), QuadraticForm.minkowski(4)
    assert E.cosine(M) == pytest.approx(0.5)
    assert M.cosine(-3 * M.matrix) == 1.0
    with pytest.raises(ValueError, match="4 and 3 dimensions"):
        E.cosine(QuadraticForm.euclidean(3))


@pytest.mark.parametrize("signature", [(3, 0, 0), (1, 3, 0), (2, 2, 0), (2, 1, 1), (1, 0, 2)])
def test_algebra_distance_is_zero_for_multiples(signature):
    form = QuadraticForm.random(*signature, condition=100, seed=2)
    assert form.algebra_distance(-7 * form.matrix) < 1e-12


@pytest.mark.parametrize("other", [(4, 0, 0), (2, 2, 0), (3, 0, 1), (1, 1, 2)])
def test_algebra_distance_agrees_with_principal_angles(other):
    A, B = QuadraticForm.random(1, 3, seed=4), QuadraticForm.random(*other, seed=5)
    missing = abs(A.group().dimension - B.group().dimension)
    expected = math.sqrt((np.sin(principal_angles(A, B)) ** 2).sum() + missing)
    assert A.algebra_distance(B) == pytest.approx(expected, rel=1e-9)
    assert B.algebra_distance(A) == pytest.approx(expected, rel=1e-9)


def test_missing_directions_are_right_angles():
    # so(1,0,1) = {X : XᵀA + AX = 0} for A = diag(1, 0) has the two dimensions of the second row; so(2) has one.
    d = QuadraticForm.from_signature(1, 0, 1).algebra_distance(QuadraticForm.euclidean(2))
    assert d == pytest.approx(math.sqrt(1 + 0.5))


@pytest.mark.parametrize(("gap", "distance"), [(1e-5, 0.009), (1e-4, 0.028), (1e-3, 0.089)])
def test_rule_of_thumb_for_small_errors(gap, distance):
    # The page's figures are for a random small error in four dimensions: a factor 2 either way.
    ratios = []
    for seed in range(20):
        A = QuadraticForm.minkowski().matrix
        noise = normal(4, 4, seed=seed)
        noise = noise + noise.T
        noise -= (noise * A).sum() / 4 * A
        B = A + noise / torch.linalg.matrix_norm(noise) * 2 * math.sqrt(2 * gap)
        assert 1 - QuadraticForm(A).cosine(B) == pytest.approx(gap, rel=0.01)
        ratios.append(QuadraticForm(A).algebra_distance(B) / distance)
    assert 0.5 < sum(ratios) / 20 < 2


def test_equality_up_to_gauge():
    A = QuadraticForm.random(2, 2, seed=6)
    assert QuadraticForm(-5 * A.matrix, names="abcd") == A
    assert hash(A) == hash(QuadraticForm(-5 * A.matrix))
    assert QuadraticForm(A.matrix + 1e-6 * torch.eye(4)) != A
    assert QuadraticForm.euclidean(3) != A
    assert A != "a form"


# A value


def test_forms_of_different_groups_differ():
    """What is zero in the one is small in the other."""
    small = [
        QuadraticForm(torch.diag(torch.tensor([1.0, e]).double()), tolerance=1e-14) for e in (1e-10, -1e-10)
    ]
    assert [form.group_name for form in small] == ["O(2)", "O(1,1)"] and small[0] != small[1]
    assert small[0] != QuadraticForm([[1, 0], [0, 0]]) and small[0] == QuadraticForm(small[0])


def test_a_form_does_not_change():
    form = QuadraticForm.euclidean(2)
    with pytest.raises(AttributeError, match="does not change"):
        form.names = ("a", "b")
    with pytest.raises(AttributeError, match="does not change"):
        del form.names
    form.matrix.zero_()
    form.eigenvalues.zero_()
    A = torch.eye(2, dtype=torch.float64) * 2**0.5 / 2**0.5
    kept = QuadraticForm(A)
    A.zero_()
    assert form == kept == QuadraticForm.euclidean(2)


def test_law_is_printed_with_names():
    form = QuadraticForm([[1, 0.25, 0], [0.25, -1, 0], [0, 0, -1]], names=["E", "px", "py"])
    assert form.law(3) == "q(x) = 0.980 E² + 0.490 E·px - 0.980 px² - 0.980 py²"
    assert str(QuadraticForm.minkowski(2)) == "q(x) = 1.00 x0² - 1.00 x1²   [O(1,1)]"
    assert QuadraticForm([[-1, 0], [0, 1]]).law() == "q(x) = 1.00 x0² - 1.00 x1²"
    assert (
        QuadraticForm([[-1, 0, 0], [0, -1, 0], [0, 0, 1]]).law() == "q(x) = -1.00 x0² - 1.00 x1² + 1.00 x2²"
    )
    with pytest.raises(ValueError, match="2 names"):
        QuadraticForm.minkowski(3, names=["t", "x"])


def test_law_keeps_small_terms_of_mixed_units():
    form = QuadraticForm(torch.diag(torch.tensor([0.001, 1.0, 0.004])), names=["V1", "I", "V2"])
    assert form.law() == "q(x) = 0.00173 V1² + 1.73 I² + 0.00693 V2²"
    A = form.matrix
    A[0, 1] = A[1, 0] = 0.001 * (A[0, 0] * A[1, 1]) ** 0.5  # nothing in any units
    A[0, 2] = A[2, 0] = 0.1 * (A[0, 0] * A[2, 2]) ** 0.5  # small by its units alone
    assert QuadraticForm(A, form.names).law() == "q(x) = 0.00173 V1² + 0.000693 V1·V2 + 1.73 I² + 0.00693 V2²"
    assert QuadraticForm([[1, 1e-12], [1e-12, 1e-12]]).law() == "q(x) = 1.41 x0²"


def test_numbers_of_a_law_have_the_digits_that_their_intervals_leave():
    form, half = (
        QuadraticForm([[1.0, 0.5], [0.5, -1.0]], ["t", "x"]),
        np.array([[3e-4, 0.02], [0.02, np.nan]]),
    )
    assert form.law(half_widths=half) == "q(x) = 0.8944 t² + 0.89 t·x - 0.89 x²"
    assert form.law(3, half) == "q(x) = 0.894 t² + 0.894 t·x - 0.894 x²"
    assert form.law(half_widths=0 * half) == form.law() == "q(x) = 0.89 t² + 0.89 t·x - 0.89 x²"


def test_law_leaves_out_what_may_be_zero():
    form = QuadraticForm([[1, 0.02, 0], [0.02, 0.03, 0], [0, 0, -1]])
    half = torch.full((3, 3), 0.01)
    shown = form.law()
    assert shown.count("x1²") == 1 and form.law(2, half) == shown
    assert "x1" not in form.law(half_widths=5 * half)
    assert form.law(half_widths=500 * half).count("²") == 2  # large terms stay, settled or not


def test_law_leaves_out_mixed_terms_that_are_beyond_their_intervals_by_chance():
    """Of exact data that were rounded, one of many mixed terms is: a term of 1e-6 is not to be quoted."""
    form = QuadraticForm([[1, 1e-6], [1e-6, -1]])
    assert form.law(half_widths=torch.full((2, 2), 0.7e-6)) == "q(x) = 1.00 x0² - 1.00 x1²"
    assert "x0·x1" in form.law(half_widths=torch.full((2, 2), 1e-7))  # known, if small
    assert "x0·x1" in QuadraticForm([[1, 0.1], [0.1, -1]]).law(half_widths=torch.full((2, 2), 0.07))


ROUND_TRIPS = {
    "repr": lambda form: eval(repr(form)),
    "json": lambda form: QuadraticForm.from_json(form.to_json()),
    "pickle": lambda form: pickle.loads(pickle.dumps(form)),
    "deepcopy": copy.deepcopy,
    "itself": QuadraticForm,
}


@pytest.mark.parametrize("way", ROUND_TRIPS)
@pytest.mark.parametrize("signature", ORDERED_SIGNATURES)
def test_round_trip_to_the_last_bit(way, signature):
    for seed in range(3):
        A = QuadraticForm.random(*signature, condition=1e3, seed=seed).matrix * 0.3
        form = QuadraticForm(A, names=[f"c{i}" for i in range(len(A))], tolerance=2e-5)
        back = ROUND_TRIPS[way](form)
        assert torch.equal(back.matrix, form.matrix)
        assert (back.names, back.tolerance, back.signature) == (form.names, form.tolerance, form.signature)


def test_json_is_plain_and_bad_json_is_named():
    assert json.loads(QuadraticForm.euclidean(2).to_json())["matrix"] == [[1, 0], [0, 1]]
    for text in ("{", "[1]", '{"matrix": [[1]]}', '"form"'):
        with pytest.raises(ValueError, match="not a QuadraticForm written by to_json"):
            QuadraticForm.from_json(text)


# Bad input

BAD_MATRICES = {
    "nan": ([[1, math.nan], [math.nan, 1]], ValueError, "nan at index .*give finite numbers"),
    "inf": ([[math.inf, 0], [0, 1]], ValueError, "inf at index"),
    "not square": ([[1, 2, 3], [2, 1, 0]], ValueError, r"\(2, 3\)"),
    "a batch": (torch.eye(2).expand(3, 2, 2), ValueError, r"\(3, 2, 2\)"),
    "not symmetric": ([[1, 2], [3, 1]], ValueError, r"A\[0,1\] = 2 but A\[1,0\] = 3.*\(A \+ A\.T\) / 2"),
    "barely not symmetric": ([[1, 2], [2 + 1e-7, 1]], ValueError, "not symmetric"),
    "zero": (np.zeros((2, 2)), ValueError, "zero matrix"),
    "empty": (np.zeros((0, 0)), ValueError, r"\(0, 0\)"),
    "ragged": ([[1, 2], [3]], ValueError, "equal rows"),
    "half": (torch.eye(2).half(), TypeError, r"float16.*\.float\(\)"),
    "complex": (np.eye(2) * 1j, TypeError, "complex"),
    "words": ([["a", "b"], ["b", "a"]], TypeError, "real numbers"),
}


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_bad_matrices(case):
    A, kind, message = BAD_MATRICES[case]
    with pytest.raises(kind, match=message):
        QuadraticForm(A)


def test_rounding_is_no_asymmetry_and_integers_are_welcome():
    A = normal(3, 3)
    A = (A + A.T).float()
    A[0, 1] *= 1 + 1e-6
    assert QuadraticForm(A).n == 3
    assert QuadraticForm(np.eye(2, dtype=int)) == QuadraticForm.euclidean(2)


BAD_VECTORS = {
    "nan": ([[1.0, math.nan]], ValueError, r"nan at index \(0, 1\)"),
    "last axis": (torch.zeros(4, 3), ValueError, r"\(4, 3\).*length 2"),
    "integers": (torch.ones(4, 2, dtype=torch.int64), TypeError, r"int64.*\.double\(\)"),
    "half": (torch.ones(4, 2).half(), TypeError, r"float16.*\.float\(\)"),
    "empty": (torch.zeros(0, 2), ValueError, r"empty.*\(0, 2\)"),
    "a number": (3.0, ValueError, "last axis"),
}


@pytest.mark.parametrize("case", BAD_VECTORS)
@pytest.mark.parametrize("door", ["__call__", "norm", "gram", "inner"])
def test_bad_vectors(case, door):
    x, kind, message = BAD_VECTORS[case]
    form = QuadraticForm.euclidean(2)
    method = getattr(form, door)
    with pytest.raises(kind, match=message):
        method(x, x) if door == "inner" else method(x)


def test_gram_needs_tuples():
    with pytest.raises(ValueError, match=r"needs tuples \(\.\.\., p, 2\)"):
        QuadraticForm.euclidean(2).gram([1.0, 2.0])


# Forms that learn (M7)

PARAMETRISATIONS = ("symmetric", "spectral")


@pytest.mark.parametrize("parametrisation", PARAMETRISATIONS)
@pytest.mark.parametrize("signature", [s[:2] for s in ORDERED_SIGNATURES if not s[2]])
def test_learnable_form_starts_at_any_signature(parametrisation, signature):
    n = sum(signature)
    form = LearnableForm(n, seed=3, signature=signature, parametrisation=parametrisation).double()
    A = form.matrix()
    eigenvalues = torch.linalg.eigvalsh(A)
    assert ((eigenvalues > 0).sum(), (eigenvalues < 0).sum()) == signature
    assert torch.linalg.matrix_norm(A).item() == pytest.approx(math.sqrt(n), rel=1e-6)
    assert form.value().signature.zero == 0


@pytest.mark.parametrize("parametrisation", PARAMETRISATIONS)
def test_learnable_form_keeps_its_scale_and_learns(parametrisation):
    truth = QuadraticForm.random(2, 1, condition=2, seed=1)
    form = LearnableForm(3, seed=5, signature=(1, 2), parametrisation=parametrisation).double()
    before = truth.cosine(form.matrix().detach())
    optimizer = torch.optim.Adam(form.parameters(), lr=0.03)
    for _ in range(150):
        optimizer.zero_grad()
        (1 - (form.matrix() * truth.matrix).sum() / 3).backward()
        assert all(p.grad is not None and p.grad.abs().max() > 0 for p in form.parameters())
        optimizer.step()
        assert torch.linalg.matrix_norm(form.matrix()).item() == pytest.approx(math.sqrt(3), rel=1e-12)
    assert truth.cosine(form.matrix().detach()) > max(0.99, before)


def test_random_starts_cover_all_groups():
    found = {LearnableForm(4, seed=seed).value().group_name for seed in range(40)}
    assert found == {"O(4)", "O(1,3)", "O(2,2)"}


@pytest.mark.parametrize("parametrisation", PARAMETRISATIONS)
def test_learnable_form_starts_where_told(parametrisation):
    start = QuadraticForm.random(1, 3, seed=8)
    form = LearnableForm(4, start=start, parametrisation=parametrisation)
    assert start.algebra_distance(form.value()) < 1e-5


@pytest.mark.parametrize("frame", ["random", "axes"])
def test_metric_is_finite_where_an_eigenvalue_changes_sign(frame):
    form = LearnableForm(3, seed=1).double()
    Q = gortho.groups.haar(3, (), torch.Generator().manual_seed(0))
    if frame == "axes":  # where the small eigenvalue can be zero exactly
        Q = torch.eye(3, dtype=torch.float64)
    uppers = []
    for small in (-1e-4, -1e-8, 0.0, 1e-8, 1e-4):
        with torch.no_grad():
            form.entries.copy_(Q * torch.tensor([1.0, -1.2, small], dtype=torch.float64) @ Q.T)
        form.zero_grad()
        upper = form.metric().upper
        (upper * normal(3, 3)).sum().backward()
        assert upper.isfinite().all() and form.entries.grad.isfinite().all()
        assert form.entries.grad.abs().max() < 100
        uppers.append(upper.detach())
    for upper in uppers:  # no jump: A⁻¹ itself would change its sign
        torch.testing.assert_close(upper, uppers[0], rtol=0, atol=1e-3)


def test_metric_is_the_inverse_up_to_a_factor():
    form = LearnableForm(4, seed=1, signature=(1, 3)).double()
    metric = form.metric()
    product = metric.upper @ metric.lower
    torch.testing.assert_close(product, product[0, 0] * torch.eye(4, dtype=torch.float64))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n = 0"),
        ({"n": 3, "signature": (1, 1)}, r"signature \(1, 1\)"),
        ({"n": 3, "parametrisation": "cholesky"}, "cholesky"),
        ({"n": 3, "start": QuadraticForm.euclidean(2)}, "2 dimensions, not 3"),
    ],
)
def test_bad_learnable_forms(options, message):
    with pytest.raises(ValueError, match=message):
        LearnableForm(**options)


def test_a_law_of_rank_one_has_all_its_terms():
    """What counts as a zero eigenvalue is no bound for the terms."""
    a = torch.tensor([1.0, -0.3, 0.1], dtype=torch.float64)
    form = gortho.QuadraticForm(torch.outer(a, a), names=["u", "v", "w"], tolerance=0.5)
    assert form.group_name.startswith("O(1)") and len(form.terms()) == 6
