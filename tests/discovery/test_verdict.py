"""The verdict: what follows from which evidence."""

import dataclasses

import numpy as np
import pytest
import torch
from helpers import normal
from scipy.stats import t as student_t

import gortho
from gortho import QuadraticForm, Settings
from gortho.discovery.answer import few_samples
from gortho.discovery.defect import Noise
from gortho.discovery.models import Measured
from gortho.discovery.projection import Projection
from gortho.discovery.sandwich import draws
from gortho.discovery.spreads import UNDERSTATED, given_errors, spread, steady, without_noise_eigenvalues
from gortho.discovery.verdict import (
    TOLERANCE,
    Evidence,
    Verdict,
    confidence,
    judge,
)
from gortho.objectives import ABSOLUTE
from gortho.samples import Samples
from gortho.samples.frame import Frame, unit_form
from gortho.stored import restored, stored

SMALL = Settings(starts=10, generations=2, refits=4, predictor_steps=100)


def measured(unexplained=0.001, free=0.01, p=None):
    """Means as told, errors of a tenth; p small where the free model is better."""
    gain = unexplained - free
    return Measured(
        unexplained,
        unexplained / 10,
        free,
        gain,
        abs(gain) / 10,
        (1e-9 if gain > 0 else 0.9) if p is None else p,
    )


def evidence(m=None, **changes):
    m = m or measured()
    good = Evidence(
        samples=1000,
        held_out=120,
        own_unexplained=m.unexplained,
        direct_unexplained=10 * m.unexplained,
        twin="equivariant",
        free="kernel ridge",
        everyone=m,
        others=m,
        restarts=24,
        near_best=4,
        agreeing=4,
        refit_distances=(0.01,) * 8,
        signature_votes=1.0,
        weakest_eigenvalue=30.0,
    )
    return dataclasses.replace(good, **changes)


@pytest.mark.parametrize(
    ("e", "verdict"),
    [
        (evidence(), Verdict.FOUND),
        (evidence(measured(0.99, 0.99)), Verdict.UNDERDETERMINED),
        (evidence(measured(0.1, 0.01)), Verdict.NONE),
        (evidence(measured(0.22, 0.14)), Verdict.NONE),
        (evidence(measured(0.22, 0.14), agreeing=3), Verdict.UNDERDETERMINED),  # another form may be better
        (evidence(measured(0.22, 0.01), agreeing=1), Verdict.NONE),  # no form is that much better
        (evidence(measured(0.05, 0.04, p=0.01)), Verdict.UNDERDETERMINED),  # perhaps better
        (evidence(measured(0.05, 0.04, p=0.1)), Verdict.FOUND),
        (evidence(measured(0.002, 0.001, p=0.01)), Verdict.FOUND),  # by less than the tolerance
        (evidence(measured(0.1, 0.01, p=0.01)), Verdict.UNDERDETERMINED),  # not beyond doubt
        (evidence(measured(0.1, 0.097)), Verdict.FOUND),  # not notable
        (evidence(measured(TOLERANCE / 2, 1e-9)), Verdict.FOUND),  # approximately
        (evidence(measured(0.3, 0.3)), Verdict.UNDERDETERMINED),
        (evidence(measured(0.3, 0.3), classes=2), Verdict.FOUND),
        (evidence(measured(1.4, 0.7, p=0.1), classes=2), Verdict.UNDERDETERMINED),  # explains nothing
        (evidence(measured(0.3, 0.3), noise=Noise(0.25, 0.01, "given")), Verdict.FOUND),
        (evidence(agreeing=1), Verdict.UNDERDETERMINED),
        (evidence(refit_distances=(0.8,) * 8), Verdict.UNDERDETERMINED),
        (evidence(refit_distances=()), Verdict.UNDERDETERMINED),
        (evidence(weakest_eigenvalue=1.0), Verdict.UNDERDETERMINED),
        (evidence(shell=True), Verdict.UNDERDETERMINED),
        (evidence(complete=False), Verdict.UNDERDETERMINED),
        (evidence(measured(0.1, 0.01), complete=False), Verdict.NONE),
    ],
)
def test_the_verdict_follows_the_evidence(e, verdict):
    decided, reason, advice = judge(e, "O(3)")
    assert decided is verdict and reason.endswith(".") and advice.endswith(".")


def test_the_tolerance_moves_the_line_between_approximate_and_none():
    e = evidence(measured(0.02, 1e-6))
    assert 0.005 < e.defect.low < 0.01 < 0.02 < e.defect.high
    assert judge(e, "O(3)", 0.005)[0] is Verdict.NONE and judge(e, "O(3)", 0.05)[0] is Verdict.FOUND


def test_rounding_is_below_every_tolerance():
    e = evidence(measured(1e-28, 1e-30, p=1e-3))
    assert not e.broken and judge(e, "O(3)", 0.0)[0] is Verdict.FOUND
    assert judge(evidence(measured(1e-6, 1e-7, p=1e-3)), "O(3)", 0.0)[0] is Verdict.UNDERDETERMINED


@pytest.mark.parametrize("changes", [{}, {"classes": 2}])
def test_none_only_where_the_whole_interval_is_above_the_tolerance(changes):
    for share in np.geomspace(1e-4, 0.5, 40):
        e = evidence(measured(share, 1e-6), **changes)
        for tolerance in (0.0, TOLERANCE, 0.05):
            verdict, reason, _ = judge(e, "O(3)", tolerance)
            assert (verdict is Verdict.NONE) == (e.defect.low > tolerance)
            if e.defect.low <= tolerance < e.broken.gain:
                assert f"is {e.defect}, which may be more or less than the tolerance" in reason


def test_what_is_more_likely_wrong_than_right_is_not_claimed():
    shaky = evidence(measured(0.2, 0.21), refit_distances=(0.1,) * 8)
    assert confidence(shaky, Verdict.FOUND) < 0.5
    verdict, reason, _ = judge(shaky, "O(3)")
    assert verdict is Verdict.UNDERDETERMINED and "more were wrong than right" in reason
    surer = dataclasses.replace(shaky, refit_distances=(0.005,) * 8)
    assert confidence(surer, Verdict.FOUND) > 0.5 and judge(surer, "O(3)")[0] is Verdict.FOUND


def test_a_restart_that_stands_alone_is_not_counted_as_agreement():
    for changes in ({}, {"refit_distances": (0.8,) * 8}):
        reason = judge(evidence(near_best=1, agreeing=1, **changes), "O(3)")[1]
        assert "1 of 1" not in reason and "no other restart" in reason
    assert "4 of 4 equally good restarts" in judge(evidence(), "O(3)")[1]


def test_a_few_samples_that_rule_the_error_are_named():
    ruled = evidence(measured(0.19, 0.2), worst=(7, 3), worst_share=0.93)
    assert not evidence(measured(1e-9, 1.0), worst_share=0.9).few_rule  # rounding is not worth a word
    note = few_samples(ruled, np.arange(120.0), [40, 2])
    assert note.startswith(
        "2 of 120 held-out samples (number 40, 2 of the samples used, counted from 0) make up 93 %"
    )
    assert "largest |y| there is 7," in note and "number" not in few_samples(ruled, np.arange(120.0), None)


@pytest.mark.parametrize(
    ("others", "verdict"),
    [
        ((0.01, 0.02), Verdict.FOUND),
        ((0.14, 0.05), Verdict.NONE),  # the free model is better there
        ((0.30, 0.30), Verdict.UNDERDETERMINED),
    ],
)
def test_a_few_samples_do_not_decide_alone(others, verdict):
    rest = measured(*others)
    ruled = evidence(measured(0.9, 0.88, p=0.9), others=rest, worst=(7, 3), worst_share=0.93)
    decided, reason, _ = judge(ruled, "O(3)")
    assert decided is verdict and "ithout the worst 2 of 120 held-out samples" in reason
    assert (confidence(ruled, Verdict.FOUND) > 0.8) == (others[0] < 0.05)
    # Where errors are spread over many samples, all of them count.
    spread = dataclasses.replace(ruled, worst_share=0.2)
    assert judge(spread, "O(3)")[0] is not Verdict.FOUND


def test_few_samples_that_only_free_models_explain_leave_it_open():
    ruled = evidence(measured(0.9, 0.2), others=measured(0.01, 0.02), worst=(7, 3), worst_share=0.93)
    decided, reason, advice = judge(ruled, "O(3)")
    assert decided is Verdict.UNDERDETERMINED and "the former leaves 90 %, the latter 20 %" in reason
    assert "samples that the note names" in advice
    edge = dataclasses.replace(
        ruled, others=measured(1e-5, 2e-5)
    )  # a predictor may fail at the edge of the data
    assert judge(edge, "O(3)")[0] is Verdict.FOUND
    outliers = dataclasses.replace(ruled, everyone=measured(0.9, 0.88, p=0.9))  # nobody explains them
    assert judge(outliers, "O(3)")[0] is Verdict.FOUND


def test_the_defect_counts_the_few_samples_that_the_verdict_leaves_out():
    rest = measured(0.001, 0.002)
    ruled = evidence(measured(0.03, 0.04), others=rest, worst=(7, 3), worst_share=0.93).defect
    assert ruled.low == 0 and ruled.high > 0.03 > ruled.usual > 0.001
    assert str(ruled) == (
        "violated by less than 3.6 % of the variance, 0.12 % without a few samples that make up most of the error"
    )
    assert evidence(rest).defect.usual is None
    most = evidence(measured(0.9, 0.95), others=rest, worst=(7, 3), worst_share=0.93).defect
    assert str(most).startswith("violated by less than 0.12 % without a few samples")


def test_a_few_bundles_leave_doubt_where_many_would_not():
    better = dataclasses.replace(measured(0.02, 0.001, p=0.1), gain_error=0.02)
    assert not evidence(better).doubtful(0.003)
    assert evidence(dataclasses.replace(better, bundles=10)).doubtful(0.003)
    assert not evidence(dataclasses.replace(better, bundles=40)).doubtful(0.003)


def test_one_of_four_samples_is_no_few():
    ruled = evidence(measured(0.4, 0.4), others=measured(0.2, 0.2), worst=(7,), worst_share=0.6)
    assert ruled.few_rule and not dataclasses.replace(ruled, held_out=4).few_rule


def test_known_noise_does_not_make_surer_than_samples_can():
    m = dataclasses.replace(measured(0.6, 0.6), unexplained_error=0.1)
    sure = {
        share: confidence(evidence(m, noise=Noise(share, 0.0, "given errors of y")), Verdict.FOUND)
        for share in (0.3, 0.6, 0.8)
    }
    assert sure[0.8] == sure[0.6] < 0.9 and sure[0.3] <= sure[0.6]
    assert sure[0.6] < confidence(evidence(measured(0.001, 0.001)), Verdict.FOUND)


def test_errors_larger_than_what_is_left_are_told_and_break_nothing():
    m = measured(0.45, 0.3)
    impossible = evidence(m, noise=Noise(5.0, 0.0, "given errors of y"))
    assert impossible.too_noisy and impossible.defect.low < 0.9
    assert not evidence(m, noise=Noise(0.4, 0.0, "given errors of y")).too_noisy and not evidence(m).too_noisy
    x = normal(400, 3)
    y = x[:, 0] ** 2 + 3 * torch.sign(torch.sin(40 * x[:, 1]))
    found = gortho.discover(x, y, y_error=10.0, settings=SMALL, look_for="O")
    assert any("larger than all that the models leave" in notice for notice in found.notices)
    assert found.defect.low < 0.9


def test_evidence_survives_being_written():
    e = evidence(noise=Noise(0.1, 0.01, "given errors of y"), worst=(3,), given=measured(0.2, 0.3))
    assert restored(stored(e), Evidence) == e


def test_a_direction_is_zero_only_where_the_inputs_vary_along_it():
    """In the frame, a direction in which inputs hardly vary has a small eigenvalue, whatever the form is."""
    A = torch.diag(torch.tensor([1.0, 1.0, 1e-3], dtype=torch.float64))
    noise = 5e-4 * torch.randn(8, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    refits = torch.cat([A[None], A + noise + noise.mT])
    wide = Frame(torch.eye(3, dtype=torch.float64))
    assert without_noise_eigenvalues(A, refits, wide)[1] == 1
    turn = torch.linalg.qr(
        torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    )[0]
    thin = torch.diag(torch.tensor([1.0, 1.0, 30.0], dtype=torch.float64))  # x has 1/30 there
    assert without_noise_eigenvalues(A, refits, Frame(thin @ turn))[1] == 0
    # other units of the columns change nothing
    units = torch.diag(torch.tensor([1e-3, 1.0, 1e3], dtype=torch.float64))
    assert without_noise_eigenvalues(A, refits, Frame(units))[1] == 1


# Errors of the form


def isotropic(seed, power, rows=300, noise=0.02):
    """A law of |x|, with noise, in the frame."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 1, 3, dtype=torch.float64, generator=g)
    y = x[:, 0].square().sum(1) ** power
    y = y + noise * y.std() * torch.randn(rows, dtype=torch.float64, generator=g)
    return Samples(x, (y - y.mean()) / y.std())


@pytest.mark.parametrize("power, degree", [(1.0, 1), (0.5, None)])
def test_errors_of_isotropic_forms_hold_what_the_noise_does(power, degree):
    inside = []
    for seed in range(30):
        samples = isotropic(seed, power)
        train, rest = samples.rows(slice(0, 250)), samples.rows(slice(250, None))
        projection = Projection(train, 80 if degree is None else 0, None, 0, degree=degree)
        start = torch.tensor([[1.1, 0.05, 0.0], [0.05, 0.9, 0.05], [0.0, 0.05, 1.0]], dtype=torch.float64)
        A = projection.refine(start, 20).A
        forms = draws(train, rest, A, ABSOLUTE, 0, degree)
        frame = Frame(torch.eye(3, dtype=torch.float64))
        entry, eigen = given_errors(frame, QuadraticForm(A), A.expand(9, 3, 3), True, forms)
        values = torch.linalg.eigvalsh(A).numpy()
        half = student_t.ppf(0.975, 8)
        inside += list(np.abs(values - 1) <= half * eigen)
        inside += list((np.abs(A.numpy() - np.eye(3)) <= half * entry)[np.triu_indices(3)])
    assert 0.91 <= np.mean(inside) < 1  # 95 % of 270


def test_errors_of_forms_hold_a_misfit_that_neighbours_share():
    # What is left over is a wave over the samples, not noise: all neighbours miss alike.
    off, alone, together = [], [], []
    for seed in range(12):
        samples = isotropic(seed, 1.0, rows=600, noise=0.0)
        g = torch.Generator().manual_seed(100 + seed)
        w, phase = torch.randn(3, 1, dtype=torch.float64, generator=g), 6 * torch.rand(1, generator=g)
        wave = (samples.x[:, 0] @ w + phase).sin()[:, 0]
        for noise, errors in ((wave, together), (wave[torch.randperm(600, generator=g)], alone)):
            part = dataclasses.replace(samples, y=samples.y + 0.05 * noise)
            A = Projection(part, 0, None, 0, degree=1).refine(torch.eye(3, dtype=torch.float64), 20).A
            forms = draws(part, part, A, ABSOLUTE, 0, 1)
            errors.append(float((forms - A).square().mean().sqrt()))
            if noise is wave:
                off.append(float((A - torch.eye(3)).square().mean().sqrt()))
    assert np.median(together) > 1.5 * np.median(alone)
    assert np.median(np.array(off) / together) < 2.3 < np.median(np.array(off) / alone)


def test_digits_that_are_left_over_are_not_averaged_away():
    one = torch.eye(3, dtype=torch.float64)
    found = [
        given_errors(Frame(one), QuadraticForm(one), one.expand(9, 3, 3), left=left)[1].max()
        for left in (1e-20, 1e-10, 1e-2)
    ]
    assert found[1] > 100 * found[0] and found[2] < found[1] < 1e-4  # 1e-2 is noise, which refits show


def test_eigenvalues_that_are_not_told_apart_share_their_error():
    g = torch.Generator().manual_seed(0)
    G = 1e-3 * torch.randn(400, 3, 3, dtype=torch.float64, generator=g)
    one = torch.eye(3, dtype=torch.float64)
    frame = Frame(one)
    found = []
    for A in (one, torch.diag(torch.tensor([0.5, 0.5, 1.5], dtype=torch.float64))):
        forms = unit_form(A) + (G + G.mT) / 2
        found.append(given_errors(frame, QuadraticForm(unit_form(A)), forms, True)[1])
    alike, apart = found
    assert alike.max() == alike.min() > 1.3 * apart[2]
    assert apart[0] == apart[1] > apart[2]


def test_a_refit_that_strays_does_not_rule_the_errors():
    A = torch.diag(torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64))
    noise = 0.01 * torch.randn(9, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    forms = unit_form(A + noise + noise.mT)
    frame = Frame(torch.eye(3, dtype=torch.float64))
    usual = given_errors(frame, QuadraticForm(unit_form(A)), forms)[0]
    assert torch.equal(steady(forms, frame), forms)
    forms[4] = unit_form(A + torch.diag(torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)))
    assert len(steady(forms, frame)) == 8
    found = given_errors(frame, QuadraticForm(unit_form(A)), forms)[0]
    assert (found < 1.5 * usual).all() and (found > 0.5 * usual).all()
    for place in (5, 6):  # too many of them
        forms[place] = forms[4]
    assert given_errors(frame, QuadraticForm(unit_form(A)), forms)[0].max() > 5 * usual.max()


def test_labels_are_judged_by_all_samples():
    """A model that is too sure of itself is better without its worst samples, but not a better model."""
    sure = measured(unexplained=0.02, free=0.01)
    worse = measured(unexplained=0.04, free=0.11)
    assert judge(evidence(worse, others=sure, classes=2), "O(3)")[0] is Verdict.FOUND
    assert judge(evidence(sure, others=sure, classes=2), "O(3)")[0] is Verdict.NONE


def test_a_predictor_that_is_no_better_than_the_mean_is_not_advised():
    verdict, _, advice = judge(evidence(), "O(3)")
    assert verdict is Verdict.FOUND and advice.startswith("Predict with it")
    verdict, _, advice = judge(evidence(own_unexplained=7.0), "O(3)")
    assert verdict is Verdict.FOUND and advice.startswith("Do not predict")


def test_a_sign_is_known_as_far_as_the_error_bars_that_are_told():
    refits = torch.stack(
        [torch.diag(torch.tensor([1.0, value])) for value in (0.01, 0.006, 0.014, 0.010)]
    ).double()
    error = UNDERSTATED * refits[:, 1, 1].std()
    assert spread(refits[0], refits, 0).weakest_eigenvalue == pytest.approx(float(0.01 / error))
    strayed = torch.cat([refits, refits, torch.diag(torch.tensor([1.0, -0.9])).double()[None]])
    plain = Frame(torch.eye(2, dtype=torch.float64))
    assert spread(refits[0], strayed, 0).weakest_eigenvalue < 0.1  # one refit of eight …
    assert (
        spread(refits[0], strayed, 0, plain).weakest_eigenvalue > 1.0
    )  # … which the bars do without as well
