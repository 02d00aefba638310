"""Saved runs applied to files, for the command line: JSON output, reading inputs, predicting."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gortho.discovery import Discovery
from gortho.discovery.reach import Extrapolated
from gortho.formulas import Formula
from gortho.formulas.writing import TEXT, body
from gortho.samples import DataError, Dataset, read, write
from gortho.samples.checks import variable_names
from gortho.samples.errors import OTHERS, MissingError, listed
from gortho.samples.kinds import ARRAYS
from gortho.samples.spaces import apart, side_by_side
from gortho.stored import plain
from gortho.surveyed import scalars_of, sizes_of, slope_of

#: Parts of a file that say how much its samples count.
ERRORS = ("weight", "y_error")


def stored_columns(found: Discovery, part: str) -> list[str] | None:
    """The columns, or the arrays, that a part was read from when the run was made."""
    source = found.provenance.source
    return None if source is None else list(source.columns.get(part, ())) or None


def target_columns(found: Discovery) -> list[str]:
    """Names for columns of predictions: those of the run's targets, or of its slopes, "y" where they had none."""
    time, x = stored_columns(found, "time"), stored_columns(found, "x") or []
    if time is not None and len(x) == len(found.names):
        return [slope_of(name, time[0]) for name in x]
    return stored_columns(found, "y") or ["y"]


def _columns(found: Discovery, part: str, file: Path) -> list[str] | None:
    """The columns or arrays that a part was read from when the run was made, if the file is of the same kind."""
    source, stored = found.provenance.source, stored_columns(found, part)
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
    errors = {part: None if targets is False else _columns(found, part, file) for part in ERRORS}
    named: dict[str, Any] = {"y": y or target, "output": "class" if found.classes else found.output}
    made: list[dict[str, Any]] = [{"output": "vector"} | slopes] if slopes else []
    reading = partial(
        read,
        file,
        x=x or own,
        scalars=given,
        points=points or (1 if sizes else options["points"]),
        scalars_per_point=needed == "point",
        targets=targets,
        decimal=decimal,
        dropna=dropna,
        dims=sizes or None,
    )
    try:
        ways = [way | more for way in (*made, named) for more in (errors, {})]
        data = _first_there(reading, ways, {**slopes, **errors})
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


def _first_there(
    reading: Callable[..., Dataset], ways: list[dict[str, Any]], hoped: dict[str, list[str] | None]
) -> Dataset:
    """The samples in the first of these ways for which the file has the columns that it is hoped to have."""
    for way in ways[:-1]:
        try:
            return reading(**way)
        except MissingError as error:
            if not any(error.name in (names or ()) for names in hoped.values()):
                raise
    return reading(**ways[-1])


def predict(found: Discovery, data: Dataset, out: str | Path) -> list[str]:
    """Write predictions for the inputs of a file; returns what to say of inputs unlike those of the fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Extrapolated)
        y = found.predict(data.X, scalars_of(data))
    write(out, y, target_columns(found), probabilities(found, data), data.kept)
    return [data.in_file(str(w.message)) for w in caught if issubclass(w.category, Extrapolated)]


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
