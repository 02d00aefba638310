"""The linear family of predictors that the search projects onto (M12).

For a given form A a predictor is Σ c · (features of the invariants) · (products of vectors and metric): linear in c, so
the best one is a linear solve. The features are chosen so that laws as they come are within reach: powers, roots,
logarithms and poles of each invariant and of each difference of points, products, and waves of all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.autograd import forward_ad

from gortho.discovery.spectral import symmetric_basis
from gortho.reps import Covector, Metric, Rep, Scalar, Vector
from gortho.samples.values import Samples

#: Lengths of the waves, in units of the embedded invariants.
LENGTHS = (0.7, 1.5, 3.0, 6.0)
#: Roots, logarithms and poles are smooth within this share of an invariant's typical size.
SOFT = 0.03
#: Invariants are told from rounding down to this share of the vectors' squared length.
SMALLEST_UNIT = 1e-9
#: Products of two invariants, at most.
MAX_PRODUCTS = 45


@dataclass(frozen=True)
class Inputs:
    """What the features see of samples, besides the form: vectors and standardised scalars."""

    x: Tensor  # (N, p, n)
    point: Tensor | None  # (N, p, s)
    sample: Tensor | None  # (N, t)
    mask: Tensor | None  # (N, p), float

    def rows(self, index: Tensor) -> Inputs:
        """Some of them."""
        parts = (self.x, self.point, self.sample, self.mask)
        return Inputs(*(None if t is None else t[index] for t in parts))  # type: ignore[arg-type]


def inputs_of(samples: Samples) -> Inputs:
    """The inputs of samples, scalars with mean zero and deviation one."""

    def standard(s: Tensor | None) -> Tensor | None:
        if s is None:
            return None
        flat = s.flatten(0, -2)
        return (s - flat.mean(0)) / flat.std(0).clamp_min(1e-300).where(flat.std(0) > 0, 1.0)

    mask = None if samples.mask is None else samples.mask.to(samples.x)
    return Inputs(samples.x, standard(samples.point_scalars), standard(samples.sample_scalars), mask)


def metric_of(A: Tensor) -> Metric:
    """A and its adjugate, ‖·‖_F = √n, finite for singular A, too: no wall between signatures (M7)."""
    values, Q = torch.linalg.eigh(A.detach())
    small = values.abs().min()
    if float(small) < 1e-7 * float(values.abs().max()):
        A = A + 1e-7 * (Q[:, values.abs().argmin()][:, None] * Q[:, values.abs().argmin()])
    inverse = torch.linalg.inv(A)
    sign = torch.linalg.det(A.detach()).sign()
    return Metric(A, inverse * (sign * len(A) ** 0.5 / torch.linalg.matrix_norm(inverse)))


class Family:
    """Features of an ordered tuple's invariants, times legs.

    Args:
        samples: what they are for; only shapes are looked at.
        columns: about so many unknowns in all.
        seed: seed of the waves.
    """

    def __init__(self, samples: Samples, columns: int, seed: int = 0, soft: float = SOFT):
        self.soft = soft
        self.rep, self.n, self.points = samples.rep, samples.n, samples.points
        counts = samples.network_options()
        self.scalars = self.points * counts["point_scalars"] + counts["sample_scalars"]
        self.legs = sum(
            self.points ** len(term.legs) for part in self.rep.parts for term in part.terms()
        )
        self.plain = self.rep == Scalar()
        self.columns = columns
        self._waves(seed)

    @cached_property
    def _pairs(self) -> tuple[Tensor, Tensor]:
        i, j = torch.triu_indices(self.points, self.points, 1)
        return i, j

    def _waves(self, seed: int) -> None:
        k = self.points
        self.squares = k + k * (k - 1) // 2  # q of each vector and of each difference
        variables = k * (k + 1) // 2 + k * (k - 1) // 2 + self.scalars
        room = max(8, self.columns // self.legs)
        generator = torch.Generator().manual_seed(seed)
        # What a law is most likely made of comes first; the rest takes the room that is left.
        left = room - 1 - variables
        self.poles = left >= 2 * self.squares
        left -= 2 * self.squares if self.poles else 0
        self.single = left >= variables
        left -= variables if self.single else 0
        self.roots = left >= 2 * self.squares
        left -= 2 * self.squares if self.roots else 0
        i, j = torch.triu_indices(variables, variables)
        count = max(0, min(len(i), left // 2, MAX_PRODUCTS))
        if count < len(i):
            chosen = torch.randperm(len(i), generator=generator)[:count].sort().values
            i, j = i[chosen], j[chosen]
        self.products = i, j
        waves = max(0, left - count)
        length = torch.tensor(LENGTHS, dtype=torch.float64)[
            torch.randint(len(LENGTHS), (waves,), generator=generator)
        ]
        # Sparse directions: most laws look at few of the invariants at a time.
        direction = torch.randn(variables, waves, dtype=torch.float64, generator=generator)
        keep = torch.rand(variables, waves, generator=generator) < min(1.0, 2.5 / variables)
        keep[torch.randint(variables, (waves,), generator=generator), torch.arange(waves)] = True
        direction = direction * keep
        norm = direction.norm(dim=0).clamp_min(1e-12)
        size = torch.randn(waves, dtype=torch.float64, generator=generator).abs().clamp_min(0.2)
        self.omega = direction / norm * size / length
        self.phase = 2 * math.pi * torch.rand(waves, dtype=torch.float64, generator=generator)

    def gram(self, A: Tensor, x: Tensor) -> Tensor:
        """⟨x_i, x_j⟩ ``(N, p, p)``."""
        return x @ A @ x.mT

    def _variables(self, gram: Tensor) -> tuple[Tensor, Tensor]:
        """Squares (of vectors and differences) and mixed products."""
        own = gram.diagonal(dim1=1, dim2=2)
        i, j = self._pairs
        mixed = gram[:, i, j]
        return torch.cat([own, own[:, i] + own[:, j] - 2 * mixed], 1), mixed

    @torch.no_grad()
    def units(self, A: Tensor, x: Tensor) -> Tensor:
        """Typical sizes of the invariants ``(squares + mixed,)``."""
        squares, mixed = self._variables(self.gram(A, x))
        f = torch.cat([squares, mixed], 1).abs()
        floor = SMALLEST_UNIT * x.square().sum((1, 2)).median()
        return f.median(0).values.clamp_min(float(floor))

    def features(self, gram: Tensor, inputs: Inputs, units: Tensor) -> Tensor:
        """Functions of the invariants ``(N, features)``."""
        squares, mixed = self._variables(gram)
        b = torch.cat([squares, mixed], 1) / units
        e = torch.asinh(b)
        given = [s.flatten(1) for s in (inputs.point, inputs.sample) if s is not None]
        b, e = torch.cat([b, *given], 1), torch.cat([e, *given], 1)
        parts = [torch.ones_like(b[:, :1]), b]
        if self.single:
            parts.append(e)
        q = b[:, : self.squares]
        r = (q.square() + self.soft**2).sqrt()
        if self.poles:
            parts += [1 / r, q / r.square()]
        if self.roots:
            parts += [r.sqrt(), r.log()]
        i, j = self.products
        if len(i):
            parts.append(b[:, i] * b[:, j])
        if self.omega.shape[1]:
            parts.append(torch.cos(e @ self.omega + self.phase))
        return torch.cat(parts, 1)

    def basis(self, A: Tensor, inputs: Inputs) -> Tensor:
        """All products of vectors and metric ``(N, legs, components)``; a single one for scalars."""
        return tensor_basis(self.rep, A, inputs.x)

    def design(self, A: Tensor, inputs: Inputs, units: Tensor) -> Tensor:
        """The matrix that takes coefficients to predictions, ``(N, components, columns)``."""
        P = self.features(self.gram(A, inputs.x), inputs, units)
        if self.plain:
            return P[:, None]
        B = self.basis(A, inputs)
        return (B.mT[:, :, :, None] * P[:, None, None]).flatten(2)

    def jacobian(self, A: Tensor, inputs: Inputs, units: Tensor, coefficients: Tensor) -> Tensor:
        """Derivative of the predictions by the entries of A, ``(N, components, n, n)``, symmetric.

        Features depend on A by the Gram matrix alone: one backward pass for each component serves all entries.
        """
        gram = self.gram(A, inputs.x)
        weights = coefficients.reshape(self.legs, -1).mT
        B = None if self.plain else self.basis(A, inputs)
        components = 1 if B is None else B.shape[2]
        if self.points * (self.points + 1) // 2 <= components:
            c, slopes = self._slopes_forward(gram, inputs, units, weights)
            slopes = slopes if B is None else torch.einsum("zlij,zlc->zcij", slopes, B)
        else:
            c, slopes = self._slopes_backward(gram, inputs, units, weights, B)
        J = torch.einsum("zcij,zia,zjb->zcab", slopes, inputs.x, inputs.x)
        if B is not None and _depends_on_form(self.rep):
            J = J + self._through_legs(A, inputs, c)
        return (J + J.mT) / 2

    def _slopes_forward(
        self, gram: Tensor, inputs: Inputs, units: Tensor, weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Coefficients ``(N, legs)`` and their slopes by the Gram matrix, one forward pass for each of its entries."""
        slopes = gram.new_zeros(len(gram), self.legs, *gram.shape[1:])
        for i, j in torch.triu_indices(*gram.shape[1:]).mT.tolist():
            tangent = torch.zeros_like(gram)
            tangent[:, i, j] = tangent[:, j, i] = 1.0
            with forward_ad.dual_level():
                c = self.features(forward_ad.make_dual(gram, tangent), inputs, units) @ weights
                c, slope = forward_ad.unpack_dual(c)
            slopes[:, :, i, j] = slope / (1 if i == j else 2)
            slopes[:, :, j, i] = slopes[:, :, i, j]
        return c, slopes

    def _slopes_backward(
        self, gram: Tensor, inputs: Inputs, units: Tensor, weights: Tensor, B: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Coefficients ``(N, legs)`` and the outputs' slopes by the Gram matrix, one backward pass for each output."""
        with torch.enable_grad():
            gram = gram.detach().requires_grad_()
            c = self.features(gram, inputs, units) @ weights
            p = c if B is None else torch.einsum("zl,zlc->zc", c, B)
            each = [torch.autograd.grad(p[:, k].sum(), gram, retain_graph=True)[0] for k in range(p.shape[1])]
        return c.detach(), torch.stack(each, 1)

    def _through_legs(self, A: Tensor, inputs: Inputs, c: Tensor) -> Tensor:
        """The part of the derivative that comes from A and A⁻¹ in the legs, coefficients held fixed."""
        x, k = inputs.x, self.points
        counts = [k ** len(term.legs) for part in self.rep.parts for term in part.terms()]
        pieces = iter(c.split(counts, dim=1))
        coefficients = [
            [next(pieces).reshape(len(x), *(k,) * len(term.legs)) for term in part.terms()]
            for part in self.rep.parts
        ]

        def outputs(form: Tensor) -> Tensor:
            metric, lowered = metric_of(form), x @ form
            values = [
                part.assemble(given, x, lowered, metric) for part, given in zip(self.rep.parts, coefficients)
            ]
            return torch.cat([v.reshape(len(x), -1) for v in values], 1)

        directions = symmetric_basis(self.n)
        slopes = torch.stack([_directional(outputs, A, d) for d in directions], -1)
        return torch.einsum("zcm,mab->zcab", slopes, directions)


def _directional(function: Callable[[Tensor], Tensor], at: Tensor, direction: Tensor) -> Tensor:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(forward_ad.make_dual(at, direction))).tangent


def _depends_on_form(rep: Rep) -> bool:
    return any(part.down or part.rank > 1 for part in rep.parts)


def tensor_basis(rep: Rep, A: Tensor, x: Tensor) -> Tensor:
    """Every product of vectors and metric that the rep allows ``(N, legs, components)``, parts side by side."""
    if rep == Vector():
        return x
    lowered = x @ A
    if rep == Covector():
        return lowered
    metric = metric_of(A) if _depends_on_form(rep) else Metric(A, A)
    k, n = x.shape[1:]
    blocks: list[Tensor] = []
    sizes = [part.size(n) for part in rep.parts]
    for place, part in enumerate(rep.parts):
        before, after = sum(sizes[:place]), sum(sizes[place + 1 :])
        for number, term in enumerate(part.terms()):
            legs = k ** len(term.legs)
            choice = torch.eye(legs, dtype=x.dtype).reshape(legs, *(k,) * len(term.legs))
            coefficients = [
                (choice if other == number else choice.new_zeros(legs, *(k,) * len(t.legs))).expand(
                    len(x), legs, *(k,) * len(t.legs)
                )
                for other, t in enumerate(part.terms())
            ]
            value = part.assemble(coefficients, x[:, None], lowered[:, None], metric)
            value = value.reshape(len(x), legs, part.size(n))
            blocks.append(torch.nn.functional.pad(value, (before, after)))
    return torch.cat(blocks, 1)
