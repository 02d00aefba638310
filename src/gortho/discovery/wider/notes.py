"""A note if only differences of vectors matter (M16)."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from gortho.discovery.looks import LAST, NEARLY_EXACT, projections
from gortho.discovery.posed import Posed
from gortho.discovery.result import Discovery
from gortho.discovery.search import FINAL_ROUNDS, NEAR_BEST
from gortho.objectives import SQUARES
from gortho.samples.values import Samples

#: Samples that translations are looked for in.
NOTED = 5_000
#: Vectors are null where their squares are below this share of the other products.
NULL = 0.01
TRANSLATIONS = "only differences of the vectors matter: the law is invariant under translations, too"


def differences(samples: Samples) -> Samples | None:
    """The samples with differences of their vectors alone; None where these are no samples of the same kind."""
    x = samples.x
    if samples.points < 2 or samples.point_scalars is not None or samples.mask is not None:
        return None
    return replace(samples, x=x - x.mean(1, keepdim=True) if samples.set_like else x[:, 1:] - x[:, :1])


def translations(A: Tensor, samples: Samples, seed: int) -> bool:
    """Whether a law with a form is explained as well by differences of the vectors."""
    apart = differences(samples)
    if apart is None or _null(A, samples):
        return False
    left = [
        projections(s, LAST, [FINAL_ROUNDS[-1][0]], seed + 4)[0].solve(A).criterion for s in (samples, apart)
    ]
    return left[1] <= NEAR_BEST * left[0] + NEARLY_EXACT


def _null(A: Tensor, samples: Samples) -> bool:
    """Whether q(x_i) is next to nothing beside ⟨x_i, x_j⟩: then sums of the vectors would do as well as differences."""
    gram = (samples.x @ A @ samples.x.mT).abs()
    own = gram.diagonal(dim1=1, dim2=2)
    return float(own.median()) < NULL * float(gram.sum((1, 2)).sub(own.sum(1)).median())


def with_translations(found: Discovery, posed: Posed, seed: int) -> Discovery:
    """The discovery with a note, where translations change nothing."""
    if found.form is None or found.classes:
        return found
    parts = posed.weighted(SQUARES[found.provenance.errors])
    if not translations(posed.frame.form_in(found.form), parts.train.rows(slice(0, NOTED)), seed):
        return found
    return replace(found, notices=(*found.notices, TRANSLATIONS))
