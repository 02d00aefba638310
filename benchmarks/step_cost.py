"""What exactness costs: a training step of the exact set network against a plain MLP of the same width.

Both take the same points with one scalar each and put out an n x n matrix; a step is forward, backward and AdamW.
The MLP has three hidden layers with SiLU on the flattened input; the exact network has depth 2 (a layer in, and
two gated blocks). At the base size and with 64 points both are measured compiled (torch.compile) and not. Sets of more
than 12 points meet their pairs in message sums (`gortho.nn.sets`). Steps of the two are
interleaved and the medians of their CPU seconds compared, on one thread unless told otherwise, because machines
are noisy.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from _table import write
from torch import nn

import gortho

BASE = {"batch": 1024, "points": 5, "n": 3}
GROWTH = {"points": [1, 2, 10, 20, 64], "n": [2, 4, 8, 16], "batch": [64, 256, 4096]}


def steps(batch: int, points: int, n: int, width: int, compiled: bool) -> list[Callable[[], None]]:
    """One training step of the exact network, and one of the MLP."""
    x, m = torch.randn(batch, points, n), torch.rand(batch, points, 1)
    y = torch.randn(batch, n, n)
    exact = gortho.EquivariantNet(
        gortho.QuadraticForm.euclidean(n), points, "bilinear", point_scalars=1, set_like=True, width=width
    )
    exact.check_values = False  # as in training: the data set is checked once, before
    layers = [nn.Linear(points * (n + 1), width), nn.SiLU()]
    for _ in range(2):
        layers += [nn.Linear(width, width), nn.SiLU()]
    plain = nn.Sequential(*layers, nn.Linear(width, n * n))

    def make(net: nn.Module, predict: Callable[[], torch.Tensor]) -> Callable[[], None]:
        optimizer = torch.optim.AdamW(net.parameters(), fused=True)

        def step() -> None:
            optimizer.zero_grad()
            (predict() - y).square().mean().backward()
            optimizer.step()

        return step

    flat = torch.cat([x, m], dim=-1).flatten(1)
    run_exact, run_plain = (torch.compile(net) if compiled else net for net in (exact, plain))
    return [make(exact, lambda: run_exact(x, m)), make(plain, lambda: run_plain(flat).view(batch, n, n))]


def seconds(step: Callable[[], None]) -> float:
    start = time.process_time()
    step()
    return time.process_time() - start


def measure(repetitions: int, width: int, compiled: bool = False, **size: int) -> dict[str, object]:
    """Median times and their ratio at one size."""
    torch.manual_seed(0)
    pair = steps(**size, width=width, compiled=compiled)
    for step in pair:
        for _ in range(3):
            step()
    times = [[seconds(step) for step in pair] for _ in range(repetitions)]
    exact, plain = (statistics.median(t) for t in zip(*times))
    return {
        **size,
        "mode": "compiled" if compiled else "eager",
        "exact_ms": f"{1e3 * exact:.2f}",
        "mlp_ms": f"{1e3 * plain:.2f}",
        "ratio": f"{exact / plain:.2f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--repetitions", type=int, default=60, help="at the base size; a third elsewhere")
    parser.add_argument("--base-only", action="store_true", help="measure the base size, write nothing")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = [measure(options.repetitions, options.width, compiled, **BASE) for compiled in (True, False)]
    for row in rows:
        print(f"base {BASE}, {row['mode']}: ratio {row['ratio']}", flush=True)
    if options.base_only:
        return
    rows.append(measure(max(5, options.repetitions // 3), options.width, True, **{**BASE, "points": 64}))
    for axis, values in GROWTH.items():
        rows += [
            measure(max(5, options.repetitions // 3), options.width, **{**BASE, axis: v}) for v in values
        ]
    print(
        write(options.out, "step_cost", "Cost of a training step", __doc__ or "", rows, width=options.width)
    )


if __name__ == "__main__":
    main()
