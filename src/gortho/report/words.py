"""Numbers and matrices put into words for human readers."""

import math
import re
from collections.abc import Sequence

import numpy as np

from gortho.report.data import Array

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


def with_interval(value: float, half: float) -> tuple[str, str]:
    """Write a value to the precision its interval allows, and the half width of that interval.

    >>> with_interval(1.00312, 0.0123)
    ('1.003', '±0.012')
    """
    if not (math.isfinite(value) and math.isfinite(half)) or half <= 0 or abs(value) >= 1e4:
        return number(value), f"±{number(half, 2)}" if math.isfinite(half) else ""
    decimals = min(3, max(0, 1 - math.floor(math.log10(half))))
    text = f"{round(value, decimals) + 0.0:.{decimals}f}"
    return text.replace("-", "−"), f"±{number(half, 2)}"


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


def motion(generator: Array, names: Sequence[str]) -> str:
    """Say which two variables a generator mixes and how, where it mixes just two.

    >>> motion(np.array([[0.0, 1.0], [1.0, 0.0]]), ["E", "p"])
    'boost E ↔ p'
    """
    size = np.where(np.isfinite(generator), generator, 0) ** 2
    pair = np.triu(size + size.T, 1)
    total = size.sum()
    if total == 0 or pair.max() < 0.95 * total:
        return "mixed motion"
    i, j = (int(k) for k in np.unravel_index(pair.argmax(), pair.shape))
    small, large = sorted((generator[i, j], generator[j, i]), key=abs)
    kind = "shear" if abs(small) < 0.05 * abs(large) else "boost" if small * large > 0 else "rotation"
    return f"{kind} {names[i]} ↔ {names[j]}"


def shorten(text: str, length: int) -> str:
    """Cut a text which is too long for its place.

    >>> shorten("momentum", 5)
    'mome…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def terms(law: str) -> list[str]:
    """Cut a law before each of its signs, so that lines break between terms only.

    >>> terms("q(x) = 1.00 E² - 1.00 p²")
    ['q(x) = 1.00 E²', '− 1.00 p²']
    """
    return [re.sub("^- ", "− ", term) for term in re.split(r"\s+(?=[+−-]\s)", law.strip())]
