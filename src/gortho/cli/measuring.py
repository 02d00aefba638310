"""Commands that measure, generate data and train: `gortho reproduce`, `gortho data` and `gortho train`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from gortho.cli.base import INTERRUPTED, main
from gortho.cli.options import DEVICE, QUIET


@main.command()
@click.argument("tables", nargs=-1, metavar="[TABLE]... | toptag [DATA]...")
@click.option(
    "--quick",
    is_flag=True,
    help="Small versions of all tables, in minutes, to check that everything runs.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    help="Number of seeds for every method (default: 5, toptag 3, with --quick 1).",
)
@click.option(
    "--problems",
    type=click.IntRange(1),
    help="Number of problems of each table of verdicts, of all kinds together "
    "(default: realistic 176, broken 250, verdicts 516, random 326, with --quick 12 to 14).",
)
@click.option(
    "--first-seed",
    type=click.IntRange(0),
    help="Where seeds begin (default: for each table, seeds that were not used to set any rule).",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=None,
    help="Number of fits in parallel, one thread each (default: the number of cores).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Output folder (default: results, with --quick results-quick).",
)
@click.option("--tables-only", is_flag=True, help="Measure nothing; write the tables from the stored rows.")
@click.option("--parts", metavar="A,B", help="toptag: some of known, unknown, massive, baselines, fractions.")
@click.option("--device", type=DEVICE, help="toptag: where to train (default: on the GPU, if there is one).")
@QUIET
def reproduce(
    tables: tuple[str, ...],
    quick: bool,
    seeds: int | None,
    problems: int | None,
    first_seed: int | None,
    workers: int | None,
    out: Path | None,
    tables_only: bool,
    parts: str | None,
    device: str | None,
    quiet: bool,
) -> None:
    """Reproduce the tables: the paper's, with error bars and baselines, and how often verdicts are right.

    TABLEs of methods are regression, noise, suitability, samples, public and neighbours, those of verdicts realistic,
    broken, verdicts and random; all by default. A full run takes hours on one core. Ctrl-C loses only unfinished
    fits: the same command continues from there, and the tables of what has been measured are written either way.

    toptag is a table of its own, on the jets in DATA (see gortho data toptag). With --quick it uses 2,000 of them, or
    generates 2,000 if DATA is omitted, which needs gortho[hep].

    \b
    Examples:
      gortho reproduce --quick
      gortho reproduce regression noise --seeds 5 --workers 8
      gortho reproduce realistic --problems 96 --first-seed 1000000
      gortho reproduce toptag --quick
      gortho reproduce toptag jets --parts known,unknown --device cuda
    """
    from gortho.studies.experiments import EXPERIMENTS
    from gortho.studies.experiments import reproduce as measure

    folder = out or Path("results-quick" if quick else "results")
    common: dict[str, Any] = {
        "quick": quick,
        "first_seed": first_seed,
        "workers": workers or os.cpu_count() or 1,
        "measure": not tables_only,
        "progress": not quiet,
    }
    jets = tables[:1] == ("toptag",)
    only_jets = {"parts": parts, "device": device}
    _refuse(() if jets else tables or tuple(EXPERIMENTS), {"seeds": seeds, "problems": problems}, only_jets)
    if jets:
        _reproduce_toptag(tables[1:], folder, seeds or (1 if quick else 3), parts, device, common)
        return
    try:
        pages = measure(tables, folder, seeds=seeds, problems=problems, **common)
    except KeyboardInterrupt:
        click.echo("Interrupted: rows so far are kept, and the same command continues.", err=True)
        sys.stdout.flush()
        # The workers were killed during their work: waiting for their pool may take forever.
        os._exit(INTERRUPTED)
    for page in pages:
        click.echo(f"{page}")


def _refuse(tables: tuple[str, ...], counts: dict[str, int | None], only_jets: dict[str, str | None]) -> None:
    """An error for tables that are not there, and for options of others; no tables: those of jets."""
    from gortho.studies.experiments import EXPERIMENTS

    unknown = [name for name in tables if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(
            f"no table {', '.join(unknown)}: choose from {', '.join(EXPERIMENTS)}, or toptag alone"
        )
    if tables and any(only_jets.values()):
        raise ValueError(
            "--parts and --device are for toptag: give toptag as the first table, or leave them out"
        )
    counted = {EXPERIMENTS[name].of for name in tables} or {"seeds"}
    for name, value in counts.items():
        if value is not None and name not in counted:
            raise ValueError(f"--{name} = {value}: no table asked for counts {name}; leave it out")


def _reproduce_toptag(
    data: tuple[str, ...],
    folder: Path,
    seeds: int,
    parts: str | None,
    device: str | None,
    common: dict[str, Any],
) -> None:
    """The table of jets."""
    from gortho.studies.toptag.commands import pick_device
    from gortho.studies.toptag.reproduction import reproduce as measure_jets

    page = measure_jets(
        [Path(path) for path in data],
        folder,
        seeds=seeds,
        parts=[part.strip() for part in parts.split(",")] if parts else [],
        device=pick_device(device),
        **common,
    )
    click.echo(f"{page}")


class OfStudies(click.Group):
    """Commands of studies, each imported when it is first used; ``homes`` maps them to modules and names."""

    def __init__(self, *args: Any, homes: dict[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return sorted(self.homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, if there is one."""
        if cmd_name not in self.homes:
            return None
        module, name = self.homes[cmd_name]
        return getattr(import_module(f"gortho.studies.{module}"), name)


@main.group(cls=OfStudies, homes={"toptag": ("toptag.commands", "toptag")})
def data() -> None:
    """Generate and import data sets."""


@main.group(cls=OfStudies, homes={"toptag": ("toptag.commands", "train")})
def train() -> None:
    """Train models of known tasks."""
