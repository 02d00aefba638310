"""The law for y as a formula, once a form is found."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from gortho.discovery.clock import Clock
from gortho.discovery.hints import VOLUME
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Kind
from gortho.discovery.result import Discovery
from gortho.discovery.spreads import UNDERSTATED, steady
from gortho.discovery.wider.answer import with_form_of
from gortho.discovery.written import terms_of
from gortho.forms import QuadraticForm
from gortho.formulas import Problem
from gortho.formulas.pencil import plainest
from gortho.formulas.terms import Term
from gortho.formulas.units import about, given
from gortho.formulas.values import Formula
from gortho.objectives import SQUARES
from gortho.reps import Scalar, Vector, as_rep
from gortho.samples.values import Samples
from gortho.symmetry import Symmetry
from gortho.training import predict

#: Forms, as far from the found one as its errors say, where there are no refits of it alone.
DRAWS = 8
#: Sizes of x and of y beyond this, or below one by this, are divided out: their powers would leave the range.
LARGEST = 1e20
NONE = (
    "no short formula: of powers, roots, logarithms, exponentials and waves of the invariants, up to six terms come "
    "nowhere near the predictor"
)
SEVERAL = "no formula: it is sought for one target at a time, so give the targets one by one"


def with_formula(
    found: Discovery,
    posed: Posed,
    refits: Tensor | None,
    clock: Clock,
    own: Tensor | None = None,
    twin: Tensor | None = None,
) -> Discovery:
    """The discovery with the law for y as a short formula, or with a note that there is none.

    ``own`` are the predictions of the held-out samples, in the frame, that the discovery tells the error of; ``twin``
    are those of the best model of the invariants. An interruption leaves it as it was.
    """
    symmetry = symmetry_of(found)
    if symmetry is None:
        several = found.symmetry is not None and len(as_rep(found.output).parts) > 1 and not found.classes
        return replace(found, notices=(*found.notices, SEVERAL)) if several else found
    x_unit, y_unit = (u if max(u, 1 / u) > LARGEST else 1.0 for u in posed.given.train.units)
    problem = _problem(found, symmetry, posed, refits, (x_unit, y_unit), own, twin)
    try:
        with clock.stage("formula"):
            plain = plainest(problem)
            symmetry = symmetry if not plain.convention else about(plain.symmetry, 1 / x_unit)
            formula = plain.formula and given(plain.formula, symmetry, x_unit, y_unit)
    except KeyboardInterrupt:
        return found
    except (np.linalg.LinAlgError, ArithmeticError):  # the answer is worth more than its formula
        return replace(found, notices=(*found.notices, "no formula: its numbers are out of range"))
    provenance = replace(
        found.provenance, stages=found.provenance.stages | {"formula": clock.seconds["formula"]}
    )
    if found.symmetry is None and (formula is None or not formula.needs_no_form):
        return found
    if formula is None:
        return replace(found, provenance=provenance, notices=(*found.notices, NONE))
    if plain.convention:
        found = with_form_of(found, symmetry, plain.convention)
    if found.entry_errors is not None:
        halves = found.interval_factor * found.entry_errors
        formula = replace(formula, form_halves=tuple(map(tuple, halves.tolist())))
    formula = replace(formula, broken=found.approximate)
    return replace(found, provenance=provenance, formula=formula)


def _problem(
    found: Discovery,
    symmetry: Symmetry,
    posed: Posed,
    refits: Tensor | None,
    units: tuple[float, float],
    own: Tensor | None,
    twin: Tensor | None,
) -> Problem:
    """What the formula is sought for, in these units of x and y."""
    weighted, parts = posed.weighted(SQUARES[found.provenance.errors]), posed.given
    train, validation, held_out = (
        replace(part.in_units(*units), weights=like.weights) for part, like in zip(parts, weighted)
    )
    numbers = () if posed.numbers is None else posed.numbers.split([len(part) for part in parts])
    assert found.network is not None
    net = found.network

    def predicted(samples: Samples) -> np.ndarray:
        there = samples.in_units(1 / units[0], 1 / units[1])
        return predict(net, *there.inputs).double().numpy() / units[1]

    # The errors of a wider symmetry's form are widened already, and so are its draws.
    exact = found.provenance.predictor is Kind.POLYNOMIAL or found.wider is not None
    return Problem(
        train,
        validation,
        held_out,
        about(symmetry, units[0]),
        found.output,
        predicted,
        [about(symmetry, units[0]) for symmetry in _spread(found, posed, refits)],
        1.0 if exact else UNDERSTATED,
        0 if found.wider is None else found.wider.output_space,
        logarithms=units[0] == 1.0,  # that of a unit would be one more term
        predicted=None if own is None else posed.values_out(own).numpy() / units[1],
        twin=None if twin is None else posed.values_out(twin).numpy() / units[1],
        numbers=[some.numpy() for some in numbers],
        axial=() if found.wider is None else found.wider.axial,
        law=_law(found, symmetry, posed, units),
    )


def _law(found: Discovery, symmetry: Symmetry, posed: Posed, units: tuple[float, float]) -> tuple[Term, ...]:
    """The terms of a predictor that is a formula, for the given coordinates in these units; none of another one."""
    assert found.network is not None
    terms = () if found.wider is not None else terms_of(found.network.net)
    if not terms or any(term.logarithm for term in terms):  # that of a unit would be one more term
        return ()
    W, A = found.network.W, found.network.net.form.matrix().detach()
    # The gauge has a size of its own in each frame.
    size = float((symmetry.form.matrix * (W.mT @ A @ W)).sum() / (W.mT @ A @ W).square().sum())
    if not size > 0:
        return ()
    formula = Formula("y", terms, symmetry, found.output, ("x",) * posed.given.train.points)
    x_unit, rep = posed.x_unit / units[0], as_rep(found.output).parts[0]
    # Inner products have the size of the form, upper indices none of it, and lower ones twice as much.
    y_unit = size ** ((rep.up - rep.down) / 2) * float(posed.unit) / units[1]
    return given(formula, symmetry, size**0.5 * x_unit, y_unit).terms


def symmetry_of(found: Discovery) -> Symmetry | None:
    """The symmetry that a formula is written with; None where there is none for classes, several outputs, skew forms.

    A function of a volume needs no form, so that one that was not accepted will do.
    """
    volume = found.wider is not None and VOLUME in found.notices
    symmetry = found.wider.symmetry if found.wider is not None and volume else found.symmetry
    if symmetry is None or symmetry.skew is not None or found.classes or found.network is None:
        return None
    (part, *others), several = as_rep(found.output).parts, len(symmetry.apart) > 0
    # Of several forms, no one is the A of matrices and covectors.
    unclear = several and part not in (Scalar(), Vector())
    return None if others or part.rank > 2 or unclear else symmetry


def _spread(found: Discovery, posed: Posed, refits: Tensor | None) -> list[Symmetry]:
    """Symmetries that would do as well: those of the refits, or with forms as far off as the errors say."""
    assert found.candidate is not None
    A = found.candidate.matrix
    if found.wider is None:
        forms = [] if refits is None else [posed.out(M) for M in steady(refits, posed.frame)]
        same = [
            f for f in forms if f.signature == found.candidate.signature and float((f.matrix * A).sum()) > 0
        ]
        return [Symmetry.of(f) for f in same]
    symmetry, errors = found.wider.symmetry, found.wider.form_errors
    if (
        not errors or symmetry.linked
    ):  # maps are off together with their forms, which draws one by one are not
        return []
    generator = torch.Generator().manual_seed(0)
    draws = [
        _drawn(form, torch.as_tensor(of_entries), generator)
        for form, (of_entries, _) in zip(symmetry.forms, errors)
    ]
    like = partial(Symmetry, spaces=symmetry.spaces, directions=symmetry.directions, origin=symmetry.origin)
    return [like([drawn[k] for drawn in draws]) for k in range(DRAWS)]


def _drawn(form: QuadraticForm, errors: Tensor, generator: torch.Generator) -> list[QuadraticForm]:
    """Forms that are as far off as the standard errors of the entries say, of the same size."""
    A = form.matrix
    E = torch.randn(DRAWS, *A.shape, dtype=A.dtype, generator=generator).triu()
    E = (E + E.triu(1).mT) * errors.nan_to_num(0.0)  # what is a convention has no error
    E = E - (E * A).sum((1, 2), keepdim=True) / A.square().sum() * A
    return [QuadraticForm(A + e) for e in E]
