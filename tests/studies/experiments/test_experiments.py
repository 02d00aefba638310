"""Reproduction: rows are measured once, runs go on where they were, pages say what was measured."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from gortho.cli import main
from gortho.studies import baselines
from gortho.studies.baselines import registry
from gortho.studies.experiments import EXPERIMENTS, reproduce
from gortho.studies.experiments.fits import FIRST_SEED, Job, chance
from gortho.studies.experiments.rows import keep, missing, read_rows, run, select


def small(method="LieGG", task="synthetic", **options):
    return Job(task, method, 200, FIRST_SEED, test_samples=100, quick=True, **options)


@pytest.fixture(scope="module")
def rows():
    return small().measure()


def test_one_fit_is_read_in_several_ways(rows):
    names = {row["method"] for row in rows}
    assert {"LieGG", "MLP", "SDBA", "LieGG, wrong action", "LieGG, all of gl(n)"} <= names
    assert len({row["MSE"] for row in rows}) == 1
    liegg = next(row for row in rows if row["method"] == "LieGG")
    assert 0 < liegg["relative MSE"] < 1 and liegg["d_PA"] < liegg["chance d_PA"]
    assert liegg["noisy MSE"] == liegg["MSE"]  # no noise was asked for


def test_rows_are_kept_and_never_measured_twice(rows, tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text + text[:40])  # the last line was cut off when the power went
    assert len(read_rows(path)) == len(rows)
    assert missing([small(), small(noise=1.0)], rows) == [small(noise=1.0)]
    monkeypatch.setattr("gortho.studies.experiments.rows.ProcessPoolExecutor", None)  # nothing may be started
    assert {row["method"] for row in run([small()], path)} == {row["method"] for row in rows}
    assert select([small(noise=1.0)], rows) == []
    keep(rows, path)
    assert len(read_rows(path)) == 2 * len(rows)


def test_a_method_without_a_predictor_has_no_error():
    (row,) = small("LieGAN").measure()
    assert "MSE" not in row and row["d_PA"] > 0


def test_neighbours_stand_with_a_number_or_a_measured_reason(tmp_path):
    size = {"samples": 500, "test_samples": 500}
    rows = [row | size for method in ("BNN", "gortho, wrong form told") for row in small(method).measure()]
    bnn, told = rows
    assert "MSE" not in bnn and bnn["d_PA"] is None
    assert bnn["notes"]["collapse"] > 0.8 and bnn["notes"]["table is a group's"] == 0
    assert bnn["notes"]["cyclic shifts: table is a group's"] == 1
    assert told["notes"]["told"] == "O(4)" and told["relative MSE"] > 0.1
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (page,) = reproduce(["neighbours"], tmp_path, quick=True, seeds=1, measure=False)
    text = page.read_text()
    assert "gortho, wrong form told" in text and "0 of 1" in text and "1 of 1" in text
    assert "Not complete" in text and (tmp_path / "neighbours.csv").exists()


def of_methods():
    return {name: experiment for name, experiment in EXPERIMENTS.items() if experiment.of == "seeds"}


def test_every_job_names_a_method_that_exists():
    names = set(registry.entries())
    for experiment in of_methods().values():
        for quick in (True, False):
            assert {job.method for job in experiment.jobs(7, 2, quick)} <= names
    assert all(len(e.jobs(7, 5, False)) % 5 == 0 for e in of_methods().values())
    for entry in registry.entries().values():
        assert set(entry.variant.tables) <= set(of_methods()) and set(entry.variant.read_off) <= names


TOY = '''
"""The mean of the targets."""

import torch

from gortho.studies.baselines.base import Method, Stand, Variant


class Mean(Method):
    tuning = "There is nothing to tune."
    parameters = 1
    variants = (
        Variant("mean", {"regression": Stand(65)}),
        Variant("half the mean", {"regression": Stand()}, {"factor": 0.5}, read_off=("mean",)),
    )

    def __init__(self, output, seed=0, factor=1.0):
        super().__init__(output, seed)
        self.factor = factor

    def fit(self, X, y, scalars=None):
        self.network = y.mean(0)
        return self

    def predict(self, X, scalars=None):
        return self.factor * self.network.expand(len(X), *self.network.shape)
'''


def test_a_baseline_is_one_file(tmp_path, monkeypatch):
    before = registry.standing("regression")
    (tmp_path / "mean.py").write_text(TOY)
    monkeypatch.setattr(baselines, "__path__", [*baselines.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "gortho.studies.baselines.mean", raising=False)
    assert [n for n in registry.standing("regression") if n not in before] == ["mean", "half the mean"]
    (job,) = (
        j for j in EXPERIMENTS["regression"].jobs(7, 1, True) if (j.method, j.task) == ("mean", "inertia")
    )
    rows = job.measure()
    assert [row["method"] for row in rows] == ["mean", "half the mean"]
    assert rows[0]["relative MSE"] == pytest.approx(1, abs=0.1) and rows[1]["MSE"] > rows[0]["MSE"]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (page,) = reproduce(["regression"], tmp_path, quick=True, seeds=1, first_seed=7, measure=False)
    text = page.read_text()
    assert text.index("| mean |") < text.index("| half the mean |") and "--seeds 1 --first-seed 7" in text
    assert "**Mean**: There is nothing to tune." in (tmp_path / "tuning.md").read_text()


def test_chance_level():
    assert chance(4)[1] == pytest.approx(1.94, abs=0.005)
    assert chance(3)[1] == pytest.approx(2**0.5)


def test_pages_of_an_unfinished_run_say_so(rows, tmp_path):
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps({**row, "samples": 1000, "test_samples": 500}) + "\n" for row in rows)
    )
    (page,) = reproduce(["regression"], tmp_path, quick=True, seeds=1, measure=False)
    text = page.read_text()
    assert "Not complete" in text and "LieGG, wrong action" in text and "chance" in text
    assert "gortho reproduce regression --quick" in text
    assert (tmp_path / "regression.csv").exists() and (tmp_path / "tuning.md").exists()


def test_an_unknown_table_is_an_error():
    result = CliRunner().invoke(main, ["reproduce", "everything"])
    assert result.exit_code == 2 and "regression" in result.output


def _gortho():
    path = shutil.which("gortho", path=os.path.dirname(sys.executable))
    return [path] if path else [sys.executable, "-m", "gortho"]


@pytest.mark.parametrize(
    "tables", [["noise"], pytest.param([], marks=pytest.mark.slow)], ids=["noise", "all"]
)
def test_quick_reproduction_survives_ctrl_c_and_points_the_right_way(tables, tmp_path):
    """`gortho reproduce --quick`, stopped once on its way: of two rows, between them."""
    workers = "1" if tables else "2"
    options = ["--quick", "--out", str(tmp_path), "--workers", workers, "--quiet"]
    command = [*_gortho(), "reproduce", *tables, *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs ignore it
    )
    store = tmp_path / "rows.jsonl"
    while process.poll() is None and not read_rows(store):
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=300)[0].decode()
    kept = store.read_text()
    assert process.returncode == 130 and kept
    assert "rows so far are kept" in said and (tmp_path / f"{(tables or ['regression'])[0]}.md").exists()
    subprocess.run(command, check=True, timeout=1200, capture_output=True)
    assert store.read_text().startswith(kept)
    for name in tables or EXPERIMENTS:
        text = (tmp_path / f"{name}.md").read_text()
        assert "Not complete" not in text and "± nan" not in text
    rows = read_rows(store)
    ours, liegg = (one(rows, m, "synthetic", samples=1000, noise=1.0) for m in ("gortho", "LieGG"))
    assert ours["d_PA"] < liegg["d_PA"] / 2
    if not tables:
        for picture in ("regression_forms.png", "samples.png", "public.png"):
            assert (tmp_path / picture).stat().st_size > 10_000
        point_the_right_way(rows)


def one(rows, method, task, **more):
    wanted = {"method": method, "task": task, **more}
    (row,) = (r for r in rows if wanted.items() <= r.items())
    return row


def point_the_right_way(rows):
    for task in ("synthetic", "inertia"):
        ours, liegg = (one(rows, m, task, samples=1000, noise=0.0) for m in ("gortho", "LieGG"))
        assert ours["d_PA"] < 1e-3 and ours["d_PA"] < liegg["d_PA"] / 10
        assert ours["MSE"] < liegg["MSE"] / 10 and ours["own equivariance error"] < 1e-8
        assert ours["notes"]["verdict"] == "FOUND"
    assert one(rows, "LieGG, wrong action", "synthetic", samples=1000, noise=0.0)["d_PA"] > 1
    for task in ("O5", "Inertia", "Particle"):
        row = one(rows, "gortho", task)
        assert row["hidden"] and row["d_PA"] < 0.05
