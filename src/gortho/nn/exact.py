"""The exactly equivariant network: the basis form of M4 and M5, and what all networks share.

The data flow:  x → (one global scale) → Gram matrix → coefficients → Σ c · (products of x_i and metric) → y.
Trainable weights see only the Gram matrix, so the output is equivariant by construction, also on the null cone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from gortho import checks
from gortho.forms import QuadraticForm
from gortho.nn.basis import Halves, SetBasis, TupleBasis, axial_places, joined, used_halves
from gortho.nn.broken import Broken
from gortho.nn.features import LinearCoefficients, features_for
from gortho.nn.form import FixedForm, FixedHermitian, FixedSkew, FormModule, LearnableForm, as_form_module
from gortho.nn.invariants import Committee, Pairing, TupleCoefficients
from gortho.nn.pairs import sides
from gortho.nn.sets import LARGE, LargeSetCoefficients, SetCoefficients
from gortho.nn.tuples import TupleFeatures
from gortho.nn.units import positive, unit_of
from gortho.reps import Rep, as_rep
from gortho.samples.values import root_mean_square
from gortho.skew import SkewForm
from gortho.symmetry import Symmetry


class EquivariantNet(nn.Module):
    """f(x) with f(gx) = ρ(g) f(x) for every g ∈ O(A): the basis form (M4, M5).

    Args:
        form: a `QuadraticForm` or symmetric matrix (known), a `LearnableForm`, or n to learn one in R^n; or a
            `Symmetry` or its name, such as "SO(3)": handedness, directions, origin, spaces, skew forms (M15, M16,
            M17).
        points: number p of vectors in a sample; 1 also accepts ``(batch, n)``.
        output: a name ("scalar", "vector", "covector", "conjugation", "bilinear", "form", "pseudoscalar", …), a sum
            of names such as "scalar + 2*vector", or a rep object.
        point_scalars, sample_scalars: number of scalars of each point and of each sample.
        set_like: the points have no order; renumbering them does not change the output.
        width, depth: size of the coefficient network.
        members: number of coefficient networks, which are averaged.
        features: if above 0, coefficients are linear in fixed functions of the invariants, with about this many
            weights, instead of a network (`gortho.nn.features`).
        degree: with ``features``, use only monomials of the invariants up to this degree: 0, 1 or 2.
        seed: seed of the weights.
        axial: indices of the input vectors that are axial, such as magnetic fields; True for all.
        output_space: with several spaces, the one that the output transforms with.

    >>> import torch, gortho
    >>> net = EquivariantNet(gortho.QuadraticForm.minkowski(), points=3, output="vector")
    >>> net(torch.randn(10, 3, 4)).shape
    torch.Size([10, 4])
    >>> net = EquivariantNet("O(3)", points=2, output="pseudovector")    # a torque: c(Gram) x_1 × x_2
    >>> net(torch.randn(10, 2, 3)).shape
    torch.Size([10, 3])
    """

    kind = "basis"
    #: Whether it respects more than O(A) of one form.
    takes_symmetries = True

    def __init__(
        self,
        form: QuadraticForm | Symmetry | LearnableForm | FixedForm | int | str | Any,
        points: int = 1,
        output: str | Rep = "scalar",
        *,
        point_scalars: int = 0,
        sample_scalars: int = 0,
        set_like: bool = False,
        width: int = 64,
        depth: int = 2,
        members: int = 1,
        features: int = 0,
        degree: int | None = None,
        seed: int = 0,
        axial: bool | Sequence[int] = (),
        output_space: int = 0,
    ):
        super().__init__()
        for name, value, least in (
            ("points", points, 1),
            ("members", members, 1),
            ("width", width, 1),
            ("depth", depth, 0),
            ("features", features, 0),
            ("point_scalars", point_scalars, 0),
            ("sample_scalars", sample_scalars, 0),
        ):
            checks.whole(value, name, least)
        symmetry = Symmetry.of(form) if isinstance(form, (Symmetry, str, SkewForm)) else None
        self.form = as_form_module(form) if symmetry is None else _form_of(symmetry, output_space)
        self.rep = as_rep(output)
        self.n, self.points, self.set_like, self.members = self.form.n, points, set_like, members
        #: Components of the inputs: of kinds that differ, the longest.
        self.n_in = self.n if symmetry is None else symmetry.n
        self.special = symmetry is not None and symmetry.special
        self.axial = axial_places(axial, points, set_like)
        self._check_symmetry(symmetry)
        self.broken = None if symmetry is None else Broken.of(symmetry, output_space)
        self._told = symmetry
        self.features, self.degree = features, degree
        self.point_scalars, self.sample_scalars = point_scalars, sample_scalars
        self.settings = {"width": width, "depth": depth, "seed": seed}
        #: Whether forward looks for NaN and inf; training switches it off once the whole data set is checked.
        self.check_values = True
        # The weights' seed is our own, the caller's stream is untouched.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.build(width, depth)
        parts = len(self.rep.parts)
        self.register_buffer("x_scale", torch.ones(()))
        self.register_buffer("y_scale", torch.ones(parts))
        self.register_buffer("y_shift", torch.zeros(parts))
        self.register_buffer("point_shift", torch.zeros(2, point_scalars) + torch.tensor([[0.0], [1.0]]))
        self.register_buffer("sample_shift", torch.zeros(2, sample_scalars) + torch.tensor([[0.0], [1.0]]))

    turned: Tensor | None
    x_scale: Tensor
    y_scale: Tensor
    y_shift: Tensor
    point_shift: Tensor
    sample_shift: Tensor

    def _check_symmetry(self, symmetry: Symmetry | None) -> None:
        """Refuse what is not supported."""
        odd = self.axial or any(part.odd for part in self.rep.parts)
        if not self.takes_symmetries and (odd or not (symmetry is None or symmetry.plain)):
            raise ValueError(
                f"the {self.kind} network knows O(A) of one form and polar vectors only: use EquivariantNet for "
                f"{symmetry or 'axial inputs and odd outputs'}"
            )
        if symmetry is not None and symmetry.skew is not None:
            self._check_skew(symmetry, bool(odd))
        if symmetry is None or not symmetry.spaces:
            return
        if self.set_like:
            raise ValueError("points of several spaces differ, so they are not a set: leave out set_like")
        symmetry.check_points(self.points)
        if odd:
            raise ValueError("axial inputs and odd outputs need a single space: leave out spaces")

    def _check_skew(self, symmetry: Symmetry, odd: bool) -> None:
        if odd or self.set_like:
            raise ValueError(
                f"{symmetry} has no reflections, and products by a skew form change their sign with the order of the "
                "points: leave out axial, odd outputs and set_like"
            )
        if symmetry.forms and any(part.rank > 1 for part in self.rep.parts):
            raise ValueError(
                f"outputs under {symmetry} are scalars, vectors and covectors: {self.rep} is not supported"
            )

    @property
    def symmetry(self) -> Symmetry:
        """The symmetry that the network respects."""
        return Symmetry(self.form.value()) if self._told is None else self._told

    def build(self, width: int, depth: int) -> None:
        """Make the trainable parts."""
        self.basis = self._basis()
        if self.set_like and self.basis.handed and (self.features or self.members > 1):
            raise ValueError(
                "odd terms of a set are products of learnt sums: leave out features and members, or give the points an "
                "order (set_like=False)"
            )
        made = [self._coefficients(width, depth) for _ in range(self.members)]
        self.coefficients: nn.Module = made[0] if self.members == 1 else Committee(made)

    def _coefficients(self, width: int, depth: int) -> nn.Module:
        shapes, seed, directions = self.basis.shapes, self.settings["seed"], self._directions
        if self.set_like:
            # products with fixed directions are scalars of the points
            counts = self.point_scalars + directions, self.sample_scalars
            if not self.features:
                lively = self.basis.fillings if self.basis.handed else 0
                kind = LargeSetCoefficients if self._large else SetCoefficients
                return kind(shapes, *counts, width, depth, lively)
            legs = [len(shape) for part in shapes for shape in part]
            functions = features_for(
                legs, self.points, *counts, True, self.features, seed, degree=self.degree
            )
            return LinearCoefficients(functions, shapes, self.points)
        vectors, scalars = self.points + directions, self.points * self.point_scalars + self.sample_scalars
        if not self.features:
            return TupleCoefficients(vectors, shapes, scalars, width, depth, self.form.pairing)
        room = max(8, self.features // sum(prod(shape) for part in shapes for shape in part))
        functions = TupleFeatures(vectors, scalars, room, seed, degree=self.degree, pairing=self.form.pairing)
        return LinearCoefficients(functions, shapes, vectors)

    @property
    def _large(self) -> bool:
        """Whether pairs enter through message sums only."""
        return self.set_like and self.points > LARGE and not self.features

    @property
    def _directions(self) -> int:
        return 0 if self.broken is None else len(self.broken.symmetry.directions)

    def _basis(self) -> TupleBasis:
        """What outputs are assembled from; sets D, the signs of axial vectors, where some are and some are not."""
        directions, parts = self._directions, self.rep.parts
        polar = directions > 0 or len(self.axial) < self.points
        signs: Tensor | None = None
        if self.axial and polar and not self.special:
            signs = torch.ones(1 if self.set_like else self.points, 1)
            signs[list(self.axial)[: len(signs)]] = -1.0
        self.register_buffer("turned", signs, persistent=False)
        halves = [used_halves(part, self.n, self.special, polar, len(self.axial) > 0) for part in parts]
        if self.set_like:
            return SetBasis(parts, self.n, self.points, directions, halves, self.form.singular)
        own = None if self.broken is None else self.broken.own
        vectors = directions + (self.points if own is None else len(own))
        vectors *= 2 if self.form.pairing is Pairing.BOTH else 1
        return TupleBasis(parts, self.n, vectors, halves, self.form.singular)

    def convex_stages(self) -> list[list[nn.Parameter]]:
        """Weights in which the output is (nearly) linear, simplest first: constants, linear, quadratic and deep."""
        constant, linear, all_ = (
            [p for name, p in self.named_parameters() if part in name]
            for part in ("readout.bias", "readout.linear", "readout.")
        )
        return [constant, constant + linear, all_]

    def values(self, X: Tensor, scalars: tuple[Tensor | None, Tensor | None]) -> list[Tensor]:
        """The parts of the output for scaled tuples ``(batch, p, n)``."""
        here = self._halves(X, scalars)
        if self.turned is None:
            return [joined(part, half, None) for part, half in zip(self.rep.parts, here)]
        there = self._halves(X * self.turned, scalars)
        return [joined(part, *both) for part, both in zip(self.rep.parts, zip(here, there))]

    def _halves(self, X: Tensor, scalars: tuple[Tensor | None, Tensor | None]) -> list[Halves]:
        point, sample = scalars
        vectors: Tensor = self.form.legs(X)
        products: Tensor | tuple[Tensor, Tensor]
        if self._large:  # as factors of the Gram matrix, which is not made
            if self._directions:
                assert self.broken is not None
                vectors, point = self.broken.beside(self.form, X, point)
            assert not isinstance(self.form, FixedSkew)  # these take no sets
            left, right = sides(self.form, X)
            products = left / self.n**0.5, right
        elif self.broken is None:
            products = self.form.gram(X) / self.n**0.5
        else:
            gram, vectors, point = self.broken.invariants(self.form, X, point, self.set_like)
            products = gram / self.n**0.5
        return self.basis.assemble(self.coefficients(products, point, sample), vectors, self.form)

    def forward(
        self, x: Tensor, point_scalars: Tensor | None = None, sample_scalars: Tensor | None = None
    ) -> Tensor:
        """Predict for ``x (batch, p, n)``, or ``(batch, n)`` with one point.

        Scalars are ``(batch, p, s)`` and ``(batch, s)``.
        """
        X = self._tuples(x)
        point_shape, sample_shape = (*X.shape[:2], self.point_scalars), (X.shape[0], self.sample_scalars)
        point = self._scalars(point_scalars, "point_scalars", point_shape, self.point_shift)
        sample = self._scalars(sample_scalars, "sample_scalars", sample_shape, self.sample_shift)
        raw = self.values(X / self.x_scale, (point, sample))
        scaled = [v * self.y_scale[i] for i, v in enumerate(raw)]
        for i, part in enumerate(self.rep.parts):
            if self._is_number(part):  # only scalars may be shifted
                scaled[i] = scaled[i] + self.y_shift[i]
        return self.rep.join(scaled)

    def _is_number(self, part: Any) -> bool:
        """Whether no element of the group changes such an output."""
        return part.rank == 0 and (self.special or not part.odd)

    def _tuples(self, x: Tensor) -> Tensor:
        """Inputs, checked, as tuples ``(batch, p, n)`` about the origin."""
        self._require(x, "x")
        checks.require_vectors(x, self.n_in)
        if x.ndim == 2 and self.points == 1:
            x = x[:, None, :]
        if x.ndim != 3 or (x.shape[1] != self.points and not self.set_like):
            raise ValueError(f"x has shape {tuple(x.shape)}, expected (batch, {self.points}, {self.n_in})")
        return x if self.broken is None else self.broken.centred(x)

    def _require(self, t: Tensor, what: str) -> None:
        """Refuse what is not a tensor, has another dtype, or is not finite."""
        if not isinstance(t, Tensor):
            raise TypeError(
                f"{what} is a {type(t).__name__}: give a torch tensor, e.g. torch.as_tensor({what})"
            )
        if t.dtype not in checks.FLOATS:
            checks.as_tensor(t, what)  # says how to convert it
        if t.dtype != self.x_scale.dtype:
            raise TypeError(
                f"{what} is {t.dtype}, the network {self.x_scale.dtype}: use net.to({what}.dtype) or {what}.to(...)"
            )
        if self.check_values and not torch.compiler.is_compiling():
            checks.require_finite(t, what)

    def _scalars(self, s: Tensor | None, what: str, shape: tuple[int, ...], shift: Tensor) -> Tensor | None:
        if s is None:
            if shape[-1]:
                raise ValueError(
                    f"{what} is missing: the network was made with {what}={shape[-1]}, give {shape}"
                )
            return None
        self._require(s, what)
        if not shape[-1]:
            raise ValueError(
                f"{what} of shape {tuple(s.shape)} were given, but the network was made without: set {what}="
                f"{s.shape[-1] if s.ndim else 1}"
            )
        if tuple(s.shape) != shape:
            raise ValueError(f"{what} has shape {tuple(s.shape)}, expected {shape}")
        return (s - shift[0]) / shift[1]

    @torch.no_grad()
    def calibrate(
        self, x: Tensor, y: Tensor, point_scalars: Tensor | None = None, sample_scalars: Tensor | None = None
    ) -> None:
        """Fit the units to training data: one scale for all of x, one for each part of y, a shift for scalars only.

        Scaling the components of x one by one would destroy the form, so it is never done. With a known form the unit
        of x is derived from the inner products, which are all that the weights see, so it does not depend on the frame.
        """
        X = self._tuples(x)
        if self.broken is not None and self.broken.several:
            self.broken.calibrate_spaces(X)
        else:
            self.x_scale.fill_(unit_of(self.form, X))
        if self.broken is not None and self._directions:
            self.broken.calibrate_directions(self.form, X / self.x_scale)
        for i, (part, v) in enumerate(zip(self.rep.parts, self.rep.split(y, self.n))):
            self.y_shift[i] = v.mean() if self._is_number(part) else 0.0
            self.y_scale[i] = positive(root_mean_square(v - self.y_shift[i]))
        for s, shift in ((point_scalars, self.point_shift), (sample_scalars, self.sample_shift)):
            if s is not None:
                flat = s.flatten(0, -2)
                shift[0] = flat.mean(0)
                shift[1] = torch.stack([positive(root_mean_square(c)) for c in (flat - flat.mean(0)).T])


def _form_of(symmetry: Symmetry, space: int) -> FormModule:
    """The form that outputs are assembled with: that of their space, a skew or a hermitian one."""
    if symmetry.skew is None:
        return FixedForm(symmetry.form_of(space))
    return FixedHermitian(symmetry.form, symmetry.skew) if symmetry.forms else FixedSkew(symmetry.skew)
