"""
Is this world Einstein's or Newton's?
=====================================

Clocks are sent from one event to another: t microseconds later, (x, y) kilometres away. What do the
verdicts say about the numbers that come back, in a world with relativity and in one without?

1. *Einstein's clocks* show the proper time :math:`\\tau = \\sqrt{t^2 - (x^2 + y^2)/c^2}`: moving clocks go slow.
2. *Newton's clocks* show :math:`\\tau = t`, wherever they go.
3. *Newton's action* of a free particle, :math:`S = m (x^2 + y^2) / 2t`, treats time and space
   differently, and no single form holds them together.

*Told*: (t, x, y) and one number for each trip. *Not told*: anything about relativity or c.
"""

# %%
# The trips
# ---------
# Speeds reach nine tenths of the speed of light. Every number is read off with an error of one per cent.

import matplotlib.pyplot as plt
import numpy as np

import gortho

C = 0.299_792  # km/µs
rng = np.random.default_rng(0)
N = 600
t = rng.uniform(1.0, 5.0, N)
speed, angle = 0.9 * C * np.sqrt(rng.uniform(size=N)), rng.uniform(0, 2 * np.pi, N)
trips = np.stack([t, speed * t * np.cos(angle), speed * t * np.sin(angle)], axis=1)
distance_squared = (trips[:, 1:] ** 2).sum(1)

worlds = {
    "Einstein's clocks": np.sqrt(t**2 - distance_squared / C**2),
    "Newton's clocks": t,
    "Newton's action": 100 * distance_squared / (2 * t),
}

# %%
# The same call for all three
# ---------------------------

found = {}
for world, y in worlds.items():
    y = y * rng.normal(1.0, 0.01, N)
    found[world] = gortho.discover(trips, y, names=["t", "x", "y"], look_for="O")
    print(world, found[world], sep="\n", end="\n\n")

# %%
# Einstein's clocks have the form of space-time with group O(1,2), and its coefficients contain c. Newton's
# clocks have a form too, but a singular one: it is t² alone and sees no direction of space; time is
# absolute. For Newton's action the answer is NONE: a model that ignores the form does better, so there is
# no form to be had.

A = found["Einstein's clocks"].form.matrix.numpy()
c = np.sqrt(A[0, 0] / -np.diag(A)[1:].mean())
print(f"c = {c:.4f} km/µs, true {C:.4f}")

# %%
# Colours: the law in the plane y = 0. Lines: where the form that was found is constant. They follow the
# colours where the form explains the data. Orange lines belong to a candidate that was not accepted.

laws = {
    "Einstein's clocks": lambda t, x: np.sqrt(t**2 - x**2 / C**2),
    "Newton's clocks": lambda t, x: t + 0 * x,
    "Newton's action": lambda t, x: 100 * x**2 / (2 * t),
}
T, V = np.meshgrid(np.linspace(1, 5, 120), np.linspace(-0.9 * C, 0.9 * C, 121))
plane = np.stack([T, V * T, 0 * T], axis=-1)
fig, axes = plt.subplots(1, 3, figsize=(7, 3.2), sharey=True, layout="constrained")
for axis, (world, answer) in zip(axes, found.items()):
    axis.contourf(plane[..., 1], T, laws[world](T, plane[..., 1]), levels=14, cmap="cividis")
    q = answer.candidate(plane).numpy()
    levels = np.quantile(q, [0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.95])
    accepted = answer.form is not None
    colour = "white" if accepted else "#E69F00"
    axis.contour(
        plane[..., 1], T, q, levels=np.unique(levels), colors=colour, linewidths=1.2, linestyles="--"
    )
    axis.set_xlabel("x in km")
    group = f" {answer.group_name.split(' ')[0]}" if accepted else ""
    blind = f", blind to {zero} axes" if accepted and (zero := answer.form.signature.zero) else ""
    axis.set_title(f"{world}\n{answer.verdict}{group}{blind}", fontsize=10)
axes[0].set_ylabel("t in µs")
plt.show()

# %%
# The verdicts, checked.

einstein, newton, action = found.values()
truth = gortho.QuadraticForm(np.diag([1, -1 / C**2, -1 / C**2]))
assert einstein.group_name == "O(1,2)" and einstein.form.algebra_distance(truth) < 0.1
assert newton.group_name == "O(1) ⋉ degenerate 2" and newton.form.cosine(np.diag([1, 0, 0])) > 0.99
assert action.verdict is gortho.Verdict.NONE and action.form is None
assert abs(c / C - 1) < 0.02
