"""One row of the tables of methods: a method on a task, with a seed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.studies import tasks
from gortho.studies.baselines import Method, registry
from gortho.studies.experiments.rows import Row, facts
from gortho.studies.tasks import Task
from gortho.studies.tasks.random_laws import formless
from gortho.testing import equivariance_error

#: Tables use seeds from here on; methods were tuned on smaller ones, and seen on them.
FIRST_SEED = 300


TASKS: dict[str, Callable[[int, int], Task]] = {
    "synthetic": lambda samples, seed: tasks.synthetic(samples, seed),
    "synthetic, normal x": lambda samples, seed: tasks.synthetic(samples, seed, distribution="normal"),
    "inertia": lambda samples, seed: tasks.inertia(samples, seed=seed),
    "no form": lambda samples, seed: formless("network", 4, samples=samples, seed=seed),
    **tasks.PUBLIC,
}


def chance(n: int) -> tuple[float, float]:
    """What knowing nothing gives: mean |cos| of two random symmetric matrices, and √(d(1 - d/n²)) for d_PA.

    >>> [round(v, 2) for v in chance(4)]
    [0.26, 1.94]
    """
    d, size = n * (n - 1) // 2, n * (n + 1) // 2
    cosine = math.exp(math.lgamma(size / 2) - math.lgamma((size + 1) / 2)) / math.pi**0.5
    return cosine, math.sqrt(d * (1 - d / n**2))


@dataclass(frozen=True)
class Job:
    """What to measure: a method on so many samples of a task."""

    task: str
    method: str
    samples: int
    seed: int
    noise: float = 0.0
    hidden: bool = False
    test_samples: int = 5_000
    quick: bool = False

    def __str__(self) -> str:
        return f"{self.method} on {self.task}, seed {self.seed}"

    def measure(self) -> list[Row]:
        """Fit and measure; several rows where one fitted network is read in several ways.

        Test samples come after the training samples of one draw; no method sees them before. Seconds are of CPU time,
        in one thread: other work on the machine does not count.
        """
        torch.set_num_threads(1)
        task = TASKS[self.task](self.samples + self.test_samples, self.seed)
        if self.hidden:
            task = task.hidden(self.seed)
        train, test = task[: self.samples].with_noise(self.noise, self.seed), task[self.samples :]
        method = registry.entries()[self.method].make(task, self.seed, self.quick)
        if method is None:
            raise ValueError(f"{self.method} has nothing to do on {self.task}")
        start = time.process_time()
        method.fit(train.x, train.y, train.point_scalars)
        spent = time.process_time() - start
        rows = [_row(self, self.method, method, spent, task, test)]
        for entry in registry.readings(self.method):
            reading = entry.make(task, self.seed, self.quick)
            if reading is not None:
                start = time.process_time()
                reading.take_over(method, train.x, train.point_scalars)
                own = time.process_time() - start
                rows.append(_row(self, entry.name, reading, spent + own, task, test))
        return rows


def _row(job: Job, name: str, method: Method, seconds: float, task: Task, test: Task) -> Row:
    noisy = test.with_noise(job.noise, job.seed + 500_000)
    row: Row = asdict(job) | {"method": name, "seconds": seconds, "parameters": method.parameters}
    form = method.quadratic_form
    row |= {"d_PA": method.distance(task.form), "cos": None if form is None else form.cosine(task.form)}
    row["chance cos"], row["chance d_PA"] = chance(task.form.n)
    row |= _errors(method.predict, task, test, noisy, form)
    row["form"] = None if form is None else form.matrix.tolist()
    row["true form"] = task.form.matrix.tolist()
    row["notes"] = {k: v for k, v in method.notes.items() if isinstance(v, str | int | float)}
    return row | facts() | {"clock": "CPU time"}


def _errors(
    predict: Callable[..., Tensor], task: Task, test: Task, noisy: Task, found: QuadraticForm | None
) -> Row:
    try:
        prediction = task.given(predict(test.x, test.point_scalars).double())
    except NotImplementedError:  # a method without a predictor
        return {}
    truth = task.given(test.truth)
    mse = float((prediction - truth).square().mean())
    few = test[:200]
    arguments = () if few.point_scalars is None else (few.point_scalars,)

    def equivariance(form: QuadraticForm) -> float:
        return equivariance_error(predict, form, "vector", task.output, few.x, samples=8, arguments=arguments)

    return {
        "MSE": mse,
        "noisy MSE": float((prediction - task.given(noisy.y)).square().mean()),
        "relative MSE": mse / float((truth - truth.mean(0)).square().mean()),
        "equivariance error": equivariance(task.form),
        "own equivariance error": None if found is None or found.signature.zero else equivariance(found),
    }


def as_form(row: Row, key: str = "form") -> QuadraticForm:
    """The form stored in a row."""
    return QuadraticForm(torch.tensor(row[key], dtype=torch.float64))
