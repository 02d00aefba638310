"""Message sums of few heads on a CPU, block by block, so that what is of size N² never leaves its cache.

Plain torch keeps several tensors of B·N² numbers for the way back, and most of its time goes into memory. Here they are
made in a few rooms that are used again, and made a second time on the way back. It takes products that are not
differentiated: those of a known form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

#: Pairs that are met together: their numbers fit into a cache, and starting the work costs little beside it.
BLOCK = 1 << 18


def usable(left: Tensor, right: Tensor, *others: Tensor) -> bool:
    """Whether they are on a CPU, products have no slope, and nothing but plain backward passes is asked for."""
    if left.device.type != "cpu" or left.requires_grad or right.requires_grad:
        return False
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return all(unpack_dual(t).tangent is None for t in (left, right, *others))


@dataclass(frozen=True)
class Block:
    """Some samples, their embedded products, and rooms for g, for u, and for anything."""

    at: slice
    g: Tensor
    u: Tensor
    spare: Tensor
    embedded: list[Tensor]

    def inner(self, a: Tensor, weight: list[list[float]], head: int) -> Tensor:
        """u of one head, in its room."""
        ends = a[self.at, head]
        torch.add(ends[:, :, None], ends[:, None], out=self.u)
        for f, w in zip(self.embedded, weight):
            self.u.add_(f, alpha=w[head])
        return self.u


def blocks(left: Tensor, right: Tensor, scales: Tensor) -> Iterator[Block]:
    """One block after another, all in the same rooms."""
    batch, points = left.shape[:2]
    few, each = max(1, min(batch, BLOCK // points**2)), scales.tolist()
    rooms = left.new_empty(3 + len(each), few, points, points)
    for start in range(0, batch, few):
        at = slice(start, min(start + few, batch))
        g, u, spare, *embedded = rooms[:, : at.stop - start].unbind(0)
        torch.bmm(left[at], right[at].mT, out=g)
        for f, scale in zip(embedded, each):
            torch.abs(g, out=f).mul_(1 / scale).log1p_().copysign_(g)
        yield Block(at, g, u, spare, embedded)


INPUTS = "Tensor left, Tensor right, Tensor scales, Tensor weight, Tensor a, Tensor v"


@torch.library.custom_op("gortho::head_messages", mutates_args=(), schema=f"({INPUTS}) -> Tensor")
def head_messages(
    left: Tensor, right: Tensor, scales: Tensor, weight: Tensor, a: Tensor, v: Tensor
) -> Tensor:
    """Σ_j silu(u_ij) v_j for ends ``(B, H, N)`` and values ``(B, C, N)``, shaped as the values."""
    W, out = weight.tolist(), torch.empty_like(v)
    values, sums = (t.unflatten(1, (a.shape[1], -1)) for t in (v, out))
    for block in blocks(left, right, scales):
        for head in range(a.shape[1]):
            gate = torch.ops.aten.silu.out(block.inner(a, W, head), out=block.spare)
            sums[block.at, head] = torch.bmm(values[block.at, head], gate)  # symmetric
    return out


@torch.library.custom_op(
    "gortho::head_messages_backward",
    mutates_args=(),
    schema=f"(Tensor grad, {INPUTS}) -> (Tensor, Tensor, Tensor)",
)
def head_messages_backward(
    grad: Tensor, left: Tensor, right: Tensor, scales: Tensor, weight: Tensor, a: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Slopes by W, a and v."""
    W, d_weight, d_a, d_v = (
        weight.tolist(),
        torch.zeros_like(weight),
        torch.empty_like(a),
        torch.empty_like(v),
    )
    values, slopes, sums = (t.unflatten(1, (a.shape[1], -1)) for t in (v, d_v, grad.contiguous()))
    for block in blocks(left, right, scales):
        for head in range(a.shape[1]):
            u, d = block.inner(a, W, head), sums[block.at, head]
            gate = torch.ops.aten.silu.out(u, out=block.spare)
            slopes[block.at, head] = torch.bmm(d, gate)
            d_gate = torch.bmm(values[block.at, head].mT, d, out=block.spare)
            d_u = torch.ops.aten.silu_backward.grad_input(d_gate, u, grad_input=block.g)
            d_a[block.at, head] = d_u.sum(1) + d_u.sum(2)
            for k, f in enumerate(block.embedded):
                d_weight[k, head] += torch.dot(d_u.flatten(), f.flatten())
    return d_weight, d_a, d_v


@head_messages.register_fake
def _shape(left: Tensor, right: Tensor, scales: Tensor, weight: Tensor, a: Tensor, v: Tensor) -> Tensor:
    return torch.empty_like(v)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _slopes(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, None, None, *head_messages_backward(grad, *ctx.saved_tensors)


head_messages.register_autograd(_slopes, setup_context=_keep)
