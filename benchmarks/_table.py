"""Write a measured table as Markdown and CSV, with what is needed to measure it again."""

from __future__ import annotations

import csv
import datetime
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import gortho


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
