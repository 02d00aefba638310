"""The canvas under every figure: colours which follow the page, heat maps drawn by hand, tidy plots."""

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from html import escape
from io import StringIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, NullFormatter

from gortho.report.data import Array
from gortho.report.words import power_of_ten, shorten

INK, RULE, GREY = "#010203", "#040506", "#6b7280"
BLUE, ORANGE = "#0072b2", "#d55e00"  # Okabe and Ito's palette, told apart by colour-blind readers too
SERIES = [BLUE, ORANGE, "#009e73", "#cc79a7", "#b8860b", GREY]
MARKERS = "osD^vPX"
_PAGE_COLOURS = {
    INK: "currentColor",
    RULE: "var(--rule, #9994)",
    GREY: f"var(--muted, {GREY})",
    BLUE: f"var(--blue, {BLUE})",
    ORANGE: f"var(--orange, {ORANGE})",
}
#: Cells of a matrix may be wider than asked for by this factor, where numbers are long.
WIDER = 1.4
#: Inches at the sides of a plot: fonts of browsers may be wider than those that are measured here.
ROOM = 0.1
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "gortho",
    "text.parse_math": False,
    "font.size": 10.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
}


def _open(alt: str, view_box: str, style: str = "") -> str:
    """Open a picture which fills its column and is read aloud as its alternative text."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-label="{escape(alt)}" viewBox="{view_box}" width="100%" style="{style}">'
    )


def plot(name: str, alt: str, draw: Callable[[Figure, Axes], None], height: float = 3.2) -> str:
    """Draw one plot and return it as inline SVG whose ids begin with its name."""
    return _drawn(name, alt, lambda figure: draw(figure, figure.subplots()), (4.6, height))


def plots(name: str, alt: str, draws: Sequence[Callable[[Axes], None]]) -> str:
    """Draw several small plots with one scale of y, in rows of four."""
    columns = min(4, len(draws))
    rows = -(-len(draws) // columns)

    def draw(figure: Figure) -> None:
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
        for axes, one in zip(grid, draws):
            one(axes)
        for axes in grid[len(draws) :]:
            axes.set_visible(False)

    return _drawn(name, alt, draw, (2.3 * columns, 1.9 * rows))


def _drawn(name: str, alt: str, draw: Callable[[Figure], None], size: tuple[float, float]) -> str:
    with rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=ROOM))
        draw(figure)
        buffer = StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", buffer.getvalue(), flags=re.S)
    head, body = re.split(r"(?<=>)", svg[svg.index("<svg") :], maxsplit=1)
    view_box = re.search('viewBox="([^"]+)"', head)
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", body)
    for colour, page_colour in _PAGE_COLOURS.items():
        body = body.replace(colour, page_colour)
    return _open(alt, view_box.group(1) if view_box else "") + body.strip()


def decades(axes: Axes, side: str, *values: Iterable[float]) -> None:
    """Make the x or y axis logarithmic, from one power of ten to another around the values."""
    logs = np.log10([v for series in values for v in series if np.isfinite(v) and v > 0])
    limits = 10.0 ** np.floor(logs.min() - 0.05), 10.0 ** np.ceil(logs.max() + 0.05)
    axes.set(**{f"{side}scale": "log", f"{side}lim": limits})
    axis = {"x": axes.xaxis, "y": axes.yaxis}[side]
    axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(round(np.log10(value)))))
    axis.set_minor_formatter(NullFormatter())


def heat(
    values: Array,
    texts: Callable[[int, int], Sequence[str]],
    names: Sequence[str],
    alt: str,
    cell: tuple[int, int],
    longest: int = 10,
) -> str:
    """Draw a matrix as cells with lines of text, tinted by values, its variables named along both sides."""
    short = [shorten(name, longest) for name in names]
    (width, height), top = cell, 22
    strongest = np.nanmax(np.abs(values), initial=0, where=np.isfinite(values)) or 1
    cells = {(i, j): [text for text in texts(i, j) if text] for i, j in np.ndindex(values.shape)}
    # long numbers get wider cells, then smaller letters, all alike, so that none leaves its cell (a character is about
    # 0.64 em wide at most)
    lengths = [max((len(lines[k]) for lines in cells.values() if len(lines) > k), default=1) for k in (0, 1)]
    width = max(width, min(round(WIDER * width), round(0.64 * 14 * lengths[0]) + 8))
    sizes = [min(most, (width - 8) / (0.64 * length)) for most, length in zip((14, 11), lengths)]
    sizes[1] = min(sizes)
    # Widths of letters in units of their size, rather too much than too little.
    widest = max(sum(1.0 if letter in "mwMW@%…" else 0.66 for letter in name) for name in short)
    label = min(14, (width - 4) / widest)
    left = round(14 + label * widest)
    parts: list[str] = []

    def write(x: float, y: float, text: str, more: str) -> None:
        parts.append(f'<text x="{x:g}" y="{y:g}" {more}>{escape(text)}</text>')

    for i, row in enumerate(values):
        y = top + i * height
        write(left - 8, y + height / 2 + 5, short[i], f'text-anchor="end" font-size="{label:.3g}"')
        write(left + (i + 0.5) * width, top - 8, short[i], f'text-anchor="middle" font-size="{label:.3g}"')
        for j, value in enumerate(row):
            x, colour = left + j * width, _PAGE_COLOURS[BLUE if value > 0 else ORANGE]
            tint = 0.55 * abs(value) / strongest if np.isfinite(value) else 0
            parts.append(
                f'<rect x="{x + 1}" y="{y + 1}" width="{width - 2}" height="{height - 2}" rx="4" '
                f'style="fill:{colour};fill-opacity:{tint:.3f};stroke:{_PAGE_COLOURS[RULE]}"/>'
            )
            lines = cells[i, j]
            for k, text in enumerate(lines):
                at = y + height / 2 + 4.5 + 16 * (k - (len(lines) - 1) / 2)
                write(x + width / 2, at, text, f'text-anchor="middle" font-size="{sizes[k]:.3g}"')
    total_width, total_height = left + len(values) * width + 2, top + len(values) * height + 2
    style = f"min-width:{0.75 * total_width:.0f}px;max-width:{1.4 * total_width:.0f}px"
    group = f'<g font-size="14" style="fill:currentColor">{"".join(parts)}</g></svg>'
    return _open(alt, f"0 0 {total_width} {total_height}", style) + group
