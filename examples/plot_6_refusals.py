"""
When there is no form: how the refusal looks
============================================

A method that always finds something is of no use. gortho answers NONE when the data depends on more than
the inner products of a form, and UNDERDETERMINED when it cannot tell, each with the reason and with what to
do. Here is one case of each, and what comes of following the advice.

The first law is the energy of an atom in an optical lattice, three standing waves of light at right angles. The
second is the energy of an ion in a trap. Its spring is the same in all directions; in addition an electric field F,
which was another one in every measurement, pulls at it:

.. math:: y = \\sum_i \\sin^2(1.5\\, x_i), \\qquad y = \\frac{1}{2} k |x|^2 - F \\cdot x .

The lattice looks the same after a quarter of a turn, but not after a small one. The trap would look the same after
any turn, if the field were turned with it.

*Told*: positions and energies, of the ion at first nothing about the field. *Not told*: the laws.
"""

# %%
# No form at all
# --------------

import warnings

import matplotlib.pyplot as plt
import numpy as np

import gortho

rng = np.random.default_rng(0)
atoms = rng.normal(size=(600, 3))
waves = (np.sin(1.5 * atoms) ** 2).sum(1) + rng.normal(0.0, 0.02, size=600)

lattice = gortho.discover(atoms, waves, names=["x", "y", "z"])
print(lattice)

# %%
# NONE: models of the coordinates predict far better than those of a form's inner products, so the energy depends on
# more than these. The quarter turns of the lattice are no group O(A), nor a part of one that small turns belong to.
#
# A quantity that was not mentioned
# ---------------------------------

x, field = rng.normal(size=(300, 3)), rng.normal(0.0, 0.5, size=(300, 3))
y = 0.5 * (x**2).sum(1) - (x * field).sum(1) + rng.normal(0.0, 0.02, size=300)

unaware = gortho.discover(x, y, names=["x", "y", "z"], look_for="O")  # nothing but whole groups O(A)
print(unaware)

# %%
# UNDERDETERMINED: what the unknown fields do to the energy looks like noise, and there is much of it. The advice
# names what may be missing.
#
# Following the advice
# --------------------
# Neither answer is a form to work with: ``found.form`` is None in both cases, and predicting with the
# rejected candidate gives a warning.
#
# The field has a direction, so it is passed as one more vector in every sample. A form then has to explain
# the energies by inner products of x and F.

aware = gortho.discover(np.stack([x, field], axis=1), y, names=["x", "y", "z"])
print(aware)

# %%
# Left: the verdicts, and how much of the variance the best model of inner products and the best model of
# coordinates leave unexplained on samples that they have not seen. Right: what the predictors leave over. Without
# the field it follows the work of the field, F·x: that is the missing quantity.

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.3), layout="constrained", width_ratios=[1.2, 1])
answers = {"lattice": lattice, "field not passed": unaware, "field passed": aware}
rows = np.arange(3)
for key, name, colour, marker in (
    ("unexplained", "inner products", "#0072B2", "o"),
    ("free_unexplained", "coordinates", "#E69F00", "^"),
):
    shares = [100 * getattr(answer.evidence.everyone, key) for answer in answers.values()]
    left.plot(shares, rows, marker, ms=9, color=colour, label=name)
left.grid(axis="y", color="0.9")
left.set_axisbelow(True)
left.set_yticks(rows, [f"{answer.verdict}\n{case}" for case, answer in answers.items()], fontsize=9)
left.set(
    xscale="log",
    xlim=(0.01, 300),
    ylim=(2.9, -0.5),
    xlabel="unexplained variance in %",
    title="Held-out samples",
)
left.legend(frameon=False, fontsize=9, loc="lower right", ncols=2, columnspacing=1)

new, fields = rng.normal(size=(500, 3)), rng.normal(0.0, 0.5, size=(500, 3))
work = (new * fields).sum(1)
truth = 0.5 * (new**2).sum(1) - work
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # gortho warns that it predicts with a form that was not accepted
    rejected = truth - unaware.predict(new)
accepted = truth - aware.predict(np.stack([new, fields], axis=1))
right.plot(work, rejected, "^", ms=4, mew=0, color="#D55E00", alpha=0.6, label="field not passed")
right.plot(work, accepted, "o", ms=4, mew=0, color="#0072B2", alpha=0.6, label="field passed")
right.set(xlabel="F·x", ylabel="energy left over", title="500 new samples of the ion")
right.legend(frameon=False, fontsize=9)
plt.show()

assert lattice.verdict is gortho.Verdict.NONE and lattice.form is None
assert unaware.verdict is gortho.Verdict.UNDERDETERMINED and unaware.form is None
assert aware.verdict is gortho.Verdict.FOUND and aware.group_name == "O(3)"
assert aware.form.cosine(gortho.QuadraticForm.euclidean(3)) > 0.999
