"""Cells of the calorimeters, in pseudorapidity eta and azimuth phi."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of a calorimeter: edges in eta, and width in phi; cell i lies between edges i - 1 and i."""

    edges: np.ndarray
    width: np.ndarray  # (number of edges,), the first is not used

    def find(self, eta: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Number in eta (0: outside) and in phi of the cells that hold these directions."""
        row = np.searchsorted(self.edges, eta, side="left")
        row[row == len(self.edges)] = 0
        return row, ((phi + np.pi) / self.width[row]).astype(np.int64)


def tower_cells(phi_degrees: float) -> Cells:
    """0.1 wide in eta up to 2.5, and phi_degrees in phi; coarser outside."""
    fine = [-3.2, *np.round(np.arange(-25, 27) * 0.1, 1), 3.3]
    coarse = [-4.9, -4.7, -4.5, -4.3, -4.1, -3.9, -3.7, -3.5, -3.3, -3.0, -2.8, -2.6]
    coarse += [2.8, 3.0, 3.2, 3.5, 3.7, 3.9, 4.1, 4.3, 4.5, 4.7, 4.9]
    edges = np.concatenate([fine, coarse])
    width = np.radians(np.repeat([phi_degrees, 20.0], [len(fine), len(coarse)]))
    order = np.argsort(edges)
    return Cells(edges[order], width[order])
