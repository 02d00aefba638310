"""Sample reports: one for each verdict, one full of hostile and broken values."""

import dataclasses

import numpy as np

from gortho.report import Peer, Profile, ReportData, RestartRow, TwinRow

HOSTILE = '<script>alert("x")</script> $\\frac{$ & {{ 7 * 7 }}'


def _generators(form):
    """Return a basis of the matrices G with GᵀA + AG = 0 for a diagonal A with nonzero entries."""
    size, basis = len(form), []
    for i in range(size):
        for j in range(i + 1, size):
            generator = np.zeros((size, size))
            generator[i, j], generator[j, i] = 1 / form[i, i], -1 / form[j, j]
            basis.append(generator)
    return np.array(basis)


def found(size=4):
    """Return a report on a found Minkowski form in so many dimensions."""
    rng = np.random.default_rng(0)
    names = ["E", "px", "py", "pz", *(f"p{k}" for k in range(4, size))][:size]
    form = np.diag([1.0] + [-1.0] * (size - 1))
    noise = 0.012 * rng.standard_normal((size, size))
    matrix, half = form + (noise + noise.T) / 2, 0.02 + 0.01 * rng.random((size, size))
    eigenvalues = np.sort(np.linalg.eigvalsh(matrix))[::-1]
    true = rng.standard_normal(1500) * 3
    boosts = np.linspace(0, 3, 13)
    rows = []
    for k in range(12):
        lost = k % 5 == 4
        rows.append(
            RestartRow(
                start=f"random {k + 1}",
                signature="(2, 2, 0)" if lost else "(1, 3, 0)",
                validation_error=float((0.4 if lost else 2.1e-4) * np.exp(0.15 * rng.standard_normal())),
                cosine=0.55 if lost else 0.9998,
                distance=0.9 if lost else 0.0 if k == 0 else float(0.01 * np.exp(rng.standard_normal())),
            )
        )
    rows[0] = dataclasses.replace(rows[0], validation_error=1.5e-4)
    return ReportData(
        verdict="FOUND",
        headline="The data respect the Lorentz group: q = E² − |p|² stays unchanged.",
        reason="One form explains the data far better than its rivals, and the searches agree on it.",
        advice="Use the equivariant predictor; it extrapolates to boosts which the data never showed.",
        confidence=0.987,
        confidence_note="Calibrated on 400 synthetic problems: of verdicts this sure, 98% were right.",
        law="q(x) = 1.00 " + " - 1.00 ".join(f"{name}²" for name in names),
        names=names,
        group_name=f"O(1, {size - 1})",
        signature=(1, size - 1, 0),
        matrix=matrix,
        matrix_low=matrix - half,
        matrix_high=matrix + half,
        eigenvalues=eigenvalues,
        eigenvalues_low=eigenvalues - 0.06,
        eigenvalues_high=eigenvalues + 0.05,
        generators=_generators(form),
        output="vector",
        true=true,
        predicted=true + 0.12 * rng.standard_normal(1500),
        errors=[
            Peer("Equivariant (gortho)", 1.52e-4, 1.7e-5, 12_345, "exactly symmetric"),
            Peer("Unconstrained network", 8.31e-3, 9.2e-4, 13_002, "same budget of parameters"),
            Peer("Linear regression", 0.412, 0.046, 20, "baseline"),
        ],
        free_p=1 - 1.7e-12,
        boosts=boosts,
        equivariance_errors=np.where(boosts > 0, 2e-7 * np.exp(0.2 * rng.standard_normal(13)), 0.0),
        unconstrained_equivariance_errors=np.where(boosts > 0, 3e-3 * np.exp(1.8 * boosts), 0.0),
        restarts=rows,
        bootstrap_distances=0.01 * np.exp(0.5 * rng.standard_normal(64)),
        spectral_gap=41.7,
        facts={
            "Samples": "6,000 (4,000 train, 1,000 validation, 1,000 test)",
            "Seed": "0",
            "Time": "1 min 12 s",
        },
        notices=[
            "Inputs were centred before the search.",
            "Two of twelve searches stopped in a local minimum.",
        ],
    )


def none():
    """Return a report which rejects its candidate form."""
    return dataclasses.replace(
        found(),
        verdict="NONE",
        headline="No quadratic form is respected by these data.",
        reason="The best form predicts worse than a network without any symmetry.",
        advice="Use an unconstrained model, or look for another kind of symmetry.",
        confidence=0.91,
    )


def violated():
    """Return a report on a form that is broken along one coordinate."""
    at = tuple(np.linspace(-2, 2, 12))
    rows = [
        Profile(name, share, at, tuple(share * np.array(at)), (0.1,) * 12)
        for name, share in (("the direction", 0.61), ("E", 0.01), ("px", 0.0), ("py", 0.6), ("q(x)", 0.02))
    ]
    return dataclasses.replace(
        none(),
        defect=(0.2, 0.55),
        defect_words="broken by 20 to 55 % of the variance",
        tolerance=0.003,
        twins=[
            TwinRow("Best of the invariants", "kernel ridge", 0.5, 0.02),
            TwinRow("Best of the coordinates", "boosted trees", 0.1),
            TwinRow("Gain of the second over the first", "", 0.4, 0.03),
        ],
        free_p=1e-20,
        violation="Of what is left over, 61 % follows the direction (0.00, 0.01, 1.00, 0.02).",
        profiles=rows,
    )


def approximate():
    """Return a report on a form that is kept but for a little."""
    changes = {"defect": (4e-4, 2e-3), "defect_words": "broken by 0.04 to 0.2 % of the variance"}
    return dataclasses.replace(found(), tolerance=0.003, noise="0.1 % of the variance, given", **changes)


def classes():
    """Return a report on three classes, one of them with a hostile name."""
    rng = np.random.default_rng(1)
    logits = 3 * rng.standard_normal((600, 3))
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    truth = np.eye(3)[[rng.choice(3, p=row) for row in p]]
    return dataclasses.replace(
        found(),
        classes=["signal", "background", HOSTILE],
        true=truth.ravel(),
        predicted=p.ravel(),
        defect=(0.0, 0.02),
        defect_words="violated by less than 2 % of the log loss that is explained",
        tolerance=0.003,
    )


def underdetermined():
    """Return a report with no form and no predictor."""
    return ReportData(
        verdict="UNDERDETERMINED",
        headline="These data cannot tell which quadratic form they respect.",
        reason="All inputs lie in a plane, so several forms fit them equally well.",
        advice="Measure inputs which also vary along pz.",
        confidence=0.64,
        confidence_note="Calibrated on 400 synthetic problems.",
        names=["E", "px", "py", "pz"],
        output="scalar",
        spectral_gap=1.02,
        facts={"Samples": "200", "Seed": "0"},
    )


def broken():
    """Return a report with hostile names and numbers which are not finite."""
    bad = np.array([[np.nan, np.inf], [-np.inf, 1e-300]])
    return ReportData(
        verdict="FOUND",
        headline=HOSTILE,
        reason=HOSTILE,
        law=f"q(x) = {HOSTILE}² - 1.00 x²",
        names=[HOSTILE, "x"],
        group_name=HOSTILE,
        signature=(1, 1, 0),
        matrix=bad,
        matrix_low=bad - 1,
        matrix_high=bad + 1,
        eigenvalues=np.array([np.nan, 1.0]),
        eigenvalues_low=np.array([np.nan, -np.inf]),
        eigenvalues_high=np.array([np.nan, 2.0]),
        generators=np.array([bad, np.zeros((2, 2))]),
        true=np.array([np.nan, 1.0, np.inf]),
        predicted=np.array([1.0, 1.0, 2.0]),
        errors=[Peer(HOSTILE, np.nan, np.inf, 0, HOSTILE), Peer("other", 1e-3, 0.0, 5)],
        free_p=0.0,
        boosts=np.array([0.0, 1.0]),
        equivariance_errors=np.array([np.nan, 0.0]),
        unconstrained_equivariance_errors=np.array([np.inf, 1e-2]),
        restarts=[RestartRow(HOSTILE, HOSTILE, np.nan, np.nan, 0.0), RestartRow("b", HOSTILE, 1.0, 1.0, 0.0)],
        bootstrap_distances=np.array([np.nan]),
        spectral_gap=np.inf,
        facts={HOSTILE: HOSTILE},
        notices=[HOSTILE],
    )


SAMPLES = {
    "found": found,
    "wide": lambda: found(9),
    "none": none,
    "violated": violated,
    "approximate": approximate,
    "classes": classes,
    "underdetermined": underdetermined,
    "broken": broken,
}
