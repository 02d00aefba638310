"""How many samples a form needs: d_PA against N for discovery, LieGG, SDBA and the paper's own form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gortho.studies.experiments.figures import against_samples, pyplot
from gortho.studies.experiments.rows import Job, Row, seeds_of
from gortho.studies.experiments.tables import markdown, of, provenance, spread, write_csv, write_page

SIZES = (30, 100, 300, 1_000, 3_000, 10_000, 30_000)
SHOWN = {"gortho, one network": "gortho", "LieGG": "LieGG", "SDBA": "SDBA", "paper's form": "paper's form"}
#: The paper's form is slow to train: at these sizes only.
PAPER_SIZES = (100, 1_000, 10_000)


def jobs(seeds: int, quick: bool) -> list[Job]:
    """The synthetic task, clean labels."""
    sizes = (30, 300) if quick else SIZES
    tests: dict[str, Any] = {"test_samples": 500, "quick": True} if quick else {}
    return [
        Job("synthetic", method, samples, seed, **tests)
        for samples in reversed(sizes)  # the longest first
        for seed in seeds_of(seeds)
        for method in ("gortho, one network", "LieGG", "paper's form")
        if method != "paper's form" or samples in (sizes if quick else PAPER_SIZES)
    ]


def page(rows: Sequence[Row], out: Path, command: str) -> None:
    """samples.md, .csv and .png."""
    sizes = sorted({row["samples"] for row in rows})
    lines = []
    for n in sizes:
        at = {m: [r for r in rows if r["samples"] == n and r["method"] == m] for m in SHOWN}
        ours = at["gortho, one network"]
        found = sum(r["notes"].get("verdict") == "FOUND" for r in ours)
        line = [f"{n:,}", f"{found} of {len(ours)}"]
        for column in ("d_PA", "relative MSE", "seconds"):
            shown = SHOWN if column == "d_PA" else [m for m in SHOWN if m != "SDBA"]
            line += [spread(of(at[m], column)) if at[m] else "" for m in shown]
        lines.append(line)
    header = ["N", "FOUND", *(f"d_PA, {label}" for label in SHOWN.values())]
    rest = [label for label in SHOWN.values() if label != "SDBA"]
    header += [f"{column}, {label}" for column in ("relative MSE", "seconds") for label in rest]
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    curves = {
        label: [(r["samples"], r["d_PA"]) for r in rows if r["method"] == m and r["d_PA"]]
        for m, label in SHOWN.items()
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
