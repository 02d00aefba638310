"""`Samples`: the data as one immutable value, from input to report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gortho.reps import DirectSum, Rep, Scalar
from gortho.samples.called import Labels
from gortho.samples.checks import variable_names

if TYPE_CHECKING:
    from gortho.samples.frame import Frame

SCALAR = Scalar()


def power_of_two(values: Tensor) -> float:
    """The largest power of two that is not larger than the largest entry; 1 if all are zero.

    >>> power_of_two(torch.tensor([0.3, -5.0]))
    4.0
    """
    largest = float(values.abs().max())
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest > 0 else 1.0


def root_mean_square(values: Tensor) -> Tensor:
    """√(mean v²), of numbers of any size."""
    size = power_of_two(values)  # first, so that squares neither overflow nor vanish
    return size * (values / size).square().mean().sqrt()


def part_sizes(y: Tensor, rep: Rep, n: int, whole: bool = False) -> Tensor:
    """A size for each entry of y: the spread of its part of the output, so that no part hides the others by its units.

    One part alone, and all parts as a whole, have the root of their mean square.

    >>> part_sizes(torch.tensor([[1.0, 200.0], [-1.0, 600.0]], dtype=torch.float64), SCALAR + SCALAR, 2)
    tensor([  1., 200.], dtype=torch.float64)
    """
    if whole or len(rep.parts) == 1:
        return root_mean_square(y.double()) or torch.ones((), dtype=torch.float64)
    sizes = []
    for part in rep.split(y.double(), n):
        size = root_mean_square(part - part.mean(0)) or root_mean_square(part) or 1.0  # of a constant
        sizes.append(torch.full_like(part[0], float(size)))
    return rep.join(sizes)


#: The fields that have one row for each sample.
ROWS = ("x", "y", "point_scalars", "sample_scalars", "weights", "mask", "noise", "bundles")


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples (x, y) of a law, with everything that belongs to them.

    Attributes:
        x: vectors ``(N, p, n)``.
        y: targets ``(N, *rep.shape(n))``.
        rep: how the targets transform.
        point_scalars, sample_scalars: invariant quantities, ``(N, p, s)`` and ``(N, s)``, or None.
        weights: sample weights ``(N,)``, mean one, or None if all are equal.
        noise: standard errors of the targets ``(N,)``, in the units of y, if known.
        mask: which points of a set exist ``(N, p)``, or None if all do.
        bundles: numbers ``(N,)``, the same for samples that stay together (`gortho.discovery.bundles`), or None.
        set_like: the points of a sample have no order.
        names: names of the n coordinates.
        classes: for labels, the classes of which the columns of y are indicators.
        labels: names of target, vectors and scalars in formulas.

    >>> samples = Samples(torch.randn(10, 2, 3), torch.randn(10))
    >>> len(samples), samples.points, samples.n, len(samples.rows(slice(0, 4)))
    (10, 2, 3, 4)
    """

    x: Tensor
    y: Tensor
    rep: Rep = SCALAR
    point_scalars: Tensor | None = None
    sample_scalars: Tensor | None = None
    weights: Tensor | None = None
    mask: Tensor | None = None
    set_like: bool = False
    names: tuple[str, ...] = ()
    noise: Tensor | None = None
    bundles: Tensor | None = None
    classes: tuple[Any, ...] = ()
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        if not self.names:
            object.__setattr__(self, "names", variable_names(self.n))
        lengths = {name: len(value) for name in ROWS if (value := getattr(self, name)) is not None}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"samples of different lengths: {lengths}")

    def __len__(self) -> int:
        return len(self.x)

    @property
    def n(self) -> int:
        """Dimension of the vectors."""
        return self.x.shape[-1]

    @property
    def points(self) -> int:
        """Number of vectors in a sample."""
        return self.x.shape[1]

    @property
    def scalars(self) -> tuple[Tensor | None, Tensor | None]:
        """Point and sample scalars, as networks take them."""
        return self.point_scalars, self.sample_scalars

    @property
    def inputs(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """What a network is called with."""
        return self.x, self.point_scalars, self.sample_scalars

    @property
    def variance(self) -> float:
        """Mean square of the targets about their mean."""
        return float((self.y.double() - self.y.double().mean(0)).square().mean())

    @property
    def units(self) -> tuple[float, float]:
        """The sizes of x and of y as powers of two; after division by them, squares stay in range.

        >>> Samples(1e200 * torch.ones(2, 1, 2).double(), torch.ones(2)).units == (2.0**664, 1.0)
        True
        """
        return power_of_two(self.x), power_of_two(self.y)

    @property
    def each_weight(self) -> Tensor:
        """The weights ``(N,)``; ones if all are equal."""
        return torch.ones(len(self), dtype=self.y.dtype) if self.weights is None else self.weights

    def by_weight(self, values: Tensor) -> Tensor:
        """Values ``(N,)`` of the samples times their weights, if any."""
        return values if self.weights is None else values * self.weights

    def bootstrapped(self, generator: torch.Generator) -> Samples:
        """The same samples, with their weights multiplied by exponentially distributed random ones, one a bundle."""
        bundle = None if self.bundles is None else torch.unique(self.bundles, return_inverse=True)[1]
        count = len(self) if bundle is None else int(bundle.max()) + 1
        drawn = -torch.rand(count, dtype=torch.float64, generator=generator).clamp_min(1e-12).log()
        return replace(self, weights=self.by_weight(drawn if bundle is None else drawn[bundle]))

    def in_units(self, x_unit: float, y_unit: float | Tensor) -> Samples:
        """The same samples with x and y in these units; a form does not change with one unit for all of x.

        Outputs of several parts may have a unit for each entry.
        """
        each = 1 / torch.as_tensor(y_unit, dtype=torch.float64)
        noise = None if self.noise is None else self.noise * root_mean_square(each)
        return replace(self, x=self.x / x_unit, y=self.y / y_unit, noise=noise)

    @property
    def part_sizes(self) -> Tensor:
        """Sizes of the targets, part by part; of labels, of all indicators together."""
        return part_sizes(self.y, self.rep, self.n, whole=bool(self.classes))

    def network_options(self) -> dict[str, Any]:
        """Options with which a network accepts these samples."""
        counts = [0 if s is None else s.shape[-1] for s in self.scalars]
        return {
            "points": self.points,
            "point_scalars": counts[0],
            "sample_scalars": counts[1],
            "set_like": self.set_like,
        }

    def labels_in_full(self, directions: int = 0) -> Labels:
        """All names, default ones if none were given; names of fixed directions follow those of the vectors."""
        o = self.network_options()
        return self.labels.full(self.names, self.points, o["point_scalars"], o["sample_scalars"], directions)

    def _map(self, function: Any, names: Sequence[str] = ROWS) -> Samples:
        given = {name: getattr(self, name) for name in names}
        return replace(self, **{name: function(value) for name, value in given.items() if value is not None})

    def rows(self, index: Any) -> Samples:
        """Some of the samples: a slice, indices or a mask."""
        return self._map(lambda t: t[index])

    def split(self, sizes: Sequence[int], seed: int = 0) -> list[Samples]:
        """Random parts of these sizes, which add up to all."""
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        return [self.rows(part) for part in order.split(list(sizes))]

    @staticmethod
    def cat(parts: Sequence[Samples]) -> Samples:
        """Several parts as one."""
        first = parts[0]
        present = [name for name in ROWS if getattr(first, name) is not None]
        joined: dict[str, Any] = {name: torch.cat([getattr(p, name) for p in parts]) for name in present}
        return replace(first, **joined)

    def to(self, target: Any) -> Samples:
        """The same numbers in another dtype or on another device; mask and bundles keep their dtype."""
        whole = ("mask", "bundles") if isinstance(target, torch.dtype) else ()
        numbers = [name for name in ROWS if name not in whole]
        return self._map(lambda t: t.to(target), numbers)

    def with_targets(self, y: Tensor, rep: Rep | None = None) -> Samples:
        """The same inputs with other targets."""
        return replace(self, y=y, rep=self.rep if rep is None else rep)

    def indicators(self) -> Samples:
        """Labels as numbers for regression: for two classes, the indicator of the second; numbers are unchanged."""
        return self.with_targets(self.y[:, 1], SCALAR) if len(self.classes) == 2 else self

    def in_frame(self, frame: Frame) -> Samples:
        """The same samples in the frame's coordinates: x → Wx, y → ρ(W)y."""
        noise = self.noise
        if noise is not None:  # alike in all components: ρ(W) enlarges their squares by this, on the average
            size = self.rep.size(self.n)
            each = torch.eye(size, dtype=self.y.dtype).reshape(size, *self.rep.shape(self.n))
            noise = noise * (self.values_in(frame, each).square().sum() / size).sqrt()
        return replace(self, x=self.x @ frame.W.to(self.x).mT, y=self.values_in(frame, self.y), noise=noise)

    def values_in(self, frame: Frame, y: Tensor) -> Tensor:
        """Outputs ``(N, …)`` of the same kind in the frame's coordinates: ρ(W)y."""
        W = frame.W.to(y)
        return self.rep.act(W.expand(len(y), *W.shape) if isinstance(self.rep, DirectSum) else W, y)

    def __repr__(self) -> str:
        given = [f.name for f in fields(self) if f.name in ROWS[2:] and getattr(self, f.name) is not None]
        more = f", with {', '.join(given)}" if given else ""
        kind = "set of " if self.set_like else ""
        return f"Samples({len(self)} of {kind}{self.points} x R^{self.n} -> {self.rep}{more})"
