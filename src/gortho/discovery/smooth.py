"""Gaussian processes and polynomials of few terms as predictors, tried after the comparison with twins.

They help with smooth laws and few samples. The verdict is based on the predictors before them. A process that moves the
form away from the refits widens their spread, so it can reduce certainty but never add it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.stats import wilcoxon
from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.few_terms import Terms, few_terms
from gortho.discovery.models import squared_errors
from gortho.discovery.predictor import CLEARLY, LAW, NETWORK_FROM, Fitted, Kind, Parts, build_network
from gortho.discovery.process import FEWER, HANDFUL, KERNELS, Process, has_process, most_likely
from gortho.discovery.starts import CONSTANT, Start, distinct, likely_forms
from gortho.forms import QuadraticForm
from gortho.nn.process import Chart
from gortho.samples.values import Samples
from gortho.training import predict

#: With no more samples than this the search may have failed: fits start from many forms.
FEW = 120
#: Forms of each signature that few terms start from, with a handful of samples.
STARTS = 80
#: Rounds of such starts, until one ends at an exact law.
ROUNDS = 4
#: Samples by which errors on a few are taken with caution.
UNSEEN = 30
#: With more samples: rows and steps of a first look, and of the fit that follows if it is promising.
LOOK, FIT = (100, 30), (200, 80)
#: Around a form that is known: steps of a first look, and how many go on in each chart; then those of the fit.
GLANCE, GO_ON, LONG = 40, 2, 200
#: A look at few samples is promising with errors up to this many times those of the best so far.
NEARLY = 30.0
#: Samples that predictions are made from, at most, and at least.
CENTRES, LEAST = 1_000, 8


@dataclass(frozen=True)
class Smooth:
    """What a process may start from: the best predictor so far, and other estimates of the form, all in the frame."""

    best: Fitted
    parts: Parts
    others: tuple[Tensor, ...]
    seed: int
    clock: Clock

    def _serves(self) -> bool:
        """Whether a process can be tried, and is needed."""
        held = self.parts.validation
        if self.best.form.signature.zero or self.clock.over() or not has_process(held):
            return False
        return _errors(self.best, held).mean() >= LAW * held.variance

    def fitted(self) -> Fitted | None:
        """A process fitted to the training samples, if it predicts those of validation better than the best so far."""
        if not self._serves():
            return None
        train, held = self.parts.train, self.parts.validation
        if len(train) <= FEW:
            return self._from_few(train, held, self._forms(), thorough=False)
        before, A = _errors(self.best, held), self.best.form.matrix
        look = (Process.start(train.rows(slice(0, LOOK[0])), A, c).refined(LOOK[1]) for c in Chart)
        process = min(look, key=lambda p: p.loss)
        one = self._predictor(process.on(train.rows(slice(0, CENTRES))))
        if not _promising(_errors(one, held), before, held.variance):
            return None
        process = process.on(train.rows(slice(0, FIT[0])))
        still, moved = (
            self._predictor(p.refined(FIT[1]).on(train.rows(slice(0, CENTRES))))
            for p in (replace(process, A=A, moves=False), process)
        )
        # The form of all samples stays, unless noise is so small that even few tell a better one.
        one = moved if _clearly_better(_errors(moved, held), _errors(still, held)) else still
        return one if _clearly_better(_errors(one, held), before) else None

    def _forms(self) -> list[Tensor]:
        starts = [Start("", A) for A in (self.best.form.matrix, *self.others)]
        return [start.A for start in distinct(starts)]

    def with_held_out(self, one: Fitted | None) -> Fitted | None:
        """The process fitted to all samples: what was held out has served its purpose by then.

        Few samples may be enough for a process only when taken together: it is tried once more.
        """
        held = Samples.cat([self.parts.validation, self.parts.held_out])
        data = Samples.cat([self.parts.train, held])
        process = None if one is None else one.process
        if len(data) > FEW:
            if process is None:
                return None
            if process.moves and len(self.parts.train) < FIT[0]:
                process = process.on(data.rows(slice(0, FIT[0]))).refined(FIT[1])
            return self._predictor(process.on(data.rows(slice(0, CENTRES))))
        if not self._serves():
            return one
        forms = [*([] if one is None else [one.form.matrix]), *self._forms()]
        found = self._from_few(data, held, forms, thorough=True)
        if found is None and _errors(self.best, held).mean() > held.variance:
            return Terms.constant(data, self.best.form.matrix).fitted(
                self.seed
            )  # nothing is better than the mean
        return found

    def _from_few(
        self, samples: Samples, held: Samples, forms: list[Tensor], thorough: bool
    ) -> Fitted | None:
        """Few terms or a process, whichever is more likely, if it convinces; terms that are the law at once."""
        handful, terms = len(samples) <= HANDFUL, None
        for k in range(ROUNDS if handful and thorough else 1):
            scanned = likely_forms(samples, Chart.PRODUCTS, self.seed + k, STARTS if handful else FEWER)
            tried = few_terms(samples, [*forms, *scanned], over=self.clock.over)
            if tried is not None and tried.exact:
                return tried.fitted(self.seed)
            terms = max((t for t in (terms, tried) if t is not None), key=lambda t: t.evidence, default=None)
        process = most_likely(samples, forms, self.seed, thorough, self.clock.over)
        found: Terms | Process = process
        if terms is not None and terms.evidence > process.evidence:
            found = terms
        if not _convinces(found.evidence, process.view.size**2, self.best, held):
            return None
        return found.fitted(self.seed) if isinstance(found, Terms) else self._predictor(found)

    def _predictor(self, process: Process) -> Fitted:
        return predictor(process, self.seed)


def around(form: QuadraticForm, samples: Samples, seed: int) -> tuple[Fitted, float] | None:
    """A process around a form that is known, and its mean squared error at samples left out one by one.

    None where it cannot serve: no numbers, no order, a singular form, targets that are all the same.
    """
    few = samples.rows(slice(0, LOOK[0]))
    if form.signature.zero or not has_process(samples) or len(few) < LEAST or not float(few.y.std()) > 0:
        return None
    if len(samples) <= FEW:
        terms = few_terms(samples, [form.matrix], moves=False)
        if terms is not None and terms.exact:
            return terms.fitted(seed), terms.at.criterion
    ends = [p.refined(LONG) for chart in Chart for p in _glanced(few, form, chart)]
    if len(samples) > LOOK[0]:  # a fit to more samples may end nowhere: its start is kept
        ends += [p.on(samples.rows(slice(0, FIT[0]))).refined(FIT[1]) for p in ends]
    whole = [p.on(samples.rows(slice(0, CENTRES))) for p in ends]
    error, process = min(((left_out_error(p), p) for p in whole), key=lambda one: one[0])
    return predictor(process, seed), error


def _glanced(samples: Samples, form: QuadraticForm, chart: Chart) -> list[Process]:
    """The most likely processes around a form after a few steps, from kernels of several lengths and noises."""
    start = replace(Process.start(samples, form.matrix, chart), moves=False)
    seen = [start.with_kernel(*kernel).refined(GLANCE) for kernel in KERNELS]
    return sorted(seen, key=lambda p: p.loss)[:GO_ON]


def left_out_error(process: Process) -> float:
    """The mean squared error at samples left out one by one."""
    w, errors = process.view.samples.weights, process.left_out().square()
    return float(errors.mean() if w is None else (w * errors).mean() / w.mean())


def _errors(fitted: Fitted, samples: Samples) -> np.ndarray:
    return squared_errors(predict(fitted.network, *samples.inputs), samples)


def _convinces(evidence: float, variance: float, best: Fitted, held: Samples) -> bool:
    """Whether evidence is that of errors smaller than those of the best so far on samples new to that one."""
    # A few samples that happen to be met say little: as many more are taken to be missed as by a constant.
    errors = _errors(best, held)
    share = min(1.0, (float(errors.sum()) + UNSEEN * variance) / ((len(held) + UNSEEN) * variance))
    return evidence > math.log(1 / max(share, 1e-300)) / 2


def _promising(errors: np.ndarray, before: np.ndarray, variance: float) -> bool:
    """Smaller errors after a look; where hardly any noise is in the way, not much larger ones will do."""
    return bool(errors.mean() < (NEARLY if before.mean() < NETWORK_FROM * variance else 1.0) * before.mean())


def _clearly_better(errors: np.ndarray, before: np.ndarray) -> bool:
    """Smaller in the mean, and sample by sample by a test that single samples cannot rule."""
    if errors.mean() >= before.mean():
        return False
    return float(wilcoxon(np.sqrt(errors), np.sqrt(before), alternative="less").pvalue) < CLEARLY


def predictor(process: Process, seed: int) -> Fitted:
    """The mean of a process as a network around its form."""
    form, v = QuadraticForm(process.A), process.view
    options = {
        **v.samples.network_options(),
        "width": 1,
        "depth": 0,
        "seed": seed,
        "process": {"chart": str(v.chart), "centres": len(v.samples)},
    }
    net = build_network(form, v.samples.rep, options)
    to: Any = net.coefficients
    # The gauge may have turned the sign of the form, and of all coordinates with it.
    sign = torch.ones_like(v.shift)
    sign[: v.samples.points * (v.samples.points + 1) // 2] = (form.matrix * process.A).sum().sign()
    weights = process.weights() * v.size
    with torch.no_grad():
        for name, value in {
            "unit": v.unit,
            "shift": v.shift * sign,
            "scale": v.scale,
            "logs": process.logs[:-1],
            "centres": v.coordinates(process.A) * sign,
            "weights": weights,
            "constant": v.mean + CONSTANT * weights.sum(),
        }.items():
            getattr(to, name).copy_(value)
        for shift, standard in ((net.point_shift, v.standard.point), (net.sample_shift, v.standard.sample)):
            if standard is not None:
                shift.copy_(standard)
    return Fitted(form, net, Kind.PROCESS, options, process=process)
