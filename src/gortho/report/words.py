"""Numbers put into words for human readers."""

import math
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

#: Columns of a printed answer.
WIDTH = 96
#: An eigenvalue is fixed by the gauge where the squares of all others are below this share of ‖A‖².
GAUGED = 1e-6
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power_of_ten(exponent: int) -> str:
    """Write a power of ten.

    >>> power_of_ten(-5)
    '10⁻⁵'
    """
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def number(value: float | None, digits: int = 3) -> str:
    """Write a number with so many significant digits.

    >>> number(1.2e-5), number(-0.12345), number(float("nan"))
    ('1.2×10⁻⁵', '−0.123', '—')
    """
    if value is None or math.isnan(value):
        return "—"
    if value == 0 or math.isinf(value):
        return "0" if value == 0 else "∞" if value > 0 else "−∞"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = int(exponent)
    if -4 < power < 5:
        text = f"{value:,.{max(0, digits - 1 - power)}f}"
    else:
        text = re.sub("^(-?)1×", r"\1", f"{float(mantissa):g}×{power_of_ten(power)}")
    return text.replace("-", "−")


def with_interval(value: float, half: float, digits: int = 2) -> tuple[str, str]:
    """Write a value to the precision its interval allows, and the half width of that interval with so many digits.

    A value that is told from zero has three to six significant digits.

    >>> with_interval(1.00312, 0.0123), with_interval(0.00173123, 9e-7), with_interval(0.0001, 0.02)
    (('1.003', '±0.012'), ('0.00173123', '±9×10⁻⁷'), ('0.000', '±0.020'))
    """
    if not (math.isfinite(value) and math.isfinite(half)) or half <= 0:
        return number(value), f"±{number(half, digits)}" if math.isfinite(half) else ""
    last = _order(half) - digits + 1  # the power of ten of the last digit
    if abs(value) > half:
        last = max(min(last, _order(value) - 2), _order(value) - 5)
    rounded = round(value, -last) + 0.0
    if not rounded:
        text = f"{0:.{min(max(0, -last), 3)}f}"
    elif -4 < _order(rounded) < 5:
        text = f"{rounded:,.{max(0, -last)}f}".replace("-", "−")
    else:
        text = number(rounded, max(1, _order(rounded) - last + 1))
    return text, f"±{number(half, digits)}"


def with_halves(values: Any, halves: Any) -> str:
    """Values and half widths in a line of plain text.

    >>> with_halves([-1.00312, 0.5], [0.0123, 0.1])
    '-1.00 ± 0.01, 0.500 ± 0.1'
    >>> with_halves([2.0], [math.nan])
    '2.00'
    """
    pairs = [with_interval(float(v), float(h), digits=1) for v, h in zip(values, halves)]
    return ", ".join(f"{v} ± {h[1:]}" if h else v for v, h in pairs).replace("−", "-")


def without_gauged(values: Any, halves: Any) -> Any:
    """Half widths of eigenvalues, NaN for one that is all of ‖A‖ = √n: the gauge fixes it, not the samples.

    >>> without_gauged([1e-6, 1.41421], [2e-8, 3e-14])
    array([2.e-08,    nan])
    """
    values, halves = np.asarray(values, dtype=float), np.asarray(halves, dtype=float)
    fixed = values**2 > (1 - GAUGED) * (values**2).sum()
    return np.where(fixed & (len(values) > 1), math.nan, halves)


def sentences(text: str) -> str:
    """A line of a printed answer, broken where it is long."""
    return textwrap.fill(text, WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def _order(value: float) -> int:
    return math.floor(math.log10(abs(value)))


def percent(share: float) -> str:
    """Write a share of one as a percentage which never overstates itself.

    >>> percent(0.93), percent(0.9999)
    ('93%', '> 99%')
    """
    if not math.isfinite(share):
        return "—"
    if 0.99 < share < 1:
        return "> 99%"
    return "< 1%" if 0 < share < 0.01 else f"{100 * share:.0f}%"


def chance(p: float) -> str:
    """Write a p-value with its relation.

    >>> chance(0.021), chance(0.0)
    ('= 0.021', '< 10⁻¹⁶')
    """
    return "< 10⁻¹⁶" if p < 1e-16 else f"= {number(p, 2)}"


def spoken(group: str) -> str:
    """The name of a group in a sentence.

    >>> spoken("O(3) ⋉ degenerate 1")
    'O(3), blind to 1 direction'
    """
    blind = r", blind to \1 direction"
    return re.sub(r" ⋉ degenerate (\d+)", lambda m: m.expand(blind) + "s" * (m[1] != "1"), group)


def moves(signature: Sequence[int], boost: float) -> str:
    """What the elements of a group do, up to a size: words for how far an equivariance was tested.

    >>> moves((3, 0, 0), 3), moves((1, 3, 0), 3)
    ('rotations', 'boosts to 3')
    """
    positive, negative, zero = signature
    if positive and negative:
        return f"boosts to {boost:g}"
    return f"rotations and shears to {boost:g}" if zero else "rotations"


def shorten(text: str, length: int) -> str:
    """Cut a text which is too long for its place.

    >>> shorten("momentum", 5)
    'mome…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def terms(law: str) -> list[str]:
    """Cut a law before each of its signs, so that lines break between terms only.

    >>> terms("q(x) = 1.00 E² - 1.72e-06 p²")
    ['q(x) = 1.00 E²', '− 1.72×10⁻⁶ p²']
    """
    law = re.sub(r"(?<=\d)e([+-]\d+)\b", lambda m: f"×{power_of_ten(int(m[1]))}", law)
    return [re.sub("^- ", "− ", term) for term in re.split(r"\s+(?=[+−-]\s)", law.strip())]
