"""Predictions far outside the samples of the fit are told apart, by invariants and not by coordinates."""

import warnings

import numpy as np
import pytest
import torch

import gortho
from gortho.discovery.reach import Extrapolated, Reach, collected
from gortho.nn import EquivariantNet
from gortho.nn.framed import InFrame
from gortho.samples.values import Samples
from gortho.training import predict


def reach_of(symmetry, x, scalars=None, **options):
    """A predictor with random weights, and how far its samples reach."""
    counts = {} if scalars is None else {"sample_scalars": scalars.shape[1]}
    net = EquivariantNet(symmetry, x.shape[1], **options, **counts).double()
    network = InFrame(net, torch.eye(x.shape[2], dtype=torch.float64))
    samples = Samples(x, torch.zeros(len(x)), sample_scalars=scalars, set_like=net.set_like)
    return network, Reach.of(network, samples)


def told(network, reach, x, scalars=None):
    with collected(network) as pieces:
        predict(network, x, None, scalars)
    return reach.warning(torch.cat(pieces))


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize(
    ("symmetry", "options"),
    [
        ("O(1,3)", {}),
        ("SO(4)", {}),
        ("Sp(4)", {}),
        ("O(1,3)", {"set_like": True}),
        ("O(4)", {"axial": (0,), "output": "vector"}),
    ],
)
def test_the_group_does_not_leave_the_range_and_other_units_do(symmetry, options):
    x = drawn(200, 2, 4)
    network, reach = reach_of(symmetry, x, **options)
    assert told(network, reach, x) == ""
    g = gortho.Symmetry.of(symmetry).sample(1, max_boost=3.0, seed=1)[0]
    assert told(network, reach, x @ g.mT) == ""  # however large the coordinates are
    assert "200 of 200 samples lie far outside" in told(network, reach, 1000 * x)


def test_scalars_count_too_and_the_worst_is_named():
    x, scalars = drawn(100, 1, 3), drawn(100, 2)
    network, reach = reach_of("O(3)", x, scalars)
    assert reach.names == ("⟨x,x⟩", "s1", "s2")
    scalars = scalars.clone()
    scalars[7, 1] = 1e3
    text = told(network, reach, x, scalars)
    assert (
        text.startswith("1 of 100 samples") and "number 7 of the samples used, counted from 0: s2 is" in text
    )


def test_a_discovery_warns_also_when_it_is_loaded(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    found = gortho.discover(
        X,
        X[:, 0] ** 2 - X[:, 1] ** 2,
        settings=gortho.Settings(starts=2, generations=0, finalists=1, refits=2, predictor_steps=20),
    )
    found.save(tmp_path)
    for one in (found, gortho.Discovery.load(tmp_path)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one.predict(1.2 * X)
        with pytest.warns(Extrapolated, match=r"⟨x,x⟩"):
            one.predict(100 * X)


def test_where_the_law_is_not_defined_there_is_a_warning():
    X = np.random.default_rng(0).uniform(0.5, 1.0, size=(300, 2))
    X[:, 0] += 1.0
    few = gortho.Settings(starts=2, generations=0, finalists=1, refits=2, predictor_steps=20)
    found = gortho.discover(X, np.log(X[:, 0] ** 2 - X[:, 1] ** 2), settings=few)
    with pytest.warns(Extrapolated):
        found.predict([[0.1, 5.0]])
