"""What a set of jets looks like: moments in a table, distributions in a picture."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gortho.samples import check_writable
from gortho.studies.experiments.figures import pyplot

from .jets import LABELS, SPLITS, Jets

if TYPE_CHECKING:
    import pandas as pd

#: Jets that a summary looks at, at most: more do not change the picture.
MOST = 200_000
WINDOW = (145.0, 205.0)  # GeV around the mass of the top
COLOURS = {"top": "#d55e00", "QCD": "#0072b2"}  # Okabe and Ito, as in the report
PICTURES = (".png", ".pdf", ".svg")
#: What a picture shows, by the names of `observables`.
DRAWN = {"mass": "jet mass [GeV]", "count": "constituents", "pt": "jet transverse momentum [GeV]"}


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
    out, plt = check_writable(out, PICTURES), pyplot()
    values = observables(sample(jets))
    figure, grid = plt.subplots(1, 3, figsize=(11.5, 4.1), layout="constrained")
    for axis, (column, name) in zip(grid, DRAWN.items()):
        low, high = values[column].quantile([0.001, 0.999])
        edges = np.unique(np.round(np.linspace(low, high + 1, 50)))  # constituents are whole numbers
        for code, own in values.groupby("label")[column]:
            look = {"color": COLOURS[LABELS[code]], "label": f"{LABELS[code]}, {len(own):,} jets"}
            axis.hist(own, edges, density=True, histtype="step", linewidth=1.6, **look)
        axis.set(xlabel=name, ylabel="share of jets per unit")
        axis.spines[["top", "right"]].set_visible(False)
    grid[0].axvspan(*WINDOW, color="0.5", alpha=0.12, linewidth=0, zorder=0)
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside upper right", frameon=False)
    figure.suptitle(title or "Jets", x=0.01, ha="left", fontsize=12)
    figure.savefig(out, dpi=150)
    plt.close(figure)
    return out
