"""Commands that use a saved run: `gortho predict` and `gortho check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gortho.cli.base import BAD_INPUT, as_options, main
from gortho.cli.options import DECIMAL, DROPNA, FILE, JSON, POINTS, RUN, SCALARS, X, Y, options

if TYPE_CHECKING:  # what the commands need is imported where it is used
    from gortho.discovery import Discovery


@main.command(epilog=f"Exit codes: 0 success, {BAD_INPUT} bad input.")
@options(RUN, FILE, X, SCALARS, POINTS, DECIMAL, DROPNA)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Output file: .npz, .csv, .parquet or .h5."
)
def predict(run: Path, file: Path, out: Path, **columns: Any) -> None:
    """Predict for the inputs in FILE with the saved RUN, row by row.

    By default, the columns are those that the run was made with. Columns of predictions are named after the target of
    the run, or y, or y_0, y_1, ...; files of arrays have y. For classes, y is the most probable class, and
    p_CLASS are the probabilities. A run whose verdict is not FOUND predicts with its best form, with a warning, and
    the exit code is 0. If inputs are far outside those of the run, a note says that predictions are extrapolated.

    \b
    Example:
      gortho predict run new.csv --out predictions.csv
    """
    from gortho.samples import DataError, check_writable
    from gortho.samples.kinds import kind_of

    kind_of(file)  # a missing file should fail before torch is loaded
    if check_writable(out).resolve() == file.resolve():
        raise DataError(f"{out} is the file that is read: choose another name for the predictions")
    from gortho.runs import load, read_for
    from gortho.runs import predict as write_predictions

    found = load(run)
    _warn(found)
    data = read_for(found, file, targets=False, **columns)
    for notice in [*data.notices, *write_predictions(found, data, out)]:
        click.echo(f"note: {as_options(notice)}", err=True)
    empty = "" if data.kept is None else "; rows that were left out are empty there"
    rows = len(data.X)
    click.echo(f"{rows} prediction{'s' * (rows != 1)} in {out}{empty}")


@main.command(epilog=f"Exit codes: 0 the check passed, 1 it failed, {BAD_INPUT} bad input.")
@options(RUN, FILE, X, Y, SCALARS, POINTS, DECIMAL, DROPNA, JSON)
@click.pass_context
def check(ctx: click.Context, /, run: Path, file: Path, as_json: bool, **columns: Any) -> None:
    """Check the predictor of a saved RUN on the data in FILE.

    Measures the equivariance of the predictor on these inputs and, if FILE has targets, its error (for classes, the
    log loss). The check passes if the relative equivariance error is at most 1e-8 and the error at most twice that
    measured at discovery, or what the number of held-out labels allows.

    \b
    Example:
      gortho check run new.csv --json
    """
    from gortho.samples.kinds import kind_of

    kind_of(file)  # a missing file should fail before torch is loaded
    from gortho.certificate import certify
    from gortho.runs import load, read_for
    from gortho.stored import plain

    found = load(run)
    _warn(found)
    data = read_for(found, file, targets=True if columns["y"] else None, **columns)
    result = certify(found, data)
    if as_json:
        content = plain(result) | {"holds": result.holds}
        content["equivariance"] = [{"boost": b, "error": e} for b, e in result.equivariance.items()]
        click.echo(json.dumps(plain(content), indent=1))
    else:
        for notice in data.notices:
            click.echo(f"note: {as_options(notice)}", err=True)
        click.echo(
            f"{run} ({found.law()}   [{found.group_of_law}]) on {result.samples} samples of {file.name}"
        )
        click.echo(str(result))
    ctx.exit(0 if result.holds else 1)


def _warn(found: Discovery) -> None:
    if found.symmetry is None:
        click.echo(
            f"Warning: the form of this run was not accepted ({found.verdict}): {found.reason}", err=True
        )
