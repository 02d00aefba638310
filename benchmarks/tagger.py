"""The jet tagger: how many jets a second it trains on, and how good it gets.

`--check` compares the fused kernel with plain torch and times its tiles; `--throughput` times whole training steps
(pick jets, forward, backward, clip, AdamW); `--train` trains one tagger for each seed and tests it. Results are JSON
lines on standard output.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import gortho
from gortho.nn import LearnableForm, kernels, pairs
from gortho.studies.toptag import samples
from gortho.studies.toptag.blind import find_form
from gortho.studies.toptag.frames import hidden_frame, label_free, minkowski_in, seen
from gortho.studies.toptag.samples import Sample
from gortho.studies.toptag.tagger import Tagger, detector_axes
from gortho.studies.toptag.train import evaluate, stepper, train

MODES = {  # name: (fused kernel, compiled, CUDA graph)
    "eager": (False, False, False),
    "compile": (False, True, False),
    "compile+graph": (False, True, True),
    "triton": (True, False, False),
    "triton+graph": (True, False, True),
    "triton+compile": (True, True, False),
    "triton+compile+graph": (True, True, True),
}


def say(**values: Any) -> None:
    print(json.dumps(values), flush=True)


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def make(
    options: argparse.Namespace,
    seed: int = 0,
    fused: bool | None = None,
    M: Tensor | None = None,
    start: gortho.QuadraticForm | None = None,
) -> Tagger:
    """A tagger as asked for; M is a hidden frame x → Mx that given directions follow."""
    spurions = detector_axes(M) if options.spurions else ()
    form: Any = minkowski_in(M)
    if options.learn_form:
        form = LearnableForm(4, seed=seed, start=start)
    return Tagger(
        form,
        width=options.width,
        pairs=options.pairs,
        depth=options.depth,
        hidden=options.hidden,
        spurions=spurions,
        references=options.references,
        dropout=options.dropout,
        fused=fused,
        seed=seed,
    )


def synthetic(jets: int, points: int, full: bool) -> Sample:
    """Massless vectors with as many constituents as real jets have (48 ± 17), or all of them."""
    generator = torch.Generator().manual_seed(0)
    p = torch.randn(jets, points, 3, generator=generator) + torch.tensor([5.0, 0.0, 0.0])
    p = p * (2 * torch.randn(jets, points, 1, generator=generator)).exp()
    number = (48 + 17 * torch.randn(jets, 1, generator=generator)).clamp(5, points)
    mask = torch.arange(points) < (torch.full_like(number, points) if full else number)
    x = torch.cat([p.norm(dim=-1, keepdim=True), p], dim=-1) * mask[..., None]
    return Sample(x, mask, (torch.rand(jets, generator=generator) < 0.5).float())


def work(net: Tagger, points: int) -> dict[str, float]:
    """Estimated operations and bytes of one jet in a training step, all points real.

    Matrices count 2 operations a weight and thrice that with the way back; a message channel about 20 on the way
    forward and 45 back. Bytes: without fusion a pair channel is written or read about 7 times in float32; the rest
    are the tensors of points, each written and read once forward and twice back, in float32.
    """
    matrices = sum(p.numel() for n, p in net.layers.named_parameters() if p.ndim == 2 and ".pair" not in n)
    channels = sum(p.shape[1] for n, p in net.named_parameters() if n.endswith(".pair"))
    held = sum(
        p.shape[0] + p.shape[1]
        for n, p in net.layers.named_parameters()
        if n.endswith("weight") and p.ndim == 2
    )
    pair = points**2 * channels
    return {
        "mflop_a_jet": (6 * matrices * points + 65 * pair) / 1e6,
        "mb_a_jet_fused": 4 * 4 * held * points / 1e6,
        "mb_a_jet_unfused": (4 * 4 * held * points + 7 * 4 * pair) / 1e6,
    }


def throughput(options: argparse.Namespace, device: torch.device) -> None:
    cuda = device.type == "cuda"
    modes = options.modes or ([*MODES] if cuda else ["eager"])
    batch, points = options.batch_size, options.constituents
    for full in (False, True):
        data = synthetic(batch * (64 if cuda else 4), points, full).to(device)
        rows = torch.randperm(len(data), device=device).split(batch)
        for mode in modes:
            fused, compiled, graph = MODES[mode]
            torch.manual_seed(0)
            net = make(options, fused=fused).to(device)
            net.calibrate(data.x, data.mask)
            step = stepper(
                net, data, batch, lr=1e-3, amp=options.amp, compile=compiled, graph=graph, drop=options.drop
            )
            if cuda:
                torch.cuda.reset_peak_memory_stats()
            started = time.perf_counter()
            warm, steps, windows = (20, 100, 15) if cuda else (1, 2, 3)
            try:
                for i in range(warm):
                    step(rows[i % len(rows)], points)
            except Exception as error:  # one mode that fails must not hide the others
                say(mode=mode, failed=f"{type(error).__name__}: {error}"[:500])
                continue
            synchronize(device)
            ready = time.perf_counter() - started
            rates = []
            for _ in range(windows):
                start = time.perf_counter()
                for i in range(steps):
                    step.rate(i, steps)
                    step(rows[i % len(rows)], points)
                synchronize(device)
                rates.append(steps * batch / (time.perf_counter() - start))
            say(
                mode=mode,
                multiplicity="full" if full else "typical",
                batch=batch,
                points=points,
                parameters=net.parameter_count(),
                bf16=options.amp,
                jets_a_second=round(statistics.median(rates)),
                least=round(min(rates)),
                most=round(max(rates)),
                step_ms=round(1e3 * batch / statistics.median(rates), 3),
                peak_gb=round(torch.cuda.max_memory_allocated() / 1e9, 3) if cuda else None,
                ready_s=round(ready, 1),
                loss_is_finite=bool(torch.isfinite(step.total)),
                **{k: round(v, 3) for k, v in work(net, points).items()},
            )
            del step


def difference(a: Tensor, b: Tensor) -> float:
    return float((a.double() - b).norm() / b.norm())


def check(options: argparse.Namespace, device: torch.device) -> None:
    """The fused kernel against plain torch in float64, and times of its tiles."""
    scales = torch.tensor([1e-3, 3e-2, 1.0, 30.0], device=device)
    eta = torch.tensor([1.0, -1.0, -1.0, -1.0], device=device)
    for batch, points, channels, form, dtype in (
        (7, 33, 20, True, torch.float32),
        (256, 64, options.pairs, False, torch.float32),
        (256, 64, options.pairs, True, torch.float32),
        (64, 128, options.pairs, True, torch.bfloat16),
    ):
        torch.manual_seed(points)
        data = synthetic(batch, points, False).to(device)
        real = (data.mask & (torch.rand(data.mask.shape, device=device) < 0.9)).float()
        data.x[..., 0] *= 1.05  # massless squares are rounding, whose slope float32 does not know
        left, right = data.x / 3 * eta, data.x / 3
        weight = torch.randn(4, channels, device=device) / 3
        ends = torch.randn(batch, points, 2 * channels, device=device).to(dtype)
        grad = torch.randn(batch, points, channels, device=device).to(dtype)

        def run(fused: bool, *given: Tensor) -> list[Tensor]:
            left, right, scales, weight, ends, grad = (t.detach() for t in given)
            inputs = [weight, ends] + ([left, right] if form else [])  # noqa: B023
            for t in inputs:
                t.requires_grad_()
            r = pairs.messages(left, right, scales, weight, ends, real.to(left.dtype), fused)  # noqa: B023
            return [r.detach(), *torch.autograd.grad(r, inputs, grad)]

        given = (left, right, scales, weight, ends, grad)
        one = run(True, *given)
        exact = run(False, *(t.double() for t in given))
        again = run(True, *given)
        plain = [t.double() for t in run(False, *given)]
        names = ("messages", "d_weight", "d_ends", "d_left", "d_right")
        say(
            check=f"B={batch} N={points} C={channels} form={form} {dtype}",
            fused={n: difference(a, b) for n, a, b in zip(names, one, exact)},
            plain={n: difference(a, b) for n, a, b in zip(names, plain, exact)},
            repeats_exactly=all(torch.equal(a, b) for a, b in zip(one, again)),
        )
    from triton.testing import do_bench

    data = synthetic(options.batch_size, options.constituents, False).to(device)
    left, right = data.x / 3 * eta, data.x / 3
    channels = options.pairs
    weight = torch.randn(4, channels, device=device) / 3
    ends = torch.randn(*data.mask.shape, 2 * channels, device=device)
    grad = torch.randn(*data.mask.shape, channels, device=device)
    operators = torch.ops.gortho
    inputs = (left, right, scales, weight, ends, data.mask.float(), kernels.last_real(data.mask))
    for warps in (2, 4, 8):
        for rows in (16, 32, 64):
            for columns in (16, 32):
                kernels.FORWARD = kernels.BACKWARD = (rows, columns, warps)
                times = [
                    do_bench(lambda: operators.pair_messages(*inputs), return_mode="median"),
                    do_bench(
                        lambda: operators.pair_messages_backward(grad, *inputs, False), return_mode="median"
                    ),
                    do_bench(
                        lambda: operators.pair_messages_backward(grad, *inputs, True), return_mode="median"
                    ),
                ]
                say(
                    rows=rows,
                    columns=columns,
                    warps=warps,
                    ms=dict(zip(("forward", "backward", "backward_form"), (round(t, 4) for t in times))),
                )


def load(options: argparse.Namespace) -> tuple[Sample, Sample, Sample]:
    """Training jets of all files, or so many of them, and all validation and test jets."""
    training, validation, test = samples.load(options.train, options.constituents)
    if options.jets:
        few = torch.randperm(len(training), generator=torch.Generator().manual_seed(0))[: options.jets]
        training = samples.take(training, few)
    return training, validation, test


def search(
    options: argparse.Namespace, fit: Any, seed: int, truth: gortho.QuadraticForm
) -> gortho.QuadraticForm:
    """Short runs from many random forms; the best quarter goes on with new weights, until one is left."""
    starts: list[Any] = [None] * options.starts
    while True:
        tried = []
        for i, start in enumerate(starts):
            net, history = fit(1000 * (seed + 1) + i, start, options.start_epochs)
            tried.append((history.best_validation, net.form.value()))
        tried.sort(key=lambda pair: pair[0])
        say(starts=[[round(loss, 4), round(form.cosine(truth), 5)] for loss, form in tried])
        if len(tried) == 1:
            return tried[0][1]
        starts = [form for _, form in tried[: max(1, len(tried) // 4)]]


def accuracy(options: argparse.Namespace, device: torch.device) -> None:
    started = time.perf_counter()
    parts = load(options)
    M = None if options.frame is None else hidden_frame(options.frame)
    training, validation, test = ((s if M is None else seen(s, M)).to(device) for s in parts)
    say(jets=[len(s) for s in parts], loaded_s=round(time.perf_counter() - started, 1), device=str(device))
    truth = minkowski_in(M)

    def fit(seed: int, start: Any, epochs: int, checkpoint: str | None = None) -> tuple[Tagger, Any]:
        net = make(options, seed, False if options.plain else None, M, start).to(device)
        history = train(
            net,
            training,
            validation,
            epochs=epochs,
            batch_size=options.batch_size,
            lr=options.lr,
            form_lr=options.form_lr,
            weight_decay=options.weight_decay,
            average=options.average,
            drop=options.drop,
            bucket=options.bucket,
            amp=options.amp,
            compile=options.compile,
            seed=seed,
            checkpoint=checkpoint,
        )
        return net, history

    free = label_free(training)
    say(label_free={"cosine": free.cosine(truth), "d_PA": free.algebra_distance(truth)})
    found: list[dict[str, Any]] = []
    for seed in range(options.seed, options.seed + options.seeds):
        began = time.perf_counter()
        start = {"random": None, "labels": find_form, "label-free": label_free}[options.start]
        start = start(training) if callable(start) else None
        if start is not None:
            say(start=options.start, cosine=start.cosine(truth), d_PA=start.algebra_distance(truth))
        if options.learn_form and options.starts:
            start = search(options, fit, seed, truth)
        searched = time.perf_counter() - began
        checkpoint = f"{options.checkpoint}.{seed}.safetensors" if options.checkpoint else None
        net, history = fit(seed, start, options.epochs, checkpoint)
        result = evaluate(net, test)
        del result["roc"]
        if options.learn_form:
            form = net.form.value()
            result["form"] = form.matrix.tolist()
            result["cosine"], result["d_PA"] = form.cosine(truth), form.algebra_distance(truth)
        if options.references:
            result["references"] = net.learnt_references()
        result["search_s"] = round(searched, 1)
        result["train_s"] = round(history.seconds, 1)
        result["jets_a_second"] = round(len(training) * options.epochs / history.seconds)
        result["best_epoch"], result["ended"] = history.best_epoch, history.ended
        result["final_losses"] = [round(history.train[-1], 4), round(history.validation[-1], 4)]
        result["best_validation"] = round(history.best_validation, 4)
        found.append(result)
        say(seed=seed, parameters=net.parameter_count(), **result)
    for name in ("accuracy", "auc", "rejection_0.3", "rejection_0.5"):
        values = [r[name] for r in found if r[name] is not None]
        spread = statistics.stdev(values) if len(values) > 1 else None
        say(metric=name, mean=statistics.mean(values) if values else None, spread=spread, seeds=len(values))
    say(total_s=round(time.perf_counter() - started, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="the fused kernel against plain torch (CUDA)")
    parser.add_argument("--throughput", action="store_true", help="time training steps")
    parser.add_argument("--train", type=Path, nargs="+", metavar="DATA", help="train on these jets")
    parser.add_argument("--modes", nargs="+", choices=[*MODES], help="for --throughput; all by default")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--pairs", type=int, default=32)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--hidden", type=int, help="twice the width by default")
    parser.add_argument("--spurions", action="store_true", help="give the beams and the time axis")
    parser.add_argument("--references", type=int, default=0, help="so many learnt reference vectors")
    parser.add_argument("--learn-form", action="store_true", help="learn the form from a random start")
    parser.add_argument(
        "--start", choices=("random", "labels", "label-free"), default="random", help="of a learnt form"
    )
    parser.add_argument(
        "--starts", type=int, default=0, help="so many random forms are tried in short runs first"
    )
    parser.add_argument("--start-epochs", type=int, default=4)
    parser.add_argument("--form-lr", type=float, help="three times --lr by default")
    parser.add_argument("--frame", type=int, help="seed of a hidden frame the momenta are seen in")
    parser.add_argument("--constituents", type=int, default=64)
    parser.add_argument("--jets", type=int, help="train on so many only")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--average", type=float, default=0.999)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--drop", type=float, default=0.0, help="share of constituents left out at random")
    parser.add_argument("--bucket", action="store_true", help="batches of jets of about one length")
    parser.add_argument("--amp", action="store_true", help="layers in bfloat16")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--plain", action="store_true", help="without the fused kernel")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--checkpoint", help="start of the names of checkpoints, to go on from")
    options = parser.parse_args()
    device = torch.device(options.device)
    if options.check:
        check(options, device)
    if options.throughput:
        throughput(options, device)
    if options.train:
        accuracy(options, device)
    if not (options.check or options.throughput or options.train):
        parser.error("give --check, --throughput or --train")


if __name__ == "__main__":
    main()
