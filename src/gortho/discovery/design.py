"""`Design`: the design matrix of a linear family in factored form; products are formed, rarely the matrix itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Design:
    """The matrix D of a linear family, D_(z c)(l f) = B_zlc φ_zf: functions times products of vectors and metric.

    Its squares, and products with it, cost less than the matrix itself would.

    Attributes:
        functions: φ ``(N, F)``.
        basis: B ``(N, L, components)``, or None: then D is φ.
    """

    functions: Tensor
    basis: Tensor | None = None

    def weighted(self, root: Tensor) -> Design:
        """With rows of sample z times ``root (N,)``."""
        if self.basis is None:
            rows = root.repeat_interleave(len(self.functions) // len(root))
            return Design(self.functions * rows[:, None])
        return Design(self.functions, self.basis * root[:, None, None])

    def squares(self) -> Tensor:
        """DᵀD."""
        f, B = self.functions, self.basis
        if B is None:
            return f.mT @ f
        F, L = f.shape[1], B.shape[1]
        i, j = torch.triu_indices(L, L)
        G = (B @ B.mT)[:, i, j]
        blocks = (f.mT @ (G[:, :, None] * f[:, None]).flatten(1)).unflatten(1, (-1, F))
        whole = f.new_empty(L, F, L, F)
        whole[i, :, j] = whole[j, :, i] = blocks.movedim(1, 0)
        return whole.flatten(0, 1).flatten(1)

    def times(self, c: Tensor) -> Tensor:
        """D c for ``c (L · F, m)``."""
        f, B = self.functions, self.basis
        if B is None:
            return f @ c
        inner = (f @ c.unflatten(0, (-1, f.shape[1])).movedim(0, 1).flatten(1)).unflatten(1, (B.shape[1], -1))
        return (B.mT @ inner).flatten(0, 1)

    def transposed_times(self, y: Tensor) -> Tensor:
        """Dᵀ y for ``y (N · components, m)``."""
        f, B = self.functions, self.basis
        if B is None:
            return f.mT @ y
        inner = B @ y.unflatten(0, (len(f), -1))
        return (f.mT @ inner.flatten(1)).unflatten(1, (B.shape[1], -1)).movedim(0, 1).flatten(0, 1)

    def dense(self) -> Tensor:
        """D itself, ``(N · components, L · F)``."""
        f, B = self.functions, self.basis
        return f if B is None else (B.mT[:, :, :, None] * f[:, None, None]).flatten(2).flatten(0, 1)
