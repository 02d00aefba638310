"""LieGAN: generators by adversarial matching of the data with transformed data.

Official: learnt matrices L_i and normal coefficients w give g = exp(Σ w_i L_i), applied to inputs and outputs; a
discriminator tells the moved pairs (gx, ρ(g)y) from real ones; the generator is rewarded for fooling it, for moving
away from the identity (|cos(gx, x)| small, or ‖L‖ large up to a bound) and for distinct channels (small products of
normalised L_i). Ours: it moves every output action here and leaves point scalars as they are, is told the dimension
n(n-1)/2, and takes the average of L over the last quarter of training, since the game circles about its solution. The
game asks for more than an equivariant law: the *distribution* of x must be invariant too, as that of N(0, I) is under
O(n) and as none is under a boost. The discriminator is smaller (128 wide, not 512) and neighbours in a batch share a g.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gortho.reps import DirectSum, Rep, as_rep
from gortho.studies.baselines.base import Method, Stand, Variant

REGULARISERS = ("cosine", "norm")
#: So many neighbours in a batch share a transformation: matrix exponentials are half of the cost otherwise.
SHARED = 4


class LieGAN(Method):
    """Learn matrices L whose random exponentials a discriminator cannot tell from the identity. It does not predict.

    Args:
        regulariser: what keeps the generator from the identity: "cosine" or "norm", both official.
        strength, distinct: factors λ of the regulariser and η of the products between channels.
        sigma: standard deviation of the coefficients.
        steps: of generator and discriminator in turn.
        lr, discriminator_lr: learning rates of Adam.
    """

    variants = (Variant("LieGAN", {"regression": Stand(60), "suitability": Stand(60)}, quick={"steps": 300}),)
    place = 90
    tuning = (
        "Learning rates, λ and the deviation of the coefficients are official, η is a tenth of it. One other setting "
        "(λ 0.1, deviation 0.5, η 0.01) on an O(3) scalar law and the other regulariser on the inertia task, seed 0 "
        "each, were compared by the distance to the true generators; they differed little."
    )

    def __init__(
        self,
        output: str | Rep = "scalar",
        seed: int = 0,
        *,
        regulariser: str = "norm",
        strength: float = 0.01,
        distinct: float = 0.1,
        sigma: float = 1.0,
        steps: int = 6_000,
        width: int = 128,
        batch_size: int = 128,
        lr: float = 1e-3,
        discriminator_lr: float = 2e-4,
    ):
        super().__init__(output, seed)
        if regulariser not in REGULARISERS:
            raise ValueError(f"regulariser = {regulariser!r}: choose from {', '.join(REGULARISERS)}")
        self.regulariser, self.strength, self.distinct = regulariser, strength, distinct
        self.sigma, self.steps, self.width, self.batch_size = sigma, steps, width, batch_size
        self.lr, self.discriminator_lr = lr, discriminator_lr

    def fit(self, X: Tensor, y: Tensor, scalars: Tensor | None = None) -> LieGAN:
        """Play the game on all samples: it has no predictor to hold out for."""
        n, rep = X.shape[-1], as_rep(self.output)
        generator = torch.Generator().manual_seed(self.seed)
        X, y = X.float(), y.float()
        X = X / X.square().mean().sqrt()
        y = _unit(y, rep, n)
        given = None if scalars is None else scalars.float().flatten(1)
        if given is not None:
            given = (given - given.mean(0)) / given.std(0).clamp(min=1e-12)
        d = n * (n - 1) // 2
        L = nn.Parameter(torch.randn(d, n, n, generator=generator) * (2 / n) ** 0.5)
        inputs = X[0].numel() + y[0].numel() + (0 if given is None else given.shape[1])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.discriminator = nn.Sequential(
                nn.Linear(inputs, self.width),
                nn.LeakyReLU(0.2),
                nn.Linear(self.width, self.width),
                nn.LeakyReLU(0.2),
                nn.Linear(self.width, 1),
            )
        player = torch.optim.Adam([L], lr=self.lr, betas=(0.5, 0.999))
        judge = torch.optim.Adam(self.discriminator.parameters(), lr=self.discriminator_lr, fused=True)
        softplus = nn.functional.softplus  # -log sigmoid(z) = softplus(-z)
        size, total, counted = min(self.batch_size, len(X)), torch.zeros_like(L), 0

        for step in range(self.steps):
            rows = torch.randint(len(X), (size,), generator=generator)
            x, target = X[rows], y[rows]
            extra = [] if given is None else [given[rows]]
            w = self.sigma * torch.randn(-(-size // SHARED), d, generator=generator)
            g = torch.matrix_exp(torch.einsum("bd,dij->bij", w, L)).repeat_interleave(SHARED, 0)[:size]
            moved = x @ g.mT
            fake = torch.cat([moved.flatten(1), rep.act(g, target).reshape(size, -1), *extra], dim=1)
            player.zero_grad()
            loss = softplus(-self.discriminator(fake)).mean()
            (loss + self._penalty(L, x, moved)).backward()
            nn.utils.clip_grad_norm_([L], 1.0)
            player.step()

            real = torch.cat([x.flatten(1), target.reshape(size, -1), *extra], dim=1)
            judge.zero_grad()
            verdict = (
                softplus(-self.discriminator(real)).mean()
                + softplus(self.discriminator(fake.detach())).mean()
            )
            (verdict / 2).backward()
            judge.step()
            if step >= 3 * self.steps // 4:
                total, counted = total + L.detach(), counted + 1
        found = (total / counted).double()
        if not found.isfinite().all():
            raise ArithmeticError("the generators ran off to infinity: try a smaller strength, sigma or lr")
        self.matrices = L.detach()
        self.generators = torch.linalg.qr(found.flatten(1).T)[0].T.reshape(-1, n, n)
        self.notes = {"discriminator loss": float(verdict.detach() / 2), "norm": float(found.norm())}
        return self

    def _penalty(self, L: Tensor, x: Tensor, moved: Tensor) -> Tensor:
        """Against the identity, and for distinct channels."""
        unit = L.flatten(1) / (L.flatten(1).norm(dim=1, keepdim=True) + 1e-6) * L.shape[-1] ** 0.5
        channels = (unit @ unit.T).triu(1).abs().sum()
        if self.regulariser == "cosine":
            away = nn.functional.cosine_similarity(moved, x, dim=-1).mean().abs()
        else:
            away = -L.norm().clamp(max=float(L.shape[0] * L.shape[-1]))
        return self.strength * away + self.distinct * channels

    def predict(self, X: Tensor, scalars: Tensor | None = None) -> Tensor:
        """There is nothing to predict with."""
        raise NotImplementedError("LieGAN finds generators only and has no predictor: use `generators`")

    @property
    def parameters(self) -> int:
        return self.matrices.numel() + sum(p.numel() for p in self.discriminator.parameters())


def _unit(y: Tensor, rep: Rep, n: int) -> Tensor:
    """Targets with each part scaled to mean square one; that commutes with the action."""
    parts = rep.split(y, n) if isinstance(rep, DirectSum) else [y]
    scaled = [v / v.square().mean().sqrt().clamp(min=1e-12) for v in parts]
    return rep.join(scaled) if isinstance(rep, DirectSum) else scaled[0]
