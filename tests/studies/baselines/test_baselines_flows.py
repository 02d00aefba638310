"""LIG: flows of the plane, curved fields, generators of laws, and what it notes."""

import pytest
import torch
from helpers import normal

from gortho.studies import tasks
from gortho.studies.baselines.lig import LIG, flow, overlap

QUICK = {"width": 32, "depth": 1, "steps": 200, "lr": 1e-2, "iterations": 100}


def shape(x):
    """What rotations and scalings of the plane leave alone in two points: angle and ratio of their distances."""
    a, b = x[:, 0], x[:, 1]
    sizes = a.square().sum(-1), b.square().sum(-1)
    product = (sizes[0] * sizes[1]).sqrt()
    turned = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return torch.stack([(a * b).sum(-1) / product, turned / product, (sizes[0] / sizes[1]).log() / 3], -1)


def rest(points):
    """Points of the plane away from the origin, where the angle has no value."""
    return points[(points.norm(dim=-1) > 0.4).all(-1)]


def test_runge_kutta_is_of_fourth_order():
    x, t = normal(5, 2), torch.tensor(1.0, dtype=torch.float64)
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    exact = x @ torch.matrix_exp(t * turn).T
    coarse, fine = ((flow(lambda v: v @ turn.T, x, t, steps) - exact).abs().max() for steps in (4, 8))
    assert fine < 1e-5 and 10 < coarse / fine < 40


def test_rotation_and_scaling_of_the_plane_come_out_as_flows():
    method = LIG("3*scalar", dimension=2, traceless=False, iterations=500)
    method.analyse(shape, rest(normal(800, 2, 2)))
    assert method.scores.max() < 0.02 and method.notes["curved share of the fields"] < 0.01
    truth = torch.tensor([[[0.0, -1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]], dtype=torch.float64)
    truth = truth.flatten(1) / 2**0.5
    cosines = torch.linalg.svdvals(method.generators.flatten(1) @ truth.T)
    assert method.generators.shape == (2, 2, 2) and cosines.min() > 0.998
    x = rest(normal(50, 1, 2, seed=1))[:, 0]
    for field, moved in enumerate(method.flows(x, 1.0)):  # longer than any flow in training
        ratio = torch.view_as_complex(moved.contiguous()) / torch.view_as_complex(x)
        assert (ratio - ratio.mean()).abs().max() < 0.15, f"field {field} is no turning and stretching"
        assert (ratio.mean() - 1).abs() > 0.3
    assert not torch.allclose(method.flows(x, 1.0)[0], method.flows(x, 1.0)[1], atol=0.3)


def test_rotations_alone_where_lengths_count():
    method = LIG("3*scalar", iterations=300)
    x = normal(500, 2, 2)
    method.analyse(lambda x: (x @ x.mT)[:, [0, 0, 1], [0, 1, 1]], x)
    skew = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64) / 2**0.5
    assert float((method.generators[0] * skew).sum().abs()) > 0.999
    wrong = LIG("3*scalar", iterations=1)
    wrong.analyse(lambda x: (x @ x.mT)[:, [0, 0, 1], [0, 1, 1]], x)
    assert wrong.notes["validity score"] > 10 * method.notes["validity score"]


def test_a_curved_symmetry_needs_a_network():
    """y - sin 2x is constant along (1, 2 cos 2x), which no affine field follows."""
    x = normal(500, 1, 2)
    scores = {}
    for kind in ("network", "affine"):
        method = LIG(fields=kind, dimension=1, traceless=False, iterations=400, slope=5.0)
        method.analyse(lambda x: x[:, 0, 1] - (2 * x[:, 0, 0]).sin(), x)
        scores[kind] = method.notes["validity score"]
    assert scores["network"] < 0.3 * scores["affine"]


@pytest.mark.parametrize(
    ("fields", "iterations"), [("network", 400), pytest.param("affine", 1_000, marks=pytest.mark.slow)]
)
def test_generators_of_an_exact_law(fields, iterations):
    task = tasks.inertia(400, masses=3, seed=1)
    method = LIG("bilinear", fields=fields, iterations=iterations)
    method.analyse(task.law, task.x, task.point_scalars)
    assert method.generators.shape == (3, 3, 3) and method.generators.dtype == torch.float64
    assert method.distance(task.form) < 0.02 and method.quadratic_form.cosine(task.form) > 0.99


def test_earlier_fields_do_not_give_way():
    values = normal(3, 10, 2).requires_grad_(True)
    overlap(values).backward()
    assert values.grad[0].abs().max() == 0 < values.grad[1].abs().max()


def test_a_trained_predictor_is_read_and_repeats_itself():
    task = tasks.inertia(300, masses=2, seed=3)
    runs = [LIG("bilinear", seed=s, **QUICK).fit(task.x, task.y, task.point_scalars) for s in (1, 1, 2)]
    assert torch.equal(runs[0].generators, runs[1].generators)
    assert not torch.equal(runs[0].generators, runs[2].generators)
    assert runs[0].predict(task.x, task.point_scalars).shape == (300, 3, 3)
    assert runs[0].distance(task.form) < 1.0  # a random algebra: 1.4
    assert 0 < runs[0].notes["validity score"] <= runs[0].notes["worst validity score"]


def test_sums_of_outputs_and_wrong_settings():
    x = normal(100, 2, 3)
    method = LIG("scalar + vector", iterations=2)
    method.analyse(lambda x: torch.cat([x[:, 0, :1] ** 2, x[:, 1]], dim=-1), x)
    assert method.generators.shape[1:] == (3, 3)
    with pytest.raises(ValueError, match="network, affine"):
        LIG(fields="spline")
