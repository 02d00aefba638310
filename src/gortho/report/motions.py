"""The generators of a group as motions that have a name: rotations and boosts along the axes of the data."""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import matrix_balance, null_space

from gortho.report.data import Array

#: Rounds of scaling rows and columns: each takes the root of what is left of the difference.
ROUNDS = 20
#: Below this share of the largest eigenvalue, in like units, a form is singular: its group is more than rotations and
#: boosts.
SINGULAR = 1e-6
#: A motion is named by two variables alone if they make up this share of it …
ALONE = 0.95
#: … and mainly by them if they make up this one; with less, by all variables that have …
MAINLY = 2 / 3
#: … this share of it.
TAKES_PART = 0.1


def like_units(form: Array) -> Array:
    """Factors d of the variables: in these units, d_i A_ij d_j, the largest entry of each row is about one.

    >>> like_units(np.diag([4.0, -0.01, 0.0]))
    array([ 0.5, 10. ,  1. ])
    """
    factors = np.ones(len(form))
    size = np.abs(np.where(np.isfinite(form), form, 0.0))
    for _ in range(ROUNDS):
        largest = (size * np.outer(factors, factors)).max(1, initial=0)
        factors = factors / np.sqrt(np.where(largest > 0, largest, 1.0))
    return factors


def in_like_units(generator: Array, form: Array | None = None) -> Array:
    """A generator's entries in units of the variables that make the form's rows alike, or, without one, its own.

    >>> in_like_units(np.array([[0.0, 0.25], [-4.0, 0.0]]))
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    finite = np.where(np.isfinite(generator), generator, 0.0)
    if form is None:
        return np.asarray(matrix_balance(finite, permute=False)[0])
    units = like_units(form)
    return finite * units / units[:, None]


def axis_generators(form: Array, directions: Array | None = None) -> Array | None:
    """Generators of the group of a form, ``(d, n, n)``: each a rotation or a boost, as near to two axes as it can be.

    Whatever the units, each moves two vectors of a frame in which the form is ±1, the frame that is nearest to the
    axes (by Löwdin's orthogonalisation, within the directions of either sign). None where the form, or what is left of
    it across ``directions`` that stay fixed, is singular.
    """
    units = like_units(form)
    B = form * np.outer(units, units)
    fixed = np.zeros((0, len(B))) if directions is None else np.asarray(directions, float) / units
    across = null_space(fixed @ B) if len(fixed) else np.eye(len(B))
    values, vectors = np.linalg.eigh(across.T @ B @ across)
    if not len(values) or np.abs(values).min() <= SINGULAR * np.abs(values).max():
        return None
    vectors = across @ vectors
    parts, axes, signs = [], np.empty(0, int), np.empty(0)
    leaning = np.square(vectors) @ np.sign(values)  # of each axis to directions that add to q
    for sign in (1.0, -1.0):
        mine = np.sign(values) == sign
        chosen = np.argsort(-sign * leaning, kind="stable")[: mine.sum()]
        U, _, Vh = np.linalg.svd(vectors[chosen][:, mine].T)
        parts.append(vectors[:, mine] / np.sqrt(np.abs(values[mine])) @ U @ Vh)
        axes, signs = np.concatenate([axes, chosen]), np.concatenate([signs, np.full(len(chosen), sign)])
    order = np.argsort(axes, kind="stable")
    frame, signs = np.concatenate(parts, axis=1)[:, order], signs[order]
    inverse = signs[:, None] * (frame.T @ B)
    first, second = np.triu_indices(len(signs), 1)
    made = np.einsum("ik,kj->kij", frame[:, second], inverse[first])
    back = np.einsum("ik,kj->kij", frame[:, first], inverse[second])
    made = made - (signs[first] * signs[second])[:, None, None] * back
    return made * units[:, None] / units


def motion(generator: Array, names: Sequence[str]) -> str:
    """Say what kind of motion a generator makes, and of which variables.

    Its eigenvalues tell the kind, whatever the units and the frame: a rotation in a skewed metric is one still.

    >>> motion(np.array([[0.0, 1.0], [1.0, 0.0]]), ["E", "p"])
    'boost E ↔ p'
    >>> motion(np.array([[0.0, 0.001], [-1.0, 0.0]]), ["V", "I"])
    'rotation V ↔ I'
    """
    if not np.isfinite(generator).all() or not generator.any():
        return "mixed motion"
    kind = _kind(np.asarray(generator, float))
    if len(generator) < 2 or kind in ("mixed motion", "stretch"):
        return kind
    size = in_like_units(generator) ** 2
    pair = np.triu(size + size.T + np.add.outer(size.diagonal(), size.diagonal()), 1)
    share = pair.max() / size.sum()
    if share < MAINLY:
        taking = (size.sum(0) + size.sum(1)) / size.sum() > TAKES_PART
        *several, last = [name for name, part in zip(names, taking) if part]
        return f"{kind} of {', '.join(several)} and {last}"
    i, j = (int(k) for k in np.unravel_index(pair.argmax(), pair.shape))
    return f"{kind}{'' if share >= ALONE else ', mainly'} {names[i]} ↔ {names[j]}"


def _kind(generator: Array) -> str:
    """The kind of motion by the eigenvalues: imaginary, real in pairs ±λ, real, or all zero."""
    values = np.linalg.eigvals(generator / np.abs(generator).max())
    largest = np.abs(values).max()
    if largest < 1e-6:  # rounding leaves its square root
        return "shear"
    real, imaginary = (np.abs(part).max() > 1e-3 * largest for part in (values.real, values.imag))
    if real and imaginary:
        return "mixed motion"
    if imaginary:
        return "rotation"
    return "boost" if abs(values.real.sum()) < 1e-3 * largest else "stretch"
