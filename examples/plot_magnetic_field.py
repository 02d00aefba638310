"""
An unknown magnetic field
=========================

A charged particle in a magnetic field B is pushed sideways,

.. math:: a = \\frac{q}{m}\\, v \\times B ,

so it winds about the field. Where there is a camera but no compass, the field can be read off the tracks. All
particles here are protons in one field of 2 µT, somewhat tilted; a camera sees each at three moments, and differences
of its positions give velocities and accelerations.

*Told*: velocities and accelerations. *Not told*: that there is a field, its direction or its strength, or the law.
"""

# %%
# The tracks
# ----------
# A velocity splits into a part along the field, which stays, and one across it, which turns.

import matplotlib.pyplot as plt
import numpy as np

import gortho

rng = np.random.default_rng(0)
field = 2e-6 * np.array([0.48, -0.36, 0.80])  # T
rate = 9.58e7 * np.linalg.norm(field)  # rad/s: charge over mass of the proton, times the field
axis = field / np.linalg.norm(field)
tracks, step = 350, 1e-3  # s


def positions(v, t):
    """Where protons with these velocities at time zero have gone until t."""
    along = v @ axis[:, None] * axis
    across, sideways = v - along, np.cross(v, axis)
    return along * t + (across * np.sin(rate * t) + sideways * (1 - np.cos(rate * t))) / rate


v = rng.normal(0.0, 20.0, size=(tracks, 3))  # km/s
seen = [positions(v, t) + rng.normal(0.0, 2e-5, v.shape) for t in (-step, 0.0, step)]  # km, to 2 cm
velocity = (seen[2] - seen[0]) / (2 * step)
acceleration = (seen[2] - 2 * seen[1] + seen[0]) / step**2

# %%
# What is found
# -------------

found = gortho.discover(velocity, acceleration, output="vector", names=["vx", "vy", "vz"])
print(found)

# %%
# There is a direction, and the law is handed: rotations about the direction are all that is left. The other reading is
# that of the textbooks: with the field as an *axial* vector the law keeps mirrors, too.
#
# A direction has no sign by itself, as mirrors exchange both. The predictor knows on which side the protons are pushed.
# It also tells the strength: across the field, acceleration over velocity is the rate of turning.

s = found.directions[0]
test = np.cross(s, [1.0, 0.0, 0.0])
test /= np.linalg.norm(test)
push = found.predict(10 * test[None])[0] / 10
turning = push @ np.cross(test, s)
s, turning = s * np.sign(turning), abs(turning)
error = np.degrees(np.arccos(min(1.0, s @ axis)))
print(f"the field points along ({s[0]:.3f}, {s[1]:.3f}, {s[2]:.3f}), {error:.2f}° off")
print(f"its strength: {1e6 * turning / 9.58e7:.3f} µT")

# %%
# Twenty protons that start at one point, for one turn and a half. Left: as the camera sees them. Right: looking along
# the direction that was found, where every track is a circle.

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.5), layout="constrained")
moments = np.linspace(0, 1.5 * 2 * np.pi / rate, 200)
some = np.stack([positions(v[:20], t) for t in moments])
side = np.stack([test, np.cross(s, test)])
for track, colour in zip(some.swapaxes(0, 1), plt.cm.viridis(np.linspace(0, 0.9, 20))):
    left.plot(track[:, 0], track[:, 1], color=colour, lw=0.9)
    right.plot(*(side @ track.T), color=colour, lw=0.9)
reach = 0.9 * np.abs(some[..., :2]).max()
left.annotate("", reach * s[:2], (0, 0), arrowprops={"arrowstyle": "-|>", "color": "#D55E00", "lw": 2})
left.text(*(1.02 * reach * s[:2]), "B", color="#D55E00", fontsize=12, va="top")
left.set(xlabel="x in km", ylabel="y in km", title="From the camera", aspect="equal")
right.plot(0, 0, "o", ms=11, mfc="white", mec="#D55E00", mew=1.5)
right.plot(0, 0, ".", ms=5, color="#D55E00")
right.set(xlabel="km", ylabel="km", title="Along the direction found", aspect="equal")
plt.show()

assert found.verdict is gortho.Verdict.FOUND and found.group_name == "SO(3)"
assert found.symmetry.residual_name == "SO(2)"
assert found.wider.readings == ("O(3), if the direction is axial",)
assert error < 1 and error < 3 * max(found.wider.angle_errors)
assert abs(turning / rate - 1) < 0.02
