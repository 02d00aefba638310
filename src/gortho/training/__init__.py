"""Training, in one loop for all networks: `fit` and `predict` (`fitting`), and what they are made of.

`loop` runs epochs of `steppers`' steps, on one process or several (`processes`), and keeps `checkpoints`; `solvers` are
least squares and L-BFGS, for a start and a finish.
"""

from gortho.training.checkpoints import Ended, History
from gortho.training.fitting import check_data, fit, predict, split_indices

__all__ = ["Ended", "History", "check_data", "fit", "predict", "split_indices"]
