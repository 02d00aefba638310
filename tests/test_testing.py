"""The public checks of equivariance, on functions that are and are not equivariant."""

import math

import numpy as np
import pytest
import torch
from helpers import normal, stir

from gortho import EquivariantNet, QuadraticForm
from gortho.testing import assert_equivariant, equivariance_error

FORM = QuadraticForm.random(1, 2, seed=1)
X = normal(20, 3)


def almost(x, size=1e-3):
    """The form, and a little of what it does not allow."""
    return FORM(x) + size * x[..., 0]


def test_exact_functions_pass():
    assert equivariance_error(FORM, FORM, "vector", "scalar", X) < 1e-12
    assert equivariance_error(lambda x: FORM(x)[:, None] * x, FORM, "vector", "vector", X) < 1e-12
    assert equivariance_error(lambda x: x @ FORM.matrix, FORM, "vector", "covector", X) < 1e-12
    assert equivariance_error(lambda x: torch.zeros(len(x)), FORM, "vector", "scalar", X) == 0.0


@pytest.mark.parametrize("size", [1e-3, 1e-6])
def test_small_violations_are_seen_in_proportion(size):
    error = equivariance_error(lambda x: almost(x, size), FORM, "vector", "scalar", X)
    assert 0.1 * size < error < 10 * size


def test_masks_and_indices_stay_what_they_are():
    scale, mask, index = torch.tensor(2.0), torch.arange(20) % 2 == 0, torch.arange(20)

    def f(x, scale, mask, index):
        assert scale.dtype == x.dtype
        return torch.where(mask, scale * FORM(x), FORM(x)[index])

    assert equivariance_error(f, FORM, "vector", "scalar", X, arguments=(scale, mask, index)) < 1e-12


def test_the_wrong_representation_is_seen():
    assert equivariance_error(lambda x: x, FORM, "vector", "covector", X) > 0.1


def test_every_component_is_tried():
    # det-like functions are invariant under rotations, but not under reflections.
    euclid, pairs = QuadraticForm.euclidean(2), normal(10, 2, 2)
    assert equivariance_error(torch.linalg.det, euclid, "vector", "scalar", pairs) > 1


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_the_output_do_not_matter(scale):
    error, scaled = (
        equivariance_error(f, FORM, "vector", "scalar", X) for f in (almost, lambda x: scale * almost(x))
    )
    assert scaled == pytest.approx(error, rel=1e-6)


def test_parts_are_measured_by_their_own_units():
    def f(x):
        return torch.cat([1e9 * FORM(x)[:, None], x.flip(-1)], dim=-1)  # the small part is wrong

    assert equivariance_error(f, FORM, "vector", "scalar + vector", X) > 0.1


def test_any_callable():
    A = FORM.matrix.numpy()
    assert (
        equivariance_error(lambda x: np.einsum("bi,ij,bj->b", x, A, x), FORM, "vector", "scalar", X) < 1e-12
    )
    assert equivariance_error(FORM, FORM, "vector", "scalar", X.numpy()) < 1e-12


def test_networks_run_in_float64_and_stay_as_they_are():
    net = stir(EquivariantNet(FORM, output="vector", sample_scalars=1))
    scalars = normal(20, 1, dtype=torch.float32)
    assert equivariance_error(net, FORM, "vector", "vector", X, arguments=(None, scalars)) < 1e-10
    assert net.training and net.x_scale.dtype == torch.float32
    rough = equivariance_error(
        net, FORM, "vector", "vector", X, arguments=(None, scalars), dtype=torch.float32
    )
    assert 1e-10 < rough < 1e-4


def test_assert_equivariant():
    assert_equivariant(FORM, FORM, "vector", "scalar", X)
    with pytest.raises(
        AssertionError, match=r"not equivariant under O\(1,2\): relative error .* > 1e-10; .* q\(x\) ="
    ):
        assert_equivariant(almost, FORM, "vector", "scalar", X)
    assert_equivariant(almost, FORM, "vector", "scalar", X, tolerance=0.1)


@pytest.mark.parametrize(
    ("f", "x", "error", "message"),
    [
        (FORM, None, ValueError, "x is missing"),
        (FORM, X * math.nan, ValueError, "nan at index"),
        (FORM, X.long(), TypeError, "int64"),
        (FORM, X[:, :2], ValueError, r"x has shape \(20, 2\).*\(3,\)"),
        (FORM, X[:0], ValueError, r"x has shape \(0, 3\)"),
        (FORM, X[0], ValueError, r"x has shape \(3,\)"),
        (lambda x: x, X, ValueError, r"f returned shape \(20, 3\)"),
        (lambda x: FORM(x) / 0, X, ValueError, r"f\(x\) holds 20 value\(s\) that are not finite"),
    ],
)
def test_bad_input(f, x, error, message):
    with pytest.raises(error, match=message):
        equivariance_error(f, FORM, "vector", "scalar", x)
