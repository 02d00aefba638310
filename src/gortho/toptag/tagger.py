"""A jet tagger that is invariant under O(A) and under renumbering constituents, by construction.

Weights see products ⟨x_i, x_j⟩ only, x_i the constituents' momenta and, beside them, their sum P. Most of the
network lives on points (constituents); pairs are only met inside the message sums

    r_i = Σ_j silu(Σ_k f_k(⟨x_i, x_j⟩) W_k + a_i + a_j) · v_j,

where a and v are read off the points. With logarithmic f_k the three terms of the sum make angles of products:
log ⟨x_i, x_j⟩ − log ⟨x_i, P⟩ − log ⟨x_j, P⟩. So nothing of size N² is stored or mixed, and `gortho.toptag.kernels` has
the message sum as one kernel for CUDA.

Reference vectors, given (beams, time axis) or learnt, enter as products ⟨x_i, s⟩ of each point: with them the network
is invariant only under what leaves them in place. They are the directions of its `Tagger.symmetry` (M16).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gortho.forms import QuadraticForm
from gortho.nn.form import FixedForm, LearnableForm, as_form_module
from gortho.symmetry import Symmetry
from gortho.toptag import kernels
from gortho.toptag.axes import form_and_directions, independent, spurion_vectors

#: Scales of the embedding in units of the mean product of two constituents: for pairs, and for points and jets.
#: In float32 a product is known to 1e-3 of that unit or better, so there is nothing to see below.
PAIR_SCALES = (1e-3, 3e-2, 1.0, 30.0)
POINT_SCALES = (1e-3, 3e-2, 1.0, 30.0, 1000.0)
#: Jets from which units are read off.
CALIBRATION_JETS = 2048


class MessageLayer(nn.Module):
    """Points hear all others, and the whole: h_i ← h_i + down(silu(up(h_i, r_i) + whole(mean h)))."""

    def __init__(self, width: int, pairs: int, hidden: int, dropout: float):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.ends = nn.Linear(width, 2 * pairs)
        self.pair = nn.Parameter(torch.randn(len(PAIR_SCALES), pairs) / len(PAIR_SCALES) ** 0.5)
        self.pair_power = nn.Parameter(torch.linspace(0.0, 1.0, pairs))
        self.whole_power = nn.Parameter(torch.linspace(0.0, 1.0, width))
        self.up = nn.Linear(width + pairs, hidden)
        self.whole = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width)
        self.dropout = nn.Dropout(dropout)
        nn.init.ones_(self.ends.bias[pairs:])  # at the start every point counts

    def forward(self, h: Tensor, sides: tuple[Tensor, Tensor], units: Tensor, jets: Jetwise) -> Tensor:
        normed = self.norm(h)
        ends = self.ends(h)  # not normed: sums of logarithms stay what they are
        with torch.autocast(h.device.type, enabled=False):
            weight = self.pair / units[1][:, None]
            # The mean of the embedded products is taken out, half of it at each end.
            shift = 0.5 * (units[0] @ weight)
            ends = ends - nn.functional.pad(shift, (0, shift.shape[0])).to(ends.dtype)
            r = kernels.messages(*sides, units[2], weight, ends, jets.real[..., 0], jets.fused, jets.last)
            r = (r * jets.over(self.pair_power)[:, None]).to(ends.dtype)
            mean = jets.pool(normed, self.whole_power)
        inner = self.up(torch.cat([normed.to(r.dtype), r], dim=-1)) + self.whole(mean)[:, None]
        return h + self.down(self.dropout(nn.functional.silu(inner)))


class Jetwise:
    """Masked sums over the constituents of each jet, and powers of their number."""

    def __init__(self, mask: Tensor, typical: Tensor, fused: bool):
        self.fused, self.last = fused, kernels.last_real(mask) if fused else None
        self.real = mask.to(typical.dtype)[..., None]
        self.number = self.real.sum(1).clamp(min=1.0)  # (B, 1)
        self.log_number = (self.number / typical).log()

    def over(self, power: Tensor) -> Tensor:
        """(N/N̄)^power / N, to turn sums into something between a mean and a sum."""
        return (self.log_number * power).exp() / self.number

    def pool(self, h: Tensor, power: Tensor) -> Tensor:
        """Mean over constituents times (N/N̄)^power."""
        return (h * self.real).sum(1) * self.over(power)


class Tagger(nn.Module):
    """One logit for each jet, from momenta ``(B, N, n)`` and a mask ``(B, N)`` of real constituents.

    Args:
        form: a `QuadraticForm` or symmetric matrix (known), a `LearnableForm`, or n to learn one in R^n;
            Minkowski by default. Or a `Symmetry` O(A) with directions, which become the first of the spurions.
        width, pairs, depth: channels of a point and of a pair, and number of message layers.
        hidden: inner channels of a layer; twice the width by default.
        spurions: names out of `gortho.toptag.axes.SPURIONS`, or vectors ``(S, n)``, that the tagger may refer to.
        references: so many reference vectors are learnt; see `learnt_references`.
        dropout: share of inner channels dropped in training.
        fused: use the Triton kernel for message sums; by default where it can be.
        seed: seed of the weights.

    >>> net = Tagger(spurions=("time",), width=8, pairs=8, depth=1)
    >>> x = torch.randn(3, 10, 4)
    >>> net(x, torch.ones(3, 10, dtype=torch.bool)).shape
    torch.Size([3])
    >>> print(net.symmetry, "|", net.symmetry.residual_name)
    O(1,3), broken along (1.00, 0.00, 0.00, 0.00) | O(3)
    """

    def __init__(
        self,
        form: QuadraticForm | LearnableForm | FixedForm | Symmetry | int | Any = None,
        *,
        width: int = 32,
        pairs: int = 32,
        depth: int = 3,
        hidden: int | None = None,
        spurions: Sequence[str] | Any = (),
        references: int = 0,
        dropout: float = 0.0,
        fused: bool | None = None,
        seed: int = 0,
    ):
        super().__init__()
        for name, value in (("width", width), ("pairs", pairs), ("depth", depth)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} = {value!r}: give an integer of at least 1")
        if references < 0:
            raise ValueError(f"references = {references}: give 0 or more")
        form, directions = form_and_directions(QuadraticForm.minkowski() if form is None else form)
        self.form = as_form_module(form)
        self.n, self.fused = self.form.n, fused
        given = torch.cat([*directions, spurion_vectors(spurions, self.n)])
        special = len(given) + references
        point_features = (2 + special) * len(POINT_SCALES)
        jet_features = (1 + special) * len(POINT_SCALES) + 1
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they are
            torch.manual_seed(seed)
            hidden = 2 * width if hidden is None else hidden
            self.point_in = nn.Linear(point_features, width)
            self.jet_in = nn.Linear(jet_features, width, bias=False)
            self.layers = nn.ModuleList(MessageLayer(width, pairs, hidden, dropout) for _ in range(depth))
            self.norm = nn.LayerNorm(width)
            self.power = nn.Parameter(torch.linspace(0.0, 1.0, width))
            self.head = nn.Sequential(
                nn.Linear(width + jet_features, hidden), nn.SiLU(), nn.Linear(hidden, 1)
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
        self.register_buffer("jet_units", _unit(jet_features))

    spurions: Tensor
    x_scale: Tensor
    typical: Tensor
    point_scales: Tensor
    pair_units: Tensor
    point_units: Tensor
    jet_units: Tensor

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if x.ndim != 3 or x.shape[-1] != self.n or mask.shape != x.shape[:2]:
            raise ValueError(
                f"x has shape {tuple(x.shape)} and the mask {tuple(mask.shape)}: expected (B, N, {self.n}) and (B, N)"
            )
        if x.dtype != self.x_scale.dtype:
            raise TypeError(f"x is {x.dtype}, the tagger {self.x_scale.dtype}: use tagger.to(x.dtype)")
        fused = kernels.usable(x) if self.fused is None else self.fused
        with torch.autocast(x.device.type, enabled=False):
            jets = Jetwise(mask, self.typical, fused)
            x = torch.where(mask[..., None], x / self.x_scale, 0.0)
            sides = self.sides(x)
            points, whole = self.features(x, sides, jets)
            points = (points - self.point_units[0]) / self.point_units[1]
            whole = (whole - self.jet_units[0]) / self.jet_units[1]
            h = self.point_in(points) + self.jet_in(whole)[:, None]
        for layer in self.layers:
            h = layer(h, sides, self.pair_units, jets)
        with torch.autocast(x.device.type, enabled=False):
            pooled = jets.pool(self.norm(h.to(x.dtype)), self.power)
            return self.head(torch.cat([pooled, whole], dim=-1))[:, 0]

    def sides(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Two tensors whose plain products are the inner products: ⟨x_i, x_j⟩ = Σ left_i right_j."""
        if isinstance(self.form, FixedForm):
            z = _mapped(x, self.form.frame)
            return z * self.form.signs, z
        return _mapped(x, self.form.matrix()), x

    def features(self, x: Tensor, sides: tuple[Tensor, Tensor], jets: Jetwise) -> tuple[Tensor, Tensor]:
        """Embedded products of each point with itself, the sum and the references; and of the sum, with N."""
        left, right = sides
        special = [self.spurions] if self.learnt is None else [self.spurions, self.learnt]
        refer = torch.cat(special)
        total = right.sum(1)  # padding is zero
        own = _above_rounding(left * right)
        with_total = (left * total[:, None]).sum(-1, keepdim=True)
        lowered = self.sides(refer)[0]
        with_special = (right[:, :, None] * lowered).sum(-1)
        points = torch.cat([own, with_total, with_special], dim=-1)
        square = (left.sum(1) * total).sum(-1, keepdim=True)
        whole = torch.cat([square, (total[:, None] * lowered).sum(-1)], dim=-1)
        embedded = (kernels.embed(products, self.point_scales).flatten(-2) for products in (points, whole))
        points, whole = embedded
        return points, torch.cat([whole, jets.log_number], dim=-1)

    @torch.no_grad()
    def calibrate(self, x: Tensor, mask: Tensor) -> None:
        """Fit units to training jets: one scale for all of x, N̄, and mean and spread of embedded products.

        The unit is the mean product of two constituents, so with a known form it does not depend on the frame; a form
        that is learnt had better start near (`gortho.toptag.blind`).
        """
        x, mask = x[:CALIBRATION_JETS].to(self.x_scale), mask[:CALIBRATION_JETS].to(self.x_scale.device)
        jets = Jetwise(mask, self.typical, False)
        self.typical.fill_(jets.number.mean())
        x = torch.where(mask[..., None], x, 0.0)
        square = kernels.products(*self.sides(x)).abs().sum() / jets.number.square().sum()
        self.x_scale.fill_(_positive(square.sqrt()))
        jets = Jetwise(mask, self.typical, False)
        x = x / self.x_scale
        sides = self.sides(x)
        points, whole = self.features(x, sides, jets)
        pairs = kernels.embed(kernels.products(*sides), self.pair_units[2])
        both = mask[:, :, None] & mask[:, None]
        for units, values in (
            (self.pair_units, pairs[both]),
            (self.point_units, points[mask]),
            (self.jet_units, whole),
        ):
            units[0] = values.mean(0)
            units[1] = _positive(values.std(0, unbiased=False))

    @property
    def references(self) -> Tensor:
        """All vectors that the tagger refers to, given and learnt ``(S, n)``, in float64 on the CPU."""
        learnt = [] if self.learnt is None else [self.learnt.detach()]
        return torch.cat([self.spurions, *learnt]).double().cpu()

    @property
    def symmetry(self) -> Symmetry:
        """What leaves all scores as they are: O(A), broken along the references.

        What keeps some vectors keeps those that depend on them, so these are left out: of beams and time axis, the time
        axis.
        """
        return Symmetry(self.form.value(), directions=independent(self.references))

    def extra_repr(self) -> str:
        try:
            return str(self.symmetry)
        except ValueError:  # a learnt form may be singular for a while
            return self.form.value().group_name

    def parameter_count(self) -> int:
        """Number of trained numbers."""
        return sum(p.numel() for p in self.parameters())

    @torch.no_grad()
    def learnt_references(self) -> dict[str, Any]:
        """The learnt reference vectors with their Euclidean sizes and their inner products.

        They act on momenta in units of ``x_scale``. Sizes near zero say that the tagger found no use for them: it sees
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


def _mapped(x: Tensor, M: Tensor) -> Tensor:
    """M x, never in the reduced precision that matrix products on GPUs may be switched to."""
    return (x[..., None, :] * M).sum(-1)


def _above_rounding(terms: Tensor) -> Tensor:
    """The sum over the last dimension, or zero if it is no larger than rounding.

    Constituents are massless (M9): what is left of their squares in float32 is rounding, which tells their energy.
    """
    total = terms.sum(-1, keepdim=True)
    floor = 8 * torch.finfo(terms.dtype).eps * terms.abs().sum(-1, keepdim=True)
    return torch.where(total.abs() > floor, total, 0.0)


def _unit(features: int, *more: Tensor) -> Tensor:
    return torch.stack([torch.zeros(features), torch.ones(features), *more])


def _positive(scale: Tensor) -> Tensor:
    """A unit to divide by: a spread of zero leaves values as they are."""
    return torch.where(scale > 1e-6, scale, torch.ones_like(scale))
