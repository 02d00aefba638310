"""Checks before the work begins: missing columns, destinations that cannot be written to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

#: Files that must be read completely to know their columns, which is not done twice.
READ_WHOLE = (".npz", ".xlsx")


def check_columns(file: Path, reading: dict[str, Any]) -> None:
    """Detect a missing file or column before torch is imported, which takes seconds."""
    from gortho.samples.files import open_chunks
    from gortho.samples.kinds import kind_of
    from gortho.samples.wanted import Wanted

    kind_of(file)  # is it there?
    if file.suffix.lower() in READ_WHOLE:
        return
    parts = ("x", "y", "scalars", "weight", "y_error", "by", "drop", "decimal", "output")
    wanted = Wanted(time=reading["derivative"], **{name: reading[name] for name in parts})
    open_chunks(file, wanted)


def check_destinations(report: Path | None, save: Path | None) -> None:
    """Detect before the search, not after it, that a result could not be written."""
    check_place("--report", report, ".html", ".htm")
    if report is not None:
        import gortho.report.page  # noqa: F401 - is the extra installed?
    if save is not None:
        from gortho.discovery.saving import check_writable

        try:
            check_writable(save)
        except ValueError as error:
            raise ValueError(f"--save {error}") from None


def check_place(option: str, path: Path | None, *suffixes: str) -> None:
    """Check that a file with one of these suffixes can be written to the path given for an option, if any."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{option} {path}: give a name that ends in {suffixes[0]}")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"{option} {path}: there is no folder {path.parent} to write it to")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{option} {path}: it cannot be written to, choose another place")
