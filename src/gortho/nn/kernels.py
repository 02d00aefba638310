"""The message sums of `gortho.nn.pairs` as one Triton kernel for CUDA.

Plain torch stores several tensors of B·N²·C numbers for the way back; the kernel keeps a few rows in registers,
computes everything again on the way back, and skips the padding. Since products are symmetric, what i hears from j and
what j hears from i are met in the same row, so there are no atomic additions, and the result does not change from run
to run.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor, nn

try:
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice
except ImportError:  # it comes with torch on machines with CUDA
    triton = None

#: Scales of the embedding the kernel is written for.
SCALES = 4
#: Components of a vector the kernel is written for.
COMPONENTS = 4


def last_real(mask: Tensor) -> Tensor:
    """Number of points up to the last real one, ``(B,)``; those behind it are skipped."""
    order = torch.arange(1, mask.shape[1] + 1, device=mask.device, dtype=torch.int32)
    return torch.where(mask > 0, order, 0).amax(1)


def usable(x: Tensor) -> bool:
    """Whether the kernel can take this input: up to four float32 components on a CUDA device, and Triton installed."""
    return triton is not None and x.is_cuda and x.dtype == torch.float32 and x.shape[-1] <= COMPONENTS


def fused_messages(
    left: Tensor, right: Tensor, scales: Tensor, weight: Tensor, ends: Tensor, mask: Tensor, last: Tensor
) -> Tensor:
    """The message sums by the kernel; fewer components than four, and fewer scales, are filled up with zeros."""
    if triton is None:
        raise ImportError("the fused kernel needs Triton, which is not installed: use fused=False")
    components, given = left.shape[-1], len(scales)
    if left.dtype != torch.float32 or components > COMPONENTS or given > SCALES:
        raise ValueError(
            f"the fused kernel takes at most {COMPONENTS} components in float32 and {SCALES} scales, not {components} "
            f"in {left.dtype} and {given}: use fused=False"
        )
    if components < COMPONENTS:
        left, right = (nn.functional.pad(side, (0, COMPONENTS - components)) for side in (left, right))
    if given < SCALES:
        scales = nn.functional.pad(scales, (0, SCALES - given), value=1.0)
        weight = nn.functional.pad(weight, (0, 0, 0, SCALES - given))
    return torch.ops.gortho.pair_messages(left, right, scales, weight, ends, mask, last)


#: Rows and channels of one program, and its warps, on the way forward and back: the quickest of 18 on an H200.
FORWARD = (64, 16, 4)
BACKWARD = (32, 16, 2)
#: Triton's interpreter, which runs kernels without a GPU, has no approximate functions.
FAST = os.environ.get("TRITON_INTERPRET", "0") != "1"


def tile(shape: tuple[int, int, int], points: int, channels: int) -> tuple[int, int, int]:
    """A tile no larger than the problem needs, with sides that are powers of two."""
    rows, columns, warps = shape
    columns = min(columns, 1 << max(2, (channels - 1).bit_length()))
    return min(rows, 1 << max(4, (points - 1).bit_length())), columns, warps


if triton is not None:

    @triton.jit
    def _log1p(x, FAST: tl.constexpr):
        if FAST:
            return libdevice.fast_logf(1.0 + x)
        else:
            return tl.log(1.0 + x)

    @triton.jit
    def _sigmoid(x, FAST: tl.constexpr):
        if FAST:
            return libdevice.fast_dividef(1.0, 1.0 + tl.exp(-x))
        else:
            return 1.0 / (1.0 + tl.exp(-x))

    @triton.jit
    def _forward_kernel(
        left, right, scales, weight, ends, real, last, out, N, C,
        ROWS: tl.constexpr, COLUMNS: tl.constexpr, FAST: tl.constexpr,
    ):  # fmt: skip
        """One program: some rows i and channels of one sample, all j one after another."""
        jet = tl.program_id(0)
        first = tl.program_id(1) * ROWS
        i = first + tl.arange(0, ROWS)[:, None]
        c = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        n = tl.load(last + jet)
        row, column = i < n, c < C
        at = jet * N + i
        total = tl.zeros((ROWS, COLUMNS), tl.float32)
        if first < n:
            l0 = tl.load(left + at * 4, mask=row, other=0.0)
            l1 = tl.load(left + at * 4 + 1, mask=row, other=0.0)
            l2 = tl.load(left + at * 4 + 2, mask=row, other=0.0)
            l3 = tl.load(left + at * 4 + 3, mask=row, other=0.0)
            a = tl.load(ends + at * 2 * C + c, mask=row & column, other=0.0).to(tl.float32)
            w0 = tl.load(weight + c, mask=column, other=0.0)
            w1 = tl.load(weight + C + c, mask=column, other=0.0)
            w2 = tl.load(weight + 2 * C + c, mask=column, other=0.0)
            w3 = tl.load(weight + 3 * C + c, mask=column, other=0.0)
            s0 = 1.0 / tl.load(scales)
            s1 = 1.0 / tl.load(scales + 1)
            s2 = 1.0 / tl.load(scales + 2)
            s3 = 1.0 / tl.load(scales + 3)
            for j in range(n):
                to = jet * N + j
                g = l0 * tl.load(right + to * 4)
                g += l1 * tl.load(right + to * 4 + 1)
                g += l2 * tl.load(right + to * 4 + 2)
                g += l3 * tl.load(right + to * 4 + 3)
                size = tl.abs(g)
                sign = tl.where(g < 0, -1.0, 1.0)
                u = a + tl.load(ends + to * 2 * C + c, mask=column, other=0.0).to(tl.float32)
                u += sign * _log1p(size * s0, FAST) * w0
                u += sign * _log1p(size * s1, FAST) * w1
                u += sign * _log1p(size * s2, FAST) * w2
                u += sign * _log1p(size * s3, FAST) * w3
                v = tl.load(ends + to * 2 * C + C + c, mask=column, other=0.0).to(tl.float32)
                total += u * _sigmoid(u, FAST) * (v * tl.load(real + to))
            total *= tl.load(real + at, mask=row, other=0.0)
        tl.store(out + at * C + c, total.to(out.dtype.element_ty), mask=(i < N) & column)

    @triton.jit
    def _backward_kernel(
        grad, left, right, scales, weight, ends, real, last, d_ends, d_weight, d_left, d_right, B, N, C,
        ROWS: tl.constexpr, COLUMNS: tl.constexpr, FORM: tl.constexpr, FAST: tl.constexpr,
    ):  # fmt: skip
        """The same rows and channels on the way back; each row is met as the hearing and as the heard one."""
        jet = tl.program_id(0)
        first = tl.program_id(1) * ROWS
        i = first + tl.arange(0, ROWS)[:, None]
        c = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        n = tl.load(last + jet)
        row, column = i < n, c < C
        at = jet * N + i
        d_a = tl.zeros((ROWS, COLUMNS), tl.float32)
        d_v = tl.zeros((ROWS, COLUMNS), tl.float32)
        hears = tl.zeros((ROWS, COLUMNS), tl.float32)
        heard = tl.zeros((ROWS, COLUMNS), tl.float32)
        q0 = tl.zeros((ROWS, COLUMNS), tl.float32)
        q1 = tl.zeros((ROWS, COLUMNS), tl.float32)
        q2 = tl.zeros((ROWS, COLUMNS), tl.float32)
        q3 = tl.zeros((ROWS, COLUMNS), tl.float32)
        if FORM:
            dl0 = tl.zeros((ROWS, 1), tl.float32)
            dl1 = tl.zeros((ROWS, 1), tl.float32)
            dl2 = tl.zeros((ROWS, 1), tl.float32)
            dl3 = tl.zeros((ROWS, 1), tl.float32)
            dr0 = tl.zeros((ROWS, 1), tl.float32)
            dr1 = tl.zeros((ROWS, 1), tl.float32)
            dr2 = tl.zeros((ROWS, 1), tl.float32)
            dr3 = tl.zeros((ROWS, 1), tl.float32)
        if first < n:
            l0 = tl.load(left + at * 4, mask=row, other=0.0)
            l1 = tl.load(left + at * 4 + 1, mask=row, other=0.0)
            l2 = tl.load(left + at * 4 + 2, mask=row, other=0.0)
            l3 = tl.load(left + at * 4 + 3, mask=row, other=0.0)
            own = tl.load(real + at, mask=row, other=0.0)
            a = tl.load(ends + at * 2 * C + c, mask=row & column, other=0.0).to(tl.float32)
            v = tl.load(ends + at * 2 * C + C + c, mask=row & column, other=0.0).to(tl.float32) * own
            d = tl.load(grad + at * C + c, mask=row & column, other=0.0).to(tl.float32) * own
            w0 = tl.load(weight + c, mask=column, other=0.0)
            w1 = tl.load(weight + C + c, mask=column, other=0.0)
            w2 = tl.load(weight + 2 * C + c, mask=column, other=0.0)
            w3 = tl.load(weight + 3 * C + c, mask=column, other=0.0)
            s0 = 1.0 / tl.load(scales)
            s1 = 1.0 / tl.load(scales + 1)
            s2 = 1.0 / tl.load(scales + 2)
            s3 = 1.0 / tl.load(scales + 3)
            for j in range(n):
                to = jet * N + j
                r0 = tl.load(right + to * 4)
                r1 = tl.load(right + to * 4 + 1)
                r2 = tl.load(right + to * 4 + 2)
                r3 = tl.load(right + to * 4 + 3)
                g = l0 * r0 + l1 * r1 + l2 * r2 + l3 * r3
                size = tl.abs(g)
                sign = tl.where(g < 0, -1.0, 1.0)
                f0 = sign * _log1p(size * s0, FAST)
                f1 = sign * _log1p(size * s1, FAST)
                f2 = sign * _log1p(size * s2, FAST)
                f3 = sign * _log1p(size * s3, FAST)
                other = tl.load(real + to)
                u = a + tl.load(ends + to * 2 * C + c, mask=column, other=0.0).to(tl.float32)
                u += f0 * w0 + f1 * w1 + f2 * w2 + f3 * w3
                v_j = tl.load(ends + to * 2 * C + C + c, mask=column, other=0.0).to(tl.float32) * other
                d_j = tl.load(grad + to * C + c, mask=column, other=0.0).to(tl.float32) * other
                gate = _sigmoid(u, FAST)
                message = u * gate
                slope = gate + message * (1.0 - gate)
                from_j = v_j * slope
                to_j = d_j * slope
                hears += from_j
                heard += to_j
                d_v += d_j * message
                q0 += f0 * from_j
                q1 += f1 * from_j
                q2 += f2 * from_j
                q3 += f3 * from_j
                if FORM:
                    steep = s0 / (1.0 + size * s0) * w0 + s1 / (1.0 + size * s1) * w1
                    steep += s2 / (1.0 + size * s2) * w2 + s3 / (1.0 + size * s3) * w3
                    along = tl.sum(steep * d * from_j, axis=1, keep_dims=True)
                    back = tl.sum(steep * v * to_j, axis=1, keep_dims=True)
                    dl0 += along * r0
                    dl1 += along * r1
                    dl2 += along * r2
                    dl3 += along * r3
                    dr0 += back * tl.load(left + to * 4)
                    dr1 += back * tl.load(left + to * 4 + 1)
                    dr2 += back * tl.load(left + to * 4 + 2)
                    dr3 += back * tl.load(left + to * 4 + 3)
            d_a = d * hears + v * heard
            d_v *= own
            q0 *= d
            q1 *= d
            q2 *= d
            q3 *= d
        inside = (i < N) & column
        tl.store(d_ends + at * 2 * C + c, d_a.to(d_ends.dtype.element_ty), mask=inside)
        tl.store(d_ends + at * 2 * C + C + c, d_v.to(d_ends.dtype.element_ty), mask=inside)
        part = d_weight + (jet * tl.num_programs(1) + tl.program_id(1)) * 4 * C + c
        tl.store(part, tl.sum(q0, axis=0, keep_dims=True), mask=column)
        tl.store(part + C, tl.sum(q1, axis=0, keep_dims=True), mask=column)
        tl.store(part + 2 * C, tl.sum(q2, axis=0, keep_dims=True), mask=column)
        tl.store(part + 3 * C, tl.sum(q3, axis=0, keep_dims=True), mask=column)
        if FORM:
            side = (tl.program_id(2) * B * N + at) * 4
            tl.store(d_left + side, dl0, mask=i < N)
            tl.store(d_left + side + 1, dl1, mask=i < N)
            tl.store(d_left + side + 2, dl2, mask=i < N)
            tl.store(d_left + side + 3, dl3, mask=i < N)
            tl.store(d_right + side, dr0, mask=i < N)
            tl.store(d_right + side + 1, dr1, mask=i < N)
            tl.store(d_right + side + 2, dr2, mask=i < N)
            tl.store(d_right + side + 3, dr3, mask=i < N)


INPUTS = "Tensor left, Tensor right, Tensor scales, Tensor weight, Tensor ends, Tensor real, Tensor last"


@torch.library.custom_op("gortho::pair_messages", mutates_args=(), schema=f"({INPUTS}) -> Tensor")
def _forward(
    left: Tensor, right: Tensor, scales: Tensor, weight: Tensor, ends: Tensor, real: Tensor, last: Tensor
) -> Tensor:
    batch, points, channels = ends.shape[0], ends.shape[1], ends.shape[2] // 2
    left, right, ends, real = (t.contiguous() for t in (left, right, ends, real))
    out = torch.empty(batch, points, channels, dtype=ends.dtype, device=ends.device)
    rows, columns, warps = tile(FORWARD, points, channels)
    grid = (batch, triton.cdiv(points, rows), triton.cdiv(channels, columns))
    _forward_kernel[grid](
        left, right, scales, weight.contiguous(), ends, real, last, out, points, channels,
        ROWS=rows, COLUMNS=columns, FAST=FAST, num_warps=warps,
    )  # fmt: skip
    return out


@_forward.register_fake
def _forward_shape(
    left: Tensor, right: Tensor, scales: Tensor, weight: Tensor, ends: Tensor, real: Tensor, last: Tensor
) -> Tensor:
    return ends.new_empty(ends.shape[0], ends.shape[1], ends.shape[2] // 2)


@torch.library.custom_op(
    "gortho::pair_messages_backward",
    mutates_args=(),
    schema=f"(Tensor grad, {INPUTS}, bool form) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _backward(
    grad: Tensor,
    left: Tensor,
    right: Tensor,
    scales: Tensor,
    weight: Tensor,
    ends: Tensor,
    real: Tensor,
    last: Tensor,
    form: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch, points, channels = ends.shape[0], ends.shape[1], ends.shape[2] // 2
    left, right, ends, real = (t.contiguous() for t in (left, right, ends, real))
    rows, columns, warps = tile(BACKWARD, points, channels)
    blocks, parts = triton.cdiv(points, rows), triton.cdiv(channels, columns)
    d_ends = torch.empty_like(ends)
    d_weight = torch.empty(batch * blocks, SCALES, channels, dtype=torch.float32, device=ends.device)
    d_left, d_right = (left.new_empty((parts, *left.shape) if form else (1, 1, 1, 1)) for _ in range(2))
    _backward_kernel[(batch, blocks, parts)](
        grad.contiguous(), left, right, scales, weight.contiguous(), ends, real, last,
        d_ends, d_weight, d_left, d_right, batch, points, channels,
        ROWS=rows, COLUMNS=columns, FORM=form, FAST=FAST, num_warps=warps,
    )  # fmt: skip
    sides = (d_left.sum(0), d_right.sum(0)) if form else (d_left[0], d_right[0])
    return *sides, d_weight.sum(0), d_ends


@_backward.register_fake
def _backward_shape(
    grad: Tensor,
    left: Tensor,
    right: Tensor,
    scales: Tensor,
    weight: Tensor,
    ends: Tensor,
    real: Tensor,
    last: Tensor,
    form: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    side = left.new_empty(left.shape if form else (1, 1, 1))
    return side, torch.empty_like(side), torch.empty_like(weight), torch.empty_like(ends)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    form = bool(ctx.needs_input_grad[0] or ctx.needs_input_grad[1])
    d_left, d_right, d_weight, d_ends = torch.ops.gortho.pair_messages_backward(
        grad, *ctx.saved_tensors, form
    )
    return (d_left if form else None), (d_right if form else None), None, d_weight, d_ends, None, None


_forward.register_autograd(_gradients, setup_context=_setup_context)
