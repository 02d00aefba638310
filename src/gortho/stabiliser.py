"""The elements of O(A) that leave given vectors alone (M16), all of them or those that keep left and right apart (M15).

Everything happens in the standard frame of `gortho.groups`, where the form is J = diag(±1) and small eigenvalues of A
weigh as much as large ones. With V a basis of what is orthogonal to the vectors, the Lie algebra consists of the
(v_i v_jᵀ - v_j v_iᵀ)J, and reflections along v leave the vectors alone: null vectors are no exception.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gortho import checks
from gortho.forms import QuadraticForm, Signature
from gortho.groups import random_generator, uniform

#: Vectors count as null when the form on what is orthogonal to them, in the standard frame, has an eigenvalue below …
NULL_DIRECTION = 1e-8
#: … and below this their group is sampled by exponentials: with nearly null vectors split off, elements are huge.
NEARLY_NULL = 0.02
#: Directions count as dependent, components of one as zero, and two values as equal, to this share of their size.
SAME = 1e-9


class Stabiliser:
    """{g ∈ O(A) : g s_j = s_j}, A not singular unless there are no vectors s; ``special``: with det g = 1.

    >>> lorentz = QuadraticForm.minkowski()
    >>> for s in ([1.0, 0, 0, 0], [0, 1.0, 0, 0], [1.0, 1.0, 0, 0]):
    ...     print(Stabiliser(lorentz, torch.tensor([s])).name)
    O(3)
    O(1,2)
    O(2) with 2 null rotations (a direction is null)
    """

    def __init__(self, form: QuadraticForm, vectors: Tensor, special: bool = False):
        self.form, self.special, self.group = form, special, form.group()
        p, q, zero = form.signature
        self._J = torch.tensor([1.0] * p + [-1.0] * q + [0.0] * zero, dtype=torch.float64)
        self._S, self._inverse = self.group._standard, self.group._standard_inverse
        #: The vectors, orthonormal in the standard frame, and a basis of what is orthogonal to them.
        self._fixed = torch.linalg.qr((vectors.double() @ self._S.mT).mT)[0].mT
        self._across = torch.linalg.svd(self._fixed * self._J, full_matrices=True)[2][len(vectors) :]
        #: The form on that, with eigenvalues from -1 to 1.
        self._inner = (self._across * self._J) @ self._across.mT

    @property
    def name(self) -> str:
        """The name of the group."""
        special = "S" if self.special else ""
        if not len(self._fixed):
            return special + self.form.group_name
        values = torch.linalg.eigvalsh(self._inner)
        p, q = int((values > NULL_DIRECTION).sum()), int((values < -NULL_DIRECTION).sum())
        m, r = len(values), p + q
        name = special + Signature(*sorted((p, q))).group_name if r > self.special else "trivial"
        if r == m:
            return name
        null = (m * (m - 1) - r * (r - 1)) // 2
        rotations = f" with {null} null rotation{'' if null == 1 else 's'}" if null else ""
        name = rotations.removeprefix(" with ") if name == "trivial" and null else name + rotations
        return f"{name} (a direction is null)"

    def algebra(self) -> Tensor:
        """A basis of the Lie algebra, float64 ``(m, n, n)``."""
        if not len(self._fixed):
            return self.group.algebra()
        return self._inverse @ self._generators() @ self._S

    def _generators(self) -> Tensor:
        V = self._across
        i, j = torch.triu_indices(len(V), len(V), 1)
        outer = V[i, :, None] * V[j, None, :]
        return (outer - outer.mT) * self._J

    def contains(self, g: Any, tolerance: float = 1e-10) -> Tensor:
        """Whether g ``(..., n, n)`` is one of the elements; tolerances as in `OrthogonalGroup.contains`."""
        inside = self.group.contains(g, tolerance)
        g = checks.square(g, "g", self.form.n).double()
        if self.special:
            inside = inside & (torch.linalg.det(g) > 0)
        if len(self._fixed):
            h = self._S @ g @ self._inverse
            off = (self._fixed @ h.mT - self._fixed).norm(dim=-1).amax(-1)
            inside = inside & (off <= tolerance * (1 + torch.linalg.matrix_norm(h)))
        return inside

    def sample(self, k: int, seed: int | torch.Generator = 0, max_boost: float = 1.0) -> Tensor:
        """``k`` random elements, float64 ``(k, n, n)``, from every component: O(A') of the orthogonal complement.

        Near null vectors, where the complement cannot be split off, elements are products of exponentials, with
        coefficients uniform in [-max_boost, max_boost], and of those reflections that are not huge.
        """
        generator = random_generator(seed)
        if not len(self._fixed):
            g = self.group.sample(k, generator, max_boost)
        elif len(self._across) and float(torch.linalg.eigvalsh(self._inner).abs().min()) > NEARLY_NULL:
            basis = torch.cat([self._fixed, self._across])
            blocks = torch.eye(self.form.n, dtype=torch.float64).repeat(k, 1, 1)
            rest = slice(len(self._fixed), None)
            blocks[:, rest, rest] = QuadraticForm(self._inner).group().sample(k, generator, max_boost)
            h = torch.linalg.solve(basis, (basis.mT @ blocks).mT).mT  # basisᵀ · blocks · basis⁻ᵀ
            g = self._inverse @ h @ self._S
        else:
            g = self._inverse @ self._exponentials(k, generator, max_boost) @ self._S
        if self.special and (mirrors := self._reflections()):
            mirror = self._inverse @ mirrors[0] @ self._S
            g = torch.where((torch.linalg.det(g) < 0)[:, None, None], g @ mirror, g)
        return g

    def _exponentials(self, k: int, generator: torch.Generator, max_boost: float) -> Tensor:
        eye, X = torch.eye(self.form.n, dtype=torch.float64), self._generators()
        g = eye.repeat(k, 1, 1)
        for mirror in [eye, *self._reflections()]:
            u = uniform(max_boost, generator, k, len(X))
            flip = torch.rand(k, 1, 1, dtype=torch.float64, generator=generator) < 0.5
            turn = torch.linalg.matrix_exp(torch.einsum("km,mij->kij", u, X))
            g = g @ torch.where(flip, mirror, eye) @ turn
        return g

    def _reflections(self) -> list[Tensor]:
        """Reflections across vectors of the complement, one with q > 0 and one with q < 0 where there are."""
        values, Q = torch.linalg.eigh(self._inner)
        eye = torch.eye(self.form.n, dtype=torch.float64)
        found: dict[float, Tensor] = {}
        for value, column in zip(values, Q.mT):
            if abs(float(value)) > NEARLY_NULL and float(value.sign()) not in found:
                w = column @ self._across
                found[float(value.sign())] = eye - 2 * torch.outer(w, w * self._J) / value
        return list(found.values())


def unit_directions(given: Any, n: int) -> Tensor:
    """Directions of length one and sign plus, if they are independent."""
    if given is None or len(given) == 0:
        return torch.zeros(0, n, dtype=torch.float64)
    s = checks.as_tensor(given, "directions", integers=True).double()
    checks.require_finite(s, "directions", checks.NUMBERS)
    if s.ndim != 2 or s.shape[1] != n:
        raise ValueError(f"directions have shape {tuple(s.shape)}: give (d, {n}), one row for each")
    length = s.norm(dim=1, keepdim=True)
    if bool((length == 0).any()):
        raise ValueError("a direction is zero, which every map leaves alone: leave it out")
    # a stored direction must come back to the last bit
    s = torch.where((length - 1).abs() > 1e-14, s / length, s)
    if len(s) > n or float(torch.linalg.svdvals(s)[-1]) <= SAME:
        raise ValueError(
            f"{len(s)} directions are not independent: what keeps some keeps the others, give fewer"
        )
    # The sign is that of a large component: noise shall not choose it. Of components alike, the first.
    sizes = s.abs()
    large = sizes > (1 - SAME) * sizes.amax(1, keepdim=True)
    return s * s.gather(1, large.to(torch.int8).argmax(1, keepdim=True)).sign()


def check_forms(forms: tuple[QuadraticForm, ...], spaces: tuple[int, ...]) -> None:
    """Refuse forms without vectors, and vectors without a form."""
    if not forms:
        raise ValueError("there is no form: give at least one")
    if set(spaces) != set(range(len(forms))) and (spaces or len(forms) > 1):
        raise ValueError(
            f"spaces = {list(spaces)} for {len(forms)} form(s): give the index of its form, 0 to {len(forms) - 1}, "
            "for each vector of a sample, and every form a vector"
        )


def check_breaks(forms: tuple[QuadraticForm, ...], spaces: tuple[int, ...], broken: bool, skew: bool) -> None:
    """Refuse handedness, directions and an origin beside several forms or a skew one."""
    if skew and (broken or spaces or len(forms) > 1):
        raise ValueError(
            "a skew form is supported alone or beside one quadratic form: leave out special, directions, origin and "
            "spaces"
        )
    if len(forms) > 1 and broken:
        raise ValueError(
            "several forms are supported for full groups O(A) only: leave out special, directions and origin"
        )
