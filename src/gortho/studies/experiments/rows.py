"""One row of a table: a method on a task, with a seed. Rows are measured in worker processes and kept as they come.

A file of rows (JSON lines) is the memory of a run: what is in it is not measured again, so a run that was stopped,
by Ctrl-C or by the power going, goes on where it was.
"""

from __future__ import annotations

import datetime
import json
import math
import multiprocessing
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from tqdm import tqdm

from gortho.forms import QuadraticForm
from gortho.studies import tasks
from gortho.studies.baselines import Method
from gortho.studies.tasks import Task
from gortho.studies.tasks.random_laws import formless
from gortho.testing import equivariance_error

Row = dict[str, Any]
J = TypeVar("J", bound=Any)

#: Tables use seeds from here on; methods were tuned on smaller ones, and seen on them.
FIRST_SEED = 300


def seeds_of(count: int, first: int = FIRST_SEED) -> range:
    """The seeds of the tables."""
    return range(first, first + count)


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


def measure(job: Job) -> list[Row]:
    """Fit and measure; several rows where one fitted network is read in several ways.

    Test samples come after the training samples of one draw; no method sees them before. Seconds are of CPU time, in
    one thread: other work on the machine does not count.
    """
    from gortho.studies.experiments.methods import BothPredictions, Flows, Readings, methods

    torch.set_num_threads(1)
    task = TASKS[job.task](job.samples + job.test_samples, job.seed)
    if job.hidden:
        task = task.hidden(job.seed)
    train, test = task[: job.samples].with_noise(job.noise, job.seed), task[job.samples :]
    method = methods(job.quick)[job.method](task, job.seed)
    start = time.process_time()
    method.fit(train.x, train.y, train.point_scalars)
    fitted = time.process_time()
    rows = [_row(job, job.method, method, fitted - start, task, test)]
    if isinstance(method, Readings | BothPredictions | Flows):
        before = time.process_time()
        for name, reading in method.readings(train.x, train.point_scalars):
            own = time.process_time() - before
            rows.append(_row(job, name, reading, fitted - start + own, task, test))
            before = time.process_time()
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


def facts() -> Row:
    """Where and when, with which versions."""
    import gortho

    return {
        "date": datetime.date.today().isoformat(),
        "versions": f"python {platform.python_version()}, torch {torch.__version__}, gortho {gortho.__version__}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, one thread a method",
    }


def read_rows(path: Path) -> list[Row]:
    """The rows of a file; a last line that was cut off is left out."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def missing(jobs: Iterable[J], rows: Sequence[Row]) -> list[J]:
    """The jobs that no row answers; jobs are dataclasses, whose fields the rows have."""
    wanted = {job: asdict(job) for job in jobs}
    names = {tuple(fields) for fields in wanted.values()}
    done = {tuple(row.get(name) for name in each) for each in names for row in rows}
    return [job for job, fields in wanted.items() if tuple(fields.values()) not in done]


def _worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # nobody is left to take the row


def run(jobs: Sequence[Job], path: Path, workers: int = 1, progress: bool = True) -> list[Row]:
    """Measure what is missing and append it to the file, row by row; returns the rows of these jobs.

    Ctrl-C stops after losing at most the rows in work; the next run measures these again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    todo = missing(jobs, read_rows(path))
    if todo:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        context = multiprocessing.get_context("spawn")  # a fork after threads were started may hang
        pool = ProcessPoolExecutor(min(workers, len(todo)), mp_context=context, initializer=_worker)
        try:
            futures = {pool.submit(measure, job): job for job in todo}
            with tqdm(total=len(todo), desc=path.stem, unit="fit", disable=not progress) as bar:
                for future in as_completed(futures):
                    job = futures[future]
                    rows = future.result()
                    with open(path, "a", encoding="utf-8") as file:
                        file.write("".join(json.dumps(row) + "\n" for row in reversed(rows)))
                    bar.set_postfix_str(f"{job.method} on {job.task}, seed {job.seed}")
                    bar.update()
            pool.shutdown()
        except BaseException:
            workers_alive = list((pool._processes or {}).values())
            pool.shutdown(wait=False, cancel_futures=True)
            for process in workers_alive:
                process.terminate()
            raise
    return select(jobs, read_rows(path))


def select(jobs: Sequence[Any], rows: Sequence[Row]) -> list[Row]:
    """The rows that belong to these jobs: same task, samples, seed and so on, each method once, the latest."""
    names = [name for name in (asdict(jobs[0]) if jobs else ()) if name != "method"]
    wanted = {tuple(getattr(job, name) for name in names) for job in jobs}
    latest = {(row["method"], *(row.get(name) for name in names)): row for row in rows}
    return [row for key, row in latest.items() if key[1:] in wanted]


def as_form(row: Row, key: str = "form") -> QuadraticForm:
    """The form stored in a row."""
    return QuadraticForm(torch.tensor(row[key], dtype=torch.float64))
