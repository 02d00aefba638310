"""The terms that formulas are chosen from, simplest first, as many as can be distinguished."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from gortho.formulas.terms import Factor, Monomial, Quantities, Term, Way, Weights
from gortho.samples.values import Samples
from gortho.symmetry import Symmetry

#: Terms to choose from, at most.
MOST = 600
#: … and so many more with longer products of scalars.
MOST_LONGER = 150
#: Powers of squares, with what each costs in simplicity.
POWERS = {1.0: 1, 0.5: 2, -0.5: 3, -1.0: 2, -1.5: 2, 2.0: 2, 1.5: 3, -2.0: 3, 3.0: 3, -3.0: 3}
#: Powers of ⟨x_i, x_i⟩ that mixed products are multiplied by: dipoles, angles.
FALLS = (-0.5, -1.0, -1.5, -2.5)
#: The most that a term may cost.
LONGEST = 6


#: A way to build the output: which of `ways_of`, the vectors that it takes, what it costs.
Made = tuple[int, tuple[Weights, ...], int]
#: A product of factors, and what it costs.
Product = tuple[tuple[Factor, ...], int]


@dataclass(frozen=True)
class Candidate:
    """A term to choose, and what it costs: one more for each part that makes it longer."""

    term: Term
    cost: int


@dataclass(frozen=True)
class Space:
    """What terms can be made of: vectors by kind, which of them are fixed, scalars of points and of samples."""

    points: int
    directions: int = 0
    spaces: tuple[int, ...] = ()
    point_scalars: int = 0
    sample_scalars: int = 0
    set_like: bool = False
    positive: frozenset[tuple[Weights, Weights]] = frozenset()  # inner products that are never below zero
    nonzero: frozenset[int] = frozenset()  # scalars that are never zero
    axial: frozenset[int] = frozenset()  # vectors that keep their sign in a mirror
    definite: bool = False  # of the form of all vectors
    odd: bool = False  # the output changes its sign there, beside what its indices do
    special: bool = False  # mirrors are not in the group

    @property
    def size(self) -> int:
        return self.points + self.directions

    def unit(self, i: int) -> Weights:
        """One of the vectors."""
        return tuple(int(k == i) for k in range(self.size))

    def apart(self, i: int, j: int) -> Weights:
        """The difference of two vectors."""
        return tuple(int(k == i) - int(k == j) for k in range(self.size))

    def space(self, i: int) -> int:
        return self.spaces[i] if self.spaces and i < self.points else 0

    def parity(self, weights: Weights) -> int:
        """1 for axial vectors and their sums, 0 for polar ones."""
        return int(any(w and i in self.axial for i, w in enumerate(weights)))

    def kind(self, i: int) -> tuple[int, int]:
        """What vectors must have in common to be added: the space, and the parity where that means something."""
        return self.space(i), 0 if self.special else int(i in self.axial)

    def fits(self, monomial: Monomial, ways: Sequence[Way]) -> bool:
        """Whether a product has the parity of the output; without mirrors, none is wrong."""
        if self.special:
            return True
        odd = ways[monomial.term].odd + sum(map(self.parity, monomial.legs))
        for f in monomial.factors:
            if f.kind == "power" and f.power % 2 == 1 and not f.absolute:
                odd += self.parity(f.left) + self.parity(f.right)
        return odd % 2 == self.odd

    def sums(self) -> list[tuple[Weights, int]]:
        """Sums and differences of two vectors of one kind, and the sum of all, with their costs."""
        found: list[tuple[Weights, int]] = []
        pairs = [(i, j) for i, j in combinations(range(self.points), 2) if self.kind(i) == self.kind(j)]
        for i, j in [] if self.set_like else pairs:
            both = tuple(int(k in (i, j)) for k in range(self.size))
            found += [(self.apart(i, j), 0), (both, 1)]
        if self.points > 2 and len(set(map(self.kind, range(self.points)))) < 2:
            found.append(((*[1] * self.points, *[0] * self.directions), 1))
        return found

    def squares(self) -> list[tuple[Weights, int]]:
        """Vectors whose squares count."""
        units = [] if self.set_like else [(self.unit(i), 0) for i in range(self.points)]
        return units + self.sums()

    def mixed(self) -> list[tuple[Weights, Weights]]:
        """Pairs of different vectors of one kind; fixed ones among each other are constants."""
        return [
            (self.unit(i), self.unit(j))
            for i, j in combinations(range(self.size), 2)
            if i < self.points and self.space(i) == self.space(j)
        ]

    def plain(self, u: Weights, v: Weights, power: float = 1.0) -> Factor:
        """A power of an inner product, of its size where it may be negative and the power is not whole."""
        absolute = not float(power).is_integer() and (u, v) not in self.positive
        return Factor("power", u, v, power, absolute)


def space_of(q: Quantities, samples: Samples, symmetry: Symmetry, axial: Sequence[int]) -> Space:
    """What the terms of these samples can be made of."""
    options, points = samples.network_options(), samples.points
    bare = Space(
        points,
        q.vectors.shape[1] - points,
        symmetry.apart,
        options["point_scalars"],
        options["sample_scalars"],
        samples.set_like,
        axial=frozenset(axial),
        definite=len(symmetry.forms) == 1 and symmetry.form.n in symmetry.form.signature[:2],
        odd=q.rep.odd,
        special=symmetry.special,
    )
    sums = {w for w, _ in [*bare.squares(), *((bare.unit(i), 0) for i in range(points))]}
    sums |= {bare.apart(i, j) for i, j in combinations(range(points), 2)}
    return replace(
        bare,
        positive=frozenset(m for m in [*((w, w) for w in sums), *bare.mixed()] if (q.inner(*m) > 0).all()),
        nonzero=frozenset(k for k in range(q.scalars.shape[1]) if (q.scalars[:, k] != 0).all()),
    )


def scalar_products(space: Space) -> list[Product]:
    """Products of powers of scalars, from the simplest on, with their costs."""
    each = space.point_scalars * space.points * (not space.set_like)
    shift = space.point_scalars * space.points
    known = [*range(each), *range(shift, shift + space.sample_scalars)]
    s = {k: Factor("scalar", scalar=k) for k in known}
    found: list[Product] = [((), 0), *(((s[k],), 1) for k in known)]
    inverse = [replace(s[k], power=-1.0) for k in known if k in space.nonzero]
    found += [((f,), 2) for f in inverse]
    found += [((s[a], s[b]), 2) for a, b in combinations(known, 2)]
    found += [((replace(s[k], power=2.0),), 2) for k in known]
    found += [((s[a], f), 3) for a in known for f in inverse if f.scalar != a]
    return found


def longer_products(space: Space) -> list[Product]:
    """Products of powers of scalars that `scalar_products` has not, such as s² t, s³ and 1/s², with their costs."""
    found: list[Product] = []
    s = [parts[0] for parts, cost in scalar_products(space) if cost == 1]
    for f in s:
        powers = (-2.0, 3.0) if f.scalar in space.nonzero else (3.0,)
        found += [((replace(f, power=p),), 3) for p in powers]
        found += [((replace(f, power=2.0), other), 3) for other in s if other != f]
    return found


def functions(space: Space) -> list[Product]:
    """Functions of one or two inner products, with their costs."""
    squares, mixed = space.squares(), space.mixed()
    found: list[Product] = [((), 0)]
    own = [space.plain(u, u) for u, _ in squares if sum(map(abs, u)) == 1] + [space.plain(*m) for m in mixed]
    for u, cost in squares:
        found += [((space.plain(u, u, p),), c + cost) for p, c in POWERS.items()]
        found.append(((Factor("log", u, u, absolute=(u, u) not in space.positive),), 2 + cost))
    massless = [m for m in mixed if m in space.positive]  # the mass of a massless pair is a root
    along = [(u, v) for u, v in mixed if v.index(1) >= space.points]  # a direction
    for power, cost, pairs in ((1.0, 1, mixed), (2.0, 2, mixed), (0.5, 2, massless), (3.0, 3, along)):
        found += [((space.plain(*m, power),), cost) for m in pairs]
    found += [((a, b), 2) for a, b in combinations(own, 2)]
    for u, v in mixed:
        for w in (u, v):
            if w.index(1) < space.points:
                found += [((space.plain(u, v), space.plain(w, w, p)), 3) for p in FALLS]
        if v.index(1) < space.points:
            both = (space.plain(u, u, -0.5), space.plain(v, v, -0.5))
            found.append(((space.plain(u, v), *both), 3))
            if {(u, u), (v, v)} <= space.positive:
                if space.parity(u) == space.parity(v):
                    found.append(((Factor("angle", u, v),), 2))
                if space.definite:
                    area = Factor("area", u, v)
                    found.append(((area,), 2))
                    found += [((area, space.plain(w, w, -0.5)), 3) for w in (u, v)]  # from a line
    return found


def legs(space: Space, q: Quantities, output_space: int = 0) -> list[Made]:
    """Ways to build the output: which, its vectors, cost."""
    vectors = [(space.unit(i), 0) for i in range(space.size) if space.space(i) == output_space]
    if space.set_like:
        vectors = vectors[space.points :]
    vectors += [
        (w, c) for w, c in space.sums() if space.space(next(i for i, k in enumerate(w) if k)) == output_space
    ]
    found: list[Made] = []
    for number, way in enumerate(q.ways):
        if way.odd:
            found += [(number, chosen, cost) for chosen, cost in filled(space, way)]
        elif way.count == 2:  # a vector with itself, and two of the vectors
            found += [(number, (w, w), c) for w, c in vectors]
            single = [w for w, _ in vectors if sum(map(abs, w)) == 1]
            found += [(number, (a, b), 1) for a in single for b in single if a != b]
        elif way.count < 2:
            found += [(number, tuple(w for w, _ in chosen), sum(c for _, c in chosen))
                      for chosen in product(vectors, repeat=way.count)]  # fmt: skip
    return found


def filled(space: Space, way: Way) -> Iterator[tuple[tuple[Weights, ...], int]]:
    """Vectors for the slots of ε, one of them perhaps a difference, and for other indices; with costs."""
    if space.set_like or len(set(space.spaces)) > 1:
        return
    units = [space.unit(i) for i in range(space.size)]
    apart = [(w, 1) for w, cost in space.sums() if not cost]
    others = list(product(units, repeat=way.count - way.filled))
    slots = [(chosen, 0) for chosen in combinations(units, way.filled)]
    for w, cost in apart if way.filled else []:
        free = [u for u in units if not np.dot(u, w)]
        slots += [((*chosen, w), cost) for chosen in combinations(free, way.filled - 1)]
    for (chosen, cost), rest in product(slots, others):
        # ε of directions alone is a constant.
        if any(any(w[: space.points]) for w in chosen) or not way.filled:
            yield (*chosen, *rest), cost


def summed(space: Space, q: Quantities) -> Iterator[Candidate]:
    """Sums of alike terms over all vectors, and over pairs: where vectors have no order, or are three or more."""
    several = len(set(map(space.kind, range(space.points)))) > 1
    if several or space.points < (2 if space.set_like else 3):
        return
    p, k = space.points, space.point_scalars
    each = [((i,), space.unit(i)) for i in range(p)]
    apart = [((i, j), space.apart(i, j)) for i, j in combinations(range(p), 2)]

    def alike(how: str, power: float | None, scalar: int | None, way: int) -> Term:
        """One term for each of the vectors, with a power of its square and a scalar of its points."""
        made = []
        for points, w in each if how == "each" else apart:
            factors = [] if power is None else [space.plain(w, w, power)]
            factors += [] if scalar is None else [Factor("scalar", scalar=i * k + scalar) for i in points]
            made.append(Monomial(tuple(factors), way, (w,) * q.ways[way].count))
        return Term(tuple(made), how)

    choices: list[tuple[float | None, int]] = [(None, 0), *POWERS.items()]
    for number, way in enumerate(q.ways):
        if way.count > 2 or way.odd:
            continue
        for scalar, (power, cost) in product((None, *range(k)), choices):
            extra = cost + (scalar is not None)
            if extra or way.count:
                yield Candidate(alike("each", power, scalar, number), extra)
                if way.count != 1:  # a sum of differences over pairs depends on the order
                    yield Candidate(alike("pairs", power, scalar, number), extra + 1)


def library(space: Space, q: Quantities, output_space: int = 0) -> list[Candidate]:
    """Terms from the simplest on, about so many, and the sums that are alike."""
    made = legs(space, q, output_space)
    found = [c for c in summed(space, q) if space.fits(c.term.monomials[0], q.ways)]
    # Longer products of scalars, alone or with one inner product, beside which nothing is left out.
    inner = [part for part in functions(space) if part[1] < 2 and all(f.power == 1 for f in part[0])]
    longer = _products(space, q, longer_products(space), inner, [way for way in made if not way[-1]])
    found += sorted(longer, key=lambda candidate: candidate.cost)[:MOST_LONGER]
    most = MOST + len(found)
    scalars, squares = _by_cost(scalar_products(space)), _by_cost(functions(space))
    ways = _by_cost(made)
    for cost in range(LONGEST + 1):
        for a, b in product(scalars, squares):
            found += _products(space, q, scalars[a], squares[b], ways.get(cost - a - b, []))
        if len(found) >= most:
            break
    return sorted(found, key=lambda candidate: candidate.cost)[:most]


def _by_cost(parts: Sequence[Any]) -> dict[int, list[Any]]:
    """The parts that cost the same, which stands last in each."""
    found: dict[int, list[Any]] = {}
    for part in parts:
        found.setdefault(part[-1], []).append(part)
    return found


def _products(
    space: Space, q: Quantities, scalars: list[Product], functions: list[Product], ways: list[Made]
) -> Iterator[Candidate]:
    """All terms of these parts but those of no use: a sum of vectors goes with functions of its own length."""
    for (some, one), (inner, two), (number, weights, three) in product(scalars, functions, ways):
        apart = sums_of(weights)
        if (apart and inner and inner[0].left not in apart) or (len(inner) > 1 and len(some) > 1):
            continue
        monomial = Monomial((*some, *inner), number, weights)
        if space.fits(monomial, q.ways):
            yield Candidate(Term((monomial,)), one + two + three)


def sums_of(weights: Sequence[Weights]) -> list[Weights]:
    """Those that are sums of vectors, or differences."""
    return [w for w in weights if sum(map(abs, w)) > 1]
