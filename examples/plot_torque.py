"""
Torque, and what a mirror does to it
====================================

A force F on a wrench with arm r gives the torque

.. math:: \\tau = r \\times F .

It is drawn as an arrow, but it is no arrow like the others: seen in a mirror, arm and force are mirrored and the
torque is not, or the other way round. Such vectors are called *axial*; common ones are *polar*.

The sensor of this example has skewed axes of different scale, as cheap ones have. All three vectors are given in its
coordinates.

*Told*: arms, forces and torques, with errors of 2 %. *Not told*: the angles between the axes of the sensor, that the
law is a cross product, or that anything is axial.
"""

# %%
# The measurements
# ----------------
# The columns of ``axes`` are the axes of the sensor. A vector v has the coordinates x with v = axes @ x.

import matplotlib.pyplot as plt
import numpy as np

import gortho

rng = np.random.default_rng(0)
axes = np.array([[1.0, 0.35, 0.1], [0.0, 0.9, -0.3], [0.0, 0.0, 1.2]])
arm, force = rng.normal(size=(2, 300, 3))
torque = np.cross(arm, force)
torque += rng.normal(0.0, 0.02 * torque.std(), torque.shape)
to_sensor = np.linalg.inv(axes).T
x, y = np.stack([arm, force], axis=1) @ to_sensor, torque @ to_sensor

# %%
# What is found
# -------------
# No form alone explains a cross product: products of r and F tell nothing about a vector across both. So gortho looks
# further.

found = gortho.discover(x, y, output="vector", names=["x", "y", "z"])
print(found)

# %%
# There are two ways to say it, and both are printed. *The output is axial*: then the law keeps all of O(3), mirrors
# included. Or *the output is a common vector*: then it keeps SO(3), the rotations, and no mirrors. As long as nobody
# holds the sensor before a mirror, nothing tells the two apart.
#
# The form is the table of inner products of the sensor's axes, so it tells the angles between them.

A = found.form.matrix.numpy()
lengths = np.sqrt(np.diag(A))
i, j = np.triu_indices(3, 1)
angles = np.degrees(np.arccos((A / np.outer(lengths, lengths))[i, j]))
unit = axes / np.linalg.norm(axes, axis=0)
truth = np.degrees(np.arccos((unit.T @ unit)[i, j]))
print("angles between the axes: ", ", ".join(f"{a:.1f}°" for a in angles))
print("as they were made:       ", ", ".join(f"{a:.1f}°" for a in truth))

# %%
# In the mirror
# -------------
# New arms and forces, mirrored. What the predictor says of them is the mirrored torque with the extra sign of axial
# vectors. Left: an arm and a force in the plane of the page, before and behind the mirror (dashed); the torque points
# at the reader (⊙) or away (⊗), although a mirrored arrow would still point at the reader. Right: the same for
# 200 new measurements.

mirror = to_sensor.T @ np.diag([-1.0, 1.0, 1.0]) @ axes  # in coordinates of the sensor
new = rng.normal(size=(200, 2, 3)) @ to_sensor
expected = found.predict(new)
behind = found.predict(new @ mirror.T)
mirrored = expected @ mirror.T

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.3), layout="constrained", width_ratios=[1.25, 1])
colours = {"r": "#0072B2", "F": "#D55E00"}
for side in (-1, 1):
    start, tip, push = np.array([0.5 * side, 0.0]), np.array([1.2 * side, 0.0]), np.array([0.15 * side, 0.7])
    for name, foot, way in (("r", start, tip), ("F", start + tip, push)):
        arrow = {
            "arrowstyle": "-|>",
            "color": colours[name],
            "lw": 2,
            "mutation_scale": 14,
            "shrinkA": 0,
            "shrinkB": 0,
        }
        left.annotate("", foot + way, foot, arrowprops=arrow)
        at = foot + way / 2 + ([0.0, -0.22] if name == "r" else [0.2 * side, -0.1])
        left.text(*at, name, color=colours[name], ha="center")
    left.plot(*start, "o", ms=13, mfc="white", mec="0.2")
    left.plot(*start, "." if side > 0 else "x", ms=6, color="0.2")
    left.text(start[0], 0.16, "τ", ha="center")
left.axvline(0, color="0.5", ls="--", lw=1)
left.set(xlim=(-2.3, 2.3), ylim=(-0.5, 1.0), aspect="equal", title="Behind the mirror, and before it")
left.axis("off")
right.plot(mirrored.ravel(), behind.ravel(), "o", ms=3, mew=0, color="#009E73", alpha=0.6)
limit = 1.05 * np.abs(mirrored).max()
right.plot([-limit, limit], [limit, -limit], color="0.3", lw=1, label="axial")
right.plot([-limit, limit], [-limit, limit], color="0.6", ls="--", lw=1, label="polar")
right.set(xlabel="torque as a mirrored arrow", ylabel="torque of the mirrored experiment", aspect="equal")
right.legend(frameon=False, fontsize=9)
plt.show()

assert found.verdict is gortho.Verdict.FOUND and found.group_name == "O(3)" and found.wider.odd
assert found.wider.readings == ("SO(3), if the output is polar",)
assert np.abs(angles - truth).max() < 1
assert np.abs(behind + mirrored).max() < 0.03 * limit and found.equivariance_error(x[:20]) < 1e-10
