"""From jets to the page of `gortho reproduce toptag`: load or make jets, measure what is missing, write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from gortho.samples import DataError
from gortho.studies.experiments.figures import pyplot
from gortho.studies.experiments.rows import missing, read_rows, select
from gortho.studies.toptag import experiment, page
from gortho.studies.toptag.experiment import FULL, QUICK, QUICK_JETS, Budget
from gortho.studies.toptag.jets import Jets
from gortho.studies.toptag.samples import load


def reproduce(
    data: Sequence[Path],
    out: Path,
    *,
    quick: bool = False,
    seeds: int = 3,
    first_seed: int | None = None,
    parts: Sequence[str] = (),
    device: torch.device,
    workers: int = 1,
    measure: bool = True,
    progress: bool = True,
    budget: Budget | None = None,
) -> Path:
    """Measure what is missing and write the page, also of a part; returns the page.

    Rows are in toptag.jsonl. Without data a quick run makes its jets first, in the folder of the results.
    """
    pyplot()  # is it there?
    budget = budget or (QUICK if quick else FULL)
    first = experiment.FIRST_SEED if first_seed is None else first_seed
    experiment.jobs("", seeds, budget, parts, first)  # bad parts are told before jets are read
    paths = list(data) or [_made(out, quick, workers, progress)]
    most = min(QUICK_JETS, sum(len(Jets.open(path)) for path in paths)) if quick and data else None
    samples = load(paths, budget.constituents, most)
    counts = zip(map(len, samples), ("training", "validation", "test"))
    name = f"{', '.join(p.name for p in paths)}: {', '.join(f'{n:,} {what}' for n, what in counts)}"
    wanted = experiment.jobs(name, seeds, budget, parts, first)
    store = out / "toptag.jsonl"
    try:
        if measure:
            experiment.run(wanted, samples, budget, store, device, progress)
    finally:  # what was measured is shown, also after Ctrl-C
        # Parts that were measured before belong on the page, too.
        every = experiment.jobs(name, seeds, budget, first=first)
        rows = read_rows(store)
        own = select(every, rows)
        given = "".join(f" {path.name}" for path in data) + (" --quick" if quick else "")
        if own:
            left = len(missing(every, rows))
            given += f" --seeds {seeds}" + ("" if first_seed is None else f" --first-seed {first_seed}")
            page.write(own, out, f"gortho reproduce toptag{given}", left)
    if not own:
        raise DataError(f"{store} has no rows for these jets and this budget: measure them first")
    return out / "toptag.md"


def _made(out: Path, quick: bool, workers: int, progress: bool) -> Path:
    """Jets of a quick run, made where the results go."""
    if not quick:
        raise DataError(
            "give DATA: a directory from `gortho data toptag generate` or `import`, or an .npz; --quick makes its own"
        )
    from gortho.studies.toptag.production import Production, generate

    path = out / "jets"
    try:
        # Splits are made of whole shards.
        generate(path, Production(jets=QUICK_JETS, shard_jets=100), workers, not progress)
    except DataError as error:
        if "gortho[hep]" in str(error):
            raise DataError(f"{error}, or give DATA") from None
        raise
    return path
