"""Outliers: samples whose y is unrelated to their x, detected before anything is judged.

The search is robust against them, but predictors and twins are not, and a few gross errors can make up most of the
variance that errors are compared with. Outliers are few. They are far from a robust fit, by the errors of the others
and by the spread of y, and their y is beyond that of all others. They are not concentrated in one region: samples far
from every fit in one place, such as near a pole or where a symmetry is broken, are not outliers. If a short polynomial
is the law of all others to many digits, a sample off it is an outlier whatever its y, as after a wrong digit in x.

If a law is handed, or has a direction or an origin, a fit of one form cannot show which samples are wrong. A polynomial
of all coordinates assumes no symmetry. It is only used if it leaves normal errors for all other samples, since the tail
of a law that it misses, such as a pole, is not an outlier; and only for samples among the others, since it means
nothing beyond them.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from scipy.spatial import KDTree
from scipy.stats import ks_2samp, poisson
from torch import Tensor

from gortho.discovery.looks import LAST, few_for
from gortho.discovery.models import Invariants, coordinates
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import LAW, POLYNOMIAL_STEPS, Parts
from gortho.discovery.projection import LEAST_DAMPING, Projection, Solve
from gortho.discovery.result import Discovery
from gortho.discovery.verdict import Verdict, percent
from gortho.nn.tuples import SOFT
from gortho.objectives import ABSOLUTE, Objective
from gortho.objectives.learners import monomials_of
from gortho.samples.errors import numbered
from gortho.samples.values import Samples

#: An outlier is beyond this many sigmas of normal errors with the median of all …
FAR = 6.0
#: … and both its error and its y are beyond this many sigmas of y itself, by the median distance from the median; or of
#: this many, where there are such.
GROSS, LARGE = 6.0, 3.0
#: A fit whose typical error is above this share of the spread of y cannot show what is far from the law.
GOOD = 0.5
#: More than this share of the samples are no outliers: the fit is wrong, or errors have heavy tails.
MOST = 0.1
#: Samples beyond this many median errors of a fit count less and less in the next; and rounds of it, by a form and by a
#: polynomial of the coordinates.
TAMED, ROUNDS, POLYNOMIAL_ROUNDS = 4.0, 10, 12
#: Quantiles of y that bound its usual values, of this many samples at most.
USUAL, MANY = (0.02, 0.98), 100_000
#: Off a polynomial that is the law of the others are samples with squared errors above this share of the spread of y.
OFF = 1e-6
#: Samples for each unknown of the fit, at least; and of all: with fewer, an outlier looks like the tail of a law.
ROWS_FOR_UNKNOWN, FEWEST = 12, 100
#: Neighbours of an outlier that are looked at; and the chance, by tests of where outliers are, that tells of a place.
NEIGHBOURS, BY_CHANCE = 10, 3e-3
#: At most this share of the samples are few, and this share of the sum of squares is nearly all of the spread of y.
FEW_RULE, RULING = 0.005, 0.9
#: Searches after which more outliers are looked for.
SEARCHES = 3
#: The largest error that a polynomial of the coordinates leaves, in sigmas by their median: normal ones, by which noise
#: may vary a little; and the least of an outlier.
NORMAL, OUTLYING = 8.0, 25.0
#: Its errors below this share of the spread of y are rounding.
ROUNDING = 1e-6
#: A polynomial whose typical error is above this share of the spread of y does not tell.
CLOSE = 0.2
#: Samples for each of its monomials, and the share of them that may be outliers by it, at most.
ROWS_FOR_MONOMIAL, MOST_SCATTERED = 8, 0.02
#: Its degree, its monomials, and samples that it is fitted to, at most: more take longer and tell no more.
DEGREES, MONOMIALS, ROWS = 3, 150, 5_000
#: A sample is among the others where its leverage is not beyond this quantile of theirs.
AMONG = 0.9
#: The median size of a normal number: noise of vectors may be along one of their components, so all count as numbers.
MEDIAN = 0.6745


def deviations(samples: Samples) -> Tensor:
    """Squared distances of the targets from their median, by the weights of the samples."""
    y = samples.y.double().reshape(len(samples), -1)
    return (y - y.median(0).values).square().sum(1) * samples.each_weight


def outliers(parts: Parts, A: Tensor, objective: Objective, seed: int) -> Tensor:
    """Which of training, validation and held-out samples, one after the other, are outliers: a mask.

    ``A`` and ``objective`` are those of the search, in the frame. The fit is one to training and validation samples.
    """
    whole = Samples.cat(parts)
    seen = len(parts.train) + len(parts.validation)
    off = _off_the_law(whole, seen, A, seed)
    if off is not None and (not off.any() or not _somewhere(A, whole, off)):
        return torch.from_numpy(off)
    found = _gross(whole, seen, A, objective, seed)
    if not bool(found.any()) and seen >= FEWEST:  # the law may keep no form
        apart = scattered(whole, seen)
        if bool(apart.any()) and not _somewhere(A, whole, apart.numpy()):
            return apart
    return found


def _gross(whole: Samples, seen: int, A: Tensor, objective: Objective, seed: int) -> Tensor:
    """Which samples are far from a robust fit of the form, and have a y beyond that of all others."""
    none, spread = np.zeros(len(whole), bool), deviations(whole)
    if seen < FEWEST or not bool((spread > _beyond(GROSS, spread)).any()):
        return torch.from_numpy(none)
    far, squares = _far(ABSOLUTE.prepared(whole), seen, A, seed)
    if objective != ABSOLUTE:
        far &= _far(objective.prepared(whole), seen, A, seed)[0]
    spread = deviations(ABSOLUTE.prepared(whole))
    if float(squares[:seen].median()) > GOOD**2 * float(spread.median()):
        return torch.from_numpy(none)
    sizes = torch.minimum(squares, spread)
    gross, large = (far & (sizes > _beyond(sigmas, spread)).numpy() for sigmas in (GROSS, LARGE))
    if not gross.any() or gross.mean() > MOST or not _apart(spread, gross) or _somewhere(A, whole, gross):
        return torch.from_numpy(none)
    # Where some are gross, others are likely, too.
    more = large & ~gross
    if large.mean() > MOST or not _apart(spread, large) or (more.any() and _somewhere(A, whole, more)):
        return torch.from_numpy(gross)
    return torch.from_numpy(large)


def _off_the_law(samples: Samples, seen: int, A: Tensor, seed: int) -> np.ndarray | None:
    """Which samples are off a short polynomial that is the law of most of them; None if there is no such law."""
    few, _ = few_for(samples.rows(slice(0, seen)), LAST)
    spread = float(deviations(few).median())
    for degree in range(3):
        projection = Projection(few, 0, few.weights, seed, degree=degree)
        if projection.y.numel() < ROWS_FOR_UNKNOWN * projection.family.columns or not torch.linalg.det(A):
            break
        squares, form, before = deviations(few), A, math.inf
        for _ in range(ROUNDS):
            at = projection.reweighted(_tamed(squares)).refine(form, POLYNOMIAL_STEPS, LEAST_DAMPING)
            form, squares = at.A, _squares(projection, at, few)
            typical = float(squares.median())
            if typical < LAW * spread:
                off = _squares(projection, at, samples) > OFF * spread
                if float(off.double().mean()) <= MOST:
                    return off.numpy()
            if typical > before / 2:
                break
            before = typical
    return None


def scattered(samples: Samples, seen: int) -> Tensor:
    """Which samples are off a polynomial that explains all others, by a fit to the first ones: a mask."""
    X, y = coordinates(samples), samples.y.double().reshape(len(samples), -1)
    root, spread = samples.each_weight.double().sqrt()[:, None], deviations(samples)
    seen = min(seen, ROWS)
    for degree in range(1, DEGREES + 1):
        count = math.comb(X.shape[1] + degree, degree)
        if ROWS_FOR_MONOMIAL * count > seen or count > MONOMIALS:
            break
        D = monomials_of(X[:seen], count, degree)(X) * root
        squares, leverage = _robust(D, y * root, spread, seen)
        typical = max(float(squares[:seen].median()), ROUNDING**2 * float(spread.median())) / MEDIAN**2
        among = leverage <= torch.quantile(leverage[:seen], AMONG)
        off = among & (squares > OUTLYING**2 * typical)
        if not bool(off.any()) or float(off.double().mean()) > MOST_SCATTERED:
            continue
        normal = float(squares[among & ~off].max()) <= NORMAL**2 * typical
        if normal and typical < CLOSE**2 * float(spread.median()) / MEDIAN**2:
            return off
    return torch.zeros(len(y), dtype=torch.bool)


def _robust(D: Tensor, y: Tensor, squares: Tensor, seen: int) -> tuple[Tensor, Tensor]:
    """Squared errors of a fit to the first samples in which those far off count next to nothing; and leverages."""
    for _ in range(POLYNOMIAL_ROUNDS):
        root = _tamed(squares[:seen]).sqrt()
        Q, R = torch.linalg.qr(D[:seen] * root[:, None])
        inverse = torch.linalg.pinv(R)  # columns may be constant
        squares = (y - D @ (inverse @ (Q.mT @ (y[:seen] * root[:, None])))).square().sum(1)
    return squares, (D @ inverse).square().sum(1)


def _tamed(squares: Tensor) -> Tensor:
    """Weights by which samples far from the last fit count less and less in the next."""
    return (1 + squares / (TAMED**2 * squares.median().clamp_min(1e-300))) ** -2


def _apart(squares: Tensor, found: np.ndarray) -> bool:
    """Whether all that was found is beyond all others: the tail of a law has no such gap."""
    of = squares.numpy()
    return bool(of[found].min() > of[~found].max())


def _beyond(sigmas: float, squares: Tensor) -> float:
    """Squared errors beyond so many sigmas, of numbers whose squares have this median."""
    return (sigmas / MEDIAN) ** 2 * float(squares.median())


def _somewhere(A: Tensor, samples: Samples, found: np.ndarray) -> bool:
    """Whether what was found has a place, among the coordinates or among the invariants."""
    plain, invariants = coordinates(samples), Invariants.of(A, samples, squares=True)(samples)
    sizes = torch.cat([invariants.abs(), samples.x.double().norm(dim=2)], 1)
    return _in_one_place(plain, found) or _in_one_place(invariants, found) or _at_one_end(sizes, found)


def _far(samples: Samples, seen: int, A: Tensor, seed: int) -> tuple[np.ndarray, Tensor]:
    """Which samples are far from a robust fit to the first ones, by the errors of the others; and squared errors."""
    few, columns = few_for(samples.rows(slice(0, seen)), LAST)
    projection = Projection(few, min(columns, seen // ROWS_FOR_UNKNOWN), few.weights, seed + 6, SOFT)
    squares = deviations(few)  # before there is a fit
    for _ in range(ROUNDS):
        at = projection.reweighted(_tamed(squares)).solve(A)
        squares = _squares(projection, at, few)
    prediction, y = projection.predict(at, samples), samples.y.reshape(len(samples), -1)
    # At the edge of the data a fit may leave the range of y.
    inside = torch.clamp(prediction, *torch.quantile(y[:MANY], torch.tensor(USUAL, dtype=y.dtype), dim=0))
    errors = torch.minimum((y - prediction).abs(), (y - inside).abs())
    squares = errors.square().sum(1) * samples.each_weight
    # Errors may be in proportion to what is predicted: they are usual then.
    sizes = prediction.square().sum(1) * samples.each_weight
    relative = squares / (sizes + sizes.median()).clamp_min(1e-300)
    found = [e > _beyond(FAR, e[:seen]) for e in (squares, relative)]
    return (found[0] & found[1]).numpy(), squares


def _squares(projection: Projection, at: Solve, samples: Samples) -> Tensor:
    """Squared distances of the samples from a fit, by their own weights."""
    y = samples.y.reshape(len(samples), -1)
    return (y - projection.predict(at, samples)).square().sum(1) * samples.each_weight


def _in_one_place(rows: Tensor, found: np.ndarray) -> bool:
    """Whether those found have more of their kind for neighbours, among rows of inputs, than chance would give."""
    inputs = rows.numpy()
    inputs = (inputs - np.median(inputs, axis=0)) / np.maximum(inputs.std(0), 1e-300)
    near = min(NEIGHBOURS, len(inputs) - 1)
    _, at = KDTree(inputs).query(inputs[found], k=near + 1)
    own = np.flatnonzero(found)[:, None]
    neighbours = int((found[at] & (at != own)).sum())
    expected = len(own) * near * (len(own) - 1) / (len(inputs) - 1)
    # Neighbours mostly come in pairs.
    return bool(poisson.sf(neighbours // 2 - 1, expected / 2) < BY_CHANCE)


def _at_one_end(sizes: Tensor, found: np.ndarray) -> bool:
    """Whether one of the columns has other values for those found than for all others."""
    tests = (ks_2samp(column[found], column[~found]) for column in sizes.numpy().T)
    return bool(min(test.pvalue for test in tests) < BY_CHANCE / sizes.shape[1])


def outlier_notices(posed: Posed, kept: Posed) -> list[str]:
    """The notice on outliers, where there are some: what was posed, and what was kept of it."""
    y, rest = (s.y.reshape(len(s), -1).norm(dim=1) for s in (posed.everyone, kept.everyone))
    count, named = len(y) - len(rest), ""
    if not count:
        return []
    if posed.numbers is not None and kept.numbers is not None:
        named = f" ({numbered(sorted(set(posed.numbers.tolist()) - set(kept.numbers.tolist())))})"
    are, they, them = ("is an outlier", "It is", "it") if count == 1 else ("are outliers", "They are", "them")
    largest = [f"{float(sizes.max()):.3g}" for sizes in (y, rest)]
    by = f": the largest |y| is {largest[0]}, and {largest[1]} without {them}" * (largest[0] != largest[1])
    return [
        f"{count:,} of {len(y):,} samples{named} {are}, far from the y of others with such x{by}. {they} left out of "
        f"fits, errors and verdict. Look at {them}: drop what is wrong, and give what is right its error (y_error) or "
        "weight."
    ]


def without_outliers(found: Discovery, posed: Posed, kept: Posed) -> Discovery:
    """The discovery, its reason with a word on the outliers that it was made without."""
    count = len(posed.everyone) - len(kept.everyone)
    if not count:
        return found
    are = "is an outlier" if count == 1 else "are outliers"
    said = f"{count:,} of {len(posed.everyone):,} samples {are}, and left out (see the note)."
    return replace(found, reason=f"{said} {found.reason}")


def with_ruling(found: Discovery, posed: Posed) -> Discovery:
    """An answer that is not FOUND, with a note on a few samples that are nearly all of the spread of y.

    Such samples decide which models look good, so that they deny nothing: NONE becomes UNDERDETERMINED.
    """
    if found.verdict is Verdict.FOUND or posed.classes:
        return found
    parts = posed.parts
    squares = deviations(Samples.cat(parts))
    order = squares.argsort(descending=True)
    shares = squares[order].cumsum(0) / squares.sum().clamp_min(1e-300)
    count = 1 + int((shares < RULING).sum())
    if count > max(1, FEW_RULE * len(squares)) or not bool(shares[-1] > 0):
        return found
    sizes, named = posed.everyone.y.reshape(len(squares), -1).norm(dim=1), ""
    if posed.numbers is not None:
        named = f" ({numbered(sorted(posed.numbers[order[:count]].tolist()))})"
    make, them = ("makes", "it") if count == 1 else ("make", "them")
    note = (
        f"{count:,} of {len(squares):,} samples{named} {make} up over {percent(RULING)} of the spread of y: the "
        f"largest |y| is {float(sizes.max()):.3g}, the median {float(sizes.median()):.3g}. Look at {them} first: the "
        f"answer may be another without {them}."
    )
    found = replace(found, notices=(*found.notices, note))
    if found.verdict is not Verdict.NONE:
        return found
    reason = f"A few samples are nearly all of the spread of y (see the note), which leaves it open. {found.reason}"
    return replace(found, verdict=Verdict.UNDERDETERMINED, confidence=0.0, reason=reason)
