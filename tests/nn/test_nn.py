"""Networks: what they can and cannot learn, compiling, exporting, batching, and bad input at every door."""

import copy
import math
import shutil

import pytest
import torch
from helpers import NAMES, SIGNATURES, buildable, forms, normal, relative_mse, seeds, stir
from hypothesis import assume, given
from hypothesis import strategies as st

from gortho import EquivariantNet, LearnableForm, QuadraticForm, fit
from gortho.nn import FrameNet, HouseholderNet, PaperNet, network
from gortho.nn.framed import InFrame
from gortho.nn.plain import PlainNet
from gortho.studies.tasks import inertia, second_vector
from gortho.testing import equivariance_error
from gortho.training import predict

MINKOWSKI = QuadraticForm.minkowski()
EXACT = {"basis": (EquivariantNet, {}), "set": (EquivariantNet, {"set_like": True}), "frame": (FrameNet, {})}


def make(kind, form=MINKOWSKI, points=3, output="scalar + vector + bilinear", **options):
    net, extra = EXACT[kind]
    return stir(net(form, points, output, width=12, **extra, **options)).double()


# Exact networks


@pytest.mark.parametrize("parametrisation", ["symmetric", "spectral"])
@pytest.mark.parametrize("kind", EXACT)
def test_equivariance_under_a_learnable_form(kind, parametrisation):
    net = make(kind, LearnableForm(4, seed=2, signature=(1, 3), parametrisation=parametrisation))
    x = normal(8, 3, 4)
    assert equivariance_error(net, net.form.value(), "vector", net.rep, x) <= 1e-10
    net(x).square().sum().backward()
    assert all(p.grad.abs().max() > 0 for p in net.form.parameters())


@pytest.mark.parametrize("kind", EXACT)
def test_not_equivariant_under_another_form(kind):
    net = make(kind)
    assert equivariance_error(net, QuadraticForm.euclidean(4), "vector", net.rep, normal(8, 3, 4)) > 1e-3


def test_one_vector_may_come_without_its_axis():
    net = stir(EquivariantNet(MINKOWSKI, output="vector")).double()
    x = normal(5, 4)
    assert torch.equal(net(x), net(x[:, None]))


def test_double_does_not_keep_the_rounding_of_float32():
    form = QuadraticForm.random(1, 3, seed=1)
    net = EquivariantNet(form).double()
    assert torch.equal(net.form.matrix(), form.matrix)
    assert torch.equal(net.float().double().form.matrix(), form.matrix)


def test_same_seed_same_weights_and_no_global_state():
    before = torch.random.get_rng_state()
    a, b, c = (EquivariantNet(3, 2, "vector", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    first = [torch.cat([p.flatten() for p in net.coefficients.parameters()]) for net in (a, b, c)]
    assert torch.equal(first[0], first[1]) and not torch.equal(first[0], first[2])


def test_units_do_not_matter():
    # Calibrated to data in other units, the network is the same function in those units.
    x, y = normal(20, 3, 4), normal(20, 4, seed=1)
    outputs = []
    for scale in (1.0, 1e-6, 1e6):
        net = make("basis", output="vector")
        net.calibrate(scale * x, scale * y)
        outputs.append(net(scale * x) / scale)
    torch.testing.assert_close(outputs[1], outputs[0])
    torch.testing.assert_close(outputs[2], outputs[0])


def test_calibration_of_constant_data():
    net = EquivariantNet(3, sample_scalars=1).double()
    net.calibrate(
        torch.zeros(5, 1, 3).double(), torch.full((5,), 7.0).double(), None, torch.ones(5, 1).double()
    )
    assert net(torch.zeros(5, 3).double(), None, torch.ones(5, 1).double()).tolist() == [7.0] * 5


def test_a_set_takes_any_number_of_points():
    net = make("set", points=3, point_scalars=1)
    assert net(normal(4, 7, 4), normal(4, 7, 1)).shape == (4, 1 + 4 + 16)


# Linear features, and networks in another frame (M12, M18)

LOW = [signature for signature in SIGNATURES if 2 <= sum(signature) <= 4]
FUNCTIONS = st.sampled_from([None, 0, 1, 2])


def linear(form, points, output, set_like, degree, seed, scalars=True):
    """A network of linear features with random weights, and inputs for it."""
    counts = {"point_scalars": 1, "sample_scalars": 2} if scalars else {}
    net = EquivariantNet(
        form, points, output, set_like=set_like, features=50, degree=degree, seed=seed % 100, **counts
    ).double()
    net = stir(net, seed=seed % 1000)
    given_scalars = (normal(6, points, 1, seed=1), normal(6, 2, seed=2)) if scalars else (None, None)
    return net, normal(6, points, form.n, seed=seed % 1000), given_scalars


@given(
    forms(LOW, condition=10.0),
    st.sampled_from([*NAMES, "scalar + vector + bilinear"]),
    st.integers(1, 3),
    st.booleans(),
    FUNCTIONS,
    seeds,
)
def test_linear_features_are_equivariant(form, output, points, set_like, degree, seed):
    assume(buildable(output, form))
    net, x, scalars = linear(form, points, output, set_like, degree, seed)
    assert float(net(x, *scalars).detach().abs().max()) > 0
    assert equivariance_error(net, form, "vector", net.rep, x, samples=4, arguments=scalars) <= 1e-10


def test_linear_features_of_one_form_are_not_equivariant_under_another():
    for set_like in (False, True):
        for degree in (None, 1):
            net, x, _ = linear(MINKOWSKI, 3, "scalar + vector", set_like, degree, 3, scalars=False)
            assert equivariance_error(net, QuadraticForm.euclidean(4), "vector", net.rep, x) > 1e-3


@given(st.sampled_from(NAMES), FUNCTIONS, seeds)
def test_linear_features_of_a_set_know_no_order(output, degree, seed):
    net, x, (point, sample) = linear(MINKOWSKI, 4, output, True, degree, seed)
    order = [2, 0, 3, 1]
    torch.testing.assert_close(
        net(x, point, sample), net(x[:, order], point[:, order], sample), rtol=1e-10, atol=1e-10
    )
    if degree != 0:  # its scalars belong to their points
        other = net(x, point[:, order], sample)
        assert not torch.allclose(net(x, point, sample), other, rtol=1e-10, atol=1e-10)


def test_linear_features_of_a_tuple_know_the_order():
    net, x, scalars = linear(MINKOWSKI, 3, "vector", False, None, 1)
    assert not torch.allclose(net(x, *scalars), net(x[:, [1, 0, 2]], *scalars))


def test_features_are_linear_in_their_weights():
    net, x, scalars = linear(MINKOWSKI, 2, "bilinear", False, None, 1)
    once = net(x, *scalars).detach()
    with torch.no_grad():
        for weight in net.coefficients.weights:
            weight.mul_(-2.5)
    torch.testing.assert_close(net(x, *scalars).detach(), -2.5 * once)


@given(
    forms([s for s in LOW if not s[2]], condition=10.0),
    st.sampled_from([*NAMES, "scalar + vector + covector"]),
    st.sampled_from(["network", "features"]),
    st.sampled_from([1e-3, 1.0, 1e3]),
    seeds,
)
def test_a_network_in_another_frame_is_equivariant_there(form, output, kind, unit, seed):
    if kind == "features":
        net, x, _ = linear(form, 2, output, False, None, seed, scalars=False)
    else:
        net = stir(EquivariantNet(form, 2, output, width=12), seed=seed % 1000).double()
        x = normal(6, 2, form.n, seed=seed % 1000)
    W = normal(form.n, form.n, seed=seed) + 3 * torch.eye(form.n, dtype=torch.float64)
    framed = InFrame(net, W, unit)
    moved = QuadraticForm(W.mT @ form.matrix @ W)
    assert framed.form.value().algebra_distance(moved) < 1e-9
    there = x @ torch.linalg.inv(W).mT
    assert equivariance_error(framed, moved, "vector", net.rep, there, samples=4) <= 1e-9
    if output == "scalar":
        torch.testing.assert_close(framed(there), unit * net(x))
    if output == "vector":
        torch.testing.assert_close(framed(there), unit * net(x) @ torch.linalg.inv(W).mT)


def test_a_plain_network_in_a_frame_is_still_plain():
    net = stir(PlainNet(QuadraticForm.euclidean(3), 1, output="vector", width=12)).double()
    framed = InFrame(net, torch.eye(3, dtype=torch.float64))
    assert equivariance_error(framed, QuadraticForm.euclidean(3), "vector", "vector", normal(8, 1, 3)) > 1e-3


@pytest.mark.parametrize("set_like", [False, True], ids=["tuple", "set"])
@pytest.mark.parametrize("degree", [None, 1], ids=["functions", "polynomial"])
def test_linear_features_are_exported_for_any_batch(set_like, degree, tmp_path):
    net, x, scalars = linear(QuadraticForm.random(1, 2, seed=1), 2, "scalar + vector", set_like, degree, 1)
    framed = InFrame(net, normal(3, 3, seed=2) + 3 * torch.eye(3).double(), 2.0)
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(framed, (x, *scalars), dynamic_shapes=({0: batch},) * 3)
    torch.export.save(program, tmp_path / "net.pt2")
    loaded = torch.export.load(tmp_path / "net.pt2").module()
    for rows in (slice(0, 6), slice(0, 3), slice(0, 1)):
        inputs = [t[rows] for t in (x, *scalars)]
        torch.testing.assert_close(loaded(*inputs), framed(*inputs))


# The paper's forms: shown as what they are (M4, M5)


@pytest.mark.parametrize("kind", ["paper", "householder"])
@pytest.mark.parametrize("output", ["vector", "covector", "conjugation", "bilinear", "form"])
def test_paper_forms_are_not_equivariant(kind, output):
    form = QuadraticForm.random(2, 1, seed=1)
    net = stir(network(kind, form, points=2, output=output, width=12)).double()
    assert equivariance_error(net, form, "vector", output, normal(20, 2, 3)) > 1e-3


@pytest.mark.parametrize("kind", ["paper", "householder"])
def test_paper_forms_are_invariant_for_scalars(kind):
    form = QuadraticForm.random(2, 1, condition=100, seed=1)
    net = stir(network(kind, form, points=2, width=12)).double()
    assert equivariance_error(net, form, "vector", "scalar", normal(20, 2, 3)) <= 1e-10


def test_householder_with_conjugation_is_the_symmetric_form():
    # Proposition 5.1: f = φ_s φ_n φ_s, since φ_s is its own inverse.
    net = stir(HouseholderNet(MINKOWSKI, output="conjugation", width=12)).double()
    X = normal(10, 1, 4)
    s = net.scale_invariant(X)
    torch.testing.assert_close(s @ s, torch.eye(4, dtype=torch.float64).expand_as(s), rtol=0, atol=1e-9)
    gram = net.form.gram(X)[:, 0] / 2
    n = net.norm_net(gram).reshape(-1, 4, 4)
    torch.testing.assert_close(net(X), s @ n @ s, rtol=1e-8, atol=1e-8)


def test_paper_form_counts_clamped_vectors():
    net = PaperNet(MINKOWSKI, output="vector").double()
    x = normal(4, 4)
    x[2] = torch.tensor([1.0, 1.0, 0.0, 0.0])
    assert net.clamped(x) == 1


def test_sets_need_the_basis_form():
    for kind in ("frame", "paper", "householder"):
        with pytest.raises(ValueError, match="set"):
            network(kind, MINKOWSKI, points=2, set_like=True)
    with pytest.raises(ValueError, match="kind 'transformer': choose from basis, frame"):
        network("transformer", MINKOWSKI)


# The counterexample f(x₁, x₂) = x₂ (M5)


@pytest.mark.parametrize("kind", ["basis", "frame"])
def test_exact_forms_learn_the_second_vector(kind):
    task, test = second_vector(300), second_vector(200, seed=1)
    net = network(kind, task.form, points=2, output="vector", width=16).double()
    fit(net, task.x, task.y, epochs=2, polish=20)
    assert relative_mse(predict(net, test.x), test.y) <= 1e-6


def fibre(samples=50):
    """Pairs of inputs with one Gram matrix and one x₁, for O(2): x₂ and its mirror image across x₁."""
    x = second_vector(samples, seed=2).x
    along = x[:, 0] * ((x[:, 0] * x[:, 1]).sum(-1) / x[:, 0].square().sum(-1))[:, None]
    mirrored = torch.stack([x[:, 0], 2 * along - x[:, 1]], dim=1)
    return x, mirrored


@pytest.mark.parametrize("kind", ["paper", "householder"])
@pytest.mark.parametrize("seed", range(3))
def test_paper_forms_provably_cannot_learn_the_second_vector(kind, seed):
    x, mirrored = fibre()
    form = QuadraticForm.euclidean(2)
    torch.testing.assert_close(form.gram(x), form.gram(mirrored))
    assert torch.equal(x[:, 0], mirrored[:, 0])
    net = stir(network(kind, form, points=2, output="vector", width=16), seed=seed).double()
    a, b = net(x), net(mirrored)
    torch.testing.assert_close(
        a, b, rtol=1e-9, atol=1e-9
    )  # one value for two targets, whatever the weights …
    gap = (x[:, 1] - mirrored[:, 1]).square().sum(-1)
    # … so the squared error over the pair is at least |y - y'|²/2, that of the average.
    error = (a - x[:, 1]).square().sum(-1) + (b - mirrored[:, 1]).square().sum(-1)
    assert (error >= gap / 2 - 1e-9).all() and gap.mean() > 1
    # The exact form tells the two apart.
    exact = stir(EquivariantNet(form, 2, "vector")).double()
    assert (exact(x) - exact(mirrored)).abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["paper", "householder"])
def test_trained_paper_forms_stay_above_the_bound(kind):
    task, (x, mirrored) = second_vector(400), fibre(200)
    net = network(kind, task.form, points=2, output="vector", width=32).double()
    fit(net, task.x, task.y, epochs=20, batch_size=64, lr=1e-2)
    both, targets = torch.cat([x, mirrored]), torch.cat([x[:, 1], mirrored[:, 1]])
    bound = float((x[:, 1] - mirrored[:, 1]).square().mean() / 4)
    error = float((predict(net, both) - targets).square().mean())
    assert bound > 0.1 and error >= bound * (1 - 1e-9)


def test_moment_of_inertia_with_the_form_known():
    task, test = inertia(1000), inertia(500, seed=1)
    net = EquivariantNet(task.form, 5, "bilinear", point_scalars=1, set_like=True).double()
    fit(net, task.x, task.y, point_scalars=task.point_scalars, epochs=20, polish=200)
    error = relative_mse(predict(net, test.x, test.point_scalars), test.y)
    assert error <= 1e-4


# Compilers and batching

COMPILER = shutil.which("g++") or shutil.which("clang++")
BACKENDS = [
    "aot_eager",
    pytest.param(
        "inductor",
        marks=[pytest.mark.slow, pytest.mark.skipif(not COMPILER, reason="needs a compiler of C++")],
    ),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", EXACT)
def test_compiled_agrees_with_eager(kind, backend):
    net, x = make(kind, output="bilinear", point_scalars=1, depth=1), normal(6, 3, 4)
    scalars = normal(6, 3, 1, seed=1)
    torch.compiler.reset()
    compiled = torch.compile(copy.deepcopy(net), fullgraph=True, backend=backend)
    torch.testing.assert_close(compiled(x, scalars), net(x, scalars))


@pytest.mark.parametrize("kind", EXACT)
def test_exported_agrees_with_eager(kind):
    net, x = make(kind), normal(6, 3, 4)
    batch = torch.export.Dim("batch", min=2, max=1024)
    exported = torch.export.export(net, (x,), dynamic_shapes=({0: batch},)).module()
    for inputs in (x, normal(9, 3, 4, seed=1)):
        torch.testing.assert_close(exported(inputs), net(inputs))


@pytest.mark.parametrize("kind", EXACT)
def test_slopes_of_each_sample(kind):
    from torch.func import jacrev, vmap

    net, x = make(kind, output="scalar"), normal(5, 3, 4)
    slopes = vmap(jacrev(lambda one: net(one[None])[0]))(x)
    asked = x.clone().requires_grad_()
    torch.testing.assert_close(slopes, torch.autograd.grad(net(asked).sum(), asked)[0])


@pytest.mark.parametrize("kind", EXACT)
def test_stacked_networks_run_as_one(kind):
    from torch.func import functional_call, stack_module_state, vmap

    nets = [make(kind, LearnableForm(4, seed=seed)) for seed in range(3)]
    for net in nets:
        net.check_values = False
    parameters, buffers = stack_module_state(nets)
    skeleton, x = copy.deepcopy(nets[0]), normal(5, 3, 4)
    together = vmap(lambda p, b: functional_call(skeleton, (p, b), (x,)))(parameters, buffers)
    torch.testing.assert_close(together, torch.stack([net(x) for net in nets]))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("kind", EXACT)
def test_cuda_agrees_with_cpu(kind):
    net, x = make(kind), normal(6, 3, 4)
    torch.testing.assert_close(copy.deepcopy(net).cuda()(x.cuda()).cpu(), net(x))


# Bad input

X = torch.ones(4, 3, 4)
BAD_INPUTS = {
    "nan": (X * math.nan, ValueError, "nan at index"),
    "inf": (X / 0, ValueError, "inf at index"),
    "last axis": (torch.ones(4, 3, 5), ValueError, r"\(4, 3, 5\).*length 4"),
    "points": (torch.ones(4, 2, 4), ValueError, r"\(4, 2, 4\), expected \(batch, 3, 4\)"),
    "no points": (torch.ones(4, 4), ValueError, r"\(4, 4\), expected \(batch, 3, 4\)"),
    "integers": (X.long(), TypeError, r"int64.*\.double\(\)"),
    "half": (X.half(), TypeError, r"float16.*\.float\(\)"),
    "dtype": (X.double(), TypeError, r"float64, the network torch\.float32.*net\.to"),
    "empty": (X[:0], ValueError, "empty.*at least one sample"),
    "array": (X.numpy(), TypeError, r"ndarray.*torch\.as_tensor"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
@pytest.mark.parametrize("kind", ["basis", "frame", "paper", "householder"])
def test_bad_inputs(kind, case):
    x, error, message = BAD_INPUTS[case]
    with pytest.raises(error, match=message):
        network(kind, MINKOWSKI, points=3)(x)


BAD_SCALARS = {
    "missing": (None, ValueError, r"point_scalars is missing.*\(4, 3, 2\)"),
    "shape": (torch.ones(4, 3, 1), ValueError, r"\(4, 3, 1\), expected \(4, 3, 2\)"),
    "points": (torch.ones(4, 5, 2), ValueError, r"\(4, 5, 2\), expected \(4, 3, 2\)"),
    "nan": (torch.ones(4, 3, 2) * math.nan, ValueError, "point_scalars holds 24 .*nan at index"),
    "dtype": (torch.ones(4, 3, 2).double(), TypeError, "point_scalars is torch.float64"),
    "list": ([1.0], TypeError, "point_scalars is a list"),
}


@pytest.mark.parametrize("case", BAD_SCALARS)
@pytest.mark.parametrize("set_like", [False, True])
def test_bad_scalars(case, set_like):
    scalars, error, message = BAD_SCALARS[case]
    with pytest.raises(error, match=message):
        EquivariantNet(MINKOWSKI, 3, point_scalars=2, set_like=set_like)(X, scalars)


def test_scalars_that_nobody_asked_for():
    with pytest.raises(ValueError, match="made without: set sample_scalars=2"):
        EquivariantNet(MINKOWSKI, 3)(X, None, torch.ones(4, 2))


@pytest.mark.parametrize(
    "option", ["points", "width", "depth", "features", "point_scalars", "sample_scalars"]
)
def test_bad_settings(option):
    for value in (-1, 2.5):
        with pytest.raises(ValueError, match=f"{option} = {value}"):
            EquivariantNet(MINKOWSKI, **{option: value})


@pytest.mark.parametrize(
    ("form", "message"),
    [([[1, 2], [3, 4]], "not symmetric"), (torch.zeros(2, 2), "zero matrix"), (0, "n = 0")],
)
def test_bad_forms(form, message):
    with pytest.raises(ValueError, match=message):
        EquivariantNet(form)


@pytest.mark.parametrize("kind", ["basis", "set"])
def test_a_committee_is_the_mean_of_its_members_and_as_equivariant(kind):
    net = make(kind, members=3)
    x = normal(6, 3, 4)
    alone = []
    for member in net.coefficients.members:
        single = make(kind)
        single.coefficients.load_state_dict(member.state_dict())
        alone.append(single(x))
    together = torch.stack(alone).mean(0)
    together[:, 0] = torch.stack(alone)[:, :, 0].median(0).values  # the scalar is left without its extremes
    torch.testing.assert_close(net(x), together)
    assert equivariance_error(net, MINKOWSKI, "vector", net.rep, x) <= 1e-10


def test_units_do_not_depend_on_the_frame():
    """A known form chooses the unit of x by inner products, so a hidden frame changes nothing at all."""
    task = inertia(200, seed=1)
    hidden = task.hidden(2)
    values = []
    for t in (task, hidden):
        net = stir(EquivariantNet(t.form, 5, t.output, point_scalars=1, set_like=True)).double()
        net.calibrate(t.x, t.y, t.point_scalars)
        values.append(net.form.gram(t.x / net.x_scale))
    torch.testing.assert_close(values[0], values[1])
