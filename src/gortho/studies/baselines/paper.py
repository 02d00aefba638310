"""The paper's own networks, with a learnt form and several starts."""

from __future__ import annotations

from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.nn import EquivariantNet, LearnableForm, network
from gortho.reps import Rep
from gortho.studies.baselines.base import PAPER_NOISES, Stand, Variant
from gortho.studies.baselines.network import Network

#: Starts and steps of quick runs.
FEW = {"starts": 3, "trial_steps": 100, "steps": 400}


class PaperForm(Network):
    """The paper's own networks with a learnt form, f = φ_s(x₁/‖x₁‖)·φ_n(Gram), both factors free.

    The paper trains once from one start, which mostly ends at a wrong signature. Here short runs from random forms of
    every signature come first, and the best of them on validation data is trained on.

    Args:
        kind: "paper" (φ_s a network, as in its experiments) or "householder" (φ_s the aligning reflection).
        starts: number of short runs; each takes ``trial_steps``.
    """

    variants = (
        Variant(
            "paper's form",
            {
                "regression": Stand(20),
                "noise": Stand(20, at=PAPER_NOISES),
                "suitability": Stand(20, at=()),
                "samples": Stand(30, at=(100, 1_000, 10_000)),
                "public": Stand(20, at=(300, 3_000)),
            },
            quick=FEW,
        ),
        Variant(
            "paper's form, reflection",
            {"regression": Stand(21), "suitability": Stand(21, at=())},
            {"kind": "householder"},
            quick=FEW,
        ),
    )
    place = 40
    tuning = (
        "Width, depth and rates are those of our networks; starts are chosen on validation data in every fit. On "
        "seed 101 of the synthetic task learning rates of 1e-3 and 2e-3, 8,000 to 20,000 steps, and norms clamped at "
        "0.001, 0.03 and 0.1 were compared: MSE 0.19 (started at the true form), 0.39, 0.34 and 8.4 there, no order "
        "of magnitude below that of the table, because single samples near the null cone, where x/‖x‖ has no "
        "limit, make up the error; so it was left. The paper prints 1.8e-3, with data and training not given."
    )

    def __init__(
        self,
        output: str | Rep,
        seed: int = 0,
        kind: str = "paper",
        starts: int = 6,
        trial_steps: int = 800,
        steps: int = 8_000,
    ):
        super().__init__(output, seed, steps)
        self.kind, self.starts, self.trial_steps = kind, starts, trial_steps

    def fit(self, X: Tensor, y: Tensor, scalars: Tensor | None = None) -> PaperForm:
        """Short runs from forms of every signature, then a long one from the best form."""
        n = X.shape[-1]

        def make(form: LearnableForm) -> EquivariantNet:
            count = 0 if scalars is None else scalars.shape[-1]
            options = {"points": X.shape[1], "output": self.output, "point_scalars": count, "seed": self.seed}
            return network(self.kind, form, **options)

        trials = []
        for r in range(self.starts):
            p = r % (n // 2 + 1)
            start = LearnableForm(n, seed=7_919 * self.seed + r, signature=(p, n - p))
            net = make(start)
            trials.append((self.train(net, X, y, scalars, self.trial_steps), net.form.value()))
        best = min(trials, key=lambda t: t[0])[1]
        self.network = make(LearnableForm(n, start=best))
        self.train(self.network, X, y, scalars, self.steps)
        self.form = self.network.form.value()
        self.generators = self.form.group().algebra()
        return self

    @property
    def quadratic_form(self) -> QuadraticForm:
        """The form as learnt."""
        return self.form
