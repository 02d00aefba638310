"""Symmetries of a law, as one printable value (M15, M16, M17).

The simplest symmetry is O(A) of one form. A law may respect less of it: rotations but no reflections (SO(A)), only the
maps that fix given directions, only maps about an origin other than zero. Or vectors of several kinds may each have
a form, or move together, each in a frame of its own. Or the law preserves a skew form, instead of a quadratic one (Sp)
or in addition to it (unitary groups).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gortho import checks, notation
from gortho.forms import QuadraticForm
from gortho.immutable import Immutable
from gortho.kinds import LinkedGroup, ProductGroup, elements, unit_maps
from gortho.skew import SkewForm
from gortho.stabiliser import SAME, Stabiliser, check_breaks, check_forms, unit_directions
from gortho.symplectic import SymplecticGroup, UnitaryGroup


class SingularError(ValueError):
    """A singular form, where only those without zero eigenvalues will do."""


class Symmetry(Immutable):
    """The symmetry group of a law: x ↦ c + g(x - c), with g in O(A) or SO(A) and g b = b for fixed directions b.

    Args:
        forms: a `QuadraticForm` or matrix, or several, one for each kind of vector; None with a skew form alone.
            If their dimensions differ, shorter vectors are padded with zeros (`gortho.samples.side_by_side`).
        spaces: with several forms, the index of the form of each vector of a sample: ``[0, 0, 1]``.
        special: only maps with det g = 1, which preserve handedness: SO(A).
        directions: fixed vectors b ``(d, n)``, linearly independent. Their lengths and signs have no meaning, and
            are normalised: |b| = 1, largest component positive.
        origin: the fixed point c ``(n,)``; None for zero.
        skew: a `SkewForm` or skew matrix ω that is also preserved. Alone it gives Sp(ω), with a compatible form a
            unitary group.
        maps: matrices T ``(n, n)``, with one form and several ``spaces``: T takes the vectors of space 1, 2, … to the
            frame of space 0, in which all move together. Their scales have no meaning, and are normalised.

    >>> gravity = Symmetry(QuadraticForm.euclidean(3), directions=[[0, 0, -9.8]])
    >>> print(gravity, "|", gravity.residual_name)
    O(3), broken along (0.00, 0.00, 1.00) | O(2)
    >>> Symmetry.parse("SO(1,3)") == Symmetry(QuadraticForm.minkowski(), special=True)
    True
    >>> print(Symmetry(skew=SkewForm.canonical(4)), Symmetry(QuadraticForm.euclidean(4), skew=SkewForm.canonical(4)))
    Sp(4) U(2)
    """

    __slots__ = ("_directions", "_maps", "_origin", "forms", "skew", "spaces", "special")
    forms: tuple[QuadraticForm, ...]
    spaces: tuple[int, ...]
    special: bool
    _directions: Tensor
    _origin: Tensor | None
    _maps: Tensor | None
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
        maps: Any = None,
    ):
        several = isinstance(forms, (list, tuple)) and all(isinstance(f, QuadraticForm) for f in forms)
        given = () if forms is None else tuple(forms) if several else (forms,)
        self._set(
            forms=tuple(f if isinstance(f, QuadraticForm) else QuadraticForm(f) for f in given),
            spaces=tuple(int(s) for s in spaces),
            special=bool(special),
            skew=skew if skew is None or isinstance(skew, SkewForm) else SkewForm(skew),
        )
        self._link(maps)
        if self.skew is None or self.forms:
            check_forms(self.forms, self.spaces)
        self._set(_directions=unit_directions(directions, self.n))
        if origin is not None:
            origin = checks.vectors(origin, self.n, "origin").double().clone()
            if origin.ndim != 1:
                raise ValueError(f"the origin has shape {tuple(origin.shape)}: give one point ({self.n},)")
        self._set(_origin=origin)
        self._check_what_breaks()

    def _link(self, maps: Any) -> None:
        """Store the maps, and the forms that follow from the first one."""
        self._set(_maps=None)
        if maps is None or len(maps) == 0:
            return
        if len(self.forms) != 1:
            raise ValueError(f"maps take vectors to the frame of one form, not of {len(self.forms)}")
        form, T = self.form, unit_maps(maps, self.form.n)
        self._set(_maps=T, forms=(form, *(form.of_image(M, form.names) for M in T)))

    def _check_what_breaks(self) -> None:
        broken = self.special or self.origin is not None or len(self.directions) > 0
        check_breaks(self.forms, self.spaces, broken, self.skew is not None)
        if self.skew is not None:
            self._group()  # raises where the two are not compatible
        elif self.form.signature.zero and (self.special or len(self.directions)):
            raise SingularError(
                f"{self.form.group_name}: the form is singular, so det g may be any number, and directions are not "
                "split off; leave out special and directions, or give a form without zero eigenvalues"
            )

    @classmethod
    def of(cls, symmetry: Any) -> Symmetry:
        """Convert to a symmetry: from one, from its name ("SO(3)"), or from a form, which stands for O(A) or Sp(ω)."""
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
        """Dimension of the vectors; for several kinds, the largest."""
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
    def maps(self) -> Tensor:
        """Maps of space 1, 2, … to the frame of space 0, ``(spaces - 1, n, n)``; empty if not linked."""
        T = self._maps
        return torch.zeros(0, self.n, self.n, dtype=torch.float64) if T is None else T.clone()

    @property
    def linked(self) -> bool:
        """Whether vectors of several kinds move together."""
        return self._maps is not None

    @property
    def frames(self) -> Tensor:
        """If spaces move together, the map of each vector of a sample to the frame of space 0, ``(p, n, n)``."""
        every = torch.cat([torch.eye(self.n, dtype=torch.float64)[None], self.maps])
        return every[list(self.spaces)] if self.linked else every[:0]

    @property
    def apart(self) -> tuple[int, ...]:
        """The space of each vector, where vectors of several spaces have no inner products."""
        return () if self.linked else self.spaces

    @property
    def plain(self) -> bool:
        """Whether it is O(A) of one form and nothing else."""
        bare = not self.special and self.skew is None and self.origin is None
        return len(self.forms) == 1 and bare and not len(self.directions)

    @property
    def group_name(self) -> str:
        """The group before directions break it: "O(3)", "SO(1,3)", "O(3) × O(1,2)", "Sp(4)", "U(2)"."""
        if self.skew is not None or len(self.forms) > 1:
            return self._group().name
        return "S" * self.special + self.form.group_name

    @property
    def residual_name(self) -> str:
        """The remaining group: the stabiliser of the directions, "O(2)" for one in O(3)."""
        return self._group().name

    # The group

    def _group(self) -> Stabiliser | SymplecticGroup | UnitaryGroup | ProductGroup | LinkedGroup:
        if self.skew is not None:
            return UnitaryGroup(self.form, self.skew) if self.forms else SymplecticGroup(self.skew)
        if self.linked:
            return LinkedGroup(self.form, self.maps)
        if len(self.forms) > 1:
            return ProductGroup(self.forms)
        return Stabiliser(self.form, self.directions, self.special)

    @property
    def generators(self) -> Tensor:
        """A basis of the residual Lie algebra, float64 ``(m, n, n)``; of several forms ``(m, forms, n, n)``."""
        return self._group().algebra()

    def contains(self, g: Any, tolerance: float = 1e-10) -> Tensor:
        """Whether linear parts ``(..., n, n)``, of several forms ``(..., forms, n, n)``, are in the group; bool."""
        return self._group().contains(g, tolerance)

    def sample(self, k: int, seed: int | torch.Generator = 0, max_boost: float = 1.0) -> Tensor:
        """``k`` random elements of the residual group: their linear parts, as `contains` and `act` take them."""
        return self._group().sample(k, seed, max_boost)

    def act(self, g: Any, x: Any, axial: Sequence[int] = ()) -> Tensor:
        """The tuples ``(..., p, n)`` moved by g: c + g(x_i - c), with g of the space of x_i, and det g for axial x_i.

        >>> about = Symmetry(QuadraticForm.euclidean(2), origin=[1.0, 0.0])
        >>> about.act([[0.0, -1.0], [1.0, 0.0]], [[2.0, 0.0]])
        tensor([[1., 1.]], dtype=torch.float64)
        """
        x, c = checks.vectors(x, self.n), self.origin
        g = elements(g, len(self.forms), self.n).to(x)
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
        """Refuse tuples whose number of vectors differs from the number of spaces given."""
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
            [form.of_image(back) for form in self._given],
            spaces=self.spaces,
            special=self.special,
            directions=self.directions @ T.mT,
            origin=None if c is None else T @ c,
            skew=None if self.skew is None else self.skew.in_basis(T),
            maps=T @ self.maps @ back,
        )

    # Comparing, printing and storing

    def __eq__(self, other: object) -> bool:
        """The same forms up to gauge, the same span of directions, the same origin up to that span; to rounding."""
        if not isinstance(other, Symmetry):
            return NotImplemented
        if (self.n, self.spaces, self.special) != (other.n, other.spaces, other.special):
            return False
        if self.skew != other.skew or self.linked != other.linked:
            return False
        if self.linked and float((self.maps - other.maps).abs().max()) > SAME:
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
        return notation.write(
            self.forms, self.spaces, self.special, self.directions, self.origin, self.linked
        )

    @property
    def _options(self) -> dict[str, Any]:
        """Everything but the forms, as lists and numbers."""
        return {
            "spaces": list(self.spaces),
            "special": self.special,
            "directions": self.directions.tolist(),
            "origin": None if self.origin is None else self.origin.tolist(),
            "maps": self.maps.tolist(),
        }

    @property
    def _given(self) -> tuple[QuadraticForm, ...]:
        """The forms from which the others follow."""
        return self.forms[: 1 if self.linked else None]

    def __repr__(self) -> str:
        options = self._options | {"skew": self.skew}
        given = "".join(
            f", {key}={value!r}" for key, value in options.items() if value not in ([], False, None)
        )
        forms = self._given[0] if len(self._given) == 1 else list(self._given) or None
        return f"Symmetry({forms!r}{given})"

    @classmethod
    def parse(cls, text: str) -> Symmetry:
        """Parse what print writes, with standard forms diag(±1, 0) for the groups' names.

        >>> for text in ("O(3) about (0.5, -0.3, 0.8)", "SO(3), broken along (0.00, 0.60, 0.80)"):
        ...     assert str(Symmetry.parse(text)) == text
        >>> Symmetry.parse("O(3) on x1 and x2, O(1,2) on x3").spaces
        (0, 0, 1)
        """
        return cls(**notation.read(text))

    def content(self) -> dict[str, Any]:
        """Forms and options, ready for JSON."""
        forms = [form.content() for form in self._given]
        return self._options | {"forms": forms, "skew": None if self.skew is None else self.skew.content()}

    @classmethod
    def of_content(cls, content: dict[str, Any]) -> Symmetry:
        """The symmetry with this content."""
        skew, forms = content.get("skew"), [QuadraticForm.of_content(form) for form in content["forms"]]
        made = {"forms": forms or None, "skew": None if skew is None else SkewForm.of_content(skew)}
        return cls(**content | made)
