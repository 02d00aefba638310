"""Rows of tables: each answers a job, is measured once, in a worker process, and kept as it comes.

A file of rows (JSON lines) is the memory of a run: what is in it is not measured again, so a run that was stopped,
by Ctrl-C or by the power going, goes on where it was.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import as_completed
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from joblib.externals.loky import ProcessPoolExecutor
from tqdm import tqdm

from gortho.discovery.workers import apart, serve
from gortho.files import append_lines, json_lines

Row = dict[str, Any]
J = TypeVar("J", bound=Any)
T = TypeVar("T")


class Job(Protocol):
    """What to measure: a frozen dataclass whose fields its rows have."""

    def measure(self) -> list[Row]:
        """The rows of this job, the one that answers it first."""
        ...


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
    return json_lines(path)


def missing(jobs: Iterable[J], rows: Sequence[Row]) -> list[J]:
    """The jobs that no row answers; jobs are dataclasses, whose fields the rows have."""
    wanted = {job: asdict(job) for job in jobs}
    names = {tuple(fields) for fields in wanted.values()}
    done = {tuple(row.get(name) for name in each) for each in names for row in rows}
    return [job for job, fields in wanted.items() if tuple(fields.values()) not in done]


def in_processes(function: Callable[[J], T], items: Sequence[J], workers: int = 1) -> Generator[tuple[J, T]]:
    """Each item and what the function makes of it, as they come, in processes of one thread; closing ends these.

    One worker is a process, too: Ctrl-C is not for the fit that it works on, which would keep what it has so far.
    """
    if not items:
        return
    pool = ProcessPoolExecutor(min(workers, len(items)), initializer=serve, initargs=(os.getpid(),))
    try:
        futures = {pool.submit(apart, function, (item,)): item for item in items}
        for future in as_completed(futures):
            yield futures[future], future.result()
        pool.shutdown()  # workers that are killed leave a semaphore behind, with a warning
    finally:
        pool.shutdown(kill_workers=True)


def _measured(job: Job) -> list[Row]:
    return job.measure()


def keep(rows: Sequence[Row], path: Path) -> None:
    """Append the rows of a job, the one that answers it last: if it is there, all are."""
    append_lines(path, [json.dumps(row) for row in reversed(rows)])


def run(jobs: Sequence[Job], path: Path, workers: int = 1, progress: bool = True) -> list[Row]:
    """Measure what is missing and append it to the file, row by row; returns the rows of these jobs.

    Ctrl-C stops after losing at most the rows in work; the next run measures these again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    todo = missing(jobs, read_rows(path))
    bar = tqdm(total=len(todo), desc=path.stem, unit="row", disable=not progress or not todo)
    with bar, closing(in_processes(_measured, todo, workers)) as done:
        for job, rows in done:
            keep(rows, path)
            bar.set_postfix_str(str(job))
            bar.update()
    return select(jobs, read_rows(path))


def select(jobs: Sequence[Any], rows: Sequence[Row]) -> list[Row]:
    """The rows that belong to these jobs: same task, samples, seed and so on, each method once, the latest."""
    names = [name for name in (asdict(jobs[0]) if jobs else ()) if name != "method"]
    wanted = {tuple(getattr(job, name) for name in names) for job in jobs}
    latest = {(row.get("method"), *(row.get(name) for name in names)): row for row in rows}
    return [row for key, row in latest.items() if key[1:] in wanted]
