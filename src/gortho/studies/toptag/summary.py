"""What a set of jets looks like: moments in a table, distributions in a picture."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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


@dataclass(frozen=True)
class Moments:
    """Numbers that characterise the jets of one class."""

    jets: int
    mean_count: float
    std_count: float
    up_to_100: float  # share of jets with at most 100 constituents
    median_mass: float
    in_window: float  # share of jets with a mass in `WINDOW`
    mean_pt: float
    leading_share: float  # mean share of the leading constituent in the pT


@dataclass(frozen=True)
class PairMoments:
    """Moments over pairs of vectors in a jet, with ψ(x) = sign(x) log(|x| + 1), as networks on pairs see them.

    Each jet gets two beams (√2, 0, 0, ±1). `edges` is E[(N+1)(N+2)] / E[N+1] for N constituents; `norm` and `dot` are
    the means of ψ((p - q)²) and ψ(p·q) over pairs of different vectors. In the public reference set they are 56.5,
    -1.491 and 1.121.
    """

    edges: float
    norm: float
    dot: float


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


def moments(jets: Jets) -> dict[str, Moments]:
    """Moments of each class that is there, by its name."""
    values = observables(jets)
    return {
        LABELS[code]: Moments(
            jets=len(own),
            mean_count=own["count"].mean(),
            std_count=own["count"].std(ddof=0),
            up_to_100=(own["count"] <= 100).mean(),
            median_mass=own["mass"].median(),
            in_window=own["mass"].between(*WINDOW, inclusive="neither").mean(),
            mean_pt=own["pt"].mean(),
            leading_share=own["leading"].mean(),
        )
        for code in (1, 0)
        if len(own := values[values["label"] == code])
    }


def pair_moments(jets: Jets, most: int = 4000, seed: int = 0) -> PairMoments:
    """Moments over pairs of constituents and beams, of at most so many jets."""
    some = sample(jets, most, seed)
    beams = np.array([[np.sqrt(2), 0.0, 0.0, 1.0], [np.sqrt(2), 0.0, 0.0, -1.0]])
    sums = np.zeros(3)
    for low, high in zip(some.offsets[:-1], some.offsets[1:]):
        p = np.asarray(some.momenta[low:high], dtype=np.float64)
        p = np.concatenate([beams, np.column_stack([np.linalg.norm(p, axis=1), p])])
        dot = (p * [1, -1, -1, -1]) @ p.T
        upper = np.triu_indices(len(p), 1)
        squares, pairs = np.diag(dot), dot[upper]
        norms = squares[upper[0]] + squares[upper[1]] - 2 * pairs
        sums += len(pairs), _psi(norms).sum(), _psi(pairs).sum()
    n = some.counts.astype(np.float64)
    edges = ((n + 1) * (n + 2)).mean() / (n + 1).mean()
    return PairMoments(float(edges), float(sums[1] / sums[0]), float(sums[2] / sums[0]))


def _psi(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.log1p(np.abs(x))


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
    for label, m in moments(some).items():
        lines.append(
            f"{label:6}{m.jets:9d}{f'{m.mean_count:.1f} ± {m.std_count:.1f}':>15}{m.up_to_100:9.1%}"
            f"{m.median_mass:9.1f}{m.in_window:9.3f}{m.mean_pt:8.1f}{m.leading_share:9.3f}"
        )
    return "\n".join(lines)


def plot(jets: Jets, out: str | os.PathLike[str], title: str = "") -> Path:
    """Draw mass, multiplicity and pT of both classes to a .png, .pdf or .svg file."""
    out = check_picture(out)
    from matplotlib.figure import Figure

    some = sample(jets)
    values, found = observables(some), moments(some)
    longest = max(20, int(np.ceil(values["count"].quantile(0.999) / 10)) * 10)
    low, high = values["pt"].quantile([0.001, 0.999])
    pt_edges = np.linspace(np.floor(low / 10) * 10, np.ceil(high / 10) * 10, 21)
    window = f"{WINDOW[0]:.0f}–{WINDOW[1]:.0f}"
    panels: list[tuple[str, np.ndarray, str, str, Callable[[Moments], str]]] = [
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
        for line, (label, m) in enumerate(found.items()):
            heights = np.histogram(values[column][values["label"] == LABELS.index(label)], edges)[0] / m.jets
            axes.stairs(heights, edges, fill=True, color=COLOURS[label], alpha=0.15)
            axes.stairs(heights, edges, color=COLOURS[label], linewidth=1.6)
            place = {"x": 0.98, "y": 0.97 - 0.075 * line, "ha": "right", "va": "top"}
            axes.text(**place, s=f"{label}: {note(m)}", color=COLOURS[label], transform=axes.transAxes)
        axes.set_xlabel(f"{name} [{unit}]" if unit else name)
        axes.set_ylabel(f"share of jets per {edges[1] - edges[0]:g} {unit or name}")
        axes.set_xlim(max(edges[0], 0), edges[-1])
        axes.set_ylim(0, axes.get_ylim()[1] * 1.22)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
    grid[0].axvspan(*WINDOW, ymax=0.8, color="0.5", alpha=0.12, linewidth=0, zorder=0)
    counted = ", ".join(f"{m.jets:,} {label}".replace(",", " ") for label, m in found.items())
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
