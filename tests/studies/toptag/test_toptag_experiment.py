"""Training from the command line, what is written about a tagger, rivals, and the experiment, on a few hundred jets."""

import json
import math

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import gortho
from gortho.cli import main
from gortho.samples import DataError
from gortho.studies.baselines.sets import FlatNet, Rival, SetNet
from gortho.studies.experiments.rows import read_rows
from gortho.studies.toptag import experiment, frames, rivals, samples
from gortho.studies.toptag import run as training_run
from gortho.studies.toptag.experiment import Budget
from gortho.studies.toptag.invariance import broken_directions, invariance
from gortho.studies.toptag.jets import Jets
from gortho.studies.toptag.reproduction import reproduce
from gortho.studies.toptag.samples import Sample
from gortho.studies.toptag.saved import SIZES, load_tagger, save_tagger
from gortho.studies.toptag.tagger import Tagger, detector_axes
from gortho.studies.toptag.train import train

MINKOWSKI = gortho.QuadraticForm.minkowski()


def made(count=500, seed=0):
    """Jets in all directions, of one cluster of momenta or of two: the label is their mass, as with tops."""
    random = np.random.default_rng(seed)
    label = np.arange(count) % 2
    momenta, counts = [], random.integers(6, 13, count)
    for two, number in zip(label, counts):
        axis = random.normal(size=3)
        axis *= 600 / np.linalg.norm(axis)
        away = np.cross(axis, random.normal(size=3))
        away *= 0.4 * two / np.linalg.norm(away)
        side = np.where(np.arange(number) % 2, 1.0, -1.0)[:, None]
        share = random.exponential(size=(number, 1)) + 0.2
        p = share / share.sum() * (axis + 600 * (side * away + 0.03 * random.normal(size=(number, 3))))
        momenta.append(p[np.argsort(-np.hypot(p[:, 0], p[:, 1]))])
    split = np.repeat([0, 1, 2], [count - 2 * (count // 5), count // 5, count // 5])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return np.concatenate(momenta).astype(np.float32), offsets, label.astype(np.int8), split.astype(np.int8)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("jets") / "jets.npz"
    np.savez(path, **dict(zip(("momenta", "offsets", "label", "split"), made())))
    return path


@pytest.fixture(scope="module")
def parts(file):
    return samples.load([file], 12)


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.mark.parametrize("size", SIZES)
def test_sizes_are_what_their_names_say(size):
    wanted = 1000 * int(size[:-1])
    assert 0.9 < Tagger(**SIZES[size]).parameter_count() / wanted < 1.2


def test_load_keeps_splits_and_joins_files(file, tmp_path, parts):
    assert [len(s) for s in parts] == [300, 100, 100]
    assert [len(s) for s in samples.load([file], 12, 50)] == [30, 10, 10]
    jets = Jets.from_npz(file)
    more = tmp_path / "more.npz"
    np.savez(more, momenta=jets.momenta, offsets=jets.offsets, label=jets.label)  # all for training
    assert [len(s) for s in samples.load([file, more], 12)] == [800, 100, 100]
    with pytest.raises(DataError, match="no validation jets"):
        samples.load([more])
    with pytest.raises(DataError, match="501 jets are asked for and there are 500"):
        samples.load([file], 12, 501)


@pytest.mark.parametrize(
    ("array", "value", "words"),
    [
        ("momenta", math.nan, "1 of the 300 train jets have momenta that are not finite"),
        ("label", 2, "a label of the train jets is 2: give 1 for top and 0 for QCD"),
        ("offsets", 10**6, "offsets fall from 1000000 to"),
    ],
)
def test_jets_that_no_training_survives_are_refused(file, tmp_path, array, value, words):
    with np.load(file) as archive:
        arrays = dict(archive)
    row = int(np.argmax(arrays["split"] == 0))
    at = {"momenta": arrays["offsets"][row], "label": row, "offsets": 3}[array]
    arrays[array] = arrays[array].copy()
    arrays[array][at] = value
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=words):
        samples.load([tmp_path / "bad.npz"], 12)


def test_hidden_frames_hide_the_form_and_labels_are_not_needed_for_massless_jets(parts):
    M = frames.hidden_frame(3)
    assert float(torch.linalg.cond(M)) == pytest.approx(4.0)
    truth = frames.minkowski_in(M)
    assert truth.algebra_distance(MINKOWSKI) > 0.3
    hidden = frames.seen(parts[0], M)
    assert frames.label_free(hidden).algebra_distance(truth) < 1e-5


@pytest.mark.parametrize("learn", [False, True])
def test_a_saved_tagger_scores_the_same(tmp_path, parts, learn):
    form = gortho.nn.LearnableForm(4, seed=1) if learn else frames.minkowski_in(frames.hidden_frame(1))
    net = Tagger(form, width=6, pairs=5, depth=2, hidden=7, spurions=detector_axes(), references=2)
    net.calibrate(parts[0].x, parts[0].mask)
    save_tagger(net, tmp_path)
    again = load_tagger(tmp_path)
    assert torch.equal(again(parts[2].x, parts[2].mask), net(parts[2].x, parts[2].mask))
    with pytest.raises(ValueError, match="has no model"):
        load_tagger(tmp_path / "nowhere")


def test_what_keeps_references():
    axes = detector_axes()
    kept = [Tagger(spurions=axes[:k], width=4, pairs=4, depth=1).symmetry for k in range(4)]
    assert [len(symmetry.generators) for symmetry in kept] == [6, 3, 1, 1]  # a light ray: E(2)
    assert kept[3] == kept[2] and kept[3].residual_name == "O(2)"  # the time axis is the sum of the beams
    M = frames.hidden_frame(2)
    net = Tagger(frames.minkowski_in(M), spurions=detector_axes(M), references=1, width=4, pairs=4, depth=1)
    assert (
        len(net.symmetry.directions) == 3 and len(net.symmetry.generators) == 0
    )  # the learnt one is at random
    with torch.no_grad():
        net.learnt.copy_(2 * detector_axes(M)[:1])
    (X,) = net.symmetry.generators
    assert (X @ detector_axes(M).mT).abs().max() < 1e-6  # weights are float32
    assert str(net.symmetry) in repr(net)


def test_a_symmetry_is_what_a_tagger_is_built_around(tmp_path):
    symmetry = gortho.Symmetry(MINKOWSKI, directions=[[1.0, 0, 0, 0]])
    net = Tagger(symmetry, spurions=detector_axes()[:1], width=4, pairs=4, depth=1)
    assert net.symmetry.residual_name == "O(2)" and torch.equal(
        net.spurions[:1].double(), symmetry.directions
    )
    save_tagger(net, tmp_path)
    assert load_tagger(tmp_path).symmetry == net.symmetry
    with pytest.raises(ValueError, match="know O"):
        Tagger(gortho.Symmetry(MINKOWSKI, special=True))
    with pytest.raises(ValueError, match="knows no origin"):
        Tagger(gortho.Symmetry(MINKOWSKI, origin=[1.0, 0, 0, 0]))


@pytest.mark.parametrize("given", [False, True])
def test_invariance_is_measured(parts, given):
    net = Tagger(width=6, pairs=6, depth=1, spurions=detector_axes() if given else ())
    train(net, parts[0], parts[1], epochs=2, batch_size=50)
    found = {c.group: c for c in invariance(net, parts[2], MINKOWSKI)}
    assert (found["all of O(A)"].largest < 1e-7) != given
    if given:
        assert found["what of O(A) keeps the references (1 of 6 dimensions)"].largest < 1e-7
    other = frames.minkowski_in(frames.hidden_frame(1))
    assert any(c.group == "the true Lorentz group" for c in invariance(net, parts[2], other))


def test_broken_directions_are_found_where_there_are_some(parts):
    def along(sample):  # the label is which way a jet goes: along x or against it
        return Sample(sample.x, sample.mask, (sample.x[..., 1].sum(1) > 0).float())

    net = Tagger(width=8, pairs=8, depth=1, references=1)
    train(net, along(parts[0]), along(parts[1]), epochs=25, batch_size=30, lr=1e-2, average=0.9)
    found = broken_directions(net, along(parts[1]))
    assert found["broken"] and found["turned"] > 0.1 and "is broken" in found["words"]
    (one,) = found["references"]
    assert abs(one["direction"][1]) > 0.8 and one["off"] > 0.05
    blind = Tagger(width=8, pairs=8, depth=1, references=1)
    with torch.no_grad():
        blind.learnt.zero_()
    assert not broken_directions(blind, parts[1])["broken"]


def test_train_writes_a_page_and_goes_on(file, tmp_path, no_search):
    out = tmp_path / "run"
    options = [
        "train",
        "toptag",
        file,
        "--out",
        out,
        "--size",
        "1k",
        "--batch-size",
        30,
        "--constituents",
        12,
    ]
    options += ["--learn-form", "--frame", 1, "--references", 1, "--quiet"]
    done = run(*options, "--epochs", 2)
    assert done.exit_code == 0, done.output
    names = {p.name for p in out.iterdir()}
    assert {"index.md", "metrics.json", "model.json", "model.safetensors", "roc.png", "form.png"} <= names
    found = json.loads((out / "metrics.json").read_text())
    assert len(found["losses"]["train"]) == 2 and found["parameters"] == load_tagger(out).parameter_count()
    page = (out / "index.md").read_text()
    assert "Broken directions" in page and "label-free" in page and "x0²" in page
    assert run(*options, "--epochs", 2).exit_code == 0  # nothing is left to do
    other = run(*options, "--epochs", 3)
    assert other.exit_code == 2 and "epochs 2 → 3" in other.output
    assert run(*options, "--device", "gpu").exit_code == 2


def test_interrupted_training_keeps_its_best_and_says_how_to_go_on(file, tmp_path, monkeypatch):
    from gortho.training import checkpoints

    save, out = checkpoints.save, tmp_path / "run"

    def save_then_interrupt(*arguments):
        save(*arguments)
        raise KeyboardInterrupt

    options = ["train", "toptag", file, "--out", out, "--size", "1k", "--epochs", 2, "--quiet"]
    options += ["--constituents", 12]
    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "save", save_then_interrupt)
        stopped = run(*options)
    assert stopped.exit_code == 130 and "the same command continues" in stopped.output
    assert load_tagger(out).parameter_count() > 1000
    assert run(*options).exit_code == 0
    assert len(json.loads((out / "metrics.json").read_text())["losses"]["train"]) == 2


def test_rivals_know_of_no_form_but_learn(parts):
    for net in (SetNet("relative", 24), SetNet("momenta", 24), FlatNet(24)):
        history = train(net, parts[0], parts[1], epochs=8, batch_size=30, average=0.9)
        assert history.train[-1] < history.train[0]
        found = rivals.read_generators(net, parts[0])
        assert found.generators.shape == (6, 4, 4)
    x, mask = parts[2].x, parts[2].mask
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    net = SetNet("relative", 8)
    assert (net(x[:, order], mask[:, order]) - net(x, mask)).abs().max() < 1e-5
    g = MINKOWSKI.group().sample(1, max_boost=1.0)[0].float()
    assert (net(x @ g.mT, mask) - net(x, mask)).abs().max() > 1e-3
    with pytest.raises(ValueError, match="choose momenta or relative"):
        SetNet("angles")


def test_liegg_reads_an_invariant_function(parts):
    class Mass(Rival):
        def forward(self, x, mask):
            return MINKOWSKI((x * mask[..., None]).sum(1)).log1p()

    found = rivals.read_generators(Mass(1), parts[0])
    assert found.distance(MINKOWSKI) < 1e-6


@pytest.fixture
def no_search(monkeypatch):
    """Forms start at the label-free one: how they are found from labels is for `test_toptag_blind`."""
    for module in (training_run, experiment):
        monkeypatch.setattr(module, "find_form", frames.label_free)


def test_the_experiment_measures_each_row_once(file, tmp_path, monkeypatch, no_search):
    budget = Budget(size="1k", epochs=1, batch_size=50, constituents=12, least_steps=2, fractions=(0.1, 1.0))
    options = {"seeds": 1, "device": torch.device("cpu"), "progress": False, "budget": budget}
    page = reproduce([file], tmp_path, parts=["known", "fractions"], **options)
    assert "Not complete" in page.read_text()
    page = reproduce([file], tmp_path, **options)
    text, rows = page.read_text(), read_rows(tmp_path / "toptag.jsonl")
    assert "Not complete" not in text and str(file.parent) not in text
    for name in ("toptag.csv", "toptag_roc.png", "toptag_forms.png", "toptag_fractions.png"):
        assert (tmp_path / name).stat().st_size > 1000
    every = experiment.jobs(rows[0]["data"], 1, budget)
    assert len(rows) == len(every) + 5  # LieGG on three networks, and on two of them with a tenth of the jets
    unknown = [r for r in rows if r["method"] == experiment.UNKNOWN]
    massless, massive = (r["label-free d_PA"] for r in unknown)
    assert massless < 1e-5 and massive > 10 * massless
    assert all(math.isfinite(r["accuracy"]) and r["parameters"] > 0 for r in rows)
    monkeypatch.setattr(experiment, "measure", lambda *_: pytest.fail("it was measured already"))
    reproduce([file], tmp_path, **options)


def test_reproduce_says_what_it_needs(tmp_path, file):
    missing = run("reproduce", "toptag", "--out", tmp_path)
    assert missing.exit_code == 2 and "give DATA" in missing.output
    part = run("reproduce", "toptag", file, "--out", tmp_path, "--parts", "known,nothing")
    assert part.exit_code == 2 and "no part 'nothing'" in part.output
    other = run("reproduce", "regression", "--parts", "known")
    assert other.exit_code == 2 and "for toptag" in other.output
