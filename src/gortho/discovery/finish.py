"""The end of the search: a last look with the largest family, and with neurons where vectors are several (M12)."""

from __future__ import annotations

from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.joint import Joint
from gortho.discovery.looks import Size, few_for, projections, robust_weights, usual_error
from gortho.discovery.projection import Projection, Solve
from gortho.nn.tuples import SOFT
from gortho.samples.values import Samples

#: A larger family, and steps with it.
FINISH, FINISH_STEPS = Size(4_500, 360, 90, 400), 4
#: The family beside the neurons.
BESIDE = Size(12_000, 60, 24, 240)
#: Neurons for few products of vectors and metric, and for more than so many of them.
NEURONS, FEW_NEURONS, MANY = 24, 16, 4
#: Rows for each unknown of the neurons, at least.
ROWS_FOR_SLOPE = 8
#: Steps of form and neurons together: at first, and if they come near the large family's criterion, a factor, by then.
JOINT_STEPS, NEAR_FAMILY = (10, 15), 3.0
#: Law and family agree to less than this share of the variance: no neurons are needed.
AGREED = 1e-6


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
