"""Saved runs: whole or not at all, damage is noticed, a result is never lost."""

import copy
import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import gortho
from gortho import Discovery, Settings, cli
from gortho.discovery import saving

TINY = Settings(starts=2, generations=0, finalists=1, refits=2, predictor_steps=20)


@pytest.fixture(scope="module")
def found():
    x = torch.randn(200, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return gortho.discover(x, x[:, 0] ** 2 - x[:, 1] ** 2, settings=TINY)


@pytest.fixture
def run(found, tmp_path):
    return found.save(tmp_path / "run")


@pytest.mark.parametrize(
    "name", ["../victim.safetensors", "notes.txt", "sub/network-0123456789ab.safetensors"]
)
def test_files_that_a_run_has_no_business_with_stay(found, run, name):
    victim = run / name
    victim.parent.mkdir(exist_ok=True)
    weights_of(run).rename(victim)
    rewritten(run, lambda content: content["weights"].update(file=name))
    with pytest.raises(ValueError, match=r"names .* as its weights, which no version writes"):
        Discovery.load(run)
    found.save(run)
    assert victim.exists() and str(Discovery.load(run)) == str(found)


def test_discoveries_are_compared_by_identity(found, run):
    others = copy.deepcopy(found), replace(found), Discovery.load(run)
    assert found == found and all(other != found for other in others)
    assert len({found, *others}) == 4
    assert others[0].reach != found.reach and hash(found.reach)


def weights_of(run):
    (path,) = run.glob("*.safetensors")
    return path


@pytest.mark.parametrize("place", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_a_flipped_bit_in_the_weights_is_refused(run, place):
    path = weights_of(run)
    content = bytearray(path.read_bytes())
    content[round(place * (len(content) - 1))] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{path.name} is damaged.*gortho {gortho.__version__}"):
        Discovery.load(run)


def test_a_changed_number_in_the_answer_is_refused(run):
    content = json.loads((run / "discovery.json").read_text())
    content["candidate"]["matrix"][0][0] *= 1.0001
    (run / "discovery.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="checksum is wrong"):
        Discovery.load(run)


def rewritten(run, change):
    """The run with changed content, and a checksum that fits it."""
    path = run / "discovery.json"
    content = json.loads(path.read_text())
    content.pop("sha256")
    change(content)
    content["sha256"] = saving._digest(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda c: c.pop("peers"), f"has no peers: gortho {gortho.__version__} wrote it"),
        (lambda c: c.update(colour=1), "holds colour: gortho"),
        (
            lambda c: c.update(format="gortho discovery 9"),
            f"wrote 'gortho discovery 9', and '{saving.FORMAT}'",
        ),
        (lambda c: c["provenance"]["versions"].update(gortho="7.0") or c.pop("names"), "gortho 7.0 wrote it"),
        (lambda c: c.update(verdict="PERHAPS"), "PERHAPS"),
    ],
)
def test_parts_of_another_version_are_named(run, change, message):
    rewritten(run, change)
    with pytest.raises(ValueError, match=message):
        Discovery.load(run)


def test_runs_of_the_first_release_say_what_to_do(run):
    content = {"format": "gortho discovery 1", "facts": {"gortho": "0.1.0"}, "verdict": "FOUND"}
    (run / "discovery.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"gortho 0\.1\.0 wrote 'gortho discovery 1'.*make it again"):
        Discovery.load(run)


def test_missing_and_foreign_weights(run, found, tmp_path):
    path = weights_of(run)
    stored = path.read_bytes()
    path.unlink()
    with pytest.raises(ValueError, match=f"{path.name} is missing: gortho"):
        Discovery.load(run)
    x = np.random.default_rng(5).normal(size=(200, 2))
    other = gortho.discover(x, x[:, 0] * x[:, 1] + 3, settings=TINY).save(tmp_path / "other")
    path.write_bytes(weights_of(other).read_bytes())
    with pytest.raises(ValueError, match="belongs to another run"):
        Discovery.load(run)
    path.write_bytes(stored)
    assert str(Discovery.load(run)) == str(found)
    assert len(list(run.glob("*.safetensors"))) == 1


def test_what_json_cannot_hold_leaves_nothing(found, tmp_path):
    with pytest.raises(TypeError):
        replace(found, classes=(object(), object())).save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_saving_again_leaves_one_run_and_other_files_alone(run, found):
    (run / "notes.txt").write_text("mine")
    first = weights_of(run).name
    with torch.no_grad():
        changed = Discovery.load(run)
        next(changed.network.net.coefficients.parameters()).add_(1.0)
    changed.save(run)
    assert weights_of(run).name != first and (run / "notes.txt").read_text() == "mine"
    assert sorted(p.name for p in run.iterdir()) == sorted(
        ["discovery.json", "notes.txt", weights_of(run).name]
    )
    Discovery.load(run)


@pytest.mark.parametrize("at", [0, 1])
def test_a_full_disk_leaves_the_run_before(run, found, monkeypatch, at):
    changed = replace(found, notices=("new",))
    with torch.no_grad():
        changed = replace(changed, network=Discovery.load(run).network)
        next(changed.network.net.coefficients.parameters()).add_(1.0)
    whole, calls = saving.write_whole, []

    def full(path, write):
        calls.append(path)
        if len(calls) > at:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(path, write)

    monkeypatch.setattr(saving, "write_whole", full)
    with pytest.raises(OSError, match="No space"):
        changed.save(run)
    monkeypatch.undo()
    assert str(Discovery.load(run)) == str(found)


def test_two_writers_leave_one_whole_run(run, found, monkeypatch):
    """A second run is saved between the two files of the first."""
    one, two = Discovery.load(run), Discovery.load(run)
    with torch.no_grad():
        for k, each in enumerate((one, two)):
            next(each.network.net.coefficients.parameters()).add_(1.0 + k)
    whole = saving.write_whole

    def interrupted(path, write):
        if path.name == saving.FILE:
            monkeypatch.setattr(saving, "write_whole", whole)
            two.save(run)
        whole(path, write)

    monkeypatch.setattr(saving, "write_whole", interrupted)
    one.save(run)
    x = np.ones((1, 2))
    np.testing.assert_array_equal(Discovery.load(run).predict(x), one.predict(x))


# The command line


def call(*arguments):
    return CliRunner().invoke(cli.main, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture
def data(tmp_path):
    x = np.random.default_rng(0).normal(size=(100, 2))
    np.savez(tmp_path / "data.npz", X=x, y=x[:, 0])
    return tmp_path / "data.npz"


def test_places_that_cannot_be_written_are_noticed_before_the_search(data, tmp_path, monkeypatch):
    monkeypatch.setattr(gortho, "discover", lambda *_, **__: pytest.fail("searched"))
    (tmp_path / "file").write_text("x")
    assert "is a file" in call("discover", data, "--save", tmp_path / "file").stderr
    below = call("discover", data, "--save", tmp_path / "file" / "run")
    assert below.exit_code == 2 and "cannot be written to" in below.stderr
    write = Path.write_bytes

    def refuse(path, content):
        if path.parent.name == "locked":
            raise PermissionError(errno.EACCES, "Permission denied")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", refuse)
    locked = call("discover", data, "--save", tmp_path / "locked")
    assert locked.exit_code == 2 and "Permission denied" in locked.stderr
    monkeypatch.setattr(saving, "ROOM", 10**18)
    full = call("discover", data, "--save", tmp_path / "run")
    assert full.exit_code == 2 and "MB left" in full.stderr


def test_a_result_that_cannot_be_saved_is_saved_elsewhere(data, found, tmp_path, monkeypatch):
    monkeypatch.setattr(gortho, "discover", lambda *_, **__: found)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    save = saving.save

    def full(found, directory):
        if directory == tmp_path / "run":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return save(found, directory)

    monkeypatch.setattr(saving, "save", full)
    result = call("discover", data, "--save", tmp_path / "run")
    assert result.exit_code == cli.EXIT_CODES[found.verdict.name]
    assert "No space left" in result.stderr and found.verdict.name in result.stdout
    (other,) = tmp_path.glob("gortho-*/run")
    assert str(other) in result.stderr and Discovery.load(other).candidate is not None
