"""Which columns of a file, or which files of a folder, are targets; which are left out, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gortho.samples.errors import DataError, listed
from gortho.samples.kinds import ARRAYS, KINDS
from gortho.samples.look import Column, look
from gortho.samples.suspects import CLOCKS
from gortho.samples.tables import INDEX, pick
from gortho.samples.wanted import Columns

#: What columns are that have numbers, and what those are that number or date the rows.
NUMBERS, NAMING = ("numbers", "whole numbers", "logical"), ("counts the rows", "dates as YYYYMMDD", *CLOCKS)
#: Parts of a sample that are no targets.
PARTS = ("x", "scalars", "weight", "y_error", "drop")


@dataclass(frozen=True)
class Target:
    """One row of the table: a file and the columns of its target; None for what was given, or what names tell."""

    name: str
    file: Path
    y: tuple[str, ...] | None = None
    x: tuple[str, ...] | None = None
    y_error: tuple[str, ...] | None = None
    lacks: str = ""  # the column of errors that is not there


@dataclass(frozen=True)
class Targets:
    """All targets, in their order; what is left out, with the reason."""

    all: tuple[Target, ...]
    left_out: dict[str, str]


def targets_of(path: Path, wanted: Columns | Sequence[Sequence[str]], reading: dict[str, Any]) -> Targets:
    """The targets of a file or of a folder; `reading` names the other parts of the samples."""
    found = _files(path, wanted) if path.is_dir() else _columns(path, wanted, reading)
    if not found.all:
        told = "; ".join(f"{name!r}: {why}" for name, why in found.left_out.items()) or "there are none"
        raise DataError(f"{path.name} has nothing to scan: {told}; name targets by targets=")
    return found


def _files(folder: Path, wanted: Any) -> Targets:
    """Every file of a folder that can be read, whatever is in it: an unreadable one becomes a row with its error."""
    if wanted is not None:
        raise DataError(f"{folder.name} is a folder, and each file a target: name their columns by y=")
    files, left_out = [], {}
    for file in sorted(folder.iterdir()):
        if file.name.startswith("."):
            continue
        if file.is_file() and Path(file.name.lower().removesuffix(".gz")).suffix in KINDS:
            files.append(Target(file.name, file))
        else:
            left_out[file.name] = (
                "not a kind of file that is read" if file.is_file() else "a folder: scan it by itself"
            )
    return Targets(tuple(files), left_out)


def _columns(path: Path, wanted: Any, reading: dict[str, Any]) -> Targets:
    """Every column with numbers, or those that are wanted."""
    if reading.get("y") is not None or reading.get("derivative") is not None:
        raise DataError(
            f"{path.name} is a file: name its targets by targets=; y= and derivative= are for folders"
        )
    if reading["x"] is None and wanted is None:
        raise DataError("say which columns are the vectors by x=: all others with numbers become targets")
    seen = {column.name: column for column in look(path, decimal=reading["decimal"]).columns}
    header, pattern = list(seen), reading["y_error"] or ""
    each = isinstance(pattern, str) and "{}" in pattern
    named = {name: pattern.replace("{}", name) for name in header} if each else {}
    errors = {name: error for name, error in named.items() if error in header}
    given = {part: reading[part] for part in PARTS if not (part == "y_error" and errors)}
    taken = {n for part, names in given.items() if names is not None for n in pick(names, header, part)}
    taken |= set(errors.values())
    if wanted is None:
        names, left_out = _offered(path, seen, taken, reading)
        groups = [[name] for name in names]
    else:
        groups, left_out = _groups(wanted, header), {}
    used = {name for group in groups for name in group}
    if used & taken:
        raise DataError(f"columns {listed(sorted(used & taken))} are targets and something else: choose one")
    x = None
    if reading["x"] is None and path.suffix.lower() not in ARRAYS:
        x = tuple(name for name in header if name not in used | taken and not INDEX.match(name))

    def target(group: Sequence[str]) -> Target:
        lacks = next((named[name] for name in group if errors and name not in errors), "")
        own = tuple(errors[name] for name in group) if errors and not lacks else None
        return Target(",".join(group), path, tuple(group), x, own, lacks)

    return Targets(tuple(map(target, dict.fromkeys(map(tuple, groups)))), left_out)


def _offered(
    path: Path, seen: dict[str, Column], taken: set[str], reading: dict[str, Any]
) -> tuple[list[str], dict[str, str]]:
    """The names of all that may be targets, and what is left out."""
    if reading["output"] == "class":
        raise DataError("output='class' takes labels: say which columns hold them by targets=")
    arrays = path.suffix.lower() in ARRAYS
    if reading["output"] != "scalar" and not arrays:
        raise DataError(
            f"output={reading['output']!r} takes several columns: name them by targets=, as Fx:Fz;vx:vz"
        )
    left_out = {n: why for n, column in seen.items() if n not in taken and (why := _why(column))}
    names = [name for name in seen if name not in taken and name not in left_out]
    if arrays:  # an array with another number of rows belongs to something else
        rows = (seen[pick(reading["x"], list(seen), "x")[0]].shape or (0,))[0]
        left_out |= {
            name: "another number of rows than x" for name in names if (seen[name].shape or ())[:1] != (rows,)
        }
    return [name for name in names if name not in left_out], left_out


def _groups(wanted: Any, header: list[str]) -> list[list[str]]:
    """The columns of each target: one for each, or those between semicolons."""
    if isinstance(wanted, str) and ";" not in wanted:
        return [[name] for name in pick(wanted, header, "targets")]
    groups = wanted.split(";") if isinstance(wanted, str) else list(wanted)
    return [pick(group, header, "targets") for group in groups]


def _why(column: Column) -> str:
    """Why a column is no target; "" if it may be one."""
    if INDEX.match(column.name):
        return "row numbers"
    if column.kind not in NUMBERS:
        return "empty" if column.kind == "nothing" else f"{column.kind}, not numbers"
    if column.low is not None and column.low == column.high:
        return f"constant ({column.low:.6g})"
    return column.note if column.note in NAMING or column.shape == () else ""
