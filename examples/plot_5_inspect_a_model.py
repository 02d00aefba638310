"""
Read the form out of a model you have trained
=============================================

You have a network already, and want to know what it has learnt. ``gortho.spectral_form`` takes any
differentiable torch function and solves one linear problem for the quadratic form whose symmetry its
derivatives respect best.

Two plain networks learn energy bands of germanium. Near the bottom of a valley of the conduction band,
*electrons* have an energy that depends on the wave vector k through a quadratic form, the inverse effective
mass:

.. math:: E\\,(1 + \\alpha E) = \\frac{\\hbar^2}{2}\\, k^T W k .

The valleys lie along [111]; along that axis an electron is about twenty times as heavy as across it. *Heavy
holes* are different: their band is warped, and no quadratic form describes it,

.. math::
   E = \\frac{\\hbar^2}{2m} \\left( A k^2 - \\sqrt{B^2 k^4 + C^2 (k_x^2 k_y^2 + k_y^2 k_z^2 + k_z^2 k_x^2)} \\right).

*Told*: to the networks, wave vectors and energies with noise; to ``spectral_form``, the networks. *Not
told*: that mass depends on direction, and on which.
"""

# %%
# The two bands
# -------------
# Wave vectors in 1/Å, energies in eV.

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import gortho

torch.set_num_threads(1)
torch.manual_seed(0)
HBAR2_OVER_2M = 3.81  # eV Å², for the mass of a free electron
LONG, ACROSS = 1.59, 0.0815  # effective masses along and across [111], in free electron masses
ALPHA = 0.65  # 1/eV: how far the band is from a parabola
AXIS = torch.ones(3) / 3**0.5
W = torch.eye(3) / ACROSS + (1 / LONG - 1 / ACROSS) * torch.outer(AXIS, AXIS)
LARGEST = 0.1


def electrons(k):
    parabola = HBAR2_OVER_2M * ((k @ W) * k).sum(-1)
    return (torch.sqrt(1 + 4 * ALPHA * parabola) - 1) / (2 * ALPHA)


def heavy_holes(k):
    x, y, z = k.square().unbind(-1)
    warp = 8.48**2 * (x + y + z) ** 2 + 13.15**2 * (x * y + y * z + z * x)
    return HBAR2_OVER_2M * (13.38 * (x + y + z) - (warp + 1e-12).sqrt())


def wave_vectors(count):
    return LARGEST * (2 * torch.rand(count, 3) - 1)


# %%
# Plain networks, trained as always
# ---------------------------------


def trained(band, epochs=100, batch=100):
    k = wave_vectors(3_000)
    E = band(k)
    unit = E.std()
    E = E + 0.01 * unit * torch.randn_like(E)  # one per cent of noise
    layers = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def model(k):
        return unit * layers(k / LARGEST)[..., 0]

    optimizer = torch.optim.Adam(layers.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=epochs * len(k) // batch)
    for _ in range(epochs):
        for rows in torch.randperm(len(k)).split(batch):
            loss = nn.functional.mse_loss(model(k[rows]) / unit, E[rows] / unit)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    new = wave_vectors(2_000)
    with torch.no_grad():
        rms = (model(new) - band(new)).square().mean().sqrt()
    print(
        f"{band.__name__}: error on new wave vectors {1000 * rms:.1f} meV, energies vary by {1000 * unit:.0f} meV"
    )
    return model


models = {"electrons": trained(electrons), "heavy holes": trained(heavy_holes)}

# %%
# One linear solve each
# ---------------------
# The *gap* says how far the next best form is behind, the *violation* what share of the symmetry is
# missing.

answers = {}
for name, model in models.items():
    answers[name] = gortho.spectral_form(model, wave_vectors(1_000), names=["kx", "ky", "kz"])
    print(f"{name}: {answers[name]}")

# %%
# The network for electrons has a form, to the precision of its training. The eigenvectors of the form are
# the axes of the valley, and ratios of its eigenvalues are ratios of masses. The network for holes violates
# its best form, the sphere, many times more: an average mass is all that a form could give there.

values, vectors = np.linalg.eigh(answers["electrons"].form.matrix.numpy())
heavy = vectors[:, 0] * np.sign(vectors[:, 0].sum())
ratio = values[1:].mean() / values[0]
tilt = np.degrees(np.arccos(heavy @ AXIS.numpy()))
print(
    f"heavy axis {heavy.round(3)}, {tilt:.1f}° from [111]; mass ratio {ratio:.1f}, true {LONG / ACROSS:.1f}"
)

# %%
# Colours: energies by the networks. Dashed: where the form that was read out is constant. Right: the
# singular values of the linear problem, of which one stands apart if there is a form.

PLANES = {  # two directions, and their names
    "electrons": (AXIS, torch.tensor([1.0, -1.0, 0.0]) / 2**0.5, "[111]", "[1$\\bar{1}$0]"),
    "heavy holes": (torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]), "[100]", "[010]"),
}
COLOURS = {"electrons": ("#0072B2", "o"), "heavy holes": ("#D55E00", "s")}
grid = torch.linspace(-LARGEST, LARGEST, 101)
fig, axes = plt.subplots(1, 3, figsize=(7, 2.7), layout="constrained")
for axis, (name, (one, two, *labels)) in zip(axes, PLANES.items()):
    plane = grid[:, None, None] * one + grid[None, :, None] * two
    with torch.no_grad():
        energies = models[name](plane)
    q = answers[name].form(plane.double())
    axis.contourf(grid, grid, energies.T, levels=10, cmap="cividis")
    levels = np.quantile(q, [0.1, 0.35, 0.65, 0.9])
    axis.contour(grid, grid, q.T, levels=levels, colors="white", linewidths=1.2, linestyles="--")
    axis.set(xlabel=f"k along {labels[0]} in 1/Å", ylabel=f"k along {labels[1]} in 1/Å", aspect="equal")
    axis.set_title(name.capitalize(), fontsize=11)
    colour, marker = COLOURS[name]
    axes[2].semilogy(range(1, 7), answers[name].singular_values, marker + "-", color=colour, label=name)
axes[2].set(xlabel="number", ylabel="relative to the largest", box_aspect=1)
axes[2].set_title("Singular values", fontsize=11)
axes[2].legend(frameon=False, fontsize=9)
plt.show()

assert answers["electrons"].form.algebra_distance(gortho.QuadraticForm(W)) < 0.15
assert tilt < 2 and abs(ratio / (LONG / ACROSS) - 1) < 0.15
assert answers["electrons"].residual < 0.05 < answers["heavy holes"].residual
