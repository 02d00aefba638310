"""What a discovery says of a symmetry other than O(A), as one printable value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gortho.discovery.verdict import percent
from gortho.symmetry import Symmetry


@dataclass(frozen=True)
class Wider:
    """A symmetry other than O(A) that the data respects, in the given coordinates.

    Attributes:
        symmetry: the symmetry.
        claim: what it has beside a form, in words.
        explains: the share of the variance that it explains and O(A) of the best form does not.
        angle_errors: standard errors of the directions, in degrees.
        origin_errors: standard errors of the coordinates of the origin.
        axial: places of the input vectors that count as axial.
        output_space: with several forms, the one of the output.
        odd: the output is axial.
        readings: other ways to say the same.
    """

    symmetry: Symmetry
    claim: str
    explains: float
    angle_errors: tuple[float, ...] = ()
    origin_errors: tuple[float, ...] = ()
    axial: tuple[int, ...] = ()
    output_space: int = 0
    odd: bool = False
    readings: tuple[str, ...] = ()

    def name(self, factor: float = 1.0) -> str:
        """The symmetry with ± so many standard errors: "O(3), broken along (0.00, 0.00, 1.00) ± 0.4°"."""
        text = str(self.symmetry)
        if self.angle_errors:
            error = factor * max(self.angle_errors)
            text += f" ± {error:.1g}°" if error >= 0.05 else " ± less than 0.1°"
        if self.axial:
            text += f" ({', '.join(f'x{i + 1}' for i in self.axial)} axial)"
        return text + (", with an axial output" if self.odd else "")

    def lines(self, factor: float = 1.0) -> list[str]:
        """What is to be said beside the name, errors times a factor."""
        found = [f"{self.claim}: explains {percent(self.explains)} of the variance that O(A) alone does not"]
        if self.origin_errors:
            found.append(
                f"the origin: ± {', '.join(f'{factor * error:.1g}' for error in self.origin_errors)}"
            )
        if len(self.symmetry.directions):
            found.append(f"what is left of the group: {self.symmetry.residual_name}")
            found.append(
                "along the directions s the form is open: A + t (As)(As)ᵀ does as well for every t; shown is the one "
                "of least condition where the inputs are white"
            )
        return found + [f"the same law in other words: {reading}" for reading in self.readings]

    def as_json(self) -> dict[str, Any]:
        """Values that JSON takes; `of_json` reads them back."""
        return vars(self) | {"symmetry": self.symmetry.to_json()}

    @classmethod
    def of_json(cls, content: dict[str, Any]) -> Wider:
        """Read what `as_json` wrote."""
        rows = ("angle_errors", "origin_errors", "axial", "readings")
        made = {name: tuple(content[name]) for name in rows}
        return cls(**content | made | {"symmetry": Symmetry.from_json(content["symmetry"])})
