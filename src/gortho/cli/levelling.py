"""The command `gortho level`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from gortho.cli.base import EXIT_CODES, EXITS, main
from gortho.cli.options import (
    DECIMAL,
    FILE,
    JSON,
    NAMES,
    REPORT,
    SEED,
    X,
    check_destinations,
    check_place,
    numbers,
    options,
)


@main.command(epilog=EXITS)
@options(FILE, X)
@NAMES
@click.option(
    "--x-error",
    callback=partial(numbers, kind=float, told="numbers with commas between them, as 1,1,0.5"),
    metavar="A,B,C",
    help="Errors of the columns relative to each other, if known.",
)
@options(DECIMAL, SEED, REPORT)
@click.option("--save", type=click.Path(path_type=Path), metavar="PATH.json", help="Save the answer.")
@JSON
@click.pass_context
def level(
    ctx: click.Context,
    file: Path,
    x: str | None,
    names: str | None,
    x_error: list[float] | None,
    decimal: str,
    seed: int,
    report: Path | None,
    save: Path | None,
    as_json: bool,
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
    data = read(file, x=x, targets=False, decimal=decimal, seed=seed)
    from gortho.level import level_form  # imported late: bad input should fail before torch is loaded
    from gortho.samples.door import as_names

    found = level_form(data.X, names=as_names(names, data.names), x_error=x_error, seed=seed)
    click.echo(found.to_json() if as_json else str(found))
    if found.form is not None and not found.form.signature.negative and not as_json:
        click.echo(f"\n{found.calibration}")
    for told, write, path in (("Saved", found.save, save), ("Report", found.to_html, report)):
        if path is not None:
            write(path)
            click.echo(f"{told}: {path}", err=as_json)
    ctx.exit(EXIT_CODES[found.verdict.name])
