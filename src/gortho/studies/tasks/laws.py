"""Laws with a known truth: the paper's regression tasks, the public ones, and the smallest counterexample (M5).

Every task carries the law it was drawn from, so that it can assert it, f(gx) = ρ(g) f(x), and can be moved to a
hidden frame x → Mx, in which the form is M⁻ᵀAM⁻¹ and no basis vector means anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.groups import haar, random_generator
from gortho.reps import as_rep
from gortho.testing import assert_equivariant

#: A law: targets of inputs ``(N, p, n)`` and, where there are any, point scalars ``(N, p, s)``.
Law = Callable[..., Tensor]


@dataclass(frozen=True)
class Task:
    """Samples of an equivariant law: ``x (N, p, n)``, targets ``y``, and the truth behind them.

    ``clean`` has the targets without noise; where it is None there is none. ``frame`` is the M of x → Mx for a task
    that was moved. ``along`` is the covector s where a function of sᵀx₁ breaks the law.
    """

    name: str
    x: Tensor
    y: Tensor
    output: str
    form: QuadraticForm
    point_scalars: Tensor | None = None
    law: Law | None = None
    clean: Tensor | None = None
    frame: Tensor | None = None
    along: Tensor | None = None

    @property
    def points(self) -> int:
        """Vectors in a sample."""
        return self.x.shape[1]

    @property
    def truth(self) -> Tensor:
        """The targets without noise."""
        return self.y if self.clean is None else self.clean

    def __getitem__(self, rows: slice | Tensor) -> Task:
        """The same law on some of the samples."""

        scalars, clean = (None if t is None else t[rows] for t in (self.point_scalars, self.clean))
        return replace(self, x=self.x[rows], y=self.y[rows], point_scalars=scalars, clean=clean)

    def with_noise(self, noise: float, seed: int = 0) -> Task:
        """Gaussian noise of this standard deviation on every entry of the targets."""
        if not noise:
            return self
        shake = torch.randn(
            self.y.shape, dtype=self.y.dtype, generator=random_generator(7_654_321 * seed + 17)
        )
        return replace(self, y=self.y + noise * shake, clean=self.truth)

    def in_frame(self, M: Tensor) -> Task:
        """The same samples in other coordinates: x → Mx, y → ρ(M)y, A → M⁻ᵀAM⁻¹."""
        M = M.double()
        rep, inverse, law = as_rep(self.output), torch.linalg.inv(M), self.law

        def moved(x: Tensor, *scalars: Tensor) -> Tensor:
            assert law is not None
            return rep.act(M, law(x @ inverse.T, *scalars))

        return replace(
            self,
            name=f"{self.name}, hidden frame",
            x=self.x @ M.T,
            y=rep.act(M, self.y),
            form=QuadraticForm(inverse.T @ self.form.matrix @ inverse),
            law=None if law is None else moved,
            clean=None if self.clean is None else rep.act(M, self.clean),
            frame=M if self.frame is None else M @ self.frame,
            along=None if self.along is None else inverse.T @ self.along,
        )

    def given(self, y: Tensor) -> Tensor:
        """Targets or predictions of a task that was moved, back in the frame it came from."""
        return y if self.frame is None else as_rep(self.output).act(torch.linalg.inv(self.frame), y)

    def hidden(self, seed: int = 0, condition: float = 4.0) -> Task:
        """The task in a random frame of this condition number, so that nothing known of the frame can help."""
        generator = random_generator(1_000_003 * seed + 1)
        sizes = condition ** torch.linspace(-0.5, 0.5, self.form.n, dtype=torch.float64)
        left, right = haar(self.form.n, (2,), generator)
        return self.in_frame(left * sizes @ right)

    def assert_law(self, samples: int = 200, tolerance: float = 1e-9, seed: int = 0) -> None:
        """Raise AssertionError unless f(gx) = ρ(g) f(x) for random g, and the clean targets are f(x)."""
        if self.law is None:
            raise ValueError(f"{self.name} carries no law to check")
        few = self[:samples]
        given = () if few.point_scalars is None else (few.point_scalars,)
        torch.testing.assert_close(few.truth, self.law(few.x, *given), rtol=1e-9, atol=1e-9)
        assert_equivariant(
            self.law, self.form, "vector", self.output, few.x, arguments=given, tolerance=tolerance, seed=seed
        )


def _draw(
    name: str, law: Law, form: QuadraticForm, output: str, x: Tensor, scalars: Tensor | None = None
) -> Task:
    y = law(x) if scalars is None else law(x, scalars)
    return Task(name, x, y, output, form, scalars, law)


def _positions(samples: int, shape: tuple[int, ...], distribution: str, generator: torch.Generator) -> Tensor:
    """Uniform in [-1, 1] or standard normal coordinates."""
    if distribution == "uniform":
        return 2 * torch.rand(samples, *shape, dtype=torch.float64, generator=generator) - 1
    if distribution == "normal":
        return torch.randn(samples, *shape, dtype=torch.float64, generator=generator)
    raise ValueError(f"distribution {distribution!r}: choose uniform or normal")


def synthetic(
    samples: int = 10_000,
    seed: int = 0,
    noise: float = 0.0,
    form: QuadraticForm | None = None,
    distribution: str = "uniform",
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

    def law(x: Tensor) -> Tensor:
        x = x[:, 0]
        M = x[:, :, None] * (x @ A)[:, None, :]
        return 9 * M @ M + 2 * M

    x = _positions(samples, (1, 4), distribution, generator)
    return _draw("synthetic O(2,2)", law, form, "conjugation", x).with_noise(noise, seed)


def _moment_of_inertia(r: Tensor, m: Tensor) -> Tensor:
    total = (m * r * r).sum((1, 2))[:, None, None] * torch.eye(3, dtype=r.dtype)
    return total - (m * r).mT @ r


def inertia(samples: int = 10_000, masses: int = 5, seed: int = 0, distribution: str = "uniform") -> Task:
    """Moment of inertia Σ m (|r|² I - r rᵀ) of point masses (the paper's task 2).

    ``uniform``: masses U(0,1), positions uniform in [-1, 1]³. ``normal``, EMLP's own distribution: masses
    softplus(N(0,1)), positions N(0, I).
    """
    generator = random_generator(seed)
    if distribution == "normal":
        m = torch.randn(samples, masses, 1, dtype=torch.float64, generator=generator)
        m = torch.nn.functional.softplus(m)
    else:
        m = torch.rand(samples, masses, 1, dtype=torch.float64, generator=generator)
    r = _positions(samples, (masses, 3), distribution, generator)
    form = QuadraticForm.euclidean(3)
    return _draw("moment of inertia", _moment_of_inertia, form, "bilinear", r, m)


def o5(samples: int = 10_000, seed: int = 0) -> Task:
    """sin|x₁| - |x₂|³/2 + cos∠(x₁, x₂) for two vectors N(0, I₅): the O5 task of the EMLP tables."""

    def law(x: Tensor) -> Tensor:
        one, two = x.norm(dim=-1).unbind(1)
        return one.sin() - two**3 / 2 + (x[:, 0] * x[:, 1]).sum(-1) / (one * two)

    x = _positions(samples, (2, 5), "normal", random_generator(seed))
    return _draw("O5", law, QuadraticForm.euclidean(5), "scalar", x)


def particle(samples: int = 10_000, seed: int = 0) -> Task:
    """A scattering amplitude of four four-momenta N(0, 1)/4: the Particle task of the EMLP tables, O(1,3)."""
    form = QuadraticForm.minkowski()

    def law(x: Tensor) -> Tensor:
        s = form.gram(x)
        a, b = s[:, 0, 2] - s[:, 0, 0], s[:, 1, 3] - s[:, 1, 1]
        return 4 * (s[:, 0, 1] * s[:, 2, 3] - s[:, 0, 2] * b - s[:, 1, 3] * a + 4 * a * b)

    x = _positions(samples, (4, 4), "normal", random_generator(seed)) / 4
    return _draw("Particle", law, form, "scalar", x)


def second_vector(samples: int = 1_000, form: QuadraticForm | None = None, seed: int = 0) -> Task:
    """f(x₁, x₂) = x₂: equivariant, yet no function of the paper's tuple form (M5)."""
    form = form or QuadraticForm.euclidean(2)
    x = torch.randn(samples, 2, form.n, dtype=torch.float64, generator=random_generator(seed))
    return _draw("second vector", lambda x: x[:, 1].clone(), form, "vector", x)


#: The tasks of the public tables, by name; Inertia is EMLP's.
PUBLIC: dict[str, Callable[[int, int], Task]] = {
    "O5": o5,
    "Inertia": lambda samples, seed: inertia(samples, seed=seed, distribution="normal"),
    "Particle": particle,
}
