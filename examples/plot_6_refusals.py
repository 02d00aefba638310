"""
When there is no form: how the refusal looks
============================================

A method that always finds something is of no use. gortho answers NONE when the data depends on more than
the inner products of a form, and UNDERDETERMINED when it cannot tell, each with the reason and with what to
do. Here is one case of each, and what comes of following the advice.

The law is the energy of an ion in a trap. Its spring is the same in all directions; in addition an electric
field F pulls in one direction:

.. math:: y = \\frac{1}{2} k |x|^2 - F \\cdot x .

The first term stays the same when x is turned. The second does not, because F stays where it is.

*Told*: positions and energies, at first nothing about the field. *Not told*: the law.
"""

# %%
# A direction that was not mentioned
# ----------------------------------

import warnings

import matplotlib.pyplot as plt
import numpy as np

import gortho

rng = np.random.default_rng(0)
FIELD = np.array([0.5, -0.2, 0.6])
x = rng.normal(size=(300, 3))
y = 0.5 * (x**2).sum(1) - x @ FIELD + rng.normal(0.0, 0.02, size=300)

unaware = gortho.discover(x, y, names=["x", "y", "z"], look_for="O")  # nothing but whole groups O(A)
print(unaware)

# %%
# NONE: a model that ignores the form predicts better, so the energy depends on more than a form. The advice
# names what may be missing.
#
# Too few samples
# ---------------
# With 25 samples of the same data, the search still ends at some form.

few = gortho.discover(x[:25], y[:25], names=["x", "y", "z"])
print(few)

# %%
# Following the advice
# --------------------
# Neither answer is a form to work with: ``found.form`` is None in both cases, and predicting with the
# rejected candidate gives a warning.
#
# The field has a direction, so it is passed as one more vector in every sample. A form then has to explain
# the energies by inner products of x and F.

both = np.stack([x, np.broadcast_to(FIELD, x.shape)], axis=1)
aware = gortho.discover(both, y, names=["x", "y", "z"])
print(aware)

# %%
# The note tells what one field cannot: how long a step along F is. Across the field the form is the same in
# all directions, as it should be.

across = np.linalg.svd(FIELD[None])[2][1:]  # two directions
print(np.round(across @ aware.form.matrix.numpy() @ across.T, 2))

# %%
# Left: the verdicts, and how much of the variance each predictor leaves unexplained on samples that it has
# not seen. Right: what the predictors leave over. Without the field it follows the position along the
# field: that is the missing direction.

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.3), layout="constrained", width_ratios=[1.2, 1])
answers = {"field not passed": unaware, "25 samples": few, "field passed": aware}
rows = np.arange(3)
for key, name, colour, marker in (
    ("unexplained", "with a form", "#0072B2", "o"),
    ("free_unexplained", "without", "#E69F00", "^"),
):
    shares = [100 * getattr(answer.evidence, key) for answer in answers.values()]
    left.plot(shares, rows, marker, ms=9, color=colour, label=name)
left.grid(axis="y", color="0.9")
left.set_axisbelow(True)
left.set_yticks(rows, [f"{answer.verdict}\n{case}" for case, answer in answers.items()], fontsize=9)
left.set(
    xscale="log",
    xlim=(0.005, 3_000),
    ylim=(2.8, -0.5),
    xlabel="unexplained variance in %",
    title="Held-out samples",
)
left.legend(frameon=False, fontsize=9, loc="lower right", ncols=2, columnspacing=1)

new = rng.normal(size=(500, 3))
truth = 0.5 * (new**2).sum(1) - new @ FIELD
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # gortho warns that it predicts with a form that was not accepted
    rejected = truth - unaware.predict(new)
accepted = truth - aware.predict(np.stack([new, np.broadcast_to(FIELD, new.shape)], axis=1))
along = new @ FIELD / np.linalg.norm(FIELD)
right.plot(along, rejected, "^", ms=4, mew=0, color="#D55E00", alpha=0.6, label="field not passed")
right.plot(along, accepted, "o", ms=4, mew=0, color="#0072B2", alpha=0.6, label="field passed")
right.set(xlabel="position along the field", ylabel="energy left over", title="500 new samples")
right.legend(frameon=False, fontsize=9)
plt.show()

assert unaware.verdict is gortho.Verdict.NONE and unaware.form is None
assert few.verdict is gortho.Verdict.UNDERDETERMINED
assert aware.verdict is gortho.Verdict.FOUND and aware.group_name == "O(3)"
seen = across @ aware.form.matrix.numpy()
assert np.abs(seen @ across.T / (seen @ across.T)[0, 0] - np.eye(2)).max() < 0.05
assert np.abs(seen @ FIELD).max() < 0.05
