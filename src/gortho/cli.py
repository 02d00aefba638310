"""The command line: `gortho discover`, `level`, `predict`, `check`, `demo`, `reproduce`, `data`, `train`."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gortho import __version__
from gortho.level.commands import level
from gortho.progress import Bar, keep_best_on_interrupt
from gortho.toptag.commands import toptag
from gortho.toptag.commands import train as train_toptag

if TYPE_CHECKING:  # what the commands need is imported where it is used
    from gortho.discovery import Discovery, Survey

EXIT_CODES = {"FOUND": 0, "NONE": 3, "UNDERDETERMINED": 4}
BAD_INPUT, INTERRUPTED = 2, 130
EXITS = (
    "Exit codes: 0 found or fine, 1 a check that does not hold, 2 bad input, 3 none, 4 underdetermined, "
    "130 Ctrl-C before there was a result."
)
#: Arguments of Python that messages name, and that are options here.
ARGUMENT = re.compile(
    r"(?<!['\w-])(?:(x|y|scalars|points|output|decimal)=(?:'(\w+)')?|(max_samples|scalars_per_point)\b)"
)
#: Sizes of the search by effort: what differs from the default settings.
EFFORTS: dict[str, dict[str, Any]] = {
    "normal": {},
    "quick": {"starts": 12, "generations": 3, "refits": 4, "predictor_steps": 150},
}


def as_options(message: str) -> str:
    """A message with the names of arguments as the command line spells them.

    >>> as_options("say which is the target by y=; points=2 and output='vector'; a larger max_samples")
    'say which is the target by --y; --points 2 and --output vector; a larger --max-samples'
    """

    def spelled(match: re.Match[str]) -> str:
        argument, word, alone = match.groups()
        gap = " " if argument and match.end() < len(message) and message[match.end()] not in " ;,:." else ""
        return f"--{argument or alone.replace('_', '-')}" + (f" {word}" if word else gap)

    return ARGUMENT.sub(spelled, message)


class Commands(click.Group):
    """A group of commands that answer bad input with a sentence and exit code 2, not with a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal that lacks a sign shows "?"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of libraries; what matters is said by the commands
                return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted before there was a result.", err=True)
            ctx.exit(INTERRUPTED)
        except (ValueError, OSError, ImportError, MemoryError) as error:
            click.echo(f"Error: {as_options(str(error)) or type(error).__name__}", err=True)
            ctx.exit(BAD_INPUT)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXITS,
)
@click.version_option(__version__, prog_name="gortho")
def main() -> None:
    """Find the quadratic form behind vector data, and predict with it.

    \b
    Examples:
      gortho demo
      gortho discover data.npz --output vector --report out.html --save run
      gortho predict run new.csv --out predictions.csv
      gortho check run new.csv
      gortho reproduce --quick
    """


def options(*decorators: Callable) -> Callable:
    """Several decorators as one, in the order of reading."""

    def decorate(command: Callable) -> Callable:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


FILE = click.argument("file", type=click.Path(path_type=Path))
RUN = click.argument("run", type=click.Path(path_type=Path))
X = click.option(
    "--x",
    metavar="NAMES",
    help="Columns of x, as E,px:pz, point by point; or the name of an array, or of one for each point: u,v.",
)
Y = click.option("--y", metavar="NAMES", help="Columns of the target, or the name of an array.")
SCALARS = click.option(
    "--scalars", metavar="NAMES", help="Quantities that do not change with the point of view: masses."
)
POINTS = click.option("--points", type=click.IntRange(1), metavar="P", help="Vectors in a sample.")
SEED = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same answer."
)
EFFORT = click.option(
    "--effort",
    type=click.Choice(list(EFFORTS)),
    default="normal",
    show_default=True,
    help="A quick search has fewer starts, rounds, refits and steps: it takes less time and is less sure.",
)
QUIET = click.option("--quiet", is_flag=True, help="No progress bar.")
DECIMAL = click.option(
    "--decimal",
    type=click.Choice([".", ","]),
    default=".",
    show_default=True,
    help="Sign between whole and part in text files.",
)
JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, and nothing else, to standard output."
)


@main.command(epilog=EXITS)
@options(FILE, X, Y, SCALARS)
@click.option(
    "--scalars-per-point", is_flag=True, help="The columns of scalars belong to the points, in order."
)
@options(POINTS, DECIMAL)
@click.option(
    "--output",
    default="scalar",
    show_default=True,
    metavar="KIND",
    help='How the target transforms: scalar, vector, covector, conjugation, bilinear, form or "scalar + 2*vector".',
)
@click.option(
    "--errors",
    type=click.Choice(["auto", "absolute", "relative"]),
    default="auto",
    show_default=True,
    help="What fits make small: errors of the target, errors relative to its size, or what works better.",
)
@click.option("--set", "set_like", is_flag=True, help="The points of a sample have no order.")
@click.option("--names", metavar="A,B,C", help="Names of the coordinates, for the law.")
@SEED
@click.option(
    "--time-budget",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Make the search smaller, so that it takes about this long.",
)
@click.option(
    "--max-samples",
    type=click.IntRange(2),
    metavar="N",
    help="Use a random subset of so many rows, where there are more: 50000 by default.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Read many rows on the workers of a Dask cluster: the address of its scheduler, tcp://HOST:PORT.",
)
@EFFORT
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Processes that the search runs on: the same answer, sooner.",
)
@click.option(
    "--report", type=click.Path(path_type=Path), metavar="PATH.html", help="Write a report to look at."
)
@click.option(
    "--save", type=click.Path(path_type=Path), metavar="DIR", help="Keep the run, for predict and check."
)
@options(JSON, QUIET)
@click.pass_context
def discover(
    ctx: click.Context,
    file: Path,
    errors: str,
    set_like: bool,
    names: str | None,
    time_budget: float | None,
    dask: str | None,
    effort: str,
    workers: int,
    report: Path | None,
    save: Path | None,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Find the quadratic form that the data in FILE respects.

    FILE is .npz or .h5 (arrays X and y), .csv, .tsv, .parquet or a folder of .parquet files (columns). Ctrl-C ends the
    search with the best form so far, which counts as underdetermined.

    \b
    Examples:
      gortho discover data.npz --output vector --report out.html
      gortho discover jets.csv --x E,px:pz --y mass --names E,px,py,pz
      gortho discover pairs.parquet --points 2 --scalars m_0,m_1 --scalars-per-point --json
    """
    from gortho.runs import remembered, scalars_of

    _check_destinations(report, save)
    seen = _survey(file, dask, quiet, **reading)
    data = seen.data
    labels = data.names if names is None else [name.strip() for name in names.split(",")]
    found = _search(
        data.X,
        data.y,
        effort,
        quiet,
        workers,
        **{name: reading[name] for name in ("output", "seed", "max_samples")},
        scalars=scalars_of(data),
        errors=errors,
        set_like=set_like,
        names=labels,
        time_budget=time_budget,
        known=None if seen.totals is None else seen,
    )
    found = remembered(found, data)
    found = dataclasses.replace(found, notices=tuple(as_options(notice) for notice in found.notices))
    _hand_over(ctx, found, report, save, as_json)


@main.command(epilog=EXITS)
@options(RUN, FILE, X, SCALARS, POINTS, DECIMAL)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Where to: .npz, .csv, .parquet or .h5."
)
def predict(run: Path, file: Path, out: Path, **columns: Any) -> None:
    """Predict for the inputs in FILE with the saved RUN, row by row.

    Columns are those that the run was found with, unless given. Tables of predictions have the columns of the target
    in the run, or y, or y_0, y_1, ...; files of arrays have y. A run whose verdict is not FOUND predicts with its best
    form, with a warning, and the exit code is 0.

    \b
    Example:
      gortho predict run new.csv --out predictions.csv
    """
    from gortho.runs import load, read_for, scalars_of, target_columns
    from gortho.samples import DataError, check_writable, write

    if check_writable(out).resolve() == file.resolve():
        raise DataError(f"{out} is the file that is read: choose another name for the predictions")
    found = load(run)
    _warn(found)
    data = read_for(found, file, targets=False, **columns)
    y = found.predict(data.X, scalars_of(data))
    write(out, y, target_columns(found))
    click.echo(f"{len(y)} predictions in {out}")


@main.command(epilog=EXITS)
@options(RUN, FILE, X, Y, SCALARS, POINTS, DECIMAL, JSON)
@click.pass_context
def check(ctx: click.Context, run: Path, file: Path, as_json: bool, **columns: Any) -> None:
    """Does the saved RUN keep its promises on the data in FILE?

    Measures the equivariance of its predictor on these inputs and, where FILE has targets, the error. They hold if the
    relative equivariance error is at most 1e-8 and the error at most twice the one measured at discovery.

    \b
    Example:
      gortho check run new.csv --json
    """
    from gortho.runs import certify, load, plain, read_for

    found = load(run)
    _warn(found)
    data = read_for(found, file, targets=True if columns["y"] else None, **columns)
    result = certify(found, data)
    if as_json:
        content = dataclasses.asdict(result) | {"holds": result.holds}
        content["equivariance"] = [{"boost": b, "error": e} for b, e in result.equivariance.items()]
        click.echo(json.dumps(plain(content), indent=1))
    else:
        for notice in data.notices:
            click.echo(f"note: {as_options(notice)}", err=True)
        click.echo(f"{run} ({found.candidate}) on {result.samples} samples of {file.name}")
        click.echo(str(result))
    ctx.exit(0 if result.holds else 1)


@main.command()
@SEED
@EFFORT
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    default="gortho-demo.html",
    show_default=True,
    help="Write a report to look at.",
)
@click.option("--save", type=click.Path(path_type=Path), metavar="DIR", help="Keep the run.")
@QUIET
@click.pass_context
def demo(ctx: click.Context, seed: int, effort: str, report: Path, save: Path | None, quiet: bool) -> None:
    """Find the form hidden in built-in data.

    The data are 3000 samples of f(x) = 9 (x xᵀA)² + 2 x xᵀA in four dimensions, with a hidden A of group O(2,2).

    \b
    Example:
      gortho demo --report demo.html
    """
    from gortho.tasks import synthetic

    _check_destinations(report, save)
    task = synthetic(samples=3000, seed=seed)
    click.echo(f"Hidden in the data: {task.form}")
    found = _search(task.x, task.y, effort, quiet, output=task.output, seed=seed)
    if found.candidate is not None:
        near, far = found.candidate.cosine(task.form), found.candidate.algebra_distance(task.form)
        click.echo(f"Found beside truth: |cos| = {near:.6f} (1 is equal), d_PA = {far:.1g} (0 is equal)")
    _hand_over(ctx, found, report, save)


@main.command()
@click.argument("tables", nargs=-1, metavar="[TABLE]... | toptag [DATA]...")
@click.option(
    "--quick",
    is_flag=True,
    help="Small versions of all tables, in minutes: do things run, and point the right way?",
)
@click.option(
    "--seeds", type=click.IntRange(1), help="Seeds for every method: 5 (toptag 3), or 1 when quick."
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=None,
    help="Fits beside one another, one thread each; by default as many as there are cores.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder: results, or results-quick when quick.")
@click.option("--tables-only", is_flag=True, help="Measure nothing; make the tables from the rows there are.")
@click.option(
    "--parts", metavar="A,B", help="toptag: only these of known, unknown, massive, baselines, fractions."
)
@click.option("--device", metavar="NAME", help="toptag: cpu or cuda; the GPU where there is one.")
@QUIET
def reproduce(
    tables: tuple[str, ...],
    quick: bool,
    seeds: int | None,
    workers: int | None,
    out: Path | None,
    tables_only: bool,
    parts: str | None,
    device: str | None,
    quiet: bool,
) -> None:
    """Measure the paper's tables and figures again, with error bars, beside baselines.

    TABLEs are regression, noise, suitability, samples and public; all by default. A full run takes hours of one core.
    Ctrl-C loses only the fits in work: the same command goes on where it was, and the tables of what is there are
    written either way.

    toptag is a table of its own, on jets in DATA (see gortho data toptag); with --quick it takes 2,000 of them, or
    makes 2,000 where DATA is left out, which needs gortho[hep].

    \b
    Examples:
      gortho reproduce --quick
      gortho reproduce regression noise --seeds 5 --workers 8
      gortho reproduce toptag --quick
      gortho reproduce toptag jets --parts known,unknown --device cuda
    """
    import os

    from gortho.experiments import EXPERIMENTS
    from gortho.experiments import reproduce as measure

    if tables and tables[0] == "toptag":
        from gortho.toptag.commands import pick_device
        from gortho.toptag.reproduction import reproduce as measure_jets

        page = measure_jets(
            [Path(path) for path in tables[1:]],
            out or Path("results-quick" if quick else "results"),
            quick=quick,
            seeds=seeds or (1 if quick else 3),
            parts=[part.strip() for part in parts.split(",")] if parts else [],
            device=pick_device(device),
            workers=workers or os.cpu_count() or 1,
            measure=not tables_only,
            progress=not quiet,
        )
        click.echo(f"{page}")
        return
    unknown = [name for name in tables if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(
            f"no table {', '.join(unknown)}: choose from {', '.join(EXPERIMENTS)}, or toptag alone"
        )
    if parts or device:
        raise ValueError(
            "--parts and --device are for toptag: give toptag as the first table, or leave them out"
        )
    try:
        pages = measure(
            tables,
            out or Path("results-quick" if quick else "results"),
            quick=quick,
            seeds=seeds or (1 if quick else 5),
            workers=workers or os.cpu_count() or 1,
            measure=not tables_only,
            progress=not quiet,
        )
    except KeyboardInterrupt:
        click.echo("Interrupted: rows so far are kept, and the same command goes on where it was.", err=True)
        sys.stdout.flush()
        # Its workers were ended amid their work: waiting for their pool may take forever.
        os._exit(INTERRUPTED)
    for page in pages:
        click.echo(f"{page}")


main.add_command(level)


@main.group()
def data() -> None:
    """Make and import data sets."""


data.add_command(toptag)


@main.group()
def train() -> None:
    """Train models of known tasks."""


train.add_command(train_toptag)


def _check_destinations(report: Path | None, save: Path | None) -> None:
    """Find out before the search, not after it, that a result could not be written."""
    if report is not None:
        import gortho.report.page  # noqa: F401 - is the extra installed?

        if report.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"--report {report}: the report is a page, give a name that ends in .html")
        if report.is_dir() or not report.parent.is_dir():
            raise ValueError(f"--report {report}: there is no folder {report.parent} to write it to")
    if save is not None:
        if save.exists() and not save.is_dir():
            raise ValueError(f"--save {save}: this is a file, give a directory")
        save.mkdir(parents=True, exist_ok=True)


def _survey(file: Path, dask: str | None, quiet: bool, **reading: Any) -> Survey:
    """Read the samples, with a progress bar where they are many."""
    from gortho.discovery.large import survey

    def progress(rows: int, total: int | None) -> None:
        bar("reading", rows / total if total else 0.0, f"{rows:,}{f' of {total:,}' if total else ''} rows")

    with Bar(hidden=quiet) as bar, _client(dask) as client:
        return survey(file, client=client, progress=progress, **reading)


@contextmanager
def _client(address: str | None) -> Iterator[Any]:
    """A client of the Dask cluster at an address; None without one."""
    if address is None:
        yield None
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise ImportError("--dask needs Dask: pip install 'gortho[large]'") from None
    with Client(address) as client:
        yield client


def _search(x: Any, y: Any, effort: str, quiet: bool, workers: int = 1, **options: Any) -> Discovery:
    """Discover, with a progress bar and a Ctrl-C that keeps the best so far."""
    import gortho

    settings = gortho.Settings(**EFFORTS[effort], workers=workers)
    with Bar(hidden=quiet) as bar, keep_best_on_interrupt():
        return gortho.discover(x, y, settings=settings, watch=bar, **options)


def _hand_over(
    ctx: click.Context, found: Discovery, report: Path | None, save: Path | None, as_json: bool = False
) -> None:
    """Print and write the result, and leave with the exit code of its verdict."""
    from gortho.runs import summary

    click.echo(json.dumps(summary(found), indent=1, allow_nan=False) if as_json else str(found))
    if save is not None:
        found.save(save)
        click.echo(f"Saved run: {save}", err=as_json)
    if report is not None:
        found.to_html(report)
        click.echo(f"Report: {report}", err=as_json)
    ctx.exit(EXIT_CODES[found.verdict.name])


def _warn(found: Discovery) -> None:
    if found.form is None:
        click.echo(
            f"Warning: the form of this run was not accepted ({found.verdict}): {found.reason}", err=True
        )


if __name__ == "__main__":
    main()
