"""How many samples a form needs, and how long it takes: discovery beside LieGG on the same data.

    python benchmarks/samples_needed.py --seeds 5 --jobs 2

Task: the synthetic O(2,2) law in 4 dimensions (conjugation output, clean labels). Writes results/samples_needed.csv,
.md and .png. The last table gives, at 10,000 samples and in the same process, the time from the call to the end of
the search (whose form is measured) and to the end of `discover`, beside LieGG's whole run.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch
from _table import facts
from tqdm import tqdm

import gortho
from gortho import tasks
from gortho.baselines import LieGG, generator_distance

SIZES = [30, 100, 300, 1_000, 3_000, 10_000, 30_000]


def run(samples: int, seed: int) -> dict:
    """Both methods on one data set, one thread."""
    torch.set_num_threads(1)
    task = tasks.synthetic(samples + 2_000, seed=seed)
    x, y, x_test, y_test = task.x[:samples], task.y[:samples], task.x[samples:], task.y[samples:]
    ends: dict[str, float] = {}
    start = time.perf_counter()
    found = gortho.discover(
        x,
        y,
        task.output,
        seed=seed,
        watch=lambda stage, *_: ends.setdefault(stage, time.perf_counter() - start),
    )
    row: dict = {
        "samples": samples,
        "seed": seed,
        "verdict": found.verdict.name,
        "seconds": time.perf_counter() - start,
    }
    if found.candidate is not None and found.network is not None:
        row["d_PA"] = found.candidate.algebra_distance(task.form)
        row["search_d_PA"] = found.restarts[0].form.algebra_distance(task.form)
        row["search_seconds"] = ends.get("refits", row["seconds"])
        row["mse"] = float((gortho.training.predict(found.network, x_test) - y_test).square().mean())
    start = time.perf_counter()
    liegg = LieGG(task.output, seed=seed).fit(x, y)
    row["liegg_seconds"] = time.perf_counter() - start
    row["liegg_d_PA"] = generator_distance(liegg.generators, task.form)
    row["liegg_mse"] = float((liegg.predict(x_test) - y_test).square().mean())
    return row


def spread(values: list[float]) -> str:
    """Mean ± standard deviation."""
    if not values:
        return ""
    return f"{statistics.mean(values):.2g} ± {statistics.stdev(values) if len(values) > 1 else 0:.1g}"


def page(rows: list[dict], measured: dict) -> str:
    """The tables as Markdown."""
    text = "# Samples needed\n\n" + (__doc__ or "").split("\n\n")[2] + "\n\n"
    text += (
        "| N | verdicts FOUND | d_PA | d_PA, LieGG | MSE | MSE, LieGG | seconds | seconds, LieGG |\n|"
        + " --- |" * 8
        + "\n"
    )
    for n in SIZES:
        at = [r for r in rows if int(r["samples"]) == n]

        def column(key: str, at: list[dict] = at) -> str:
            return spread([float(r[key]) for r in at if r.get(key) not in (None, "")])

        found = sum(r["verdict"] == "FOUND" for r in at)
        keys = ("d_PA", "liegg_d_PA", "mse", "liegg_mse", "seconds", "liegg_seconds")
        text += f"| {n:,} | {found} of {len(at)} | " + " | ".join(column(k) for k in keys) + " |\n"
    at = [r for r in rows if int(r["samples"]) == 10_000]
    if at:
        text += "\n## Time to the form at 10,000 samples\n\n"
        text += "| seed | d_PA after the search | search, s | whole discovery, s | LieGG, s |\n"
        text += "|" + " --- |" * 5 + "\n"
        for r in at:
            values = [float(r[k]) for k in ("search_d_PA", "search_seconds", "seconds", "liegg_seconds")]
            text += (
                f"| {r['seed']} | " + " | ".join(f"{v:.2g}" if v < 1 else f"{v:.1f}" for v in values) + " |\n"
            )
    return text + "\n" + "\n".join(f"- {key}: {value}" for key, value in measured.items()) + "\n"


def plot(rows: list[dict], path: Path) -> None:
    """d_PA against N, each seed a dot, the median a line."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    for key, label, colour, marker in (
        ("d_PA", "gortho", "#0072B2", "o"),
        ("liegg_d_PA", "LieGG", "#D55E00", "s"),
    ):
        points = [(int(r["samples"]), float(r[key])) for r in rows if r.get(key) not in (None, "")]
        axes.loglog(*zip(*points), marker, color=colour, alpha=0.45, ms=5)
        sizes = sorted({n for n, _ in points})
        axes.loglog(
            sizes,
            [statistics.median(d for m, d in points if m == n) for n in sizes],
            color=colour,
            label=label,
        )
    axes.axhline(1.94, color="0.5", ls=":", lw=1)
    axes.annotate("chance", (30, 1.94), color="0.4", va="bottom")
    axes.set(
        xlabel="samples",
        ylabel="d_PA to the true algebra",
        title="Samples needed to find a hidden O(2,2) form",
    )
    axes.legend()
    axes.grid(alpha=0.25)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--tables", action="store_true", help="only make tables and plot from the rows measured before"
    )
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "samples_needed.csv"
    if not options.tables:
        rows: list[dict] = []
        with ProcessPoolExecutor(options.jobs) as pool:
            work = [pool.submit(run, n, seed) for n in reversed(SIZES) for seed in range(options.seeds)]
            for future in tqdm(as_completed(work), total=len(work)):
                rows.append(future.result())
                columns = list(dict.fromkeys(key for row in rows for key in row))
                with open(path, "w", newline="") as file:
                    writer = csv.DictWriter(file, columns)
                    writer.writeheader()
                    writer.writerows(rows)
        (options.out / "samples_needed.json").write_text(json.dumps(facts(), indent=1))
    with open(path, newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda r: (int(r["samples"]), int(r["seed"])))
    text = page(rows, json.loads((options.out / "samples_needed.json").read_text()))
    (options.out / "samples_needed.md").write_text(text)
    print(text)
    try:
        plot(rows, options.out / "samples_needed.png")
    except ModuleNotFoundError:
        print("matplotlib is not installed: no plot")


if __name__ == "__main__":
    main()
