"""Events and their jets: Pythia 8, the detector, anti-kT jets, and tops matched to their quarks."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gortho.samples import DataError

from .detector import Detector, Particles
from .jets import by_falling_pt

ENERGY, TOP_MASS = 14_000.0, 173.0  # GeV
JET_RADIUS, PT_RANGE, MAX_ETA, MAX_CONSTITUENTS = 0.8, (550.0, 650.0), 2.0, 200
PTHAT_MIN = 350.0  # GeV, of the hard process
#: Events are given up early if at this scale of the shower (GeV) no parton jet has this transverse momentum. It saves
#: half of the time, and costs 0.4 ± 0.2 % of the QCD jets and less than 0.3 % of the tops, with and without MPI.
VETO_SCALE, VETO_PT = 60.0, 480.0
AXES = ("px", "py", "pz")
#: All of this, as the recipe of jets has it.
CONSTANTS = {
    "energy": ENERGY,
    "jet_radius": JET_RADIUS,
    "pt_range": list(PT_RANGE),
    "max_eta": MAX_ETA,
    "max_constituents": MAX_CONSTITUENTS,
    "top_mass": TOP_MASS,
    "pthat_min": PTHAT_MIN,
    "veto": True,
    "veto_scale": VETO_SCALE,
    "veto_pt": VETO_PT,
}


@contextmanager
def start_pythia(top: bool, seed: int, mpi: bool = False) -> Iterator[Any]:
    """A Pythia ready for `nextBatch`; its hook lives as long as it does."""
    pythia8 = needed("pythia8mc")
    pythia = pythia8.Pythia("", False)
    lines = [
        "Print:quiet = on",
        "Random:setSeed = on",
        f"Random:seed = {seed}",
        f"Beams:eCM = {ENERGY}",
        f"PartonLevel:MPI = {'on' if mpi else 'off'}",
        f"PhaseSpace:pTHatMin = {PTHAT_MIN}",
        f"6:m0 = {TOP_MASS}",
    ]
    tops = ["Top:gg2ttbar = on", "Top:qqbar2ttbar = on", "24:onMode = off", "24:onIfAny = 1 2 3 4 5"]
    lines += tops if top else ["HardQCD:all = on"]
    for line in lines:
        if not pythia.readString(line):
            raise RuntimeError(f"Pythia does not take {line!r}")
    hook = early_veto(pythia8)
    pythia.setUserHooksPtr(hook)
    if not pythia.init():
        raise RuntimeError("Pythia cannot start")
    yield pythia
    del pythia, hook


def early_veto(pythia8: Any) -> Any:
    """A hook that gives an event up once its shower is at `VETO_SCALE` and no parton jet has pT `VETO_PT`."""

    class Veto(pythia8.UserHooks):
        def __init__(self) -> None:
            pythia8.UserHooks.__init__(self)
            # anti-kT, R, least pT, largest eta, all particles, their own masses, no hook, Pythia's own code: no banner
            self.jets = pythia8.SlowJet(-1, JET_RADIUS, 100.0, 5.0, 1, 2, None, False)

        def canVetoPT(self) -> bool:
            return True

        def scaleVetoPT(self) -> float:
            return VETO_SCALE

        def doVetoPT(self, position: int, event: Any) -> bool:
            if position > 3:  # in the decay of a top: decided before
                return False
            self.jets.analyze(event)
            return self.jets.sizeJet() == 0 or self.jets.pT(0) < VETO_PT

    return Veto()


def select(
    batch: Any, detector: Detector, rng: np.random.Generator, top: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The jets of a batch of events: all their constituents (M, 3), how many each has, and p̂T."""
    ak = needed("awkward")
    particles = batch.prt
    per_event = ak.to_numpy(ak.num(particles))
    flat = ak.flatten(particles)
    event = np.repeat(np.arange(len(per_event)), per_event)
    code, status = ak.to_numpy(flat.id), ak.to_numpy(flat.status)
    p = np.stack([ak.to_numpy(flat.p[axis]) for axis in AXES], axis=1)
    final = np.flatnonzero(status > 0)
    made = flat.vProd[final]
    vertex = np.stack([ak.to_numpy(ak.fill_none(made[axis], 0.0)) for axis in AXES], axis=1)
    energy = ak.to_numpy(flat.p.e)
    flow = detector(Particles(event[final], code[final], p[final], energy[final], vertex * 1e-3), rng)
    jet_event, jet_p, momenta, jet = leading_jets(flow.event, flow.momentum, len(per_event))
    if top and len(jet_event):
        mother = ak.to_numpy(flat.mother1).astype(np.int64)
        starts = np.cumsum(per_event) - per_event
        good = matched(event, code, p, starts[event] + mother, jet_event, jet_p)
        keep = good[jet]
        momenta, jet = momenta[keep], (np.cumsum(good) - 1)[jet[keep]]
        jet_event = jet_event[good]
    hat = np.sqrt(ak.to_numpy(batch.info.pT2Hat))[jet_event]
    if not len(jet_event):
        return np.empty((0, 3)), np.empty(0, dtype=np.int64), hat
    order, counts = by_falling_pt(momenta, jet, MAX_CONSTITUENTS)
    return momenta[order], counts, hat


def leading_jets(
    event: np.ndarray, momentum: np.ndarray, events: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Leading anti-kT jets in the range of pT and eta: their events, momenta, constituents, and whose these are."""
    ak, fastjet = needed("awkward"), needed("fastjet")
    per_event = np.bincount(event, minlength=events)
    busy = np.flatnonzero(per_event)
    starts = np.cumsum(per_event) - per_event
    energy = np.linalg.norm(momentum, axis=1)
    columns = {"px": momentum[:, 0], "py": momentum[:, 1], "pz": momentum[:, 2], "E": energy}
    with quiet():
        objects = ak.unflatten(ak.zip(columns), per_event[busy])
        rule = fastjet.JetDefinition(fastjet.antikt_algorithm, JET_RADIUS)
        sequence = fastjet.ClusterSequence(objects, rule)
        least = PT_RANGE[0] - 1.0
        jets, parts = sequence.inclusive_jets(min_pt=least), sequence.constituent_index(min_pt=least)
    pt = np.hypot(jets.px, jets.py)
    first = ak.argmax(pt, axis=1, keepdims=True)
    lead = ak.firsts(ak.zip({name: jets[name][first] for name in AXES}))
    parts = ak.firsts(parts[first])
    there = ~ak.to_numpy(ak.is_none(lead))
    p = np.stack([ak.to_numpy(ak.fill_none(lead[name], 0.0)) for name in AXES], axis=1)
    pt = np.hypot(p[:, 0], p[:, 1])
    eta = np.arcsinh(p[:, 2] / np.where(pt > 0, pt, 1.0))
    good = np.flatnonzero(there & (pt > PT_RANGE[0]) & (pt < PT_RANGE[1]) & (np.abs(eta) < MAX_ETA))
    counts = inside = np.empty(0, dtype=np.int64)
    if len(good):
        chosen = ak.drop_none(parts[good])
        counts, inside = ak.to_numpy(ak.num(chosen)), ak.to_numpy(ak.flatten(chosen))
    jet = np.repeat(np.arange(len(good)), counts)
    return busy[good], p[good], momentum[starts[busy[good]][jet] + inside], jet


def matched(
    event: np.ndarray,
    code: np.ndarray,
    momentum: np.ndarray,
    mother: np.ndarray,
    jet_event: np.ndarray,
    jet_momentum: np.ndarray,
) -> np.ndarray:
    """Which jets have a top and its three decay quarks within ΔR 0.8; `mother` are rows of the same arrays."""
    parent = code[mother]
    quark = np.flatnonzero((np.abs(code) <= 5) & (code != 0) & np.isin(np.abs(parent), (6, 24)))
    result = np.zeros(len(jet_event), dtype=bool)
    for sign in (1, -1):
        mine = quark[np.sign(parent[quark]) == sign]
        mine = mine[np.argsort(event[mine], kind="stable")]
        found = np.bincount(event[mine], minlength=int(event.max(initial=0)) + 1)
        start = (np.cumsum(found) - found)[jet_event]
        complete = found[jet_event] == 3
        if not complete.any():
            continue
        rows = mine[np.minimum(start[:, None] + np.arange(3), len(mine) - 1)]
        quarks = momentum[rows]  # (jets, 3, 3)
        vectors = np.concatenate([quarks, quarks.sum(axis=1, keepdims=True)], axis=1)
        near = distance(vectors, jet_momentum[:, None]) < JET_RADIUS
        result |= complete & near.all(axis=1)
    return result


def distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """ΔR between momenta (..., 3)."""
    eta = [np.arcsinh(p[..., 2] / np.hypot(p[..., 0], p[..., 1])) for p in (a, b)]
    phi = [np.arctan2(p[..., 1], p[..., 0]) for p in (a, b)]
    turn = np.mod(phi[0] - phi[1] + np.pi, 2 * np.pi) - np.pi
    return np.hypot(eta[0] - eta[1], turn)


@contextmanager
def quiet() -> Iterator[None]:
    """Within: standard output of C++ code goes nowhere, so that fastjet prints no banner."""
    sys.stdout.flush()
    keep, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        yield
    finally:
        os.dup2(keep, 1)
        os.close(keep)
        os.close(null)


def needed(name: str) -> Any:
    """A module of the extra `hep`, or an error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DataError(f"making jets needs {name} ({error}): pip install 'gortho[hep]'") from None
