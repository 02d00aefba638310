"""Laws that keep less than O(A), or another group: directions, origins, handedness, spaces, skew forms (M15-M17).

Each is drawn with x ~ N(0, I) in a plain frame and then moved to a hidden one, x → Mx with a random M of condition 3,
in which no basis vector means anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.groups import haar, random_generator
from gortho.reps import as_rep
from gortho.symmetry import Symmetry

#: Condition of the hidden frames.
CONDITION = 3.0


@dataclass(frozen=True)
class BrokenTask:
    """Samples ``x (N, p, n)``, ``y`` of a law, told as ``output``, and the symmetry that it has.

    Of vectors of different dimension, x is a list of arrays, one for each kind.
    """

    kind: str
    x: Tensor | list[Tensor]
    y: Tensor
    output: str
    symmetry: Symmetry
    scalars: Tensor | None = None
    set_like: bool = False

    def rows(self, index: slice) -> BrokenTask:
        """Some of the samples."""
        x = [part[index] for part in self.x] if isinstance(self.x, list) else self.x[index]
        return replace(self, x=x, y=self.y[index])


def _unit(n: int, generator: torch.Generator) -> Tensor:
    return haar(n, (), generator)[0]


def _square(x: Tensor) -> Tensor:
    return x.square().sum(-1)


def _energy(x: Tensor, s: Tensor) -> Tensor:
    return (1 + _square(x[:, 0])).sqrt() + torch.sin(1.5 * x[:, 0] @ s)


def _weight(x: Tensor, s: Tensor) -> Tensor:
    return -(1 + 0.5 * _square(x)) * x[:, 0] + 1.5 * s


def _well(x: Tensor, c: Tensor) -> Tensor:
    return 1 / (1 + 0.5 * _square(x[:, 0] - c))


def _torque(x: Tensor, _: Tensor) -> Tensor:
    return torch.linalg.cross(x[:, 0], x[:, 1])


def _lorentz(x: Tensor, _: Tensor) -> Tensor:
    return x[:, 0] + torch.linalg.cross(x[:, 1], x[:, 2])


def _chirality(x: Tensor, _: Tensor) -> Tensor:
    return torch.linalg.det(x) / (1 + _square(x).sum(1)).sqrt()


def _skew(x: Tensor, i: int, j: int) -> Tensor:
    """ω(x_i, x_j) = Im z̄_i z_j with positions before momenta, z = q + ip."""
    q, p = x.chunk(2, -1)
    return (q[:, i] * p[:, j] - p[:, i] * q[:, j]).sum(-1)


def _symplectic(x: Tensor, _: Tensor) -> Tensor:
    return torch.sin(_skew(x, 0, 1)) + 0.5 * _skew(x, 0, 2) * _skew(x, 1, 2)


def _overlap(x: Tensor, _: Tensor) -> Tensor:
    square = (x[:, 0] * x[:, 1]).sum(-1).square() + _skew(x, 0, 1).square()
    return torch.log(1 + square)


@dataclass(frozen=True)
class Kind:
    """A kind of law in R^n: vectors in a sample, how the output is told, the law, and what its symmetry has."""

    points: int
    output: str
    law: Callable[[Tensor, Tensor], Tensor]
    has: str = ""
    n: int = 3


KINDS: dict[str, Kind] = {
    "energy": Kind(1, "scalar", _energy, "direction"),
    "weight": Kind(1, "vector", _weight, "direction"),
    "well": Kind(1, "scalar", _well, "origin"),
    "torque": Kind(2, "vector", _torque),
    "lorentz": Kind(3, "vector", _lorentz, "handed"),
    "chirality": Kind(3, "scalar", _chirality),
    "symplectic": Kind(3, "scalar", _symplectic, "Sp(4)", 4),
    "unitary": Kind(2, "scalar", _overlap, "U(2)", 4),
}


def _hidden(n: int, generator: torch.Generator) -> Tensor:
    U, V = haar(n, (2,), generator)
    return U * torch.logspace(0, 1, n, base=CONDITION, dtype=torch.float64) @ V


def _with_noise(y: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    size = (y - y.mean(0)).square().mean().sqrt()
    return y + noise * size * torch.randn(y.shape, dtype=y.dtype, generator=generator)


def broken(kind: str, seed: int = 0, samples: int = 2_000, noise: float = 0.0) -> BrokenTask:
    """A law of one of the `KINDS` or `OF_SPACES`, in a hidden frame; noise is a share of the spread of y.

    >>> print(broken("torque").symmetry)
    O(3)
    """
    if kind in OF_SPACES:
        return OF_SPACES[kind](seed, samples, noise)
    made, generator = KINDS[kind], random_generator(seed)
    n = made.n
    x = torch.randn(samples, made.points, n, dtype=torch.float64, generator=generator)
    s = _unit(n, generator)
    given = 0.7 * s if made.has == "origin" else s
    y = _with_noise(made.law(x, given), noise, generator)
    if "(" in made.has:
        plain = Symmetry.parse(made.has)
    else:
        plain = Symmetry(
            QuadraticForm.euclidean(n),
            special=made.has == "handed",
            directions=s[None] if made.has == "direction" else None,
            origin=given if made.has == "origin" else None,
        )
    M = _hidden(n, generator)
    return BrokenTask(kind, x @ M.mT, as_rep(made.output).act(M, y), made.output, plain.in_basis(M))


def _two_spaces(seed: int, samples: int, noise: float) -> BrokenTask:
    """y = tanh(⟨x₁, x₂⟩) + ½ √(1 + q₃²) with a form for the first two vectors and one of another kind for the third."""
    generator = random_generator(seed)
    x = torch.randn(samples, 3, 3, dtype=torch.float64, generator=generator)
    signs = torch.tensor([-1.0, 1.0, 1.0], dtype=torch.float64)
    q = (signs * x[:, 2].square()).sum(1)
    y = _with_noise(torch.tanh((x[:, 0] * x[:, 1]).sum(1)) + 0.5 * (1 + q.square()).sqrt(), noise, generator)
    frames = [_hidden(3, generator) for _ in range(2)]
    moved = torch.cat([x[:, :2] @ frames[0].mT, x[:, 2:] @ frames[1].mT], 1)
    inverse = [torch.linalg.inv(M) for M in frames]
    forms = [QuadraticForm(inverse[0].mT @ inverse[0]), QuadraticForm(inverse[1].mT * signs @ inverse[1])]
    return BrokenTask("spaces", moved, y, "scalar", Symmetry(forms, spaces=[0, 0, 1]))


def _two_dimensions(seed: int, samples: int, noise: float) -> BrokenTask:
    """As "spaces", with a third vector in the plane, q₃ = u² - v²."""
    generator = random_generator(seed)
    x, u = (
        torch.randn(samples, *shape, dtype=torch.float64, generator=generator) for shape in ((2, 3), (1, 2))
    )
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    q = (signs * u[:, 0].square()).sum(1)
    y = _with_noise(torch.tanh((x[:, 0] * x[:, 1]).sum(1)) + 0.5 * (1 + q.square()).sqrt(), noise, generator)
    frames = [_hidden(n, generator) for n in (3, 2)]
    inverse = [torch.linalg.inv(M) for M in frames]
    forms = [QuadraticForm(inverse[0].mT @ inverse[0]), QuadraticForm(inverse[1].mT * signs @ inverse[1])]
    moved = [x @ frames[0].mT, u @ frames[1].mT]
    return BrokenTask("dimensions", moved, y, "scalar", Symmetry(forms, spaces=[0, 0, 1]))


def _two_frames(seed: int, samples: int, noise: float, force: bool) -> BrokenTask:
    """Two vectors that move together, the second in a frame of its own: an energy of both, or a force on the first."""
    generator = random_generator(seed)
    x = torch.randn(samples, 2, 3, dtype=torch.float64, generator=generator)
    inner = (x[:, 0] * x[:, 1]).sum(1)
    if force:
        y = x[:, 1] / (1 + 0.5 * _square(x[:, 0]))[:, None] - torch.tanh(inner)[:, None] * x[:, 0]
    else:
        y = torch.tanh(inner) + 0.5 * (1 + _square(x[:, 0])).sqrt()
    y = _with_noise(y, noise, generator)
    M, N = (_hidden(3, generator) for _ in range(2))
    back = torch.linalg.inv(M)
    symmetry = Symmetry(QuadraticForm(back.mT @ back), spaces=[0, 1], maps=[M @ torch.linalg.inv(N)])
    moved = torch.stack([x[:, 0] @ M.mT, x[:, 1] @ N.mT], 1)
    output = "vector" if force else "scalar"
    return BrokenTask(
        "frames force" if force else "frames", moved, as_rep(output).act(M, y), output, symmetry
    )


def modified_inertia(seed: int = 0, samples: int = 2_000) -> BrokenTask:
    """y = I + 0.3 (I g) gᵀ with I the moment of inertia of five masses and g fixed: O(3) with one direction."""
    generator = random_generator(seed)
    r = torch.randn(samples, 5, 3, dtype=torch.float64, generator=generator)
    m = torch.nn.functional.softplus(torch.randn(samples, 5, dtype=torch.float64, generator=generator))
    g = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    inertia = (m * _square(r)).sum(1)[:, None, None] * torch.eye(3, dtype=torch.float64) - torch.einsum(
        "zi,zia,zib->zab", m, r, r
    )
    y = inertia + 0.3 * (inertia @ g)[:, :, None] * g
    symmetry = Symmetry(QuadraticForm.euclidean(3), directions=g[None])
    return BrokenTask("inertia", r, y, "bilinear", symmetry, m, set_like=True)


#: Laws of several spaces.
OF_SPACES: dict[str, Callable[[int, int, float], BrokenTask]] = {
    "spaces": _two_spaces,
    "dimensions": _two_dimensions,
    "frames": partial(_two_frames, force=False),
    "frames force": partial(_two_frames, force=True),
}
