"""
Small data: a network that knows the group against one that does not
====================================================================

If the form is known, say so: a network that respects it has less to learn. Here a network of each kind
learns how often massless particles scatter through a resonance of mass M and width Γ,

.. math:: y = \\log\\frac{t^2 + u^2}{(s - M^2)^2 + M^2\\Gamma^2}, \\qquad
   s = (p_1 + p_2)^2,\\; t = (p_1 - p_3)^2,\\; u = (p_2 - p_3)^2,

from the momenta of both incoming particles and one outgoing particle, in random frames. The squares are
Minkowski's, so y is the same in every frame.

*Told*: ``gortho.EquivariantRegressor`` is told the Minkowski form. *Not told to either*: s, t and u, the
resonance, the law.
"""

# %%
# Scattering events
# -----------------
# Each event is drawn in its centre-of-mass frame, with an energy between half and one and a half times M,
# and then turned and boosted at random.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gortho

torch.set_num_threads(1)
warnings.simplefilter("ignore", ConvergenceWarning)  # the plain network is stopped after 200 steps on purpose
MINKOWSKI = gortho.QuadraticForm.minkowski()
MASS, WIDTH = 1.0, 0.4


def events(count, seed, max_boost=1.0):
    """Momenta (count, 3, 4) as (E, px, py, pz) and the targets."""
    rng = np.random.default_rng(seed)
    energy = rng.uniform(0.5, 1.5, count) * MASS / 2
    cosine = rng.uniform(-1, 1, count)
    one, zero = np.ones(count), np.zeros(count)
    p1, p2 = np.stack([one, zero, zero, one], axis=1), np.stack([one, zero, zero, -one], axis=1)
    p3 = np.stack([one, np.sqrt(1 - cosine**2), zero, cosine], axis=1)
    p = energy[:, None, None] * np.stack([p1, p2, p3], axis=1)
    g = MINKOWSKI.group().sample(count, seed=seed, max_boost=max_boost).numpy()
    g *= np.sign(g[:, :1, :1])  # keep the direction of time
    p = np.einsum("nij,nkj->nki", g, p)
    s, t, u = (MINKOWSKI(v).numpy() for v in (p[:, 0] + p[:, 1], p[:, 0] - p[:, 2], p[:, 1] - p[:, 2]))
    return p, np.log((t**2 + u**2) / ((s - MASS**2) ** 2 + (MASS * WIDTH) ** 2))


# %%
# Two regressors
# --------------
# The plain network gets what it needs: columns scaled one by one (which would destroy a form), and its
# regularisation chosen by cross-validation each time. The one with the form gets one setting for all sizes.


def with_form(seed):
    return gortho.EquivariantRegressor(output="scalar", form=MINKOWSKI, random_state=seed)


def without(seed):
    network = MLPRegressor(hidden_layer_sizes=(64, 64), solver="lbfgs", max_iter=200, random_state=seed)
    choices = {"mlpregressor__alpha": [1.0, 10.0]}
    return GridSearchCV(make_pipeline(StandardScaler(), network), choices, cv=3)


def unexplained(model, seed, **options):
    """Share of the variance left over on 2,000 new events."""
    p, y = events(2_000, 10_000 + seed, **options)
    flat = p if isinstance(model, gortho.EquivariantRegressor) else p.reshape(len(p), -1)
    return np.mean((model.predict(flat) - y) ** 2) / y.var()


SIZES, SEEDS = [30, 100, 300], 3
errors = {"with the form": np.empty((len(SIZES), SEEDS)), "plain network": np.empty((len(SIZES), SEEDS))}
last = {}
for i, size in enumerate(SIZES):
    for seed in range(SEEDS):
        p, y = events(size, 100 * size + seed)
        last = {
            "with the form": with_form(seed).fit(p, y),
            "plain network": without(seed).fit(p.reshape(size, -1), y),
        }
        for name, model in last.items():
            errors[name][i, seed] = unexplained(model, seed)
for name, table in errors.items():
    print(name, *(f"{np.median(row):.2g} ({row.min():.2g} to {row.max():.2g})" for row in table), sep="   ")

# %%
# Frames that were not in the training data
# -----------------------------------------
# Trained on boosts up to a rapidity of 1, both are now asked about faster frames.

boosts = [0.0, 0.5, 1.0, 1.5, 2.0]
faster = {name: [unexplained(model, 0, max_boost=b) for b in boosts] for name, model in last.items()}

# %%
# Left: the median of three draws of training data, with bars from the best to the worst. Right: one pair of
# models, trained on 300 events.

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.3), sharey=True, layout="constrained")
for (name, table), colour, marker in zip(errors.items(), ("#0072B2", "#D55E00"), "os"):
    options = {"color": colour, "marker": marker, "label": name}
    middle = np.median(table, axis=1)
    bars = np.abs(np.stack([table.min(1), table.max(1)]) - middle)
    left.errorbar(SIZES, 100 * middle, 100 * bars, capsize=3, **options)
    right.plot(boosts, 100 * np.array(faster[name]), **options)
left.set(xscale="log", yscale="log", xlabel="training events", ylabel="unexplained variance in %")
left.set_xticks(SIZES, SIZES)
left.minorticks_off()
left.set_title("New events", fontsize=11)
left.legend(frameon=False)
right.axvspan(0, 1, color="0.9", lw=0)
right.text(0.5, 0.9, "trained on", ha="center", transform=right.get_xaxis_transform(), color="0.35")
right.set(xlabel="largest rapidity of the frame")
right.set_title("New frames, 300 training events", fontsize=11)
plt.show()

# %%
# The form is worth a lot, most of all with few events, and it holds in all frames alike: thirty events with it tell
# more than three hundred without. So few of them are predicted by a Gaussian process of the inner products.

ours, plain = (np.median(table, axis=1) for table in errors.values())
assert (ours < 0.1 * plain).all() and errors["with the form"][0].max() < plain[-1]
assert max(faster["with the form"]) < 1.1 * min(faster["with the form"])
assert faster["plain network"][-1] > 2 * faster["plain network"][0]
