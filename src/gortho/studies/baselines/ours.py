"""Ours behind `Method`: `discover` without a word on the form, and the regressor that is told it."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from gortho.discovery import Settings, discover
from gortho.estimators import EquivariantRegressor
from gortho.forms import QuadraticForm
from gortho.studies.baselines.base import Method, Stand, Variant
from gortho.studies.baselines.network import right_form
from gortho.training import predict

#: What the tables are made with; quick runs make do with less. No search of a table may start at the answer.
SINGLE = Settings(given_axes=False)
THOROUGH = Settings(members=5, predictor_steps=3_000, given_axes=False)
QUICK = Settings(starts=12, generations=3, refits=4, predictor_steps=150, given_axes=False)


def describe(settings: Settings) -> str:
    """Settings as one line."""
    return ", ".join(f"{name} = {value}" for name, value in dataclasses.asdict(settings).items())


class Gortho(Method):
    """`discover`: the form is unknown. The best form is used whatever the verdict, and the verdict is noted."""

    variants = (
        Variant(
            "gortho",
            {
                "regression": Stand(0),
                "noise": Stand(0),
                "suitability": Stand(0),
                "public": Stand(0, label="gortho, not told the group"),
            },
            {"settings": THOROUGH},
            quick={"settings": QUICK},
        ),
        Variant(
            "gortho, one network",
            {"samples": Stand(0, label="gortho")},
            {"settings": SINGLE},
            quick={"settings": QUICK},
        ),
    )
    place = 10
    tuning = (
        "The search was tuned on the random problems of `gortho reproduce random`. Steps, members and units of the "
        "predictor were chosen on O5 and Particle, 300 to 3,000 samples, seeds 0 to 2, and least squares were added "
        "with seeds 3 and 4 of the tasks, test errors in sight both times; so were the least number of passes "
        "through the samples and leaving out the extremes of a committee (O5, 300 to 30,000 samples, seeds 3 and 4). "
        "A first run of the public tables (seeds 10 to 14) was seen before least squares were added, so that table "
        "now uses seeds from 20 on. Gaussian processes were added, and chosen on O5 and Particle, 30 to 3,000 samples, "
        "seeds 500 to 504, test errors in sight, after the table of seeds 20 to 24 had been seen once. Scan, prior and "
        "evidence of forms for up to 120 samples were set on O5 and Particle, 30 and 100 samples, seeds 500 to 511, "
        "test errors in sight, after the table of seeds 30 to 34 had been seen. Polynomials of few terms and processes "
        "that start again near the end, came last: chosen on the same tasks, 30 samples, seeds 600 to 611, test errors "
        "in sight, after the tables of seeds 50 to 74. Formulas that predict were added after tables of seeds 80 to "
        "104 had been seen: on O5, 30, 1,000 and 30,000 samples, seeds 300 to 307, test errors in sight. More starts "
        "came after seed 133 of the table had failed with 30 samples. The public table uses seeds from 150 on, the "
        "others, which have no discovery on O5, those from 300 on."
    )

    def __init__(self, output: Any, seed: int = 0, settings: Settings = THOROUGH):
        super().__init__(output, seed)
        self.settings = settings

    def fit(self, X: Tensor, y: Tensor, scalars: Tensor | None = None) -> Gortho:
        """Discover; points with scalars of their own are taken as a set."""
        given: dict[str, Any] = {} if scalars is None else {"scalars": scalars, "set_like": True}
        self.mean = y.double().mean(0)
        given |= {"look_for": "O", "settings": self.settings}  # the tables are about whole groups O(A)
        self.found = discover(X, y, self.output, seed=self.seed, **given)
        self.notes |= {"verdict": self.found.verdict.name, "confidence": self.found.confidence}
        if self.found.candidate is not None:
            self.generators = self.found.candidate.group().algebra()
        return self

    def predict(self, X: Tensor, scalars: Tensor | None = None) -> Tensor:
        """Predictions of the equivariant network; the mean target where discovery gave up before fitting one."""
        if self.found.network is None:
            return self.mean.expand(len(X), *self.mean.shape)
        return predict(self.found.network, X, scalars)

    @property
    def parameters(self) -> int:
        """Weights of the predictor."""
        return 0 if self.found.network is None else sum(p.numel() for p in self.found.network.parameters())

    @property
    def quadratic_form(self) -> QuadraticForm | None:
        """The form as learnt."""
        return self.found.candidate


class Regressor(Method):
    """`EquivariantRegressor`, told A, with its defaults."""

    variants = (
        Variant(
            "regressor, form told",
            {"public": Stand(10, at=(30, 100, 300, 1_000), label="gortho, form told")},
            quick={"epochs": 20},
            told=right_form,
        ),
    )
    place = 30
    tuning = (
        "Defaults; when a process predicts was chosen on O5, Particle and random laws, seeds 500 and 600 on, and for "
        "up to 120 samples again on seeds 500 to 507, after the table of seeds 40 to 44 had been seen. Formulas "
        "came after that of seeds 150 to 154 had been seen, by the rules of `discover`; tried on seeds 500 and 501, "
        "and with more draws of terms on seeds 500 to 512, after seed 150 with 30 samples of O5 had been seen."
    )

    def __init__(self, form: QuadraticForm, output: Any, seed: int = 0, **options: Any):
        super().__init__(output, seed)
        self.model = EquivariantRegressor(output, form, random_state=seed, allow_scaled=True, **options)

    def fit(self, X: Tensor, y: Tensor, scalars: Tensor | None = None) -> Regressor:
        """Fit; points with scalars of their own are taken as a set."""
        self.model.set_params(set_like=scalars is not None)
        self.model.fit(X.numpy(), y.numpy(), scalars=None if scalars is None else scalars.numpy())
        self.notes["told"] = self.model.form_.group_name
        return self

    def predict(self, X: Tensor, scalars: Tensor | None = None) -> Tensor:
        """As the estimator does."""
        return torch.as_tensor(self.model.predict(X.numpy(), None if scalars is None else scalars.numpy()))

    @property
    def parameters(self) -> int:
        """Weights of the predictor."""
        return sum(p.numel() for p in self.model.network_.parameters())
