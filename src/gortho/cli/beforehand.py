"""What can be found out before the work begins: missing columns, places that cannot be written to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

#: Files whose columns are known only when they have been read whole, which is not done twice.
READ_WHOLE = (".npz", ".xlsx")


def check_columns(file: Path, reading: dict[str, Any]) -> None:
    """Find out that the file or a column is missing before torch is imported, which takes seconds."""
    from gortho.samples.files import open_chunks
    from gortho.samples.kinds import kind_of
    from gortho.samples.wanted import Wanted

    kind_of(file)  # is it there?
    if file.suffix.lower() in READ_WHOLE:
        return
    wanted = Wanted(
        x=reading["x"],
        y=reading["y"],
        scalars=reading["scalars"],
        weight=reading["weight"],
        y_error=reading["y_error"],
        time=reading["derivative"],
        by=reading["by"],
        drop=reading["drop"],
        decimal=reading["decimal"],
        output=reading["output"],
    )
    open_chunks(file, wanted)


def check_destinations(report: Path | None, save: Path | None) -> None:
    """Find out before the search, not after it, that a result could not be written."""
    if report is not None:
        if report.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"--report {report}: the report is a page, give a name that ends in .html")
        if report.is_dir() or not report.parent.is_dir():
            raise ValueError(f"--report {report}: there is no folder {report.parent} to write it to")
        if not os.access(report if report.exists() else report.parent, os.W_OK):
            raise ValueError(f"--report {report}: it cannot be written to, choose another place")
        import gortho.report.page  # noqa: F401 - is the extra installed?
    if save is not None:
        from gortho.discovery.saving import check_writable

        try:
            check_writable(save)
        except ValueError as error:
            raise ValueError(f"--save {error}") from None
