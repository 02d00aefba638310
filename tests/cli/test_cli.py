"""The command line, from a person's files to exit codes that a script can use."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import types
import warnings
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner
from pyarrow.parquet import read_table

import gortho
from gortho import Discovery, certificate, cli, progress, runs, surveyed
from gortho.cli import searching
from gortho.samples import Dataset, read, write
from gortho.studies.tasks import synthetic

TINY = {"starts": 4, "generations": 1, "refits": 4, "predictor_steps": 60}


def law(X):
    """The hidden law: O(1,1) in two dimensions."""
    return X[:, 0] ** 2 - X[:, 1] ** 2


def inputs(rows=300, seed=0, shape=(2,)):
    return np.random.default_rng(seed).normal(size=(rows, *shape))


def call(*arguments):
    """The result of a command; an exception that escapes is an error of the test."""
    return CliRunner().invoke(cli.main, [str(a) for a in arguments], catch_exceptions=False)


def refused(*arguments, says=()):
    """The command ends with code 2, one line on stderr and nothing on stdout."""
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == "" and "Traceback" not in result.stderr
    for word in [says] if isinstance(says, str) else says:
        assert word in result.stderr
    return result


def save(path, **arrays):
    """Write arrays, as a table for the suffixes of tables: X as E, p (or E_0, p_0, ...), the rest by name."""
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    else:
        X = arrays.pop("X").reshape(-1, 2) if arrays["X"].ndim == 2 else arrays.pop("X")
        if X.ndim == 2:
            columns = {"E": X[:, 0], "p": X[:, 1]}
        else:
            columns = {f"{name}_{i}": X[:, i, k] for i in range(X.shape[1]) for k, name in enumerate("Ep")}
        for name, array in arrays.items():
            flat = array.reshape(len(array), -1)
            names = [name] if flat.shape[1] == 1 else [f"{name}_{k}" for k in range(flat.shape[1])]
            columns |= dict(zip(names, flat.T))
        table = pd.DataFrame(columns)
        if path.suffix == ".parquet":
            table.to_parquet(path)
        else:
            table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.fixture(autouse=True, scope="module")
def tiny():
    """A quick search that is quick enough for tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(cli.EFFORTS, "quick", TINY)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def data(folder):
    X = inputs()
    return save(folder / "data.csv", X=X, y=law(X))


@pytest.fixture(scope="module")
def found(folder, data):
    """The result of one real discovery with a saved run and a report."""
    result = call(
        "discover",
        data,
        "--effort",
        "quick",
        "--json",
        "--save",
        folder / "run",
        "--report",
        folder / "page.html",
    )
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def run(folder, found):
    return folder / "run"


@pytest.fixture
def recorded(monkeypatch, run):
    """Calls of `gortho.discover`, which are answered with the saved run at once."""
    calls = []

    def answer(X, y, **options):
        calls.append({"X": X, "y": y} | options)
        return gortho.Discovery.load(run)

    monkeypatch.setattr(gortho, "discover", answer)
    return calls


# ---- discover ----


def test_a_run_that_is_replaced_is_said_to_be(recorded, data, tmp_path):
    for told in ("Saved run: ", "Saved run, in place of the one that was there: "):
        result = call("discover", data, "--save", tmp_path / "kept", "--quiet")
        assert told + str(tmp_path / "kept") in result.output


def test_found(found, run, folder):
    content = json.loads(found.stdout)
    saved = gortho.Discovery.load(run)
    assert content["verdict"] == "FOUND" and content["accepted"] and content["group"] == "O(1,1)"
    assert content["signature"] == [1, 1, 0] and content["names"] == ["E", "p"]
    assert content["matrix"] == saved.form.matrix.tolist() == saved.network.form.value().matrix.tolist()
    assert content["law"] == saved.law() and "E²" in content["law"]
    assert content["reason"] == saved.reason and content["advice"] == saved.advice
    assert 0 < content["confidence"] <= 1
    assert np.shape(content["intervals"]["low"]) == (2, 2)
    assert content["eigenvalues"] == pytest.approx([-1, 1], abs=0.05)
    assert content["errors"][0]["relative_mse"] < 1e-2
    assert max(row["error"] for row in content["equivariance"]) < 1e-8
    origin = content["provenance"]
    assert origin["seed"] == 0 and origin["source"] == {
        "file": "data.csv",
        "columns": {"x": ["E", "p"], "y": ["y"]},
    }
    assert origin["errors"] == "absolute" and origin["predictor"] == "a short polynomial of the invariants"
    assert {"search", "refits", "twins"} <= set(origin["stages"])
    assert origin["seconds"] == pytest.approx(sum(origin["stages"].values()))
    assert any("columns by name" in notice for notice in content["notices"])
    assert "<html" in (folder / "page.html").read_text() and "E²" in (folder / "page.html").read_text()


def test_progress_goes_to_stderr(found, folder):
    for part in ("search: q(x) = ", "refits: ", "twins: ", "[O(1,1)]", "Saved run", "Report: "):
        assert found.stderr.count(part) >= 1
    assert "Warning" not in found.stderr
    # no terminal: a line for each stage, and nothing that moves
    assert "\r" not in found.stderr and found.stderr.count("search: ") == 1 and "%|" not in found.stderr


def test_progress_moves_on_a_terminal(monkeypatch, capsys):
    for terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal, raising=False)
        with progress.Bar() as bar:
            for share in (0.1, 0.2, 0.9):
                bar("search" if share < 0.5 else "refits", share, "q(x) = x0²   [O(1)]  error 1.0")
        words = capsys.readouterr().err
        assert ("\r" in words) == ("%|" in words) == terminal
    assert words.splitlines() == [
        f"{stage}: q(x) = x0²   [O(1)]  error 1.0" for stage in ("search", "refits")
    ]
    with progress.Bar(hidden=True) as bar:
        bar("search", 0.1, "q")
    assert capsys.readouterr().err == ""


def test_notebooks_show_a_bar_by_default(monkeypatch):
    seen = []

    class Bar:
        def __enter__(self):
            return lambda *news: seen.append(news)

        def __exit__(self, *error):
            seen.append("closed")

    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(progress, "Bar", Bar)
    assert progress.somebody_watches()
    with progress.watched(None) as watch:
        watch("search", 0.1, "q")
    assert seen == [("search", 0.1, "q"), "closed"]
    with progress.watched(print) as watch:
        assert watch is print
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    with progress.watched(None) as watch:
        assert watch is None


def test_none(folder):
    X = inputs(600, seed=3)
    path = save(folder / "none.csv", X=X, y=np.abs(X).sum(axis=1))
    result = call("discover", path, "--effort", "quick", "--quiet")
    assert result.exit_code == 3 and result.stderr == ""
    assert result.stdout.startswith("NONE: ")


def test_underdetermined(folder):
    path = save(folder / "constant.npz", X=inputs(), y=np.ones(300))
    result = call(
        "discover", path, "--json", "--save", folder / "nothing", "--report", folder / "nothing.html"
    )
    content = json.loads(result.stdout)
    assert result.exit_code == 4 and content["verdict"] == "UNDERDETERMINED"
    assert "constant" in content["reason"] and content["matrix"] is None and not content["accepted"]
    assert len(content["notices"]) == len(set(content["notices"])) == 1
    assert (folder / "nothing.html").exists()
    refused("predict", folder / "nothing", path, "--out", folder / "p.csv", says=("no predictor", "constant"))
    refused("check", folder / "nothing", path, says="no predictor")


def test_text_says_where_the_results_lie(folder, data, recorded):
    result = call("discover", data, "--save", folder / "a/b", "--report", folder / "r.html")
    assert result.exit_code == 0
    assert result.stdout.startswith("FOUND: ") and "form: q(x) = " in result.stdout
    assert f"Saved run: {folder / 'a/b'}" in result.stdout and f"Report: {folder / 'r.html'}" in result.stdout
    assert (folder / "a/b/discovery.json").exists()


def test_files_are_written_where_nothing_can_be_printed(monkeypatch, recorded, data, tmp_path):
    echo = searching.click.echo

    def full(text, **options):
        if not options.get("err"):
            raise OSError(28, "No space left on device")
        echo(text, **options)

    monkeypatch.setattr("click.echo", full)
    result = call("discover", data, "--save", tmp_path / "kept", "--report", tmp_path / "r.html", "--quiet")
    assert result.exit_code == 2 and "cannot be printed (No space left on device): redirect" in result.stderr
    assert (tmp_path / "kept/discovery.json").exists() and (tmp_path / "r.html").exists()


def test_ctrl_c_waits_for_files(monkeypatch, recorded, data, tmp_path):
    whole = Discovery.save

    def interrupted(found, path):
        signal.raise_signal(signal.SIGINT)
        return whole(found, path)

    monkeypatch.setattr(Discovery, "save", interrupted)
    result = call("discover", data, "--save", tmp_path / "kept", "--quiet")
    assert result.exit_code == 0 and "Saved run: " in result.stdout
    assert (tmp_path / "kept/discovery.json").exists()


def test_a_refused_command_leaves_no_folder_behind(folder, data):
    refused("discover", data, "--y", "nothing", "--save", folder / "new/run", says="no column 'nothing'")
    assert not (folder / "new").exists()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_text_targets_are_told_of_classes(tmp_path, suffix):
    path = save(tmp_path / f"events{suffix}", X=inputs(), kind=np.array(["top", "jet"] * 150))
    refused(
        "discover", path, "--x", "E,p", "--y", "kind", says=("column 'kind' holds text", "--output class")
    )


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".csv", ".tsv", ".parquet"])
def test_every_format(tmp_path, recorded, suffix):
    X = inputs()
    path = save(tmp_path / f"data{suffix}", X=X, y=law(X))
    assert call("discover", path, "--quiet").exit_code == 0
    assert np.allclose(recorded[0]["X"], X) and np.allclose(recorded[0]["y"], law(X))


def test_options_that_would_do_nothing_are_refused(tmp_path, recorded):
    path = save(tmp_path / "data.csv", X=inputs(), y=law(inputs()))
    refused("discover", path, "--set", "--quiet", says=["--set", "one vector", "--points"])
    refused("discover", path, "--scalars-per-point", says=["without --scalars"])
    assert not recorded


def test_options_reach_the_search(tmp_path, recorded):
    X, m = inputs(shape=(3, 2)), inputs(shape=(3,), seed=1)
    path = save(tmp_path / "pairs.csv", X=X, mass=m, force=X[:, 0], spare=m[:, 0])
    options = ["--x", "E_0:p_2", "--y", "force_0,force_1", "--points", 3, "--scalars", "mass_0:mass_2"]
    options += ["--scalars-per-point", "--output", "vector", "--set", "--names", "t, z", "--seed", 7]
    options += ["--errors", "relative", "--workers", 2]
    result = call("discover", path, *options, "--time-budget", 20, "--max-samples", 50, "--effort", "quick")
    assert result.exit_code == 0, result.output
    (got,) = recorded
    assert got["X"].shape == (50, 3, 2) and got["y"].shape == (50, 2) and (got["X"][:, 0] == got["y"]).all()
    assert got["scalars"]["point"].shape == (50, 3, 1) and set(got["scalars"]) == {"point"}
    assert got["output"] == "vector" and got["set_like"] and got["names"] == "t, z" and got["seed"] == 7
    assert 0 < got["time_budget"] < 20 and got["max_samples"] == 50  # reading counts
    assert got["settings"] == gortho.Settings(**TINY, workers=2) and got["errors"] == "relative"
    assert "50 of the 300 rows" in result.stdout


def test_arrays_by_name_scalars_of_samples_and_sums(tmp_path, recorded):
    X = inputs()
    y = np.concatenate([law(X)[:, None], X, -X], axis=1)
    path = save(tmp_path / "data.npz", velocity=X, charge=X[:, 0], answer=y)
    names = ["--x", "velocity", "--y", "answer", "--scalars", "charge"]
    assert call("discover", path, *names, "--output", "scalar + 2*vector").exit_code == 0
    (got,) = recorded
    assert (
        got["output"] == "scalar + 2*vector"
        and (got["y"] == y).all()
        and got["settings"] == gortho.Settings()
        and got["errors"] == "auto"
    )
    assert (got["scalars"]["sample"][:, 0] == X[:, 0]).all() and got["names"] == ("x0", "x1")


def test_sum_of_outputs_end_to_end(tmp_path):
    X = inputs()
    path = save(tmp_path / "data.npz", X=X, y=np.concatenate([law(X)[:, None], X], axis=1))
    result = call(
        "discover", path, "--output", "scalar + vector", "--effort", "quick", "--save", tmp_path / "run"
    )
    assert result.exit_code == 0, result.output
    assert call("check", tmp_path / "run", path).exit_code == 0
    assert call("predict", tmp_path / "run", path, "--out", tmp_path / "p.csv").exit_code == 0
    assert list(pd.read_csv(tmp_path / "p.csv")) == ["y_0", "y_1", "y_2"]


def test_several_arrays_and_columns_of_targets(tmp_path):
    """Points in arrays of their own, remembered by the run; predictions carry the names of the targets."""
    u, v = inputs(shape=(2, 2)).transpose(1, 0, 2)
    y = (u * v * [1, -1]).sum(axis=1)
    path = save(tmp_path / "data.h5", **{"m/u": u, "m/v": v, "m/product": y})
    options = ["--x", "m/u,m/v", "--y", "m/product", "--effort", "quick", "--quiet"]
    result = call("discover", path, *options, "--save", tmp_path / "run")
    assert result.exit_code == 0, result.output
    new = save(tmp_path / "new.h5", **{"m/u": u[:40], "m/v": v[:40]})
    assert call("predict", tmp_path / "run", new, "--out", tmp_path / "p.csv").exit_code == 0
    expected = gortho.Discovery.load(tmp_path / "run").predict(np.stack([u, v], axis=1)[:40])
    assert np.allclose(pd.read_csv(tmp_path / "p.csv")["m/product"], expected, rtol=1e-9)
    result = call("check", tmp_path / "run", path)
    assert result.exit_code == 0 and "on 300 samples" in result.stdout
    other = save(tmp_path / "other.npz", X=u)
    refused("predict", tmp_path / "run", other, "--out", tmp_path / "q.csv", says="no array 'm/u'")


def test_target_columns(tmp_path, run):
    found = gortho.Discovery.load(run)
    assert runs.target_columns(found) == ["y"]
    for columns, named in (({"y": ("D_x", "D_y")}, ["D_x", "D_y"]), ({}, ["y"])):
        source = replace(found.provenance.source, columns=columns)
        other = replace(found, provenance=replace(found.provenance, source=source))
        assert runs.target_columns(other) == named
    for columns, written in ((["D_x", "D_y"], ["D_x", "D_y"]), (["D"], ["D_0", "D_1"])):
        write(tmp_path / "p.csv", inputs(5), columns)
        assert list(pd.read_csv(tmp_path / "p.csv")) == written


def test_decimal_commas(tmp_path, recorded, run):
    X = inputs(30)
    table = pd.DataFrame(X, columns=["E", "p"]).assign(y=law(X))
    table.to_csv(tmp_path / "a.csv", sep=";", decimal=",", index=False)
    refused("discover", tmp_path / "a.csv", says=("decimal comma", "--decimal ','"))
    assert call("discover", tmp_path / "a.csv", "--decimal", ",").exit_code == 0
    assert np.allclose(recorded[0]["X"], X)
    arguments = [run, tmp_path / "a.csv", "--decimal", ","]
    assert call("predict", *arguments, "--out", tmp_path / "p.csv").exit_code == 0
    assert call("check", *arguments).exit_code == 0


def test_messages_name_options(tmp_path):
    X = inputs(30)
    unnamed = save(tmp_path / "a.csv", X=X, energy=law(X))
    refused("discover", unnamed, says="say which is the target by --y;")
    refused("discover", save(tmp_path / "a.npz", energy=X, y=X), says="name it by --x\n")
    refused("discover", unnamed, "--y", "energy", "--points", 3, says="--points 3")
    refused("discover", unnamed, "--y", "energy", "--output", "vector", says="--output vector for 30")
    words = "there is no column 'y=2'"
    assert cli.as_options(words) == words


def test_vector_given_as_scalars_is_remarked(tmp_path):
    X = inputs(10)
    path = save(tmp_path / "a.npz", X=X, y=X)
    note = "y has 2 columns, like x: did you mean --output vector?"
    assert note in call("discover", path).stdout
    assert "did you mean" not in call("discover", path, "--output", "vector").stdout


def test_bad_input(tmp_path, data):
    X = inputs()
    refused("discover", tmp_path / "absent.csv", says=("Error: ", "does not exist"))
    refused("discover", tmp_path, says="directory")
    refused("discover", data, "--x", "E,q", says=("no column 'q'", "available"))
    refused("discover", data, "--output", "spinor", says=("spinor", "choose from"))
    refused("discover", data, "--output", "vector", says=("--output vector for", "output that fits"))
    refused("discover", data, "--names", "a,b,c", says="3 names")
    refused("discover", data, "--points", 3, says="split evenly")
    refused("discover", save(tmp_path / "nan.npz", X=np.where(X > 2, np.nan, X), y=law(X)), says="NaN")
    refused("discover", save(tmp_path / "rows.npz", X=X, y=law(X)[:-1]), says=("300", "299"))
    (tmp_path / "text.csv").write_text("a,b,y\n1,2,3\n1,two,3\n")
    refused("discover", tmp_path / "text.csv", says=("line 3", "'two'"))
    (tmp_path / "data.ods").write_text("x")
    refused("discover", tmp_path / "data.ods", says="'.ods'")
    (tmp_path / "mislabelled.h5").write_bytes(data.read_bytes())
    refused("discover", tmp_path / "mislabelled.h5", says=("not an HDF5 file", "rename it to .csv"))


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".parquet"])
def test_truncated_file(tmp_path, suffix):
    path = save(tmp_path / f"data{suffix}", X=inputs(), y=law(inputs()))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    refused("discover", path, says=("Error: ", "truncated or damaged"))


def test_destinations_are_checked_before_the_search(tmp_path, data, recorded):
    refused("discover", data, "--report", tmp_path / "page.pdf", says=".html")
    refused("discover", data, "--report", tmp_path / "no/page.html", says="no folder")
    refused("discover", data, "--save", data, says="give a directory")
    assert recorded == []


@pytest.mark.parametrize(
    "options",
    [
        ["--seed", "-1"],
        ["--time-budget", "0"],
        ["--time-budget", "inf"],
        ["--effort", "great"],
        ["--points", "0"],
        ["--errors", "squared"],
        ["--workers", "0"],
        ["--what"],
    ],
)
def test_bad_options(data, options):
    result = call("discover", data, *options)
    assert result.exit_code == 2 and options[0] in result.stderr


def test_ten_samples(tmp_path):
    X = inputs(10)
    result = call("discover", save(tmp_path / "few.npz", X=X, y=law(X)))
    assert result.exit_code == 4 and "10 samples are too few" in result.stdout


def test_warnings_of_libraries_are_hidden(monkeypatch, data, run):
    def noisy(*_, **__):
        warnings.warn("something deprecated", FutureWarning, stacklevel=1)
        return gortho.Discovery.load(run)

    monkeypatch.setattr(gortho, "discover", noisy)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert call("discover", data, "--quiet").stderr == ""
    assert caught == []


# ---- predict ----


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".csv", ".parquet"])
def test_predict_equals_the_discovery(tmp_path, run, suffix):
    X = inputs(50, seed=5)
    X[7] = X[3]  # a repeated row keeps its place
    path = save(tmp_path / f"new{suffix}", X=X)
    result = call("predict", run, path, "--out", tmp_path / f"p{suffix}")
    assert result.exit_code == 0 and "50 predictions" in result.stdout and result.stderr == ""
    y = read_back(tmp_path / f"p{suffix}")
    assert np.allclose(y, gortho.Discovery.load(run).predict(X), rtol=1e-12, atol=0) and y[7] == y[3]
    assert np.abs(y - law(X)).max() < 0.3


def read_back(path):
    if path.suffix == ".npz":
        return np.load(path)["y"]
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            return file["y"][()]
    return (pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path))["y"].to_numpy()


def test_predict_finds_the_columns_of_the_run(tmp_path, run):
    X = inputs(20)
    table = pd.DataFrame({"p": X[:, 1], "label": "a", "E": X[:, 0], "y": 0.0, "other": 1.0})
    table.to_csv(tmp_path / "new.csv")
    assert call("predict", run, tmp_path / "new.csv", "--out", tmp_path / "p.npz").exit_code == 0
    expected = gortho.Discovery.load(run).predict(X)
    assert np.allclose(read_back(tmp_path / "p.npz"), expected, rtol=1e-9)
    table.rename(columns={"E": "a,b", "p": "c"}).to_csv(tmp_path / "other.csv", index=False)
    refused("predict", run, tmp_path / "other.csv", "--out", tmp_path / "q.csv", says="no column 'E'")
    moved = table.rename(columns={"E": "t", "p": "c"})
    moved.to_csv(tmp_path / "other.csv", index=False)
    assert (
        call("predict", run, tmp_path / "other.csv", "--x", "t,c", "--out", tmp_path / "q.npz").exit_code == 0
    )
    assert np.allclose(read_back(tmp_path / "q.npz"), expected, rtol=1e-9)


def test_predict_tells_of_inputs_unlike_those_of_the_run(tmp_path, run):
    path = save(tmp_path / "new.npz", X=inputs(20) * [1000, 1])  # E in MeV
    result = call("predict", run, path, "--out", tmp_path / "p.npz")
    assert result.exit_code == 0 and "of 20 samples lie far outside" in result.stderr
    assert "check units and columns" in result.stderr


def test_the_row_of_an_extrapolated_prediction_is_that_of_the_file(tmp_path, run):
    X = inputs(50)
    X[7] *= 1e4
    X[[2, 3], 0] = np.nan
    result = call("predict", run, save(tmp_path / "a.csv", X=X), "--dropna", "--out", tmp_path / "p.csv")
    assert result.exit_code == 0 and "most of all line 9 of the file: ⟨x,x⟩ is" in result.stderr


def test_predict_one_row(tmp_path, run):
    path = save(tmp_path / "one.npz", X=inputs(1))
    assert call("predict", run, path, "--out", tmp_path / "p.npz").exit_code == 0
    assert read_back(tmp_path / "p.npz").shape == (1,)


def test_predict_refuses(tmp_path, run, data):
    out = tmp_path / "p.csv"
    wide = save(tmp_path / "wide.npz", X=inputs(shape=(3,)))
    refused("predict", run, wide, "--out", out, says=("3 components", "E, p"))
    refused("predict", run, data, "--out", tmp_path / "p.txt", says="'.txt'")
    refused("predict", run, data, "--out", tmp_path / "no/p.csv", says="does not exist")
    refused("predict", run, data, "--out", data, says="choose another name")
    refused("predict", tmp_path, data, "--out", out, says="discovery.json")
    refused("predict", run, save(tmp_path / "nan.npz", X=inputs() * np.nan), "--out", out, says="NaN")
    assert call("predict", run, data).exit_code == 2  # no --out
    assert not out.exists()


def test_other_names_of_columns_ask_for_the_right_ones(tmp_path, run):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n3,4\n")
    names = ", ".join(map(repr, gortho.Discovery.load(run).names))
    refused(
        "predict", run, other, "--out", tmp_path / "p.csv", says=f"x = {names}: name the right columns by --x"
    )


def test_damaged_run(tmp_path, run, data):
    gortho.Discovery.load(run).save(tmp_path)
    (weights,) = tmp_path.glob("*.safetensors")
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    refused("check", tmp_path, data, says=f"{weights.name} is damaged")
    weights.write_bytes(whole)
    text = (tmp_path / "discovery.json").read_bytes()
    (tmp_path / "discovery.json").write_bytes(text[:300] + b"\xff" + text[301:])
    said = refused(
        "check", tmp_path, data, says="damaged (UnicodeDecodeError): make it again, or copy it again"
    )
    assert len(said.stderr) < 300  # and not the whole file
    (tmp_path / "discovery.json").write_text("{}")
    refused("check", tmp_path, data, says="not a saved discovery")


def test_a_run_that_was_not_accepted_warns(tmp_path, run, data):
    found = gortho.Discovery.load(run)
    replace(found, verdict=gortho.Verdict.NONE, reason="Because.").save(tmp_path / "doubt")
    result = call("predict", tmp_path / "doubt", data, "--out", tmp_path / "p.csv")
    assert result.exit_code == 0
    assert result.stderr.strip() == "Warning: the form of this run was not accepted (NONE): Because."


def test_points_and_scalars_of_a_run(tmp_path):
    """The columns of tuples and scalars are remembered from discovery to prediction."""
    X, m = inputs(shape=(2, 2)), inputs(shape=(2,), seed=1)
    path = save(tmp_path / "pairs.csv", X=X, m=m, y=law(X[:, 0]) * m[:, 0] + law(X[:, 1]))
    options = [
        "--points",
        2,
        "--x",
        "E_0:p_1",
        "--scalars",
        "m_0,m_1",
        "--scalars-per-point",
        "--effort",
        "quick",
    ]
    assert call("discover", path, *options, "--save", tmp_path / "run").exit_code in cli.EXIT_CODES.values()
    found = gortho.Discovery.load(tmp_path / "run")
    new = save(tmp_path / "new.csv", X=X[:40], m=m[:40])
    assert call("predict", tmp_path / "run", new, "--out", tmp_path / "p.npz").exit_code == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = found.predict(X[:40], {"point": m[:40, :, None]})
    assert np.allclose(read_back(tmp_path / "p.npz"), expected, rtol=1e-9)
    other = tmp_path / "other.csv"
    other.write_text(new.read_text().replace("m_", "mass_"))
    says = "scalars = 'm_0', 'm_1': name the right columns by --scalars"
    refused("predict", tmp_path / "run", other, "--out", tmp_path / "q.csv", says=says)
    arrays = save(tmp_path / "new.npz", X=X[:40], m=m[:40])
    refused("predict", tmp_path / "run", arrays, "--out", tmp_path / "q.npz", says="--scalars")
    assert (
        call("predict", tmp_path / "run", arrays, "--scalars", "m", "--out", tmp_path / "q.npz").exit_code
        == 0
    )
    assert np.allclose(read_back(tmp_path / "q.npz"), expected, rtol=1e-9)


# ---- check ----


def test_check_holds(tmp_path, run):
    X = inputs(200, seed=9)
    path = save(tmp_path / "new.csv", X=X, y=law(X))
    result = call("check", run, path)
    assert result.exit_code == 0 and "The check passes: equivariance and accuracy." in result.stdout
    assert "boosts to 3" in result.stdout and "share of the variance" in result.stdout
    assert f"at discovery, held out: {gortho.Discovery.load(run).peers[0].relative_mse:.2e}" in result.stdout
    content = json.loads(call("check", run, path, "--json").stdout)
    assert content["holds"] and content["failures"] == [] and content["samples"] == 200
    assert len(content["equivariance"]) == 5 and all(row["error"] < 1e-8 for row in content["equivariance"])
    stored = gortho.Discovery.load(run)
    assert content["mse"] == pytest.approx(np.square(stored.predict(X) - law(X)).mean(), rel=1e-6)
    assert content["stored_relative_mse"] == stored.peers[0].relative_mse


def test_check_without_targets(tmp_path, run):
    result = call("check", run, save(tmp_path / "new.csv", X=inputs(30)))
    assert result.exit_code == 0 and result.stdout.endswith(
        "Equivariance holds; accuracy was not checked: the file has no targets.\n"
    )
    content = json.loads(call("check", run, save(tmp_path / "new.npz", X=inputs(30)), "--json").stdout)
    assert content["mse"] is None and content["holds"]
    refused("check", run, tmp_path / "new.csv", "--y", "energy", says="no column 'energy'")


def test_check_detects_another_law(tmp_path, run):
    X = inputs()
    path = save(tmp_path / "wrong.csv", X=X, y=(X**2).sum(axis=1))
    result = call("check", run, path)
    assert result.exit_code == 1 and "FAILS" in result.stdout and "another law" in result.stdout
    constant = save(tmp_path / "constant.csv", X=X, y=np.ones(300))
    content = json.loads(call("check", run, constant, "--json").stdout)
    assert not content["holds"] and content["relative_mse"] is None  # infinite
    truncated = tmp_path / "short.npz"
    truncated.write_bytes(save(tmp_path / "new.npz", X=X).read_bytes()[:900])
    refused("check", run, truncated, says="truncated")


def test_check_weighs_samples_as_the_run_does(tmp_path):
    """Where errors differ, an error that counts all rows alike is not the one at discovery."""
    X = inputs(300, seed=2)
    s = np.where(np.arange(300) % 3, 0.01, 3.0)
    noisy = law(X) + s * np.random.default_rng(0).normal(size=300)
    path = save(tmp_path / "own.csv", X=X, y=noisy, s=s)
    asked = ("--x", "E,p", "--y", "y", "--y-error", "s", "--effort", "quick")
    assert call("discover", path, *asked, "--save", tmp_path / "run").exit_code == 0
    result = call("check", tmp_path / "run", path)
    assert result.exit_code == 0 and "The check passes" in result.stdout, result.output
    bare = save(tmp_path / "bare.csv", X=X, y=noisy)
    result = call("check", tmp_path / "run", bare)
    assert result.exit_code == 0 and "accuracy was not compared: the run was made with" in result.stdout
    assert not json.loads(call("check", tmp_path / "run", bare, "--json").stdout)["compared"]
    assert call("check", tmp_path / "run", save(tmp_path / "x.csv", X=X)).exit_code == 0


def test_check_tells_of_few_samples_that_are_far_off(tmp_path, run):
    X = inputs(200, seed=9)
    y = law(X)
    y[[5, 70]] += 40.0, -90.0
    result = call("check", run, save(tmp_path / "far.csv", X=X, y=y))
    assert result.exit_code == 1 and "another law" not in result.stdout
    assert "without 2 of 200 samples (the worst in line 72) it is not. They may be outliers" in result.stdout


def test_check_detects_a_tampered_form(tmp_path, run, data):
    found = gortho.Discovery.load(run)
    other = gortho.QuadraticForm([[1.0, 0.2], [0.2, -1.0]], found.names)
    replace(found, candidate=other).save(tmp_path / "tampered")
    result = call("check", tmp_path / "tampered", data)
    assert result.exit_code == 1 and re.search(r"the equivariance error \S+ is above 1e-08", result.stdout)


def test_check_of_rotations_has_one_line(tmp_path, run, data):
    found = gortho.Discovery.load(run)
    form = gortho.QuadraticForm([[1.0, 0.0], [0.0, 1.0]], found.names)
    replace(found, candidate=form).save(tmp_path / "round")
    lines = call("check", tmp_path / "round", data).stdout.splitlines()
    (measured,) = (line for line in lines if line.startswith("equivariance error"))
    assert measured.startswith("equivariance error, rotations: ")


def test_check_detects_a_broken_symmetry(monkeypatch, run, data):
    monkeypatch.setattr(gortho.Discovery, "equivariance_error", lambda *_, **__: 1e-6)
    result = call("check", run, data)
    assert result.exit_code == 1 and "1.0e-06 is above 1e-08" in result.stdout


# ---- the rest ----


def test_demo(monkeypatch, tmp_path, run):
    truth = synthetic(samples=3000, seed=0)
    bare = {"network": None, "entry_errors": None, "eigenvalue_errors": None, "restarts": ()}
    stored = replace(gortho.Discovery.load(run), candidate=truth.form, names=truth.form.names, **bare)
    calls = []
    monkeypatch.setattr(gortho, "discover", lambda x, y, **options: calls.append((x, y, options)) or stored)
    result = call("demo", "--report", tmp_path / "demo.html")
    assert result.exit_code == 0, result.output
    x, y, options = calls[0]
    assert torch.equal(x, truth.x) and torch.equal(y, truth.y) and options["output"] == "conjugation"
    assert (
        "[O(2,2)]" in result.stdout
        and "|cos| = 1.000000" in result.stdout
        and re.search(r"d_PA = (0|\de-1\d) ", result.stdout)
    )
    assert (tmp_path / "demo.html").exists()
    assert {p.name: p for p in cli.main.commands["demo"].params}["report"].default == "gortho-demo.html"


@pytest.mark.parametrize("command", [[], ["discover"], ["predict"], ["check"], ["demo"]])
def test_help_has_examples(command):
    result = call(*command, "--help")
    assert result.exit_code == 0 and "Example" in result.stdout and "gortho" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 100


def test_version_and_unknown_command():
    assert gortho.__version__ in call("--version").stdout
    assert call("dream").exit_code == 2


def test_exit_codes_are_the_same_everywhere():
    for command in ([], ["discover"], ["level"], ["demo"]):
        assert cli.EXITS in " ".join(call(*command, "--help").stdout.split())
    for command, codes in (
        ("predict", "0 success, 2 bad input"),
        ("check", "0 the check passed, 1 it failed, 2"),
    ):
        assert f"Exit codes: {codes}" in " ".join(call(command, "--help").stdout.split())
    for page in ("cli.md", "data.md"):
        text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
        assert cli.EXITS in " ".join(text.split())


def test_help_does_not_wait_for_torch():
    code = "import sys, gortho.cli; sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        ["discover", "missing.csv"],
        ["discover", "some.csv", "--y", "c"],
        ["discover", "some.csv", "--y", "b", "--report", "out.pdf"],
        ["level", "some.csv", "--x", "a,c"],
        ["predict", "run", "missing.csv", "--out", "out.csv"],
        ["check", "run", "missing.csv"],
    ],
)
def test_bad_input_does_not_wait_for_torch(tmp_path, command):
    (tmp_path / "some.csv").write_text("a,b\n" + "1,2\n" * 30, encoding="utf-8")
    code = "import sys; from gortho.cli import main; main(sys.argv[1:], standalone_mode=False)"
    code += "; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=tmp_path, capture_output=True, text=True
    )
    assert "Error: " in done.stderr and done.stdout == "False\n", done.stderr


def test_interrupted_while_importing(monkeypatch, capsys):
    from gortho.__main__ import main

    class Interrupts:
        def find_spec(self, name, path=None, target=None):
            if name == "gortho.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "gortho.cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupts(), *sys.meta_path])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "Interrupted before there was a result.\n"


def test_interrupted_before_a_result(monkeypatch, data):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(gortho, "discover", stopped)
    result = call("discover", data, "--quiet")
    assert result.exit_code == 130 and result.stdout == "" and "Interrupted" in result.stderr


def test_lines_are_shortened():
    line = "q(x) = " + " + ".join(f"0.12 x{i}·x{i + 1}" for i in range(20)) + "   [O(2,3)]  error 1.24e-03"
    for width in range(20, 200):
        short = progress.shorten(line, width)
        assert len(short) <= width and "O(2,3)" in short
    assert progress.shorten(line, 1000) == line and progress.shorten("x" * 50, 10) == "x" * 9 + "…"


def test_json_has_no_infinities():
    content = {"a": np.array([1.0, np.inf]), "b": [float("nan")], "c": (1, "x", None), "d": np.float64(2)}
    assert runs.plain(content) == {"a": [1.0, None], "b": [None], "c": [1, "x", None], "d": 2.0}


def test_scalars_of_rows(tmp_path):
    path = save(tmp_path / "a.npz", X=inputs(), y=law(inputs()), m=inputs()[:, 0])
    data = read(path, scalars="m")
    assert surveyed.scalars_of(data, [0, 1])["sample"].shape == (2, 1)
    assert surveyed.scalars_of(read(path)) is None


@pytest.fixture
def running(tmp_path):
    """Starts a long discovery in another process, and waits until its search is under way."""
    X = inputs(2000, shape=(3, 4))
    noise = np.random.default_rng(1).normal(size=2000)
    np.savez(tmp_path / "data.npz", X=X, y=np.tanh(X[:, 0, 0] * X[:, 1, 0] - X[:, 0, 1] * X[:, 2, 1]) + noise)
    started = []

    def start(*options):
        environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
        with open(tmp_path / "stderr", "wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "gortho", "discover", tmp_path / "data.npz", *options],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs ignore it
            )
        started.append(process)
        wait_for("search: ", process, tmp_path)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_for(word, process, folder, seconds=120):
    for _ in range(10 * seconds):
        if word in (folder / "stderr").read_text(encoding="utf-8", errors="replace"):
            time.sleep(0.5)
            return
        assert process.poll() is None, (folder / "stderr").read_text()
        time.sleep(0.1)
    raise AssertionError(f"{word!r} did not come within {seconds} s")


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_gives_the_best_so_far(running, tmp_path):
    process = running("--save", tmp_path / "run", "--report", tmp_path / "page.html", "--time-budget", "5")
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=180)[0].decode()
    words = (tmp_path / "stderr").read_text(encoding="utf-8")
    assert process.returncode == 4, words
    assert "Interrupted: finishing with the best form so far" in words and "Traceback" not in words
    assert "UNDERDETERMINED" in output and "The search was interrupted" in output and "q(x) = " in output
    assert (tmp_path / "page.html").exists()
    assert gortho.Discovery.load(tmp_path / "run").candidate is not None


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_sigterm_gives_the_best_so_far(running, tmp_path):
    process = running("--save", tmp_path / "run", "--time-budget", "5")
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=180)[0].decode()
    assert process.returncode == 4 and "The search was interrupted" in output
    assert gortho.Discovery.load(tmp_path / "run").candidate is not None


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_second_ctrl_c_leaves_at_once(running, tmp_path):
    process = running()
    process.send_signal(signal.SIGINT)
    wait_for("Interrupted", process, tmp_path)
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 130 and output == b""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_sigterm_before_the_search_gives_one_line(monkeypatch, capsys):
    """Also while torch is being imported, before any command runs; forked processes end by it as others do."""
    from gortho import __main__ as start

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("gortho.cli.main", lambda: os.kill(os.getpid(), signal.SIGTERM))
    try:
        with pytest.raises(SystemExit) as ended:
            start.main()
        assert ended.value.code == 130 and "Interrupted before there was a result" in capsys.readouterr().err
        child = os.fork()
        if not child:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)


# ---- classes, errors of y, tolerance ----


def test_the_tolerance_of_the_command_line_is_that_of_the_library():
    from gortho.cli import searching
    from gortho.discovery.verdict import TOLERANCE

    assert searching.TOLERANCE == TOLERANCE


def test_errors_of_y_and_the_tolerance_reach_the_search(tmp_path, recorded):
    X = inputs()
    path = save(tmp_path / "errors.csv", X=X, y=law(X), sigma=np.linspace(1, 2, 300), w=np.ones(300))
    given = ["discover", path, "--tolerance", 0.01, "--x", "E,p"]
    assert call(*given, "--y-error", "sigma").exit_code == 0
    assert call(*given, "--weight", "w").exit_code == 0
    errors, weights = recorded
    assert np.allclose(errors["y_error"], np.linspace(1, 2, 300)) and errors["sample_weight"] is None
    assert errors["tolerance"] == 0.01
    assert weights["y_error"] is None and np.allclose(weights["sample_weight"], 1)


def test_the_summary_tells_the_defect(found):
    told = json.loads(found.stdout)
    assert (
        told["defect"]["low"] == 0 and 0 < told["defect"]["high"] < 1e-3 and told["defect"]["noise"] is None
    )
    assert told["approximate"] is False and told["classes"] is None and told["tolerance"] == 0.003


def labels(X):
    return np.where(law(X) > 0.2, "time", np.where(law(X) < -0.2, "space", "light"))


@pytest.fixture(scope="module")
def classified(folder):
    """A saved run of three classes, and its summary."""
    X = inputs(900)
    path = save(folder / "classes.csv", X=X, kind=labels(X))
    result = call(
        "discover", path, "--y", "kind", "--output", "class", "--effort", "quick", "--json",
        "--save", folder / "classes", "--report", folder / "classes.html",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return folder / "classes", json.loads(result.stdout)


def test_classes_are_found_in_a_table(classified):
    told = classified[1]
    assert told["classes"] == ["light", "space", "time"] and told["group"] == "O(1,1)"
    assert told["verdict"] == "FOUND" and told["defect"]["high"] < 0.3


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".h5"])
def test_labels_are_read_from_every_kind_of_file(tmp_path, suffix):
    X = inputs(40)
    path = tmp_path / f"labels{suffix}"
    named = labels(X).astype(object) if suffix == ".h5" else labels(X)
    save(path, X=X, y=named)
    data = read(path, output="class")
    assert (data.y == labels(X)).all() and data.X.shape == (40, 2)
    whole = gortho.survey(path, output="class", max_samples=30)  # block by block
    assert len(whole.data.y) == 30 and set(whole.data.y) <= {"time", "space", "light"}
    chosen = {tuple(x): label for x, label in zip(X, labels(X))}
    assert all(chosen[tuple(x)] == label for x, label in zip(whole.data.X, whole.data.y))


def test_labels_of_numbers_and_missing_ones(tmp_path):
    table = pd.DataFrame({"E": inputs(30)[:, 0], "p": inputs(30)[:, 1], "y": [1, 2, 3] * 10})
    table.to_csv(tmp_path / "a.csv", index=False)
    assert read(tmp_path / "a.csv", output="class").y.tolist() == [1, 2, 3] * 10
    table.assign(y=[True, False, False] * 10).to_parquet(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", output="class").y.tolist() == [True, False, False] * 10
    table.assign(y=["a", None, "b"] * 10).to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(ValueError, match=r"y has no label in line 3 \(10 in all\): .* dropna=True"):
        read(tmp_path / "b.csv", output="class")
    assert read(tmp_path / "b.csv", output="class", dropna=True).y.tolist() == ["a", "b"] * 10
    more = pd.concat([table] * 2).assign(y=range(60))
    more.to_csv(tmp_path / "d.csv", index=False)
    refused("discover", tmp_path / "d.csv", "--output", "class", says="more than 50 different labels")
    refused("discover", tmp_path / "d.csv", "--output", "class", "--y", "y,p", "--x", "E", says="one column")
    refused(
        "discover", tmp_path / "d.csv", "--output", "class", "--y-error", "p", says="labels have no errors"
    )


@pytest.mark.parametrize("classes, kind", [((False, True), bool), ((2, 10), int)])
def test_classes_keep_their_kind_where_rows_are_left_out(tmp_path, classes, kind):
    kept = np.array([True, False, True])
    for name in ("p.csv", "p.parquet"):
        write(tmp_path / name, np.array(classes, kind), kept=kept)
    assert (tmp_path / "p.csv").read_text() == f'y\n{classes[0]}\n""\n{classes[1]}\n'
    assert read_table(tmp_path / "p.parquet")["y"].to_pylist() == [classes[0], None, classes[1]]
    write(tmp_path / "p.npz", np.array(classes, kind), kept=kept)
    assert np.isnan(np.load(tmp_path / "p.npz")["y"]).tolist() == [False, True, False]


@pytest.mark.parametrize("suffix", [".csv", ".h5"])
def test_predict_labels_and_probabilities(tmp_path, classified, suffix):
    run, X = classified[0], inputs(60, seed=4)
    save(tmp_path / "new.csv", X=X)
    out = tmp_path / f"p{suffix}"
    assert call("predict", run, tmp_path / "new.csv", "--out", out).exit_code == 0
    found = gortho.Discovery.load(run)
    if suffix == ".csv":
        told = pd.read_csv(out)
        assert list(told) == ["kind", "p_light", "p_space", "p_time"]
        assert (told["kind"] == found.predict(X)).all()
        assert np.allclose(told.iloc[:, 1:], found.predict_proba(X))
    else:
        with h5py.File(out) as file:
            assert (file["y"].asstr()[()] == found.predict(X)).all()
            assert np.allclose(file["p_time"], found.predict_proba(X)[:, 2])


def test_check_tells_the_log_loss(tmp_path, classified):
    run, X = classified[0], inputs(400, seed=6)
    path = save(tmp_path / "new.csv", X=X, kind=labels(X))
    result = call("check", run, path)
    assert result.exit_code == 0 and "log loss of the predictions" in result.stdout, result.output
    told = json.loads(call("check", run, path, "--json").stdout)
    assert told["holds"] and told["accuracy"] > 0.85 and told["mse"] is None
    assert 0 < told["relative_log_loss"] < 0.1 and told["stored_relative_log_loss"] < 0.1
    assert 0 < told["log_loss"] < 0.1
    save(path, X=X, kind=np.random.default_rng(0).permutation(labels(X)))
    assert call("check", run, path).exit_code == 1
    save(path, X=X, kind=np.where(labels(X) == "time", "tea", labels(X)))
    refused("check", run, path, says="'tea' is not a class of the run, which has light, space, time")


def test_few_held_out_labels_without_a_mistake_promise_little(classified):
    """They may have a log loss of nothing by chance: one label in a hundred beyond the bound is no other law."""
    found, X = gortho.Discovery.load(classified[0]), inputs(400, seed=6)
    lucky = replace(found, peers=(replace(found.peers[0], relative_mse=1e-12), *found.peers[1:]))

    def holds(wrong):
        names = labels(X)
        names[:wrong] = np.where(names[:wrong] == "time", "space", "time")
        return certificate.certify(lucky, Dataset(X, names)).holds

    assert holds(4) and not holds(80)
    p = found.predict_proba(X)
    assert p.min() > 0.9 / (3 * (found.provenance.samples + 1))  # as many samples can tell


def test_names_with_commas_stand_in_quotes(tmp_path):
    X = inputs(30)
    pd.DataFrame({"v,x": X[:, 0], "v,y": X[:, 1], "y": law(X)}).to_csv(tmp_path / "a.csv", index=False)
    assert read(tmp_path / "a.csv", x='"v,x", "v,y"', y="y").names == ("v,x", "v,y")


def test_messages_of_the_shell_speak_of_its_options(tmp_path, run):
    path = save(tmp_path / "a.csv", X=inputs(30), y=law(inputs(30)))
    refused("discover", path, "--look-for", "foo", says="Error: --look-for foo: give auto")
    refused("discover", path, "--axial", "2", says="Error: --axial 2: give places from 0 to 0")
    frame = pd.read_csv(path)
    frame.loc[3, "E"] = np.nan
    frame.to_csv(path, index=False)
    refused("predict", run, path, "--out", tmp_path / "p.csv", says="--dropna")
    frame[:0].to_csv(path, index=False)
    refused("predict", run, path, "--out", tmp_path / "p.csv", says="give at least one row")
    frame[:1].to_csv(path, index=False)
    assert call("predict", run, path, "--out", tmp_path / "p.csv").stdout.startswith("1 prediction in")
    assert "pseudovector" in call("discover", "--help").stdout


def test_vectors_given_one_by_one_are_not_dropped(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c,d,y\n1,2,3,4,5\n")
    result = call("discover", tmp_path / "a.csv", "--x", "a,b", "--x", "c,d", "--y", "y")
    assert result.exit_code == 2 and "--x a,b,c,d --points 2" in " ".join(result.output.split())


@pytest.mark.parametrize(
    "option", ["--y", "--scalars", "--drop", "--y-error", "--names", "--weight", "--by", "--derivative"]
)
def test_options_are_not_given_twice(data, option):
    said = " ".join(call("discover", data, option, "E", option, "p").stderr.split())
    fix = (
        "give it once"
        if option in ("--names", "--weight", "--by", "--derivative")
        else f"at once, {option} E,p"
    )
    assert f"{option} was given 2 times: " in said and fix in said
    assert call("scan", data, "--targets", "E", "--targets", "p").exit_code == 2


def test_vectors_of_different_sizes(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(700, 5)), columns=["rx", "ry", "rz", "u", "v"])
    r, q = (table[["rx", "ry", "rz"]] ** 2).sum(axis=1), table.u**2 - 4 * table.v**2
    file, run, out = tmp_path / "spins.csv", tmp_path / "run", tmp_path / "p.csv"
    table.assign(energy=r + 0.5 * q + 0.1 * r * q).to_csv(file, index=False)
    told = ["--x", "rx,ry,rz,u,v", "--y", "energy"]
    done = call("discover", file, *told, "--dims", "3,2", "--save", run, "--quiet")
    assert done.exit_code == 0 and "O(3) on x1, O(1,1) on x2" in done.stdout
    assert "rx²" in done.stdout and "u²" in done.stdout and "(u, v) of x2" in done.stdout
    formula = Discovery.load(run).formula
    assert formula is not None and f"formula: {formula}" in done.stdout and formula.holds
    kinds = [table[["rx", "ry", "rz"]], table[["u", "v"]]]
    assert np.allclose(formula(kinds), pd.read_csv(file).energy, atol=1e-3)
    law = formula.sympy()
    assert {s.name for s in law.free_symbols} == {*table.columns}
    assert float(law.subs({s: table.loc[0, s.name] for s in law.free_symbols})) == pytest.approx(
        float(formula(kinds)[0])
    )
    assert call("predict", run, file, "--out", out).exit_code == 0
    y = pd.read_csv(file).energy
    assert np.abs(pd.read_csv(out).energy - y).max() < 1e-4 * y.std()
    assert call("check", run, file).exit_code == 0
    refused("discover", file, *told, "--dims", "3,3", says=["x has 5 columns", "need 6"])
    refused("discover", file, *told, "--dims", "3,2", "--points", "2", says=["leave out --points"])


def test_vectors_of_different_sizes_as_outputs(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 5)), columns=["rx", "ry", "rz", "u", "v"])
    r = table[["rx", "ry", "rz"]]
    f = r.mul((r**2).sum(axis=1) + table.u**2 - 4 * table.v**2, axis=0).set_axis(["fx", "fy", "fz"], axis=1)
    file, run, out = tmp_path / "forces.csv", tmp_path / "run", tmp_path / "p.csv"
    table.join(f).to_csv(file, index=False)
    told = ["--x", "rx:v", "--y", "fx:fz", "--output", "vector", "--dims", "3,2", "--effort", "quick"]
    done = call("discover", file, *told, "--save", run, "--quiet")
    assert done.exit_code == 0 and "O(3) on x1, O(1,1) on x2" in done.stdout, done.output
    assert call("check", run, file).exit_code == 0
    assert call("predict", run, file, "--out", out).exit_code == 0
    assert np.allclose(pd.read_csv(out), f, atol=1e-3)
    saved, turned = Discovery.load(run), table[["v", "rz", "u", "ry", "rx"]]
    for X in (turned, [turned[["rz", "ry", "rx"]], turned[["v", "u"]]]):
        assert np.allclose(saved.predict(X), f, atol=1e-3)
    with pytest.raises(ValueError, match="there is no column 'u'"):
        saved.predict(table.rename(columns={"u": "w"}))


@pytest.mark.parametrize("output, y", [("scalar", "y"), ("vector", "a:c")])
def test_vectors_of_one_size_are_points(tmp_path, recorded, output, y):
    table = pd.DataFrame(inputs(60, shape=(10,)), columns=["x0", "y0", "z0", "x1", "y1", "z1", *"abcy"])
    table.to_csv(tmp_path / "a.csv", index=False)
    told = ["--x", "x0:z1", "--y", y, "--output", output, "--max-samples"]
    for rows in (60, 40):
        call("discover", tmp_path / "a.csv", *told, rows, "--dims", "3,3")
        call("discover", tmp_path / "a.csv", *told, rows, "--points", 2)
    for dims, points in (recorded[:2], recorded[2:]):
        assert dims["X"].shape[1:] == (2, 3) and dims["names"] == points["names"] == ("x", "y", "z")
        assert np.allclose(dims["X"], points["X"]) and np.allclose(dims["y"], points["y"])
