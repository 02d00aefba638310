"""Whether what a formula leaves is no noise: samples that are alike deviate alike."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from gortho.formulas.fitting import Rows
from gortho.formulas.values import Formula

#: Neighbours deviate alike with this p, by chance, in no formula …
ALIKE = 1e-6
#: … of so many samples at least, where more than this many medians count as so many.
ROWS, FAR = 100, 4.0


def sided(formula: Formula, rows: Rows) -> bool:
    """Whether samples with nearly the same quantities lie on one side of a sum for a number."""
    from gortho.level.evidence import neighbours_alike

    if formula.exact or len(formula.terms) < 2 or rows.y.shape[1] > 1 or len(rows.y) < ROWS:
        return False
    i, j = np.triu_indices(rows.q.gram.shape[1])
    quantities = np.concatenate([rows.q.gram[:, i, j], rows.q.scalars], 1)
    with np.errstate(all="ignore"):
        left = (rows.root * (rows.y - formula.values(rows.q)))[:, 0]
        size = FAR * np.median(np.abs(left))
        return neighbours_alike(rankdata(quantities, axis=0), left.clip(-size, size))[1] < ALIKE
