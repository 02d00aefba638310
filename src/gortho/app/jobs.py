"""`Job`: a task in a process of its own, as the server sees it: how far it is, its answer, its end."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from gortho.app.tasks import STOPPED

KILLED = "The process was ended from outside (exit code {}): perhaps there was not enough memory."


@dataclass(frozen=True)
class State:
    """How far a task is: its stage, the share done, a line on the leading form; and its answer or error at the end."""

    stage: str = "starting"
    share: float = 0.0
    line: str = ""
    stopping: bool = False
    ended: bool = False
    result: dict[str, Any] | None = None
    error: str = ""


class Job:
    """A task that runs; `state` is replaced as it goes on."""

    def __init__(self, task: str, **arguments: Any):
        self.state, self._lock = State(), threading.Lock()
        self._begun, self._took = time.monotonic(), 0.0
        # A group of its own: Ctrl-C in the terminal is for the server, which ends its jobs itself.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "gortho.app.tasks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._write(json.dumps({"task": task, **arguments}))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _set(self, **changes: Any) -> None:
        with self._lock:  # the reader and the server both do
            self.state = replace(self.state, **changes)

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # it has ended, and its pipe is closed
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        told: dict[str, Any] = {}
        with self._process.stdout as lines:
            for line in lines:
                with suppress(ValueError):  # a line that was cut off by the end
                    told = json.loads(line)
                if "stage" in told:
                    self._set(**told)
        code = self._process.wait()
        with suppress(OSError):  # what was not read any more
            self._process.stdin.close()
        self._took = time.monotonic() - self._begun
        result, error = told.get("result"), self.state.error
        if result is None and not error:  # an import that is stopped may fail in many ways
            error = STOPPED if self.state.stopping else told.get("error") or KILLED.format(code)
        self._set(ended=True, result=result, error=error)

    @property
    def seconds(self) -> float:
        """Since it began, or until it ended."""
        return self._took or time.monotonic() - self._begun

    def stop(self) -> None:
        """Ask for the best so far; asked again, end at once."""
        if self.state.stopping:
            self.end("Stopped at once, without a result.")
        elif not self.state.ended:
            self._set(stopping=True)
            self._write("stop")

    def end(self, why: str = "The app was closed.") -> None:
        """End at once."""
        if not self.state.ended:
            self._set(error=why)
            self._process.kill()
            self._reader.join()

    def wait(self, seconds: float) -> State:
        """The state at the end; it is ended after so many seconds."""
        self._reader.join(seconds)
        self.end(f"This took more than {seconds:g} seconds, and was stopped.")
        return self.state
