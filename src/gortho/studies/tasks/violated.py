"""Nearly symmetric laws: how far each is from keeping its form is known, so that intervals of the defect can be tested.

Inputs come with their mirror images, x and -x alike often. The violation has the other parity than the law, so no
function that respects a form can express any part of it, and its share of the variance is the defect (M14) itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.groups import haar
from gortho.reps import as_rep
from gortho.studies.tasks.inputs import INPUTS
from gortho.studies.tasks.law_families import LAWS, Ingredients, quadratic_form
from gortho.studies.tasks.laws import Law, Task
from gortho.studies.tasks.realistic import directed, disturbed, drawn, group_for, in_hidden_frame

#: Shares of the law's variance that the form cannot express.
SHARES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
#: Functions of the coordinate along a direction, in units of its spread: odd ones, and even ones for vectors.
ODD: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda t: t,
    "wave": lambda t: torch.sin(1.5 * t),
    "step": lambda t: torch.tanh(3 * t),
    "cubic": lambda t: t**3 / (1 + t**2),
}
EVEN: dict[str, Callable[[Tensor], Tensor]] = {
    "constant": torch.ones_like,
    "wave": lambda t: torch.cos(1.5 * t),
    "ridge": lambda t: 1 / (1 + t**2),
}


def violation(output: str, kind: str, x: Tensor, A: Tensor, generator: torch.Generator) -> tuple[Law, Tensor]:
    """A function of one coordinate sᵀx of the first vector, and s; targets with indices point along another direction.

    Where the function is constant, that direction is all that breaks the law: s is then A times it.
    """
    s, axis = haar(x.shape[-1], (2,), generator)[:, 0]
    size = (x[:, 0] @ s).square().mean().sqrt()
    indices = as_rep(output).shape(x.shape[-1])
    # Vectors change their sign with x, matrices do not.
    function = (EVEN if len(indices) % 2 else ODD)[kind]
    along = A @ axis if kind == "constant" else s
    return directed(lambda x: function(x[:, 0] @ s / size), axis, output), along


def violated(
    seed: int,
    share: float,
    kind: str = "wave",
    inputs: str = "normal",
    law: str = "polynomial",
    group: tuple[int, int] = (3, 0),
    points: int = 1,
    samples: int = 2_000,
    noise: float = 0.0,
    relative: bool = False,
) -> Task:
    """A law of which ``share`` of the variance, on these samples, is a violation that no form can express.

    >>> task = violated(0, 0.01)
    >>> task.x.shape, task.y.shape
    (torch.Size([2000, 1, 3]), torch.Size([2000]))
    """
    family, generator, A, x = drawn(seed, inputs, law, group, points, samples)
    x = x * (1 - 2 * torch.randint(2, (samples, 1, 1), generator=generator))
    exact = family.build(Ingredients(x, A, partial(quadratic_form, A), generator))
    broken, s = violation(family.output, kind, x, A, generator)
    y, g = exact(x), broken(x)
    size = (y - y.mean(0)).square().mean()
    factor = (share / (1 - share) * size / g.square().mean()).sqrt()
    name = f"{QuadraticForm(A).group_name} broken by {share:.1%}: {law}, {inputs}"
    task = Task(name, x, y + factor * g, family.output, QuadraticForm(A), along=s)
    return replace(
        in_hidden_frame(disturbed(task, noise, relative, 0.0, generator), inputs, seed, generator), law=None
    )


def violated_problem(seed: int) -> dict[str, Any]:
    """What `violated` is to be called with for this seed; waves over several periods are left out."""
    laws = [name for name in LAWS if name not in ("wave",)]
    law, inputs = laws[seed % len(laws)], list(INPUTS)[seed % 9]
    kinds = list(EVEN if len(as_rep(LAWS[law].output).shape(2)) % 2 else ODD)
    return {
        "seed": seed,
        "share": SHARES[(seed + seed // 6) % 6],
        "kind": kinds[seed // 3 % len(kinds)],
        "inputs": inputs,
        "law": law,
        "group": group_for(seed, inputs),
        "points": max(1 + seed % 2, LAWS[law].points),
        "noise": (0.0, 0.02)[seed // 2 % 2],
    }
