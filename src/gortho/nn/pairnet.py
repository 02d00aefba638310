"""A network of sets that is invariant under O(A) and under renumbering points, by construction.

Weights see products ⟨x_i, x_j⟩ only, x_i the points and, beside them, their sum P. Most of the network lives on points;
pairs are only met inside the message sums of `gortho.nn.pairs`. Reference vectors, given or learnt, enter as products
⟨x_i, s⟩ of each point: with them the network is invariant only under what leaves them in place.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gortho import checks
from gortho.forms import QuadraticForm
from gortho.nn import kernels
from gortho.nn.form import FixedForm, FixedSkew, FixedVectors, LearnableForm, as_form_module
from gortho.nn.pairs import PAIR_SCALES, MessageLayer, Setwise, embed, products, sides
from gortho.symmetry import Symmetry

#: Scales of the embedding of points and sets, in units of the mean product of two points.
POINT_SCALES = (1e-3, 3e-2, 1.0, 30.0, 1000.0)
#: Sets from which units are read off.
CALIBRATION = 2048


class PairNet(nn.Module):
    """One invariant number for each set of vectors ``(B, N, n)``, with a mask ``(B, N)`` of the real ones.

    Args:
        form: a `QuadraticForm` or symmetric matrix (known), a `LearnableForm`, or n to learn one in R^n; or a
            `Symmetry` or its name: its directions are used as reference vectors, its origin is subtracted.
        width, pairs, depth: channels of a point and of a pair, and number of message layers.
        hidden: inner channels of a layer; twice the width by default.
        spurions: vectors ``(S, n)`` that the network may refer to.
        references: number of reference vectors to learn; see `learnt_references`.
        dropout: share of inner channels dropped in training.
        fused: use the Triton kernel for message sums; by default where it can be.
        seed: seed of the weights.

    >>> net = PairNet("O(3)", width=8, pairs=8, depth=1)
    >>> net(torch.randn(2, 10, 3), torch.ones(2, 10, dtype=torch.bool)).shape
    torch.Size([2])
    """

    def __init__(
        self,
        form: QuadraticForm | Symmetry | LearnableForm | FixedForm | int | str | Any,
        *,
        width: int = 32,
        pairs: int = 32,
        depth: int = 3,
        hidden: int | None = None,
        spurions: Any = (),
        references: int = 0,
        dropout: float = 0.0,
        fused: bool | None = None,
        seed: int = 0,
    ):
        super().__init__()
        for name, value in (("width", width), ("pairs", pairs), ("depth", depth)):
            checks.whole(value, name, 1)
        if references < 0:
            raise ValueError(f"references = {references}: give 0 or more")
        symmetry = Symmetry.of(form) if isinstance(form, (Symmetry, str)) else None
        if symmetry is not None and symmetry.skew is not None:
            raise ValueError(
                f"{symmetry}: products by a skew form change their sign with the order: give a form"
            )
        module = as_form_module(form if symmetry is None else symmetry.form)
        assert not isinstance(module, FixedSkew)
        self.form = module
        self.n, self.fused = self.form.n, fused
        given = _given(spurions, self.n, symmetry)
        self.origin = None if symmetry is None or symmetry.origin is None else FixedVectors(symmetry.origin)
        self.directions = FixedVectors(torch.empty(0, self.n) if symmetry is None else symmetry.directions)
        special = len(given) + references
        point_features = (2 + special) * len(POINT_SCALES)
        set_features = (1 + special) * len(POINT_SCALES) + 1
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they are
            torch.manual_seed(seed)
            hidden = 2 * width if hidden is None else hidden
            self.point_in = nn.Linear(point_features, width)
            self.set_in = nn.Linear(set_features, width, bias=False)
            self.layers = nn.ModuleList(MessageLayer(width, pairs, hidden, dropout) for _ in range(depth))
            self.norm = nn.LayerNorm(width)
            self.power = nn.Parameter(torch.linspace(0.0, 1.0, width))
            self.head = nn.Sequential(
                nn.Linear(width + set_features, hidden), nn.SiLU(), nn.Linear(hidden, 1)
            )
            if references:
                self.learnt = nn.Parameter(0.1 * torch.randn(references, self.n))
            else:
                self.register_parameter("learnt", None)
        self.register_buffer("spurions", given.to(torch.get_default_dtype()))
        self.register_buffer("x_scale", torch.ones(()))
        self.register_buffer("typical", torch.tensor(50.0))  # N̄
        self.register_buffer("point_scales", torch.tensor(POINT_SCALES))
        # Mean, spread and, for pairs, scales of the embedded products.
        self.register_buffer("pair_units", _unit(len(PAIR_SCALES), torch.tensor(PAIR_SCALES)))
        self.register_buffer("point_units", _unit(point_features))
        self.register_buffer("set_units", _unit(set_features))

    spurions: Tensor
    x_scale: Tensor
    typical: Tensor
    point_scales: Tensor
    pair_units: Tensor
    point_units: Tensor
    set_units: Tensor

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if x.ndim != 3 or x.shape[-1] != self.n or mask.shape != x.shape[:2]:
            raise ValueError(
                f"x has shape {tuple(x.shape)} and the mask {tuple(mask.shape)}: expected (B, N, {self.n}) and (B, N)"
            )
        if x.dtype != self.x_scale.dtype:
            raise TypeError(f"x is {x.dtype}, the network {self.x_scale.dtype}: use net.to(x.dtype)")
        _require_booleans(mask)
        fused = kernels.usable(x) if self.fused is None else self.fused
        with torch.autocast(x.device.type, enabled=False):
            sets = Setwise(mask, self.typical, fused)
            x = torch.where(mask[..., None], self.centred(x) / self.x_scale, 0.0)
            both = self.sides(x)
            points, whole = self.features(both, sets)
            points = (points - self.point_units[0]) / self.point_units[1]
            whole = (whole - self.set_units[0]) / self.set_units[1]
            h = self.point_in(points) + self.set_in(whole)[:, None]
        for layer in self.layers:
            h = layer(h, both, self.pair_units, sets)
        with torch.autocast(x.device.type, enabled=False):
            pooled = sets.pool(self.norm(h.to(x.dtype)), self.power)
            return self.head(torch.cat([pooled, whole], dim=-1))[:, 0]

    def centred(self, x: Tensor) -> Tensor:
        """x about the origin of the symmetry."""
        return x if self.origin is None else x - self.origin.value

    def sides(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Two tensors whose plain products are the inner products."""
        return sides(self.form, x)

    def features(self, both: tuple[Tensor, Tensor], sets: Setwise) -> tuple[Tensor, Tensor]:
        """Embedded products of each point with itself, the sum and the references; and of the sum, with N."""
        left, right = both
        fixed = self.directions.value  # the first of the given ones, without the rounding of what was saved
        special = [fixed, self.spurions[len(fixed) :]]
        refer = torch.cat(special if self.learnt is None else [*special, self.learnt])
        total = right.sum(1)  # padding is zero
        own = _above_rounding(left * right)
        with_total = (left * total[:, None]).sum(-1, keepdim=True)
        lowered = self.sides(refer)[0]
        with_special = (right[:, :, None] * lowered).sum(-1)
        points = torch.cat([own, with_total, with_special], dim=-1)
        square = (left.sum(1) * total).sum(-1, keepdim=True)
        whole = torch.cat([square, (total[:, None] * lowered).sum(-1)], dim=-1)
        embedded = (embed(values, self.point_scales).flatten(-2) for values in (points, whole))
        points, whole = embedded
        return points, torch.cat([whole, sets.log_number], dim=-1)

    @torch.no_grad()
    def calibrate(self, x: Tensor, mask: Tensor) -> None:
        """Fit units to training sets: one scale for all of x, N̄, and mean and spread of embedded products.

        The unit is the mean product of two points, so with a known form it does not depend on the frame; a form that
        is learnt had better start near.
        """
        _require_booleans(mask)
        x, mask = x[:CALIBRATION].to(self.x_scale), mask[:CALIBRATION].to(self.x_scale.device)
        sets = Setwise(mask, self.typical, False)
        self.typical.fill_(sets.number.mean())
        x = torch.where(mask[..., None], self.centred(x), 0.0)
        square = products(*self.sides(x)).abs().sum() / sets.number.square().sum()
        self.x_scale.fill_(_positive(square.sqrt()))
        sets = Setwise(mask, self.typical, False)
        x = x / self.x_scale
        both = self.sides(x)
        points, whole = self.features(both, sets)
        pairs = embed(products(*both), self.pair_units[2])
        real = mask[:, :, None] & mask[:, None]
        for units, values in (
            (self.pair_units, pairs[real]),
            (self.point_units, points[mask]),
            (self.set_units, whole),
        ):
            units[0] = values.mean(0)
            units[1] = _positive(values.std(0, unbiased=False))

    def parameter_count(self) -> int:
        """Number of trained numbers."""
        return sum(p.numel() for p in self.parameters())

    @torch.no_grad()
    def learnt_references(self) -> dict[str, Any]:
        """The learnt reference vectors with their Euclidean sizes and their inner products.

        They act on vectors in units of ``x_scale``. Sizes near zero say that the network found no use for them: it sees
        no direction that breaks the symmetry.
        """
        if self.learnt is None:
            return {"vectors": [], "sizes": [], "gram": []}
        vectors = self.learnt.double()
        A = self.form.matrix().double()
        return {
            "vectors": vectors.tolist(),
            "sizes": vectors.norm(dim=-1).tolist(),
            "gram": (vectors @ A @ vectors.mT).tolist(),
        }


def _require_booleans(mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise TypeError(f"the mask is {mask.dtype}: give booleans, such as mask.bool(), true for real points")


def _given(spurions: Any, n: int, symmetry: Symmetry | None) -> Tensor:
    """Given reference vectors as ``(S, n)``, and those of the symmetry."""
    vectors = torch.as_tensor(spurions, dtype=torch.float64) if len(spurions) else torch.empty(0, n).double()
    if vectors.ndim != 2 or vectors.shape[1] != n:
        raise ValueError(f"spurions have shape {tuple(vectors.shape)}: give (S, {n})")
    if symmetry is None:
        return vectors
    if symmetry.special or symmetry.spaces:
        raise ValueError(
            f"{symmetry}: products of pairs know O(A) of one form, with directions and an origin: use EquivariantNet"
        )
    return torch.cat([symmetry.directions.double(), vectors])


def _above_rounding(terms: Tensor) -> Tensor:
    """The sum over the last dimension, or zero if it is no larger than rounding.

    For vectors on the null cone (M9) what is left of their squares in float32 is rounding, which tells their size.
    """
    total = terms.sum(-1, keepdim=True)
    floor = 8 * torch.finfo(terms.dtype).eps * terms.abs().sum(-1, keepdim=True)
    return torch.where(total.abs() > floor, total, 0.0)


def _unit(features: int, *more: Tensor) -> Tensor:
    return torch.stack([torch.zeros(features), torch.ones(features), *more])


def _positive(scale: Tensor) -> Tensor:
    """A unit to divide by: a spread of zero leaves values as they are."""
    return torch.where(scale > 1e-6, scale, torch.ones_like(scale))
