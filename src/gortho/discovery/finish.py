"""The end of the search: a last look with the largest family, and with neurons if there are several vectors (M12).

Functions of many invariants have more shapes than a fixed family has columns. A few neurons, trained with the form,
come closer to the law, and the form comes closer to the truth.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.looks import Size, few_for, projections, robust_weights, usual_error
from gortho.discovery.projection import DAMPING, EASIER, HARDER, LEAST_DAMPING, TRIES, Projection, Solve
from gortho.nn.tuples import SOFT, Neurons, TupleFeatures
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: A larger family, and steps with it.
FINISH, FINISH_STEPS = Size(4_500, 360, 90, 400), 4
#: The family beside the neurons.
BESIDE = Size(12_000, 60, 24, 240)
#: Neurons for few products of vectors and metric, and for more than this many of them.
NEURONS, FEW_NEURONS, MANY = 24, 16, 4
#: Rows for each unknown of the neurons, at least.
ROWS_FOR_SLOPE = 8
#: Steps of form and neurons together: at first, and if they come near the large family's criterion, a factor, by then.
JOINT_STEPS, NEAR_FAMILY = (10, 15), 3.0
#: Law and family agree to less than this share of the variance: no neurons are needed.
AGREED = 1e-6

#: Steps of form and neurons end when one gains less than this share of the criterion.
JOINT_GAIN = 0.01


def finished(train: Samples, validation: Samples, A: Tensor, seed: int, clock: Clock) -> Tensor:
    """The form after a few steps more with the largest family that the samples allow, or with neurons.

    Neurons move along with the form where a function of several invariants is to be learnt; their form is taken if it
    explains the validation samples better.
    """
    (projection,) = projections(train, FINISH, [SOFT], seed + 3)
    projection = projection.reweighted(robust_weights(projection, projection.solve(A)))
    at = projection.refine(A, FINISH_STEPS)
    if train.points == 1 or train.set_like or at.criterion < AGREED or clock.over():
        return at.A
    joint = with_neurons(train, at, seed)
    if joint is None:
        return at.A
    ends = (projection, at), (joint.projection, joint.at)
    errors = [usual_error(p.predict(solve, validation), validation) for p, solve in ends]
    return joint.at.A if errors[1] < errors[0] else at.A


def with_neurons(train: Samples, at: Solve, seed: int) -> Joint | None:
    """Form and neurons fitted together from a form on; None where this leads to nothing."""
    few, columns = few_for(train, BESIDE)
    beside = Projection(few, columns, few.weights, seed + 5, SOFT)
    count = NEURONS if beside.family.products <= MANY else FEW_NEURONS
    inner_products = train.points * (train.points + 1) // 2
    count = min(count, beside.y.numel() // (ROWS_FOR_SLOPE * (inner_products + 1)))
    if count < 1:  # too few samples for even one
        return None
    joint = Joint.start(beside, at.A, count, seed)
    joint = joint.refined(JOINT_STEPS[0])
    if joint.at.criterion > NEAR_FAMILY * at.criterion:
        return None
    return joint.refined(JOINT_STEPS[1])


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
