"""BNN: Cayley tables of cyclic groups and products, and what comes out for groups that have no characters."""

import pytest
import torch
from helpers import normal

from gortho import QuadraticForm
from gortho.studies.baselines.bnn import BNN, bispectrum, cayley_table, is_group, orbit_score, orders


def cyclic(n, seed=0, order=None):
    """Orbits of cyclic shifts; the coordinates may be renumbered."""
    x = normal(100, n, seed=seed)
    orbits = torch.stack([x.roll(k, 1) for k in range(n)], dim=1)
    return orbits if order is None else orbits[..., order]


def characters(n):
    """The discrete Fourier transform, rows of length one."""
    k = torch.arange(n, dtype=torch.float64)
    return torch.exp(2j * torch.pi * k[:, None] * k / n).to(torch.complex64) / n**0.5


def test_the_bispectrum_of_characters_is_constant_on_orbits():
    beta = bispectrum(characters(6), cyclic(6).flatten(0, 1).float()).reshape(100, 6, -1)
    assert (beta - beta[:, :1]).abs().max() < 1e-4
    score = orbit_score(beta)
    assert score.within < 1e-4 and score.collapse < 1e-4 and score.accuracy == 1
    table, distance = cayley_table(characters(6))
    assert distance < 1e-5 and torch.equal(table, (torch.arange(6)[:, None] + torch.arange(6)) % 6)


@pytest.mark.parametrize("n", [5, 6, 7, 8])
def test_cyclic_shifts_give_their_cayley_table(n):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(n))
    method = BNN(seed=1, steps=1_000).fit_orbits(cyclic(n, order=order))
    assert is_group(method.table) and n in orders(method.table)  # an element of order n: the cyclic group
    assert method.notes["table is a group's"] and method.notes["table's distance"] < 0.01
    assert method.notes["collapse"] < 0.01 and method.notes["orbit accuracy"] == 1
    assert method.notes["orbit accuracy of x itself"] < 0.5


def test_groups_of_the_same_size_are_told_apart():
    x = normal(100, 2, 2)
    square = torch.stack([x.roll((a, b), (1, 2)).flatten(1) for a in (0, 1) for b in (0, 1)], dim=1)
    assert orders(BNN(seed=1, steps=600).fit_orbits(square).table) == [1, 2, 2, 2]
    assert orders(BNN(seed=1, steps=600).fit_orbits(cyclic(4)).table) == [1, 2, 4, 4]


def test_what_is_no_group_is_not_called_one():
    table = (torch.arange(4)[:, None] + torch.arange(4)) % 4
    assert is_group(table)
    broken = table.clone()
    broken[1, 2] = 0
    assert not is_group(broken) and not is_group(table.roll(1, 0))
    sym3 = [[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3], [2, 0, 1, 5, 3, 4]]
    sym3 += [[3, 5, 4, 0, 2, 1], [4, 3, 5, 1, 0, 2], [5, 4, 3, 2, 1, 0]]
    assert not is_group(torch.tensor(sym3))  # a group, not a commutative one


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(QuadraticForm.euclidean(3), marks=pytest.mark.slow, id="O(3)"),
        pytest.param(QuadraticForm.minkowski(), id="O(1,3)"),
    ],
)
def test_orbits_of_a_continuous_group_are_not_told_apart(form):
    x = normal(150, 2, form.n)
    method = BNN(seed=1, group=form, orbits=150, members=5, steps=1_200).fit(x, form.gram(x)[:, 0, 1])
    assert method.notes["spread within orbits"] > 0.5 and method.notes["collapse"] > 0.8
    assert not method.notes["table is a group's"]
    assert (
        method.notes["cyclic shifts: collapse"] < 0.01 and method.notes["cyclic shifts: table is a group's"]
    )
    assert method.generators is None and method.quadratic_form is None and method.distance(form) is None
    assert method.parameters == 2 * (2 * form.n) ** 2 and method.tuning
    with pytest.raises(NotImplementedError, match="no predictor"):
        method.predict(x)


def test_samples_of_a_law_need_a_group():
    with pytest.raises(ValueError, match="no orbits"):
        BNN().fit(normal(10, 1, 2), normal(10))


def test_bnn_repeats_itself():
    runs = [BNN(seed=s, steps=20).fit_orbits(cyclic(4)) for s in (1, 1, 2)]
    assert torch.equal(runs[0].W, runs[1].W) and not torch.equal(runs[0].W, runs[2].W)
