"""Claims wider than O(A), and linear families of predictors for them (M12, M15, M16, M17).

The unknowns of a claim are numbers θ: one form or several, a skew form, fixed directions, an origin, all in the frame.
For given θ the best predictor is a linear solve, as for a form alone: directions are further vectors of a
sample, the origin is subtracted, vectors of different kinds have no inner products, and handed outputs also have odd
terms.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gortho.discovery.design import Design
from gortho.discovery.family import (
    Family,
    Inputs,
    depends_on_form,
    differences,
    lift_of,
    metric_of,
    padded,
    set_products,
    tensor_basis,
)
from gortho.discovery.projection import LARGEST_SHAKE, Projection, Solve
from gortho.discovery.wider.claim import Claim
from gortho.discovery.wider.skew import hermitian
from gortho.nn.features import features_for, weight_shape
from gortho.nn.tuples import SOFT, TupleFeatures
from gortho.pairings import Metric
from gortho.samples.values import Samples
from gortho.skew import complex_structure
from gortho.volume import Volumes, odd_products

#: Numbers to be worked on at once, at most.
AT_ONCE = 4_000_000
#: Changes of θ are dependent below this share of the largest singular value.
LOOSE = 1e-9
#: Predictions do not change along θ below this one.
FLAT = 1e-7


class WideFamily(Family):
    """Features of the invariants of a claim, times what its outputs are assembled from; θ in place of A."""

    def __init__(
        self,
        samples: Samples,
        claim: Claim,
        columns: int,
        seed: int = 0,
        soft: float = SOFT,
        degree: int | None = None,
    ):
        net = claim.template(samples)
        self.claim, self.rep, self.n = claim, samples.rep, samples.n
        self.basis, self.turned = net.basis, None if net.turned is None else net.turned.double()
        self.own = None if net.broken is None else net.broken.own
        shapes = [shape for part in net.basis.shapes for shape in part]
        point, sample = net.point_scalars, net.sample_scalars
        self.set_like, self.inner = samples.set_like, samples.points
        self.points = samples.points + (0 if self.set_like else claim.directions)
        self.plain = samples.rep.parts[0].rank == 0 and len(samples.rep.parts) == 1 and not net.basis.handed
        if self.set_like:
            legs = [len(shape) for shape in shapes]
            counts = (self.points, point + claim.directions, sample, True)
            self.features = features_for(legs, *counts, columns, seed, soft, degree)
            self.shapes = [weight_shape(self.features, number, self.points) for number in legs]
            return
        legs = [torch.Size(shape).numel() for shape in shapes]
        room = max(8, columns // sum(legs))
        self.pairing = net.form.pairing
        self.features = TupleFeatures(
            self.points, samples.points * point + sample, room, seed, soft, degree, self.pairing
        )
        self.shapes = [(number, self.features.count) for number in legs]

    @property
    def products(self) -> int:
        return sum(shape[0] for shape in self.shapes) if not self.set_like else len(self.shapes)

    def vectors(self, theta: Tensor, inputs: Inputs) -> Tensor:
        """The vectors of samples about the origin, in one frame where they are linked; the directions beside them."""
        _, s, c = self.claim.split(theta, self.n)
        x = self.claim.together(theta, inputs.x - c if len(c) else inputs.x)
        if inputs.mask is not None:
            x = x * inputs.mask[..., None]
        return torch.cat([x, s.expand(len(x), *s.shape)], 1)

    def gram(self, A: Tensor, inputs: Inputs) -> Tensor:
        """Inner products that the claim allows ``(N, p, p)``; of a set, those of its points."""
        forms, _, _ = self.claim.split(A, self.n)
        X = self.vectors(A, inputs)
        X = X[:, : self.inner] if self.set_like else X
        if self.claim.linked:
            return X @ forms[0] @ X.mT
        if not self.claim.spaces:  # the symmetric and the skew part of a hermitian form together
            return X @ forms.sum(0) @ X.mT
        kinds = torch.nn.functional.one_hot(torch.tensor(self.claim.spaces)).to(X)
        return sum((X * kinds[:, i, None]) @ M @ X.mT * kinds[:, i] for i, M in enumerate(forms))

    def _along(self, theta: Tensor, inputs: Inputs) -> Inputs:
        """Inputs of a set with its products with the directions among the scalars of the points."""
        forms, s, _ = self.claim.split(theta, self.n)
        if not self.set_like or not len(s):
            return inputs
        along = self.vectors(theta, inputs)[:, : self.inner] @ forms[0] @ s.mT / self.n**0.5
        point = along if inputs.point is None else torch.cat([inputs.point, along], 2)
        return Inputs(inputs.x, point, inputs.sample, inputs.mask)

    def design(self, A: Tensor, inputs: Inputs, units: Tensor) -> Design:
        if self.turned is None:
            return self._design(A, inputs, units)
        there = Inputs(inputs.x * self.turned, inputs.point, inputs.sample, inputs.mask)
        one, two = (self._design(A, at, units).dense() for at in (inputs, there))
        signs = torch.cat([sign.repeat_interleave(self.features.count) for sign in self._signs()])  # type: ignore
        return Design((one + signs * two) / 2)

    def _signs(self) -> Iterator[Tensor]:
        """How even and odd terms of each part change with the axial vectors."""
        b = self.basis
        shapes = iter(self.shapes)
        for part, even, odd in zip(b.parts, b.even, b.odd):
            sign = -1.0 if part.odd else 1.0
            yield from (torch.full((next(shapes)[0],), sign) for _ in even)
            yield from (torch.full((next(shapes)[0],), -sign) for _ in odd)

    def _design(self, theta: Tensor, inputs: Inputs, units: Tensor) -> Design:
        f = self._evaluated(self.gram(theta, inputs), self._along(theta, inputs), units)
        if self.plain:
            return Design(f if isinstance(f, Tensor) else f[0])
        if isinstance(f, Tensor):
            return Design(f, self._legs(theta, inputs))
        X, A = self.vectors(theta, inputs), self.claim.split(theta, self.n)[0][self.claim.output_space]
        found = set_products(self.rep, self.basis.even, A, X[:, : self.inner], X[0, self.inner :], f)
        return Design(found.mT.flatten(0, 1))

    def along(
        self, theta: Tensor, tangents: Tensor, inputs: Inputs, units: Tensor, coefficients: Tensor
    ) -> Tensor:
        """Derivatives of the predictions along tangents of θ, ``(N, components, tangents)``."""
        if self.claim.unitary:  # along forms that stay compatible
            tangents = differences(lambda at: self.claim.gauged(at, self.n), theta, tangents).mT
        if self.set_like or self.turned is not None:

            def predicted(at: Tensor) -> Tensor:
                return self.design(at, inputs, units).times(coefficients[:, None]).reshape(len(inputs.x), -1)

            return differences(predicted, theta, tangents)
        assert isinstance(self.features, TupleFeatures)
        gram, weights = self.gram(theta, inputs), torch.cat(self.weights(coefficients))
        slopes = self.features.slopes(gram, inputs.point, inputs.sample, units, weights)
        if not self.plain:
            slopes = torch.einsum("zlc,zlij->zcij", self._legs(theta, inputs), slopes)
        through_gram = self._through_gram(theta, slopes, inputs) @ tangents.mT
        if self.plain or not self._legs_move:
            return through_gram
        c = self.features(gram, inputs.point, inputs.sample, units) @ weights.mT
        return through_gram + self._legs_along(theta, tangents, inputs, c)

    def _legs_along(self, theta: Tensor, tangents: Tensor, inputs: Inputs, c: Tensor) -> Tensor:
        """Derivatives along tangents of what outputs are made of, times c ``(N, products)``."""
        fixed = Fixed.of(self.claim.split(theta, self.n)[0][self.claim.output_space])

        def assembled(at: Tensor) -> Tensor:
            return torch.einsum("zl,zlc->zc", c, self._legs(at, inputs, fixed))

        def slope(tangent: Tensor) -> Tensor:
            return torch.func.jvp(assembled, (theta,), (tangent,))[1]

        if self.claim.unitary:  # ix is found by an iteration
            return differences(assembled, theta, tangents)
        room = max(1, AT_ONCE // (c.numel() * self.rep.size(self.n)))
        return torch.vmap(slope, chunk_size=room)(tangents).movedim(0, -1)

    @property
    def _legs_move(self) -> bool:
        """Whether what outputs are made of depends on θ."""
        claim = self.claim
        more = claim.directions or claim.origin or claim.unitary or claim.linked
        return bool(more) or self.basis.handed or depends_on_form(self.rep)

    def _through_gram(self, theta: Tensor, slopes: Tensor, inputs: Inputs) -> Tensor:
        """Derivatives by the entries of θ ``(N, components, ·)`` from those by inner products."""
        forms, _, _ = self.claim.split(theta, self.n)
        both = self.claim.skew or self.claim.unitary  # products of x and y, and of y and x
        X, slopes = self.vectors(theta, inputs), 2 * slopes if both else slopes + slopes.mT
        kinds = torch.tensor(self.claim.apart or [0] * X.shape[1])
        parts, by_vectors = [], torch.zeros((), dtype=X.dtype)
        for i, A in enumerate(forms[: 1 if self.claim.linked else None]):
            own = (kinds == (0 if self.claim.unitary else i)).to(X)
            mine = slopes * own[:, None] * own
            parts.append(torch.einsum("zcij,zia,zjb->zcab", mine / 2, X, X).flatten(2))
            by_vectors = by_vectors + mine @ (X @ A)[:, None]
        for space in range(1, self.claim.maps + 1):
            own = (torch.tensor(self.claim.spaces) == space).to(X)
            parts.append(torch.einsum("zcia,i,zib->zcab", by_vectors, own, inputs.x).flatten(2))
        parts.append(by_vectors[:, :, self.inner :].flatten(2))
        if self.claim.origin:
            parts.append(-by_vectors[:, :, : self.inner].sum(2))
        return torch.cat(parts, 2)

    def _legs(self, theta: Tensor, inputs: Inputs, fixed: Fixed | None = None) -> Tensor:
        """Products of vectors, metric and volume at these numbers."""
        X = self.vectors(theta, inputs)
        X = X if self.own is None else X[:, self.own]
        forms, _, _ = self.claim.split(theta, self.n)
        if self.claim.unitary:
            X = torch.cat([X, X @ complex_structure(*forms).mT], 1)
        return self.every_product(forms[self.claim.output_space], X, fixed)

    def every_product(self, A: Tensor, X: Tensor, fixed: Fixed | None = None) -> Tensor:
        """Every product of vectors, metric and volume that an output may have ``(N, products, components)``."""
        basis, lowered = self.basis, X @ A
        metric, blocks = Metric(A, A), []
        if basis.handed or depends_on_form(self.rep):
            fixed = fixed or Fixed.of(A)
            metric = metric_of(A, fixed.lift)
            volumes, factor = fixed.volumes(A, X)
        for part, even, odd in zip(basis.parts, basis.even, basis.odd):
            found = [tensor_basis(part.even, A, X, metric)] if even else []
            found += [factor * odd_products(part, term, volumes, X, lowered, metric) for term in odd]
            blocks.append(found)
        return padded(self.rep, self.n, blocks)


@dataclass(frozen=True)
class Fixed:
    """What stays while a form A moves a little: what makes it invertible, its signs Σ q qᵀ sign λ, the axes' parity."""

    lift: Tensor
    signs: Tensor
    parity: Tensor

    @classmethod
    def of(cls, A: Tensor) -> Fixed:
        lift = lift_of(A)
        values, Q = torch.linalg.eigh(A + lift)
        return cls(lift, Q * values.sign() @ Q.mT, torch.linalg.det(Q))

    def volumes(self, A: Tensor, X: Tensor) -> tuple[Volumes, Tensor]:
        """Partial volumes of vectors, and the factor that they have in networks; without eigenvectors (`FixedForm`)."""
        B = A + self.lift
        inverse = torch.linalg.inv(B)
        raised = inverse * (len(A) / (self.signs * inverse).sum()).sqrt()
        return Volumes(X, torch.eye(len(A), dtype=X.dtype), raised), self.parity * torch.linalg.det(
            B
        ).abs().sqrt()


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
