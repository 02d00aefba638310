"""Rounds of the search (*looks*): how many samples, how large a family, and which residuals count (M12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gortho.discovery.models import squared_errors
from gortho.discovery.projection import Projection, Solve
from gortho.nn.tuples import TupleFeatures
from gortho.samples.values import Samples

#: Residuals beyond this many median ones count less and less.
FAR = 4.0
#: Share of samples that are usual: the others do not decide which finalist is the best.
USUAL = 0.9
#: Two ends of the search are the same form below this distance in the frame.
SAME = 0.05
#: A criterion below this share of the variance: nothing better is looked for.
NEARLY_EXACT = 1e-7
#: Samples for each unknown of a family, and for each entry of the form, at least.
ROWS_FOR_UNKNOWN, ROWS_FOR_ENTRY = 3, 4


@dataclass(frozen=True)
class Size:
    """How much of the data, and how large a family, a projection takes."""

    rows: int  # samples times components, about
    columns: int  # unknowns of the family, at least so many …
    for_leg: int  # … and so many for each product of vectors and metric …
    most: int = 240  # … but not more than this

    def room(self, samples: Samples, wanted: int) -> tuple[int, int]:
        """Unknowns of a family that wants so many, and the samples that they take."""
        components = samples.rep.size(samples.n)
        columns = max(self.columns, min(wanted, self.most))
        columns = max(8, min(columns, len(samples) * components // ROWS_FOR_UNKNOWN))
        return columns, -(-max(self.rows, ROWS_FOR_UNKNOWN * columns) // components)


#: The scan, the first look at the forms that it bred, and the last at the finalists.
SCAN, FIRST, LAST = Size(700, 56, 32, 140), Size(900, 72, 38, 200), Size(4_500, 200, 60)


def few_for(samples: Samples, size: Size) -> tuple[Samples, int]:
    """As many of the samples as a look of this size takes, and the unknowns of its family."""
    legs = sum(samples.points ** len(t.legs) for part in samples.rep.parts for t in part.terms())
    for_leg = max(
        size.for_leg, 0 if samples.set_like else TupleFeatures.room_for(samples.points, _scalars(samples))
    )
    columns, count = size.room(samples, for_leg * legs)
    entries = samples.n * (samples.n + 1) // 2
    return samples.rows(slice(0, max(count, ROWS_FOR_ENTRY * entries))), columns


def _scalars(samples: Samples) -> int:
    """Given scalars of points and samples together."""
    counts = samples.network_options()
    return int(samples.points * counts["point_scalars"] + counts["sample_scalars"])


def projections(samples: Samples, size: Size, softness: Sequence[float], seed: int) -> list[Projection]:
    """The same look at the samples with families of several degrees of smoothness."""
    few, columns = few_for(samples, size)
    return [Projection(few, columns, few.weights, seed, soft) for soft in softness]


def robust_weights(projection: Projection, at: Solve) -> Tensor:
    """Weights that let no few samples rule: one where the residual is usual, less and less beyond."""
    r = projection.squared_residuals(at)
    return 1 / (1 + r / (FAR**2 * r.median().clamp_min(1e-300)))


def usual_criterion(projection: Projection, at: Solve) -> float:
    """The criterion of the samples with usual residuals."""
    r = projection.squared_residuals(at)
    return usual_mean(r) * at.criterion / max(float(r.mean()), 1e-300)


def usual_mean(errors: Tensor) -> float:
    """The mean of usual errors: the largest are left out."""
    return float(errors.sort().values[: max(1, int(USUAL * len(errors)))].mean())


def usual_error(predicted: Tensor, samples: Samples) -> float:
    """The mean squared error of usual samples."""
    return usual_mean(torch.from_numpy(squared_errors(predicted, samples)))
