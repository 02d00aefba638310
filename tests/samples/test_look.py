"""What a file holds, told before anyone says what is what."""

import zipfile

import h5py
import numpy as np
import pandas as pd
import pytest
from app_samples import law

from gortho.samples import DataError, read, sheets
from gortho.samples.look import LOOKED_AT, look
from gortho.samples.tables import check_header


def messy():
    rows = np.arange(60)
    frame = law(60)
    return frame.assign(
        when=[f"2024-01-{1 + k % 28:02d}" for k in rows],
        ok=rows % 2 == 0,
        fixed=3.5,
        gap=np.where(rows == 5, np.nan, rows / 7),
        none=np.nan,
        mixed=[*map(str, rows[:-1]), "oops"],
    )


KINDS = {
    "t": ("numbers", ""),
    "s": ("numbers", ""),
    "event": ("whole numbers", "counts the rows"),
    "colour": ("text", ""),
    "y": ("numbers", ""),
    "when": ("dates", ""),
    "ok": ("logical", ""),
    "fixed": ("numbers", "the same in all rows"),
    "gap": ("numbers", ""),
    "none": ("nothing", ""),
    "mixed": ("mixed", "'oops' is not a number"),
}


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.parquet", "a.feather", "a.xlsx"])
def test_columns_of_tables(tmp_path, name):
    frame, path = messy(), tmp_path / name
    if name.endswith(".tsv"):
        frame.to_csv(path, sep="\t", index=False)
    elif ".csv" in name:
        frame.to_csv(path, index=False)
    elif name.endswith(".xlsx"):
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    else:
        getattr(frame, f"to_{path.suffix[1:]}")(path)
    seen = look(path)
    assert {c.name: (c.kind, c.note) for c in seen.columns} == KINDS
    assert (seen.rows, seen.arrays, seen.x, seen.y) == (60, False, ("t", "s", "gap"), ("y",))
    columns = {c.name: c for c in seen.columns}
    assert columns["gap"].missing == 1 and columns["none"].missing == 60
    assert columns["t"].low == pytest.approx(frame["t"].min(), rel=1e-12)
    assert set(columns["colour"].examples) == {"red", "blue"}
    data = read(path, x=list(seen.x), y=list(seen.y), dropna=True)  # what is suggested can be read
    assert data.X.shape == (59, 3)


def test_decimal_commas_are_noticed_and_read(tmp_path):
    law(40).to_csv(tmp_path / "a.csv", sep=";", decimal=",", index=False)
    plain = {c.name: c for c in look(tmp_path / "a.csv").columns}
    assert plain["t"].kind == "text" and plain["t"].commas and not plain["t"].note
    seen = look(tmp_path / "a.csv", decimal=",")
    assert seen.x == ("t", "s") and all("decimal" not in c.note for c in seen.columns)


def test_rows_are_counted_and_the_first_looked_at(tmp_path):
    frame = pd.DataFrame({"a": np.arange(LOOKED_AT + 5) / 7.0, "b": 0.5})
    frame.loc[LOOKED_AT + 1, "b"] = 9.0
    text = "# made by hand\n" + frame.to_csv(index=False).replace("\n", "\n\n", 3) + "# the end\n"
    (tmp_path / "a.csv").write_text(text)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        seen = look(tmp_path / name)
        assert (seen.rows, seen.looked_at, seen.columns[1].high) == (LOOKED_AT + 5, LOOKED_AT, 0.5)


def test_infinite_numbers_are_pointed_out(tmp_path):
    frame = pd.DataFrame({"a": [0.5, np.inf, 1.5], "y": [0.5, 1.5, 2.5]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        assert [c.note for c in look(tmp_path / name).columns] == ["1 infinite", ""]


def test_coordinates_x_y_z_are_no_target(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 4)), columns=["x", "y", "z", "energy"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    seen = look(tmp_path / "a.csv")
    assert seen.x == ("x", "y", "z", "energy") and seen.y == ()


def test_arrays_by_their_headers(tmp_path):
    x, y = np.ones((50, 2, 3)), np.arange(50)
    np.savez(tmp_path / "a.npz", X=x, y=y, kind=np.array(["a"] * 50), bad=np.array([{}], dtype=object), c=1.0)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/X"], file["y"], file["kind"] = x, y, np.array(["a"] * 50, dtype=object)
    seen = look(tmp_path / "a.npz")
    assert {c.name: (c.kind, c.shape) for c in seen.columns} == {
        "X": ("numbers", (50, 2, 3)),
        "y": ("whole numbers", (50,)),
        "kind": ("text", (50,)),
        "bad": ("objects", (1,)),
        "c": ("numbers", ()),
    }
    assert (seen.rows, seen.arrays, seen.x, seen.y) == (50, True, ("X",), ("y",))
    assert "not loaded" in next(c.note for c in seen.columns if c.name == "bad")
    seen = look(tmp_path / "a.h5")
    assert {c.name: c.kind for c in seen.columns} == {"g/X": "numbers", "y": "whole numbers", "kind": "text"}
    assert (seen.x, seen.y) == ((), ("y",))


def test_workbooks_that_would_fill_the_memory_are_refused(tmp_path, monkeypatch):
    pd.DataFrame({"a": [1.0], "y": [2.0]}).to_excel(tmp_path / "a.xlsx", index=False)
    assert look(tmp_path / "a.xlsx").rows == 1
    with zipfile.ZipFile(tmp_path / "a.xlsx", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/more.xml", bytes(3_000_000))
    monkeypatch.setattr(sheets, "MAX_UNPACKED", 2_000_000)
    with pytest.raises(DataError, match=r"a\.xlsx: the workbook unpacks to .* save it as \.csv or \.parquet"):
        look(tmp_path / "a.xlsx")


def test_headers_of_many_names_are_checked_fast():
    table = sheets.whole_table([f"c{k}" for k in range(20_000)] + ["c7"], 1, lambda name: np.ones(1))
    with pytest.raises(DataError, match="the header names 'c7' more than once"):
        check_header(table)
