"""The command `gortho level`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

EXIT_CODES = {"FOUND": 0, "NONE": 3, "UNDERDETERMINED": 4}


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--x", metavar="NAMES", help="Columns of x, as E,px:pz; or the name of an array.")
@click.option("--names", metavar="A,B,C", help="Names of the coordinates, for the law.")
@click.option(
    "--x-error", metavar="A,B,C", help="Errors of the columns relative to each other, where they are known."
)
@click.option(
    "--decimal",
    type=click.Choice([".", ","]),
    default=".",
    show_default=True,
    help="Decimal sign in text files.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same answer.")
@click.option(
    "--report", type=click.Path(path_type=Path), metavar="PATH.html", help="Write a report to look at."
)
@click.option("--save", type=click.Path(path_type=Path), metavar="PATH.json", help="Keep the answer.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else, to standard output.")
@click.pass_context
def level(
    ctx: click.Context,
    file: Path,
    x: str | None,
    names: str | None,
    x_error: str | None,
    decimal: str,
    seed: int,
    report: Path | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Find the quadric (x - c)ᵀA(x - c) = const that the points in FILE lie on; no target is needed.

    FILE is as for gortho discover. For ellipsoids the calibration, a matrix T and an offset c for which T (x - c) has
    length 1, is printed as Python.

    \b
    Examples:
      gortho level magnetometer.csv --x x,y,z --report out.html
      gortho level particles.parquet --x E,px:pz --json
    """
    from gortho.level import level_form
    from gortho.samples import read

    _check_destinations(report, save)
    data = read(file, x=x, targets=False, decimal=decimal, seed=seed)
    labels = data.names if names is None else [name.strip() for name in names.split(",")]
    found = level_form(data.X, names=labels or None, x_error=_numbers(x_error), seed=seed)
    click.echo(found.to_json() if as_json else str(found))
    if found.form is not None and not found.form.signature.negative and not as_json:
        click.echo(f"\n{found.calibration}")
    if save is not None:
        found.save(save)
        click.echo(f"Saved: {save}", err=as_json)
    if report is not None:
        found.to_html(report)
        click.echo(f"Report: {report}", err=as_json)
    ctx.exit(EXIT_CODES[found.verdict.name])


def _numbers(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--x-error {text}: give numbers with commas between them, as 1,1,0.5") from None


def _check_destinations(report: Path | None, save: Path | None) -> Any:
    """Find out before the fit, not after it, that a result could not be written."""
    for option, path, suffixes in (("--report", report, (".html", ".htm")), ("--save", save, (".json",))):
        if path is None:
            continue
        if path.suffix.lower() not in suffixes:
            raise ValueError(f"{option} {path}: give a name that ends in {suffixes[0]}")
        if path.is_dir() or not path.parent.is_dir():
            raise ValueError(f"{option} {path}: there is no folder {path.parent} to write it to")
