"""The one training loop: epochs of steps, the best state on validation data, checkpoints, and every way to end.

Batches follow from (seed, epoch) alone, so a run killed at any moment goes on from its last checkpoint as if nothing
had happened. What differs between exact networks, taggers, rivals and baselines are batches, losses and scores, which
the callers hand in (`gortho.training.fit`, `gortho.studies.toptag.train`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from gortho.progress import somebody_watches, tqdm
from gortho.training import checkpoints
from gortho.training.checkpoints import Ended, History, snapshot
from gortho.training.processes import gathered
from gortho.training.steppers import Stepper

#: Training ends when more than this share of an epoch's steps, and more than one, had to be left out.
TOLERATED = 0.1
#: Ways to end that a run started again does not go on from.
FINAL = (Ended.OVERFLOW,)
#: Batches of an epoch: the numbers of their samples, and a key for the loss.
Batches = Sequence[tuple[Tensor, int]]


class _Stopped(Exception):
    """The caller's ``stop`` said so."""


def averaged(net: nn.Module, decay: float) -> AveragedModel:
    """A running mean of weights, with a short memory at first."""

    def blend(means: Any, weights: Any, _: Any) -> None:
        done = int(mean.n_averaged)
        torch._foreach_lerp_(means, weights, 1 - min(decay, (done + 1) / (done + 10)))

    mean = AveragedModel(net, multi_avg_fn=blend)
    return mean


class Run:
    """A training with its history, the best state so far and its checkpoint.

    Args:
        net: what is trained; it ends in the best state.
        optimizer: of the same.
        fabric: of one process or several.
        average: decay of a running mean of weights that is scored and kept; 0 keeps the weights themselves.
        checkpoint: file (.safetensors) written after each epoch and resumed from if it exists; all processes read it.
        stop: asked after each score; training ends when it says so, as if interrupted.
    """

    def __init__(
        self,
        net: nn.Module,
        optimizer: Any,
        fabric: Any,
        *,
        average: float = 0.0,
        checkpoint: str | Path | None = None,
        stop: Callable[[], bool] = lambda: False,
    ):
        self.net, self.optimizer, self.fabric, self.stop = net, optimizer, fabric, stop
        self.mean = averaged(net, average) if average else None
        self.kept = net if self.mean is None else self.mean.module
        self.stored = net if self.mean is None else nn.ModuleDict({"net": net, "mean": self.mean})
        self.history, self.best, self.first = History(), snapshot(self.kept), 0
        self.path = None if checkpoint is None else Path(checkpoint)
        if self.path is not None and self.path.exists():
            self.history, self.best, self.first = checkpoints.load(self.path, self.stored, optimizer)
            if self.history.how not in FINAL:
                self.history.how, self.history.ended = History().how, History().ended
        found = gathered(fabric, self.first, self.history.best_validation)
        if not bool((found == found[0]).all()):
            raise ValueError(
                f"the processes found different checkpoints at {self.path}: put it where all see it, or delete it"
            )
        self.started = time.perf_counter() - self.history.seconds

    def keep_best(self, scores: Iterable[float]) -> None:
        """Note validation losses as they come, and the state of the network where they are lowest."""
        for score in scores:
            if self.stop():
                raise _Stopped
            self.history.validation.append(score)
            if score < self.history.best_validation:
                self.history.best_validation = score
                self.history.best_epoch = len(self.history.validation) - 1
                self.best = snapshot(self.kept)

    def back_to_the_best(self) -> None:
        """Leave the network in its best state."""
        self.net.load_state_dict(self.best)

    def _end(self, how: Ended, words: str) -> None:
        self.history.how, self.history.ended = how, words

    @contextmanager
    def until_it_ends(self) -> Iterator[None]:
        """Within: Ctrl-C and the caller's stop end the training; after it the network is in its best state."""
        try:
            yield
        except _Stopped:
            self._end(Ended.STOPPED, "the time given was spent; the best state so far is kept")
        except KeyboardInterrupt:
            done = len(self.history.train)
            self._end(Ended.INTERRUPTED, f"interrupted in epoch {done}; the best state so far is kept")
        finally:
            self.back_to_the_best()
            self.net.eval()

    def epochs(
        self,
        count: int,
        batches: Callable[[int], Batches],
        step: Stepper,
        score: Callable[[Any], float],
        *,
        seed: int | None = None,
        patience: int | None = None,
        exact: float = 0.0,
        progress: bool | None = None,
    ) -> None:
        """Train for so many epochs in all.

        Args:
            batches: those of an epoch.
            step: makes the steps.
            score: the validation loss of a network.
            seed: of random numbers within steps; without one they are the caller's.
            patience: end after so many epochs without a better score.
            exact: a score below this is rounding, and ends the training.
            progress: show a progress bar; by default in a terminal or a notebook.
        """
        show = (somebody_watches() if progress is None else progress) and self.fabric.global_rank == 0
        todo = range(count, count) if self.history.how in FINAL else range(self.first, count)
        bar = tqdm(todo, "training", initial=self.first, total=count, unit="epoch", disable=not show)
        for epoch in bar:
            if self._enough(patience, exact):
                return
            self._epoch(epoch, count, batches(epoch), step, seed)
            self.keep_best([score(self.kept)])
            self.history.seconds = time.perf_counter() - self.started
            losses = {"train": self.history.train[-1], "validation": self.history.validation[-1]}
            bar.set_postfix({name: f"{loss:.3g}" for name, loss in losses.items()})
            if self.path is not None and self.fabric.global_rank == 0:
                checkpoints.save(self.path, self.stored, self.optimizer, self.best, self.history, epoch + 1)
            self.fabric.barrier()  # no process is ahead of the checkpoint
            if self.history.how in (Ended.OVERFLOW, Ended.DIVERGED):
                return

    def _enough(self, patience: int | None, exact: float) -> bool:
        history = self.history
        if history.best_validation < exact:
            self._end(Ended.EXACT, "the validation loss is down to rounding")
            return True
        idle = min(len(history.train), len(history.validation) - 1 - history.best_epoch)
        if patience is not None and idle >= patience:  # asked here, so that a resumed run stops too
            self._end(Ended.PATIENCE, f"no better validation loss for {patience} epochs")
            return True
        return False

    def _epoch(self, epoch: int, epochs: int, batches: Batches, step: Stepper, seed: int | None) -> None:
        rank, world = self.fabric.global_rank, self.fabric.world_size
        self.net.train()
        step.begin(batches)
        if seed is not None:
            torch.manual_seed((seed * 1_000_003 + epoch) * world + rank)
        for i, (rows, key) in enumerate(batches):
            step.rate(epoch * len(batches) + i, epochs * len(batches))
            step(rows, key)
            if self.mean is not None:
                self.mean.update_parameters(self.net)
        left_out = int(step.left_out)  # the same in all processes
        self.history.left_out += left_out
        taken = max(1, len(batches) - left_out)
        loss = float(gathered(self.fabric, float(step.total)).mean()) / taken
        self.history.train.append(loss)
        lr = max(group["peak"] for group in self.optimizer.param_groups)
        if left_out > max(1, TOLERATED * len(batches)):
            self._end(
                Ended.OVERFLOW,
                f"stopped in epoch {epoch + 1}, where gradients of {left_out} of {len(batches)} steps were not finite; "
                f"the best state so far is kept: try a smaller lr than {lr:g}",
            )
        elif not math.isfinite(loss):
            self._end(
                Ended.DIVERGED, f"the loss became {loss} in epoch {epoch}: try a smaller lr than {lr:g}"
            )
