"""Labels that keep a form: classes by the value of q, sharp or blurred, in a hidden frame; and some that do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.groups import random_generator
from gortho.studies.tasks.realistic import CONDITION, GROUPS

#: Names of the classes.
LABELS = ("alpha", "beta", "gamma")
#: How sharply classes are told apart: slopes of the logits in units of q's median deviation.
SHARPNESS = (2.0, 5.0, 20.0)


@dataclass(frozen=True)
class Labelled:
    """Vectors ``(N, points, n)``, their labels, and the form that decides on them, if one does."""

    x: Tensor
    y: np.ndarray
    form: QuadraticForm
    output: str = "class"


def random_classes(
    seed: int,
    kind: str = "levels",
    group: tuple[int, int] = (3, 0),
    points: int = 1,
    classes: int = 2,
    sharpness: float = 5.0,
    rare: bool = False,
    samples: int = 2_000,
) -> Labelled:
    """Labels drawn from class probabilities that depend on q of the sum of the vectors.

    ``levels``: on q alone; ``coordinate``: on a coordinate, too; ``shuffled``: labels in a wrong order. ``rare`` moves
    the level so that one class of two has few samples.

    >>> task = random_classes(0, classes=3)
    >>> task.x.shape, sorted(set(task.y))
    (torch.Size([2000, 1, 3]), [np.str_('alpha'), np.str_('beta'), np.str_('gamma')])
    """
    generator = random_generator(seed)
    form = QuadraticForm.random(*group, condition=CONDITION, seed=seed)
    x = torch.randn(samples, points, sum(group), dtype=torch.float64, generator=generator)
    q = form.norm(x.sum(1))
    u = (q - q.median()) / (q - q.median()).abs().median()
    if kind == "coordinate":
        u = 0.5 * u + 2 * x[:, 0, 0]
    logits = [torch.zeros_like(u), sharpness * (u - (1.5 if rare else 0.0))]
    if classes == 3:
        logits = [-sharpness * u, torch.full_like(u, sharpness / 2), sharpness * u]
    codes = torch.multinomial(torch.stack(logits, 1).softmax(1), 1, generator=generator)[:, 0].numpy()
    labels = np.array(LABELS)[codes]
    if kind == "shuffled":
        labels = np.random.default_rng(seed).permutation(labels)
    return Labelled(x, labels, form)


def class_problem(seed: int) -> dict[str, Any]:
    """What `random_classes` is to be called with for this seed; every fifth has no form."""
    classes = 2 + seed // 2 % 2
    return {
        "seed": seed,
        "kind": "levels" if seed % 5 else ("shuffled", "coordinate")[seed // 5 % 2],
        "group": GROUPS[seed % 7],
        "points": 1 + seed % 2,
        "classes": classes,
        "sharpness": SHARPNESS[seed // 3 % 3],
        "rare": classes == 2 and seed % 4 == 1,
    }
