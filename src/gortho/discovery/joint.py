"""Joint discovery: form and network learnt together, from many random starts (M7).

`search` trains replicas that start with every signature, and drops the losers early. `refit` starts fresh networks at
the perturbed winners, each on its own bootstrap resample: their mean is a better form than any of them, and their
spread says how well the data pins it down. Nothing ever starts at a guess of the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gortho.discovery.replicas import Data, Replicas
from gortho.forms import QuadraticForm
from gortho.groups import random_generator
from gortho.nn.exact import EquivariantNet
from gortho.nn.form import LearnableForm

#: Called with the share of the work done and a line on the leading form; may raise to stop.
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Settings:
    """Sizes of the search; the defaults are what the benchmarks were run with."""

    replicas: int = 24
    steps: int = 500
    drops: tuple[tuple[float, int], ...] = (
        (0.25, 10),
        (0.55, 5),
    )  # after this share of the steps keep so many
    refits: int = 8
    refit_steps: int = 600
    predictor_steps: int = 1_000  # of the final predictor, after which come second-order ones
    members: int = (
        1  # more than one: the final predictor is refitted so often on all samples, and the mean taken
    )
    width: int = 32
    depth: int = 1
    batch_size: int = 256
    lr: float = 1e-2
    form_lr: float = 3e-2
    perturbation: float = 0.1  # of the winners' forms, relative, before refitting


@dataclass
class Restart:
    """Where one start ended."""

    start: str
    form: QuadraticForm
    validation: float
    steps: list[int] = field(default_factory=list)
    history: list[float] = field(default_factory=list)


def make_network(
    n: int, options: dict[str, Any], settings: Settings, form: LearnableForm, seed: int
) -> EquivariantNet:
    """A small network with a form of its own."""
    net = EquivariantNet(form, width=settings.width, depth=settings.depth, seed=seed, **options)
    net.check_values = False
    return net


def starts(n: int, count: int, seed: int) -> list[tuple[str, LearnableForm]]:
    """Random forms that take every signature in turn."""
    chosen = []
    for r in range(count):
        p = r % (n // 2 + 1)
        label = f"random O({p},{n - p})" if p else f"random O({n})"
        chosen.append((label, LearnableForm(n, seed=seed * 7919 + r, signature=(p, n - p))))
    return chosen


def search(
    train: Data,
    validation: Data,
    options: dict[str, Any],
    *,
    extra: list[tuple[str, QuadraticForm]],
    settings: Settings,
    seed: int,
    progress: Progress,
    shown: Callable[[QuadraticForm], QuadraticForm] = lambda form: form,
) -> list[Restart]:
    """Train all starts together, drop losers early; survivors first, best on validation first.

    ``shown`` turns a form into the one to tell the watcher of, in his coordinates.
    """
    n = train[0].shape[-1]  # type: ignore[union-attr]
    forms = starts(n, settings.replicas, seed)
    forms += [(label, LearnableForm(n, start=form)) for label, form in extra]
    nets = [make_network(n, options, settings, form, seed * 7919 + r) for r, (_, form) in enumerate(forms)]
    nets[0].calibrate(*train)  # type: ignore[arg-type]
    replicas = Replicas(nets, [str(r) for r in range(len(forms))])
    logs: dict[str, Restart] = {}
    drops = {max(1, int(share * settings.steps)): keep for share, keep in settings.drops}
    look = max(1, settings.steps // 20)

    def record(step: int) -> Tensor:
        losses = replicas.losses(validation)
        for i, label in enumerate(replicas.labels):
            log = logs.setdefault(label, Restart(forms[int(label)][0], replicas.form(i), float(losses[i])))
            log.form, log.validation = replicas.form(i), float(losses[i])
            log.steps.append(step)
            log.history.append(float(losses[i]))
        best = int(losses.argmin())
        progress(step / settings.steps, f"{shown(replicas.form(best))}  error {float(losses[best]):.2e}")
        return losses

    record(0)
    rate = {"lr": settings.lr, "form_lr": settings.form_lr, "batch_size": settings.batch_size}
    try:
        for step in replicas.train(train, settings.steps, seed=seed, **rate):  # type: ignore[arg-type]
            if step in drops:
                replicas.keep(record(step).argsort()[: drops[step]])
            elif step % look == 0 or step == settings.steps:
                record(step)
    except KeyboardInterrupt:
        raise Interrupted(_ranked(logs)) from None
    return _ranked(logs)


class Interrupted(Exception):
    """Ctrl-C during the search; carries what was found so far."""

    def __init__(self, restarts: list[Restart]):
        super().__init__("interrupted")
        self.restarts = restarts


def _ranked(logs: dict[str, Restart]) -> list[Restart]:
    """Survivors first, each by its error: a replica dropped early may have looked better than it was."""
    last = max(log.steps[-1] for log in logs.values())
    return sorted(logs.values(), key=lambda log: (log.steps[-1] < last, log.validation))


def refit(
    train: Data,
    options: dict[str, Any],
    winners: list[QuadraticForm],
    *,
    settings: Settings,
    seed: int,
    progress: Progress,
    shown: Callable[[QuadraticForm], QuadraticForm] = lambda form: form,
) -> Tensor:
    """Bootstrap refits from perturbed winners: their matrices ``(refits, n, n)``, ‖A‖_F = √n, signs aligned."""
    n = train[0].shape[-1]  # type: ignore[union-attr]
    generator = random_generator(seed + 1)
    nets = []
    for r in range(settings.refits):
        form = winners[r % len(winners)].matrix
        noise = torch.randn(n, n, dtype=torch.float64, generator=generator)
        start = QuadraticForm(form + settings.perturbation * (noise + noise.T) / 2)
        nets.append(make_network(n, options, settings, LearnableForm(n, start=start), seed * 104_729 + r))
    nets[0].calibrate(*train)  # type: ignore[arg-type]
    replicas = Replicas(nets, [str(r) for r in range(len(nets))])
    samples = len(train[0])  # type: ignore[arg-type]
    rows = torch.randint(samples, (settings.refits, samples), generator=generator)
    for step in replicas.train(
        train,
        settings.refit_steps,
        lr=settings.lr,
        form_lr=settings.lr,
        batch_size=settings.batch_size,
        seed=seed,
        rows=rows,
    ):
        if step % 20 == 0:
            progress(step / settings.refit_steps, str(shown(replicas.form(0))))
    matrices = torch.stack([replicas.form(i).matrix for i in range(len(replicas))])
    return align_signs(matrices)


def align_signs(matrices: Tensor) -> Tensor:
    """Choose the sign of each matrix so that all point the same way as their leading direction (M2)."""
    flat = matrices.flatten(1)
    leading = torch.linalg.svd(flat, full_matrices=False)[2][0]
    return matrices * (flat @ leading).sign()[:, None, None]
