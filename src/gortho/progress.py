"""What a person sees of a long run: a bar on standard error, and a Ctrl-C that keeps the best so far."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType

with warnings.catch_warnings():  # in notebooks without ipywidgets a bar of text does as well
    warnings.simplefilter("ignore")
    from tqdm.auto import tqdm as tqdm

#: Called with the stage, the share of the whole work done, and a line on the leading form.
Watch = Callable[[str, float, str], None]
_FORM = re.compile(r"(?P<law>.*?)\s+\[(?P<group>[^\]]*)\]\s*(?P<error>.*)")
_LEAST_LAW = 16  # a law cut shorter than this says nothing


def in_notebook() -> bool:
    """Whether a notebook runs this, where bars are shown as such."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and "IPKernelApp" in shell.config


def somebody_watches() -> bool:
    """Whether bars are seen: at a terminal, or in a notebook."""
    return sys.stderr.isatty() or in_notebook()


def shorten(line: str, width: int) -> str:
    """A line on the leading form in at most ``width`` characters: the law is cut first, then left out.

    >>> line = "q(x) = 1.02 x0² - 0.11 x0·x1 + 0.98 x1²   [O(2)]  error 1.24e+00"
    >>> shorten(line, 50)
    'q(x) = 1.02 x0² - 0.11 x0…  [O(2)]  error 1.24e+00'
    >>> shorten(line, 30)
    'O(2)  error 1.24e+00'
    """
    if len(line) <= width:
        return line
    match = _FORM.fullmatch(line)
    if match is None:
        return line[: max(0, width - 1)] + "…"
    law, group, error = match["law"], match["group"], match["error"]
    tail = f"[{group}]  {error}".rstrip()
    room = width - len(tail) - 3
    short = f"{law[:room]}…  {tail}" if room >= _LEAST_LAW else f"{group}  {error}".rstrip()
    return short[:width]


def stderr_width() -> int:
    """Columns of the terminal behind standard error; 100 where it is none."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return shutil.get_terminal_size((100, 24)).columns


class Bar:
    """A progress bar that shows the stage and the leading form; call it as `discover` calls its ``watch``.

    Where standard error is not a terminal, such as in a log, nothing moves: each stage gets one line when it begins.
    """

    _FORMAT = "{percentage:3.0f}%|{bar:10}| {elapsed} {desc}"
    _NOTEBOOK_FORMAT = "{percentage:3.0f}%|{bar}| {elapsed} {desc}"  # there the bar has a width of its own
    _FIXED = 26  # what the format takes besides the description, for runs below a hundred hours

    def __init__(self, hidden: bool = False):
        self._lines = not (hidden or somebody_watches())
        self._stage = ""
        self._bar = tqdm(
            total=1.0,
            file=sys.stderr,
            bar_format=self._NOTEBOOK_FORMAT if in_notebook() else self._FORMAT,
            leave=False,
            disable=hidden or self._lines,
            desc="looking at the data",
        )

    def __call__(self, stage: str, share: float, line: str) -> None:
        if self._lines:
            if stage != self._stage:
                print(f"{stage}: {line}", file=sys.stderr, flush=True)
            self._stage = stage
            return
        self._bar.n = min(1.0, share)
        width = stderr_width() - self._FIXED - len(stage) - 2
        self._bar.set_description_str(f"{stage}: {shorten(line, max(20, width))}")

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()


def watched(watch: Watch | None) -> AbstractContextManager[Watch | None]:
    """Within: what a caller watches with; in notebooks a bar, unless something else is given."""
    return Bar() if watch is None and in_notebook() else nullcontext(watch)


#: Signals that ask a run to end: Ctrl-C, and what schedulers of clusters send.
ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def _on_ending(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Within: what asks the run to end is handled so, except what it was started to ignore; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        for number, old in before.items():
            if old is not signal.SIG_IGN:
                signal.signal(number, handle)
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def keep_best_on_interrupt() -> AbstractContextManager[None]:
    """Within: the first Ctrl-C, or SIGTERM, raises KeyboardInterrupt and says so; the second leaves at once (130)."""
    return _twice_to_leave(b"Interrupted: finishing with the best form so far.", KeyboardInterrupt)


def finishing() -> AbstractContextManager[None]:
    """Within: the first Ctrl-C, or SIGTERM, changes nothing, as there is a result; the second leaves at once (130)."""
    return _twice_to_leave(b"The result is being written, which takes seconds.")


def _twice_to_leave(words: bytes, first: type[BaseException] | None = None) -> AbstractContextManager[None]:
    asked = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        if asked > 1:
            os.write(2, b"\nStopped.\n")
            os._exit(130)
        # os.write, as the signal may come while the bar is being written
        os.write(2, b"\n" + words + b" Ctrl-C again leaves at once.\n")
        if first is not None:
            raise first

    return _on_ending(handle)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Within: Ctrl-C, and SIGTERM, raise KeyboardInterrupt, and it is remembered that they came."""
    asked = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        asked.set()
        raise KeyboardInterrupt

    with _on_ending(handle):
        yield asked
