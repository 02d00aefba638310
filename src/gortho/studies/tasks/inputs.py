"""Inputs as measurements have them: each maker gives samples (N, points, n) in the plain frame."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from gortho.groups import haar


def _normal(samples: int, points: int, n: int, generator: torch.Generator) -> Tensor:
    return torch.randn(samples, points, n, dtype=torch.float64, generator=generator)


def uniform(generator: torch.Generator, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
    return low + (high - low) * torch.rand(*shape, dtype=torch.float64, generator=generator)


def _nearly_planar(samples: int, points: int, n: int, generator: torch.Generator) -> Tensor:
    x, normal = _normal(samples, points, n, generator), haar(n, (), generator)[0]
    return x - 0.95 * (x @ normal)[..., None] * normal


def _decades(samples: int, points: int, n: int, generator: torch.Generator) -> Tensor:
    x = _normal(samples, points, n, generator)
    return x / x.norm(dim=-1, keepdim=True) * 10 ** uniform(generator, samples, points, 1, low=-1)


def _off_centre(samples: int, points: int, n: int, generator: torch.Generator) -> Tensor:
    centres = _normal(1, points, n, generator)
    return _normal(samples, points, n, generator) + 3 * centres / centres.norm(dim=-1, keepdim=True)


def _heavy_tails(samples: int, points: int, n: int, generator: torch.Generator) -> Tensor:
    chi = _normal(samples, points, 4, generator).square().mean(-1, keepdim=True)  # 4 degrees of freedom
    return _normal(samples, points, n, generator) / chi.sqrt()


def _correlated(samples: int, points: int, n: int, generator: torch.Generator) -> Tensor:
    own, shared = _normal(samples, points, n, generator), _normal(samples, points, 1, generator)
    return 0.05**0.5 * own + 0.95**0.5 * shared


def _clusters(samples: int, points: int, n: int, generator: torch.Generator) -> Tensor:
    centres = 1.5 * _normal(6, 1, n, generator)[:, 0]
    which = torch.randint(len(centres), (samples, points), generator=generator)
    return centres[which] + 0.25 * _normal(samples, points, n, generator)


def _mass_shell(samples: int, points: int, n: int, generator: torch.Generator) -> Tensor:
    momentum = _normal(samples, points, n - 1, generator)
    if points == 1:  # with few masses an invariant of one particle would take few values
        mass = 10 ** uniform(generator, samples, 1, 1, low=-0.5, high=0.5)
    else:
        species = torch.tensor([0.14, 0.49, 0.94], dtype=torch.float64)
        mass = species[torch.randint(3, (samples, points, 1), generator=generator)]
    return torch.cat([(mass**2 + momentum.square().sum(-1, keepdim=True)).sqrt(), momentum], dim=-1)


def _orbits(samples: int, points: int, n: int, generator: torch.Generator) -> Tensor:
    """Twelve Kepler ellipses about the origin, their sizes over a decade, their planes scattered about one."""
    plane = haar(n, (), generator)[:, :2] + 0.3 * _normal(12, n, 2, generator)
    axes = torch.linalg.qr(plane).Q
    size, eccentricity = 10 ** uniform(generator, 12), uniform(generator, 12, high=0.6)
    which = torch.randint(12, (samples, points), generator=generator)
    angle = uniform(generator, samples, points, high=2 * math.pi)
    radius = (size * (1 - eccentricity**2))[which] / (1 + eccentricity[which] * angle.cos())
    in_plane = radius[..., None] * torch.stack([angle.cos(), angle.sin()], dim=-1)
    return (axes[which] @ in_plane[..., None])[..., 0]


#: Families of inputs. Columns in other units are normal ones whose frame has these units, too.
INPUTS: dict[str, Callable[[int, int, int, torch.Generator], Tensor]] = {
    "normal": _normal,
    "units": _normal,
    "nearly planar": _nearly_planar,
    "decades": _decades,
    "off-centre": _off_centre,
    "heavy tails": _heavy_tails,
    "correlated": _correlated,
    "clusters": _clusters,
    "mass shell": _mass_shell,
    "orbits": _orbits,
}
