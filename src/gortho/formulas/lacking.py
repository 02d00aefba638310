"""What a formula lacks: if what it leaves over is a function of the same inner products, it is not the law."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from gortho.formulas.fitting import Rows
from gortho.formulas.values import Formula

#: A formula lacks something where trees explain this share of what it leaves of held-out samples …
LACKING = 0.3
#: … of those with an error of at most so many times the median …
MEDIANS = 10.0
#: … learnt from so many samples at least.
LEAST = 200


def lacks(formula: Formula, seen: Rows, held: Rows, kept: np.ndarray) -> bool:
    """Whether trees of inner products and scalars predict what a formula for numbers leaves of held-out samples.

    ``seen`` are the samples that it was fitted to, ``kept`` the held-out ones that are not far from it.
    """
    if held.y.shape[1] > 1:
        return False
    with np.errstate(all="ignore"):
        left, there = (rows.root[:, 0] * (rows.y - formula.values(rows.q))[:, 0] for rows in (seen, held))
    fine = np.isfinite(left)
    fine &= np.abs(left) <= MEDIANS * np.median(np.abs(left[fine])) if fine.any() else fine
    if fine.sum() < LEAST or not np.isfinite(there[kept]).all():
        return False
    trees = HistGradientBoostingRegressor(random_state=0, early_stopping=True)
    trees.fit(seen.q.features[fine], left[fine])
    missed = there[kept] - trees.predict(held.q.features[kept])
    usual = np.abs(there[kept]) <= MEDIANS * np.median(np.abs(there[kept]))
    return bool(np.square(missed[usual]).sum() < (1 - LACKING) * np.square(there[kept][usual]).sum())
