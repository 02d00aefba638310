"""Claims wider than O(A), and linear families of predictors for them (M12, M15, M16, M17).

The unknowns of a claim are numbers θ: one form or several, fixed directions, an origin, all in the frame. For given θ
the best predictor is a linear solve, as for a form alone: directions are vectors beside those of a sample, the origin
is subtracted, vectors of different kinds have no inner products, and handed outputs have odd terms besides.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from gortho.discovery.family import Design, Family, Inputs, metric_of, tensor_basis
from gortho.discovery.projection import Projection, Solve
from gortho.discovery.spectral import symmetric_basis
from gortho.forms import QuadraticForm
from gortho.nn.basis import SetBasis
from gortho.nn.exact import EquivariantNet
from gortho.nn.features import features_for, weight_shape
from gortho.nn.form import FixedForm
from gortho.nn.tuples import SOFT, TupleFeatures
from gortho.reps import TensorRep
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples
from gortho.symmetry import Symmetry
from gortho.volume import assemble_odd

#: Step of central differences in θ, whose parts are of order one.
STEP = 1e-5
#: Eigenvalues of a form that has an inverse and a volume are at least this share of the largest.
REGULAR = 1e-6
#: Changes of θ are dependent below this share of the largest singular value.
LOOSE = 1e-9


@dataclass(frozen=True)
class Claim:
    """What is claimed of a law beside its form, without the numbers.

    Attributes:
        name: what it is called in words.
        directions: how many fixed directions there are.
        origin: whether the group acts about a point other than zero.
        special: SO(A) in place of O(A).
        spaces: number of the form of each vector, where there are several.
        output_space: with several forms, the one of the output.
        axial: places of axial input vectors.
        odd: the output has the parity that tells left from right.
    """

    name: str
    directions: int = 0
    origin: bool = False
    special: bool = False
    spaces: tuple[int, ...] = ()
    output_space: int = 0
    axial: tuple[int, ...] = ()
    odd: bool = False

    @property
    def forms(self) -> int:
        """How many forms there are."""
        return max(self.spaces, default=0) + 1

    def of(self, samples: Samples) -> Samples:
        """The samples with outputs of this parity."""
        if not self.odd:
            return samples
        part = samples.rep.parts[0]
        return samples.with_targets(samples.y, TensorRep(part.up, part.down, odd=True))

    def split(self, theta: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Forms ``(m, n, n)``, directions ``(d, n)`` and origin ``(1, n)``, or none ``(0, n)``."""
        sizes = [self.forms * n * n, self.directions * n, n * self.origin]
        A, s, c = theta.split(sizes)
        return A.reshape(-1, n, n), s.reshape(-1, n), c.reshape(-1, n)

    def join(self, forms: Tensor, directions: Tensor | None = None, origin: Tensor | None = None) -> Tensor:
        """θ of its parts."""
        parts = [forms] + [p for p in (directions, origin) if p is not None]
        return torch.cat([p.flatten() for p in parts])

    def gauged(self, theta: Tensor, n: int) -> Tensor:
        """θ with forms and directions of size √n: their lengths mean nothing."""
        A, s, c = self.split(theta, n)
        s = s * (n**0.5 / s.norm(dim=1, keepdim=True).clamp_min(1e-300))
        return self.join(unit_form(A), s, c)

    def loose(self, theta: Tensor, n: int) -> Tensor:
        """Changes of θ, one a row, that change no claim: sizes, the span's basis, the pencil A + t (As)(As)ᵀ (M16)."""
        A, s, c = self.split(theta, n)
        none = torch.zeros_like(c)
        rows = [self.join(A * (torch.arange(len(A)) == i)[:, None, None], 0 * s, none) for i in range(len(A))]
        for i, j in product(range(len(s)), repeat=2):
            moved = torch.zeros_like(s)
            moved[i] = s[j]
            rows.append(self.join(0 * A, moved, none))
            if i <= j:
                a, b = A[0] @ s[i], A[0] @ s[j]
                rows.append(self.join(a[:, None] * b + b[:, None] * a, 0 * s, none))
        return torch.stack(rows)

    def tangents(self, n: int) -> Tensor:
        """Directions in which θ may move, one a row."""
        symmetric = symmetric_basis(n).flatten(1)
        rest = torch.eye((self.directions + self.origin) * n, dtype=torch.float64)
        return torch.block_diag(*[symmetric] * self.forms, rest)

    def symmetry(self, theta: Tensor, n: int, tolerance: float = 1e-9) -> Symmetry:
        """The symmetry with these numbers."""
        A, s, c = self.split(theta, n)
        forms = [QuadraticForm(M, tolerance=tolerance) for M in A]
        origin = c[0] if self.origin else None
        return Symmetry(forms, spaces=self.spaces, special=self.special, directions=s, origin=origin)

    def of_symmetry(self, symmetry: Symmetry) -> Tensor:
        """θ of a symmetry: forms and directions as gauge and signs have fixed them."""
        forms = torch.stack([form.matrix for form in symmetry.forms])
        return self.join(forms, symmetry.directions, symmetry.origin)

    def options(self, samples: Samples) -> dict[str, Any]:
        """What a network of this claim is built with, beside the symmetry."""
        return {**samples.network_options(), "axial": list(self.axial), "output_space": self.output_space}

    def template(self, samples: Samples) -> EquivariantNet:
        """A network of this claim around plain forms; raises ValueError where there is no such law."""
        n = samples.n
        plain = torch.eye(n, dtype=torch.float64).expand(self.forms, n, n)
        axes = torch.eye(n, dtype=torch.float64)[: self.directions]
        theta = self.join(plain, axes, torch.zeros(n * self.origin))
        symmetry = self.symmetry(theta, n)
        return EquivariantNet(symmetry, output=samples.rep, features=1, degree=0, **self.options(samples))


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
        self.features = TupleFeatures(self.points, samples.points * point + sample, room, seed, soft, degree)
        self.shapes = [(number, self.features.count) for number in legs]

    @property
    def products(self) -> int:
        return sum(shape[0] for shape in self.shapes) if not self.set_like else len(self.shapes)

    def vectors(self, theta: Tensor, inputs: Inputs) -> Tensor:
        """The vectors of samples about the origin, and the directions beside them."""
        _, s, c = self.claim.split(theta, self.n)
        x = inputs.x - c if len(c) else inputs.x
        if inputs.mask is not None:
            x = x * inputs.mask[..., None]
        return torch.cat([x, s.expand(len(x), *s.shape)], 1)

    def gram(self, A: Tensor, inputs: Inputs) -> Tensor:
        """Inner products that the claim allows ``(N, p, p)``; of a set, those of its points."""
        forms, _, _ = self.claim.split(A, self.n)
        X = self.vectors(A, inputs)
        X = X[:, : self.inner] if self.set_like else X
        if len(forms) == 1:
            return X @ forms[0] @ X.mT
        kinds = torch.nn.functional.one_hot(torch.tensor(self.claim.spaces)).to(X)
        return sum((X * kinds[:, i, None]) @ M @ X.mT * kinds[:, i] for i, M in enumerate(forms))  # type: ignore

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
        return Design(self._set_products(A, X, f).mT.flatten(0, 1))

    def along(
        self, theta: Tensor, tangents: Tensor, inputs: Inputs, units: Tensor, coefficients: Tensor
    ) -> Tensor:
        """Derivatives of the predictions along tangents of θ, ``(N, components, tangents)``."""
        if self.set_like or self.turned is not None:

            def predicted(at: Tensor) -> Tensor:
                return self.design(at, inputs, units).times(coefficients[:, None]).reshape(len(inputs.x), -1)

            return _differences(predicted, theta, tangents)
        assert isinstance(self.features, TupleFeatures)
        gram, weights = self.gram(theta, inputs), torch.cat(self.weights(coefficients))
        slopes = self.features.slopes(gram, inputs.point, inputs.sample, units, weights)
        if self.plain:
            return self._through_gram(theta, slopes, inputs) @ tangents.mT
        slopes = torch.einsum("zlc,zlij->zcij", self._legs(theta, inputs), slopes)
        c = self.features(gram, inputs.point, inputs.sample, units) @ weights.mT

        def assembled(at: Tensor) -> Tensor:
            return torch.einsum("zl,zlc->zc", c, self._legs(at, inputs))

        through_legs = _differences(assembled, theta, tangents)
        return self._through_gram(theta, slopes, inputs) @ tangents.mT + through_legs

    def _through_gram(self, theta: Tensor, slopes: Tensor, inputs: Inputs) -> Tensor:
        """Derivatives by the entries of θ ``(N, components, ·)`` from those by inner products."""
        forms, _, _ = self.claim.split(theta, self.n)
        X, slopes = self.vectors(theta, inputs), slopes + slopes.mT
        kinds = torch.tensor(self.claim.spaces or [0] * X.shape[1])
        parts, by_vectors = [], torch.zeros((), dtype=X.dtype)
        for i, A in enumerate(forms):
            own = (kinds == i).to(X)
            mine = slopes * own[:, None] * own
            parts.append(torch.einsum("zcij,zia,zjb->zcab", mine / 2, X, X).flatten(2))
            by_vectors = by_vectors + mine @ (X @ A)[:, None]
        parts.append(by_vectors[:, :, self.inner :].flatten(2))
        if self.claim.origin:
            parts.append(-by_vectors[:, :, : self.inner].sum(2))
        return torch.cat(parts, 2)

    def _legs(self, theta: Tensor, inputs: Inputs) -> Tensor:
        """Products of vectors, metric and volume at these numbers."""
        X = self.vectors(theta, inputs)
        X = X if self.own is None else X[:, self.own]
        return self._products(self.claim.split(theta, self.n)[0][self.claim.output_space], X)

    def _padded(self, blocks: list[list[Tensor]]) -> Tensor:
        """Blocks ``(N, ·, components of a part)``, part by part, side by side."""
        sizes = [part.size(self.n) for part in self.rep.parts]
        pad = torch.nn.functional.pad
        return torch.cat(
            [
                pad(value.flatten(2), (sum(sizes[:i]), sum(sizes[i + 1 :])))
                for i, found in enumerate(blocks)
                for value in found
            ],
            1,
        )

    def _products(self, A: Tensor, X: Tensor) -> Tensor:
        """Every product of vectors, metric and volume that an output may have ``(N, products, components)``."""
        basis, blocks = self.basis, []
        form = FixedForm(QuadraticForm(_regular(A))).double() if basis.handed else None
        for part, even, odd in zip(basis.parts, basis.even, basis.odd):
            found = [tensor_basis(part.even, A, X).unflatten(2, part.shape(self.n) or (1,))] if even else []
            if odd:
                assert form is not None
                volumes, lowered, metric = form.volumes(X), form.lowered(X), form.metric()
                for term in odd:
                    shape = term.shape(self.n, basis.fillings, basis.vectors)
                    each = torch.eye(torch.Size(shape).numel(), dtype=X.dtype).unflatten(1, shape)
                    columns = [
                        assemble_odd(part, [term], [c.expand(len(X), *shape)], volumes, X, lowered, metric)
                        for c in each
                    ]
                    found.append(torch.stack(columns, 1).reshape(len(X), len(columns), -1))
            blocks.append(found)
        return self._padded(blocks)

    def _set_products(self, A: Tensor, X: Tensor, f: list[Tensor]) -> Tensor:
        """Functions of the whole, of points and of pairs times points and directions, summed."""
        assert isinstance(self.basis, SetBasis)
        points, s = X[:, : self.inner], X[:1, self.inner :]
        metric, blocks = metric_of(A), []
        for part, even in zip(self.basis.parts, self.basis.even):
            found = []
            for term in even:
                lower = [position >= part.up for position in term.legs]
                for choice in product(range(s.shape[1] + 1), repeat=len(lower)):
                    value = _pooled(choice, [points @ A if low else points for low in lower], f)
                    for axis, (j, low) in enumerate(zip(choice, lower)):
                        if j:
                            v = s[0, j - 1] @ A if low else s[0, j - 1]
                            value = (value[..., None] * v).movedim(-1, 2 + axis)
                    found.append(part.with_pairs(term, value, metric).flatten(2))
            blocks.append(found)
        return self._padded(blocks)


def _pooled(choice: tuple[int, ...], vectors: list[Tensor], f: list[Tensor]) -> Tensor:
    """Functions of a set times those of its points that fill the legs marked 0, summed over points."""
    whole, points, pairs = f
    v = [x for x, j in zip(vectors, choice) if j == 0]
    if not v:
        return whole
    if len(v) == 1:
        return torch.einsum("zim,zia->zma", points, v[0])
    own = torch.einsum("zim,zia,zib->zmab", points, *v)
    return torch.cat([own, torch.einsum("zijm,zia,zjb->zmab", pairs, *v)], 1)


def _differences(f: Callable[[Tensor], Tensor], theta: Tensor, tangents: Tensor) -> Tensor:
    """Central differences of ``f (N, components)`` along tangents, ``(N, components, tangents)``."""
    return torch.stack([f(theta + STEP * d) - f(theta - STEP * d) for d in tangents], -1) / (2 * STEP)


def _regular(A: Tensor) -> Tensor:
    """A with no eigenvalue nearer to zero than can be inverted."""
    values, Q = torch.linalg.eigh(A)
    least = REGULAR * values.abs().max()
    return Q * torch.where(values.abs() < least, least, values) @ Q.mT


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

    def shaken(self, at: Solve, times: float, generator: torch.Generator) -> Tensor:
        """θ at random around this one, in every direction that makes a difference to the claim."""
        view = copy.copy(self)
        loose = self.claim.loose(at.A, self.n) @ self.directions.mT
        _, sigma, V = torch.linalg.svd(loose)
        view.directions = V[int((sigma > LOOSE * sigma[0]).sum()) :] @ self.directions
        return Projection.shaken(view, at, times, generator)

    def jacobian(self, at: Solve) -> tuple[Tensor, Tensor]:
        """The projected Jacobian along the tangents of θ."""
        J = self.family.along(at.A, self.directions, self.inputs, at.units, at.coefficients)
        return at.rest((J * self.root[:, None, None]).flatten(0, 1)), self.directions
