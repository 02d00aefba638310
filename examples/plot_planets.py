"""
Space is the same in all directions: the planets
================================================

The Sun pulls a planet at r by

.. math:: a = -GM\\, \\frac{r}{|r|^3},

whichever way r points. So accelerations of planets should tell that lengths are measured by x² + y² + z², with group
O(3). It is not an easy question. The orbits lie within a few degrees of one plane, so that the third direction hardly
shows, the pulls span five decades, and the planets also pull at each other and at the Sun.

The positions (in AU, from the Sun, in equatorial coordinates) and accelerations (in AU/day²) at 2,700 dates are
computed from JPL's ephemeris DE421, which is fitted to measurements, with the packages
`jplephem and de421 <https://pypi.org/project/jplephem/>`_; accelerations are second differences over a quarter of a
day. They lie in ``examples/data/solar_system.csv``.

*Told*: positions and accelerations. *Not told*: gravity, that lengths matter, or which body is which. Plain forms in
the given coordinates, of which x² + y² + z² is one, are left out of the starts of the search.
"""

# %%
# The inner planets
# -----------------
# Mercury, Venus, the Earth with its Moon, and Mars. The others disturb them by a ten-thousandth of the pull.

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gortho

here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
table = np.genfromtxt(
    here / "data" / "solar_system.csv", delimiter=",", names=True, dtype=None, encoding="utf-8"
)
r, a = (np.stack([table[name] for name in names], axis=1) for names in (("x", "y", "z"), ("ax", "ay", "az")))
is_inner = np.isin(table["body"], ["mercury", "venus", "earthmoon", "mars"])

blind = gortho.Settings(given_axes=False)
inner = gortho.discover(r[is_inner], a[is_inner], "vector", names=["x", "y", "z"], settings=blind)
print(inner)

# %%
# The three eigenvalues are the same within their errors: no direction is singled out, not even the one that the
# orbits hardly leave.

low, high = inner.eigenvalue_intervals
for value, below, above in zip(inner.form.eigenvalues, low, high):
    print(f"{value:.4f}, 95 % interval {below:.4f} to {above:.4f}")

# %%
# All nine
# --------
# Out to Pluto. Here the model of one centre is not the whole truth: a far body feels that Jupiter pulls at the Sun, by
# one to three per cent.

everyone = gortho.discover(r, a, "vector", names=["x", "y", "z"], settings=blind)
print(everyone)

# %%
# The form is the same, with wide bars. How exactly says to within what: some millionths of the variance. The law
# above leaves far less, so this is not the pull of the planets; it is that a few functions of the invariants do not
# follow five decades to the last digit, and trees repair some of that.

law = -r / np.linalg.norm(r, axis=1, keepdims=True) ** 3
GM = (law * a).sum() / (law**2).sum()
share = ((a - GM * law) ** 2).sum() / ((a - a.mean(axis=0)) ** 2).sum()
print(f"GM = {GM:.4e} AU³/day², which leaves {share:.1e} of the variance")

# %%
# Shares of the variance are ruled by Mercury, so the far bodies are predicted poorly.

predicted = everyone.predict(r)
miss = np.linalg.norm(predicted - a, axis=1) / np.linalg.norm(a, axis=1)
order = ["mercury", "venus", "earthmoon", "mars", "jupiter", "saturn", "uranus", "neptune", "pluto"]
for body in order:
    print(f"{body:>9}: {100 * np.median(miss[table['body'] == body]):.2g} % off in the median")

# %%
# Relative errors count them alike. Then they are predicted better, but now the direction out of the plane is not pinned
# down, and the answer says so.

relative = gortho.discover(r, a, "vector", names=["x", "y", "z"], settings=blind, errors="relative")
print(f"{relative.verdict}: {relative.reason}")

# %%
# Left: the inverse square. Middle: how little the orbits leave their plane, seen from the side. Right: the eigenvalues
# of the form with their 95 % intervals.

fig, (pull, side, values) = plt.subplots(1, 3, figsize=(9.5, 3.2), layout="constrained")
distance, strength = np.linalg.norm(r, axis=1), np.linalg.norm(a, axis=1)
pull.loglog(distance[~is_inner], strength[~is_inner], ".", ms=3, color="#E69F00", label="outer")
pull.loglog(distance[is_inner], strength[is_inner], ".", ms=3, color="#0072B2", label="inner")
pull.set(xlabel="distance in AU", ylabel="acceleration in AU/day²", title="The pull")
pull.legend(frameon=False, markerscale=3)
edge = np.linalg.svd(r[is_inner], full_matrices=False)[2]
side.plot(r[is_inner] @ edge[0], r[is_inner] @ edge[2], ".", ms=3, color="#0072B2")
side.set(
    xlabel="in the plane, AU", ylabel="out of it, AU", title="Inner orbits from the side", ylim=(-0.9, 0.9)
)
for shift, answer, colour, name in (
    (-0.1, inner, "#0072B2", "inner"),
    (0.1, everyone, "#E69F00", "all nine"),
):
    at = answer.form.eigenvalues.numpy()
    bars = np.abs(np.stack(answer.eigenvalue_intervals) - at)
    values.errorbar(np.arange(1, 4) + shift, at, bars, fmt="o", ms=5, capsize=3, color=colour, label=name)
values.axhline(1, color="0.6", lw=0.8)
values.set(xticks=[1, 2, 3], ylim=(0, 2.2), xlabel="eigenvalue", title="The form")
values.legend(frameon=False, loc="upper center", ncols=2)
for axes in (pull, side, values):
    axes.title.set_fontsize(11)
plt.show()

assert inner.verdict is gortho.Verdict.FOUND and inner.group_name == "O(3)"
assert high.min() >= low.max()  # equal within their bars …
assert np.ptp(inner.form.eigenvalues.numpy()) < 0.1  # … and within 10 %
assert everyone.verdict is gortho.Verdict.FOUND and everyone.group_name == "O(3)"
assert np.abs(everyone.form.eigenvalues.numpy() - 1).max() < 0.15
assert inner.defect.high < 1e-6 and everyone.defect.high < 1e-4
