"""MLP: the unconstrained network, without any symmetry, as the floor for predictions.

LieGG and SDBA read their generators off the same network with the same budget, so what they differ in is the reading.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.nn.form import FixedForm
from gortho.nn.plain import PlainNet
from gortho.reps import Rep, as_rep
from gortho.studies.baselines.base import Method, Stand, Variant
from gortho.training import fit

#: Lengths of training to try, as shares of all steps; validation chooses. Under noise a short cosine beats the best
#: moment of a long one, which comes at a high learning rate.
SCHEDULES = (1 / 16, 1 / 4, 1)


class MLP(Method):
    """A plain network of the coordinates and scalars, stopped early on 15 % validation data.

    It is trained with schedules of several lengths (`SCHEDULES`); the best state of all on validation is kept.

    Args:
        output: how the targets transform; the network only takes their shape from it.
        width, depth: the network has depth + 1 hidden layers of this width, with SiLU.
        steps: Adam steps of the longest schedule, with a cosine to zero; a thousand take a few seconds.
        lr, batch_size, weight_decay: of Adam.
        polish: so many steps of full-batch L-BFGS in float64 at the end, kept as far as validation gets better.
    """

    variants: tuple[Variant, ...] = (
        Variant(
            "MLP",
            {table: Stand(70) for table in ("regression", "noise", "suitability", "neighbours")},
            read_off=("LieGG", "LIG"),
        ),
    )
    place = 50
    tuning = (
        "Widths 128 and 256, 2 or 3 hidden layers, batches of 128 and 256, learning rates 3e-3 to 2e-2, 750 to 24,000 "
        "steps and L-BFGS at the end were compared, not in all combinations, on validation data of the synthetic "
        "task, clean and noisy, with seeds (101, 102, 106) that the tables do not use."
    )

    def __init__(
        self,
        output: str | Rep = "scalar",
        *,
        width: int = 128,
        depth: int = 2,
        steps: int = 12_000,
        lr: float = 1e-2,
        batch_size: int = 256,
        weight_decay: float = 0.0,
        polish: int = 0,
        seed: int = 0,
    ):
        super().__init__(output, seed)
        self.width, self.depth, self.steps = width, depth, steps
        self.lr, self.batch_size, self.weight_decay, self.polish = lr, batch_size, weight_decay, polish

    def fit(self, X: Tensor, y: Tensor, scalars: Tensor | None = None) -> MLP:
        X, y = torch.as_tensor(X), torch.as_tensor(y)
        batch_size = min(self.batch_size, max(16, len(X) // 8))
        steps_per_epoch = max(1, round(0.85 * len(X)) // batch_size)
        lowest = float("inf")
        for share in SCHEDULES:
            network = PlainNet(
                FixedForm(QuadraticForm.euclidean(X.shape[-1])),  # the plain network ignores it
                X.shape[1],
                as_rep(self.output),
                point_scalars=0 if scalars is None else scalars.shape[-1],
                width=self.width,
                depth=self.depth,
                seed=self.seed,
            )
            epochs = max(1, round(share * self.steps / steps_per_epoch))
            history = fit(
                network,
                X,
                y,
                point_scalars=scalars,
                validation=0.15,
                epochs=epochs,
                batch_size=batch_size,
                lr=self.lr,
                weight_decay=self.weight_decay,
                polish=self.polish,
                seed=self.seed,
                progress=False,
            )
            if history.best_validation < lowest or share == SCHEDULES[0]:
                self.network, lowest = network.double(), history.best_validation
                self.notes |= {
                    "epochs": epochs,
                    "best epoch": history.best_epoch + 1,
                    "validation loss": lowest,
                }
        return self

    def function(self, scalars: Tensor | None = None) -> Callable[[Tensor], Tensor]:
        """The network as a function of x alone, the scalars held fixed row by row."""
        fixed = None if scalars is None else torch.as_tensor(scalars).to(self.network.x_scale)
        return lambda x: self.network(x, fixed)


class Reader(MLP):
    """Train the plain network, then read generators off it; LieGG and SDBA differ in how they `analyse` it."""

    samples: int

    def fit(self, X: Tensor, y: Tensor, scalars: Tensor | None = None) -> Reader:
        super().fit(X, y, scalars)
        self.read(X, scalars)
        return self

    def take_over(self, fitted: Method, X: Tensor, scalars: Tensor | None = None) -> None:
        """Take the network, and find its generators."""
        super().take_over(fitted, X, scalars)
        self.read(X, scalars)

    def read(self, X: Tensor, scalars: Tensor | None = None) -> None:
        """Find the generators of the network as it is."""
        some = None if scalars is None else scalars[: self.samples]
        self.analyse(self.function(some), X[: self.samples])

    @abstractmethod
    def analyse(self, f: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
        """Find the generators of any differentiable function of ``X (N, p, n)``; they are kept and returned."""
