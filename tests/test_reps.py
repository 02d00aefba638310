"""Representations: homomorphism, derivative, fixed values, reading by name."""

import pytest
import torch
from helpers import NAMES, normal

from gortho import DirectSum, QuadraticForm, Tensor
from gortho.reps import Covector, Metric, Scalar, Vector, as_rep

REPS = [
    *map(as_rep, NAMES),
    Tensor(2, 1),
    Tensor(0, 3),
    as_rep("scalar + 2*vector + form"),
    Tensor(2, 1) + Vector(),
]
SIGNATURES = [(3, 0, 0), (1, 2, 0), (2, 2, 0), (2, 0, 1), (2, 0, 0), (1, 1, 0)]


@pytest.mark.parametrize("rep", REPS, ids=repr)
@pytest.mark.parametrize("signature", SIGNATURES)
def test_homomorphism(rep, signature):
    form = QuadraticForm.random(*signature, seed=1)
    g, h = form.group().sample(10, seed=2).split(5)
    y = normal(5, *rep.shape(form.n))
    torch.testing.assert_close(rep.act(g, rep.act(h, y)), rep.act(g @ h, y), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(rep.act(torch.eye(form.n), y), y)
    torch.testing.assert_close(rep.act(torch.linalg.inv(g), rep.act(g, y)), y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rep", REPS, ids=repr)
@pytest.mark.parametrize("signature", SIGNATURES)
def test_differential_is_the_derivative(rep, signature):
    form = QuadraticForm.random(*signature, seed=3)
    X, y, t = form.group().algebra(), normal(*rep.shape(form.n)), 1e-5
    ahead, behind = (rep.act(torch.linalg.matrix_exp(s * t * X), y) for s in (1, -1))
    torch.testing.assert_close(rep.differential(X, y), (ahead - behind) / (2 * t), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("scalar", lambda g, y: y),
        ("vector", lambda g, y: g @ y),
        ("covector", lambda g, y: torch.linalg.inv(g).T @ y),
        ("conjugation", lambda g, y: g @ y @ torch.linalg.inv(g)),
        ("bilinear", lambda g, y: g @ y @ g.T),
        ("form", lambda g, y: torch.linalg.inv(g).T @ y @ torch.linalg.inv(g)),
    ],
)
def test_named_actions(name, by_hand):
    rep, g = as_rep(name), QuadraticForm.random(1, 2, seed=4).group().sample(1)[0]
    y = normal(*rep.shape(3))
    torch.testing.assert_close(rep.act(g, y), by_hand(g, y))


def test_the_metric_is_fixed():
    form = QuadraticForm.random(1, 2, seed=5)
    g, metric = form.group().sample(5), Metric.of(form)
    torch.testing.assert_close(as_rep("form").act(g, metric.lower), metric.lower.expand(5, 3, 3))
    torch.testing.assert_close(as_rep("bilinear").act(g, metric.upper), metric.upper.expand(5, 3, 3))
    product = metric.lower @ metric.upper
    torch.testing.assert_close(product, product[0, 0] * torch.eye(3, dtype=torch.float64))
    assert Metric.of(QuadraticForm.from_signature(1, 1, 1)).upper is None


def test_leading_axes_broadcast():
    g = QuadraticForm.euclidean(3).group().sample(4)
    for rep in REPS:
        y = normal(2, 1, *rep.shape(3))
        moved = rep.act(g, y)
        assert moved.shape == (2, 4, *rep.shape(3))
        torch.testing.assert_close(moved[1, 2], rep.act(g[2], y[1, 0]))
        assert rep.differential(g, y).shape == moved.shape


# Values fixed by a stabiliser (M4)


def stabiliser(form, e, count):
    """Random elements of O(A) that fix e, q(e) ≠ 0: O(A') of the complement, in a frame that splits off e."""
    complement = torch.linalg.svd((e @ form.matrix)[None])[2][1:]  # rows ⟂_A e
    basis = torch.cat([e[None], complement]).T
    inner = QuadraticForm(complement @ form.matrix @ complement.T).group().sample(count, seed=6)
    blocks = torch.eye(form.n, dtype=torch.float64).repeat(count, 1, 1)
    blocks[:, 1:, 1:] = inner
    return basis @ blocks @ torch.linalg.inv(basis)


def table(name, A, e):
    """The table of M4, by hand."""
    Ae, inverse, eye = A @ e, torch.linalg.inv(A), torch.eye(len(A), dtype=A.dtype)
    return {
        "scalar": [torch.ones((), dtype=A.dtype)],
        "vector": [e],
        "covector": [Ae],
        "conjugation": [eye, torch.outer(e, Ae)],
        "bilinear": [inverse, torch.outer(e, e)],
        "form": [A, torch.outer(Ae, Ae)],
    }[name]


def rank(values):
    return int(torch.linalg.matrix_rank(values.reshape(len(values), -1), rtol=1e-9))


@pytest.mark.parametrize("rep", REPS, ids=repr)
@pytest.mark.parametrize("signature", [(2, 0), (1, 1), (3, 0), (1, 2), (1, 3), (2, 2)])
def test_fixed_values_are_all_values_fixed_by_the_stabiliser(rep, signature):
    form = QuadraticForm.random(*signature, condition=3, seed=7)
    e = form.group().reference(-1 if form.signature.negative else 1)
    h = stabiliser(form, e, 6)
    assert form.group().contains(h).all()
    values = rep.fixed_values(form, e[None])
    for value in values:
        torch.testing.assert_close(rep.act(h, value), value.expand(6, *value.shape), rtol=1e-8, atol=1e-8)
    # The fixed space found numerically: the null space of ρ(h) - 1 over several random h.
    units = torch.eye(rep.size(form.n), dtype=torch.float64).reshape(-1, *rep.shape(form.n))
    moved = torch.stack([(rep.act(g, units) - units).reshape(len(units), -1) for g in h], dim=-1)
    assert rank(values) == len(units) - int(torch.linalg.matrix_rank(moved.flatten(1), rtol=1e-8))


@pytest.mark.parametrize("name", NAMES)
def test_fixed_values_span_the_table(name):
    form = QuadraticForm.random(1, 2, seed=8)
    e = form.group().reference(1)
    ours, expected = as_rep(name).fixed_values(form, e[None]), torch.stack(table(name, form.matrix, e))
    assert rank(ours) == rank(expected) == rank(torch.cat([ours, expected])) == len(expected)


def test_terms_of_a_singular_form_leave_out_the_inverse():
    assert len(Tensor(2, 0).terms()) == 2
    assert len(Tensor(2, 0).terms(singular=True)) == 1
    assert len(Tensor(1, 1).terms(singular=True)) == len(Tensor(0, 2).terms(singular=True)) == 2
    assert len(Tensor(2, 2).terms()) == 1 + 6 + 3


# Direct sums and names


def test_split_and_join():
    rep = as_rep("scalar + vector + 2*form")
    assert (rep.size(3), rep.shape(3)) == (22, (22,))
    y = normal(5, 22)
    pieces = rep.split(y, 3)
    assert [tuple(v.shape) for v in pieces] == [(5,), (5, 3), (5, 3, 3), (5, 3, 3)]
    assert torch.equal(rep.join(pieces), y)
    with pytest.raises(ValueError, match=r"\(5, 21\).*\(22,\)"):
        rep.split(y[:, :21], 3)


def test_reading_by_name():
    assert as_rep(" 2 * vector+scalar ") == DirectSum((Vector(), Vector(), Scalar()))
    assert as_rep("2*vector") == 2 * Vector()
    assert as_rep(Covector()) == Tensor(0, 1)
    assert repr(as_rep("scalar + bilinear")) == "scalar + bilinear" and repr(Tensor(2, 1)) == "Tensor(2, 1)"


@pytest.mark.parametrize("text", ["vectr", "", "vector +", "0*vector", "-1*vector", "vector - scalar"])
def test_unknown_names(text):
    with pytest.raises(ValueError, match="unknown; choose from scalar, vector"):
        as_rep(text)


def test_bad_reps():
    with pytest.raises(TypeError, match=r"output = 3: give a name"):
        as_rep(3)
    with pytest.raises(ValueError, match=r"Tensor\(-1, 0\)"):
        Tensor(-1, 0)
    with pytest.raises(ValueError, match=r"Tensor\(5, 5\)"):
        Tensor(5, 5)
    with pytest.raises(ValueError, match="0 copies"):
        0 * Vector()
    with pytest.raises(ValueError, match="at least one part"):
        DirectSum(())
    with pytest.raises(ValueError, match=r"y has shape \(4,\), but values of vector end in \(3,\)"):
        Vector().act(torch.eye(3), torch.ones(4))
    with pytest.raises(ValueError, match=r"g has shape \(2, 3\)"):
        Vector().act(torch.ones(2, 3), torch.ones(3))
    with pytest.raises(TypeError, match="int64"):
        Vector().act(torch.eye(3), torch.ones(3, dtype=torch.int64))


# Odd tensors (M15)

ODD = [as_rep(f"pseudo{name}") for name in NAMES] + [
    Tensor(2, 1, odd=True),
    as_rep("scalar + 2*pseudovector"),
]


@pytest.mark.parametrize("rep", ODD, ids=repr)
def test_odd_tensors_get_the_sign_of_the_determinant(rep):
    g, h = QuadraticForm.random(1, 2, seed=1).group().sample(20, seed=2).split(10)
    y = normal(10, *rep.shape(3))
    torch.testing.assert_close(rep.act(g, rep.act(h, y)), rep.act(g @ h, y), rtol=1e-9, atol=1e-9)
    assert as_rep(repr(rep)) == rep
    if len(rep.parts) == 1:
        signs = torch.linalg.det(g).round()[(..., *[None] * rep.rank)]
        assert {*signs.flatten().tolist()} == {-1.0, 1.0}
        torch.testing.assert_close(rep.act(g, y), signs * rep.even.act(g, y))
        # A change of units is no density: its determinant's size does not matter.
        torch.testing.assert_close(rep.act(-2 * torch.eye(3), y), -rep.even.act(-2 * torch.eye(3), y))


def test_odd_tensors_are_not_built_of_vectors_and_metric():
    with pytest.raises(ValueError, match="distinguishes left from right"):
        Tensor(1, 0, odd=True).terms()


@pytest.mark.parametrize("name", ["scalar", "vector", "bilinear", "scalar + vector", "vector + bilinear"])
def test_values_are_split_and_joined(name):
    rep = as_rep(name)
    y = normal(5, *rep.shape(3))
    parts = rep.split(y, 3)
    assert [tuple(part.shape[1:]) for part in parts] == [part.shape(3) for part in rep.parts]
    assert torch.equal(rep.join(parts), y)
