"""The exactly equivariant network: the basis form of M4 and M5, and what all networks share.

The way of the data:  x → (one global scale) → Gram matrix → coefficients → Σ c · (products of x_i and metric) → y.
Only the Gram matrix is seen by trainable weights, so the output is equivariant by construction, to rounding,
anywhere, on the null cone too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gortho import checks
from gortho.forms import QuadraticForm
from gortho.nn.features import LinearCoefficients, features_for
from gortho.nn.form import FixedForm, LearnableForm, as_form_module
from gortho.nn.invariants import Committee, TupleCoefficients
from gortho.nn.sets import SetCoefficients
from gortho.reps import DirectSum, Rep, as_rep

#: Near the null cone inner products are small by cancellation: units that follow them further down than this would
#: blow up their rounding.
SMALLEST_SIZE = 0.3


class EquivariantNet(nn.Module):
    """f(x) with f(gx) = ρ(g) f(x) for every g ∈ O(A): the basis form (M4, M5).

    Args:
        form: a `QuadraticForm` or symmetric matrix (known), a `LearnableForm`, or n to learn one in R^n.
        points: number p of vectors in a sample; 1 accepts ``(batch, n)`` too.
        output: a name ("scalar", "vector", "covector", "conjugation", "bilinear", "form"), a sum of names such
            as "scalar + 2*vector", or a rep object.
        point_scalars, sample_scalars: how many scalars come with each point and with each sample.
        set_like: the points have no order; renumbering them does not change the output.
        width, depth: size of the coefficient network.
        members: so many coefficient networks, of which the mean is taken.
        features: more than 0: coefficients are linear in fixed functions of the invariants, with about so many weights,
            in place of a network (`gortho.nn.features`); with a degree of 0, 1 or 2, in their monomials alone.
        seed: seed of the weights.

    >>> import torch, gortho
    >>> net = EquivariantNet(gortho.QuadraticForm.minkowski(), points=3, output="vector")
    >>> net(torch.randn(10, 3, 4)).shape
    torch.Size([10, 4])
    """

    kind = "basis"

    def __init__(
        self,
        form: QuadraticForm | LearnableForm | FixedForm | int | Any,
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
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{name} = {value!r}: give an integer of at least {least}")
        self.form = as_form_module(form)
        self.rep = as_rep(output)
        self.n, self.points, self.set_like, self.members = self.form.n, points, set_like, members
        self.features, self.degree = features, degree
        self.point_scalars, self.sample_scalars = point_scalars, sample_scalars
        self.settings = {"width": width, "depth": depth, "seed": seed}
        #: Whether forward looks for NaN and inf; training switches it off once the whole data set is checked.
        self.check_values = True
        with torch.random.fork_rng(
            devices=[]
        ):  # the weights' seed is our own, the caller's stream is untouched
            torch.manual_seed(seed)
            self.build(width, depth)
        parts = len(self.rep.parts)
        self.register_buffer("x_scale", torch.ones(()))
        self.register_buffer("y_scale", torch.ones(parts))
        self.register_buffer("y_shift", torch.zeros(parts))
        self.register_buffer("point_shift", torch.zeros(2, point_scalars) + torch.tensor([[0.0], [1.0]]))
        self.register_buffer("sample_shift", torch.zeros(2, sample_scalars) + torch.tensor([[0.0], [1.0]]))

    x_scale: Tensor
    y_scale: Tensor
    y_shift: Tensor
    point_shift: Tensor
    sample_shift: Tensor

    def build(self, width: int, depth: int) -> None:
        """Make the trainable parts."""
        made = [self._coefficients(width, depth) for _ in range(self.members)]
        self.coefficients: nn.Module = made[0] if self.members == 1 else Committee(made)

    def _coefficients(self, width: int, depth: int) -> nn.Module:
        parts, singular = self.rep.parts, self.form.singular
        if self.features:
            legs = [len(t.legs) for part in parts for t in part.terms(singular)]
            counts = self.point_scalars, self.sample_scalars, self.set_like
            functions = features_for(
                legs, self.points, *counts, self.features, self.settings["seed"], degree=self.degree
            )
            return LinearCoefficients(functions, parts, self.points, singular)
        if self.set_like:
            return SetCoefficients(parts, self.point_scalars, self.sample_scalars, width, depth, singular)
        scalars = self.points * self.point_scalars + self.sample_scalars
        return TupleCoefficients(self.points, self.points, parts, scalars, width, depth, singular)

    def convex_stages(self) -> list[list[nn.Parameter]]:
        """Weights the output is (nearly) linear in, from the simplest on: constants, linear, quadratic and deep."""
        stages: list[list[nn.Parameter]] = []
        for order in ("readout.bias", "readout.linear", "readout."):
            stages.append([p for name, p in self.named_parameters() if order in name])
        return [stages[0], stages[0] + stages[1], stages[2]]

    def values(self, X: Tensor, scalars: tuple[Tensor | None, Tensor | None]) -> list[Tensor]:
        """The parts of the output for scaled tuples ``(batch, p, n)``."""
        coefficients = self.coefficients(self.form.gram(X) / self.n**0.5, *scalars)
        metric = self.form.metric()
        lowered = self.form.lowered(X) if any(part.down for part in self.rep.parts) else X
        return [part.assemble(c, X, lowered, metric) for part, c in zip(self.rep.parts, coefficients)]

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
            if part.rank == 0:  # only scalars may be shifted
                scaled[i] = scaled[i] + self.y_shift[i]
        return self.rep.join(scaled) if isinstance(self.rep, DirectSum) else scaled[0]

    def _tuples(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor):
            raise TypeError(f"x is a {type(x).__name__}: give a torch tensor, e.g. torch.as_tensor(x)")
        checks.require_vectors(x, self.n)
        if x.ndim == 2 and self.points == 1:
            x = x[:, None, :]
        if x.ndim != 3 or (x.shape[1] != self.points and not self.set_like):
            raise ValueError(f"x has shape {tuple(x.shape)}, expected (batch, {self.points}, {self.n})")
        if x.dtype != self.x_scale.dtype:
            raise TypeError(
                f"x is {x.dtype}, the network {self.x_scale.dtype}: use net.to(x.dtype) or x.to(...)"
            )
        if self.check_values and not torch.compiler.is_compiling():
            checks.require_finite(x, "x")
        return x

    def _scalars(self, s: Tensor | None, what: str, shape: tuple[int, ...], shift: Tensor) -> Tensor | None:
        if s is None:
            if shape[-1]:
                raise ValueError(
                    f"{what} is missing: the network was made with {what}={shape[-1]}, give {shape}"
                )
            return None
        if not isinstance(s, Tensor):
            raise TypeError(f"{what} is a {type(s).__name__}: give a torch tensor, e.g. torch.as_tensor(...)")
        if not shape[-1]:
            raise ValueError(
                f"{what} of shape {tuple(s.shape)} were given, but the network was made without: set {what}="
                f"{s.shape[-1] if s.ndim else 1}"
            )
        if tuple(s.shape) != shape:
            raise ValueError(f"{what} has shape {tuple(s.shape)}, expected {shape}")
        if s.dtype != self.x_scale.dtype:
            raise TypeError(
                f"{what} is {s.dtype}, the network {self.x_scale.dtype}: use {what}.to(net dtype)"
            )
        if self.check_values and not torch.compiler.is_compiling():
            checks.require_finite(s, what)
        return (s - shift[0]) / shift[1]

    @torch.no_grad()
    def calibrate(
        self, x: Tensor, y: Tensor, point_scalars: Tensor | None = None, sample_scalars: Tensor | None = None
    ) -> None:
        """Fit the units to training data: one scale for all of x, one for each part of y, a shift for scalars only.

        Scaling the components of x one by one would destroy the form, so it is never done. With a known form the unit
        of x is chosen by the inner products, which are all that the weights see, so it does not depend on the frame.
        """
        X = self._tuples(x)
        self.x_scale.fill_(_positive((X * X).mean().sqrt()))
        if isinstance(self.form, FixedForm):
            p, n = X.shape[1], self.n
            isotropic = (n + 2 + p - 1) * n / p  # mean square of Euclidean inner products of N(0, I) vectors
            size = (self.form.gram(X / self.x_scale).square().mean() / isotropic) ** 0.25
            self.x_scale.mul_(size.clamp_min(SMALLEST_SIZE))
        parts = self.rep.split(y, self.n) if isinstance(self.rep, DirectSum) else [y]
        for i, (part, v) in enumerate(zip(self.rep.parts, parts)):
            self.y_shift[i] = v.mean() if part.rank == 0 else 0.0
            self.y_scale[i] = _positive((v - self.y_shift[i]).square().mean().sqrt())
        for s, shift in ((point_scalars, self.point_shift), (sample_scalars, self.sample_shift)):
            if s is not None:
                flat = s.flatten(0, -2)
                shift[0], shift[1] = (
                    flat.mean(0),
                    torch.stack([_positive(c.std(unbiased=False)) for c in flat.T]),
                )


def _positive(scale: Tensor) -> Tensor:
    """A unit to divide by: a scale of zero (constant data) leaves the data as it is."""
    return torch.where(scale > 0, scale, torch.ones_like(scale))
