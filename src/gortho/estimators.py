"""scikit-learn estimators: predict with a form you know, or with one learnt from the data.

The steps: check the data, refuse columns that were scaled one by one, use the given form or search for it as `discover`
does, train one exactly equivariant network around it. Both estimators work in pipelines, in `cross_val_score` and in
`GridSearchCV`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    column_or_1d,
)
from torch import Tensor

from gortho.discovery import Settings
from gortho.discovery.clock import Clock
from gortho.discovery.predictor import LAW, Fitted, Kind, Parts, polynomial
from gortho.discovery.smooth import CENTRES, FEW, around
from gortho.discovery.written import Written
from gortho.estimating import MIN_SPLIT, Estimator
from gortho.forms import QuadraticForm
from gortho.nn.exact import EquivariantNet
from gortho.objectives import ABSOLUTE, LABELS
from gortho.objectives.entropy import LEAST_PROBABILITY, probabilities
from gortho.reps import Rep
from gortho.samples import DataError, Samples
from gortho.samples.door import as_targets, hopeless, one_hot
from gortho.samples.labels import as_labels
from gortho.scaling import ScaledFeatures
from gortho.training import predict, split_indices

#: Up to this many times a network's validation error, the leave-one-out error of a process that has all samples is as
#: good: few samples validate a network, and its best epoch is chosen by them.
AS_GOOD = 2.0

__all__ = ["EquivariantRegressor", "InvariantClassifier", "ScaledFeatures"]


class EquivariantRegressor(RegressorMixin, Estimator):
    """Regression with f(gx) = ρ(g) f(x) for every g ∈ O(A), with a known form or one learnt from the data.

    Args:
        output: how y transforms: "scalar", "vector", "covector", "conjugation", "bilinear", "form", a sum such as
            "scalar + 2*vector", or a rep object. Several columns of scalars are several outputs.
        form: "learn", "euclidean", "minkowski", a `QuadraticForm`, a symmetric matrix, or a `Symmetry` or its name,
            such as "SO(3)" or "O(3), broken along (0, 0, 1)".
        vector_dim: dimension n of the vectors if X is flat, ``(N, p·n)``; not needed if the form determines it.
        set_like: the points of a sample have no order.
        effort: how the form is learnt: "full" uses `gortho.discover`, with a verdict; "quick" searches in the same
            way, with less effort and without a verdict.
        settings: sizes of this search, instead of those that belong to the effort.
        allow_scaled: accept columns that look scaled one by one, which destroys a form.
        width, depth, epochs, batch_size, lr, patience, validation_fraction: network and training, see `gortho.fit`.
        weight_decay: the default suits a few hundred samples; lower it for many clean ones.
        predictor: "auto" uses a short polynomial of the invariants instead of the network if its validation error
            is smaller, for scalar functions of ordered vectors a Gaussian process of the invariants unless its
            leave-one-out error is clearly larger, and a short formula if it matches all samples; "network" always
            uses the network.
        random_state: seed of everything. Unlike in most of scikit-learn the default is fixed, so that the same data
            give the same model; with None it differs each time.

    After fitting: ``form_``, ``symmetry_``, ``network_``, ``history_``; if the form was learnt also ``form_errors_``,
    the standard errors of its entries, and the evidence: ``discovery_`` with a verdict, ``search_`` without one. Data
    without a form cause a `NotAccepted` warning with the reason; ``form_`` is then the best candidate. ``scalars`` in
    `fit`, `predict` and `score` are invariant quantities, per point or per sample, as in `gortho.discover`.

    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = (X[:, 0] ** 2 - X[:, 1] ** 2)[:, None] * X
    >>> model = EquivariantRegressor("vector", form="minkowski", epochs=3, random_state=0).fit(X, y)
    >>> model.predict(X[:3]).shape, model.score(X, y) > 0.99
    ((3, 2), True)
    """

    _checks: ClassVar[dict[str, Any]] = {"allow_nd": True, "dtype": np.float64}

    def __init__(
        self,
        output: Any = "scalar",
        form: Any = "learn",
        *,
        vector_dim: int | None = None,
        set_like: bool = False,
        effort: str = "full",
        settings: Settings | None = None,
        allow_scaled: bool = False,
        width: int = 32,
        depth: int = 2,
        epochs: int = 200,
        batch_size: int = 64,
        lr: float = 5e-3,
        weight_decay: float = 3.0,
        patience: int | None = 60,
        validation_fraction: float = 0.15,
        predictor: str = "auto",
        random_state: Any = 0,
    ):
        super().__init__(
            form,
            vector_dim=vector_dim,
            set_like=set_like,
            effort=effort,
            settings=settings,
            allow_scaled=allow_scaled,
            width=width,
            depth=depth,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            weight_decay=weight_decay,
            patience=patience,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.output = output
        self.predictor = predictor

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # The checks score on targets linear in x, but an invariant of one vector is even, f(-x) = f(x).
        tags.regressor_tags.poor_score = True
        return tags

    def _read(self, X: Any, y: Any, sample_weight: Any, scalars: Any) -> tuple[Samples, int]:
        if self.predictor not in ("auto", "network"):
            raise ValueError(f"predictor = {self.predictor!r}: choose 'auto' or 'network'")
        return super()._read(X, y, sample_weight, scalars)

    def _targets(self, y: np.ndarray, n: int) -> tuple[Tensor, Rep]:
        self._shape = y.shape[1:]
        y, rep = as_targets(y, self.output, n)
        return torch.tensor(y.copy()), rep  # torch takes no negative strides

    def _simpler(
        self, net: EquivariantNet, form: QuadraticForm, samples: Samples, seed: int
    ) -> EquivariantNet:
        if self.predictor == "network":
            return net
        # In units of each output part, as in training: a small noisy one and a large one count alike.
        rep, units, size = samples.rep, net.y_scale, float(net.y_scale.square().mean())
        best, error = Fitted(form, net, Kind.NETWORK, {}), self.history_.best_validation * size
        exact = LAW * float(samples.y.var())
        if len(samples) >= MIN_SPLIT:
            kept, out = split_indices(len(samples), self.validation_fraction, seed)
            split = rep.split(samples.y, samples.n)
            alike = samples.with_targets(rep.join([v / unit for v, unit in zip(split, units)]))
            parts = Parts(alike.rows(kept), alike.rows(out), alike.rows(out))
            short = polynomial(form, parts, seed, moves=False)
            if short is not None:
                short.network.y_scale *= units
                short.network.y_shift *= units
                held = samples.rows(out)
                left = size * float(
                    ABSOLUTE.loss(net)(predict(short.network, *held.inputs), held.y, held.weights)
                )
                best, error = (short, left) if left < error else (best, error)
        if error <= exact:
            return best.network
        smooth = around(form, samples, seed)
        most = error * (AS_GOOD if len(samples) <= CENTRES else 1.0)
        if (
            len(samples) <= FEW
        ):  # a handful of validation samples, at the best of many steps, tells little of a network
            most = max(most, float(samples.y.var(correction=0)))
        if smooth is not None and smooth[1] < most:
            best, error = smooth
        return (Written(best, samples, error, seed, Clock(), moves=False).fitted() or best).network

    def predict(self, X: Any, scalars: Any = None) -> np.ndarray:
        """Predictions in the shape in which y was given, float64."""
        raw = self._raw(X, scalars)
        return raw.reshape(len(raw), *self._shape)

    def score(self, X: Any, y: Any, sample_weight: Any = None, scalars: Any = None) -> float:
        """R², the fraction of explained variance, pooled over all components of y."""
        truth, predicted = (np.asarray(v).reshape(len(v), -1) for v in (y, self.predict(X, scalars)))
        size = np.abs(truth).max() or 1.0  # squares of shares of it stay in range
        truth, predicted = truth / size, predicted / size
        return r2_score(truth, predicted, sample_weight=sample_weight, multioutput="variance_weighted")


class InvariantClassifier(ClassifierMixin, Estimator):
    """Classification with p(class | gx) = p(class | x) for every g ∈ O(A), with a known form or one learnt.

    Parameters as in `EquivariantRegressor`. To learn the form, effort "full" uses `gortho.discover` with
    ``output="class"`` and a verdict; "quick" searches on the indicators of the classes and uses the most likely form
    near its end, without a verdict. A `NotAccepted` warning says if the labels do not establish a form. The network
    is then trained by cross-entropy. After fitting: ``form_``, ``classes_``, ``network_``, ``history_``; of a learnt
    form also ``form_errors_``, and ``discovery_`` with a verdict, ``search_`` without one.

    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.where(X[:, 0] ** 2 > X[:, 1] ** 2, "time", "space")
    >>> model = InvariantClassifier("minkowski", epochs=3, random_state=0).fit(X, y)
    >>> model.predict([[2.0, 0.5], [1.0, -3.0]]).tolist()
    ['time', 'space']
    """

    classes_: np.ndarray
    _checks: ClassVar[dict[str, Any]] = {"dtype": None}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The checks score on classes told apart by their places, which no even function can do.
        tags.classifier_tags.poor_score = True
        return tags

    def _targets(self, y: np.ndarray, n: int) -> tuple[Tensor, Rep]:
        check_classification_targets(y)
        self.classes_, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class, {self.classes_.tolist()[0]!r}: a classifier needs at least two"
            )
        labels, rep = one_hot(codes, len(self.classes_))
        return torch.as_tensor(labels), rep

    def _asked(self, samples: Samples) -> tuple[Any, Any]:
        return self.classes_[samples.y.argmax(1).numpy()], "class"

    def _unfit(self, samples: Samples) -> tuple[str, str] | None:
        try:
            as_labels(self._asked(samples)[0])
        except DataError as error:
            return hopeless(samples) or (f"{error}.", "")
        return super()._unfit(samples)

    def _objective(self, net: EquivariantNet, samples: Samples) -> dict[str, Any]:
        LABELS.start(net, samples)
        return {"loss": LABELS, "calibrate": False}

    def predict_proba(self, X: Any, scalars: Any = None) -> np.ndarray:
        """Probabilities ``(N, classes)``, in the order of ``classes_``; none is below about 1e-6."""
        return probabilities(torch.as_tensor(self._raw(X, scalars)), LEAST_PROBABILITY).numpy()

    def predict(self, X: Any, scalars: Any = None) -> np.ndarray:
        """The most probable class of each sample."""
        most_probable = self.predict_proba(X, scalars).argmax(axis=1)
        return self.classes_[most_probable]

    def score(self, X: Any, y: Any, sample_weight: Any = None, scalars: Any = None) -> float:
        """Accuracy, the fraction of samples whose class is right."""
        return accuracy_score(y, self.predict(X, scalars), sample_weight=sample_weight)
