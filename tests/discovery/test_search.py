"""The search for the form, piece by piece: family, projection, correlations, starts, search, refits, clock."""

import dataclasses
import math
import re

import numpy as np
import pytest
import torch
from helpers import NAMES, normal

import gortho
from gortho import QuadraticForm, Settings
from gortho.discovery import clock as clock_module
from gortho.discovery import predictor as predictor_module
from gortho.discovery.clock import BUDGET, SHARES, Clock, too_small
from gortho.discovery.correlation import (
    Moments,
    alternate,
    correlate,
    invariant_scalars,
    nearest_kronecker,
    splines,
)
from gortho.discovery.family import Family, Standard, metric_of
from gortho.discovery.find import _by_law, find_form
from gortho.discovery.finish import Joint
from gortho.discovery.large import allowed
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Kind, exact_law, fit_network, linear_predictor
from gortho.discovery.projection import Projection
from gortho.discovery.refits import align_signs, refit
from gortho.discovery.search import Interrupted, Restart, Search, search
from gortho.discovery.spectral import stabiliser_form
from gortho.discovery.starts import (
    Start,
    cone_starts,
    correlation_starts,
    distinct,
    given_starts,
    signatures,
    stabiliser_starts,
    white_starts,
)
from gortho.discovery.verdict import MAX_SPREAD
from gortho.discovery.workers import each
from gortho.groups import haar, random_generator, symmetric_basis
from gortho.nn import EquivariantNet
from gortho.objectives import ABSOLUTE, RELATIVE, SQUARES
from gortho.reps import Metric, Scalar, as_rep
from gortho.samples.door import enter
from gortho.samples.frame import Frame, form_distance, unit_form
from gortho.samples.values import Samples
from gortho.studies import tasks
from gortho.studies.tasks.random_laws import random_law
from gortho.studies.tasks.realistic import realistic

SMALL = Settings(starts=10, generations=2, refits=4, predictor_steps=100)
REPS = (*NAMES, "scalar + vector", "covector + bilinear")


def posed(task, set_like=False, seed=0):
    """A task's samples in their frame, in parts, and the true form there."""
    rep = as_rep(task.output)
    samples = Samples(task.x, task.y, rep, task.point_scalars, set_like=set_like)
    made = Posed.of(samples, seed)
    return made, made.frame.form_in(task.form)


def starts_for(samples, settings=SMALL, seed=0):
    known = correlation_starts(samples) + stabiliser_starts(samples)
    return distinct(known + white_starts(samples.n, settings.starts, seed))


def searched(task, objectives=(ABSOLUTE, RELATIVE), settings=SMALL, seed=0, progress=lambda share, A: None):
    """What a search in the frame finds, the truth there, and the problem."""
    made, truth = posed(task)
    found = search(
        made.parts.train,
        made.parts.validation,
        starts_for(made.parts.train, settings, seed),
        settings=settings,
        objectives=objectives,
        seed=seed,
        clock=Clock(),
        progress=progress,
    )
    return found, truth, made


def random_samples(rep, set_like, scalars, mask, count=9, points=3, n=3):
    """Samples of any kind; only their inputs mean something."""
    rep = as_rep(rep)
    return Samples(
        normal(count, points, n),
        normal(count, *rep.shape(n), seed=1),
        rep,
        normal(count, points, 1, seed=2) if scalars else None,
        normal(count, 2, seed=3) if scalars else None,
        None,
        torch.arange(count * points).reshape(count, points) % 4 != 3 if mask else None,
        set_like,
    )


# The family


@pytest.mark.parametrize("rep", REPS)
@pytest.mark.parametrize(
    ("set_like", "scalars", "mask", "points"),
    [
        (False, False, False, 1),
        (False, True, False, 3),
        (True, False, False, 3),
        (True, True, False, 2),
        (True, True, True, 3),
    ],
    ids=["one vector", "tuple with scalars", "set", "set with scalars", "set with scalars and mask"],
)
@pytest.mark.parametrize("degree", [None, 1, 2], ids=["functions", "linear", "polynomial"])
def test_jacobian_is_the_derivative_of_the_design(rep, set_like, scalars, mask, points, degree):
    samples = random_samples(rep, set_like, scalars, mask, points=points)
    family = Family(samples, 900, seed=1, soft=0.3, degree=degree)
    inputs = Standard.of(samples).inputs(samples)
    A = unit_form(QuadraticForm.random(1, 2, condition=2, seed=4).matrix)
    units = family.units(A, inputs)
    c = normal(family.columns, seed=5)
    J = family.jacobian(A, inputs, units, c)
    assert J.shape == (len(samples), samples.rep.size(3), 3, 3)
    torch.testing.assert_close(J, J.mT)
    step = 1e-5
    for d in symmetric_basis(3):
        there, back = (family.design(A + s * d, inputs, units).dense() @ c for s in (step, -step))
        slope = ((there - back) / (2 * step)).reshape(len(samples), -1)
        mine = torch.einsum("zcab,ab->zc", J, d)
        assert float((mine - slope).norm()) < 1e-5 * float(slope.norm() + J.norm())
    assert float(J.norm()) > 1e-3


@pytest.mark.parametrize("rep", REPS)
def test_products_with_a_design_are_those_of_its_matrix(rep):
    samples = random_samples(rep, False, True, False, points=3)
    family = Family(samples, 120, seed=1)
    inputs = Standard.of(samples).inputs(samples)
    A = unit_form(QuadraticForm.random(1, 2, condition=2, seed=4).matrix)
    design = family.design(A, inputs, family.units(A, inputs)).weighted(
        torch.linspace(0.5, 2, len(samples)).double()
    )
    D = design.dense()
    c, y = normal(D.shape[1], 2, seed=5), normal(len(D), 2, seed=6)
    torch.testing.assert_close(design.squares(), D.mT @ D)
    torch.testing.assert_close(design.times(c), D @ c)
    torch.testing.assert_close(design.transposed_times(y), D.mT @ y)


def joint_start(output, seed=0):
    """The true form of a law of many shapes, and a joint fit to be made, from a form near it."""
    form = QuadraticForm.random(1, 2, condition=2, seed=5)
    made, truth = posed(random_law(form, 3, output, 1_200, 0.0, "network", seed))
    samples = ABSOLUTE.prepared(made.parts.train)
    near = unit_form(truth + 0.02 * symmetric_basis(3)[1])
    return truth, Joint.start(Projection(samples, 60, None, 1), near, 16, 0)


@pytest.mark.parametrize("output", ["scalar", "vector", "conjugation"])
def test_slopes_of_neurons_are_derivatives(output):
    _, joint = joint_start(output)
    family, at, inputs = joint.projection.family, joint.at, joint.projection.inputs
    K = family.neuron_slopes(at.A, inputs, at.units, at.coefficients)
    J = family.jacobian(at.A, inputs, at.units, at.coefficients)
    generator = torch.Generator().manual_seed(1)
    step = 1e-5 * torch.randn(K.shape[2], dtype=torch.float64, generator=generator)
    d = 1e-5 * symmetric_basis(3)[2]

    def predicted(sign):
        moved = family.with_neurons(joint.neurons.moved(sign * step))
        return moved.design(at.A + sign * d, inputs, at.units).times(at.coefficients[:, None])[:, 0]

    slope = ((predicted(1) - predicted(-1)) / 2).reshape(K.shape[:2])
    mine = K @ step + torch.einsum("zcab,ab->zc", J, d)
    assert float((mine - slope).norm()) < 1e-5 * float(slope.norm())
    assert float((K @ step).norm()) > 0.1 * float(slope.norm())


def test_neurons_bring_the_form_nearer_to_the_truth():
    truth, joint = joint_start("vector")
    alone, moved = joint.projection.refine(joint.at.A, 10), joint.refined(15)
    assert moved.at.criterion < 0.3 * alone.criterion
    assert form_distance(moved.at.A, truth) < 0.5 * form_distance(alone.A, truth)


def test_missing_points_are_not_seen():
    """A set of two with a missing third is the same whatever numbers stand in the third's place."""
    samples = random_samples("bilinear", True, True, True)
    mask = torch.tensor([True, True, False]).expand(9, 3)
    other = samples.x.clone()
    other[:, 2] = 1e3
    family = Family(samples, 80, seed=0)
    A = unit_form(QuadraticForm.random(1, 2, seed=4).matrix)
    designs = []
    for x in (samples.x, other):
        masked = dataclasses.replace(samples, x=x, mask=mask)
        inputs = Standard.of(masked).inputs(masked)
        designs.append(family.design(A, inputs, torch.ones(6, dtype=torch.float64)).dense())
    torch.testing.assert_close(*designs)
    assert float(designs[0].norm()) > 0


def test_metric_is_finite_on_the_wall_between_signatures():
    A = torch.diag(torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))
    metric = metric_of(A)
    assert metric.upper.isfinite().all() and abs(float(metric.upper.norm()) - 3**0.5) < 1e-9
    ups = [metric_of(torch.diag(torch.tensor([1.0, 1.0, e]).double())).upper for e in (1e-4, -1e-4)]
    assert form_distance(*ups) < 1e-3 and float((ups[0] * ups[1]).sum()) > 0  # no jump of the sign either


@pytest.mark.parametrize("set_like", [False, True], ids=["tuple", "set"])
@pytest.mark.parametrize(
    "rep", ["scalar", "vector", "bilinear", "covector", "conjugation", "form", "scalar + vector"]
)
def test_the_solution_is_the_network(rep, set_like):
    """design @ coefficients, and the network that is made of them, are one function."""
    samples = random_samples(rep, set_like, scalars=True, mask=False, count=200, points=2)
    form = QuadraticForm.random(1, 2, condition=2, seed=4)
    fitted = linear_predictor(form, samples, seed=3)
    assert fitted.kind is Kind.LINEAR
    projection = Projection(samples, fitted.options["features"], None, seed=3)
    at = projection.solve(form.matrix)
    new = dataclasses.replace(samples, x=normal(200, 2, 3, seed=9))
    for s in (samples, new):
        mine = projection.predict(at, s).reshape(s.y.shape)
        net = fitted.network(*s.inputs).detach()
        assert float((mine - net).abs().max()) < 1e-9 * max(1.0, float(mine.abs().max()))
    assert float(at.residual.norm()) < float(projection.y.norm())


# Projection


def test_a_family_that_is_of_no_form_leaves_it_where_it_was():
    """Multiples of the sum of a set: the slopes are zero, and steps by them were no numbers."""
    x = normal(50, 3, 3)
    samples = Samples(x, x.square().sum(1), rep=as_rep("vector"), set_like=True)
    A = unit_form(torch.diag(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)))
    torch.testing.assert_close(Projection(samples, 0, None, 0, degree=0).refine(A, 3).A, A)


def test_gauss_newton_goes_downhill_to_the_form():
    made, truth = posed(realistic(5, "normal", "spring", (1, 2)))
    projection = Projection(made.parts.train.rows(slice(0, 600)), 120, soft=0.3)
    begin = unit_form(truth + 0.15 * normal(3, 3).triu() @ torch.eye(3).double())
    begin = unit_form((begin + begin.mT) / 2)
    criteria = [projection.refine(begin, steps).criterion for steps in (0, 1, 3, 12)]
    assert criteria == sorted(criteria, reverse=True) and criteria[-1] < 0.01 * criteria[0]
    assert form_distance(projection.refine(begin, 12).A, truth) < 0.02 < form_distance(begin, truth)


def test_weights_of_a_projection_are_repeated_samples():
    made, truth = posed(realistic(6, "normal", "saturation", (3, 0), noise=0.1))
    some = made.parts.train.rows(slice(0, 150))
    twice = Samples.cat([some, some.rows(slice(0, 50))])
    weights = torch.ones(150, dtype=torch.float64)
    weights[:50] = 2.0
    one, other = Projection(some, 12, weights, seed=1), Projection(twice, 12, None, seed=1)
    units = one.family.units(truth, one.inputs)
    fixed = []
    for projection in (one, other):
        D = projection.family.design(truth, projection.inputs, units).weighted(projection.root).dense()
        size, y = D.norm(dim=0), (projection.y * projection.root[:, None]).flatten()
        c = torch.linalg.lstsq(D / size, y[:, None], driver="gelsd").solution[:, 0] / size
        fixed.append(projection.family.design(truth, one.inputs, units).dense() @ c)
    torch.testing.assert_close(*fixed, rtol=1e-6, atol=1e-6)


def test_polynomial_of_unknowns_more_than_rows_is_not_an_exact_law():
    """Twenty samples of noise are no law, however many columns there are."""
    samples = Samples(normal(60, 2, 3), normal(60, seed=1))
    made = Posed.of(samples, 0)
    assert exact_law(QuadraticForm.euclidean(3), made.parts, 0) is None


@pytest.mark.parametrize("name", ["synthetic", "inertia", "particle"])
def test_polynomial_laws_are_found_to_rounding(name):
    task = {
        "synthetic": lambda: tasks.synthetic(600, seed=1),
        "inertia": lambda: tasks.inertia(600, masses=3, seed=1),
        "particle": lambda: tasks.particle(900, seed=1),
    }[name]().hidden(3)
    made, truth = posed(task, set_like=name == "inertia")
    noise = normal(*truth.shape, seed=2)
    begin = QuadraticForm(unit_form(truth + 0.02 * (noise + noise.mT)))
    law = exact_law(begin, made.parts, 0)
    assert law is not None and law.kind is Kind.POLYNOMIAL
    held = made.parts.validation
    error = float((law.network(*held.inputs).detach() - held.y).square().mean())
    assert error < 1e-15 * held.variance
    found = made.out(law.form.matrix)
    assert begin.algebra_distance(QuadraticForm(truth)) > 1e-3 and found.algebra_distance(task.form) < 1e-7


# Correlations

FUNCTIONS = {
    "sqrt": lambda q: q.sqrt(),
    "log": lambda q: (q + 1e-3).log(),
    "exp": lambda q: (-q / 3).exp(),
    "cube": lambda q: q**3,
}


def in_a_frame(x, form):
    frame = Frame.of(x)
    return x @ frame.W.mT, frame.form_in(form)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("inputs", ["normal", "other origin", "heavy tails"])
def test_correlation_finds_the_form_of_a_monotone_law(function, inputs):
    form = QuadraticForm.random(3, 0, condition=4, seed=3)
    x = normal(3_000, 1, 3, seed=1)
    centre = torch.zeros(3, dtype=torch.float64)
    if inputs == "other origin":
        centre = torch.tensor([0.5, -0.3, 0.4], dtype=torch.float64)
    if inputs == "heavy tails":
        chi = normal(3_000, 3, seed=2).square().mean(1)
        x = x / chi.sqrt()[:, None, None]
    z, truth = in_a_frame(x, form)
    q = form(x[:, 0] - centre)
    found = correlate(z, FUNCTIONS[function](q / q.median()))[0]
    assert form_distance(found.A, truth) < 0.05 and found.strength > 0.9


def test_correlation_finds_indefinite_forms_and_is_silent_on_noise():
    form = QuadraticForm.random(1, 3, condition=3, seed=3)
    x = normal(3_000, 1, 4, seed=1)
    z, truth = in_a_frame(x, form)
    found = correlate(z, torch.atan(form(x[:, 0])))[0]
    assert form_distance(found.A, truth) < 0.05
    assert correlate(z, normal(3_000, seed=5))[0].strength < 0.5 < found.strength
    assert correlate(z[:30], normal(30)) == []  # more monomials than samples can tell


def test_moments_add_up():
    z, functions = normal(200, 2, 3), splines(normal(200, seed=1), 6)
    whole = Moments.of(z, functions)
    parts = Moments.of(z[:70], functions[:70]) + Moments.of(z[70:], functions[70:])
    torch.testing.assert_close(whole.total, parts.total)
    for one, other in zip(whole.correlations(), parts.correlations()):
        assert form_distance(one.A, other.A) < 1e-6 and one.strength == pytest.approx(other.strength)


def test_splines_see_ranks_alone():
    y = normal(300)
    torch.testing.assert_close(splines(y), splines(y.exp() * 1e30))
    torch.testing.assert_close(splines(y).sum(1), torch.ones(300, dtype=torch.float64))
    assert not torch.allclose(splines(y), splines(-y))


def test_alternation_finds_the_form_that_vectors_share():
    form = QuadraticForm.random(1, 2, condition=3, seed=6)
    x = normal(1_500, 3, 3, seed=2)
    z, truth = in_a_frame(x, form)
    gram = form.gram(x)
    y = torch.atan(gram[:, 0, 1] - 0.7 * gram[:, 2, 2] + 0.4 * gram[:, 0, 0])
    found = max(
        (alternate(z, splines(y), start.A) for start in white_starts(3, 6, 0)), key=lambda c: c.strength
    )
    assert form_distance(found.A, truth) < 0.05 and found.strength > 0.95


def test_nearest_kronecker_product():
    C, A = normal(2, 2), normal(3, 3, seed=1)
    C, A = C + C.mT, A + A.mT
    found, share = nearest_kronecker(torch.kron(C, A), 2)
    assert form_distance(found, A) < 1e-9 and share == pytest.approx(1.0)
    assert nearest_kronecker(torch.kron(C, A) + normal(6, 6, seed=3), 2)[1] < 0.99


@pytest.mark.parametrize("output", ["vector", "covector", "conjugation", "form"])
def test_scalars_made_of_inputs_and_outputs_are_invariant(output):
    """They are the same in every frame, and so under every group."""
    rep, T = as_rep(output), normal(3, 3, seed=7)
    x, y = normal(50, 2, 3), normal(50, *rep.shape(3), seed=1)
    if output == "vector":  # an equivariant vector is a combination of the inputs
        y = torch.einsum("zp,zpa->za", normal(50, 2, seed=1), x)
    samples = Samples(x, y, rep)
    one, other = (invariant_scalars(s) for s in (samples, samples.in_frame(Frame(T))))
    assert one.shape[1] > 0
    torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


# The stabiliser


@pytest.mark.parametrize(
    ("output", "n", "points"),
    [(o, n, k) for o in ("covector", "conjugation", "bilinear", "form") for n, k in ((3, 1), (4, 1), (4, 2))],
)
def test_stabiliser_is_exact_whatever_the_coefficients_are(output, n, points):
    """Coefficients are pure chance here, no functions of anything: only the products of vectors and metric speak."""
    form = QuadraticForm.random(1, n - 1, condition=4, seed=2)
    rep, x = as_rep(output), normal(300, points, n, seed=1)
    (part,) = rep.parts
    c = [normal(300, *(points,) * len(t.legs), seed=10 + i) for i, t in enumerate(part.terms())]
    y = part.assemble(c, x, x @ form.matrix, Metric.of(form))
    A, gap = stabiliser_form(x, y, rep)
    assert form_distance(A, form.matrix) < 1e-8 and gap > 1e4
    broken, small = stabiliser_form(x, y + 0.5 * normal(*y.shape, seed=9), rep)
    assert small < 1e3 and form_distance(broken, form.matrix) > 1e-8


def test_stabiliser_says_nothing_where_there_is_nothing_to_solve():
    x = normal(30, 2, 3)
    assert stabiliser_form(x, normal(30, 3, 3), as_rep("bilinear")) is None  # n - k < 2
    assert stabiliser_form(x[:, :1], normal(30, 3), as_rep("vector")) is None
    assert stabiliser_form(x[:, :1], normal(30), Scalar()) is None
    assert stabiliser_starts(Samples(x, normal(30))) == []


# Starts


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_random_starts_cover_every_signature_and_never_the_answer(n):
    starts = white_starts(n, 8 * n, seed=0)
    seen = set()
    for start in starts:
        signature = QuadraticForm(start.A).signature
        seen.add(tuple(sorted(signature[:2])))
        assert signature.zero == 0 and float(start.A.norm()) == pytest.approx(n**0.5)
    assert seen == {tuple(sorted(s)) for s in signatures(n)} and len(seen) == n // 2 + 1
    for seed in range(20):  # forms as they stand in frames of problems
        p = seed % (n // 2 + 1)
        truth = QuadraticForm.random(n - p, p, condition=4, seed=seed).matrix
        assert min(form_distance(start.A, truth) for start in starts) > 0.02


def test_plain_forms_in_given_coordinates_are_starts_only_if_wanted():
    task = realistic(3, "normal", "wave", (1, 3))
    plain = dataclasses.replace(task.in_frame(torch.linalg.inv(task.frame)), frame=None)
    form = QuadraticForm.minkowski()
    x, y = plain.x, torch.sin(form(plain.x[:, 0]))
    made = Posed.of(Samples(x, y), 0)
    truth = made.frame.form_in(form)
    assert min(form_distance(start.A, truth) for start in given_starts(made.frame)) < 1e-9
    labels = {}
    for wanted in (True, False):
        seen = []
        found = find_form(
            made,
            (ABSOLUTE,),
            settings=dataclasses.replace(SMALL, given_axes=wanted, refits=2),
            seed=0,
            clock=Clock(),
            progress=lambda stage, share, A, seen=seen: seen.append(A),
        )
        labels[wanted] = {r.start for r in found.search.restarts}
        assert form_distance(found.A, truth) < 0.02
    assert "given axes" not in labels[False]


def test_starts_without_repetitions():
    A, B = QuadraticForm.euclidean(3).matrix, QuadraticForm.random(1, 2, seed=1).matrix
    kept = distinct([Start("a", A), Start("b", B), Start("c", -2 * A), Start("d", B)])
    assert [start.label for start in kept] == ["a", "b"]


# The search


@pytest.mark.parametrize(
    ("law", "group", "points"),
    [
        ("root", (3, 0), 1),
        ("root", (1, 2), 1),
        ("logarithm", (1, 2), 1),
        ("power", (2, 1), 1),
        ("mass", (1, 2), 2),
        ("inverse square", (3, 0), 1),
        ("spring", (1, 3), 1),
        ("linear map", (1, 2), 1),
    ],
)
def test_search_finds_sharp_laws_in_a_hidden_frame(law, group, points):
    found, truth, _ = searched(realistic(11, "normal", law, group, points, samples=1_500), (ABSOLUTE,))
    assert form_distance(found.A, truth) < 0.02
    assert QuadraticForm(found.A).group_name == QuadraticForm(truth).group_name
    assert found.restarts[0].criterion == min(r.criterion for r in found.restarts) < 0.05
    assert 1 <= found.agreeing <= len(found.near_best) <= len(found.restarts) <= SMALL.finalists


def test_relative_errors_are_chosen_where_targets_span_decades():
    task = realistic(4, "decades", "spring", (3, 0), samples=1_500)
    size = task.y.norm(dim=-1, keepdim=True)
    noisy = dataclasses.replace(task, y=task.y + 0.05 * size * normal(*task.y.shape, seed=1))
    found, truth, _ = searched(noisy)
    assert found.objective == RELATIVE and found.wins > 0.5
    assert form_distance(found.A, truth) < 0.05


def test_absolute_errors_are_chosen_for_a_noisy_polynomial():
    task = realistic(4, "normal", "polynomial", (1, 2), samples=1_200, noise=0.1)
    found, truth, _ = searched(task)
    assert found.objective == ABSOLUTE and form_distance(found.A, truth) < 0.05


def test_asked_errors_are_the_errors():
    task = realistic(4, "normal", "polynomial", (1, 2), samples=500)
    tiny = Settings(starts=3, generations=0, finalists=1)
    for objective in SQUARES.values():
        found, _, _ = searched(task, (objective,), tiny)
        assert found.objective == objective and found.wins is None


def test_a_few_wild_targets_do_not_rule():
    task = realistic(8, "normal", "saturation", (1, 2), samples=1_500, noise=0.02)
    y = task.y.clone()
    y[::100] += 100 * y.std() * normal(15, seed=3)
    found, truth, _ = searched(dataclasses.replace(task, y=y), (ABSOLUTE,))
    assert form_distance(found.A, truth) < 0.03


@pytest.mark.parametrize("power", [0.5, 1.5])
def test_a_hundred_exact_samples_of_a_four_vector_are_enough(power):
    p = normal(104, 3, seed=1)
    m = 0.3 + normal(104, seed=2).abs()
    x = torch.cat([(m.square() + p.square().sum(1)).sqrt()[:, None], p], 1)
    T = normal(4, 4, seed=6) + 2 * torch.eye(4).double()
    inverse = torch.linalg.inv(T)
    form = QuadraticForm(inverse.mT @ torch.diag(torch.tensor([1.0, -1.0, -1.0, -1.0]).double()) @ inverse)
    found = gortho.discover(x @ T.mT, m ** (2 * power), settings=SMALL)
    assert found.candidate.group_name == "O(1,3)"
    assert Frame.of(x @ T.mT).distance(found.candidate, form) < 1e-3


def test_the_answer_does_not_depend_on_how_many_work():
    task = realistic(12, "normal", "root", (1, 2), samples=500, noise=0.02)
    tiny = Settings(starts=4, generations=1, finalists=2, refits=3)
    ends = []
    for workers in (1, 2):
        settings = dataclasses.replace(tiny, workers=workers)
        found, _, made = searched(task, (ABSOLUTE,), settings)
        matrices = refit(
            made.parts.train,
            found,
            settings=settings,
            seed=1,
            clock=Clock(),
            progress=lambda share, A: None,
        )
        ends.append((found, matrices))
    (one, forms), (other, others) = ends
    torch.testing.assert_close(one.A, other.A, rtol=0, atol=1e-12)
    assert [r.start for r in one.restarts] == [r.start for r in other.restarts]
    torch.testing.assert_close(forms, others, rtol=0, atol=1e-12)
    jobs = [(2, 3), (3, 2), (5, 1)]
    assert each(pow, jobs, 1) == each(pow, jobs, 2) == [8, 9, 5] and each(pow, [], 2) == []


def test_an_interrupted_search_carries_its_best():
    calls = []

    def stop(share, A):
        calls.append(share)
        if share > 0:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        searched(
            realistic(4, "normal", "root", (1, 2), samples=400), (ABSOLUTE, RELATIVE), SMALL, progress=stop
        )
    assert caught.value.found.restarts and caught.value.found.A.isfinite().all()
    assert len(calls) == 2


def test_near_best_and_agreeing():
    A, B = (QuadraticForm.random(1, 2, seed=s).matrix for s in (1, 2))
    ends = tuple(Restart("white", M, c) for M, c in ((A, 0.1), (B, 0.12), (-A, 0.14), (B, 0.9)))
    found = Search(A, ABSOLUTE, ends)
    assert len(found.near_best) == 3 and found.agreeing == 2


# Refits


@pytest.fixture(scope="module")
def refitted():
    """The form of noisy samples, refits, and the truth."""
    task = realistic(9, "normal", "saturation", (1, 2), samples=1_000, noise=0.1)
    found, truth, made = searched(task, (ABSOLUTE,))
    settings = dataclasses.replace(SMALL, refits=8)
    shares = []
    matrices = refit(
        Samples.cat([made.parts.train, made.parts.validation]),
        found,
        settings=settings,
        seed=2,
        clock=Clock(),
        progress=lambda share, A: shares.append(share),
    )
    return found, truth, matrices, shares


def test_refits_differ_and_cover_the_truth(refitted):
    found, truth, matrices, shares = refitted
    assert matrices.shape == (9, 3, 3) and torch.equal(matrices[0], found.A)
    assert shares == [(r + 1) / 8 for r in range(8)]
    torch.testing.assert_close(matrices.flatten(1).norm(dim=1), torch.full((9,), 3**0.5).double())
    spread = matrices.std(0)
    assert float(spread.min()) > 1e-5
    (near,) = align_signs(truth[None], found.A)
    # Nine entries of a three-sigma answer; far fewer errors than this would be overconfidence.
    assert float(((matrices.mean(0) - near).abs() / spread).max()) < 6
    assert float((matrices.mean(0) - near).norm()) < 0.2


def test_refits_are_all_of_one_sign(refitted):
    found, _, matrices, _ = refitted
    assert ((matrices * found.A).sum((1, 2)) > 0).all()
    A = torch.diag(torch.tensor([1.0, -1.0, 0.3], dtype=torch.float64))
    aligned = align_signs(torch.stack([A, -A, 1.1 * A, -0.9 * A]), A)
    torch.testing.assert_close(aligned, torch.stack([A, A, 1.1 * A, 0.9 * A]))
    torch.testing.assert_close(align_signs(aligned, -A), -aligned)


def test_refits_spread_more_where_there_are_fewer_samples():
    task = realistic(9, "normal", "saturation", (1, 2), samples=1_600, noise=0.1)
    made, truth = posed(task)
    sizes = []
    for count in (150, 1_100):
        matrices = refit(
            made.parts.train.rows(slice(0, count)),
            Search(truth, ABSOLUTE, ()),
            settings=dataclasses.replace(SMALL, refits=8),
            seed=0,
            clock=Clock(),
            progress=lambda share, A: None,
        )
        sizes.append(float(matrices[1:].std(0).norm()))
    assert sizes[0] > 1.3 * sizes[1]


@pytest.mark.parametrize(("noise", "degree"), [(0.0, 0), (0.2, 0), (0.2, None)])
def test_refits_spread_far_where_targets_do_not_see_the_form(noise, degree):
    """y = 2x respects every form: refits that stay where they began would pass for certainty."""
    x = normal(400, 1, 3)
    made = Posed.of(Samples(x, 2 * x[:, 0] + noise * normal(400, 3, seed=1), as_rep("vector")), 0)
    A = unit_form(QuadraticForm.random(1, 2, seed=3).matrix)
    matrices = refit(
        made.parts.train,
        Search(A, ABSOLUTE, ()),
        settings=dataclasses.replace(SMALL, refits=6),
        seed=0,
        clock=Clock(),
        progress=lambda share, A: None,
        degree=degree,
    )
    distances = torch.tensor([form_distance(M, A) for M in matrices[1:]])
    assert float(distances.median()) > MAX_SPREAD


def test_a_spent_budget_leaves_four_refits(refitted):
    found = refitted[0]
    made, _ = posed(realistic(9, "normal", "saturation", (1, 2), samples=300, noise=0.1))
    clock = Clock(1e-9)
    with clock.stage("refits"):
        matrices = refit(
            made.parts.train,
            found,
            settings=dataclasses.replace(SMALL, refits=8),
            seed=0,
            clock=clock,
            progress=lambda share, A: None,
        )
    assert len(matrices) == 1 + 4


# The clock


class FakeTime:
    """Seconds that pass only when told to."""

    def __init__(self):
        self.now = 100.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def seconds(monkeypatch):
    fake = FakeTime()
    monkeypatch.setattr(clock_module, "time", fake)
    return fake


def test_clock_counts_seconds_by_stage(seconds):
    clock = Clock()
    with clock.stage("search"):
        seconds.now += 2
        assert not clock.over()  # without a budget time is never over
    seconds.now += 1
    with pytest.raises(ZeroDivisionError), clock.stage("refits"):
        seconds.now += 3
        raise ZeroDivisionError
    with clock.stage("search"):
        seconds.now += 4
    assert clock.seconds == {"search": 6, "refits": 3} and clock.total == 10 and not clock.has_budget


def test_every_stage_has_its_share_of_the_budget(seconds):
    clock = Clock(10.0)
    assert clock.has_budget
    seconds.now += 3.9
    with clock.stage("search"):
        assert not clock.over()
        seconds.now += 0.2
        assert clock.over() and SHARES["search"] == 0.4
    assert not clock.over()  # outside of stages nothing is cut
    with clock.stage("refits"):
        assert not clock.over()
        seconds.now += 2
        assert clock.over()
    with clock.stage("something else"):
        assert not clock.over()
        seconds.now += 4
        assert clock.over()


def test_what_was_cut_short_tells_how_long_it_would_take(seconds):
    clock = Clock(10.0)
    seconds.now += 12
    assert clock.enough(5000) == "With these 5,000 samples, about 20 s would do."
    clock.rows_left_out = True
    assert clock.enough(5000) == "With these 5,000 samples (max_samples=5000), about 20 s would do."
    clock.seconds_missing += 28
    assert "about 60 s" in clock.enough(5000)


def test_a_network_that_is_cut_short_says_what_is_missing():
    made, _ = posed(realistic(9, "normal", "saturation", (1, 2), samples=300, noise=0.1))
    train, validation = made.parts.train, made.parts.validation
    for budget, missed in ((None, False), (1e-9, True)):
        clock = Clock(budget)
        net = EquivariantNet(QuadraticForm.euclidean(train.n), output=train.rep)
        with clock.stage("predictor"):
            fit_network(net, train, validation, 50, 5e-3, 0, clock)
        assert (clock.seconds_missing > 3 * clock.total) == missed  # one of many steps was done


def test_the_first_epoch_tells_nothing_of_how_long_the_rest_takes(seconds, monkeypatch):
    made, _ = posed(realistic(9, "normal", "saturation", (1, 2), samples=300, noise=0.1))
    monkeypatch.setattr(predictor_module, "time", seconds)

    def fit(*_, epochs, polish, stop, **__):
        seconds.now += 10  # what is compiled, and caches
        assert not stop()
        seconds.now += 0.1
        assert stop()
        steps.append(epochs + polish)

    steps, clock = [], Clock(1.0)
    monkeypatch.setattr(predictor_module, "fit", fit)
    with clock.stage("predictor"):
        fit_network(None, made.parts.train, made.parts.validation, 50, 5e-3, 0, clock)
    assert clock.seconds_missing == pytest.approx(0.1 * (steps[0] - 2))


@pytest.mark.slow
def test_the_advised_time_is_a_few_times_that_of_a_whole_run():
    x = normal(300, 2, 2, seed=3)
    y = (x[:, :1, :] * x[:, 1:, :] * torch.tensor([1.0, 2.0]).double()).sum(2) * x[:, 0] + x[:, 1]
    settings = Settings(starts=12, generations=3, refits=4, predictor_steps=150)
    whole = gortho.discover(x, y, "2*scalar", settings=settings)
    cut = gortho.discover(x, y, "2*scalar", settings=settings, time_budget=1.0)
    advised = float(re.search(r"of at least (\d+) s", cut.advice)[1])
    assert advised <= max(40, 8 * whole.provenance.seconds)


def test_rows_are_thinned_again_where_reading_took_most_of_the_budget():
    assert allowed(18.0, None, 0, read=10_000).max_samples == 10_000
    late = allowed(5.0, None, 0, read=10_000)
    assert late.max_samples == 2_500 and late.why == BUDGET


def test_a_budget_that_is_printed_as_the_minimum_is_not_below_it():
    assert not too_small(2.96) and too_small(2.9)


@pytest.mark.parametrize("budget", [0, -1, math.nan])
def test_a_budget_is_above_zero(budget):
    with pytest.raises(ValueError, match=r"time_budget = .*above zero"):
        Clock(budget)


def test_haar_turns_of_starts_come_from_the_seed():
    one, again, other = (white_starts(3, 5, seed) for seed in (1, 1, 2))
    assert all(torch.equal(a.A, b.A) for a, b in zip(one, again))
    assert not torch.allclose(one[1].A, other[1].A)
    assert float((haar(3, (), random_generator(0)).det().abs() - 1).abs()) < 1e-9


@pytest.mark.parametrize(
    ("name", "least"),
    [("starts", 0), ("generations", 0), ("finalists", 1), ("refits", 1), ("members", 1), ("workers", 1)],
)
def test_sizes_that_cannot_work_are_refused(name, least):
    for bad in (least - 1, 1.5, True):
        with pytest.raises(
            ValueError, match=rf"Settings: {name} = {bad}: give a whole number of at least {least}"
        ):
            Settings(**{name: bad})
    assert getattr(Settings(**{name: least}), name) == least


@pytest.mark.parametrize(
    ("law", "group", "points"), [("inverse square", (2, 2), 1), ("pair force", (1, 3), 2)]
)
def test_cones_are_where_targets_are_extreme(law, group, points):
    made, truth = posed(realistic(11, "normal", law, group, points=points, noise=0.01))
    train = made.parts.train
    assert min(form_distance(s.A, truth) for s in cone_starts(train)) < 0.1
    assert min(form_distance(s.A, truth) for s in correlation_starts(train)) > 0.2
    assert cone_starts(train.rows(slice(0, 50))) == []


# Ends that only the law itself tells apart


def equally_good(task, sizes):
    posed = Posed.of(enter(task.x, task.y, task.output)[0], 0)
    truth = unit_form(posed.frame.form_in(task.form))
    noise = torch.randn(len(sizes), 4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    forms = [unit_form(truth + s * (E + E.mT)) for s, E in zip(sizes, noise)]
    ends = tuple(Restart("", A, 0.3) for A in forms)
    return posed.parts, truth, Search(forms[0], ABSOLUTE, ends)


def test_a_law_tells_ends_apart_that_are_equally_good_otherwise():
    parts, truth, found = equally_good(tasks.particle(300, seed=3), [1.0, 0.2, 0.15])
    assert found.agreeing == 1 and len(found.near_best) == 3
    assert exact_law(QuadraticForm(found.A), parts, 0) is None
    better, law = _by_law(found, None, parts, 0)
    assert form_distance(better.A, truth) < 1e-9 and form_distance(law.form.matrix, truth) < 1e-9
    assert len(better.near_best) == better.agreeing == 2  # the far one is no law


def test_no_law_leaves_the_ends_as_they_are():
    task = tasks.particle(300, seed=3)
    parts, _, found = equally_good(dataclasses.replace(task, y=task.y.abs().sqrt()), [0.5, 0.5])
    left, law = _by_law(found, None, parts, 0)
    assert left is found and law is None


@pytest.mark.parametrize("points", [1, 2])
def test_vectors_that_are_zero_or_equal_do_not_end_the_search(points):
    """A direction of zero has no number: one row at the origin, or of two equal vectors, is a row like others."""
    x = torch.randn(300, points, 3, dtype=torch.float64, generator=random_generator(0))
    x[7] = 0.0 if points == 1 else x[7, :1]
    starts = cone_starts(Samples(x, (x[:, 0] - x[:, 1:].sum(1)).norm(dim=1, keepdim=True)))
    assert starts and all(bool(start.A.isfinite().all()) for start in starts)


def test_null_vectors_whose_sizes_span_decades_do_not_end_the_search():
    """A form that vanishes on all samples leaves their moments singular, to the rounding of the largest of them."""
    rng = np.random.default_rng(1)
    p = rng.normal(size=(10_000, 2, 3)) * np.exp(2 * rng.normal(size=(10_000, 2, 1)))
    x = torch.tensor(np.concatenate([np.linalg.norm(p, axis=2, keepdims=True), p], 2))
    samples = Samples(x, (x[:, 0, 0] * x[:, 1, 0] - (x[:, 0, 1:] * x[:, 1, 1:]).sum(1)).log())
    assert cone_starts(samples.in_frame(Frame.of(x)))
