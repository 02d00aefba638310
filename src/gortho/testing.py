"""Is it really equivariant? Public checks for any callable, in float64, relative to the output's own scale (M8)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from gortho import checks
from gortho.forms import QuadraticForm
from gortho.reps import DirectSum, Rep, as_rep


def equivariance_error(
    f: Callable[..., Any],
    form: QuadraticForm,
    rep_in: str | Rep = "vector",
    rep_out: str | Rep = "scalar",
    x: Any = None,
    *,
    samples: int = 16,
    max_boost: float = 1.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    arguments: tuple = (),
) -> float:
    """max ‖f(gx) - ρ(g) f(x)‖ / scale over random g ∈ O(A) and samples x.

    The scale for each g is the root mean square over the samples of the larger of ‖f(gx)‖ and ‖ρ(g) f(x)‖, so
    the result does not depend on the units of the output. A torch module is copied and run in ``dtype``, float64 by
    default: then the number speaks of the function, not of its rounding.

    Args:
        f: any callable taking ``x`` (and ``arguments``), such as a network, a simulator, a fitted estimator's
            predict; it may return a tensor or an array.
        rep_in: how one input vector transforms; points and batch are leading axes of ``x``.
        rep_out: how the output transforms.
        x: inputs, ``(batch, ..., n)``.
        samples: number of random group elements, from every component.
        max_boost: largest rapidity (see `OrthogonalGroup.sample`).

    >>> import gortho, torch
    >>> form = gortho.QuadraticForm.minkowski()
    >>> x = torch.randn(50, 4, dtype=torch.float64)
    >>> equivariance_error(lambda x: form(x), form, "vector", "scalar", x) < 1e-12
    True
    >>> equivariance_error(lambda x: x.norm(dim=-1), form, "vector", "scalar", x) > 0.1
    True
    """
    if x is None:
        raise ValueError("x is missing: give inputs to test on, shape (batch, ..., n)")
    source, target = as_rep(rep_in), as_rep(rep_out)
    x = checks.as_tensor(x, "x").detach().to(torch.float64)
    checks.require_finite(x, "x")
    shape = source.shape(form.n)
    if x.ndim <= len(shape) or tuple(x.shape[x.ndim - len(shape) :]) != shape or 0 in x.shape:
        raise ValueError(
            f"x has shape {tuple(x.shape)}: give a batch (batch, ...) of {source} values, each {shape}"
        )
    if isinstance(f, nn.Module):
        f = copy.deepcopy(f).to(dtype).eval()

    def run(inputs: Tensor) -> Tensor:
        with torch.no_grad():
            y = f(inputs.to(dtype), *(a.to(dtype) if isinstance(a, Tensor) else a for a in arguments))
        y = torch.as_tensor(y).detach().to("cpu", torch.float64)
        expected = (len(x), *target.shape(form.n))
        if tuple(y.shape) != expected:
            raise ValueError(
                f"f returned shape {tuple(y.shape)}, but {target} values of {len(x)} inputs are {expected}"
            )
        checks.require_finite(y, "f(x)")
        return y

    value = run(x)
    worst = 0.0
    for g in form.group().sample(samples, seed, max_boost):
        moved, expected = run(source.act(g, x)), target.act(g, value)
        worst = max(
            worst, *(_relative(m, e) for m, e in zip(*(_parts(v, target, form.n) for v in (moved, expected))))
        )
    return worst


def _parts(y: Tensor, rep: Rep, n: int) -> list[Tensor]:
    # Parts of a direct sum may have different units, so each is measured by its own scale.
    return rep.split(y, n) if isinstance(rep, DirectSum) else [y]


def _relative(moved: Tensor, expected: Tensor) -> float:
    size = expected.abs().max().clamp_min(torch.finfo(expected.dtype).tiny)  # squares then stay in range
    moved, expected = moved / size, expected / size
    difference, a, b = (
        (v.flatten(1) if v.ndim > 1 else v[:, None]).norm(dim=1) for v in (moved - expected, moved, expected)
    )
    scale = torch.maximum(a, b).square().mean().sqrt()
    return float(difference.max() / scale) if float(scale) > 0 else 0.0


def assert_equivariant(
    f: Callable[..., Any], form: QuadraticForm, *args: Any, tolerance: float = 1e-10, **options: Any
) -> None:
    """Raise AssertionError unless `equivariance_error` (same arguments) is at most ``tolerance``."""
    error = equivariance_error(f, form, *args, **options)
    if not error <= tolerance:
        raise AssertionError(
            f"not equivariant under {form.group_name}: relative error {error:.3g} > {tolerance:.3g}; the form is {form}"
        )
