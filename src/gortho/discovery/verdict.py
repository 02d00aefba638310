"""The verdict: what the evidence allows to say, and why (FOUND, NONE or UNDERDETERMINED).

A form is FOUND only if three things hold: models that see only its invariants explain the held-out data; no model
that sees the coordinates does notably better (M13); and the data determine the form, so that independent searches and
refits to resamples end at the same one. The defect says how exactly the law respects the form (M14).
"""

from __future__ import annotations

import enum
import math

from gortho.discovery.bent import MORE_DIRECTIONS, ONE_SIDED, TOLD_APART
from gortho.discovery.evidence import CLEAR_GAIN, NO_ERROR, Evidence
from gortho.discovery.shell import OFF_THE_SHELL, ON_A_SHELL

#: A law that is broken by more than this share of its variance does not keep the form (the user's ``tolerance``).
TOLERANCE = 0.003
#: NONE needs models of the coordinates that leave at most this share of the variance: else a form may still hide …
MAX_FREE = 0.15
#: … unless it is less than this share of what the best twin leaves.
OVERWHELMING = 0.25
#: A found form leaves at most this share of the variance unexplained on held-out data, noise that is known left out.
MAX_UNEXPLAINED = 0.25
#: Above this share of unexplained variance, the inputs say nothing on the targets at all.
NOTHING_EXPLAINED = 0.95
#: Refits farther than this from the found form (median distance in the frame) mean that the data does not pin it down.
MAX_SPREAD = 0.15
#: An eigenvalue is called zero, in the frame, when it is below this share of the largest …
ZERO_SHARE = 0.04
#: … within this many of its standard errors of zero …
ZERO_ERRORS = 6.0
#: … and cannot be, within two standard errors, larger than this share of the largest, in columns of unit size.
ZERO_BOUND = 0.005
#: A sign is known when the eigenvalue is this many of its standard errors from zero.
SIGN_ERRORS = 2.0

#: Logistic regression of right against wrong FOUND, fitted to the development seeds of the calibration benchmark: for
#: each decade of what is left over, each decade of the refits' spread, a form that is broken a little, and classes.
CALIBRATION = {"constant": -2.27, "left over": -0.57, "spread": -1.45, "broken": -1.91, "classes": 3.0}
#: Smaller shares and spreads than these say no more.
SMALLEST_LEFT, SMALLEST_SPREAD = 1e-5, 1e-4
#: A form with less confidence than this is more likely wrong than right: it is not claimed.
LEAST_CONFIDENT = 0.5
#: Nothing is claimed with more confidence: some hundred problems cannot tell.
MOST_CONFIDENT = 0.995
#: Share of the answers NONE that were right there, with one more wrong than seen.
NONE_RIGHT = 0.99


class Verdict(enum.Enum):
    """What the data say about a quadratic form; ``reason`` is the meaning, a `Discovery` has the evidence."""

    FOUND = "the data respects a quadratic form, and the form is pinned down"
    NONE = "the data does not respect any quadratic form"
    UNDERDETERMINED = "the data cannot tell whether, or which, quadratic form it respects"

    @property
    def reason(self) -> str:
        """What this verdict means, in plain words."""
        return self.value

    def __str__(self) -> str:
        return self.name


def percent(share: float) -> str:
    """A fraction as text: 760 %, 12 %, 0.3 %, below 0.01 %."""
    if share < NO_ERROR:
        return "below 0.01 %"
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _of_all(share: float) -> str:
    """A fraction of the log loss of class frequencies, which models that learnt nothing may exceed."""
    return percent(share) if share <= 1 else "all (and more)"


def confidence(e: Evidence, verdict: Verdict) -> float:
    """How often answers with similar evidence were right, on problems with and without a form (see results/verdicts).

    For FOUND a logistic function of the unexplained variance, of the spread of refits and of whether the form is
    slightly broken; for NONE the fraction that was right; for UNDERDETERMINED zero, since it claims nothing.
    """
    if verdict is Verdict.UNDERDETERMINED:
        return 0.0
    if verdict is Verdict.NONE:
        return NONE_RIGHT
    score = CALIBRATION["constant"]
    if e.classes:  # labels leave much to chance, whatever the form
        score += CALIBRATION["classes"]
    else:
        score += CALIBRATION["left over"] * math.log10(max(e.left_over, e.resolved, SMALLEST_LEFT))
    score += CALIBRATION["spread"] * math.log10(max(e.spread, SMALLEST_SPREAD))
    score += CALIBRATION["broken"] * (e.broken is not None)
    return min(1 / (1 + math.exp(-score)), MOST_CONFIDENT)


Judged = tuple[Verdict, str, str]  # with reason and advice
MORE = "Give more samples, or less noisy ones; if a direction, an origin or a quantity is missing, pass it."


def judge(e: Evidence, group_name: str, tolerance: float = TOLERANCE) -> Judged:
    """Verdict, reason and advice, in plain words: the first reason against FOUND, or FOUND."""
    found, free = _told(e, group_name)
    return (
        _nothing_explained(e)
        or _contradicted(e, f"{found}, {free}", tolerance)
        or _too_much_left(e, f"{found}, {free}")
        or _not_pinned_down(e, found)
        or _found(e, f"{found}, {free}", tolerance)
    )


def _told(e: Evidence, group_name: str) -> tuple[str, str]:
    """What the best models of the invariants and of the coordinates leave unexplained, in words."""
    m, few = e.typical, ""
    if e.few_rule:
        few = f"Without the worst {len(e.worst)} of {e.held_out} held-out samples (see the note), "
    share, what = (_of_all, "log loss of the class frequencies") if e.classes else (percent, "variance")
    found = f"he best model of the invariants of {group_name} ({e.twin}) leaves {share(m.unexplained)} of the {what} "
    found = f"{few}t{found}unexplained" if few else f"T{found}unexplained"
    return found, f"the best model of the coordinates ({e.free}) {share(m.free_unexplained)}"


def _nothing_explained(e: Evidence) -> Judged | None:
    m = e.typical
    if min(m.unexplained, m.free_unexplained) > NOTHING_EXPLAINED:
        shares = f"{percent(m.unexplained)} and {percent(m.free_unexplained)}"
        left = f"on held-out samples {shares} of their variance stay unexplained"
        if e.classes:
            left = "on held-out samples their log losses are about that of the class frequencies, or above"
        return (
            Verdict.UNDERDETERMINED,
            f"Neither models of the invariants of a form nor models of the coordinates explain the targets: {left}.",
            "Check that y belongs to x, row by row, and is not mostly noise; more samples help only then.",
        )
    return None


def _contradicted(e: Evidence, found: str, tolerance: float) -> Judged | None:
    """Models of the coordinates are better, or may be."""
    if e.broken is not None and max(e.broken.gain, e.defect.low) > tolerance:
        overwhelming = OVERWHELMING * e.broken.unexplained
        # Where equally good restarts end elsewhere, free models are better than one form, not than every one.
        most = overwhelming if e.agreeing < e.near_best else max(MAX_FREE, overwhelming)
        little_explained = e.broken.free_unexplained > most and not e.classes
        if little_explained or e.broken.gain < CLEAR_GAIN * e.broken.unexplained:
            return (
                Verdict.UNDERDETERMINED,
                f"{found}: this may be a broken form, or one that the search has missed, or what the models "
                "of the invariants have not learnt.",
                MORE,
            )
        if not e.defect.low > tolerance:
            return (
                Verdict.UNDERDETERMINED,
                f"{found}: the form is {e.defect}, which may be more or less than the tolerance, {percent(tolerance)}.",
                "Give more samples, or less noisy ones; or choose a tolerance outside of this interval.",
            )
        return (
            Verdict.NONE,
            f"{found}: the targets depend on more than the inner products of a form.",
            "Check whether a direction, an origin or a further quantity breaks the symmetry: pass it as a scalar or "
            "as one more vector, choose another output type, or use an unconstrained model.",
        )
    if e.doubtful(tolerance):
        return (
            Verdict.UNDERDETERMINED,
            f"{found}: the latter seem better, but these samples leave it open whether they are.",
            MORE,
        )
    if e.spoiled(tolerance):
        return (
            Verdict.UNDERDETERMINED,
            f"{found}; but with these samples the former leaves {percent(e.everyone.unexplained)}, the latter "
            f"{percent(e.everyone.free_unexplained)}: they may break the form, or lie where models of the invariants "
            "have not learnt enough.",
            "Look at the samples that the note names; if nothing is wrong with them, give more of their kind.",
        )
    return None


def _too_much_left(e: Evidence, found: str) -> Judged | None:
    # Labels leave much to chance, whatever the form; but it must explain something.
    if e.left_over > (NOTHING_EXPLAINED if e.classes else MAX_UNEXPLAINED):
        return (
            Verdict.UNDERDETERMINED,
            f"{found}: too much is left over to tell noise from a broken form.",
            "Give more samples or less noisy targets; if a quantity is missing, pass it as a scalar."
            + ("" if e.classes else " Where the errors of y are known, give them (y_error)."),
        )
    if not e.complete:
        return (
            Verdict.UNDERDETERMINED,
            f"{found}, which the time budget cut short: whether it would do better is open.",
            "Give a larger time budget, or none.",
        )
    return None


def _not_pinned_down(e: Evidence, found: str) -> Judged | None:
    """Other forms, or other signs, fit equally well."""
    if e.agreeing <= 0.5 * e.near_best or e.spread > MAX_SPREAD:
        ends = (
            "no other restart came as close as the best"
            if e.near_best == 1
            else f"{e.agreeing} of {e.near_best} equally good restarts end at this one"
        )
        return (
            Verdict.UNDERDETERMINED,
            f"{found}, but so do other forms: {ends}, and refits to resamples differ by {e.spread:.2g} in the median.",
            "The targets may not depend on the form at all (a constant, y proportional to x), or the inputs cover "
            "too few directions: give more samples, more varied inputs, or another output.",
        )
    if e.shell:
        return Verdict.UNDERDETERMINED, f"{found}, but {ON_A_SHELL}", OFF_THE_SHELL
    if e.bent is not None and e.bent > TOLD_APART:
        return Verdict.UNDERDETERMINED, f"{found}, but {ONE_SIDED}", MORE_DIRECTIONS
    if e.weakest_eigenvalue < SIGN_ERRORS:
        return (
            Verdict.UNDERDETERMINED,
            f"{found}, but the sign of the smallest eigenvalue is open ({e.weakest_eigenvalue:.1f} of its standard "
            "errors from zero), and with it the group: the targets hardly depend on one direction.",
            "Give samples that vary more along the direction of the smallest eigenvalue, or less noisy targets.",
        )
    return None


def _found(e: Evidence, found: str, tolerance: float) -> Judged:
    """The form is FOUND, unless answers with similar evidence were mostly wrong."""
    lenient = e.broken is not None and tolerance > TOLERANCE  # asked for what was not calibrated
    if confidence(e, Verdict.FOUND) < LEAST_CONFIDENT and not lenient:
        return (
            Verdict.UNDERDETERMINED,
            f"{found}; refits to resamples differ by {e.spread:.2g} in the median. Of answers on such grounds, "
            "more were wrong than right.",
            "Give more samples or less noisy targets; if a quantity is missing, pass it as a scalar.",
        )
    blind = f" It does not see {e.zero_directions} of the directions: the form is singular."
    refits = f"refits to resamples (median distance {e.spread:.2g})"
    agreed = (
        f"no other restart came as close as the best, but {refits} agree with it"
        if e.near_best == 1
        else f"{e.agreeing} of {e.near_best} equally good restarts and {refits} agree on the form"
    )
    useless = e.own_unexplained > NOTHING_EXPLAINED and not e.classes
    return (
        Verdict.FOUND,
        f"{found}; {agreed}.{blind if e.zero_directions else ''}",
        "Do not predict with it: the predictor is no better than the mean on held-out samples. Give more samples."
        if useless
        else "Predict with it, and check the predictor on new data (gortho check).",
    )
