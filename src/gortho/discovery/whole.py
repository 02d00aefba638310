"""The last fit of a polynomial and its form, to all samples but those held out."""

from __future__ import annotations

from dataclasses import replace

from gortho.discovery.predictor import Fitted, Parts, mean_error, solved
from gortho.discovery.projection import LEAST_DAMPING, Projection
from gortho.forms import QuadraticForm
from gortho.samples.values import Samples

#: Numbers in the arrays of a fit, at most.
ROOM = 20_000_000
#: Steps of the form: the one from fewer samples is near.
STEPS = 4
#: More samples that raise the error of those fitted before by this factor have wrong ones among them.
SPOILT = 4.0


def from_all(fitted: Fitted, parts: Parts, seed: int) -> Fitted:
    """The same polynomial with the form that training and validation samples tell together.

    Under noise this is the estimate of least error: the choice of the polynomial took fewer samples. The first one
    stays where validation samples are wrong, since an exact law shows it: the error of the training samples grows.
    """
    data = Samples.cat([parts.train, parts.validation])
    degree = fitted.options["degree"]
    columns = Projection(data.rows(slice(0, 1)), 0, None, seed, degree=degree).family.columns
    few = data.rows(slice(0, ROOM // (data.rep.size(data.n) * max(columns, data.n**2))))
    if len(few) <= len(parts.train):
        return fitted
    projection = Projection(few, 0, few.weights, seed, degree=degree)
    moved = QuadraticForm(projection.refine(fitted.form.matrix, STEPS, LEAST_DAMPING).A)
    if moved.signature != fitted.form.signature:
        return fitted
    options = {"features": 1, "degree": degree, "seed": seed}
    whole = solved(moved, data, projection, options, fitted.kind)
    if mean_error(whole.network, parts.train) > SPOILT * mean_error(fitted.network, parts.train):
        return fitted
    return replace(whole, ended=fitted.ended)
