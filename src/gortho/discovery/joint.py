"""The end of the search: the form and a small network together, by variable projection (M12).

Functions of many invariants have more shapes than a fixed family has columns. A few neurons that move with the form
come nearer to the law, and the form comes nearer to the truth.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from gortho.discovery.projection import DAMPING, EASIER, HARDER, LEAST_DAMPING, TRIES, Projection, Solve
from gortho.nn.tuples import Neurons, TupleFeatures
from gortho.samples.frame import unit_form

#: Steps of form and neurons end when one gains less than this share of the criterion.
JOINT_GAIN = 0.01


@dataclass(frozen=True)
class Joint:
    """A projection whose family has neurons, and its solve."""

    projection: Projection
    at: Solve

    @classmethod
    def start(cls, projection: Projection, A: Tensor, count: int, seed: int) -> Joint:
        """Neurons at random beside the family, at a form."""
        features = projection.family.features
        assert isinstance(features, TupleFeatures)
        neurons = Neurons.at_random(len(features.own), count, torch.Generator().manual_seed(seed))
        return cls._at(projection, neurons, A)

    @classmethod
    def _at(cls, projection: Projection, neurons: Neurons, A: Tensor) -> Joint:
        other = copy.copy(projection)
        other.family = projection.family.with_neurons(neurons)
        other.unknowns = len(projection.directions) + neurons.omega.numel() + neurons.phase.numel()
        return cls(other, other.solve(A))

    @property
    def neurons(self) -> Neurons:
        """The neurons as they are."""
        features = self.projection.family.features
        assert isinstance(features, TupleFeatures) and features.neurons is not None
        return features.neurons

    def moved(self, step: Tensor, across: Tensor) -> Joint:
        """The form and the neurons a step away."""
        by_form, by_neurons = step.split([len(across), len(step) - len(across)])
        A = unit_form(self.at.A + torch.einsum("m,mij->ij", by_form, across))
        return self._at(self.projection, self.neurons.moved(by_neurons), A)

    def jacobian(self) -> tuple[Tensor, Tensor]:
        """The projected Jacobian by directions of the form, then by ω and b of the neurons; and the directions."""
        p, at = self.projection, self.at
        J, across = p.jacobian(at)
        K = p.family.neuron_slopes(at.A, p.inputs, at.units, at.coefficients) * p.root[:, None, None]
        return torch.cat([J, at.rest(K.flatten(0, 1))], 1), across

    def refined(self, steps: int) -> Joint:
        """Gauss-Newton steps of form and neurons together, each accepted only if the criterion falls."""
        here, damping = self, DAMPING
        for _ in range(steps):
            J, across = here.jacobian()
            H, g = J.mT @ J, J.mT @ here.at.residual
            scale = H.diagonal().clamp_min(1e-6 * float(H.diagonal().max()) + 1e-300)
            for _ in range(TRIES):
                new = here.moved(torch.linalg.solve(H + damping * torch.diag(scale), g), across)
                if new.at.criterion < here.at.criterion:
                    break
                damping *= HARDER
            else:
                break
            gain = 1 - new.at.criterion / here.at.criterion
            here, damping = new, max(damping * EASIER, LEAST_DAMPING)
            if gain < JOINT_GAIN:
                break
        return here
