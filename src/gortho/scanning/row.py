"""One target: read, searched, judged, and told as a row. What goes wrong becomes a row, too."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

from gortho.scanning.targets import Target


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
            return _answer(target, key, options, seed, page, begun)
    except Exception as error:  # one bad target must not stop the others
        why = str(error) if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: {error}"
        return Answered(Row.failed(target.name, key, why.strip(), time.perf_counter() - begun))


def _answer(
    target: Target, key: str, options: dict[str, Any], seed: int, page: bool, begun: float
) -> Answered:
    from gortho.discovery.large import survey
    from gortho.discovery.page import report_data
    from gortho.report import render
    from gortho.report.words import spoken
    from gortho.runs import summary
    from gortho.surveyed import reading, searched

    own = {"x": target.x, "y": target.y, "y_error": target.y_error}
    own = {name: list(v) if isinstance(v, tuple) else v for name, v in own.items() if v is not None}
    options = options | own | {"seed": seed}
    found = searched(survey(target.file, **reading(options)), options, begun)
    row = Row(
        target.name,
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
        seconds=time.perf_counter() - begun,
        formula="" if found.formula is None or found.symmetry is None else str(found.formula),
        answer=summary(found),
    )
    return Answered(row, render(report_data(found)) if page else "")
