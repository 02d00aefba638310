"""What a broken law does instead, and what would settle an open answer."""

import dataclasses
import re

import numpy as np
import pytest
import torch

import gortho
from gortho import QuadraticForm, Settings, Verdict
from gortho.discovery.posed import Posed
from gortho.discovery.settling import _samples, direction_least_known
from gortho.discovery.violation import Profile, Violation, in_words
from gortho.samples.door import enter

SMALL = Settings(starts=10, generations=2, refits=3, predictor_steps=100)


def samples(seed, count=600, shape=(3,)):
    """Inputs, and the values of a hidden form; of two vectors, their inner product."""
    x = np.random.default_rng(seed).normal(size=(count, *shape))
    A = QuadraticForm.random(1, 2, condition=3, seed=seed).matrix.numpy()
    return x, np.einsum("ni,ij,nj->n", x.reshape(count, -1, 3)[:, 0], A, x.reshape(count, -1, 3)[:, -1])


def broken(x, y, output="scalar", **options):
    found = gortho.discover(x, y, output, settings=SMALL, look_for="O", **options)
    assert found.verdict is Verdict.NONE and str(found.violation) in found.reason
    return found


def angle(found, direction):
    """Between the told direction and the true one, in degrees."""
    cosine = abs(np.dot(found.violation.direction, direction)) / np.linalg.norm(direction)
    return np.degrees(np.arccos(min(1.0, cosine)))


def test_a_direction_is_told():
    x, q = samples(11)
    found = broken(x, np.sin(q) + 0.3 * x @ [0.6, 0.0, 0.8])
    assert angle(found, [0.6, 0, 0.8]) < 4 and found.violation.linear > 0.8
    assert re.search(r"\d\d % follows the direction \(0\.\d\d, -?0\.0\d, 0\.\d\d\)", found.reason)
    along, z = found.violation.profiles[0], found.violation.profiles[3]
    assert along.name == "the direction" and z.name == "x2" and along.share > z.share > 0.3
    assert np.all(np.diff(along.means) > -3 * np.hypot(along.errors[1:], along.errors[:-1]))


@pytest.mark.slow
def test_units_and_names_do_not_matter():
    x, q = samples(12)
    units = np.array([1e3, 1.0, 1e-3])
    found = broken(x * units, np.sin(q) + 0.3 * x[:, 1], names="t,u,v")
    assert found.violation.alone().name == "u" and found.violation.linear > 0.8


def test_a_constant_vector_is_told():
    x, q = samples(13)
    found = broken(x, q[:, None] * x + [0.0, 0.0, 3.0], "vector")
    assert angle(found, [0, 0, 1]) < 4 and found.violation.constant > 0.8
    assert "points along (0.0" in found.reason and found.violation.linear < 0.2


@pytest.mark.slow
def test_the_right_one_of_two_vectors_is_told(tmp_path):
    x, q = samples(14, shape=(2, 3))
    found = broken(x, q + x[:, 1, 0])
    assert found.violation.vector == 1 and angle(found, [1, 0, 0]) < 4 and "of vector 2" in found.reason
    assert gortho.Discovery.load(found.save(tmp_path / "run")).violation == found.violation


def test_a_function_of_one_coordinate_is_told():
    x, q = samples(37)
    found = broken(x, q + 0.5 * np.cos(3 * x[:, 1]))
    assert "is a function of x1 alone" in found.reason and found.violation.linear < 0.1


def test_classes_tell_their_direction():
    x, q = samples(16)
    found = broken(x, np.sin(q) + 2 * x[:, 2] > 0, "class")
    assert angle(found, [0, 0, 1]) < 8 and found.violation.linear > 0.4


def test_a_law_that_is_kept_has_no_violation():
    x, q = samples(17)
    assert gortho.discover(x, np.sin(q), settings=SMALL).violation is None


def seen(constant=0.0, linear=0.0, one=0.0, invariant=0.0, quadratic=0.0, size=2):
    names = tuple("abcdefgh"[:size])
    coordinates = [Profile(name, one if name == "b" else 0.0, (), (), ()) for name in names]
    profiles = (
        Profile("the direction", linear, (), (), ()),
        *coordinates,
        Profile("q(x)", invariant, (), (), ()),
    )
    return Violation((1.0,) + (0.0,) * (size - 1), 0, constant, linear, quadratic, profiles, names)


@pytest.mark.parametrize(
    ("violation", "words"),
    [
        (seen(constant=0.9, linear=0.05), "90 % points along (1.00, 0.00), whatever x is"),
        (seen(linear=0.5, one=0.55), "50 % follows the direction (1.00, 0.00)"),  # the simpler one
        (seen(linear=0.3, one=0.7), "70 % is a function of b alone"),
        (
            seen(one=0.2, invariant=0.6),
            "60 % is a function of the invariant q(x), which better fits may still learn",
        ),
        (seen(quadratic=0.4), "is quadratic in the coordinates"),
        (seen(linear=0.05), "follows no single direction"),
        (
            dataclasses.replace(seen(linear=0.5), points=1, vector=0),
            "50 % follows the direction (1.00, 0.00).",
        ),
    ],
)
def test_the_simplest_pattern_that_will_do_is_told(violation, words):
    assert words in str(violation)


def test_directions_of_many_coordinates_are_told_by_the_largest():
    way = np.zeros(9)
    way[[2, 7]] = 0.8, -0.6
    assert in_words(way, [f"p{i}" for i in range(9)]).startswith("(p2: 0.80, p7: -0.60, ")


# What would settle it


@pytest.mark.slow
def test_more_samples_of_the_direction_that_is_hardly_seen():
    def weak(count):
        random = np.random.default_rng(3)
        x = random.normal(size=(count, 3))
        y = x[:, 0] ** 2 + x[:, 1] ** 2 + 0.02 * x[:, 2] ** 2 + 0.6 * random.normal(size=count)
        return gortho.discover(x, y, settings=SMALL)

    few = weak(300)
    assert few.verdict is Verdict.UNDERDETERMINED and "sign of the smallest eigenvalue" in few.reason
    told = re.search(
        r"About ([\d,]+) samples like these 300 would settle it\. That direction is \((.*)\)", few.advice
    )
    assert told is not None, few.advice
    advised, direction = int(told[1].replace(",", "")), [float(c) for c in told[2].split(",")]
    assert 300 < advised <= 30_000 and abs(direction[2]) > 0.95
    assert weak(2 * advised).verdict is Verdict.FOUND


@pytest.mark.parametrize("ratio, told", [(2.0, "About 400 samples like these 100 would"), (20.0, "")])
def test_the_number_of_samples_grows_with_the_square(ratio, told):
    assert _samples(100, ratio).startswith(told) and bool(_samples(100, ratio)) == bool(told)


def test_no_fewer_than_twice_the_samples_are_advised():
    assert _samples(300, 1.01).startswith("About 600 samples like these 300")


def test_the_direction_that_refits_disagree_on_is_told_in_the_given_coordinates():
    random = np.random.default_rng(4)
    x = random.normal(size=(300, 3)) @ np.diag([1.0, 100.0, 0.01])
    posed = Posed.of(enter(x, x[:, 0])[0], 0)
    way = (
        torch.tensor([0.0, 100.0, 0.0]).double() @ posed.frame.W.mT / posed.x_unit
    )  # the second axis, in the frame
    way = way / way.norm()
    refits = torch.stack([torch.eye(3).double() + s * torch.outer(way, way) for s in (-0.4, 0.2, 0.3)])
    told = direction_least_known(posed, torch.eye(3).double(), refits)
    assert re.fullmatch(r"\(-?0\.0\d, 1\.00, -?0\.0\d\)", told), told


@pytest.mark.slow
def test_errors_that_would_account_for_what_is_left_over():
    x, q = samples(18, 600)
    noise = 2 * np.random.default_rng(0).normal(size=600)
    found = gortho.discover(x, q + noise, settings=SMALL)
    assert found.verdict is Verdict.UNDERDETERMINED
    size = float(re.search(r"Errors of y of about ([\d.]+) would account", found.advice)[1])
    assert 1.5 < size < 2.5
    assert gortho.discover(x, q + noise, settings=SMALL, y_error=size).verdict is Verdict.FOUND


def test_samples_do_not_settle_what_noise_does_not_blur():
    """A sum of x xᵀ is what it is whatever the form, however many samples there are."""
    x = np.random.default_rng(0).normal(size=(300, 2, 3))
    found = gortho.discover(x, np.einsum("npi,npj->nij", x, x), output="bilinear", settings=SMALL)
    assert found.verdict is Verdict.UNDERDETERMINED and "may not depend on the form" in found.advice
    assert "would settle it" not in found.advice and "Least is known" in found.advice
