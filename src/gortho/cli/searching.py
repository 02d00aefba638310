"""Commands that search for a form: `gortho discover` and `gortho demo`."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gortho.cli import options as o
from gortho.cli.base import EXIT_CODES, EXITS, as_options, main
from gortho.cli.options import EFFORTS, check_columns, check_destinations, named, numbers, options
from gortho.progress import Bar, finishing, keep_best_on_interrupt

if TYPE_CHECKING:  # what the commands need is imported where it is used
    from torch import Tensor

    from gortho.discovery import Discovery, Survey
    from gortho.forms import QuadraticForm


#: Writes a result to a file or folder.
Write = Callable[[Path], Path]
#: The same as in `gortho.discovery.verdict`, which is slow to import.
TOLERANCE = 0.003


@main.command(epilog=EXITS)
@options(o.FILE, o.X, o.Y, o.SCALARS)
@click.option(
    "--scalars-per-point",
    is_flag=True,
    help="The scalars belong to the points, in this order, not to the whole sample.",
)
@options(o.POINTS, o.DECIMAL)
@click.option(
    "--output",
    default="scalar",
    show_default=True,
    metavar="KIND",
    help="How the target transforms: scalar; vector; covector (a gradient); or a matrix: conjugation (maps vectors to "
    "vectors), bilinear (like x xᵀ), form (like A); with pseudo before it, as in pseudovector, if a mirror changes its "
    'sign; several, such as "scalar + 2*vector"; or class for labels.',
)
@click.option(
    "--errors",
    type=click.Choice(["auto", "absolute", "relative"]),
    default="auto",
    show_default=True,
    help="Errors to minimise: absolute ones, those relative to the size of the target, or whichever works better.",
)
@named("--weight", metavar="NAME", help="Column or array of sample weights.")
@named("--y-error", help="Columns or array of standard errors of the target.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, max_open=True),
    default=TOLERANCE,
    show_default=True,
    metavar="FRACTION",
    help="A law that is broken by at most this fraction of the variance still counts as FOUND, approximately.",
)
@options(o.DROP, o.DROPNA)
@named(
    "--derivative",
    metavar="TIME",
    help="Column of times; rows are points x of trajectories, and the target dx/dt is computed with smoothing splines.",
)
@named("--by", metavar="NAME", help="Column that says which trajectory a row belongs to.")
@click.option("--set", "set_like", is_flag=True, help="The points of a sample have no order.")
@o.NAMES
@click.option(
    "--look-for",
    default="auto",
    show_default=True,
    metavar="NAMES",
    help="What to try if O(A) fails: some of SO,direction,origin,spaces,skew; auto for all of them, O for none.",
)
@click.option(
    "--axial", callback=numbers, metavar="I,J", help="Indices of the axial vectors of a sample, from 0."
)
@click.option(
    "--spaces", callback=numbers, metavar="0,0,1", help="Index of the form of each vector of a sample."
)
@click.option(
    "--dims",
    callback=numbers,
    metavar="3,3,2",
    help="Number of components of each vector, if they differ: vectors of different dimension have their own forms.",
)
@o.SEED
@click.option(
    "--time-budget",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Shorten the search to about this many seconds.",
)
@click.option(
    "--max-samples",
    type=click.IntRange(2),
    metavar="N",
    help="Use a random subset of this many rows if there are more (default: 50000).",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Address of a Dask scheduler, tcp://HOST:PORT, whose workers read large files.",
)
@o.EFFORT
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of processes. The answer does not depend on it.",
)
@o.REPORT
@click.option(
    "--save", type=click.Path(path_type=Path), metavar="DIR", help="Save the run, for predict and check."
)
@options(o.JSON, o.QUIET)
@click.pass_context
def discover(
    ctx: click.Context,
    /,
    file: Path,
    dask: str | None,
    effort: str,
    workers: int,
    report: Path | None,
    save: Path | None,
    as_json: bool,
    quiet: bool,
    **asked: Any,
) -> None:
    """Find the quadratic form that the data in FILE respect.

    FILE is a table (.csv, .tsv, also .gz, .parquet or a folder of them, .feather, .npy, .xlsx, .root) or holds arrays X
    and y (.npz, .h5). Ctrl-C stops the search and returns the best form so far, as UNDERDETERMINED.

    \b
    Examples:
      gortho discover data.npz --output vector --report out.html
      gortho discover jets.csv --x E,px:pz --y mass --names E,px,py,pz
      gortho discover events.csv --y kind --output class
      gortho discover orbit.csv --derivative t --by run
      gortho discover pairs.parquet --points 2 --scalars m_0,m_1 --scalars-per-point --json
      gortho discover spins.csv --x rx,ry,rz,u,v --dims 3,2 --y energy
    """
    begun = time.perf_counter()
    if asked["dims"] and asked["points"] is not None:
        raise click.UsageError("--dims says how many vectors there are: leave out --points")
    if asked["scalars_per_point"] and asked["scalars"] is None:
        raise click.UsageError("--scalars-per-point is given without --scalars: say which columns they are")
    check_columns(file, asked)
    check_destinations(report, save)
    from gortho.surveyed import reading, searched

    seen = _survey(file, dask, quiet, **reading(asked))
    if asked["set_like"] and not asked["dims"] and seen.data.X.ndim == 2:
        raise click.UsageError("--set is given, but each sample has one vector: say how many by --points")
    for notice in [] if quiet else seen.data.notices:
        click.echo(f"note: {as_options(notice)}", err=True)
    with _searching(effort, quiet, workers) as how:
        found = searched(seen, asked, begun, as_options, **how)
    _hand_over(ctx, found, report, save, as_json)


@main.command(epilog=EXITS)
@options(o.SEED, o.EFFORT)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    default="gortho-demo.html",
    show_default=True,
    help="Write an HTML report.",
)
@click.option("--save", type=click.Path(path_type=Path), metavar="DIR", help="Save the run.")
@o.QUIET
@click.pass_context
def demo(ctx: click.Context, /, seed: int, effort: str, report: Path, save: Path | None, quiet: bool) -> None:
    """Find the form hidden in built-in data.

    The data are 3000 samples of f(x) = 9 (x xᵀA)² + 2 x xᵀA in four dimensions, with a hidden A of group O(2,2).

    \b
    Example:
      gortho demo --report demo.html
    """
    import gortho

    check_destinations(report, save)
    form, x, y = _hidden(3000, seed)
    click.echo(f"Hidden in the data: {form}")
    with _searching(effort, quiet) as how:
        found = gortho.discover(x, y, output="conjugation", seed=seed, **how)
    if found.candidate is not None:
        near, far = found.candidate.cosine(form), found.candidate.algebra_distance(form)
        click.echo(f"Found beside truth: |cos| = {near:.6f} (1 is equal), d_PA = {far:.1g} (0 is equal)")
    _hand_over(ctx, found, report, save)


def _hidden(samples: int, seed: int) -> tuple[QuadraticForm, Tensor, Tensor]:
    """A form of signature (2, 2), inputs ``(N, 1, 4)`` uniform in [-1, 1], and f(x) = 9 (x xᵀA)² + 2 x xᵀA of them."""
    import torch

    from gortho.forms import QuadraticForm
    from gortho.groups import haar, random_generator, uniform

    generator = random_generator(seed)
    sizes = torch.rand(4, dtype=torch.float64, generator=generator) + 0.5
    Q = haar(4, (), generator)
    A = Q * (sizes * torch.tensor([1, 1, -1, -1])) @ Q.T
    x = uniform(1.0, generator, samples, 1, 4)
    M = x.mT * (x @ A)
    return QuadraticForm(A), x, 9 * M @ M + 2 * M


def _survey(file: Path, dask: str | None, quiet: bool, **reading: Any) -> Survey:
    """Read the samples, with a progress bar if they are many."""
    from gortho.discovery.large import survey

    def progress(rows: int, total: int | None) -> None:
        bar("reading", rows / total if total else 0.0, f"{rows:,}{f' of {total:,}' if total else ''} rows")

    with Bar(hidden=quiet) as bar, client_of(dask) as client:
        return survey(file, client=client, progress=progress, **reading)


def client_of(address: str | None) -> AbstractContextManager[Any]:
    """Within: a client of the Dask cluster at an address; None without one."""
    if address is None:
        return nullcontext()
    try:
        from dask.distributed import Client
    except ImportError:
        raise ImportError("--dask needs Dask: pip install 'gortho[large]'") from None
    return Client(address)


@contextmanager
def _searching(effort: str, quiet: bool, workers: int = 1) -> Iterator[dict[str, Any]]:
    """A context with a progress bar, in which Ctrl-C keeps the best form so far; yields the options of the search."""
    from gortho.discovery import Settings

    with Bar(hidden=quiet) as bar, keep_best_on_interrupt():
        yield {"settings": Settings(**EFFORTS[effort], workers=workers), "watch": bar}


def _hand_over(
    ctx: click.Context, found: Discovery, report: Path | None, save: Path | None, as_json: bool = False
) -> None:
    """Print and write the result, and exit with the code of its verdict."""
    from gortho.discovery.saving import FILE
    from gortho.runs import summary

    told = json.dumps(summary(found), indent=1, allow_nan=False) if as_json else str(found)
    there = ", in place of the one that was there" if save is not None and (save / FILE).exists() else ""
    files = ((f"Saved run{there}", found.save, save), ("Report", found.to_html, report))
    hand_over(ctx, told, files, EXIT_CODES[found.verdict.name], as_json)


def hand_over(
    ctx: click.Context, told: str, files: Iterable[tuple[str, Write, Path | None]], code: int, as_json: bool
) -> None:
    """Write a result to the files that are wanted, print it, and exit with this code.

    The files come first: where standard output is a full disk or a closed pipe, they are all that is left.
    """
    lines = []
    try:
        with finishing():
            for what, write, path in files:
                if path is not None:
                    lines += _written(what, write, path)
    finally:
        _print(told)
    for line in lines:
        click.echo(line, err=as_json)
    ctx.exit(code)


def _print(told: str) -> None:
    """Print a result; a closed pipe is what click answers itself."""
    try:
        click.echo(told)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(
            f"the result cannot be printed ({error.strerror}): redirect standard output to another place"
        ) from None


def _written(what: str, write: Write, path: Path) -> list[str]:
    """Write a result, if necessary to a temporary folder, so that a full disk does not cost an hour of search."""
    try:
        write(path)
    except OSError as error:
        click.echo(f"Error: {path} could not be written: {error}", err=True)
        try:
            other = write(Path(tempfile.mkdtemp(prefix="gortho-")) / path.name)
            click.echo(f"{what}, in another place: {other}", err=True)
        except OSError:
            click.echo(f"{what}: lost, as there is no other place to write it to", err=True)
        return []
    return [f"{what}: {path}"]
