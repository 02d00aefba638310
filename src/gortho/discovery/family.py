"""The linear family of predictors that the search projects onto (M12).

For a given form A a predictor is Σ c · (features of the invariants) · (products of vectors and metric): linear in c,
so the best one is a linear solve. Its derivative by A, at fixed c, goes through the Gram matrix and, for tensors,
through the metric in the legs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from gortho.discovery.design import Design
from gortho.groups import symmetric_basis
from gortho.nn.features import combine, features_for, weight_shape
from gortho.nn.tuples import SMALLEST_UNIT, SOFT, Neurons, TupleFeatures
from gortho.pairings import Metric, Pairing
from gortho.reps import Covector, Rep, Scalar, Vector
from gortho.samples.values import Samples

#: Step of central differences in the entries of a form of size √n, and in other unknowns of order one.
STEP = 1e-5
#: Below this share of the largest eigenvalue, others are lifted by it before a form is inverted.
SINGULAR = 1e-7


@dataclass(frozen=True)
class Inputs:
    """What the features see of samples, besides the form: vectors and standardised scalars."""

    x: Tensor  # (N, p, n)
    point: Tensor | None  # (N, p, s)
    sample: Tensor | None  # (N, t)
    mask: Tensor | None  # (N, p), float

    @property
    def vectors(self) -> Tensor:
        """The vectors, missing ones zero."""
        return self.x if self.mask is None else self.x * self.mask[..., None]


@dataclass(frozen=True)
class Standard:
    """Means and deviations of the scalars, by which they are standardised."""

    point: Tensor | None
    sample: Tensor | None

    @classmethod
    def of(cls, samples: Samples) -> Standard:
        """Those of these samples."""
        return cls(*(None if s is None else _mean_and_deviation(s) for s in samples.scalars))

    def inputs(self, samples: Samples) -> Inputs:
        """The inputs of samples."""
        point, sample = (
            None if s is None or m is None else (s - m[0]) / m[1]
            for s, m in zip(samples.scalars, (self.point, self.sample))
        )
        mask = None if samples.mask is None else samples.mask.to(samples.x)
        return Inputs(samples.x, point, sample, mask)


def _mean_and_deviation(s: Tensor) -> Tensor:
    flat = s.flatten(0, -2)
    deviation = flat.std(0, unbiased=False)
    return torch.stack([flat.mean(0), torch.where(deviation > 0, deviation, 1.0)])


def lift_of(A: Tensor) -> Tensor:
    """What is to be added to A for an inverse: nothing, unless it is singular."""
    values, Q = torch.linalg.eigh(A)
    least = SINGULAR * values.abs().max()
    return Q * torch.where(values.abs() < least, least, 0.0) @ Q.mT


def metric_of(A: Tensor, lift: Tensor | None = None) -> Metric:
    """A and its adjugate, ‖·‖_F = √n, finite for singular A, too: no wall between signatures (M7)."""
    B = A + (lift_of(A) if lift is None else lift)
    inverse = torch.linalg.inv(B) * torch.linalg.det(B).sign()
    return Metric(A, inverse * (len(A) ** 0.5 / torch.linalg.matrix_norm(inverse)))


class Family:
    """Features of the invariants of a tuple or a set, times products of vectors and metric.

    Args:
        samples: what it is for; only shapes are looked at.
        columns: about so many unknowns in all.
        seed: seed of the waves.
        soft: how smooth it is, see `gortho.nn.tuples.SOFT`.
        degree: polynomials of the invariants up to this degree, and nothing else.
    """

    def __init__(
        self, samples: Samples, columns: int, seed: int = 0, soft: float = SOFT, degree: int | None = None
    ):
        self.rep, self.n, self.points = samples.rep, samples.n, samples.points
        self.plain = self.rep == Scalar()
        self.terms = [(self.points,) * len(term.legs) for part in self.rep.parts for term in part.terms()]
        self.legs = [len(shape) for shape in self.terms]
        counts = samples.network_options()
        point, sample = counts["point_scalars"], counts["sample_scalars"]
        sizes = (self.points, point, sample, samples.set_like)
        self.features = features_for(self.legs, *sizes, columns, seed, soft, degree)
        self.shapes = [weight_shape(self.features, number, self.points) for number in self.legs]

    @property
    def columns(self) -> int:
        """Number of unknowns."""
        return sum(torch.Size(shape).numel() for shape in self.shapes)

    @property
    def products(self) -> int:
        """Number of products of vectors and metric that coefficients stand at, one for scalars."""
        return sum(self.points**number for number in self.legs)

    def with_neurons(self, neurons: Neurons) -> Family:
        """The same family and these neurons."""
        other = copy.copy(self)
        assert isinstance(self.features, TupleFeatures)
        other.features = self.features.with_neurons(neurons)
        other.shapes = [weight_shape(other.features, number, self.points) for number in self.legs]
        return other

    def neuron_slopes(self, A: Tensor, inputs: Inputs, units: Tensor, coefficients: Tensor) -> Tensor:
        """Derivative of the predictions by what the neurons are made of, ``(N, components, unknowns)``."""
        f = self.features
        assert isinstance(f, TupleFeatures) and f.neurons is not None
        z = f.variables(self.gram(A, inputs), inputs.point, inputs.sample, units)[:, f.own]
        w = torch.cat(self.weights(coefficients))[:, -len(f.neurons.phase) :]
        if self.plain:
            return f.neurons.own_slopes(z, w.expand(len(z), 1, -1))
        return f.neurons.own_slopes(z, tensor_basis(self.rep, A, inputs.x).mT @ w)

    def gram(self, A: Tensor, inputs: Inputs) -> Tensor:
        """⟨x_i, x_j⟩ ``(N, p, p)``; zero with missing points."""
        return inputs.vectors @ A @ inputs.vectors.mT

    @torch.no_grad()
    def units(self, A: Tensor, inputs: Inputs) -> Tensor:
        """Typical sizes of the invariants."""
        gram = self.gram(A, inputs)
        floor = SMALLEST_UNIT * float(inputs.x.square().sum(2).median())
        if isinstance(self.features, TupleFeatures):
            sizes = self.features.invariants(gram).abs().median(0).values
        else:
            points, pairs, whole = self.features.invariants(gram, inputs.mask)
            off = ~torch.eye(gram.shape[1], dtype=torch.bool)
            apart = pairs[:, off].flatten(0, 1) if gram.shape[1] > 1 else pairs.flatten(0, 2)
            parts = (points.flatten(0, 1), apart, whole)
            sizes = torch.cat([_median_of_seen(p.abs()) for p in parts])
        return sizes.clamp_min(floor)

    def _evaluated(self, gram: Tensor, inputs: Inputs, units: Tensor) -> Tensor | list[Tensor]:
        if isinstance(self.features, TupleFeatures):
            return self.features(gram, inputs.point, inputs.sample, units)
        return self.features(gram, inputs.point, inputs.sample, units, inputs.mask)

    def weights(self, coefficients: Tensor) -> list[Tensor]:
        """The flat coefficients, term by term."""
        sizes = [torch.Size(shape).numel() for shape in self.shapes]
        return [c.reshape(shape) for c, shape in zip(coefficients.split(sizes), self.shapes)]

    def design(self, A: Tensor, inputs: Inputs, units: Tensor) -> Design:
        """The matrix that takes coefficients to predictions, sample by sample and component by component."""
        f = self._evaluated(self.gram(A, inputs), inputs, units)
        if self.plain:
            return Design(f if isinstance(f, Tensor) else f[0])
        if isinstance(f, Tensor):
            return Design(f, tensor_basis(self.rep, A, inputs.x))
        terms = [part.terms() for part in self.rep.parts]
        x = inputs.vectors
        return Design(set_products(self.rep, terms, A, x, x[0, :0], f).mT.flatten(0, 1))

    def _outputs(self, c: list[Tensor], A: Tensor, inputs: Inputs) -> Tensor:
        """Predictions ``(N, components)`` from coefficients."""
        if self.plain:
            return c[0][:, None]
        x = inputs.vectors
        metric = metric_of(A) if depends_on_form(self.rep) else Metric(A, A)
        lowered, given = x @ A, iter(c)
        values = [
            part.assemble([next(given) for _ in part.terms()], x, lowered, metric) for part in self.rep.parts
        ]
        return torch.cat([v.reshape(len(x), -1) for v in values], 1)

    def jacobian(self, A: Tensor, inputs: Inputs, units: Tensor, coefficients: Tensor) -> Tensor:
        """Derivative of the predictions by the entries of A, ``(N, components, n, n)``, symmetric.

        Features depend on A by the Gram matrix alone, so slopes by its entries serve all entries of A. The part that
        goes through the metric in the legs is found by central differences.
        """
        weights, x = self.weights(coefficients), inputs.vectors

        def combined(gram: Tensor) -> list[Tensor]:
            return combine(self._evaluated(gram, inputs, units), weights, self.terms)

        def totals(gram: Tensor) -> Tensor:
            return self._outputs(combined(gram), A, inputs).sum(0)  # samples are independent

        gram = self.gram(A, inputs)
        slopes = torch.autograd.functional.jacobian(totals, gram)
        J = torch.einsum("czij,zia,zjb->zcab", slopes, x, x)
        if depends_on_form(self.rep):
            c, basis = combined(gram), symmetric_basis(self.n)
            through_legs = differences(lambda at: self._outputs(c, at, inputs), A, basis)
            J = J + torch.einsum("zcm,mab->zcab", through_legs, basis)
        return (J + J.mT) / 2


def _median_of_seen(values: Tensor) -> Tensor:
    """Medians of columns over what is not zero: missing points leave zeros."""
    return torch.stack(
        [c[c > 0].median() if bool((c > 0).any()) else c.new_zeros(()) for c in values.unbind(1)]
    )


def depends_on_form(rep: Rep) -> bool:
    return any(part.down or part.rank > 1 for part in rep.parts)


def tensor_basis(rep: Rep, A: Tensor, x: Tensor, metric: Metric | None = None) -> Tensor:
    """Every product of vectors and metric that the rep allows ``(N, legs, components)``, parts side by side."""
    if rep == Vector():
        return x
    lowered = x @ A
    if rep == Covector():
        return lowered
    if metric is None:
        metric = metric_of(A) if depends_on_form(rep) else Metric(A, A)
    blocks: list[list[Tensor]] = []
    for part in rep.parts:
        blocks.append([])
        for term in part.terms():
            value = x.new_ones(len(x), 1)
            for position in term.legs:
                v = x if position < part.up else lowered
                lead = value.ndim - 2
                value = value[:, :, None, ..., None] * v[(slice(None), None, slice(None), *[None] * lead)]
                value = value.flatten(1, 2)
            blocks[-1].append(part.with_pairs(term, value, metric))
    return padded(rep, x.shape[2], blocks)


def padded(rep: Rep, n: int, blocks: Sequence[Sequence[Tensor]]) -> Tensor:
    """Blocks ``(N, ·, components of a part)``, part by part, side by side."""
    sizes = [part.size(n) for part in rep.parts]
    pad = torch.nn.functional.pad
    return torch.cat(
        [
            pad(value.reshape(*value.shape[:2], sizes[i]), (sum(sizes[:i]), sum(sizes[i + 1 :])))
            for i, found in enumerate(blocks)
            for value in found
        ],
        1,
    )


def set_products(
    rep: Rep, terms: Sequence[Sequence[Pairing]], A: Tensor, points: Tensor, fixed: Tensor, f: list[Tensor]
) -> Tensor:
    """Functions of the whole, of points and of pairs of a set, times points and fixed vectors, summed over the set.

    Each leg of a term is filled by the points ``(N, p, n)`` or by one of the fixed vectors ``(k, n)``.
    """
    metric, blocks = metric_of(A), []
    for part, own in zip(rep.parts, terms):
        found = []
        for term in own:
            lower = [position >= part.up for position in term.legs]
            for choice in product(range(len(fixed) + 1), repeat=len(lower)):
                value = _pooled(choice, [points @ A if low else points for low in lower], f)
                for axis, (j, low) in enumerate(zip(choice, lower)):
                    if j:
                        v = fixed[j - 1] @ A if low else fixed[j - 1]
                        value = (value[..., None] * v).movedim(-1, 2 + axis)
                found.append(part.with_pairs(term, value, metric))
        blocks.append(found)
    return padded(rep, len(A), blocks)


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


def differences(f: Callable[[Tensor], Tensor], at: Tensor, directions: Tensor) -> Tensor:
    """Central differences of ``f (N, components)`` along directions, ``(N, components, directions)``."""
    return torch.stack([f(at + STEP * d) - f(at - STEP * d) for d in directions], -1) / (2 * STEP)
