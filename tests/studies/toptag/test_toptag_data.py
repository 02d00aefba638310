"""Jets for top tagging: the detector's numbers, the container, the reference files, and the making of jets."""

import json
import multiprocessing
import shutil
import signal
import time

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner

from gortho.files import only_writer
from gortho.samples import DataError
from gortho.studies.toptag import Jets, events, production
from gortho.studies.toptag import detector as det
from gortho.studies.toptag.cells import tower_cells
from gortho.studies.toptag.commands import toptag
from gortho.studies.toptag.jets import with_energy, write_jets
from gortho.studies.toptag.production import Production, generate
from gortho.studies.toptag.reference import MOMENTA, TRUTH, import_reference
from gortho.studies.toptag.summary import moments, plot, table


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def fails(action, *parts):
    """The action must fail with a message that has all the parts."""
    with pytest.raises(DataError) as caught:
        action()
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in {str(caught.value)!r}"


# ------------------------------------------------------------------------------------------------------ detector


def beam_of(code, pt, eta, count, phi=0.3):
    """The same particle in many events."""
    p = np.tile([pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta)], (count, 1))
    zeros = np.zeros((count, 3))
    return det.Particles(np.arange(count), np.full(count, code), p, np.linalg.norm(p, axis=1), zeros)


@pytest.mark.parametrize(
    ("code", "pt", "eta", "efficiency"),
    [
        (211, 5.0, 0.2, 0.95),
        (-211, 0.5, 0.2, 0.70),
        (2212, 5.0, 2.0, 0.85),
        (11, 0.5, 2.0, 0.50),
        (-11, 200.0, 0.2, 0.99),
        (13, 5.0, 0.2, 0.99),
        (211, 0.05, 0.2, 0.0),
        (211, 5.0, 2.7, 0.0),
        (22, 5.0, 0.2, 0.0),
    ],
)
def test_tracking_efficiency(code, pt, eta, efficiency, rng):
    count = 20_000
    tracks = det.Detector().tracks(beam_of(code, pt, eta, count), np.full(count, eta), rng)
    assert len(tracks.of) / count == pytest.approx(
        efficiency, abs=4 * np.sqrt(efficiency * (1 - efficiency) / count) + 1e-9
    )


@pytest.mark.parametrize(("pt", "eta", "a", "b"), [(10.0, 0.2, 0.06, 1.3e-3), (50.0, 1.0, 0.10, 1.7e-3)])
def test_track_resolution(pt, eta, a, b, rng):
    tracks = det.Detector().tracks(beam_of(211, pt, eta, 40_000), np.full(40_000, eta), rng)
    p, error = tracks.momentum, tracks.resolution
    measured, expected = np.hypot(p[:, 0], p[:, 1]), np.hypot(a, b * pt)
    assert measured.mean() == pytest.approx(pt, rel=0.003)
    assert measured.std() / pt == pytest.approx(expected, rel=0.03)
    assert np.median(error) == pytest.approx(expected, rel=0.01)


def test_resolution_of_electrons_and_muons():
    kind, pt, eta = np.array([1, 2]), np.array([10.0, 10.0]), np.zeros(2)
    assert det.track_resolution(kind, pt, eta) == pytest.approx([0.0614, 0.0201], abs=1e-4)


def test_log_normal_has_its_moments(rng):
    mean, sigma = np.full(100_000, 3.0), np.full(100_000, 1.2)
    values = det.log_normal(mean, sigma, rng)
    assert values.mean() == pytest.approx(3.0, rel=0.01) and values.std() == pytest.approx(1.2, rel=0.03)
    assert (det.log_normal(np.zeros(5), np.ones(5), rng) == 0).all()


@pytest.mark.parametrize(
    ("layer", "energy", "eta", "sigma"),
    [
        ("electromagnetic", 100.0, 0.0, np.sqrt(0.17**2 + 1.01**2)),
        ("hadronic", 100.0, 0.0, np.sqrt(3.02**2 + 5.205**2 + 1.59**2)),
        ("hadronic", 100.0, 2.0, np.sqrt(5.0**2 + 7.06**2)),
        ("hadronic", 100.0, 5.5, 0.0),
    ],
)
def test_calorimeter_resolution(layer, energy, eta, sigma):
    assert det.layer_sigma(layer, np.array([energy]), np.array([eta]))[0] == pytest.approx(sigma)


@pytest.mark.parametrize("phi", [5.0, 10.0])
def test_cells_hold_their_directions(phi, rng):
    cells = det.Detector(phi).cells
    eta, angle = rng.uniform(-6, 6, 5000), rng.uniform(-np.pi, np.pi, 5000)
    row, column = cells.find(eta, angle)
    inside = row > 0
    assert (inside == ((eta > cells.edges[0]) & (eta <= cells.edges[-1]))).all()
    row, column, eta, angle = row[inside], column[inside], eta[inside], angle[inside]
    assert ((cells.edges[row - 1] < eta) & (eta <= cells.edges[row])).all()
    low = -np.pi + column * cells.width[row]
    assert ((low <= angle + 1e-12) & (angle <= low + cells.width[row] + 1e-12)).all()
    central = tower_cells(5.0)
    assert np.degrees(central.width[central.find(np.array([0.05]), np.array([0.0]))[0]]) == pytest.approx(5.0)


def test_straight_lines_keep_their_direction():
    eta, phi, inside = det.propagate(beam_of(22, 5.0, 1.2, 3))
    assert inside.all() and eta == pytest.approx(1.2) and phi == pytest.approx(0.3)


@pytest.mark.parametrize(("code", "sign"), [(211, -1), (-211, 1), (11, 1), (-13, -1)])
def test_charges_bend(code, sign):
    pt = 2.0
    _, phi, inside = det.propagate(beam_of(code, pt, 0.1, 1))
    radius = pt / (det.CURVATURE * det.FIELD)
    assert inside[0] and phi[0] - 0.3 == pytest.approx(sign * np.arcsin(det.RADIUS / (2 * radius)))


def test_loopers_end_at_the_end_cap():
    eta, _, inside = det.propagate(beam_of(211, 0.2, 0.5, 1))
    assert inside[0] and eta[0] > 1.9  # farther out than it started
    straight, _, inside = det.propagate(beam_of(211, 0.2, 0.0, 1))
    assert not inside[0] and np.isfinite(straight).all()


def test_helices_agree_with_small_steps(rng):
    count, step = 200, 5e-4
    p = np.column_stack(
        [rng.normal(0, 1.5, (count, 2)), rng.choice([-1, 1], count) * rng.uniform(0.5, 4, count)]
    )
    start = np.column_stack([rng.uniform(-0.4, 0.4, (count, 2)), rng.uniform(-1, 1, count)])
    code = rng.choice([211, -211, 22], count)
    eta, phi, inside = det.propagate(
        det.Particles(np.arange(count), code, p, np.linalg.norm(p, axis=1), start)
    )
    assert inside.all()
    pt, angle, at = np.hypot(p[:, 0], p[:, 1]), np.arctan2(p[:, 1], p[:, 0]), start.copy()
    turn = -det.CURVATURE * det.FIELD * det.charge(code) / pt * step
    moving = np.ones(count, dtype=bool)
    while moving.any():
        forward = np.column_stack([np.cos(angle + turn / 2), np.sin(angle + turn / 2), p[:, 2] / pt])
        at += step * forward * moving[:, None]
        angle += turn
        moving &= (np.hypot(at[:, 0], at[:, 1]) < det.RADIUS) & (np.abs(at[:, 2]) < det.HALF_LENGTH)
    radius = np.hypot(at[:, 0], at[:, 1])
    off = np.hypot(*(radius * np.exp(1j * phi) - (at[:, 0] + 1j * at[:, 1])).view(float).reshape(-1, 2).T)
    assert np.abs(np.sinh(eta) * radius - at[:, 2]).max() < 0.02 and off.max() < 0.005


def test_what_is_made_outside_is_not_seen(rng):
    particles = beam_of(22, 50.0, 0.0, 2)
    particles.vertex[0] = [2.0, 0.0, 0.0]
    assert det.Detector()(particles, rng).event.tolist() == [1]


@pytest.mark.parametrize(("code", "sigma"), [(22, 0.0143), (2112, 0.093), (211, 0.06)])
def test_single_particles_keep_their_energy(code, sigma, rng):
    count, energy = 20_000, 50.0
    flow = det.Detector()(beam_of(code, energy, 0.05, count), rng)
    total = np.bincount(flow.event, np.linalg.norm(flow.momentum, axis=1), minlength=count)
    energy *= np.cosh(0.05)
    assert total.mean() == pytest.approx(energy, rel=0.05 if code == 211 else 0.01)
    spread = np.diff(np.quantile(total, [0.16, 0.84]))[0] / 2 / energy
    assert spread == pytest.approx(sigma, rel=0.5 if code == 211 else 0.15)
    eta = np.arcsinh(flow.momentum[:, 2] / np.hypot(flow.momentum[:, 0], flow.momentum[:, 1]))
    assert np.abs(eta - 0.05).max() < 0.06


def test_muons_are_tracks_and_neutrinos_nothing(rng):
    flow = det.Detector()(beam_of(13, 30.0, 0.3, 2000), rng)
    assert len(flow.event) / 2000 == pytest.approx(0.99, abs=0.01)
    assert len(det.Detector()(beam_of(14, 30.0, 0.3, 100), rng).event) == 0


def test_energy_flow_does_not_count_twice(rng):
    """A track and a photon in one tower: both are seen, once."""
    pion, photon = beam_of(211, 20.0, 0.05, 5000), beam_of(22, 20.0, 0.05, 5000)
    order = np.argsort(np.tile(np.arange(5000), 2), kind="stable")
    both = det.Particles(
        *(
            np.concatenate([getattr(pion, name), getattr(photon, name)])[order]
            for name in ("event", "code", "momentum", "energy", "vertex")
        )
    )
    flow = det.Detector()(both, rng)
    total = np.bincount(flow.event, np.linalg.norm(flow.momentum, axis=1))
    assert total.mean() == pytest.approx(40.0 * np.cosh(0.05), rel=0.06)
    assert (np.diff(flow.event) >= 0).all()


def test_the_same_random_numbers_give_the_same_objects():
    particles = beam_of(211, 3.0, 0.4, 500)
    first, again = (det.Detector()(particles, np.random.default_rng(3)) for _ in range(2))
    assert (first.momentum == again.momentum).all() and (first.event == again.event).all()


def test_a_detector_that_is_not_there():
    fails(lambda: det.Detector(7.0), "7.0", "divisor of 360")


# --------------------------------------------------------------------------------------------------------- jets


def make_jets(rng, count=30, most=12):
    """Made-up jets of about 600 GeV, sorted, in all classes and splits."""
    counts = rng.integers(1, most, count)
    momenta = []
    for n in counts:
        pt = np.sort(rng.dirichlet(np.ones(n)))[::-1] * 600 + 1e-3
        phi, eta = rng.normal(0, 0.05, n), rng.normal(0, 0.05, n)
        momenta.append(np.column_stack([pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta)]))
    return Jets(
        np.concatenate(momenta).astype(np.float32),
        np.concatenate([[0], np.cumsum(counts)]),
        (np.arange(count) % 2).astype(np.int8),
        (np.arange(count) % 3).astype(np.int8),
        rng.uniform(400, 800, count).astype(np.float32),
    )


@pytest.fixture
def jets(rng):
    return make_jets(rng)


def same(a, b):
    return (
        np.array_equal(a.momenta, b.momenta)
        and np.array_equal(a.offsets, b.offsets)
        and np.array_equal(a.label, b.label)
        and np.array_equal(a.split_code, b.split_code)
    )


def test_jets_on_disk(jets, tmp_path):
    stored = jets.save(tmp_path / "set", note="made up")
    assert same(stored, jets) and np.array_equal(stored.pthat, jets.pthat)
    assert stored.meta["note"] == "made up"
    stored.verify()
    assert [file.name for file in (tmp_path / "set").iterdir()] == ["jets.parquet"]


def test_any_reader_of_parquet_reads_jets(jets, tmp_path):
    jets.save(tmp_path / "set")
    frame = pd.read_parquet(tmp_path / "set" / "jets.parquet")
    assert list(frame.columns) == ["px", "py", "pz", "label", "split", "pthat"] and len(frame) == 30
    own = slice(jets.offsets[7], jets.offsets[8])
    assert np.array_equal(frame.px[7], jets.momenta[own, 0]) and frame.label[7] == 1
    frame.drop(columns="pthat").to_parquet(
        tmp_path / "other.parquet", row_group_size=7
    )  # and any writer writes them
    again = Jets.open(tmp_path / "other.parquet")
    assert same(again, jets) and again.pthat is None


def test_pieces_of_any_size_make_the_same_jets(jets, tmp_path, monkeypatch):
    monkeypatch.setattr("gortho.studies.toptag.jets.BLOCK", 7)
    assert same(jets.save(tmp_path / "set"), jets)
    jets.verify()
    jets.momenta[jets.offsets[25], 0] = np.nan
    fails(jets.verify, "constituent 0 of jet 25", "not finite")


def test_rows_of_jets(jets):
    rows = np.array([7, 2, 29])
    some = jets[rows]
    assert len(some) == 3 and (some.counts == jets.counts[rows]).all()
    for i, row in enumerate(rows):
        mine = jets.momenta[jets.offsets[row] : jets.offsets[row + 1]]
        assert np.array_equal(some.momenta[some.offsets[i] : some.offsets[i + 1]], mine)
    assert len(jets[3]) == 1 and len(jets[:4]) == 4 and len(jets[jets.label == 1]) == 15
    fails(lambda: jets[[]], "at least one row")


def test_jets_one_after_another(jets):
    assert same(Jets.cat([jets[:7], jets[7:8], jets[8:]]), jets)
    assert np.array_equal(Jets.cat([jets[:7], jets[7:]]).pthat, jets.pthat)
    unknown = Jets(jets.momenta, jets.offsets, jets.label)
    assert Jets.cat([jets, unknown]).pthat is None and len(Jets.cat([jets, unknown])) == 60
    fails(lambda: Jets.cat([]), "at least one file")


def test_padding(jets):
    rows = jets.split("test")
    vectors, mask = jets.padded(rows, 5, torch.float64)
    assert vectors.shape == (10, 5, 4) and mask.shape == (10, 5)
    assert (mask.sum(1).numpy() == np.minimum(jets.counts[rows], 5)).all()
    assert torch.allclose(vectors[..., 0], vectors[..., 1:].norm(dim=-1)) and (vectors[~mask] == 0).all()
    first = jets.momenta[jets.offsets[rows]]
    assert np.allclose(vectors[:, 0, 1:].numpy(), first)
    assert jets.padded()[0].shape == (30, jets.counts.max(), 4) and jets.padded([0])[0].dtype == torch.float32
    fails(lambda: jets.padded(rows, 0), "max_constituents is 0")


def test_totals_and_splits(jets):
    vectors, _ = jets.padded(dtype=torch.float64)
    assert np.allclose(jets.total(block=7), vectors.sum(1).numpy(), atol=1e-6)
    assert sorted(np.concatenate([jets.split(s) for s in ("train", "validation", "test")])) == list(range(30))
    fails(lambda: jets.split("val"), "val", "train, validation, test")


def test_jets_from_npz(jets, tmp_path):
    path = tmp_path / "jets.npz"
    np.savez(path, momenta=jets.momenta, offsets=jets.offsets, label=jets.label, split=jets.split_code)
    assert same(Jets.from_npz(path), jets) and Jets.from_npz(path).pthat is None
    np.savez(path, momenta=jets.momenta, offsets=jets.offsets, label=jets.label)
    assert len(Jets.from_npz(path).split("train")) == 30
    np.savez(path, momenta=jets.momenta, offsets=jets.offsets)
    fails(lambda: Jets.from_npz(path), "jets.npz", "'label'")
    path.write_bytes(path.read_bytes()[:100])
    fails(lambda: Jets.from_npz(path), "jets.npz", "write it again")
    fails(lambda: Jets.from_npz(tmp_path / "no.npz"), "does not exist")


def test_damaged_files(jets, tmp_path):
    path = tmp_path / "set"
    fails(lambda: Jets.open(path), "does not exist")
    jets.save(path)
    file = path / "jets.parquet"
    content = file.read_bytes()
    for at in (100, len(content) // 3):  # a flipped bit in a page
        file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        fails(lambda: Jets.open(path), "jets.parquet", "cut or damaged", "make it again")
    file.write_bytes(content[:-5])
    fails(lambda: Jets.open(path), "cut or damaged")
    file.unlink()
    fails(lambda: Jets.open(path), "no jets.parquet", "not finished")
    np.save(path / "momenta.npy", jets.momenta)
    fails(lambda: Jets.open(path), "gortho 0.1", "np.savez", "import jets.npz")


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda f: f.drop(columns="pz"), ["no column 'pz'"]),
        (lambda f: f.assign(px=1.0), ["does not hold jets", "lists of numbers"]),
        (lambda f: f.assign(py=f.py[::-1].to_numpy()), ["different lengths"]),
    ],
)
def test_tables_that_hold_no_jets(change, parts, jets, tmp_path):
    jets.save(tmp_path)
    change(pd.read_parquet(tmp_path / "jets.parquet")).to_parquet(tmp_path / "bad.parquet")
    fails(lambda: Jets.open(tmp_path / "bad.parquet"), "bad.parquet", *parts)


def test_archives_become_parquet(jets, tmp_path):
    archive = tmp_path / "jets.npz"
    np.savez(archive, momenta=jets.momenta, offsets=jets.offsets, label=jets.label)
    arguments = ["import", str(archive), str(tmp_path / "out")]
    result = CliRunner().invoke(toptag, arguments)
    assert result.exit_code == 0 and "30 jets (30 train" in result.output, result.output
    assert np.array_equal(Jets.open(tmp_path / "out").momenta, jets.momenta)
    again = CliRunner().invoke(toptag, arguments)
    assert isinstance(again.exception, DataError) and "holds a data set already" in str(again.exception)


def test_a_writer_that_does_not_finish_leaves_what_was_there(jets, tmp_path):
    jets.save(tmp_path / "set")
    file = tmp_path / "set" / "jets.parquet"

    def broken_by(error):
        yield jets
        raise error

    for error in (KeyboardInterrupt, DataError):
        with pytest.raises(error):
            write_jets(file, broken_by(error), {})
    unknown = Jets(jets.momenta, jets.offsets, jets.label)
    fails(lambda: write_jets(file, [jets, unknown], {}), "pthat")
    fails(lambda: write_jets(file, [], {}), "no jets")
    fails(lambda: write_jets(file / "in", [jets], {}), "is a file: give a directory")
    assert same(Jets.open(tmp_path / "set"), jets)
    assert [file.name for file in (tmp_path / "set").iterdir()] == ["jets.parquet"]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda j: j.momenta.__setitem__((3, 0), np.nan), ["is not finite", "nan"]),
        (lambda j: j.momenta.__setitem__(slice(None), j.momenta[::-1].copy()), ["more transverse momentum"]),
        (lambda j: j.momenta.__setitem__((0, slice(0, 2)), 0), ["constituent 0 of jet 0", "no transverse"]),
        (lambda j: j.label.__setitem__(4, 2), ["label of jet 4 is 2"]),
        (lambda j: j.split_code.__setitem__(5, -1), ["split of jet 5 is -1"]),
        (lambda j: j.offsets.__setitem__(1, 0), ["jet 0 has 0 constituents"]),
    ],
)
def test_jets_that_are_not_right(change, parts, jets):
    change(jets)
    fails(jets.verify, *parts)


def test_arrays_that_do_not_fit(jets):
    fails(lambda: Jets(jets.momenta[:, :2], jets.offsets, jets.label), "(M, 3)")
    fails(lambda: Jets(jets.momenta[:-1], jets.offsets, jets.label), "cut")
    fails(lambda: Jets(jets.momenta, jets.offsets, jets.label[:-1]), "label has shape (29,)")


# ---------------------------------------------------------------------------------------------- reference files


def as_table(jets, ttv=None):
    """Jets as a table of the reference layout."""
    p = jets.padded(max_constituents=200)[0].numpy().reshape(len(jets), -1)
    frame = pd.DataFrame(p, columns=pd.Index(MOMENTA, dtype=object))
    truth = np.where(jets.label[:, None] == 1, [[700.0, 600.0, 0.0, 300.0]], 0.0).astype(np.float32)
    truth = pd.DataFrame(truth, columns=pd.Index(TRUTH, dtype=object))
    codes = pd.DataFrame(
        {
            "ttv": np.int64(jets.split_code if ttv is None else np.full(len(jets), ttv)),
            "is_signal_new": np.int64(jets.label),
        }
    )
    codes.columns = codes.columns.astype(object)
    return pd.concat([frame, truth, codes], axis=1)


def write_table(frame, path, **options):
    frame.columns = frame.columns.astype(object)
    frame.to_hdf(path, **({"key": "table", "format": "table"} | options))
    return path


@pytest.fixture
def reference():
    return pytest.importorskip("tables")


def test_import_of_reference_files(reference, rng, tmp_path):
    parts = {name: make_jets(rng, 20) for name in ("train", "val", "test")}
    ttv = {"train": 0, "test": 1, "val": 2}
    files = [
        write_table(as_table(jets, ttv[name]), tmp_path / f"{name}.h5", complib="blosc", complevel=5)
        for name, jets in parts.items()
    ]
    found = import_reference(files, tmp_path / "all", hidden=True, rows=7)
    assert len(found) == 60 and np.array_equal(found.label, np.tile(np.arange(20) % 2, 3))
    assert found.split_code.tolist() == [0] * 20 + [1] * 20 + [2] * 20
    assert np.array_equal(found.momenta, np.concatenate([jets.momenta for jets in parts.values()]))
    assert np.array_equal(found.counts, np.concatenate([jets.counts for jets in parts.values()]))
    found.verify()
    assert found.meta["files_read"][1]["name"] == "val.h5" and found.meta["files_read"][1]["ttv"] == [2]
    fails(lambda: import_reference([files[0]] * 2, tmp_path / "out", hidden=True), "twice")


def test_import_of_one_mixed_file(reference, jets, tmp_path):
    file = write_table(as_table(jets), tmp_path / "jets.h5")
    found = import_reference([file], tmp_path / "out", hidden=True)
    # in ttv 1 is test and 2 is validation
    assert found.split_code.tolist() == [{0: 0, 1: 2, 2: 1}[code] for code in jets.split_code]
    fails(lambda: import_reference([file], tmp_path / "out", hidden=True), "holds a data set already")


def change(column, row, value):
    def apply(frame):
        frame.loc[row, column] = value

    return apply


def swap(frame):
    first = frame.loc[6, MOMENTA[:4]].to_numpy().copy()
    frame.loc[6, MOMENTA[:4]] = frame.loc[6, MOMENTA[4:8]].to_numpy() * 0.5
    frame.loc[6, MOMENTA[4:8]] = first


def to_mev(frame):
    frame[MOMENTA] *= 1000


def shift(frame):
    frame["is_signal_new"] = 1 - frame["is_signal_new"]


@pytest.mark.parametrize(
    ("spoil", "parts"),
    [
        (change("E_0", 4, -3.0), ["E_0 is -3 in row 4", "negative"]),
        (change("PX_0", 5, np.nan), ["PX_0 is nan in row 5", "finite"]),
        (change("PZ_1", 5, np.inf), ["PZ_1 is inf in row 5"]),
        (change("truthE", 5, np.nan), ["truthE is nan in row 5"]),
        (change("E_0", 2, 1.0), ["E_0 is 1 in row 2", "below |p|"]),
        (change("E_0", 2, 5000.0), ["E_0 is 5000 in row 2", "massless"]),
        (change("is_signal_new", 3, 2), ["is_signal_new is 2 in row 3", "1 is top"]),
        (change("ttv", 3, 7), ["ttv is 7 in row 3"]),
        (swap, ["row 6", "sorted by pT"]),
        (change(MOMENTA[4:8], 6, 0.0), ["E_2 is", "row 6", "empty places"]),
        (change(MOMENTA, 8, 0.0), ["row 8 has no constituent"]),
        (to_mev, ["row 0", "pT", "GeV, not MeV"]),
        (shift, ["is_signal_new is 1 in row 0", "truthE is 0"]),
        (lambda f: f.pop("PY_17"), ["no column 'PY_17'", "did you mean"]),
        (lambda f: f.pop("ttv"), ["no column 'ttv'"]),
    ],
)
def test_bad_reference_rows(spoil, parts, reference, rng, tmp_path):
    jets = make_jets(rng, 10, 12)
    while jets.counts[6] < 4:
        jets = make_jets(rng, 10, 12)
    frame = as_table(jets)
    spoil(frame)
    file = write_table(frame, tmp_path / "jets.h5")
    fails(lambda: import_reference([file], tmp_path / "out", hidden=True, rows=4), "jets.h5", *parts)
    fails(lambda: Jets.open(tmp_path / "out"), "")  # nothing that looks complete


def test_files_that_are_no_reference_files(reference, jets, tmp_path):
    out = tmp_path / "out"

    def read(path):
        return lambda: import_reference([path], out, hidden=True)

    good = write_table(as_table(jets), tmp_path / "jets.h5")
    fails(read(tmp_path / "no.h5"), "no.h5", "does not exist", "check the name")
    fails(read(tmp_path), str(tmp_path), "give the .h5 file")
    for name, content in {"text.h5": b"E_0,PX_0", "empty.h5": b""}.items():
        (tmp_path / name).write_bytes(content)
        fails(read(tmp_path / name), name, "cannot be read", "give the .h5 file")
    cut = tmp_path / "cut.h5"
    cut.write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    fails(read(cut), "cut.h5", "download it again")
    fails(read(write_table(as_table(jets), tmp_path / "key.h5", key="jets")), "No object named table")
    fails(read(write_table(as_table(jets), tmp_path / "fixed.h5", format="fixed")), "fixed format")
    hollow = write_table(as_table(jets), tmp_path / "hollow.h5")
    with reference.open_file(str(hollow), "a") as file:
        file.root.table.table.remove_rows(0)
    fails(read(hollow), "no rows")
    named = write_table(as_table(jets), tmp_path / "train.h5")
    fails(read(named), "ttv is 1 in row 1", "train", "rename the file")
    one = write_table(as_table(jets[np.zeros(120, dtype=int)]), tmp_path / "one.h5")
    fails(read(one), "all 120 rows have is_signal_new = 0")
    fails(lambda: import_reference([], out), "at least one")


def test_import_from_the_command_line(reference, jets, tmp_path):
    file = write_table(as_table(jets), tmp_path / "jets.h5")
    result = CliRunner().invoke(toptag, ["import", str(file), str(tmp_path / "out"), "--quiet"])
    assert result.exit_code == 0, result.output
    assert "30 jets (10 train, 10 validation, 10 test)" in result.output
    result = CliRunner().invoke(toptag, ["import", str(tmp_path / "no.h5"), str(tmp_path / "out")])
    assert isinstance(result.exception, DataError)


# ------------------------------------------------------------------------------------------------------ summary


def test_moments_and_table(jets):
    found = moments(jets)
    assert list(found.index) == ["top", "QCD"] and list(found.jets) == [15, 15]
    assert found.mean_count["top"] == pytest.approx(jets.counts[jets.label == 1].mean())
    assert found.mean_pt["QCD"] == pytest.approx(600, rel=0.02) and found.up_to_100["top"] == 1
    assert "30 jets" in table(jets, "made up") and "QCD" in table(jets)


def test_picture(jets, tmp_path):
    pytest.importorskip("matplotlib")
    stored = jets.save(tmp_path / "set")
    assert plot(stored, tmp_path / "a.png").stat().st_size > 10_000
    tops = jets[jets.label == 1]
    plot(tops, tmp_path / "tops.svg")
    fails(lambda: plot(jets, tmp_path / "a.txt"), "'.txt'")
    fails(lambda: plot(jets, tmp_path / "no" / "a.png"), "does not exist: make it first")
    arguments = ["summary", str(tmp_path / "set"), "--verify", "--json", "--out", str(tmp_path / "b.png")]
    result = CliRunner().invoke(toptag, arguments)
    assert result.exit_code == 0 and json.loads(result.stdout)["top"]["jets"] == 15
    result = CliRunner().invoke(toptag, ["summary", str(tmp_path / "set")])
    assert result.exit_code == 0 and "145-205" in result.output


# --------------------------------------------------------------------------------------------------- production

SMALL = Production(jets=8, seed=5, batch=30)


@pytest.fixture(scope="module")
def hep():
    for package in ("pythia8mc", "fastjet", "awkward"):
        pytest.importorskip(package)


@pytest.fixture(scope="module")
def made(hep, tmp_path_factory):
    """A small production, from end to end."""
    path = tmp_path_factory.mktemp("made") / "jets"
    generate(path, SMALL, hidden=True)
    return path


def contents(path):
    return (path / "jets.parquet").read_bytes()


def test_plans_and_splits():
    shards = production.plan(Production(jets=100_001, shard_jets=5000))
    assert sum(shard.count for shard in shards) == 100_001 and len({shard.name for shard in shards}) == 21
    assert production.plan(Production(jets=60_000))[:12] == production.plan(Production(jets=80_000))[:12]
    assert all(shard.count <= 6 for shard in production.plan(Production(jets=60)))
    codes = production.splits(50)
    assert [codes.count(code) for code in range(3)] == [30, 10, 10] and codes[:20] == production.splits(20)
    assert set(production.splits(5)) == {0, 1, 2}


def test_settings_that_make_no_sense():
    fails(lambda: Production(jets=10, phi_degrees=7.0), "divisor of 360")


def test_made_jets_are_what_was_asked_for(made):
    jets = Jets.open(made)
    jets.verify()
    assert len(jets) == 8 and jets.label.sum() == 4 and jets.meta["settings"]["versions"]["pythia8mc"]
    total = jets.total()
    pt = np.hypot(total[:, 1], total[:, 2])
    assert ((pt > 549.9) & (pt < 650.1)).all() and (np.abs(np.arcsinh(total[:, 3] / pt)) < 2.001).all()
    assert jets.counts.max() <= 200 and (jets.pthat >= 350).all()
    mass = np.sqrt(np.maximum(total[:, 0] ** 2 - (total[:, 1:] ** 2).sum(1), 0))
    assert 120 < np.median(mass[jets.label == 1]) < 230 and 25 < jets.counts.mean() < 80
    for split in ("train", "validation", "test"):
        assert set(jets.label[jets.split(split)]) == {0, 1}


def test_a_run_with_gaps_ends_with_the_same_files(made, tmp_path):
    """As after kill -9: a shard is missing, one is cut, one is half written, nothing is put together."""
    again = tmp_path / "jets"
    (again / "shards").mkdir(parents=True)
    for file in (made / "shards").iterdir():
        shutil.copy(file, again / "shards" / file.name)
    shards = sorted((again / "shards").glob("*.parquet"))
    shards[0].unlink()
    shards[-1].write_bytes(shards[-1].read_bytes()[:500])
    (again / "shards" / "top-00000-1.part").write_bytes(b"half")
    generate(again, SMALL, hidden=True)
    assert contents(again) == contents(made) and not list(again.rglob("*.part"))
    before = (again / "jets.parquet").stat().st_mtime_ns
    generate(again, SMALL, hidden=True)  # nothing is left to do
    assert (again / "jets.parquet").stat().st_mtime_ns == before


def test_a_killed_run_goes_on(made, tmp_path):
    shards = len(list((made / "shards").glob("*.parquet")))
    run = multiprocessing.get_context("fork").Process(
        target=generate, args=(tmp_path / "jets", SMALL), kwargs={"hidden": True}
    )
    run.start()
    while run.is_alive() and len(list((tmp_path / "jets").glob("shards/*.parquet"))) < shards // 2:
        time.sleep(0.01)
    run.kill()
    run.join()
    assert run.exitcode == -signal.SIGKILL and not (tmp_path / "jets" / "jets.parquet").exists()
    generate(tmp_path / "jets", SMALL, hidden=True)
    assert contents(tmp_path / "jets") == contents(made)


def test_other_settings_do_not_mix(made, tmp_path):
    shutil.copytree(made, tmp_path / "jets")
    other = Production(jets=8, seed=6, batch=30)
    fails(lambda: generate(tmp_path / "jets", other, hidden=True), "holds other jets", "another directory")
    (tmp_path / "jets" / "jets.parquet").unlink()
    fails(lambda: generate(tmp_path / "jets", other, hidden=True), "seed = 5", "another directory")
    with only_writer(tmp_path / "jets"), pytest.raises(ValueError, match="another run is writing to"):
        generate(tmp_path / "jets", SMALL, hidden=True)


def test_generation_from_the_command_line(made, tmp_path):
    shutil.copytree(made, tmp_path / "jets")
    for bad, told in (
        ("--splits 60,40", "60,20,20"),
        ("--splits 90,20,-10", "60,20,20"),
        ("--workers 0", "0 is not in the range"),
    ):
        options = ["generate", str(tmp_path / "x"), "--jets", "10", *bad.split()]
        assert told in CliRunner().invoke(toptag, options).output
    result = CliRunner().invoke(toptag, ["generate", str(tmp_path / "jets" / "jets.parquet"), "--jets", "10"])
    assert isinstance(result.exception, DataError) and "is a file" in str(result.exception)


def test_leading_jets_of_known_events(hep):
    """A hard jet in range, one too soft, one too far forward, and an event without objects."""
    p = np.array(
        [[400.0, 0, 0], [190.0, 30, 10], [-500, 0, 0], [-400, 0, 0], [60.0, 0, 3000], [540, 0, 3000]]
    )
    event = np.array([0, 0, 0, 1, 3, 3])
    found, total, parts, jet = events.leading_jets(event, p, 5)
    assert found.tolist() == [0] and jet.tolist() == [0, 0]
    assert total[0] == pytest.approx([590, 30, 10]) and sorted(parts[:, 0]) == [190, 400]
    found, _, parts, _ = events.leading_jets(event[3:4], p[3:4], 2)
    assert len(found) == len(parts) == 0


def test_matching_of_tops():
    quarks = np.array([[300.0, 0, 0], [150.0, 60, 0], [150.0, -60, 0]])
    code = np.array([6, 24, 5, 2, -1, -6])
    momentum = np.concatenate([[[600.0, 0, 0], [300.0, 0, 0]], quarks, [[-600.0, 0, 0]]])
    mother = np.array([5, 0, 0, 1, 1, 5])
    event = np.zeros(6, dtype=int)
    jet = np.array([[590.0, 5.0, 0.0]])

    def match(p, axis):
        return events.matched(event, code, p, mother, np.array([0]), axis).tolist()

    assert match(momentum, jet) == [True]
    assert match(momentum, -jet) == [False]
    wide = momentum.copy()
    wide[4] = [50.0, -150, 0]
    assert match(wide, jet) == [False]


def mean_distance(jets):
    """Mean of ψ((p - q)²), ψ(x) = sign(x) log(|x| + 1), over pairs of constituents and two beams: -1.491 in public."""
    beams, values = np.array([[np.sqrt(2), 0.0, 0.0, 1.0], [np.sqrt(2), 0.0, 0.0, -1.0]]), []
    for low, high in zip(jets.offsets[:-1], jets.offsets[1:]):
        p = np.concatenate([beams, with_energy(jets.momenta[low:high])])
        dot = (p * [1, -1, -1, -1]) @ p.T
        squares = np.diag(dot)[:, None] + np.diag(dot) - 2 * dot
        values.append(squares[np.triu_indices(len(p), 1)])
    every = np.concatenate(values)
    return (np.sign(every) * np.log1p(np.abs(every))).mean()


@pytest.mark.slow
def test_moments_of_made_jets(hep, tmp_path):
    """2,000 jets: within four standard errors, and a few per cent, of what is expected."""
    jets = generate(tmp_path / "jets", Production(jets=2000, seed=1), hidden=True)
    expected = {"top": (54.5, 14.0, 173.0, 0.87), "QCD": (42.4, 20.0, 75.0, 0.11)}
    for label, (mean, spread, mass, share) in expected.items():
        found = moments(jets).loc[label]
        assert found.mean_count == pytest.approx(mean, abs=4 * spread / 1000**0.5 + 0.02 * mean)
        assert found.std_count == pytest.approx(spread, rel=0.12)
        assert found.median_mass == pytest.approx(mass, rel=0.02 if label == "top" else 0.1)
        assert found.in_window == pytest.approx(share, abs=4 * (share * (1 - share) / 1000) ** 0.5 + 0.01)
    n = jets.counts.astype(float)
    edges, norm = ((n + 1) * (n + 2)).mean() / (n + 1).mean(), mean_distance(jets)
    assert edges == pytest.approx(56.5, rel=0.05) and norm == pytest.approx(-1.491, rel=0.05)


@pytest.mark.slow
def test_several_workers_make_the_same_files(made, tmp_path):
    generate(tmp_path / "jets", SMALL, workers=2, hidden=True)
    assert contents(tmp_path / "jets") == contents(made)
