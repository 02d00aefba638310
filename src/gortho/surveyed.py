"""The search on a surveyed file, shared by the command line, the app and `scan`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
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
from gortho.samples.tables import component_names

#: The share of a time budget that is the search's, however long reading took.
LEAST_SHARE = 0.25
#: Options that say how files are read, and those that say how forms are searched for.
READING = (
    "x", "y", "scalars", "points", "output", "scalars_per_point", "decimal", "max_samples", "weight",
    "y_error", "derivative", "by", "drop", "dropna", "dims", "time_budget", "seed",
)  # fmt: skip
SEARCH = ("errors", "tolerance", "set_like", "names", "settings", "look_for", "axial", "spaces")


def reading(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `gortho.survey` among all that were given; slopes of trajectories are vectors."""
    chosen = {name: options[name] for name in READING if name in options}
    if chosen.get("derivative") and chosen.get("output", "scalar") == "scalar":
        chosen["output"] = "vector"
    return chosen


def searched(
    seen: Survey, options: Mapping[str, Any], begun: float, told: Callable[[str], str] = str, **more: Any
) -> Discovery:
    """Search a file that was read by these options, begun at this time, and remember where the samples come from.

    ``dims`` are the components of each vector of a sample, where they differ; `told` spells notices and advice for the
    reader; `more` are options of `discover` alone.
    """
    import gortho

    data, sizes, budget = seen.data, options.get("dims"), options.get("time_budget")
    chosen = {name: options[name] for name in SEARCH if options.get(name) is not None}
    chosen |= {k: v for k, v in reading(options).items() if k in ("output", "seed", "max_samples")}
    parts = apart(data.X, sizes) if sizes else [data.X]
    points = len(sizes) if sizes and len(parts) == 1 else 1  # all of one size: vectors of one form
    chosen.setdefault("names", component_names(list(data.names), points))
    look_for = chosen.get("look_for", "auto")
    if isinstance(look_for, str) and look_for != "auto":
        chosen["look_for"] = [name.strip() for name in look_for.split(",")]
    found = gortho.discover(
        parts[0] if len(parts) == 1 else parts,
        data.y,
        scalars=scalars_of(data),
        sample_weight=None if data.y_error is not None else data.weights,
        y_error=data.y_error,
        time_budget=budget and max(budget - time.perf_counter() + begun, LEAST_SHARE * budget),
        known=None if seen.totals is None or sizes else seen,
        labels=labels_of(data),
        **chosen,
        **more,
    )
    found = remembered(found, data)
    return replace(found, notices=tuple(map(told, found.notices)), advice=told(found.advice))


def scalars_of(data: Dataset, rows: Any = slice(None)) -> dict[str, np.ndarray] | None:
    """The scalars of a data set as `discover` and `Discovery.predict` take them."""
    given = {"point": data.point_scalars, "sample": data.sample_scalars}
    return {name: values[rows] for name, values in given.items() if values is not None} or None


def _in_arrays(data: Dataset) -> bool:
    """Whether samples come from a file of arrays, not from a table."""
    return Path(data.source).suffix.lower() in ARRAYS


def labels_of(data: Dataset) -> dict[str, Any]:
    """Names for the formula: those of the columns, or of the arrays without the folders that they lie in."""
    arrays = _in_arrays(data)
    x, y, scalars = (
        [name.rsplit("/", 1)[-1] if arrays else name for name in data.columns.get(part, ())]
        for part in ("x", "y", "scalars")
    )
    labels: dict[str, Any] = {"scalars": scalars}
    if y:
        labels["y"] = together(y)
    elif "time" in data.columns:
        labels["y"] = slope_of("x", data.columns["time"][0])
    if x != ["X"] or not arrays:
        labels["vectors" if arrays else "coordinates"] = x
    return labels


def slope_of(name: str, time: str) -> str:
    """What the derivative of a coordinate, or of the vector x, by the time is called.

    >>> slope_of("x", "t"), slope_of("px", "time (s)")
    ('dx/dt', 'dpx/dt')
    """
    return f"d{name}/d{time if WORD.fullmatch(time) else 't'}"


def remembered(found: Discovery, data: Dataset) -> Discovery:
    """The discovery with the file and columns that it comes from, and what was noticed while reading them."""
    formula, arrays = found.formula, _in_arrays(data)
    scalars = () if arrays else data.columns.get("scalars", ())
    if formula is not None:
        fitted, held_out = map(data.in_file, formula.which)
        formula = replace(formula, which=(fitted, held_out))
    return replace(
        found,
        notices=tuple(dict.fromkeys([*data.notices, *map(data.in_file, found.notices)])),
        columns=() if arrays else data.columns.get("x", ()),
        scalar_columns={"": tuple(scalars)} if scalars else {},
        provenance=replace(found.provenance, source=Source(Path(data.source).name, data.columns)),
        formula=formula,
    )


def sizes_of(found: Discovery) -> list[int]:
    """Components of each vector of a sample, where they differ."""
    if found.wider is None:
        return []
    symmetry = found.wider.symmetry
    sizes = [symmetry.forms[space].n for space in symmetry.spaces]
    return sizes if len(set(sizes)) > 1 else []
