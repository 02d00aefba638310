"""All tables, measured again: `gortho reproduce`.

One module a table. Each names its jobs, from its first seed on, and makes its page from the rows that answer these.
Tables of methods (`fits`) share one file of rows, tables of verdicts (`problems`) another, so what two tables need is
measured once and a stopped run goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gortho.studies.baselines.ours import QUICK, THOROUGH, describe
from gortho.studies.baselines.registry import tuning
from gortho.studies.experiments import (
    broken,
    fits,
    neighbours,
    public,
    random_problems,
    realistic,
    regression,
    samples,
    suitability,
    verdicts,
)
from gortho.studies.experiments.rows import Row, missing, read_rows, run, select
from gortho.studies.experiments.tables import write_page


@dataclass(frozen=True)
class Experiment:
    """A table: what to measure, and how to show it.

    Attributes:
        jobs: the jobs from a first seed on, so many, small ones if quick.
        page: makes the files of the table from rows: a folder, and the command that the page names.
        first_seed: where seeds begin, unless another one is asked for.
        count: how many, and how many if quick: seeds for every method, or problems.
        of: what is counted, "seeds" or "problems".
    """

    jobs: Callable[[int, int, bool], Sequence[Any]]
    page: Callable[[Sequence[Row], Path, str], None]
    first_seed: int = fits.FIRST_SEED
    count: tuple[int, int] = (5, 1)
    of: str = "seeds"

    @property
    def store(self) -> str:
        """The file of its rows."""
        return "rows.jsonl" if self.of == "seeds" else "problems.jsonl"


def _of_problems(module: Any, kinds: Mapping[Any, int], few: int) -> Experiment:
    """A table of verdicts, by default on all problems of these kinds, or on a few if quick."""
    count = sum(kinds.values()), few
    return Experiment(module.jobs, module.page, module.FIRST_SEED, count, of="problems")


EXPERIMENTS = {
    "regression": Experiment(regression.jobs, regression.regression_page),
    "noise": Experiment(regression.noise_jobs, regression.noise_page),
    "suitability": Experiment(suitability.jobs, suitability.page),
    "samples": Experiment(samples.jobs, samples.page),
    "public": Experiment(public.jobs, public.page, public.FIRST_SEED),
    "neighbours": Experiment(neighbours.jobs, neighbours.page),
    "realistic": _of_problems(realistic, realistic.KINDS, 12),
    "broken": _of_problems(broken, broken.LAWS, 13),
    "verdicts": _of_problems(verdicts, verdicts.KINDS, 14),
    "random": _of_problems(random_problems, random_problems.KINDS, 12),
}


@dataclass(frozen=True)
class Asked:
    """A table as it was asked for: from which seed on, how many, and small or not."""

    name: str
    first_seed: int | None
    count: int | None
    quick: bool

    @property
    def experiment(self) -> Experiment:
        """The table itself."""
        return EXPERIMENTS[self.name]

    def jobs(self) -> Sequence[Any]:
        """What belongs to it."""
        first = self.experiment.first_seed if self.first_seed is None else self.first_seed
        return self.experiment.jobs(first, self._count(), self.quick)

    def _count(self) -> int:
        return self.experiment.count[self.quick] if self.count is None else self.count

    @property
    def command(self) -> str:
        """What measures it again."""
        words = ["gortho reproduce", self.name, "--quick"][: 3 if self.quick else 2]
        words.append(f"--{self.experiment.of} {self._count()}")
        return " ".join(words + ([] if self.first_seed is None else [f"--first-seed {self.first_seed}"]))

    def as_measured(self, out: Path) -> Asked:
        """With as many seeds or problems as there are rows of, where nobody asked for a number and these are whole."""
        rows = read_rows(out / self.experiment.store)
        own = select(self.jobs(), rows)
        seen = len({row["seed"] for row in own}) if self.experiment.of == "seeds" else len(own)
        there = replace(self, count=seen)
        return self if self.count is not None or not own or missing(there.jobs(), rows) else there

    def write(self, out: Path) -> Path | None:
        """Its page, from the rows there are; None if there are none."""
        jobs, rows = self.jobs(), read_rows(out / self.experiment.store)
        own = select(jobs, rows)
        if not own:
            return None
        self.experiment.page(own, out, self.command)
        page = out / f"{self.name}.md"
        left = len(missing(jobs, rows))
        if left:
            what = "fits" if self.experiment.of == "seeds" else "problems"
            with open(page, "a", encoding="utf-8") as file:
                file.write(f"\n**Not complete: {left} of {len(jobs)} {what} are missing.**\n")
        return page


def reproduce(
    names: Sequence[str] = (),
    out: Path = Path("results"),
    *,
    quick: bool = False,
    seeds: int | None = None,
    problems: int | None = None,
    first_seed: int | None = None,
    workers: int = 1,
    measure: bool = True,
    progress: bool = True,
) -> list[Path]:
    """Measure what is missing for these tables (all by default), then write them; returns the pages.

    Tables of methods take so many ``seeds`` for every method, tables of verdicts so many ``problems``. With
    ``measure=False`` the tables are made from the rows there are.
    """
    asked = []
    for name in names or EXPERIMENTS:
        count = seeds if EXPERIMENTS[name].of == "seeds" else problems
        table = Asked(name, first_seed, count, quick)
        asked.append(table if measure else table.as_measured(out))
    pages = []
    try:
        for store in dict.fromkeys(table.experiment.store for table in asked) if measure else ():
            jobs = [job for table in asked if table.experiment.store == store for job in table.jobs()]
            run(list(dict.fromkeys(jobs)), out / store, workers, progress)
    finally:  # what was measured is shown, also after Ctrl-C
        pages = [page for table in asked if (page := table.write(out))]
        if pages and any(table.experiment.of == "seeds" for table in asked):
            _write_tuning(out, quick)
    if not pages:
        raise ValueError(f"{out} has no rows of these tables with these seeds: measure them first")
    return pages


def _write_tuning(out: Path, quick: bool) -> None:
    lines = [f"- **{name}**: {text}" for name, text in tuning().items()]
    write_page(
        out / "tuning.md",
        "What each method was given",
        "No method was tuned on the samples of these tables; what was in sight when it was tuned is said for each. "
        "For random problems and jets, random.md, toptag.md and tagger.md say it. "
        "Time per fit is in the columns of seconds. Twice the steps did not help the MLP; "
        "Augerino was not given more than its 8,000, and may gain from more.",
        "\n".join(lines),
        f"`discover` in these tables: {describe(QUICK if quick else THOROUGH)}.",
    )


__all__ = ["EXPERIMENTS", "Experiment", "reproduce"]
