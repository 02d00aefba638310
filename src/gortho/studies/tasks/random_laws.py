"""Random problems, with a form and without one: what discovery is measured on."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.groups import random_generator
from gortho.nn.invariants import packed
from gortho.pairings import Metric
from gortho.reps import as_rep
from gortho.studies.tasks.laws import Task

#: Ways in which coefficients depend on the invariants.
SHAPES = ("polynomial", "network", "waves")


def random_functions(u: Tensor, count: int, shape: str, generator: torch.Generator) -> Tensor:
    """``count`` random functions of standardised invariants ``u (N, m)``, giving ``(N, count)``."""

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, dtype=u.dtype, generator=generator)

    m = u.shape[1]
    if shape == "polynomial":
        quadratic = torch.einsum("ni,ijc,nj->nc", u, normal(m, m, count) / m, u)
        return normal(count) + u @ normal(m, count) / m**0.5 + quadratic
    if shape == "network":
        hidden = torch.tanh(u @ normal(m, 16) / m**0.5 + 0.5 * normal(16))
        return hidden @ normal(16, count) / 4 + normal(count)
    phases = torch.sin(u @ normal(m, 4) / m**0.5 + 3 * torch.rand(4, dtype=u.dtype, generator=generator))
    return phases @ normal(4, count) / 2 + u @ normal(m, count) / m**0.5


def random_law(
    form: QuadraticForm,
    points: int = 1,
    output: str = "scalar",
    samples: int = 2_000,
    noise: float = 0.0,
    shape: str = "network",
    seed: int = 0,
) -> Task:
    """y = Σ c(Gram) · (products of x_i and metric), with random coefficient functions and x ~ N(0, I).

    ``noise`` is the standard deviation of the label noise as a share of that of the clean labels.
    """
    generator = random_generator(seed)
    x = torch.randn(samples, points, form.n, dtype=torch.float64, generator=generator)
    gram = packed(form.gram(x))
    u = (gram - gram.mean(0)) / gram.std(0)
    rep = as_rep(output)
    metric, lowered = Metric.of(form), x @ form.matrix
    parts = []
    for part in rep.parts:
        coefficients = []
        for term in part.terms(metric.upper is None):
            legs = len(term.legs)
            values = random_functions(u, points**legs, shape, generator)
            coefficients.append(values.reshape(samples, *(points,) * legs))
        parts.append(part.assemble(coefficients, x, lowered, metric))
    y = rep.join(parts)
    y = y + noise * y.std() * torch.randn(y.shape, dtype=torch.float64, generator=generator)
    return Task(f"{form.group_name} {output}, {points} point(s), {shape}", x, y, output, form)


#: Scalar targets that respect no quadratic form.
FORMLESS = ("network", "taxicab", "maximum", "quartic", "permutation", "noise")


def formless(
    kind: str, n: int = 3, points: int = 1, samples: int = 2_000, noise: float = 0.0, seed: int = 0
) -> Task:
    """Data that no quadratic form explains: random networks, |x|₁, max|x_i|, Σx_i⁴, permutation symmetry, noise.

    The form stored with the task is a placeholder: there is no truth to find.
    """
    generator = random_generator(seed)
    x = torch.randn(samples, points, n, dtype=torch.float64, generator=generator)
    if kind == "network":
        flat = x.flatten(1)
        y = random_functions(flat, 1, "network", generator)[:, 0]
    elif kind == "taxicab":
        y = x.abs().sum(-1).prod(-1)
    elif kind == "maximum":
        y = x.abs().amax(-1).sum(-1)
    elif kind == "quartic":
        y = (x**4).sum((-1, -2))
    elif kind == "permutation":
        y = torch.sin(x).sum((-1, -2)) + x.prod(-1).sum(-1) + (x**3).sum((-1, -2)) / 3
    elif kind == "noise":
        y = torch.randn(samples, dtype=torch.float64, generator=generator)
    else:
        raise ValueError(f"kind {kind!r}: choose from {', '.join(FORMLESS)}")
    y = y + noise * y.std() * torch.randn(samples, dtype=torch.float64, generator=generator)
    return Task(f"no form: {kind}", x, y, "scalar", QuadraticForm.euclidean(n))


#: Settings that random problems meet in turn: groups O(p,q), those of singular forms, outputs and noises.
GROUPS = ((2, 0), (3, 0), (4, 0), (5, 0), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3))
SINGULAR = ((2, 0, 1), (1, 1, 1), (2, 0, 2), (3, 0, 1), (1, 2, 1), (1, 1, 2))
OUTPUTS = ("scalar", "vector", "conjugation", "bilinear")
NOISES = (0.0, 0.01, 0.05)


def random_problem(kind: str, i: int) -> dict[str, Any]:
    """The settings of the i-th problem of a kind, for `random_task`.

    ``form``: with a form; ``singular``: with a singular one; ``formless``: with none.
    """
    if kind == "form":
        return {
            "group": GROUPS[i % 9],
            "output": OUTPUTS[(i // 9) % 4],
            "points": 1 + (i * 7 + i // 9) % 4,
            "shape": SHAPES[(i + i // 9) % 3],
            "noise": NOISES[(i // 2) % 3],
        }
    if kind == "singular":
        return {
            "group": SINGULAR[i % 6],
            "output": ("scalar", "covector")[(i // 6) % 2],
            "points": 1 + i % 2,
            "shape": SHAPES[i % 3],
            "noise": NOISES[i % 3],
        }
    if kind == "formless":
        law, n, points = FORMLESS[i % 6], 2 + (i // 6) % 4, 1 + (i // 24) % 3
        return {"law": law, "n": n, "points": points, "noise": NOISES[i % 3]}
    raise ValueError(f"kind {kind!r}: choose from form, singular, formless")


def random_task(
    seed: int, group: tuple[int, ...] = (), law: str = "", n: int = 3, samples: int = 2_000, **settings: Any
) -> Task:
    """The task of such settings: of a ``law`` without a form, or of a form of the ``group``, of condition 1 to 10."""
    if law:
        return formless(law, n, samples=samples, seed=seed, **settings)
    form = QuadraticForm.random(*group, condition=10 ** (seed % 3 / 2), seed=10_000 + seed)
    return random_law(form, samples=samples, seed=seed, **settings)
