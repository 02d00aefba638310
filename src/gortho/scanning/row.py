"""One target: read, searched, judged, and told as a row. What goes wrong becomes a row, too.

`Log` is the memory of a scan: rows are added to a file as they come, and what is in it is not searched again. A kill,
or the power going, costs the targets in work. A last line that was cut off is left out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gortho.discovery import Discovery
from gortho.discovery.large import survey
from gortho.discovery.page import report_data
from gortho.files import append_lines, json_lines
from gortho.report import render
from gortho.report.words import spoken
from gortho.runs import summary
from gortho.scanning.targets import Target
from gortho.stored import plain, restored
from gortho.surveyed import reading, searched


@dataclass(frozen=True)
class Row:
    """What was found of one target.

    Attributes:
        target: its columns, or its file.
        verdict: FOUND, NONE, UNDERDETERMINED, or ERROR with the message in ``reason``.
        confidence: how often such answers are right.
        group: the symmetry, where it is FOUND; ``law`` is its form.
        formula: the law for y, where there is a short one.
        error: of the predictor on held-out samples, as a share of the variance (of classes, of their log loss).
        defect_low, defect_high: how exactly the form is kept: an interval of the share of variance it cannot express.
        samples: how many were used.
        reason: why this verdict.
        report: the page of this target, from the folder of the table.
        key: fingerprint of the data and the options.
        seconds: how long it took.
        answer: the whole answer, as ``gortho discover --json`` prints it.
    """

    target: str
    verdict: str
    confidence: float = 0.0
    group: str = ""
    law: str = ""
    error: float | None = None
    defect_low: float | None = None
    defect_high: float | None = None
    samples: int = 0
    reason: str = ""
    report: str = ""
    key: str = ""
    seconds: float = 0.0
    formula: str = ""
    answer: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def failed(cls, target: str, key: str, why: str, seconds: float = 0.0) -> Row:
        """The row of a target that could not be answered."""
        return cls(target, "ERROR", reason=why, key=key, seconds=seconds)


@dataclass(frozen=True)
class Answered:
    """A row, and the page of its report where one is wanted."""

    row: Row
    page: str = ""


def answer(target: Target, key: str, options: dict[str, Any], seed: int, page: bool) -> Answered:
    """Read, search and judge: the same, by the same seed, as `gortho discover` does with this target."""
    begun = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries; what matters is in the notices
            own = {"x": target.x, "y": target.y, "y_error": target.y_error, "seed": seed}
            options = options | {
                k: list(v) if isinstance(v, tuple) else v for k, v in own.items() if v is not None
            }
            if target.lacks:
                options["y_error"] = None
            found = searched(survey(target.file, **reading(options)), options, begun)
            if target.lacks:
                why = f"{found.reason} All rows count alike: there is no column of errors {target.lacks!r}."
                found = replace(found, reason=why)
            row = _row(found, target.name, key, time.perf_counter() - begun)
            return Answered(row, render(report_data(found)) if page else "")
    except Exception as error:  # one bad target must not stop the others
        why = str(error) if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: {error}"
        return Answered(Row.failed(target.name, key, why.strip(), time.perf_counter() - begun))


def _row(found: Discovery, target: str, key: str, seconds: float) -> Row:
    return Row(
        target,
        found.verdict.name,
        found.confidence,
        spoken(str(found.symmetry or "")),
        found.law() if found.form is not None else "",
        found.peers[0].relative_mse if found.peers else None,
        None if found.evidence is None else found.defect.low,
        None if found.evidence is None else found.defect.high,
        samples=found.provenance.samples,
        reason=found.reason,
        key=key,
        seconds=seconds,
        formula="" if found.formula is None or found.symmetry is None else str(found.formula),
        answer=summary(found),
    )


def digest(path: Path) -> str:
    """A fingerprint of what is in a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


def fingerprints(targets: Iterable[Target], options: dict[str, Any], seed: int) -> dict[str, str]:
    """For each target a fingerprint of its data, of all that was asked, and of the version."""
    import gortho

    contents: dict[Path, str] = {}
    keys = {}
    for target in targets:
        if target.file not in contents:
            contents[target.file] = digest(target.file)
        own = [target.name, target.y, target.x, target.y_error, seed]
        own += [contents[target.file], gortho.__version__]
        text = json.dumps([own, options], sort_keys=True, default=_written)
        keys[target.name] = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    return keys


def _written(value: Any) -> Any:
    """What JSON does not know: settings by their fields, reps by their names."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return sorted(map(str, value)) if isinstance(value, set | frozenset) else repr(value)


class Log:
    """Rows in a file of JSON lines."""

    def __init__(self, path: Path):
        self.path = path

    def rows(self) -> dict[str, Row]:
        """The latest row of each fingerprint."""
        found: dict[str, Row] = {}
        for content in json_lines(self.path):
            with suppress(KeyError, TypeError, ValueError):  # no row
                row = restored(content, Row)
                found[row.key] = row
        return found

    def add(self, row: Row) -> None:
        """Add a row; when this returns it is on the disk."""
        append_lines(self.path, [json.dumps(plain(row), allow_nan=False)])
