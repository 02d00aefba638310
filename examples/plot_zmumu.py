"""
The metric of space-time in measured muons
==========================================

In 2011 the CMS detector at CERN measured Z bosons that decay into two muons. The mass of each Z follows from
energies and momenta of its muons,

.. math:: M^2 = (p_1 + p_2)^T \\eta\\, (p_1 + p_2), \\qquad \\eta = \\mathrm{diag}(1, -1, -1, -1),

so M stays the same in every frame of reference: its group is O(1,3), the Lorentz group. Here the four coordinates
are mixed by a matrix T, as if four gauges each showed a blend of energy and momentum. Then the form is
:math:`T^{-T} \\eta\\, T^{-1}`, which no one guesses.

The 3,000 events are real, from `CERN Open Data <https://opendata.cern.ch>`_ (CC0), as in the public teaching
repository `cms-jupyter-materials-english <https://github.com/cms-opendata-education/cms-jupyter-materials-english>`_;
they lie in ``examples/data/zmumu.csv``.

*Told*: four blended readings of each muon, and the mass M to six digits (at the end not even that). *Not told*: the
blend, relativity, or that there is a form.
"""

# %%
# The events
# ----------

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gortho

here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
events = np.genfromtxt(here / "data" / "zmumu.csv", delimiter=",", names=True)
muons = [np.stack([events[f"{name}{i}"] for name in ("E", "px", "py", "pz")], axis=1) for i in (1, 2)]
p, M = np.stack(muons, axis=1), events["M"]  # (events, muons, coordinates), in GeV

T = np.random.default_rng(0).normal(size=(4, 4))
x = p @ T.T
print(f"{len(M)} events, masses around {np.median(M):.1f} GeV")
print(f"the first muon: {np.round(p[0, 0], 1)} GeV, on the gauges {np.round(x[0, 0], 1)}")

# %%
# Discovery
# ---------

found = gortho.discover(x, M, names=["a", "b", "c", "d"])
print(found)

# %%
# Undoing the blend shows which form it is.

A = T.T @ found.form.matrix.numpy() @ T
A = A / A[0, 0]
print(np.round(A, 6) + 0.0)

# %%
# What is left over is the rounding of the table: its digits end there, at about a billionth of the variance.
print(found.defect)

# %%
# Without the masses
# ------------------
# The form can be had from the muons alone, too. They all have one mass, so their momenta lie on one hyperboloid,
# E² - p² = m², and `gortho.level_form` finds it without any target: the same form, and with it the mass of the muon,
# which is 0.1057 GeV. (Some momenta are rounded by more than the mass shows; these count as outliers.)

shell = gortho.level_form(x.reshape(-1, 4), names=["a", "b", "c", "d"])
print(shell)
B = T.T @ shell.form.matrix.numpy() @ T
mass = (shell.level / B[0, 0]) ** 0.5
error = mass * 1.96 * shell.level_error / (2 * shell.level)
print(f"mass of the muon: {mass:.4f} ± {error:.4f} GeV")

# %%
# Left: the masses, with the peak of the Z at 91.2 GeV. Middle: the form as it is found on the gauges. Right: the
# same in energy and momentum.

fig, (masses, blended, plain) = plt.subplots(1, 3, figsize=(9.5, 3.2), layout="constrained")
masses.hist(M, np.linspace(60, 120, 61), color="#0072B2")
masses.axvline(91.19, color="0.3", lw=1, ls="--")
masses.set(xlabel="M in GeV", ylabel="events", title="Masses of the pairs")
for axes, matrix, names, title in (
    (blended, found.form.matrix.numpy(), "abcd", "The form on the gauges"),
    (plain, A, ("E", "px", "py", "pz"), "… with the blend undone"),
):
    size = np.abs(matrix).max()
    axes.imshow(matrix, cmap="PuOr", vmin=-size, vmax=size)
    for (i, j), value in np.ndenumerate(matrix):
        colour = "white" if abs(value) > 0.6 * size else "0.2"
        axes.text(
            j,
            i,
            f"{value + 0.0:.2f}".replace("-0.00", "0.00"),
            ha="center",
            va="center",
            fontsize=9,
            color=colour,
        )
    axes.set_xticks(range(4), names)
    axes.set_yticks(range(4), names)
    axes.set_title(title)
for axes in (masses, blended, plain):
    axes.title.set_fontsize(11)
plt.show()

assert found.verdict is gortho.Verdict.FOUND and found.group_name == "O(1,3)"
assert np.abs(A - np.diag([1, -1, -1, -1])).max() < 1e-3
assert np.abs(B / B[0, 0] - np.diag([1, -1, -1, -1])).max() < 1e-3
assert abs(mass - 0.1057) < 0.004
assert found.defect.low == 0 and found.defect.high < 1e-6
