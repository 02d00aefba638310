"""Is it really equivariant? Public checks for any callable, in float64, relative to the scale of the output (M8)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gortho import checks
from gortho.forms import QuadraticForm
from gortho.reps import Rep, Vector, as_rep
from gortho.symmetry import Symmetry


def equivariance_error(
    f: Callable[..., Any],
    form: QuadraticForm | Symmetry | str,
    rep_in: str | Rep | Sequence[str | Rep] = "vector",
    rep_out: str | Rep = "scalar",
    x: Any = None,
    *,
    samples: int = 16,
    max_boost: float = 1.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    arguments: tuple[Any, ...] = (),
    output_space: int = 0,
) -> float:
    """max ‖f(gx) - ρ(g) f(x)‖ / scale over random g ∈ O(A), or of another symmetry, and samples x.

    The scale for each g is the root mean square over the samples of the larger of ‖f(gx)‖ and ‖ρ(g) f(x)‖, so
    the result does not depend on the units of the output. A torch module is copied and run in ``dtype``, float64 by
    default, so the number measures the function, not its rounding.

    Args:
        f: any callable taking ``x`` (and ``arguments``), such as a network, a simulator, a fitted estimator's
            predict; it may return a tensor or an array.
        form: the form of the group O(A), or a symmetry (`gortho.symmetry`), or its name.
        rep_in: how one input vector transforms; points and batch are leading axes of ``x``. A list is for each of the
            points, ``["vector", "pseudovector"]``.
        rep_out: how the output transforms.
        x: inputs, ``(batch, ..., n)``.
        samples: number of random group elements, from every component.
        max_boost: largest rapidity (see `OrthogonalGroup.sample`).
        arguments: what ``f`` takes beside ``x``; tensors of floating-point numbers are converted to ``dtype``.
        output_space: with several spaces, the one that the output transforms with.

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
    symmetry, target = Symmetry.of(form), as_rep(rep_out)
    n = symmetry.n if len(symmetry.forms) < 2 else symmetry.dims[output_space]
    x = checks.as_tensor(x, "x").detach().to(torch.float64)
    checks.require_finite(x, "x")
    move = _mover(symmetry, rep_in, x)
    if isinstance(f, nn.Module):
        f = copy.deepcopy(f).to(dtype).eval()
    given = tuple(  # masks and indices stay what they are
        a.to(dtype) if isinstance(a, Tensor) and a.is_floating_point() else a for a in arguments
    )

    def run(inputs: Tensor) -> Tensor:
        with torch.no_grad():
            y = torch.as_tensor(f(inputs.to(dtype), *given))
        y, expected = y.detach().to("cpu", torch.float64), (len(x), *target.shape(n))
        if tuple(y.shape) != expected:
            raise ValueError(
                f"f returned shape {tuple(y.shape)}, but {target} values of {len(x)} inputs are {expected}"
            )
        checks.require_finite(y, "f(x)")
        return y

    value = run(x)
    worst = 0.0
    for g in symmetry.sample(samples, seed, max_boost):
        moved = run(move(g))
        expected = target.act(g if g.ndim == 2 else g[output_space, :n, :n], value)
        # Parts of a direct sum may have different units, so each is measured by its own scale.
        worst = max(
            worst, *(_relative(m, e) for m, e in zip(*(target.split(v, n) for v in (moved, expected))))
        )
    return worst


def _mover(
    symmetry: Symmetry, rep_in: str | Rep | Sequence[str | Rep], x: Tensor
) -> Callable[[Tensor], Tensor]:
    """How an element of the group moves the inputs."""
    if isinstance(rep_in, (str, Rep)):
        source = as_rep(rep_in)
        shape = source.shape(symmetry.n)
        if x.ndim <= len(shape) or tuple(x.shape[x.ndim - len(shape) :]) != shape or 0 in x.shape:
            raise ValueError(
                f"x has shape {tuple(x.shape)}: give a batch (batch, ...) of {source} values, each {shape}"
            )
        if symmetry.origin is None and len(symmetry.forms) == 1:
            return lambda g: source.act(g, x)
        each = [source] * (x.shape[-2] if x.ndim > 2 else 1)
    else:
        each = [as_rep(one) for one in rep_in]
        if x.ndim < 3 or x.shape[-2:] != (len(each), symmetry.n):
            raise ValueError(
                f"x has shape {tuple(x.shape)}, but rep_in names {len(each)} vectors: give (batch, {len(each)}, "
                f"{symmetry.n})"
            )
    if any(rep.parts[0].even != Vector() or len(rep.parts) > 1 for rep in each):
        raise ValueError(f"rep_in = {rep_in!r}: here inputs are vectors or pseudovectors")
    axial = [i for i, rep in enumerate(each) if rep.parts[0].odd]
    return lambda g: symmetry.act(g, x if x.ndim > 2 else x[:, None], axial).reshape(x.shape)


def _relative(moved: Tensor, expected: Tensor) -> float:
    size = expected.abs().max().clamp_min(torch.finfo(expected.dtype).tiny)  # squares then stay in range
    moved, expected = moved / size, expected / size
    difference, a, b = (
        (v.flatten(1) if v.ndim > 1 else v[:, None]).norm(dim=1) for v in (moved - expected, moved, expected)
    )
    scale = torch.maximum(a, b).square().mean().sqrt()
    return float(difference.max() / scale) if float(scale) > 0 else 0.0


def assert_equivariant(
    f: Callable[..., Any],
    form: QuadraticForm | Symmetry | str,
    *args: Any,
    tolerance: float = 1e-10,
    **options: Any,
) -> None:
    """Raise AssertionError unless `equivariance_error` (same arguments) is at most ``tolerance``."""
    error = equivariance_error(f, form, *args, **options)
    if not error <= tolerance:
        symmetry = Symmetry.of(form)
        raise AssertionError(
            f"not equivariant under {symmetry}: relative error {error:.3g} > {tolerance:.3g}; the form is "
            + " and ".join(map(str, symmetry.forms))
        )
