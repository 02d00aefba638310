"""Files of other kinds, columns that are no coordinates, missing numbers, weights and trajectories."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow.feather import write_feather
from pyarrow.parquet import write_table as write_parquet

import gortho
from gortho import Settings, Verdict, cli
from gortho.samples import DataError, derivatives, read
from gortho.samples.labels import Codes
from gortho.samples.suspects import suspects
from gortho.surveyed import labels_of

SMALL = Settings(starts=10, generations=2, refits=4, predictor_steps=100)
NAMES = ["E", "px", "py"]


def table(rows=300, seed=0):
    x = np.random.default_rng(seed).normal(size=(rows, 3))
    q = x[:, 0] ** 2 - x[:, 1] ** 2 - x[:, 2] ** 2
    return pd.DataFrame(np.column_stack([x, q]), columns=[*NAMES, "y"])


def call(*arguments):
    return CliRunner().invoke(cli.main, [str(a) for a in arguments], catch_exceptions=False)


def same(data, frame):
    np.testing.assert_allclose(data.X, frame[NAMES].to_numpy(), rtol=1e-14)
    np.testing.assert_allclose(data.y, frame["y"].to_numpy(), rtol=1e-14)
    assert data.names == tuple(NAMES)


# Kinds of files


def write_as(frame, path):
    if path.name.endswith((".csv", ".csv.gz")):
        frame.to_csv(path, index=False)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    elif path.suffix == ".npy":
        np.save(path, frame.to_records(index=False))
    elif path.suffix == ".xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    else:
        uproot = pytest.importorskip("uproot")
        with uproot.recreate(path) as file:
            file.mktree("events", {name: "float64" for name in frame})
            file["events"].extend({name: frame[name].to_numpy() for name in frame})
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.feather", "a.npy", "a.xlsx", "a.root"])
def test_every_kind_of_table_holds_the_same(tmp_path, name):
    frame = table()
    path = write_as(frame, tmp_path / name)
    same(read(path), frame)
    with pytest.raises(DataError, match="there is no column 'mass'"):
        read(path, y="mass")
    seen = gortho.survey(path, max_samples=100)
    assert seen.rows == 300 and len(seen.data.X) == 100


@pytest.mark.parametrize("name", ["a.csv.gz", "a.feather", "a.npy", "a.xlsx", "a.root"])
def test_damaged_files_are_named(tmp_path, name):
    path = write_as(table(), tmp_path / name)
    path.write_bytes(path.read_bytes()[: int(0.6 * path.stat().st_size)])
    with pytest.raises(DataError, match=name):
        read(path)


def test_a_matrix_has_numbered_columns(tmp_path):
    np.save(tmp_path / "a.npy", table().to_numpy())
    assert read(tmp_path / "a.npy", y="x3").names == ("x0", "x1", "x2")
    with pytest.raises(DataError, match="say which is the target by y="):
        read(tmp_path / "a.npy")


def test_text_columns_are_named_in_every_kind(tmp_path):
    frame = table().assign(day=pd.Timestamp("2026-01-01"), kind="muon")
    frame.to_feather(tmp_path / "a.feather")
    frame.to_csv(tmp_path / "a.csv", index=False)
    for path in (tmp_path / "a.feather", tmp_path / "a.csv"):
        with pytest.raises(DataError, match="column 'day'"):
            read(path)
        with pytest.raises(DataError, match="column 'kind'"):
            read(path, drop="day")
        same(read(path, drop="day,kind"), frame)


@pytest.mark.parametrize("packed", [False, True])
def test_comment_lines(tmp_path, packed):
    frame = table(50)
    lines = frame.to_csv(index=False).splitlines()
    lines = ["# made by hand", "#", *lines[:10], "# a new day", *lines[10:], "# the end"]
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    text = "\n".join(lines) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    same(read(path), frame)
    path = tmp_path / "b.csv"
    path.write_text(text.replace(lines[15], lines[15] + "x"))
    with pytest.raises(DataError, match="line 16"):
        read(path)


def test_a_comment_names_the_columns_where_nothing_else_does(tmp_path):
    frame = table(50)
    np.savetxt(tmp_path / "a.csv", frame.to_numpy(), header="run 7\nE px py y", fmt="%.17g")
    same(read(tmp_path / "a.csv"), frame)
    np.savetxt(
        tmp_path / "b.csv", frame.to_numpy(), header="seven words that are no names at all", fmt="%.17g"
    )
    with pytest.raises(DataError, match="no header"):
        read(tmp_path / "b.csv")


def test_signs_of_comments_within_cells_stay(tmp_path):
    frame = table(50).assign(colour="#ff0000")
    frame[["E", "colour", "px", "py", "y"]].to_csv(tmp_path / "a.csv", index=False)
    same(read(tmp_path / "a.csv", drop="colour"), frame)


@pytest.mark.parametrize("text", ["E,px,py,y\n", "# E px py y\n", "E,px,py,y\n\n"])
def test_a_header_alone(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match="empty"):
        read(tmp_path / "a.csv")
    with pytest.raises(DataError, match="empty"):
        gortho.survey(tmp_path / "a.csv")
    result = call("discover", tmp_path / "a.csv", "--quiet")
    assert result.exit_code == 2 and "Traceback" not in result.stderr


# Missing numbers


def test_missing_numbers_are_refused_or_left_out(tmp_path):
    frame = table()
    frame.loc[[3, 17], "px"] = np.nan
    frame.loc[40, "y"] = np.nan
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError, match=r"line 5, column 'px'.*dropna"):
        read(tmp_path / "a.csv")
    data = read(tmp_path / "a.csv", dropna=True)
    same(data, frame.dropna())
    assert "3 of 300 rows were left out because a number is missing" in data.notices
    seen = gortho.survey(tmp_path / "a.csv", max_samples=100, dropna=True)
    assert seen.rows == 297 and np.isfinite(seen.data.X).all()
    assert any("3 of 300 rows were left out" in notice for notice in seen.data.notices)
    with pytest.raises(DataError, match="dropna"):
        gortho.survey(tmp_path / "a.csv", max_samples=100)
    frame.loc[5, "E"] = np.inf
    frame.to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(DataError, match="infinite") as told:
        read(tmp_path / "b.csv", dropna=True)
    assert "dropna" not in str(told.value)  # it does not help


# Columns that are no coordinates


def test_a_constant_column_is_no_coordinate(tmp_path):
    frame = table()
    frame.insert(0, "year", 2026.0)
    frame["y"] = np.square(frame[NAMES]).sum(axis=1)
    frame.to_csv(tmp_path / "a.csv", index=False)
    found = gortho.discover(frame[["year", *NAMES]], frame["y"], settings=SMALL)
    assert found.verdict is Verdict.UNDERDETERMINED and "year is 2026" in found.reason
    points = np.stack([frame[["year", *NAMES]].to_numpy()] * 2, axis=1)
    assert "x0 is 2026" in gortho.discover(points, frame["y"], settings=SMALL).reason
    result = call("discover", tmp_path / "a.csv", "--quiet")
    assert result.exit_code == 4 and "year is 2026" in result.stdout and "--drop" in result.stdout
    assert read(tmp_path / "a.csv", drop="year").names == tuple(NAMES)


def test_suspects():
    rng = np.random.default_rng(0)
    x, lattice = rng.normal(size=(200, 2)), rng.integers(-30, 30, size=(200, 3))
    columns = {
        "counts the rows": rng.permutation(200) + 5,
        "3 values only": rng.integers(0, 3, 200),
        "dates": 20260101 + rng.integers(0, 28, 200),
        "a year": rng.integers(1990, 2026, 200),
        "seconds since 1970": 1_700_000_000 + rng.integers(0, 10**6, 200),
        "whole numbers": rng.integers(-500, 500, 200),
    }
    for kind, column in columns.items():
        (notice,) = suspects(np.column_stack([x, column]), ["a", "b", "c"])
        assert kind in notice and "'c'" in notice and "'a'" not in notice
    assert suspects(x, ["a", "b"]) == [] and suspects(lattice.astype(float), ["h", "k", "l"]) == []
    (notice,) = suspects(np.column_stack([lattice, np.arange(200)]), ["h", "k", "l", "event"])
    assert "'event' (counts the rows)" in notice and "'h'" not in notice
    assert suspects(np.stack([x, x], axis=1), ["a", "b"]) == []


def test_suspects_are_named_before_the_search(tmp_path, monkeypatch):
    frame = table()
    frame.insert(0, "event", np.arange(300))
    frame.to_csv(tmp_path / "a.csv", index=False)

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(gortho, "discover", stopped)
    result = call("discover", tmp_path / "a.csv")
    assert result.exit_code == 130 and "'event' (counts the rows)" in result.stderr
    monkeypatch.undo()
    found = gortho.discover(frame[["event", *NAMES]], frame["y"], settings=SMALL, time_budget=1)
    assert any("'event' (counts the rows)" in notice for notice in found.notices)


def test_categories_of_pandas_are_refused_by_name():
    frame = table()
    frame["kind"] = pd.Categorical(np.arange(300) % 2)
    with pytest.raises(DataError, match=r"column 'kind'.*category"):
        gortho.discover(frame[[*NAMES, "kind"]], frame["y"])


def test_dropped_columns_cannot_be_used(tmp_path):
    table().to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError, match="'px' are dropped and used"):
        read(tmp_path / "a.csv", x="E,px", drop="px")
    np.savez(tmp_path / "a.npz", X=table()[NAMES].to_numpy(), y=table()["y"].to_numpy())
    with pytest.raises(DataError, match="drop= names columns of a table"):
        read(tmp_path / "a.npz", drop="px")


# Weights and errors


def test_weights_and_errors_are_columns(tmp_path):
    frame = table().assign(w=np.linspace(0, 1, 300), sigma=np.linspace(1, 2, 300))
    frame.to_csv(tmp_path / "a.csv", index=False)
    np.savez(
        tmp_path / "a.npz", X=frame[NAMES].to_numpy(), **{k: frame[k].to_numpy() for k in ("y", "w", "sigma")}
    )
    for path in (tmp_path / "a.csv", tmp_path / "a.npz"):
        drop = {"drop": "sigma"} if path.suffix == ".csv" else {}
        data = read(path, weight="w", **drop)
        np.testing.assert_allclose(data.weights, frame["w"] / frame["w"].mean())
        assert data.X.shape == (300, 3)
        drop = {"drop": "w"} if path.suffix == ".csv" else {}
        data = read(path, y_error="sigma", **drop)
        expected = 1 / frame["sigma"] ** 2
        np.testing.assert_allclose(data.weights, expected / expected.mean())
        with pytest.raises(DataError, match="both given"):
            read(path, weight="w", y_error="sigma")


def test_weights_reach_the_search(tmp_path, monkeypatch):
    frame = table().assign(w=np.linspace(0, 1, 300))
    frame.to_csv(tmp_path / "a.csv", index=False)
    given = {}

    def stopped(x, y, **options):
        given.update(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(gortho, "discover", stopped)
    call("discover", tmp_path / "a.csv", "--weight", "w", "--quiet")
    np.testing.assert_allclose(given["sample_weight"], frame["w"] / frame["w"].mean())
    assert given["names"] == tuple(NAMES)


# Trajectories


def orbits(noise=0.0, runs=3, points=80, seed=0):
    """Rotations about an axis in R³ with a speed that depends on |x|."""
    rng = np.random.default_rng(seed)
    rows = []
    for run in range(runs):
        t = np.sort(rng.uniform(0, 3, points))
        radius, phase, height = rng.uniform(0.5, 2), rng.uniform(0, 6), rng.normal()
        angle = phase + radius * t
        x = np.stack([radius * np.cos(angle), radius * np.sin(angle), height + 0 * t], axis=1)
        slope = radius * np.stack([-x[:, 1], x[:, 0], 0 * t], axis=1)
        rows.append(np.column_stack([np.full(points, run), t, x + noise * rng.normal(size=x.shape), slope]))
    return pd.DataFrame(np.concatenate(rows), columns=["run", "t", "a", "b", "c", "da", "db", "dc"])


def test_slopes_of_trajectories_and_their_errors():
    clean, noisy = orbits(), orbits(0.01)
    order = np.random.default_rng(1).permutation(len(clean))
    for frame, allowed in ((clean, 1e-3), (noisy, 0.1)):
        given = frame.iloc[order]
        d = derivatives(given[["a", "b"]], given["t"], given["run"])
        truth = given[["da", "db"]].to_numpy()
        assert np.median(np.abs(d.slopes - truth)) < allowed
    pulls = (d.slopes - truth) / d.errors  # of the noisy ones: of order one
    assert 0.5 < np.median(np.abs(pulls)) < 2 and np.sqrt(np.mean(np.square(pulls))) < 4
    one = (given["run"] == 0).to_numpy()
    scaled = derivatives(1e150 * given.loc[one, ["a", "b"]], 1e-9 * given["t"][one], given["run"][one])
    np.testing.assert_allclose(scaled.slopes, 1e159 * d.slopes[one], rtol=1e-5, atol=1e154)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda f: f.iloc[:4], "trajectory 0 has 4 points"),
        (lambda f: f.assign(run=0.0, t=1.0), "two points at one time"),
        (lambda f: f.assign(t=np.nan), "NaN"),
    ],
)
def test_trajectories_that_have_no_slope(change, message):
    frame = change(orbits())
    with pytest.raises(DataError, match=message):
        derivatives(frame[["a", "b"]], frame["t"], frame["run"])


def test_times_of_the_calendar_are_no_numbers():
    frame = orbits()
    for times in (pd.to_datetime(frame["t"], unit="s"), pd.to_timedelta(frame["t"], unit="s")):
        with pytest.raises(DataError, match=r"t holds .* in row 0, not a real number: convert it"):
            derivatives(frame[["a", "b"]], times, frame["run"])


def test_slopes_from_a_file(tmp_path):
    frame = orbits()
    frame[["run", "t", "a", "b"]].to_csv(tmp_path / "a.csv", index=False)
    data = read(tmp_path / "a.csv", derivative="t", by="run", output="vector")
    assert data.names == ("a", "b") and data.y.shape == (240, 2) and data.weights is not None
    assert np.median(np.abs(data.y - frame[["da", "db"]].to_numpy())) < 1e-3
    with pytest.raises(DataError, match="without derivative="):
        read(tmp_path / "a.csv", y="a", by="run")
    with pytest.raises(DataError, match="output='vector'"):
        read(tmp_path / "a.csv", derivative="t", by="run")


def test_with_slopes_a_column_named_y_is_a_coordinate(tmp_path):
    frame = orbits().rename(columns={"a": "x", "b": "y"})
    frame[["run", "t", "x", "y", "c"]].to_csv(tmp_path / "a.csv", index=False)
    data = read(tmp_path / "a.csv", derivative="t", by="run", scalars="c", output="vector")
    assert data.names == ("x", "y") and data.y.shape == (240, 2)
    np.testing.assert_array_equal(data.sample_scalars[:, 0], frame["c"])


def test_runs_of_slopes_remember_them(tmp_path):
    """Points that fall towards the origin, dx/dt = -q x: formulas, check and predict know what the target is."""
    start, t = np.random.default_rng(0).uniform(-1, 1, (8, 1, 2)), np.linspace(0, 1, 25)
    x = start / np.sqrt(1 + 2 * (start**2).sum(-1, keepdims=True) * t[:, None])
    rows = {
        "run": np.repeat(range(8), 25),
        "t": np.tile(t, 8),
        "x": x[..., 0].ravel(),
        "y": x[..., 1].ravel(),
    }
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "a.csv", index=False)
    made = ("--derivative", "t", "--by", "run", "--effort", "quick", "--save", tmp_path / "run", "--json")
    result = call("discover", tmp_path / "a.csv", *made)
    assert result.exit_code == 0 and '"text": "(dx/dt) = -1' in result.stdout, result.output
    checked = call("check", tmp_path / "run", tmp_path / "a.csv")
    assert checked.exit_code == 0 and "equivariance and accuracy" in checked.stdout
    frame[["x", "y"]].to_csv(tmp_path / "b.csv", index=False)
    assert "the file has no targets" in call("check", tmp_path / "run", tmp_path / "b.csv").stdout
    call("predict", tmp_path / "run", tmp_path / "b.csv", "--out", tmp_path / "p.csv")
    assert list(pd.read_csv(tmp_path / "p.csv")) == ["dx/dt", "dy/dt"]


def test_slopes_of_circles_are_checked_as_they_were_found(tmp_path):
    """Rotation is a law with an axial output too: its run makes slopes of a new file all the same."""
    rng, frames = np.random.default_rng(3), []
    for run in range(8):
        t, radius, phase = np.sort(rng.uniform(0, 3, 80)), rng.uniform(0.5, 2), rng.uniform(0, 6)
        x = radius * np.array([np.cos(phase + radius * t), np.sin(phase + radius * t)])
        frames.append(pd.DataFrame({"run": run, "t": t, "a": x[0], "b": x[1]}))
    pd.concat(frames).to_csv(tmp_path / "a.csv", index=False)
    made = (
        "--derivative",
        "t",
        "--by",
        "run",
        "--effort",
        "quick",
        "--look-for",
        "SO",
        "--save",
        tmp_path / "run",
    )
    result = call("discover", tmp_path / "a.csv", *made)
    assert result.exit_code == 0 and "axial output" in result.stdout
    assert call("check", tmp_path / "run", tmp_path / "a.csv").exit_code == 0


def test_a_decimal_point_where_commas_were_told(tmp_path):
    (tmp_path / "a.csv").write_text("a;b;y\n" + "0.5;1.5;2.5\n" * 30)
    with pytest.raises(DataError, match=r"'0\.5' is not a number: it has a decimal point: leave out decimal"):
        read(tmp_path / "a.csv", x="a,b", y="y", decimal=",")


def test_a_header_further_down_is_pointed_at(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text('Experiment 7, by M\ndate;2024\n"a","b","U"\n1,2,3\n4,5,6\n')
    with pytest.raises(DataError, match=r"no column 'b'.*; line 3 has it: begin the lines above it with #"):
        read(file, x="b,a", y="U")
    with pytest.raises(DataError, match=r"available: 'Experiment 7', 'by M'$"):
        read(file, x="c", y="U")


def test_other_sheets_are_named_where_a_column_is_missing(tmp_path):
    pytest.importorskip("openpyxl")
    file = tmp_path / "a.xlsx"
    with pd.ExcelWriter(file) as book:
        pd.DataFrame({"about": ["me"]}).to_excel(book, sheet_name="readme", index=False)
        pd.DataFrame({"a": [1.0], "y": [2.0]}).to_excel(book, sheet_name="data", index=False)
    with pytest.raises(DataError, match="only the first sheet of 'readme', 'data' is read: put yours first"):
        read(file, x="a", y="y")


def test_arrays_of_scalars_keep_their_names(tmp_path):
    x = np.random.default_rng(0).normal(size=(5, 3))
    np.savez(tmp_path / "a.npz", v=x, mass=x[:, 0], K=x[:, 1])
    data = read(tmp_path / "a.npz", x="v", y="K", scalars="mass")
    assert labels_of(data) == {"scalars": ["mass"], "y": "K", "vectors": ["v"]}


@pytest.mark.parametrize(
    "cell, hint",
    [
        ("1.2D+00", "exponent of Fortran"),
        ("-1.15 m/s", "a unit behind"),
        ("\u22121.5e\u22123", "minus sign is a dash"),
    ],
)
def test_cells_that_are_nearly_numbers(tmp_path, cell, hint):
    (tmp_path / "a.csv").write_text(f"a,b,y\n1,2,3\n4,{cell},6\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"line 3, column 'b'.*{hint}"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["1_1", "1_2", "11"], ("11", "1_1", "1_2")),
        (["01", "1"], ("01", "1")),
        (["01", "02"], ("01", "02")),
        (["0.1", "0.10000000000000000001"], ("0.1", "0.10000000000000000001")),
        (["1", "1.0", "2"], (1.0, 2.0)),
        (["0", "10", "-2"], (-2, 0, 10)),
        (["0.5", "1e3"], (0.5, 1000.0)),
        (["True", "false"], (False, True)),
        (["1", "true"], ("1", "true")),
    ],
)
def test_different_labels_stay_different(labels, classes):
    assert Codes.of([labels]).classes == classes


@pytest.mark.parametrize("x", [" E,px :py", " E, px , py", [" E", "px ", "py"], '" E", "px ",py'])
def test_names_with_blanks_around_them(tmp_path, x):
    table().set_axis([" E", "px ", "py", " y"], axis=1).to_parquet(tmp_path / "a.parquet")
    data = read(tmp_path / "a.parquet", x=x, y=" y")
    assert data.columns == {"x": (" E", "px ", "py"), "y": (" y",)} and data.X.shape == (300, 3)
    np.savez(tmp_path / "a.npz", **{" v": data.X, "w ": data.X, "y": data.y})
    assert read(tmp_path / "a.npz", x=" v,w ", y="y").X.shape == (300, 2, 3)


def test_slopes_have_errors_of_their_own(tmp_path):
    table().assign(t=range(300)).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError, match="leave out y_error=, slopes have errors of their own"):
        read(tmp_path / "a.csv", x=NAMES, derivative="t", output="vector", y_error="y")


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_half_precision_is_refused(tmp_path, suffix):
    columns = {name: pa.array(values, pa.float16()) for name, values in table().astype(np.float16).items()}
    path = tmp_path / f"a.{suffix}"
    (write_parquet if suffix == "parquet" else write_feather)(pa.table(columns), path)
    with pytest.raises(DataError, match="'E' has dtype float16: differences such as"):
        read(path, x=NAMES, y="y")


def test_text_in_a_workbook_is_told_by_the_row_that_excel_shows(tmp_path):
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [1.0, "oops", 2.0]})
    table.to_excel(tmp_path / "a.xlsx", index=False)
    with pytest.raises(DataError, match=r"column 'y' holds 'oops' in row 3 of the sheet, not a real number"):
        read(tmp_path / "a.xlsx")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.xlsx"])
def test_dates_as_times_of_a_file_are_refused_with_the_fix(tmp_path, name):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    kind = {"a.csv": "to_csv", "a.parquet": "to_parquet", "a.xlsx": "to_excel"}[name]
    for times in (pd.date_range("2020-01-01", periods=30, freq="h"), [f"{k % 24}:{k:02}" for k in range(30)]):
        getattr(table.assign(t=times), kind)(tmp_path / name, index=False)
        with pytest.raises(
            DataError, match=r"column 't' is the time and holds dates, such as .* make them numbers"
        ):
            read(tmp_path / name, derivative="t", output="vector")
