"""The training loop: it learns, stops, resumes, survives, and does not mind how many processes run it."""

import itertools
import math
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from helpers import normal, stir
from safetensors.torch import save_file

from gortho import EquivariantNet, LearnableForm, QuadraticForm, Symmetry, fit
from gortho.nn.framed import InFrame
from gortho.objectives import ABSOLUTE
from gortho.reps import as_rep
from gortho.samples import Samples
from gortho.training import predict
from gortho.training.checkpoints import Ended, History
from gortho.training.solvers import LEAST_SQUARES_COLUMNS, least_squares, solvable
from gortho.training.steppers import learning_rate

FORM = QuadraticForm.minkowski(3)
X = normal(120, 2, 3)
Y = torch.tanh(FORM.gram(X)[:, 0, 1])[:, None] * X[:, 0]  # no short polynomial, so that nothing ends at once
QUICK = {"epochs": 6, "batch_size": 32}


def make(form=FORM, dtype=torch.float64, **options):
    return EquivariantNet(form, 2, "vector", width=8, depth=1, **options).to(dtype)


def state(net):
    return torch.cat([t.flatten().double() for t in net.state_dict().values()])


# Learning


@pytest.mark.parametrize("form", [FORM, 3], ids=["known", "learnable"])
def test_loss_goes_down_and_the_best_state_is_kept(form):
    net = make(form)
    history = fit(net, X, Y, epochs=15, batch_size=32, validation=(X[:30], Y[:30]))
    assert history.train[-1] < history.train[0]
    assert history.best_validation == min(history.validation) == history.validation[history.best_epoch]
    assert ABSOLUTE.loss(net)(net(X[:30]), Y[:30]).item() == pytest.approx(history.best_validation, rel=1e-9)
    assert not net.training and net.check_values and history.ended == "all epochs done"


def test_polishing_helps():
    plain, polished = (fit(make(), X, Y, polish=polish, **QUICK).best_validation for polish in (0, 50))
    assert polished < plain


def test_a_short_polynomial_is_found_to_rounding():
    history = fit(make(), X, FORM.gram(X)[:, 0, 1, None] * X[:, 1], **QUICK)
    assert history.best_validation < 1e-18 and history.ended == "the validation loss is down to rounding"


@pytest.mark.parametrize(
    "dtype, x_unit, y_unit",
    [
        (torch.float32, 1e-24, 1.0),  # momenta in SI units
        (torch.float32, 1.0, 1e-22),
        (torch.float32, 1e24, 1e22),
        (torch.float64, 1e-170, 1e170),
        (torch.float64, 1e170, 1e-170),
    ],
)
@pytest.mark.parametrize("form", [FORM, 3], ids=["known", "learnable"])
def test_units_whose_squares_are_out_of_range(dtype, x_unit, y_unit, form):
    net, other = make(form, dtype, sample_scalars=1), make(form, dtype, sample_scalars=1)
    m = normal(120, 1, seed=7)
    y = m * X[:, 0] + FORM.gram(X)[:, 0, 1, None] * X[:, 1]
    history = fit(net, X * x_unit, y * y_unit, sample_scalars=m * y_unit, **QUICK)
    same = fit(other, X, y, sample_scalars=m, **QUICK)
    assert history.how is same.how
    if form is FORM:
        assert history.how is Ended.EXACT
    left = predict(net, X * x_unit, None, m * y_unit).double() / y_unit - predict(other, X, None, m).double()
    assert float(left.square().mean() / y.square().mean()) < 1e-5


def test_float32_and_arrays_are_read():
    net = make(dtype=torch.float32)
    fit(net, X.numpy(), Y, **QUICK)
    assert net.x_scale.dtype == torch.float32 and predict(net, X.numpy()).dtype == torch.float32


@pytest.mark.parametrize("space", [0, 1])
def test_outputs_of_the_longer_and_of_the_shorter_vectors(space):
    symmetry = Symmetry([FORM, QuadraticForm.euclidean(2)], spaces=[0, 1])
    x = X * torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]).double()
    y = [x[:, 0] * x[:, 1].square().sum(1, keepdim=True), x[:, 1, :2] * FORM(x[:, 0])[:, None]][space]
    net = EquivariantNet(symmetry, 2, "vector", output_space=space).double()
    assert fit(net, x, y, **QUICK).how is Ended.EXACT
    torch.testing.assert_close(predict(net, x), y)
    W = 2 * torch.eye(3).double().expand(2, 3, 3)
    torch.testing.assert_close(predict(InFrame(net, W, 8.0), x / 2), 4 * y)
    with pytest.raises(ValueError, match="last axis must have length 3"):
        predict(net, x[..., :2])


def test_same_seed_same_numbers():
    runs = [make(seed=3) for _ in range(3)]
    histories = [fit(net, X, Y, seed=seed, **QUICK) for net, seed in zip(runs, (1, 1, 2))]
    assert torch.equal(state(runs[0]), state(runs[1])) and histories[0].validation == histories[1].validation
    assert not torch.equal(state(runs[0]), state(runs[2]))


def test_a_user_loss():
    calls = []

    def loss(p, t, weights):
        assert weights is None
        calls.append(1)
        return (p - t).abs().mean()

    history = fit(make(3), X, Y, loss=loss, **QUICK)
    assert calls and history.train[-1] < history.train[0]


@pytest.mark.parametrize("form", [FORM, 3], ids=["known", "learnable"])
def test_samples_and_arrays_train_alike(form):
    weights = normal(120, seed=5).square() + 0.1
    given = Samples(X, Y, as_rep("vector"), weights=weights / weights.mean())
    one, other = make(form), make(form)
    histories = fit(one, X, Y, weights=8 * weights, **QUICK), fit(other, given, **QUICK)
    assert torch.equal(state(one), state(other)) and histories[0].train == histories[1].train


@pytest.mark.parametrize("learnable", [False, True])
def test_weights_say_how_much_a_sample_counts(learnable):
    """With opposite targets for the same inputs, those of weight zero leave no trace."""
    both, weights = torch.cat([Y, -Y]), torch.cat([torch.ones(120), torch.zeros(120)])
    options = {"epochs": 10, "batch_size": 32, "polish": 20}
    found = []
    for given in (weights, 1 - weights, None):
        net = make(LearnableForm(3, start=FORM) if learnable else FORM)
        fit(net, torch.cat([X, X]), both, weights=given, **options)
        found.append(float((predict(net, X) * Y).mean() / Y.square().mean()))
    assert found[1] < -0.5 < found[2] < 0.5 < found[0]


def test_clipping_bounds_the_gradient(monkeypatch):
    seen = []
    step = torch.optim.AdamW.step

    def spy(self, *args, **kwargs):
        grads = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        seen.append(float(torch.stack([g.norm() for g in grads]).norm()))
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    for clip, least, most in ((1e-3, 0.0, 1.0001e-3), (0.0, 1.0001e-3, math.inf)):
        seen.clear()
        fit(stir(make(3)), X, Y, clip=clip, epochs=1, batch_size=32)
        assert seen and all(least <= norm <= most for norm in seen)


def test_early_stopping():
    noise = normal(120, 3, seed=9)  # nothing to learn
    history = fit(make(3), X, noise, epochs=300, batch_size=32, lr=0.03, patience=4)
    assert len(history.train) < 300 and history.ended == "no better validation loss for 4 epochs"
    assert history.how is Ended.PATIENCE
    assert len(history.validation) - 1 - history.best_epoch == 4


def test_patience_counts_epochs_not_the_convex_start():
    history = fit(make(), X, normal(120, 3, seed=9), epochs=40, batch_size=32, patience=5)
    assert len(history.train) >= 5


def test_the_schedule_warms_up_and_comes_to_rest():
    rates = [learning_rate(step, 100, 1.0) for step in range(101)]
    assert rates[0] == 0.5 and max(rates) == 1.0 and rates[-1] < 1e-3
    assert all(a >= b for a, b in itertools.pairwise(rates[2:]))


def test_a_loss_that_explodes_is_named():
    history = fit(make(3), X, Y, loss=lambda p, t, _: (p - t).square().mean() * math.nan, **QUICK)
    assert "the loss became nan in epoch 0: try a smaller lr" in history.ended
    assert history.how is Ended.DIVERGED


# Interruption


class Stop(Exception):
    """A kill from outside."""


def failing_loss(net, calls, error):
    """The default loss, raising an error at the given call."""
    count, inner = 0, ABSOLUTE.loss(net)

    def loss(p, t, weights):
        nonlocal count
        count += 1
        if count == calls:
            raise error
        return inner(p, t, weights)

    return loss


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("form", [FORM, 3], ids=["known", "learnable"])
@pytest.mark.parametrize("polish", [0, 20])
def test_a_resumed_run_is_the_same_to_the_last_bit(tmp_path, monkeypatch, form, dtype, polish):
    options = {**QUICK, "polish": polish}
    whole, parts, path = make(form, dtype), make(form, dtype), tmp_path / "run.safetensors"
    expected = fit(whole, X, Y, checkpoint=tmp_path / "other.safetensors", **options)

    calls = 0

    def stopping(*args):  # killed in the third epoch: after it the file holds two
        nonlocal calls
        calls += path.exists()
        if calls > 5 * (1 + len(list(parts.form.parameters()))):
            raise Stop
        return learning_rate(*args)

    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr("gortho.training.steppers.learning_rate", stopping)
        fit(parts, X, Y, checkpoint=path, **options)
    fresh = make(form, dtype)
    history = fit(fresh, X, Y, checkpoint=path, **options)
    assert torch.equal(state(fresh), state(whole))
    assert (history.train, history.validation) == (expected.train, expected.validation)
    assert (history.best_epoch, history.best_validation) == (expected.best_epoch, expected.best_validation)


def test_a_finished_run_is_not_trained_again(tmp_path):
    path, noise = tmp_path / "run.safetensors", normal(120, 3, seed=9)
    options = {"epochs": 300, "batch_size": 32, "lr": 0.03, "patience": 4, "checkpoint": path}
    first, second = make(3), make(3)
    expected, again = fit(first, X, noise, **options), fit(second, X, noise, **options)
    assert again.train == expected.train and again.ended == expected.ended
    assert again.how is expected.how is Ended.PATIENCE
    assert torch.equal(state(first), state(second))


def test_ctrl_c_keeps_the_best_state():
    net, held_out = make(3), (X[:30], Y[:30])
    history = fit(net, X, Y, loss=failing_loss(net, 11, KeyboardInterrupt), validation=held_out, **QUICK)
    assert history.ended == "interrupted in epoch 2; the best state so far is kept"
    assert history.how is Ended.INTERRUPTED
    assert ABSOLUTE.loss(net)(net(X[:30]), Y[:30]).item() == pytest.approx(history.best_validation, rel=1e-9)
    assert net.check_values and not net.training


def test_ctrl_c_in_the_convex_start():
    net = make(dtype=torch.float32)
    history = fit(net, X, Y, loss=failing_loss(net, 3, KeyboardInterrupt), **QUICK)
    assert history.ended.startswith("interrupted") and net.x_scale.dtype == torch.float32


def test_checkpoints_that_cannot_be_used(tmp_path):
    corrupt, foreign, other = (tmp_path / f"{name}.safetensors" for name in ("corrupt", "foreign", "other"))
    corrupt.write_bytes(b"not a checkpoint")
    with pytest.raises(ValueError, match=r"corrupt\.safetensors cannot be read .*delete it to start again"):
        fit(make(3), X, Y, checkpoint=corrupt, **QUICK)
    save_file({"weights": torch.ones(3)}, foreign)
    with pytest.raises(ValueError, match="is not a training checkpoint: choose another file name"):
        fit(make(3), X, Y, checkpoint=foreign, **QUICK)
    fit(make(3), X, Y, checkpoint=other, epochs=1)
    with pytest.raises(ValueError, match="belongs to another network"):
        fit(EquivariantNet(3, 2, "vector", width=9), X, Y, checkpoint=other, **QUICK)
    assert [p.name for p in tmp_path.glob("*.tmp")] == []


# Several processes

WORKER = """
    import sys, torch
    from lightning_fabric import Fabric
    from gortho import EquivariantNet, QuadraticForm, fit
    out, processes, output, set_like, known, dtype = sys.argv[1:]
    dtype = getattr(torch, dtype)
    torch.set_num_threads(1)
    fabric = Fabric(accelerator="cpu", devices=int(processes), strategy="ddp" if int(processes) > 1 else "auto",
                    precision="64-true" if dtype == torch.float64 else "32-true")
    fabric.launch()
    form = QuadraticForm.minkowski(3)
    x = torch.randn(64, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = torch.tanh(form.gram(x)[:, 0, 1])
    y = y if output == "scalar" else y[:, None] * x[:, 0]
    net = EquivariantNet(form if known == "known" else 3, 2, output, width=8, set_like=set_like == "set").to(dtype)
    history = fit(net, x, y, epochs=3, batch_size=16, validation=(x[:8], y[:8]), fabric=fabric, lr=1e-2)
    if fabric.global_rank == 0:
        torch.save({"state": net.state_dict(), "train": history.train, "validation": history.validation}, out)
    else:
        torch.save({"state": net.state_dict()}, out + ".other")
"""


def run_processes(tmp_path, count, *settings):
    """Train in ``count`` processes and return what the first and the last of them ended with."""
    script, out = tmp_path / "worker.py", tmp_path / f"result{count}"
    script.write_text(textwrap.dedent(WORKER))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    workers = []
    for rank in range(count):
        place = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "LOCAL_RANK": str(rank),
            "NODE_RANK": "0",
        }
        place |= {
            "GROUP_RANK": "0",
            "RANK": str(rank),
            "WORLD_SIZE": str(count),
            "LOCAL_WORLD_SIZE": str(count),
        }
        place |= {"TORCHELASTIC_RUN_ID": "test"}  # started one by one, as torchrun does
        command = [sys.executable, str(script), str(out), str(count), *settings]
        extra = place if count > 1 else {}
        workers.append(subprocess.Popen(command, env=os.environ | extra, stderr=subprocess.PIPE, text=True))
    for worker in workers:
        _, errors = worker.communicate(timeout=300)
        assert worker.returncode == 0, errors[-2000:]
    other = Path(f"{out}.other")
    return torch.load(out), torch.load(other) if count > 1 else None


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(("vector", "tuple", "known", "float32"), marks=pytest.mark.slow),
        ("vector", "set", "learnt", "float64"),
    ],
    ids=" ".join,
)
def test_two_processes_train_as_one(tmp_path, settings):
    one, _ = run_processes(tmp_path, 1, *settings)
    two, other = run_processes(tmp_path, 2, *settings)
    tolerance = {"rtol": 1e-3, "atol": 1e-4} if settings[-1] == "float32" else {"rtol": 1e-8, "atol": 1e-9}
    for name, value in one["state"].items():
        assert torch.equal(two["state"][name], other["state"][name]), (
            name
        )  # the processes agree to the last bit
        torch.testing.assert_close(
            two["state"][name], value, **tolerance, msg=lambda m, name=name: f"{name}: {m}"
        )
    assert two["validation"] == pytest.approx(
        one["validation"], rel=1e-2 if settings[-1] == "float32" else 1e-6
    )


# Bad data

BAD = {
    "nan": ({"x": X * math.nan}, ValueError, "x holds 720 .*nan at index"),
    "nan in y": ({"y": Y / 0}, ValueError, "y holds .* not finite"),
    "shape of y": (
        {"y": Y[:, :2]},
        ValueError,
        r"y has shape \(120, 2\), but vector outputs for 120 samples are \(120, 3\)",
    ),
    "lengths": ({"x": X[:100]}, ValueError, r"100 samples are \(100, 3\)"),
    "last axis": ({"x": X[..., :2]}, ValueError, "last axis must have length 3"),
    "integers": ({"x": X.long()}, TypeError, "int64"),
    "missing": ({"y": None}, ValueError, "both needed"),
    "few": ({"x": X[:3], "y": Y[:3]}, ValueError, "3 samples"),
    "empty": ({"x": X[:0], "y": Y[:0]}, ValueError, "empty"),
    "share": ({"validation": 1.0}, ValueError, "validation share 1.0"),
    "epochs": ({"epochs": 0}, ValueError, "epochs = 0"),
    "scalars": ({"point_scalars": normal(119, 2, 1)}, ValueError, "one row for each of the 120 samples"),
    "number of weights": ({"weights": normal(119)}, ValueError, "one row for each of the 120 samples"),
    "negative weights": ({"weights": normal(120)}, ValueError, "at least 0 for each sample"),
    "no weights": ({"weights": torch.zeros(120)}, ValueError, "not all 0"),
    "surplus scalars": (
        {"point_scalars": normal(120, 2, 1)},
        ValueError,
        "made without: set point_scalars=1",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data(case):
    changes, error, message = BAD[case]
    with pytest.raises(error, match=message):
        fit(make(3), **{"x": X, "y": Y, **QUICK} | changes)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"y": Y, "weights": torch.ones(120)}, "y and weights beside Samples.* leave out y"),
        ({"point_scalars": normal(120, 2, 1)}, "point_scalars beside Samples"),
        ({"x": Samples(X, Y[:, 0])}, r"x is .*scalar.*but the network gives vector \(120, 3\)"),
        ({"x": Samples(X[..., :2], Y, as_rep("vector"))}, r"R\^2.*vectors in R\^3"),
        ({"x": Samples(X[:, :1], Y, as_rep("vector"))}, r"\(102, 1, 3\), expected \(batch, 2, 3\)"),
        ({"validation": Samples(X, Y[:, 0])}, "validation is .*scalar"),
    ],
)
def test_samples_that_do_not_fit(given, message):
    with pytest.raises(ValueError, match=message):
        fit(make(), **{"x": Samples(X, Y, as_rep("vector")), **QUICK, **given})


def test_history_starts_empty():
    assert History().train == [] and History().best_validation == math.inf


def test_learnable_forms_are_started_where_told_and_trained():
    start = QuadraticForm.random(1, 2, condition=2, seed=4)
    net = make(LearnableForm(3, start=start))
    fit(net, X, Y, **QUICK)
    assert net.form.value() != start


@pytest.mark.slow
def test_a_compiled_network_trains_to_the_same_loss():
    runs = [fit(make(LearnableForm(3, seed=3)), X, Y, **QUICK, compile=compile) for compile in (False, True)]
    assert runs[0].validation == pytest.approx(runs[1].validation, rel=1e-6)


# Least squares


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_polynomial_law_is_found_to_rounding_before_training_starts(dtype):
    form = QuadraticForm.random(1, 2, seed=4)
    x = normal(300, 2, 3)
    gram = form.gram(x)
    y = (gram[:, 0, 0] * gram[:, 0, 1])[:, None] * x[:, 1] - 0.3 * x[:, 0]
    net = EquivariantNet(form, 2, "vector", width=24, depth=1).to(dtype)
    history = fit(net, x, y, epochs=50)
    assert history.ended == "the validation loss is down to rounding" and not history.train
    new = normal(200, 2, 3, seed=9)
    gram = form.gram(new)
    truth = (gram[:, 0, 0] * gram[:, 0, 1])[:, None] * new[:, 1] - 0.3 * new[:, 0]
    assert (
        float((predict(net.double(), new) - truth).square().mean())
        < {torch.float32: 1e-8, torch.float64: 1e-16}[dtype]
    )


def test_least_squares_takes_the_form_along_and_keeps_weights_small():
    form = QuadraticForm.random(1, 2, seed=4)
    x = normal(400, 1, 3)
    y = form.gram(x)[:, 0, 0] ** 2
    bent = QuadraticForm(form.matrix + 0.02 * torch.eye(3))
    net = EquivariantNet(LearnableForm(3, start=bent), 1, "scalar", width=8, depth=1).double()
    data = Samples(x, y)
    net.calibrate(x, y)
    parameters = [*net.form.parameters(), *net.convex_stages()[-1]]
    before = net.form.value().algebra_distance(form)
    scores = list(least_squares(net, parameters, data, data, steps=12))
    assert scores == sorted(scores, reverse=True) and scores[-1] < 1e-16
    assert net.form.value().algebra_distance(form) < 1e-8 < 1e-3 < before
    assert max(float(p.detach().abs().max()) for p in net.convex_stages()[-1]) < 1e3


def test_too_many_unknowns_are_not_solved_for():
    net = EquivariantNet(QuadraticForm.euclidean(3), 6, "bilinear", width=64)
    weights = net.convex_stages()[-1]
    assert sum(p.numel() for p in weights) > LEAST_SQUARES_COLUMNS
    data = Samples(normal(500, 6, 3), normal(500, 3, 3))
    assert not solvable(net, weights, data)
    assert solvable(net, net.convex_stages()[0], data)
