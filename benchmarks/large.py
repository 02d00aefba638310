"""One pass over many rows: how fast, in how much memory, and whether workers give the same answer.

A folder of Parquet files with 500,000 particles each (E, px, py, pz and mass; 43 bytes a row on disk) is read by
`gortho.survey`: by one process with one thread, and by a local Dask cluster of two workers with one thread each. Each
measurement is a process of its own, and begins once everything is imported. CPU seconds are those of the process, or
of the workers together: other work on the machine adds to the seconds, and less to these. MB are the largest resident
memory before the call and after it, of the larger worker where there are two. The folder of four times the rows has the
same files four times. Workers take more CPU seconds because Dask tells them to give memory back to the system at once
(MALLOC_TRIM_THRESHOLD_), so that each step asks for it again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = {"x": "E,px:pz", "y": "mass"}
FILE_ROWS = 500_000
#: On disk; random digits do not compress.
ROW_BYTES = 43


def make(folder: Path, files: int, times: int = 1) -> Path:
    """A folder of particles on their mass shell."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for k in range(files):
        rng = np.random.default_rng(k)
        p, mass = rng.normal(size=(FILE_ROWS, 3)), rng.uniform(0.5, 2.0, size=FILE_ROWS)
        columns = {"E": np.sqrt(mass**2 + 0.09 * (p**2).sum(1)), "px": p[:, 0], "py": p[:, 1], "pz": p[:, 2]}
        pq.write_table(pa.table(columns | {"mass": mass}), folder / f"{k:03}.parquet")
        for t in range(1, times):
            os.link(folder / f"{k:03}.parquet", folder / f"{k:03}-{t}.parquet")
    return folder


def used() -> tuple[float, float]:
    """CPU seconds so far, and the largest resident memory so far in MB (the unit of Linux is kB)."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def measure(folder: Path, workers: int, out: Path) -> None:
    """One measurement, in a process of its own: prints facts, and keeps what was added up."""
    import gortho

    with tempfile.TemporaryDirectory() as few:  # everything is imported by a first call
        gortho.survey(make_small(Path(few)), **COLUMNS, max_samples=100)
    before = [used()]
    if workers:
        from dask.distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
            tempfile.TemporaryDirectory() as few,
        ):
            gortho.survey(make_small(Path(few)), **COLUMNS, max_samples=100, client=client)
            client.run(_imports)
            before = list(client.run(used).values())
            start = time.perf_counter()
            seen = gortho.survey(folder, **COLUMNS, client=client)
            seconds = time.perf_counter() - start
            after = list(client.run(used).values())
    else:
        start = time.perf_counter()
        seen = gortho.survey(folder, **COLUMNS)
        seconds = time.perf_counter() - start
        after = [used()]
    totals: Any = seen.totals
    values, rows = totals.kept.in_order()
    moments = totals.also.total.numpy()
    np.savez(out, values=values, rows=rows, moments=moments, low=totals.low, high=totals.high)
    cpu = sum(b[0] - a[0] for a, b in zip(before, after))
    memory = {"before": max(b[1] for b in before), "after": max(a[1] for a in after)}
    print(json.dumps({"rows": seen.rows, "seconds": seconds, "cpu": cpu, **memory}))


def make_small(folder: Path) -> Path:
    """A thousand rows."""
    import pandas as pd

    table = pd.DataFrame(
        np.random.default_rng(0).normal(size=(1000, 5)), columns=["E", "px", "py", "pz", "mass"]
    )
    table.to_parquet(folder / "a.parquet")
    return folder


def _imports() -> None:
    import gortho.discovery.large  # noqa: F401


def run(folder: Path, workers: int, out: Path) -> dict[str, Any]:
    """The measurement in a new process with one thread."""
    words = [
        sys.executable,
        __file__,
        "--measure",
        str(folder),
        "--workers",
        str(workers),
        "--keep",
        str(out),
    ]
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    done = subprocess.run(words, env=os.environ | threads, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def difference(one: Path, other: Path) -> str:
    """How far two answers are apart, in words."""
    a, b = np.load(one), np.load(other)
    alike = all(np.array_equal(a[name], b[name]) for name in ("values", "rows", "low", "high"))
    apart = np.abs(a["moments"] - b["moments"]).max() / np.abs(a["moments"]).max()
    told = "identical" if alike else "DIFFERENT"
    return f"sample and ranges {told}, largest difference of the sums {apart:.1g} of the largest sum"


def rounded(rate: float) -> str:
    """Three digits."""
    return f"{float(f'{rate:.3g}'):,.0f}"


def on_paper(rate: float) -> str:
    """What 10¹⁰ rows would take at so many rows a CPU second of a worker."""
    hours = 1e10 / rate / 3600
    disks = 100 * rate * ROW_BYTES / 1e9
    told = [
        f"**10¹⁰ rows, on paper.** A worker takes {rounded(rate)} rows a CPU second (the last line).",
        f"10¹⁰ rows of this kind then take {hours:.1f} core-hours: {60 * hours / 16:.0f} minutes on 16 cores,",
        f"{60 * hours / 100:.1f} minutes on 100 if the disks can give them {ROW_BYTES * 10:.0f} GB at {disks:.1f} GB",
        "a second; a slower disk sets the time. There are 10,000 pieces of a million rows. Each worker holds a block",
        "and a few samples, as here. Each addition of two pieces moves a sample of 50,000 rows, 2.8 MB with keys and",
        "numbers, so 28 GB move between workers in all. Dask's scheduler has 30,000 tasks to hand out; at the 2 to 4",
        "ms that an empty task took on this machine, that is one to two minutes, beside the reading. Search, fits and",
        "verdict see the sample, and take as long as for 50,000 rows. None of this was run.",
    ]
    return textwrap.fill(" ".join(told), 120)


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=6, help="files of 500,000 rows")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure is not None:
        measure(given.measure, given.workers, given.keep)
        return
    rows = []
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        folders = [make(base / "once", given.files), make(base / "times4", given.files, 4)]
        for folder in folders:
            for workers in (0, 2):
                found = run(folder, workers, base / f"{folder.name}{workers}.npz")
                rows.append(
                    {
                        "rows": f"{found['rows']:,}",
                        "read by": f"{workers} workers" if workers else "one process",
                        "seconds": f"{found['seconds']:.1f}",
                        "rows a second": rounded(found["rows"] / found["seconds"]),
                        "CPU seconds": f"{found['cpu']:.1f}",
                        "rows a CPU second": rounded(found["rows"] / found["cpu"]),
                        "MB before": f"{found['before']:.0f}",
                        "MB after": f"{found['after']:.0f}",
                    }
                )
                print(rows[-1], flush=True)
        same = difference(base / "once0.npz", base / "once2.npz")
    from _table import write  # here, since processes that are measured shall not import it

    rate = float(rows[3]["rows a CPU second"].replace(",", ""))
    text = f"{(__doc__ or '').strip()}\n\nOne process and two workers: {same}.\n\n{on_paper(rate)}"
    write(
        given.out,
        "large",
        "Many rows",
        text,
        rows,
        load=f"{os.getloadavg()[1]:.1f} processes at work, on average",
    )


if __name__ == "__main__":
    main()
