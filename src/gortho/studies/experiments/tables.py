"""Tables from rows: mean ± spread over seeds, as Markdown and CSV, with what is needed to measure them again."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from gortho.studies.experiments.rows import Row

#: Columns of the method tables, as named in the rows, with their headings.
COLUMNS = {
    "MSE": "MSE, clean labels",
    "noisy MSE": "MSE, noisy labels",
    "relative MSE": "relative MSE",
    "cos": "\\|cos\\|",
    "d_PA": "d_PA",
    "bound": "bound",
    "ratio": "ratio",
    "equivariance error": "equivariance error",
    "seconds": "seconds",
    "parameters": "parameters",
}
NOT_IN_CSV = {
    "form",
    "true form",
    "label-free form",
    "roc",
    "notes",
    "quick",
    "clock",
    "table",
    "evidence",
    "facts",
    "stages",
}
#: Deviations below this share of the mean are rounding.
ROUNDING = 1e-12
#: More seeds in a row than this are told by the first and the last.
FEW_SEEDS = 9


def number(value: float) -> str:
    """Two digits, readable at every size.

    >>> [number(v) for v in (0.00012, 0.034, 0.945, 0.9962, 0.99996, 7.49, 132.0, 48211.0)]
    ['1.2e-04', '0.034', '0.94', '0.996', '1 - 4e-05', '7.5', '132', '48,211']
    """
    if value == 0:
        return "0"
    if 0.99 < value < 1:
        return f"{value:.3f}" if value < 0.999 else f"1 - {1 - value:.0e}"
    if abs(value) < 0.01:
        return f"{value:.1e}"
    if abs(value) < 100:
        return f"{value:.2g}"
    return f"{value:,.0f}"


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation over seeds.

    >>> spread([1e-5, 3e-5]), spread([0.5]), spread([])
    ('2.0e-05 ± 1e-05', '0.5', '–')
    """
    if not values:
        return "–"
    mean = number(statistics.mean(values))
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    if deviation <= ROUNDING * abs(statistics.mean(values)):
        return mean
    return f"{mean} ± {deviation:.0e}" if deviation < 0.01 else f"{mean} ± {number(deviation)}"


def of(rows: Iterable[Row], column: str) -> list[float]:
    """The values of a column, where there are any."""
    return [float(row[column]) for row in rows if row.get(column) is not None]


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    text = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return "\n".join(text + ["| " + " | ".join(line) + " |" for line in lines])


def frame_table(table: pd.DataFrame) -> str:
    """A data frame as a Markdown table, numbers with three digits."""
    lines = (
        [f"{value:.3g}" if isinstance(value, float) else str(value) for value in line]
        for line in table.itertuples(index=False)
    )
    return markdown([str(column) for column in table.columns], lines)


def method_table(rows: Sequence[Row], order: Iterable[str], columns: Sequence[str]) -> str:
    """One line a method, mean ± standard deviation over seeds; the last line says what chance gives."""
    lines = []
    for method in order:
        own = [row for row in rows if row["method"] == method]
        if own:
            lines.append([method, *(spread(of(own, c)) for c in columns), str(len(own))])
    if rows:
        known = {"cos": rows[0]["chance cos"], "d_PA": rows[0]["chance d_PA"]}
        lines.append(["*chance*", *(number(known[c]) if c in known else "" for c in columns), ""])
    return markdown(["method", *(COLUMNS[c] for c in columns), "seeds"], lines)


def provenance(rows: Sequence[Row], command: str) -> str:
    """Command, seeds, dates, versions and machines behind the rows."""

    def each(key: str) -> str:
        return "; ".join(sorted({str(row[key]) for row in rows}))

    clocks = sorted({row.get("clock", "wall time with other work beside") for row in rows})

    return "\n".join(
        [
            f"- command: `{command}`",
            f"- seeds: {_listed({int(row['seed']) for row in rows})}",
            f"- measured: {each('date')}",
            f"- versions: {each('versions')}",
            f"- machine: {each('machine')}; seconds are {' or '.join(clocks)}",
        ]
    )


def _listed(seeds: Iterable[int]) -> str:
    """Numbers in words.

    >>> _listed([20, 22, 21]), _listed([3, *range(100, 140)])
    ('20, 21, 22', '3, 100 to 139')
    """
    parts: list[str] = []
    row: list[int] = []
    for seed in [*sorted(seeds), None]:
        if row and seed != row[-1] + 1:
            parts += map(str, row) if len(row) <= FEW_SEEDS else [f"{row[0]} to {row[-1]}"]
            row = []
        if seed is not None:
            row.append(seed)
    return ", ".join(parts)


def write_csv(
    rows: Sequence[Row],
    path: Path,
    order: Sequence[str] = ("task", "noise", "samples", "method", "seed"),
) -> None:
    """All rows, one a line, in the order of these columns; without matrices and curves."""
    columns = list(dict.fromkeys(key for row in rows for key in row if key not in NOT_IN_CSV))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: [row[name] for name in order]))


def write_page(path: Path, title: str, *parts: Any) -> None:
    """A Markdown page."""
    path.write_text(f"# {title}\n\n" + "\n\n".join(str(p) for p in parts) + "\n", encoding="utf-8")
