"""O(A): algebra, random elements, membership, alignment, frames."""

import math

import pytest
import torch
from helpers import SIGNATURES, normal, null_vectors
from jaxtyping import TypeCheckError

from gortho import QuadraticForm
from gortho.groups import algebra_basis, reflection

DEFINITE, INDEFINITE = (3, 0, 0), (1, 3, 0)


def J(form):
    p, q, zero = form.signature
    return torch.diag(torch.tensor([1.0] * p + [-1.0] * q + [0.0] * zero, dtype=torch.float64))


# Lie algebra


@pytest.mark.parametrize("signature", SIGNATURES)
def test_algebra_basis(signature):
    form = QuadraticForm.random(*signature, condition=100, seed=1)
    X, A, n = form.group().algebra(), form.matrix, form.n
    flat = X.flatten(1)
    torch.testing.assert_close(flat @ flat.T, torch.eye(len(X), dtype=torch.float64), rtol=0, atol=1e-12)
    assert (X.mT @ A + A @ X).abs().max() < 1e-12 if len(X) else n == 1
    # The dimension against the null space of X ↦ XᵀA + AX, found without the formula.
    units = torch.eye(n * n, dtype=torch.float64).reshape(-1, n, n)
    rank = torch.linalg.matrix_rank((units.mT @ A + A @ units).flatten(1), rtol=1e-9)
    assert len(X) == form.group().dimension == n * n - int(rank)


def test_algebra_basis_is_batched():
    forms = [QuadraticForm.random(2, 1, seed=seed) for seed in range(6)]
    together = algebra_basis(torch.stack([f.matrix for f in forms]).reshape(2, 3, 3, 3))
    assert together.shape == (2, 3, 3, 3, 3)
    for X, form in zip(together.flatten(0, 1), forms):
        torch.testing.assert_close(X, algebra_basis(form.matrix))


def test_distance_of_a_turned_plane():
    # so(diag(1, b)) is spanned by (b, -1)/√(1 + b²) on the off-diagonal, so the angle is known.
    distance = QuadraticForm.euclidean(2).algebra_distance([[1, 0], [0, 3.0]])
    assert distance == pytest.approx(math.sin(math.atan2(3, 1) - math.pi / 4))


# Elements


@pytest.mark.parametrize("signature", SIGNATURES)
def test_samples_are_in_the_group_and_meet_every_component(signature):
    form = QuadraticForm.random(*signature, condition=10, seed=2)
    group, (p, q, _) = form.group(), form.signature
    g = group.sample(120, seed=3, max_boost=1.0)
    assert group.contains(g).all()
    h = group._standard @ g @ group._standard_inverse
    blocks = [slice(0, p), slice(p, p + q), slice(p + q, form.n)]
    signs = torch.stack([torch.linalg.det(h[:, b, b]).sign() for b in blocks if b.stop > b.start], dim=-1)
    assert len(signs.unique(dim=0)) == 2 ** signs.shape[1]


def test_boost_is_bounded_and_zero_boost_is_compact():
    group = QuadraticForm.minkowski().group()
    # The largest singular value of k₁ b k₂ is that of b: e^rapidity.
    size = torch.linalg.matrix_norm(group.sample(500, max_boost=2.0), ord=2).log()
    assert 1.9 < float(size.max()) <= 2.0 + 1e-12
    g = group.sample(20, max_boost=0.0)
    torch.testing.assert_close(g.mT @ g, torch.eye(4, dtype=torch.float64).expand_as(g))


def test_same_seed_same_elements():
    group = QuadraticForm.random(2, 2, 1, seed=1).group()
    assert torch.equal(group.sample(4, seed=7), group.sample(4, seed=7))
    assert not torch.equal(group.sample(4, seed=7), group.sample(4, seed=8))
    before = torch.random.get_rng_state()
    group.sample(4)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    "options", [{"k": 0}, {"max_boost": -1.0}, {"max_boost": math.nan}, {"max_boost": 40}]
)
def test_bad_requests_for_samples(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} = "):
        QuadraticForm.euclidean(2).group().sample(**{"k": 1} | options)


@pytest.mark.parametrize("signature", [(3, 0, 0), (1, 3, 0), (2, 2, 0), (3, 3, 0), (2, 0, 1), (1, 2, 2)])
@pytest.mark.parametrize("condition", [1.0, 1e3])
def test_membership_rejects_near_misses(signature, condition):
    form = QuadraticForm.random(*signature, condition=condition, seed=4)
    group = form.group()
    g = group.sample(30, seed=5)
    assert group.contains(g).all()
    assert not group.contains(g + 1e-6 * normal(30, form.n, form.n)).any()
    # The direction of the smallest eigenvalue counts as much as the others.
    rank = form.n - form.signature.zero
    values, Q = torch.linalg.eigh(form.matrix)
    weakest = Q[:, values.abs().argsort(descending=True)[rank - 1]]
    assert not group.contains(g @ (torch.eye(form.n) + 1e-6 * torch.outer(weakest, weakest))).any()


@pytest.mark.parametrize("signature", [(3, 0, 0), (2, 2, 0), (2, 0, 1), (1, 1, 2)])
def test_membership_rejects_singular_maps(signature):
    form = QuadraticForm.random(*signature, seed=6)
    group, n = form.group(), form.n
    assert not group.contains(torch.zeros(n, n))
    assert not group.contains(2 * torch.eye(n))
    kill = torch.eye(n, dtype=torch.float64)
    kill[-1, -1] = 0.0  # kills a null direction where there is one, and then leaves q alone
    killing = group._standard_inverse @ kill @ group._standard
    assert not group.contains(killing)
    if form.signature.zero:
        torch.testing.assert_close(killing.T @ form.matrix @ killing, form.matrix)


def test_membership_of_bad_input():
    group = QuadraticForm.euclidean(3).group()
    for g, message in [
        (torch.eye(2), r"\(2, 2\)"),
        (torch.ones(3), r"\(3,\)"),
        (torch.eye(3) * math.nan, "nan"),
    ]:
        with pytest.raises(ValueError, match=message):
            group.contains(g)
    with pytest.raises(TypeError, match="float16"):
        group.contains(torch.eye(3).half())


# Alignment (M3)


def check_alignment(form, x, slack=1.0):
    """W ∈ O(A), W² = I, W x̂ = e; errors relative to what cancels."""
    group, A = form.group(), form.matrix
    W = group.align(x)
    q = form(x)
    unit = x / q.abs().sqrt()[..., None]
    e = torch.stack([group.reference(int(s)) for s in q.sign()])
    size = torch.linalg.matrix_norm(W, keepdim=True)
    eye = torch.eye(form.n, dtype=torch.float64)
    assert ((W @ W - eye).abs() / size**2).max() < 1e-14 * slack
    assert ((W.mT @ A @ W - A).abs() / size**2).max() < 1e-14 * slack
    assert (
        ((W @ unit[..., None])[..., 0] - e).abs() / (size[..., 0] * unit.norm(dim=-1, keepdim=True))
    ).max() < (1e-14 * slack)
    return W


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_alignment_definite(scale):
    form = QuadraticForm.random(3, 0, condition=10, seed=1)
    x = scale * normal(50, 3)
    W = check_alignment(form, x, slack=100)
    torch.testing.assert_close(W @ W, torch.eye(3, dtype=torch.float64).expand_as(W), rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_alignment_semidefinite(scale):
    form = QuadraticForm.random(2, 0, 1, condition=10, seed=2)
    assert (
        form.group().contains(check_alignment(form, scale * normal(50, 3), slack=100), tolerance=1e-8).all()
    )


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_alignment_indefinite(scale):
    form = QuadraticForm.random(1, 3, condition=10, seed=3)
    x = scale * normal(50, 4)
    assert (form(x) > 0).any() and (form(x) < 0).any()  # two references
    check_alignment(form, x, slack=100)


def test_alignment_of_the_reference_and_its_opposite():
    # x̂ - e = 0 for one, x̂ + e = 0 for the other: only one of the two reflections exists.
    group = QuadraticForm.minkowski().group()
    for sign in (1, -1):
        e = group.reference(sign)
        for x in (e, -e):
            torch.testing.assert_close(group.align(x) @ x, e)


@pytest.mark.parametrize("signature", [(1, 3, 0), (2, 2, 0), (1, 2, 1)])
def test_alignment_near_the_null_cone(signature):
    form = QuadraticForm.random(*signature, condition=10, seed=4)
    x = null_vectors(form, 40)
    largest = form.eigenvalues.abs().max()
    e = form.group().reference(1)
    for sign in (1, -1):  # move off the cone until |q| = 1e-9 |x|² max|λ|
        step = sign * 1e-9 * (x * x).sum(-1) * largest / (2 * form.inner(x, e.expand_as(x)))
        near = x + step[:, None] * e
        relative = form(near) / ((near * near).sum(-1) * largest)
        torch.testing.assert_close(relative, torch.full_like(relative, sign * 1e-9), rtol=1e-3, atol=0)
        check_alignment(form, near, slack=1e3)


@pytest.mark.parametrize("signature", [(1, 3, 0), (2, 0, 1), (1, 1, 1)])
def test_null_vectors_have_no_alignment(signature):
    form = QuadraticForm.random(*signature, seed=5)
    x = normal(5, form.n)
    x[3] = null_vectors(form, 1)[0]
    with pytest.raises(ValueError, match=r"1 of 5 .* null cone .*index \(3,\).*leave them out"):
        form.group().align(x)
    with pytest.raises(ValueError, match="null cone"):
        form.group().align(torch.zeros(form.n))


def test_references():
    group = QuadraticForm.random(1, 2, 1, seed=6).group()
    assert group.form(group.reference(1)).item() == pytest.approx(1)
    assert group.form(group.reference(-1)).item() == pytest.approx(-1)
    with pytest.raises(ValueError, match="no value of sign -1"):
        QuadraticForm.euclidean(2).group().reference(-1)


# Frames (M5)


@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize("surplus", [-1, 0, 2])
def test_frame_is_in_the_group_and_its_coordinates_invariant(signature, surplus):
    form = QuadraticForm.random(*signature, condition=5, seed=7)
    group, rank = form.group(), form.n - form.signature.zero
    points = max(1, rank + surplus)
    X = normal(40, points, form.n, seed=8)
    # Random tuples may pass near a degenerate one, where rounding grows: keep those whose frame is of moderate size.
    size = torch.linalg.matrix_norm(group.frame(X)[0])
    X = X[size < 30 * form.n]
    assert len(X) >= 20
    g, coordinates = group.frame(X)
    assert group.contains(g).all()
    torch.testing.assert_close(coordinates, X @ g.mT)
    # Only what the form sees is fixed by the first k = rank vectors: components along the references.
    seen = form.inner(
        coordinates[..., None, :], group._standard_inverse.mT[:rank].expand(*coordinates.shape[:2], -1, -1)
    )
    first = seen[:, 0].abs().sort(dim=-1)[0]  # the first vector lies along one reference
    assert (first[:, :-1] < 1e-9 * first[:, -1:]).all()
    for h in group.sample(4, seed=9):
        moved_g, moved = group.frame(X @ h.T)
        references = group._standard_inverse.mT[:rank].expand(*moved.shape[:2], -1, -1)
        scale = coordinates.abs().amax(dim=(-1, -2), keepdim=True)
        assert ((form.inner(moved[..., None, :], references) - seen).abs() / scale).max() < 1e-9
        if not form.signature.zero and points >= rank:  # then the frame itself is fixed: g(hX) h = g(X)
            assert ((moved_g @ h - g).abs() / torch.linalg.matrix_norm(g, keepdim=True)).max() < 1e-8


def test_degenerate_tuples_have_no_frame():
    group = QuadraticForm.minkowski().group()
    X = normal(3, 2, 4)
    X[1, 1] = 2 * X[1, 0]
    with pytest.raises(ValueError, match=r"1 of 3 tuple\(s\), by their vector 1,"):
        group.frame(X)
    X[1, 0] = torch.tensor([1.0, 1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="by their vector 0,"):
        group.frame(X)
    with pytest.raises(ValueError, match=r"give tuples"):
        group.frame(X[0, 0])


@pytest.mark.parametrize("diagonal", [[1.0, 1.0, 1.0], [1.0, -0.09, -0.09, -0.09], [2.0, -3.0]])
def test_generators_lie_in_planes_of_the_axes(diagonal):
    """Also where eigenvalues are the same, and eigenvectors any: each mixes two coordinates."""
    A = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
    noise = 1e-9 * torch.randn(A.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    generators = QuadraticForm(A + noise + noise.mT).group().algebra()
    assert all(int((X.abs() > 1e-6).sum()) == 2 for X in generators)
    flat = generators.flatten(1)
    torch.testing.assert_close(flat @ flat.mT, torch.eye(len(flat), dtype=torch.float64))
    assert (generators.mT @ A + A @ generators).abs().max() < 1e-7


def test_shapes_in_types_are_checked_while_tests_run():
    with pytest.raises(TypeCheckError, match="reflection"):
        reflection(torch.ones(3, dtype=torch.int64), torch.eye(3))


@pytest.mark.parametrize("signs", [(1, 1, 1), (1, -1, 1)], ids=["definite", "indefinite"])
def test_elements_have_all_digits_in_columns_of_very_different_size(signs):
    sizes = torch.tensor([1e-6, 1e-3, 1e-9], dtype=torch.float64)
    turned = torch.linalg.qr(torch.tensor([[2.0, 1, 0], [1, 3, 1], [0, 1, 4]], dtype=torch.float64))[0]
    B = turned @ torch.diag(torch.tensor([1.0, 2.0, 0.5]) * torch.tensor(signs)).double() @ turned.mT
    A = B / sizes[:, None] / sizes
    form = QuadraticForm(A, tolerance=1e-15)
    g = form.group().sample(8)
    h = g * sizes / sizes[:, None]  # in columns of one size
    torch.testing.assert_close(h.mT @ B @ h, B.expand_as(h), rtol=0, atol=1e-11)
