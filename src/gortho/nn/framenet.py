"""The frame form: f(x) = g(x)·φ_n(Gram) with a frame g(x) ∈ O(A) built from the whole tuple (M5).

An indefinite Gram-Schmidt turns x_1 … x_k into f_1 … f_k with ⟨f_i, f_j⟩ = ±δ_ij; these are the images g(x) e_i
of fixed references. Values fixed by the stabiliser of e_1 … e_k are assembled from the e_i (M4), and ρ(g(x)) of
such a value is the same assembly from the f_i, which is what is computed here. The frame is undefined on tuples
with a null remainder on the way: `degenerate` counts them, and near them the output is as large as 1/NULL.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gortho.nn.basis import even_shapes
from gortho.nn.exact import EquivariantNet
from gortho.nn.invariants import TupleCoefficients

#: A remainder counts as null when |q| is below this, for vectors of unit scale; there the frame is meaningless.
NULL = 1e-10


class FrameNet(EquivariantNet):
    """Equivariant network in the frame form, for ordered tuples and any output."""

    kind = "frame"
    takes_symmetries = False

    def build(self, width: int, depth: int) -> None:
        if self.set_like:
            raise ValueError(
                "a frame needs an order of the points: use the basis form (EquivariantNet) for sets"
            )
        scalars = self.points * self.point_scalars + self.sample_scalars
        self.vectors = min(self.points, self.form.rank)  # more have a null remainder always
        # ⟨f_i, x_j⟩: functions of the Gram matrix, given to save learning them.
        coordinates = self.points * self.vectors
        self.coefficients = TupleCoefficients(
            self.points,
            even_shapes(self.rep.parts, self.vectors, self.form.singular),
            scalars + coordinates,
            width,
            depth,
        )

    def frame_vectors(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """f_1 … f_k ``(batch, k, n)`` and the smallest |q| of a remainder ``(batch,)``."""
        frame: list[Tensor] = []
        duals: list[Tensor] = []  # ± A f_i, so that ⟨rest, f_i⟩ = 0 after subtracting
        smallest: list[Tensor] = []
        for i in range(self.vectors):
            rest = X[:, i]
            for _ in range(2):  # twice is enough for orthogonality to rounding
                for f, dual in zip(frame, duals):
                    rest = rest - (rest * dual).sum(-1, keepdim=True) * f
            lowered = self.form.lowered(rest)
            q = (rest * lowered).sum(-1, keepdim=True)
            length = q.abs().clamp_min(NULL).sqrt()
            frame.append(rest / length)
            duals.append(lowered / length * q.sign())
            smallest.append(q.abs()[:, 0])
        return torch.stack(frame, dim=1), torch.stack(smallest, dim=-1).amin(-1)

    @torch.no_grad()
    def degenerate(self, x: Tensor) -> int:
        """How many of the tuples have no frame."""
        return int((self.frame_vectors(self._tuples(x) / self.x_scale)[1] <= NULL).sum())

    def values(self, X: Tensor, scalars: tuple[Tensor | None, Tensor | None]) -> list[Tensor]:
        F, _ = self.frame_vectors(X)
        lowered, metric = self.form.lowered(F), self.form.metric()
        point, sample = scalars
        coordinates = (lowered @ X.mT).flatten(1)
        sample = coordinates if sample is None else torch.cat([coordinates, sample], dim=-1)
        coefficients = self.coefficients(self.form.gram(X) / self.n**0.5, point, sample)
        return [part.assemble(c, F, lowered, metric) for part, c in zip(self.rep.parts, coefficients)]
