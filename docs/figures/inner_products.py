"""Two observers see different arrows, but the same inner products; the answer moves with the arrows."""

import matplotlib.pyplot as plt
import torch

from gortho import QuadraticForm

form = QuadraticForm.minkowski(2)
X = torch.tensor([[1.6, 0.3], [0.8, 1.2]], dtype=torch.float64)  # (t, x) of two vectors
g = torch.tensor([[5.0, 3.0], [3.0, 5.0]], dtype=torch.float64) / 4  # a boost
c = torch.tensor([0.5, 0.6], dtype=torch.float64)  # coefficients, the same for both observers

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharex=True, sharey=True)
for axis, title, vectors in zip(axes, ("one observer", "another, in motion"), (X, X @ g.T)):
    for cone in (1, -1):
        axis.plot([-4, 4], [-4 * cone, 4 * cone], color="0.85", lw=1, zorder=0)
    for name, v, colour in (*zip(("x₁", "x₂"), vectors, ("C0", "C0")), ("y", c @ vectors, "C3")):
        t, x = v.tolist()
        axis.annotate("", (x, t), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2})
        axis.text(x + 0.08, t + 0.05, name, color=colour, fontsize=12)
    gram = form.gram(vectors)
    axis.set(title=title, xlim=(-0.4, 3.2), ylim=(-0.4, 3.2), aspect="equal", xlabel="x", ylabel="t")
    axis.text(
        0.98,
        0.03,
        f"⟨x₁,x₁⟩ = {gram[0, 0]:.2f}\n⟨x₁,x₂⟩ = {gram[0, 1]:.2f}\n⟨x₂,x₂⟩ = {gram[1, 1]:.2f}",
        transform=axis.transAxes,
        ha="right",
        va="bottom",
        bbox={"facecolor": "white", "edgecolor": "0.8"},
    )
