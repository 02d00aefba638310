"""Files and arrays as users have them: good ones are read exactly, bad ones are named precisely."""

import errno
import os
import subprocess
import sys
import zipfile

import h5py
import numpy as np
import pandas as pd
import pytest
import torch

from gortho.samples import (
    MAX_SAMPLES,
    DataError,
    Dataset,
    check_samples,
    read,
    sampling,
    tables,
    write,
)
from gortho.samples.door import enter, hopeless

NAMES = ["E", "px", "py", "pz"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def samples(rng):
    """(X, y) with 40 samples of 4 components."""
    return rng.normal(size=(40, 4)), rng.normal(size=40)


@pytest.fixture
def table(samples):
    """The samples as a table, with names."""
    return pd.DataFrame(samples[0], columns=NAMES).assign(y=samples[1])


def write_h5(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return path


def write_text(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def fails(*parts, of=None, **options):
    """Runs `of` (read or check_samples), which must fail with a message that has all the parts."""
    with pytest.raises(DataError) as caught:
        of(**options)
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in {caught.value}"


def read_fails(path, *parts, **options):
    fails(*parts, of=lambda: read(path, **options))


def check_fails(X, y, *parts, **options):
    fails(*parts, of=lambda: check_samples(X, y, **options))


def notices_of(X, y, **options):
    return check_samples(X, y, **options)[-1]


# ---- array containers ----


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_several_arrays_are_points(tmp_path, suffix):
    u, v = np.random.default_rng(0).normal(size=(2, 30, 3))
    arrays = {"m/u": u, "m/v": v, "m/flat": v[:, :2], "m/short": v[:9], "y": u[:, 0], "a,b": u}
    path = tmp_path / f"a{suffix}"
    np.savez(path, **arrays) if suffix == ".npz" else write_h5(path, **arrays)
    data = read(path, x="m/v, m/u")
    assert (np.stack([v, u], axis=1) == data.X).all() and data.columns["x"] == ("m/v", "m/u")
    assert (read(path, x=["m/v", "m/u"], points=2, targets=False).X == data.X).all()
    assert (u == read(path, x="a,b").X).all()  # the name of one array
    read_fails(path, "'m/u' (30, 3), 'm/flat' (30, 2)", "the same N and n", x="m/u,m/flat")
    read_fails(path, "30", "9", x="m/u,m/short")
    read_fails(path, "(30,)", x="y,y")
    read_fails(path, "no array 'm/w'", x="m/u,m/w")
    read_fails(path, "points=3", x="m/u,m/v", points=3)


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".hdf5"])
def test_arrays_are_read_exactly(tmp_path, samples, suffix):
    X, y = samples
    path = tmp_path / f"data{suffix}"
    np.savez(path, X=X, y=y) if suffix == ".npz" else write_h5(path, X=X, y=y)
    data = read(path)
    assert isinstance(data, Dataset)
    assert (data.X == X).all() and (data.y == y).all()
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.names == ("x0", "x1", "x2", "x3")
    assert data.source == str(path) and data.notices == []
    assert data.point_scalars is None and data.sample_scalars is None
    with pytest.raises(AttributeError):
        data.X = X


def test_arrays_by_name_and_by_path(tmp_path, samples):
    X, y = samples
    np.savez_compressed(tmp_path / "a.npz", inputs=X.astype(np.float32), Y=y)
    data = read(tmp_path / "a.npz", x="inputs")
    assert (X.astype(np.float32) == data.X).all() and (data.y == y).all()
    write_h5(tmp_path / "a.h5", **{"run/X": X, "run/y": y, "x": X + 1, "Y": y + 1})
    assert (read(tmp_path / "a.h5", x="run/X", y="run/y").X == X).all()
    assert (read(tmp_path / "a.h5").X == X + 1).all()


def test_missing_array_names_the_nearest(tmp_path, samples):
    X, y = samples
    np.savez(tmp_path / "a.npz", momenta=X, y=y)
    read_fails(tmp_path / "a.npz", "a.npz", "'moments'", "did you mean 'momenta'", "'y'", x="moments")
    read_fails(tmp_path / "a.npz", "no array 'X'", "name it by x=")
    assert (read(tmp_path / "a.npz", x=["momenta"]).X == X).all()
    read_fails(tmp_path / "a.npz", "y=momenta,y", "name of one array", x="momenta", y="momenta,y")
    write_h5(tmp_path / "a.h5", **{"g/X": X, "y": y})
    read_fails(tmp_path / "a.h5", "did you mean 'g/X'", x="g/XX")
    read_fails(tmp_path / "a.h5", "no array 'g'", x="g")  # a group
    read_fails(tmp_path / "a.h5", "no array ''", x="")


def test_points_are_split_or_verified(tmp_path, samples):
    X, y = samples
    path = tmp_path / "a.npz"
    np.savez(path, X=X, X3=X.reshape(40, 2, 2), y=y)
    assert (X.reshape(40, 2, 2) == read(path, points=2).X).all()
    assert read(path, points=1).X.shape == (40, 4)
    assert read(path, x="X3", points=2).X.shape == read(path, x="X3").X.shape == (40, 2, 2)
    read_fails(path, "(40, 4)", "points=3", points=3)
    read_fails(path, "2 points per sample", "points=4", x="X3", points=4)
    read_fails(path, "points is 0", points=0)


def test_array_scalars_per_point_or_per_sample(tmp_path, rng):
    X, y = rng.normal(size=(20, 3, 4)), rng.normal(size=20)
    extra = {"masses": rng.normal(size=(20, 3)), "two": rng.normal(size=(20, 3, 2))}
    extra |= {"one": rng.normal(size=20), "five": rng.normal(size=(20, 5))}
    path = write_h5(tmp_path / "a.h5", X=X, y=y, s=y, **extra)
    assert read(path).sample_scalars is None, "scalars are read only when asked for"
    data = read(path, scalars="masses")
    assert data.point_scalars.shape == (20, 3, 1) and data.sample_scalars is None
    assert (data.point_scalars[..., 0] == extra["masses"]).all()
    assert (read(path, scalars="two").point_scalars == extra["two"]).all()
    data = read(path, scalars="one")
    assert (data.sample_scalars == extra["one"][:, None]).all() and data.point_scalars is None
    assert (read(path, scalars="five").sample_scalars == extra["five"]).all()
    flat = write_h5(tmp_path / "b.h5", X=X[:, 0], y=y, s=extra["two"])
    read_fails(flat, "scalars have shape (20, 3, 2)", scalars="s")


def test_lengths_that_differ(tmp_path, samples):
    X, y = samples
    write_h5(tmp_path / "a.h5", X=X, y=y[:7])
    read_fails(tmp_path / "a.h5", "40 rows", "has 7")
    np.savez(tmp_path / "a.npz", X=X, y=y[:7])
    read_fails(tmp_path / "a.npz", "40 rows", "has 7")


# ---- tables ----


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_tables_are_read_exactly(tmp_path, table, suffix):
    path = tmp_path / f"data{suffix}"
    if suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    data = read(path)
    assert (table[NAMES].to_numpy() == data.X).all() and (data.y == table["y"]).all()
    assert data.names == tuple(NAMES) and data.y.shape == (40,)
    assert data.notices == ["columns by name: x = 'E', 'px', 'py', 'pz'; y = 'y'"]


@pytest.mark.parametrize("chosen", [["pz", "E"], "pz,E", " pz , E "])
def test_columns_in_the_order_given(tmp_path, table, chosen):
    table.to_csv(tmp_path / "a.csv", index=False)
    data = read(tmp_path / "a.csv", x=chosen, y="py,px")
    assert (table[["pz", "E"]].to_numpy() == data.X).all()
    assert (data.y == table[["py", "px"]].to_numpy()).all()
    assert data.names == ("pz", "E") and data.notices == []


def test_column_slices(tmp_path, table):
    table.rename(columns={"px": "p:x"}).to_parquet(tmp_path / "a.parquet")
    data = read(tmp_path / "a.parquet", x=["p:x", "py:pz"], y="y")
    assert data.names == ("p:x", "py", "pz"), "a name with a colon is a name first"
    table.to_csv(tmp_path / "a.csv", index=False)
    assert read(tmp_path / "a.csv", x="E, px:pz").names == tuple(NAMES)
    assert (table[["px", "py", "pz"]].to_numpy() == read(tmp_path / "a.csv", x="px:pz").X).all()
    read_fails(tmp_path / "a.csv", "'px' stands before 'pz'", x="pz:px")
    read_fails(tmp_path / "a.csv", "no column 'pw'", "did you mean", x="px:pw")


def test_default_targets(tmp_path, table):
    named = table.assign(
        y_1=1.0 + table.E, y2=2 + table.E, target=3 + table.E, Label_a=4 + table.E, yaw=table.E**2
    )
    named = named.drop(columns="y")
    named.to_csv(tmp_path / "a.csv", index=False)
    data = read(tmp_path / "a.csv", scalars="pz")
    assert (data.y == named[["y_1", "y2", "target", "Label_a"]].to_numpy()).all()
    assert data.names == ("E", "px", "py", "yaw")
    assert (data.sample_scalars == table[["pz"]].to_numpy()).all()
    assert read(tmp_path / "a.csv", y="yaw", scalars="pz").names == (
        "E",
        "px",
        "py",
        "y_1",
        "y2",
        "target",
        "Label_a",
    )


def test_targets_are_not_guessed_when_unclear(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(20, 4)), columns=["x", "y", "z", "value"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    read_fails(tmp_path / "a.csv", "whether 'y'", "'z'", "y=")
    assert read(tmp_path / "a.csv", y="value").names == ("x", "y", "z")
    frame.rename(columns={"y": "w"}).to_csv(tmp_path / "b.csv", index=False)
    read_fails(tmp_path / "b.csv", "no column is named y", "'value'")
    read_fails(tmp_path / "a.csv", "'x'", "more than once", x="x,z", y="x")
    read_fails(tmp_path / "a.csv", "names no column", x=[], y="x")
    read_fails(tmp_path / "a.csv", "no columns are left for x", y="x:value")


def test_row_numbers_written_by_pandas_are_no_variable(tmp_path, table):
    table.to_csv(tmp_path / "a.csv")
    assert read(tmp_path / "a.csv").names == tuple(NAMES)
    table.set_index(np.arange(40)[::-1].copy()).to_parquet(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").names == tuple(NAMES)


def test_table_points_and_their_names(tmp_path, rng):
    columns = ["E_0", "px_0", "E_1", "px_1"]
    frame = pd.DataFrame(rng.normal(size=(20, 7)), columns=[*columns, "y", "m_0", "m_1"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    data = read(tmp_path / "a.csv", points=2, scalars="m_0,m_1", scalars_per_point=True)
    assert (frame[columns].to_numpy().reshape(20, 2, 2) == data.X).all()
    assert data.names == ("E", "px")
    assert (data.point_scalars == frame[["m_0", "m_1"]].to_numpy()[..., None]).all()
    assert data.sample_scalars is None
    data = read(tmp_path / "a.csv", points=2, scalars=["m_0", "m_1"])
    assert data.sample_scalars.shape == (20, 2) and data.point_scalars is None
    read_fails(tmp_path / "a.csv", "(20, 3)", "points=2", x="E_0:E_1", points=2)
    read_fails(
        tmp_path / "a.csv", "1 columns of scalars", x=columns, points=2, scalars="m_0", scalars_per_point=True
    )
    wrong = "E_0,E_1,px_0,px_1"
    read_fails(tmp_path / "a.csv", "component by component", "x=E_0,px_0,E_1,px_1", x=wrong, points=2)
    assert tables.component_names(["v0", "v1", "v2", "v3"], 2) == ("v0", "v1"), (
        "stems alone would be the same"
    )


def test_missing_column_lists_at_most_twenty(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(5, 30)), columns=[f"energy{i}" for i in range(29)] + ["y"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    read_fails(
        tmp_path / "a.csv", "no column 'enregy7'", "did you mean", "'energy7'", "and 10 more", x="enregy7"
    )


@pytest.mark.parametrize(
    "text",
    [
        "a;b;y\n1;2;3\n4;5;6\n",
        "a\tb\ty\n1\t2\t3\n4\t5\t6\n",
        " a b  y\n 1  2 3\n4 5 6\n",
        "\ufeffa, b, y\r\n1, 2, 3\r\n\r\n4, 5, 6\r\n\r\n",
        '"a","b","y"\n1,2,3\n4,5,6',
        "# a,b,y\n1,2,3\n4,5,6\n",
        "# a b y\n1 2 3\n4 5 6\n",
    ],
)
def test_layouts_of_text(tmp_path, text):
    data = read(write_text(tmp_path / "a.csv", text))
    assert data.X.tolist() == [[1, 2], [4, 5]] and data.y.tolist() == [3, 6] and data.names == ("a", "b")


def test_decimal_commas(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b;y\n1,5;-2,25;3e-1\n4;,5;6,0\n")
    data = read(path, decimal=",")
    assert data.X.tolist() == [[1.5, -2.25], [4, 0.5]] and data.y.tolist() == [0.3, 6]
    path.write_text('a,b,y\n"1,5","2,5",3\n4,5,6\n')
    assert read(path, decimal=",").X.tolist() == [[1.5, 2.5], [4, 5]]
    path.write_text("a;b;y\n1,5;2;3\n4.5;5;6\n")
    read_fails(path, "line 3", "'4.5' is not a number", decimal=",")
    read_fails(path, "decimal=';'", decimal=";")


def test_predictions_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    def full(self, path, **options):
        path.write_text("y\n1.0\n")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "p.csv").write_text("before")
    monkeypatch.setattr("pandas.DataFrame.to_csv", full)
    with pytest.raises(OSError, match="what was there is kept"):
        write(tmp_path / "p.csv", np.arange(3.0))
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
    assert (tmp_path / "p.csv").read_text() == "before"


def test_a_line_of_units_below_the_header(tmp_path):
    path = write_text(tmp_path / "a.csv", "a,b,y\nmm,mm,J\n1,2,3\n4,5,6\n")
    read_fails(
        path, "line 2", "'mm' is not a number", "the units of the columns, begin it with #, or drop it"
    )
    data = read(write_text(path, "a,b,y\n# mm,mm,J\n1,2,3\n4,5,6\n"))
    assert data.X.tolist() == [[1, 2], [4, 5]]
    read_fails(write_text(path, "a,b,y\n1,2,3\nx,y,z\n"), "line 3", "replace it by a number")


def test_suffixes_of_plain_text_are_to_be_renamed(tmp_path):
    path = write_text(tmp_path / "a.dat", "a b y\n1 2 3\n4 5 6\n")
    read_fails(path, "'.dat', which is not read: rename it to .csv")
    assert read(path.rename(tmp_path / "a.csv")).y.tolist() == [3, 6]


def test_bars_between_columns(tmp_path):
    path = write_text(tmp_path / "a.csv", "a | b|y\n1|2|3\n4 |5|6\n")
    data = read(path)
    assert data.X.tolist() == [[1, 2], [4, 5]] and data.y.tolist() == [3, 6]


@pytest.mark.parametrize(
    "text, parts",
    [
        ("a,b,y\n1,2,3\n\n4,oops,5\n", ["line 4", "column 'b'", "'oops'"]),
        ("a,b,y\n1,2,3\n4,5,6,7\n", ["line 3 has 4 cells", "header has 3"]),
        ("a,b,y\n1,2,3,4\n4,5,6,7\n", ["line 2 has 4 cells"]),
        ("a,b,y\n1,2,3\n4,5\n6,7,8\n", ["line 3 has 2 cells"]),
        ("a,b,y\n1,2,3\n4\n6,7,8\n", ["line 3 has 1 cell and"]),
        ("a b y\n1 2 3\n4 5\n6 7 8\n", ["line 3 has 2 cells"]),
        ('a,b,y\n"1,234.5",2,3\n', ["line 2", "'a'", "'1,234.5'", "thousands separators: write"]),
        ("a|b|y\n1|2|1.234,5\n", ["line 2", "'y'", "'1.234,5'", "thousands separators: write"]),
        ("a;b;y\n1,5;2,5;3\n", ["line 2", "column 'a'", "'1,5'", "decimal comma", "decimal=','"]),
        ("a,b,y\n1,2,3\n4,,5\n6,7,8\n", ["NaN", "1 of 3 rows", "line 3", "column 'b'", "drop or impute"]),
        ("a,b,y\n1,2,3\n4,5,-inf\n", ["y holds", "1 of 2 rows", "-inf", "line 3"]),
        ("a,b,y\n\n1,2,3\n\n4,nan,5\n", ["NaN", "line 5", "column 'b'"]),  # blank lines count
        ("1,2,3\n4,5,6\n", ["no header", "'1', '2', '3'"]),
        ("\n\n", ["no header"]),
        ("a,a,y\n1,2,3\n4,5,6\n", ["'a' more than once"]),
        ("a,b,y\n", ["empty below its header"]),
        ("a,b,y\n1,2,3\n", ["1 sample"]),
    ],
)
def test_bad_text_is_named_by_line(tmp_path, text, parts):
    read_fails(write_text(tmp_path / "a.csv", text), "a.csv: ", *parts)


def test_text_in_unused_columns_is_ignored(tmp_path):
    path = write_text(tmp_path / "a.csv", "id,a,b,y\nu,1,2,3\nv,4,5,6\n")
    assert read(path, x="a,b").X.tolist() == [[1, 2], [4, 5]]
    read_fails(path, "line 2", "column 'id'", "'u'")


def test_text_that_is_not_utf8(tmp_path):
    (tmp_path / "a.csv").write_bytes("a,é,y\n1,2,3\n".encode("latin-1"))
    read_fails(tmp_path / "a.csv", "not UTF-8", r"b'\xe9'")
    (tmp_path / "b.csv").write_bytes("a,b,y\n1,2,é\n".encode("latin-1"))
    read_fails(tmp_path / "b.csv", "not UTF-8")


def test_parquet_types(tmp_path):
    frame = pd.DataFrame(
        {"i": [1, 2, 3], "flag": [True, False, True], "word": ["u", "v", "w"], "y": [1.0, 2.0, 4.0]}
    )
    frame["gap"] = pd.array([1, None, 3], dtype="Int64")
    frame.to_parquet(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", x="i,flag").X.tolist() == [[1, 1], [2, 0], [3, 1]]
    read_fails(tmp_path / "a.parquet", "column 'word'", "string", "'u'", x="i,word")
    read_fails(tmp_path / "a.parquet", "NaN", "1 of 3 rows", "row 1", x="i,gap")


# ---- shapes of the output ----


@pytest.mark.parametrize("output", ["vector", "covector"])
def test_vector_outputs(tmp_path, samples, output):
    X, _ = samples
    np.savez(tmp_path / "a.npz", X=X, y=2 * X, bad=X[:, :3])
    assert (read(tmp_path / "a.npz", output=output).y == 2 * X).all()
    read_fails(tmp_path / "a.npz", "shape (40, 3)", "has (40, 4)", y="bad", output=output)


@pytest.mark.parametrize("output", ["conjugation", "bilinear", "form"])
def test_matrix_outputs_row_by_row(tmp_path, rng, output):
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(20, 2, 2))
    np.savez(tmp_path / "a.npz", X=X, y=Y, wrong=rng.normal(size=(20, 3, 1)))
    assert (read(tmp_path / "a.npz", output=output).y == Y).all()
    frame = pd.DataFrame(np.hstack([X, Y.reshape(20, 4)]), columns=["a", "b", "y_00", "y_01", "y_10", "y_11"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert (read(tmp_path / "a.csv", output=output).y == Y).all()
    read_fails(tmp_path / "a.csv", "shape (20, 3)", "has (20, 2, 2)", y="y_00:y_10", x="a,b", output=output)
    read_fails(tmp_path / "a.npz", "(20, 3, 1)", y="wrong", output=output)


def test_scalar_outputs(tmp_path, samples):
    X, y = samples
    np.savez(tmp_path / "a.npz", X=X, y=y[:, None], y2=X[:, :2], y3=X.reshape(40, 2, 2))
    assert read(tmp_path / "a.npz").y.shape == (40,)
    assert read(tmp_path / "a.npz", y="y2").y.shape == (40, 2)
    read_fails(tmp_path / "a.npz", "(40, 2, 2)", "output='scalar'", y="y3")
    read_fails(tmp_path / "a.npz", "'tensor'", "conjugation", output="tensor")


# ---- files that are not what they seem ----


def test_paths(tmp_path):
    read_fails(tmp_path / "nowhere.csv", "nowhere.csv does not exist")
    (tmp_path / "folder.csv").mkdir()
    read_fails(tmp_path / "folder.csv", "is a directory without .parquet files")
    read_fails(write_text(tmp_path / "a.csv", ""), "a.csv is empty")
    read_fails(write_text(tmp_path / "a.ods", "x"), "'.ods'", ".parquet")
    np.save(tmp_path / "a.npy", np.eye(3))
    read_fails(tmp_path / "a.npy", "no column is named y")


def test_content_against_suffix(tmp_path, samples, table):
    X, y = samples
    np.savez(tmp_path / "a.npz", X=X, y=y)
    write_h5(tmp_path / "a.h5", X=X, y=y)
    table.to_parquet(tmp_path / "a.parquet")
    table.to_csv(tmp_path / "a.csv", index=False)

    def renamed(name, to):
        (tmp_path / to).write_bytes((tmp_path / name).read_bytes())
        return tmp_path / to

    read_fails(
        renamed("a.h5", "data.csv"), "data.csv is not a text file but looks like HDF5: rename it to .h5"
    )
    read_fails(renamed("a.npz", "b.tsv"), "not a text file", "zip", "rename it to .npz")
    read_fails(renamed("a.parquet", "b.csv"), "Parquet", "rename it to .parquet")
    read_fails(renamed("a.csv", "b.npz"), "not an .npz archive", "looks like text", "rename it to .csv")
    read_fails(renamed("a.npz", "b.h5"), "not an HDF5 file", "zip")
    read_fails(renamed("a.h5", "b.parquet"), "not a Parquet file", "HDF5")
    (tmp_path / "c.csv").write_bytes(b"a,b\0\1\2")
    read_fails(tmp_path / "c.csv", "not a text file", "binary data")
    (tmp_path / "c.csv").write_bytes(b"\x89PNG\r\n\x1a\n")
    read_fails(tmp_path / "c.csv", "looks like a PNG picture: give the numbers themselves")
    table.to_csv(tmp_path / "d.csv", index=False, encoding="utf-16")
    read_fails(tmp_path / "d.csv", "UTF-16", "save it as UTF-8")


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.98])
@pytest.mark.parametrize("suffix", [".npz", ".h5", ".parquet"])
def test_truncated_files(tmp_path, table, suffix, keep):
    path = tmp_path / f"a{suffix}"
    X, y = np.tile(table[NAMES].to_numpy(), (50, 1)), np.tile(table["y"].to_numpy(), 50)
    if suffix == ".npz":
        np.savez(path, X=X, y=y)
    elif suffix == ".h5":
        write_h5(path, X=X, y=y)
    else:
        table.to_parquet(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    read_fails(path, f"a{suffix}", "truncated or damaged")


def test_damaged_member(tmp_path, samples):
    X, y = samples
    np.savez(tmp_path / "a.npz", X=X, y=y)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    place = content.find(X.tobytes()[:64]) + 100
    content[place] ^= 0xFF
    (tmp_path / "a.npz").write_bytes(content)
    read_fails(tmp_path / "a.npz", "truncated or damaged")
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("X.npy", b"not an array")
        archive.writestr("y.npy", b"")
    read_fails(tmp_path / "b.npz", "truncated or damaged")


def test_pickles_are_refused(tmp_path, samples):
    X, y = samples
    np.savez(tmp_path / "a.npz", X=X.astype(object), y=y)
    read_fails(tmp_path / "a.npz", "'X'", "pickled", "astype(float)")


def test_numbers_only_in_containers(tmp_path, samples):
    X, y = samples
    np.savez(tmp_path / "a.npz", X=X.astype(str), y=y, z=X + 1j)
    read_fails(tmp_path / "a.npz", "X holds", "not a real number")
    read_fails(tmp_path / "a.npz", "z holds", "imaginary", x="z")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"], file["y"], file["one"] = [["a", "b"]] * 40, y, 1.0
    read_fails(tmp_path / "a.h5", "b'a'", "row 0")
    read_fails(tmp_path / "a.h5", "'one' is not an array", x="one")


def test_pandas_layout_of_hdf5_is_out_of_scope(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = file.create_group("df")
        group.attrs["pandas_type"] = "frame"
        group["block0_values"] = np.eye(3)
    read_fails(tmp_path / "a.h5", "pandas table 'df'", "to_parquet")


# ---- more rows than wanted, or than fit in memory ----


def numbered(rows):
    """A table whose first column is the row number, so that samples of it can be told."""
    k = np.arange(rows)
    return pd.DataFrame({"row": k, "a": np.cos(k), "y": k * 2.0})


def write_numbered(path, rows):
    frame = numbered(rows)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=100)
    elif path.suffix == ".h5":
        write_h5(path, X=frame[["row", "a"]].to_numpy(float), y=frame["y"].to_numpy())
    else:
        np.savez(path, X=frame[["row", "a"]].to_numpy(float), y=frame["y"].to_numpy())
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".h5", ".npz"])
def test_max_samples(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr("gortho.samples.chunks.BLOCK", 300)  # many blocks
    path = write_numbered(tmp_path / f"a{suffix}", 5000)
    data = read(path, max_samples=200, seed=3)
    rows = data.X[:, 0]
    assert len(rows) == 200 and (np.diff(rows) > 0).all() and (data.y == 2 * rows).all()
    assert 2000 < rows.mean() < 3000 and rows.min() < 500 and rows.max() > 4500
    assert any(
        "random subset of 200 of the 5000 rows" in notice and "max_samples" in notice
        for notice in data.notices
    )
    assert (read(path, max_samples=200, seed=3).X == data.X).all()
    assert not (read(path, max_samples=200, seed=4).X == data.X).all()
    assert len(read(path, max_samples=5000).X) == 5000
    read_fails(path, "max_samples is 1", max_samples=1)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".h5"])
def test_memory_budget_subsamples(tmp_path, suffix, monkeypatch):
    path = write_numbered(tmp_path / f"a{suffix}", 5000)
    budget = 1000 * 3 * sampling.BYTES
    data = read(path, memory_budget=budget)
    assert len(data.X) == 1000 and (data.y == 2 * data.X[:, 0]).all()
    assert any("1000 of the 5000 rows" in notice and "memory" in notice for notice in data.notices)
    assert len(read(path, memory_budget=10 * budget).X) == 5000
    monkeypatch.setattr("gortho.samples.files.available_memory", lambda: budget)
    assert len(read(path).X) == 1000, "the memory available is the default budget"
    read_fails(path, "not even two rows of 3 numbers", memory_budget=100)


def test_memory_budget_of_npz(tmp_path):
    path = write_numbered(tmp_path / "a.npz", 5000)
    read_fails(path, "memory", "HDF5", "Parquet", memory_budget=100_000)
    assert len(read(path, memory_budget=10_000_000).X) == 5000


def test_available_memory(monkeypatch):
    assert sampling.available_memory() > 1_000_000

    def unknown():
        raise OSError

    monkeypatch.setattr("psutil.virtual_memory", unknown)
    assert sampling.available_memory() is None


def test_stream_sample_is_uniform():
    counts = np.zeros(60)
    for seed in range(2000):
        blocks = (np.arange(k, k + 5.0)[:, None] for k in range(0, 60, 5))
        values, numbers, total = sampling.sample_stream(blocks, 1, 6, seed)
        assert total == 60 and len(values) == 6 and (values[:, 0] == numbers).all()
        counts[numbers] += 1
    assert abs(counts - 200).max() < 5 * np.sqrt(200 * 0.9), "each row is as likely as any other"


def test_bad_row_is_named_by_its_number_in_the_file(tmp_path):
    frame = numbered(1000)
    frame.loc[frame.index % 10 == 7, "a"] = np.nan
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError) as caught:
        read(tmp_path / "a.csv", max_samples=200)
    line = int(str(caught.value).split("in line ")[1].split(",")[0])
    assert (line - 2) % 10 == 7


# ---- arrays from Python ----


def test_kinds_of_input(samples):
    X, y = samples
    frame = pd.DataFrame(X, columns=NAMES)
    kinds = [
        (X.tolist(), y.tolist()),
        (frame, pd.Series(y)),
        (torch.tensor(X, requires_grad=True), torch.tensor(y)),
    ]
    kinds += [
        (X.astype(object), y),
        (np.asfortranarray(X), y),
        (frame.convert_dtypes(), pd.Series(y).convert_dtypes()),
    ]
    for first, second in kinds:
        A, b, points, per_sample, _, notices = check_samples(first, second)
        assert type(A) is type(b) is np.ndarray and A.dtype == b.dtype == np.float64
        assert (A == X).all() and (b == y).all() and points is per_sample is None and notices == []
    A, b, *_ = check_samples(torch.tensor(X).float(), torch.arange(40))
    assert (torch.tensor(X).float().double().numpy() == A).all() and b.dtype == np.float64
    with pytest.raises(DataError, match="X has dtype bfloat16"):
        check_samples(torch.tensor(X).bfloat16(), torch.arange(40))


@pytest.mark.parametrize(
    "X, parts",
    [
        ([[1, 2], [3, "abc"]], ["'abc'", "row 1", "column 1"]),
        ([["1", "2"], ["3", "4"]], ["'1'", "row 0"]),
        (np.array([[1.0, 2.0], [None, 4.0]], dtype=object), ["None", "row 1", "column 0"]),
        (pd.DataFrame({"u": [1.0, 2.0], "v": [1.0, "w"]}), ["'w'", "row 1", "column 'v'"]),
        (np.array([[1, 2], [3, 4 + 1j]]), ["(1+0j)", "imaginary"]),
        (torch.tensor([[1, 2], [3, 4 + 1j]]), ["imaginary"]),
        (np.array([["2020-01-01"], ["2021-01-01"]], dtype="datetime64[D]"), ["2020-01-01"]),
        ([[1, 2], [3, 4], [5]], ["row 0 has 2 values", "row 2 has 1"]),
        (None, ["X is None", "not an array"]),
        ([1.0, 2.0], ["(2,)", "(N, n)", "(N, p, n)"]),
        (np.zeros((2, 1, 1, 1)), ["(2, 1, 1, 1)"]),
        (np.zeros((0, 3)), ["empty"]),
        (np.zeros((2, 0)), ["empty"]),
        ([[1, 2]], ["1 sample"]),
        (np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], [[0, 0], [0, 1]]), ["NaN", "row 1, column 'x1'"]),
        (
            np.ones((5, 2, 1)) * np.array([1, 1, 1, 1, np.inf])[:, None, None],
            ["inf", "row 4, vector x1"],
        ),
    ],
)
def test_unusable_arrays(X, parts):
    check_fails(X, np.arange(0 if X is None else len(X)) * 1.0, *parts)


def test_nan_is_counted(samples):
    X, y = samples
    y[[3, 5]] = np.nan
    check_fails(X, y, "y holds", "2 of 40 rows", "row 3", "drop or impute")
    X[[2, 9, 11], 1] = np.inf
    check_fails(pd.DataFrame(X, columns=NAMES), y, "X holds", "3 of 40 rows", "row 2", "'px'")
    check_fails(np.eye(3), [1, 2, 3], "scalars holds", "row 1", sample_scalars=[1, np.nan, 3])


def test_lengths(samples):
    X, y = samples
    check_fails(X, y[:9], "X has 40 rows and y has 9")
    check_fails(X.T, y, "X has 4 rows and y has 40", "transpose")
    check_fails(X, y, "scalars has 3", sample_scalars=[1, 2, 3])
    check_fails(X, y, "2 names", names=["a", "b"])


def test_scalars(rng):
    X, y = rng.normal(size=(20, 3, 4)), rng.normal(size=20)
    s = rng.normal(size=(20, 3))
    _, _, points, per_sample, *_ = check_samples(X, y, s, s[:, 0])
    assert points.shape == (20, 3, 1) and per_sample.shape == (20, 1)
    assert (points[..., 0] == s).all() and (per_sample[:, 0] == s[:, 0]).all()
    check_fails(X, y, "(20, 2)", "(20, 3)", point_scalars=s[:, :2])
    check_fails(X[:, 0], y, "give them for each sample", point_scalars=s)


def test_repeated_rows_are_dropped(samples):
    X, y = samples
    order = np.r_[np.arange(40), 5, 5, 7]
    s = np.arange(40.0)
    A, b, _, t, _, notices = check_samples(X[order], y[order], None, s[order])
    assert (A == X).all() and (b == y).all() and (t[:, 0] == s).all(), "first occurrences, in order"
    assert len(notices) == 1 and notices[0].startswith("3 repeated rows")
    check_fails(np.ones((4, 2)), np.ones(4), "all 4 rows are the same")
    zeros = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 1.0]])
    assert len(check_samples(zeros, [1, 1, 2])[0]) == 2, "-0.0 is 0.0"


def test_same_x_with_other_y_is_kept(samples):
    X, y = samples
    A, b, *_, notices = check_samples(np.vstack([X, X[:2]]), np.r_[y, y[:2] + 1])
    assert len(A) == len(b) == 42
    assert len(notices) == 1 and notices[0].startswith("2 rows repeat the x") and "kept" in notices[0]
    scalars = np.arange(42)
    assert notices_of(np.vstack([X, X[:2]]), np.r_[y, y[:2] + 1], sample_scalars=scalars) == []


def test_a_vector_that_never_changes(samples):
    """Two forms that differ by (Ae)(Ae)ᵀ give the same functions, so the notice is right; none without such e."""
    X = np.random.default_rng(0).normal(size=(40, 2, 3))
    y = X[:, 0, 0] ** 2
    assert notices_of(X, y) == []
    X[:, 1] = e = np.array([1.0, -2.0, 0.5])
    (notice,) = notices_of(X, y)
    assert notice.startswith("vector 1 of a sample, e, is the same in all samples")
    A = np.diag([1.0, -1.0, 2.0])
    other = A + 0.7 * np.outer(A @ e, A @ e)
    x, along = X[:, 0], X[:, 0] @ A @ e
    np.testing.assert_allclose(x @ other @ e, along * (1 + 0.7 * e @ A @ e))
    np.testing.assert_allclose(((x @ other) * x).sum(1), ((x @ A) * x).sum(1) + 0.7 * along**2)


def test_constant_target(samples):
    X, _ = samples
    assert notices_of(X, np.full(40, 2.5)) == ["y is constant (2.5 in its first entry)"]


@pytest.mark.parametrize("unit", [1e-140, 1e-7, 1e7, 1e140])
@pytest.mark.parametrize("points", [False, True])
def test_mixed_units_are_nothing_to_speak_of(samples, points, unit):
    X, y = samples
    X = X * [1, 1, unit, 1]
    assert notices_of(X[:, None].repeat(2, 1) if points else X, y, names=NAMES) == []
    entered, notices = enter(X, y)
    assert notices == [] and hopeless(entered) is None


@pytest.mark.parametrize("unit", [1e-300, 1e200])
def test_units_whose_form_float64_cannot_hold_are_refused(samples, unit):
    X, y = samples
    with pytest.raises(DataError, match=r"'py'.*too far apart for one form: give one of them in other units"):
        check_samples(X * [1, 1, unit, 1], y, names=NAMES)


def test_subsample_of_arrays(rng):
    X = np.c_[np.arange(1000.0), rng.normal(size=1000)]
    A, b, _, s, _, notices = check_samples(X, X[:, 0], None, X[:, 0], max_samples=100, seed=1)
    assert len(A) == 100 and (A[:, 0] == b).all() and (s[:, 0] == b).all() and len(set(b)) == 100
    assert "100 of the 1000 rows" in notices[0] and "seed 1" in notices[0]
    X = rng.normal(size=(MAX_SAMPLES + 1, 1))
    assert MAX_SAMPLES == 200_000 and len(check_samples(X, X[:, 0])[0]) == MAX_SAMPLES


def test_import_is_light():
    code = "import sys, gortho.samples; print([m for m in ('h5py', 'pandas', 'pyarrow') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


# ---- inputs without targets, and predictions ----


def write_any(path, X, **more):
    if path.suffix == ".npz":
        np.savez(path, X=X, **more)
    elif path.suffix == ".h5":
        write_h5(path, X=X, **more)
    else:
        frame = pd.DataFrame(X, columns=NAMES).assign(**more)
        frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".csv", ".parquet"])
@pytest.mark.parametrize("targets", [True, False], ids=["with y", "without y"])
def test_inputs_alone_keep_every_row(tmp_path, samples, suffix, targets):
    X, y = samples
    X[5] = X[2]
    y[:] = 1
    data = read(write_any(tmp_path / f"a{suffix}", X, **({"y": y} if targets else {})), targets=False)
    assert data.y is None and np.allclose(data.X, X, rtol=1e-15) and len(data.X) == 40
    assert data.columns == {"x": ("X",) if suffix in (".npz", ".h5") else tuple(NAMES)}


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".csv", ".parquet"])
def test_targets_if_there_are_any(tmp_path, samples, suffix):
    X, y = samples
    path = write_any(tmp_path / f"a{suffix}", X, y=y)
    assert np.allclose(read(path, targets=None).y, y)
    arrays = suffix in (".npz", ".h5")
    if arrays:
        assert read(path, targets=None, y="energy").y is None
    assert read(write_any(tmp_path / f"b{suffix}", X), targets=None).y is None
    energy = write_any(tmp_path / f"c{suffix}", X, energy=y)
    assert np.allclose(read(energy, x="X" if arrays else NAMES, y="energy", targets=None).y, y)
    read_fails(energy, "'energy'", targets=True)


def test_named_columns_of_targets_may_be_absent(tmp_path, table):
    path = tmp_path / "a.csv"
    table.to_csv(path, index=False)
    assert read(path, x=NAMES, y=["fx", "fy"], targets=None).y is None
    assert read(path, x=NAMES, y="fx:fy", targets=None).y is None
    read_fails(path, "no column 'fy'", x=NAMES[:3], y="pz,fy", targets=None)


def test_inputs_alone_of_unclear_columns(tmp_path):
    path = write_text(tmp_path / "a.csv", "x,y,z\n1,2,3\n4,5,7\n")
    read_fails(path, "targets or coordinates", "by x=", targets=False)
    assert read(path, x="x:z", targets=False).X.shape == (2, 3)


def test_inputs_alone_are_checked(tmp_path, samples):
    X, _ = samples
    assert read(write_any(tmp_path / "one.npz", X[:1]), targets=False).X.shape == (1, 4)
    read_fails(write_any(tmp_path / "none.npz", X[:0]), "empty", "one row", targets=False)
    X[3, 1] = np.nan
    read_fails(write_any(tmp_path / "nan.csv", X), "NaN", "'px'", "line 5", targets=False)


def test_inputs_alone_with_points_and_scalars(tmp_path, rng):
    X, m = rng.normal(size=(30, 2, 3)), rng.normal(size=(30, 2))
    data = read(write_any(tmp_path / "a.npz", X, m=m), scalars="m", targets=False)
    assert data.X.shape == (30, 2, 3) and (data.point_scalars[..., 0] == m).all()
    assert data.columns == {"x": ("X",), "scalars": ("m",)}


@pytest.mark.parametrize("suffix", [".h5", ".csv", ".parquet"])
def test_inputs_alone_are_all_read_or_none(tmp_path, rng, monkeypatch, suffix):
    monkeypatch.setattr(sampling, "MAX_SAMPLES", 50)
    path = write_any(tmp_path / f"a{suffix}", rng.normal(size=(120, 4)))
    assert len(read(path, targets=False).X) == 120
    read_fails(
        path, "120 rows do not fit", "split the file", targets=False, memory_budget=100 * 4 * sampling.BYTES
    )
    subset = read(path, targets=False, max_samples=20)
    assert len(subset.X) == 20 and "20 of the 120 rows" in subset.notices[-1]


def test_sums_of_outputs(tmp_path, samples):
    X, y = samples
    both = np.concatenate([y[:, None], X], axis=1)
    path = write_any(tmp_path / "a.npz", X, y=both)
    assert (read(path, output="scalar + vector").y == both).all()
    read_fails(path, "has (40, 8)", output="2*vector")


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".tsv", ".parquet", ".h5", ".hdf5"])
def test_predictions_are_written_as_they_are_read(tmp_path, rng, suffix):
    for y in (rng.normal(size=7), rng.normal(size=(7, 2)), rng.normal(size=(7, 2, 2))):
        path = write(tmp_path / f"p{suffix}", y)
        if suffix in (".npz", ".h5", ".hdf5"):
            back = np.load(path)["y"] if suffix == ".npz" else h5py.File(path)["y"][()]
            assert back.shape == y.shape and (back == y).all()
        else:
            sep = "\t" if suffix == ".tsv" else ","
            table = pd.read_parquet(path) if suffix == ".parquet" else pd.read_csv(path, sep=sep)
            assert list(table) == (["y"] if y.ndim == 1 else [f"y_{k}" for k in range(y[0].size)])
            assert np.allclose(table.to_numpy().reshape(y.shape), y, rtol=1e-15)


def test_predictions_that_cannot_be_written(tmp_path):
    y = np.ones(3)
    fails("'.txt'", "use .npz", of=lambda: write(tmp_path / "p.txt", y))
    fails("does not exist", of=lambda: write(tmp_path / "no/p.csv", y))
    (tmp_path / "p.csv").mkdir()
    fails("directory", of=lambda: write(tmp_path / "p.csv", y))


def test_text_targets_are_told_of_classes():
    check_fails(np.eye(2), ["a", "b"], "y holds 'a'", "output='class'")
    check_fails([["a", "b"]] * 2, [1.0, 2.0], "X holds 'a'", "drop its column or row")


def test_errors_of_the_target_are_no_coordinates(tmp_path):
    (tmp_path / "v.csv").write_text("a,b,V,V_err\n" + "1,2,3,0.1\n2,5,1,0.2\n" * 3)
    told = " ".join(read(tmp_path / "v.csv", y="V").notices)
    assert "'V_err' may be the errors of 'V'" in told and "y_error=" in told
    assert "may be the errors" not in " ".join(read(tmp_path / "v.csv", y="V", y_error="V_err").notices)
