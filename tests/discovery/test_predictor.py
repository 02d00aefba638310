"""Final predictors: committees, and what they are not allowed to spoil."""

import torch
from helpers import normal

from gortho import QuadraticForm
from gortho.discovery.clock import Clock
from gortho.discovery.predictor import (
    Fitted,
    Kind,
    Parts,
    build_network,
    committee,
    fit_network,
    linear_predictor,
    mean_error,
)
from gortho.samples.values import Samples


def parts_of(samples=400):
    """A law that no polynomial is, of one vector."""
    x = normal(samples, 1, 3, seed=1)
    y = torch.sin(2 * x.square().sum((1, 2)))
    every = Samples(x, y)
    return Parts(every.rows(slice(0, 240)), every.rows(slice(240, 320)), every.rows(slice(320, None)))


def one_network(parts, form, steps):
    options = {**parts.train.network_options(), "width": 16, "depth": 1, "seed": 0}
    net = build_network(form, parts.train.rep, options)
    fit_network(net, parts.train, parts.validation, steps, 5e-3, 0, Clock(None))
    return Fitted(form, net, Kind.NETWORK, options)


def averaged(fitted, parts, steps):
    options = {"members": 3, "steps": steps, "seed": 0, "clock": Clock(None), "progress": lambda share: None}
    return committee(fitted, parts, **options)


def test_a_committee_of_good_members_predicts_as_well_as_one():
    parts, form = parts_of(), QuadraticForm.euclidean(3)
    one = one_network(parts, form, 300)
    several = averaged(one, parts, 300)
    assert several.kind is Kind.COMMITTEE
    new = parts_of(1000)
    assert mean_error(several.network, new.held_out) < 2 * mean_error(one.network, new.held_out)


def test_members_that_went_astray_do_not_replace_a_good_predictor():
    parts, form = parts_of(), QuadraticForm.euclidean(3)
    one = one_network(parts, form, 300)
    x = parts.train.x
    astray = Parts(Samples(x, 50 + 0 * parts.train.y), parts.validation, parts.held_out)
    assert averaged(one, astray, 10) is one


def test_a_linear_combination_is_solved_again_for_all_samples():
    parts, form = parts_of(), QuadraticForm.euclidean(3)
    one = linear_predictor(form, parts.train, 0)
    again = averaged(one, parts, 10)
    assert again.kind is Kind.LINEAR
    assert mean_error(again.network, parts.validation) < mean_error(one.network, parts.validation)
