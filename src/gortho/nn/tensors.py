"""Inputs other than vectors: covectors, and (pseudo)tensors of rank two, as stresses, polarisabilities, field tensors.

The metric makes a vector A⁻¹w of a covector, and an operator M of every tensor of rank two: T itself with one index up
and one down, TA with two up, A⁻¹T with two down. Under g ∈ O(A) M becomes gMg⁻¹, so Mx and M*x, with the adjoint
M* = A⁻¹MᵀA, are vectors beside x, and tr M, tr M², tr MM* are scalars: an O(A) law of all these is a law of the tensors
(M4).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from gortho import checks
from gortho.forms import QuadraticForm
from gortho.nn.exact import EquivariantNet
from gortho.nn.form import FixedVectors
from gortho.nn.units import positive
from gortho.reps import Rep, as_rep


class TensorNet(EquivariantNet):
    """f(v, w, T, …) with f(ρ(g) …) = ρ(g) f for every g ∈ O(A), of vectors, covectors and tensors of rank two.

    Args:
        form: a `QuadraticForm` or symmetric matrix that is not singular.
        inputs: what comes in, in order: "vector", "covector", "conjugation", "bilinear", "form", "pseudovector", …, or
            rep objects. `pack` lays the values out as rows ``(batch, rows, n)``, a matrix as n of them.
        output: a scalar, vector or covector, odd or not, or a sum of such.
        words: maximum number of operators multiplied onto a vector x_i.
        options: as of `EquivariantNet`: ``sample_scalars``, ``width``, ``depth``, ``features``, ``seed``.

    >>> import torch, gortho
    >>> net = TensorNet(gortho.QuadraticForm.minkowski(), ["vector", "bilinear"], "vector")    # a velocity, a field F
    >>> net(net.pack([torch.randn(10, 4), torch.randn(10, 4, 4)])).shape
    torch.Size([10, 4])
    """

    kind = "tensor"

    def __init__(
        self,
        form: QuadraticForm | Any,
        inputs: Sequence[str | Rep],
        output: str | Rep = "scalar",
        *,
        words: int = 1,
        sample_scalars: int = 0,
        **options: Any,
    ):
        form = form if isinstance(form, QuadraticForm) else QuadraticForm(form)
        reps = [as_rep(one).parts for one in inputs]
        if not reps or any(len(parts) > 1 or parts[0].rank not in (1, 2) for parts in reps):
            raise ValueError(
                f"inputs = {list(inputs)}: give vectors, covectors and tensors of rank two, at least one"
            )
        if form.signature.zero:
            raise ValueError(
                f"{form.group_name}: the form is singular, so indices cannot be raised; give one that is not"
            )
        kinds = tuple(parts[0] for parts in reps)
        vectors = [kind for kind in kinds if kind.rank == 1]
        matrices = [kind for kind in kinds if kind.rank == 2]
        if any(part.rank > (1 if vectors else 0) for part in as_rep(output).parts):
            raise ValueError(
                f"from {list(map(str, inputs))} outputs are scalars{', vectors and covectors' * bool(vectors)}, not "
                f"{as_rep(output)}"
            )
        odd = [False]  # of the operators that vectors are multiplied with
        for _ in range(words):
            odd = [False, *(one ^ m.odd for one in odd for m in matrices for _ in range(2))]
        axial = [i for i, flip in enumerate(flip ^ v.odd for flip in odd for v in vectors) if flip]
        traces = sum(2 if m.odd else 4 for m in matrices)
        traces += 2 * sum(one.odd == other.odd for one, other in combinations(matrices, 2))
        super().__init__(
            form,
            max(1, len(odd) * len(vectors)),
            output,
            sample_scalars=sample_scalars + traces,
            axial=axial,
            **options,
        )
        self.kinds, self.words = kinds, words
        self.raising = FixedVectors(torch.linalg.inv(form.matrix))
        self.register_buffer("matrix_scale", torch.ones(len(matrices)))

    matrix_scale: Tensor

    def pack(self, values: Sequence[Tensor]) -> Tensor:
        """The inputs, each ``(batch, n)`` or ``(batch, n, n)``, as rows ``(batch, rows, n)``."""
        if len(values) != len(self.kinds):
            raise ValueError(
                f"{len(values)} values for {len(self.kinds)} inputs {list(self.kinds)}: give one for each"
            )
        rows = []
        for value, kind in zip(values, self.kinds):
            if tuple(value.shape[1:]) != kind.shape(self.n):
                raise ValueError(
                    f"a {kind} has shape (batch, …): {tuple(value.shape)}, expected {kind.shape(self.n)}"
                )
            rows.append(value.reshape(len(value), -1, self.n))
        return torch.cat(rows, 1)

    def _unpacked(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Vectors ``(batch, v, n)``, and the operators ``(batch, n, n)`` in units of their own."""
        checks.require_vectors(x, self.n)
        sizes = [1 if kind.rank == 1 else self.n for kind in self.kinds]
        if x.ndim != 3 or x.shape[1] != sum(sizes):
            raise ValueError(
                f"x has shape {tuple(x.shape)}: give (batch, {sum(sizes)}, {self.n}), as pack does"
            )
        A, inverse = self.form.matrix().to(x), self.raising.value.to(x)
        vectors, operators = [x.new_zeros(len(x), 0, self.n)], []
        for value, kind in zip(x.split(sizes, 1), self.kinds):
            if kind.rank == 1:
                vectors.append(value @ inverse if kind.down else value)
            else:
                operators.append(
                    value if kind.up == kind.down else value @ A if kind.up == 2 else inverse @ value
                )
        return torch.cat(vectors, 1), [M / scale for M, scale in zip(operators, self.matrix_scale)]

    def _made(self, x: Tensor, sample: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The tuple of vectors and the scalars that the inner law is one of."""
        vectors, operators = self._unpacked(x)
        A, inverse = self.form.matrix().to(x), self.raising.value.to(x)
        pairs = [both for M in operators for both in (M, inverse @ M.mT @ A)]
        tuples = [vectors]
        for _ in range(self.words):
            tuples = [vectors, *(v @ M.mT for v in tuples for M in pairs)]
        scalars = [] if sample is None else [sample]
        odd = [kind.odd for kind in self.kinds if kind.rank == 2]
        each = list(zip(odd, pairs[::2], pairs[1::2]))
        products: list[Tensor] = []  # those that no reflection changes
        for parity, M, adjoint in each:
            products += [M @ M, M @ adjoint] if parity else [M, M @ M, M @ M @ M, M @ adjoint]
        for (parity, M, _), (same, N, adjoint) in combinations(each, 2):
            products += [M @ N, M @ adjoint] if parity == same else []
        scalars += [P.diagonal(dim1=1, dim2=2).sum(1, keepdim=True) for P in products]
        X = torch.cat(tuples, 1) if vectors.shape[1] else x.new_zeros(len(x), 1, self.n)
        return X, torch.cat(scalars, 1) if scalars else None

    def forward(
        self, x: Tensor, point_scalars: Tensor | None = None, sample_scalars: Tensor | None = None
    ) -> Tensor:
        """Predict for packed inputs ``(batch, rows, n)`` and scalars ``(batch, s)``."""
        X, sample = self._made(x, sample_scalars)
        return super().forward(X, point_scalars, sample)

    @torch.no_grad()
    def calibrate(
        self, x: Tensor, y: Tensor, point_scalars: Tensor | None = None, sample_scalars: Tensor | None = None
    ) -> None:
        """Fit the units to training data: as `EquivariantNet`, and one for each tensor of rank two."""
        self.matrix_scale.fill_(1.0)
        form: Any = self.form
        frame = form.frame.to(x)  # where A is diag(±1): units follow no frame
        for place, M in enumerate(self._unpacked(x)[1]):
            inside = frame @ M @ torch.linalg.inv(frame)
            self.matrix_scale[place] = positive(inside.square().mean().sqrt() * self.n**0.5)
        X, sample = self._made(x, sample_scalars)
        super().calibrate(X, y, point_scalars, sample)
