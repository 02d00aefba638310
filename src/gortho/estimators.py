"""scikit-learn estimators: predict with a form you know, or with one learnt from the data.

The way of the data: check it, refuse columns that were scaled one by one, take or learn the form, train one exactly
equivariant network around it. Both estimators work in pipelines, in `cross_val_score` and in `GridSearchCV`.
"""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from torch import Tensor

from gortho.checkpoints import History
from gortho.samples import DataError
from gortho.discovery import Discovery, Settings, Verdict, discover
from gortho.discovery.discover import SEARCH_SAMPLES, agreement, whitener
from gortho.discovery.inputs import as_targets, hopeless
from gortho.discovery.joint import refit, search
from gortho.discovery.result import NotAccepted
from gortho.discovery.verdict import MAX_SPREAD, NOTHING_EXPLAINED, percent
from gortho.forms import QuadraticForm
from gortho.nn.exact import EquivariantNet
from gortho.reps import DirectSum, Rep, Scalar
from gortho.solvers import Loss
from gortho.training import fit, predict, split_indices

#: Sizes of the search without a verdict.
QUICK = Settings(replicas=12, steps=200, drops=((0.3, 5),), refits=4, refit_steps=200, width=24)
#: Fewer samples than this are not split: the state that fits them best is kept.
MIN_SPLIT = 8
#: Scalers leave their mark (deviation 1, median 0, norm 1) to this precision.
MARK = 1e-6
#: They set the extremes of a column exactly, and its mean to rounding; looser, and large samples do so by chance.
EXACT_MARK = 1e-12
#: Where QuantileTransformer cuts off the normal distribution.
QUANTILE_CUT = 5.199337582605575


class ScaledFeatures(UserWarning):
    """The columns look as if they had been scaled or shifted one by one, which destroys a form."""


def scaling_marks(X: np.ndarray, form: QuadraticForm | None = None) -> tuple[str, bool] | None:
    """What a scaler of single columns or rows has left in the table ``X (N, columns)``, if anything.

    Returns the mark in words and whether it is beyond doubt: a mean of zero may come from a symmetric design.
    Unit rows are no mark under the Euclidean form, which they respect. Whole numbers are not judged.

    >>> X = np.random.default_rng(0).normal(size=(50, 2)) * [1, 5]
    >>> scaling_marks(X), scaling_marks(X / X.std(axis=0))[1]
    (None, True)
    """
    V = X[:, np.ptp(X, axis=0) > 0]
    if len(V) < 3 or V.shape[1] < 2 or bool((np.round(X) == X).all()):
        return None

    def near(values: Any, target: Any, tolerance: float = MARK) -> bool:
        return np.allclose(values, target, rtol=tolerance, atol=tolerance)

    mean, deviation = V.mean(axis=0), V.std(axis=0)
    if near(deviation, 1.0) or near(V.std(axis=0, ddof=1), 1.0):
        return "every column has standard deviation 1, as after StandardScaler or PowerTransformer", True
    lower, median, upper = np.percentile(V, [25, 50, 75], axis=0)
    if near(median, 0.0) and near(upper - lower, 1.0):
        return "every column has median 0 and interquartile range 1, as after RobustScaler", True
    low, high = V.min(axis=0), V.max(axis=0)
    largest = np.maximum(-low, high)
    rare = bool((np.abs(V) >= largest).sum(axis=0).max() <= 2)  # a grid has many points on its edge
    ends = np.array([low[0], high[0]])
    chosen = near(ends, np.round(ends, 3), EXACT_MARK) or near(ends, [-QUANTILE_CUT, QUANTILE_CUT])
    common = near(low, low[0], EXACT_MARK) and near(high, high[0], EXACT_MARK)
    if rare and (near(largest, 1.0, EXACT_MARK) or (common and chosen)):
        return (
            "every column ends at the same values, as after MinMaxScaler, MaxAbsScaler or QuantileTransformer",
            True,
        )
    for order, name in ((2, "l2"), (1, "l1"), (np.inf, "max")):
        respected = order == 2 and form is not None and form == QuadraticForm.euclidean(form.n)
        if not respected and near(np.linalg.norm(X, order, axis=1), 1.0):
            return f"every row has {name} norm 1, as after Normalizer", True
    if near(mean / deviation, 0.0, EXACT_MARK):
        return "every column has mean 0, as after subtracting it: the origin has moved", False
    return None


def _check_scaling(X: np.ndarray, form: QuadraticForm | None) -> None:
    """Refuse scaled columns when the form is known, warn when it is learnt."""
    marks = scaling_marks(X, form)
    if marks is None:
        return
    mark, certain = marks
    effect = (
        "a form learnt now is that of the changed columns, and there may be none once the origin has moved"
        if form is None
        else f"the given form, {form.law()}, does not hold for the changed columns"
    )
    message = (
        f"{mark}. A form xᵀAx ties the columns together, so changing them one by one destroys it: {effect}. Leave "
        "the scaler out of the pipeline (one scale common to all columns is fitted inside), or set allow_scaled=True "
        "if the data is like this by nature"
    )
    if form is not None and certain:
        raise DataError(message)
    warnings.warn(message, ScaledFeatures, stacklevel=4)


def search_form(
    X: Tensor, y: Tensor, rep: Rep, set_like: bool, settings: Settings, seed: int
) -> tuple[QuadraticForm, str | None]:
    """The form by joint search and bootstrap refits, without a verdict, and a reason to doubt it, if there is one.

    Inputs ``(N, p, n)`` are made isotropic for the search, as in `discover`.
    """
    train, held_out = (rows[:SEARCH_SAMPLES] for rows in split_indices(len(X), 0.15, seed))
    W = whitener(X[train])
    white = [(X @ W.T).float(), rep.act(W.expand(len(y), *W.shape), y).float(), None, None]
    parts = [[None if t is None else t[rows] for t in white] for rows in (train, held_out[:1_000])]
    options = {"points": X.shape[1], "output": rep, "set_like": set_like}
    common: dict[str, Any] = {"settings": settings, "seed": seed, "progress": lambda share, line: None}
    restarts = search(parts[0], parts[1], options, extra=[], **common)
    near, _ = agreement(restarts)
    refits = refit(parts[0], options, [restart.form for restart in near], **common)
    center = QuadraticForm(refits.mean(dim=0))
    spread = np.median([center.algebra_distance(QuadraticForm(A)) for A in refits])
    doubt = None
    if not restarts[0].validation <= NOTHING_EXPLAINED:
        doubt = f"{percent(min(1.0, restarts[0].validation))} of the variance stay unexplained on held-out samples."
    elif spread > MAX_SPREAD:
        doubt = f"refits on resampled data differ by d_PA {spread:.2g} in the median."
    return QuadraticForm(W.T @ center.matrix @ W), doubt


class _Estimator(BaseEstimator):
    """What both share: reading data, finding the form, training the network."""

    form_: QuadraticForm
    network_: EquivariantNet
    history_: History
    n_features_in_: int

    def __init__(
        self,
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
        random_state: Any = None,
    ):
        self.form = form
        self.vector_dim = vector_dim
        self.set_like = set_like
        self.effort = effort
        self.settings = settings
        self.allow_scaled = allow_scaled
        self.width = width
        self.depth = depth
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    # Reading

    def _flat(self, X: Any) -> tuple[Any, int | None]:
        """Tuples ``(N, p, n)`` as a table ``(N, p·n)``, and n if the shape tells it."""
        if (X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim) != 3:
            return X, None
        X = check_array(X, allow_nd=True, dtype=np.float64, estimator=self, input_name="X")
        return X.reshape(len(X), -1), X.shape[-1]

    def _tuples(self, X: np.ndarray, n: int) -> Tensor:
        if X.shape[1] % n:
            raise DataError(f"X has {X.shape[1]} columns, which are not whole vectors of {n} components")
        return torch.as_tensor(X.reshape(len(X), -1, n).copy())

    def _read(self, X: Any, y: Any, targets: dict[str, Any]) -> tuple[Tensor, np.ndarray, int]:
        """Check training data and hyperparameters; inputs ``(N, p, n)``, targets and seed, with `form_` if known."""
        if self.effort not in ("full", "quick"):
            raise ValueError(f"effort = {self.effort!r}: choose 'full' or 'quick'")
        X, n = self._flat(X)
        table, y = validate_data(
            self,
            X,
            y,
            validate_separately=(
                {"dtype": np.float64, "ensure_min_samples": 2},
                {"ensure_2d": False, **targets},
            ),
        )
        check_consistent_length(table, y)
        named = isinstance(self.form, str)
        if named and self.form not in ("learn", "euclidean", "minkowski"):
            raise ValueError(
                f"form = {self.form!r}: choose 'learn', 'euclidean' or 'minkowski', or give a form or a matrix"
            )
        given = None if named else QuadraticForm(self.form)
        said = (n, self.vector_dim, None if given is None else given.n)
        sizes = {size for size in said if size is not None}
        if len(sizes) > 1 or not all(isinstance(size, Integral) and size > 0 for size in sizes):
            raise ValueError(
                f"the dimension of the vectors is {said[0]} by the shape of X, {said[1]} by vector_dim and {said[2]} "
                "by the form (None: not said): give whole numbers that agree"
            )
        tuples = self._tuples(table, int(sizes.pop()) if sizes else table.shape[1])
        if named and self.form != "learn":
            given = getattr(QuadraticForm, self.form)(tuples.shape[-1], self._names(tuples))
        if not self.allow_scaled:
            _check_scaling(table, given)
        if given is not None:
            self.form_ = given
        state = self.random_state
        seed = state if isinstance(state, Integral) else check_random_state(state).randint(2**31 - 1)
        return tuples, y, int(seed)

    def _names(self, tuples: Tensor) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None or tuples.shape[1] > 1 else [str(name) for name in names]

    # Form and network

    def _reject(self, n: int, candidate: QuadraticForm | None, reason: str, advice: str) -> QuadraticForm:
        """Warn that no form was found, and go on with the best candidate or the Euclidean form."""
        course = "the Euclidean form is used instead" if candidate is None else "the best candidate is used"
        warnings.warn(
            f"The data establishes no form: {reason} {advice} Here {course}.", NotAccepted, stacklevel=4
        )
        return QuadraticForm.euclidean(n) if candidate is None else candidate

    def _search(self, X: Tensor, y: Tensor, rep: Rep, seed: int) -> QuadraticForm:
        """Learn a form without a verdict, but say so if resamples of the data disagree on it."""
        n, names = X.shape[-1], self._names(X)
        refusal = hopeless(X.numpy(), y.numpy(), tuple(names or [f"x{i}" for i in range(n)]))
        if refusal is not None:
            return self._reject(n, None, *refusal)
        sizes = self.settings or (QUICK if self.effort == "quick" else Settings())
        found, doubt = search_form(X, y, rep, self.set_like, sizes, seed)
        form = QuadraticForm(found, names)
        return (
            form if doubt is None else self._reject(n, form, doubt, "Give more samples, or a larger effort.")
        )

    def _network(self, X: Tensor, rep: Rep, seed: int) -> EquivariantNet:
        return EquivariantNet(
            self.form_,
            X.shape[1],
            rep,
            set_like=self.set_like,
            width=int(self.width),
            depth=int(self.depth),
            seed=seed,
        ).double()

    def _train(self, X: Tensor, y: Tensor, seed: int, **options: Any) -> Self:
        share = self.validation_fraction
        self.history_ = fit(
            self.network_,
            X,
            y,
            validation=(X, y) if len(X) < MIN_SPLIT else share,
            epochs=int(self.epochs),
            batch_size=int(self.batch_size),
            lr=self.lr,
            weight_decay=self.weight_decay,
            patience=self.patience,
            seed=seed,
            progress=False,
            **options,
        )
        return self

    def _raw(self, X: Any) -> np.ndarray:
        """The network's output for new data; a set may have another number of points than in training."""
        check_is_fitted(self)
        table, n = self._flat(X)
        if n != self.form_.n or not self.set_like:
            table = validate_data(self, table, reset=False, dtype=np.float64)
        return predict(self.network_, self._tuples(table, self.form_.n)).numpy()


class EquivariantRegressor(RegressorMixin, _Estimator):
    """Regression with f(gx) = ρ(g) f(x) for every g ∈ O(A), with a known form or one learnt from the data.

    Args:
        output: how y transforms: "scalar", "vector", "covector", "conjugation", "bilinear", "form", a sum such as
            "scalar + 2*vector", or a rep object. Several columns of scalars are several outputs.
        form: "learn", "euclidean", "minkowski", a `QuadraticForm` or a symmetric matrix.
        vector_dim: dimension n of the vectors when X is flat, ``(N, p·n)``; not needed when the form tells it.
        set_like: the points of a sample have no order.
        effort: to learn the form, "full" asks `gortho.discover` for a verdict, which takes about half a minute; "quick"
            searches only.
        settings: sizes of this search, in place of those that belong to the effort.
        allow_scaled: take columns that look scaled one by one, which destroys a form, without a word.
        width, depth, epochs, batch_size, lr, patience, validation_fraction: network and training, see `gortho.fit`.
        weight_decay: the default suits some hundreds of samples; lower it for many clean ones.
        random_state: seed of everything.

    After fitting: ``form_``, ``discovery_`` (by `gortho.discover`, if that was asked), ``network_``, ``history_``. Data
    without a form raises a `NotAccepted` warning with the reason; ``form_`` is then the best candidate.

    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = (X[:, 0] ** 2 - X[:, 1] ** 2)[:, None] * X
    >>> model = EquivariantRegressor("vector", form="minkowski", epochs=3, random_state=0).fit(X, y)
    >>> model.predict(X[:3]).shape, model.score(X, y) > 0.99
    ((3, 2), True)
    """

    discovery_: Discovery

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
        random_state: Any = None,
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # The checks score on targets linear in x, but an invariant of one vector is even, f(-x) = f(x).
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from inputs ``(N, n)``, ``(N, p, n)`` or ``(N, p·n)`` and targets ``(N, …)``."""
        tuples, y, seed = self._read(X, y, {"allow_nd": True, "dtype": np.float64})
        self._shape = y.shape[1:]
        y, rep = as_targets(y, self.output, tuples.shape[-1])
        if isinstance(self.form, str) and self.form == "learn":
            self.form_ = self._learn(tuples, torch.as_tensor(y), rep, seed)
        self.network_ = self._network(tuples, rep, seed)
        return self._train(tuples, torch.as_tensor(y), seed)

    def _learn(self, X: Tensor, y: Tensor, rep: Rep, seed: int) -> QuadraticForm:
        if self.effort == "quick":
            return self._search(X, y, rep, seed)
        found = self.discovery_ = discover(
            X, y, rep, seed=seed, set_like=self.set_like, names=self._names(X), settings=self.settings
        )
        if found.verdict is Verdict.FOUND and found.candidate is not None:
            return found.candidate
        return self._reject(X.shape[-1], found.candidate, found.reason, found.advice)

    def predict(self, X: Any) -> np.ndarray:
        """Predictions in the shape in which y was given, float64."""
        raw = self._raw(X)
        return raw.reshape(len(raw), *self._shape)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R², the share of explained variance, pooled over all components of y."""
        truth, predicted = (np.asarray(v).reshape(len(v), -1) for v in (y, self.predict(X)))
        return r2_score(truth, predicted, sample_weight=sample_weight, multioutput="variance_weighted")


class InvariantClassifier(ClassifierMixin, _Estimator):
    """Classification with p(class | gx) = p(class | x) for every g ∈ O(A), with a known form or one learnt.

    Parameters as in `EquivariantRegressor`. A form is learnt by joint search on the indicators of the classes, whose
    least squares fit is the class probability (a long search with effort "full"); a `NotAccepted` warning says when it
    explains nothing or resamples of the data disagree on it. The network is then trained by cross-entropy. After
    fitting: ``form_``, ``classes_``, ``network_``, ``history_``.

    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.where(X[:, 0] ** 2 > X[:, 1] ** 2, "time", "space")
    >>> model = InvariantClassifier("minkowski", epochs=3, random_state=0).fit(X, y)
    >>> model.predict([[2.0, 0.5], [1.0, -3.0]]).tolist()
    ['time', 'space']
    """

    classes_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The checks score on classes told apart by their places, which no even function can do.
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from inputs ``(N, n)``, ``(N, p, n)`` or ``(N, p·n)`` and labels ``(N,)``."""
        tuples, y, seed = self._read(X, y, {"dtype": None})
        check_classification_targets(y)
        self.classes_, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        classes = len(self.classes_)
        labels = torch.eye(classes, dtype=torch.float64)[torch.as_tensor(codes)]
        rep = DirectSum((Scalar(),) * classes)
        if isinstance(self.form, str) and self.form == "learn":
            binary = classes == 2
            self.form_ = self._search(
                tuples, labels[:, 1] if binary else labels, Scalar() if binary else rep, seed
            )
        self.network_ = self._network(tuples, rep, seed)
        self.network_.calibrate(tuples, labels)
        self.network_.y_scale.fill_(1.0)
        self.network_.y_shift.copy_(labels.mean(dim=0).log())
        loss: Loss = torch.nn.functional.cross_entropy
        return self._train(tuples, labels, seed, loss=loss, calibrate=False)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities ``(N, classes)``, in the order of ``classes_``."""
        return torch.softmax(torch.as_tensor(self._raw(X)), dim=1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each sample."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most_probable]
