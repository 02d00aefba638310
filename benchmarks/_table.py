"""Measure many problems, and write tables as Markdown and CSV, with what is needed to measure them again."""

from __future__ import annotations

import csv
import datetime
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tqdm import tqdm

import gortho

if TYPE_CHECKING:
    import pandas as pd


def facts(**more: Any) -> dict[str, Any]:
    """Command, date, versions and machine."""
    command = " ".join(["python", "benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]])
    return {
        "command": command,
        "date": datetime.date.today().isoformat(),
        "versions": f"python {platform.python_version()}, torch {torch.__version__}, gortho {gortho.__version__}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} torch threads",
        **more,
    }


def write(folder: Path, name: str, title: str, text: str, rows: Sequence[dict[str, Any]], **more: Any) -> str:
    """Write ``name.md`` and ``name.csv`` and return the Markdown."""
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(str(row[c]) for c in columns) + " |" for row in rows]
    notes = [f"- {key}: {value}" for key, value in facts(**more).items()]
    page = "\n".join([f"# {title}", "", text, "", *lines, "", *notes, ""])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(page)
    with open(folder / f"{name}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return page


def measure(
    run: Callable[[dict], dict], work: list[dict], jobs: int, path: Path, done: Sequence[dict] = ()
) -> None:
    """Run all problems, one thread each; rows are written as they come, so that an interruption loses little.

    ``done`` are rows of an earlier run that stay.
    """
    for library in (
        "OMP",
        "OPENBLAS",
        "MKL",
    ):  # read when a library is loaded, hence by spawned processes only
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    rows = list(done)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = {pool.submit(run, p): p for p in work}
        for future in tqdm(as_completed(futures), total=len(work)):
            # A crash is a failure of discovery too: it is counted, not hidden.
            crash = future.exception()
            rows.append({**futures[future], "verdict": f"crash: {crash!r}"} if crash else future.result())
            columns = list(dict.fromkeys(key for row in rows for key in row))
            with open(path, "w", newline="") as file:
                writer = csv.DictWriter(file, columns)
                writer.writeheader()
                writer.writerows(rows)
    path.with_suffix(".json").write_text(json.dumps(facts(), indent=1))


def write_page(
    path: Path, heading: str, tables: Callable[[pd.DataFrame], list[tuple[str, pd.DataFrame]]]
) -> None:
    """Make the page beside the rows: a heading and titled tables; without pandas, only the rows are kept."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        print(f"pandas is not installed: rows are in {path}, run again with --tables elsewhere")
        return
    text = heading
    for title, table in tables(pd.read_csv(path, keep_default_na=False, na_values=["nan", ""])):
        header = "| " + " | ".join(map(str, table.columns)) + " |\n|" + " --- |" * len(table.columns)
        body = "\n".join(
            "| " + " | ".join(_cell(v) for v in row) + " |" for row in table.itertuples(index=False)
        )
        text += f"\n## {title}\n\n{header}\n{body}\n"
    measured = json.loads(path.with_suffix(".json").read_text())
    text += "\n" + "\n".join(f"- {key}: {value}" for key, value in measured.items()) + "\n"
    path.with_suffix(".md").write_text(text)
    print(text)


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
