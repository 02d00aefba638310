"""One network in the common training loop, told the form: the right one, or one of another group."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.nn import EquivariantNet
from gortho.reps import Rep
from gortho.studies.baselines.base import PAPER_NOISES, Method, Stand, Variant
from gortho.studies.tasks import Task
from gortho.training import fit, predict


class Network(Method):
    """One network in the common training loop."""

    network: EquivariantNet

    def __init__(self, output: str | Rep, seed: int = 0, steps: int = 10_000):
        super().__init__(output, seed)
        self.steps = steps

    def train(self, net: EquivariantNet, X: Tensor, y: Tensor, scalars: Tensor | None, steps: int) -> float:
        """Train for so many steps; the validation loss in the end."""
        batch_size = min(256, max(16, len(X) // 8))
        history = fit(
            net,
            X.float(),
            y.float(),
            point_scalars=scalars,
            epochs=math.ceil(steps * batch_size / (0.85 * len(X))),
            batch_size=batch_size,
            lr=5e-3,
            polish=0 if steps < 1_000 else 50,
            seed=self.seed,
            progress=False,
        )
        return history.best_validation

    def predict(self, X: Tensor, scalars: Tensor | None = None) -> Tensor:
        """The network's predictions in float64."""
        return predict(self.network.double(), X, scalars)

    @property
    def parameters(self) -> int:
        """Trainable weights."""
        return sum(p.numel() for p in self.network.parameters() if p.requires_grad)


def other_group(form: QuadraticForm) -> QuadraticForm:
    """A form with the same axes and another group: all signs equal where they differ, one changed where they do not.

    >>> other_group(QuadraticForm.minkowski()).group_name, other_group(QuadraticForm.euclidean(3)).group_name
    ('O(4)', 'O(1,2)')
    """
    values, Q = torch.linalg.eigh(form.matrix)
    signs = torch.ones_like(values)
    if form.signature[0] and form.signature[1]:
        signs = values.sign()
    else:
        signs[0] = -1
    return QuadraticForm(Q * (signs * values) @ Q.T)


def right_form(task: Task) -> dict[str, QuadraticForm]:
    """What methods that are told the form are given."""
    return {"form": task.form}


def wrong_form(task: Task) -> dict[str, QuadraticForm]:
    """What they are given to see what a wrong guess costs."""
    return {"form": other_group(task.form)}


class KnownForm(Network):
    """The basis form, told A: what knowing the group is worth, or, with a wrong A, what not knowing it costs."""

    variants = (
        Variant(
            "gortho, form told",
            {"regression": Stand(10), "noise": Stand(10, at=PAPER_NOISES), "neighbours": Stand(0)},
            quick={"steps": 400},
            told=right_form,
        ),
        Variant(
            "gortho, wrong form told",
            {"neighbours": Stand(2)},
            quick={"steps": 400},
            told=wrong_form,
        ),
    )
    place = 20
    tuning = "One network with the settings of the final predictor of `discover`; nothing was tuned for it."

    def __init__(self, form: QuadraticForm, output: str | Rep, seed: int = 0, steps: int = 10_000):
        super().__init__(output, seed, steps)
        self.form = form

    def fit(self, X: Tensor, y: Tensor, scalars: Tensor | None = None) -> KnownForm:
        """Train one network around the form."""
        self.notes = {"told": self.form.group_name}
        self.network = EquivariantNet(
            self.form,
            X.shape[1],
            self.output,
            point_scalars=0 if scalars is None else scalars.shape[-1],
            set_like=scalars is not None,
            seed=self.seed,
        )
        self.train(self.network, X, y, scalars, self.steps)
        return self
