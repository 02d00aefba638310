"""
A crystal's unit cell from energies
===================================

Crystallographers give positions in *fractional* coordinates u: multiples of the three edges of the unit
cell. Distances then need the metric of the cell,

.. math:: r^2 = u^T G\\, u, \\qquad
   G = \\begin{pmatrix} a^2 & ab\\cos\\gamma & ac\\cos\\beta \\\\ ab\\cos\\gamma & b^2 & bc\\cos\\alpha \\\\
       ac\\cos\\beta & bc\\cos\\alpha & c^2 \\end{pmatrix}.

Energies of atoms know this metric, because they depend on distances alone. So it can be read off from
energies: here from those of pairs of copper atoms, computed with `ASE <https://ase-lib.org>`_ and its
effective medium theory.

*Told*: fractional positions and energies. *Not told*: the cell, or that distances matter.
"""

# %%
# Energies from ASE
# -----------------
# One atom sits at the origin, the other at u. The two are alone, without periodic images: a periodic energy
# is no function of a quadratic form. Atoms nearly on top of each other are left out by their energy, which
# needs no knowledge of the cell.

import matplotlib.pyplot as plt
import numpy as np
from ase import Atoms
from ase.calculators.emt import EMT
from ase.geometry import cellpar_to_cell

import gortho

CELL = np.array([5.1, 6.8, 4.3, 84.0, 106.0, 98.0])  # a, b, c in Å; α, β, γ in degrees
edges = cellpar_to_cell(CELL)  # rows are the edges
rng = np.random.default_rng(0)
calculator = EMT()


def energy(u):
    atoms = Atoms("Cu2", positions=[[0, 0, 0], u @ edges], cell=edges, pbc=False)
    atoms.calc = calculator
    return atoms.get_potential_energy()


u = rng.uniform(-0.8, 0.8, size=(1_200, 3))
E = np.array([energy(displacement) for displacement in u])
u, E = u[E < 8], E[E < 8]
print(f"{len(E)} pairs, energies from {E.min():.2f} to {E.max():.2f} eV; two atoms far apart have 7.02 eV")

# %%
# Discovery
# ---------

found = gortho.discover(u, E, names=["u", "v", "w"])
print(found)

# %%
# The form is the metric of the cell, up to a factor: energies do not say how long an ångström is. So the
# three angles and the ratios of the edges are found, and one known length, here a = 5.1 Å, sets the scale.
# For the errors, the entries of the metric are varied within their own, independently of each other.


def cell_parameters(G):
    lengths = np.sqrt(np.diag(G))
    cosines = G / np.outer(lengths, lengths)
    angles = np.degrees(np.arccos([cosines[1, 2], cosines[0, 2], cosines[0, 1]]))
    return np.concatenate([CELL[0] * lengths / lengths[0], angles])


G, errors = found.form.matrix.numpy(), found.entry_errors
cell = cell_parameters(G)
shakes = np.triu(rng.normal(size=(500, 3, 3)) * errors)
varied = [cell_parameters(G + shake + np.triu(shake, 1).T) for shake in shakes]
cell_errors = found.interval_factor * np.std(varied, axis=0)  # 95 %
LABELS = ["a", "b", "c", "α", "β", "γ"]
for label, value, error, true in zip(LABELS, cell, cell_errors, CELL):
    unit = "Å" if label in "abc" else "°"
    print(
        f"{label} = {value:8.3f} ± {error:.3f} {unit}   (truth {true:6.2f} {unit})"
        + " given" * (label == "a")
    )

# %%
# Left: the cell that was found, drawn over the true one. Right: energies against distance. With the metric
# that was found all pairs fall on one curve; with a plain length of u, as if the cell were a cube, they do
# not.

fig = plt.figure(figsize=(7, 3.5), layout="constrained")
sketch = fig.add_subplot(1, 2, 1, projection="3d")
CORNERS = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
for shape, style in ((CELL, {"color": "0.7", "lw": 5}), (cell, {"color": "#0072B2", "lw": 1.5, "ls": "--"})):
    positions = CORNERS @ cellpar_to_cell(shape)
    for i, start in enumerate(CORNERS):
        for j, end in enumerate(CORNERS):
            if i < j and abs(start - end).sum() == 1:
                sketch.plot(*np.stack([positions[i], positions[j]]).T, **style)
for name, edge, shift in zip("abc", edges, ([0, -0.9, -0.3], [0.9, 0, -0.3], [-0.8, 0, 0])):
    sketch.text(*(0.5 * edge + shift), name, style="italic", fontsize=13, ha="center")
sketch.set_box_aspect(np.ptp(CORNERS @ edges, axis=0), zoom=1.25)
sketch.view_init(elev=22, azim=-68)
sketch.set_axis_off()
sketch.set_title("Unit cell: true (grey), found (blue)", fontsize=11)

curve = fig.add_subplot(1, 2, 2)
distance = found.form.norm(u).numpy() * CELL[0] / np.sqrt(G[0, 0])
curve.plot(
    CELL[:3].mean() * np.linalg.norm(u, axis=1), E, "^", ms=3, mew=0, color="#E69F00", label="as if cubic"
)
curve.plot(distance, E, "o", ms=3, mew=0, color="#0072B2", label="found metric")
curve.set(xlim=(1.5, 8), xlabel="distance in Å", ylabel="energy in eV", title="Energy of two copper atoms")
curve.title.set_fontsize(11)
curve.legend(frameon=False, markerscale=2)
plt.show()

# %%
# The truth is known here, so the example can check itself.

assert found.verdict is gortho.Verdict.FOUND and found.group_name == "O(3)"
assert found.form.algebra_distance(gortho.QuadraticForm(edges @ edges.T)) < 0.1
assert np.abs(cell - CELL)[:3].max() < 0.1 and np.abs(cell - CELL)[3:].max() < 1.5
