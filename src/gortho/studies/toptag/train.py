"""Training of taggers and their rivals in the one loop, on a CPU, a GPU or in several processes, jets on the device.

Under torchrun every process reads its own share of the jets (`gortho.training.processes.share`) and makes its part of
each batch from them: with gradients averaged, that is the step which one process would make with the parts together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gortho.nn.form import LearnableForm
from gortho.nn.pairnet import CALIBRATION
from gortho.studies.toptag import metrics
from gortho.studies.toptag.samples import Sample
from gortho.training.checkpoints import History
from gortho.training.loop import Run
from gortho.training.processes import OneProcess, gathered
from gortho.training.steppers import Recorded, Stepper, compiled

#: Batches whose jets are sorted by length among each other when jets are bucketed.
CHUNK = 64
#: Lengths of bucketed jets are multiples of this.
LENGTH_STEP = 16
#: Learning rate of a form in units of that of the weights: m² is a hundredth of E² or less, so a form's entries count
#: to this many digits. `gortho.studies.toptag.page` says how it was chosen.
FORM_SHARE = 1 / 30


def batch_plan(
    lengths: Tensor, batch_size: int, seed: int, epoch: int, longest: int, bucket: bool
) -> tuple[Tensor, list[int]]:
    """Jets of an epoch in order ``(steps · batch_size,)``, and the length that each batch is cut to.

    Bucketed batches hold jets of about one length: jets are sorted within chunks, and batches then shuffled.
    """
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    steps = len(lengths) // batch_size
    order = torch.randperm(len(lengths), generator=generator)[: steps * batch_size]
    if not bucket:
        return order, [longest] * steps
    chunks = [chunk[lengths[chunk].argsort(stable=True)] for chunk in order.split(CHUNK * batch_size)]
    batches = torch.cat(chunks).view(steps, batch_size)[torch.randperm(steps, generator=generator)]
    needed = lengths[batches].amax(1).clamp(min=1)
    cut = ((needed + LENGTH_STEP - 1) // LENGTH_STEP * LENGTH_STEP).clamp(max=longest)
    return batches.flatten(), cut.tolist()


def groups(
    net: Any, lr: float, form_lr: float | None = None, weight_decay: float = 0.01
) -> list[dict[str, Any]]:
    """Parameters with their peak learning rates. Only matrices decay: powers, biases and norms have their own sizes."""
    form = list(net.form.parameters()) if isinstance(net.form, LearnableForm) else []
    own = {id(p) for p in form}
    weights = [p for p in net.parameters() if id(p) not in own]
    found: list[dict[str, Any]] = [
        {"params": [p for p in weights if p.ndim > 1], "peak": lr, "weight_decay": weight_decay},
        {"params": [p for p in weights if p.ndim <= 1], "peak": lr, "weight_decay": 0.0},
    ]
    if form:
        peak = FORM_SHARE * lr if form_lr is None else form_lr
        found.append({"params": form, "peak": peak, "weight_decay": 0.0})
    return found


def stepper(
    net: Any,
    data: Sample,
    batch_size: int,
    *,
    lr: float = 3e-3,
    form_lr: float | None = None,
    weight_decay: float = 0.01,
    clip: float = 1.0,
    drop: float = 0.0,
    amp: bool = False,
    compile: bool = False,
    graph: bool = False,
    fabric: Any = None,
    say: Callable[[str], Any] = lambda text: None,
    kinds: Sequence[dict[str, Any]] = (),
    penalty: Callable[[], Tensor | float] = lambda: 0.0,
) -> Stepper:
    """What makes the steps of a tagger: batches are jets and the length that they are cut to; see `train`."""
    fabric = fabric or OneProcess(data.x.device)
    graph = graph and data.x.device.type == "cuda"
    clipped = [kind["params"] for kind in kinds] or [net.parameters()]
    each = [{"weight_decay": 0.0, **kind} for kind in kinds] or groups(net, lr, form_lr, weight_decay)
    for group in each:
        group["lr"] = torch.tensor(lr, device=data.x.device) if graph else lr
    optimizer = torch.optim.AdamW(each, fused=True, capturable=graph)

    def loss(rows: Tensor, length: int, model: Any = None) -> Tensor:
        x = data.x[:, :length].index_select(0, rows)
        mask = data.mask[:, :length].index_select(0, rows)
        label = data.label.index_select(0, rows)
        if drop:
            mask = mask & (torch.rand(mask.shape, device=mask.device) >= drop)
        with torch.autocast(x.device.type, torch.bfloat16, enabled=amp, cache_enabled=False):
            score = (fitted if model is None else model)(x, mask)  # a compiled network has no truth value
        return nn.functional.binary_cross_entropy_with_logits(score.to(label.dtype), label) + penalty()

    fitted = net
    if compile:
        some = torch.arange(batch_size, device=data.x.device) % len(data)
        fitted = compiled(net, lambda model: loss(some, data.x.shape[1], model).backward(), say)
    fitted, optimizer = fabric.setup(fitted, optimizer)
    options: dict[str, Any] = {"clip": clip, "fabric": fabric, "leave_out": True}
    if graph:
        return Recorded(optimizer, loss, clipped, batch_size=batch_size, **options)
    return Stepper(optimizer, loss, clipped, **options)


def train(
    net: Any,
    train: Sample,
    validation: Sample,
    *,
    epochs: int = 40,
    batch_size: int = 256,
    average: float = 0.999,
    bucket: bool = False,
    graph: bool | None = None,
    calibrate: bool = True,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    fabric: Any = None,
    progress: bool | None = None,
    **options: Any,
) -> History:
    """Train a tagger, or a rival, where it is, and leave it in its best state on validation jets.

    Args:
        net: the network; its form is trained too if it is a `LearnableForm`.
        train, validation: jets; they are brought to the network's device. Of several processes each is given its own,
            ``Sample.of(jets, share(rows, fabric))``.
        batch_size: jets of a step, of all processes together.
        average: decay of the running mean of weights that is validated and kept; 0 keeps the weights themselves.
        bucket: cut batches of jets of about one length to that length; worth it without the fused kernel, which
            skips padding by itself.
        graph: record steps as CUDA graphs; by default on CUDA with one process.
        calibrate: fit the network's units to the training jets first.
        checkpoint: file (.safetensors) written after each epoch and resumed from if it exists; all processes read it.
        fabric: of several processes (`processes.launched`); they all call this and end with the same weights.
        progress: show a progress bar; by default in a terminal or a notebook.
        options: lr, form_lr: peak learning rates of AdamW for the weights and for the form (`FORM_SHARE` of it by
            default), with a linear warm-up and a cosine to zero; weight_decay; clip; drop: share of constituents left
            out at random; amp: layers in bfloat16; compile: compile the network first, and go on without where that
            fails; say: what to do with words about it; kinds: groups of parameters with their peaks, whose gradients
            are clipped kind by kind, in place of weights and form; penalty: what is added to the loss.
    """
    device, dtype = net.x_scale.device, net.x_scale.dtype
    fabric = fabric or OneProcess(device)
    world = fabric.world_size
    jets = _jets_of_each(train, fabric)
    batch_size = min(batch_size, jets * world)
    if epochs < 1 or batch_size < 1:
        raise ValueError(f"epochs = {epochs}, batch_size = {batch_size}: both are at least 1")
    if batch_size % world:
        raise ValueError(f"batch_size = {batch_size}: give a multiple of the {world} processes")
    part = batch_size // world
    train, validation = train.to(device, dtype), validation.to(device, dtype)
    if calibrate:
        some = min(jets, math.ceil(CALIBRATION / world))
        x, mask = (
            fabric.all_gather(t[:some]).reshape(-1, *t.shape[1:]) for t in (train.x, train.mask.float())
        )
        net.calibrate(x, mask > 0)
    longest = train.x.shape[1]
    lengths = (train.mask[:jets] * torch.arange(1, longest + 1, device=device)).amax(1).cpu()

    def batches(epoch: int) -> list[tuple[Tensor, int]]:
        order, cuts = batch_plan(lengths, part, seed, epoch, longest, bucket)
        cuts = gathered(fabric, *cuts).amax(0).int().tolist()
        return list(zip(order.to(device).split(part), cuts))

    graph = device.type == "cuda" and world == 1 if graph is None else graph
    step = stepper(net, train, part, graph=graph, fabric=fabric, **options)
    run = Run(net, step.optimizer, fabric, average=average, checkpoint=checkpoint)
    with run.until_it_ends(), torch.random.fork_rng(devices=[device.index] if device.type == "cuda" else []):
        score = partial(validation_loss, sample=validation, fabric=fabric)
        run.epochs(epochs, batches, step, score, seed=seed, progress=progress)
    return run.history


def _jets_of_each(train: Sample, fabric: Any) -> int:
    """Jets that every process trains on: as many as the one with the fewest has."""
    found = gathered(fabric, *train.x.shape, float(train.x[:64].double().sum()))
    if len(found[:, 1:3].unique(dim=0)) > 1:
        shapes = [tuple(shape) for shape in found[:, :3].int().tolist()]
        raise ValueError(f"the processes hold jets of shapes {shapes}: give all the same max_constituents")
    if len(found.unique(dim=0)) < len(found):
        raise ValueError(
            "processes hold the same jets: give each its own, Sample.of(jets, share(rows, fabric))"
        )
    return int(found[:, 0].min())


@torch.no_grad()
def logits(net: Any, sample: Sample, batch_size: int = 1024) -> Tensor:
    """Scores of jets, on the CPU, computed in pieces; above zero means top."""
    was_training = net.training
    net.eval()
    device, dtype = net.x_scale.device, net.x_scale.dtype
    pieces = [
        net(x.to(device, dtype), mask.to(device))
        for x, mask in zip(sample.x.split(batch_size), sample.mask.split(batch_size))
    ]
    net.train(was_training)
    return torch.cat(pieces).cpu()


def losses(net: Any, sample: Sample) -> Tensor:
    """Cross entropy, jet by jet, on the CPU in float64."""
    label = sample.label.cpu().double()
    return nn.functional.binary_cross_entropy_with_logits(
        logits(net, sample).double(), label, reduction="none"
    )


def validation_loss(net: Any, sample: Sample, fabric: Any = None) -> float:
    """Mean cross entropy over the jets of all processes."""
    found = gathered(fabric or OneProcess(), float(losses(net, sample).sum()), len(sample))
    total, count = found.sum(0).tolist()
    return total / count


def evaluate(net: Any, sample: Sample) -> dict[str, Any]:
    """Accuracy, AUC and background rejection with their errors, and the curve that `pictures.draw_roc` draws."""
    label, score = sample.label.cpu().numpy(), logits(net, sample).numpy()
    return metrics.summary(label, score) | {"roc": metrics.roc(label, score)}
