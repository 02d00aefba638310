"""The commands `toptag generate`, `import` and `summary`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

CARDS = ("3.3.2", "3.4.1")
OUT = click.argument("out", type=click.Path(path_type=Path))
QUIET = click.option("--quiet", is_flag=True, help="No progress bar.")


@click.group()
def toptag() -> None:
    """Jets for top-quark tagging: make them, import the public reference files, look at them.

    \b
    Examples:
      gortho data toptag generate jets --jets 100000 --workers 2
      gortho data toptag import train.h5 val.h5 test.h5 reference
      gortho data toptag summary jets --out jets.png
    """


@toptag.command()
@OUT
@click.option("--jets", type=click.IntRange(2), required=True, metavar="N", help="How many; half are tops.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same jets.")
@click.option(
    "--card",
    type=click.Choice(CARDS),
    default="3.3.2",
    show_default=True,
    help="Release of the Delphes ATLAS card whose numbers the detector has.",
)
@click.option(
    "--cell-phi",
    type=click.FloatRange(1, 90),
    default=5.0,
    show_default=True,
    metavar="DEGREES",
    help="Width of the coarse calorimeter cells. Closest to the reference set: 5 without, 10 with --mpi.",
)
@click.option(
    "--mpi/--no-mpi",
    default=False,
    show_default=True,
    help="Multiple parton interactions: with them jets are closest to the reference set, and take longer.",
)
@click.option(
    "--pthat-min",
    type=click.FloatRange(50, 550),
    default=350.0,
    show_default=True,
    metavar="GEV",
    help="Least transverse momentum of the hard process.",
)
@click.option(
    "--shard-jets",
    type=click.IntRange(1),
    default=5000,
    show_default=True,
    metavar="N",
    help="Jets of one class that are made, written and split together.",
)
@click.option(
    "--splits",
    default="60,20,20",
    show_default=True,
    metavar="TRAIN,VALIDATION,TEST",
    help="Shares of the splits in percent; whole shards go to one split.",
)
@click.option("--drop-shards", is_flag=True, help="Remove the shards once they are put together.")
@QUIET
def generate(
    out: Path,
    jets: int,
    workers: int,
    seed: int,
    card: str,
    cell_phi: float,
    mpi: bool,
    pthat_min: float,
    shard_jets: int,
    splits: str,
    drop_shards: bool,
    quiet: bool,
) -> None:
    """Make jets of tops and QCD with Pythia 8 and a fast detector, and write them to the directory OUT.

    14 TeV, anti-kT R = 0.8, 550 < pT < 650 GeV, |η| < 2; tops are matched to their three quarks. Interrupted or
    killed, the same command goes on where it was and ends with the same files. Needs gortho[hep].

    \b
    Example:
      gortho data toptag generate jets --jets 100000 --workers 2 --seed 1
    """
    from .production import Settings
    from .production import generate as make
    from .summary import table

    settings = Settings(
        jets=jets,
        seed=seed,
        card=card,
        phi_degrees=cell_phi,
        mpi=mpi,
        pthat_min=pthat_min,
        shard_jets=shard_jets,
        shares=_shares(splits),
    )
    made = make(out, settings, workers, quiet, not drop_shards)
    click.echo(table(made, str(out)))


@toptag.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE.h5...")
@OUT
@click.option(
    "--split-by",
    type=click.Choice(["auto", "name", "ttv"]),
    default="auto",
    show_default=True,
    help="Take the split from the names of the files, or from the column ttv; auto: from the name if it says it.",
)
@click.option("--sort", is_flag=True, help="Sort constituents by pT where they are not.")
@click.option("--no-truth-check", is_flag=True, help="Take labels that the truth columns contradict.")
@QUIET
def import_(
    files: tuple[Path, ...], out: Path, split_by: str, sort: bool, no_truth_check: bool, quiet: bool
) -> None:
    """Read the public reference files (train.h5, val.h5, test.h5) into the directory OUT.

    Every row is checked; a bad one ends the import with its number. Needs gortho[hep].

    \b
    Example:
      gortho data toptag import train.h5 val.h5 test.h5 reference
    """
    from .reference import import_reference
    from .summary import table

    jets = import_reference(
        files, out, split_by=split_by, sort=sort, check_truth=not no_truth_check, hidden=quiet
    )
    click.echo(table(jets, str(out)))


@toptag.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE.png", help="Draw them: .png, .pdf, .svg."
)
@click.option("--verify", is_flag=True, help="Read everything first: checksums, order, labels.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else, to standard output.")
def summary(directory: Path, out: Path | None, verify: bool, as_json: bool) -> None:
    """Moments of the jets in DIRECTORY (or an .npz file), and a picture of mass, multiplicity and pT.

    \b
    Example:
      gortho data toptag summary jets --out jets.png
    """
    from .jets import Jets
    from .summary import check_picture, moments, pair_moments, plot, sample, table

    if out is not None:
        check_picture(out)
    jets = Jets.from_npz(directory) if directory.suffix == ".npz" else Jets.open(directory)
    if verify:
        jets.verify()
    if as_json:
        some = sample(jets)
        content = {name: asdict(value) for name, value in moments(some).items()}
        click.echo(json.dumps(content | {"pairs": asdict(pair_moments(jets))}, indent=1))
    else:
        pairs = pair_moments(jets)
        click.echo(table(jets, str(directory)))
        click.echo(f"pairs: edges {pairs.edges:.1f}, ψ(norm) {pairs.norm:.3f}, ψ(dot) {pairs.dot:.3f}")
    if out is not None:
        plot(jets, out, directory.name)
        click.echo(f"Picture: {out}", err=as_json)


def _shares(text: str) -> tuple[float, float, float]:
    """Shares from "60,20,20", made to add up to one."""
    try:
        train, validation, test = (float(part) for part in text.split(","))
        total = train + validation + test
        return train / total, validation / total, test / total
    except (ValueError, ZeroDivisionError):
        raise click.BadParameter(
            f"{text!r} is not three numbers: give them as 60,20,20", param_hint="--splits"
        ) from None
