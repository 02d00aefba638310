"""LIG: vector fields whose flows leave a fitted function valid ("learning infinitesimal generators").

Official (Ko, Kim, Lee 2024): a network of the coordinates gives several vector fields, each normalised to mean square
speed one on the data. Data flow along each field for a random time, by a Runge-Kutta solver, and a validity score says
whether what comes out is still valid for the task: for images, how far the features of a trained classifier turn, for
differential equations, how large the residual becomes. Fields are kept apart by a sequential loss on their inner
products, in which earlier fields do not give way to later ones, and smooth by a bound on their Lipschitz constant.

Ours: the trained model is the network of `MLP`, and the score is ‖f(φ_t(x)) - ρ(φ_t) f(x)‖ in units of the targets.
Outputs that are not invariant need a flow of their own, synchronised with that of x; the paper has none. We give them
the one of the field's linear part, exp(t dρ(X)) with X fitted to the field by least squares, which is right for linear
symmetries and told, not found, for others. n(n-1)/2 fields are asked for, without the field x → x by default, as a
scaling would take one's place. The generators are the linear parts, made orthonormal.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from gortho.reps import DirectSum, Rep, as_rep
from gortho.studies.baselines.base import Stand, Variant
from gortho.studies.baselines.mlp import MLP, Reader
from gortho.training.steppers import learning_rate

KINDS = ("network", "affine")
#: Linear parts whose share of the largest is smaller are translations or curved fields: no generators.
LEAST_LINEAR = 0.1
#: Anchors on which fields are normalised and compared.
ANCHORS = 128


class Fields(nn.Module):
    """d vector fields on R^n: by a network with one head for each, or affine, x → Xx + b.

    Args:
        anchors: points ``(m, n)`` on which every field has mean square speed one.
        traceless: take the multiple of x out of each field.
    """

    anchors: Tensor
    solve: Tensor

    def __init__(self, d: int, anchors: Tensor, kind: str, width: int, traceless: bool):
        super().__init__()
        n = anchors.shape[-1]
        self.kind, self.traceless = kind, traceless
        self.register_buffer("anchors", anchors)
        ones = torch.ones(len(anchors), 1).to(anchors)
        self.register_buffer("solve", torch.linalg.pinv(torch.cat([anchors, ones], dim=1)))
        inputs = n
        if kind == "network":
            self.trunk = nn.Sequential(nn.Linear(n, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
            inputs = width
        self.heads = nn.Parameter(torch.randn(d, inputs, n) / inputs**0.5)
        self.shifts = nn.Parameter(torch.zeros(d, 1, n))

    def raw(self, x: Tensor) -> Tensor:
        """Fields ``(d, N, n)`` at points of their own ``(d, N, n)``, as the weights have them."""
        hidden = self.trunk(x) if self.kind == "network" else x
        return hidden @ self.heads + self.shifts

    def ready(self) -> tuple[Callable[[Tensor], Tensor], Tensor, Tensor]:
        """The normalised fields as a function, their values at the anchors, and their linear parts ``(d, n, n)``."""
        n = self.anchors.shape[-1]
        values = self.raw(self.anchors.expand(len(self.heads), -1, -1))
        linear = (self.solve @ values)[:, :n].mT
        stretch = linear.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None] * float(self.traceless)
        values = values - stretch * self.anchors
        linear = linear - stretch * torch.eye(n).to(linear)
        speed = values.square().sum(-1).mean(-1).sqrt().clamp_min(1e-6)[:, None, None]
        return lambda x: (self.raw(x) - stretch * x) / speed, values / speed, linear / speed


def flow(field: Callable[[Tensor], Tensor], x: Tensor, t: Tensor, steps: int = 1) -> Tensor:
    """φ_t(x) of dx/dt = v(x), by the classical Runge-Kutta method of fourth order.

    >>> start, quarter = torch.tensor([1.0, 0.0]), torch.tensor(torch.pi / 2)
    >>> turned = flow(lambda x: torch.stack([-x[1], x[0]]), start, quarter, steps=20)
    >>> bool((turned - torch.tensor([0.0, 1.0])).abs().max() < 1e-5)
    True
    """
    h = t / steps
    for _ in range(steps):
        a = field(x)
        b = field(x + h / 2 * a)
        c = field(x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + field(x + h * c))
    return x


def overlap(values: Tensor) -> Tensor:
    """Squared inner products of each two fields; the earlier of the two is held fixed.

    The published loss is π/2 minus the angle. Its kink at right angles holds affine fields where they first meet it.
    """
    inner = torch.einsum("imn,jmn->ij", values.detach(), values) / values.shape[1]
    return inner.triu(1).square().sum()


class LIG(Reader):
    """Train a plain network, then look for vector fields along whose flows it stays valid.

    Args:
        output: how the targets transform.
        fields: "network", as published, or "affine".
        dimension: number of fields, n(n-1)/2 by default.
        traceless: leave the field x → x out.
        time: flows go on for a random time up to this, in one Runge-Kutta step: fields of the slope 1 or less that
            symmetries here have are followed to 1e-4. The published ones take twenty.
        iterations, field_lr, batch: of Adam on the fields; affine ones take ten times the rate of a network's.
        distinct, smooth, slope: factors of the losses that keep fields apart and smooth, and the bound of the latter.
        field_width: hidden units of the fields' network.
        network: size and training of the predictor, as `MLP` takes them.
    """

    variants = (
        Variant("LIG", {"neighbours": Stand(20)}, quick={"steps": 600, "iterations": 150}),
        Variant("LIG, affine", {"neighbours": Stand(21)}, {"fields": "affine"}, read_off=("LIG",)),
    )
    place = 100
    tuning = (
        f"The predictor is that of the MLP: {MLP.tuning} Of the fields, the published loss on angles and squared inner "
        "products, weights of 0.1, 1 and 10, learning rates of 3e-3 to 3e-2 and one or four steps of the solver were "
        "compared, not in all combinations, on the exact laws of the synthetic, inertia and Particle tasks, seed 1, by "
        "the distance to the true generators, which favours this method; the dimension n(n-1)/2 and the output action "
        "are told."
    )

    def __init__(
        self,
        output: str | Rep = "scalar",
        *,
        fields: str = "network",
        dimension: int | None = None,
        traceless: bool = True,
        time: float = 0.4,
        iterations: int = 1_500,
        field_lr: float | None = None,
        batch: int = 64,
        distinct: float = 1.0,
        smooth: float = 1.0,
        slope: float = 2.0,
        field_width: int = 64,
        samples: int = 2_000,
        **network: Any,
    ):
        super().__init__(output, **network)
        if fields not in KINDS:
            raise ValueError(f"fields = {fields!r}: choose from {', '.join(KINDS)}")
        self.kind, self.dimension, self.traceless, self.time = fields, dimension, traceless, time
        self.iterations, self.batch = iterations, batch
        self.field_lr = (3e-3 if fields == "network" else 3e-2) if field_lr is None else field_lr
        self.distinct, self.smooth, self.slope, self.field_width = distinct, smooth, slope, field_width
        self.samples = samples

    def read(self, X: Tensor, scalars: Tensor | None = None) -> None:
        """Find the fields of the network as it is."""
        network = copy.deepcopy(self.network).float().requires_grad_(False)
        network.check_values = False
        few = slice(0, self.samples)
        self.analyse(network, X[few], None if scalars is None else scalars[few])

    def analyse(self, f: Callable[..., Tensor], X: Tensor, scalars: Tensor | None = None) -> Tensor:
        """Find fields of any differentiable function of ``X (N, p, n)`` and, row by row, of scalars."""
        X = torch.as_tensor(X).float()
        n, unit = X.shape[-1], float(X.double().square().mean().sqrt())
        d = n * (n - 1) // 2 if self.dimension is None else self.dimension
        given = () if scalars is None else (scalars.float(),)
        with torch.no_grad():
            y = f(X, *given)
        generator = torch.Generator().manual_seed(self.seed)
        points = (X / unit).reshape(-1, n)
        anchors = points[torch.randperm(len(points), generator=generator)[:ANCHORS]]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.fields = Fields(d, anchors, self.kind, self.field_width, self.traceless)
        optimizer = torch.optim.Adam(self.fields.parameters(), lr=self.field_lr)
        size = y.square().reshape(len(y), -1).sum(-1).mean().sqrt().clamp_min(1e-12)
        rows = min(self.batch, len(X))
        for step in range(self.iterations):
            optimizer.param_groups[0]["lr"] = learning_rate(step, self.iterations, self.field_lr)
            some = torch.randint(len(X), (rows,), generator=generator)
            t = self.time * (2 * torch.rand(d, generator=generator) - 1)
            field, values, linear = self.fields.ready()
            validity = self._validity(
                f, X[some], y[some], tuple(s[some] for s in given), unit, t, field, linear
            )
            loss = validity.sum() / size + self.distinct * overlap(values) + self.smooth * self._bend(values)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.fields.parameters(), 1.0)
            optimizer.step()
        return self._keep(f, X, y, given, unit, size)

    def _validity(
        self,
        f: Callable[..., Tensor],
        x: Tensor,
        y: Tensor,
        scalars: tuple[Tensor, ...],
        unit: float,
        t: Tensor,
        field: Callable[[Tensor], Tensor],
        linear: Tensor,
    ) -> Tensor:
        """Mean ‖f(φ_t(x)) - ρ(exp(tX)) f(x)‖ of each field; 0 for a symmetry."""
        d, (count, p, n) = len(t), x.shape
        moved = flow(field, (x / unit).reshape(1, -1, n).expand(d, -1, -1), t[:, None, None]) * unit
        many = tuple(s.repeat(d, *(1,) * (s.ndim - 1)) for s in scalars)
        after = f(moved.reshape(d * count, p, n), *many).reshape(d, count, *y.shape[1:])
        rep = as_rep(self.output)
        g = torch.matrix_exp(t[:, None, None] * linear)
        g = g[:, None].expand(d, count, n, n) if isinstance(rep, DirectSum) else g[:, None]
        expected = rep.act(g, y.expand(d, *y.shape))
        return (after - expected).reshape(d, count, -1).square().sum(-1).add(1e-12).sqrt().mean(-1)

    def _bend(self, values: Tensor) -> Tensor:
        """How far the slope between neighbouring anchors passes the bound."""
        anchors = self.fields.anchors
        between = (values - values.roll(1, dims=1)).norm(dim=-1)
        distance = (anchors - anchors.roll(1, dims=0)).norm(dim=-1)
        return (between / distance.clamp_min(1e-6) - self.slope).clamp_min(0).mean()

    @torch.no_grad()
    def _keep(
        self,
        f: Callable[..., Tensor],
        X: Tensor,
        y: Tensor,
        given: tuple[Tensor, ...],
        unit: float,
        size: Tensor,
    ) -> Tensor:
        """Keep the generators, and what there is to say of the fields."""
        field, values, linear = self.fields.ready()
        self.unit, n = unit, X.shape[-1]
        t = torch.full((len(values),), self.time)
        scores = self._validity(f, X, y, given, unit, t, field, linear) / size
        affine = self.fields.anchors @ linear.mT
        rest = values - affine
        rest = rest - rest.mean(1, keepdim=True)
        sigma, V = torch.linalg.svd(linear.double().flatten(1), full_matrices=False)[1:]
        self.generators = V[: max(1, int((sigma > LEAST_LINEAR * sigma[0]).sum()))].reshape(-1, n, n)
        self.scores = scores
        self.notes |= {
            "validity score": float(scores.mean()),
            "worst validity score": float(scores.max()),
            "curved share of the fields": float(rest.square().sum(-1).mean()),
        }
        return self.generators

    @torch.no_grad()
    def flows(self, x: Tensor, t: float) -> Tensor:
        """Points ``(N, n)`` after time t along each field, ``(d, N, n)``."""
        field = self.fields.ready()[0]
        d = len(self.fields.heads)
        moved = flow(field, (x.float() / self.unit).expand(d, -1, -1), torch.tensor(t), steps=20)
        return (moved * self.unit).double()
