"""The paper's regression tasks, and the smallest counterexample to its tuple theorem."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.groups import haar, random_generator


@dataclass(frozen=True)
class Task:
    """Samples of an equivariant law: ``x (N, p, n)``, targets ``y``, and the truth behind them."""

    name: str
    x: Tensor
    y: Tensor
    output: str
    form: QuadraticForm
    point_scalars: Tensor | None = None

    @property
    def points(self) -> int:
        """Vectors in a sample."""
        return self.x.shape[1]


def synthetic(
    samples: int = 10_000, seed: int = 0, noise: float = 0.0, form: QuadraticForm | None = None
) -> Task:
    """f(x) = 9 (x xᵀA)² + 2 x xᵀA with A of signature (2,2), x uniform in [-1, 1]⁴ (M10; the paper's task 1).

    A = Q diag(±U[0.5, 1.5]) Qᵀ comes from the same seed unless ``form`` is given; it is then used gauge-fixed, as are
    all forms. ``noise`` is the standard deviation of Gaussian noise on every entry of the target.
    """
    generator = random_generator(seed)
    sizes = 0.5 + torch.rand(4, dtype=torch.float64, generator=generator)
    Q = haar(4, (), generator)
    signs = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
    A = Q * (signs * sizes) @ Q.T
    form, A = (QuadraticForm(A), A) if form is None else (form, form.matrix)
    x = 2 * torch.rand(samples, 4, dtype=torch.float64, generator=generator) - 1
    M = x[:, :, None] * (x @ A)[:, None, :]
    y = 9 * M @ M + 2 * M
    y = y + noise * torch.randn(y.shape, dtype=torch.float64, generator=generator)
    return Task("synthetic O(2,2)", x[:, None], y, "conjugation", form)


def inertia(samples: int = 10_000, masses: int = 5, seed: int = 0) -> Task:
    """Moment of inertia Σ m (|r|² I - r rᵀ) of point masses U(0,1) at positions uniform in [-1, 1]³ (task 2)."""
    generator = random_generator(seed)
    m = torch.rand(samples, masses, 1, dtype=torch.float64, generator=generator)
    r = 2 * torch.rand(samples, masses, 3, dtype=torch.float64, generator=generator) - 1
    total = (m * r * r).sum((1, 2))[:, None, None] * torch.eye(3, dtype=torch.float64)
    return Task("moment of inertia", r, total - (m * r).mT @ r, "bilinear", QuadraticForm.euclidean(3), m)


def second_vector(samples: int = 1_000, form: QuadraticForm | None = None, seed: int = 0) -> Task:
    """f(x₁, x₂) = x₂: equivariant, yet no function of the paper's tuple form (M5)."""
    form = form or QuadraticForm.euclidean(2)
    x = torch.randn(samples, 2, form.n, dtype=torch.float64, generator=random_generator(seed))
    return Task("second vector", x, x[:, 1].clone(), "vector", form)
