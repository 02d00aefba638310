"""
Rotations from the energies of a molecule
=========================================

The energy of a molecule does not change when it is turned, mirrored or carried elsewhere: it depends on the distances
of its atoms. This example asks 1,000 geometries of ethanol, nine atoms in thermal motion, for the metric by which
distances are measured, in skewed axes, x → Tx.

Energies and forces were computed by density functional theory: `revised MD17 <https://github.com/andersx/rmd17-npz>`_
(CC0), here with positions and forces rounded to single precision, in ``examples/data/ethanol.npz``.

*Told*: positions in skewed axes, energies, the force on one atom, and which atom is which. *Told also*: to use
differences of positions, which carrying does not change; gortho looks for forms, and not for translations. *Not
told*: the axes, chemistry, or that distances matter.
"""

# %%
# Energies
# --------
# Eight vectors, from the first carbon to all other atoms. They have 36 inner products.

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gortho

here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
ethanol = np.load(here / "data" / "ethanol.npz")
R, energy = ethanol["coords"].astype(float), ethanol["energies"]  # Å and kcal/mol
print(f"atoms {ethanol['nuclear_charges']}, energies vary by {energy.std():.1f} kcal/mol")

T = np.random.default_rng(0).normal(size=(3, 3))
from_carbon = (R[:, 1:] - R[:, :1]) @ T.T
energies = gortho.discover(from_carbon, energy, names=["a", "b", "c"])
print(energies)


# %%
# With the skew undone, the form is that of plain distances, to half a per cent. The defect can be bounded by a few
# per cent only: so much of the energy 1,000 samples do not explain, with or without a form. Nobody could tell noise
# from a broken form there, except that models of the coordinates do no better.


def undone(form):
    A = T.T @ form.matrix.numpy() @ T
    return 3 * A / np.trace(A)


print(np.round(undone(energies.form), 3) + 0.0)

# %%
# How much of that is due to the energies? The molecule tumbles, so positions alone have a preferred metric, the inverse
# of their second moments. It is near, but off by some ten per cent, and the search begins at it among others.

points = from_carbon.reshape(-1, 3)
tumbling = gortho.QuadraticForm(np.linalg.inv(points.T @ points))
print(np.round(undone(tumbling), 3) + 0.0)

# %%
# A force
# -------
# The force on the hydrogen of the OH group, from vectors to its four nearest atoms. What is near explains almost all
# of it, with fewer unknowns, so the form comes out sharper, and the defect lower.

distance = np.linalg.norm(R[:, :, None] - R[:, None], axis=-1).mean(axis=0)
near = distance[8].argsort()[1:5]
to_near = (R[:, near] - R[:, 8:]) @ T.T
force = ethanol["forces"][:, 8].astype(float) @ T.T  # kcal/mol/Å
forces = gortho.discover(to_near, force, "vector", names=["a", "b", "c"])
print(forces)
print(np.round(undone(forces.form), 4) + 0.0)

# %%
# What does not work
# ------------------
# Energies from three vectors only: the rest of the molecule is missing, most of the energy stays unexplained, and the
# answer is UNDERDETERMINED.

few = gortho.discover(from_carbon[:, distance[0, 1:].argsort()[:3]], energy, names=["a", "b", "c"])
print(f"{few.verdict}: {few.reason}")

# %%
# Left and middle: energies and forces that the predictors had not seen. Right: eigenvalues of the metric, which are
# 1 : 1 : 1. If the axes were taken for plain ones, they would be far from that; second moments come nearer.

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(9.5, 3.2), layout="constrained")
for axes, answer, shift, title, unit in (
    (left, energies, energy.mean(), "Energies", "kcal/mol, mean subtracted"),
    (middle, forces, 0.0, "Forces on H, skewed axes", "kcal/mol/Å"),
):
    true, predicted = (np.asarray(values) - shift for values in answer.held_out)
    ends = [true.min(), true.max()]
    axes.plot(ends, ends, color="0.6", lw=0.8)
    axes.plot(true, predicted, "o", ms=3, mew=0, color="#0072B2", alpha=0.6)
    axes.set(xlabel=f"computed, {unit}", ylabel="predicted", title=title)
naive = np.linalg.eigvalsh(T.T @ T)
metrics = [3 * naive / naive.sum()]
metrics += [np.linalg.eigvalsh(undone(form)) for form in (tumbling, energies.form, forces.form)]
for row, (values, colour) in enumerate(zip(metrics, ("#D55E00", "#E69F00", "#0072B2", "#0072B2"))):
    right.plot(values, [row] * 3, "o", ms=8, alpha=0.7, color=colour)
right.axvline(1, color="0.6", lw=0.8)
right.set_yticks(range(4), ["taken as\nplain axes", "moments\nalone", "energies", "forces"])
right.set(xlabel="eigenvalues", title="The metric", ylim=(3.6, -0.6))
for axes in (left, middle, right):
    axes.title.set_fontsize(11)
plt.show()

for answer, error, defect in ((energies, 0.02, 0.12), (forces, 0.005, 0.01)):
    assert answer.verdict is gortho.Verdict.FOUND and answer.group_name == "O(3)"
    assert np.abs(undone(answer.form) - np.eye(3)).max() < error
    assert answer.defect.low == 0 and answer.defect.high < defect
assert np.abs(undone(tumbling) - np.eye(3)).max() > 0.05  # positions alone do not tell
assert few.verdict is gortho.Verdict.UNDERDETERMINED
