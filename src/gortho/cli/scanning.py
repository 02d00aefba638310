"""The command `gortho scan`: many targets, one table."""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gortho.cli.base import BAD_INPUT, INTERRUPTED, as_options, main
from gortho.cli.options import EFFORTS, JSON, QUIET, named
from gortho.cli.searching import client_of, discover
from gortho.progress import Bar

if TYPE_CHECKING:
    from gortho.scanning import Scan
    from gortho.scanning.row import Row

#: Maximum length of a reason in the progress line; the table has all of it.
SHORT = 80
#: Options of `gortho discover` that do not apply to each target.
OWN = ("dims", "workers", "report", "save", "as_json", "quiet")


@main.command(
    params=[option for option in discover.params if option.name not in OWN],
    epilog=f"Exit codes: 0 the table is written, {BAD_INPUT} bad input, or every target ended with an error, "
    f"{INTERRUPTED} interrupted by Ctrl-C.",
    short_help="Try many targets or many files, and write one table.",
)
@named(
    "--targets",
    help="Columns to try, such as E,T:p; separate groups by semicolons, such as Fx:Fz;vx:vz, for outputs of several "
    "numbers. By default all numeric columns.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder for the table (default: FILE-scan)."
)
@click.option("--reports", is_flag=True, help="Write a report for each target, linked from the table.")
@click.option("--retry", is_flag=True, help="Retry targets that ended with an error.")
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="Number of processes, one target each (default: the number of cores). The table does not depend on it.",
)
@JSON
@QUIET
@click.pass_context
def scan(
    ctx: click.Context,
    /,
    file: Path,
    out: Path | None,
    dask: str | None,
    effort: str,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Try every numeric column of FILE as the target of the same vectors; or every file, if FILE is a folder.

    Columns of x, scalars, weights and errors are not targets; constant columns, row numbers and dates are skipped and
    listed. The table, sorted by verdict and confidence, is written to DIR/table.csv and DIR/table.html. Each row is
    saved as soon as it is known: after Ctrl-C or a crash, the same command continues. In --y-error, {} stands for the
    target. The time budget is per target. --y and --derivative are for folders; the targets of a file are named by
    --targets.

    \b
    Examples:
      gortho scan events.parquet --x E,px:pz --reports
      gortho scan events.csv --x E,px:pz --targets mass,t:w --y-error {}_err
      gortho scan runs --y label --output class --dask tcp://head:8786
    """
    if options["scalars_per_point"] and options["scalars"] is None:
        raise click.UsageError("--scalars-per-point is given without --scalars: say which columns they are")
    import gortho
    from gortho.samples.kinds import ARRAYS

    table = not file.is_dir() and file.suffix.lower() not in ARRAYS
    if options["set_like"] and table and (options["points"] or 1) == 1:
        raise click.UsageError("--set is given, but each sample has one vector: say how many by --points")
    options = {name: v for name, v in options.items() if v not in (None, "", []) and v is not False}
    folder = out or Path(f"{Path(file.name.removesuffix('.gz')).stem or 'here'}-scan")

    before: list[int] = []

    def watch(done: int, total: int, row: Row) -> None:
        before.append(done - 1)
        said = row.group or textwrap.shorten(as_options(row.reason), SHORT, placeholder=" …")
        stage = f"{done} of {total}" + (f" ({before[0]} were done before)" if before[0] else "")
        bar(stage, done / total, f"{row.target}: {row.verdict} {said}")

    try:
        with Bar(hidden=quiet) as bar, client_of(dask) as client:
            settings = gortho.Settings(**EFFORTS[effort])
            found = gortho.scan(file, out=folder, client=client, settings=settings, progress=watch, **options)
    except KeyboardInterrupt:
        click.echo(f"Interrupted: the rows so far are in {folder}, and the same command continues.", err=True)
        ctx.exit(INTERRUPTED)
    ctx.exit(_tell(found, folder, effort, as_json))


def _tell(found: Scan, folder: Path, effort: str, as_json: bool) -> int:
    """Print and write the table in the words of the command line; the exit code."""
    rows = tuple(replace(row, reason=as_options(row.reason)) for row in found.rows)
    found = replace(found, rows=rows, effort=effort)
    found.write()
    if as_json:
        content = {
            "rows": [
                row | {"report": row["report"] or None}
                for row in json.loads(found.table.to_json(orient="records"))
            ],
            "left_out": found.left_out,
            "expected_wrong": found.expected_wrong,
        }
        click.echo(json.dumps(content, indent=1, allow_nan=False))
    else:
        click.echo(str(found))
    for name in ("table.csv", "table.html"):
        if (folder / name).exists():
            click.echo(f"Table: {folder / name}", file=sys.stderr if as_json else None)
    if {row.verdict for row in rows} != {"ERROR"}:
        return 0
    click.echo("Every target ended with an error.", err=True)
    return BAD_INPUT
