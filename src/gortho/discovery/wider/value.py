"""What a discovery says about a symmetry other than O(A), as one printable value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gortho.discovery.verdict import percent
from gortho.notation import listed
from gortho.report.words import with_halves, without_gauged
from gortho.symmetry import Symmetry


@dataclass(frozen=True)
class Wider:
    """A symmetry other than O(A) that the data respects, in the given coordinates.

    Attributes:
        symmetry: the symmetry.
        claim: what it has beside a form, in words.
        explains: the share of the variance that it explains and O(A) of the best form does not; None where vectors of
            different dimension cannot have one form.
        angle_errors: standard errors of the directions, in degrees.
        origin_errors: standard errors of the coordinates of the origin.
        axial: places of the input vectors that count as axial.
        output_space: with several forms, the one of the output.
        odd: the output is axial.
        readings: other ways to say the same.
        skew_errors: standard errors of the entries of a skew form ``(n, n)``.
        map_errors: standard errors of the maps between spaces that move together, as shares of their size.
        form_errors: standard errors of the entries ``(n, n)`` and of the eigenvalues of each form; not numbers where
            a direction leaves them open.
        convention: which form is shown where a direction leaves it open, in words.
    """

    symmetry: Symmetry
    claim: str
    explains: float | None
    angle_errors: tuple[float, ...] = ()
    origin_errors: tuple[float, ...] = ()
    axial: tuple[int, ...] = ()
    output_space: int = 0
    odd: bool = False
    readings: tuple[str, ...] = ()
    skew_errors: tuple[tuple[float, ...], ...] = ()
    map_errors: tuple[float, ...] = ()
    form_errors: tuple[tuple[tuple[tuple[float, ...], ...], tuple[float, ...]], ...] = ()
    convention: str = "of least condition where the inputs are white"

    def kinds(self, points: int) -> str | list[str]:
        """How so many input vectors transform."""
        axial = ["pseudovector" if i in self.axial else "vector" for i in range(points)]
        return axial if self.axial else "vector"

    def name(self, factor: float = 1.0) -> str:
        """The symmetry with ± so many standard errors: "O(3), broken along (0.00, 0.00, 1.00) ± 0.4°"."""
        text = str(self.symmetry)
        if self.angle_errors and math.isfinite(error := factor * max(self.angle_errors)):
            text += f" ± {error:.1g}°" if error >= 0.05 else " ± less than 0.1°"
        if self.axial:
            text += f" ({', '.join(f'x{i + 1}' for i in self.axial)} axial)"
        return text + (", with an axial output" if self.odd else "")

    def law(self, digits: int | None = None, factor: float = 1.0) -> str:
        """The skew form as a formula, without small terms whose interval holds zero; "" where there is none."""
        skew = self.symmetry.skew
        return "" if skew is None else skew.law(digits, factor * np.array(self.skew_errors))

    def lines(self, factor: float = 1.0) -> list[str]:
        """What is to be said beside the name, errors times a factor."""
        if self.explains is None:
            dims = listed([str(d) for d in self.symmetry.dims])
            found = [f"{self.claim}: vectors of {dims} components{self._named()}"]
        else:
            share = f"explains {percent(self.explains)} of the variance more than O(A) alone"
            found = [f"{self.claim}: {share}"]
        if len(self.symmetry.forms) > 1:
            found.append(f"the law is the form of {self._vectors(self.output_space)}")
            found += [
                f"the form of {self._vectors(place)}: {self._form(place, factor)}"
                for place in range(len(self.symmetry.forms))
                if place != self.output_space  # that one is the law
            ]
        first = self._vectors(0) if self.symmetry.linked else ""
        for place, T in enumerate(self.symmetry.maps.tolist()):
            rows = "; ".join(" ".join(f"{value:.3f}" for value in row) for row in T)
            known = self.map_errors and math.isfinite(factor)
            error = f" ± {percent(factor * self.map_errors[place])}" if known else ""
            found.append(
                f"{self._vectors(place + 1)} in the frame of {first}: times [{rows}]{error}, but for a factor"
            )
        if self.origin_errors and math.isfinite(factor):
            found.append(
                f"the origin: ± {', '.join(f'{factor * error:.1g}' for error in self.origin_errors)}"
            )
        if len(self.symmetry.directions):
            found.append(f"what is left of the group: {self.symmetry.residual_name}")
            found.append(
                f"along {self._along()} does as well for every t; shown is the one {self.convention}, and what is a "
                "convention has no error bars"
            )
        return found + [f"the same law in other words: {reading}" for reading in self.readings]

    def half_widths(self, space: int, factor: float = 1.0) -> np.ndarray | None:
        """So many standard errors of the entries of one of the forms ``(n, n)``; None where they are not known."""
        known = self.form_errors and math.isfinite(factor)
        return factor * np.array(self.form_errors[space][0]) if known else None

    def _form(self, space: int, factor: float) -> str:
        """One of the forms with the error bars of its eigenvalues."""
        form, half = self.symmetry.forms[space], self.half_widths(space, factor)
        if half is None:
            return f"{form} (error bars not computed)"
        values = form.eigenvalues.numpy()
        bars = with_halves(values, without_gauged(values, factor * np.array(self.form_errors[space][1])))
        return f"{form.law(None, half)}   [{form.group_name}], eigenvalues (± 95 %): {bars}"

    def _along(self) -> str:
        """What the directions leave open."""
        if len(self.symmetry.directions) == 1:
            return "the direction b the form is open: A + t (Ab)(Ab)ᵀ"
        return "the directions b1, b2, … the form is open: A + Σ t_ij (Abi)(Abj)ᵀ"

    def _named(self) -> str:
        """The coordinates of each kind of vector, where there are several."""
        if not self.symmetry.spaces:
            return ""
        forms = enumerate(self.symmetry.forms)
        return ", " + listed(
            [f"({', '.join(form.names)}) of {self._vectors(place)}" for place, form in forms]
        )

    def _vectors(self, space: int) -> str:
        return listed([f"x{i + 1}" for i, other in enumerate(self.symmetry.spaces) if other == space])
