"""BNN: the irreducible representations of a finite commutative group, from orbits, by a learnt bispectrum.

Official (Sanborn et al. 2023): a complex matrix W with rows of length one, trained on signals of which it is known
which lie in one orbit. With c = Wx the bispectrum is β_ij = c_i c_j conj(W_i ∘ W_j)x, scaled to length one; the loss
is the mean distance of β within orbits, plus that of x from W†Wx, which keeps W from forgetting. If the rows are the
characters of a commutative group, β is constant on orbits and tells nearly all of them apart. The columns of W are
then the group's elements, and their products its Cayley table. Ours: no centring, so that the trivial character is
learnt too, and a cosine for the learning rate.

Law data has no orbits. `fit` is *told* the group, and moves each sample by random elements of it: more than any other
method here is given. Characters are one-dimensional, and those of a connected group that is not commutative, as SO(A)
from three dimensions on, are all trivial. What comes out instead is measured (`notes`), beside the same network on
cyclic shifts of the same samples. Scaled to length one, β does not see the size of x: orbits that differ by a scale
alone, as many of a single vector do, would not be told apart even by a perfect W, so the spread *within* orbits is the
first figure to look at. There is no form to read off it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.reps import Rep
from gortho.studies.baselines.base import Method, Stand, Variant
from gortho.training.steppers import learning_rate

#: Products of columns within this root mean square distance of a column are taken for that column.
CLOSES = 0.1


def bispectrum(W: Tensor, x: Tensor) -> Tensor:
    """β_ij, i ≤ j, of real signals ``(N, n)``, each scaled to length one: ``(N, n(n+1)/2)``, complex."""
    x = x.to(W.dtype)
    c = x @ W.mT
    i, j = torch.triu_indices(len(W), len(W))
    beta = c[:, i] * c[:, j] * (x @ (W[i] * W[j]).conj().mT)
    return beta / beta.norm(dim=1, keepdim=True).clamp_min(1e-9)


def cayley_table(W: Tensor) -> tuple[Tensor, float]:
    """Which column the product of columns a and b is nearest to, ``(n, n)``, and the largest distance; first is e."""
    C = W / W.abs().clamp_min(1e-9)
    C = C / C[:, :1]  # the phase of a character is free
    products = C[:, :, None] * C[:, None, :]
    distances = (products[..., None] - C[:, None, None, :]).abs().square().mean(0).sqrt()
    nearest, which = distances.min(-1)
    return which, float(nearest.max())


def is_group(table: Tensor) -> bool:
    """Whether a table with the neutral element first is one of a commutative group.

    >>> is_group(torch.tensor([[0, 1, 2], [1, 2, 0], [2, 0, 1]])), is_group(torch.tensor([[0, 1], [1, 1]]))
    (True, False)
    """
    n = len(table)
    every = torch.arange(n)
    latin = bool((table.sort(0)[0] == every[:, None]).all()) and bool((table.sort(1)[0] == every).all())
    neutral = bool((table[0] == every).all())
    associative = bool((table[table] == table[every[:, None, None], table[None]]).all())
    return latin and neutral and associative and bool((table == table.T).all())


def orders(table: Tensor) -> list[int]:
    """Orders of the elements, ascending: they tell commutative groups apart.

    >>> orders(torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]))     # Z₂ × Z₂
    [1, 2, 2, 2]
    """
    found = []
    for a in range(len(table)):
        power, order = a, 1
        while power != 0 and order <= len(table):
            power, order = int(table[power, a]), order + 1
        found.append(order)
    return sorted(found)


@dataclass(frozen=True)
class OrbitScore:
    """How well orbits are told apart.

    Attributes:
        within: mean distance within orbits; independent features of length one are √2 apart.
        collapse: the same over that between orbits: 0 is right, 1 is nothing.
        accuracy: share of members whose nearest neighbour lies in the same orbit.
    """

    within: float
    collapse: float
    accuracy: float


def orbit_score(features: Tensor) -> OrbitScore:
    """Of features ``(orbits, members, k)``."""
    count, members = features.shape[:2]
    flat = features.flatten(0, 1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).flatten(1)
    distances = torch.cdist(flat.double(), flat.double())
    orbit = torch.arange(count).repeat_interleave(members)
    same = orbit[:, None] == orbit
    itself = torch.eye(len(flat), dtype=torch.bool)
    nearest = distances.masked_fill(itself, torch.inf).argmin(1)
    within, between = distances[same & ~itself].mean(), distances[~same].mean()
    accuracy = (orbit[nearest] == orbit).double().mean()
    return OrbitScore(float(within), float(within / between), float(accuracy))


class BNN(Method):
    """Learn a bispectrum that is constant on orbits. It neither predicts nor has a form.

    Args:
        group: the form whose group makes the orbits of `fit`; `fit_orbits` takes orbits as they are.
        orbits, members: so many samples are moved by so many random group elements; a fifth of them is held out.
        reconstruction: factor of the distance between x and W†Wx.
        steps, lr, batch: of Adam, batches in orbits.
    """

    variants = (
        Variant(
            "BNN", {"neighbours": Stand(40)}, quick={"steps": 300}, told=lambda task: {"group": task.form}
        ),
    )
    place = 110
    tuning = (
        "Learning rates of 0.005 and 0.02, λ 0.1 and 1, 600 and 1,500 steps and two schedules were compared on cyclic "
        "shifts of 8, 10 and 16 normal numbers by whether the Cayley table came out; no law was in sight."
    )

    def __init__(
        self,
        output: str | Rep = "scalar",
        seed: int = 0,
        *,
        group: QuadraticForm | None = None,
        orbits: int = 200,
        members: int = 8,
        reconstruction: float = 1.0,
        steps: int = 1_500,
        lr: float = 0.02,
        batch: int = 20,
    ):
        super().__init__(output, seed)
        self.group, self.orbits, self.members = group, orbits, members
        self.reconstruction, self.steps, self.lr, self.batch = reconstruction, steps, lr, batch

    def fit(self, X: Tensor, y: Tensor, scalars: Tensor | None = None) -> BNN:
        """Orbits of samples under the group, as long signals; targets and scalars do not matter."""
        if self.group is None:
            raise ValueError("samples of a law have no orbits: give group, or use fit_orbits")
        some = X[: self.orbits].double()
        g = self.group.group().sample(len(some) * self.members, seed=self.seed)
        moved = some[:, None] @ g.reshape(len(some), self.members, *g.shape[1:]).mT
        signals = some.reshape(len(some), -1)
        shifts = torch.randperm(signals.shape[1], generator=torch.Generator().manual_seed(self.seed))
        shifted = torch.stack([signals.roll(int(k), 1) for k in shifts[: self.members]], dim=1)
        self.fit_orbits(shifted)
        control = {f"cyclic shifts: {name}": value for name, value in self.notes.items()}
        self.fit_orbits(moved.flatten(2))
        self.notes |= control
        return self

    def fit_orbits(self, signals: Tensor) -> BNN:
        """Learn from orbits ``(orbits, members, n)`` of signals."""
        signals = signals.float() / signals.double().square().mean().sqrt().float()
        held_out, train = signals[: max(2, len(signals) // 5)], signals[max(2, len(signals) // 5) :]
        n, generator = signals.shape[-1], torch.Generator().manual_seed(self.seed)
        W = torch.randn(n, n, dtype=torch.complex64, generator=generator)
        W = (W / W.norm(dim=1, keepdim=True)).requires_grad_(True)
        optimizer = torch.optim.Adam([W], lr=self.lr)
        for step in range(self.steps):
            optimizer.param_groups[0]["lr"] = learning_rate(step, self.steps, self.lr)
            loss = self._loss(W, train[torch.randint(len(train), (self.batch,), generator=generator)])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                W.div_(W.norm(dim=1, keepdim=True))
        self.W = W.detach()
        self._note(held_out)
        return self

    def _loss(self, W: Tensor, signals: Tensor) -> Tensor:
        x = signals.flatten(0, 1)
        beta = bispectrum(W, x).reshape(*signals.shape[:2], -1)
        i, j = torch.triu_indices(signals.shape[1], signals.shape[1], 1)
        apart = (beta[:, i] - beta[:, j]).abs().square().sum(-1).add(1e-12).sqrt().mean()
        back = (x.to(W.dtype) @ W.mT @ W.conj()).real
        return apart + self.reconstruction * (back - x).square().sum(-1).mean()

    @torch.no_grad()
    def _note(self, held_out: Tensor) -> None:
        x = held_out.flatten(0, 1)
        learnt = orbit_score(bispectrum(self.W, x).reshape(*held_out.shape[:2], -1))
        self.table, distance = cayley_table(self.W)
        back = (x.to(self.W.dtype) @ self.W.mT @ self.W.conj()).real
        self.notes = {
            "spread within orbits": learnt.within,
            "collapse": learnt.collapse,
            "orbit accuracy": learnt.accuracy,
            "orbit accuracy of x itself": orbit_score(held_out).accuracy,
            "lost of x": float((back - x).square().sum() / x.square().sum()),
            "table's distance": distance,
            "table is a group's": int(distance < CLOSES and is_group(self.table)),
        }

    def predict(self, X: Tensor, scalars: Tensor | None = None) -> Tensor:
        """There is nothing to predict with."""
        raise NotImplementedError(
            "BNN finds invariants of orbits only and has no predictor: use `W` and `table`"
        )

    @property
    def parameters(self) -> int:
        return 2 * self.W.numel()
