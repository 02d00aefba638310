"""Pair layers: what each point of a set hears from all others through inner products, and from the whole.

For points with products g_ij, ends a_i and values v_i the message sum is

    r_i = Σ_j silu(Σ_k f_k(g_ij) W_k + a_i + a_j) · v_j,     f_k(g) = sign(g) log(1 + |g|/s_k),

over the real points j. So nothing of size N² is mixed beyond it or need be kept, and `gortho.nn.kernels` has it as one
kernel for CUDA. With logarithmic f_k the three terms make angles of products: log ⟨x_i, x_j⟩ − log ⟨x_i, P⟩ −
log ⟨x_j, P⟩. Where several values share one a and one W, a head, they cost little on a CPU (`head_messages`).
"""

from __future__ import annotations

import functools

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gortho.nn import blocks, kernels
from gortho.nn.form import FixedForm, LearnableForm

#: Scales of the embedding of pairs, in units of the mean product of two points. In float32 a product is known to 1e-3
#: of that unit or better, so there is nothing to see below.
PAIR_SCALES = (1e-3, 3e-2, 1.0, 30.0)


def embed(g: Float[Tensor, "*any"], scales: Tensor) -> Float[Tensor, "*any s"]:
    """sign(g) log(1 + |g|/s) for every scale s, as a last dimension: linear near zero, logarithmic far out."""
    g = g[..., None]
    if not g.requires_grad:  # the same, in fewer steps
        return (g.abs() / scales).log1p_().copysign_(g)
    sign = torch.where(g < 0, -1.0, 1.0).to(g.dtype)
    return sign * torch.log1p(sign * g / scales)  # so written, its slope at zero is 1/s


def products(
    left: Float[Tensor, "batch i n"], right: Float[Tensor, "batch j n"]
) -> Float[Tensor, "batch i j"]:
    """Σ_k left_ik right_jk for ``(B, N, n)``, never in reduced precision: E² − p² cancels."""
    if left.device.type == "cpu":
        return left @ right.mT
    parts = zip(left.unbind(-1), right.unbind(-1))
    first, *others = (a[:, :, None] * b[:, None] for a, b in parts)
    return functools.reduce(torch.add, others, first)


def mapped(x: Tensor, M: Tensor) -> Tensor:
    """M x, never in the reduced precision that matrix products on GPUs may be switched to."""
    if x.device.type == "cpu":  # components first in memory: long rows are quicker
        return (M @ x.flatten(0, -2).mT).mT.unflatten(0, x.shape[:-1])
    return (x[..., None, :] * M).sum(-1)


def sides(form: FixedForm | LearnableForm, x: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors whose plain products are the inner products: ⟨x_i, x_j⟩ = Σ left_i right_j."""
    if isinstance(form, FixedForm):
        z = mapped(x, form.frame)
        return z * form.signs, z
    return mapped(x, form.matrix()), x


def plain_messages(
    left: Tensor, right: Tensor, scales: Tensor, weight: Tensor, ends: Tensor, mask: Tensor
) -> Tensor:
    """The message sums in plain torch; see `messages`."""
    a, v = ends.to(left.dtype).chunk(2, dim=-1)
    real = mask.to(left.dtype)[..., None]
    u = embed(products(left, right), scales) @ weight + (a[:, :, None] + a[:, None])
    r = (nn.functional.silu(u) * (v * real)[:, None]).sum(2) * real
    return r.to(ends.dtype)


def messages(
    left: Tensor,
    right: Tensor,
    scales: Tensor,
    weight: Tensor,
    ends: Tensor,
    mask: Tensor,
    fused: bool,
    last: Tensor | None = None,
) -> Tensor:
    """Message sums ``(B, N, C)``, zero for points that are not real.

    Args:
        left, right: ``(B, N, n)`` with g_ij = Σ left_i right_j, symmetric in i and j.
        scales, weight: s ``(K,)``, not trained, and W ``(K, C)``.
        ends: a and v side by side, ``(B, N, 2C)``, in float32 or bfloat16.
        mask: which points are real, ``(B, N)``, as ones and zeros.
        fused: use the Triton kernel.
        last: `last_real` of the mask, for the kernel; found here if it is not given.
    """
    if fused:
        last = kernels.last_real(mask) if last is None else last
        return kernels.fused_messages(left, right, scales, weight, ends, mask, last)
    return plain_messages(left, right, scales, weight, ends, mask)


def head_messages(
    left: Tensor, right: Tensor, scales: Tensor, weight: Tensor, a: Tensor, v: Tensor
) -> Tensor:
    """Message sums ``(B, C, N)`` of H heads, each with one a and one W for its C/H values.

    Args:
        left, right, scales: as of `messages`.
        weight: W ``(K, H)``.
        a, v: ends ``(B, H, N)`` and values ``(B, C, N)``, channels before points; those of points that are not real
            are zero.
    """
    heads = weight.shape[1]
    if kernels.usable(left):  # the kernel has a head for each value
        each = v.shape[1] // heads
        ends = torch.cat([a.repeat_interleave(each, dim=1), v], dim=1).mT
        real = v.new_ones(v.shape[0], v.shape[2])
        return messages(left, right, scales, weight.repeat_interleave(each, dim=1), ends, real, True).mT
    if blocks.usable(left, right, weight, a, v):
        return blocks.messages(left, right, scales, weight, a, v)
    g = products(left, right)
    embedded = [embed(g, s)[..., 0] for s in scales.split(1)]
    found = []
    for W, ends, values in zip(weight.unbind(1), a.unbind(1), v.chunk(heads, dim=1)):
        u = ends[:, :, None] + ends[:, None]
        for f, w in zip(embedded, W):
            u = torch.addcmul(u, f, w)
        found.append(values @ nn.functional.silu(u))  # u is symmetric
    return torch.cat(found, dim=1)


class Setwise:
    """Masked sums over the points of each set, and powers of their number."""

    def __init__(self, mask: Tensor, typical: Tensor, fused: bool):
        self.fused, self.last = fused, kernels.last_real(mask) if fused else None
        self.real = mask.to(typical.dtype)[..., None]
        self.number = self.real.sum(1).clamp(min=1.0)  # (B, 1)
        self.log_number = (self.number / typical).log()

    def over(self, power: Tensor) -> Tensor:
        """(N/N̄)^power / N, to turn sums into something between a mean and a sum."""
        return (self.log_number * power).exp() / self.number

    def pool(self, h: Tensor, power: Tensor) -> Tensor:
        """Mean over points times (N/N̄)^power."""
        return (h * self.real).sum(1) * self.over(power)


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

    def forward(self, h: Tensor, both: tuple[Tensor, Tensor], units: Tensor, sets: Setwise) -> Tensor:
        normed = self.norm(h)
        ends = self.ends(h)  # not normed: sums of logarithms stay what they are
        with torch.autocast(h.device.type, enabled=False):
            weight = self.pair / units[1][:, None]
            # The mean of the embedded products is taken out, half of it at each end.
            shift = 0.5 * (units[0] @ weight)
            ends = ends - nn.functional.pad(shift, (0, shift.shape[0])).to(ends.dtype)
            r = messages(*both, units[2], weight, ends, sets.real[..., 0], sets.fused, sets.last)
            r = (r * sets.over(self.pair_power)[:, None]).to(ends.dtype)
            mean = sets.pool(normed, self.whole_power)
        inner = self.up(torch.cat([normed.to(r.dtype), r], dim=-1)) + self.whole(mean)[:, None]
        return h + self.down(self.dropout(nn.functional.silu(inner)))
