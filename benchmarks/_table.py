"""Measure many problems, and write tables as Markdown and CSV, with what is needed to measure them again."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

from gortho.studies.experiments import rows as measured
from gortho.studies.experiments.tables import frame_table, markdown


def facts(**more: Any) -> dict[str, Any]:
    """Command, date, versions and machine."""
    command = " ".join(["python", "benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]])
    own = measured.facts()
    machine = own["machine"].replace("one thread a method", f"{torch.get_num_threads()} torch threads")
    return {"command": command} | own | {"machine": machine} | more


def write(folder: Path, name: str, title: str, text: str, rows: Sequence[dict[str, Any]], **more: Any) -> str:
    """Write ``name.md`` and ``name.csv`` and return the Markdown."""
    columns = list(rows[0])
    table = markdown(columns, [[str(row[c]) for c in columns] for row in rows])
    page = f"# {title}\n\n{text}\n\n{table}\n\n{_listed(facts(**more))}"
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
    rows = list(done)
    with closing(measured.in_processes(partial(_counted, run), work, jobs)) as results:
        for _, row in tqdm(results, total=len(work)):
            rows.append(row)
            columns = list(dict.fromkeys(key for row in rows for key in row))
            with open(path, "w", newline="") as file:
                writer = csv.DictWriter(file, columns)
                writer.writeheader()
                writer.writerows(rows)
    path.with_suffix(".json").write_text(json.dumps(facts(), indent=1))


def _counted(run: Callable[[dict], dict], problem: dict) -> dict:
    """A row; a crash is a failure too: it is counted, not hidden."""
    try:
        return run(problem)
    except Exception as error:
        return {**problem, "verdict": f"crash: {error!r}"}


def write_page(
    path: Path, heading: str, tables: Callable[[pd.DataFrame], list[tuple[str, pd.DataFrame]]]
) -> None:
    """Make the page beside the rows: a heading and titled tables."""
    text = heading
    for title, table in tables(pd.read_csv(path, keep_default_na=False, na_values=["nan", ""])):
        text += f"\n## {title}\n\n{frame_table(table)}\n"
    text += "\n" + _listed(json.loads(path.with_suffix(".json").read_text()))
    path.with_suffix(".md").write_text(text)
    print(text)


def _listed(facts: dict[str, Any]) -> str:
    return "".join(f"- {key}: {value}\n" for key, value in facts.items())
