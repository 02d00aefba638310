"""
Jets: the beam and the clock of the laboratory
==============================================

Physics at the LHC is Lorentz invariant; a detector is not. It sits around the beam, and its clocks are at rest. In the
language of forms: O(1,3) is broken along two directions, that of the beam and that of time.

Here jets are seen in a frame in which no coordinate means anything: every momentum (E, px, py, pz) is multiplied by
one random matrix. Two measurements of a detector betray its axes nevertheless: how wide a jet looks in the laboratory,
m / E, and how its particles bend in the coil around the beam,

.. math:: \\frac{dp}{dt} \\propto \\frac{1}{E}\\, (0,\\; p_y,\\; -p_x,\\; 0) .

*Told*: momenta of jets with their widths, and of particles with their forces, all in the hidden frame. *Not told*: the
frame, the Minkowski form, the time axis, the beam.

The jets are the 3,000 of the repository (see :doc:`plot_8_top_tagging`), made by Pythia 8 and a fast detector.
Widths and forces are computed from them, with errors of 1 %.
"""

# %%
# The hidden frame
# ----------------

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gortho
from gortho.studies.toptag import Jets
from gortho.studies.toptag.samples import Sample

here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
jets = Jets.from_npz(here / "data" / "jets.npz")
sample = Sample.of(jets, jets.split("train"), 30)
momenta = sample.x[..., 1:].double().numpy() * sample.mask.numpy()[..., None]
particles = np.concatenate([np.linalg.norm(momenta, axis=-1, keepdims=True), momenta], axis=-1)  # massless

rng = np.random.default_rng(1)
U, _, V = np.linalg.svd(rng.normal(size=(4, 4)))
frame = U * np.array([0.6, 0.8, 1.2, 1.6]) @ V
true_time, true_beam = frame[:, 0], frame[:, 3]


def degrees(one, other):
    """The angle between two axes, or an axis and a plane spanned by the rows, in the frame of the laboratory."""
    back = np.linalg.inv(frame)
    v, plane = back @ one, np.linalg.qr((np.atleast_2d(other) @ back.T).T)[0]
    return np.degrees(np.arcsin(np.linalg.norm(v - plane @ (plane.T @ v)) / np.linalg.norm(v)))


# %%
# Time
# ----
# The mass of a jet is the same for everyone. Its energy is not: it is the component along the laboratory's time.

total = particles.sum(1)
mass = np.sqrt(total[:, 0] ** 2 - (total[:, 1:] ** 2).sum(1))
width = mass / total[:, 0] * (1 + rng.normal(0.0, 0.01, len(total)))
time = gortho.discover(total[:1500] @ frame.T, width[:1500])
print(time)
clock = time.directions[0]
print(f"the time axis is {degrees(clock, true_time):.2f}° off")

# %%
# O(4) is no mistake: once time is marked, q + c E² does as well as q for every c, and gortho shows the member of this
# family that is most nearly round. What is left, O(3), is the same for all: the rotations of space in the laboratory.
#
# Time and beam
# -------------
# The hardest particle of each jet, and the force on it. It depends on both axes. With two directions only the plane
# that they span has a meaning: what keeps both keeps the whole plane.

hardest = particles[:, 0]
force = np.stack([0 * hardest[:, 0], hardest[:, 2], -hardest[:, 1], 0 * hardest[:, 0]], 1) / hardest[:, :1]
force += rng.normal(0.0, 0.01, force.shape)
plane = gortho.discover(hardest[:500] @ frame.T, force[:500] @ frame.T, output="vector")
print(plane)
print(
    f"time and beam are {degrees(true_time, plane.directions):.2f}° and "
    f"{degrees(true_beam, plane.directions):.2f}° off the plane"
)

# %%
# The beam
# --------
# Where does the beam point in that plane? Along its two rays of light. Which vectors are light-like is told by the
# particles themselves: being massless, they all lie on the cone of the form, and no label is needed for that.

i, j = np.triu_indices(4)
every = particles[sample.mask.numpy()] @ frame.T
every /= np.linalg.norm(every, axis=1, keepdims=True)
squares = every[:, i] * every[:, j]
A = np.zeros((4, 4))
A[i, j] = np.linalg.eigh(squares.T @ squares)[1][:, 0]
minkowski = gortho.QuadraticForm((A + A.T) / 2)
print(minkowski.group_name)
s, t = plane.directions
a, b, c = (float(minkowski.inner(v, w)) for v, w in ((t, t), (s, t), (s, s)))
rays = [s + root * t for root in np.roots([a, 2 * b, c])]
beams = [frame @ [1.0, 0.0, 0.0, sign] for sign in (1.0, -1.0)]
errors = [min(degrees(ray, beam) for beam in beams) for ray in rays]
print("the beams are {:.2f}° and {:.2f}° off".format(*errors))

# %%
# Left: in the laboratory's coordinates E and pz, the axes found (lines) and the true ones (dots), with the light cone.
# Right: what is left of momenta and forces when all along the plane is left out, measured by the form that was found:
# a map on which the beam is a point, and forces turn about it.

blind = np.linalg.svd(plane.directions)[2][2:]  # covectors that do not see the plane
root = np.linalg.cholesky(blind @ np.linalg.inv(plane.form.matrix.numpy()) @ blind.T)
across = np.linalg.solve(root, blind) @ frame
spots, arrows = across @ hardest.T, across @ force.T
sideways = np.abs((spots * arrows).sum(0)) / np.linalg.norm(spots, axis=0) / np.linalg.norm(arrows, axis=0)
print(f"median angle between momentum and force: {90 - np.degrees(np.arcsin(np.median(sideways))):.1f}°")

back = np.linalg.inv(frame)
fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.5), layout="constrained")
for axis, colour, name in ((clock, "#D55E00", "time"), *((ray, "#0072B2", "beam") for ray in rays)):
    v = back @ axis
    v *= np.sign(v[0]) / np.hypot(v[0], v[3])
    left.annotate("", (v[3], v[0]), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2})
    left.text(1.12 * v[3], 1.1 * v[0], name, color=colour, ha="center")
for way in ((0, 1), (np.sqrt(0.5), np.sqrt(0.5)), (-np.sqrt(0.5), np.sqrt(0.5))):
    left.plot(*np.multiply(way, 0.6), "o", ms=6, mfc="white", color="0.2", zorder=3)
left.plot([-1, 0, 1], [1, 0, 1], color="0.8", ls="--", lw=1)
left.set(xlim=(-1.1, 1.1), ylim=(-0.1, 1.3), xlabel="pz", ylabel="E", title="Axes found", aspect="equal")
right.quiver(*spots[:, :150], *arrows[:, :150], color="#009E73", width=0.005, scale=12)
right.plot(0, 0, "+", color="0.2")
right.set(xticks=[], yticks=[], title="Forces, across the plane", aspect="equal")
plt.show()

assert time.verdict is gortho.Verdict.FOUND and time.symmetry.residual_name == "O(3)"
assert degrees(clock, true_time) < 1
assert plane.verdict is gortho.Verdict.FOUND and plane.symmetry.residual_name == "SO(2)"
assert max(errors) < 1 and np.median(sideways) < 0.05 and minkowski.group_name == "O(1,3)"
