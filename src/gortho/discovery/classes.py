"""Classes: preparing labels, a predictor by cross-entropy, twins compared by their log loss.

The search sees indicators of the classes: their conditional means are the class probabilities, which are functions of
the invariants if the classes respect a form. Everything after it works with log losses, in units of the log loss of the
class frequencies alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from gortho.discovery.clock import Clock
from gortho.discovery.measured import measure
from gortho.discovery.models import Invariants, Predictor, coordinates, monomials_of
from gortho.discovery.predictor import Fitted, Kind, Parts, build_network
from gortho.discovery.twins import CORRECTED, WORST, Comparison, Model
from gortho.forms import QuadraticForm
from gortho.nn.exact import EquivariantNet
from gortho.samples.values import Samples
from gortho.training import fit, predict
from gortho.training.checkpoints import Ended
from gortho.training.solvers import weighted_mean

#: Samples in a step of the predictor, decay of its weights, passes without gain before it ends.
BATCH, DECAY, PATIENCE = 128, 1.0, 40
#: Probabilities are not taken to be smaller than this.
LEAST_PROBABILITY = 1e-6
#: Inverse strengths of the penalty of logistic regression, chosen on validation samples.
STRENGTHS = (1e-3, 1e-1, 10.0, 1e3)
#: Monomials of logistic regression, at most, and their degree: bounds of even classes are even.
MONOMIALS, DEGREE = 130, 4


def labelled(parts: Parts, given: Parts) -> Parts:
    """The parts, in their frame, with the labels of the given ones as targets."""
    return Parts(*(replace(s, y=labels.y.double(), rep=labels.rep) for s, labels in zip(parts, given)))


# The predictor


def entropy(prediction: Tensor, target: Tensor, weights: Tensor | None) -> Tensor:
    """Cross-entropy of logits."""
    return weighted_mean(cross_entropy(prediction, target, reduction="none"), weights)


def prepare(net: EquivariantNet, samples: Samples) -> None:
    """Units of the inputs from samples; with no weights at all, the network gives the class frequencies."""
    net.calibrate(samples.x, samples.y, *samples.scalars)
    net.y_scale.fill_(1.0)
    share = samples.y * samples.each_weight[:, None]
    net.y_shift.copy_(share.mean(dim=0).clamp_min(LEAST_PROBABILITY).log())


def class_predictor(
    form: QuadraticForm,
    parts: Parts,
    *,
    steps: int,
    seed: int,
    clock: Clock,
    progress: Callable[[float], None],
) -> Fitted:
    """Logits from a network around the form, by cross-entropy; of ``labelled`` parts."""
    train = parts.train
    options = {**train.network_options(), "width": 32, "depth": 2, "seed": seed}
    net = build_network(form, train.rep, options)
    prepare(net, train)
    batch = min(BATCH, max(16, len(train) // 6))
    epochs = max(10, math.ceil(3 * steps * batch / len(train)))
    done = 0

    def stop() -> bool:
        nonlocal done
        done += 1
        progress(min(1.0, done / epochs))
        return clock.over()

    history = fit(
        net,
        train,
        validation=parts.validation,
        loss=entropy,
        calibrate=False,
        epochs=epochs,
        batch_size=batch,
        lr=5e-3,
        weight_decay=DECAY,
        patience=PATIENCE,
        seed=seed,
        progress=False,
        stop=stop,
    )
    return Fitted(form, net, Kind.NETWORK, options, history.how)


# Twins


def compare_classes(
    fitted: Fitted, parts: Parts, *, seed: int, clock: Clock, progress: Callable[[float], None]
) -> Comparison:
    """Both sides fitted to the labels, the best of each measured by its log loss on held-out samples."""
    own = [predict(fitted.network, *s.inputs).double() for s in parts]
    size = sum(p.numel() for p in fitted.network.parameters())
    predictor = _model("equivariant", parts, [z.log_softmax(1) for z in own[1:]], size)
    invariants = Invariants.of(fitted.form.matrix, parts.train)
    twins = [predictor, *_side(invariants, parts, own, seed)]
    progress(0.5)
    free = list(_side(coordinates, parts, own, seed))
    twin, best = (min(models, key=lambda m: m.validation) for models in (twins, free))
    plain = next(m.rows for m in free if m.rows is not None)
    direct = min((m for m in free if not m.name.startswith(CORRECTED)), key=lambda m: m.validation)
    test = parts.held_out
    errors, of_free = (log_losses(m.held_out, test) for m in (twin, best))
    at_random = frequencies(parts.train).log()
    chance = log_losses(at_random.expand(len(test), -1), test)
    whole = float(chance.mean())
    worst = np.argsort(errors + of_free)[::-1][: math.ceil(WORST * len(errors))]
    usual = np.delete(np.arange(len(errors)), worst)
    progress(1.0)
    return Comparison(
        predictor,
        twin,
        best,
        plain,
        float(log_losses(predictor.held_out, test).mean()) / whole,
        float(log_losses(direct.held_out, test).mean()) / whole,
        measure(errors, of_free, chance, whole, test.bundles),
        measure(errors[usual], of_free[usual], chance[usual], float(chance[usual].mean())),
        None,
        tuple(int(i) for i in worst),
        0.0,  # losses of labels are never ruled by a few
        test.y.double() - twin.held_out.exp(),
        fitted.ended is not Ended.STOPPED and not clock.over(),
    )


def _side(
    inputs: Callable[[Samples], Tensor], parts: Parts, own: Sequence[Tensor], seed: int
) -> Iterator[Model]:
    """Boosted trees and logistic regression with these inputs, alone and beside the predictor's logits."""
    codes = [s.y.argmax(1).numpy() for s in parts[:2]]
    weights = None if parts.train.weights is None else parts.train.weights.double().numpy()
    rows = [inputs(s) for s in parts]
    expand, logits = monomials_of(rows[0], MONOMIALS, DEGREE), [z - z.mean(1, keepdim=True) for z in own]
    for beside, note in ((None, ""), (logits, f"{CORRECTED} by ")):
        extra = [torch.zeros(len(Z), 0) for Z in rows] if beside is None else beside
        plain = [torch.cat([Z, e], 1).numpy() for Z, e in zip(rows, extra)]
        trees = _trees(plain[0], codes[0], weights, seed)
        of_rows = None if beside else _of_rows(trees)
        yield _model(f"{note}boosted trees", parts, [trees(Z) for Z in plain[1:]], rows=of_rows)
        wide = [torch.cat([expand(Z), e], 1).numpy() for Z, e in zip(rows, extra)]
        regression = _logistic(wide[0], codes[0], weights, wide[1], parts.validation)
        yield _model(f"{note}logistic regression", parts, [regression(Z) for Z in wide[1:]])


def _of_rows(model: Callable[[np.ndarray], Tensor]) -> Predictor:
    return lambda Z: model(Z.numpy())


def _trees(
    Z: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, seed: int
) -> Callable[[Any], Tensor]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=150, learning_rate=0.08, early_stopping=True, random_state=seed
    )
    model.fit(Z, codes, sample_weight=weights)
    return lambda rows: _log(model.predict_proba(rows))


def _logistic(
    Z: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, V: np.ndarray, validation: Samples
) -> Callable[[Any], Tensor]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    fits = []
    for C in STRENGTHS:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=300))
        model.fit(Z, codes, logisticregression__sample_weight=weights)
        fits.append((float(log_losses(_log(model.predict_proba(V)), validation).mean()), model))
    best = min(fits, key=lambda pair: pair[0])[1]
    return lambda rows: _log(best.predict_proba(rows))


def _log(probabilities: np.ndarray) -> Tensor:
    return torch.as_tensor(probabilities).double().clamp_min(LEAST_PROBABILITY).log()


def least_probability(samples: int, classes: int) -> float:
    """What so many samples without a mistake leave for another class: the share of one sample more, of any class."""
    return max(LEAST_PROBABILITY, 1 / (classes * (samples + 1)))


def probabilities(logits: Tensor, least: float) -> Tensor:
    """Probabilities ``(N, classes)``, none of which is below about ``least``."""
    p = torch.softmax(logits, 1).clamp_min(least)
    return p / p.sum(1, keepdim=True)


def _modest(log_probabilities: Tensor, samples: int) -> Tensor:
    """Log-probabilities that are not below those of one sample more, of any class.

    Classes with sharp bounds are told apart without a single mistake, and then models are as sure as they like: one
    sample beyond the bound would make up all of the log loss.
    """
    return log_probabilities.clamp_min(math.log(least_probability(samples, log_probabilities.shape[1])))


def _model(
    name: str, parts: Parts, values: Sequence[Tensor], size: int = 0, rows: Predictor | None = None
) -> Model:
    validation, held_out = (_modest(v, len(parts.train)) for v in values)
    error = float(log_losses(validation, parts.validation).mean())
    return Model(name, error, held_out, error, size, rows)


def frequencies(samples: Samples) -> Tensor:
    """Shares of the classes."""
    y = samples.y.double()
    w = samples.each_weight.double()
    return ((y * w[:, None]).sum(0) / w.sum()).clamp_min(LEAST_PROBABILITY)


def log_losses(log_probabilities: Tensor, samples: Samples) -> np.ndarray:
    """Minus the log-probability of each sample's class ``(N,)``, times its weight; no class is quite impossible."""
    least = math.log(LEAST_PROBABILITY)
    losses = -(log_probabilities.double().clamp_min(least) * samples.y.double()).sum(1)
    return samples.by_weight(losses).numpy()
