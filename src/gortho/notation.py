"""Symmetries as text: "SO(3)", "O(3), broken along (0.00, 0.00, 1.00)", "O(3) on x1, O(1,2) on x2", "Sp(4)", "U(2)"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.skew import SkewForm

_GROUP = re.compile(r"(S?)O\((\d+)(?:,(\d+))?\)(?: ⋉ degenerate (\d+))?")
_SKEW = re.compile(r"Sp\((\d+)\)(?: ⋉ degenerate (\d+))?|U\((\d+)(?:,(\d+))?\)")
#: How vectors that move with others are written.
OWN_FRAME = "in a frame of its own"
_BREAKS = re.compile(
    r"(?P<group>[^ ]+?(?: ⋉ degenerate \d+)?)"
    r"(?: about \((?P<origin>[^()]*)\))?"
    r"(?:, broken along (?P<directions>\([^()]*\)(?: and \([^()]*\))*))?"
)


def write(
    forms: Sequence[QuadraticForm],
    spaces: Sequence[int],
    special: bool,
    directions: Tensor,
    origin: Tensor | None,
    linked: bool = False,
) -> str:
    """The parts of a symmetry as one line: groups by name, origin to three digits, directions to two decimals."""
    if len(forms) > 1:
        kinds = [
            listed([f"x{i + 1}" for i, space in enumerate(spaces) if space == place])
            for place in range(len(forms))
        ]
        if linked:
            others = "".join(f", with {kind} {OWN_FRAME}" for kind in kinds[1:])
            return f"{forms[0].group_name} on {kinds[0]}{others}"
        return ", ".join(f"{form.group_name} on {kind}" for form, kind in zip(forms, kinds))
    text = ("S" if special else "") + forms[0].group_name
    if origin is not None:
        text += f" about ({', '.join(f'{v:.3g}' for v in origin.tolist())})"
    if len(directions):
        each = [f"({', '.join(f'{v:.2f}' for v in s)})" for s in directions.tolist()]
        text += ", broken along " + " and ".join(each)
    return re.sub(r"-(0(?:\.00)?)(?=[,)])", r"\1", text)


def read(text: str) -> dict[str, Any]:
    """What `write` wrote, with plain forms diag(±1, 0) for the groups' names.

    >>> read("O(2), broken along (0, 1)")["directions"]
    [[0.0, 1.0]]
    """
    if " on x" in text:
        return _several(text)
    if skew := _SKEW.fullmatch(text.strip()):
        return _of_skew(text, *(int(number or 0) for number in skew.groups()))
    match = _BREAKS.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"{text!r} names no symmetry: write 'O(3)', 'SO(1,3)', 'O(3), broken along (0, 0, 1)', "
            "'O(3) about (0.5, -0.3, 0.8)', 'O(3) on x1, O(1,2) on x2', 'Sp(4)' or 'U(2)'"
        )
    form, special = _named(match["group"], text)
    directions = [_numbers(s, text) for s in re.findall(r"\(([^()]*)\)", match["directions"] or "")]
    origin = None if match["origin"] is None else _numbers(match["origin"], text)
    return {"forms": form, "special": special, "directions": directions or None, "origin": origin}


def _of_skew(text: str, rank: int, zero: int, p: int, q: int) -> dict[str, Any]:
    """Sp of Σ x_i∧x_{m+i}, or the unitary group of Σ ±|x_i + i x_{m+i}|²."""
    if rank % 2 or rank + p + q < 1:
        raise ValueError(f"{text!r} is not a group: write 'Sp(4)', with an even number, 'U(2)' or 'U(1,1)'")
    if rank:
        return {"forms": None, "skew": SkewForm.canonical(rank, zero)}
    signs = torch.tensor([1.0] * p + [-1.0] * q, dtype=torch.float64)
    J = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    return {"forms": QuadraticForm(torch.diag(signs.repeat(2))), "skew": torch.kron(J, torch.diag(signs))}


def _several(text: str) -> dict[str, Any]:
    linked = OWN_FRAME in text
    each = re.split(rf", with | {OWN_FRAME}", text) if linked else re.split(r"(?=\bS?O\()", text)
    kinds = [kind.strip(" ,").split(" on ") for kind in each if kind]
    if linked:  # all move by the group of the first
        kinds = [kinds[0], *([kinds[0][0], *kind] for kind in kinds[1:])]
    members = [[int(i) for i in re.findall(r"\bx(\d+)", kind[-1])] for kind in kinds]
    named = sorted(i for those in members for i in those)
    if any(len(kind) != 2 for kind in kinds) or named != list(range(1, len(named) + 1)):
        raise ValueError(f"{text!r} does not say for each of x1, x2, … once which group it belongs to")
    groups = [_named(kind[0], text) for kind in kinds]
    order = {i: place for place, those in enumerate(members) for i in those}
    forms = [form for form, _ in groups]
    return {
        "forms": forms[0] if linked else forms,
        "maps": [torch.eye(form.n) for form in forms[1:]] if linked else None,
        "spaces": [order[i] for i in named],
        "special": any(special for _, special in groups),
    }


def _named(name: str, text: str) -> tuple[QuadraticForm, bool]:
    match = _GROUP.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} in {text!r} is not a group: write 'O(3)', 'SO(3)' or 'O(1,3)'")
    special, p, q, zero = match.groups()
    return QuadraticForm.from_signature(int(p), int(q or 0), int(zero or 0)), bool(special)


def _numbers(inside: str, text: str) -> list[float]:
    try:
        return [float(word) for word in inside.split(",")]
    except ValueError:
        raise ValueError(f"({inside}) in {text!r} is not a vector of numbers") from None


def listed(names: list[str]) -> str:
    """Names with commas and an "and"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
