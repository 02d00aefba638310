"""
A magnetometer calibrates itself
================================

The field of the Earth has one strength, whichever way a sensor is held. So the readings of a perfect
magnetometer, turned about at one place, lie on a sphere around zero. Those of a real one lie on an ellipsoid: its
axes are not equally sensitive, nor quite at right angles (*soft iron*), and magnets nearby shift the centre (*hard
iron*),

.. math:: (x - c)^T A\\, (x - c) = k .

The 347 readings are real, of a three-axis magnetometer turned by hand, from the public repository
`ellipsoid_fit_python <https://github.com/aleksandrbazhin/ellipsoid_fit_python>`_ by Aleksandr Bazhin, under the MIT
licence; a copy lies in ``examples/data/magnetometer.csv``.

*Told*: the readings. *Not told*: any target, the strength of the field, the sensor's errors, or that there is an
ellipsoid.
"""

# %%
# The readings
# ------------
# Their length should be the same for all. As they come, it is not at all.

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gortho

here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
x = np.loadtxt(here / "data" / "magnetometer.csv", delimiter=",", skiprows=1)
length = np.linalg.norm(x, axis=1)
print(f"{len(x)} readings of length {length.mean():.0f} ± {length.std():.0f}")

# %%
# The quadric
# -----------

found = gortho.level_form(x, names=["x", "y", "z"])
print(found)

# %%
# The calibration is ready to paste into the code of the sensor.

print(found.calibration)
calibrated = found.calibrate(x)

# %%
# Left: readings in two coordinates, with the outline of the ellipsoid that was found; middle: the same after the
# calibration, with a circle of radius 1; right: lengths before and after.

fig, (raw, mended, lengths) = plt.subplots(1, 3, figsize=(9.5, 3.2), layout="constrained")
turn = np.linspace(0, 2 * np.pi, 200)
raw.plot(x[:, 1], x[:, 2], "o", ms=3, mew=0, color="#E69F00")
A = found.form.matrix.numpy() / found.level
shadow = np.linalg.cholesky(np.linalg.inv(A)[1:, 1:])
raw.plot(*(found.centre[1:, None] + shadow @ np.stack([np.cos(turn), np.sin(turn)])), color="0.3", lw=1)
raw.plot(*found.centre[1:], "+", color="0.3")
raw.plot(0, 0, "o", mfc="none", color="0.3")
raw.set(xlabel="y", ylabel="z", title="As given (○ zero, + centre)", aspect="equal")
mended.plot(calibrated[:, 1], calibrated[:, 2], "o", ms=3, mew=0, color="#0072B2")
mended.plot(np.cos(turn), np.sin(turn), color="0.3", lw=1)
mended.set(xlabel="y", ylabel="z", title="Calibrated", aspect="equal")
after = np.linalg.norm(calibrated, axis=1)
edges = np.linspace(0, 2, 61)
lengths.hist(length / length.mean(), edges, color="#E69F00", label="as given")
lengths.hist(after / after.mean(), edges, color="#0072B2", label="calibrated")
lengths.set(xlabel="length / mean length", ylabel="readings", title="Lengths")
lengths.legend(frameon=False, loc="upper left")
for axes in (raw, mended, lengths):
    axes.title.set_fontsize(11)
plt.show()

# %%
# An independent fit of these readings gave eigenvalues in the ratios 0.76 : 0.91 : 1 and a centre near
# (-68, 83, -133), so the example can check itself: its intervals hold them, as far as their two digits go.

values, (low, high) = found.form.eigenvalues.numpy(), found.eigenvalue_intervals
assert found.verdict is gortho.Verdict.FOUND and found.group_name == "O(3)"
for ratio, at in ((0.76, 0), (0.91, 1)):
    assert (low[at] - 0.005) / high[2] < ratio < (high[at] + 0.005) / low[2]
assert np.abs(found.centre - [-68, 83, -133]).max() < 1
assert length.std() / length.mean() > 0.36 and after.std() / after.mean() < 0.025
