"""The table of what a law keeps: laws with known algebras, in hidden coordinates, as functions and as data."""

import numpy as np
import pytest
import torch

import gortho
from gortho import keeps
from gortho.discovery.spectral import spectral_form

J = torch.block_diag(*[torch.tensor([[0.0, 1.0], [-1.0, 0.0]])] * 2).double()


def hidden(n, seed):
    """Coordinates x = Tz, of units that differ by 10⁴, and their inverse."""
    generator = torch.Generator().manual_seed(seed)
    T = torch.randn(n, n, dtype=torch.float64, generator=generator) + 2 * torch.eye(n)
    T = torch.logspace(-2, 2, n, dtype=torch.float64)[:, None] * T
    return T, torch.linalg.inv(T)


def draw(*shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def inner(B, x):
    return torch.einsum("za,ab,zb->z", x[:, 0], B, x[:, 1])


def alike(one, other):
    one, other = torch.as_tensor(one).flatten(), torch.as_tensor(other).flatten()
    return abs(float(one @ other / one.norm() / other.norm()))


def test_a_symplectic_law_keeps_a_skew_form_and_no_other():
    T, back = hidden(4, 1)
    B = back.mT @ J @ back
    table = keeps(lambda x: inner(B, x).tanh() + inner(B, x) ** 2, draw(300, 2, 4, seed=2) @ T.mT)
    assert table.algebra.count == 10 and table.skew.count == 1
    assert alike(table.skew.tensors[0], B) == pytest.approx(1)
    assert not (table.symmetric.kept or table.vectors.kept or table.covectors.kept or table.scaling.kept)


def test_a_unitary_law_keeps_both_forms():
    T, back = hidden(4, 3)
    A, B = back.mT @ back, back.mT @ J @ back
    table = keeps(lambda x: inner(B, x) ** 2 + (inner(A, x) / 3).sin(), draw(300, 2, 4, seed=4) @ T.mT)
    assert table.algebra.count == 4 and table.symmetric.count == table.skew.count == 1
    assert alike(table.skew.tensors[0], B) == pytest.approx(1)
    assert alike(table.symmetric.tensors[0], A) == pytest.approx(1)


def test_a_direction_is_a_vector_that_is_kept():
    T, back = hidden(3, 5)

    def law(x):
        z = x @ back.mT
        return z.square().sum(1) + (2 * z[:, 2]).sin()

    table = keeps(law, draw(300, 3, seed=6) @ T.mT)
    assert (
        table.algebra.count == 1
        and table.symmetric.count == 2
        and table.vectors.count == table.covectors.count == 1
    )
    assert alike(table.vectors.tensors[0], T[:, 2]) == pytest.approx(1)
    assert alike(table.covectors.tensors[0], back[2]) == pytest.approx(1)


@pytest.mark.parametrize(("p", "q"), [(3, 0), (1, 2), (1, 3), (2, 2)])
def test_laws_of_a_form(p, q):
    form = gortho.QuadraticForm.random(p, q, condition=5, seed=p)
    n = p + q
    table = keeps(lambda x: (form(x) / 3).sin()[:, None] * x, draw(400, n, seed=7), "vector")
    assert table.algebra.count == n * (n - 1) // 2 and table.symmetric.count == 1 and not table.scaling.kept
    assert form.cosine(table.symmetric.tensors[0]) == pytest.approx(1)


def test_the_cross_product_and_tensors():
    table = keeps(lambda x: torch.linalg.cross(x[:, 0], x[:, 1]), draw(200, 2, 3, seed=8), "vector")
    assert table.algebra.count == 3 and table.symmetric.kept and table.degree == 2
    table = keeps(lambda x: x[:, :, None] * x[:, None], draw(200, 3, seed=9), gortho.Tensor(2, 0))
    assert table.algebra.count == 9 and not table.symmetric.kept and table.degree == 2


@pytest.mark.parametrize(
    ("law", "degree"),
    [
        (lambda x: (x**4).sum(1), 4),
        (lambda x: x[:, 0] ** 3 / x.square().sum(1) ** 2, -1),
        (lambda x: x[:, 0] * x[:, 1] / x.square().sum(1), 0),
        (lambda x: (x**4).sum(1) + 1, None),
    ],
)
def test_the_degree_of_scaling(law, degree):
    table = keeps(law, draw(300, 3, seed=10))
    assert table.degree == degree and table.scaling.kept == (degree is not None)


def test_scaling_in_the_algebra_hides_no_form():
    """A law of degree 0 is invariant under scaling as well: its forms are those of the rest of its algebra."""
    table = keeps(
        lambda x: inner(torch.eye(3).double(), x) / x[:, 0].norm(dim=1) / x[:, 1].norm(dim=1),
        draw(300, 2, 3, seed=3),
    )
    assert table.algebra.count == 4 and table.degree == 0 and table.symmetric.count == 1


def test_a_law_without_symmetry_keeps_nothing():
    for seed in range(4):
        a, b = draw(3, seed=seed), draw(3, seed=seed + 50)
        table = keeps(
            lambda x, a=a, b=b: (x @ a).sin() + x[:, 0] ** 3 * x[:, 1] + (x @ b).exp() + (x**4).sum(1),
            draw(300, 3, seed=11),
        )
        assert not any(row.kept for row in table.rows)
        assert "none kept" in str(table) and "no generators" in str(table)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_data_through_a_fit(noise):
    rng = np.random.default_rng(12)
    X = rng.normal(size=(1200, 3))
    wanted = {
        "ball": (np.log(1 + (X**2).sum(1)), (3, 1, 0)),
        "axis": ((X**2).sum(1) + np.cos(1.5 * X[:, 2] + 1), (1, 2, 1)),
        "none": (np.sin(X[:, 0] + 1) + X[:, 1] ** 3 * X[:, 2] + np.exp(X[:, 2] / 2), (0, 0, 0)),
    }
    for name, (y, counts) in wanted.items():
        table = keeps(y + noise * y.std() * rng.normal(size=len(y)), X, names=["a", "b", "c"])
        assert (table.algebra.count, table.symmetric.count, table.vectors.count) == counts, (name, str(table))
        assert table.unexplained < 0.05 and not table.scaling.kept


def test_data_of_vectors():
    rng = np.random.default_rng(13)
    X = rng.normal(size=(1000, 3))
    table = keeps(X * np.exp(-(X**2).sum(1, keepdims=True) / 4), X, "vector")
    assert table.algebra.count == 3 and table.symmetric.count == 1


def test_a_poor_fit_tells_nothing():
    rng = np.random.default_rng(14)
    table = keeps(rng.normal(size=300), rng.normal(size=(300, 3)))
    assert not any(row.kept for row in table.rows) and "too poor" in str(table)


def test_units_do_not_matter():
    X = draw(300, 3, seed=15)
    units = torch.tensor([1e6, 1.0, 1e-6], dtype=torch.float64)
    one = keeps(lambda x: (x.square().sum(1) / 2).cos(), X)
    other = keeps(lambda x: ((x / units).square().sum(1) / 2).cos(), X * units)
    assert [row.count for row in one.rows] == [row.count for row in other.rows]
    assert np.allclose(
        np.diag(other.symmetric.tensors[0] * units.numpy()[:, None] * units.numpy()),
        np.diag(one.symmetric.tensors[0]),
    )


def test_a_small_part_of_a_sum_counts_as_a_large_one():
    X = draw(800, 3, seed=16)
    q = X.square().sum(1)
    for size in (1e-8, 1e-3, 1e3):

        def law(x, size=size):
            return torch.stack([(x.square().sum(1) / 2).cos() + 5, size * x[:, 0] ** 3 * x[:, 1]], 1)

        assert keeps(law, X, "scalar + scalar").algebra.count == 0
        assert spectral_form(law, X, "scalar + scalar").residual > 0.1
        axis = torch.stack([(1 + q).log(), size * (1 + (X[:, 2] - 0.5).square()).log()], 1)
        assert keeps(axis, X, "scalar + scalar").algebra.count == 1


@pytest.mark.parametrize("y_unit", [1e-160, 1e160])
@pytest.mark.parametrize("x_unit", [1e-150, 1.0, 1e150])
def test_squares_stay_in_range(x_unit, y_unit):
    X = draw(800, 3, seed=15)
    table = keeps(lambda x: y_unit * ((x / x_unit).square().sum(1) / 2).cos(), x_unit * X)
    fitted = keeps(y_unit * (1 + X.square().sum(1)).log(), x_unit * X)
    for one in (table, fitted):
        assert [row.count for row in one.rows] == [3, 1, 0, 0, 0, 0]
        assert np.isfinite(one.symmetric.tensors).all()


def test_bad_input_is_named_with_the_fix():
    X = draw(50, 3, seed=0)
    for arguments, word in (
        ((lambda x: x, X), r"returned \(50, 3\), but .* \(50,\)"),
        ((lambda x: x[:, 0], X[:, :1]), r"shape \(50, 1\)"),
        ((np.ones(10), X[:10].numpy()), "10 samples of 3"),
    ):
        with pytest.raises(ValueError, match=word):
            keeps(*arguments)
    with pytest.raises(ValueError, match="2 names"):
        keeps(lambda x: x[:, 0], X, names=["a", "b"])
    single = torch.nn.Linear(3, 1)
    with pytest.raises(ValueError, match=r"give model.double\(\)"):
        keeps(lambda x: single(x)[:, 0], X.float())


@pytest.mark.parametrize("N", [1, 5, 28])
def test_a_function_at_few_points_tells_nothing(N):
    with pytest.raises(ValueError, match="too few: 3 coordinates need 29 values"):
        keeps(lambda x: x.square().sum(1), draw(N, 3, seed=8))
    assert keeps(lambda x: x.square().sum(1), draw(29, 3, seed=8)).algebra.count == 3


def test_what_is_no_differentiable_function_is_refused():
    from sklearn.linear_model import LinearRegression

    x = draw(60, 3, seed=9)
    model = LinearRegression().fit(x.numpy(), x.square().sum(1).numpy())
    for law in (model.predict, lambda z: torch.as_tensor(model.predict(z.detach().numpy()))):
        with pytest.raises(ValueError, match="give a differentiable torch function"):
            keeps(law, x)
    with pytest.raises(ValueError, match=r"not finite in [0-9]+ of 60 samples"):
        keeps(lambda z: z[:, 0].log(), x)


def test_a_network_of_single_precision_is_asked_in_double():
    torch.manual_seed(0)
    net, x = gortho.EquivariantNet("O(1,2)"), torch.randn(200, 3)
    gortho.fit(net, x, (x[:, 0] ** 2 - x[:, 1] ** 2 - x[:, 2] ** 2).sin(), epochs=5)
    table = keeps(net, x)
    assert table.algebra.count == 3 and table.symmetric.kept
    assert net(x).dtype == torch.float32  # the network itself stays as it is
