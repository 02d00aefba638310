"""Training of taggers, on a CPU, a GPU or in several processes, all jets on the device.

Batches follow from (seed, epoch) alone, so a run that was killed goes on from its checkpoint as if nothing had
happened. On CUDA a whole step, from picking jets to updating weights, is recorded once as a CUDA graph for each length
of jets and then replayed, because the kernels of such a small network take less time than starting them.

Under torchrun every process reads its own share of the jets (`gortho.toptag.parallel.shard`), makes its part of each
batch from them, and the gradients are averaged: that is the step which one process would make with the parts together.
"""

from __future__ import annotations

import copy
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from gortho import checkpoints
from gortho.checkpoints import History, snapshot
from gortho.nn.form import LearnableForm
from gortho.nn.pairnet import CALIBRATION
from gortho.toptag import metrics, parallel
from gortho.toptag.jets import Jets
from gortho.toptag.tagger import Tagger
from gortho.training import learning_rate

#: Batches whose jets are sorted by length among each other when jets are bucketed.
CHUNK = 64
#: Lengths of bucketed jets are multiples of this.
LENGTH_STEP = 16
#: Learning rate of a form in units of that of the weights: m² is a hundredth of E² or less, so a form's entries count
#: to so many digits. `gortho.toptag.page` says how it was chosen.
FORM_SHARE = 1 / 30
#: Steps run before a CUDA graph is recorded.
WARM_UP = 3
#: Training ends when more than this share of an epoch's steps, and more than one, had to be left out.
TOLERATED = 0.1


@dataclass
class Sample:
    """Jets as padded tensors: momenta ``(M, N, n)``, which of them are real ``(M, N)``, and labels ``(M,)``."""

    x: Tensor
    mask: Tensor
    label: Tensor

    @classmethod
    def of(cls, jets: Jets, rows: Any = slice(None), max_constituents: int = 64) -> Sample:
        """Chosen rows of `Jets`."""
        rows = np.atleast_1d(np.arange(len(jets))[rows])
        if len(rows) == 0:
            raise ValueError("no jet is selected: give at least one row")
        pieces = [jets.padded(rows[i : i + 50_000], max_constituents) for i in range(0, len(rows), 50_000)]
        x, mask = (torch.cat(part) for part in zip(*pieces))
        return cls(x, mask, torch.from_numpy(np.asarray(jets.label[rows], dtype=np.float32)))

    def __len__(self) -> int:
        return len(self.label)

    def __add__(self, other: Sample) -> Sample:
        x, mask, label = (
            torch.cat([getattr(s, name) for s in (self, other)]) for name in ("x", "mask", "label")
        )
        return Sample(x, mask, label)

    def to(self, device: Any, dtype: torch.dtype | None = None) -> Sample:
        """The same jets elsewhere."""
        return Sample(self.x.to(device, dtype), self.mask.to(device), self.label.to(device, dtype))


def plan(
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


class Stepper:
    """One training step: pick jets, forward, backward, clip, update; recorded as a CUDA graph if wanted.

    A step whose gradient overflows is left out: messages multiply what points carry, so from layer to layer a rare
    jet can grow beyond float32, and one such jet in a million must not undo the training.

    Args:
        net: the tagger; it stays as it is, also when a compiled copy of it does the work.
        data: training jets, on the device of the network.
        batch_size: jets of a step, in each process.
        lr, form_lr, weight_decay, clip: as in `train`.
        drop: share of constituents left out at random.
        amp: layers in bfloat16; products, embeddings and sums stay in float32.
        compile: compile the network.
        graph: record CUDA graphs.
    """

    def __init__(
        self,
        net: Tagger,
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
    ):
        self.net, self.data, self.clip, self.drop, self.amp = net, data, clip, drop, amp
        self.device = data.x.device
        self.graph = graph and self.device.type == "cuda"
        self.parameters = list(net.parameters())
        form = list(net.form.parameters()) if isinstance(net.form, LearnableForm) else []
        own = {id(p) for p in form}
        weights = [p for p in self.parameters if id(p) not in own]
        # Only matrices decay; powers, biases and norms are few and have a size of their own.
        groups: list[dict[str, Any]] = [
            {"params": [p for p in weights if p.ndim > 1], "peak": lr, "weight_decay": weight_decay},
            {"params": [p for p in weights if p.ndim <= 1], "peak": lr, "weight_decay": 0.0},
        ]
        if form:
            peak = FORM_SHARE * lr if form_lr is None else form_lr
            groups.append({"params": form, "peak": peak, "weight_decay": 0.0})
        for group in groups:
            group["lr"] = torch.tensor(lr, device=self.device) if self.graph else lr
        self.optimizer = torch.optim.AdamW(groups, fused=True, capturable=self.graph)
        self.model: Any = torch.compile(net, dynamic=False) if compile else net
        self.rows = torch.zeros(batch_size, dtype=torch.int64, device=self.device)
        self.total, self.left_out = data.label.new_zeros(()), data.label.new_zeros(())
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.pool: Any = None

    def rate(self, step: int, steps: int) -> None:
        """Set the learning rates of this step."""
        for group in self.optimizer.param_groups:
            value = learning_rate(step, steps, group["peak"])
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(value)
            else:
                group["lr"] = value

    def __call__(self, rows: Tensor, length: int) -> None:
        """Train on these jets, cut to a length; the loss is added to ``total``, or the step to ``left_out``."""
        self.rows.copy_(rows)
        if not self.graph:
            self._step(length)
            return
        if length not in self.graphs:
            self.record(length)
        self.graphs[length].replay()

    def _step(self, length: int) -> None:
        x = self.data.x[:, :length].index_select(0, self.rows)
        mask = self.data.mask[:, :length].index_select(0, self.rows)
        label = self.data.label.index_select(0, self.rows)
        if self.drop:
            mask = mask & (torch.rand(mask.shape, device=mask.device) >= self.drop)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.amp, cache_enabled=False):
            logits = self.model(x, mask)
        loss = nn.functional.binary_cross_entropy_with_logits(logits.to(label.dtype), label)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        parallel.average_gradients(self.parameters)
        norm = nn.utils.clip_grad_norm_(self.parameters, self.clip or math.inf, foreach=True)
        overflow = ~norm.isfinite()
        # As gradient scalers do: the fused optimizer then changes nothing, without the CPU being asked.
        self.optimizer.found_inf = overflow.float()  # type: ignore[attr-defined]
        self.optimizer.step()
        self.total += torch.where(overflow, 0.0, loss.detach())
        self.left_out += overflow

    def record(self, length: int) -> None:
        """Record the step for jets of this length; weights and optimizer are left as they were."""
        weights = [p.detach().clone() for p in self.parameters]
        states = {p: {k: v.clone() for k, v in s.items()} for p, s in self.optimizer.state.items()}
        counters = (self.total, self.left_out, self.rows)
        counted = [value.clone() for value in counters]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self._step(length)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph, pool=self.pool):
            self._step(length)
        self.pool = graph.pool()
        self.graphs[length] = graph
        with torch.no_grad():
            for p, before in zip(self.parameters, weights):
                p.copy_(before)
            for key, state in self.optimizer.state.items():
                for name, value in state.items():
                    if key in states:
                        value.copy_(states[key][name])
                    else:
                        value.zero_()
            for value, before in zip(counters, counted):
                value.copy_(before)


def train(
    net: Tagger,
    train: Sample,
    validation: Sample,
    *,
    epochs: int = 40,
    batch_size: int = 256,
    lr: float = 3e-3,
    form_lr: float | None = None,
    weight_decay: float = 0.01,
    clip: float = 1.0,
    average: float = 0.999,
    drop: float = 0.0,
    bucket: bool = False,
    amp: bool = False,
    compile: bool = False,
    graph: bool | None = None,
    calibrate: bool = True,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: bool | None = None,
) -> History:
    """Train a tagger where it is, and leave it in its best state on validation jets.

    Args:
        net: the tagger; its form is trained too if it is a `LearnableForm`.
        train, validation: jets; they are brought to the network's device. Of several processes each is given its own,
            ``Sample.of(jets, shard(rows))``.
        batch_size: jets of a step, of all processes together.
        lr, form_lr: peak learning rates of AdamW for the weights and for the form (`FORM_SHARE` of it by default),
            with a linear warm-up and a cosine to zero.
        average: decay of the running mean of weights that is validated and kept; 0 keeps the weights themselves.
        drop: share of constituents left out at random in training.
        bucket: cut batches of jets of about one length to that length; worth it without the fused kernel, which
            skips padding by itself.
        amp: layers in bfloat16.
        compile: compile the network first.
        graph: record steps as CUDA graphs; by default on CUDA with one process.
        calibrate: fit the network's units to the training jets first.
        checkpoint: file (.safetensors) written after each epoch and resumed from if it exists; all processes read it.
        progress: show a progress bar; by default when a person is watching.

    Several processes, started by torchrun, all call this and all end with the same weights.
    """
    device, dtype = net.x_scale.device, net.x_scale.dtype
    rank, world = parallel.start(device)
    jets = _jets_of_each(train)
    batch_size = min(batch_size, jets * world)
    if epochs < 1 or batch_size < 1:
        raise ValueError(f"epochs = {epochs}, batch_size = {batch_size}: both are at least 1")
    if batch_size % world:
        raise ValueError(f"batch_size = {batch_size}: give a multiple of the {world} processes")
    part = batch_size // world
    train, validation = train.to(device, dtype), validation.to(device, dtype)
    longest = train.x.shape[1]
    if calibrate:
        some = min(jets, math.ceil(CALIBRATION / world))
        pieces = parallel.gather((train.x[:some].cpu(), train.mask[:some].cpu()))
        net.calibrate(*(torch.cat(kind) for kind in zip(*pieces)))
    if world > 1:
        net.load_state_dict(parallel.gather({k: v.cpu() for k, v in net.state_dict().items()})[0])
    positions = torch.arange(1, longest + 1, device=device)
    lengths = (train.mask[:jets] * positions).amax(1).cpu()
    step = Stepper(
        net,
        train,
        part,
        lr=lr,
        form_lr=form_lr,
        weight_decay=weight_decay,
        clip=clip,
        drop=drop,
        amp=amp,
        compile=compile,
        graph=(device.type == "cuda" and world == 1) if graph is None else graph,
    )
    mean = copy.deepcopy(net)
    both = nn.ModuleDict({"net": net, "mean": mean})
    history, best, first = History(), snapshot(mean), 0
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and path.exists():
        history, best, first = checkpoints.load(path, both, step.optimizer)
        if history.ended.startswith("stopped"):
            first = epochs
    if len(set(parallel.gather((first, history.best_validation)))) > 1:
        raise ValueError(
            f"the processes found different checkpoints at {path}: put it where all of them see it, or delete it"
        )
    averaged: list[Tensor] = list(mean.parameters())
    weights: list[Tensor] = list(net.parameters())
    show = sys.stderr.isatty() if progress is None else progress
    hide = not show or rank != 0
    bar = tqdm(range(first, epochs), "training", initial=first, total=epochs, unit="epoch", disable=hide)
    started = time.perf_counter() - history.seconds
    try:
        with torch.random.fork_rng(devices=[device.index] if device.type == "cuda" else []):
            for epoch in bar:
                order, cuts = plan(lengths, part, seed, epoch, longest, bucket)
                cuts = [max(cut) for cut in zip(*parallel.gather(cuts))]
                rows = order.to(device).split(part)
                net.train()
                for cut in sorted(set(cuts)) if step.graph else ():
                    if cut not in step.graphs:
                        step.rows.copy_(rows[0])
                        step.record(cut)
                torch.manual_seed((seed * 1_000_003 + epoch) * world + rank)
                step.total.zero_()
                step.left_out.zero_()
                for i, cut in enumerate(cuts):
                    done = epoch * len(cuts) + i
                    step.rate(done, epochs * len(cuts))
                    step(rows[i], cut)
                    keep = min(average, (done + 1) / (done + 10))  # short memory at first
                    with torch.no_grad():
                        torch._foreach_lerp_(averaged, weights, 1 - keep)
                left_out = int(step.left_out)  # the same in all processes
                history.left_out += left_out
                taken = max(1, len(cuts) - left_out)
                history.train.append(sum(parallel.gather(float(step.total))) / world / taken)
                score = validate(mean, validation)
                history.validation.append(score["loss"])
                if score["loss"] < history.best_validation:
                    history.best_validation, history.best_epoch = score["loss"], epoch
                    best = snapshot(mean)
                history.seconds = time.perf_counter() - started
                bar.set_postfix(train=f"{history.train[-1]:.4f}", accuracy=f"{score['accuracy']:.4f}")
                if left_out > max(1, TOLERATED * len(cuts)):
                    history.ended = (
                        f"stopped in epoch {epoch + 1}, where gradients of {left_out} of {len(cuts)} steps were not "
                        f"finite; the best state so far is kept: try a smaller lr than {lr}"
                    )
                if path is not None and rank == 0:
                    checkpoints.save(path, both, step.optimizer, best, history, epoch + 1)
                parallel.gather(None)  # no process is ahead of the checkpoint
                if history.ended.startswith("stopped"):
                    break
    except KeyboardInterrupt:
        history.ended = f"interrupted in epoch {len(history.train)}; the best state so far is kept"
    finally:
        net.load_state_dict(best)
        net.eval()
    return history


def _jets_of_each(train: Sample) -> int:
    """Jets that every process trains on: as many as the one with the fewest has."""
    found = parallel.gather((tuple(train.x.shape), float(train.x[:64].double().sum())))
    shapes = [shape for shape, _ in found]
    if len({shape[1:] for shape in shapes}) > 1:
        raise ValueError(f"the processes hold jets of shapes {shapes}: give all the same max_constituents")
    if len(set(found)) < len(found):
        raise ValueError("processes hold the same jets: give each its own, Sample.of(jets, shard(rows))")
    return min(shape[0] for shape in shapes)


@torch.no_grad()
def logits(net: Tagger, sample: Sample, batch_size: int = 1024) -> Tensor:
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


def validate(net: Tagger, sample: Sample) -> dict[str, float]:
    """Cross entropy and accuracy, over the jets of all processes."""
    scores, label = logits(net, sample).double(), sample.label.cpu().double()
    loss = nn.functional.binary_cross_entropy_with_logits(scores, label, reduction="sum")
    right = ((scores > 0) == (label > 0.5)).sum()
    total, rights, count = map(sum, zip(*parallel.gather((float(loss), int(right), len(sample)))))
    return {"loss": total / count, "accuracy": rights / count}


def evaluate(net: Tagger, sample: Sample) -> dict[str, float | None]:
    """Accuracy, AUC and background rejection with their errors; see `gortho.toptag.metrics`."""
    return metrics.summary(sample.label.cpu().numpy(), logits(net, sample).numpy())
