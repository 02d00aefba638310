"""`Store`: files and runs of a session, in a folder for temporary files that goes with it."""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gortho.app.jobs import Job

#: Bytes of a file that the page takes, at most; the command line takes any.
MAX_UPLOAD = 500_000_000
#: Files and runs that are kept; the oldest go when there are more.
KEPT = 5
#: Characters of a file's name, at most.
LONGEST_NAME = 60


class TooLarge(ValueError):
    """A file is larger than the page takes."""

    def __init__(self, name: str):
        super().__init__(
            f"{name} is larger than {MAX_UPLOAD // 1_000_000} MB, the most that this page takes: use gortho discover, "
            "which reads files of any size"
        )


@dataclass(frozen=True)
class Run:
    """A search, the folder that its files are written to, and what it is of: the file's name and all that was asked."""

    job: Job
    folder: Path
    of: dict[str, Any]


class Store:
    """The session."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gortho-app-"))
        self.files: dict[str, Path] = {}
        self.runs: dict[str, Run] = {}

    def place(self, name: str) -> Path:
        """Where to write a file of this name: a folder of its own, since messages name the file."""
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir()
        return folder / safe_name(name)

    def add_file(self, path: Path) -> str:
        """Keep a file that was written; the oldest go where there are too many and no search needs them."""
        while len(self.files) >= KEPT and self.running is None:
            shutil.rmtree(self.files.pop(next(iter(self.files))).parent, ignore_errors=True)
        self.files[path.parent.name] = path
        return path.parent.name

    def add_run(self, job: Job, folder: Path, of: dict[str, Any]) -> str:
        """Keep a run; the oldest go where there are too many."""
        while len(self.runs) >= KEPT:
            shutil.rmtree(self.runs.pop(next(iter(self.runs))).folder, ignore_errors=True)
        self.runs[folder.name] = Run(job, folder, of)
        return folder.name

    @property
    def running(self) -> str | None:
        """The run that goes on, if one does."""
        return next((name for name, run in self.runs.items() if not run.job.state.ended), None)

    def close(self) -> None:
        """End what goes on, and remove everything."""
        for run in self.runs.values():
            run.job.end()
        shutil.rmtree(self.folder, ignore_errors=True)


def safe_name(name: str) -> str:
    """The last part of a path, without signs that mean something to a file system.

    >>> safe_name("../../etc/my data?.csv"), safe_name("C:\\\\jets.npz"), safe_name("..")
    ('my data_.csv', 'jets.npz', 'file')
    """
    last = re.split(r"[/\\]", name)[-1]
    last = re.sub(r'[\x00-\x1f\x7f<>:"|?*]', "_", last).strip(". ")
    return last[-LONGEST_NAME:] or "file"
