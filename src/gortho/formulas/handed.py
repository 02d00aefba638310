"""How products with the volume ε are written: det[x1 x2 x3], x1 × x2, ε(x1,·); and what × and ε mean."""

from __future__ import annotations

import torch

from gortho.formulas.values import Formula
from gortho.formulas.ways import Way, ways_of
from gortho.reps import TensorRep, as_rep

#: A form whose entries are this near to those of the identity is it: then × is the cross product of school.
SAME = 1e-6


def way_of(formula: Formula, number: int) -> tuple[TensorRep, Way]:
    """How y transforms, and one of the ways to build it."""
    rep, form = as_rep(formula.output).parts[0], formula.symmetry.form
    return rep, ways_of(rep, form.n, form.signature.zero > 0)[number]


def volume(rep: TensorRep, way: Way, n: int, vectors: list[str], latex: bool, alone: bool) -> str:
    """ε with vectors in its slots, and with the metric that raises its free indices.

    ``alone`` is a product that nothing follows, which needs no brackets.

    >>> rep = TensorRep(1, 0)
    >>> way = ways_of(rep, 3, False)[-1]
    >>> volume(rep, way, 3, ["r", "F"], False, True), volume(rep, way, 3, ["r", "F"], True, False)
    ('r × F', '(r \\\\times F)')
    """
    assert way.free is not None
    raised, top = ("A^{-1}", "^{\\top}") if latex else ("A⁻¹", "ᵀ")
    if not way.free:
        return f"\\det[{', '.join(vectors)}]" if latex else f"det[{' '.join(vectors)}]"
    up = [position < rep.up for position in way.free]
    second = way.free == (1,)  # the column of a matrix stands first, and this is its row
    if n == 3 and len(way.free) == 1:
        cross = (" \\times " if latex else " × ").join(vectors)
        bare = alone and up[0] and rep.rank == 1
        cross = cross if bare else f"({cross})"
        return cross + top + "A" * (not up[0]) if second else "A" * (not up[0]) + cross
    dots = ["\\cdot" if latex else "·"] * len(way.free)
    text = f"{chr(92) + 'varepsilon' if latex else 'ε'}({','.join([*vectors, *dots])})"
    if len(way.free) == 2:
        return raised * up[0] + text + raised * up[1]
    return text + top + raised * up[0] if second else raised * up[0] + text


def meanings(formula: Formula, in_latex: bool = False) -> list[str]:
    """What A, × and ε are in a formula, where it has them and it does not go without saying."""
    used = [way_of(formula, m.term) for term in formula.terms for m in term.monomials]
    n, A = formula.symmetry.form.n, formula.symmetry.form.matrix
    told, plain = [], float((A - torch.eye(n, dtype=A.dtype)).abs().max()) <= SAME
    if any(_has_metric(rep, way, n) for rep, way in used) and not in_latex:
        told.append(f"A is the matrix of q{', here the unit matrix' * plain}")
    free = {len(way.free) for _, way in used if way.free}
    if n == 3 and 1 in free and not plain:
        latex = r"\langle u \times v, w\rangle = \det[u, v, w]"
        told.append(latex if in_latex else "× is the cross product of q, ⟨u × v,w⟩ = det[u v w]")
    if free and (n != 3 or 2 in free):
        letters = [f"u_{{{i + 1}}}" if in_latex else f"u{i + 1}" for i in range(n)]
        latex = f"\\varepsilon({','.join(letters)}) = \\det[{', '.join(letters)}]"
        told.append(latex if in_latex else f"ε({','.join(letters)}) = det[{' '.join(letters)}]")
    return told


def _has_metric(rep: TensorRep, way: Way, n: int) -> bool:
    """Whether A or its inverse is written with it."""
    pairs = any(second < rep.up or first >= rep.up for first, second in way.rest.pairs)
    legs = any(position >= rep.up for position in way.rest.legs)
    crossed = n == 3 and len(way.free or ()) == 1
    return pairs or legs or any((position < rep.up) != crossed for position in way.free or ())
