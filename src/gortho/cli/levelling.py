"""The command `gortho level`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from gortho.cli import options as o
from gortho.cli.base import EXIT_CODES, EXITS, main
from gortho.cli.options import check_destinations, check_place, numbers, options
from gortho.cli.searching import hand_over


@main.command(epilog=EXITS)
@options(o.FILE, o.X, o.NAMES)
@click.option(
    "--x-error",
    callback=partial(numbers, kind=float, told="numbers separated by commas, such as 1,1,0.5"),
    metavar="A,B,C",
    help="Errors of the columns relative to each other, if known.",
)
@options(o.DECIMAL, o.SEED, o.REPORT)
@click.option("--save", type=click.Path(path_type=Path), metavar="PATH.json", help="Save the answer.")
@o.JSON
@click.pass_context
def level(
    ctx: click.Context, /, file: Path, report: Path | None, save: Path | None, as_json: bool, **asked: Any
) -> None:
    """Find the quadric (x - c)ᵀA(x - c) = const that the points in FILE lie on; no target is needed.

    FILE is as for gortho discover. For ellipsoids the calibration, a matrix T and an offset c such that T (x - c) has
    length 1, is printed as Python code.

    \b
    Examples:
      gortho level magnetometer.csv --x x,y,z --report out.html
      gortho level particles.parquet --x E,px:pz --json
    """
    from gortho.samples import read

    check_destinations(report, None)
    check_place("--save", save, ".json")
    data = read(file, targets=False, **{name: asked[name] for name in ("x", "decimal", "seed")})
    from gortho.level import level_form  # imported late: bad input should fail before torch is loaded
    from gortho.samples.door import as_names

    names = as_names(asked["names"], data.names)
    found = level_form(data.X, names=names, x_error=asked["x_error"], seed=asked["seed"])
    told = found.to_json() if as_json else str(found)
    if found.form is not None and not found.form.signature.negative and not as_json:
        told += f"\n\n{found.calibration}"
    files = (("Saved", found.save, save), ("Report", found.to_html, report))
    hand_over(ctx, told, files, EXIT_CODES[found.verdict.name], as_json)
