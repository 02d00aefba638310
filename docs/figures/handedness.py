"""Turns keep the sign of an area, a mirror does not; and the axis of a wheel in a mirror."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch

from gortho import QuadraticForm, Symmetry

figure, (area, wheel) = plt.subplots(1, 2, figsize=(8.5, 3), layout="constrained", width_ratios=[1.5, 1])


def arrow(axis, start, end, colour, bend=0.0):
    style = {"arrowstyle": "-|>", "mutation_scale": 12, "color": colour, "lw": 2, "shrinkA": 0, "shrinkB": 0}
    axis.add_patch(FancyArrowPatch(start, end, connectionstyle=f"arc3,rad={bend}", **style))


pair = np.array([[0.95, 0.15], [0.35, 0.8]])
turns = Symmetry(QuadraticForm.euclidean(2), special=True).sample(2, seed=3).numpy()
mirror = np.diag([-1.0, 1.0])
for place, g in zip((0.0, 2.6, 5.2, 7.8), (np.eye(2), *turns, mirror)):
    at = np.array([place, 0.0])
    one, two = pair @ g.T
    positive = np.linalg.det(pair @ g.T) > 0
    colour = "C0" if positive else "C1"
    corners = np.stack([at, at + one, at + one + two, at + two])
    area.fill(*corners.T, color=colour, alpha=0.2, lw=0)
    arrow(area, at, at + one, "0.2")
    arrow(area, at, at + two, "C3")
    arrow(area, at + 0.6 * one, at + 0.6 * two, colour, 0.3 if positive else -0.3)
    area.text(place, -1.75, "area +" if positive else "area −", ha="center", color=colour)
area.set(xlim=(-1.4, 9.2), ylim=(-2, 1.6), aspect="equal", title="two vectors, turned twice, and mirrored")
area.axis("off")

for side in (-1, 1):
    at = np.array([1.1 * side, 0.0])
    wheel.add_patch(plt.Circle(at, 0.7, fill=False, color="0.5", lw=2))
    end = np.array([0.6, 0.36]) * [side, 1]
    arrow(wheel, at - end * [1, -1], at + end, "C0", -0.45 * side)
    wheel.plot(*at, "o", ms=15, mfc="white", mec="C3", mew=1.5)
    wheel.plot(*at, "." if side < 0 else "x", ms=7, color="C3")
wheel.axvline(0, ls="--", color="0.6", lw=1)
wheel.text(-1.1, -1.1, "axis towards you", ha="center", color="C3")
wheel.text(1.1, -1.1, "away from you", ha="center", color="C3")
wheel.set(xlim=(-2.1, 2.1), ylim=(-1.3, 1.1), aspect="equal", title="a wheel and its mirror image")
wheel.axis("off")
