"""Symmetries other than O(A): what is tried, what is found, what is left NONE (M15, M16, M17)."""

import json
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import gortho
from gortho import Discovery, Settings, Symmetry, Verdict, cli
from gortho.discovery.clock import SHARES, SHARES_BEFORE_PARITY, Clock
from gortho.discovery.hints import looks_like_a_volume
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Kind
from gortho.discovery.wider import several
from gortho.discovery.wider.answer import symmetry_out
from gortho.discovery.wider.claim import Claim
from gortho.discovery.wider.claims import Asked, aligned, angles, claims_for, even_rep, representative
from gortho.discovery.wider.family import WideProjection
from gortho.discovery.wider.fit import _linear, invariants_of
from gortho.discovery.wider.readings import TRANSLATIONS, translations
from gortho.discovery.wider.search import first_look
from gortho.discovery.wider.several import posed_by_space
from gortho.discovery.wider.skew import correlated, hermitian, hermitian_starts
from gortho.discovery.wider.starts import _correlated_origins, starts_for
from gortho.discovery.wider.widen import NO_TIME, Court, _about_zero, _rounds, cut_short, wanted
from gortho.reps import as_rep
from gortho.samples.called import Labels
from gortho.samples.door import enter
from gortho.samples.frame import form_distance
from gortho.samples.spaces import side_by_side
from gortho.samples.values import Samples
from gortho.studies.tasks.broken import BrokenTask, broken, modified_inertia
from gortho.training import predict

SMALL = Settings(starts=4, generations=1, finalists=1, refits=4, predictor_steps=60)
CLAIMS = [
    (Claim("a direction", directions=1), 1, "scalar", False),
    (Claim("two directions", directions=2), 2, "vector", False),
    (Claim("an origin", origin=True), 2, "scalar", False),
    (Claim("several spaces", spaces=(0, 1, 0)), 3, "scalar", False),
    (Claim("an origin", origin=True), 2, "covector", False),
    (Claim("handedness", special=True), 2, "vector", False),
    (Claim("handedness", special=True), 3, "scalar + vector", False),
    (Claim("an axial output", odd=True), 2, "vector", False),
    (Claim("axial inputs", axial=(1,)), 2, "vector", False),
    (Claim("several spaces", spaces=(0, 1, 0), output_space=1), 3, "vector", False),
    (Claim("spaces that move together", spaces=(0, 1, 1), linked=True), 3, "scalar", False),
    (Claim("spaces that move together", spaces=(0, 1, 2), linked=True), 3, "vector", False),
    (Claim("a direction of a set", directions=1), 4, "bilinear", True),
    (Claim("an origin of a set", origin=True), 3, "scalar + vector", True),
    (Claim("a skew form", skew=True), 3, "scalar", False),
    (Claim("a skew form", skew=True), 2, "vector", False),
    (Claim("a hermitian form", unitary=True), 2, "scalar", False),
    (Claim("a hermitian form", unitary=True), 1, "vector", False),
]


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def dimension(claim):
    return 4 if claim.skew or claim.unitary else 3


def some(claim, points, output, set_like, scalars=False):
    rep, n = as_rep(output), dimension(claim)
    samples = Samples(normal(150, points, n), normal(150, *rep.shape(n), seed=1), rep, set_like=set_like)
    if scalars:
        samples = replace(
            samples, point_scalars=normal(150, points, 1, seed=6), sample_scalars=normal(150, 2, seed=7)
        )
    A = torch.eye(n, dtype=torch.float64) + 0.2 * normal(claim.forms, n, n, seed=2)
    forms = A + A.mT
    if claim.linked:
        forms = torch.cat([forms, normal(claim.maps, n, n, seed=9)])
    if claim.skew or claim.unitary:
        J = normal(1, n, n, seed=8)
        forms = torch.cat([forms, J - J.mT])
    theta = claim.join(forms, normal(claim.directions, n, seed=3), 0.3 * normal(int(claim.origin), n, seed=4))
    return claim.of(samples), claim.gauged(theta, n) if claim.unitary else theta


# The families


@pytest.mark.parametrize("degree", [None, 1])
@pytest.mark.parametrize(("claim", "points", "output", "set_like"), CLAIMS)
def test_families_are_the_linear_networks(claim, points, output, set_like, degree):
    """The solution of a projection, as a network of the same symmetry, gives the same predictions."""
    samples, theta = some(claim, points, output, set_like, scalars=True)
    columns = 1 if degree is not None else 60
    view = WideProjection(samples, claim, columns, seed=2, degree=degree)
    more = {"features": columns, "seed": 2} | ({} if degree is None else {"degree": degree})
    fitted = _linear(view, theta, samples, more, Kind.LINEAR)
    at = view.solve(claim.of_symmetry(claim.symmetry(theta, dimension(claim))))
    here = view.predict(at, samples).flatten(1)
    there = predict(fitted.network, *samples.inputs).reshape(len(samples), -1)
    assert float((here - there).abs().max()) < 1e-6 * float(here.abs().max())


@pytest.mark.parametrize(("claim", "points", "output", "set_like"), CLAIMS)
def test_slopes(claim, points, output, set_like):
    """The unprojected slopes are those of the predictions."""
    samples, theta = some(claim, points, output, set_like)
    view = WideProjection(samples, claim, 40, soft=0.3)
    at = view.solve(view.gauged(theta))
    J, tangents = view.jacobian(at)
    step = 1e-4 * normal(len(tangents), seed=5)

    def values(theta):
        theta = view.gauged(theta) if claim.unitary else theta
        return view.family.design(theta, view.inputs, at.units).times(at.coefficients[:, None])

    moved = at.rest(values(at.A + step @ tangents) - values(at.A - step @ tangents))[:, 0] / 2
    assert float((moved - J @ step).norm()) < 1e-3 * float(moved.norm())


def test_steps_find_a_direction():
    x = normal(600, 1, 3)
    s = torch.tensor([0.6, 0.0, 0.8], dtype=torch.float64)
    samples = Samples(x, (1 + x[:, 0].square().sum(1)).sqrt() + torch.sin(x[:, 0] @ s))
    claim = Claim("a direction", directions=1)
    view = WideProjection(samples, claim, 80, soft=0.3)
    start = claim.join(
        torch.diag(torch.tensor([1.2, 0.8, 1.0]).double()), torch.tensor([[0.9, 0.3, 0.5]]).double()
    )
    at = view.refine(start, 20)
    assert at.criterion < 1e-4 and float(angles(claim.split(at.A, 3)[1], s[None])) < 0.5


# What can be known


def test_the_pencil_of_a_direction():
    """A + t (As)(As)ᵀ has the same representative for every t, of least condition, and aligns with all others."""
    claim, s = Claim("a direction", directions=1), torch.tensor([[0.6, 0.0, 0.8]], dtype=torch.float64)
    A = torch.eye(3, dtype=torch.float64)
    for t in (-0.9, 0.7, -3.0):
        a = s @ A
        theta = claim.gauged(claim.join(A + t * a.mT @ a, s), 3)
        best = representative(claim, theta, 3)
        assert form_distance(claim.split(best, 3)[0][0], A) < 1e-3
        back = aligned(claim, theta, claim.gauged(claim.join(A, -s), 3), 3)
        assert form_distance(claim.split(back, 3)[0][0], A) < 1e-6


@pytest.mark.parametrize(
    "claim",
    [Claim("a direction", directions=1), Claim("2 directions and handedness", directions=2, special=True)],
)
def test_what_is_loose_changes_no_group(claim):
    """Rows of `loose` are tangents along which the residual group stays: sizes, bases of the span, the pencil (M16)."""
    theta = claim.join(torch.diag(torch.tensor([1.0, 2.0, -1.5, 0.7]).double()), normal(claim.directions, 4))
    loose, group = claim.loose(theta, 4), claim.symmetry(theta, 4).sample(4)
    d = claim.directions
    assert len(loose) == 1 + d * d + d * (d + 1) // 2
    for row in loose:
        assert bool(claim.symmetry(theta + 0.1 * row, 4).contains(group, 1e-7).all())


def test_refits_start_where_it_makes_a_difference():
    """y = 2x - 1 keeps every form about one point: steps at random go far in the form, and not along its size."""
    x, claim = normal(200, 1, 3), Claim("an origin", origin=True)
    view = WideProjection(
        Samples(x, 2 * x[:, 0] - 1 + 0.01 * normal(200, 3, seed=1), as_rep("vector")), claim, 40
    )
    theta = claim.join(torch.eye(3, dtype=torch.float64), torch.full((3,), 0.5).double())
    away = view.shaken(view.solve(theta), 1.0, torch.Generator().manual_seed(0))
    (A, _, c), (B, _, e) = (claim.split(t, 3) for t in (theta, away))
    assert form_distance(A[0], B[0]) > 0.15 and float((c - e).norm()) < 0.1


def test_the_residual_group_does_not_depend_on_the_pencil():
    s, A = (
        torch.tensor([[0.6, 0.0, 0.8]], dtype=torch.float64),
        torch.diag(torch.tensor([1.0, 2.0, -1.5]).double()),
    )
    a = s @ A
    one, other = (Symmetry(M, directions=s) for M in (A, A + 0.8 * a.mT @ a))
    assert bool(other.contains(one.sample(8), 1e-8).all())


# What is tried


def test_claims_from_the_simplest_on():
    def names(points, n, output, set_like=False, **asked):
        rep = as_rep(output)
        samples = Samples(normal(9, points, n), normal(9, *rep.shape(n)), even_rep(rep), set_like=set_like)
        wanted = Asked.of("auto", (), (), rep, points, set_like)
        return [claim.name for claim in claims_for(samples, wanted)]

    assert names(1, 3, "scalar") == ["an origin", "a direction"]
    assert names(1, 2, "scalar") == ["an origin"]  # a direction leaves no rotation of a plane
    assert names(2, 3, "vector")[:4] == ["a skew form", "an axial output", "handedness", "an origin"]
    assert names(2, 4, "scalar")[-4:] == [
        "a direction",
        "2 directions",
        "2 directions and handedness",
        "a hermitian form",
    ]
    assert names(1, 3, "vector")[-2:] == ["a direction", "a direction and handedness"]  # v × s
    assert names(2, 4, "scalar")[0] == names(2, 2, "vector")[0] == "a skew form"
    assert "a skew form" not in names(1, 4, "vector") + names(2, 4, "bilinear") + names(2, 4, "pseudoscalar")
    assert names(2, 3, "pseudovector")[0] == "parity as told"
    assert names(5, 3, "scalar", set_like=True) == ["an origin", "a direction"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"look_for": "direktion"}, "look_for = direktion: give auto"),
        ({"look_for": []}, "look_for"),
        ({"spaces": [0, 2]}, r"spaces = \[0, 2\]"),
        ({"spaces": [0, 0, 1]}, "for 2 vectors"),
        ({"axial": [5]}, "axial"),
    ],
)
def test_what_cannot_be_looked_for_is_refused(options, message):
    x = normal(50, 2, 3)
    with pytest.raises(ValueError, match=message):
        gortho.discover(x, x[:, 0, 0] ** 2, settings=SMALL, **options)


def test_invariants_leave_constants_out():
    claim = Claim("a direction", directions=1)
    samples, theta = some(claim, 2, "scalar", False)
    assert invariants_of(claim, theta, samples)(samples).shape == (150, 5)  # of six, ⟨s, s⟩ is a constant


def test_an_origin_far_away_leaves_a_column_that_says_nothing():
    claim, samples = (
        Claim("an origin", origin=True),
        Samples(torch.randn(150, 1, 3).double(), torch.randn(150)),
    )
    theta = torch.cat([torch.eye(3).flatten(), torch.tensor([1e12, 0.0, 0.0])]).double()
    assert torch.equal(invariants_of(claim, theta, samples)(samples), torch.zeros(150, 1).double())


# What is found


def discovered(task: BrokenTask, **options) -> Discovery:
    return gortho.discover(
        task.x, task.y, task.output, task.scalars, set_like=task.set_like, settings=SMALL, **options
    )


@pytest.fixture(scope="module")
def weight():
    task = broken("weight", 1, samples=900)
    return task, discovered(task, tolerance=0.004)


def test_a_direction_is_found(weight):
    task, found = weight
    assert found.verdict is Verdict.FOUND and found.group_name == "O(3)" and found.origin is None
    assert found.directions.shape == (1, 3)
    assert float(angles(torch.tensor(found.directions), task.symmetry.directions)) < 0.1
    assert found.symmetry.residual_name == "O(2)" and len(found.forms) == 1
    assert "broken along" in str(found) and "°" in found.headline() and "explains" in str(found)
    assert "the direction b the form is open" in str(found) and np.isnan(found.eigenvalue_errors).sum() >= 1
    assert np.allclose(found.predict(task.x), task.y, atol=1e-6 * float(task.y.abs().max()))
    assert found.equivariance_error(task.x[:20]) < 1e-10
    assert found.form.cosine(task.symmetry.form) > 0.9999
    assert found.provenance.tolerance == 0.004


def test_what_was_found_is_kept(weight, tmp_path):
    task, found = weight
    again = Discovery.load(found.save(tmp_path / "run"))
    assert repr(again.wider) == repr(found.wider) and str(again) == str(found)  # nan is not nan
    assert np.array_equal(again.predict(task.x), found.predict(task.x))
    assert "broken along" in repr(found) and found.to_html(tmp_path / "page.html").exists()


def test_an_origin_is_found_in_any_units():
    task = broken("well", 2, samples=900, noise=0.02)
    T = torch.diag(torch.tensor([40.0, 1.0, 0.05], dtype=torch.float64))
    x, truth = task.x @ T, task.symmetry.in_basis(T)
    found = gortho.discover(x, task.y, settings=SMALL)
    assert found.verdict is Verdict.FOUND and " about (" in str(found.symmetry)
    white = torch.linalg.pinv(torch.linalg.cholesky(torch.cov(x[:, 0].mT)))
    assert float((white @ (torch.tensor(found.origin) - truth.origin)).norm()) < 0.05
    assert np.mean((found.predict(x) - task.y.numpy()) ** 2) < 2e-3 * float(task.y.var())


def test_a_torque_is_axial():
    task = broken("torque", 1, samples=600)
    found = discovered(task)
    assert found.verdict is Verdict.FOUND and found.output == "pseudovector"
    assert found.group_name == "O(3)" and "SO(3), if the output is polar" in str(found)
    assert (
        np.allclose(found.predict(task.x), task.y, atol=1e-6) and found.equivariance_error(task.x[:9]) < 1e-10
    )


@pytest.mark.slow
def test_a_torque_that_is_told_to_be_axial():
    task = broken("torque", 1, samples=600)
    told = gortho.discover(task.x, task.y, "pseudovector", settings=SMALL)
    assert told.verdict is Verdict.FOUND and told.wider.claim == "parity as told"


@pytest.mark.slow
def test_a_lorentz_force_has_two_readings():
    task = broken("lorentz", 1, samples=600)
    found = discovered(task)
    assert found.group_name == "SO(3)" and "O(3), if x3 is axial" in found.wider.readings
    told = discovered(task, axial=[2])
    assert told.group_name == "O(3)" and told.wider.axial == (2,) and not told.wider.readings
    assert told.equivariance_error(task.x[:9]) < 1e-10


@pytest.mark.slow
def test_an_unknown_field_is_found():
    """v × B with B unknown: a direction and handedness, or O(A) with an axial direction; drag breaks neither."""
    v, M = normal(300, 3), torch.eye(3, dtype=torch.float64) + 0.3 * normal(3, 3, seed=3)
    B = torch.tensor([0.48, -0.36, 0.80], dtype=torch.float64)
    a = torch.linalg.cross(v, B.expand_as(v)) - 0.1 * v
    found = gortho.discover(v @ M.mT, a @ M.mT, "vector", settings=SMALL, look_for=["SO", "direction"])
    assert found.verdict is Verdict.FOUND and found.group_name == "SO(3)"
    assert found.symmetry.residual_name == "SO(2)" and found.wider.explains <= 1
    assert float(angles(torch.tensor(found.directions), (M @ B)[None])) < 0.1
    assert found.wider.readings == ("O(3), if the direction is axial",)
    assert found.equivariance_error((v @ M.mT)[:9]) < 1e-10


def test_a_form_that_stays_open_is_not_none(tmp_path):
    """A linear law about a point keeps every form: no form can be named, and none is ruled out."""
    x = normal(300, 3)
    y = 1.0 - 2 * x + 0.02 * normal(300, 3, seed=1)
    found = gortho.discover(x, y, "vector", settings=SMALL, look_for=["origin"])
    assert found.verdict is Verdict.UNDERDETERMINED and "so do other forms" in found.reason
    # All that is said, and the predictor, are of the symmetry of the reason.
    assert found.peers[0].relative_mse < 0.01 and found.defect.low == 0 and "broken by" not in str(found)
    with pytest.warns(UserWarning, match="not accepted"):
        assert np.abs(found.predict(x) - y.numpy()).max() < 0.2
    again = Discovery.load(found.save(tmp_path / "run"))
    assert str(again) == str(found) and found.to_html(tmp_path / "page.html").exists()


@pytest.mark.slow
def test_spaces_that_are_given():
    task = broken("spaces", 1, samples=1_000)
    found = discovered(task, spaces=[0, 0, 1], look_for=["spaces"])
    assert found.verdict is Verdict.FOUND and found.group_name == "O(3) × O(1,2)"
    assert all(one.cosine(other) > 0.999 for one, other in zip(found.forms, task.symmetry.forms))
    _bars_hold(found, task)
    assert "error bars not computed" not in str(found) and str(found).count("eigenvalues (± 95 %)") == 2


def _bars_hold(found, task):
    """All forms have error bars, and three times these hold the true entries."""
    for space, (form, truth) in enumerate(zip(found.forms, task.symmetry.forms)):
        half = found.wider.half_widths(space, found.interval_factor)
        off = (form.matrix - truth.matrix).abs().numpy()
        assert (off <= 3 * half).all() and half.max() < 0.1, space


@pytest.mark.parametrize(
    ("kind", "told"), [("frames", [0, 1]), pytest.param("frames force", None, marks=pytest.mark.slow)]
)
def test_spaces_that_move_together(kind, told, tmp_path):
    task = broken(kind, 1, samples=1_200 if told is None else 400)
    found = discovered(task, spaces=told, look_for=["spaces"])
    truth = task.symmetry
    assert found.verdict is Verdict.FOUND and str(found.symmetry) == str(truth) and found.symmetry.linked
    assert form_distance(found.symmetry.maps[0], truth.maps[0]) < 0.02
    _bars_hold(found, task)
    assert found.symmetry.form.cosine(truth.form) > 0.999
    assert "x2 in the frame of x1: times [" in str(found)
    assert found.equivariance_error(task.x[:20]) < 1e-10
    again = Discovery.load(found.save(tmp_path / "run"))
    assert str(again) == str(found) and again.symmetry == found.symmetry
    assert np.array_equal(again.predict(task.x), found.predict(task.x))
    assert "x2 in the frame of x1: times [" in found.to_html(tmp_path / "page.html").read_text(
        encoding="utf-8"
    )


@pytest.mark.slow
def test_formulas_of_spaces_that_move_together():
    """⟨x1, x2⟩ and ⟨x1, x1⟩ in the frame of x1, and the same in sympy."""
    task = broken("frames", 2, samples=250)
    s = task.symmetry
    moved = torch.einsum("zia,iba->zib", task.x, s.frames)
    A = s.form.matrix
    y = 2 * ((moved[:, 0] @ A) * moved[:, 1]).sum(1) - 0.5 * ((moved[:, 0] @ A) * moved[:, 0]).sum(1)
    found = gortho.discover(task.x, y, settings=SMALL, look_for=["spaces"])
    assert found.verdict is Verdict.FOUND and len(found.formula.terms) == 2
    assert "⟨x1,x2⟩" in str(found.formula)
    law = found.sympy()
    symbols = sorted(law.free_symbols, key=lambda symbol: symbol.name[::-1])  # those of x1 first
    for row, value in zip(task.x[:3].flatten(1).tolist(), y[:3].tolist()):
        assert float(law.subs(list(zip(symbols, row)))) == pytest.approx(value, rel=1e-6)


@pytest.mark.slow
def test_formulas_of_vectors_in_two_spaces():
    """y = x1 (1 + q2(x2)): the bars take in the errors of both forms."""
    x = normal(500, 3, 3)
    other = torch.diag(torch.tensor([1.0, -1.0, -2.0], dtype=torch.float64))
    squares = x[:, 0].square().sum(1), ((x[:, 2] @ other) * x[:, 2]).sum(1)
    y = x[:, 1] * (squares[0] + squares[1])[:, None]
    y = y + 0.01 * y.std() * normal(500, 3, seed=5)
    found = gortho.discover(x, y, "vector", spaces=[0, 0, 1], look_for=["spaces"], settings=SMALL)
    assert found.verdict is Verdict.FOUND and str(found.formula).count("x2 ⟨") == 2, str(found.formula)
    for term in found.formula.terms:
        size = (
            1.0 if term.monomials[0].factors[0].left[0] else 2**0.5
        )  # forms have the size of the unit matrix
        assert abs(term.coefficient - size) <= 2 * term.error


@pytest.mark.slow
def test_a_product_of_two_spaces_leaves_the_form_open():
    """xᵀMx' keeps every form: no form can be named, though polynomials meet the law to rounding."""
    x = normal(400, 2, 3)
    y = torch.einsum("za,ab,zb->z", x[:, 0], normal(3, 3, seed=3), x[:, 1])
    found = gortho.discover(x, y, settings=SMALL, look_for=["spaces"])
    assert found.verdict is Verdict.UNDERDETERMINED and "so do other forms" in found.reason


def test_spaces_of_different_dimension(tmp_path):
    task = broken("dimensions", 1, samples=600)
    found = discovered(task)
    assert found.verdict is Verdict.FOUND and found.group_name == "O(3) × O(1,1)"
    assert str(found.symmetry) == str(task.symmetry) and [form.n for form in found.forms] == [3, 2]
    assert all(one.cosine(other) > 0.999 for one, other in zip(found.forms, task.symmetry.forms))
    assert "vectors of 3 and 2 components" in str(found) and "the form of x3" in str(found)
    _bars_hold(found, task)
    assert found.equivariance_error([part[:20] for part in task.x]) < 1e-10
    p = found.predict(task.x)
    assert np.mean((p - task.y.numpy()) ** 2) < 0.01 * float(task.y.var())
    again = Discovery.load(found.save(tmp_path / "run"))
    assert str(again) == str(found) and np.array_equal(again.predict(task.x), p)
    assert found.to_html(tmp_path / "page.html").exists()


@pytest.mark.parametrize("seed", [3, 23000])
def test_the_first_look_finds_the_forms_of_all_spaces(seed):
    """Else a smaller group, of vectors that move together, would be all that is found."""
    task = broken("spaces", seed, samples=1500, noise=0.02)
    samples = Samples(task.x, task.y)
    parts = Posed.of(samples, seed).parts
    claim = Claim("two spaces", spaces=(0, 0, 1))
    ends = first_look(claim, claim.of(parts.train), [], seed)
    assert ends[0][0] < 0.01 * parts.train.variance


def test_kinds_of_vectors_that_are_given_as_arrays():
    x, spaces, dims = side_by_side([normal(5, 2, 3), normal(5, 2).numpy()])
    assert x.shape == (5, 3, 3) and spaces == (0, 0, 1) and dims == (3, 2) and (x[:, 2, 2] == 0).all()
    with pytest.raises(ValueError, match="with the same N"):
        side_by_side([normal(5, 3), normal(4, 2)])
    parts = [normal(90, 3), normal(90, 2)]
    y = parts[0].square().sum(1)
    with pytest.raises(ValueError, match="leave out spaces"):
        gortho.discover(parts, y, spaces=[0, 1])
    with pytest.raises(ValueError, match="scalars and vectors"):
        gortho.discover(parts, normal(90, 3, 3), "bilinear")
    with pytest.raises(ValueError, match="leave out"):
        gortho.discover(parts, y, axial=[0])


@pytest.mark.parametrize("left_out", [0, 10])
def test_samples_of_kinds_have_the_numbers_of_the_rows_or_none(monkeypatch, left_out):
    """Where rows of weight zero are left out, the number of a sample is not that of its row."""
    posed = []

    def remembered(*given):
        posed.append(posed_by_space(*given))
        raise InterruptedError

    monkeypatch.setattr(several, "posed_by_space", remembered)
    weights = np.ones(90)
    weights[:left_out] = 0
    with pytest.raises(InterruptedError):
        gortho.discover([normal(90, 3), normal(90, 2)], normal(90), sample_weight=weights)
    assert (posed[0].numbers is None) == bool(left_out)


@pytest.mark.parametrize("after", [0, 1])
def test_the_search_for_forms_of_kinds_is_interrupted(monkeypatch, tmp_path, after):
    """By Ctrl-C before there is a form, or, with vectors out, in the search for the second of the two spaces."""
    calls = []

    def looked(*given):
        if len(calls) == after:
            raise KeyboardInterrupt
        calls.append(given)
        return first_look(*given)

    monkeypatch.setattr(several, "first_look", looked)
    x, z, w = normal(120, 3), normal(120, 2), normal(120, 3, seed=5)
    y = w * (x.square().sum(1) + z.square().sum(1))[:, None]
    monkeypatch.setattr(several, "output_spaces", lambda *given: [0, 2])
    found = gortho.discover([x, z, w], y, "vector")
    assert found.verdict is Verdict.UNDERDETERMINED and found.provenance.seconds > 0
    told = "interrupted: this is the best form so far" if after else "interrupted before there was a form"
    assert told in str(found) and (found.candidate is not None) == bool(after) and found.network is None
    assert str(Discovery.load(found.save(tmp_path / "run"))) == str(found)
    assert found.to_html(tmp_path / "page.html").exists()


@pytest.mark.slow
def test_modified_inertia_to_rounding():
    task = modified_inertia(samples=700)
    found = discovered(task, look_for=["direction"])
    test = modified_inertia(seed=5, samples=200)
    assert float(angles(torch.tensor(found.directions), task.symmetry.directions)) < 0.01
    assert np.mean((found.predict(test.x, test.scalars) - test.y.numpy()) ** 2) < 1e-6


@pytest.fixture(scope="module")
def symplectic():
    task = broken("symplectic", 1, samples=600)
    return task, discovered(task, look_for=["skew"])


def test_a_symplectic_law_is_found(symplectic):
    task, found = symplectic
    assert found.verdict is Verdict.FOUND and str(found.symmetry) == found.group_name == "Sp(4)"
    assert form_distance(found.skew.matrix, task.symmetry.skew.matrix) < 0.01
    assert found.form is None and found.forms == () and found.generators.shape == (10, 4, 4)
    assert "form: ω(x, y) = " in str(found) and "respects Sp(4)" in found.headline()
    assert found.equivariance_error(task.x[:20]) < 1e-10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = found.predict(task.x)
    assert np.mean((p - task.y.numpy()) ** 2) < 0.02 * float(task.y.var())


def test_a_symplectic_law_is_kept_and_shown(symplectic, tmp_path):
    task, found = symplectic
    again = Discovery.load(found.save(tmp_path / "run"))
    assert again.wider == found.wider and str(again) == str(found) and repr(again) == repr(found)
    assert np.array_equal(again.predict(task.x), found.predict(task.x))
    assert "Sp(4)" in repr(found) and r"\wedge" in found.latex() and "ω (± 95 %)" in found._repr_html_()
    page = found.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Sp(4)" in page and "ω(x, y)" in page
    x, y = np.random.default_rng(0).normal(size=(2, 4))
    values = dict(zip([*found.names, *(f"{name}'" for name in found.names)], [*x, *y]))
    expression = found.sympy()
    given = {symbol: values[symbol.name] for symbol in expression.free_symbols}
    assert float(expression.subs(given)) == pytest.approx(float(found.skew(x, y)), rel=0.05)
    assert found.plot() is not None


def test_a_hermitian_law_is_unitary():
    """y = (1 + q/2) Kx, the phase that a nonlinear wave equation turns: exact, with one vector."""
    x, M = normal(200, 1, 4), torch.eye(4, dtype=torch.float64) + 0.3 * normal(4, 4, seed=3)
    q, p = x[:, 0].chunk(2, 1)
    y = (1 + 0.5 * x[:, 0].square().sum(1))[:, None] * torch.cat([p, -q], 1)
    found = gortho.discover(x @ M.mT, y @ M.mT, "vector", settings=SMALL, look_for=["skew"])
    truth = Symmetry.parse("U(2)").in_basis(M)
    assert found.verdict is Verdict.FOUND and found.group_name == "U(2)" and len(found.generators) == 4
    assert found.form.cosine(truth.form) > 1 - 1e-6
    assert form_distance(found.skew.matrix, truth.skew.matrix) < 1e-3
    assert "q(x) = " in found.law() and "ω(x, y) = " in found.law() and "[U(2)]" in str(found)
    assert found.equivariance_error((x @ M.mT)[:20]) < 1e-10


@pytest.mark.slow
def test_areas_of_a_plane_are_sl2():
    x = normal(500, 2, 2)
    y = torch.sin(x[:, 0, 0] * x[:, 1, 1] - x[:, 0, 1] * x[:, 1, 0])
    found = gortho.discover(x, y, settings=SMALL, look_for=["SO", "skew"])
    assert found.group_name == "Sp(2)" and "SL(2)" in found.wider.readings[0]


@pytest.mark.parametrize("even", [False, True])
def test_skew_forms_that_correlate(even):
    """ω to a few percent by one eigenproblem, from a law that is odd in ω, and from one that is even."""
    task = broken("symplectic", 2)
    product = task.symmetry.skew(task.x[:, 0], task.x[:, 1])
    product = product / product.std()
    posed = Posed.of(Samples(task.x, 1 / (1 + product**2) if even else torch.tanh(product)), 0)
    truth = posed.frame.inverse.mT @ task.symmetry.skew.matrix @ posed.frame.inverse
    assert min(form_distance(omega, truth) for omega in correlated(posed.parts.train)) < (
        0.25 if even else 0.1
    )


def test_hermitian_starts_are_compatible():
    samples, _ = some(Claim("a hermitian form", unitary=True), 2, "vector", False)
    starts = hermitian_starts(samples, [torch.eye(4, dtype=torch.float64)], 0)
    claim = Claim("a hermitian form", unitary=True)
    names = {claim.symmetry(claim.join(torch.stack(pair)), 4).group_name for pair in starts}
    assert names == {"U(2)", "U(1,1)"}


# What is not


def test_what_has_no_symmetry_stays_none():
    x = normal(250, 3)
    y = x.abs().sum(1)
    found = gortho.discover(x, y, settings=SMALL)
    assert found.verdict is Verdict.NONE and found.wider is None and found.symmetry is None
    assert found.directions.shape == (0, 3) and found.forms == ()
    assert any("wider symmetries do not hold" in notice for notice in found.notices)


def test_only_what_is_asked_for_is_looked_for():
    task = broken("well", 2, samples=250)
    found = discovered(task, look_for="O")
    assert found.verdict is Verdict.NONE and not any("wider" in notice for notice in found.notices)
    clock = Clock(1.0)
    clock.seconds_missing = 12.0
    left_open = cut_short(found, clock)  # nothing is denied before all symmetries were tried
    assert left_open.verdict is Verdict.UNDERDETERMINED and left_open.confidence == 0
    assert "before all other symmetries had been tried" in left_open.reason and "20 s" in left_open.advice
    assert cut_short(left_open, clock) is left_open


def test_a_parity_that_was_given_is_looked_for_beside_O():
    evidence = SimpleNamespace(broken=None, doubtful=lambda tolerance: False, left_over=0.5)
    denied = SimpleNamespace(evidence=evidence, classes=(), verdict=Verdict.NONE, form=None)
    vector, odd = as_rep("vector"), as_rep("pseudovector")
    asked = [
        Asked.of("O", axial, (), rep, 2, False) for axial, rep in (((), vector), ([1], vector), ((), odd))
    ]
    assert [wanted(denied, one, 0.01) for one in asked] == [False, True, True]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "axial", "polar"), [("pseudovector", (), 0.0), ("vector", [1], 0.1)], ids=["output", "input"]
)
def test_a_parity_that_was_given_belongs_to_O(output, axial, polar):
    x = normal(300, 2, 3)
    y = torch.linalg.cross(x[:, 0], x[:, 1]) - polar * x[:, 0]
    found = gortho.discover(x, y, output, axial=axial, look_for="O", settings=SMALL)
    assert found.verdict is Verdict.FOUND and found.group_name == "O(3)"


def test_a_parity_that_was_given_is_tested_before_the_rest_where_time_is_short():
    x = normal(50, 2, 3)
    samples = Samples(x, torch.linalg.cross(x[:, 0], x[:, 1]), as_rep("vector"))
    asked = Asked.of("auto", [1], (), samples.rep, 2, False)
    claims = claims_for(samples, asked)
    first, rest = _rounds(claims, asked, Clock(30.0))
    assert [claim.axial for claim in first] == [(1,)] and [*first, *rest] == claims
    assert _rounds(claims, asked, Clock()) == [claims]  # without a budget all are compared
    assert all(SHARES_BEFORE_PARITY[stage] < SHARES[stage] for stage in SHARES_BEFORE_PARITY)


def test_a_time_budget_comes_first():
    task = broken("well", 2, samples=250)
    found = discovered(task, time_budget=0.1)
    assert found.wider is None and NO_TIME in found.notices


def test_plain_forms_are_plain():
    x = normal(400, 3)
    found = gortho.discover(x, x.square().sum(1), settings=SMALL)
    assert found.wider is None and found.symmetry == Symmetry.of(found.form) and found.group_name == "O(3)"


# What is noted


def test_laws_of_differences_are_noted():
    x = normal(200, 2, 3) + 1
    notes = [
        gortho.discover(x, y, settings=SMALL).notices
        for y in ((x[:, 0] - x[:, 1]).square().sum(1), (x[:, 0] - 0.8 * x[:, 1]).square().sum(1))
    ]
    assert TRANSLATIONS in notes[0] and TRANSLATIONS not in notes[1]


# The command line


def test_null_vectors_tell_nothing_of_translations():
    """Of light-like vectors √|⟨x1-x2, x1-x2⟩| and √|⟨x1+x2, x1+x2⟩| are the same: a mass is no distance."""
    p = normal(500, 2, 3)
    x = torch.cat([p.norm(dim=2, keepdim=True), p], 2)
    A = torch.diag(torch.tensor([1.0, -1.0, -1.0, -1.0]).double())
    mass = (2 * ((x[:, 0] @ A) * x[:, 1]).sum(1)).abs().sqrt()
    assert not translations(A, Samples(x, mass, as_rep("scalar")), 0)
    heavy = torch.cat([(1 + p.square().sum(2, keepdim=True)).sqrt(), p], 2)
    apart = heavy[:, 0] - heavy[:, 1]
    assert translations(A, Samples(heavy, ((apart @ A) * apart).sum(1), as_rep("scalar")), 0)


def test_options_of_the_command_line(tmp_path, monkeypatch):
    effort = {name: value for name, value in vars(SMALL).items() if name != "workers"}
    monkeypatch.setitem(cli.EFFORTS, "quick", effort)
    task = broken("torque", 1, samples=120)
    np.savez(tmp_path / "data.npz", X=task.x.numpy(), y=task.y.numpy())
    call = [
        "discover",
        str(tmp_path / "data.npz"),
        "--output",
        "vector",
        "--effort",
        "quick",
        "--quiet",
        "--json",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner().invoke(cli.main, [*call, "--look-for", "SO"])
    content = json.loads(result.stdout)
    assert (
        content["verdict"] == "FOUND" and content["group"] == "O(3)" and content["output"] == "pseudovector"
    )
    assert CliRunner().invoke(cli.main, [*call, "--look-for", "nothing"]).exit_code == 2
    assert "--axial" in CliRunner().invoke(cli.main, [*call, "--axial", "x"]).output


def test_pairs_of_forms_without_a_group_explain_nothing():
    """Where A⁻¹ω has real eigenvalues there is no hermitian form: no step may lead there."""
    A = torch.diag(torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64))
    omega = torch.zeros(4, 4, dtype=torch.float64)
    omega[0, 2] = omega[1, 3] = 1.0
    omega = omega - omega.mT
    assert not hermitian(A, omega) and hermitian(torch.eye(4, dtype=torch.float64), omega)
    claim = Claim("a hermitian form", unitary=True)
    x = normal(60, 2, 4)
    view = WideProjection(Samples(x, x[:, 0, 0]), claim, 8)
    assert view.solve(claim.join(torch.stack([A, omega]))).criterion == float("inf")
    assert view.solve(claim.join(torch.stack([torch.eye(4, dtype=torch.float64), omega]))).criterion < 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 7000])
def test_forms_of_spaces_are_found_from_wrong_signatures(seed):
    """The law is even in q = u² - v², which looks like a definite form from afar."""
    task = broken("dimensions", seed, samples=1_200)
    found = gortho.discover(task.x, task.y, settings=SMALL)
    assert found.verdict is Verdict.FOUND and found.symmetry.group_name == task.symmetry.group_name


def test_notes_on_noise_claim_nothing():
    """Where y is noise, no symmetry is denied, and what a search explains by chance is not told as explained."""
    rng = np.random.default_rng(0)
    found = gortho.discover(
        rng.normal(size=(300, 3)), rng.normal(size=300), settings=SMALL, look_for=["direction", "origin"]
    )
    assert found.verdict is Verdict.UNDERDETERMINED
    told = [notice for notice in found.notices if "wider symmetries" in notice]
    tested = {name for name in ("an origin", "a direction") if any(n.startswith(name) for n in found.notices)}
    assert told[0].startswith("wider symmetries were tried, too") and tested
    assert not any(name in told[0] for name in tested)


def test_a_law_of_the_volume_alone_is_named():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 3, 3)) @ rng.normal(size=(3, 3))
    volume = np.linalg.det(x)
    alone = [volume, np.tanh(volume), volume**2 + 0.02 * rng.normal(size=400)]
    assert all(looks_like_a_volume(enter(x, y, "scalar")[0]) for y in alone)
    others = [
        volume / (1 + np.square(x).sum((1, 2))),
        volume + np.square(x[:, 0]).sum(1),
        rng.normal(size=400),
    ]
    assert not any(looks_like_a_volume(enter(x, y, "scalar")[0]) for y in others)
    assert not looks_like_a_volume(enter(x[:, :2], volume, "scalar")[0])


def test_the_origin_of_a_law_that_winds_is_told_by_its_slopes():
    """A wave over several periods correlates with no quadratic; its slopes still point along A(x - c)."""
    x = 4 * torch.rand(1500, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 2
    A, c = torch.tensor([[1.0, 0.4], [0.4, -1.5]], dtype=torch.float64), torch.tensor([0.5, -0.8]).double()
    y = torch.einsum("zi,ij,zj->z", x[:, 0] - c, A, x[:, 0] - c).sin()
    claim = Claim("an origin", origin=True)

    def nearest(found):
        each = [(forms[0], origin[0]) for forms, _, origin in (claim.split(theta, 2) for theta in found)]
        return min(form_distance(B, A) + float((b - c).norm()) for B, b in each)

    without = nearest([claim.join(B, None, b) for B, b in _correlated_origins(Samples(x, y))])
    sloped = nearest(starts_for(claim, Samples(x, y), [], 0, []))
    assert sloped < 0.1 < without


@pytest.mark.parametrize(("origin", "none"), [(0.02, True), (0.5, False)])
def test_an_origin_that_may_be_zero_is_none(origin, none):
    """Codes for missing values in x can make an origin look better than none at all."""
    claim, noise = (
        Claim("an origin", origin=True),
        torch.randn(8, 1, 3, generator=torch.Generator().manual_seed(0)),
    )
    theta, *refits = (
        claim.join(torch.eye(3)[None], None, origin + 0.05 * e) for e in (torch.zeros(1, 3), *noise)
    )
    trial = SimpleNamespace(end=SimpleNamespace(claim=claim, theta=theta), refits=refits)
    assert _about_zero(trial, 3) is none
    directed = SimpleNamespace(
        end=SimpleNamespace(claim=replace(claim, directions=1), theta=theta), refits=refits
    )
    assert not _about_zero(directed, 3)


@pytest.mark.slow
def test_van_der_pol_keeps_no_rotations():
    """Its linear part keeps an SO(2), the rest 2 % of the variance less: twins with components of vectors hid it."""
    x = torch.rand(1_600, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 2 - 1
    u, v = x[:, 0, 0], x[:, 0, 1]
    y = torch.stack([v, -u + v * (1 - u**2)], 1)
    y = y + 0.03 * torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(2))
    assert gortho.discover(x, y, "vector").verdict is not Verdict.FOUND


def test_the_form_of_another_kind_of_vectors_has_the_names_of_these():
    x = torch.randn(40, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    samples = Samples(x, x[:, 0, 0], names=("E", "p"), labels=Labels(coordinates=("E", "p", "u", "v")))
    claim = Claim("two spaces", spaces=(0, 1))
    symmetry = symmetry_out(
        Posed.of(samples, 0), claim, torch.eye(2, dtype=torch.float64).repeat(2, 1, 1).flatten()
    )
    assert [form.names for form in symmetry.forms] == [("E", "p"), ("u", "v")]


@pytest.mark.slow
def test_a_direction_is_found_beside_an_origin_far_away():
    """|x1 - x2|²/2 + 3 b·x1 + b·x2 is nearly a square about an origin far away, which twins do not refute."""
    rng = np.random.default_rng(13)
    x, b = rng.normal(size=(1000, 2, 3)), np.array([0.6, 0.0, 0.8])
    y = ((x[:, 0] - x[:, 1]) ** 2).sum(1) / 2 + 3 * x[:, 0] @ b + x[:, 1] @ b
    found = gortho.discover(x, y + 0.01 * y.std() * rng.normal(size=1000), settings=SMALL)
    assert found.verdict is Verdict.FOUND and found.origin is None
    assert abs(found.directions[0] @ b) > 0.999


@pytest.mark.parametrize("alike", [False, True])
def test_samples_of_one_bundle_are_one_where_a_symmetry_is_to_be_beyond_doubt(alike):
    """Of six trajectories four are better by chance; one that is better in each of many is so beyond doubt."""
    bundles = torch.arange(600) // (10 if alike else 100)
    size = torch.tensor([0.5, 0.5, 0.5, 0.5, 1.2, 1.2], dtype=torch.float64)[bundles % 6]
    held = Samples(normal(600, 1, 3), torch.zeros(600, dtype=torch.float64), bundles=bundles)
    plain, trial = (
        SimpleNamespace(twin=SimpleNamespace(held_out=errors)) for errors in (torch.ones_like(size), size)
    )
    court = Court(SimpleNamespace(plain=plain), SimpleNamespace(held_out=held))
    assert court.beats(SimpleNamespace(comparison=trial)) == alike
