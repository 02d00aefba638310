"""A fast detector: helices, tracks, calorimeter cells, energy flow, all on flat numpy arrays.

The numbers are those of Delphes' ATLAS card in its release 3.3.2, where both layers of the calorimeter have the same
cells. Momenta are in GeV, lengths in metres; what comes out is massless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from gortho.samples import DataError
from gortho.studies.toptag.cells import tower_cells

CARD = "3.3.2"
RADIUS, HALF_LENGTH, FIELD = 1.15, 3.51, 2.0  # metres, tesla
CURVATURE = 0.299792458  # curvature in 1/m of a charge 1 with 1 GeV in 1 T
TRACKER_ETA = 2.5
#: Sign of the charge of particles that live long enough; antiparticles have the other one.
CHARGES = {11: -1, 13: -1, 211: 1, 321: 1, 2212: 1, 3112: -1, 3222: 1, 3312: -1, 3334: -1}
INVISIBLE = (12, 14, 16)
ELECTRON, MUON, PHOTON = 11, 13, 22
#: (efficiency for 0.1 < pt <= 1, for 1 < pt, for 100 < pt) in |eta| <= 1.5 and in 1.5 < |eta| <= 2.5.
EFFICIENCY = {
    "hadron": ((0.70, 0.95, 0.95), (0.60, 0.85, 0.85)),
    "electron": ((0.73, 0.95, 0.99), (0.50, 0.83, 0.90)),
    "muon": ((0.75, 0.99, 0.99), (0.70, 0.98, 0.98)),
}
#: Relative resolution sqrt(a² + (b pt)²) as (a, b) in |eta| <= 0.5, <= 1.5, <= 2.5.
RESOLUTION = {
    "hadron": ((0.06, 1.3e-3), (0.10, 1.7e-3), (0.25, 3.1e-3)),
    "electron": ((0.06, 1.3e-3), (0.10, 1.7e-3), (0.25, 3.1e-3)),
    "muon": ((0.02, 2.0e-4), (0.03, 3.0e-4), (0.06, 6.0e-4)),
}
KINDS = ("hadron", "electron", "muon")
#: σ(E) = sqrt(c²E² + s²E + n²) as (largest |eta|, c, s, n), by layer.
LAYERS = {
    "electromagnetic": ((3.2, 0.0017, 0.101, 0.0), (4.9, 0.0350, 0.285, 0.0)),
    "hadronic": ((1.7, 0.0302, 0.5205, 1.59), (3.2, 0.0500, 0.706, 0.0), (4.9, 0.0942, 1.0, 0.0)),
}
LEAST_ENERGY = {"electromagnetic": 0.5, "hadronic": 1.0}
LEAST_SIGNIFICANCE = 1.0  # of an energy, in units of its error


class Rows:
    """Arrays with a row for each of many things."""

    def take(self, keep: np.ndarray) -> Self:
        """Some of the rows."""
        return type(self)(*(values[keep] for values in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Particles(Rows):
    """Stable particles of many events, sorted by event; `vertex` is where they were made, in metres."""

    event: np.ndarray  # (n,)
    code: np.ndarray  # (n,) PDG codes
    momentum: np.ndarray  # (n, 3)
    energy: np.ndarray  # (n,)
    vertex: np.ndarray  # (n, 3)


@dataclass(frozen=True, eq=False)
class Tracks(Rows):
    """Measured tracks: rows of their particles, momenta (t, 3), relative errors (t,)."""

    of: np.ndarray
    momentum: np.ndarray
    resolution: np.ndarray


@dataclass(frozen=True, eq=False)
class Flow(Rows):
    """Energy-flow objects of many events: massless momenta (m, 3)."""

    event: np.ndarray
    momentum: np.ndarray


def charge(code: np.ndarray) -> np.ndarray:
    """Charges of particles by their PDG codes.

    >>> charge(np.array([11, -11, 211, 22, 2112])).tolist()
    [-1, 1, 1, 0, 0]
    """
    size = np.abs(code)
    result = np.zeros(len(code), dtype=np.int64)
    for particle, sign in CHARGES.items():
        result[size == particle] = sign
    return result * np.sign(code)


def propagate(particles: Particles) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(eta, phi) where each particle leaves the tracker's cylinder, and whether it starts inside and gets there."""
    x, y, z = particles.vertex.T
    px, py, pz = particles.momentum.T
    pt = np.hypot(px, py)
    inside = (np.hypot(x, y) < RADIUS) & (np.abs(z) < HALF_LENGTH) & (pt > 3e-5)
    pt = np.where(pt > 0, pt, 1.0)
    # length of the way in the transverse plane up to the end caps
    with np.errstate(divide="ignore", invalid="ignore"):
        to_cap = np.where(pz != 0, (np.copysign(HALF_LENGTH, pz) - z) * pt / pz, np.inf)
    q = charge(particles.code)
    bent = q != 0
    out_x, out_y, way = np.empty_like(x), np.empty_like(y), np.empty_like(x)

    s = ~bent  # straight lines
    ux, uy = px[s] / pt[s], py[s] / pt[s]
    along, across = x[s] * ux + y[s] * uy, x[s] * uy - y[s] * ux
    way[s] = np.minimum(np.sqrt(np.maximum(RADIUS**2 - across**2, 0)) - along, to_cap[s])
    out_x[s], out_y[s] = x[s] + ux * way[s], y[s] + uy * way[s]

    b = bent  # circles around (cx, cy), turning by k per metre
    k = -CURVATURE * q[b] * FIELD / pt[b]
    start = np.arctan2(py[b], px[b])
    cx, cy = x[b] - np.sin(start) / k, y[b] + np.cos(start) / k
    distance = np.maximum(np.hypot(cx, cy), 1e-12)
    sine = 0.5 * k * (RADIUS**2 - distance**2 - 1 / k**2) / distance
    crosses = np.abs(sine) <= 1
    angle, turn = np.arcsin(np.clip(sine, -1, 1)), 2 * np.pi / np.abs(k)
    centre = np.arctan2(cy, cx)
    first = np.mod((centre + angle - start) / k, turn)
    second = np.mod((centre + np.pi - angle - start) / k, turn)
    to_side = np.where(crosses, np.minimum(first, second), np.inf)
    length = np.minimum(to_side, to_cap[b])
    inside[b] &= np.isfinite(length)
    length = np.where(np.isfinite(length), length, 0.0)
    way[b] = length
    out_x[b], out_y[b] = cx + np.sin(start + k * length) / k, cy - np.cos(start + k * length) / k

    radius = np.hypot(out_x, out_y)
    inside &= radius > 0
    with np.errstate(invalid="ignore"):
        eta = np.arcsinh((z + np.where(inside, way, 0.0) * pz / pt) / np.where(radius > 0, radius, 1.0))
    return eta, np.arctan2(out_y, out_x), inside


def kind_of(code: np.ndarray) -> np.ndarray:
    """0 for hadrons (and what is not known), 1 for electrons, 2 for muons."""
    size = np.abs(code)
    return np.where(size == ELECTRON, 1, np.where(size == MUON, 2, 0))


def track_efficiency(kind: np.ndarray, pt: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Probability that a charged particle is seen as a track."""
    table = np.array([EFFICIENCY[name] for name in KINDS])
    region = (np.abs(eta) > 1.5).astype(int)
    step = (pt > 1.0).astype(int) + (pt > 100.0)
    return np.where((pt > 0.1) & (np.abs(eta) <= TRACKER_ETA), table[kind, region, step], 0.0)


def track_resolution(kind: np.ndarray, pt: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Relative error of a track's momentum."""
    table = np.array([RESOLUTION[name] for name in KINDS])
    region = np.minimum((np.abs(eta) > 0.5).astype(int) + (np.abs(eta) > 1.5), 2)
    a, b = table[kind, region, 0], table[kind, region, 1]
    return np.where((pt > 0.1) & (np.abs(eta) <= TRACKER_ETA), np.sqrt(a**2 + (b * pt) ** 2), 0.0)


def layer_sigma(layer: str, energy: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Error of an energy in a calorimeter cell."""
    result = np.zeros_like(energy)
    for limit, constant, stochastic, noise in reversed(LAYERS[layer]):
        sigma = np.sqrt((constant * energy) ** 2 + stochastic**2 * np.maximum(energy, 0) + noise**2)
        result = np.where(np.abs(eta) <= limit, sigma, result)
    return result


def significant(layer: str, energy: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Energies of cells; zero where they are too small, or no larger than their error."""
    least = np.maximum(LEAST_ENERGY[layer], LEAST_SIGNIFICANCE * layer_sigma(layer, energy, eta))
    return np.where(energy < least, 0.0, energy)


def log_normal(mean: np.ndarray, sigma: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Positive random numbers of this mean and standard deviation; 0 where the mean is."""
    safe = np.where(mean > 0, mean, 1.0)
    b = np.sqrt(np.log1p((sigma / safe) ** 2))
    return np.where(mean > 0, safe * np.exp(b * rng.standard_normal(len(safe)) - 0.5 * b**2), 0.0)


class Detector:
    """Particles in, energy-flow objects out; `phi_degrees` is the width in phi of the cells (10 in the card)."""

    def __init__(self, phi_degrees: float = 5.0):
        if not (1 <= phi_degrees <= 90 and abs(360 / phi_degrees - round(360 / phi_degrees)) < 1e-9):
            raise DataError(
                f"cells of {phi_degrees} degrees in phi do not fill the circle: use 5, 10 or another divisor of 360"
            )
        self.cells = tower_cells(phi_degrees)

    def __call__(self, particles: Particles, rng: np.random.Generator) -> Flow:
        """What the detector sees; the same random numbers give the same objects."""
        particles = particles.take(~np.isin(np.abs(particles.code), INVISIBLE))
        eta, phi, reached = propagate(particles)
        particles, eta, phi = particles.take(reached), eta[reached], phi[reached]
        tracks = self.tracks(particles, eta, rng)
        kind = kind_of(particles.code)
        electromagnetic = (kind == 1) | (np.abs(particles.code) == PHOTON)
        deposits = {"electromagnetic": electromagnetic, "hadronic": ~electromagnetic & (kind != 2)}

        # What a cell sees has a random place within it, the same one for both layers.
        row, column = self.cells.find(eta, phi)
        cell = (particles.event * len(self.cells.edges) + row) * 1024 + column
        _, first, tower = np.unique(cell, return_index=True, return_inverse=True)
        place = rng.random((2, len(eta)))[:, first[tower]]
        muons = tracks.take(kind[tracks.of] == 2)
        flows = [Flow(particles.event[muons.of], muons.momentum)]
        for layer, here in deposits.items():
            hits, own = np.flatnonzero(here), tracks.take(here[tracks.of])
            flows.append(self.layer(layer, particles, (cell, row, column), hits, own, place, rng))
        both = Flow(*(np.concatenate(columns) for columns in zip(*(vars(f).values() for f in flows))))
        return both.take(np.argsort(both.event, kind="stable"))

    def tracks(self, particles: Particles, eta: np.ndarray, rng: np.random.Generator) -> Tracks:
        """The charged particles that are seen as tracks; eta is where they leave the tracker."""
        pt = np.hypot(particles.momentum[:, 0], particles.momentum[:, 1])
        kind = kind_of(particles.code)
        seen = rng.random(len(pt)) < track_efficiency(kind, pt, eta)
        of = np.flatnonzero(seen & (charge(particles.code) != 0))
        pt, kind = pt[of], kind[of]
        measured = pt * (1 + track_resolution(kind, pt, eta[of]) * rng.standard_normal(len(pt)))
        resolution = track_resolution(kind, measured, np.arcsinh(particles.momentum[of, 2] / pt))
        momentum = particles.momentum[of] * (measured / pt)[:, None]
        return Tracks(of, momentum, resolution).take(measured > 0)

    def layer(
        self,
        layer: str,
        particles: Particles,
        cell: tuple[np.ndarray, np.ndarray, np.ndarray],
        hits: np.ndarray,
        tracks: Tracks,
        place: np.ndarray,
        rng: np.random.Generator,
    ) -> Flow:
        """Energy flow of one layer: the tracks that end in its cells, and what the cells see beyond them.

        `cell` are the numbers of the cells where particles end, and their rows in eta (0: outside) and columns in phi;
        `hits` are the rows of the particles that leave energy here, `tracks` those of them that have one, and `place`
        (2, particles) says where in its cell a particle's energy is seen.
        """
        name, row, column = cell
        hits, tracks = hits[row[hits] > 0], tracks.take(row[tracks.of] > 0)
        names, first, of_hit = np.unique(name[hits], return_index=True, return_inverse=True)
        of_track = np.searchsorted(names, name[tracks.of])
        one = hits[first]  # a particle of each cell
        row, column, (u, v) = row[one], column[one], place[:, one]

        low, high = self.cells.edges[row - 1], self.cells.edges[row]
        middle = 0.5 * (low + high)
        true = np.bincount(of_hit, particles.energy[hits], minlength=len(names))
        seen = log_normal(true, layer_sigma(layer, true, middle), rng)
        seen = significant(layer, seen, middle)

        energy = np.linalg.norm(tracks.momentum, axis=1)
        rest, scale = self._subtract(layer, seen, middle, of_track, energy, tracks.resolution)
        neutral = significant(layer, rest, middle)

        some = neutral > 0
        width = self.cells.width[row[some]]
        where_eta = low[some] + (high - low)[some] * u[some]
        where_phi = -np.pi + (column[some] + v[some]) * width
        pt = neutral[some] / np.cosh(where_eta)
        towers = np.stack([pt * np.cos(where_phi), pt * np.sin(where_phi), pt * np.sinh(where_eta)], axis=1)
        kept = scale > 0
        return Flow(
            np.concatenate([particles.event[tracks.of[kept]], particles.event[one[some]]]),
            np.concatenate([(tracks.momentum * scale[:, None])[kept], towers]),
        )

    def _subtract(
        self,
        layer: str,
        seen: np.ndarray,
        middle: np.ndarray,
        of_track: np.ndarray,
        track_energy: np.ndarray,
        resolution: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Tracks better than the cell are taken off it, worse ones are scaled to what is left of it."""
        cell_error = layer_sigma(layer, track_energy, middle[of_track]) / track_energy
        worse = cell_error < resolution
        rest = seen - np.bincount(of_track[~worse], track_energy[~worse], minlength=len(seen))
        sum_worse = np.bincount(of_track[worse], track_energy[worse], minlength=len(seen))
        taken = sum_worse > 0
        factor = np.where(taken, rest / np.where(taken, sum_worse, 1.0), 1.0)
        return np.where(taken, 0.0, rest), np.where(worse, factor[of_track], 1.0)
