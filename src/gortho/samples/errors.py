"""Errors about data, and how they are worded."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

SHOWN = 20
#: What helps against missing numbers, beside others; not against infinite ones.
LEAVE_OUT = ", or leave them out by dropna=True"
#: What helps where a file has other columns than a run.
OTHERS = ": name the right columns by --x"
#: Arguments of Python functions in messages, with their values if these are a word, a sign or a number.
ARGUMENT = re.compile(
    r"(?<!['\w-])(?:(x|y|scalars|points|output|decimal|drop|by|weight|derivative)=|"
    r"(max_samples|scalars_per_point|y_error|sample_weight|dropna|time_budget|look_for)\b=?)"
    r"(?:'([^']*)'|True|(\d+))?"
)


class DataError(ValueError):
    """The data cannot be used as they are; the message names the offending value and the fix."""


class MissingError(DataError):
    """A column or an array is not there; ``name`` is what was looked for."""

    def __init__(self, message: str, name: str = ""):
        super().__init__(message)
        self.name = name


@contextmanager
def undamaged(*errors: type[Exception]) -> Iterator[None]:
    """Within: what a reader raises of a bad file is said as a DataError."""
    try:
        yield
    except DataError:
        raise
    except errors as error:
        raise DataError(f"the file is truncated or damaged ({error}): write it again") from None


def row_number(row: int) -> str:
    """Where a row stands, by its number from 0."""
    return f"row {row}"


def numbered(rows: Sequence[int], most: int = 10) -> str:
    """Samples by their numbers, which `Dataset.in_file` turns into places in the file.

    >>> numbered([3, 8])
    'number 3, 8 of the samples used, counted from 0'
    """
    numbers = ", ".join(map(str, rows[:most])) + ", …" * (len(rows) > most)
    return f"number {numbers} of the samples used, counted from 0"


def listed(names: Sequence[str]) -> str:
    """The names in quotes, at most `SHOWN` of them.

    >>> listed(["E", "px"])
    "'E', 'px'"
    """
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(repr(name) for name in names[:SHOWN]) + more


def missing(what: str, name: str, available: Sequence[str]) -> MissingError:
    """The error for a column or array that is not there, with the nearest names that are."""
    lower = {other.lower(): other for other in available}
    near = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, cutoff=0.5)]
    hint = f"did you mean {listed(near)}? " if near else ""
    return MissingError(f"there is no {what} {name!r}: {hint}available: {listed(available) or 'none'}", name)


def respelled(message: str, spelled: Callable[[str, str], str]) -> str:
    """A message for those who do not write Python: each argument, and its value or "", as they know it."""

    def instead(match: re.Match[str]) -> str:
        name, value = match[1] or match[2], match[3] or match[4] or ""
        return spelled("weight" if name == "sample_weight" else name, value)

    return ARGUMENT.sub(instead, message)
