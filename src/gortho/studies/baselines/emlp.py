"""EMLP: a network equivariant under a group that it is told, every layer from a numerically solved constraint.

Official (Finzi, Welling, Wilson 2021): features are a sum of tensor representations. A linear map W between two of
them is equivariant if dρ(X) vec W = 0 for the generators X of the Lie algebra and ρ(h) vec W = vec W for the discrete
ones; the null space of all these, found numerically, is a basis of what may be learnt. A layer is such a map, plus a
small multiple of a bilinear one, and a gate: tensors are multiplied by the sigmoid of a scalar of their own, scalars go
through swish. Ours: channels are a fixed number of scalars, vectors and matrices, far fewer than published (three
layers of 384); bilinear maps are solved for in the same way, up to four indices in all, and multiply channel by channel
after a mixing; the group is O(A) of any non-degenerate form, by so(A) and two reflections. Told a wrong form it is an
equivariant network of the wrong group.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from gortho.forms import QuadraticForm
from gortho.groups import reflection
from gortho.nn.exact import EquivariantNet
from gortho.nn.form import FixedForm
from gortho.reps import Rep, TensorRep
from gortho.studies.baselines.base import Method, Stand, Variant
from gortho.studies.baselines.network import right_form, wrong_form
from gortho.training import fit

#: Eigenvalues of CᵀC, squares of the constraints' singular values, below this share of the largest count as zero.
NULL = 1e-9
#: Bilinear maps are solved for up to this many indices in all: n⁴ unknowns.
MOST_INDICES = 4
#: Share of the bilinear map in a layer, as published.
BILINEAR = 0.1
SCALAR, VECTOR, MATRIX = TensorRep(0, 0), TensorRep(1, 0), TensorRep(2, 0)
#: Values by type: ``(batch, channels, n^rank)``.
Features = dict[TensorRep, Tensor]
#: Channels by type.
Channels = dict[TensorRep, int]


def constraints(form: QuadraticForm, rep: TensorRep) -> Tensor:
    """What O(A) asks of an invariant tensor, ``(rows, n^rank)``: dρ(X) t = 0 on so(A), ρ(r) t = t for reflections.

    Two reflections, along a longest and a shortest axis, reach all components of an indefinite group.
    """
    n = form.n
    units = torch.eye(n**rep.rank, dtype=torch.float64).reshape(-1, *(n,) * rep.rank)
    axes = torch.linalg.eigh(form.matrix)[1].T
    blocks = [rep.differential(X, units) for X in form.group().algebra()]
    blocks += [rep.act(reflection(axes[i], form.matrix), units) - units for i in (0, -1)]
    return torch.cat([block.reshape(len(units), -1).T for block in blocks])


@cache
def invariants(form: QuadraticForm, up: int, down: int) -> Tensor:
    """Orthonormal basis ``(k, n, …, n)`` of the tensors of a type that O(A) leaves alone: a numerical null space.

    >>> len(invariants(QuadraticForm.minkowski(), 2, 2)), len(invariants(QuadraticForm.euclidean(3), 2, 1))
    (3, 0)
    """
    rep = TensorRep(up, down)
    C = constraints(form, rep)
    values, V = torch.linalg.eigh(C.T @ C)
    return V.T[values <= NULL * float(values[-1].clamp_min(1.0))].reshape(-1, *(form.n,) * rep.rank)


def maps(form: QuadraticForm, to: TensorRep, *of: TensorRep) -> Tensor:
    """Basis ``(k, n^to, n^of, …)`` of the equivariant multilinear maps from tensors with upper indices."""
    found = invariants(form, to.up, to.down + sum(rep.rank for rep in of))
    return found.reshape(len(found), *(form.n**rep.rank for rep in (to, *of)))


class Linear(nn.Module):
    """All equivariant linear maps between features, with a bias where the group leaves a tensor alone."""

    def __init__(self, form: QuadraticForm, inputs: Channels, outputs: Channels):
        super().__init__()
        self.weights = nn.ParameterList()
        self.maps: list[tuple[TensorRep, TensorRep, Tensor]] = []
        self.outputs, self.n = outputs, form.n
        inputs = inputs | {SCALAR: inputs.get(SCALAR, 0) + 1}  # the bias is a map from the number 1
        for to, many in outputs.items():
            found = {of: maps(form, to, of) for of in inputs}
            fan = sum(len(Q) * inputs[of] for of, Q in found.items())
            for of, Q in found.items():
                if len(Q):
                    self.maps.append((to, of, Q * Q.shape[1] ** 0.5))
                    self.weights.append(nn.Parameter(torch.randn(len(Q), many, inputs[of]) / fan**0.5))

    def forward(self, x: Features) -> Features:
        """Features ``(batch, channels, n^rank)`` of the outputs."""
        some = next(iter(x.values()))
        one = some.new_ones(len(some), 1, 1)
        x = x | {SCALAR: torch.cat([x[SCALAR], one], dim=1) if SCALAR in x else one}
        y = {to: some.new_zeros(len(some), many, self.n**to.rank) for to, many in self.outputs.items()}
        for (to, of, Q), w in zip(self.maps, self.weights):
            mixed = torch.einsum("kdc,zcj->zdkj", w, x[of])
            y[to] = y[to] + torch.einsum("kij,zdkj->zdi", Q.to(mixed), mixed)
        return y


class Bilinear(nn.Module):
    """Equivariant products of two features, channel by channel after a mixing of each."""

    def __init__(self, form: QuadraticForm, channels: Channels, room: int):
        super().__init__()
        self.left, self.right, self.out = nn.ParameterList(), nn.ParameterList(), nn.ParameterList()
        self.maps: list[tuple[TensorRep, TensorRep, TensorRep, Tensor]] = []
        for a, b, to in product(channels, repeat=3):
            if a.rank > b.rank or a.rank + b.rank + to.rank > MOST_INDICES:
                continue
            Q = maps(form, to, a, b)
            if not len(Q):
                continue
            self.maps.append((to, a, b, Q * Q.shape[1] ** 0.5))
            self.left.append(nn.Parameter(torch.randn(room, channels[a]) / channels[a] ** 0.5))
            self.right.append(nn.Parameter(torch.randn(room, channels[b]) / channels[b] ** 0.5))
            self.out.append(nn.Parameter(torch.randn(len(Q), channels[to], room) / (room * len(Q)) ** 0.5))

    def forward(self, x: Features) -> Features:
        """x plus a small share of all products."""
        y = dict(x)
        for (to, a, b, Q), left, right, out in zip(self.maps, self.left, self.right, self.out):
            one, two = left @ x[a], right @ x[b]
            products = (one[..., :, None] * two[..., None, :]).flatten(2)
            values = torch.einsum("kij,zmj->zkmi", Q.to(products).flatten(2), products)
            y[to] = y[to] + BILINEAR * torch.einsum("kdm,zkmi->zdi", out, values)
        return y


class Layer(nn.Module):
    """Linear map, bilinear map, gates."""

    def __init__(self, form: QuadraticForm, inputs: Channels, outputs: Channels, room: int):
        super().__init__()
        self.channels = outputs
        gates = sum(many for rep, many in outputs.items() if rep.rank)
        wide = outputs | {SCALAR: outputs[SCALAR] + gates}
        self.linear, self.bilinear = Linear(form, inputs, wide), Bilinear(form, wide, room)

    def forward(self, x: Features) -> Features:
        x = self.bilinear(self.linear(x))
        tensors = [rep for rep in self.channels if rep.rank]
        own, *gates = x[SCALAR].split([self.channels[rep] for rep in (SCALAR, *tensors)], dim=1)
        gated = {rep: x[rep] * gate.sigmoid() for rep, gate in zip(tensors, gates)}
        return {SCALAR: nn.functional.silu(own), **gated}


class EMLPNet(EquivariantNet):
    """Layers of scalars, vectors and matrices, in the harness of the other networks."""

    kind = "emlp"
    takes_symmetries = False

    def build(self, width: int, depth: int) -> None:
        """``width`` scalars, half as many vectors, a quarter as many matrices in each of ``depth`` layers."""
        if self.set_like:
            raise ValueError("EMLP needs an order of the points: leave out set_like")
        form = self.form.value()
        if form.signature.zero:
            raise ValueError(f"{form.group_name} of a degenerate form has no null spaces to build on")
        count = self.points * self.point_scalars + self.sample_scalars
        before: Channels = {VECTOR: self.points} | ({SCALAR: count} if count else {})
        hidden = {SCALAR: width, VECTOR: max(1, width // 2), MATRIX: max(1, width // 4)}
        layers = []
        for _ in range(depth):
            layers.append(Layer(form, before, hidden, room=max(1, width // 4)))
            before = hidden
        self.layers = nn.Sequential(*layers)
        parts = list(self.rep.parts)
        self.readout = Linear(form, before, {part: parts.count(part) for part in parts})

    def convex_stages(self) -> list[list[nn.Parameter]]:
        return []

    def values(self, X: Tensor, scalars: tuple[Tensor | None, Tensor | None]) -> list[Tensor]:
        given = [s.flatten(1) for s in scalars if s is not None]
        features: Features = {VECTOR: X} | ({SCALAR: torch.cat(given, dim=1)[..., None]} if given else {})
        y, taken = self.readout(self.layers(features)), dict.fromkeys(self.rep.parts, 0)
        values = []
        for part in self.rep.parts:
            values.append(y[part][:, taken[part]].reshape(-1, *part.shape(self.n)))
            taken[part] += 1
        return values


#: Steps of quick runs.
FEW = {"steps": 100}


class EMLP(Method):
    """Train an equivariant network of the group O(A) that it is told. It finds no symmetry.

    Args:
        form: the form A, right or wrong.
        width, depth: of `EMLPNet`; steps, lr, batch_size: of Adam, stopped early on 15 % validation data.
    """

    variants = (
        Variant("EMLP, group told", {"neighbours": Stand(1)}, quick=FEW, told=right_form),
        Variant("EMLP, wrong group told", {"neighbours": Stand(3)}, quick=FEW, told=wrong_form),
    )
    place = 120
    tuning = (
        "Nothing was tuned but the size, which is what trains in a minute or two on one core; published networks are "
        "larger and train for longer."
    )

    def __init__(
        self,
        form: QuadraticForm,
        output: str | Rep = "scalar",
        seed: int = 0,
        *,
        width: int = 16,
        depth: int = 3,
        steps: int = 2_000,
        lr: float = 3e-3,
        batch_size: int = 128,
    ):
        super().__init__(output, seed)
        self.form, self.width, self.depth = form, width, depth
        self.steps, self.lr, self.batch_size = steps, lr, batch_size

    def fit(self, X: Tensor, y: Tensor, scalars: Tensor | None = None) -> EMLP:
        options: dict[str, Any] = {"width": self.width, "depth": self.depth, "seed": self.seed}
        options["point_scalars"] = 0 if scalars is None else scalars.shape[-1]
        network = EMLPNet(FixedForm(self.form), X.shape[1], self.output, **options)
        batch_size = min(self.batch_size, max(16, len(X) // 8))
        history = fit(
            network,
            X.float(),
            y.float(),
            point_scalars=None if scalars is None else scalars.float(),
            validation=0.15,
            convex=False,
            epochs=max(1, round(self.steps * batch_size / (0.85 * len(X)))),
            batch_size=batch_size,
            lr=self.lr,
            seed=self.seed,
            progress=False,
        )
        self.network = network.double()
        self.notes = {"told": self.form.group_name, "validation loss": history.best_validation}
        return self
