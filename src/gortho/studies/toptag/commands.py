"""The commands `data toptag generate`, `import` and `summary`, and `train toptag`."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gortho.cli.options import DEVICE, QUIET

if TYPE_CHECKING:
    import torch

option = partial(click.option, show_default=True)
OUT = click.argument("out", type=click.Path(path_type=Path))


@click.group()
def toptag() -> None:
    """Jets for top-quark tagging: generate them, import the public reference files, summarise them.

    \b
    Examples:
      gortho data toptag generate jets --jets 100000 --workers 2
      gortho data toptag import train.h5 val.h5 test.h5 reference
      gortho data toptag summary jets --out jets.png
    """


@toptag.command()
@OUT
@option("--jets", type=click.IntRange(2), required=True, metavar="N", help="Number of jets; half are tops.")
@option("--workers", type=click.IntRange(1), default=1, help="Number of processes.")
@option("--seed", type=click.IntRange(0), default=0, help="Random seed: the same seed gives the same jets.")
@option(
    "--cell-phi",
    "phi_degrees",
    type=click.FloatRange(1, 90),
    default=5.0,
    metavar="DEGREES",
    help="Width of the calorimeter cells. Closest to the reference set: 5 without, 10 with --mpi.",
)
@option(
    "--mpi/--no-mpi",
    default=False,
    help="Multiple parton interactions: with them jets are closest to the reference set, and take longer.",
)
@option(
    "--shard-jets",
    type=click.IntRange(1),
    default=5000,
    metavar="N",
    help="Jets of one class that are generated, written and split together.",
)
@option(
    "--splits",
    "shares",
    default="60,20,20",
    callback=lambda ctx, option, value: _shares(value),
    metavar="TRAIN,VALIDATION,TEST",
    help="Sizes of the splits in percent; each shard belongs to one split.",
)
@QUIET
def generate(out: Path, workers: int, quiet: bool, **settings: Any) -> None:
    """Generate top and QCD jets with Pythia 8 and a fast detector, and write them to the directory OUT.

    14 TeV, anti-kT R = 0.8, 550 < pT < 650 GeV, |η| < 2; tops are matched to their three quarks. After an
    interruption the same command continues and ends with the same files. Needs gortho[hep].

    \b
    Example:
      gortho data toptag generate jets --jets 100000 --workers 2 --seed 1
    """
    from .production import Production
    from .production import generate as make
    from .summary import table

    made = make(out, Production(**settings), workers, quiet)
    click.echo(table(made, str(out)))


@toptag.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@OUT
@QUIET
def import_(files: tuple[Path, ...], out: Path, quiet: bool) -> None:
    """Read the public reference files (train.h5, val.h5, test.h5), or one .npz archive, into the directory OUT.

    Every row is checked; a bad row ends the import, with its number. The reference files need gortho[hep].

    \b
    Example:
      gortho data toptag import train.h5 val.h5 test.h5 reference
    """
    from .reference import import_archive, import_reference
    from .summary import table

    if [file.suffix for file in files] == [".npz"]:
        jets = import_archive(files[0], out)
    else:
        jets = import_reference(files, out, quiet)
    click.echo(table(jets, str(out)))


@toptag.command()
@click.argument("directory", type=click.Path(path_type=Path))
@option(
    "--out", type=click.Path(path_type=Path), metavar="FILE.png", help="Draw a picture: .png, .pdf or .svg."
)
@option("--verify", is_flag=True, help="Read everything first: checksums, order, labels.")
@option("--json", "as_json", is_flag=True, help="Print only JSON to standard output.")
def summary(directory: Path, out: Path | None, verify: bool, as_json: bool) -> None:
    """Moments of the jets in DIRECTORY (or an .npz file), and a picture of mass, multiplicity and pT.

    \b
    Example:
      gortho data toptag summary jets --out jets.png
    """
    from gortho.samples import check_writable

    from .jets import Jets
    from .summary import PICTURES, moments, plot, sample, table

    if out is not None:
        check_writable(out, PICTURES)
    jets = Jets.open(directory)
    if verify:
        jets.verify()
    if as_json:
        click.echo(json.dumps(moments(sample(jets)).to_dict("index"), indent=1))
    else:
        click.echo(table(jets, str(directory)))
    if out is not None:
        plot(jets, out, directory.name)
        click.echo(f"Picture: {out}", err=as_json)


@click.command("toptag")
@click.argument("data", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DATA...")
@option("--out", type=click.Path(path_type=Path), default="tagger", help="Output directory.")
@option(
    "--size",
    type=click.Choice(["1k", "4k", "11k", "50k", "200k"]),
    help="Approximate number of parameters (default: 11k, or 50k on a GPU).",
)
@option("--epochs", type=click.IntRange(1), help="Number of epochs (default: 10, or 40 on a GPU).")
@option("--batch-size", type=click.IntRange(1), default=256, help="Jets per step.")
@option("--lr", type=click.FloatRange(0, min_open=True), default=3e-3, help="Peak learning rate.")
@option("--seed", type=click.IntRange(0), default=0, help="Random seed: the same seed gives the same tagger.")
@option("--learn-form", is_flag=True, help="Do not use the known form: find it from the labels.")
@option("--frame", type=click.IntRange(0), metavar="SEED", help="Hide the momenta in a random frame.")
@option(
    "--spurions/--no-spurions",
    default=False,
    help="Add the beams and the time axis as inputs: slightly more accurate, but invariant only under rotations about "
    "the beam.",
)
@option(
    "--references",
    type=click.IntRange(0),
    default=0,
    metavar="K",
    help="Learn K reference vectors, which show whether and where the symmetry is broken.",
)
@option("--constituents", type=click.IntRange(1), default=64, help="Maximum number of constituents per jet.")
@option("--jets", type=click.IntRange(3), metavar="N", help="Use only this many jets, chosen at random.")
@option("--device", type=DEVICE, help="Where to train (default: on the GPU, if there is one).")
@option("--amp", is_flag=True, help="Layers in bfloat16 (GPU).")
@option(
    "--compile/--no-compile",
    default=None,
    help="Compile the network first, which takes about a minute (default: on a GPU).",
)
@QUIET
@click.pass_context
def train(
    ctx: click.Context,
    /,
    data: tuple[Path, ...],
    out: Path,
    size: str | None,
    epochs: int | None,
    device: str | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Train a Lorentz-invariant top tagger on DATA, test it, and write model, metrics, pictures and a page.

    DATA are directories that `gortho data toptag` wrote, or .npz files with momenta, offsets, label and split.
    After an interruption the same command continues from the last complete epoch. Under torchrun several processes
    share the jets.

    \b
    Examples:
      gortho train toptag jets --out tagger
      gortho train toptag jets --size 4k --jets 20000 --epochs 5
      gortho train toptag jets --learn-form --frame 1 --out blind
      gortho train toptag jets --references 3 --out broken
    """
    from gortho.studies.toptag.run import TaggerPlan, left_out, metrics_table, run

    chosen = pick_device(device)
    gpu = chosen.type == "cuda"
    plan = TaggerPlan(
        data=tuple(str(path) for path in data),
        size=size or ("50k" if gpu else "11k"),
        epochs=epochs or (40 if gpu else 10),
        **options,
    )
    found = run(plan, out, chosen, lambda text: click.echo(text, err=True), False if quiet else None)
    if int(os.environ.get("RANK", "0")):  # the first of several processes speaks
        return
    click.echo(metrics_table(found["test"]))
    if plan.references:
        click.echo(found["broken_directions"]["words"])
    if plan.learn_form:
        click.echo(
            f"learnt form: |cos| {found['form']['cos']:.6f}, d_PA {found['form']['d_PA']:.2g} to the truth"
        )
    click.echo(f"Page: {out / 'index.md'}")
    if found["interrupted"]:
        click.echo(f"{found['ended']}: results so far are written; the same command continues.", err=True)
        ctx.exit(130)
    if found["steps_left_out"]:
        click.echo(f"{found['ended']}{left_out(found)}", err=True)


def pick_device(name: str | None) -> torch.device:
    """The CPU, or this process's GPU; by default the GPU, if there is one."""
    import torch

    from gortho.training.processes import local_device

    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda: torch sees no GPU here, leave it out or give cpu")
    return torch.device("cpu") if name == "cpu" else local_device()


def _shares(text: str) -> tuple[float, float, float]:
    """Fractions from "60,20,20", normalised to add up to one."""
    try:
        train, validation, test = (float(part) for part in text.split(","))
        total = train + validation + test
        if min(train, validation, test) < 0:
            raise ValueError
        return train / total, validation / total, test / total
    except (ValueError, ZeroDivisionError):
        raise click.BadParameter(
            f"{text!r} is not three numbers: give them as 60,20,20", param_hint="--splits"
        ) from None
