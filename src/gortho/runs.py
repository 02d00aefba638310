"""Saved runs applied to files, for the command line: JSON output, reading inputs, checking the predictor."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import entropy
from sklearn.metrics import log_loss

from gortho.discovery import Discovery
from gortho.discovery.reach import Extrapolated
from gortho.discovery.spreads import BOOSTS
from gortho.formulas import Formula
from gortho.formulas.writing import TEXT, body
from gortho.reps import as_rep
from gortho.samples import DataError, Dataset, read, write
from gortho.samples.checks import variable_names
from gortho.samples.door import as_targets
from gortho.samples.errors import OTHERS, MissingError, listed
from gortho.samples.kinds import ARRAYS
from gortho.samples.sampling import choose
from gortho.samples.spaces import apart, side_by_side
from gortho.samples.values import part_sizes
from gortho.stored import plain
from gortho.surveyed import scalars_of, sizes_of, slope_of

#: A certificate holds up to this relative equivariance error, in float64.
CERTIFIED = 1e-8
#: Rows on which the equivariance is measured.
CERTIFICATE_ROWS = 500
#: The error on new data may be this many times the stored one, and this share of the variance more.
WORSE, MORE = 2.0, 1e-6
#: The log loss this share of that of the class frequencies more: a few labels near a sharp bound cost as much.
MORE_LOSS = 0.05
#: Wrong labels that may be missing among the held-out ones by chance (once in twenty times), each at the largest loss.
UNSEEN = 3.0


def _stored(found: Discovery, part: str) -> list[str] | None:
    """The columns, or the arrays, that a part was read from when the run was made."""
    source = found.provenance.source
    return None if source is None else list(source.columns.get(part, ())) or None


def target_columns(found: Discovery) -> list[str]:
    """Names for columns of predictions: those of the run's targets, or of its slopes, "y" where they had none."""
    time, x = _stored(found, "time"), _stored(found, "x") or []
    if time is not None and len(x) == len(found.names):
        return [slope_of(name, time[0]) for name in x]
    return _stored(found, "y") or ["y"]


def _columns(found: Discovery, part: str, file: Path) -> list[str] | None:
    """The columns or arrays that a part was read from when the run was made, if the file is of the same kind."""
    source, stored = found.provenance.source, _stored(found, part)
    table = file.suffix.lower() not in ARRAYS
    if source is not None and stored and table == (Path(source.file).suffix.lower() not in ARRAYS):
        return stored
    named = found.names != variable_names(len(found.names))
    if part == "x" and table and named and found.network_options["points"] == 1:
        return list(found.names)
    return None


def load(directory: str | Path) -> Discovery:
    """Load a saved run that can predict."""
    found = Discovery.load(directory)
    if found.network is None:
        raise ValueError(f"{directory} has no predictor: the verdict is {found.verdict} ({found.reason})")
    return found


def read_for(
    found: Discovery,
    file: Path,
    *,
    targets: bool | None,
    x: str | None = None,
    y: str | None = None,
    scalars: str | None = None,
    points: int | None = None,
    decimal: str = ".",
    dropna: bool = False,
) -> Dataset:
    """Read a file for a saved run: its columns, unless others are given; slopes are made as they were for the run."""
    options = found.network_options
    needed = "point" if options["point_scalars"] else "sample" if options["sample_scalars"] else None
    given = (scalars or _columns(found, "scalars", file)) if needed else None
    if needed and given is None:
        raise DataError(f"the run was found with scalars, one row for each {needed}: name them by --scalars")
    sizes, own, target = sizes_of(found), _columns(found, "x", file), _columns(found, "y", file)
    slopes = {"derivative": _columns(found, "time", file), "by": _columns(found, "by", file)}
    slopes = {} if y or targets is False or slopes["derivative"] is None else slopes
    reading = partial(
        read,
        file,
        x=x or own,
        scalars=given,
        points=points or (1 if sizes else options["points"]),
        output="class" if found.classes else found.output,
        scalars_per_point=needed == "point",
        targets=targets,
        decimal=decimal,
        dropna=dropna,
    )
    try:
        data = _with_slopes(partial(reading, output="vector"), slopes) or reading(y=y or target)
    except MissingError as error:
        for what, known in (("x", [] if x else own or []), ("scalars", [] if scalars else list(given or ()))):
            if error.name in known:
                fix = OTHERS if what == "x" else f": name the right columns by --{what}"
                raise DataError(f"{error}. The run has {what} = {listed(known)}{fix}") from None
        raise
    if sizes:
        return replace(data, X=side_by_side(apart(data.X, sizes))[0])
    if data.X.shape[-1] != (n := len(found.names)):
        raise DataError(
            f"{file.name}: x has {data.X.shape[-1]} components, and the run was found with {n} "
            f"({', '.join(found.names)}){OTHERS}"
        )
    return data


def _with_slopes(reading: Callable[..., Dataset], slopes: dict[str, list[str] | None]) -> Dataset | None:
    """The samples with slopes as targets, where the run has such, and the file the columns that they are made of."""
    try:
        return reading(**slopes) if slopes else None
    except MissingError as error:
        if any(error.name in (names or ()) for names in slopes.values()):
            return None
        raise


def predict(found: Discovery, data: Dataset, out: str | Path) -> list[str]:
    """Write predictions for the inputs of a file; returns what to say of inputs unlike those of the fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Extrapolated)
        y = found.predict(data.X, scalars_of(data))
    write(out, y, target_columns(found), probabilities(found, data), data.kept)
    return [str(w.message) for w in caught if issubclass(w.category, Extrapolated)]


@dataclass
class Certificate:
    """What a predictor keeps of its promises on given data."""

    samples: int
    equivariance: dict[float, float]  # by largest boost; only 0 where the group has rotations alone
    mse: float | None = None
    relative_mse: float | None = None
    stored_relative_mse: float | None = None
    accuracy: float | None = None  # of classes
    log_loss: float | None = None
    relative_log_loss: float | None = None  # a share of that of the class frequencies
    stored_relative_log_loss: float | None = None
    failures: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    def __str__(self) -> str:
        lines = [
            f"equivariance error, {f'boosts to {boost:g}' if boost else 'rotations'}: {error:.1e}"
            for boost, error in self.equivariance.items()
        ]
        here, stored = self.relative_mse, self.stored_relative_mse
        if self.relative_log_loss is not None:
            here, stored = self.relative_log_loss, self.stored_relative_log_loss
            lines.append("log loss of the predictions, as a share of that of the class frequencies:")
            told = f"{here:.2e} (log loss {self.log_loss:.3g}, {self.accuracy:.1%} of the labels right)"
        elif here is not None:
            lines.append("error of the predictions, as a share of the variance:")
            told = f"{here:.2e} (MSE {self.mse:.2e})"
        if here is not None:
            lines.append(f"  at discovery, held out: {'not stored' if stored is None else f'{stored:.2e}'}")
            lines.append(f"  here: {told}")
        if not self.holds:
            lines.append("The check FAILS:")
        elif here is None:
            lines.append("Equivariance holds; accuracy was not checked: the file has no targets.")
        elif stored is None:
            lines.append("Equivariance holds; accuracy was not checked: the run stores no error.")
        else:
            lines.append("The check passes: equivariance and accuracy.")
        return "\n".join(lines + [f"  {failure}" for failure in self.failures])


def certify(found: Discovery, data: Dataset) -> Certificate:
    """Measure the equivariance of the predictor on these inputs and, with targets, its error beside the stored one."""
    assert found.network is not None and found.candidate is not None
    rows = choose(len(data.X), CERTIFICATE_ROWS, 0)
    few = data.X[rows], scalars_of(data, rows)
    positive, negative, zero = found.candidate.signature
    boosts = BOOSTS if (positive and negative) or zero else (0.0,)
    result = Certificate(
        samples=len(data.X),
        equivariance={boost: found.equivariance_error(*few, max_boost=boost) for boost in boosts},
    )
    worst = max(result.equivariance.values())
    if not worst <= CERTIFIED:
        result.failures.append(f"the equivariance error {worst:.1e} is above {CERTIFIED:.0e}")
    if data.y is None:
        return result
    if found.classes:
        _certify_labels(found, data, result)
        return result
    y = as_targets(data.y, found.output, len(found.names))[0]
    mean = partial(np.average, axis=0, weights=data.weights)  # slopes have errors
    errors = found.predict(data.X, scalars_of(data)) - y
    result.mse = float(mean(np.square(errors)).mean())
    unit = part_sizes(torch.tensor(y), as_rep(found.output), len(found.names)).numpy()  # as at discovery
    variance = float(mean(np.square((y - mean(y)) / unit)).mean())
    left = float(mean(np.square(errors / unit)).mean())
    result.relative_mse = left / variance if variance > 0 else math.inf if left > 0 else 0.0
    if found.peers:
        stored = result.stored_relative_mse = found.peers[0].relative_mse
        if not result.relative_mse <= WORSE * stored + MORE:
            result.failures.append(
                f"the error, {result.relative_mse:.2e} of the variance, is more than {WORSE:g} times that at "
                f"discovery, {stored:.2e}: this data follows another law, has other units or more noise"
            )
    return result


def _certify_labels(found: Discovery, data: Dataset, result: Certificate) -> None:
    """The log loss on these labels, beside the stored one."""
    codes = _codes(found, data.y)
    p = found.predict_proba(data.X, scalars_of(data))
    chance = float(entropy(np.bincount(codes)))
    result.accuracy = float((p.argmax(1) == codes).mean())
    result.log_loss = float(log_loss(codes, p, labels=range(p.shape[1])))
    result.relative_log_loss = result.log_loss / chance if chance > 0 else math.inf
    if found.peers:
        stored = result.stored_relative_log_loss = found.peers[0].relative_mse
        held_out = max(
            1, found.provenance.samples // 5 if found.evidence is None else found.evidence.held_out
        )
        unseen = -UNSEEN * math.log(found.least_probability) / held_out / chance if chance > 0 else 0.0
        limit = WORSE * stored + max(MORE_LOSS, unseen)
        if not result.relative_log_loss <= limit:
            result.failures.append(
                f"the log loss, {result.relative_log_loss:.2g} of that of the class frequencies, is above {limit:.2g}, "
                f"the most that {held_out} held-out labels at discovery with {stored:.2g} allow: these labels follow "
                "another law"
            )


def _codes(found: Discovery, labels: Any) -> np.ndarray:
    """The places of labels among the classes of a run, whether they were read as text or as numbers."""
    numbers = not any(isinstance(c, str) for c in found.classes)
    places = {float(c) if numbers else str(c): k for k, c in enumerate(found.classes)}
    try:
        return np.array([places[float(label) if numbers else str(label)] for label in labels])
    except (KeyError, ValueError):
        unknown = next(c for c in labels if str(c) not in map(str, found.classes))
        raise DataError(
            f"{str(unknown)!r} is not a class of the run, which has {', '.join(map(str, found.classes))}"
        ) from None


def probabilities(found: Discovery, data: Dataset) -> dict[str, np.ndarray]:
    """Columns p_CLASS of the probabilities of the classes; none for other outputs."""
    if not found.classes:
        return {}
    p = found.predict_proba(data.X, scalars_of(data))
    return {f"p_{_called(c)}": column for c, column in zip(found.classes, p.T)}


def _called(label: Any) -> str:
    """A class in a header: whole numbers without decimals."""
    return f"{label:.0f}" if isinstance(label, float) and label.is_integer() else str(label)


def summary(found: Discovery) -> dict[str, Any]:
    """A discovery as plain JSON values; numbers that are not finite become null."""
    form = found.candidate
    content = {
        "verdict": found.verdict.name,
        "reason": found.reason,
        "advice": found.advice,
        "confidence": found.confidence,
        "accepted": found.symmetry is not None,
        "approximate": found.approximate,
        "defect": found.defect,
        "tolerance": found.provenance.tolerance,
        "violation": found.violation,
        "classes": list(found.classes) or None,
        "output": found.output,
        "names": list(found.names),
        "law": found.law() or None,
        "formula": None if found.formula is None else _formula(found.formula),
        "group": found.group_name or (None if form is None else form.group_name),
        "symmetry": None if found.symmetry is None else str(found.symmetry),
        "directions": found.directions,
        "origin": found.origin,
        "skew": None if found.skew is None else found.skew.matrix.numpy(),
        "signature": None if form is None else list(form.signature),
        "matrix": None if form is None else form.matrix.numpy(),
        "intervals": _ends(found.intervals),
        "eigenvalues": None if form is None else form.eigenvalues.numpy(),
        "eigenvalue_intervals": _ends(found.eigenvalue_intervals),
        "errors": found.peers,
        "equivariance": [{"boost": b, "error": e} for b, e in found.certificate.items()],
        "notices": found.notices,
        "provenance": plain(found.provenance) | {"seconds": found.provenance.seconds},
    }
    return plain(content)


def _formula(formula: Formula) -> dict[str, Any]:
    return {
        "text": str(formula),
        "latex": formula.latex(),
        "terms": [
            {"coefficient": t.coefficient, "half_width": t.error, "term": body(formula, t, TEXT)}
            for t in formula.terms
        ],
        "unexplained": formula.unexplained,
        "predictor_unexplained": formula.predictor_unexplained,
        "holds": formula.holds,
        "rivals": formula.rivals,
        "left_out": {"count": formula.left_out, "of": formula.samples, "which": formula.which[0]},
    }


def _ends(interval: tuple[np.ndarray, np.ndarray] | None) -> dict[str, np.ndarray] | None:
    return None if interval is None else {"low": interval[0], "high": interval[1]}
