"""Networks respect their symmetry to rounding, and no larger one: handedness, directions, origin, spaces (M15 to M17).

Networks are stirred and calibrated first, as in test_equivariance. The second half of the promise, that a network
breaks what its symmetry does not hold, keeps the first half honest: zero would respect everything.
"""

import pytest
import torch
from helpers import SIGNATURES, forms, normal, null_vectors, seeds, stir
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gortho import EquivariantNet, QuadraticForm, Symmetry, Tensor, fit
from gortho.nn import FrameNet, HouseholderNet, PaperNet
from gortho.nn.framed import InFrame
from gortho.reps import as_rep
from gortho.testing import equivariance_error

REGULAR = [s for s in SIGNATURES if not s[2]]
BATCH = 6
EXACT, BROKEN = 1e-10, 1e-3
#: Volumes of sums over a set cancel in part, the more so the more dimensions there are.
EXACT_VOLUMES_OF_SUMS = 1e-8
EVEN = ["scalar", "vector", "covector", "conjugation", "bilinear", "form"]
REPS = [as_rep(prefix + name) for prefix in ("", "pseudo") for name in EVEN]
REPS += [as_rep("scalar + pseudoscalar + vector + pseudovector"), Tensor(2, 1), Tensor(0, 3, odd=True)]
INPUTS = ("generic", "null", "degenerate", "tiny", "huge")
EUCLIDEAN, LORENTZ = QuadraticForm.euclidean(3), QuadraticForm.minkowski()


def indefinite(form):
    return form.signature.positive and form.signature.negative


def inputs(form, kind, points, seed):
    """Tuples ``(batch, p, n)``; beside null and degenerate ones are others, to tell the size of the output."""
    X = normal(BATCH, points, form.n, seed=seed)
    if kind == "null" and indefinite(form):
        X[:3] = null_vectors(form, BATCH * points, seed=seed).reshape(X.shape)[:3]
    elif kind == "degenerate":
        X[0], X[1, 1:], X[2] = 0.0, 0.0, X[2, :1]
        X[3, 1:] = -2.5 * X[3, :1]
    return X * {"tiny": 1e-6, "huge": 1e6}.get(kind, 1.0)


@st.composite
def symmetries(draw, signatures=REGULAR):
    """Any symmetry with one form."""
    form, seed = draw(forms(signatures)), draw(seeds)
    count = draw(st.integers(0, min(2, form.n)))
    s = normal(count, form.n, seed=seed)
    if count and indefinite(form) and draw(st.booleans()):
        s[0] = null_vectors(form, 1, seed=seed)[0]
    return Symmetry(form, special=draw(st.booleans()), directions=s if count else None)


def made(symmetry, points, rep, x, seed=0, **options):
    """A stirred and calibrated network, or None where there is no such output."""
    try:
        net = EquivariantNet(symmetry, points, rep, width=8, depth=1, seed=seed, **options)
    except ValueError as error:
        assert "but zero under this symmetry" in str(error)
        return None
    net = stir(net, seed=5).double()
    net.calibrate(x, torch.zeros(len(x), *net.rep.shape(net.n), dtype=torch.float64))
    return net


def error(net, symmetry, x, axial=(), rep=None, **options):
    kinds = ["pseudovector" if i in axial else "vector" for i in range(x.shape[1])]
    return equivariance_error(net, symmetry, kinds, rep or net.rep, x, samples=6, **options)


def exact(net):
    """What rounding allows."""
    sums = net.set_like and net.basis.handed and net.n > 3
    return EXACT_VOLUMES_OF_SUMS if sums else EXACT


def about(symmetry, x, seed):
    """The symmetry about an origin as far away as the vectors are long, and the vectors moved there."""
    c = normal(symmetry.n, seed=seed) * x.abs().max()
    return Symmetry(symmetry.form, special=symmetry.special, directions=symmetry.directions, origin=c), x + c


@settings(max_examples=150)
@given(symmetries(), st.sampled_from(REPS), st.integers(1, 4), st.sampled_from(INPUTS), st.data())
def test_networks_respect_their_symmetry(symmetry, rep, points, kind, data):
    rank = max(part.rank for part in rep.parts)
    assume(rank < 2 or symmetry.n + points + len(symmetry.directions) <= 8 - rank + 2)
    x = inputs(symmetry.form, kind, points, data.draw(seeds))
    set_like = data.draw(st.booleans())
    places = st.booleans() if set_like else st.lists(st.integers(0, points - 1), unique=True)
    axial = data.draw(places)
    if data.draw(st.booleans()):
        symmetry, x = about(symmetry, x, data.draw(seeds))
    net = made(symmetry, points, rep, x, set_like=set_like, axial=axial)
    assume(net is not None)
    assert net.symmetry == symmetry
    assert error(net, symmetry, x, net.axial) <= exact(net)


@given(forms(REGULAR), st.sampled_from(EVEN), st.sampled_from(INPUTS), seeds)
def test_spaces_that_move_together(form, output, kind, seed):
    """Networks respect one group in several frames, and no group for each of the spaces (M17)."""
    n = form.n
    maps = torch.eye(n).double() + 0.3 * normal(1, n, n, seed=seed)
    symmetry = Symmetry(form, spaces=[0, 1, 0], maps=maps)
    x = inputs(form, kind, 3, seed)
    net = made(symmetry, 3, output, x)
    assert net.symmetry == symmetry
    assert error(net, symmetry, x) <= EXACT
    if kind == "generic":
        assert error(net, Symmetry(list(symmetry.forms), spaces=[0, 1, 0]), x) > BROKEN


@pytest.mark.parametrize("set_like", [False, True], ids=["tuple", "set"])
@pytest.mark.parametrize("directions", [0, 1, 2])
@pytest.mark.parametrize("special", [False, True], ids=["O", "SO"])
def test_every_signature(special, directions, set_like):
    worst, tried = {}, 0
    for signature in [s for s in REGULAR if sum(s) < 6]:
        form = QuadraticForm.random(*signature, condition=1e3, seed=3)
        n = form.n
        if directions > n:
            continue
        symmetry = Symmetry(form, special=special, directions=normal(directions, n, seed=1))
        for output in ("scalar", "vector", "pseudoscalar", "pseudovector"):
            x = normal(BATCH, max(1, n - directions), n, seed=4)
            net = made(symmetry, x.shape[1], output, x, set_like=set_like)
            if net is not None:
                tried += 1
                worst[signature, output] = error(net, symmetry, x) / exact(net)
    assert max(worst.values()) <= 1, worst
    assert tried > 30


# And no larger one


def larger(symmetry):
    """Symmetries that this one is a part of, and that its networks must break."""
    form, s = symmetry.form, symmetry.directions
    found = []
    if symmetry.special and len(s) < form.n:
        found.append(Symmetry(form, directions=s))
    if len(s):
        found.append(Symmetry(form, special=symmetry.special, directions=s[1:]))
        found.append(Symmetry(form, special=symmetry.special))
    return found


@pytest.mark.parametrize("set_like", [False, True], ids=["tuple", "set"])
@pytest.mark.parametrize("output", ["scalar", "vector"])
@pytest.mark.parametrize("directions", [0, 1, 2])
@pytest.mark.parametrize("special", [False, True], ids=["O", "SO"])
def test_networks_break_larger_symmetries(special, directions, output, set_like):
    for signature in [(2, 0), (1, 1), (3, 0), (1, 2), (1, 3), (2, 2), (5, 0)]:
        form = QuadraticForm.random(*signature, condition=10, seed=2)
        symmetry = Symmetry(form, special=special, directions=normal(directions, form.n, seed=1))
        x = normal(30, form.n, form.n, seed=3)
        net = made(symmetry, form.n, output, x, set_like=set_like)
        for bigger in larger(symmetry):
            if symmetry.residual_name != bigger.residual_name:
                assert error(net, bigger, x) > BROKEN, (str(symmetry), str(bigger))


def test_a_null_direction_breaks_the_group():
    symmetry = Symmetry(LORENTZ, directions=[[1, 0, 0, 1]])
    x = normal(30, 2, 4)
    for set_like in (False, True):
        net = made(symmetry, 2, "scalar + vector", x, set_like=set_like)
        assert error(net, symmetry, x) <= EXACT < BROKEN < error(net, Symmetry(LORENTZ), x)
        assert error(net, Symmetry(LORENTZ, directions=[[1, 0, 0, -1]]), x) > BROKEN


def test_an_origin_breaks_the_group_about_zero():
    for set_like in (False, True):
        x = normal(30, 2, 3)
        symmetry, moved = about(Symmetry(EUCLIDEAN), x, 3)
        net = made(symmetry, 2, "scalar + vector", moved, set_like=set_like)
        assert error(net, symmetry, moved) <= EXACT
        assert error(net, Symmetry(EUCLIDEAN), moved) > BROKEN


@pytest.mark.parametrize("output", ["scalar", "vector", "pseudoscalar", "pseudovector", "pseudobilinear"])
@pytest.mark.parametrize("axial", [[], [0], [0, 1], [0, 1, 2]], ids=str)
def test_parity_is_told(output, axial):
    x = normal(30, 3, 3)
    net = made(Symmetry(EUCLIDEAN), 3, output, x, axial=axial)
    other = as_rep(output.removeprefix("pseudo") if output.startswith("pseudo") else "pseudo" + output)
    if net is None:  # three axial vectors: their number tells the parity, there is no other
        assert len(axial) == 3
        return
    assert net(x).abs().max() > 0
    assert error(net, Symmetry(EUCLIDEAN), x, axial) <= EXACT
    assert error(net, Symmetry(EUCLIDEAN, special=True), x, axial, rep=other) <= EXACT
    assert error(net, Symmetry(EUCLIDEAN), x, axial, rep=other) > BROKEN
    if axial != [0, 1, 2] or output in ("scalar", "pseudoscalar"):
        wrong = [i for i in range(3) if i not in axial][:1] or [0, 1]
        assert error(net, Symmetry(EUCLIDEAN), x, wrong) > BROKEN


@pytest.mark.parametrize("set_like", [False, True], ids=["tuple", "set"])
def test_odd_outputs_under_a_form_that_learns(set_like):
    net = stir(EquivariantNet(3, 3, "pseudoscalar + pseudovector", set_like=set_like, width=8)).double()
    x = normal(10, 3, 3)
    assert error(net, net.form.value(), x) <= EXACT
    net(x).square().sum().backward()
    assert all(float(p.grad.abs().max()) > 0 for p in net.form.parameters())


@given(forms([s for s in SIGNATURES if s[2]]), st.sampled_from(["scalar", "vector"]), st.booleans(), seeds)
def test_singular_forms_take_an_origin_and_axial_vectors(form, output, set_like, seed):
    x = normal(BATCH, 2, form.n, seed=seed)
    symmetry, moved = about(Symmetry(form), x, seed)
    net = made(symmetry, 2, output, moved, set_like=set_like)
    assert error(net, symmetry, moved) <= EXACT
    odd = made(Symmetry(form), 2, "pseudovector", x, set_like=set_like, axial=True)
    assert error(odd, Symmetry(form), x, [0, 1]) <= EXACT
    assert made(Symmetry(form), 2, "pseudovector", x, set_like=set_like) is None


# Sets


@given(symmetries(), st.sampled_from(REPS[:10]), seeds)
def test_sets_have_no_order_and_any_number_of_points(symmetry, rep, seed):
    assume(symmetry.n <= 4)
    x = normal(BATCH, 5, symmetry.n, seed=seed)
    net = made(symmetry, 5, rep, x, set_like=True)
    assume(net is not None)
    order = torch.randperm(5, generator=torch.Generator().manual_seed(seed))
    here, there = net(x), net(x[:, order])
    assert (here - there).abs().max() <= 1e-12 * here.abs().max()
    assert error(net, symmetry, normal(BATCH, 8, symmetry.n, seed=seed)) <= exact(net)
    assert here.abs().max() > 0


# Several spaces (M17)


@pytest.mark.parametrize("output_space", [0, 1])
@pytest.mark.parametrize("output", ["scalar", "vector", "bilinear", "scalar + covector"])
def test_several_spaces(output, output_space):
    one, other = QuadraticForm.random(3, 0, seed=1), QuadraticForm.random(1, 2, seed=2)
    symmetry = Symmetry([one, other], spaces=[0, 0, 1])
    x = normal(30, 3, 3) * torch.tensor([1.0, 1.0, 1e5]).double()[:, None]
    net = made(symmetry, 3, output, x, output_space=output_space)
    options = {"output_space": output_space}
    assert net.symmetry == symmetry
    assert error(net, symmetry, x, **options) <= EXACT
    # Neither the other form, nor one space for all.
    assert error(net, Symmetry([other, one], spaces=[0, 0, 1]), x, **options) > BROKEN
    assert error(net, Symmetry([one, other], spaces=[0, 1, 1]), x, **options) > BROKEN
    whole = stir(EquivariantNet(one, 3, output, width=8)).double()
    assert error(whole, symmetry, x, output_space=0) > BROKEN


# Laws


def law(name, x):
    a, b = x[:, 0], x[:, 1]
    cross = torch.linalg.cross(a, b)
    z = torch.tensor([0.0, 0.0, 1.0]).to(x)
    return {
        "torque": ("O(3)", "pseudovector", (), cross),
        "magnetic force": ("O(3)", "vector", (1,), cross + 0.5 * a),
        "the same, B told as polar": ("SO(3)", "vector", (), cross + 0.5 * a),
        "chirality": ("SO(3), broken along (0, 0, 1)", "scalar", (), (cross * z).sum(1)),
        "helicity": ("O(3)", "pseudoscalar", (1,), (a * b).sum(1)),
        "weight": ("O(3), broken along (0, 0, 1)", "vector", (), a - 2 * z + b * (b @ z)[:, None]),
    }[name]


@pytest.mark.parametrize(
    "name", ["torque", "magnetic force", "the same, B told as polar", "chirality", "helicity", "weight"]
)
def test_laws_are_learnt_by_least_squares(name):
    x = normal(400, 2, 3, dtype=torch.float32)
    symmetry, output, axial, y = law(name, x)
    net = EquivariantNet(symmetry, 2, output, width=16, axial=axial)
    fit(net, x[:300], y[:300], epochs=2)
    assert (net(x[300:]) - y[300:]).square().mean() < 1e-6 * y.var()


def test_what_the_symmetry_forbids_is_not_learnt():
    x = normal(400, 2, 3, dtype=torch.float32)
    *_, y = law("torque", x)
    net = EquivariantNet("O(3)", 2, "vector", width=16)
    fit(net, x, y, epochs=2)
    assert (net(x) - y).square().mean() > 0.9 * y.var()


def test_sets_learn_odd_laws():
    x = normal(600, 4, 3, dtype=torch.float32)
    y = torch.linalg.cross((x.norm(dim=-1, keepdim=True) * x).sum(1), x.sum(1))
    net = EquivariantNet("O(3)", 4, "pseudovector", set_like=True, width=32)
    fit(net, x[:400], y[:400], epochs=20)
    assert (net(x[400:]) - y[400:]).square().mean() < 0.3 * y.var()


@pytest.mark.parametrize("degree", [None, 2])
def test_linear_features_with_symmetries(degree):
    x = normal(20, 2, 3)
    for symmetry in (Symmetry(EUCLIDEAN, special=True), Symmetry(EUCLIDEAN, directions=[[0, 0, 1]])):
        net = made(symmetry, 2, "vector", x, features=60, degree=degree)
        assert error(net, symmetry, x) <= EXACT < BROKEN < error(net, Symmetry(EUCLIDEAN), x)
    directed = Symmetry(EUCLIDEAN, directions=[[0, 0, 1]])
    net = made(directed, 2, "vector", x, features=60, degree=degree, set_like=True)
    assert error(net, directed, x) <= EXACT < BROKEN < error(net, Symmetry(EUCLIDEAN), x)


def test_in_another_frame():
    W = normal(3, 3, seed=2) + 3 * torch.eye(3).double()
    W = W * torch.linalg.det(W).sign() * -1  # turns left into right
    there = normal(20, 3, 3)
    symmetry = Symmetry(EUCLIDEAN, directions=[[0, 0, 1]], origin=[0.3, 0.2, 0.1])
    x = there @ torch.linalg.inv(W).mT
    for output in ("pseudoscalar", "scalar + pseudovector"):
        net = InFrame(made(symmetry, 3, output, there), W)
        assert error(net, symmetry.in_basis(torch.linalg.inv(W)), x) <= EXACT
        assert error(net, symmetry, x) > BROKEN


def test_units_do_not_matter():
    x, y = normal(20, 2, 3), normal(20, 3, seed=1)
    outputs = []
    for scale in (1.0, 1e-6, 1e6):
        symmetry = Symmetry(EUCLIDEAN, special=True, directions=[[1, 2, 3]], origin=scale * x[0, 0])
        net = made(symmetry, 2, "vector", scale * x)
        net.calibrate(scale * x, scale * y)
        outputs.append(net(scale * x) / scale)
    torch.testing.assert_close(outputs[1], outputs[0])
    torch.testing.assert_close(outputs[2], outputs[0])


def test_double_does_not_keep_the_rounding_of_float32():
    symmetry = Symmetry(EUCLIDEAN, directions=[[1, 2, 3]], origin=[0.1, 0.2, 0.3])
    net = EquivariantNet(symmetry, 2).double()
    assert torch.equal(net.broken.directions.value, symmetry.directions)
    assert torch.equal(net.float().double().broken.origin.value, symmetry.origin)


def test_a_symmetric_network_is_exported():
    net = made(Symmetry(EUCLIDEAN, special=True, directions=[[0, 0, 1]]), 2, "vector", normal(6, 2, 3))
    x = normal(6, 2, 3)
    program = torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=1)},)).module()
    for rows in (x, x[:2]):
        torch.testing.assert_close(program(rows), net(rows))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"form": "O(3)", "points": 1, "output": "pseudovector"}, "no pseudovector but zero"),
        ({"form": "O(3)", "points": 1, "output": "vector", "axial": True}, "no vector but zero"),
        ({"form": "O(3)", "points": 2, "axial": [2]}, "places from 0 to 1"),
        ({"form": "O(3)", "points": 2, "axial": [1], "set_like": True}, "points of a set are alike"),
        ({"form": "SO(3)", "points": 3, "set_like": True, "features": 50}, "leave out features"),
        ({"form": "SO(3)", "points": 3, "set_like": True, "members": 2}, "leave out features and members"),
        ({"form": "O(3) on x1, O(3) on x2", "points": 3}, "names the form of 2"),
        ({"form": "O(3) on x1, O(3) on x2", "points": 2, "set_like": True}, "not a set"),
        ({"form": "O(3) on x1, O(3) on x2", "points": 2, "axial": [0]}, "single space"),
        ({"form": "O(3) on x1, O(3) on x2", "points": 2, "output_space": 2}, "there are 2"),
    ],
)
def test_what_is_not_supported_says_so(options, match):
    with pytest.raises(ValueError, match=match):
        EquivariantNet(**options)


@pytest.mark.parametrize("net", [FrameNet, PaperNet, HouseholderNet])
def test_other_networks_refuse_what_they_would_break(net):
    for options in (
        {"form": "SO(3)"},
        {"form": "O(3)", "axial": [0]},
        {"form": "O(3)", "output": "pseudoscalar"},
    ):
        with pytest.raises(ValueError, match="use EquivariantNet"):
            net(points=3, **options)
    assert net("O(3)", 2).form.value() == EUCLIDEAN


@settings(max_examples=25)
@given(
    forms([s for s in REGULAR if sum(s) <= 4]),
    forms([s for s in REGULAR if sum(s) <= 3]),
    st.sampled_from(["scalar", "vector", "covector", "bilinear"]),
    st.sampled_from([0, 40]),
    seeds,
)
def test_spaces_of_different_dimension(one, other, output, features, seed):
    """Each kind of vector keeps its own form, whatever its dimension, and no other of that dimension."""
    symmetry = Symmetry([one, other], spaces=[0, 1, 0, 1])
    assert symmetry.dims == (one.n, other.n) and symmetry.n == max(one.n, other.n)
    assert Symmetry.from_json(symmetry.to_json()) == symmetry == Symmetry([one, other], spaces=[0, 1, 0, 1])
    assert str(Symmetry.parse(str(symmetry))) == str(symmetry)
    assert bool(symmetry.contains(symmetry.sample(3, seed)).all())
    assert len(symmetry.generators) == sum(n * (n - 1) // 2 for n in symmetry.dims)
    x = normal(BATCH, 4, symmetry.n, seed=seed)
    x[:, 0::2, one.n :], x[:, 1::2, other.n :] = 0.0, 0.0
    for space, form in enumerate((one, other)):
        net = EquivariantNet(symmetry, 4, output, width=8, depth=1, output_space=space, features=features)
        net = stir(net, seed=5).double()
        net.calibrate(x, torch.zeros(BATCH, *net.rep.shape(form.n), dtype=torch.float64))
        assert net(x).shape[1:] == net.rep.shape(form.n)
        assert equivariance_error(net, symmetry, "vector", output, x, output_space=space) <= EXACT


def test_and_no_other_form_of_a_space():
    symmetry = Symmetry([EUCLIDEAN, QuadraticForm([[1, 0], [0, -1]])], spaces=[0, 1, 1])
    x = normal(30, 3, 3)
    x[:, 1:, 2] = 0.0
    net = stir(EquivariantNet(symmetry, 3, "vector"), seed=5).double()
    net.calibrate(x, torch.zeros(30, 3, dtype=torch.float64))
    other = Symmetry([EUCLIDEAN, QuadraticForm.euclidean(2)], spaces=[0, 1, 1])
    assert equivariance_error(net, symmetry, "vector", "vector", x) <= EXACT
    assert equivariance_error(net, other, "vector", "vector", x) > BROKEN
    with pytest.raises(ValueError, match="form by form"):
        symmetry.in_basis(torch.eye(3))
