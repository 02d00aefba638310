"""`Asked`: what the page asks of a search, checked, and as the same command; messages in the page's words."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass, fields
from typing import Any

from gortho.cli.options import EFFORTS
from gortho.cli.searching import TOLERANCE
from gortho.samples.errors import respelled

#: The page's words for the arguments that messages name.
FIELDS = {
    "x": "x",
    "y": "y",
    "scalars": "scalar",
    "drop": "off",
    "output": "How y changes",
    "points": "Vectors in each row",
    "scalars_per_point": "Scalars belong to the vectors",
    "set_like": "The vectors have no order",
    "decimal": "Decimal separator",
    "dropna": "Drop rows with missing numbers",
    "weight": "Weight of each row",
    "y_error": "Error of y",
    "derivative": "Time, for y = dx/dt",
    "by": "Trajectory",
    "names": "Names of the coordinates",
    "errors": "Errors that count",
    "tolerance": "Tolerance",
    "look_for": "What else to look for",
    "effort": "Effort",
    "seed": "Seed",
    "time_budget": "Time budget, in seconds",
    "max_samples": "Rows at most",
}
OUTPUTS = {
    "scalar": "a number that all observers agree on: a mass, a squared distance",
    "vector": "an arrow like x: a force, a momentum",
    "class": "a label, text or numbers: signal or background",
    "covector": "a slope with respect to x",
    "bilinear": "a matrix like Σ x xᵀ: a moment of inertia",
    "conjugation": "a matrix that maps vectors to vectors",
    "form": "a matrix like A: a metric",
}
#: What the page lets choose columns for.
COLUMNS = ("x", "y", "scalars", "weight", "y_error", "derivative", "by")
DECIMALS = (".", ",")
#: One output of several, as `gortho.reps.as_rep` reads it; that needs torch, which the server does without.
OUTPUT = re.compile(
    rf"(?:[1-9]\d*\s*\*\s*)?(?:pseudo)?(?:{'|'.join(OUTPUTS.keys() - {'class'})})|"
    r"Tensor\(\d+,\s*\d+(?:,\s*odd=(?:True|False))?\)"
)
LOOK_FOR = {
    "SO": "handedness",
    "direction": "a fixed direction",
    "origin": "another origin",
    "spaces": "several forms",
    "skew": "skew forms",
}
#: What the command line, or Python, says of things that the page does otherwise.
_OTHERWISE = (
    (re.compile(r": name (?:the right columns|them) by --\w+"), ": choose a file that has them"),
    (re.compile(r" \(--drop NAME if x is found automatically\)"), ""),
    (re.compile(r" \(gortho check\)"), ""),
)


def as_fields(message: str) -> str:
    """A message with the names of arguments in the page's words.

    >>> as_fields("it has a decimal comma: say so by decimal=','; or leave them out by dropna=True")
    'it has a decimal comma: say so by “Decimal separator: ,”; or leave them out by “Drop rows with missing numbers”'
    """

    for told, instead in _OTHERWISE:
        message = told.sub(instead, message)
    return respelled(message, lambda name, value: f"“{FIELDS[name]}{f': {value}' if value else ''}”")


@dataclass(frozen=True)
class Asked:
    """What is asked of a search, by the names of the command's options; columns are tuples of names."""

    x: tuple[str, ...] = ()
    y: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    weight: tuple[str, ...] = ()
    y_error: tuple[str, ...] = ()
    derivative: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    look_for: tuple[str, ...] = ("auto",)
    output: str = "scalar"
    names: str = ""
    errors: str = "auto"
    effort: str = "normal"
    decimal: str = "."
    scalars_per_point: bool = False
    set_like: bool = False
    dropna: bool = False
    tolerance: float = TOLERANCE
    time_budget: float | None = None
    points: int | None = None
    seed: int = 0
    max_samples: int | None = None

    @classmethod
    def of(cls, content: Any) -> Asked:
        """From the page's JSON, or a ValueError that says what is wrong with it."""
        if not isinstance(content, dict):
            raise ValueError("the request is not a JSON object")
        known = {field.name: field for field in fields(cls)}
        given = {}
        for name, value in content.items():
            if name not in known:
                raise ValueError(f"the request names {name!r}, which is not an option")
            given[name] = _value(name, known[name].default, str(known[name].type), value)
        asked = cls(**given)
        if not asked.x:
            raise ValueError("no column is chosen for x: choose the coordinates of the vectors")
        if not asked.y and not asked.derivative:
            raise ValueError("no column is chosen for y: choose the target")
        if asked.effort not in EFFORTS:
            raise ValueError(f"{FIELDS['effort']}: {asked.effort!r} is not one of {', '.join(EFFORTS)}")
        check_decimal(asked.decimal)
        _check_output(asked.output)
        return asked

    def options(self) -> dict[str, Any]:
        """The same as options of `gortho.survey` and `gortho.discover`."""
        given = {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}
        columns = {name: given[name] or None for name in COLUMNS}
        return given | columns | {"names": self.names.strip() or None, "look_for": ",".join(self.look_for)}

    def command(self, file: str) -> str:
        """The command that gives the same answer; "" where a name of a column cannot be written there."""
        words = ["gortho", "discover", file]
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            if isinstance(value, tuple) and any(sign in name for name in value for sign in ",:"):
                return ""
            words.append("--set" if field.name == "set_like" else f"--{field.name.replace('_', '-')}")
            words += [] if value is True else [",".join(value) if isinstance(value, tuple) else f"{value}"]
        return shlex.join(words)


def check_decimal(sign: str) -> str:
    """The decimal separator, if it is one."""
    if sign not in DECIMALS:
        raise ValueError(f"{FIELDS['decimal']}: {sign!r} is not a point or a comma")
    return sign


def _check_output(output: str) -> None:
    """Refuse names of outputs that no search knows, before a process is started for them."""
    for word in () if output == "class" else map(str.strip, output.split("+")):
        if word == "class":
            raise ValueError(
                f"{FIELDS['output']}: a class cannot be one of several outputs: choose class alone"
            )
        if not OUTPUT.fullmatch(word):
            raise ValueError(
                f"{FIELDS['output']}: {word!r} is unknown; choose from {', '.join(OUTPUTS)}, "
                "or sums of them other than class, such as scalar + 2*vector"
            )


def _value(name: str, default: Any, kind: str, value: Any) -> Any:
    """A value of the kind that its field has; an empty one means the default."""
    if value is None or value == "":
        return default
    if kind.startswith("tuple"):
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            raise ValueError(f"{FIELDS[name]}: {value!r} is not a list of names")
        return tuple(value) or default
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind.startswith("int"):
        right = number and math.isfinite(value) and value == int(value)
        value = int(value) if right else value
    elif kind.startswith("float"):
        right = number and math.isfinite(value)
    else:
        right = isinstance(value, {"str": str, "bool": bool}[kind])
    if not right:
        wanted = {"int": "a whole number", "float": "a number", "str": "text", "bool": "yes or no"}
        raise ValueError(f"{FIELDS[name]}: {value!r} is not {wanted[kind.split(' ')[0]]}")
    return value
