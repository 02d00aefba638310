"""One way from values to JSON and back: dataclasses by their fields, and hooks for forms, arrays and enums.

`stored` writes what `restored` reads back to the last bit; `plain` writes what every JSON reader takes.
"""

from __future__ import annotations

import enum
import math
from typing import Any, TypeVar

import cattrs
import numpy as np

from gortho.forms import QuadraticForm
from gortho.skew import SkewForm
from gortho.symmetry import Symmetry

T = TypeVar("T")


def _converter() -> cattrs.Converter:
    """Without cattrs' own groups of exceptions: what is missing is a KeyError, what is wrong a TypeError or so."""
    made = cattrs.Converter(detailed_validation=False)
    made.register_unstructure_hook(np.ndarray, lambda array: array.tolist())
    for form in (QuadraticForm, SkewForm):
        made.register_unstructure_hook(form, lambda value: value.content())
        made.register_structure_hook(form, lambda content, kind: kind.of_content(content))
    made.register_unstructure_hook(Symmetry, Symmetry.to_json)
    made.register_structure_hook(Symmetry, lambda text, _: Symmetry.from_json(text))
    return made


def _is_table(kind: Any) -> bool:
    return kind == dict[float, float]


def _array(rows: Any) -> np.ndarray:
    """An array, with NaN where `plain` wrote None."""
    array = np.array(rows)
    return array.astype(float) if array.dtype == object else array


_EXACT, _PLAIN = _converter(), _converter()
for named in (enum.Enum, enum.StrEnum):  # the latter would count as text
    _EXACT.register_unstructure_hook(named, lambda member: member.name)
    _EXACT.register_structure_hook(named, lambda name, kind: kind[name])
    _PLAIN.register_unstructure_hook(named, lambda member: member.value)
_EXACT.register_structure_hook(np.ndarray, lambda rows, _: _array(rows))
_EXACT.register_structure_hook(float, lambda number, _: math.nan if number is None else float(number))
# JSON has no numbers as keys.
_EXACT.register_unstructure_hook_func(_is_table, lambda table: list(table.items()))
_EXACT.register_structure_hook_func(_is_table, lambda pairs, _: {float(k): float(v) for k, v in pairs})
_PLAIN.register_unstructure_hook(float, lambda number: float(number) if math.isfinite(number) else None)
_PLAIN.register_unstructure_hook(np.ndarray, lambda array: _PLAIN.unstructure(array.tolist()))


def stored(value: Any) -> Any:
    """The value for a file; enums by name, numbers as they are."""
    return _EXACT.unstructure(value)


def restored(content: Any, kind: type[T]) -> T:
    """What `stored` or `plain` wrote, as a value of this kind; KeyError, TypeError or ValueError where it is none."""
    return _EXACT.structure(content, kind)


def plain(value: Any) -> Any:
    """The value as every JSON reader takes it: arrays as lists, enums by value, None for what is not finite."""
    return _PLAIN.unstructure(value)
