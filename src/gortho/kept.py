"""What a law preserves: its Lie algebra among all linear maps, and the tensors that this algebra preserves (M17).

A law f is equivariant under the maps exp(tX) if Df(x)[Xx] = dρ(X) f(x), which is linear in X: the null space over all
of gl(n) is the Lie algebra g (M6 without a form). The tensors that g preserves are also null spaces: symmetric and skew
forms B with XᵀB + BX = 0, vectors v with Xv = 0, covectors w with Xᵀw = 0, for all X in g. Scaling is a row of its own:
f(λx) = λᵐf(x) means Df(x)[x] = m f(x). With n² unknowns it is weaker under noise than the search for a form, but it
shows what a law without a form preserves instead.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho import checks
from gortho.discovery.models import coordinates
from gortho.discovery.spectral import InfinitesimalLaw
from gortho.groups import skew_basis, symmetric_basis
from gortho.objectives.learners import KernelRidge, Table
from gortho.reps import DirectSum, Rep, as_rep
from gortho.samples.checks import variable_names
from gortho.samples.door import MIN_SAMPLES, enter
from gortho.samples.frame import Frame
from gortho.samples.values import power_of_two

#: A generator is of the algebra when the law violates it by less than this share, for a function …
EXACT = 1e-4
#: … and for a smooth fit to data, whose derivatives are not exact.
FITTED = 0.05
#: Violations below this are rounding.
ROUNDING = 1e-9
#: The first generator that is not must be violated this many times more.
MIN_GAP = 2.5
#: A fit that leaves more than this share of the variance tells nothing.
MAX_UNEXPLAINED = 0.05
#: Samples that are looked at, at most.
MAX_SAMPLES = 2_000
#: A fit to data is looked at where it has neighbours: at this share of the samples, those nearest to zero.
INNER = 0.8
#: Values of a function beyond the n² unknowns, at least.
SPARE = 20
NO_TORCH = "give a differentiable torch function, or the targets y of X"
#: The algebra holds the identity when it holds this share of its length.
IDENTITY = 0.99
#: Coordinates of one tensor below this share of the largest are not printed.
SMALL = 0.05


@dataclass(frozen=True, eq=False)
class Row:
    """One kind of tensor: how many of them the algebra preserves.

    Attributes:
        name: the kind of tensor.
        count: how many independent ones there are.
        violation: how much the last of them is violated, from 0 to about 1; if there are none, the next best.
        gap: how many times more the next is violated.
        tensors: a basis, in the coordinates of x ``(count, …)``.
        verdict: the answer in words.
    """

    name: str
    count: int
    violation: float
    gap: float
    tensors: np.ndarray
    verdict: str

    @property
    def kept(self) -> bool:
        """Whether there are any."""
        return self.count > 0


@dataclass(frozen=True, eq=False)
class Kept:
    """The table of what a law preserves, returned by `keeps`.

    Attributes:
        algebra: generators of the linear maps that the law respects.
        symmetric, skew, vectors, covectors: tensors that all of them preserve.
        scaling: the degree m of f(λx) = λᵐf(x) in ``degree``, if there is one.
        unexplained: fraction of the variance that the fit to data leaves unexplained; None for a function.
    """

    names: tuple[str, ...]
    algebra: Row
    symmetric: Row
    skew: Row
    vectors: Row
    covectors: Row
    scaling: Row
    degree: float | None
    unexplained: float | None = None
    notice: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The table, row by row."""
        return self.algebra, self.symmetric, self.skew, self.vectors, self.covectors, self.scaling

    def __str__(self) -> str:
        lines = [f"{'what':<16} {'kept':>4} {'violation':>10} {'gap':>8}  verdict"]
        for row in self.rows:
            gap = "—" if not np.isfinite(row.gap) else f"{min(row.gap, 1e6):.2g}"
            violation = "—" if np.isnan(row.violation) else f"{row.violation:.1e}"
            lines.append(f"{row.name:<16} {row.count:>4} {violation:>10} {gap:>8}  {row.verdict}")
        if self.unexplained is not None:
            lines.append(
                f"by a smooth fit, which leaves {100 * self.unexplained:.2g} % of the variance unexplained"
            )
        return "\n".join([*lines, f"note: {self.notice}"] if self.notice else lines)


def keeps(
    law: Callable[[Tensor], Tensor] | Any,
    X: Any,
    output: str | Rep = "scalar",
    *,
    names: Sequence[str] | None = None,
    seed: int = 0,
) -> Kept:
    """What a law preserves: its Lie algebra, the forms, vectors and covectors that this preserves, its degree (M17).

    Args:
        law: a differentiable torch function of batches ``X (N, n)`` or ``(N, p, n)``, or the targets y of X. It is
            called in float64; a module is copied for that.
        X: points at which the law is evaluated; for a function, a few hundred are enough.
        output: how the values transform.

    >>> X = torch.randn(300, 3, dtype=torch.float64)
    >>> table = keeps(lambda x: x.square().sum(1) ** 2 + x[:, 2] ** 4, X, names=["x", "y", "z"])
    >>> table.algebra.count, table.vectors.verdict, table.degree
    (1, 'kept: (0, 0, 1)', 4.0)
    """
    if names is not None and len(names) != np.shape(X)[-1]:
        raise ValueError(
            f"{len(names)} names {list(names)} for {np.shape(X)[-1]} coordinates: give one for each"
        )
    if callable(law):
        if isinstance(law, torch.nn.Module):  # the points are of float64, and slopes need it
            law = copy.deepcopy(law).double().eval()
        infinitesimal, frame = _of_function(law, X, as_rep(output))
        unexplained = None
    else:
        infinitesimal, frame, unexplained = _of_samples(law, X, output, seed)
    called = variable_names(infinitesimal.n) if names is None else tuple(names)
    return _table(infinitesimal, frame, called, unexplained)


def _of_function(f: Callable[[Tensor], Tensor], X: Any, rep: Rep) -> tuple[InfinitesimalLaw, Frame]:
    """The infinitesimal law of a function, in the frame of X: g(z) = ρ(W) f(W⁻¹z)."""
    x = checks.as_tensor(X, "X").double()[:MAX_SAMPLES]
    checks.require_finite(x, "X")
    if x.ndim not in (2, 3) or 0 in x.shape or x.shape[-1] < 2:
        raise ValueError(f"X has shape {tuple(x.shape)}: give (N, n) or (N, p, n), with n of two or more")
    expected = (len(x), *rep.shape(x.shape[-1]))
    least = x.shape[-1] ** 2 + SPARE
    if math.prod(expected) < least:
        raise ValueError(
            f"{len(x)} samples of {math.prod(expected[1:])} values are too few: {x.shape[-1]} coordinates need "
            f"{least} values in all"
        )
    unit = power_of_two(_values(f, x, rep, expected))
    frame = Frame.of(x)
    W, back = frame.W, frame.inverse

    def inside(z: Tensor) -> Tensor:
        y = f(z @ back.mT).double() / unit  # here, so that slopes stay in range
        return rep.act(W.expand(len(y), *W.shape) if isinstance(rep, DirectSum) else W, y)

    return InfinitesimalLaw(inside, x @ W.mT, rep).in_own_units(), frame


def _values(f: Callable[[Tensor], Tensor], x: Tensor, rep: Rep, expected: tuple[int, ...]) -> Tensor:
    """The values of a law; refuses what is no differentiable torch function with finite values of this shape."""
    try:
        y = f(x.clone().requires_grad_())
    except RuntimeError as error:
        if "Double" in str(error):  # and Float, that of its weights
            raise ValueError(f"the law is evaluated in float64: give model.double() ({error})") from None
        if "requires grad" not in str(error):
            raise
        raise ValueError(f"{NO_TORCH} ({error})") from None
    if not isinstance(y, Tensor):
        raise ValueError(f"the law returned {type(y).__name__}: {NO_TORCH}")
    if tuple(y.shape) != expected:
        raise ValueError(
            f"the law returned {tuple(y.shape)}, but {rep} values of {len(x)} samples have shape {expected}"
        )
    if not y.isfinite().all():
        raise ValueError(
            f"the law is not finite in {int((~y.isfinite()).reshape(len(y), -1).any(1).sum())} of {len(y)} samples: "
            "leave these points out"
        )
    if not y.requires_grad and (y != y[0]).any():
        raise ValueError(f"the values of the law have no derivatives: {NO_TORCH}")
    return y.detach().double()


def _of_samples(y: Any, X: Any, output: str | Rep, seed: int) -> tuple[InfinitesimalLaw, Frame, float]:
    """The infinitesimal law of a smooth fit to samples in their frame, and the unexplained fraction of the variance."""
    samples, _ = enter(X, y, output, max_samples=MAX_SAMPLES, seed=seed)
    if samples.n < 2 or len(samples) < MIN_SAMPLES:
        raise ValueError(
            f"{len(samples)} samples of {samples.n} coordinates: give at least {MIN_SAMPLES} of two or more"
        )
    frame, rep = Frame.of(samples.x), samples.rep
    inside = samples.in_units(1.0, samples.units[1]).in_frame(frame)
    parts = rep.split(inside.y, inside.n)
    inside = inside.with_targets(rep.join([part / power_of_two(part) for part in parts]))
    train, held_out = inside.split([len(samples) - len(samples) // 5, len(samples) // 5], seed)
    known, asked = (Table.of(coordinates(part), part) for part in (train, held_out))
    fit = KernelRidge.fit(known, asked)
    size = inside.x.square().sum((1, 2))
    Z = inside.x[size <= size.quantile(INNER)]
    shape = samples.y.shape[1:]
    law = InfinitesimalLaw(lambda z: fit(z.flatten(1)).reshape(-1, *shape), Z, rep)
    return law.in_own_units(), frame, asked.error(fit(asked.inputs)) / max(held_out.variance, 1e-300)


def _table(law: InfinitesimalLaw, frame: Frame, names: tuple[str, ...], unexplained: float | None) -> Kept:
    n, share = law.n, EXACT if unexplained is None else FITTED
    told = unexplained is None or unexplained <= MAX_UNEXPLAINED
    basis = torch.eye(n * n, dtype=torch.float64).reshape(-1, n, n)
    parts, sizes = zip(*(law.violation(generator[None]) for generator in basis))
    size = max(float(np.mean(sizes)), 1e-300) ** 0.5
    M = torch.stack(parts, dim=1) / size
    values, algebra = _null(M, basis, share if told else 0.0)
    scaling, degree = _scaling(law, share if told else 0.0)
    pure = _without_scaling(algebra)
    back = frame.inverse
    W, rows = frame.W, []
    kinds = (
        ("symmetric form", symmetric_basis(n), lambda X, B: X.mT @ B + B @ X, lambda B: W.mT @ B @ W),
        ("skew form", skew_basis(n), lambda X, B: X.mT @ B + B @ X, lambda B: W.mT @ B @ W),
        ("vector", torch.eye(n).double(), lambda X, v: (X @ v[..., None])[..., 0], lambda v: v @ back.mT),
        ("covector", torch.eye(n).double(), lambda X, v: (X.mT @ v[..., None])[..., 0], lambda v: v @ W),
    )
    for name, tensors, act, out in kinds:
        if not len(pure):
            none = np.zeros((0, *tensors.shape[1:]))
            rows.append(Row(name, 0, np.nan, np.nan, none, "not asked: no generators"))
            continue
        moved = torch.stack([act(pure, tensor).flatten() for tensor in tensors], dim=1) / len(pure) ** 0.5
        sigma, kept = _null(moved, tensors, share if told else EXACT)
        rows.append(_row(name, sigma, out(kept).numpy()))
    first = _row("generator", values, (back @ algebra @ W).numpy())
    notice = "" if told else "the smooth fit is too poor to tell: give more samples, or less noisy ones"
    symmetric, skew, vectors, covectors = rows
    return Kept(names, first, symmetric, skew, vectors, covectors, scaling, degree, unexplained, notice)


def _without_scaling(algebra: Tensor) -> Tensor:
    """The traceless part of an algebra that contains the identity: scaling preserves no tensor, and has its own row."""
    n = algebra.shape[-1]
    # Of orthonormal generators: the identity's coordinates.
    traces = algebra.diagonal(dim1=1, dim2=2).sum(1) / n**0.5
    if float(traces.norm()) < IDENTITY:
        return algebra
    return torch.einsum("kd,dab->kab", torch.linalg.svd(traces[None])[2][1:], algebra)


def _null(M: Tensor, basis: Tensor, share: float) -> tuple[np.ndarray, Tensor]:
    """Singular values, ascending, and the combinations of the basis that M sends nearly to zero.

    They end at the widest gap after values below ``share``; without a gap of `MIN_GAP` there are none.
    """
    _, sigma, V = torch.linalg.svd(torch.linalg.qr(M, mode="r")[1], full_matrices=True)
    values = torch.zeros(len(basis), dtype=torch.float64)
    values[: len(sigma)] = sigma
    values, V = values.flip(0), V.flip(0)
    floor = values.clamp_min(ROUNDING)
    gaps = torch.cat([floor[1:] / floor[:-1], torch.tensor([torch.inf])])
    gaps = torch.where(values < share, gaps, 0.0)
    count = int(gaps.argmax()) + 1 if float(gaps.max()) >= MIN_GAP else 0
    V = V[:count] * V[:count].gather(1, V[:count].abs().argmax(1, keepdim=True)).sign()  # one of both signs
    return values.numpy(), torch.einsum("kb,b...->k...", V, basis)


def _row(name: str, values: np.ndarray, tensors: np.ndarray) -> Row:
    count = len(tensors)
    floor = np.maximum(values, ROUNDING)
    violation = float(values[max(count - 1, 0)])
    gap = float(floor[count] / floor[count - 1]) if 0 < count < len(values) else np.nan
    if not count:
        verdict = "none kept"
    elif name == "generator":
        verdict = f"the algebra has dimension {count}"
    elif count > 1:
        verdict = f"{count} kept, and their combinations"
    elif tensors.ndim == 2:
        v = tensors[0] / tensors[0][np.abs(tensors[0]).argmax()]
        verdict = "kept: (" + ", ".join("0" if abs(c) < SMALL else f"{c:.2g}" for c in v) + ")"
    else:
        rank = int(np.linalg.matrix_rank(tensors[0] / np.abs(tensors[0]).max(), tol=SMALL))
        verdict = f"one kept, of rank {rank}"
    return Row(name, count, violation, gap, tensors, verdict)


def _scaling(law: InfinitesimalLaw, share: float) -> tuple[Row, float | None]:
    """The degree m by least squares of Df(x)[x] = m f(x)."""
    left = torch.einsum("z...pa,zpa->z...", law.J, law.points).flatten()
    y = law.y.flatten()
    m = float(left @ y / (y @ y).clamp_min(1e-300))
    size = float(left.norm() + abs(m) * y.norm()) or 1.0
    if float(left.norm()) < ROUNDING * float(y.norm()):
        size, m = float(y.norm()), 0.0
    violation = float((left - m * y).norm()) / size
    kept = violation < share
    degree = round(m, 2) + 0.0 if kept else None
    verdict = f"f(λx) = λᵐf(x) with m = {degree:g}" if kept else "no degree"
    return Row("scaling", int(kept), violation, np.nan, np.zeros(0), verdict), degree
