"""What every method in the tables offers: fit, predict, generators, quadratic form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.groups import symmetric_basis
from gortho.nn.exact import EquivariantNet
from gortho.reps import Rep
from gortho.training import predict


def form_of_generators(generators: Tensor) -> QuadraticForm:
    """The symmetric A with XᵀA + AX = 0 for all generators, in least squares."""
    basis = symmetric_basis(generators.shape[-1])
    columns = [(generators.mT @ B + B @ generators).flatten() for B in basis]
    smallest = torch.linalg.svd(torch.stack(columns, dim=1), full_matrices=False)[2][-1]
    return QuadraticForm(torch.einsum("k,kab->ab", smallest, basis))


def generator_distance(generators: Tensor, form: QuadraticForm) -> float:
    """d_PA between the span of orthonormal generators ``(d, n, n)`` and so(A) (M8)."""
    P, Q = generators.flatten(1).double(), form.group().algebra().flatten(1)
    return float(torch.linalg.matrix_norm(Q - (Q @ P.T) @ P))


class Method(ABC):
    """A method that fits samples of a law, predicts, and may say which symmetry it has found.

    Attributes:
        generators: orthonormal generators ``(d, n, n)`` in float64 of the symmetry found; None if it finds none.
        notes: what else there is to say of this fit, such as the hyperparameter that validation chose.
    """

    #: What was tried before the tables were made, and on which data it was chosen.
    tuning: str = ""
    generators: Tensor | None = None
    network: EquivariantNet

    def __init__(self, output: str | Rep = "scalar", seed: int = 0):
        self.output, self.seed = output, seed
        self.notes: dict[str, Any] = {}

    @abstractmethod
    def fit(self, X: Tensor, y: Tensor, scalars: Tensor | None = None) -> Method:
        """Fit samples ``X (N, p, n)``, targets ``y`` and point scalars ``(N, p, s)``; hold out what is needed."""

    def predict(self, X: Tensor, scalars: Tensor | None = None) -> Tensor:
        """Predictions ``(N, …)`` in float64: those of ``network``, where the method has one."""
        return predict(self.network, X, scalars)

    @property
    def parameters(self) -> int:
        """Number of trained parameters of the predictor."""
        return sum(p.numel() for p in self.network.parameters())

    @property
    def quadratic_form(self) -> QuadraticForm | None:
        """The form that the generators preserve best."""
        return None if self.generators is None else form_of_generators(self.generators)

    def distance(self, form: QuadraticForm) -> float | None:
        """d_PA of the generators to those of the true form."""
        return None if self.generators is None else generator_distance(self.generators, form)
