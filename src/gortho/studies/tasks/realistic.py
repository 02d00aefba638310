"""Realistic problems: inputs and laws as measurements have them, and near misses without a form.

A law is built in a plain frame, where A = QᵀJQ has eigenvalues ±1 and every invariant is taken in units of its median
size on the samples, so that no law is degenerate on any inputs. Noise comes next, and last the hidden frame x → Mx.
The inputs' own shape, such as a plane or an offset, is one that the form does not share: it is not undone by whitening.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.groups import haar, random_generator
from gortho.reps import as_rep
from gortho.studies.tasks.inputs import INPUTS, uniform
from gortho.studies.tasks.law_families import LAWS, Ingredients, LawFamily, quadratic_form
from gortho.studies.tasks.laws import Law, Task

#: Groups O(p,q) that the problems meet in turn.
GROUPS = ((2, 0), (3, 0), (4, 0), (1, 1), (1, 2), (1, 3), (2, 2))
#: Label noise: its share, and whether it is relative to each label's own size.
NOISES = tuple((share, relative) for share in (0.0, 0.01, 0.02, 0.05) for relative in (False, True))
#: Condition of the hidden frame, units of columns apart.
CONDITION = 3.0
#: The largest ratio of the columns' units.
UNITS = 300.0


def frame_distance(A: Any, B: Any, x: Tensor) -> float:
    """The distance of two forms on data ``x (..., n)``, which no change of units alters (M18).

    The smaller over signs of ‖A_w/‖A_w‖ ∓ B_w/‖B_w‖‖ with A_w = LᵀAL and LLᵀ = E[xxᵀ]: from 0 to √2.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, -1.0]], dtype=torch.float64)
    >>> round(frame_distance([[1, 0], [0, 1]], [[-1, 0], [0, 1]], x), 3)
    1.414
    >>> T = torch.diag(torch.tensor([1.0, 50.0], dtype=torch.float64))     # the second column in other units
    >>> round(frame_distance([[1, 0], [0, 1 / 2500]], [[1, 0], [0, 1 / 5000]], x @ T), 3)
    0.32
    """
    vectors = x.double().reshape(-1, x.shape[-1])
    L = torch.linalg.cholesky(vectors.mT @ vectors / len(vectors))

    def white(form: Any) -> Tensor:
        A = form.matrix if isinstance(form, QuadraticForm) else torch.as_tensor(form, dtype=L.dtype)
        A = L.mT @ A.to(L) @ L
        return A / torch.linalg.matrix_norm(A)

    one, two = white(A), white(B)
    return min(float(torch.linalg.matrix_norm(one - sign * two)) for sign in (1.0, -1.0))


def _plain_form(group: tuple[int, int], inputs: str, generator: torch.Generator) -> Tensor:
    """QᵀJQ with Q Haar, or J itself where the inputs are on its mass shell."""
    p, q = group
    J = torch.tensor([1.0] * p + [-1.0] * q, dtype=torch.float64)
    Q = haar(p + q, (), generator)
    if inputs == "mass shell":
        if p != 1:
            raise ValueError(f"group {group}: particles on their mass shell need a group (1, q)")
        return torch.diag(J)
    A = Q.mT * J @ Q
    return (A + A.mT) / 2


def _spread(y: Tensor) -> Tensor:
    """Standard deviation of the targets, over all entries."""
    return (y - y.mean(0)).square().mean().sqrt()


def disturbed(task: Task, noise: float, relative: bool, outliers: float, generator: torch.Generator) -> Task:
    """Label noise, and outliers: a share of the samples whose error is ten times as large as the labels are."""
    y = task.y
    size = _spread(y)
    if relative:
        size = y.reshape(len(y), -1).square().mean(1).sqrt().reshape(-1, *[1] * (y.ndim - 1))
    shake, gross = torch.randn(2, *y.shape, dtype=y.dtype, generator=generator)
    hit = torch.randperm(len(y), generator=generator)[: round(outliers * len(y))]
    error = noise * size * shake
    error[hit] += (10 * size * gross)[hit]
    return replace(task, y=y + error, clean=y)


def in_hidden_frame(task: Task, inputs: str, seed: int, generator: torch.Generator) -> Task:
    """The task in a random frame and, where the inputs ask for it, in units of their own for each column."""
    name, n = task.name, task.form.n
    task = task.hidden(seed, CONDITION)
    if inputs == "units":
        exponents = uniform(generator, n)
        exponents[torch.randperm(n, generator=generator)[:2]] = torch.tensor([0.0, 1.0], dtype=torch.float64)
        task = task.in_frame(torch.diag(UNITS**exponents))
    return replace(task, name=name)


def drawn(
    seed: int, inputs: str, law: str, group: tuple[int, int], points: int, samples: int
) -> tuple[LawFamily, torch.Generator, Tensor, Tensor]:
    """The family of a law, and what is drawn for it from the seed: a form in plain axes, and inputs."""
    if inputs not in INPUTS or law not in LAWS:
        raise ValueError(
            f"inputs {inputs!r}, law {law!r}: choose inputs from {', '.join(INPUTS)}; laws from {', '.join(LAWS)}"
        )
    if points < LAWS[law].points:
        raise ValueError(f"points = {points}: the law {law!r} needs at least {LAWS[law].points}")
    generator = random_generator(seed)
    A = _plain_form(group, inputs, generator)
    return LAWS[law], generator, A, INPUTS[inputs](samples, points, len(A), generator)


def realistic(
    seed: int,
    inputs: str = "normal",
    law: str = "polynomial",
    group: tuple[int, int] = (3, 0),
    points: int = 1,
    samples: int = 2_000,
    noise: float = 0.0,
    relative: bool = False,
    outliers: float = 0.0,
) -> Task:
    """A law of `LAWS` on inputs of `INPUTS`, with a form of O(p,q) in a hidden frame; all of it drawn from the seed.

    Args:
        noise: standard deviation of the label noise, as a share of that of the clean labels, or, if ``relative``, of
            the size of each label.
        outliers: share of the samples with a gross error.

    >>> task = realistic(3, "mass shell", "mass", (1, 3), points=2, noise=0.02, relative=True)
    >>> task.x.shape, task.y.shape, task.form.group_name
    (torch.Size([2000, 2, 4]), torch.Size([2000]), 'O(1,3)')
    >>> task.assert_law()
    """
    family, generator, A, x = drawn(seed, inputs, law, group, points, samples)
    f = family.build(Ingredients(x, A, partial(quadratic_form, A), generator))
    form = QuadraticForm(A)
    task = Task(
        f"{form.group_name}: {law} of {points} point(s), {inputs}", x, f(x), family.output, form, law=f
    )
    return in_hidden_frame(disturbed(task, noise, relative, outliers, generator), inputs, seed, generator)


#: Near misses: laws whose squares are of another norm, of two forms, with a direction, and labels in a wrong order.
FORMLESS = ("taxicab", "quartic", "two forms", "direction", "shuffled")

_NORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "taxicab": lambda x: x.abs().sum(-1) ** 2,
    "quartic": lambda x: (x**4).sum(-1).sqrt(),
}


def _sum_of_laws(one: Law, two: Law, share: float, x: Tensor) -> Law:
    """The sum of two laws, of whose variance the second has the share."""
    factor = (share / (1 - share)) ** 0.5 * _spread(one(x)) / _spread(two(x))
    return lambda x: one(x) + factor * two(x)


def _other_form(A: Tensor, x: Tensor, generator: torch.Generator) -> Tensor:
    """Of some forms of the same signature, the one that differs most on the samples."""
    sizes = CONDITION ** torch.linspace(-0.5, 0.5, len(A), dtype=A.dtype)
    frames = [left * sizes @ right for left, right in haar(len(A), (8, 2), generator)]
    return max((M.mT @ A @ M for M in frames), key=lambda B: frame_distance(A, B, x))


def directed(function: Law, axis: Tensor, output: str) -> Law:
    """A function with values that are numbers, times the axis for each index of the output."""
    value = torch.ones((), dtype=axis.dtype)
    for _ in as_rep(output).shape(len(axis)):
        value = value[..., None] * axis
    return lambda x: torch.tensordot(function(x)[:, None], value[None], dims=1)


def _along_direction(output: str, x: Tensor, generator: torch.Generator) -> tuple[Law, Tensor]:
    """A wave along a fixed direction s, and s; targets with indices point along s, too."""
    s = haar(x.shape[-1], (), generator)[0]
    size, phase = (x[:, 0] @ s).std(), uniform(generator, 1, low=-0.8, high=0.8)
    return directed(lambda x: (1.5 * x[:, 0] @ s / size + phase).sin(), s, output), s


def formless_realistic(
    seed: int,
    kind: str = "taxicab",
    inputs: str = "normal",
    law: str = "polynomial",
    group: tuple[int, int] = (3, 0),
    points: int = 1,
    samples: int = 2_000,
    noise: float = 0.0,
    relative: bool = False,
    share: float = 0.1,
) -> Task:
    """The same inputs and laws, but made of something that no quadratic form keeps (`FORMLESS`).

    ``taxicab`` and ``quartic``: |x|₁² and |x|₄² in place of q(x). ``two forms``: the sum of two laws of equal
    variance, one a form. ``direction``: a wave along a fixed direction has the ``share`` of the variance.
    ``shuffled``: the labels of a law with a form, in a wrong order. The form stored with the task is the one it was
    made from, where there is one; there is no truth to find.
    """
    family, generator, A, x = drawn(seed, inputs, law, group, points, samples)
    square = _NORMS.get(kind, partial(quadratic_form, A))
    f, s = family.build(Ingredients(x, A, square, generator)), None
    if kind == "two forms":
        B = _other_form(A, x, generator)
        f = _sum_of_laws(f, family.build(Ingredients(x, B, partial(quadratic_form, B), generator)), 0.5, x)
    elif kind == "direction":
        wave, s = _along_direction(family.output, x, generator)
        f = _sum_of_laws(f, wave, share, x)
    elif kind not in FORMLESS:
        raise ValueError(f"kind {kind!r}: choose from {', '.join(FORMLESS)}")
    name = f"no form, {kind}: {law} of {points} point(s), {inputs}"
    task = Task(name, x, f(x), family.output, QuadraticForm(A), law=f, along=s)
    if kind == "shuffled":
        task = replace(task, y=task.y[torch.randperm(samples, generator=generator)], law=None)
    return in_hidden_frame(disturbed(task, noise, relative, 0.0, generator), inputs, seed, generator)


def group_for(seed: int, inputs: str) -> tuple[int, int]:
    """The groups in turn, those that allow a mass shell on it."""
    return (1, 1 + seed // 10 % 3) if inputs == "mass shell" else GROUPS[seed % 7]


def problem(seed: int) -> dict[str, Any]:
    """What `realistic` is to be called with for this seed.

    Inputs, laws and groups run through lists of 10, 17 and 7, which have no common divisor: 1,190 seeds in a row meet
    each combination once, but for the mass shell, which has only the groups that allow it.
    """
    inputs, law = list(INPUTS)[seed % 10], list(LAWS)[seed % 17]
    noise, relative = NOISES[(seed + seed // 40) % 8]
    return {
        "seed": seed,
        "inputs": inputs,
        "law": law,
        "group": group_for(seed, inputs),
        "points": max(1 + seed % 3, LAWS[law].points),
        "noise": noise,
        "relative": relative,
        "outliers": 0.01 if seed % 11 in (3, 8) else 0.0,
    }


def formless_problem(seed: int) -> dict[str, Any]:
    """What `formless_realistic` is to be called with for this seed: as `problem`, with every kind in turn.

    Where inputs lie nearly along one line, any norm is nearly that of a form, and any two forms nearly agree: such
    inputs meet the last two kinds only.
    """
    chosen = problem(seed)
    del chosen["outliers"]
    slender = ("nearly planar", "mass shell") if sum(chosen["group"]) == 2 else ()
    kinds = FORMLESS[3:] if chosen["inputs"] in ("correlated", *slender) else FORMLESS
    kind, share = kinds[(seed + seed // 10) % len(kinds)], (0.03, 0.1, 0.3)[seed // 5 % 3]
    return {**chosen, "kind": kind, "share": share}
