"""Many targets: which they are, one table whoever does the work, and nothing lost when it is stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import gortho
from gortho import cli
from gortho.samples import DataError
from gortho.scanning import run
from gortho.scanning.row import Log, Row
from gortho.scanning.table import Scan
from gortho.scanning.targets import targets_of

ONLY = {"look_for": "O"}  # nothing wider, which takes longer
TINY = gortho.Settings(starts=4, generations=1, refits=4, predictor_steps=40)
READING = dict.fromkeys(run.READING) | {"output": "scalar", "decimal": "."}


def table(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    columns = {"event": np.arange(rows), "a": x[:, 0], "b": x[:, 1], "day": 20240101 + np.arange(rows) % 28}
    columns |= {"fixed": 3.5, "who": "ann", "length": (x**2).sum(1), "gap": x[:, 0] ** 2 - x[:, 1] ** 2}
    columns |= {"few": np.where(np.arange(rows) == 7, np.nan, x[:, 0] ** 2), "length_err": 0.1}
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("scan") / "many.csv"
    table().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def alone(file, tmp_path_factory):
    """A scan on this process, with reports."""
    return gortho.scan(
        file,
        "a,b",
        "length,gap,few",
        out=tmp_path_factory.mktemp("alone"),
        workers=1,
        reports=True,
        settings=TINY,
        **ONLY,
    )


# ---- which targets ----


def test_columns_that_are_something_else_are_no_targets(file):
    found = targets_of(file, None, READING | {"x": "a,b", "y_error": "{}_err"})
    assert [t.name for t in found.all] == ["length", "gap", "few"]
    assert [(t.y_error, t.lacks) for t in found.all] == [
        (("length_err",), ""),
        (None, "gap_err"),
        (None, "few_err"),
    ]
    assert found.left_out == {
        "event": "counts the rows",
        "day": "dates as YYYYMMDD",
        "fixed": "constant (3.5)",
        "who": "text, not numbers",
    }


def test_listed_targets_leave_the_rest_for_x(file):
    found = targets_of(file, "length:gap", READING | {"drop": "event,day:who,few,length_err"})
    assert [(t.y, t.x) for t in found.all] == [(("length",), ("a", "b")), (("gap",), ("a", "b"))]
    pairs = targets_of(file, "length,gap;few", READING | {"x": "a,b"})
    assert [t.y for t in pairs.all] == [("length", "gap"), ("few",)]


def test_errors_of_targets_of_several_columns(tmp_path):
    frame = table().assign(gap_err=0.2)
    frame.to_csv(tmp_path / "a.csv", index=False)
    given = READING | {"x": "a,b", "y_error": "{}_err"}
    found = targets_of(tmp_path / "a.csv", "length,gap;few,gap;length,gap", given)
    assert [(t.y_error, t.lacks) for t in found.all] == [
        (("length_err", "gap_err"), ""),
        (None, "few_err"),
    ]  # each target once


def test_a_target_without_errors_is_tried_without(file):
    found = gortho.scan(file, "a,b", "gap,gap,length", y_error="{}_err", workers=1, settings=TINY, **ONLY)
    rows = {row.target: row for row in found.rows}
    assert {row.verdict for row in found.rows} == {"FOUND"} and found.headline() == "many.csv: 2 FOUND"
    assert "there is no column of errors 'gap_err'" in rows["gap"].reason
    assert "column of errors" not in rows["length"].reason


def test_arrays(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3))
    np.savez(
        tmp_path / "d.npz",
        X=X,
        v=2 * X,
        s=X[:, 0],
        other=np.ones((9, 2)) * X[:9, :2],
        text=np.array(["a"] * 50),
    )
    found = targets_of(tmp_path / "d.npz", None, READING | {"x": "X"})
    assert [t.name for t in found.all] == ["v", "s"]
    assert found.left_out == {"text": "text, not numbers", "other": "another number of rows than x"}


@pytest.mark.parametrize(
    ("wanted", "more", "says"),
    [
        (None, {}, "say which columns are the vectors by x="),
        (None, {"x": "a,b", "y": "gap"}, "name its targets by targets="),
        (None, {"x": "a,b", "output": "class"}, "say which columns hold them by targets="),
        (None, {"x": "a,b", "output": "vector"}, "as Fx:Fz;vx:vz"),
        ("gap,a", {"x": "a,b"}, "'a' are targets and something else"),
        ("gapp", {"x": "a,b"}, "did you mean 'gap'"),
        (None, {"x": "a:b,length:few,length_err"}, "nothing to scan"),
    ],
)
def test_what_cannot_be_scanned(file, wanted, more, says):
    with pytest.raises(DataError, match=says):
        targets_of(file, wanted, READING | more)


def test_a_folder_is_a_target_for_each_file(tmp_path):
    for name, rows in (("one", 60), ("two", 70)):
        table(rows)[["a", "b", "gap"]].to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "bad.csv").write_text("")
    (tmp_path / "notes.txt").write_text("hello")
    found = gortho.scan(tmp_path, y="gap", workers=1, settings=TINY, **ONLY)
    assert {row.target: row.verdict for row in found.rows} == {
        "one.csv": "FOUND",
        "two.csv": "FOUND",
        "bad.csv": "ERROR",
    }
    assert (
        found.rows[-1].reason == "bad.csv is empty: save it again where it was made, or choose another file"
    )
    assert found.left_out == {"notes.txt": "not a kind of file that is read"}


# ---- the table ----


def test_rows(alone):
    assert [(row.target, row.verdict) for row in alone.rows[:2]] == [
        ("gap", "FOUND"),
        ("length", "FOUND"),
    ] or [row.target for row in alone.rows[:2]] == ["length", "gap"]
    assert {row.target: row.group for row in alone.rows} == {"length": "O(2)", "gap": "O(1,1)", "few": ""}
    last = alone.rows[-1]
    assert last.target == "few" and last.verdict == "ERROR" and "drop or impute" in last.reason
    assert alone.rows[0].answer["verdict"] == "FOUND" and alone.rows[0].answer["provenance"]["seed"] == 0
    assert all((alone.folder / row.report).read_text().startswith("<!doctype") for row in alone.rows[:2])
    written = pd.read_csv(alone.folder / "table.csv")
    assert list(written.target) == [row.target for row in alone.rows] and "seconds" not in written
    assert written.samples.isna().tolist() == [False, False, True] == written.confidence.isna().tolist()
    page = (alone.folder / "table.html").read_text()
    gap = next(row for row in alone.rows if row.target == "gap")
    assert f'href="reports/gap-{gap.key[:8]}.html"' in page and gap.report in page and alone.doubt() in page
    assert "targets of many.csv respect" in page and "Effort: starts=4, generations=1" in page
    formulas = {row.target: row.formula for row in alone.rows}
    assert formulas["gap"] in page and formulas["gap"] in str(alone) and not formulas["few"]
    assert {*written.formula.dropna()} == {formula for formula in formulas.values() if formula}


def test_a_row_is_what_discover_says(alone, file):
    data = pd.read_csv(file)
    found = gortho.discover(data[["a", "b"]], data["gap"], settings=TINY)
    row = next(row for row in alone.rows if row.target == "gap")
    assert row.answer["matrix"] == found.candidate.matrix.tolist()
    assert row.formula == str(found.formula) and row.formula.startswith("gap = ")
    assert (row.law, row.confidence, row.error) == (
        found.law(),
        found.confidence,
        found.peers[0].relative_mse,
    )


def test_order_and_doubt():
    rows = [
        Row("e", "ERROR"),
        Row("u", "UNDERDETERMINED"),
        Row("b", "FOUND", 0.9, error=0.1),
        Row("n", "NONE", 0.99),
        Row("a", "FOUND", 0.7),
        Row("c", "FOUND", 0.9, error=0.01),
    ]
    found = Scan.of(rows, wanted=7)
    assert [row.target for row in found.rows] == ["c", "b", "a", "n", "u", "e"]
    assert found.expected_wrong == pytest.approx(0.5) and "about 0.5 of the 3 FOUND" in str(found)
    assert "1 target is not done" in found.headline()
    assert Scan.of(rows[:2]).expected_wrong == 0 and Scan.of(rows[:2]).doubt() == ""
    assert "none of the FOUND is expected" in Scan.of([Row("a", "FOUND", 0.995)]).doubt()
    resumed = Scan.of(rows, wanted=6, before=4, files=True)
    assert resumed.headline().endswith("; 4 of 6 were done before")
    assert resumed.table.confidence.isna().sum() == 2 and resumed.table.samples.isna().all()


def test_options_are_checked(file):
    with pytest.raises(TypeError, match="did you mean 'tolerance'"):
        gortho.scan(file, "a,b", tolerence=0.1)
    with pytest.raises(ValueError, match="give out="):
        gortho.scan(file, "a,b", reports=True)
    with pytest.raises(DataError, match="does not exist"):
        gortho.scan("nowhere.csv", "a,b")


# ---- on several processes, and stopped ----


def test_two_workers_and_dask_give_the_same_table(alone, file, tmp_path):
    distributed = pytest.importorskip("dask.distributed")
    options = {"settings": TINY, "reports": True, **ONLY}
    two = gortho.scan(file, "a,b", "length,gap,few", out=tmp_path / "two", workers=2, **options)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        there = gortho.scan(file, "a,b", "length,gap,few", out=tmp_path / "dask", client=client, **options)
    expected = (alone.folder / "table.csv").read_bytes()
    assert (two.folder / "table.csv").read_bytes() == (there.folder / "table.csv").read_bytes() == expected


def test_what_is_there_is_not_done_again(alone, file, monkeypatch):
    done = []
    monkeypatch.setattr(run, "answer", lambda target, *_: done.append(target.name))
    again = gortho.scan(
        file, "a,b", "length,gap,few", out=alone.folder, workers=1, reports=True, settings=TINY, **ONLY
    )
    assert again.rows == alone.rows and not done and again.before == 3 and alone.before == 0


def test_each_answer_has_its_own_report(tmp_path, monkeypatch):
    """Two scans into one folder: the report of a row is not that of another file or of other options."""

    def answer(target, key, options, *_):
        return run.Answered(
            Row(target.name, "NONE", 0.99, key=key), f"{target.file} {options.get('tolerance')}"
        )

    monkeypatch.setattr(run, "answer", answer)
    for name in ("one", "two"):
        table(seed=len(name)).assign(name=name).to_csv(tmp_path / f"{name}.csv", index=False)
    asked = [("one", 0.1), ("one", 0.2), ("two", 0.1), ("one", 0.1)]
    for name, tolerance in asked:
        options = {"out": tmp_path / "out", "reports": True, "workers": 1, "tolerance": tolerance}
        found = gortho.scan(tmp_path / f"{name}.csv", "a,b", "gap", **options)
        told = (found.folder / found.rows[0].report).read_text()
        assert told == f"{tmp_path / name}.csv {tolerance}"


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"tolerance": 0.01}, {"settings": gortho.Settings(starts=5)}, {"retry": True}]
)
def test_other_options_are_other_rows(alone, file, monkeypatch, change, tmp_path):
    (tmp_path / "rows.jsonl").write_bytes((alone.folder / "rows.jsonl").read_bytes())
    done = []

    def answer(target, key, *_):
        done.append(target.name)
        return run.Answered(Row(target.name, "NONE", 0.99, key=key))

    monkeypatch.setattr(run, "answer", answer)
    gortho.scan(file, "a,b", "length,gap,few", out=tmp_path, workers=1, **{"settings": TINY} | ONLY | change)
    assert sorted(done) == (["few"] if "retry" in change else ["few", "gap", "length"])


def test_a_torn_last_line(tmp_path):
    rows = Log(tmp_path / "rows.jsonl")
    rows.add(Row("a", "FOUND", 0.9, key="1"))
    with open(rows.path, "a") as file:
        file.write('{"target": "b", "verd')
    with open(rows.path, "a") as file:
        file.write('\n[1]\n{"target": "b", "verdict": "NONE", "confidence": "abc", "key": "2"}\n')
    rows.add(Row("c", "NONE", error=float("nan"), key="3"))
    assert {key: row.target for key, row in rows.rows().items()} == {"1": "a", "3": "c"}
    assert rows.rows()["3"].error is None


@pytest.mark.slow
def test_a_worker_that_dies_is_a_row(file, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "answer", deadly)
    found = gortho.scan(file, "a,b", "length,gap,few", out=tmp_path, workers=2)
    assert {row.target: row.verdict for row in found.rows} == {
        "length": "NONE",
        "gap": "ERROR",
        "few": "NONE",
    }
    assert "its process was killed" in found.rows[-1].reason


def deadly(target, key, *_):
    if target.name == "gap":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.3)
    return run.Answered(Row(target.name, "NONE", key=key))


def test_an_interrupted_search_is_no_row(file, tmp_path, monkeypatch):
    def stopped(target, key, *_):
        if target.name == "gap":
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(5)
            except KeyboardInterrupt:  # as `discover`, which hands back the best so far
                pass
        return run.Answered(Row(target.name, "UNDERDETERMINED", key=key))

    monkeypatch.setattr(run, "answer", stopped)
    with pytest.raises(KeyboardInterrupt):
        gortho.scan(file, "a,b", "length,gap,few", out=tmp_path, workers=1)
    assert list(pd.read_csv(tmp_path / "table.csv").target) == ["length"]
    assert "2 targets are not done" in (tmp_path / "table.html").read_text()


SCRIPT = f"""
import gortho

if __name__ == "__main__":
    options = {ONLY} | {{"settings": gortho.{TINY}, "dropna": True}}
    gortho.scan("many.csv", "a,b", "length,gap,few", out="out", workers=2, **options)
"""


def test_kill_and_go_on(tmp_path):
    """kill -9 amid the work: what was done stays, no worker stays, and the same scan ends with the same table."""
    table(60).to_csv(tmp_path / "many.csv", index=False)
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    rows = tmp_path / "out" / "rows.jsonl"
    while not (rows.exists() and rows.read_bytes().count(b"\n")):
        assert process.poll() is None
        time.sleep(0.05)
    workers = children(process.pid)
    process.kill()
    process.wait()
    before = rows.read_text().splitlines()
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        time.sleep(0.1)
    options = ONLY | {"settings": TINY, "dropna": True}
    again = gortho.scan(
        tmp_path / "many.csv", "a,b", "length,gap,few", out=tmp_path / "out", workers=1, **options
    )
    after = rows.read_text().splitlines()
    assert after[: len(before)] == before and len(after) == 3
    assert len({json.loads(line)["target"] for line in after}) == 3 and "3 FOUND" in str(again)


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# ---- the command ----


def test_command(file, tmp_path, monkeypatch):
    given = {}

    def scan(path, **options):
        given.update(options, path=path)
        return Scan.of([Row("gap", "FOUND", 0.9, "O(1,1)", "q(x) = 1.00 a² - 1.00 b²")], source="many.csv")

    monkeypatch.setattr(gortho, "scan", scan)
    arguments = [
        "scan",
        file,
        "--x",
        "a,b",
        "--tolerance",
        0,
        "--spaces",
        "0,0",
        "--names",
        "u, v",
        "--workers",
        2,
    ]
    result = CliRunner().invoke(cli.main, [*map(str, arguments), "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    assert given["x"] == "a,b" and given["tolerance"] == 0 and given["workers"] == 2
    assert given["spaces"] == [0, 0] and given["names"] == "u, v" and "dropna" not in given
    assert json.loads(result.stdout)["rows"][0]["group"] == "O(1,1)"
    assert json.loads(result.stdout)["expected_wrong"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--set"], "--set is given, but each sample has one vector: say how many by --points"),
        (["--set", "--points", "1"], "--set is given, but each sample has one vector"),
        (["--scalars-per-point", "--points", "2"], "--scalars-per-point is given without --scalars"),
    ],
)
def test_options_that_would_do_nothing_are_refused(monkeypatch, options, says):
    begun = []
    monkeypatch.setattr(gortho, "scan", lambda path, **_: begun.append(path) or Scan.of([]))
    result = CliRunner().invoke(cli.main, ["scan", "many.csv", "--x", "a,b", *options])
    assert result.exit_code == 2 and says in " ".join(result.output.split()) and not begun
    for more in (["many.npz", "--set"], ["many.csv", "--set", "--points", "2"]):
        assert CliRunner().invoke(cli.main, ["scan", "--x", "a,b", *more]).exit_code == 0
    assert len(begun) == 2


@pytest.mark.parametrize(
    ("name", "folder"), [("run.1.csv", "run.1"), ("run.2.csv.gz", "run.2"), ("all", "all"), (".", "here")]
)
def test_the_folder_of_the_table_is_named_after_the_file(monkeypatch, name, folder):
    given = {}
    monkeypatch.setattr(gortho, "scan", lambda path, out, **_: given.update(out=out) or Scan.of([]))
    assert CliRunner().invoke(cli.main, ["scan", name, "--x", "a,b"]).exit_code == 0
    assert str(given["out"]) == f"{folder}-scan"


def test_command_says_what_is_wrong(file):
    result = CliRunner().invoke(cli.main, ["scan", str(file)])
    assert result.exit_code == 2 and "are the vectors by --x" in result.stderr


def test_progress_is_one_line_in_the_words_of_the_command(file, tmp_path, monkeypatch):
    why = "y holds NaN: leave them out by dropna=True, " + "and so on " * 30

    def scan(path, progress, **options):
        progress(1, 2, Row("gap", "ERROR", reason=why))
        return Scan.of([Row("gap", "ERROR", reason=why)], source="many.csv", folder=tmp_path)

    monkeypatch.setattr(gortho, "scan", scan)
    result = CliRunner().invoke(cli.main, ["scan", str(file), "--x", "a,b", "--out", str(tmp_path)])
    line = next(line for line in result.stderr.splitlines() if "1 of 2" in line)
    assert "by --dropna" in line and len(line) < 130
    assert result.exit_code == 2 and "Every target ended with an error" in result.stderr
    assert "by --dropna" in (tmp_path / "table.csv").read_text()
