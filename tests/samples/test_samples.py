"""Samples and their frame as values, and the door that they come through."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from helpers import ORDERED_SIGNATURES, normal, seeds
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import gortho
from gortho import QuadraticForm
from gortho.reps import DirectSum, Scalar, Vector, as_rep
from gortho.samples import DataError
from gortho.samples.checks import weights_of
from gortho.samples.door import enter, hopeless, split_scalars
from gortho.samples.frame import Frame, form_distance, unit_form
from gortho.samples.spaces import side_by_side
from gortho.samples.values import ROWS, Samples


def everything(count=12, rep="vector", n=3):
    """Samples with every field filled."""
    return Samples(
        normal(count, 2, n),
        normal(count, *as_rep(rep).shape(n), seed=1),
        as_rep(rep),
        normal(count, 2, 1, seed=2),
        normal(count, 2, seed=3),
        normal(count, seed=4).abs(),
        torch.arange(2 * count).reshape(count, 2) % 3 > 0,
        True,
        tuple("abcdef"[:n]),
        normal(count, seed=5).abs(),
        torch.arange(count) // 3,
    )


def assert_same(one, other):
    for field in dataclasses.fields(Samples):
        a, b = getattr(one, field.name), getattr(other, field.name)
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b, field.name


# Samples


@pytest.mark.parametrize(
    "index", [slice(2, 7), torch.tensor([5, 0, 5]), torch.arange(12) % 4 == 1], ids=["slice", "rows", "mask"]
)
def test_rows_takes_the_same_rows_of_every_field(index):
    whole = everything()
    some = whole.rows(index)
    for name in ROWS:
        assert torch.equal(getattr(some, name), getattr(whole, name)[index]), name
    assert (some.rep, some.set_like, some.names) == (whole.rep, whole.set_like, whole.names)


@pytest.mark.parametrize("name", ROWS[1:])
def test_fields_of_different_lengths_are_refused(name):
    whole = everything()
    with pytest.raises(ValueError, match=f"different lengths.*'{name}': 11"):
        dataclasses.replace(whole, **{name: getattr(whole, name)[:-1]})


def test_samples_and_frames_are_frozen():
    whole, frame = everything(), Frame(torch.eye(3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        whole.x = normal(12, 2, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        frame.W = torch.zeros(3, 3)


def test_split_is_a_partition_that_the_seed_fixes():
    whole = everything()
    parts = whole.split([3, 4, 5], seed=7)
    assert [len(part) for part in parts] == [3, 4, 5]
    # Every row is there once, with its own weight, mask and scalars.
    joined = Samples.cat(parts)
    order = joined.x[:, 0, 0].argsort()
    assert_same(joined.rows(order), whole.rows(whole.x[:, 0, 0].argsort()))
    assert_same(Samples.cat(whole.split([3, 4, 5], seed=7)), joined)
    assert not torch.equal(Samples.cat(whole.split([3, 4, 5], seed=8)).x, joined.x)
    with pytest.raises(RuntimeError):
        whole.split([3, 4])


def test_cat_undoes_cutting_and_keeps_what_is_absent_absent():
    whole = everything()
    assert_same(Samples.cat([whole.rows(slice(0, 5)), whole.rows(slice(5, None))]), whole)
    bare = Samples(normal(4, 1, 2), normal(4))
    joined = Samples.cat([bare, bare])
    assert (
        len(joined) == 8 and joined.weights is None and joined.mask is None and joined.scalars == (None, None)
    )


def test_to_changes_numbers_and_not_the_mask():
    whole = everything().to(torch.float32)
    assert {getattr(whole, name).dtype for name in ROWS if name not in ("mask", "bundles")} == {torch.float32}
    assert whole.mask.dtype is torch.bool and whole.bundles.dtype is torch.int64
    meta = everything().to("meta")
    assert {getattr(meta, name).device.type for name in ROWS} == {"meta"} and meta.mask.dtype is torch.bool


def test_with_targets_changes_targets_alone():
    whole = everything()
    other = whole.with_targets(normal(12, seed=9), Scalar())
    assert other.rep == Scalar() and torch.equal(other.y, normal(12, seed=9))
    assert other.x is whole.x and other.weights is whole.weights and other.mask is whole.mask
    assert whole.with_targets(2 * whole.y).rep == whole.rep
    with pytest.raises(ValueError, match="different lengths"):
        whole.with_targets(normal(11), Scalar())


@pytest.mark.parametrize(
    "rep", ["scalar", "vector", "covector", "conjugation", "bilinear", "form", "scalar + vector + covector"]
)
def test_in_frame_moves_inputs_and_targets_and_comes_back(rep):
    whole, frame = everything(rep=rep), Frame(normal(3, 3, seed=5))
    moved = whole.in_frame(frame)
    torch.testing.assert_close(moved.x, torch.einsum("ab,zpb->zpa", frame.W, whole.x))
    if rep == "scalar":
        assert torch.equal(moved.y, whole.y)
    if rep == "covector":  # pairings with vectors do not depend on the frame
        pairings = [torch.einsum("zpa,za->zp", s.x, s.y) for s in (moved, whole)]
        torch.testing.assert_close(*pairings)
    if rep == "vector":
        torch.testing.assert_close(moved.y, whole.y @ frame.W.mT)
    back = moved.in_frame(Frame(frame.inverse))
    torch.testing.assert_close(back.x, whole.x)
    torch.testing.assert_close(back.y, whole.y)
    for name in set(ROWS) - {"x", "y", "noise"}:
        assert getattr(moved, name) is getattr(whole, name)
    if rep == "scalar":
        torch.testing.assert_close(moved.noise, whole.noise)


def test_shapes_names_and_variance():
    whole = everything()
    assert (len(whole), whole.points, whole.n) == (12, 2, 3)
    assert whole.network_options() == {
        "points": 2,
        "point_scalars": 1,
        "sample_scalars": 2,
        "set_like": True,
    }
    assert repr(whole).startswith("Samples(12 of set of 2 x R^3 -> ") and "weights, mask, noise" in repr(
        whole
    )
    bare = Samples(normal(5, 1, 3), torch.tensor([1.0, 1.0, 1.0, 1.0, 6.0]))
    assert bare.names == ("x0", "x1", "x2") and bare.variance == pytest.approx(4.0)


# Frame


def lopsided(count=400, points=2, n=3, seed=0):
    """Vectors whose fourth moments differ by direction and whose odd ones do not vanish."""
    x = normal(count, points, n, seed=seed)
    return x + 0.3 * torch.arange(1, n + 1) * x**2 + 0.2 * torch.arange(n)


def test_second_moments_are_the_identity():
    for x in (lopsided(), 1e-25 * lopsided(), lopsided() * torch.tensor([1e-4, 1.0, 1e4])):
        z = (x @ Frame.of(x).W.mT).reshape(-1, 3)
        torch.testing.assert_close(z.mT @ z / len(z), torch.eye(3, dtype=torch.float64), rtol=0, atol=1e-9)


@given(seeds, st.integers(2, 4), st.sampled_from([1.0, 1e-8, 1e8]))
def test_the_frame_is_the_same_in_any_basis(seed, n, size):
    x = lopsided(points=1, n=n, seed=seed % 1000)
    T = size * normal(n, n, seed=seed)
    if float(torch.linalg.cond(T)) > 1e3:
        T = T + size * torch.eye(n, dtype=torch.float64) * 3
    z, other = (s @ Frame.of(s).W.mT for s in (x, x @ T.mT))
    torch.testing.assert_close(z, other, rtol=0, atol=1e-6)


def test_missing_points_do_not_turn_the_frame():
    x = lopsided()
    padded = torch.cat([x, torch.zeros_like(x)], 1)
    one, other = Frame.of(x).W, Frame.of(padded).W
    torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


@given(
    st.sampled_from([s for s in ORDERED_SIGNATURES if sum(s) > 1]),
    seeds,
    st.lists(st.floats(-4, 4), min_size=4, max_size=4),
)
def test_forms_go_in_and_come_out_as_they_were(signature, seed, exponents):
    """Columns of very different units change neither the form in the frame nor its signature, zeros included."""
    n = sum(signature)
    plain = QuadraticForm.random(*signature, condition=5, seed=seed)
    x = normal(300, 1, n, seed=seed % 1000) * 10.0 ** torch.tensor(exponents[:n], dtype=torch.float64)
    frame = Frame.of(x)
    A_w = unit_form(plain.matrix)  # a form of the frame
    out = frame.form_out(A_w)
    assert out.signature in (plain.signature, (signature[1], signature[0], signature[2]))
    assert form_distance(frame.form_in(out), A_w) < 1e-8
    again = frame.form_out(frame.form_in(out))
    assert frame.distance(again, out) < 1e-8 and again.signature == out.signature


def test_form_out_gives_the_form_that_inner_products_have():
    x = normal(300, 1, 3) * torch.tensor([1.0, 40.0, 0.05])
    frame = Frame.of(x)
    A_w = unit_form(QuadraticForm.random(1, 2, seed=3).matrix)
    z = x[:, 0] @ frame.W.mT
    q, out = torch.einsum("za,ab,zb->z", z, A_w, z), frame.form_out(A_w, ("t", "x", "y"))
    ratio = out(x[:, 0]) / q
    torch.testing.assert_close(ratio, ratio[:1].expand_as(ratio))
    assert out.names == ("t", "x", "y")


def test_distance_does_not_depend_on_units():
    x = lopsided(points=1)
    one, other = QuadraticForm.random(1, 2, seed=1), QuadraticForm.random(1, 2, seed=2)
    T = torch.diag(torch.tensor([1.0, 40.0, 0.05], dtype=torch.float64)) @ normal(3, 3, seed=4)
    inverse = torch.linalg.inv(T)
    moved = [inverse.mT @ form.matrix @ inverse for form in (one, other)]
    distance = Frame.of(x).distance(one, other)
    assert distance > 0.1
    assert Frame.of(x @ T.mT).distance(*moved) == pytest.approx(distance, abs=1e-6)
    # In the given coordinates it does depend on them.
    assert abs(form_distance(*moved) - form_distance(one.matrix, other.matrix)) > 0.01


def test_form_distance_ignores_size_and_sign():
    A, B = torch.diag(torch.tensor([1.0, 0.0])).double(), torch.diag(torch.tensor([0.0, 1.0])).double()
    assert form_distance(A, -3 * A) == 0 and form_distance(A, B) == pytest.approx(2**0.5)


# The door


def test_weights_are_given_or_come_from_errors():
    assert weights_of(None, None, 4) is None
    np.testing.assert_allclose(weights_of([1, 2, 3, 2], None, 4), [0.5, 1, 1.5, 1])
    weights = weights_of(None, torch.tensor([1.0, 2.0, 1.0, 2.0]), 4)
    np.testing.assert_allclose(weights, [1.6, 0.4, 1.6, 0.4])
    np.testing.assert_allclose(weights_of(None, 0.1, 4), np.ones(4))
    # Errors of several entries: the mean of their squares.
    errors = np.array([[1.0, 1.0], [1.0, 7**0.5], [1.0, 1.0], [2.0, 2.0]])
    np.testing.assert_allclose(weights_of(None, errors, 4) / weights[0] * 1.6, np.array([4, 1, 4, 1]) / 2.5)
    np.testing.assert_allclose(weights_of(None, 1e-200 * errors, 4), np.array([4, 1, 4, 1]) / 2.5)


@pytest.mark.parametrize(
    ("sample_weight", "y_error", "message"),
    [
        ([1, 1, 1], [1, 1, 1], "both given"),
        ([1, 1], None, "sample_weight has 2 rows and y has 3"),
        (None, [1, 1], "y_error has 2 rows and y has 3"),
        ([1, -1, 1], None, "sample_weight must be"),
        ([0, 0, 0], None, "not all zero"),
        ([1, np.nan, 1], None, "sample_weight must be"),
        ([[1], [1], [1]], None, "sample_weight must be one"),
        (None, [1, 0, 1], "not above zero"),
        (None, [1, -2, 1], "not above zero"),
        (None, [1, np.inf, 1], "not above zero"),
    ],
)
def test_bad_weights_are_named(sample_weight, y_error, message):
    with pytest.raises(DataError, match=message):
        weights_of(sample_weight, y_error, 3)


def test_enter_gives_samples_with_their_names():
    import pandas as pd

    x, y = normal(40, 3).numpy(), normal(40, seed=1).numpy()
    table = pd.DataFrame(x, columns=["E", "px", "py"])
    samples, notices = enter(table, y, scalars=y[:, None], sample_weight=np.arange(1, 41))
    assert samples.names == ("E", "px", "py") and samples.rep == Scalar() and not notices
    assert samples.x.shape == (40, 1, 3) and samples.x.dtype is torch.float64
    assert samples.sample_scalars.shape == (40, 1) and samples.point_scalars is None
    assert float(samples.weights.mean()) == pytest.approx(1.0) and float(samples.weights[0]) < 0.1
    assert enter(x, y, names=["a", "b", "c"])[0].names == ("a", "b", "c")
    assert enter(x, y)[0].names == ("x0", "x1", "x2")


def test_enter_shapes_targets_and_asks_about_columns():
    x = normal(40, 2, 3).numpy()
    two, notices = enter(x, x[:, :, 0])
    assert two.rep == DirectSum((Scalar(), Scalar())) and not notices
    three, notices = enter(x, x[:, 0])
    assert three.y.shape == (40, 3) and any("output='vector'" in notice for notice in notices)
    vectors, notices = enter(x, x[:, 0], "vector", set_like=True)
    assert vectors.rep == Vector() and vectors.set_like and not notices
    flat, _ = enter(x, normal(40, 9), "conjugation")
    assert flat.y.shape == (40, 3, 3)
    with pytest.raises(DataError, match=r"conjugation.*40 samples in 3 dimensions.*\(40, 3, 3\)"):
        enter(x, normal(40, 8), "conjugation")


def test_weights_follow_their_rows_through_the_door():
    x, y = normal(60, 1, 2), normal(60, seed=1)
    x, y = torch.cat([x[:30], x]), torch.cat([y[:30], y])  # 30 rows twice
    samples, notices = enter(x, y, sample_weight=1 + y.abs(), max_samples=80, seed=3)
    assert len(samples) < 80 and len(notices) == 2
    ratio = samples.weights / (1 + samples.y.abs())
    torch.testing.assert_close(ratio, ratio[:1].expand_as(ratio))


def test_scalars_are_sorted_by_shape():
    a = np.zeros((7, 3))
    assert split_scalars(a, 3)[0].shape == (7, 3, 1) and split_scalars(a, 3)[1] is None
    assert split_scalars(a, 1)[1].shape == (7, 3)
    both = split_scalars({"point": np.zeros((7, 3, 2)), "sample": np.zeros(7)}, 3)
    assert both[0].shape == (7, 3, 2) and both[1].shape == (7, 1)
    with pytest.raises(DataError, match="'point' and 'sample'"):
        split_scalars({"mass": a}, 3)


@pytest.mark.parametrize(
    ("x", "y", "word"),
    [
        (normal(100, 1, 3), torch.ones(100), "constant"),
        (normal(100, 1, 3), 1e-200 * torch.ones(100).double(), "constant"),
        (normal(100, 1, 1), normal(100), "One coordinate"),
        (normal(10, 1, 3), normal(10), "10 samples"),
        (normal(100, 1, 1) * torch.tensor([1.0, 2.0, -1.0]), normal(100), "dimension 1 of 3"),
        (
            normal(100, 1, 2) @ normal(2, 3, seed=1) * torch.tensor([1e-9, 1.0, 1e9]),
            normal(100),
            "dimension 2 of 3",
        ),
    ],
    ids=["constant", "tiny constant", "line", "few", "one direction", "plane in mixed units"],
)
def test_hopeless_samples_are_told(x, y, word):
    reason, advice = hopeless(Samples(x, y))
    assert word in reason and advice.endswith(".")


@pytest.mark.parametrize("size", [1.0, 1e-100, 1e100])
def test_samples_with_hope_pass_whatever_their_units_are(size):
    x = size * normal(50, 1, 3) * torch.tensor([1e-6, 1.0, 1e6])
    assert hopeless(Samples(x, size * normal(50, seed=1))) is None
    assert hopeless(Samples(x, 1e6 + normal(50, seed=1))) is None


def test_rows_that_are_arrays_of_their_own_are_refused_in_one_line():
    rows = pd.Series(list(np.ones((30, 3))))
    with pytest.raises(DataError, match="in row 0, not a real number"):
        enter(rows, np.ones(30))
    with pytest.raises(DataError, match="list of arrays of shapes") as refused:
        side_by_side([np.ones((2 + k % 2, 3)) for k in range(300)])
    assert len(str(refused.value)) < 300


def test_errors_of_targets_of_any_size_keep_their_units():
    y = torch.tensor([1.0, -2.0], dtype=torch.float64) * 1e-200
    samples = Samples(torch.ones(2, 1, 2).double(), y, noise=0.01 * y.abs())
    scaled = samples.in_units(*samples.units)
    torch.testing.assert_close(scaled.noise, 0.01 * scaled.y.abs())


def test_what_is_no_array_is_named_with_the_fix():
    x, y = np.eye(3)[[0, 1, 2] * 20], np.ones(60)
    for table, told in (
        ((row for row in x), r"X has type generator and is no array: give list\(X\)"),
        (map(tuple, x), r"X has type map and is no array: give list\(X\)"),
        (csr_array(x), r"X has type csr_array and is no array: give X.toarray\(\)"),
        (None, "X is None, not an array"),
    ):
        for ask in (lambda X: gortho.discover(X, y), lambda X: enter(X, y)):
            with pytest.raises(DataError, match=told):
                ask(table)
    with pytest.raises(
        DataError, match=r"X\[1\] has type csr_array and is no array: give X\[1\].toarray\(\)"
    ):
        gortho.discover([x, csr_array(x)], y)
    with pytest.raises(DataError, match=r"X\[0\] holds 'a' in row 1, column 'u'"):
        gortho.discover([pd.DataFrame({"u": [1.0, "a"]}), x[:2]], y[:2])
    with pytest.raises(DataError, match=r"y has type generator and is no array: give list\(y\)"):
        gortho.discover(x, (value for value in y))
