"""What a tagger really leaves unchanged, measured in float64, and what breaks the symmetry.

A tagger around A with reference vectors s is invariant under the g ∈ O(A) with gs = s for all of them, given or learnt:
its `Tagger.symmetry` (M16).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gortho.forms import QuadraticForm
from gortho.studies.toptag.samples import Sample
from gortho.studies.toptag.tagger import Tagger
from gortho.studies.toptag.train import logits, losses
from gortho.symmetry import Symmetry

#: Largest rapidities that scores are compared under, jets looked at, and transformations for each.
BOOSTS = (0.5, 1.0, 2.0)
JETS, TRANSFORMATIONS = 200, 8
#: Forms farther apart than this have other groups.
APART = 1e-6
#: Costs of turning references are told from chance at this many standard errors.
SIGNIFICANT = 3.0


@dataclass(frozen=True)
class Change:
    """How far scores (logits) move under transformations of one kind; ``spread`` is that of the scores themselves."""

    group: str
    largest_boost: float
    median: float
    largest: float
    spread: float


def invariance(net: Tagger, sample: Sample, truth: QuadraticForm, seed: int = 0) -> list[Change]:
    """Changes of scores under the tagger's own group, the true one, and what leaves its references in place."""
    exact = copy.deepcopy(net).cpu().double()
    some = sample[:JETS].to("cpu", torch.float64)
    before, own = logits(exact, some), _own_form(exact)
    groups: dict[str, Any] = {"all of O(A)": own.group()}
    directions = exact.symmetry.directions
    if len(directions):
        kept = Symmetry(own, directions=directions)
        groups[f"what of O(A) keeps the references ({len(kept.generators)} of 6 dimensions)"] = kept
    if own.algebra_distance(truth) > APART:
        groups["the true Lorentz group"] = truth.group()
    found = []
    for name, group in groups.items():
        for boost in BOOSTS:
            moved = [
                logits(exact, replace(some, x=some.x @ g.mT))
                for g in group.sample(TRANSFORMATIONS, seed, boost)
            ]
            change = (torch.stack(moved) - before).abs()
            found.append(
                Change(name, boost, float(change.median()), float(change.max()), float(before.std()))
            )
    return found


def _own_form(exact: Tagger) -> QuadraticForm:
    """The form as the float64 network has it."""
    return QuadraticForm(exact.form.matrix().detach().double().cpu())


def _cost(after: Tensor, before: Tensor) -> tuple[float, float]:
    """Mean growth of the loss with its standard error, jets paired."""
    growth = after - before
    return float(growth.mean()), float(growth.std() / math.sqrt(len(growth)))


@torch.no_grad()
def broken_directions(net: Tagger, validation: Sample, seed: int = 0) -> dict[str, Any]:
    """Do the learnt references break the symmetry, and along which directions?

    Turning all references by a random g ∈ O(A) is the same as turning the jets: where it costs nothing, the tagger's
    scores are invariant and no direction is preferred, whatever the references are. Switching one off sets it to zero.
    """
    if net.learnt is None:
        return {"references": [], "broken": None, "words": "No references were learnt."}
    kept = net.learnt.detach().clone()
    before = losses(net, validation)
    own = _own_form(copy.deepcopy(net).cpu().double())
    turns = own.group().sample(TRANSFORMATIONS, seed, 1.0).to(kept)
    try:
        turned = []
        for g in turns:
            net.learnt.copy_(kept @ g.mT)
            turned.append(losses(net, validation))
        cost, error = _cost(torch.stack(turned).mean(0), before)
        each = []
        for k, vector in enumerate(kept.double().cpu()):
            net.learnt.copy_(kept)
            net.learnt[k] = 0.0
            off, off_error = _cost(losses(net, validation), before)
            size = float(vector.norm())
            square = float(own(vector)) / max(size**2, 1e-300)
            each.append(
                {
                    "direction": (vector / max(size, 1e-300)).tolist(),
                    "size": size,
                    "square": square,
                    "off": off,
                    "off_error": off_error,
                }
            )
    finally:
        net.learnt.copy_(kept)
    broken = cost > SIGNIFICANT * error
    found = {"references": each, "turned": cost, "turned_error": error, "loss": float(before.mean())}
    return found | {"broken": broken, "words": _words(found, broken, len(net.spurions) > 0)}


def _words(found: dict[str, Any], broken: bool, given: bool) -> str:
    beyond = " beyond the given directions" if given else ""
    cost = f"{found['turned']:.4f} ± {found['turned_error']:.4f}"
    turned = (
        f"turning the learnt references at random adds {cost} to the validation loss of {found['loss']:.4f}"
    )
    if not broken:
        return f"The symmetry is not visibly broken{beyond}: {turned}."
    strongest = max(found["references"], key=lambda r: r["off"])
    direction = ", ".join(f"{v:+.2f}" for v in strongest["direction"])
    return (
        f"The symmetry is broken{beyond}: {turned}. The reference that matters most points along ({direction}); "
        f"it has size {strongest['size']:.2f}, and without it the loss grows by {strongest['off']:.4f} ± "
        f"{strongest['off_error']:.4f}."
    )
