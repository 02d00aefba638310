"""More rows than are kept: one pass adds up the same whatever the blocks, the files and the workers."""

import itertools
import json
import random

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner

import gortho
from gortho import cli
from gortho.discovery import large
from gortho.discovery.correlation import correlate
from gortho.discovery.large import Correlating, survey
from gortho.samples import DataError, chunks, containers, read, sampling
from gortho.samples.files import open_chunks
from gortho.samples.frame import Frame, form_distance
from gortho.samples.sampling import add_up
from gortho.samples.stream import Plan, Totals, scan
from gortho.samples.wanted import Wanted

NAMES = ["E", "px", "py", "pz"]
LIGHT = 0.3  # the speed of light, in these units


def particles(rows, seed=0):
    """Particles on their mass shell, whose mass is the target: E² − c²p² = m²."""
    rng = np.random.default_rng(seed)
    p, m = rng.normal(size=(rows, 3)), rng.uniform(0.5, 2.0, size=rows)
    E = np.sqrt(m**2 + LIGHT**2 * (p**2).sum(1))
    return pd.DataFrame(np.column_stack([E, p, m]), columns=[*NAMES, "mass"])


TRUTH = gortho.QuadraticForm.minkowski(4).matrix * torch.tensor([1.0, *[LIGHT**2] * 3], dtype=torch.float64)


@pytest.fixture
def table():
    return particles(6000)


@pytest.fixture
def folder(tmp_path, table):
    """The table in three files of several row groups each, one of them a folder below, and things to leave alone."""
    path = tmp_path / "events"
    (path / "more").mkdir(parents=True)
    for part, name in ((table[:2500], "a"), (table[2500:2600], "b"), (table[2600:], "more/c")):
        part.to_parquet(path / f"{name}.parquet", row_group_size=700)
    (path / "_SUCCESS").touch()
    (path / "_old.parquet").write_text("not Parquet")
    return path


def test_rows_that_are_few_once_some_are_left_out(tmp_path, table):
    """More rows than are kept, but fewer of them have all numbers: these are all of the rows."""
    table = table[:400].copy()
    table.loc[::2, "px"] = np.nan
    table.to_csv(tmp_path / "a.csv", index=False)
    seen = survey(tmp_path / "a.csv", x=NAMES, y="mass", dropna=True, max_samples=300)
    assert seen.totals is None and seen.rows == len(seen.data.X) == 200
    assert seen.data.notices == ["200 of 400 rows were left out because a number is missing"]
    fewer = survey(tmp_path / "a.csv", x=NAMES, y="mass", dropna=True, max_samples=150)
    assert fewer.rows == 200 and "a random subset of 150 of the 200 rows" in fewer.data.notices[0]


@pytest.fixture
def small_blocks(monkeypatch):
    """Pieces of 1000 rows or more, blocks of 150 rows or so."""
    monkeypatch.setattr(chunks, "PIECE", 1000)
    monkeypatch.setattr(chunks, "BLOCK", 750)


def in_memory(x, y):
    return containers.chunks_of({"x": x, "y": y}, {"x": ("x",), "y": ("y",)}, {})


def source_of(table):
    return in_memory(table[NAMES].to_numpy(), table["mass"].to_numpy())


def same(a, b, rtol=1e-12):
    """Two totals are the same: sums to rounding, everything else exactly."""
    assert a.rows == b.rows
    assert (a.low == b.low).all() and (a.high == b.high).all()
    for one, other in zip(a.kept.in_order(), b.kept.in_order()):
        np.testing.assert_array_equal(one, other)
    assert (a.also is None) == (b.also is None)
    if a.also is not None:
        size = float(a.also.total.abs().max())
        torch.testing.assert_close(a.also.total, b.also.total, rtol=rtol, atol=rtol * size)


def test_totals_add_up_in_any_order(table):
    source = source_of(table)
    values = table.to_numpy(copy=True)
    plan = Plan(300, 5, Correlating.of(values[:, :4], values[:, 4], "scalar"))
    ends = [0, 10, 11, 2000, 2750, 6000]
    parts = [Totals.of(values[a:b], a, source, plan) for a, b in itertools.pairwise(ends)]
    whole = Totals.of(values, 0, source, plan)
    assert whole.rows == 6000 and (whole.low == values.min(0)).all() and (whole.high == values.max(0)).all()
    same(add_up(parts), whole)
    for seed in range(3):
        random.Random(seed).shuffle(parts)
        same(sum(parts[1:], parts[0]), whole)
    same((parts[0] + parts[1]) + parts[2], parts[0] + (parts[1] + parts[2]))
    assert add_up([]) is None


@pytest.mark.parametrize("count", [1, 2, 3, 7, 11, 16])
def test_parts_are_added_in_one_order(count):
    """Alone and on workers the same neighbours are added, so that the last digit is the same too."""

    class Word(str):
        def __add__(self, other):
            return Word(f"({self}{other})")

    level = [Word(chr(ord("a") + k)) for k in range(count)]
    alone = add_up(level)
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2])] + level[len(level) // 2 * 2 :]
    assert alone == level[0]


def test_correlation_of_chunks_is_that_of_memory(table):
    """The moments of blocks add up to those of all rows; quantiles of some rows are as good as ranks of all."""
    values = table.to_numpy(copy=True)
    plan = Correlating.of(values[:1500, :4], values[:1500, 4], "scalar")
    parts = [plan(values[k : k + 777, :4], values[k : k + 777, 4]) for k in range(0, 6000, 777)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    whole = plan(values[:, :4], values[:, 4])
    torch.testing.assert_close(total.total, whole.total, rtol=1e-12, atol=1e-9)
    frame = plan.frame
    in_memory = correlate(torch.as_tensor(values[:, None, :4]) @ frame.W.mT, torch.as_tensor(values[:, 4]))
    found = plan.forms(total)[0]
    assert form_distance(frame.form_in(found), in_memory[0].A) < 0.01
    assert frame.distance(found, TRUTH) < 0.01


def test_correlation_of_other_outputs():
    """Vectors: their coefficients are correlated with; nothing where there are too many monomials, or no scalars."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3))
    A = np.diag([1.0, 4.0, -2.0])
    y = np.tanh(np.einsum("zi,ij,zj->z", x, A, x))[:, None] * x
    plan = Correlating.of(x, y, "vector")
    assert plan.frame.distance(plan.forms(plan(x, y))[0], torch.as_tensor(A)) < 0.1
    assert Correlating.of(rng.normal(size=(100, 20, 3)), rng.normal(size=100), "scalar") is None
    assert Correlating.of(x, np.ones(3000), "scalar") is None
    pairs = rng.normal(size=(3000, 2, 3))
    y = np.einsum("zi,ij,zj->z", pairs[:, 0], A, pairs[:, 1])
    plan = Correlating.of(pairs, y, "scalar")
    assert plan.frame.distance(plan.forms(plan(pairs.reshape(3000, 6), y))[0], torch.as_tensor(A)) < 0.1


# ---- sources ----


def written(path, table):
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        table.to_parquet(path, row_group_size=800)
    elif path.suffix == ".npz":
        np.savez(path, X=table[NAMES].to_numpy(), y=table["mass"].to_numpy())
    else:
        with h5py.File(path, "w") as file:
            file["X"], file["y"] = table[NAMES].to_numpy(), table["mass"].to_numpy()
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".h5"])
def test_a_file_is_what_it_holds(tmp_path, table, suffix, monkeypatch, small_blocks):
    path = written(tmp_path / f"a{suffix}", table)
    arrays = suffix in (".npz", ".h5")
    columns = {} if arrays else {"x": "E,px:pz", "y": "mass"}
    source = open_chunks(path, Wanted(**columns))
    assert source.total == (None if suffix == ".csv" else 6000) and len(source.pieces) == (
        1 if suffix == ".csv" else 6 if arrays else 4
    )
    largest = max(len(block) for piece in source.pieces for _, block in piece.blocks())
    assert largest <= 150, "blocks have the size asked for"
    same(scan(source, Plan(500)), scan(source_of(table), Plan(500)))
    seen = survey(path, **columns, max_samples=500)
    assert seen.rows == 6000 and len(seen.data.X) == 500 and seen.totals.kept.values.shape == (500, 5)
    monkeypatch.undo()  # larger blocks: the same rows
    again = survey(path, **columns, max_samples=500)
    assert (again.data.X == seen.data.X).all() and (again.data.y == seen.data.y).all()
    assert not np.array_equal(survey(path, **columns, max_samples=500, seed=1).data.X, seen.data.X)


def test_few_rows_are_all_read(tmp_path, table):
    for suffix in (".csv", ".parquet", ".npz", ".h5"):
        path = written(tmp_path / f"a{suffix}", table)
        columns = {} if suffix in (".npz", ".h5") else {"x": "E,px:pz", "y": "mass"}
        seen, data = survey(path, **columns), read(path, **columns)
        assert seen.totals is None and seen.forms == () and seen.rows == 6000
        assert (seen.data.X == data.X).all() and (seen.data.y == data.y).all()
        assert seen.data.names == data.names and seen.data.notices == data.notices == []
        assert seen.data.columns == data.columns and seen.data.source == str(path)


def test_folder_is_one_file(tmp_path, table, folder, small_blocks):
    table.to_parquet(tmp_path / "all.parquet")
    columns = {"x": "E,px:pz", "y": "mass"}
    one, several = (read(path, **columns) for path in (tmp_path / "all.parquet", folder))
    assert (one.X == several.X).all() and (one.y == several.y).all() and one.names == several.names
    one, several = (survey(path, **columns, max_samples=400) for path in (tmp_path / "all.parquet", folder))
    same(several.totals, one.totals)
    assert len(several.forms) == len(one.forms) == large.FORMS
    frame = Frame.of(torch.as_tensor(several.data.X))
    assert frame.distance(several.forms[0], TRUTH) < 0.01
    (start, *_) = several.starts(frame)
    assert start.label == "correlation of all rows"
    assert form_distance(start.A, frame.form_in(TRUTH)) < 0.01


def test_sample_does_not_depend_on_blocks(table):
    values = table.to_numpy()
    for size in (6000, 999, 50):
        blocks = (values[k : k + size] for k in range(0, 6000, size))
        rows, numbers, total = sampling.sample_stream(blocks, 5, 120, seed=3)
        assert total == 6000 and len(numbers) == 120 and (values[numbers] == rows).all()
        kept = sampling.Kept.of(values, 0, 120, seed=3)
        assert (kept.in_order()[1] == numbers).all()


def test_points_scalars_and_outputs(tmp_path):
    """Tables of several points: vectors are told apart, and scalars come along."""
    rng = np.random.default_rng(0)
    x, m = rng.normal(size=(900, 2, 2)), rng.uniform(size=(900, 2))
    y = (m[:, :, None] * x).sum(1)
    frame = pd.DataFrame(
        np.column_stack([x.reshape(900, 4), y, m]), columns=["a0", "b0", "a1", "b1", "fa", "fb", "m0", "m1"]
    )
    frame.to_parquet(tmp_path / "a.parquet")
    options = {"x": "a0:b1", "y": "fa:fb", "scalars": "m0,m1", "points": 2, "output": "vector"}
    seen = survey(tmp_path / "a.parquet", **options, scalars_per_point=True, max_samples=200)
    assert seen.data.X.shape == (200, 2, 2) and seen.data.point_scalars.shape == (200, 2, 1)
    assert seen.data.names == ("a", "b")
    np.testing.assert_allclose((seen.data.point_scalars * seen.data.X).sum(1), seen.data.y)
    with pytest.raises(DataError, match=r"a\.parquet: X has shape .* points=3"):
        survey(tmp_path / "a.parquet", **options | {"points": 3}, max_samples=200)


# ---- what is wrong with a source ----


def fails(path, *parts, **options):
    with pytest.raises(DataError) as caught:
        survey(path, **{"x": "E,px:pz", "y": "mass", "max_samples": 400} | options)
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in {caught.value}"


def test_numbers_are_no_vectors(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"] = file["y"] = np.arange(50.0)
    for most in (10, 100):  # more rows than are kept, or not
        fails(tmp_path / "a.h5", "a.h5: X has shape", "it must be (N, n)", x="X", y="y", max_samples=most)


def test_arrays_of_different_lengths(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((50, 2)), y=np.ones(49))
    told = r"'X' has 50 rows and 'y' has 49: they must have one row per sample each"
    with pytest.raises(DataError, match=told):
        read(tmp_path / "a.npz", dropna=True)
    fails(tmp_path / "a.npz", told, x="X", y="y")


def test_a_file_without_a_column(folder, table):
    table.drop(columns="py").to_parquet(folder / "b.parquet")
    fails(folder, "events: b.parquet: there is no column 'py'", "available: 'E', 'px', 'pz', 'mass'")
    with pytest.raises(DataError, match=r"b\.parquet: there is no column 'py'"):
        read(folder, x="E,px:pz", y="mass")
    assert survey(folder, x="E,px", y="mass", max_samples=400).rows == 2500 + 6000 + 3400


def test_bad_files_of_a_folder(folder, table, tmp_path):
    fails(folder, "there is no column 'energy'", x="energy,px:pz")
    (folder / "b.parquet").write_bytes((folder / "a.parquet").read_bytes()[:1000])
    fails(folder, "events: b.parquet: the file is truncated or damaged")
    table.assign(px="much").to_parquet(folder / "b.parquet")
    fails(folder, "events: b.parquet: column 'px' has type", "'much'")
    (tmp_path / "nothing").mkdir()
    fails(tmp_path / "nothing", "without .parquet files")
    fails(tmp_path / "nowhere", "does not exist")


def test_a_row_that_is_not_finite(folder, table, tmp_path, small_blocks):
    """In a row that the sample may not even hold, of the file in the middle."""
    bad = table[2500:2600].reset_index(drop=True)
    bad.loc[17, "px"] = np.nan
    bad.to_parquet(folder / "b.parquet")
    fails(folder, "events: column 'px' is nan in row 17 of b.parquet", "drop or impute")
    table.loc[5003, "mass"] = np.inf
    fails(written(tmp_path / "a.csv", table), "a.csv: column 'mass' is inf in line 5005")
    fails(written(tmp_path / "a.h5", table), "a.h5: y is inf in row 5003", x=None, y=None)


# ---- what is told ----


def test_one_notice_about_thinning(folder):
    seen = survey(folder, x="E,px:pz", y="mass", max_samples=400, seed=2)
    assert seen.data.notices == [
        "a random subset of 400 of the 6000 rows is used (seed 2): pass a larger max_samples to use more; ranges and "
        "the start by correlation come from all rows"
    ]
    (notice,) = survey(folder, x="E,px:pz", y="mass", memory_budget=300 * 5 * sampling.BYTES).data.notices
    assert "300 of the 6000 rows" in notice and "more do not fit in memory" in notice


def test_ranges_beyond_the_sample(folder, table):
    table.loc[100, "py"] = 1e6
    table.to_parquet(folder / "d.parquet")
    seen = survey(folder, x="E,px:pz", y="mass", max_samples=100)
    assert 1e6 not in seen.data.X and seen.totals.high[2] == 1e6
    assert "does not reach as far as all rows do in 'py'" in seen.data.notices[1]
    assert "to 1e+06" in seen.data.notices[1]


# ---- workers ----


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("dask.distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def test_workers_give_the_same_answer(folder, client, small_blocks):
    """The sample to the last bit, sums to rounding; progress ends at all rows."""
    told = []
    columns = {"x": "E,px:pz", "y": "mass", "max_samples": 400}
    alone = survey(folder, **columns)
    both = survey(folder, **columns, client=client, progress=lambda *rows: told.append(rows))
    same(both.totals, alone.totals)
    assert told == sorted(told) and told[-1] == (6000, 6000)
    assert (both.data.X == alone.data.X).all() and both.data.notices == alone.data.notices
    for one, other in zip(both.forms, alone.forms):
        torch.testing.assert_close(one.matrix, other.matrix, rtol=1e-9, atol=1e-9)


def test_workers_name_what_is_wrong(folder, table, client):
    bad = table[2500:2600].reset_index(drop=True)
    bad.loc[17, "px"] = np.nan
    bad.to_parquet(folder / "b.parquet")
    fails(folder, "events: column 'px' is nan in row 17 of b.parquet", client=client)


@pytest.mark.parametrize("alone", [True, False])
def test_interrupted_pass_leaves_nothing(folder, client, alone, small_blocks):
    def stop(rows, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        survey(
            folder, x="E,px:pz", y="mass", max_samples=400, client=None if alone else client, progress=stop
        )
    assert survey(folder, x="E,px:pz", y="mass", max_samples=400, client=client).rows == 6000


# ---- the command line ----


def call(*words):
    return CliRunner().invoke(cli.main, [str(word) for word in words])


def test_command_on_a_folder(folder, tmp_path):
    words = ("discover", folder, "--x", "E,px:pz", "--y", "mass", "--max-samples", 400, "--effort", "quick")
    result = call(*words, "--quiet", "--json", "--save", tmp_path / "run")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["group"] == "O(1,3)" and [n for n in found["notices"] if "subset" in n] == [
        "a random subset of 400 of the 6000 rows is used (seed 0): pass a larger --max-samples to use more; ranges and "
        "the start by correlation come from all rows"
    ]
    check = call("check", tmp_path / "run", folder)
    assert "on 6000 samples of events" in check.output and check.exit_code == 0, check.output
    predicted = call("predict", tmp_path / "run", folder, "--out", tmp_path / "p.csv")
    assert predicted.exit_code == 0 and len(pd.read_csv(tmp_path / "p.csv")) == 6000


def test_interrupted_while_reading(folder, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(large, "scan", stop)
    result = call(
        "discover", folder, "--x", "E,px:pz", "--y", "mass", "--max-samples", 400, "--save", tmp_path / "run"
    )
    assert result.exit_code == cli.INTERRUPTED and "Interrupted before there was a result" in result.output
    assert not (tmp_path / "run").exists()
