"""
A weight on a spring
====================

A weight hangs on a spring from a hook. The spring pulls towards the hook; gravity pulls down:

.. math:: F = -k\\,(|x| - L)\\, \\frac{x}{|x|} + m g .

Were there no gravity, every direction would be as good as any other. With it, one direction is marked. A camera that
was fixed without a level looks at it: the vertical is somewhere in its coordinates.

*Told*: positions of the weight as seen from the hook, and the force on it. *Not told*: where down is, that there is
gravity, the spring's law, or its length.
"""

# %%
# The measurements
# ----------------

import matplotlib.pyplot as plt
import numpy as np

import gortho

rng = np.random.default_rng(0)
up = np.array([0.30, -0.20, 0.93])
up /= np.linalg.norm(up)
stiffness, rest, weight = 12.0, 0.5, 0.4 * 9.81  # N/m, m, N
x = rng.normal(0.0, 0.5, size=(350, 3))
length = np.linalg.norm(x, axis=1, keepdims=True)
force = -stiffness * (length - rest) * x / length - weight * up
force += rng.normal(0.0, 0.03, force.shape)

# %%
# The vertical
# ------------

found = gortho.discover(x, force, output="vector", names=["x", "y", "z"])
print(found)
error = np.degrees(np.arccos(min(1.0, abs(found.directions[0] @ up))))
print(f"the vertical is {error:.2f}° off")

# %%
# What is left are turns about the vertical, and mirrors that keep it. The form is known only up to the square of the
# height: with a marked direction, heights and widths need not be measured by the same rule.
#
# A spring without a length of its own
# ------------------------------------
# Some springs, in seismometers and in lamps, are wound so that they pull as if their length were zero. Then
#
# .. math:: E = \frac{1}{2} k |x|^2 - m g \cdot x = \frac{1}{2} k |x - c|^2 + \mathrm{const}, \qquad c = m g / k ,
#
# and all that gravity does is to move the centre. Nothing is marked any more: the law looks the same in all directions,
# seen from the place of rest.

energy = 0.5 * stiffness * (x**2).sum(1) + weight * x @ up
energy += rng.normal(0.0, 0.03, energy.shape)
moved = gortho.discover(x, energy, names=["x", "y", "z"])
print(moved)
below = -weight / stiffness * up
print("place of rest as made:", np.round(below, 3))

# %%
# Left: the force on the weight in an upright plane through the hook (+), and the vertical that was found. Right: the
# energy of the second spring as predicted, with the place of rest.

s = found.directions[0] * np.sign(found.directions[0] @ up)
aside = np.cross(s, [0.0, 1.0, 0.0])
aside /= np.linalg.norm(aside)
fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.5), layout="constrained")
grid = np.linspace(-1, 1, 12)
a, b = (g.ravel() for g in np.meshgrid(grid, grid))
far = np.hypot(a, b) > 0.15  # close to the hook the force has no direction
a, b = a[far], b[far]
pull = found.predict(a[:, None] * aside + b[:, None] * s)
left.quiver(a, b, pull @ aside, pull @ s, color="#0072B2", width=0.005)
left.plot(0, 0, "+", color="0.2", ms=10)
left.annotate("", (0, 1.25), (0, 0.1), arrowprops={"arrowstyle": "-|>", "color": "#D55E00", "lw": 2})
left.text(0.06, 1.15, "up", color="#D55E00")
left.set(
    xlabel="aside in m", ylabel="height in m", ylim=(-1.1, 1.45), title="Force, as predicted", aspect="equal"
)
fine = np.linspace(-1, 1, 80)
plane = fine[None, :, None] * aside + fine[:, None, None] * s
heights = moved.predict(plane.reshape(-1, 3)).reshape(80, 80)
right.contour(fine, fine, heights, levels=12, cmap="viridis")
right.plot(0, 0, "+", color="0.2", ms=10)
right.plot(moved.origin @ aside, moved.origin @ s, "o", ms=7, color="#D55E00")
right.text(moved.origin @ aside + 0.08, moved.origin @ s - 0.04, "rest", color="#D55E00")
right.set(xlabel="aside in m", title="Energy of the second spring", aspect="equal")
plt.show()

assert found.verdict is gortho.Verdict.FOUND and found.symmetry.residual_name == "O(2)"
assert error < 1 and error < 3 * max(found.wider.angle_errors)
assert moved.verdict is gortho.Verdict.FOUND and moved.group_name == "O(3)" and not len(moved.directions)
assert np.linalg.norm(moved.origin - below) < 0.02
