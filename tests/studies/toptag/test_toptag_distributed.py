"""Taggers trained in several processes, and runs killed by SIGKILL that end as if nothing had happened.

Started as a program, this file is one of those processes.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from gortho.nn import LearnableForm
from gortho.studies.toptag import Jets
from gortho.studies.toptag import train as training
from gortho.studies.toptag.samples import Sample
from gortho.studies.toptag.tagger import Tagger
from gortho.studies.toptag.train import batch_plan, train
from gortho.training.processes import OneProcess, gathered, launched, local_device, share

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(), reason="needs gloo"
)

EPOCHS, BATCH, LONGEST = 4, 40, 20
TRAIN, VALIDATION = 241, 79  # one training jet too many for two equal shares
#: No random numbers but those of the plan.
PLAIN = {"epochs": EPOCHS, "batch_size": BATCH, "bucket": True, "average": 0.9, "lr": 1e-2}


def make(dropout=0.0):
    return Tagger(LearnableForm(4, seed=2), width=8, pairs=8, depth=1, references=1, dropout=dropout)


def write_jets(directory):
    """Jets whose label is whether they are narrow, as a mapped directory."""
    rng = np.random.default_rng(0)
    count = TRAIN + VALIDATION
    counts = rng.integers(2, LONGEST + 1, count)
    label = rng.integers(0, 2, count).astype(np.int8)
    spread = np.repeat(np.where(label, 0.15, 0.4), counts)[:, None]
    momenta = rng.normal(size=(counts.sum(), 3)) * spread + np.array([1.0, 0.0, 0.0])
    momenta *= rng.exponential(size=(len(momenta), 1))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    split = np.repeat([0, 1], [TRAIN, VALIDATION]).astype(np.int8)
    return Jets(momenta.astype(np.float32), offsets, label, split).save(directory / "jets")


def samples(directory, fabric):
    """What this process reads."""
    jets = Jets.open(directory / "jets")
    return [Sample.of(jets, share(jets.split(name), fabric), LONGEST) for name in ("train", "validation")]


def run(directory, fabric, name, exact=False, checkpoint=False):
    """Train, and write down how it ended: in float64 without random numbers, or with all that could go wrong."""
    net = make().double() if exact else make(dropout=0.1)
    options = PLAIN if exact else PLAIN | {"drop": 0.1}
    jets = samples(directory, fabric)
    path = directory / f"{name}.safetensors" if checkpoint else None
    net = net.to(local_device())
    history = train(net, *jets, **options, checkpoint=path, progress=checkpoint, fabric=fabric)
    found = {"jets": len(jets[0]), "train": history.train, "validation": history.validation}
    torch.save(found | {"state": net.state_dict()}, directory / f"{name}{fabric.global_rank}")


def stand_still_at(owner, name, call, mark):
    """At the so-manyth call of a function, leave a mark and wait to be killed."""
    function, calls = getattr(owner, name), []

    def counted(*arguments):
        calls.append(1)
        if len(calls) == call:
            mark.write_text(str(os.getpid()))
            time.sleep(600)
        return function(*arguments)

    setattr(owner, name, counted)


def work(directory, where):
    torch.set_num_threads(1)
    fabric = launched(local_device())
    mark = directory / f"still{fabric.global_rank}"
    if not mark.exists():
        if where == "step":
            run(directory, fabric, "plain", exact=True)
            run(directory, fabric, "whole")
            stand_still_at(
                training.Stepper, "__call__", 2 * (TRAIN // BATCH) + 3, mark
            )  # third epoch, third step
        else:
            stand_still_at(os, "replace", 2, mark)  # written, but without its name
    run(directory, fabric, "run", checkpoint=True)


def start(directory, where, launcher=()):
    """Start processes, wait until they stand still, and kill them."""
    command = [sys.executable, *launcher, __file__, str(directory), where]
    # Processes started again must not meet at the addresses of those that were killed.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    with (directory / "log").open("w") as log:
        launched = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    marks = [directory / f"still{rank}" for rank in range(2 if launcher else 1)]
    until = time.monotonic() + 300
    try:
        while not all(mark.exists() and mark.read_text() for mark in marks):
            assert launched.poll() is None and time.monotonic() < until, (directory / "log").read_text()
            time.sleep(0.02)
    except BaseException:
        launched.terminate()
        raise
    finally:
        for mark in marks:
            if mark.exists() and mark.read_text():
                os.kill(int(mark.read_text()), signal.SIGKILL)
    return launched


def read(directory, name, rank=0):
    return torch.load(directory / f"{name}{rank}")


def epochs_done(path):
    with safe_open(path, framework="pt") as file:
        return int(file.metadata()["epoch"])


def assert_same(found, expected):
    assert found["train"] == expected["train"] and found["validation"] == expected["validation"]
    for name, value in expected["state"].items():
        assert torch.equal(value, found["state"][name]), name


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two processes that train without a break, then with one: killed, they are started again by torchrun."""
    directory = tmp_path_factory.mktemp("two")
    write_jets(directory)
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1")
    launched = start(directory, "step", torchrun)
    done = epochs_done(directory / "run.safetensors")
    try:
        code = launched.wait(timeout=300)
    finally:
        launched.terminate()
    log = (directory / "log").read_text()
    assert code == 0, log
    return directory, done, log


@pytest.mark.slow
def test_two_processes_make_the_steps_of_one(two, monkeypatch):
    directory = two[0]
    half = TRAIN // 2

    def together(lengths, batch_size, *rest):
        """The plans of the two shares, put together batch by batch."""
        parts = [torch.from_numpy(np.array_split(np.arange(TRAIN), 2)[rank])[:half] for rank in (0, 1)]
        plans = [batch_plan(lengths[part], batch_size // 2, *rest) for part in parts]
        rows = [part[order].view(-1, batch_size // 2) for part, (order, _) in zip(parts, plans)]
        return torch.cat(rows, dim=1).flatten(), [max(cut) for cut in zip(*(cuts for _, cuts in plans))]

    monkeypatch.setattr(training, "batch_plan", together)
    jets, validation = samples(directory, OneProcess())
    net = make().double()
    used = [row for row in range(TRAIN) if row != half]  # the last jet of the larger share is left over
    net.calibrate(jets.x[used], jets.mask[used])
    history = train(net, jets, validation, **PLAIN, calibrate=False)
    assert history.train[-1] < history.train[0]
    first, second = (read(directory, "plain", rank) for rank in (0, 1))
    assert (first["jets"], second["jets"]) == (half + 1, half)  # each has read its own only
    assert first["train"] == pytest.approx(history.train, rel=1e-9)
    assert first["validation"] == pytest.approx(history.validation, rel=1e-9)
    assert_same(first, second)
    for name, value in net.state_dict().items():
        torch.testing.assert_close(first["state"][name], value, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_two_killed_processes_go_on_as_if_nothing_had_happened(two):
    directory, done, _ = two
    assert done == 2
    for rank in (0, 1):
        assert_same(read(directory, "run", rank), read(directory, "whole", rank))


@pytest.mark.slow
def test_only_the_first_process_writes_and_shows_progress(two):
    directory, _, log = two
    for done in (0, 2):  # one bar from the start, and after the kill one from there on
        assert log.count(f"{done}/{EPOCHS} [00:00<?, ?epoch/s]") == 1
    assert [path.name for path in directory.glob("*.safetensors*")] == ["run.safetensors"]


def test_a_process_killed_while_it_saves_goes_on_as_if_nothing_had_happened(tmp_path):
    write_jets(tmp_path)
    assert start(tmp_path, "save").wait(timeout=60) == -signal.SIGKILL
    assert epochs_done(tmp_path / "run.safetensors") == 1 and list(tmp_path.glob("run.*.part"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        run(tmp_path, OneProcess(), "run", checkpoint=True)
        run(tmp_path, OneProcess(), "whole")
    finally:
        torch.set_num_threads(threads)
    assert_same(read(tmp_path, "run"), read(tmp_path, "whole"))


class Two(OneProcess):
    """One of two processes, where the other holds what it is told."""

    world_size = 2

    def __init__(self, rank=0, other=lambda mine: mine):
        super().__init__()
        self.global_rank, self.other = rank, other

    def all_gather(self, value):
        return torch.stack([value, self.other(value)])


def test_shares_are_all_rows_and_none_twice():
    rows = np.arange(100, 117)
    parts = [share(rows, Two(rank)) for rank in range(2)]
    assert np.concatenate(parts).tolist() == rows.tolist() and [len(part) for part in parts] == [9, 8]
    assert share(rows, OneProcess()).tolist() == rows.tolist()  # one process reads everything
    with pytest.raises(ValueError, match="1 samples for 2 processes"):
        share(rows[:1], Two())


def test_without_torchrun_there_is_one_process(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    fabric = launched()
    assert (fabric.global_rank, fabric.world_size) == (0, 1) and gathered(fabric, 1, 2).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    "other, options, message",
    [
        ([0, 0, 0, 0], {}, "processes hold the same jets"),
        ([0, 1, 0, 5], {}, "the same max_constituents"),
        ([0, 0, 0, 5], {"batch_size": 5}, "batch_size = 5: give a multiple of the 2"),
    ],
    ids=["the same jets", "other lengths", "odd batch"],
)
def test_what_processes_cannot_share_is_refused(other, options, message):
    x = torch.randn(20, 8, 4, generator=torch.Generator().manual_seed(0))
    sample = Sample(x, torch.ones(20, 8, dtype=torch.bool), torch.ones(20))
    fabric = Two(other=lambda mine: mine + torch.tensor(other))
    with pytest.raises(ValueError, match=message):
        train(Tagger(width=4, pairs=4, depth=1), sample, sample, fabric=fabric, **options)


if __name__ == "__main__":
    work(Path(sys.argv[1]), sys.argv[2])
