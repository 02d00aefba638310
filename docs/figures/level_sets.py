"""Four forms in the plane: what stays the same, and where the group takes a point."""

import matplotlib.pyplot as plt
import numpy as np
import torch

from gortho import QuadraticForm

FORMS = [
    ("x² + y²", [[1, 0], [0, 1]], (1.1, 0.5)),
    ("x² + xy + 0.6 y²", [[1, 0.5], [0.5, 0.6]], (0.9, 0.4)),
    ("t² − x²", [[1, 0], [0, -1]], (1.1, 0.2)),
    ("x², which does not see y", [[1, 0], [0, 0]], (0.9, 0.3)),
]
grid = np.linspace(-2.2, 2.2, 300)
points = torch.as_tensor(np.stack(np.meshgrid(grid, grid), axis=-1))
figure, axes = plt.subplots(1, 4, figsize=(10, 3), layout="constrained")
for axis, (title, A, start) in zip(axes, FORMS):
    form = QuadraticForm(A)
    x = torch.tensor(start, dtype=torch.float64)
    q = form(points).numpy()
    level = float(form(x))
    if form.signature.zero:
        axis.axvline(start[0], color="C0", lw=2)
        axis.axvline(-start[0], color="C0", lw=2)
    axis.contour(grid, grid, q, levels=8, colors="0.85", linewidths=0.7)
    if not form.signature.zero:
        axis.contour(grid, grid, q, levels=[level], colors="C0", linewidths=2)
    moved = torch.stack([g @ x for g in form.group().sample(14, seed=3, max_boost=1.2)])
    axis.plot(*moved.T, "o", ms=4, color="C1")
    axis.plot(*start, "o", ms=7, color="C3")
    axis.set(title=title, xlim=(-2.2, 2.2), ylim=(-2.2, 2.2), aspect="equal", xticks=[], yticks=[])
    axis.set_xlabel(form.group_name)
