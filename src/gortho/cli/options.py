"""Options that several commands have, and checks of them before the work begins."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

#: Sizes of the search by effort: what differs from the default settings.
EFFORTS: dict[str, dict[str, Any]] = {
    "normal": {},
    "quick": {"starts": 12, "generations": 3, "refits": 4, "predictor_steps": 150},
}


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several decorators as one, in the order in which they are written."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def _once(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> str | None:
    """The one value given; several are an error, since all but the last would be ignored silently."""
    if len(value) > 1:
        option, fix = parameter.opts[0], "give it once"
        if parameter.make_metavar(context) == SEVERAL:
            fix = f"give all names at once, {option} {','.join(value)}"
            vectors = option == "--x" and any(p.name == "points" for p in context.command.params)
            fix += f" --points {len(value)}" if vectors else ""
        raise click.UsageError(f"{option} was given {len(value)} times: {fix}")
    return value[0] if value else None


#: The metavar of options that take several names.
SEVERAL = "NAMES"
#: An option of names, given once.
named = partial(click.option, metavar=SEVERAL, callback=_once, multiple=True)


def numbers(
    context: click.Context,
    parameter: click.Parameter,
    text: str | None,
    kind: Callable[[str], Any] = int,
    told: str = "whole numbers separated by commas, such as 0,0,1",
) -> list[Any] | None:
    """Numbers between commas."""
    try:
        return [kind(part) for part in text.split(",")] if text else None
    except ValueError:
        raise ValueError(f"{parameter.opts[0]} {text}: give {told}") from None


FILE = click.argument("file", type=click.Path(path_type=Path))
RUN = click.argument("run", type=click.Path(path_type=Path))
X = named(
    "--x",
    help="Columns of x, such as E,px:pz, point by point; or the name of an array, or of one array per point: u,v.",
)
Y = named("--y", help="Columns of the target, or the name of an array.")
SCALARS = named(
    "--scalars",
    help="Columns or array of quantities that are the same for all observers, such as masses.",
)
POINTS = click.option("--points", type=click.IntRange(1), metavar="P", help="Number of vectors in a sample.")
SEED = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Random seed: the same seed gives the same answer.",
)
EFFORT = click.option(
    "--effort",
    type=click.Choice(list(EFFORTS)),
    default="normal",
    show_default=True,
    help="A quick search uses fewer starts, rounds, refits and steps: it is faster, but less certain.",
)
#: Files that must be read completely to know their columns, which is not done twice.
READ_WHOLE = (".npz", ".xlsx")
#: Where to train.
DEVICE = click.Choice(["cpu", "cuda"])
QUIET = click.option("--quiet", is_flag=True, help="No progress bar.")
DROPNA = click.option(
    "--dropna", is_flag=True, help="Drop rows with missing numbers, which are otherwise an error."
)
DECIMAL = click.option(
    "--decimal",
    type=click.Choice([".", ","]),
    default=".",
    show_default=True,
    help="Decimal separator in text files.",
)
NAMES = named("--names", metavar="A,B,C", help="Names of the coordinates in the printed law.")
DROP = named("--drop", help="Columns of the table that are not coordinates.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print only JSON to standard output.")
REPORT = click.option(
    "--report", type=click.Path(path_type=Path), metavar="PATH.html", help="Write an HTML report."
)


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
