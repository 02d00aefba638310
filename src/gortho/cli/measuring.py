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
    "--quick", is_flag=True, help="Small versions of all tables, in minutes, to check that everything runs."
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    help="Number of seeds for every method (default: 5, toptag 3, with --quick 1).",
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
    workers: int | None,
    out: Path | None,
    parts: str | None,
    device: str | None,
    **how: bool,
) -> None:
    """Reproduce the paper's tables and figures, with error bars and baselines.

    TABLEs are regression, noise, suitability, samples, public and neighbours; all by default. A full run takes hours on
    one core. Ctrl-C loses only unfinished fits: the same command continues from there, and the tables of what has been
    measured are written either way.

    toptag is a table of its own, on the jets in DATA (see gortho data toptag). With --quick it uses 2,000 of them, or
    generates 2,000 if DATA is omitted, which needs gortho[hep].

    \b
    Examples:
      gortho reproduce --quick
      gortho reproduce regression noise --seeds 5 --workers 8
      gortho reproduce toptag --quick
      gortho reproduce toptag jets --parts known,unknown --device cuda
    """
    from gortho.studies.experiments import EXPERIMENTS
    from gortho.studies.experiments import reproduce as measure

    folder = out or Path("results-quick" if quick else "results")
    common: dict[str, Any] = {
        "quick": quick,
        "workers": workers or os.cpu_count() or 1,
        "measure": not how["tables_only"],
        "progress": not how["quiet"],
    }
    if tables and tables[0] == "toptag":
        from gortho.studies.toptag.commands import pick_device
        from gortho.studies.toptag.reproduction import reproduce as measure_jets

        common |= {"seeds": seeds or (1 if quick else 3), "device": pick_device(device)}
        chosen = [part.strip() for part in parts.split(",")] if parts else []
        click.echo(measure_jets([Path(path) for path in tables[1:]], folder, parts=chosen, **common))
        return
    if unknown := [name for name in tables if name not in EXPERIMENTS]:
        raise ValueError(
            f"no table {', '.join(unknown)}: choose from {', '.join(EXPERIMENTS)}, or toptag alone"
        )
    if parts or device:
        raise ValueError(
            "--parts and --device are for toptag: give toptag as the first table, or leave them out"
        )
    try:
        for page in measure(tables, folder, seeds=seeds or (1 if quick else 5), **common):
            click.echo(page)
    except KeyboardInterrupt:
        click.echo("Interrupted: rows so far are kept, and the same command continues.", err=True)
        sys.stdout.flush()
        # The workers were killed during their work: waiting for their pool may take forever.
        os._exit(INTERRUPTED)


class OfStudies(click.Group):
    """The command `toptag`, imported when it is first used: a name in `gortho.studies.toptag.commands`."""

    def __init__(self, *args: Any, toptag: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self.toptag = toptag

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return ["toptag"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, if there is one."""
        if cmd_name != "toptag":
            return None
        return getattr(import_module("gortho.studies.toptag.commands"), self.toptag)


@main.group(cls=OfStudies, toptag="toptag")
def data() -> None:
    """Generate and import data sets."""


@main.group(cls=OfStudies, toptag="train")
def train() -> None:
    """Train models of known tasks."""
