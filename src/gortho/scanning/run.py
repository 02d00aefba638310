"""`scan`: which targets are left to do, a pool that does them, and the table of all."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from joblib import cpu_count, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from joblib.parallel import get_active_backend

from gortho import checks
from gortho.discovery.settings import Settings
from gortho.discovery.workers import as_done
from gortho.files import write_text
from gortho.progress import interruptible
from gortho.samples.errors import DataError
from gortho.samples.wanted import Columns
from gortho.scanning.row import Answered, Log, Row, answer, fingerprints
from gortho.scanning.table import Scan
from gortho.scanning.targets import Target, targets_of
from gortho.surveyed import READING, SEARCH


def scan(
    path: str | os.PathLike[str],
    x: Columns = None,
    targets: Columns | Sequence[Sequence[str]] = None,
    *,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    client: Any = None,
    reports: bool = False,
    retry: bool = False,
    seed: int = 0,
    settings: Settings | None = None,
    progress: Callable[[int, int, Row], None] | None = None,
    **options: Any,
) -> Scan:
    """Try every numeric column of a file as the target of the same vectors, or every file of a folder.

    Args:
        path: a file, or a folder in which each file is a target.
        x: the columns of the vectors, as in `gortho.survey`.
        targets: columns to try, ``"E,T:p"``; lists of columns, or groups between semicolons, for outputs of several
            numbers. By default all numeric columns without another role, except constants, row numbers and dates.
        out: folder for ``rows.jsonl``, ``table.csv``, ``table.html`` and ``reports``. Rows are saved as they
            are done: the same call continues where it stopped.
        workers: number of processes; by default the number of cores.
        client: a `dask.distributed.Client`, whose workers read the files under the same paths. Other backends of joblib
            work within ``joblib.parallel_config(...)``.
        reports: whether to write a report for each target, as `Discovery.to_html` does.
        retry: whether targets that ended with an error are tried again.
        seed: seed of each search. The table is the same for any number of workers.
        settings: size of each search.
        progress: called with the number of rows done, the number of targets, and the last row.
        options: of `gortho.survey` (points, output, scalars, weight, y_error, dropna, …) and of `gortho.discover`
            (errors, tolerance, look_for, time_budget, …), for each target. In y_error, ``{}`` stands for the target.

    A target that fails becomes a row with its error. Ctrl-C and SIGTERM lose only unfinished targets, and raise
    KeyboardInterrupt once the table is written.
    """
    path, seed = Path(path).expanduser(), checks.seed(seed)
    given = _checked(options) | {"x": x}
    if settings is not None:
        given["settings"] = replace(settings, workers=1)
    reading = dict.fromkeys(READING) | {"output": "scalar", "decimal": "."} | given
    if not path.exists():
        raise DataError(f"{path} does not exist: check the name and the current directory, {Path.cwd()}")
    chosen = targets_of(path, targets, reading)
    folder = None if out is None else Path(out)
    if reports and folder is None:
        raise ValueError("reports=True needs a folder to write them to: give out=")
    keys = fingerprints(chosen.all, given, seed)
    log = None if folder is None else Log(folder / "rows.jsonl")
    if folder is not None:
        (folder / "reports" if reports else folder).mkdir(parents=True, exist_ok=True)
    rows = _done(log, keys, folder, reports, retry)
    before = len(rows)
    todo = [target for target in chosen.all if target.name not in rows]
    backend = nullcontext() if client is None else parallel_config(backend="dask", client=client)
    try:
        with interruptible() as stop, backend:
            for one in _answers(todo, keys, _workers(workers, client), given, seed, reports):
                if stop.is_set():  # a search that was cut short is no answer
                    raise KeyboardInterrupt
                row = _keep(one, log, folder)
                rows[row.target] = row
                if progress is not None:
                    progress(len(rows), len(chosen.all), row)
    finally:
        found = Scan.of(
            rows.values(),
            left_out=chosen.left_out,
            source=path.name,
            folder=folder,
            wanted=len(chosen.all),
            before=before,
            files=path.is_dir(),
            effort=_effort(settings),
        )
        found.write()
    return found


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    known = {*READING, *SEARCH} - {"x", "seed", "settings"}
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise TypeError(f"scan has no option {name!r}" + (f": did you mean {near[0]!r}?" if near else ""))
    return {name: value for name, value in options.items() if value is not None}


def _workers(workers: int | None, client: Any) -> int:
    if workers is not None:
        return checks.whole(workers, "workers", 1)
    asked = get_active_backend()[1]  # of a joblib.parallel_config around this call
    return -1 if client is not None else cpu_count() if asked in (None, 1) else asked


def _done(
    log: Log | None, keys: dict[str, str], folder: Path | None, reports: bool, retry: bool
) -> dict[str, Row]:
    """The rows of an earlier scan, by target."""
    if log is None or folder is None:
        return {}

    def stays(row: Row) -> bool:
        if row.verdict == "ERROR":
            return not retry
        return not reports or bool(row.report and (folder / row.report).exists())

    kept = log.rows()
    return {name: kept[key] for name, key in keys.items() if key in kept and stays(kept[key])}


def page_name(target: str, key: str) -> str:
    """A file name for a report, on any system, that no other target, data or options have."""
    stem = re.sub(r"[^\w.+-]+", "_", target)[:80]
    return f"reports/{stem}-{key[:8]}.html"


def _answers(
    targets: Sequence[Target], keys: dict[str, str], workers: int, *asked: Any
) -> Iterator[Answered]:
    """The answers as they arrive. A worker that dies, for lack of memory for example, does not affect other targets."""
    left = {target.name: target for target in targets}
    alone: list[Target] = []
    while left or alone:
        begun: list[str] = []
        batch = [alone.pop()] if alone else list(left.values())
        single = not left or batch[0].name not in left

        def arguments(batch: list[Target] = batch, begun: list[str] = begun) -> Iterator[tuple[Any, ...]]:
            for target in batch:
                begun.append(target.name)
                yield target, keys[target.name], *asked

        try:
            with closing(as_done(answer, arguments(), workers)) as answers:
                for one in answers:
                    left.pop(one.row.target, None)
                    begun.remove(one.row.target)
                    yield one
        except TerminatedWorkerError as error:
            if single:
                why = f"its process was killed, perhaps for lack of memory ({type(error).__name__})"
                yield Answered(Row.failed(batch[0].name, keys[batch[0].name], why))
            else:  # one of these did it: each gets a pool of its own
                alone = [left.pop(name) for name in begun]


def _keep(one: Answered, log: Log | None, folder: Path | None) -> Row:
    """Write the report, then the row: a row in the log has its report."""
    row = one.row
    if one.page and folder is not None:
        row = replace(row, report=page_name(row.target, row.key))
        write_text(folder / row.report, one.page)
    if log is not None:
        log.add(row)
    return row


def _effort(settings: Settings | None) -> str:
    """The size of each search, in words: what differs from the usual one."""
    usual, chosen = asdict(Settings()), asdict(settings or Settings())
    differs = [f"{name}={v}" for name, v in chosen.items() if name != "workers" and v != usual[name]]
    return ", ".join(differs) or "normal"
