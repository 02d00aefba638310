"""Which wider symmetries to try, and what can be determined about them (M15, M16, M17)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from gortho.discovery.refits import align_signs
from gortho.discovery.wider.claim import Claim
from gortho.notation import listed
from gortho.reps import DirectSum, Rep
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: What may be looked for.
LOOK_FOR = ("O", "SO", "direction", "origin", "spaces", "skew")
#: Handed outputs have at most this many components of all products of vectors, metric and volume: more take minutes.
MOST_COMPONENTS = 400
#: Splits of the vectors into two kinds are tried for at most this many vectors.
MOST_OF_KINDS = 3
#: Fixed directions, at most.
MOST_DIRECTIONS = 2
#: Of forms that cannot be told apart, one sign more alike is worth this factor of the condition, as a logarithm.
LIKE_SIGNS = 1.0


@dataclass(frozen=True)
class Asked:
    """What a caller asks for, beside the samples."""

    look_for: frozenset[str]
    axial: tuple[int, ...] = ()
    spaces: tuple[int, ...] = ()
    odd: bool = False  # the output was told to be odd

    @property
    def parity(self) -> bool:
        """Whether vectors or the output were told to be axial: the O(A) of such a law is not the plain one."""
        return self.odd or bool(self.axial)

    @classmethod
    def of(cls, look_for: Any, axial: Any, spaces: Any, rep: Rep, points: int, set_like: bool) -> Asked:
        """What was given, checked."""
        from gortho.nn.basis import axial_places

        wanted = LOOK_FOR if look_for == "auto" else look_for
        wanted = (wanted,) if isinstance(wanted, str) else wanted
        if not isinstance(wanted, Collection) or not wanted or not set(wanted) <= set(LOOK_FOR):
            told = ",".join(map(str, wanted)) if isinstance(wanted, Collection) and wanted else repr(look_for)
            raise ValueError(f"look_for = {told}: give auto, or some of {', '.join(LOOK_FOR)}")
        places = axial_places(() if axial is None else axial, points, set_like)
        kinds = tuple(int(s) for s in (() if spaces is None else spaces))
        if kinds and (len(kinds) != points or set(kinds) != set(range(max(kinds) + 1))):
            raise ValueError(
                f"spaces = {list(kinds)} for {points} vectors: give the index of its form, from 0, for each vector"
            )
        return cls(frozenset(wanted), places, kinds, any(part.odd for part in rep.parts))


def even_rep(rep: Rep) -> Rep:
    """The same indices without parity."""
    parts = tuple(part.even for part in rep.parts)
    return DirectSum(parts) if isinstance(rep, DirectSum) else parts[0]


def claims_for(samples: Samples, asked: Asked) -> list[Claim]:
    """The claims to try, from the simplest on."""
    n, k, look_for = samples.n, samples.points, asked.look_for
    one, several = len(samples.rep.parts) == 1, k > 1 and not samples.set_like
    told: dict[str, Any] = {"axial": asked.axial, "odd": asked.odd and one}
    # All ways to tell few vectors apart as two kinds, where these are not given.
    pairs = [(0, *rest) for rest in product((0, 1), repeat=k - 1) if any(rest)] if k <= MOST_OF_KINDS else []
    kinds = [asked.spaces] if asked.spaces else pairs
    found = []
    skew = "skew" in look_for and not samples.set_like and not asked.spaces and not any(told.values())
    if skew and several:
        found.append(Claim("a skew form", skew=True))
    if any(told.values()):
        found.append(Claim("parity as told", **told))
    if "SO" in look_for and one and not any(told.values()):
        found.append(Claim("an axial output", odd=True))
    if "SO" in look_for:
        found.append(Claim("handedness", special=True))
    if "origin" in look_for:
        found.append(Claim("an origin", origin=True, **told))
    if "spaces" in look_for and several:
        found += [
            Claim(spaces_name(given, space), spaces=given, output_space=space)
            for given in kinds
            for space in range(max(given) + 1)
            if space == 0 or any(part.rank for part in samples.rep.parts)
        ]
    if "spaces" in look_for and several and not any(told.values()):
        found += _linked(samples, kinds)
    if "direction" in look_for:
        counts = {1: "a direction"} | {d: f"{d} directions" for d in range(2, MOST_DIRECTIONS + 1)}
        counts = {d: name for d, name in counts.items() if n - d >= 2}  # else no continuous symmetry is left
        found += [Claim(name, directions=d, **told) for d, name in counts.items()]
        if "SO" in look_for and not any(told.values()):
            found += [
                Claim(f"{name} and handedness", directions=d, special=True) for d, name in counts.items()
            ]
    if skew and n > 2:  # in a plane that is SO(2)
        found.append(Claim("a hermitian form", unitary=True))
    return [claim for claim in found if _possible(claim, samples)]


def spaces_name(kinds: Sequence[int], output: int = 0) -> str:
    """Several spaces in words.

    >>> spaces_name([0, 0, 1])
    'two spaces (x1, x2; x3)'
    >>> spaces_name([0, 1, 2], output=2)
    '3 spaces (x1; x2; x3), y in that of x3'
    """
    groups = [
        [f"x{i + 1}" for i, kind in enumerate(kinds) if kind == space] for space in range(max(kinds) + 1)
    ]
    count = "two" if len(groups) == 2 else str(len(groups))
    own = f", y in that of {groups[output][0]}" if output else ""
    return f"{count} spaces ({'; '.join(', '.join(group) for group in groups)}){own}"


def _linked(samples: Samples, kinds: list[tuple[int, ...]]) -> list[Claim]:
    """Spaces that move together; the first of them is that of the output, where it has indices."""
    indices = any(part.rank for part in samples.rep.parts)
    found = []
    for given in kinds:
        for first in range(max(given) + 1 if indices else 1):
            spaces = tuple(0 if space == first else space + (space < first) for space in given)
            names = listed([f"x{i + 1}" for i, space in enumerate(spaces) if space])
            found.append(Claim(f"{names} in another frame", spaces=spaces, linked=True))
    return found


def _possible(claim: Claim, samples: Samples) -> bool:
    """Whether there is a law of this claim, of a size that can be searched for, which O(A) does not have."""
    try:
        basis = claim.template(claim.of(samples)).basis
    except ValueError:
        return False
    if claim.skew or claim.unitary:
        ranks = [part.rank for part in samples.rep.parts]
        return max(ranks) <= 1 and (samples.points > 1 or max(ranks) == 1)
    if not claim.special and not claim.odd:
        return True
    products = sum(torch.Size(shape).numel() for part in basis.shapes for shape in part)
    small = products * samples.rep.size(samples.n) <= MOST_COMPONENTS
    return basis.handed and not samples.set_like and small


# The pencil of forms that a direction leaves open


def representative(claim: Claim, theta: Tensor, n: int) -> Tensor:
    """θ with the form of least condition among A + Σ t_ij (Ab_i)(Ab_j)ᵀ: no law with these directions tells them apart.

    A form with more signs alike is worth a somewhat larger condition.
    """
    if not claim.directions:
        return theta
    forms, s, c = claim.split(theta, n)
    s = torch.linalg.qr(s.mT)[0].mT * n**0.5  # of a span, any basis will do
    A, d = forms[0], claim.directions
    a, G = s @ A, s @ A @ s.mT
    if float(torch.linalg.cond(G)) > 1e6:
        return theta
    i, j = torch.triu_indices(d, d)
    inverse = torch.linalg.inv(G)

    def form(t: np.ndarray) -> Tensor:
        T = A.new_zeros(d, d)
        T[i, j] = T[j, i] = torch.as_tensor(t, dtype=A.dtype)
        return A + a.mT @ T @ a

    def score(t: np.ndarray) -> float:
        values = torch.linalg.eigvalsh(form(t))
        fewer = min(int((values > 0).sum()), int((values < 0).sum()))
        sizes = values.abs()
        return float((sizes.max() / sizes.min().clamp_min(1e-300)).log()) + LIKE_SIGNS * fewer

    best = np.zeros(len(i))
    for size in (0.3, 1.0, 3.0):
        for signs in product((1.0, -1.0), repeat=d):
            wanted = size * torch.diag(torch.tensor(signs, dtype=A.dtype)) * (s @ s.mT).diagonal()
            T = inverse @ (wanted - G) @ inverse
            end = minimize(score, T[i, j].numpy(), method="Nelder-Mead").x
            best = min(best, end, key=score)
    return claim.gauged(claim.join(form(best), s, c), n)


def aligned(claim: Claim, theta: Tensor, like: Tensor, n: int) -> Tensor:
    """θ with signs, and along the pencil, as near as can be to another one."""
    forms, s, c = claim.split(theta, n)
    others, t, _ = claim.split(like, n)
    forms = align_signs(forms, others)
    if claim.directions:
        s = _nearest(s, t)
        a = s @ forms[0]
        pairs = [(i, j) for i in range(len(a)) for j in range(i + 1)]
        columns = [forms[0]] + [a[i, :, None] * a[j] + a[j, :, None] * a[i] for i, j in pairs]
        D = torch.stack([column.flatten() for column in columns], 1)
        x = torch.linalg.lstsq(D, others[0].flatten()[:, None]).solution[:, 0]
        forms = unit_form((D @ x).reshape(1, n, n))
    return claim.join(forms, s, c)


def _nearest(s: Tensor, t: Tensor) -> Tensor:
    """The vectors in the span of s that are nearest to those of t, of the same lengths."""
    Q, _ = torch.linalg.qr(s.mT)
    near = t @ Q @ Q.mT
    return near * (t.norm(dim=1, keepdim=True) / near.norm(dim=1, keepdim=True).clamp_min(1e-300))


def angles(s: Tensor, t: Tensor) -> Tensor:
    """Angles between vectors, row by row, in degrees."""
    cos = (s * t).sum(1).abs() / (s.norm(dim=1) * t.norm(dim=1))
    return torch.rad2deg(torch.arccos(cos.clamp(max=1.0)))


def axial_choices(k: int) -> Sequence[tuple[int, ...]]:
    """Places of vectors that may be axial: none, one, more."""
    subsets = product((False, True), repeat=k)
    return sorted((tuple(i for i, on in enumerate(s) if on) for s in subsets), key=len)
