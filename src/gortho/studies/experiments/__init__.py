"""The paper's tables and figures, and the public tables, measured again: `gortho reproduce`.

One module a table. Each names its jobs (a method on a task with a seed) and makes its page from the rows; all share
one file of rows, so what two tables need is measured once and a stopped run goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gortho.studies.experiments import neighbours, public, regression, samples, suitability
from gortho.studies.experiments.methods import QUICK, THOROUGH, describe, tuning
from gortho.studies.experiments.rows import Job, Row, missing, read_rows, run, select
from gortho.studies.experiments.tables import write_page


@dataclass(frozen=True)
class Experiment:
    """A table: what to measure, and how to show it."""

    jobs: Callable[[int, bool], list[Job]]
    page: Callable[[Sequence[Row], Path, str], None]


EXPERIMENTS = {
    "regression": Experiment(regression.jobs, regression.regression_page),
    "noise": Experiment(regression.noise_jobs, regression.noise_page),
    "suitability": Experiment(suitability.jobs, suitability.page),
    "samples": Experiment(samples.jobs, samples.page),
    "public": Experiment(public.jobs, public.page),
    "neighbours": Experiment(neighbours.jobs, neighbours.page),
}


def reproduce(
    names: Sequence[str] = (),
    out: Path = Path("results"),
    *,
    quick: bool = False,
    seeds: int = 5,
    workers: int = 1,
    measure: bool = True,
    progress: bool = True,
) -> list[Path]:
    """Measure what is missing for these tables (all by default), then write them; returns the pages.

    With ``measure=False`` the tables are made from the rows there are.
    """
    chosen = {name: EXPERIMENTS[name] for name in (names or EXPERIMENTS)}
    store = out / "rows.jsonl"
    jobs = {name: experiment.jobs(seeds, quick) for name, experiment in chosen.items()}
    try:
        if measure:
            run(list(dict.fromkeys(job for some in jobs.values() for job in some)), store, workers, progress)
    finally:  # what was measured is shown, also after Ctrl-C
        pages = []
        rows = read_rows(store)
        for name, experiment in chosen.items():
            own = select(jobs[name], rows)
            if not own:
                continue
            flags = " --quick" if quick else ""
            experiment.page(own, out, f"gortho reproduce {name}{flags} --seeds {seeds}")
            pages.append(out / f"{name}.md")
            left = len(missing(jobs[name], rows))
            if left:
                with open(pages[-1], "a", encoding="utf-8") as file:
                    file.write(f"\n**Not complete: {left} of {len(jobs[name])} fits are missing.**\n")
        lines = [f"- **{name}**: {text}" for name, text in tuning().items()]
        settings = f"`discover` in these tables: {describe(QUICK if quick else THOROUGH)}."
        write_page(
            out / "tuning.md",
            "What each method was given",
            "No method was tuned on the samples of these tables; what was in sight when it was tuned is said for each. "
            "For random problems and jets, discovery.md, toptag.md and tagger.md say it. "
            "Time per fit is in the columns of seconds. Twice the steps did not help the MLP; "
            "Augerino was not given more than its 8,000, and may gain from more.",
            "\n".join(lines),
            settings,
        )
    return pages


__all__ = ["EXPERIMENTS", "Experiment", "Job", "reproduce"]
