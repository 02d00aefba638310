"""Networks of covectors and tensors of rank two respect O(A) to rounding, and no other form (M4)."""

import pytest
import torch
from helpers import SIGNATURES, forms, normal, seeds, stir
from hypothesis import given, settings
from hypothesis import strategies as st

from gortho import QuadraticForm, Symmetry, fit
from gortho.nn import TensorNet
from gortho.reps import as_rep

EXACT, BROKEN = 1e-10, 1e-3
RANK_ONE = ["vector", "covector", "pseudovector", "pseudocovector"]
RANK_TWO = ["conjugation", "bilinear", "form", "pseudoconjugation", "pseudobilinear", "pseudoform"]
REGULAR = [s for s in SIGNATURES if not s[2] and 2 <= sum(s) <= 4]


def some(inputs, n, count, seed):
    return [normal(count, *as_rep(kind).shape(n), seed=seed + i) for i, kind in enumerate(inputs)]


def made(form, inputs, output, values, **options):
    try:
        net = stir(TensorNet(form, inputs, output, width=8, depth=1, **options), seed=5).double()
    except ValueError as error:
        assert "but zero under this symmetry" in str(error)
        return None
    net.calibrate(net.pack(values), torch.zeros(len(values[0]), *net.rep.shape(form.n), dtype=torch.float64))
    return net


@torch.no_grad()
def error(net, group, inputs, values):
    """The largest relative difference between what is predicted and then moved, and moved and then predicted."""
    y, worst = net(net.pack(values)), 0.0
    for g in group.sample(4, 1):
        moved = net(net.pack([as_rep(kind).act(g, v) for kind, v in zip(inputs, values)]))
        expected = net.rep.act(g, y)
        worst = max(
            worst, float((moved - expected).abs().max() / torch.maximum(moved.abs(), expected.abs()).max())
        )
    return worst


@settings(max_examples=40)
@given(
    forms(REGULAR, condition=30.0),
    st.lists(st.sampled_from(RANK_ONE), min_size=1, max_size=2),
    st.lists(st.sampled_from(RANK_TWO), min_size=1, max_size=2),
    st.sampled_from(["scalar", "vector", "covector", "pseudoscalar", "pseudovector", "scalar + 2*vector"]),
    st.integers(1, 2),
    seeds,
)
def test_networks_of_tensors(form, vectors, matrices, output, words, seed):
    inputs = [*vectors, *matrices]
    values = some(inputs, form.n, 6, seed % 1000)
    net = made(form, inputs, output, values, words=words if len(inputs) < 4 else 1)
    if net is not None:
        assert error(net, Symmetry.of(form), inputs, values) <= EXACT


@pytest.mark.parametrize("output", ["scalar", "vector"])
def test_and_no_other_form(output):
    form, inputs = QuadraticForm.random(1, 3, condition=10, seed=1), ["vector", "bilinear"]
    values = some(inputs, 4, 20, 0)
    net = made(form, inputs, output, values)
    assert error(net, form.group(), inputs, values) <= EXACT
    assert error(net, QuadraticForm.euclidean(4).group(), inputs, values) > BROKEN
    # a tensor told with the wrong indices is another tensor
    assert error(net, form.group(), ["vector", "form"], values) > BROKEN


def test_scalars_of_a_tensor_alone():
    """Without a vector there are traces: here those of the square of a stress."""
    form, T = QuadraticForm.euclidean(3), normal(300, 3, 3)
    net = TensorNet(form, ["bilinear"]).double()
    y = (T @ T).diagonal(dim1=1, dim2=2).sum(1)
    assert fit(net, net.pack([T]), y, epochs=2).best_validation < 1e-6 * float(y.var())


def test_a_field_tensor_moves_a_charge():
    """The force F u on a velocity u, with F told with upper indices, in a hidden frame."""
    form = QuadraticForm.random(1, 3, condition=3, seed=2)
    u, F = normal(400, 4), normal(400, 4, 4, seed=1)
    F = F - F.mT
    y = (F @ form.matrix @ u[:, :, None])[:, :, 0]
    net = TensorNet(form, ["vector", "bilinear"], "vector").double()
    x = net.pack([u, F])
    assert fit(net, x, y, epochs=2).best_validation < 1e-6 * float(y.var())
    assert error(net, form.group(), ["vector", "bilinear"], [u, F]) <= EXACT


@pytest.mark.parametrize(
    ("form", "inputs", "output", "message"),
    [
        (QuadraticForm.euclidean(3), [], "scalar", "at least one"),
        (QuadraticForm.euclidean(3), ["scalar"], "scalar", "rank two"),
        (QuadraticForm.euclidean(3), ["bilinear"], "vector", "outputs are scalars, not"),
        (QuadraticForm.euclidean(3), ["vector"], "bilinear", "vectors and covectors, not"),
        (QuadraticForm.from_signature(2, 0, 1), ["vector", "form"], "scalar", "singular"),
    ],
)
def test_networks_that_there_are_not(form, inputs, output, message):
    with pytest.raises(ValueError, match=message):
        TensorNet(form, inputs, output)


def test_values_of_the_wrong_shape():
    net = TensorNet(QuadraticForm.euclidean(3), ["vector", "form"])
    with pytest.raises(ValueError, match="give one for each"):
        net.pack([torch.zeros(5, 3)])
    with pytest.raises(ValueError, match="expected"):
        net.pack([torch.zeros(5, 3), torch.zeros(5, 3)])
    with pytest.raises(ValueError, match="as pack does"):
        net(torch.zeros(5, 3, 3))
