"""
Moment of inertia in a skewed frame
===================================

The moment of inertia of point masses is a tensor,

.. math:: I = \\sum_k m_k \\left( |r_k|^2\\, g^{-1} - r_k r_k^T \\right),

and the square :math:`|r|^2 = r^T g\\, r` needs a metric g. With perpendicular axes of equal units, g is the
identity, and nobody mentions it. With skewed axes it matters. Here positions and tensors are given along
three axes that are neither perpendicular nor of equal units, and the metric of these axes has to be found.

*Told*: positions, masses and tensors of 500 bodies of three masses each, and that the target is a tensor of
this kind (``output="bilinear"``). *Not told*: the axes, the formula, or that the tensor has to do with
lengths.
"""

# %%
# The data
# --------
# Positions are drawn in ordinary axes and then written down in skewed ones: r becomes Mr, and the tensor I
# becomes M I Mᵀ. The metric of the new axes is then :math:`g = M^{-T} M^{-1}`. Every entry of a tensor has
# an error of 0.05; the entries vary by about 0.5.

import matplotlib.pyplot as plt
import torch

import gortho
from gortho.studies.tasks import inertia

M = torch.tensor([[1.0, 0.5, 0.0], [0.0, 0.8, 0.3], [-0.3, 0.0, 1.3]], dtype=torch.float64)
bodies = inertia(500, masses=3, seed=4).in_frame(M).with_noise(0.05)
print(
    "positions",
    tuple(bodies.x.shape),
    " masses",
    tuple(bodies.point_scalars.shape),
    " tensors",
    tuple(bodies.y.shape),
)

# %%
# Discovery
# ---------
# Masses are scalars: no change of axes touches them. The three points of a body have no order
# (``set_like``).

found = gortho.discover(
    bodies.x,
    bodies.y,
    output="bilinear",
    scalars=bodies.point_scalars,
    set_like=True,
    names=["u", "v", "w"],
)
print(found)

# %%
# The group is O(3): there are axes in which the metric is the usual one. In the given axes it is the matrix
# below. A metric is found up to a factor; both are shown with the same size.

truth, learnt = bodies.form, found.form.matrix
cosines = learnt / torch.outer(learnt.diagonal(), learnt.diagonal()).sqrt()
true_cosines = truth.matrix / torch.outer(truth.matrix.diagonal(), truth.matrix.diagonal()).sqrt()
for i, j in ((0, 1), (0, 2), (1, 2)):
    angles = [float(torch.rad2deg(torch.acos(c[i, j]))) for c in (cosines, true_cosines)]
    print(f"angle between {'uvw'[i]} and {'uvw'[j]}: {angles[0]:.2f}°, true {angles[1]:.2f}°")

new = inertia(500, masses=3, seed=5).in_frame(M)
predicted = torch.as_tensor(found.predict(new.x, new.point_scalars))

fig, axes = plt.subplots(1, 3, figsize=(7, 2.9), layout="constrained", width_ratios=[1, 1, 1.25])
for axis, matrix, title in ((axes[0], truth.matrix, "True metric"), (axes[1], learnt, "Learnt metric")):
    image = axis.imshow(matrix, cmap="PuOr", vmin=-1.6, vmax=1.6)
    for i in range(3):
        for j in range(3):
            ink = "white" if abs(matrix[i, j]) > 1 else "black"
            axis.text(j, i, f"{matrix[i, j]:.3f}", ha="center", va="center", fontsize=9, color=ink)
    axis.set_xticks(range(3), ["u", "v", "w"])
    axis.set_yticks(range(3), ["u", "v", "w"])
    axis.tick_params(length=0)
    axis.set_title(title, fontsize=11)
diagonal = axes[2]
for label, entries, colour, marker in (
    ("on the diagonal", torch.eye(3).bool(), "#0072B2", "o"),
    ("off the diagonal", ~torch.eye(3).bool(), "#E69F00", "^"),
):
    diagonal.plot(new.y[:, entries], predicted[:, entries], marker, ms=3, color=colour, alpha=0.4, mew=0)
    diagonal.plot([], [], marker, color=colour, label=label)
ends = [float(new.y.min()), float(new.y.max())]
diagonal.plot(ends, ends, color="0.2", lw=0.8)
diagonal.set(xlabel="true entry", ylabel="predicted")
diagonal.set_title("500 new bodies", fontsize=11)
diagonal.legend(frameon=False, fontsize=8, handletextpad=0.2)
plt.show()

# %%
# The predictor respects the form exactly, so its tensors turn with the body, also with skewed axes.

error = found.equivariance_error(new.x, new.point_scalars)
relative = float((predicted - new.y).square().mean() / new.y.var())
print(
    f"d_PA to the truth {found.form.algebra_distance(truth):.1e}, error on new bodies {relative:.1e} of the variance"
)
print(f"relative error when a body is turned: {error:.1e}")

assert found.verdict is gortho.Verdict.FOUND and found.group_name == "O(3)"
assert found.form.algebra_distance(truth) < 0.02
assert relative < 1e-3 and error < 1e-9
