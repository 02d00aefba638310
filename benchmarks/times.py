"""How long a discovery takes and how much memory, by dimension, vectors in a sample, and samples.

The law is y = sin q₁₁ + Σ q_ij of a hidden form of signature (n - 1, 1), x ~ N(0, I), with 1 % of noise;
for one vector y = sin q. One of dimension, vectors and samples is changed at a time. Each line is a process of its own
with one thread, and begins once everything is imported. CPU seconds are those of this process: what else runs on the
machine adds to the seconds by the clock, and less to these. MB are the largest resident memory before the call and
after it. One seed each: laws differ, so read these to a factor of two.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BASE = {"n": 3, "vectors": 2, "samples": 2_000}
CHANGES = {"n": (2, 4, 6, 8), "vectors": (1, 3, 4), "samples": (500, 10_000, 50_000)}


def problems() -> list[dict[str, int]]:
    """The base, and one thing changed at a time."""
    return [BASE] + [BASE | {name: value} for name, values in CHANGES.items() for value in values]


def one(n: int, vectors: int, samples: int) -> dict[str, Any]:
    """Measure in this process."""
    import numpy as np

    import gortho

    rng = np.random.default_rng(0)
    form = gortho.QuadraticForm.random(n - 1, 1, seed=0)
    x = rng.normal(size=(samples, vectors, n))
    q = np.einsum("npi,ij,nqj->npq", x, form.matrix.numpy(), x)
    y = np.sin(q[:, 0, 0]) + (q[:, 0, 1:].sum(1) if vectors > 1 else 0.0)
    y = y + 0.01 * y.std() * rng.normal(size=samples)
    small = gortho.Settings(starts=2, generations=1, refits=3, predictor_steps=5)
    gortho.discover(x[:100], y[:100], settings=small)  # imports
    before, cpu = _megabytes(), time.process_time()
    found = gortho.discover(x, y)
    seconds = time.process_time() - cpu
    near = None if found.candidate is None else found.candidate.cosine(form)
    return {
        "dimension": n,
        "vectors": vectors,
        "samples": f"{samples:,}",
        "CPU seconds": f"{seconds:.1f}",
        "MB before": round(before),
        "MB after": round(_megabytes()),
        "verdict": found.verdict.name,
        "cosine to the truth": "" if near is None else f"{near:.4f}",
    }


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(**json.loads(options.one))))
        return
    from _table import write

    environment = os.environ | {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    rows = []
    for problem in problems():
        command = [sys.executable, __file__, "--one", json.dumps(problem)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        rows.append(json.loads(answer.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    note = "shared with other work while this was measured, hence CPU seconds"
    write(options.out, "times", "Times and memory", __doc__.split("\n\n", 1)[1].strip(), rows, beside=note)


if __name__ == "__main__":
    main()
