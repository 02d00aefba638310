"""Message sums of few heads on a CPU, block by block, so that most of what is of size N² never leaves its cache.

Plain torch keeps several tensors of B·N² numbers for the way back, and most of its time goes into memory. Here they are
made in a few rooms that are used again, and made a second time on the way back. Only embedded products, whose
logarithms cost most, are kept if there is room for all. Products must not be differentiated: they are those of a
known form.
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
#: Fewer embedded products than this are kept for the way back (32 MB in float32). The C library takes larger pieces of
#: memory from the system anew each time, which costs as much as making them again.
KEPT = 1 << 23


def usable(left: Tensor, right: Tensor, *others: Tensor) -> bool:
    """Whether they are on a CPU, products have no slope, and nothing but plain backward passes is asked for."""
    if left.device.type != "cpu" or left.requires_grad or right.requires_grad:
        return False
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return all(unpack_dual(t).tangent is None for t in (left, right, *others))


@dataclass(frozen=True)
class Block:
    """Some samples, their embedded products, and rooms for u, and for anything."""

    at: slice
    u: Tensor
    spare: Tensor
    embedded: tuple[Tensor, ...]

    def inner(self, a: Tensor, weight: list[list[float]], head: int) -> Tensor:
        """u of one head, in its room."""
        ends = a[self.at, head]
        torch.add(ends[:, :, None], ends[:, None], out=self.u)
        for f, w in zip(self.embedded, weight):
            self.u.add_(f, alpha=w[head])
        return self.u


def embed(g: Tensor, scales: list[float], embedded: tuple[Tensor, ...]) -> None:
    """Embed products given in units of the first scale."""
    for f, scale in zip(embedded, scales):
        torch.abs(g, out=f)
        if scale != scales[0]:
            f.mul_(scales[0] / scale)
        f.log1p_().copysign_(g)


def blocks(left: Tensor, right: Tensor, scales: Tensor, kept: Tensor, known: bool = False) -> Iterator[Block]:
    """One block after another, all in the same rooms.

    Embedded products are made in ``kept``, or found there (``known``); if it is empty they are made in a room.
    """
    batch, points = left.shape[:2]
    few, each = max(1, min(batch, BLOCK // points**2)), scales.tolist()
    rooms = left.new_empty(2, few, points, points)
    place = kept if len(kept) else left.new_empty(len(each), few, points, points)
    left = left / scales[0]
    for start in range(0, batch, few):
        at = slice(start, min(start + few, batch))
        u, spare = rooms[:, : at.stop - start].unbind(0)
        embedded = place[:, at if len(kept) else slice(at.stop - start)].unbind(0)
        if not known or not len(kept):
            embed(torch.bmm(left[at], right[at].mT, out=u), each, embedded)
        yield Block(at, u, spare, embedded)


INPUTS = "Tensor left, Tensor right, Tensor scales, Tensor weight, Tensor a, Tensor v"


@torch.library.custom_op(
    "gortho::head_messages", mutates_args=(), schema=f"({INPUTS}, bool keep) -> (Tensor, Tensor)"
)
def head_messages(
    left: Tensor, right: Tensor, scales: Tensor, weight: Tensor, a: Tensor, v: Tensor, keep: bool
) -> tuple[Tensor, Tensor]:
    """Σ_j silu(u_ij) v_j for ends ``(B, H, N)`` and values ``(B, C, N)``, shaped as the values, and what is kept."""
    W, out, kept = weight.tolist(), torch.empty_like(v), _place(left, scales, keep)
    values, sums = (t.unflatten(1, (a.shape[1], -1)) for t in (v, out))
    for block in blocks(left, right, scales, kept):
        for head in range(a.shape[1]):
            gate = torch.ops.aten.silu_(block.inner(a, W, head))
            sums[block.at, head] = torch.bmm(values[block.at, head], gate)  # symmetric
    return out, kept


def _place(left: Tensor, scales: Tensor, keep: bool) -> Tensor:
    """Where embedded products are kept, or nothing."""
    batch, points = left.shape[:2]
    return left.new_empty(len(scales) if keep else 0, batch, points, points)


@torch.library.custom_op(
    "gortho::head_messages_backward",
    mutates_args=(),
    schema=f"(Tensor grad, Tensor kept, {INPUTS}) -> (Tensor, Tensor, Tensor)",
)
def head_messages_backward(
    grad: Tensor,
    kept: Tensor,
    left: Tensor,
    right: Tensor,
    scales: Tensor,
    weight: Tensor,
    a: Tensor,
    v: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Slopes by W, a and v."""
    W, d_weight = weight.tolist(), torch.zeros_like(weight)
    d_a, d_v = torch.empty_like(a), torch.empty_like(v)
    grad = grad if grad.stride(-1) == 1 else grad.contiguous()
    values, slopes, sums = (t.unflatten(1, (a.shape[1], -1)) for t in (v, d_v, grad))
    for block in blocks(left, right, scales, kept, known=True):
        for head in range(a.shape[1]):
            u, d = block.inner(a, W, head), sums[block.at, head]
            gate = torch.ops.aten.silu.out(u, out=block.spare)
            slopes[block.at, head] = torch.bmm(d, gate)
            d_gate = torch.bmm(values[block.at, head].mT, d, out=block.spare)
            d_u = torch.ops.aten.silu_backward.grad_input(d_gate, u, grad_input=d_gate)
            d_a[block.at, head] = d_u.sum(1) + d_u.sum(2)
            for k, f in enumerate(block.embedded):
                d_weight[k, head] += torch.dot(d_u.flatten(), f.flatten())
    return d_weight, d_a, d_v


@head_messages.register_fake
def _shape(
    left: Tensor, right: Tensor, scales: Tensor, weight: Tensor, a: Tensor, v: Tensor, keep: bool
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(v), _place(left, scales, keep)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)  # no zeros in place of a slope by what is kept
    ctx.save_for_backward(output[1], *inputs[:-1])


def _slopes(ctx: Any, grad: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 7
    return None, None, None, *head_messages_backward(grad, *ctx.saved_tensors), None


head_messages.register_autograd(_slopes, setup_context=_keep)


def messages(left: Tensor, right: Tensor, scales: Tensor, weight: Tensor, a: Tensor, v: Tensor) -> Tensor:
    """`head_messages`, with embedded products kept if there is a way back, and room for them."""
    back = torch.is_grad_enabled() and any(t.requires_grad for t in (weight, a, v))
    keep = back and len(scales) * len(left) * left.shape[1] ** 2 < KEPT
    sums: Tensor = head_messages(left, right, scales, weight, a, v, keep)[0]
    return sums
