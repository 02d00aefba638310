"""Samples and a claim: the criterion of its unknowns θ, by variable projection, and its slopes (M12)."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import torch
from torch import Tensor

from gortho.discovery.projection import LARGEST_SHAKE, Projection, Solve
from gortho.discovery.wider.claim import Claim
from gortho.discovery.wider.family import WideFamily
from gortho.discovery.wider.skew import hermitian
from gortho.nn.tuples import SOFT
from gortho.samples.values import Samples

#: Changes of θ are dependent below this share of the largest singular value.
LOOSE = 1e-9
#: Predictions do not change along θ below this one.
FLAT = 1e-7


class WideProjection(Projection):
    """Samples, a claim and its family: what θ is fitted to, as a form alone is by `Projection`."""

    family: WideFamily

    def __init__(
        self,
        samples: Samples,
        claim: Claim,
        columns: int,
        seed: int = 0,
        soft: float = SOFT,
        degree: int | None = None,
    ):
        family = WideFamily(samples, claim, columns, seed, soft, degree)
        super().__init__(samples, columns, samples.weights, seed, soft, degree, family)
        self.claim, self.n = claim, samples.n
        self.directions = claim.tangents(samples.n)
        self.unknowns = len(self.directions)

    def gauged(self, A: Tensor) -> Tensor:
        return self.claim.gauged(A, self.n)

    def solve(self, A: Tensor) -> Solve:
        """As for a form alone; where no group is left of a form and a skew one, nothing is explained."""
        at = super().solve(A)
        if self.claim.unitary and not hermitian(*self.claim.split(A, self.n)[0]):
            return replace(at, criterion=math.inf)
        return at

    def shaken(self, at: Solve, times: float, generator: torch.Generator) -> Tensor:
        """θ at random around this one, in every direction that makes a difference to the claim.

        Where one makes none to the predictions, not even for a law that is met exactly, θ goes far.
        """
        view = copy.copy(self)
        loose = self.claim.loose(at.A, self.n) @ self.directions.mT
        _, sigma, V = torch.linalg.svd(loose)
        view.directions = V[int((sigma > LOOSE * sigma[0]).sum()) :] @ self.directions
        start = Projection.shaken(view, at, times, generator)
        if self.claim.skew or self.claim.unitary:  # forms that have to be compatible leave directions empty
            return start
        _, sigma, V = torch.linalg.svd(view.jacobian(at)[0], full_matrices=False)
        flat = V[sigma <= FLAT * sigma[0]] @ view.directions
        noise = torch.randn(len(flat), dtype=start.dtype, generator=generator)
        return self.gauged(start + LARGEST_SHAKE * noise @ flat)

    def jacobian(self, at: Solve, projected: bool = True) -> tuple[Tensor, Tensor]:
        """The projected Jacobian along the tangents of θ."""
        J = self.family.along(at.A, self.directions, self.inputs, at.units, at.coefficients)
        J = (J * self.root[:, None, None]).flatten(0, 1)
        return at.rest(J) if projected else J, self.directions
