"""What is neither denied nor claimed: near misses of wider symmetries, origins far away, vectors on a shell."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import gortho
from gortho import Verdict
from gortho.discovery.shell import ON_A_SHELL, on_shell
from gortho.discovery.wider.claim import Claim
from gortho.discovery.wider.doubt import offset, undenied
from gortho.discovery.wider.starts import _sloped_directions
from gortho.discovery.wider.widen import _about_zero, _distance
from gortho.reps import as_rep
from gortho.samples import Samples

DENIED = gortho.Discovery(Verdict.NONE, "It fails.", "a", 0.99, "scalar", ("a", "b", "c"), None)
ORIGIN = Claim("an origin", origin=True)


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def ended(error, left=0.5, x=None, found=DENIED):
    """What becomes of a verdict where a claim's search leaves an error, and O(A) so much."""
    ends = [SimpleNamespace(error=error, claim=Claim("a direction", directions=1))]
    validation = Samples(normal(50, 1, 3), normal(50))
    return undenied(found, ends, SimpleNamespace(twin=SimpleNamespace(usual=left)), validation, x)


def test_none_is_said_only_where_nothing_wider_comes_near():
    x = normal(300, 1, 3)
    assert ended(0.4, x=x) is DENIED
    near = ended(0.02, x=x)
    assert near.verdict is Verdict.UNDERDETERMINED and near.confidence == 0
    assert "a direction leaves" in near.reason and near.reason.startswith("It fails.")
    found = replace(DENIED, verdict=Verdict.UNDERDETERMINED)
    assert ended(0.02, x=x, found=found) is found


def test_nothing_is_denied_from_far_away():
    x = normal(300, 1, 3)
    far = ended(0.4, x=x + 5_000 * torch.tensor([1.0, 0.0, -1.0]))
    assert far.verdict is Verdict.UNDERDETERMINED and "subtract their mean" in far.advice


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_offset_is_in_standard_deviations(scale):
    x = normal(20_000, 3) @ torch.diag(torch.tensor([1.0, 10.0, 0.1]).double())
    shift = torch.tensor([0.0, 200.0, 3.0])  # 20 and 30 of them
    assert offset(scale * (x + shift)) == pytest.approx(1300**0.5, rel=0.05)
    constant = torch.cat([x, torch.ones(len(x), 1)], 1)  # does not vary, so that it is not far away
    assert offset(constant) < 0.1


SPHERE = normal(300, 1, 3) / normal(300, 1, 3).norm(dim=2, keepdim=True)
MOMENTUM = normal(300, 1, 3)
ENERGY = (1 + MOMENTUM.square().sum(2, keepdim=True)).sqrt()


@pytest.mark.parametrize(
    ("x", "output", "on"),
    [
        (SPHERE, "scalar", True),
        (SPHERE @ (torch.eye(3, dtype=torch.float64) + 0.3 * normal(3, 3)), "scalar", True),
        (torch.cat([ENERGY, MOMENTUM], 2), "vector", True),
        (1e6 * SPHERE, "scalar", True),
        (normal(300, 1, 3).sign(), "scalar", True),  # each square is one
        (SPHERE, "covector", False),  # Ax tells A
        (SPHERE.expand(300, 2, 3), "scalar", False),
        (normal(300, 1, 3), "scalar", False),
        (100 + normal(300, 1, 3), "scalar", False),
        (SPHERE * (1 + 0.05 * normal(300, 1, 1, seed=1)), "scalar", False),
        (SPHERE + torch.tensor([3.0, 0.0, 0.0]), "scalar", False),  # a sphere about another point
        (torch.cat([normal(300, 1, 2), torch.ones(300, 1, 1)], 2), "scalar", False),
        (SPHERE[:10], "scalar", False),  # too few to tell
    ],
)
def test_vectors_on_a_quadric(x, output, on):
    rep = as_rep(output)
    assert on_shell(Samples(x, torch.zeros(len(x), *rep.shape(x.shape[2])), rep)) is on


def test_on_a_sphere_a_form_is_not_told():
    y = (2 * SPHERE[:, 0, 0].square() + SPHERE[:, 0, 1].square()).exp()
    small = gortho.Settings(starts=4, generations=1, refits=4, predictor_steps=60)
    found = gortho.discover(SPHERE, y, settings=small)
    assert found.verdict is Verdict.UNDERDETERMINED
    assert ON_A_SHELL in found.reason


def trial(A, origins):
    theta = [ORIGIN.join(A[None], None, c[None]) for c in origins]
    return SimpleNamespace(end=SimpleNamespace(claim=ORIGIN, theta=theta[0]), refits=theta[1:])


def test_along_null_directions_an_origin_may_be_anywhere():
    """That of a cylinder off its axis is not about zero, though the coordinates of its origin all vary."""
    Q = torch.linalg.qr(normal(3, 3)).Q
    A = Q @ torch.diag(torch.tensor([1.5, 1.0, 0.0]).double()) @ Q.mT
    free, noise = normal(6, 1, seed=3) * Q[:, 2], 1e-3 * normal(6, 3)  # each refit another one
    noise[0] = 0
    assert not _about_zero(trial(A, 0.3 * Q[:, 0] + free + noise), 3)
    assert _about_zero(trial(A, free + noise), 3)
    one, two = (ORIGIN.join(A[None], None, (0.3 * Q[:, 0] + t * Q[:, 2])[None]) for t in (-1.0, 2.0))
    assert _distance(ORIGIN, one, two, 3) < 1e-9
    other = ORIGIN.join(A[None], None, (0.1 * Q[:, 0])[None])
    assert _distance(ORIGIN, one, other, 3) == pytest.approx(0.2)


@pytest.mark.parametrize("place", range(2))
def test_slopes_lead_to_a_direction_and_its_form(place):
    laws = (
        (lambda x: (x[:, 0] ** 2 + 2 * x[:, 1] ** 2 + 1).log() + x[:, 2] ** 3),
        (lambda x: x.prod(1) + x[:, 2].exp()),
    )
    form = (torch.diag(torch.tensor([1.0, 2.0, 0.0])), torch.tensor([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]]))[
        place
    ]
    x = normal(800, 3)
    near = []
    for A, a in _sloped_directions(Samples(x[:, None], laws[place](x)), 0):
        A = A - A[2, 2] * torch.diag(torch.tensor([0.0, 0.0, 1.0]))  # along the direction it is not told
        near.append((abs(float(a[2])), abs(float((A * form).sum() / A.norm() / form.norm()))))
    assert max(near) > (0.98, 0.95)
    assert _sloped_directions(Samples(x[:, None, :2], x[:, 0]), 0) == []  # a plane has none


@pytest.mark.slow
def test_a_direction_that_the_law_follows_exactly_is_found():
    x = normal(800, 3, seed=303)
    found = gortho.discover(x, (x[:, 0] ** 2 + x[:, 1] ** 2) * x[:, 2])
    assert found.verdict is Verdict.FOUND and len(found.directions) == 1


@pytest.mark.slow
def test_a_product_of_coordinates_has_a_direction():
    x = normal(2_000, 3, seed=7)
    y = x.prod(1) + 0.02 * normal(2_000, seed=8)
    found = gortho.discover(x, y)
    assert found.verdict is Verdict.FOUND and np.abs(found.directions).max() > 0.999 * np.linalg.norm(
        found.directions
    )


@pytest.mark.slow
def test_a_direction_of_a_singular_form_is_left_open():
    x = normal(800, 3, seed=18)
    assert gortho.discover(x, x[:, 0] ** 2 + 0.1 * x[:, 1]).verdict is Verdict.UNDERDETERMINED
