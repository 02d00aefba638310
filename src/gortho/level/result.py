"""`LevelForm`: the quadric that points lie on, as a value that can be printed, plotted and saved."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student_t

from gortho.discovery.verdict import Verdict, percent
from gortho.files import write_text
from gortho.forms import QuadraticForm
from gortho.level.evidence import LevelEvidence
from gortho.report.words import sentences, with_halves
from gortho.samples.checks import check_inputs
from gortho.samples.door import by_name
from gortho.samples.errors import DataError
from gortho.stored import plain, restored

_FORMAT = "gortho level form 1"


class Calibration(NamedTuple):
    """T and c for which T (x - c) has length 1: the symmetric root of A/k, and the centre."""

    matrix: np.ndarray
    offset: np.ndarray

    def __str__(self) -> str:
        matrix, offset = (
            np.array2string(part, separator=", ", precision=9).replace("\n", "\n          ") for part in self
        )
        return f"T = np.array({matrix})\nc = np.array({offset})\ncalibrated = (x - c) @ T"


@dataclass(frozen=True, eq=False, repr=False)
class LevelForm:
    """The quadric (x - c)ᵀA(x - c) = k that points lie on.

    Attributes:
        verdict: `Verdict.FOUND`, `NONE` or `UNDERDETERMINED`; ``reason`` and ``advice`` say why and what to do.
        candidate: the best form A, whatever the verdict; ``form`` is the same, but only if FOUND.
        centre, level: c ``(n,)`` and k, in the units of x; if there are many centres, the one nearest to the points.
        entry_errors, eigenvalue_errors, centre_errors, level_error: standard errors, from refits to resamples;
            NaN for coordinates in which the centre is free, as along the axis of a cylinder.
        free: number of points minus unknowns, which determines the factor of the intervals.
        outliers: rows that were left out, from 0.
        points: some of the points, for figures.
        shown_outliers: which of them are outliers.
        evidence: the measurements behind the verdict.
        columns: names of the columns that the points came from, which `lengths` finds in a data frame.
    """

    verdict: Verdict
    reason: str
    advice: str
    names: tuple[str, ...]
    candidate: QuadraticForm | None = None
    centre: np.ndarray | None = None
    level: float = math.nan
    entry_errors: np.ndarray | None = None
    eigenvalue_errors: np.ndarray | None = None
    centre_errors: np.ndarray | None = None
    level_error: float = math.nan
    free: int = 0
    outliers: tuple[int, ...] = ()
    points: np.ndarray | None = None
    shown_outliers: np.ndarray | None = None
    evidence: LevelEvidence | None = None
    spread_before: float = math.nan
    spread_after: float = math.nan
    seed: int = 0
    notices: tuple[str, ...] = field(default=())
    columns: tuple[str, ...] = ()

    # The value

    @property
    def form(self) -> QuadraticForm | None:
        """The form; None unless the verdict is FOUND."""
        return self.candidate if self.verdict is Verdict.FOUND else None

    @property
    def group_name(self) -> str | None:
        """The name of the form's group; None unless FOUND."""
        return self.form.group_name if self.form else None

    @property
    def kind(self) -> str:
        """What the candidate is called: ellipsoid, hyperboloid, cone, cylinder, pair of planes."""
        if self.candidate is None:
            return ""
        p, q, zero = self.candidate.signature
        flats = "lines" if self.candidate.n == 2 else "planes"
        plane = p + q == 2  # but for the directions of a cylinder
        if p + q == 1:
            return f"pair of parallel {flats}"
        if plane and p == q and self.level == 0:
            return f"pair of crossing {flats}"
        if p and q:
            name = "cone" if self.level == 0 else "hyperbola" if plane else "hyperboloid"
        else:
            name = "ellipse" if plane else "ellipsoid"
        return f"cylinder over {_an(name)}" if zero else name

    @property
    def interval_factor(self) -> float:
        """Half-width of a 95 % interval in standard errors, by Student's t."""
        return float(student_t.ppf(0.975, self.free)) if self.free > 0 else math.nan

    def _interval(self, value: Any, error: Any) -> tuple[np.ndarray, np.ndarray] | None:
        if self.candidate is None or error is None:
            return None
        half = self.interval_factor * error
        return value - half, value + half

    @property
    def intervals(self) -> tuple[np.ndarray, np.ndarray] | None:
        """95 % intervals of the entries of the gauge-fixed A: lower and upper ``(n, n)``."""
        return self._interval(self.candidate and self.candidate.matrix.numpy(), self.entry_errors)

    @property
    def eigenvalue_intervals(self) -> tuple[np.ndarray, np.ndarray] | None:
        """95 % intervals of the eigenvalues, ascending: lower and upper ``(n,)``."""
        return self._interval(self.candidate and self.candidate.eigenvalues.numpy(), self.eigenvalue_errors)

    @property
    def centre_intervals(self) -> tuple[np.ndarray, np.ndarray] | None:
        """95 % intervals of the centre: lower and upper ``(n,)``."""
        return self._interval(self.centre, self.centre_errors)

    @property
    def free_names(self) -> tuple[str, ...]:
        """Coordinates in which the centre is free."""
        errors = () if self.centre_errors is None else self.centre_errors
        return tuple(name for name, error in zip(self.names, errors) if math.isnan(error))

    def _points(self, X: Any) -> np.ndarray:
        """Points ``(N, n)``, checked; the columns of data frames by name."""
        x = check_inputs(by_name(X, self.names, self.columns))[0]
        if x.ndim != 2 or x.shape[1] != len(self.names):
            raise DataError(f"X has shape {x.shape}: give points (N, {len(self.names)})")
        return x

    def lengths(self, X: Any) -> np.ndarray:
        """√|q(x - c)/k| of points ``(N, n)``: 1 on the quadric; for a cone q(x - c) itself, 0 on it."""
        if self.candidate is None or self.centre is None:
            raise ValueError(f"there is no form: the verdict is {self.verdict} ({self.reason})")
        q = self.candidate(self._points(X) - self.centre).numpy()
        return np.sqrt(np.abs(q / self.level)) if self.level else q

    @property
    def calibration(self) -> Calibration:
        """T and c with |T (x - c)| = 1 on the quadric; only for forms that are not indefinite."""
        form = self.form
        if form is None or self.centre is None:
            raise ValueError(f"there is no calibration: the verdict is {self.verdict} ({self.reason})")
        if form.signature.negative:
            raise ValueError(
                f"there is no calibration: a form of group {form.group_name} is not a length; use form(x - centre)"
            )
        A = form.matrix.numpy() / self.level
        unit = np.sqrt(A.diagonal().clip(min=np.finfo(float).tiny))
        # In like units, so that small ones are not rounded off.
        values, Q = np.linalg.eigh(A / unit[:, None] / unit)
        root = np.sqrt(values.clip(0))[:, None] * Q.T * unit
        _, sizes, V = np.linalg.svd(root)
        T = V.T * sizes @ V
        return Calibration((T + T.T) / 2, self.centre.copy())

    def calibrate(self, X: Any) -> np.ndarray:
        """T (x - c) for points ``(N, n)``, of length 1 on the quadric."""
        T, c = self.calibration
        return (self._points(X) - c) @ T

    # Words

    def law(self, digits: int = 2) -> str:
        """The candidate as a formula, without small terms whose interval contains zero (`QuadraticForm.law`)."""
        if self.candidate is None:
            return ""
        half = None if self.entry_errors is None else self.interval_factor * self.entry_errors
        return self.candidate.law(digits, half)

    def headline(self) -> str:
        """The verdict in one sentence."""
        if self.form is not None:
            return f"The points lie on {_an(self.kind)}, whose group is {self.form.group_name}."
        return {
            Verdict.NONE: "The points do not lie on a quadric with a centre.",
            Verdict.UNDERDETERMINED: "The points cannot tell whether, or on which, quadric they lie.",
        }[self.verdict]

    def numbers(self) -> dict[str, str]:
        """Eigenvalues, centre and level with half-widths of their 95 % intervals, as text."""
        if self.candidate is None or self.centre is None:
            return {}
        factor = self.interval_factor
        values = self.candidate.eigenvalues.numpy()
        told = {
            "eigenvalues": with_halves(values, factor * np.asarray(self.eigenvalue_errors)),
            "centre": ", ".join(
                with_halves([c], [factor * error]) + " (free)" * math.isnan(error)
                for c, error in zip(self.centre, np.asarray(self.centre_errors))
            ),
            "level q(x - c)": with_halves([self.level], [factor * self.level_error]) if self.level else "0",
        }
        if math.isfinite(self.spread_after):
            told["spread of the length"] = (
                f"{percent(self.spread_before)} before, {percent(self.spread_after)} after"
            )
        return told

    def __repr__(self) -> str:
        nothing = "no quadric" if self.candidate is None else self.candidate.group_name
        return f"<LevelForm {self.verdict.name}: {nothing}, in {len(self.names)} dimensions>"

    def __str__(self) -> str:
        lines = [f"{self.verdict.name}: {self.headline()}"]
        if self.candidate is not None:
            label = "law" if self.form else "best candidate, not accepted"
            lines.append(f"  {label}: {self.law()}   [{self.candidate.group_name}]")
            for name, value in self.numbers().items():
                bars = "" if name.startswith("spread") or value == "0" else " (± 95 %)"
                lines.append(f"  {name}{bars}: {value}")
        lines += [sentences(f"  why: {self.reason}"), sentences(f"  next: {self.advice}")]
        lines += [sentences(f"  note: {notice}") for notice in self.notices]
        return "\n".join(lines)

    # Pictures and files

    def plot(self) -> Any:
        """A matplotlib figure of the points with the quadric, and of their lengths before and after calibration."""
        from gortho.level.page import figure

        return figure(self)

    def to_html(self, path: str | Path) -> Path:
        """Write the report, one self-contained HTML page."""
        from gortho.level.page import page

        return write_text(path, page(self))

    def to_json(self) -> str:
        """Everything as JSON text; `from_json` reads it back."""
        content = {"format": _FORMAT, **plain(self), "verdict": self.verdict.name}
        return json.dumps(content, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> LevelForm:
        """Read back what `to_json` wrote."""
        try:
            content = json.loads(text)
            if content.pop("format") != _FORMAT:
                raise KeyError("format")
            return restored(content, cls)
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise ValueError(f"this is not a saved level form, or of another version ({error!r})") from None

    def save(self, path: str | Path) -> Path:
        """Write everything to a JSON file."""
        return write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> LevelForm:
        """Read back what `save` wrote."""
        if Path(path).is_dir():
            raise ValueError(f"{path} is a directory: give a file written by save")
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise ValueError(f"{path} is no text: give a file written by save") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def with_spreads(found: LevelForm, x: np.ndarray) -> LevelForm:
    """With the spread of the length, std over mean, of points as they are and about the centre by the form."""
    if found.candidate is None or not found.level:
        return found
    unit = np.abs(x).max()
    before, after = np.linalg.norm(x / unit, axis=1), found.lengths(x)
    return replace(
        found,
        spread_before=float(before.std() / before.mean()),
        spread_after=float(after.std() / after.mean()),
    )


def _an(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
