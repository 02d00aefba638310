"""`Scan`: the rows in their order, as text, data frame, CSV and HTML; how many answers to expect to be wrong."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gortho.files import write_text, write_whole
from gortho.report.words import shorten
from gortho.scanning.row import Row

#: Verdicts in the order of the table.
ORDER = ("FOUND", "NONE", "UNDERDETERMINED", "ERROR")
#: Columns of the table. Seconds are in the log only, so that the same scan gives the same table.
COLUMNS = (
    *("target", "verdict", "confidence", "group", "law", "formula", "error", "defect_low", "defect_high"),
    *("samples", "reason", "report"),
)
#: Characters of a law in the printed table.
LAW = 60
#: Of so few answers, and fewer, none is expected to be wrong.
FEW = 0.1


@dataclass(frozen=True)
class Scan:
    """The result of a scan.

    Attributes:
        rows: one for each target: FOUND first, then NONE, UNDERDETERMINED and ERROR; each by decreasing confidence.
        left_out: columns or files that were not tried, with the reason.
        source: the file or folder.
        folder: where the table is written; None if it is not written.
        wanted: number of targets; more than rows if the scan was interrupted.
        before: number of rows that an earlier scan left in the folder.
        files: whether each target is a file of a folder.
        effort: the size of each search, in words.
    """

    rows: tuple[Row, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    source: str = ""
    folder: Path | None = None
    wanted: int = 0
    before: int = 0
    files: bool = False
    effort: str = ""

    @classmethod
    def of(cls, rows: Any, **more: Any) -> Scan:
        """From rows in any order."""
        return cls(tuple(sorted(rows, key=_place)), **more)

    @property
    def table(self) -> Any:
        """The rows as a pandas data frame; what a row does not have is missing."""
        import pandas as pd

        cells = [[getattr(row, name) for name in COLUMNS] for row in self.rows]
        found = pd.DataFrame(cells, columns=COLUMNS)
        found["confidence"] = found["confidence"].where(found["confidence"] > 0)
        found["samples"] = found["samples"].where(found["samples"] > 0).astype("Int64")
        return found

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each verdict."""
        found = Counter(row.verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in ORDER if found[verdict]}

    @property
    def expected_wrong(self) -> float:
        """Expected number of wrong answers among the FOUND: the sum of 1 - confidence."""
        return sum(1 - row.confidence for row in self.rows if row.verdict == "FOUND")

    def doubt(self) -> str:
        """The same in words, for a reader of many answers at once; "" where nothing was FOUND."""
        found, wrong = self.counts.get("FOUND", 0), self.expected_wrong
        if not found:
            return ""
        told = f"about {wrong:.2g} of the {found} FOUND are expected to be wrong"
        if wrong < FEW:
            told = "none of the FOUND is expected to be wrong"
        return (
            f"By their confidences, {told}. "
            "If few targets have a form at all, more may be: check those you rely on with new data."
        )

    def headline(self) -> str:
        """The counts in one line."""
        told = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items()) or "no rows yet"
        rest = self.wanted - len(self.rows)
        before = f"; {self.before} of {self.wanted} were done before" if self.before else ""
        return f"{self.source}: {told}{before}" + (
            f"; {rest} {'targets are not done' if rest > 1 else 'target is not done'}" if rest > 0 else ""
        )

    def __str__(self) -> str:
        width = max([len(row.target) for row in self.rows], default=0)
        lines = [self.headline()]
        for row in self.rows:
            sure = f"{100 * row.confidence:5.1f} %" if row.confidence else " " * 7
            told = f"{row.group}  {shorten(row.law, LAW)}" if row.group else shorten(row.reason, LAW)
            lines.append(f"  {row.target:<{width}}  {row.verdict:<15} {sure}  {told}".rstrip())
        formulas = [f"  {_told(row)}" for row in self.rows if row.formula]
        lines += ["formulas:", *formulas] if formulas else []
        if self.left_out:
            lines.append("left out: " + "; ".join(f"{name} ({why})" for name, why in self.left_out.items()))
        return "\n".join([*lines, self.doubt()]).rstrip()

    def write(self) -> None:
        """Write the table to its folder, if it has one."""
        if self.folder is not None:
            self.to_csv(self.folder / "table.csv")
            with suppress(ImportError):  # without the extra there is the CSV
                self.to_html(self.folder / "table.html")

    def to_csv(self, path: str | Path) -> Path:
        """Write the table as CSV."""
        return write_whole(path, lambda place: self.table.to_csv(place, index=False))

    def to_html(self, path: str | Path) -> Path:
        """Write the table as one self-contained page, to sort and to search (extra ``report``)."""
        try:
            from gortho.report.templates import template
        except ImportError:
            raise ImportError("the page of a scan needs jinja2: pip install 'gortho[report]'") from None
        return write_text(path, template("scan.html").render(found=self))

    def _repr_html_(self) -> str:
        return self.table[list(COLUMNS[:7])].to_html(index=False) + f"<p>{self.doubt()}</p>"


def _told(row: Row) -> str:
    """The formula of a row, with its target where the formula does not begin with it."""
    return row.formula if row.formula.startswith(f"{row.target} = ") else f"{row.target}: {row.formula}"


def _place(row: Row) -> tuple[Any, ...]:
    """Sort key of a row: verdict, confidence, error and name."""
    error = float("inf") if row.error is None else row.error
    return ORDER.index(row.verdict), -row.confidence, error, row.target
