"""What every method in the tables offers: fit, predict, generators, quadratic form; and where it stands in them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.groups import symmetric_basis
from gortho.nn.exact import EquivariantNet
from gortho.reps import Rep
from gortho.studies.tasks import Task
from gortho.training import predict

#: The noises of the paper's own table. Methods that are slow, or find no form, are fitted at these only.
PAPER_NOISES = (0.5, 1.0)


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


@dataclass(frozen=True)
class Stand:
    """Where a method stands in a table.

    Attributes:
        place: its place from the top, in any numbers; the end by default.
        at: the sizes, noises or tasks of the table at which it is fitted, all of them by default.
        label: what the table calls it, where that is not its name.
    """

    place: float = math.inf
    at: tuple[float, ...] | None = None
    label: str = ""


@dataclass(frozen=True)
class Variant:
    """A method as the tables have it: its name there, and how it is made.

    Attributes:
        name: as in the rows.
        tables: where it stands, by the name of the table.
        options: what its class is given; ``quick``: what it is given instead in quick runs.
        told: what it is given of a task, such as the form; None where it has nothing to do on a task.
        read_off: the methods whose trained network it takes over, when they are fitted: stored fits are not repeated
            for it. It is fitted by itself in tables without these.
    """

    name: str
    tables: Mapping[str, Stand]
    options: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    told: Callable[[Task], Mapping[str, Any] | None] = lambda task: {}
    read_off: tuple[str, ...] = ()


class Method(ABC):
    """A method that fits samples of a law, predicts, and may say which symmetry it has found.

    Attributes:
        generators: orthonormal generators ``(d, n, n)`` in float64 of the symmetry found; None if it finds none.
        notes: what else there is to say of this fit, such as the hyperparameter that validation chose.
    """

    #: The names that the tables have for it, none if it stands in no table.
    variants: tuple[Variant, ...] = ()
    #: What was tried before the tables were made, and on which data it was chosen.
    tuning: str = ""
    #: Its place from the top on the page that says so.
    place: float = math.inf
    generators: Tensor | None = None
    network: EquivariantNet

    def __init__(self, output: str | Rep = "scalar", seed: int = 0):
        self.output, self.seed = output, seed
        self.notes: dict[str, Any] = {}

    @abstractmethod
    def fit(self, X: Tensor, y: Tensor, scalars: Tensor | None = None) -> Method:
        """Fit samples ``X (N, p, n)``, targets ``y`` and point scalars ``(N, p, s)``; hold out what is needed."""

    def take_over(self, fitted: Method, X: Tensor, scalars: Tensor | None = None) -> None:
        """Take the network of a method that was fitted to these samples, in place of training one."""
        self.network = fitted.network

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
