"""
The speed of light from particle decays
=======================================

A particle at rest has the energy :math:`mc^2`; a moving one has energy :math:`E` and momentum :math:`p`
with

.. math:: m^2 c^4 = E^2 - c^2 (p_x^2 + p_y^2 + p_z^2).

The right-hand side is a quadratic form. Here it is found from simulated decays, in units in which nobody
has set :math:`c = 1`: energies come from a calorimeter in GeV, momenta from tracks bent in a magnetic
field, in tesla metres (momentum divided by the charge :math:`e`). One volt per tesla metre is one metre per
second, so the form must contain the speed of light, in m/s.

*Told*: energy and momentum of each pair of decay products, and the mass of the particle that decayed. *Not
told*: that energy and momentum belong together, that space is the same in all directions, or any value of
c.
"""

# %%
# Simulated decays
# ----------------
# Four kinds of particles fly in random directions, with up to 3 GeV/c, and decay into two others. Masses
# are in GeV/c².

import matplotlib.pyplot as plt
import numpy as np

import gortho

C = 299_792_458.0  # m/s: used to simulate, and to compare with at the end
PION, KAON, PROTON = 0.1396, 0.4937, 0.9383
DECAYS = {  # mother: its mass, masses of the two daughters
    "K⁰ → ππ": (0.4976, PION, PION),
    "φ → KK": (1.0195, KAON, KAON),
    "Λ → pπ": (1.1157, PROTON, PION),
    "D⁰ → Kπ": (1.8648, KAON, PION),
}
rng = np.random.default_rng(1)


def directions(count):
    v = rng.normal(size=(count, 3))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def decay(mass, m1, m2, count):
    """Energies and momenta, both in GeV, of the two daughters: arrays (count, 2, 4)."""
    E1 = (mass**2 + m1**2 - m2**2) / (2 * mass)  # in the rest frame of the mother
    p = np.sqrt(E1**2 - m1**2) * directions(count)
    rest = np.stack([np.insert(p, 0, E1, axis=1), np.insert(-p, 0, mass - E1, axis=1)], axis=1)
    P = rng.uniform(0.0, 3.0, size=(count, 1)) * directions(count)  # the mother's momentum
    E = np.sqrt(mass**2 + (P**2).sum(1))
    along = np.einsum("ni,nki->nk", P, rest[:, :, 1:])
    energy = (E[:, None] * rest[:, :, 0] + along) / mass
    shift = along / (mass * (E[:, None] + mass)) + rest[:, :, 0] / mass
    return np.concatenate([energy[:, :, None], rest[:, :, 1:] + shift[:, :, None] * P[:, None]], axis=2)


species = rng.integers(len(DECAYS), size=1_500)
daughters = np.empty((len(species), 2, 4))
for kind, (mass, m1, m2) in enumerate(DECAYS.values()):
    rows = species == kind
    daughters[rows] = decay(mass, m1, m2, rows.sum())

# %%
# The detector measures each energy and each momentum to half a per cent, in its own units.

GEV_PER_TESLA_METRE = C / 1e9
measured = daughters / [1, *[GEV_PER_TESLA_METRE] * 3] * rng.normal(1.0, 0.005, size=daughters.shape)
pairs = measured.sum(axis=1)  # E in GeV; px, py, pz in T·m
masses = np.array([mass for mass, _, _ in DECAYS.values()])[species]

# %%
# Discovery
# ---------

found = gortho.discover(pairs, masses, names=["E", "px", "py", "pz"])
print(found)

# %%
# The group is O(1,3), the Lorentz group: one sign differs from the other three, and the three agree. The
# speed of light is the square root of the ratio of a momentum's coefficient to the energy's, once for each
# direction of space. The errors come from the spread of refits on resampled data.

A, errors = found.form.matrix.numpy(), found.interval_factor * found.entry_errors  # 95 %
space = np.diag(A)[1:]
c = np.sqrt(-space / A[0, 0]) * 1e9
c_errors = 0.5 * c * np.hypot(np.diag(errors)[1:] / space, errors[0, 0] / A[0, 0])
best, best_error = c.mean(), np.sqrt((c_errors**2).sum()) / 3
print(f"c = ({best / 1e8:.4f} ± {best_error / 1e8:.4f})·10⁸ m/s   (95 %; the truth is {C / 1e8:.4f})")

# %%
# A form is found up to a factor, so q gives masses in units of one of them. With the φ as that unit, all
# four particles appear as peaks at their masses.

mass = found.form.norm(pairs).numpy()  # √q, negative where measurement errors make q negative
mass *= 1.0195 / np.median(mass[species == 1])
fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.3), width_ratios=[1.5, 1], layout="constrained")
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"]
for kind, (name, colour) in enumerate(zip(DECAYS, COLOURS)):
    left.hist(mass[species == kind], bins=np.arange(0.3, 2.1, 0.02), color=colour)
    left.axvline(DECAYS[name][0], color="0.2", lw=0.8, ls=":")
    side = "right" if kind in (1, 3) else "left"
    shift = -0.05 if side == "right" else 0.05
    height = 0.84 if kind == 1 else 0.93
    left.text(DECAYS[name][0] + shift, height, name, ha=side, transform=left.get_xaxis_transform())
left.set(xlabel=r"$\sqrt{q}$ by the found form, in GeV/c²", ylabel="decays in 20 MeV", title="Masses found")
left.set(xlim=(0.3, 2.05), ylim=(0, 1.25 * left.get_ylim()[1]))
values, bars = np.append(c, best) / 1e8, np.append(c_errors, best_error) / 1e8
right.axhline(C / 1e8, color="0.2", lw=1, ls=":", label="truth")
right.errorbar(range(4), values, bars, fmt="o", color="#0072B2", capsize=4, label="found, 95 %")
right.set_xticks(range(4), ["x", "y", "z", "mean"])
right.set(
    xlim=(-0.5, 3.5), ylim=(2.978, 3.018), xlabel="direction", ylabel="c in 10⁸ m/s", title="Speed of light"
)
right.legend(frameon=False, loc="upper center", ncols=2, fontsize=9, columnspacing=1)
plt.show()

# %%
# The simulation knows the truth, so the example can check itself.

truth = gortho.QuadraticForm(np.diag([1, *[-(GEV_PER_TESLA_METRE**2)] * 3]))
assert found.verdict is gortho.Verdict.FOUND and found.group_name == "O(1,3)"
assert found.form.algebra_distance(truth) < 0.1
assert abs(best / C - 1) < 0.01 and abs(best - C) < 4 * best_error
