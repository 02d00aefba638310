"""Files that are whole or not there, files to which lines are added, and directories with one writer at a time."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

#: Ends the names of files that are being written; those of a process that was killed stay behind.
PART = ".part"
#: Libraries that raise errors of their own have the words of the system in them.
NO_SPACE = os.strerror(errno.ENOSPC)


class Busy(ValueError):
    """Another run writes to the same place."""


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Within: a temporary name beside `path`, which gets that name at the end, or goes away after an error.

    A kill leaves the old file or the new one, never half of it; so does a disk that is full, and the error says so.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}{PART}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except Exception as error:
        if getattr(error, "errno", None) == errno.ENOSPC or NO_SPACE in str(error):
            words = f"no space left to write {path}; what was there is kept: free some space, or choose another place"
            raise OSError(errno.ENOSPC, words) from None
        if isinstance(error, OSError) and error.filename == str(temporary):
            words = f"{path} cannot be written ({error.strerror}): make its folder, or choose another place"
            raise type(error)(words) from None
        raise
    finally:
        with suppress(OSError):  # the reason why it could not be written is told already
            temporary.unlink(missing_ok=True)


def write_whole(path: str | Path, write: Callable[[Path], Any]) -> Path:
    """Write a file as a whole: `write` is given the name to write to."""
    path = Path(path)
    with whole(path) as temporary:
        write(temporary)
    return path


def write_text(path: str | Path, text: str) -> Path:
    """Write a text as a whole."""
    return write_whole(path, lambda place: place.write_text(text, encoding="utf-8"))


def append_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Add lines to a file; when this returns they are on the disk. A last line that was cut off stays by itself."""
    text = "".join(f"{line}\n" for line in lines)
    with open(path, "a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            text = text if file.read() == b"\n" else f"\n{text}"
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def json_lines(path: str | Path) -> list[Any]:
    """The values in a file of JSON lines, none if it is not there; lines that were cut off are left out."""
    path, values = Path(path), []
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    for line in text.split("\n"):
        with suppress(json.JSONDecodeError):
            values.append(json.loads(line))
    return values


@contextmanager
def only_writer(directory: Path) -> Iterator[None]:
    """Within: no other run writes to this directory. The lock ends with the process, however that ends."""
    from filelock import FileLock, Timeout

    lock = FileLock(directory / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise Busy(f"another run is writing to {directory}: wait for it, or give another directory") from None
    try:
        yield
    finally:
        lock.release()
