"""Augerino: a distribution over transformations learnt together with an unconstrained network.

Official: g = exp(Σ ε_i w_i G_i) with ε uniform, over a fixed basis G (an axis-aligned box); the loss of the network
under one random g a sample, minus λ‖w‖, which rewards wide boxes and is switched off when a width passes a limit;
predictions are averaged over a few g. Ours: it is equivariant, f(x) = E_g[ρ(g)⁻¹ h(gx)], for every output action here;
the basis of the box is that of gl(n), the n² elementary matrices; each width earns reward up to the limit on its own,
and the limit is lower, since boosts stretch x exponentially; λ is chosen on validation data in short runs, then one
long run follows; the best state on validation data is kept; neighbours in a batch share a g.

With ``generators="learnt"`` n(n-1)/2 generators are trained too, traceless ones: a scaling would take one's place. Free
ones would grow into one another, and one whose width has gone to zero never learns its direction. So they are kept
orthonormal by a QR decomposition, widths have a lower bound, and the reward is their sum, since ‖w‖ lets the first
generator that grows take all of it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gortho.forms import QuadraticForm
from gortho.nn.form import FixedForm
from gortho.nn.plain import PlainNet
from gortho.objectives import ABSOLUTE
from gortho.reps import Rep, as_rep
from gortho.samples import Samples
from gortho.studies.baselines.base import PAPER_NOISES, Method, Stand, Variant
from gortho.training import check_data, split_indices
from gortho.training.steppers import learning_rate

KINDS = ("box", "learnt")
#: So many neighbours in a batch share a transformation: matrix exponentials are half of the cost otherwise.
SHARED = 4
#: The width that all generators start with.
FIRST = 0.1
#: The least width of a learnt generator: one of width zero would never learn its direction.
LEAST = 0.1


class Augmentation(nn.Module):
    """Random transformations g = exp(Σ ε_i w_i G_i), ε_i uniform in [-1, 1], with orthonormal G_i."""

    def __init__(self, n: int, kind: str = "box", seed: int = 0):
        super().__init__()
        self.n, self.kind = n, kind
        self.least = 0.0 if kind == "box" else LEAST
        generator = torch.Generator().manual_seed(seed)
        if kind == "box":
            self.register_buffer("frame", torch.eye(n * n))
        else:
            self.frame = nn.Parameter(torch.randn(n * (n - 1) // 2, n * n, generator=generator))
        self.raw = nn.Parameter(torch.full((len(self.frame),), math.log(math.expm1(FIRST))))

    @property
    def widths(self) -> Tensor:
        """How far each generator is followed, w_i > 0."""
        return nn.functional.softplus(self.raw) + self.least

    @property
    def basis(self) -> Tensor:
        """The orthonormal generators ``(d, n, n)``."""
        if self.kind == "box":
            return self.frame.reshape(-1, self.n, self.n)
        trace = torch.eye(self.n).to(self.frame).flatten() / self.n**0.5
        traceless = self.frame - (self.frame @ trace)[:, None] * trace
        return torch.linalg.qr(traceless.T)[0].T.reshape(-1, self.n, self.n)

    def reward(self, limit: float) -> Tensor:
        """What is rewarded, each width up to a limit: ‖w‖ for a box; Σ w_i / √d for learnt generators, lest the first
        to grow takes all."""
        bounded = self.widths.clamp(max=limit)
        return bounded.norm() if self.kind == "box" else bounded.sum() / len(bounded) ** 0.5

    @torch.no_grad()
    def generators(self) -> Tensor:
        """n(n-1)/2 orthonormal generators: those learnt, or the widest of the box."""
        widest = self.widths.argsort(descending=True, stable=True)[: self.n * (self.n - 1) // 2]
        basis = self.basis[widest] if self.kind == "box" else self.basis
        return torch.linalg.qr(basis.double().cpu().flatten(1).T)[0].T.reshape(-1, self.n, self.n)

    def forward(self, epsilon: Tensor) -> Tensor:
        """Transformations ``(…, n, n)`` of uniform numbers ``(…, d)``."""
        return torch.matrix_exp(torch.einsum("...d,dab->...ab", epsilon * self.widths, self.basis))


#: Steps of quick runs.
FEW = {"steps": 400, "trial_steps": 100}


class Augerino(Method):
    """Fit a plain network under random transformations, and how far each of these may go.

    Args:
        generators: "box" (official: the elementary matrices of gl(n), only their widths are learnt) or "learnt"
            (n(n-1)/2 orthonormal matrices, learnt too).
        regularisation: the λ to choose from; a single number is taken as it is.
        steps: of the long run; each λ of several is tried for ``trial_steps`` first.
        averaging: transformations to average over in predictions; 0 takes the network alone.
        limit: a width earns no more reward beyond it.
        width, batch_size, lr: of the network's training; generator_lr: of generators and their widths.
    """

    variants = (
        Variant(
            "Augerino, box",
            {"regression": Stand(50), "suitability": Stand(50, at=())},
            {"generators": "box"},
            quick=FEW,
        ),
        Variant(
            "Augerino, box, no averaging",
            {"regression": Stand(51)},
            {"generators": "box", "averaging": 0},
            read_off=("Augerino, box",),
        ),
        Variant(
            "Augerino, learnt generators",
            {
                "regression": Stand(52),
                "noise": Stand(52, at=PAPER_NOISES),
                "suitability": Stand(52),
            },
            {"generators": "learnt"},
            quick=FEW,
        ),
        Variant(
            "Augerino, learnt generators, no averaging",
            {"regression": Stand(53), "noise": Stand(53)},
            {"generators": "learnt", "averaging": 0},
            read_off=("Augerino, learnt generators",),
        ),
    )
    place = 80
    augmentation: Augmentation
    tuning = (
        "Batches of 256 and 128, limits 1 and 0.3, rewards ‖w‖ and Σ w_i and the least width were tried in single runs "
        "on seed 0 of the synthetic and inertia tasks, and chosen by validation error and by the distance to the true "
        "generators, which favours this method, with test errors in sight; λ is chosen anew in every fit, on "
        "validation data alone."
    )

    def __init__(
        self,
        output: str | Rep = "scalar",
        seed: int = 0,
        *,
        generators: str = "box",
        regularisation: float | Sequence[float] = (0.01, 0.03, 0.1),
        steps: int = 8_000,
        trial_steps: int = 600,
        averaging: int = 16,
        limit: float = 0.3,
        width: int = 128,
        batch_size: int = 128,
        lr: float = 3e-3,
        generator_lr: float = 1e-2,
    ):
        super().__init__(output, seed)
        if generators not in KINDS:
            raise ValueError(f"generators = {generators!r}: choose from {', '.join(KINDS)}")
        if averaging < 0 or steps < 1 or trial_steps < 1:
            raise ValueError("steps and trial_steps are at least 1, averaging at least 0")
        self.kind, self.steps, self.trial_steps = generators, steps, trial_steps
        if isinstance(regularisation, int | float):
            regularisation = (regularisation,)
        self.regularisation = tuple(regularisation)
        self.averaging, self.limit, self.width = averaging, limit, width
        self.batch_size, self.lr, self.generator_lr = batch_size, lr, generator_lr

    def fit(self, X: Tensor, y: Tensor, scalars: Tensor | None = None) -> Augerino:
        """Choose λ in short runs, then train; 15 % of the samples are held out for both."""
        n = X.shape[-1]
        anything = FixedForm(QuadraticForm.euclidean(n))  # the plain network ignores it
        count = 0 if scalars is None else scalars.shape[-1]
        self.network = PlainNet(
            anything, X.shape[1], as_rep(self.output), point_scalars=count, width=self.width, seed=self.seed
        )
        data = check_data(self.network, X, y, (scalars, None))
        train, held_out = (data.rows(rows) for rows in split_indices(len(data), 0.15, self.seed))
        self.network.calibrate(train.x, train.y, *train.scalars)
        self.network.check_values = False
        start = copy.deepcopy(self.network)
        self.notes = {"lambda": self.regularisation[0]}
        if len(self.regularisation) > 1:
            scores = {}
            for strength in self.regularisation:
                self.network = copy.deepcopy(start)
                scores[strength] = self._train(train, held_out, strength, self.trial_steps)
            self.notes = {"lambda": min(scores, key=scores.__getitem__), "trials": scores}
            self.network = start
        self.notes["validation"] = self._train(train, held_out, self.notes["lambda"], self.steps)
        self.network.eval()
        self.notes["widths"] = self.augmentation.widths.tolist()
        self.generators = self.augmentation.generators()
        return self

    def take_over(self, fitted: Method, X: Tensor, scalars: Tensor | None = None) -> None:
        """Take network and transformations: what is left to differ is the average."""
        assert isinstance(fitted, Augerino)
        self.network, self.augmentation = fitted.network, fitted.augmentation
        self.generators, self.notes = fitted.generators, fitted.notes

    def _train(self, train: Samples, held_out: Samples, strength: float, steps: int) -> float:
        """Train from the network as it is; leave the state that was best on validation data, return its loss."""
        net = self.network
        self.augmentation = aug = Augmentation(net.n, self.kind, seed=self.seed)
        generator = torch.Generator().manual_seed(1_000_003 * self.seed + 1)
        groups = [
            {"params": list(net.parameters()), "peak": self.lr},
            {"params": list(aug.parameters()), "peak": self.generator_lr},
        ]
        optimizer = torch.optim.Adam(groups, fused=True)
        loss, models = ABSOLUTE.loss(net), nn.ModuleDict({"net": net, "aug": aug})
        samples = len(train)
        every, size = max(1, min(500, steps // 4)), min(self.batch_size, samples)
        best, state = math.inf, copy.deepcopy(models.state_dict())
        order, taken = torch.randperm(samples, generator=generator), 0
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, steps, group["peak"])
            if taken + size > samples:
                order, taken = torch.randperm(samples, generator=generator), 0
            batch = train.rows(order[taken : taken + size])
            taken += size
            optimizer.zero_grad()
            error = loss(self._moved(batch.x, batch.point_scalars, generator), batch.y, None)
            (error - strength * aug.reward(self.limit)).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            nn.utils.clip_grad_norm_(aug.parameters(), 1.0)
            optimizer.step()
            if (step + 1) % every == 0 or step + 1 == steps:
                with torch.no_grad():
                    average = self._averaged(held_out.x, held_out.point_scalars, self.averaging)
                    score = float(loss(average, held_out.y, None))
                if score < best:
                    best, state = score, copy.deepcopy(models.state_dict())
        models.load_state_dict(state)
        return best

    def _moved(self, x: Tensor, scalars: Tensor | None, generator: torch.Generator) -> Tensor:
        """ρ(g)⁻¹ h(gx) with one random g a sample."""
        count = -(-len(x) // SHARED)
        g = self.augmentation(2 * torch.rand(count, len(self.augmentation.raw), generator=generator) - 1)
        inverse = torch.linalg.inv(g)
        g, inverse = (m.repeat_interleave(SHARED, 0)[: len(x)] for m in (g, inverse))
        return self.network.rep.act(inverse, self.network(x @ g.mT, scalars))

    def _averaged(self, x: Tensor, scalars: Tensor | None, samples: int) -> Tensor:
        if not samples:
            return self.network(x, scalars)
        generator = torch.Generator().manual_seed(1_000_003 * self.seed + 2)
        total = self._moved(x, scalars, generator)
        for _ in range(samples - 1):
            total = total + self._moved(x, scalars, generator)
        return total / samples

    @torch.no_grad()
    def predict(self, X: Tensor, scalars: Tensor | None = None, samples: int | None = None) -> Tensor:
        """The average over ``samples`` transformations (``averaging`` unless told), always the same ones."""
        samples = self.averaging if samples is None else samples
        given = None if scalars is None else scalars.float().split(8192)
        pieces = [
            self._averaged(x, None if given is None else given[i], samples)
            for i, x in enumerate(X.float().split(8192))
        ]
        return torch.cat(pieces).double()

    @property
    def parameters(self) -> int:
        return sum(p.numel() for part in (self.network, self.augmentation) for p in part.parameters())
