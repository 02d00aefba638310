"""scikit-learn estimators: predict with a form you know, or with one learnt from the data.

The way of the data: check it, refuse columns that were scaled one by one, take the form or search for it as `discover`
does, train one exactly equivariant network around it. Both estimators work in pipelines, in `cross_val_score` and in
`GridSearchCV`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
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
from torch.nn.functional import cross_entropy

from gortho import checks
from gortho.checkpoints import History
from gortho.discovery import Discovery, Settings, Verdict, discover
from gortho.discovery.clock import Clock
from gortho.discovery.find import SEARCH_SAMPLES, FoundForm, Posed, find_form
from gortho.discovery.models import squared_errors
from gortho.discovery.predictor import Parts
from gortho.discovery.result import NotAccepted
from gortho.discovery.search import FINAL_ROUNDS, LAST, Errors, Interrupted, Search, prepared, projections
from gortho.discovery.spreads import given_errors, spread, without_noise_eigenvalues
from gortho.discovery.verdict import MAX_SPREAD, NOTHING_EXPLAINED, percent
from gortho.discovery.workers import one_thread
from gortho.forms import QuadraticForm
from gortho.nn.exact import EquivariantNet
from gortho.nn.framed import InFrame
from gortho.reps import DirectSum, Rep, Scalar
from gortho.samples import DataError, Frame, Samples, check_inputs
from gortho.samples.checks import weights_of
from gortho.samples.door import as_targets, enter, hopeless, split_scalars
from gortho.solvers import weighted_mean
from gortho.training import fit, predict

#: Sizes of the search without a verdict.
QUICK = Settings(starts=12, generations=3, refits=4)
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

    size = np.abs(V).max()
    mean, deviation = (V / size).mean(axis=0) * size, (V / size).std(axis=0) * size
    if near(deviation, 1.0) or near(deviation * np.sqrt(len(V) / (len(V) - 1)), 1.0):
        return "every column has standard deviation 1, as after StandardScaler or PowerTransformer", True
    lower, median, upper = np.percentile(V, [25, 50, 75], axis=0)
    if near(median, 0.0) and near(upper - lower, 1.0):
        return "every column has median 0 and interquartile range 1, as after RobustScaler", True
    low, high = V.min(axis=0), V.max(axis=0)
    largest = np.maximum(-low, high)
    rare = bool((np.abs(V) >= largest).sum(axis=0).max() <= 2)  # a grid has many points on its edge
    ends = np.array([low[0], high[0]])
    chosen = near(ends, np.round(ends, 3), EXACT_MARK) or near(ends, [-QUANTILE_CUT, QUANTILE_CUT])
    chosen = chosen and bool(np.ptp(ends) > MARK)  # tiny numbers all look alike
    common = near(low, low[0], EXACT_MARK) and near(high, high[0], EXACT_MARK)
    if rare and (near(largest, 1.0, EXACT_MARK) or (common and chosen)):
        return (
            "every column ends at the same values, as after MinMaxScaler, MaxAbsScaler or QuantileTransformer",
            True,
        )
    for order, name in ((2, "l2"), (1, "l1"), (np.inf, "max")):
        respected = order == 2 and form is not None and form == QuadraticForm.euclidean(form.n)
        if not respected and near(np.linalg.norm(X / size, order, axis=1) * size, 1.0):
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


@dataclass(frozen=True)
class Learnt:
    """A form found without a verdict, the standard errors of its entries, and a reason to doubt it, if there is one."""

    form: QuadraticForm
    errors: np.ndarray
    search: Search
    doubt: str | None


def learn_form(samples: Samples, settings: Settings, errors: Errors | None, seed: int) -> Learnt:
    """The form by search and refits as in `discover`, without predictor, comparison and verdict."""
    posed = Posed.of(samples, seed)
    try:
        with one_thread():
            found = find_form(posed, settings=settings, errors=errors, seed=seed, clock=Clock())
            own, constant = held_out_errors(found, posed.parts, seed)
    except Interrupted:
        raise KeyboardInterrupt from None
    left = own.mean() / constant.mean()
    assert found.refits is not None
    A, zero = without_noise_eigenvalues(found.A, found.refits)
    form, distance = posed.out(A), float(np.median(spread(A, found.refits, zero).distances))
    doubt = None
    if not left <= NOTHING_EXPLAINED:
        doubt = f"{percent(min(1.0, left))} of the variance stay unexplained on held-out samples."
    elif distance > MAX_SPREAD:
        doubt = f"refits to resamples differ by {distance:.2g} in the median."
    return Learnt(form, given_errors(posed.frame, form, found.refits)[0], found.search, doubt)


def held_out_errors(found: FoundForm, parts: Parts, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Squared errors of held-out samples: by the search's family at a form, within the range of y; and by the mean."""
    train = parts.train.rows(slice(0, SEARCH_SAMPLES))
    both = prepared(Samples.cat([train, parts.held_out]), found.search.errors)
    train, test = both.rows(slice(0, len(train))), both.rows(slice(len(train), None))
    (projection,) = projections(train, LAST, [FINAL_ROUNDS[-1][0]], seed)
    own = projection.predict(projection.solve(found.search.A), test).reshape(test.y.shape)
    own = own.clamp(train.y.amin(0), train.y.amax(0))
    return squared_errors(own, test), squared_errors(train.y.mean(0).expand_as(test.y), test)


class _Estimator(BaseEstimator):
    """What both share: reading data, finding the form, training the network."""

    form_: QuadraticForm
    form_errors_: np.ndarray
    search_: Search
    discovery_: Discovery
    network_: EquivariantNet | InFrame
    history_: History
    n_features_in_: int
    #: How scikit-learn shall check y, and whether effort "full" asks for a verdict.
    _checks: ClassVar[dict[str, Any]]
    _judges: ClassVar[bool]

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

    def _read(self, X: Any, y: Any, sample_weight: Any, scalars: Any) -> tuple[Samples, int]:
        """Check training data and hyperparameters; samples without those of weight zero, and the seed."""
        if self.effort not in ("full", "quick"):
            raise ValueError(f"effort = {self.effort!r}: choose 'full' or 'quick'")
        X, n = self._flat(X)
        table, y = validate_data(
            self,
            X,
            y,
            validate_separately=(
                {"dtype": np.float64, "ensure_min_samples": 2},
                {"ensure_2d": False, **self._checks},
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
        x, point, sample = self._inputs(table, int(sizes.pop()) if sizes else table.shape[1], scalars)
        names = getattr(self, "feature_names_in_", None) if x.shape[1] == 1 else None
        names = () if names is None else tuple(str(name) for name in names)
        if named and self.form != "learn":
            given = getattr(QuadraticForm, self.form)(x.shape[-1], names or None)
        if not self.allow_scaled:
            _check_scaling(table, given)
        for stale in ("form_", "form_errors_", "search_", "discovery_"):
            self.__dict__.pop(stale, None)
        if given is not None:
            self.form_ = given
        given_weights, weights = weights_of(sample_weight, None, len(y)), None
        if given_weights is not None:
            kept = np.flatnonzero(given_weights)
            x, point, sample, y = (None if part is None else part[kept] for part in (x, point, sample, y))
            weights = torch.as_tensor(given_weights[kept] / given_weights[kept].mean())
        target, rep = self._targets(y, x.shape[-1])
        samples = Samples(x, target, rep, point, sample, weights, None, self.set_like, names)
        state = self.random_state
        seed = state if isinstance(state, Integral) else check_random_state(state).randint(2**31 - 1)
        return samples, checks.whole(seed, "random_state", 0, checks.LARGEST_SEED)

    def _inputs(self, table: np.ndarray, n: int, scalars: Any) -> list[Any]:
        """Vectors ``(N, p, n)``, point scalars and sample scalars as tensors."""
        if table.shape[1] % n:
            raise DataError(f"X has {table.shape[1]} columns, which are not whole vectors of {n} components")
        tuples = table.reshape(len(table), -1, n)
        read = check_inputs(tuples, *split_scalars(scalars, tuples.shape[1]))
        return [None if part is None else torch.as_tensor(part.copy()) for part in read]

    def _targets(self, y: np.ndarray, n: int) -> tuple[Tensor, Rep]:
        raise NotImplementedError

    # Form and network

    def fit(self, X: Any, y: Any, sample_weight: Any = None, scalars: Any = None) -> Self:
        """Learn from inputs ``(N, n)``, ``(N, p, n)`` or ``(N, p·n)``; weights ``(N,)``; scalars as in `discover`."""
        samples, seed = self._read(X, y, sample_weight, scalars)
        frame = None if hasattr(self, "form_") else self._learn(samples, seed)
        return self._train(samples, frame, seed)

    def _learn(self, samples: Samples, seed: int) -> Frame | None:
        """Set the form and what is known of it; the frame of the samples, or None if they have nothing to teach."""
        scalars = dict(zip(("point", "sample"), samples.scalars))
        given: Any = {"sample_weight": samples.weights, "set_like": samples.set_like, "names": samples.names}
        data = samples.x, samples.y, samples.rep, scalars
        candidate, reason, advice = None, "", ""
        if self._judges and self.effort == "full":
            # The network is one of a form alone.
            found = self.discovery_ = discover(*data, seed, settings=self.settings, look_for="O", **given)
            candidate, errors = found.candidate, found.entry_errors
            if found.verdict is not Verdict.FOUND:
                reason, advice = found.reason, found.advice
        else:
            entered, _ = enter(*data, seed=seed, **given)
            refusal = hopeless(entered)
            if refusal is None:
                sizes = self.settings or (QUICK if self.effort == "quick" else Settings())
                # Labels are right or wrong: their errors are absolute ones.
                learnt = learn_form(entered, sizes, None if self._judges else Errors.ABSOLUTE, seed)
                self.search_, candidate, errors = learnt.search, learnt.form, learnt.errors
                reason, advice = learnt.doubt or "", "Give more samples, or a larger effort."
            else:
                reason, advice = refusal
        self.form_ = QuadraticForm.euclidean(samples.n) if candidate is None else candidate
        if candidate is not None and errors is not None:
            self.form_errors_ = errors
        if reason:
            course = (
                "the Euclidean form is used instead" if candidate is None else "the best candidate is used"
            )
            warnings.warn(
                f"The data establishes no form: {reason} {advice} Here {course}.", NotAccepted, stacklevel=3
            )
        return None if candidate is None else Frame.of(samples.in_units(*samples.units).x)

    def _train(self, samples: Samples, frame: Frame | None, seed: int) -> Self:
        """One network around the form; in the frame, where a form was learnt from samples that have one."""
        form = self.form_ if frame is None else QuadraticForm(frame.form_in(self.form_))
        x_unit, y_unit = samples.units[0], samples.units[1] if self._judges else 1.0
        samples = samples.in_units(x_unit, y_unit)
        samples = samples if frame is None else samples.in_frame(frame)
        net = EquivariantNet(
            form,
            output=samples.rep,
            **samples.network_options(),
            width=int(self.width),
            depth=int(self.depth),
            seed=seed,
        ).double()
        self.history_ = fit(
            net,
            samples,
            validation=samples if len(samples) < MIN_SPLIT else self.validation_fraction,
            epochs=int(self.epochs),
            batch_size=int(self.batch_size),
            lr=self.lr,
            weight_decay=self.weight_decay,
            patience=self.patience,
            seed=seed,
            progress=False,
            **self._objective(net, samples),
        )
        if frame is None:
            net.x_scale *= x_unit
            net.y_scale *= y_unit
            net.y_shift *= y_unit
        self.network_ = net if frame is None else InFrame(net, frame.W, y_unit, self.form_, x_unit)
        return self

    def _objective(self, net: EquivariantNet, samples: Samples) -> dict[str, Any]:
        """What training makes small, where it is not the squared error."""
        return {}

    def _raw(self, X: Any, scalars: Any) -> np.ndarray:
        """The network's output for new data; a set may have another number of points than in training."""
        check_is_fitted(self)
        table, n = self._flat(X)
        if n != self.form_.n or not self.set_like:
            table = validate_data(self, table, reset=False, dtype=np.float64)
        return predict(self.network_, *self._inputs(table, self.form_.n, scalars)).numpy()


class EquivariantRegressor(RegressorMixin, _Estimator):
    """Regression with f(gx) = ρ(g) f(x) for every g ∈ O(A), with a known form or one learnt from the data.

    Args:
        output: how y transforms: "scalar", "vector", "covector", "conjugation", "bilinear", "form", a sum such as
            "scalar + 2*vector", or a rep object. Several columns of scalars are several outputs.
        form: "learn", "euclidean", "minkowski", a `QuadraticForm` or a symmetric matrix.
        vector_dim: dimension n of the vectors when X is flat, ``(N, p·n)``; not needed when the form tells it.
        set_like: the points of a sample have no order.
        effort: to learn the form, "full" asks `gortho.discover` for a verdict; "quick" searches in the same way, with
            less effort, and asks for none.
        settings: sizes of this search, in place of those that belong to the effort.
        allow_scaled: take columns that look scaled one by one, which destroys a form, without a word.
        width, depth, epochs, batch_size, lr, patience, validation_fraction: network and training, see `gortho.fit`.
        weight_decay: the default suits some hundreds of samples; lower it for many clean ones.
        random_state: seed of everything.

    After fitting: ``form_``, ``network_``, ``history_``; if the form was learnt also ``form_errors_``, the standard
    errors of its entries, and the evidence: ``discovery_`` with a verdict, ``search_`` without one. Data without a form
    raises a `NotAccepted` warning with the reason; ``form_`` is then the best candidate. ``scalars`` in `fit`,
    `predict` and `score` are quantities that no group touches, per point or per sample, as in `gortho.discover`.

    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = (X[:, 0] ** 2 - X[:, 1] ** 2)[:, None] * X
    >>> model = EquivariantRegressor("vector", form="minkowski", epochs=3, random_state=0).fit(X, y)
    >>> model.predict(X[:3]).shape, model.score(X, y) > 0.99
    ((3, 2), True)
    """

    _checks: ClassVar[dict[str, Any]] = {"allow_nd": True, "dtype": np.float64}
    _judges = True

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

    def _targets(self, y: np.ndarray, n: int) -> tuple[Tensor, Rep]:
        self._shape = y.shape[1:]
        y, rep = as_targets(y, self.output, n)
        return torch.tensor(y), rep

    def predict(self, X: Any, scalars: Any = None) -> np.ndarray:
        """Predictions in the shape in which y was given, float64."""
        raw = self._raw(X, scalars)
        return raw.reshape(len(raw), *self._shape)

    def score(self, X: Any, y: Any, sample_weight: Any = None, scalars: Any = None) -> float:
        """R², the share of explained variance, pooled over all components of y."""
        truth, predicted = (np.asarray(v).reshape(len(v), -1) for v in (y, self.predict(X, scalars)))
        size = np.abs(truth).max() or 1.0  # squares of shares of it stay in range
        truth, predicted = truth / size, predicted / size
        return r2_score(truth, predicted, sample_weight=sample_weight, multioutput="variance_weighted")


class InvariantClassifier(ClassifierMixin, _Estimator):
    """Classification with p(class | gx) = p(class | x) for every g ∈ O(A), with a known form or one learnt.

    Parameters as in `EquivariantRegressor`. A form is learnt by the same search on the indicators of the classes, whose
    least squares fit is the class probability, without a verdict; a `NotAccepted` warning says when it explains nothing
    or resamples of the data disagree on it. The network is then trained by cross-entropy. After fitting: ``form_``,
    ``classes_``, ``network_``, ``history_``; if the form was learnt, also ``form_errors_`` and ``search_``.

    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.where(X[:, 0] ** 2 > X[:, 1] ** 2, "time", "space")
    >>> model = InvariantClassifier("minkowski", epochs=3, random_state=0).fit(X, y)
    >>> model.predict([[2.0, 0.5], [1.0, -3.0]]).tolist()
    ['time', 'space']
    """

    classes_: np.ndarray
    _checks: ClassVar[dict[str, Any]] = {"dtype": None}
    _judges = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The checks score on classes told apart by their places, which no even function can do.
        tags.classifier_tags.poor_score = True
        return tags

    def _targets(self, y: np.ndarray, n: int) -> tuple[Tensor, Rep]:
        check_classification_targets(y)
        self.classes_, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        labels = torch.eye(len(self.classes_), dtype=torch.float64)[torch.as_tensor(codes)]
        return labels, DirectSum((Scalar(),) * len(self.classes_))

    def _learn(self, samples: Samples, seed: int) -> Frame | None:
        binary = len(self.classes_) == 2
        return super()._learn(samples.with_targets(samples.y[:, 1], Scalar()) if binary else samples, seed)

    def _objective(self, net: EquivariantNet, samples: Samples) -> dict[str, Any]:
        net.calibrate(samples.x, samples.y, *samples.scalars)
        net.y_scale.fill_(1.0)
        share = samples.y if samples.weights is None else samples.y * samples.weights[:, None]
        net.y_shift.copy_(share.mean(dim=0).log())
        return {"loss": _cross_entropy, "calibrate": False}

    def predict_proba(self, X: Any, scalars: Any = None) -> np.ndarray:
        """Probabilities ``(N, classes)``, in the order of ``classes_``."""
        return torch.softmax(torch.as_tensor(self._raw(X, scalars)), dim=1).numpy()

    def predict(self, X: Any, scalars: Any = None) -> np.ndarray:
        """The most probable class of each sample."""
        most_probable = self.predict_proba(X, scalars).argmax(axis=1)
        return self.classes_[most_probable]

    def score(self, X: Any, y: Any, sample_weight: Any = None, scalars: Any = None) -> float:
        """The share of samples whose class is right."""
        return accuracy_score(y, self.predict(X, scalars), sample_weight=sample_weight)


def _cross_entropy(prediction: Tensor, target: Tensor, weights: Tensor | None) -> Tensor:
    return weighted_mean(cross_entropy(prediction, target, reduction="none"), weights)
