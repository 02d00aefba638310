"""The search on a surveyed file, shared by the command line, the app and `scan`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gortho.discovery import Discovery, Survey
from gortho.discovery.provenance import Source
from gortho.forms import WORD
from gortho.samples import Dataset
from gortho.samples.called import together
from gortho.samples.kinds import ARRAYS
from gortho.samples.spaces import apart

#: The share of a time budget that is the search's, however long reading took.
LEAST_SHARE = 0.25


def searched(
    seen: Survey,
    reading: Mapping[str, Any],
    begun: float,
    *,
    time_budget: float | None = None,
    sizes: Sequence[int] = (),
    names: str | Sequence[str] | None = None,
    **options: Any,
) -> Discovery:
    """Search a file that was read by these options, begun at this time, and remember where the samples come from.

    `sizes` are the components of each vector of a sample, where they differ; other `options` are those of `discover`.
    """
    import gortho

    data = seen.data
    given = {name: reading[name] for name in ("output", "seed", "max_samples") if name in reading}
    found = gortho.discover(
        apart(data.X, sizes) if sizes else data.X,
        data.y,
        scalars=scalars_of(data),
        sample_weight=None if data.y_error is not None else data.weights,
        y_error=data.y_error,
        time_budget=time_budget and max(time_budget - time.perf_counter() + begun, LEAST_SHARE * time_budget),
        known=None if seen.totals is None or sizes else seen,
        names=data.names if names is None else names,
        labels=labels_of(data),
        **given,
        **options,
    )
    return remembered(found, data)


def scalars_of(data: Dataset, rows: Any = slice(None)) -> dict[str, np.ndarray] | None:
    """The scalars of a data set as `discover` and `Discovery.predict` take them."""
    given = {"point": data.point_scalars, "sample": data.sample_scalars}
    return {name: values[rows] for name, values in given.items() if values is not None} or None


def labels_of(data: Dataset) -> dict[str, Any]:
    """Names for the formula: those of the columns, or of the arrays without the folders that they lie in."""
    arrays = Path(data.source).suffix.lower() in ARRAYS
    named = {
        part: [name.rsplit("/", 1)[-1] if arrays else name for name in data.columns.get(part, ())]
        for part in ("x", "y", "scalars")
    }
    labels: dict[str, Any] = {"scalars": named["scalars"]}
    if named["y"]:
        labels["y"] = together(named["y"])
    elif "time" in data.columns:
        labels["y"] = slope_of("x", data.columns["time"][0])
    if named["x"] != ["X"] or not arrays:
        labels["vectors" if arrays else "coordinates"] = named["x"]
    return labels


def slope_of(name: str, time: str) -> str:
    """What the derivative of a coordinate, or of the vector x, by the time is called.

    >>> slope_of("x", "t"), slope_of("px", "time (s)")
    ('dx/dt', 'dpx/dt')
    """
    return f"d{name}/d{time if WORD.fullmatch(time) else 't'}"


def remembered(found: Discovery, data: Dataset) -> Discovery:
    """The discovery with the file and columns that it comes from, and what was noticed while reading them."""
    source = Source(Path(data.source).name, data.columns)
    notices = tuple(dict.fromkeys([*data.notices, *map(data.in_file, found.notices)]))
    columns = data.columns.get("x", ())
    if Path(data.source).suffix.lower() in ARRAYS or sizes_of(found):
        columns = ()
    scalars = () if Path(data.source).suffix.lower() in ARRAYS else tuple(data.columns.get("scalars", ()))
    provenance = replace(found.provenance, source=source)
    formula = found.formula
    if formula is not None:
        fitted, held_out = map(data.in_file, formula.which)
        formula = replace(formula, which=(fitted, held_out))
    return replace(
        found,
        notices=notices,
        columns=columns,
        scalar_columns={"": scalars} if scalars else {},
        provenance=provenance,
        formula=formula,
    )


def sizes_of(found: Discovery) -> list[int]:
    """Components of each vector of a sample, where they differ."""
    if found.wider is None:
        return []
    symmetry = found.wider.symmetry
    sizes = [symmetry.forms[space].n for space in symmetry.spaces]
    return sizes if len(set(sizes)) > 1 else []
