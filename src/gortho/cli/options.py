"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
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
        points = f" --points {len(value)}" if any(p.name == "points" for p in context.command.params) else ""
        raise click.UsageError(
            f"--x was given {len(value)} times: give all columns at once, --x {','.join(value)}{points}"
        )
    return value[0] if value else None


FILE = click.argument("file", type=click.Path(path_type=Path))
RUN = click.argument("run", type=click.Path(path_type=Path))
X = click.option(
    "--x",
    metavar="NAMES",
    callback=_once,
    multiple=True,
    help="Columns of x, such as E,px:pz, point by point; or the name of an array, or of one array per point: u,v.",
)
Y = click.option("--y", metavar="NAMES", help="Columns of the target, or the name of an array.")
SCALARS = click.option(
    "--scalars",
    metavar="NAMES",
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
NAMES = click.option("--names", metavar="A,B,C", help="Names of the coordinates in the printed law.")
DROP = click.option("--drop", metavar="NAMES", help="Columns of the table that are not coordinates.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print only JSON to standard output.")
