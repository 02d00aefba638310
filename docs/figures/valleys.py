"""The loss of the smallest example: two valleys, and only one of them holds the truth."""

import matplotlib.pyplot as plt
import numpy as np


def loss(a):
    """Mean squared error of (x₁² + a x₂²)² against (x₁² − x₂²)², for x ~ N(0, I)."""
    return (a + 1) ** 2 * (105 * a**2 - 150 * a + 81)


a = np.linspace(-1.6, 1.3, 400)
barrier, trap = (10 - 65**0.5) / 35, (10 + 65**0.5) / 35
figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
axis.plot(a, loss(a), color="C0", lw=2)
for value, label, colour in (
    (-1, "the truth, x₁² − x₂²", "C2"),
    (trap, "a trap: O(2) instead of O(1,1)", "C3"),
):
    axis.plot(value, loss(value), "o", color=colour, ms=9)
    axis.annotate(
        label, (value, loss(value)), (0, -12), textcoords="offset points", ha="center", va="top", color=colour
    )
axis.axvline(barrier, color="0.7", ls="--", lw=1)
axis.text(barrier + 0.03, 150, "starts on this side\nend in the trap", color="0.4")
axis.set(xlabel="a in the form x₁² + a x₂²", ylabel="loss", ylim=(-35, 200))
