"""Fixed functions of the invariants of an ordered tuple of vectors (M12)."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gortho.nn.invariants import Pairing

#: Lengths of the waves, in units of the embedded invariants.
LENGTHS = (0.7, 1.5, 3.0, 6.0)
#: Roots, logarithms and poles are smooth within this share of an invariant's typical size.
SOFT = 0.03
#: Invariants are told from rounding down to this share of the vectors' squared length.
SMALLEST_UNIT = 1e-9
#: Products of two invariants, at most.
MAX_PRODUCTS = 45
#: Products of scalars and functions of lengths take at most this share of the room that is left for them and waves.
SHARE = 0.75
#: Powers of |q| that are singular at zero; beside them the odd pole, the root and the logarithm.
POWERS = (-0.5, -1.5, -1.0)
#: How many of the functions are in no other column without a scalar: the first ones.
ALONE = 2
FUNCTIONS = len(POWERS) + 3


class Waves:
    """cos(ωᵀe + b) with random ω of several lengths, most of them along few of the variables."""

    def __init__(self, variables: int, count: int, generator: torch.Generator):
        count = max(0, count) if variables else 0  # as of one vector under a skew form
        length = torch.tensor(LENGTHS, dtype=torch.float64)[
            torch.randint(len(LENGTHS), (count,), generator=generator)
        ]
        direction = torch.randn(variables, count, dtype=torch.float64, generator=generator)
        keep = torch.rand(variables, count, generator=generator) < min(1.0, 2.5 / max(variables, 1))
        keep[torch.randint(max(variables, 1), (count,), generator=generator), torch.arange(count)] = True
        direction = direction * keep
        size = torch.randn(count, dtype=torch.float64, generator=generator).abs().clamp_min(0.2)
        self.omega = direction / direction.norm(dim=0).clamp_min(1e-12) * size / length
        self.phase = 2 * math.pi * torch.rand(count, dtype=torch.float64, generator=generator)

    def __len__(self) -> int:
        return len(self.phase)

    def __call__(self, e: Tensor) -> Tensor:
        return torch.cos(e @ self.omega.to(e) + self.phase.to(e))


@dataclass(frozen=True)
class Neurons:
    """tanh(ωᵀz + b) with ω and b that are fitted, for variables z that are inner products and given scalars."""

    omega: Tensor  # (variables, count)
    phase: Tensor  # (count,)

    @classmethod
    def at_random(cls, variables: int, count: int, generator: torch.Generator) -> Neurons:
        """Directions at random, with slopes of order one."""
        omega = torch.randn(variables, count, dtype=torch.float64, generator=generator) / variables**0.5
        return cls(omega, torch.randn(count, dtype=torch.float64, generator=generator))

    def __call__(self, z: Tensor) -> Tensor:
        return torch.tanh(z @ self.omega + self.phase)

    def own_slopes(self, z: Tensor, outputs: Tensor) -> Tensor:
        """Derivatives by ω and b of neurons times ``outputs (N, c, count)``, ``(N, c, (variables + 1) · count)``."""
        s = outputs * (1 - self(z).square())[:, None]
        return torch.cat([(s[:, :, None] * z[:, None, :, None]).flatten(2), s], 2)

    def moved(self, step: Tensor) -> Neurons:
        """Those a step (of all ω, then of all b) away."""
        by_omega, by_phase = step.split([self.omega.numel(), len(self.phase)])
        return Neurons(self.omega + by_omega.reshape(self.omega.shape), self.phase + by_phase)


class Scaled:
    """Monomials of scalars times singular functions of squares, as q₁q₂/|r|, as many as there is room for.

    Charges, masses and couplings multiply singular functions of distances. Sums of functions of the one and of the
    other do not come near such laws, and waves of all of them only with very many.

    Args:
        squares: the functions are of the first so many variables.
        scalars: number of given scalars, the last variables.
        room: columns, at most; where not even powers times products of different scalars fit, there are none.
        soft: how smooth the family is. Its waves mend what is smoothed away of a function of one invariant, but not of
            products, which are sharper therefore: by its square, so that a smooth family stays one.
    """

    def __init__(self, squares: int, scalars: int, room: int, soft: float):
        self.squares, self.scalars, self.soft = squares, scalars, soft**2
        self.kept = torch.zeros(0, dtype=torch.long)
        # First powers, then the other functions, then squares of one scalar.
        for functions, offset in ((len(POWERS), 1), (FUNCTIONS, 1), (FUNCTIONS, 0)):
            pairs = torch.triu_indices(scalars, scalars, offset)
            new = torch.zeros(1 + scalars + pairs.shape[1], FUNCTIONS, squares, dtype=torch.bool)
            new[:, :functions] = True
            new[0, ALONE:] = False
            kept = new.flatten().nonzero()[:, 0]
            if scalars and len(kept) <= room:
                self.pairs, self.kept = pairs, kept

    @staticmethod
    def least(squares: int, scalars: int) -> int:
        """The room that powers times products of different scalars take."""
        monomials = scalars * (scalars + 1) // 2
        return math.ceil(squares * (ALONE + monomials * len(POWERS)) / SHARE) if scalars else 0

    def __len__(self) -> int:
        return len(self.kept)

    def __call__(self, variables: Tensor) -> Tensor:
        """The products ``(N, count)``."""
        q, s = variables[:, : self.squares], variables[:, variables.shape[1] - self.scalars :]
        r = (q.square() + self.soft**2).sqrt()
        functions = torch.stack([*(r**power for power in POWERS), q / r.square(), r.sqrt(), r.log()], 1)
        monomials = torch.cat([torch.ones_like(s[:, :1]), s, s[:, self.pairs[0]] * s[:, self.pairs[1]]], 1)
        return (monomials[:, :, None, None] * functions[:, None]).flatten(1)[:, self.kept]


def some_products(variables: int, most: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pairs i ≤ j of variables, at most so many, chosen at random."""
    i, j = torch.triu_indices(variables, variables)
    count = max(0, min(len(i), most, MAX_PRODUCTS))
    if count < len(i):
        chosen = torch.randperm(len(i), generator=generator)[:count].sort().values
        i, j = i[chosen], j[chosen]
    return i, j


def gram_to_invariants(points: int, pairing: Pairing = Pairing.SYMMETRIC) -> Tensor:
    """The matrix from a flat Gram matrix to q of vectors, of differences and sums, of the total, and mixed products.

    Of a skew Gram matrix there are its entries i < j alone; of a hermitian form these come last.

    >>> gram_to_invariants(2)[:, 2]                   # q(x_1 - x_2)
    tensor([ 1., -1., -1.,  1.], dtype=torch.float64)
    """
    unit = torch.eye(points, dtype=torch.float64)
    i, j = torch.triu_indices(points, points, 1)
    total = [unit.sum(0, keepdim=True)] if points > 2 else []
    v = torch.cat([unit, unit[i] - unit[j], unit[i] + unit[j], *total])
    both = torch.cat([v, unit[i]]), torch.cat([v, unit[j]])
    M = both[0][:, :, None] * both[1][:, None]
    symmetric = ((M + M.mT) / 2).flatten(1).mT.contiguous()
    if pairing is Pairing.SYMMETRIC:
        return symmetric
    M = unit[i][:, :, None] * unit[j][:, None]
    skew = ((M - M.mT) / 2).flatten(1).mT.contiguous()
    return skew if pairing is Pairing.SKEW else torch.cat([symmetric, skew], 1)


class TupleFeatures:
    """Functions of an ordered tuple's invariants ``(N, count)``, the same for every coefficient.

    Args:
        points: number of vectors.
        scalars: number of given scalars, of points and samples together.
        room: about so many functions.
        degree: 0, 1 or 2: all monomials up to this degree and nothing else, whatever the room.
        pairing: which entries of the Gram matrix are invariants.
    """

    def __init__(
        self,
        points: int,
        scalars: int,
        room: int,
        seed: int = 0,
        soft: float = SOFT,
        degree: int | None = None,
        pairing: Pairing = Pairing.SYMMETRIC,
    ):
        self.points, self.soft, self.degree = points, soft, degree
        self.neurons: Neurons | None = None
        pairs = points * (points - 1) // 2
        self.mixing = gram_to_invariants(points, pairing)
        # q of each vector, of each difference and each sum of two, and of the sum of all
        self.squares = points + 2 * pairs + (points > 2)
        first = torch.arange(points)
        if pairing is Pairing.SKEW:  # products by a skew form are all there is, and have roots and poles, too
            self.squares, first = pairs, torch.arange(pairs)
        variables = self.mixing.shape[1] + scalars
        generator = torch.Generator().manual_seed(seed)
        # The other squares are sums of those of the vectors and of the mixed products.
        self.own = torch.cat([first, torch.arange(self.squares, variables)])
        own = len(self.own)
        if degree is not None:
            self.products = torch.triu_indices(own, own).unbind()
            self.count = self._counted(scalars)
            return
        # What a law is most likely made of comes first; the rest takes the room that is left.
        left = room - 1 - own
        self.poles = left >= 2 * self.squares
        left -= 2 * self.squares if self.poles else 0
        singular = min(self.squares, points + pairs)  # sums of vectors have no poles
        self.scaled = Scaled(singular, scalars, int(SHARE * left), soft)
        left -= len(self.scaled)
        self.embedded = left >= variables
        left -= variables if self.embedded else 0
        self.roots = left >= 2 * self.squares
        left -= 2 * self.squares if self.roots else 0
        self.products = some_products(own, left // 2, generator)
        self.waves = Waves(variables, left - len(self.products[0]), generator)
        self.count = self._counted(scalars)

    def _counted(self, scalars: int) -> int:
        """How many functions there are."""
        gram = torch.zeros(1, self.points, self.points, dtype=torch.float64)
        return self(gram, None, gram.new_zeros(1, scalars), gram.new_ones(self.mixing.shape[1])).shape[1]

    @staticmethod
    def room_for(points: int, scalars: int) -> int:
        """The room in which scalars multiply poles of all vectors and differences; 0 where there are no scalars."""
        pairs = points * (points - 1) // 2
        least = Scaled.least(points + pairs, scalars)
        return 1 + points + pairs + scalars + 2 * (points + 2 * pairs + (points > 2)) + least if least else 0

    def invariants(self, gram: Tensor) -> Tensor:
        """q of vectors, differences and sums, and mixed products ``(N, variables without scalars)``."""
        return gram.flatten(1) @ self.mixing.to(gram)

    def variables(self, gram: Tensor, point: Tensor | None, sample: Tensor | None, units: Tensor) -> Tensor:
        """The invariants in their units, and the given scalars ``(N, variables)``."""
        given = [s.flatten(1) for s in (point, sample) if s is not None]
        return torch.cat([self.invariants(gram) / units, *given], 1)

    def __call__(self, gram: Tensor, point: Tensor | None, sample: Tensor | None, units: Tensor) -> Tensor:
        b = self.variables(gram, point, sample, units)
        i, j = self.products
        own = b[:, self.own]
        parts = [torch.ones_like(b[:, :1]), own]
        if self.degree is not None:
            return torch.cat([*parts, own[:, i] * own[:, j]][: 1 + self.degree], 1)
        q, m = b[:, : self.squares], self.mixing.shape[1]
        e = torch.cat([torch.asinh(b[:, :m]), b[:, m:]], 1)  # given scalars as they are
        r = (q.square() + self.soft**2).sqrt()
        if self.poles:
            parts += [r.reciprocal(), q / r.square()]
        if len(self.scaled):
            parts.append(self.scaled(b))
        if self.embedded:
            parts.append(e)
        if self.roots:
            parts += [r.sqrt(), r.log()]
        parts += [own[:, i] * own[:, j], self.waves(e)]
        if self.neurons is not None:
            parts.append(self.neurons(own))
        return torch.cat(parts, 1)

    def with_neurons(self, neurons: Neurons) -> TupleFeatures:
        """The same functions and these neurons, in place of any others."""
        other = copy.copy(self)
        before = 0 if self.neurons is None else len(self.neurons.phase)
        other.neurons, other.count = neurons, self.count - before + len(neurons.phase)
        return other

    def slopes(
        self, gram: Tensor, point: Tensor | None, sample: Tensor | None, units: Tensor, weights: Tensor
    ) -> Tensor:
        """Derivatives of the functions times ``weights (L, count)`` by the Gram matrix, ``(N, L, p, p)``."""

        def totals(gram: Tensor) -> Tensor:
            return (self(gram, point, sample, units) @ weights.mT).sum(0)  # samples are independent

        return torch.autograd.functional.jacobian(totals, gram).movedim(0, 1)
