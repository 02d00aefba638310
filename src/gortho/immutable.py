"""`Immutable`: values that never change, kept by JSON and pickle to the last bit; `MatrixForm`, a matrix with names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

#: An eigenvalue counts as zero when its size is below this fraction of the largest one.
ZERO_TOLERANCE = 1e-8


def unit_size(M: Tensor) -> Tensor:
    """The matrix with ‖M‖_F = √n; a stored one comes back to the last bit."""
    size = len(M) ** 0.5
    if abs(float(torch.linalg.matrix_norm(M)) / size - 1) <= 1e-14:
        return M
    M = M / M.abs().max()  # first, so that squares neither overflow nor vanish
    return M / torch.linalg.matrix_norm(M) * size


def telling(sizes: Tensor, zero: int, tolerance: float) -> float:
    """The tolerance, if so many of these eigenvalues count as zero by it, or else one between those and the others.

    >>> telling(torch.tensor([1.0, -1e-10, 0.0]), 2, 1e-8), telling(torch.tensor([1.0, 0.25, 0.25]), 0, 0.5)
    (1e-08, 0.125)
    """
    shares = (sizes.abs() / sizes.abs().max()).sort().values.tolist()
    below, above = shares[zero - 1] if zero else 0.0, shares[zero]
    return tolerance if below <= tolerance <= above / 2 else (below + above) / 2


class Immutable:
    """A value that is made once, from what `content` holds."""

    __slots__ = ()

    def __setattr__(self, key: str, value: Any) -> None:
        raise AttributeError(
            f"a {type(self).__name__} does not change: make a new one instead of setting {key!r}"
        )

    def __delattr__(self, key: str) -> None:
        raise AttributeError(f"a {type(self).__name__} does not change: {key!r} cannot be deleted")

    def _set(self, **values: Any) -> None:
        """Fill the slots; for `__init__` alone."""
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def content(self) -> dict[str, Any]:
        """What makes the value, as JSON takes it; `of_content` reads it back."""
        raise NotImplementedError

    @classmethod
    def of_content(cls, content: dict[str, Any]) -> Self:
        """The value of such a content."""
        raise NotImplementedError

    def to_json(self) -> str:
        """The value as JSON text; `from_json` reads it back to the last bit."""
        return json.dumps(self.content())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        try:
            return cls.of_content(json.loads(text))
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"this is not a {cls.__name__} written by to_json ({error!r}): {text[:60]!r}"
            ) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)


class MatrixForm(Immutable):
    """A form by its gauge-fixed matrix, the names of its coordinates, and what counts as zero."""

    __slots__ = ("_matrix", "names", "tolerance")
    _matrix: Tensor
    names: tuple[str, ...]
    tolerance: float

    @classmethod
    def _given(
        cls, matrix: Any, names: Sequence[str] | None, tolerance: float | None
    ) -> tuple[Any, Sequence[str] | None, float]:
        """Matrix, names and tolerance; what is not given is that of a form in place of the matrix."""
        if isinstance(matrix, cls):
            names, tolerance = names or matrix.names, matrix.tolerance if tolerance is None else tolerance
            matrix = matrix._matrix
        return matrix, names, ZERO_TOLERANCE if tolerance is None else float(tolerance)

    def _keep(self, matrix: Tensor, names: Sequence[str] | None, tolerance: float, **more: Any) -> None:
        """Fill the slots; for `__init__` alone."""
        n = len(matrix)
        if names is not None and len(names) != n:
            raise ValueError(f"{len(names)} names {list(names)} for a form in {n} dimensions: give {n}")
        told = tuple(f"x{i}" for i in range(n)) if names is None else tuple(str(name) for name in names)
        self._set(_matrix=matrix, names=told, tolerance=tolerance, **more)

    @property
    def matrix(self) -> Tensor:
        """The gauge-fixed matrix as a float64 tensor (a copy: the form does not change)."""
        return self._matrix.clone()

    @property
    def n(self) -> int:
        """Dimension of the space the form lives on."""
        return len(self.names)

    @property
    def group_name(self) -> str:
        """The name of the group of linear maps that leave the form alone."""
        raise NotImplementedError

    def law(self, digits: int | None = None, half_widths: Any = None) -> str:
        """The form as a formula."""
        raise NotImplementedError

    def content(self) -> dict[str, Any]:
        """Matrix, names and tolerance, as JSON takes them."""
        return {"matrix": self._matrix.tolist(), "names": list(self.names), "tolerance": self.tolerance}

    @classmethod
    def of_content(cls, content: dict[str, Any]) -> Self:
        """The form of such a content."""
        return cls(content["matrix"], content["names"], content["tolerance"])  # type: ignore[call-arg]

    def __eq__(self, other: object) -> bool:
        """Equal up to gauge, to rounding; names do not matter."""
        if not isinstance(other, type(self)):
            return NotImplemented
        if self.n != other.n:
            return False
        # Near a tie of the gauge, rounding may have chosen the other sign.
        A, B = self._matrix, other._matrix
        if self.group_name != other.group_name:  # what is zero in the one is small in the other
            return False
        return any(torch.allclose(A, sign * B, rtol=0.0, atol=1e-9) for sign in (1.0, -1.0))

    # Equality has a tolerance, so only what survives rounding may enter the hash.
    def __hash__(self) -> int:
        return hash((type(self).__name__, self.n))

    def __str__(self) -> str:
        return f"{self.law()}   [{self.group_name}]"

    def __repr__(self) -> str:
        unusual = "" if self.tolerance == ZERO_TOLERANCE else f", tolerance={self.tolerance!r}"
        return f"{type(self).__name__}({self._matrix.tolist()}, names={list(self.names)}{unusual})"
