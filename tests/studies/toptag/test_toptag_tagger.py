"""The jet tagger: exact symmetries, learning, resuming, metrics, and the fused kernel where there is a GPU."""

import math

import numpy as np
import pytest
import torch
from helpers import normal, stir

import gortho
from gortho.nn import LearnableForm
from gortho.nn import pairs as kernels
from gortho.studies.toptag import Jets, metrics
from gortho.studies.toptag import train as training
from gortho.studies.toptag.samples import Sample
from gortho.studies.toptag.tagger import Tagger, detector_axes
from gortho.studies.toptag.train import batch_plan, logits, stepper, train
from gortho.training import checkpoints

MINKOWSKI = gortho.QuadraticForm.minkowski()
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def jets(count, points, seed=0, dtype=torch.float64):
    """Massless vectors within a cone about the x axis, between two and all of them real."""
    p = normal(count, points, 3, seed=seed) * 0.3 + torch.tensor([1.0, 0.0, 0.0])
    p = p * normal(count, points, 1, seed=seed + 1).exp()
    x = torch.cat([p.norm(dim=-1, keepdim=True), p], dim=-1)
    number = torch.randint(2, points + 1, (count, 1), generator=torch.Generator().manual_seed(seed))
    mask = torch.arange(points) < number
    return (x * mask[..., None]).to(dtype), mask


def tagger(x, mask, **options):
    """A tagger in float64 with weights that all matter."""
    net = stir(Tagger(**{"width": 12, "pairs": 8, "depth": 2, **options}).double())
    net.calibrate(x, mask)
    return net.eval()


@pytest.fixture(scope="module")
def few():
    return jets(40, 12)


def test_lorentz_transformations_change_nothing(few):
    x, mask = few
    net = tagger(x, mask)
    score = net(x, mask)
    assert score.std() > 0.05
    for g in MINKOWSKI.group().sample(6, seed=3, max_boost=1.5):
        assert (net(x @ g.mT, mask) - score).abs().max() < 1e-9


@pytest.mark.parametrize("signature", [(4, 0), (2, 2), (1, 4)])
def test_any_form_is_respected(signature):
    form = gortho.QuadraticForm.random(*signature, 0, condition=3.0, seed=1)
    x = normal(20, 6, form.n)
    mask = torch.ones(20, 6, dtype=torch.bool)
    net = tagger(x, mask, form=form)
    for g in form.group().sample(3, seed=2):
        assert (net(x @ g.mT, mask) - net(x, mask)).abs().max() < 1e-9


def test_order_and_padding_change_nothing(few):
    x, mask = few
    net = tagger(x, mask, spurions=detector_axes())
    score = net(x, mask)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    assert (net(x[:, order], mask[:, order]) - score).abs().max() < 1e-12
    more = torch.cat([x, torch.full((40, 5, 4), math.nan, dtype=x.dtype)], dim=1)
    padded = torch.cat([mask, torch.zeros(40, 5, dtype=torch.bool)], dim=1)
    assert (net(more, padded) - score).abs().max() < 1e-12
    one_by_one = torch.cat(
        [net(x[i : i + 1, : mask[i].sum()], mask[i : i + 1, : mask[i].sum()]) for i in range(40)]
    )
    assert (one_by_one - score).abs().max() < 1e-12


def test_spurions_break_all_but_rotations_about_the_beam(few):
    x, mask = few
    net = tagger(x, mask, spurions=detector_axes())
    score = net(x, mask)
    c, s = math.cos(0.7), math.sin(0.7)
    about_beam = torch.tensor([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]], dtype=torch.float64)
    about_x = about_beam[[0, 3, 1, 2]][:, [0, 3, 1, 2]]
    ch, sh = math.cosh(0.5), math.sinh(0.5)
    boost = torch.tensor([[ch, 0, 0, sh], [0, 1, 0, 0], [0, 0, 1, 0], [sh, 0, 0, ch]], dtype=torch.float64)
    assert (net(x @ about_beam.mT, mask) - score).abs().max() < 1e-9
    assert (net(x @ about_x.mT, mask) - score).abs().max() > 1e-3
    assert (net(x @ boost.mT, mask) - score).abs().max() > 1e-3


def test_references_are_learnt_and_reported(few):
    x, mask = few
    net = tagger(x, mask, references=2)
    net(x, mask).sum().backward()
    assert net.learnt.grad.abs().min() > 0
    found = net.learnt_references()
    gram = MINKOWSKI.gram(net.learnt.detach())
    assert torch.allclose(torch.tensor(found["gram"]), gram.float(), atol=1e-5)
    assert len(found["sizes"]) == 2 and Tagger().learnt_references()["sizes"] == []


def test_the_gradient_of_a_form_to_be_learnt(few):
    x, mask = few
    net = tagger(x, mask, form=LearnableForm(4, seed=1))
    entries = net.form.entries

    def value():
        return net(x, mask).square().sum()

    (gradient,) = torch.autograd.grad(value(), entries)
    direction, step = normal(4, 4, seed=5), 1e-6
    with torch.no_grad():
        entries += step * direction
        above = value()
        entries -= 2 * step * direction
        below = value()
    slope = float((above - below) / (2 * step))
    assert slope == pytest.approx(float((gradient * direction).sum()), rel=1e-4)


def test_what_cannot_be_is_refused(few):
    x, mask = few
    with pytest.raises(ValueError, match="spurions have shape"):
        Tagger(spurions=[[1.0, 0, 0]])
    with pytest.raises(ValueError, match=r"expected \(B, N, 4\)"):
        Tagger()(x.float(), mask[:, :5])
    with pytest.raises(TypeError, match=r"net.to\(x.dtype\)"):
        Tagger()(x, mask)
    with pytest.raises(ValueError, match="width = 0"):
        Tagger(width=0)


def toy(count, seed):
    """Label: whether pairs are close to each other, on average, in the frame of their sum."""
    x, mask = jets(count, 8, seed)
    g = MINKOWSKI.gram(x)
    along = g.sum(-1)
    angle = g * g.sum((-1, -2))[:, None, None] / (along[:, :, None] * along[:, None] + 1e-30)
    both = (mask[:, :, None] & mask[:, None] & ~torch.eye(8, dtype=torch.bool)).double()
    mean = (angle.clamp(min=1e-6).log() * both).sum((-1, -2)) / both.sum((-1, -2))
    return Sample(x.float(), mask, (mean > mean.median()).float())


def test_a_toy_problem_is_learnt():
    net = Tagger(width=16, pairs=16, depth=1)
    history = train(net, toy(3000, 1), toy(500, 2), epochs=6, batch_size=64, lr=1e-2, average=0.99)
    assert history.train[-1] < 0.6 * history.train[0] and len(history.validation) == 6
    found = training.evaluate(net, toy(1000, 3))
    assert found["accuracy"] > 0.85 and found["auc"] > 0.93


class Killed(BaseException):
    """Stands for a process that ends at any moment."""


def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch):
    samples = toy(300, 4), toy(100, 5)
    options = {"epochs": 4, "batch_size": 50, "drop": 0.1, "bucket": True, "average": 0.9}

    def make():
        return Tagger(LearnableForm(4, seed=2), width=8, pairs=8, depth=1, references=1, dropout=0.1)

    whole = make()
    expected = train(whole, *samples, **options)
    save = checkpoints.save

    def save_then_die(*arguments):
        save(*arguments)
        if arguments[-1] == 2:
            raise Killed

    monkeypatch.setattr(checkpoints, "save", save_then_die)
    with pytest.raises(Killed):
        train(make(), *samples, **options, checkpoint=tmp_path / "run.safetensors")
    monkeypatch.setattr(checkpoints, "save", save)
    net = make()
    history = train(net, *samples, **options, checkpoint=tmp_path / "run.safetensors")
    assert history.train == expected.train and history.validation == expected.validation
    for name, value in whole.state_dict().items():
        assert torch.equal(value, net.state_dict()[name]), name


def overflowing(count):
    """Jets behind those that units are read off, the first `count` of them too large for float32."""
    x, mask = jets(training.CALIBRATION + 400, 4, dtype=torch.float32)
    label = (x[..., 2].sum(1) > 0).float()
    x[training.CALIBRATION :][:count] *= 1e30
    return Sample(x, mask, label)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_cuda])])
def test_a_step_that_overflows_is_left_out(device):  # on a GPU within recorded steps
    sample, fine = overflowing(1), overflowing(0)
    net = Tagger(width=4, pairs=4, depth=1).to(device)
    history = train(net, sample, fine, epochs=2, batch_size=64, progress=False)
    assert history.left_out == 2 and history.ended == "all epochs done"
    assert all(map(math.isfinite, history.train + history.validation))
    assert history.validation[1] < history.validation[0]
    assert all(p.isfinite().all() for p in net.parameters())


def test_too_many_overflowing_steps_end_the_training(tmp_path):
    for _ in range(2):  # the second time it has ended before
        net = Tagger(width=4, pairs=4, depth=1)
        history = train(
            net,
            overflowing(400),
            overflowing(0),
            epochs=3,
            batch_size=64,
            checkpoint=tmp_path / "run.safetensors",
        )
        assert len(history.train) == 1 and "not finite" in history.ended and "smaller lr" in history.ended
        assert all(p.isfinite().all() for p in net.parameters())


def test_training_leaves_the_callers_random_numbers_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    train(Tagger(width=4, pairs=4, depth=1), toy(60, 1), toy(60, 2), epochs=1, batch_size=20, drop=0.1)
    assert torch.equal(torch.rand(3), expected)


def test_layers_in_bfloat16_score_nearly_the_same(few):
    x, mask = few
    net = tagger(x, mask).float()
    exact = net(x.float(), mask)
    with torch.autocast("cpu", torch.bfloat16):
        rough = net(x.float(), mask)
    assert rough.dtype == torch.float32
    assert 0 < (rough - exact).abs().max() < 0.1 * exact.std() + 0.05


@pytest.mark.parametrize("bucket", [False, True])
def test_every_jet_is_met_once_an_epoch(bucket):
    lengths = torch.randint(1, 65, (1000,), generator=torch.Generator().manual_seed(0))
    order, cuts = batch_plan(lengths, 100, seed=1, epoch=3, longest=64, bucket=bucket)
    assert torch.equal(order.sort().values, torch.arange(1000)) and len(cuts) == 10
    assert all(lengths[rows].max() <= cut <= 64 for rows, cut in zip(order.split(100), cuts))
    assert bucket == (sum(cuts) < 640)
    assert not torch.equal(batch_plan(lengths, 100, 1, 4, 64, bucket)[0], order)


def test_metrics_agree_with_scikit_learn():
    from sklearn.metrics import accuracy_score, roc_auc_score, roc_curve

    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 3000)
    score = np.round(rng.normal(size=3000) + 1.5 * label - 0.7, 2)  # with ties
    found = metrics.summary(label, score)
    assert found["accuracy"] == pytest.approx(accuracy_score(label, score > 0))
    assert found["auc"] == pytest.approx(roc_auc_score(label, score))
    false, true, _ = roc_curve(label, score, drop_intermediate=False)
    for efficiency in (0.3, 0.5):
        share = false[np.argmax(true >= efficiency)]
        assert found[f"rejection_{efficiency}"] == pytest.approx(1 / share)
        n = np.sum(label == 0)
        error = math.sqrt(share * (1 - share) / n) / share**2
        assert found[f"rejection_{efficiency}_error"] == pytest.approx(error)


def test_metrics_at_the_edges():
    assert metrics.rejection([0, 1], [0.0, 1.0], 0.5) == (math.inf, math.inf)
    assert metrics.summary([0, 1], [0.0, 1.0])["rejection_0.3"] is None
    assert metrics.auc([0, 1], [0.0, 1.0]) == (1.0, 0.0)
    with pytest.raises(ValueError, match="one class"):
        metrics.accuracy([1, 1], [0.0, 1.0])
    with pytest.raises(ValueError, match="not finite"):
        metrics.auc([0, 1], [0.0, math.nan])


def test_samples_are_read_from_jets():
    momenta = np.array([[3.0, 0.0, 4.0], [0.0, 1.0, 0.0], [0.0, 2.0, 0.0]], np.float32)
    table = Jets(momenta, np.array([0, 2, 3]), np.array([1, 0], np.int8))
    sample = Sample.of(Jets.cat([table[1], table[0]]), [1, 0], 3)
    assert sample.x.shape == (2, 3, 4) and sample.mask.sum(1).tolist() == [2, 1]
    assert sample.x[0, 0].tolist() == [5.0, 3.0, 0.0, 4.0] and sample.label.tolist() == [1.0, 0.0]


def test_the_embedding_has_a_slope_at_zero():
    g = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    kernels.embed(g, torch.tensor([0.5, 2.0])).sum().backward()
    assert g.grad.tolist() == [2.5] * 3


def test_the_fused_kernel_says_what_it_cannot_do(few):
    x, mask = few
    with pytest.raises((ValueError, ImportError), match="use fused=False"):
        tagger(x, mask, fused=True)(x, mask)


def test_logits_do_not_depend_on_pieces(few):
    x, mask = few
    net, sample = tagger(x, mask), Sample(x, mask, torch.ones(40))
    assert torch.allclose(logits(net, sample, 7), logits(net, sample, 40), atol=1e-12)


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("points, channels, form", [(9, 5, True), (64, 32, False), (128, 48, True)])
def test_the_fused_kernel_agrees_with_plain_torch(points, channels, form):
    x = normal(33, points, 4, seed=7).cuda()  # not massless: there, float32 knows no slopes
    real = (jets(33, points)[1].cuda() & (torch.rand(33, points, device="cuda") < 0.9)).double()
    signs = torch.tensor([1.0, -1.0, -1.0, -1.0], device="cuda", dtype=torch.float64)
    scales = torch.tensor([1e-2, 0.1, 1.0, 10.0], device="cuda", dtype=torch.float64)
    weight, ends = normal(4, channels).cuda(), normal(33, points, 2 * channels).cuda()
    grad = normal(33, points, channels, seed=9).cuda()

    def run(dtype, fused):
        sides = [t.to(dtype).requires_grad_(form) for t in (x * signs, x)]
        inputs = [t.to(dtype).requires_grad_() for t in (weight, ends)]
        r = kernels.messages(*sides, scales.to(dtype), *inputs, real.to(dtype), fused)
        return [r.detach(), *torch.autograd.grad(r, inputs + (sides if form else []), grad.to(dtype))]

    for fused, exact in zip(run(torch.float32, True), run(torch.float64, False)):
        assert (fused.double() - exact).norm() < 1e-3 * exact.norm()


class Compiled(torch.nn.Module):
    """As torch wraps what it has compiled: neither a length nor a truth value."""

    def __init__(self, net, dynamic):
        super().__init__()
        self.net = net

    def forward(self, *inputs):
        return self.net(*inputs)

    def __len__(self):
        raise TypeError("no length")


def test_compiling_says_how_long_it_takes_and_a_failure_costs_nothing(monkeypatch):
    def fails(net, **options):
        raise RuntimeError("no compiler is here")

    samples, histories, said = (toy(60, 1), toy(60, 2)), [], []
    for replaced in (Compiled, fails):
        monkeypatch.setattr(torch, "compile", replaced)
        options = {"epochs": 1, "batch_size": 20, "compile": True, "say": said.append}
        histories.append(train(Tagger(width=4, pairs=4, depth=1), *samples, **options))
    assert (
        said[0].startswith("compiled in ") and "not compiled" in said[1] and "no compiler is here" in said[1]
    )
    assert histories[0].validation == histories[1].validation


@pytest.mark.gpu
@needs_cuda
def test_recorded_steps_equal_plain_ones():
    data = toy(256, 1).to("cuda")
    scores = []
    for graph in (False, True):
        net = Tagger(width=16, pairs=16, depth=2).cuda()
        net.calibrate(data.x, data.mask)
        step = stepper(net, data, 64, graph=graph)
        for i, rows in enumerate(torch.arange(256, device="cuda").split(64)):
            step.rate(i, 4)
            step(rows, 8)
        scores.append(logits(net, data))
    assert (scores[0] - scores[1]).abs().max() < 1e-4
