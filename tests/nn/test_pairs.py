"""Pair layers: message sums in all their ways, networks of sets, and exact networks of many points."""

import pytest
import torch
from helpers import normal, stir

import gortho
from gortho import EquivariantNet, QuadraticForm, fit
from gortho.nn import LearnableForm, PairNet, blocks, pairs
from gortho.nn.sets import LARGE, LargeSetCoefficients
from gortho.pairings import Factored

SCALES = torch.tensor([0.3, 2.0], dtype=torch.float64)
MANY = LARGE + 3


def given(points, heads=2, values=3):
    x, W = normal(9, points, 3), normal(2, heads, seed=1)
    a, v = normal(9, heads, points, seed=2), normal(9, heads * values, points, seed=3)
    return x, [t.requires_grad_() for t in (W, a, v)]


def with_slopes(x, inputs, direct=None):
    r = (direct or pairs.head_messages)(x, x, SCALES, *inputs)
    return [r, *torch.autograd.grad(r, inputs, normal(*r.shape, seed=4))]


@pytest.mark.parametrize("kept", [0, 1 << 23])
@pytest.mark.parametrize("points, block", [(7, 1 << 18), (7, 100), (40, 1 << 12)])
def test_blocks_make_what_plain_torch_makes(monkeypatch, points, block, kept):
    x, inputs = given(points)
    monkeypatch.setattr(blocks, "BLOCK", block)
    monkeypatch.setattr(blocks, "KEPT", kept)
    assert blocks.usable(x, x, *inputs)
    found = with_slopes(x, inputs)
    monkeypatch.setattr(blocks, "usable", lambda *tensors: False)
    for a, b in zip(found, with_slopes(x, inputs)):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kept", [0, 1 << 23])
def test_slopes_of_blocks_are_those_of_differences(monkeypatch, kept):
    x, inputs = given(5)
    monkeypatch.setattr(blocks, "KEPT", kept)
    assert torch.autograd.gradcheck(lambda *t: pairs.head_messages(x, x, SCALES, *t), inputs)


def test_products_are_kept_only_for_a_way_back(monkeypatch):
    x, inputs = given(7)
    kept = []

    def asked(*given):
        kept.append(given[-1])
        return whole(*given)

    whole = blocks.head_messages
    monkeypatch.setattr(blocks, "head_messages", asked)
    pairs.head_messages(x, x, SCALES, *inputs)
    pairs.head_messages(x, x, SCALES, *(t.detach() for t in inputs))
    with torch.no_grad():
        pairs.head_messages(x, x, SCALES, *inputs)
    monkeypatch.setattr(blocks, "KEPT", 2 * 9 * 7**2)
    pairs.head_messages(x, x, SCALES, *inputs)
    assert kept == [True, False, False, False]


def test_a_head_is_the_same_message_for_all_its_values():
    x, inputs = given(7)

    def one_by_one(left, right, scales, W, a, v):
        ends = torch.cat([a.repeat_interleave(3, 1), v], 1).mT
        return pairs.messages(
            left, right, scales, W.repeat_interleave(3, 1), ends, torch.ones(9, 7), False
        ).mT

    for a, b in zip(with_slopes(x, inputs), with_slopes(x, inputs, one_by_one)):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_every_way_to_differentiate_is_open():
    x, inputs = given(7)
    W, a, v = (t.detach() for t in inputs)

    def total(W):
        return pairs.head_messages(x, x, SCALES, W, a, v).square().sum()

    slope = torch.func.grad(total)(W)
    along = torch.func.jvp(total, (W,), (torch.ones_like(W),))[1]
    assert float(along) == pytest.approx(float(slope.sum()), rel=1e-10)
    y = x.clone().requires_grad_()
    assert torch.autograd.grad(pairs.head_messages(y, y, SCALES, W, a, v).sum(), y)[0].abs().min() > 0


def test_embedding_is_the_same_with_and_without_a_slope():
    g = torch.cat([normal(50), torch.zeros(1, dtype=torch.float64)])
    assert torch.allclose(pairs.embed(g, SCALES), pairs.embed(g.clone().requires_grad_(), SCALES).detach())


@pytest.mark.parametrize("legs", [2, 3])
def test_factors_are_what_they_stand_for(legs):
    c = Factored(normal(4, 6), tuple(normal(4, 2, 6, seed=k) for k in range(legs)))
    X = [normal(4, 6, 3, seed=10 + k) for k in range(legs)]
    points, letters = "ijk"[:legs], "abc"[:legs]
    legs_ = ",".join(f"z{i}{a}" for i, a in zip(points, letters))
    expected = torch.einsum(f"z{points},{legs_}->z{letters}", c.dense(), *X)
    torch.testing.assert_close(c.contract(X), expected)
    i, j = (1, 2, 1)[:legs], (2,) * legs
    by_hand = [
        sum(torch.stack([f[0, a, p] for f, p in zip(c.factors, at)]).prod() for a in range(2)) / 6
        for at in (i, j)
    ]
    assert float(c.dense()[(0, *i)]) == pytest.approx(float(by_hand[0]))
    assert float(c.dense()[(0, *j)]) == pytest.approx(float(by_hand[1] + c.diagonal[0, 2]))


OUTPUTS = {
    "scalar": "O(3)",
    "scalar + vector": "O(1,2)",
    "conjugation": "O(3)",
    "bilinear": "O(1,2)",
    "Tensor(2, 1)": "O(3)",
    "pseudovector": "O(3)",
    "vector": "O(3), broken along (0.00, 0.00, 1.00)",
    "covector": "O(3) about (0.5, -0.3, 0.8)",
}


@pytest.mark.parametrize(
    "output, members",
    [(output, 1) for output in OUTPUTS] + [(output, 3) for output in OUTPUTS if output != "pseudovector"],
)
def test_exact_networks_of_many_points(output, members):
    symmetry = gortho.Symmetry.of(OUTPUTS[output])
    options = {"point_scalars": 1, "sample_scalars": 1, "set_like": True, "width": 16, "members": members}
    net = stir(EquivariantNet(symmetry, MANY, output, **options).double())
    x, m, s = normal(5, MANY, 3), normal(5, MANY, 1, seed=1), normal(5, 1, seed=2)
    net.calibrate(x, normal(5, *net.rep.shape(3)), m, s)
    y = net(x, m, s)
    assert y.std() > 1e-3
    order = torch.randperm(MANY, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(net(x[:, order], m[:, order], s), y, rtol=1e-9, atol=1e-10)
    error = gortho.testing.equivariance_error(
        lambda x: net(x, m[: len(x)], s[: len(x)]), symmetry, "vector", output, x, samples=4
    )
    assert error < 1e-8
    few = net(x[:, :4], m[:, :4], s)  # any number of points
    assert few.shape == y.shape and few.isfinite().all()


@pytest.mark.parametrize("learnt", [False, True])
def test_the_slopes_of_a_large_set(learnt):
    form = LearnableForm(3, seed=1) if learnt else QuadraticForm.minkowski(3)
    net = stir(EquivariantNet(form, MANY, "bilinear", set_like=True, width=16).double())
    assert isinstance(net.coefficients, LargeSetCoefficients)
    x = normal(4, MANY, 3)

    def value():
        return net(x).square().sum()

    slopes = torch.autograd.grad(value(), list(net.parameters()))
    generator = torch.Generator().manual_seed(3)
    step, expected = 1e-6, 0.0
    moves = [torch.randn(p.shape, generator=generator).double() for p in net.parameters()]
    expected = sum(float((g * d).sum()) for g, d in zip(slopes, moves))
    values = []
    with torch.no_grad():
        for sign in (1, -2):
            for p, d in zip(net.parameters(), moves):
                p += sign * step * d
            values.append(float(value()))
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(expected, rel=1e-4)


def test_a_law_of_a_large_set_is_found_to_rounding():
    x, m = normal(150, MANY, 3), normal(150, MANY, 1, seed=1).square()
    y = (m * x.square().sum(-1, keepdim=True)).sum(1)[..., None] * torch.eye(3) - (m * x).mT @ x  # inertia
    net = EquivariantNet("O(3)", MANY, "bilinear", point_scalars=1, set_like=True, width=16).double()
    history = fit(net, x, y, point_scalars=m, epochs=2)
    assert history.best_validation < 1e-15


def pair_net(form, x, mask, **options):
    net = stir(PairNet(form, width=8, pairs=6, depth=2, **options).double())
    net.calibrate(x, mask)
    return net.eval()


@pytest.mark.parametrize(
    "name", ["O(3)", "O(2,3)", "O(3), broken along (0.00, 0.00, 1.00)", "O(3) about (0.5, -0.3, 0.8)"]
)
def test_networks_of_sets_respect_their_symmetry(name):
    symmetry = gortho.Symmetry.of(name)
    x = normal(6, 9, symmetry.form.n)
    mask = torch.arange(9) < torch.tensor([[9], [2], [5], [7], [1], [8]])
    net = pair_net(name, x, mask)
    score = net(x, mask)
    error = gortho.testing.equivariance_error(
        lambda x: net(x, mask), symmetry, "vector", "scalar", x, samples=4
    )
    assert error < 1e-9 and score.std() > 1e-3
    spoiled = torch.where(mask[..., None], x, 1e3)
    assert torch.equal(net(spoiled, mask), score)
    if not symmetry.plain:
        turned = x @ symmetry.form.group().sample(1, seed=1)[0].mT
        assert (net(turned, mask) - score).abs().max() > 1e-4


def test_directions_of_sets_are_exact_in_float64_also_when_loaded():
    form = gortho.QuadraticForm.random(2, 1, seed=1)
    symmetry = gortho.Symmetry(form, directions=normal(1, 3, seed=2))
    x, mask = normal(6, 9, 3), torch.ones(6, 9, dtype=torch.bool)
    net = pair_net(symmetry, x, mask, spurions=symmetry.directions)
    saved = net.float().state_dict()
    assert len(saved["spurions"]) == 2
    loaded = PairNet(symmetry, width=8, pairs=6, depth=2, spurions=symmetry.directions)
    loaded.load_state_dict(saved)
    loaded.double().spurions[1:] = symmetry.directions  # what else is given is as it was saved
    gortho.testing.assert_equivariant(
        lambda x: loaded(x, mask), symmetry, "vector", "scalar", x, tolerance=1e-11
    )


def test_masks_are_booleans():
    net, x = PairNet("O(3)", width=8, pairs=6, depth=1), torch.randn(2, 4, 3)
    for ask in (net, net.calibrate):
        with pytest.raises(TypeError, match=r"the mask is torch.int64: give booleans, such as mask.bool\(\)"):
            ask(x, torch.ones(2, 4, dtype=torch.long))


def test_networks_of_sets_say_what_pairs_cannot_know():
    with pytest.raises(
        ValueError, match=r"SO\(3\): products of pairs know O\(A\) of one form.*use EquivariantNet"
    ):
        PairNet("SO(3)")
