"""How should a form be parametrised while it learns? Entries of A ("symmetric") against A = UᵀDU ("spectral").

Each task is trained from the same random starts (signature random too), with the same budget, once for each
parametrisation. A start succeeds when the final form is within d_PA < 0.05 of the truth (M7, M8).
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch
from _table import write

from gortho import EquivariantNet, LearnableForm, QuadraticForm, fit
from gortho.studies.tasks import Task, inertia, synthetic

SUCCESS = 0.05


def invariant(samples: int) -> Task:
    """A scalar law of two vectors under a random form of signature (1,3)."""
    form = QuadraticForm.random(1, 3, condition=3, seed=7)
    x = torch.randn(samples, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    gram = form.gram(x) / 4
    y = torch.tanh(gram[:, 0, 1]) + gram[:, 0, 0] * gram[:, 1, 1]
    return Task("invariant scalar O(1,3)", x, y, "scalar", form)


def final_distance(task: Task, parametrisation: str, seed: int, epochs: int) -> float:
    """d_PA to the truth after training from one random start."""
    form = LearnableForm(task.form.n, seed=seed, parametrisation=parametrisation)
    scalars = task.point_scalars
    net = EquivariantNet(
        form,
        task.points,
        task.output,
        point_scalars=0 if scalars is None else 1,
        set_like=scalars is not None,
        width=32,
        depth=1,
        seed=seed,
    )
    fit(net, task.x, task.y, point_scalars=scalars, epochs=epochs, batch_size=128, lr=1e-2, seed=seed)
    return task.form.algebra_distance(net.form.value())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--samples", type=int, default=600)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    for task in (invariant(options.samples), synthetic(options.samples), inertia(options.samples)):
        for parametrisation in ("symmetric", "spectral"):
            started = time.perf_counter()
            distances = [
                final_distance(task, parametrisation, s, options.epochs) for s in range(options.starts)
            ]
            rows.append(
                {
                    "task": task.name,
                    "parametrisation": parametrisation,
                    "success": f"{sum(d < SUCCESS for d in distances)}/{len(distances)}",
                    "best d_PA": f"{min(distances):.4f}",
                    "median d_PA": f"{statistics.median(distances):.4f}",
                    "seconds": f"{time.perf_counter() - started:.0f}",
                }
            )
            print(rows[-1], flush=True)
    seeds = f"0 to {options.starts - 1}"
    text = __doc__ or ""
    print(write(options.out, "parametrisation", "Parametrisations of a learnt form", text, rows, seeds=seeds))


if __name__ == "__main__":
    main()
