"""Symmetries: what is claimed of a law, as one printable value (M15, M16, M17).

The simplest symmetry is O(A) of one form. A law may keep less of it: rotations but no reflections (SO(A)), only the
maps that leave given directions alone, only maps about an origin other than zero. Or vectors of several kinds may have
a form each. Or a skew form is kept, in place of a quadratic one (Sp) or beside it (unitary groups).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gortho import checks, notation
from gortho.forms import QuadraticForm
from gortho.groups import random_generator
from gortho.skew import SkewForm
from gortho.stabiliser import SAME, Stabiliser, check_forms, unit_directions
from gortho.symplectic import SymplecticGroup, UnitaryGroup


class Symmetry:
    """The group that a law keeps: x ↦ c + g(x - c), with g in O(A) or SO(A) and g s = s for fixed directions s.

    Args:
        forms: a `QuadraticForm` or matrix, or several, one for each kind of vector; None with a skew form alone.
            Where their dimensions differ, shorter vectors are filled up with zeros (`gortho.samples.side_by_side`).
        spaces: with several forms, the number of the form of each vector of a sample: ``[0, 0, 1]``.
        special: only maps with det g = 1, which keep left and right apart: SO(A).
        directions: fixed vectors s ``(d, n)``, independent of each other. Their lengths and signs mean nothing, and
            are chosen here: |s| = 1, first component that is not zero positive.
        origin: the fixed point c ``(n,)``; None for zero.
        skew: a `SkewForm` or skew matrix ω that is kept, too. Alone it gives Sp(ω), beside a compatible form a unitary
            group.

    >>> gravity = Symmetry(QuadraticForm.euclidean(3), directions=[[0, 0, -9.8]])
    >>> print(gravity, "|", gravity.residual_name)
    O(3), broken along (0.00, 0.00, 1.00) | O(2)
    >>> Symmetry.parse("SO(1,3)") == Symmetry(QuadraticForm.minkowski(), special=True)
    True
    >>> print(Symmetry(skew=SkewForm.canonical(4)), Symmetry(QuadraticForm.euclidean(4), skew=SkewForm.canonical(4)))
    Sp(4) U(2)
    """

    __slots__ = ("_directions", "_origin", "forms", "skew", "spaces", "special")
    forms: tuple[QuadraticForm, ...]
    spaces: tuple[int, ...]
    special: bool
    _directions: Tensor
    _origin: Tensor | None
    skew: SkewForm | None

    def __init__(
        self,
        forms: Any = None,
        *,
        spaces: Sequence[int] = (),
        special: bool = False,
        directions: Any = None,
        origin: Any = None,
        skew: Any = None,
    ):
        several = isinstance(forms, (list, tuple)) and all(isinstance(f, QuadraticForm) for f in forms)
        given = () if forms is None else tuple(forms) if several else (forms,)
        values = {
            "forms": tuple(f if isinstance(f, QuadraticForm) else QuadraticForm(f) for f in given),
            "spaces": tuple(int(s) for s in spaces),
            "special": bool(special),
            "skew": skew if skew is None or isinstance(skew, SkewForm) else SkewForm(skew),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)
        if self.skew is None or self.forms:
            check_forms(self.forms, self.spaces)
        object.__setattr__(self, "_directions", unit_directions(directions, self.n))
        if origin is not None:
            origin = checks.vectors(origin, self.n, "origin").double().clone()
            if origin.ndim != 1:
                raise ValueError(f"the origin has shape {tuple(origin.shape)}: give one point ({self.n},)")
        object.__setattr__(self, "_origin", origin)
        self._check_what_breaks()

    def __setattr__(self, key: str, value: Any) -> None:
        raise AttributeError(f"a Symmetry does not change: make a new one instead of setting {key!r}")

    def _check_what_breaks(self) -> None:
        broken = self.special or self.origin is not None or len(self.directions) > 0
        if self.skew is not None:
            if broken or self.spaces or len(self.forms) > 1:
                raise ValueError(
                    "a skew form is supported alone or beside one quadratic form: leave out special, directions, "
                    "origin and spaces"
                )
            self._group()  # raises where the two are not compatible
            return
        if len(self.forms) > 1 and broken:
            raise ValueError(
                "several forms are supported for full groups O(A) only: leave out special, directions and origin"
            )
        if self.form.signature.zero and (self.special or len(self.directions)):
            raise ValueError(
                f"{self.form.group_name}: the form is singular, so det g may be any number, and directions are not "
                "split off; leave out special and directions, or give a form without zero eigenvalues"
            )

    @classmethod
    def of(cls, symmetry: Any) -> Symmetry:
        """Read a symmetry: one already, its name ("SO(3)"), or a form, whose whole group O(A) or Sp(ω) is meant."""
        if isinstance(symmetry, str):
            return cls.parse(symmetry)
        if isinstance(symmetry, SkewForm):
            return cls(skew=symmetry)
        return symmetry if isinstance(symmetry, Symmetry) else cls(symmetry)

    # The value

    @property
    def form(self) -> QuadraticForm:
        """The form; with several, the first."""
        if not self.forms:
            raise ValueError(f"{self} keeps no quadratic form: see its skew form, symmetry.skew")
        return self.forms[0]

    def form_of(self, space: int) -> QuadraticForm:
        """The form of one of the spaces."""
        if space not in range(len(self.forms)):
            raise ValueError(f"space {space} of {self}: there are {len(self.forms)}, from 0 on")
        return self.forms[space]

    @property
    def n(self) -> int:
        """Dimension of the vectors; of several kinds, of the longest."""
        return max(form.n for form in self.forms) if self.skew is None else self.skew.n

    @property
    def dims(self) -> tuple[int, ...]:
        """Dimensions of the vectors, kind by kind."""
        return tuple(form.n for form in self.forms) if self.skew is None else (self.skew.n,)

    @property
    def directions(self) -> Tensor:
        """Fixed directions ``(d, n)``, float64."""
        return self._directions.clone()

    @property
    def origin(self) -> Tensor | None:
        """The fixed point ``(n,)``, or None for zero."""
        c = self._origin
        return None if c is None else c.clone()

    @property
    def plain(self) -> bool:
        """Whether it is O(A) of one form and nothing else."""
        bare = not self.special and self.skew is None and self.origin is None
        return len(self.forms) == 1 and bare and not len(self.directions)

    @property
    def group_name(self) -> str:
        """The group before directions break it: "O(3)", "SO(1,3)", "O(3) × O(1,2)", "Sp(4)", "U(2)"."""
        if self.skew is not None:
            return self._group().name
        return " × ".join(("S" if self.special else "") + form.group_name for form in self.forms)

    @property
    def residual_name(self) -> str:
        """The group that is left: the stabiliser of the directions, "O(2)" for one in O(3)."""
        return self.group_name if len(self.forms) > 1 else self._group().name

    # The group

    def _group(self) -> Stabiliser | SymplecticGroup | UnitaryGroup:
        if self.skew is not None:
            return UnitaryGroup(self.form, self.skew) if self.forms else SymplecticGroup(self.skew)
        return Stabiliser(self.form, self.directions, self.special)

    @property
    def generators(self) -> Tensor:
        """A basis of the residual Lie algebra, float64 ``(m, n, n)``; of several forms ``(m, forms, n, n)``."""
        if len(self.forms) <= 1:
            return self._group().algebra()
        found = []
        for place, form in enumerate(self.forms):
            own = form.group().algebra()
            spread = own.new_zeros(len(own), len(self.forms), self.n, self.n)
            spread[:, place, : form.n, : form.n] = own
            found.append(spread)
        return torch.cat(found)

    def contains(self, g: Any, tolerance: float = 1e-10) -> Tensor:
        """Whether linear parts ``(..., n, n)``, of several forms ``(..., forms, n, n)``, are in the group; bool."""
        if len(self.forms) <= 1:
            return self._group().contains(g, tolerance)
        g = self._elements(g)
        each = [
            form.group().contains(g[..., i, : form.n, : form.n], tolerance)
            for i, form in enumerate(self.forms)
        ]
        return torch.stack(each).all(0)

    def _elements(self, g: Any) -> Tensor:
        g, several = checks.square(g, "g", self.n), len(self.forms)
        if several > 1 and (g.ndim < 3 or g.shape[-3] != several):
            raise ValueError(f"g has shape {tuple(g.shape)}: give (..., {several}, {self.n}, {self.n})")
        return g

    def sample(self, k: int, seed: int | torch.Generator = 0, max_boost: float = 1.0) -> Tensor:
        """``k`` random elements of the residual group: their linear parts, as `contains` and `act` take them."""
        if len(self.forms) <= 1:
            return self._group().sample(k, seed, max_boost)
        generator = random_generator(seed)
        g = torch.eye(self.n, dtype=torch.float64).repeat(k, len(self.forms), 1, 1)
        for place, form in enumerate(self.forms):
            g[:, place, : form.n, : form.n] = form.group().sample(k, generator, max_boost)
        return g

    def act(self, g: Any, x: Any, axial: Sequence[int] = ()) -> Tensor:
        """The tuples ``(..., p, n)`` moved by g: c + g(x_i - c), with g of the space of x_i, and det g for axial x_i.

        >>> about = Symmetry(QuadraticForm.euclidean(2), origin=[1.0, 0.0])
        >>> about.act([[0.0, -1.0], [1.0, 0.0]], [[2.0, 0.0]])
        tensor([[1., 1.]], dtype=torch.float64)
        """
        x, c = checks.vectors(x, self.n), self.origin
        g = self._elements(g).to(x)
        if len(self.forms) > 1:
            self.check_points(x.shape[-2] if x.ndim > 1 else 1)
            g = g[..., list(self.spaces), :, :]
        else:
            g = g[..., None, :, :]
        if len(axial):
            turned = torch.zeros(x.shape[-2], dtype=torch.bool).index_fill(0, torch.tensor(axial), True)
            g = torch.where(turned[:, None, None], torch.linalg.det(g).sign()[..., None, None] * g, g)
        moved = (g @ (x if c is None else x - c.to(x))[..., None])[..., 0]
        return moved if c is None else moved + c.to(x)

    def check_points(self, points: int) -> None:
        """Refuse tuples of another number of vectors than there are spaces."""
        if self.spaces and points != len(self.spaces):
            raise ValueError(
                f"{points} vectors in a sample, but spaces = {list(self.spaces)} names the form of {len(self.spaces)}"
            )

    def in_basis(self, T: Any) -> Symmetry:
        """The same symmetry in other coordinates z = Tx: forms T⁻ᵀAT⁻¹, directions Ts, origin Tc (M18)."""
        if len(set(self.dims)) > 1:
            raise ValueError(
                f"{self} has vectors of {list(self.dims)} components: change the basis form by form"
            )
        T = checks.square(T, "T", self.n).double()
        back, c = torch.linalg.inv(T), self.origin
        return Symmetry(
            [QuadraticForm(back.mT @ form.matrix @ back, tolerance=form.tolerance) for form in self.forms],
            spaces=self.spaces,
            special=self.special,
            directions=self.directions @ T.mT,
            origin=None if c is None else T @ c,
            skew=None if self.skew is None else self.skew.in_basis(T),
        )

    # Comparing, printing and storing

    def __eq__(self, other: object) -> bool:
        """The same forms up to gauge, the same span of directions, the same origin up to that span; to rounding."""
        if not isinstance(other, Symmetry):
            return NotImplemented
        if (self.n, self.spaces, self.special) != (other.n, other.spaces, other.special):
            return False
        if self.skew != other.skew:
            return False
        if self.forms != other.forms or len(self.directions) != len(other.directions):
            return False
        here, there = (torch.linalg.qr(s.directions.mT)[0] for s in (self, other))
        apart = there - here @ (here.mT @ there)
        zero = torch.zeros(self.n, dtype=torch.float64)
        c, d = (zero if s.origin is None else s.origin for s in (self, other))
        shift = (c - d) - here @ (here.mT @ (c - d))
        return bool(apart.norm() <= SAME) and bool(shift.norm() <= SAME * max(c.norm(), d.norm()))

    # Equality has a tolerance, so only what survives rounding may enter the hash.
    def __hash__(self) -> int:
        return hash((self.forms, self.spaces, self.special, len(self.directions)))

    def __str__(self) -> str:
        if self.skew is not None:
            return self.group_name
        return notation.write(self.forms, self.spaces, self.special, self.directions, self.origin)

    def __repr__(self) -> str:
        options = {
            "spaces": list(self.spaces),
            "special": self.special,
            "directions": self.directions.tolist(),
            "origin": None if self.origin is None else self.origin.tolist(),
            "skew": self.skew,
        }
        given = "".join(
            f", {key}={value!r}" for key, value in options.items() if value not in ([], False, None)
        )
        forms = (self.forms[0] if len(self.forms) == 1 else list(self.forms)) if self.forms else None
        return f"Symmetry({forms!r}{given})"

    @classmethod
    def parse(cls, text: str) -> Symmetry:
        """Read what print writes, with plain forms diag(±1, 0) for the groups' names.

        >>> for text in ("O(3) about (0.5, -0.3, 0.8)", "SO(3), broken along (0.00, 0.60, 0.80)"):
        ...     assert str(Symmetry.parse(text)) == text
        >>> Symmetry.parse("O(3) on x1 and x2, O(1,2) on x3").spaces
        (0, 0, 1)
        """
        return cls(**notation.read(text))

    def to_json(self) -> str:
        """The symmetry as JSON text; `from_json` reads it back to the last bit."""
        content = {
            "forms": [json.loads(form.to_json()) for form in self.forms],
            "spaces": self.spaces,
            "special": self.special,
            "directions": self.directions.tolist(),
            "origin": None if self.origin is None else self.origin.tolist(),
            "skew": None if self.skew is None else json.loads(self.skew.to_json()),
        }
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> Symmetry:
        """Read what `to_json` wrote."""
        try:
            content = json.loads(text)
            forms = [QuadraticForm.from_json(json.dumps(form)) for form in content.pop("forms")]
            skew = content.pop("skew", None)
            skew = None if skew is None else SkewForm.from_json(json.dumps(skew))
            return cls(forms or None, skew=skew, **content)
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"this is not a symmetry written by to_json ({error!r}): {text[:60]!r}"
            ) from None

    def __reduce__(self) -> tuple:
        return Symmetry.from_json, (self.to_json(),)
