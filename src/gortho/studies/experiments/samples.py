"""How many samples a form needs: d_PA against N for discovery, LieGG, SDBA and the paper's own form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gortho.studies.baselines.registry import fitted, standing
from gortho.studies.experiments.figures import against_samples, pyplot
from gortho.studies.experiments.fits import Job
from gortho.studies.experiments.rows import Row
from gortho.studies.experiments.tables import markdown, of, provenance, spread, write_csv, write_page

SIZES = (30, 100, 300, 1_000, 3_000, 10_000, 30_000)
OURS = "gortho, one network"


def jobs(first: int, seeds: int, quick: bool) -> list[Job]:
    """The synthetic task, clean labels."""
    sizes = (30, 300) if quick else SIZES
    tests: dict[str, Any] = {"test_samples": 500, "quick": True} if quick else {}
    methods = fitted("samples")
    return [
        Job("synthetic", method, samples, seed, **tests)
        for samples in reversed(sizes)  # the longest first
        for seed in range(first, first + seeds)
        for method, stand in methods.items()
        if quick or stand.at is None or samples in stand.at
    ]


def page(rows: Sequence[Row], out: Path, command: str) -> None:
    """samples.md, .csv and .png."""
    sizes = sorted({row["samples"] for row in rows})
    shown = {name: stand.label or name for name, stand in standing("samples").items()}
    # What is read off another network predicts as that one does.
    own_network = fitted("samples")
    lines = []
    for n in sizes:
        at = {m: [r for r in rows if r["samples"] == n and r["method"] == m] for m in shown}
        ours = at[OURS]
        found = sum(r["notes"].get("verdict") == "FOUND" for r in ours)
        line = [f"{n:,}", f"{found} of {len(ours)}"]
        for column in ("d_PA", "relative MSE", "seconds"):
            for m in shown if column == "d_PA" else own_network:
                line.append(spread(of(at[m], column)) if at[m] else "")
        lines.append(line)
    header = ["N", "FOUND", *(f"d_PA, {label}" for label in shown.values())]
    rest = [shown[m] for m in own_network]
    header += [f"{column}, {label}" for column in ("relative MSE", "seconds") for label in rest]
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    curves = {
        label: [(r["samples"], r["d_PA"]) for r in rows if r["method"] == m and r["d_PA"]]
        for m, label in shown.items()
    }
    against_samples(axis, curves)
    chance = rows[0]["chance d_PA"]
    axis.axhline(chance, color="0.5", ls=":", lw=1)
    axis.annotate("chance", (sizes[-1], chance), color="0.4", va="bottom", ha="right")
    axis.set(ylabel="d_PA to the true algebra", title="Samples needed to find an unknown O(2,2) form")
    axis.legend()
    figure.savefig(out / "samples.png", dpi=140)
    plt.close(figure)
    write_csv(rows, out / "samples.csv")
    text = (
        "The synthetic O(2,2) law with clean labels: whole discoveries with verdict, beside LieGG, SDBA and, at some "
        "sizes, the paper's own form on the same samples. The law is a short polynomial, which suits our network. "
        "Mean ± standard deviation over seeds."
    )
    picture = "![d_PA against the number of samples](samples.png)"
    write_page(
        out / "samples.md",
        "Samples needed",
        text,
        markdown(header, lines),
        picture,
        provenance(rows, command),
    )
