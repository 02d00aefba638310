"""Tables with named columns: which of them are x, y and the rest, and how they are read."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .chunks import Chunks, Piece
from .errors import DataError, MissingError, listed, missing, row_number
from .labels import Codes
from .wanted import MORE, Wanted

TARGET = re.compile(r"y$|y[_\d]|target|label", re.IGNORECASE)
#: What begins with a letter is no number, but for missing and logical ones.
WORD = re.compile(r"^\s*(?!(?:nan?|n/a|none|null|true|false|inf|infinity)\s*$)[^\W\d_]", re.IGNORECASE)
#: What a date or a time of day looks like.
DATE = re.compile(r"\d[-/.]\d{1,2}[-/.]\d|\d:\d\d")
LOOKED_AT = 20  # rows that tell whether a target is text
INDEX = re.compile(r"$|Unnamed: \d+$|__index_level_\d+__$")  # row numbers that pandas writes along


@dataclass(frozen=True)
class Table:
    """A table on disk: its header, and pieces of the wanted columns; `total` rows, None where only reading tells.

    Of the columns, those of labels are read as they stand, all others as numbers. `head` gives the first rows of all
    columns as they stand, as a data frame. `elsewhere` says where a name that the header lacks stands.
    """

    header: list[str]
    pieces: Callable[[list[str], Collection[str]], Sequence[Piece]]
    head: Callable[[int], Any]
    total: int | None = None
    where: Callable[[int], str] = row_number
    notices: tuple[str, ...] = ()
    elsewhere: Callable[[str], str] = lambda name: ""


def check_header(table: Table) -> None:
    """Refuse names that two columns have."""
    repeated = sorted(name for name, times in Counter(table.header).items() if times > 1)
    if repeated:
        raise DataError(f"the header names {listed(repeated)} more than once: rename the columns")


def choose_columns(table: Table, wanted: Wanted) -> Chunks:
    """The wanted columns of a table, not read yet."""
    check_header(table)
    try:
        return _chosen(table, wanted)
    except MissingError as error:
        raise MissingError(f"{error}{table.elsewhere(error.name)}", error.name) from None


def _chosen(table: Table, wanted: Wanted) -> Chunks:
    given = {part: getattr(wanted, part) for part in ("scalars", *MORE)}
    rest = {part: pick(names, table.header, part) for part, names in given.items() if names is not None}
    drop = [] if wanted.drop is None else pick(wanted.drop, table.header, "drop")
    taken = [name for names in rest.values() for name in names] + drop
    x_columns, y_columns, notices = _pick_samples(table.header, wanted, taken)
    parts = {"x": x_columns, "y": y_columns} | rest
    columns = [name for names in parts.values() for name in names]
    if len(set(columns)) < len(columns):
        twice = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
        raise DataError(f"columns {listed(twice)} are used more than once: give each to x, y or scalars once")
    picked = {part: tuple(names) for part, names in parts.items() if names}
    codes: dict[str, Codes] = {}
    _check_times(table, rest.get("time", []))
    if not wanted.labels:
        _check_no_labels(table, y_columns)
    if wanted.labels and y_columns:
        if len(y_columns) > 1:
            raise DataError(f"y has {len(y_columns)} columns: classes are one column of labels")
        pieces = table.pieces(y_columns, y_columns)
        codes = {y_columns[0]: Codes.of(part for piece in pieces for ((_, part),) in piece.read(None))}
    return Chunks(
        tuple(replace(piece, codes=codes) for piece in table.pieces(columns, codes)),
        {part: (len(names),) for part, names in picked.items()},
        tuple(f"column {name!r}" for name in columns),
        table.total,
        x_columns,
        [*table.notices, *notices],
        picked,
        table.where,
        classes=codes[y_columns[0]].classes if codes else (),
    )


def _check_no_labels(table: Table, y_columns: list[str]) -> None:
    """Refuse a target that looks like labels, a few words that come again, with a hint how to say that it has such."""
    for name in y_columns if len(y_columns) == 1 else []:
        cells = table.head(LOOKED_AT)[name].dropna().tolist()
        words = {str(cell) for cell in cells if WORD.search(str(cell))}
        if cells and len(words) < len(cells) and all(str(cell) in words for cell in cells):
            raise DataError(
                f"column {name!r} holds text, such as {listed(sorted(words)[:2])}: give output='class' if these are "
                "labels, or numbers"
            )


def _check_times(table: Table, names: list[str]) -> None:
    """Refuse dates as times, which are no numbers: advice to drop their column would not help."""
    for name in names:
        cells = map(str, table.head(LOOKED_AT)[name].dropna())
        if date := next(filter(DATE.search, cells), None):
            raise DataError(
                f"column {name!r} is the time and holds dates, such as {date!r}: make them numbers, such as the "
                "seconds or days since the first"
            )


def pick(wanted: str | Sequence[str], header: list[str], what: str) -> list[str]:
    """The columns meant by names, or by slices "first:last" which include both ends.

    >>> pick("E, px:pz", ["E", "px", "py", "pz", "y"], "x")
    ['E', 'px', 'py', 'pz']
    >>> pick('E, "v,y"', ["E", "v,y"], "x")
    ['E', 'v,y']
    >>> pick("E, px: pz", ["E", " px", "py", " pz"], "x")
    ['E', ' px', 'py', ' pz']
    """
    parts = _parts(wanted, header)
    picked: list[str] = []
    for part in parts:
        whole = part in header or ":" not in part
        ends = [_name(end, header) for end in ([part] if whole else part.split(":", 1))]
        for end in ends:
            if end not in header:
                raise missing("column", end, header)
        first, last = header.index(ends[0]), header.index(ends[-1])
        if last < first:
            raise DataError(f"{what}: in {part!r}, {ends[1]!r} stands before {ends[0]!r}: swap them")
        picked += header[first : last + 1]
    if not picked:
        raise DataError(f"{what} names no column: available: {listed(header)}")
    return picked


def _parts(wanted: str | Sequence[str], header: list[str]) -> list[str]:
    """Names between commas; those that hold a comma stand in double quotes, as in a .csv."""
    if not isinstance(wanted, str):
        return [str(part) for part in wanted]
    blanks = re.sub(r'(^|,)\s+"', r'\1"', wanted)  # before a quote they are no part of the name
    return [wanted] if wanted in header else next(csv.reader([blanks]), [])


def _name(text: str, header: list[str]) -> str:
    """A name without the blanks around it that the column does not have."""
    return next((name for name in (text, text.lstrip(), text.rstrip()) if name in header), text.strip())


def _pick_samples(
    header: list[str], wanted: Wanted, taken: list[str]
) -> tuple[list[str], list[str], list[str]]:
    """The columns of x and y, as asked for or else by their names, and notices about the latter.

    There are none of y if targets are not wanted, or optional and absent.
    """
    x, y, targets = wanted.x, wanted.y, wanted.needs_y
    x_columns = None if x is None else pick(x, header, "x")
    y_columns: list[str] | None = None
    if y is not None and targets is None:  # wanted only if they are there
        parts = _parts(y, header)
        ends = [_name(end, header) for part in parts for end in (part, *part.split(":"))]
        y_columns = pick(y, header, "y") if any(end in header for end in ends) else []
    elif y is not None and targets:
        y_columns = pick(y, header, "y")
    free = [name for name in header if name not in {*taken, *(x_columns or []), *(y_columns or [])}]
    if wanted.time is not None:  # y is made of x: a column of that name is a coordinate
        y_columns = []
    if y_columns is None:
        y_columns = [name for name in free if TARGET.match(name)]
        unclear = coordinates(y_columns, header)
        if unclear and (targets is not False or x_columns is None):
            raise DataError(
                f"it is not clear whether {listed(unclear)} are targets or coordinates, as there is also "
                f"{_after(unclear[0])!r}: say which by {'x' if targets is False else 'y'}="
            )
        if not y_columns and targets:
            raise DataError(
                "no column is named y, y_..., target... or label...: say which is the target by y=; "
                f"available: {listed(free)}"
            )
    if x_columns is None:
        x_columns = [name for name in free if name not in y_columns and not INDEX.match(name)]
        if not x_columns:
            raise DataError(f"no columns are left for x: say which by x=; available: {listed(header)}")
    if targets is False:
        y_columns = []
    unused = (
        set(taken) & {*x_columns, *y_columns} & set(pick(wanted.drop, header, "drop") if wanted.drop else [])
    )
    if unused:
        raise DataError(f"columns {listed(sorted(unused))} are dropped and used: choose one")
    if x is not None and (y is not None or not y_columns):
        return x_columns, y_columns, []
    told = [f"{part} = {listed(names)}" for part, names in (("x", x_columns), ("y", y_columns)) if names]
    notices = [f"columns by name: {'; '.join(told)}"]
    if x is None:
        notices += [
            f"{name!r} may be the errors of {target!r}, and is no coordinate then: give it as y_error="
            for target in y_columns
            for name in x_columns
            if _errors_of(target).fullmatch(name)
        ]
    return x_columns, y_columns, notices


def _errors_of(target: str) -> re.Pattern[str]:
    """What columns of the errors of a target are called.

    >>> [bool(_errors_of("V").fullmatch(name)) for name in ("V_err", "sigma_V", "Vx", "W_err")]
    [True, True, False, False]
    """
    target, words = re.escape(target), "err|error|errors|sigma|std|unc|uncertainty"
    return re.compile(rf"{target}_?(?:{words})|(?:{words})_?{target}", re.IGNORECASE)


def coordinates(columns: Iterable[str], header: Sequence[str]) -> list[str]:
    """Those of the columns that are called as a y beside which there is a z."""
    return [name for name in columns if name[0] in "yY" and _after(name) in header]


def _after(name: str) -> str:
    """The z coordinate that would go with a y coordinate."""
    return chr(ord(name[0]) + 1) + name[1:]


def component_names(columns: list[str], points: int) -> tuple[str, ...]:
    """Names of the components, from columns that go point by point.

    >>> component_names(["E_0", "px_0", "E_1", "px_1"], 2)
    ('E', 'px')
    """
    n = len(columns) // points
    if points == 1:
        return tuple(columns)
    stems = [re.sub(r"[_\d]+$", "", name) for name in columns]
    by_component = [stems[k * points : (k + 1) * points] for k in range(n)]
    if stems != stems[:n] * points and all(len(set(group)) == 1 for group in by_component):
        right = [columns[k * points + i] for i in range(points) for k in range(n)]
        raise DataError(
            f"the columns of x go component by component ({listed(columns[:points])}, ...): "
            f"give them point by point, x={','.join(right[: 2 * n])}" + (",..." if points > 2 else "")
        )
    return tuple(stems[:n] if len(set(stems[:n])) == n and all(stems[:n]) else columns[:n])
