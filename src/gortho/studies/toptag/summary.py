"""What a set of jets looks like: moments in a table, distributions in a picture."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gortho.samples import DataError

from .jets import LABELS, SPLITS, Jets

if TYPE_CHECKING:
    import pandas as pd

#: Jets that a summary looks at, at most: more do not change the picture.
MOST = 200_000
WINDOW = (145.0, 205.0)  # GeV around the mass of the top
COLOURS = {"top": "#d55e00", "QCD": "#0072b2"}  # Okabe and Ito, as in the report
FORMATS = (".png", ".pdf", ".svg")


def observables(jets: Jets) -> pd.DataFrame:
    """Label, mass and pT in GeV, number of constituents, and the leading one's share of pT, jet by jet."""
    import pandas as pd

    total, first = jets.total(), jets.momenta[jets.offsets[:-1]].astype(np.float64)
    pt = np.hypot(total[:, 1], total[:, 2])
    mass = np.sqrt(np.maximum(total[:, 0] ** 2 - (total[:, 1:] ** 2).sum(axis=1), 0.0))
    leading = np.hypot(first[:, 0], first[:, 1]) / pt
    return pd.DataFrame(
        {"label": jets.label, "mass": mass, "pt": pt, "count": jets.counts, "leading": leading}
    )


def moments(jets: Jets) -> pd.DataFrame:
    """Numbers that characterise the jets, a row for each class that is there.

    `up_to_100` is the share of jets with at most so many constituents, `in_window` that with a mass in `WINDOW`, and
    `leading_share` the mean share of the leading constituent in the pT.
    """
    import pandas as pd

    values = observables(jets)
    values["up_to_100"] = values["count"] <= 100
    values["in_window"] = values["mass"].between(*WINDOW, inclusive="neither")
    by = values.groupby(np.take(LABELS, values["label"]))
    found = {
        "jets": by.size(),
        "mean_count": by["count"].mean(),
        "std_count": by["count"].std(ddof=0),
        "up_to_100": by["up_to_100"].mean(),
        "median_mass": by["mass"].median(),
        "in_window": by["in_window"].mean(),
        "mean_pt": by["pt"].mean(),
        "leading_share": by["leading"].mean(),
    }
    return pd.DataFrame(found).sort_index(ascending=False)  # tops first


def sample(jets: Jets, most: int = MOST, seed: int = 0) -> Jets:
    """At most so many jets, chosen at random, in their order."""
    if len(jets) <= most:
        return jets
    rows = np.sort(np.random.default_rng(seed).choice(len(jets), most, replace=False))
    return jets[rows]


def table(jets: Jets, name: str = "") -> str:
    """The moments as text."""
    count = {split: len(jets.split(split)) for split in SPLITS}
    some = sample(jets)
    lines = [
        f"{name or 'jets'}: {len(jets)} jets ({', '.join(f'{n} {split}' for split, n in count.items())})"
    ]
    if len(some) < len(jets):
        lines.append(f"measured on {len(some)} of them, chosen at random")
    lines.append(f"{'':6}{'jets':>9}{'N':>15}{'N<=100':>9}{'mass':>9}{'145-205':>9}{'pT':>8}{'leading':>9}")
    for m in moments(some).itertuples():
        lines.append(
            f"{m.Index:6}{m.jets:9d}{f'{m.mean_count:.1f} ± {m.std_count:.1f}':>15}{m.up_to_100:9.1%}"
            f"{m.median_mass:9.1f}{m.in_window:9.3f}{m.mean_pt:8.1f}{m.leading_share:9.3f}"
        )
    return "\n".join(lines)


def plot(jets: Jets, out: str | os.PathLike[str], title: str = "") -> Path:
    """Draw mass, multiplicity and pT of both classes to a .png, .pdf or .svg file."""
    out = check_picture(out)
    from matplotlib.figure import Figure

    some = sample(jets)
    values, found = observables(some), list(moments(some).itertuples())
    longest = max(20, int(np.ceil(values["count"].quantile(0.999) / 10)) * 10)
    low, high = values["pt"].quantile([0.001, 0.999])
    pt_edges = np.linspace(np.floor(low / 10) * 10, np.ceil(high / 10) * 10, 21)
    window = f"{WINDOW[0]:.0f}–{WINDOW[1]:.0f}"
    panels: list[tuple[str, np.ndarray, str, str, Callable[[Any], str]]] = [
        (
            "mass",
            np.arange(0, 301, 4.0),
            "jet mass",
            "GeV",
            lambda m: f"median {m.median_mass:.0f} GeV, {m.in_window:.0%} in {window}",
        ),
        (
            "count",
            np.arange(0, longest + 2, 2) - 0.5,
            "constituents",
            "",
            lambda m: f"{m.mean_count:.1f} ± {m.std_count:.1f}",
        ),
        ("pt", pt_edges, "jet transverse momentum", "GeV", lambda m: f"mean {m.mean_pt:.0f} GeV"),
    ]
    figure = Figure(figsize=(11.5, 4.1), layout="constrained")
    grid = figure.subplots(1, 3)
    for axes, (column, edges, name, unit, note) in zip(grid, panels):
        for line, m in enumerate(found):
            own, colour = values[column][values["label"] == LABELS.index(m.Index)], COLOURS[m.Index]
            heights = np.histogram(own, edges)[0] / m.jets
            axes.stairs(heights, edges, fill=True, color=colour, alpha=0.15)
            axes.stairs(heights, edges, color=colour, linewidth=1.6)
            place = {"x": 0.98, "y": 0.97 - 0.075 * line, "ha": "right", "va": "top"}
            axes.text(**place, s=f"{m.Index}: {note(m)}", color=colour, transform=axes.transAxes)
        axes.set_xlabel(f"{name} [{unit}]" if unit else name)
        axes.set_ylabel(f"share of jets per {edges[1] - edges[0]:g} {unit or name}")
        axes.set_xlim(max(edges[0], 0), edges[-1])
        axes.set_ylim(0, axes.get_ylim()[1] * 1.22)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
    grid[0].axvspan(*WINDOW, ymax=0.8, color="0.5", alpha=0.12, linewidth=0, zorder=0)
    counted = ", ".join(f"{m.jets:,} {m.Index}".replace(",", " ") for m in found)
    figure.suptitle(f"{title or 'Jets'}: {counted}", x=0.01, ha="left", fontsize=12)
    figure.savefig(out, dpi=150)
    return out


def check_picture(out: str | os.PathLike[str]) -> Path:
    """The path of a picture that can be written, or an error."""
    path = Path(out).expanduser()
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"{path} ends in {path.suffix!r}: a picture is one of {', '.join(FORMATS)}")
    if path.is_dir() or not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent} to write it to")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise DataError(f"pictures need matplotlib ({error}): pip install 'gortho[report]'") from None
    return path
