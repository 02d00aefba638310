"""The memory of a scan: rows are added to a file as they come, and what is in it is not searched again.

A kill, or the power going, costs the targets in work. A last line that was cut off is left out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gortho.scanning.row import Row
from gortho.scanning.targets import Target
from gortho.stored import plain, restored


def digest(path: Path) -> str:
    """A fingerprint of what is in a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


def fingerprints(targets: Iterable[Target], options: dict[str, Any], seed: int) -> dict[str, str]:
    """For each target a fingerprint of its data, of all that was asked, and of the version."""
    import gortho

    contents: dict[Path, str] = {}
    keys = {}
    for target in targets:
        if target.file not in contents:
            contents[target.file] = digest(target.file)
        own = [target.name, target.y, target.x, target.y_error, seed]
        own += [contents[target.file], gortho.__version__]
        text = json.dumps([own, options], sort_keys=True, default=_written)
        keys[target.name] = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    return keys


def _written(value: Any) -> Any:
    """What JSON does not know: settings by their fields, reps by their names."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return sorted(map(str, value)) if isinstance(value, set | frozenset) else repr(value)


class Log:
    """Rows in a file of JSON lines."""

    def __init__(self, path: Path):
        self.path = path

    def rows(self) -> dict[str, Row]:
        """The latest row of each fingerprint."""
        found: dict[str, Row] = {}
        text = self.path.read_text(encoding="utf-8", errors="replace") if self.path.exists() else ""
        for line in text.splitlines():
            try:
                row = restored(json.loads(line), Row)
            except (json.JSONDecodeError, KeyError, TypeError):
                continue  # cut off by a kill
            found[row.key] = row
        return found

    def add(self, row: Row) -> None:
        """Add a row; when this returns it is on the disk."""
        line = json.dumps(plain(row), allow_nan=False) + "\n"
        with open(self.path, "a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                line = line if file.read() == b"\n" else "\n" + line
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
