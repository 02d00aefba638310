"""Cross-entropy: labels by logits, compared by their log losses.

The search sees indicators of the classes: their conditional means are the class probabilities, which are functions of
the invariants if the classes respect a form. Shares are those of the log loss of the class frequencies alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from gortho.objectives.learners import Predictor, monomials_of
from gortho.objectives.objective import Learnt, Objective, weighted_constant
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
        return weighted_constant(samples).clamp_min(LEAST_PROBABILITY).log()

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
        codes = [s.y.argmax(1).numpy() for s in parts[:2]]
        weights = None if parts[0].weights is None else parts[0].weights.double().numpy()
        expand, logits = monomials_of(rows[0], MONOMIALS, DEGREE), [z - z.mean(1, keepdim=True) for z in own]
        for corrects in (False, True):
            extra = logits if corrects else [torch.zeros(len(Z), 0) for Z in rows]
            plain = [torch.cat([Z, e], 1).numpy() for Z, e in zip(rows, extra)]
            trees = _trees(plain[0], codes[0], weights, seed)
            of_rows = None if corrects else _of_rows(trees)
            yield Learnt("boosted trees", [trees(Z) for Z in plain[1:]], corrects, of_rows)
            wide = [torch.cat([expand(Z), e], 1).numpy() for Z, e in zip(rows, extra)]
            regression = self._logistic(wide[0], codes[0], weights, wide[1], parts[1])
            yield Learnt("logistic regression", [regression(Z) for Z in wide[1:]], corrects)

    def _logistic(
        self, Z: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, V: np.ndarray, validation: Samples
    ) -> Callable[[Any], Tensor]:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        fits = []
        for C in STRENGTHS:
            model = make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=300))
            model.fit(Z, codes, logisticregression__sample_weight=weights)
            fits.append((float(self.losses(_log(model.predict_proba(V)), validation).mean()), model))
        best = min(fits, key=lambda pair: pair[0])[1]
        return lambda rows: _log(best.predict_proba(rows))


LABELS = CrossEntropy()


def _trees(
    Z: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, seed: int
) -> Callable[[Any], Tensor]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=150, learning_rate=0.08, early_stopping=True, random_state=seed
    )
    model.fit(Z, codes, sample_weight=weights)
    return lambda rows: _log(model.predict_proba(rows))


def _of_rows(model: Callable[[np.ndarray], Tensor]) -> Predictor:
    return lambda Z: model(Z.numpy()).clamp_min(math.log(LEAST_PROBABILITY))


def _log(probabilities: np.ndarray) -> Tensor:
    return torch.as_tensor(probabilities).double().clamp_min(1e-300).log()


def least_probability(samples: int, classes: int) -> float:
    """What so many samples without a mistake leave for another class: the share of one sample more, of any class."""
    return max(LEAST_PROBABILITY, 1 / (classes * (samples + 1)))


def probabilities(logits: Tensor, least: float) -> Tensor:
    """Probabilities ``(N, classes)``, none of which is below about ``least``."""
    p = torch.softmax(logits, 1).clamp_min(least)
    return p / p.sum(1, keepdim=True)
