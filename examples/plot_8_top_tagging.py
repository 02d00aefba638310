"""
Top tagging in short
====================

A jet is a spray of particles from one collision at the LHC. Was it a top quark that decayed, or an ordinary
quark or gluon? The answer must not depend on how fast the jet moves past the observer, so a tagger should
see Minkowski inner products of momenta and nothing else. ``gortho.studies.toptag.tagger.Tagger`` does so by
construction.

*Told*: the Minkowski form, the momenta of up to 30 particles of each jet, and labels. *Not told*: the mass
of the top or of the W, or any other variable.

The 3,000 jets lie in the project's repository, in ``examples/data/jets.npz``. They were made with ``gortho
data toptag generate jets --jets 3000 --seed 20 --shard-jets 500`` (Pythia 8 and a fast detector; anti-kT
jets with R = 0.8 and transverse momenta of 550 to 650 GeV), cut to the 30 hardest particles and rounded to
1/64 GeV. Taggers in earnest are trained on a million jets: this shows how it is done, not how good it gets.
"""

# %%
# The jets
# --------

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.neural_network import MLPClassifier

import gortho
from gortho.studies.toptag import Jets
from gortho.studies.toptag.samples import Sample
from gortho.studies.toptag.tagger import Tagger
from gortho.studies.toptag.train import evaluate, logits, train

torch.set_num_threads(1)
try:
    here = Path(__file__).parent
except NameError:  # in a notebook
    here = Path()
jets = Jets.from_npz(here / "data" / "jets.npz")
parts = {name: Sample.of(jets, jets.split(name), 30) for name in ("train", "validation", "test")}
print(jets, {name: len(part) for name, part in parts.items()})

# %%
# The tagger
# ----------
# Two small message layers; the number of weights is printed.

tagger = Tagger(width=16, pairs=16, depth=2, seed=0)
options = {"epochs": 10, "batch_size": 64, "lr": 5e-3, "average": 0.99, "bucket": True}
history = train(tagger, parts["train"], parts["validation"], **options)
scores = logits(tagger, parts["test"]).numpy()
label = parts["test"].label.numpy()
results = evaluate(tagger, parts["test"])
print(f"{sum(p.numel() for p in tagger.parameters())} weights, {history.seconds:.0f} s")
print(f"accuracy {results['accuracy']:.3f} ± {results['accuracy_error']:.3f}")
print(f"AUC      {results['auc']:.3f} ± {results['auc_error']:.3f}")

# %%
# The oldest variable for this job is the mass of the jet: how close is it to that of the top, 173 GeV?

mass = np.sqrt(np.maximum(0, gortho.QuadraticForm.minkowski()(parts["test"].x.double().sum(1)).numpy()))
closeness = -np.abs(mass - 173)
print(f"AUC      {roc_auc_score(label, closeness):.3f} for the mass alone")

# %%
# Other frames
# ------------
# An observer who moves across the beam sees the same jets with other momenta. The tagger gives them the
# same scores, to rounding. For comparison, a plain network gets the usual coordinates of a detector: for
# each particle the share of transverse momentum, and the angles from the axis of the jet. With so few jets
# it does not reach the mass alone, and it loses more with speed.


def boosted(x, rapidity):
    """Momenta (E, px, py, pz) seen by an observer moving along the x axis."""
    c, s = np.cosh(rapidity), np.sinh(rapidity)
    return x @ torch.tensor([[c, -s, 0, 0], [-s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=x.dtype)


def detector_coordinates(x, mask):
    """log(pT / pT of the jet), Δη and Δφ of every particle, one row for each jet."""
    jet = x.sum(1, keepdim=True)
    pt, jet_pt = (v[..., 1:3].norm(dim=-1).clamp(min=1e-9) for v in (x, jet))
    eta = torch.asinh(x[..., 3] / pt) - torch.asinh(jet[..., 3] / jet_pt)
    phi = torch.atan2(x[..., 2], x[..., 1]) - torch.atan2(jet[..., 2], jet[..., 1])
    phi = torch.remainder(phi + np.pi, 2 * np.pi) - np.pi
    features = torch.stack([(pt / jet_pt).log(), 5 * eta, 5 * phi], dim=-1) * mask[..., None]
    return features.flatten(1).numpy()


plain = MLPClassifier(
    (128, 64), alpha=0.1, early_stopping=True, n_iter_no_change=20, max_iter=300, random_state=0
)
plain.fit(detector_coordinates(parts["train"].x, parts["train"].mask), parts["train"].label.numpy())

momenta, mask = parts["test"].x[..., 1:].double(), parts["test"].mask
x = torch.cat([momenta.norm(dim=-1, keepdim=True), momenta], dim=-1)
tagger.double()
with torch.no_grad():
    before = tagger(x, mask)
rapidities = np.linspace(0, 1.5, 7)
areas, changes = {"tagger": [], "plain network": []}, []
for rapidity in rapidities:
    moved = boosted(x, rapidity)
    with torch.no_grad():
        after = tagger(moved, mask)
    changes.append(float((after - before).abs().max()))
    areas["tagger"].append(roc_auc_score(label, after))
    areas["plain network"].append(
        roc_auc_score(label, plain.predict_proba(detector_coordinates(moved, mask))[:, 1])
    )
print(
    f"scores lie between {before.min():.1f} and {before.max():.1f}; largest change of any: {max(changes):.0e}"
)
plain_scores = plain.predict_proba(detector_coordinates(x, mask))[:, 1]

# %%
# Left: how much background is rejected for a given share of tops kept. Right: the area under such curves
# (AUC), for observers that move at up to 91 % of the speed of light.

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.3), layout="constrained")
for values, name, colour, style in (
    (scores, "tagger", "#0072B2", "-"),
    (plain_scores, "plain network", "#D55E00", "-."),
    (closeness, "jet mass alone", "#E69F00", "--"),
):
    false, true, _ = roc_curve(label, values)
    left.semilogy(true[false > 0], 1 / false[false > 0], style, color=colour, label=name)
share = np.linspace(0.02, 1, 50)
left.semilogy(share, 1 / share, ":", color="0.4", label="guessing")
left.set(
    xlabel="share of tops kept", ylabel="1 / share of background kept", ylim=(0.8, 5e3), title="600 test jets"
)
left.legend(frameon=False, fontsize=9)
for (name, values), colour, marker in zip(areas.items(), ("#0072B2", "#D55E00"), "os"):
    right.plot(np.tanh(rapidities), values, marker + "-", ms=5, color=colour, label=name)
right.set(xlabel="speed of the observer / c", ylabel="AUC", ylim=(0.45, 1.02), title="The same jets, moving")
right.legend(frameon=False, fontsize=9)
plt.show()

assert results["auc"] > 0.95
assert max(changes) < 1e-6 and max(areas["tagger"]) - min(areas["tagger"]) < 1e-6
