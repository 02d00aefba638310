"""Products of given scalars times poles, roots and logarithms of lengths, as q₁q₂/|r|, and their slopes (M12).

Charges, masses and couplings multiply singular functions of distances. Sums of functions of the one and of the other
do not come near such laws, and waves of all of them only with very many.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

#: Products of scalars and functions of lengths take at most this share of the room that is left for them and waves.
SHARE = 0.75
#: Powers of |q| that are singular at zero; beside them the odd pole, the root and the logarithm.
POWERS = (-0.5, -1.5, -1.0)
#: How many of the functions are in no other column without a scalar: the first ones.
ALONE = 2
FUNCTIONS = len(POWERS) + 3


def _functions(q: Tensor, soft: float) -> Tensor:
    """Singular functions of the squares ``(N, functions, squares)``."""
    r = (q.square() + soft**2).sqrt()
    return torch.stack([*(r**power for power in POWERS), q / r.square(), r.sqrt(), r.log()], 1)


def _function_slopes(q: Tensor, soft: float) -> Tensor:
    """Their derivatives."""
    r = (q.square() + soft**2).sqrt()
    by_q = q / r  # of r
    slopes = [power * r ** (power - 1) * by_q for power in POWERS]
    odd = (1 - 2 * by_q.square()) / r.square()
    return torch.stack([*slopes, odd, by_q / (2 * r.sqrt()), by_q / r], 1)


def _monomials(s: Tensor, pairs: Tensor) -> Tensor:
    """One, the scalars, and products of pairs of them."""
    return torch.cat([torch.ones_like(s[:, :1]), s, s[:, pairs[0]] * s[:, pairs[1]]], 1)


class Scaled:
    """Monomials of scalars times singular functions of squares, as many as there is room for.

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
        m, f = self._monomials(variables), _functions(variables[:, : self.squares], self.soft)
        return (m[:, :, None, None] * f[:, None]).flatten(1)[:, self.kept]

    def slopes(self, variables: Tensor, weights: Tensor) -> Tensor:
        """Derivatives of the products times ``weights (L, count)`` by the squares, ``(N, L, squares)``."""
        m, f = self._monomials(variables), _function_slopes(variables[:, : self.squares], self.soft)
        all_ = weights.new_zeros(len(weights), m.shape[1] * f.shape[1] * f.shape[2])
        all_[:, self.kept] = weights
        return torch.einsum("zm,zfc,lmfc->zlc", m, f, all_.reshape(-1, m.shape[1], *f.shape[1:]))

    def _monomials(self, variables: Tensor) -> Tensor:
        return _monomials(variables[:, variables.shape[1] - self.scalars :], self.pairs)
