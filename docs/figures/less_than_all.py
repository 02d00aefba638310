"""Where a point goes when a direction is marked, when the centre is elsewhere, and with vectors of two kinds."""

import matplotlib.pyplot as plt
import numpy as np
import torch

from gortho import QuadraticForm, Symmetry

figure = plt.figure(figsize=(9.5, 3.2), layout="constrained")

# A direction: of the sphere, one circle is left.
ball = figure.add_subplot(1, 3, 1, projection="3d")
round_, marked = QuadraticForm.euclidean(3), Symmetry(QuadraticForm.euclidean(3), directions=[[0, 0, 1]])
x = torch.tensor([0.75, 0.3, 0.55], dtype=torch.float64)
everywhere, left = (group.sample(count, seed=1) @ x for group, count in ((round_.group(), 250), (marked, 24)))
turn = np.linspace(0, 2 * np.pi, 200)
ring = float(x[:2].norm())
ball.plot(ring * np.cos(turn), ring * np.sin(turn), 0.55, color="C0", lw=2)
ball.plot(*everywhere.T, ".", ms=3, color="0.75")
ball.plot(*left.T, "o", ms=4, color="C1")
ball.plot(*x[:, None], "o", ms=7, color="C3")
ball.quiver(0, 0, 0, 0, 0, 1.5, color="C0", lw=2, arrow_length_ratio=0.12)
ball.text(0, 0, 1.55, "s", color="C0")
ball.set_box_aspect((1, 1, 1))
ball.set(xlim=(-0.8, 0.8), ylim=(-0.8, 0.8), zlim=(-0.6, 1.0))
ball.set_axis_off()
ball.set_title(f"a direction: {marked.residual_name} of O(3)")

# An origin.
plane = figure.add_subplot(1, 3, 2)
about = Symmetry(QuadraticForm.euclidean(2), origin=[0.9, 0.5])
moved = about.act(about.sample(24, seed=2), [[0.2, 0.9]])[:, 0]
radius = float((moved[0] - about.origin).norm())
plane.plot(0.9 + radius * np.cos(turn), 0.5 + radius * np.sin(turn), color="C0", lw=2)
plane.plot(*moved.T, "o", ms=4, color="C1")
plane.plot(0.2, 0.9, "o", ms=7, color="C3")
plane.plot(0.9, 0.5, "+", ms=11, color="0.2")
plane.text(0.97, 0.55, "c")
plane.plot(0, 0, "o", mfc="none", color="0.2")
plane.text(0.05, -0.2, "0")
plane.set(xlim=(-0.6, 2), ylim=(-0.7, 1.6), aspect="equal", xticks=[], yticks=[], title="another centre")

# Two spaces.
kinds = figure.add_subplot(1, 3, 3)
both = Symmetry([QuadraticForm.euclidean(2), QuadraticForm.minkowski(2)], spaces=[0, 1])
pair = torch.tensor([[0.5, 0.35], [0.2, 1.0]], dtype=torch.float64)
one, two = both.act(both.sample(24, seed=4, max_boost=0.9), pair).unbind(1)
kinds.plot(*(np.hypot(0.5, 0.35) * np.stack([np.cos(turn), np.sin(turn)])), color="C0", lw=2)
level = np.sqrt(1 - 0.2**2)
for sign in (1, -1):
    kinds.plot(
        level * np.sinh(turn / 2.8 - 1.12), sign * level * np.cosh(turn / 2.8 - 1.12), color="C2", lw=2
    )
kinds.plot(*one.T, "o", ms=4, color="C1")
kinds.plot(*two.T, "s", ms=4, color="C1")
kinds.plot(*pair[0], "o", ms=7, color="C3")
kinds.plot(*pair[1], "s", ms=7, color="C3")
kinds.set(xlim=(-1.3, 1.3), ylim=(-1.8, 1.8), aspect="equal", xticks=[], yticks=[])
kinds.set_title(f"two kinds: {both.group_name}")
