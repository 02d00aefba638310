"""A table for those who have none at hand: particles whose momenta are in another unit than their energies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

NAME = "particles.csv"
ROWS = 1_000
#: The square of the speed of light in these units, which a search tells.
LIGHT = 0.09


def write(path: Path, rows: int = ROWS) -> None:
    """Events with E, px, py, pz and mass: mass² = E² − 0.09 p²."""
    rng = np.random.default_rng(0)
    momentum, mass = rng.normal(size=(rows, 3)), rng.uniform(0.5, 2.0, size=rows)
    energy = np.sqrt(mass**2 + LIGHT * np.square(momentum).sum(1))
    table = np.column_stack([np.arange(rows), energy, momentum, mass])
    np.savetxt(path, table, "%.17g", ",", header="event,E,px,py,pz,target_mass", comments="")
