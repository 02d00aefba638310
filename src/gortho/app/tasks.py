"""What the page asks for, done in a process of its own: look at a file, search, predict.

`python -m gortho.app.tasks` is this process. Standard input brings the task, one line of JSON, and later perhaps the
line "stop"; where it ends, so does the server, and this process. Standard output takes one line of JSON for each step,
and a last one with the answer.
"""

from __future__ import annotations

import _thread
import dataclasses
import importlib
import json
import math
import os
import shutil
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gortho.app.asked import Asked, as_fields
from gortho.progress import Watch

#: Files of a run, in its folder.
RUN, ZIP, REPORT = "run", "run.zip", "report.html"
#: The stage after which nothing is stopped any more: there is an answer.
WRITING = "writing"
#: The task that needs neither torch nor scikit-learn, which take seconds to load.
LOOK = "look"
STOPPED = "Stopped before there was a result."


def look(watch: Watch, *, file: str, decimal: str) -> dict[str, Any]:
    """The columns of a file."""
    from gortho.samples.look import look as look_at

    return dataclasses.asdict(look_at(file, decimal=decimal))


def discover(watch: Watch, *, file: str, folder: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Search, and write run and report to a folder; Ctrl-C ends the search with the best form so far."""
    begun = time.perf_counter()
    wanted = Asked.of(asked)
    watch("reading", 0.0, "")

    import gortho
    from gortho.cli.options import EFFORTS
    from gortho.discovery.large import survey
    from gortho.surveyed import reading, searched

    def rows_read(rows: int, total: int | None) -> None:
        watch("reading", 0.0, f"{rows:,}{f' of {total:,}' if total else ''} rows")

    options = wanted.options()
    seen = survey(file, progress=rows_read, **reading(options))
    watch("search", 0.0, f"{len(seen.data.X):,} rows are read")
    settings = gortho.Settings(**EFFORTS[wanted.effort])
    found = searched(seen, options, begun, as_fields, settings=settings, watch=watch)
    watch(WRITING, 1.0, "")
    told = _answer(found) | {"command": wanted.command(Path(file).name)}
    try:
        _write(found, Path(folder))
    except OSError as error:  # a full disk does not cost the answer
        lost = f"run and report could not be saved ({error}), so there is nothing to download: make room, search again"
        told |= {"notices": [*told["notices"], lost], "predicts": False}
    return told


def _write(found: Any, place: Path) -> None:
    """Run, archive and report, in a folder."""
    found.save(place / RUN)
    shutil.make_archive(str(place / RUN), "zip", place / RUN)
    found.to_html(place / REPORT)


def _answer(found: Any) -> dict[str, Any]:
    """What the page shows of a discovery beside the report."""
    from gortho.discovery.words import beside
    from gortho.formulas.telling import in_coordinates, lines
    from gortho.report.page import APPROXIMATE, BADGES
    from gortho.runs import summary

    law = found.formula
    written = [] if law is None else [line for line in (str(law), in_coordinates(law)) if line]
    said = [] if law is None else [line for line in lines(law)[1:] if not line.startswith("that is, ")]
    sign, badge = APPROXIMATE if found.approximate else BADGES[found.verdict.name]
    more = {
        "headline": found.headline(),
        "written": written,
        "said": said,
        "beside": beside(found),
        "exactly": "" if found.evidence is None else found.exactly(),
        "sign": sign,
        "badge": badge,
        "predicts": found.network is not None,
        "seconds": found.provenance.seconds if math.isfinite(found.provenance.seconds) else None,
        "samples": found.provenance.samples,
    }
    return summary(found) | more


def predict(
    watch: Watch, *, run: str, file: str, out: str, decimal: str | None, dropna: bool = False
) -> dict[str, Any]:
    """Predict for the rows of a file, to a file; without a decimal separator, the file's own is told from its cells."""
    from gortho import runs
    from gortho.samples import DataError

    found, notes = runs.load(run), []
    if decimal is None and _has_commas(file, found):
        decimal, notes = ",", ["the file was read with decimal commas"]
    try:
        data = runs.read_for(found, Path(file), targets=False, decimal=decimal or ".", dropna=dropna)
    except DataError as error:
        raise DataError(as_fields(str(error))) from None
    beyond = runs.predict(found, data, out)
    return {"rows": len(data.X), "notes": [*notes, *map(as_fields, data.notices), *beyond]}


def _has_commas(file: str, found: Any) -> bool:
    """Whether a column that a run needs has numbers with decimal commas."""
    from gortho.samples.look import look as look_at

    columns = found.provenance.source.columns
    needed = {*columns.get("x", ()), *columns.get("scalars", ())}
    return any(column.commas for column in look_at(file).columns if column.name in needed)


TASKS: dict[str, Callable[..., dict[str, Any]]] = {LOOK: look, "discover": discover, "predict": predict}


def main() -> None:
    """Run the task."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print shall not stand among the answers

    def tell(**content: Any) -> None:
        out.write(json.dumps(content, allow_nan=False) + "\n")
        out.flush()

    def watch(stage: str, share: float, line: str) -> None:
        if stage == WRITING:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        tell(stage=stage, share=min(1.0, share), line=line)

    # what a server in the background inherits is to ignore Ctrl-C, and with it the stop button
    signal.signal(signal.SIGINT, signal.default_int_handler)
    task = json.loads(sys.stdin.readline())
    if task["task"] != LOOK:
        _import()  # an interruption that meets an import may be lost in it
    try:
        threading.Thread(target=_listen, daemon=True).start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries; what matters is said by the tasks
            tell(result=TASKS[task.pop("task")](watch, **task))
    except KeyboardInterrupt:
        tell(error=STOPPED)
    except (ValueError, OSError, ImportError, MemoryError) as error:
        tell(error=as_fields(str(error)) or type(error).__name__)
    except Exception as error:  # ours to mend: the terminal has all of it
        traceback.print_exc()
        tell(error=f"unexpected error ({type(error).__name__}: {error}); the terminal has more")


def _import() -> None:
    """Load what tasks take seconds to load."""
    for name in ("gortho.discovery", "gortho.runs", "sklearn.ensemble", "matplotlib.figure"):
        importlib.import_module(name)


def _listen() -> None:
    """Ctrl-C at each "stop"; the end where nobody is there any more."""
    for _ in sys.stdin:
        _thread.interrupt_main()
    os._exit(1)


if __name__ == "__main__":
    main()
