"""A Gaussian process of the invariants of a tuple: what few samples of a smooth law are predicted with best.

Its coordinates are either the inner products themselves, or lengths and cosines: a law of distances and angles is
smooth in these, though it has a root or a pole in the inner products. Its kernel is a smooth function of any kind and
a polynomial, which goes on beyond the samples.
"""

from __future__ import annotations

import enum

import torch
from torch import Tensor, nn

#: Lengths are smooth within this share of their unit.
SOFT = 1e-3


class Chart(enum.StrEnum):
    """Coordinates of a Gram matrix."""

    LENGTHS = "lengths and cosines"
    PRODUCTS = "inner products"

    @property
    def degree(self) -> int:
        """Degree of the polynomial part: a cube of a length, or a product of two inner products."""
        return 3 if self is Chart.LENGTHS else 2

    def __call__(self, gram: Tensor, unit: Tensor) -> Tensor:
        """The coordinates ``(..., p(p+1)/2)`` of ``(..., p, p)``; units of the squares of the vectors ``(..., p)``."""
        own, points = gram.diagonal(dim1=-2, dim2=-1) / unit, gram.shape[-1]
        if points == 1:  # without pairs, which ONNX has no empty lists for
            return own if self is Chart.PRODUCTS else own / (own.square() + SOFT**2) ** 0.25
        i, j = torch.triu_indices(points, points, 1, device=gram.device)
        mixed = gram[..., i, j] / (unit[..., i] * unit[..., j]).sqrt()
        if self is Chart.PRODUCTS:
            return torch.cat([own, mixed], -1)
        size = (own.square() + SOFT**2) ** 0.25
        # Smooth where a length is zero: its sign is rounding there, as of momenta without mass.
        return torch.cat([own / size, mixed / (size[..., i] * size[..., j])], -1)


def kernel(a: Tensor, b: Tensor, logs: Tensor, degree: int) -> Tensor:
    """k ``(N, M)`` of coordinates ``(N, d)`` and ``(M, d)``: a Gaussian and a polynomial.

    ``logs`` holds logarithms: d lengths of the Gaussian, d of the polynomial, both sizes, the polynomial's constant.
    """
    d = a.shape[1]
    smooth, poly, (size, part, constant) = (-logs[:d]).exp(), (-logs[d : 2 * d]).exp(), logs[2 * d :].exp()
    u, v = a * smooth, b * smooth
    apart = (u.square().sum(1)[:, None] + v.square().sum(1) - 2 * u @ v.mT).clamp_min(0.0)
    inner = constant.square() + (a * poly) @ (b * poly).mT
    return size.square() * (-apart / 2).exp() + part.square() * inner**degree


class ProcessCoefficients(nn.Module):
    """The mean of a fitted process, as the coefficient of a scalar output: Σ w_m k(z, z_m) + constant.

    Args:
        points: number of vectors.
        scalars: number of given scalars, per point and per sample, all laid flat.
        chart: coordinates, by name.
        centres: number of samples that it was fitted to.
        n: dimension of the vectors; networks hand over Gram matrices divided by √n.
    """

    unit: Tensor
    shift: Tensor
    scale: Tensor
    logs: Tensor
    centres: Tensor
    weights: Tensor
    constant: Tensor

    def __init__(self, points: int, scalars: int, chart: str, centres: int, n: int):
        super().__init__()
        self.chart, self.root = Chart(chart), n**0.5
        d = points * (points + 1) // 2 + scalars
        self.register_buffer("unit", torch.ones(points))
        self.register_buffer("shift", torch.zeros(d))
        self.register_buffer("scale", torch.ones(d))
        self.register_buffer("logs", torch.zeros(2 * d + 3))
        self.register_buffer("centres", torch.zeros(centres, d))
        self.weights = nn.Parameter(torch.zeros(centres))
        self.register_buffer("constant", torch.zeros(()))

    def forward(
        self, gram: Tensor, point_scalars: Tensor | None, sample_scalars: Tensor | None
    ) -> list[list[Tensor]]:
        given = [s.flatten(1) for s in (point_scalars, sample_scalars) if s is not None]
        z = (torch.cat([self.chart(gram * self.root, self.unit), *given], 1) - self.shift) / self.scale
        return [[kernel(z, self.centres, self.logs, self.chart.degree) @ self.weights + self.constant]]
