"""The process that a task runs in: `python -m gortho.app.worker`.

Standard input brings the task, one line of JSON, and later perhaps the line "stop"; where it ends, so does the server,
and this process. Standard output takes one line of JSON for each step, and a last one with the answer.
"""

from __future__ import annotations

import _thread
import importlib
import json
import os
import signal
import sys
import threading
import traceback
import warnings
from typing import Any

from gortho.app.asked import as_fields
from gortho.app.tasks import LOOK, STOPPED, TASKS, WRITING


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
