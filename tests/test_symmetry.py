"""Symmetries as values: reading and printing, groups and what is left of them, the volume form."""

import copy
import pickle
from math import comb

import pytest
import torch
from helpers import SIGNATURES, forms, normal, null_vectors, seeds
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gortho import QuadraticForm, Symmetry, Tensor
from gortho.groups import haar
from gortho.reps import Metric, as_rep
from gortho.stabiliser import Stabiliser
from gortho.volume import Volumes, assemble_odd, minors, odd_terms, partial_volumes

REGULAR = [s for s in SIGNATURES if not s[2]]
EUCLIDEAN, LORENTZ = QuadraticForm.euclidean(3), QuadraticForm.minkowski()
SPLIT = QuadraticForm.from_signature(2, 2)


@st.composite
def symmetries(draw, signatures=REGULAR, null=True):
    """One form of any signature, with or without handedness, directions (null ones too) and origin."""
    form = draw(forms(signatures))
    count = draw(st.integers(0, min(2, form.n)))
    seed = draw(seeds)
    s = normal(count, form.n, seed=seed)
    indefinite = form.signature.positive and form.signature.negative
    if null and count and indefinite and draw(st.booleans()):
        s[0] = null_vectors(form, 1, seed=seed)[0]
    origin = normal(form.n, seed=seed + 1) if draw(st.booleans()) else None
    return Symmetry(form, special=draw(st.booleans()), directions=s if count else None, origin=origin)


# Printing, reading, storing

TEXTS = [
    "O(3)",
    "SO(3)",
    "SO(1,3)",
    "O(3), broken along (0.00, 0.00, 1.00)",
    "O(3) about (0.5, -0.3, 0.8)",
    "O(3) on x1, O(1,2) on x2",
    "O(3) on x1, x2 and x4, O(1,2) on x3",
    "O(3) on x1 and x3, with x2 in a frame of its own",
    "O(1,2) on x2, with x1 in a frame of its own, with x3 in a frame of its own",
    "O(2) ⋉ degenerate 1",
    "SO(2) about (1, 2), broken along (-0.60, 0.80)",
    "O(4), broken along (1.00, 0.00, 0.00, 0.00) and (0.00, -0.60, 0.80, 0.00)",
]


@pytest.mark.parametrize("text", ["O(2)", "O(1,1)", "SO(2)", "O(2) ⋉ degenerate 1", "Sp(2)", "Sp(4)", "U(2)"])
@pytest.mark.parametrize("unit", [1e-6, 1e-4, 1e4])
def test_units_change_no_group(text, unit):
    symmetry = Symmetry.parse(text)
    T = torch.eye(symmetry.n, dtype=torch.float64)
    T[0, 0] = unit
    for other in (symmetry.in_basis(T), symmetry.in_basis(T).in_basis(torch.linalg.inv(T))):
        assert other.group_name == text
    assert other == symmetry


def test_units_change_no_group_of_several_spaces():
    symmetry = Symmetry.parse("O(3) on x1, with x2 in a frame of its own")
    maps = torch.diag(torch.tensor([1.0, 1e-5, 1.0], dtype=torch.float64))[None]
    assert [form.group_name for form in Symmetry(symmetry.form, spaces=[0, 1], maps=maps).forms] == [
        "O(3)",
        "O(3)",
    ]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_printed_is_read(text):
    symmetry = Symmetry.parse(text)
    assert str(symmetry) == text
    assert Symmetry.of(text) == symmetry == eval(repr(symmetry))


@given(symmetries())
def test_stored_to_the_last_bit(symmetry):
    for again in (
        Symmetry.from_json(symmetry.to_json()),
        pickle.loads(pickle.dumps(symmetry)),
        copy.deepcopy(symmetry),
        eval(repr(symmetry)),
    ):
        assert again == symmetry and hash(again) == hash(symmetry)
        assert torch.equal(again.directions, symmetry.directions)
        assert torch.equal(again.form.matrix, symmetry.form.matrix)
        assert (again.origin is None) == (symmetry.origin is None)
        if again.origin is not None:
            assert torch.equal(again.origin, symmetry.origin)


def test_lengths_signs_and_order_of_directions_mean_nothing():
    one = Symmetry(EUCLIDEAN, directions=[[0, 0, -9.8], [0, 2, 0]])
    other = Symmetry(EUCLIDEAN, directions=[[0, 1, 1], [0, -3, 5]])
    assert one == other and str(Symmetry(EUCLIDEAN, directions=[[0, 0, -9.8]])).endswith("(0.00, 0.00, 1.00)")
    assert one != Symmetry(EUCLIDEAN, directions=[[0, 0, 1]]) != Symmetry(EUCLIDEAN, directions=[[0, 1, 1]])


def test_an_origin_along_the_direction_means_nothing():
    along, across = ([0.0, 0.0, 5.0], [1.0, 0.0, 0.0])
    broken = Symmetry(EUCLIDEAN, directions=[[0, 0, 1]])
    assert broken == Symmetry(EUCLIDEAN, directions=[[0, 0, 1]], origin=along)
    assert broken != Symmetry(EUCLIDEAN, directions=[[0, 0, 1]], origin=across)
    assert Symmetry(EUCLIDEAN) == Symmetry(EUCLIDEAN, origin=[0, 0, 0.0]) != Symmetry(EUCLIDEAN, origin=along)


def test_the_simplest_case_is_a_form():
    symmetry = Symmetry.of(LORENTZ)
    assert symmetry.plain and symmetry.group_name == symmetry.residual_name == str(symmetry) == "O(1,3)"
    assert torch.equal(symmetry.sample(4, seed=3), LORENTZ.group().sample(4, seed=3))
    assert torch.equal(symmetry.generators, LORENTZ.group().algebra())
    assert not Symmetry(EUCLIDEAN, special=True).plain


def test_a_symmetry_does_not_change():
    symmetry = Symmetry(EUCLIDEAN, directions=[[0, 0, 1]], origin=[1.0, 2.0, 3.0])
    symmetry.directions[0, 0] = 7.0
    symmetry.origin[0] = 7.0
    assert str(symmetry) == "O(3) about (1, 2, 3), broken along (0.00, 0.00, 1.00)"
    with pytest.raises(AttributeError, match="does not change"):
        symmetry.special = True


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("GL(3)", "is not a group"),
        ("O(3) broken", "names no symmetry"),
        ("O(3), broken along (a, 0, 1)", "not a vector of numbers"),
        ("O(3), broken along (0, 1)", r"give \(d, 3\)"),
        ("O(3) on x1, O(2) on x3", "for each of x1, x2"),
        ("SO(3) on x1, O(3) on x2", "leave out special"),
    ],
)
def test_unreadable_text(text, match):
    with pytest.raises(ValueError, match=match):
        Symmetry.parse(text)


SINGULAR = QuadraticForm.from_signature(2, 0, 1)


@pytest.mark.parametrize(
    ("forms", "options", "match"),
    [
        (EUCLIDEAN, {"directions": [[0, 0, 0]]}, "direction is zero"),
        (EUCLIDEAN, {"directions": [[0, 0, 1], [0, 0, 2]]}, "not independent"),
        (EUCLIDEAN, {"directions": [0, 0, 1]}, r"give \(d, 3\)"),
        (EUCLIDEAN, {"origin": [[0.0, 0, 1]]}, "give one point"),
        (SINGULAR, {"special": True}, "singular"),
        (SINGULAR, {"directions": [[0, 0, 1]]}, "singular"),
        ([EUCLIDEAN, EUCLIDEAN], {}, "index of its form"),
        ([EUCLIDEAN, EUCLIDEAN], {"spaces": [0, 0]}, "every form a vector"),
        ([EUCLIDEAN, EUCLIDEAN], {"spaces": [0, 1], "origin": [0.0, 0, 1]}, "leave out special"),
        ([], {}, "at least one"),
    ],
)
def test_what_is_no_symmetry(forms, options, match):
    with pytest.raises(ValueError, match=match):
        Symmetry(forms, **options)


# Groups and what is left of them (M16)


@pytest.mark.parametrize(
    ("form", "directions", "special", "name"),
    [
        (EUCLIDEAN, [[0, 0, 1]], False, "O(2)"),
        (EUCLIDEAN, [[0, 0, 1]], True, "SO(2)"),
        (EUCLIDEAN, [[0, 0, 1], [1, 2, 3]], False, "O(1)"),
        (EUCLIDEAN, [[0, 0, 1], [1, 2, 3]], True, "trivial"),
        (EUCLIDEAN, [[0, 0, 1], [1, 2, 3], [1, 0, 0]], False, "trivial"),
        (LORENTZ, [[1, 0, 0, 0]], False, "O(3)"),
        (LORENTZ, [[5, 1, 0, 2]], False, "O(3)"),
        (LORENTZ, [[0, 1, 0, 0]], False, "O(1,2)"),
        (LORENTZ, [[1, 0, 0, 1]], False, "O(2) with 2 null rotations (a direction is null)"),
        (LORENTZ, [[1, 0, 0, 1]], True, "SO(2) with 2 null rotations (a direction is null)"),
        (LORENTZ, [[1, 0, 0, 1], [1, 0, 0, -1]], False, "O(2)"),
        (LORENTZ, [[1, 0, 0, 1], [0, 1, 0, 0]], False, "O(1) with 1 null rotation (a direction is null)"),
        (SPLIT, [[1, 0, 1, 0], [0, 1, 0, 1]], False, "1 null rotation (a direction is null)"),
        (QuadraticForm.from_signature(1, 1), [[1, 1]], False, "trivial (a direction is null)"),
    ],
)  # fmt: skip
def test_names_of_what_is_left(form, directions, special, name):
    assert Symmetry(form, directions=directions, special=special).residual_name == name
    # In another frame, with other units, it is the same group.
    T = normal(form.n, form.n, seed=1) + 2 * torch.eye(form.n)
    assert Symmetry(form, directions=directions, special=special).in_basis(T).residual_name == name


@settings(max_examples=100)
@given(symmetries(), seeds)
def test_elements_keep_what_they_must(symmetry, seed):
    form, g = symmetry.form, symmetry.sample(20, seed)
    assert symmetry.contains(g).all() and form.group().contains(g).all()
    assert symmetry.contains(g[:10] @ g[10:]).all() and symmetry.contains(torch.linalg.inv(g)).all()
    for s in symmetry.directions:
        torch.testing.assert_close(g @ s, s.expand(20, -1), rtol=1e-9, atol=1e-9)
    if symmetry.special:
        assert (torch.linalg.det(g) > 0).all()
    if symmetry.origin is not None:
        torch.testing.assert_close(symmetry.act(g, symmetry.origin[None]), symmetry.origin.expand(20, 1, -1))


@settings(max_examples=60)
@given(symmetries())
def test_generators_are_all_generators(symmetry):
    form, X = symmetry.form, symmetry.generators
    m = form.n - len(symmetry.directions)
    assert len(X) == m * (m - 1) // 2
    assume(len(X) > 0)
    assert torch.linalg.matrix_rank(X.flatten(1), rtol=1e-9) == len(X)
    assert symmetry.contains(torch.linalg.matrix_exp(0.3 * X / X.flatten(1).norm(dim=1)[:, None, None])).all()
    # By brute force: elements of so(A) that send the directions to zero.
    whole = form.group().algebra()
    if len(symmetry.directions):
        moved = (whole @ symmetry.directions.mT).flatten(1)
        assert int(torch.linalg.matrix_rank(moved, rtol=1e-9)) == len(whole) - len(X)


def test_samples_come_from_every_component():
    for text, components in [("O(3), broken along (0, 0, 1)", 2), ("O(1,3), broken along (0, 1, 0, 0)", 4)]:
        symmetry = Symmetry.parse(text)
        g = symmetry.sample(100)
        signs = {
            (float(m[0, 0].sign()) if components == 4 else 0.0, float(torch.linalg.det(m).sign())) for m in g
        }
        assert len(signs) == components
    null = Symmetry(LORENTZ, directions=[[1, 0, 0, 1]])
    assert {round(float(torch.linalg.det(m))) for m in null.sample(50)} == {-1, 1}


def test_elements_outside_are_told():
    reflection, turn = torch.diag(torch.tensor([1.0, 1, -1])), torch.diag(torch.tensor([-1.0, -1, 1]))
    assert Symmetry.parse("O(3)").contains(reflection) and not Symmetry.parse("SO(3)").contains(reflection)
    assert not Symmetry.parse("O(3), broken along (0, 0, 1)").contains(reflection)
    assert Symmetry.parse("SO(3), broken along (0, 0, 1)").contains(turn)
    small = torch.linalg.matrix_exp(1e-6 * Symmetry.parse("O(3)").generators.sum(0))
    assert not Symmetry.parse("O(3), broken along (0, 0, 1)").contains(small)
    assert not Symmetry.parse("O(3)").contains(2 * torch.eye(3))


@given(symmetries(), seeds)
def test_a_form_is_known_up_to_its_pencil(symmetry, seed):
    # A + c (As)(As)ᵀ serves a law with a direction s as well as A does: the residual algebra is the same (M16).
    assume(len(symmetry.directions) == 1 and symmetry.form.n > 1)
    A, s = symmetry.form.matrix, symmetry.directions[0]
    for c in (0.3, 2.0):
        B = A + c * torch.outer(A @ s, A @ s)
        assume(QuadraticForm(B).eigenvalues.abs().min() > 1e-3)
        g = Symmetry(B, directions=s[None], special=symmetry.special).sample(5, seed)
        assert symmetry.contains(g, tolerance=1e-7).all()


def test_several_spaces():
    symmetry = Symmetry([EUCLIDEAN, QuadraticForm.minkowski(3)], spaces=[0, 1, 0])
    g = symmetry.sample(6, seed=1)
    assert g.shape == (6, 2, 3, 3) and symmetry.contains(g).all() and not symmetry.contains(g.flip(1)).any()
    assert symmetry.generators.shape == (6, 2, 3, 3) and symmetry.group_name == "O(3) × O(1,2)"
    x = normal(5, 3, 3)
    moved = symmetry.act(g[0], x)
    torch.testing.assert_close(moved[:, 1], x[:, 1] @ g[0, 1].T)
    torch.testing.assert_close(moved[:, 2], x[:, 2] @ g[0, 0].T)
    with pytest.raises(ValueError, match="2 vectors in a sample"):
        symmetry.act(g[0], x[:, :2])
    with pytest.raises(ValueError, match=r"give \(..., 2, 3, 3\)"):
        symmetry.contains(g[0, 0])


@given(forms(), seeds)
def test_spaces_that_move_together(form, seed):
    """The maps take the elements of one space to those of the other; in other coordinates, too (M17)."""
    n = form.n
    assume(n > 1)
    T, B = haar(n, (2,), torch.Generator().manual_seed(seed)) + 0.1 * normal(2, n, n, seed=seed)
    symmetry = Symmetry(form, spaces=[1, 0], maps=[-7 * T])
    assert symmetry.linked and Symmetry.from_json(symmetry.to_json()) == symmetry
    assert symmetry == Symmetry(form, spaces=[1, 0], maps=[T]) != Symmetry(form, spaces=[1, 0], maps=[B])
    g = symmetry.sample(3, seed)
    assert bool(symmetry.contains(g, 1e-8).all())
    x = normal(3, 2, n, seed=seed)
    a, b = (torch.einsum("zia,iba->zib", v, symmetry.frames) for v in (x, symmetry.act(g, x)))
    assert torch.allclose(a @ form.matrix @ a.mT, b @ form.matrix @ b.mT, atol=1e-8 * float(b.square().sum()))
    other, back = symmetry.in_basis(B), torch.linalg.inv(B)
    assert bool(other.contains(B @ g @ back, 1e-6).all())
    if len(symmetry.generators):
        apart = g.clone()
        apart[:, 1] = form.group().sample(3, seed + 1)
        assert not bool(symmetry.contains(apart, 1e-8).any())


def test_action_about_an_origin_on_axial_vectors():
    c, g = torch.tensor([1.0, -2.0, 0.5]).double(), Symmetry.parse("O(3)").sample(1, seed=1)[0]
    g = g if torch.linalg.det(g) < 0 else -g
    x = normal(4, 2, 3)
    torch.testing.assert_close(Symmetry(EUCLIDEAN, origin=c).act(g, x), c + (x - c) @ g.T)
    torch.testing.assert_close(Symmetry(EUCLIDEAN).act(g, x, axial=[1])[:, 1], -x[:, 1] @ g.T)


def test_the_group_of_a_nearly_null_direction_is_sampled_to_rounding():
    for angle in (1e-1, 1e-2, 1e-4, 1e-7, 1e-10, 0.0):
        symmetry = Symmetry(LORENTZ, directions=[[1, 0, 0, 1 - angle]])
        g, s = symmetry.sample(20, seed=2), symmetry.directions[0]
        assert (g @ s - s).abs().max() < 1e-11 and LORENTZ.group().contains(g).all()


# The volume form (M15)


@pytest.mark.parametrize("n", range(1, 7))
def test_partial_volumes_are_determinants(n):
    Z = normal(3, n + 1, n, seed=n)
    torch.testing.assert_close(partial_volumes(Z, 0)[:, 0], torch.linalg.det(Z[:, :n]))
    assert minors(Z, n - 1).shape == (3, comb(n + 1, n - 1), comb(n, n - 1))
    for free in range(1, min(n, 3) + 1):
        filled, w = partial_volumes(Z, free)[:, 0], normal(free, n, seed=9)
        for v in w:  # filling the free slots, first to last
            filled = torch.tensordot(filled, v, dims=([1], [0]))
        expected = torch.linalg.det(torch.cat([Z[:, : n - free], w.expand(3, -1, -1)], 1))
        torch.testing.assert_close(filled, expected)


def test_in_three_dimensions_it_is_the_cross_product():
    Z = normal(4, 2, 3)
    torch.testing.assert_close(partial_volumes(Z, 1)[:, 0], torch.linalg.cross(Z[:, 0], Z[:, 1]))


ODD = ["pseudoscalar", "pseudovector", "pseudocovector", "pseudoconjugation", "pseudobilinear", "pseudoform"]


@pytest.mark.parametrize("rep", [*map(as_rep, ODD), Tensor(2, 1, odd=True)], ids=repr)
@pytest.mark.parametrize("signature", [(1, 0), (2, 0), (1, 1), (3, 0), (1, 2), (1, 3)])
def test_odd_terms_span_what_reflections_turn_round(rep, signature):
    # All values fixed by the stabiliser of k vectors under the odd action, found numerically, for every k (M15).
    form = QuadraticForm.random(*signature, condition=3, seed=2)
    n, metric = form.n, Metric.of(form)
    for k in range(n + 1):
        vectors = normal(k, n, seed=3)
        terms = odd_terms(rep, n, k)
        shapes = [term.shape(n, k, k) for term in terms]
        h = Stabiliser(form, vectors).sample(8, seed=4)
        units = torch.eye(rep.size(n), dtype=torch.float64).reshape(-1, *rep.shape(n))
        moved = torch.stack([(rep.act(g, units) - units).reshape(len(units), -1) for g in h], -1)
        fixed = len(units) - int(torch.linalg.matrix_rank(moved.flatten(1), atol=1e-8))
        sizes = [torch.Size(shape).numel() for shape in shapes]
        if not sum(sizes):
            assert fixed == 0, (k, fixed)
            continue
        choice = torch.eye(sum(sizes), dtype=torch.float64).split(sizes, dim=-1)
        c = [one.reshape(sum(sizes), *shape) for one, shape in zip(choice, shapes)]
        X = vectors.expand(sum(sizes), -1, -1)
        values = assemble_odd(
            rep, terms, c, Volumes(X, torch.eye(n).double(), metric.upper), X, X @ metric.lower, metric
        )
        for value in values:
            torch.testing.assert_close(rep.act(h, value), value.expand(8, *value.shape), rtol=1e-8, atol=1e-8)
        assert int(torch.linalg.matrix_rank(values.reshape(len(values), -1), rtol=1e-9)) == fixed, k
