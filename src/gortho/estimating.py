"""What the estimators share: reading data, finding the form, training the network."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)
from torch import Tensor

from gortho import checks
from gortho.discovery import Discovery, Settings, Verdict, discover
from gortho.discovery.learning import learn_form
from gortho.discovery.result import NotAccepted
from gortho.discovery.search import Search
from gortho.forms import QuadraticForm
from gortho.nn.exact import EquivariantNet
from gortho.nn.framed import InFrame
from gortho.reps import Rep
from gortho.samples import DataError, Frame, Samples, check_inputs
from gortho.samples.checks import weights_of
from gortho.samples.door import enter, hopeless, split_scalars
from gortho.samples.named import check_counts, check_rows, scalar_columns
from gortho.scaling import check_scaling
from gortho.symmetry import Symmetry
from gortho.training import fit, predict
from gortho.training.checkpoints import History

#: Sizes of the search without a verdict.
QUICK = Settings(starts=12, generations=3, refits=4)
#: Fewer samples than this are not split: the state that fits them best is kept.
MIN_SPLIT = 8


class Estimator(BaseEstimator):
    """What both share: reading data, finding the form, training the network."""

    form_: QuadraticForm
    symmetry_: Symmetry
    form_errors_: np.ndarray
    search_: Search
    discovery_: Discovery
    network_: EquivariantNet | InFrame
    history_: History
    n_features_in_: int
    scalar_names_: dict[str, tuple[str, ...]]
    #: How scikit-learn shall check y.
    _checks: ClassVar[dict[str, Any]]

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
        random_state: Any = 0,
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

    def _read(self, X: Any, y: Any, sample_weight: Any, scalars: Any) -> tuple[Samples, int]:
        """Check training data and hyperparameters; samples without those of weight zero, and the seed."""
        if self.effort not in ("full", "quick"):
            raise ValueError(f"effort = {self.effort!r}: choose 'full' or 'quick'")
        check_rows(X=X, y=y, sample_weight=sample_weight, scalars=scalars)
        self.scalar_names_ = scalar_columns(scalars)
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
        named = isinstance(self.form, str) and self.form in ("learn", "euclidean", "minkowski")
        told = None if named else self._told()
        given = told.form if told is not None and told.forms else None
        said = (n, self.vector_dim, None if told is None else told.n)
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
            check_scaling(table, given)
        for stale in ("form_", "form_errors_", "search_", "discovery_", "symmetry_"):
            self.__dict__.pop(stale, None)
        if given is not None:
            self.form_ = given
        if told is not None or given is not None:
            self.symmetry_ = Symmetry.of(given if told is None else told)
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

    def _told(self) -> Symmetry:
        """The symmetry that the form stands for: one already, its name, a form or a matrix."""
        try:
            told = Symmetry.of(self.form)
        except ValueError as error:
            if self.form is not None and not isinstance(self.form, str):
                raise
            raise ValueError(
                f"form = {self.form!r}: choose 'learn', 'euclidean' or 'minkowski', or give a form, a matrix, a "
                "symmetry, or the name of one, such as 'SO(3)'"
            ) from error
        if len(set(told.dims)) > 1:
            raise ValueError(f"form = {told}: its vectors differ in dimension, which estimators do not take")
        return told

    def _inputs(self, table: np.ndarray, n: int, scalars: Any) -> list[Any]:
        """Vectors ``(N, p, n)``, point scalars and sample scalars as tensors."""
        if table.shape[1] % n:
            raise DataError(f"X has {table.shape[1]} columns, which are not whole vectors of {n} components")
        tuples = table.reshape(len(table), -1, n)
        read = check_inputs(tuples, *split_scalars(scalars, tuples.shape[1], self.scalar_names_))
        return [None if part is None else torch.as_tensor(part.copy()) for part in read]

    def _targets(self, y: np.ndarray, n: int) -> tuple[Tensor, Rep]:
        raise NotImplementedError

    # Form and network

    def fit(self, X: Any, y: Any, sample_weight: Any = None, scalars: Any = None) -> Self:
        """Learn from inputs ``(N, n)``, ``(N, p, n)`` or ``(N, p·n)``; weights ``(N,)``; scalars as in `discover`."""
        samples, seed = self._read(X, y, sample_weight, scalars)
        frame = None
        if not hasattr(self, "symmetry_"):
            frame = self._learn(samples, seed)
            self.symmetry_ = Symmetry(self.form_)
        return self._train(samples, frame, seed)

    def _learn(self, samples: Samples, seed: int) -> Frame | None:
        """Set the form and what is known of it; the frame of the samples, or None if they have nothing to teach."""
        scalars = dict(zip(("point", "sample"), samples.scalars))
        given: Any = {"sample_weight": samples.weights, "set_like": samples.set_like, "names": samples.names}
        data = samples.x, *self._asked(samples), scalars
        candidate, reason, advice = None, "", ""
        refusal = self._unfit(samples)
        if refusal is None and self.effort == "full":
            # The network is one of a form alone.
            found = self.discovery_ = discover(*data, seed, settings=self.settings, look_for="O", **given)
            candidate, errors = found.candidate, found.entry_errors
            if found.verdict is not Verdict.FOUND:
                reason, advice = found.reason, found.advice
        elif refusal is None:
            learnt = learn_form(enter(*data, seed=seed, **given)[0], self.settings or QUICK, seed)
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

    def _asked(self, samples: Samples) -> tuple[Any, Any]:
        """Targets and output, as `discover` takes them."""
        return samples.y, samples.rep

    def _unfit(self, samples: Samples) -> tuple[str, str] | None:
        """Reason and advice where no search could learn a form."""
        return None if self.effort == "full" else hopeless(samples)

    def _train(self, samples: Samples, frame: Frame | None, seed: int) -> Self:
        """One network around the form; in the frame, where a form was learnt from samples that have one."""
        plain = self.symmetry_.plain
        form: Any = self.form_ if plain else self.symmetry_
        form = form if frame is None else QuadraticForm(frame.form_in(form))
        x_unit, y_unit = samples.units  # of indicators of classes, 1
        x_unit = x_unit if plain else 1.0  # an origin has the units of x
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
        net = self._simpler(net, form, samples, seed) if plain else net
        if frame is None:
            net.x_scale *= x_unit
            net.y_scale *= y_unit
            net.y_shift *= y_unit
        self.network_ = net if frame is None else InFrame(net, frame.W, y_unit, self.form_, x_unit)
        return self

    def _simpler(
        self, net: EquivariantNet, form: QuadraticForm, samples: Samples, seed: int
    ) -> EquivariantNet:
        """The network, or what predicts better."""
        return net

    def _objective(self, net: EquivariantNet, samples: Samples) -> dict[str, Any]:
        """What training makes small, where it is not the squared error."""
        return {}

    def _raw(self, X: Any, scalars: Any) -> np.ndarray:
        """The network's output for new data; a set may have another number of points than in training."""
        check_is_fitted(self)
        check_rows(X=X, scalars=scalars)
        table, n = self._flat(X)
        if n not in (None, self.symmetry_.n):  # the same numbers would be cut into other vectors
            shape, m = tuple(np.shape(X)), self.symmetry_.n
            raise ValueError(
                f"X has shape {shape}, {shape[1] * n} features in vectors of {n} components; the model was fitted to "
                f"shape (N, {self.n_features_in_ // m}, {m}): give vectors of {m}"
            )
        if n != self.symmetry_.n or not self.set_like:
            table = validate_data(self, table, reset=False, dtype=np.float64)
        x, *given = self._inputs(table, self.symmetry_.n, scalars)
        counts = self.network_.point_scalars, self.network_.sample_scalars
        check_counts(given, counts, self.scalar_names_)
        return predict(self.network_, x, *given).numpy()
