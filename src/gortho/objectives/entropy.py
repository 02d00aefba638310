"""Cross-entropy: labels by logits, compared by their log losses.

The search sees indicators of the classes: their conditional means are the class probabilities, which are functions of
the invariants if the classes respect a form. Shares are those of the log loss of the class frequencies alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from gortho.objectives.learners import monomials_of
from gortho.objectives.objective import Learnt, Objective, mean_target
from gortho.samples.values import Samples

#: Probabilities are not taken to be smaller than this.
LEAST_PROBABILITY = 1e-6
#: Inverse strengths of the penalty of logistic regression, chosen on validation samples.
STRENGTHS = (1e-3, 1e-1, 10.0, 1e3)
#: Monomials of logistic regression, at most, and their degree: bounds of even classes are even.
MONOMIALS, DEGREE = 130, 4


@dataclass(frozen=True)
class CrossEntropy(Objective):
    """Minus the log-probability of each sample's class; targets are indicators of the classes, outputs logits."""

    bounded: ClassVar[bool] = True
    gauge: ClassVar[int] = 1

    def each(self, output: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy of logits."""
        return cross_entropy(output, target, reduction="none")

    def constant(self, samples: Samples) -> Tensor:
        """Logarithms of the frequencies of the classes."""
        return mean_target(samples).clamp_min(LEAST_PROBABILITY).log()

    def final(self, parts: Sequence[Samples], given: Sequence[Samples]) -> Sequence[Samples]:
        """The parts with the labels as targets."""
        return [replace(s, y=labels.y.double(), rep=labels.rep) for s, labels in zip(parts, given)]

    def compared(self, output: Tensor, seen: int) -> Tensor:
        """Log-probabilities that are not below those of one sample more, of any class.

        Classes with sharp bounds are told apart without a single mistake, and then models are as sure as they like:
        one sample beyond the bound would make up all of the log loss.
        """
        return output.log_softmax(1).clamp_min(math.log(least_probability(seen, output.shape[1])))

    def losses(self, compared: Tensor, samples: Samples) -> np.ndarray:
        """Minus the log-probability of each sample's class, times its weight; no class is quite impossible."""
        logs = compared.double().clamp_min(math.log(LEAST_PROBABILITY))
        return samples.by_weight(-(logs * samples.y.double()).sum(1)).numpy()

    def expected(self, compared: Tensor) -> Tensor:
        """Probabilities."""
        return compared.exp()

    def learnt(
        self, rows: Sequence[Tensor], parts: Sequence[Samples], own: Sequence[Tensor], seed: int
    ) -> Iterator[Learnt]:
        """Boosted trees and logistic regression, alone and with the predictor's logits as further inputs."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        codes, classes = parts[0].y.argmax(1).numpy(), parts[0].y.shape[1]
        early = np.bincount(codes)[np.unique(codes)].min() > 1  # else a class is not in both parts
        weights = None if parts[0].weights is None else parts[0].weights.double().numpy()
        expand, logits = monomials_of(rows[0], MONOMIALS, DEGREE), [z - z.mean(1, keepdim=True) for z in own]
        for corrects in (False, True):
            beside = logits if corrects else [torch.zeros(len(Z), 0) for Z in rows]
            plain = [torch.cat([Z, z], 1) for Z, z in zip(rows, beside)]
            trees = HistGradientBoostingClassifier(
                max_iter=150, learning_rate=0.08, early_stopping=early, random_state=seed
            )
            trees.fit(plain[0].numpy(), codes, sample_weight=weights)
            alone = None if corrects else partial(_logs, trees, classes=classes, least=LEAST_PROBABILITY)
            yield Learnt("boosted trees", [_logs(trees, Z, classes) for Z in plain[1:]], corrects, alone)
            wide = [torch.cat([expand(Z), z], 1) for Z, z in zip(rows, beside)]
            regressions = _regressions(wide[0], codes, weights)
            best = min(regressions, key=lambda m: self.losses(_logs(m, wide[1], classes), parts[1]).mean())
            yield Learnt("logistic regression", [_logs(best, Z, classes) for Z in wide[1:]], corrects)


LABELS = CrossEntropy()


def _regressions(rows: Tensor, codes: np.ndarray, weights: np.ndarray | None) -> list[Any]:
    """Logistic regressions on columns in units of their spread, one for each strength of the penalty."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    fits = [
        Pipeline([("first", StandardScaler()), ("last", LogisticRegression(C=C, max_iter=300))])
        for C in STRENGTHS
    ]
    with warnings.catch_warnings():  # validation samples choose among them, converged or not
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [fit.fit(rows.numpy(), codes, last__sample_weight=weights) for fit in fits]


def _logs(model: Any, rows: Tensor, classes: int, least: float = 1e-300) -> Tensor:
    """The log-probabilities of a fitted classifier, which may not have seen every class."""
    p = torch.zeros(len(rows), classes, dtype=torch.float64)
    p[:, model.classes_] = torch.as_tensor(model.predict_proba(rows.numpy())).double()
    return p.clamp_min(least).log()


def least_probability(samples: int, classes: int) -> float:
    """What so many samples without a mistake leave for another class: the share of one sample more, of any class."""
    return max(LEAST_PROBABILITY, 1 / (classes * (samples + 1)))


def probabilities(logits: Tensor, least: float) -> Tensor:
    """Probabilities ``(N, classes)``, none of which is below about ``least``."""
    p = torch.softmax(logits, 1).clamp_min(least)
    return p / p.sum(1, keepdim=True)
