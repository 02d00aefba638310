"""Tables of verdicts: which problems, what a row keeps, what an answer is worth, pages of few rows."""

import json
import warnings
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from gortho.cli import main
from gortho.discovery import verdict
from gortho.studies.experiments import EXPERIMENTS, judging, problems, reproduce
from gortho.studies.experiments.broken import Broken, against_truth
from gortho.studies.experiments.random_problems import Random
from gortho.studies.experiments.realistic import Realistic
from gortho.studies.experiments.rows import facts, missing, select
from gortho.studies.experiments.verdicts import Judged
from gortho.studies.tasks.broken import broken

TABLES = {name: experiment for name, experiment in EXPERIMENTS.items() if experiment.of == "problems"}


@pytest.mark.parametrize("name", TABLES)
def test_problems_are_counted_from_the_first_seed_in_usual_proportions(name):
    experiment = TABLES[name]
    full = experiment.jobs(7_000, experiment.count[0], False)
    assert len(full) == len(set(full)) == experiment.count[0]
    assert {job.table for job in full} == {name} and {job.first_seed for job in full} == {7_000}
    kinds = Counter((job.of, getattr(job, "noise", None)) for job in full)
    for kind, count in kinds.items():
        own = {job.seed for job in full if (job.of, getattr(job, "noise", None)) == kind}
        assert own == set(range(7_000, 7_000 + count))
    few = experiment.jobs(7_000, 30, False)
    assert len(few) == 30 and set(few) <= set(full)
    assert {job.quick for job in experiment.jobs(7_000, 2, True)} == {True}


def test_settings_depend_on_the_seed_or_on_the_place_alone():
    one, two = Random("form", 17_005, 17_000), Random("form", 105, 100)
    assert one.settings() == two.settings() and one != two
    assert Realistic("form", 150_003, 150_000).settings() == Realistic("form", 150_003, 0).settings()
    kinds = {
        of: Judged(of, 11, 0, quick=True) for of in ("random", "broken", "near miss", "classes", "formless")
    }
    tasks = {of: job.task() for of, job in kinds.items()}
    assert {len(task.x) for task, _ in tasks.values()} == {500}
    assert tasks["random"][1] == 0.0 and tasks["formless"][1] is None
    assert tasks["broken"][1] == pytest.approx(kinds["broken"].settings()["share"], rel=0.5)


def test_a_row_answers_its_job_and_crashes_are_counted(tmp_path, monkeypatch):
    job = Random("form", 17_000, 17_000, quick=True)
    (row,) = job.measure()
    assert (
        row["verdict"] == "FOUND" and row["right"] and row["group"] == "O(2)" and row["clock"] == "CPU time"
    )
    assert not missing([job], [json.loads(json.dumps(row))]) and select([job], [row]) == [row]

    def fails(*arguments, **options):
        raise ArithmeticError("nothing converged")

    monkeypatch.setattr(problems, "discover", fails)
    (crash,) = Realistic("form", 150_000, 150_000, quick=True).measure()
    assert crash["verdict"] == "crash: ArithmeticError('nothing converged')"
    (tmp_path / "problems.jsonl").write_text("".join(json.dumps(r) + "\n" for r in (row, crash)))
    random, realistic = (
        reproduce([name], tmp_path, quick=True, first_seed=first, measure=False)[0].read_text()
        for name, first in (("random", 17_000), ("realistic", 150_000))
    )
    assert "| all | 1 | 100% | 0 |" in random and "Not complete: 11 of 12 problems are missing" in random
    assert "| all | 1 | 0% | 0% | 0% | 100% | 0, 0, 1 |" in realistic
    assert not (tmp_path / "tuning.md").exists() and (tmp_path / "random.csv").exists()


def test_other_symmetries_are_compared_with_the_truth():
    class Found:
        symmetry, wider = broken("well", seed=3).symmetry, None

    right = against_truth(Found, broken("well", seed=3))
    assert right["right"] and right["origin off"] < 1e-12
    assert not against_truth(Found, broken("well", seed=4))["right"]
    assert against_truth(Found, broken("torque", seed=3)) == {"right": False}


def answer(of, **more):
    row = {"verdict": "FOUND", "confidence": 0.99, "low": 0.0, "high": 0.002, "d_PA": 0.001, "covered": 1.0}
    return asdict(Judged(of, 200_000, 200_000)) | row | {"seconds": 3.0, "wider": ""} | more


ANSWERS = [
    (answer("realistic", near=True, true=0.0), "right"),
    (answer("realistic", near=False, true=0.0), "wrong"),
    (answer("realistic", verdict="UNDERDETERMINED", confidence=0.0, true=0.0), "honest"),
    (answer("near miss", kind="taxicab"), "wrong"),
    (answer("near miss", kind="direction", wider="O(3), broken", **{"wider right": True}), "right"),
    (answer("near miss", kind="taxicab", verdict="UNDERDETERMINED"), "right"),
    (answer("broken", near=True, true=0.001, share=0.001), "right"),
    (answer("broken", near=True, true=0.01, share=0.01), "wrong"),
    (answer("broken", verdict="NONE", true=0.1, share=0.1), "right"),
    (answer("broken", verdict="NONE", true=0.0, share=0.0), "wrong"),
    (answer("classes", kind="levels", signature=True), "right"),
    (answer("classes", kind="shuffled", verdict="NONE"), "right"),
]


def test_what_answers_are_worth():
    for row, worth in ANSWERS:
        (own,) = judging.judged(problems.frame([row], judging.COLUMNS)).to_dict("records")
        assert ("right" if own["right"] else "honest" if own["honest"] else "wrong") == worth, row
    together = judging.judged(problems.frame([row for row, _ in ANSWERS], judging.COLUMNS))
    assert together.right.sum() == sum(worth == "right" for _, worth in ANSWERS)


def test_thresholds_are_as_they_were_after_they_were_changed():
    with judging.changed(verdict, "TOLERANCE", 2.0):
        changed = verdict.TOLERANCE
    assert changed == 2 * verdict.TOLERANCE


@pytest.mark.parametrize("count", [1, 2, len(ANSWERS)])
def test_the_page_of_verdicts_has_a_picture_also_of_few_rows(count, tmp_path):
    rows = [row | facts() for row, _ in ANSWERS[-count:]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TABLES["verdicts"].page(rows, tmp_path, "gortho reproduce verdicts")
    text = (tmp_path / "verdicts.md").read_text()
    assert "| classes |" in text and "as they are" in text and (tmp_path / "verdicts.png").exists()
    assert "evidence" not in (tmp_path / "verdicts.csv").read_text()


@pytest.mark.parametrize("name", TABLES)
def test_stored_rows_make_pages(name, tmp_path):
    stored = Path(__file__).parents[3] / "results" / "problems.jsonl"
    (tmp_path / "problems.jsonl").write_text(stored.read_text())
    rows = [json.loads(line) for line in stored.read_text().splitlines()]
    first = max(row["first_seed"] for row in rows if row["table"] == name)
    (page,) = reproduce([name], tmp_path, first_seed=first, measure=False)
    count = sum(
        row["table"] == name and row["first_seed"] == first for row in rows
    )  # as many as were measured
    text = page.read_text()
    assert f"gortho reproduce {name} --problems {count} --first-seed {first}" in text
    assert "Not complete" not in text


def test_problems_of_other_noises_are_other_jobs():
    rows = [asdict(Broken("torque", 5, 5)) | {"verdict": "FOUND"}]
    assert missing([Broken("torque", 5, 5), Broken("torque", 5, 5, noise=0.02)], rows) == [
        Broken("torque", 5, 5, noise=0.02)
    ]


@pytest.mark.parametrize(
    "words, says",
    [
        (["regression", "--problems", "3"], "--problems = 3"),
        (["broken", "--seeds", "3"], "--seeds = 3"),
        (["random", "--tables-only", "--first-seed", "5"], "measure them first"),
    ],
)
def test_what_does_not_fit_together_is_an_error(words, says, tmp_path):
    result = CliRunner().invoke(main, ["reproduce", *words, "--out", str(tmp_path / "new")])
    assert result.exit_code == 2 and says in result.output and not (tmp_path / "new").exists()


def test_the_help_says_how_many_problems_there_are():
    text = " ".join(CliRunner().invoke(main, ["reproduce", "--help"]).output.split())
    assert ", ".join(f"{name} {experiment.count[0]}" for name, experiment in TABLES.items()) in text
    assert {experiment.count[1] for experiment in TABLES.values()} <= set(range(12, 15))
