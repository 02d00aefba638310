"""The answer for a wider symmetry that holds: its numbers in the given coordinates, errors, readings (M15-M17).

Along a direction b the form is undetermined: that part is chosen by convention, and has no error (M16).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
import torch
from torch import Tensor

from gortho.discovery.answer import peers_of, with_few
from gortho.discovery.clock import Clock
from gortho.discovery.evidence import Evidence
from gortho.discovery.posed import Posed
from gortho.discovery.predictor import Fitted
from gortho.discovery.provenance import Provenance
from gortho.discovery.result import Discovery
from gortho.discovery.settings import Settings
from gortho.discovery.spreads import UNDERSTATED, certificate, given_errors
from gortho.discovery.twins import Comparison
from gortho.discovery.verdict import Verdict, confidence
from gortho.discovery.wider.claim import Claim
from gortho.discovery.wider.claims import angles
from gortho.discovery.wider.search import End
from gortho.discovery.wider.skew import skew_errors, skew_out
from gortho.discovery.wider.value import Wider
from gortho.forms import QuadraticForm
from gortho.nn.framed import InFrame
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples
from gortho.symmetry import Symmetry

#: Entries and eigenvalues are a convention where so much of them moves along (Ab)(Ab)ᵀ, as a share of its size.
OPEN = 0.1
#: How far the form is moved to see that, as a share of it.
NUDGE = 0.01
#: Coordinates of an origin below this share of its length are zero.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Case:
    """What is known before wider symmetries are looked for: samples, discovery, how O(A) did if it was tried."""

    found: Discovery
    samples: Samples
    posed: Posed
    plain: Comparison | None
    settings: Settings
    seed: int
    clock: Clock
    tolerance: float


@dataclass(frozen=True)
class Trial:
    """A claim with everything that its verdict rests on."""

    end: End
    fitted: Fitted
    comparison: Comparison
    refits: list[Tensor]  # aligned with the end
    evidence: Evidence
    verdict: Verdict
    reason: str
    advice: str


def symmetry_out(posed: Posed, claim: Claim, theta: Tensor) -> Symmetry:
    """The symmetry in the given coordinates."""
    forms, s, c = claim.split(theta, posed.frame.n)
    back = posed.frame.inverse
    origin = posed.x_unit * back @ c[0] if claim.origin else None
    if origin is not None:  # what is rounding is not shown
        origin = torch.where(origin.abs() < ROUNDING * origin.norm(), 0.0, origin)
    skew = None
    if claim.skew or claim.unitary:
        skew = skew_out(posed.frame, forms[-1], posed.given.train.names)
    train, spaces = posed.given.train, claim.spaces or (0,)
    names = posed.names or [train.labels.of_vector(train.names, spaces.index(k)) for k in range(claim.forms)]
    named = zip(posed.frames or repeat(posed.frame), forms[: claim.forms], names)
    quadratic = [f.form_out(A[: f.n, : f.n], own) for f, A, own in named]
    return Symmetry(
        quadratic or None,
        spaces=claim.spaces,
        special=claim.special,
        directions=s @ back.mT,
        origin=origin,
        skew=skew,
        maps=back @ forms[1:] @ posed.frame.W if claim.linked else None,
    )


def wider_answer(case: Case, trial: Trial, readings: tuple[str, ...] = ()) -> Discovery:
    """The discovery with the symmetry of a trial in place of O(A) of its candidate."""
    found, samples, posed, plain = case.found, case.samples, case.posed, case.plain
    claim, end, fitted, c = trial.end.claim, trial.end, trial.fitted, trial.comparison
    n, rep, test = samples.n, fitted.network.rep, posed.given.held_out
    symmetry = symmetry_out(posed, claim, end.theta)
    matrices = torch.stack([claim.split(t, n)[0] for t in (end.theta, *trial.refits)])
    exact, skew = end.degree is not None, symmetry.skew
    candidate, entry, eigen = None, None, None
    errors = _form_errors(posed, claim, symmetry, matrices, exact)
    if claim.directions:
        errors = [without_open(symmetry, errors[0][0])]
    if symmetry.forms:
        candidate = symmetry.form_of(claim.output_space)
        entry, eigen = errors[claim.output_space]
        readings = tuple(text.replace("O(A)", symmetry.form.group_name) for text in readings)
    network = _network_out(fitted, claim, posed, candidate)
    peers, own = peers_of(posed, c, symmetry)
    assert found.held_out is not None
    wider = Wider(
        symmetry,
        claim.name,
        None if plain is None else max(0.0, min(1.0, plain.everyone.unexplained) - c.everyone.unexplained),
        *_errors(trial, posed),
        claim.axial,
        claim.output_space,
        claim.odd,
        readings,
        () if skew is None else skew_errors(posed.frame, skew, matrices[:, -1], exact),
        _map_errors(posed, matrices[:, claim.forms :], exact) if claim.linked else (),
        tuple(_nested(*of_form) for of_form in errors),
    )
    return replace(
        found,
        verdict=trial.verdict,
        reason=trial.reason,
        advice=trial.advice,
        confidence=confidence(trial.evidence, trial.verdict),
        output=repr(rep),
        provenance=Provenance.of(
            samples, case.seed, case.clock, case.tolerance, found.provenance.errors, fitted.kind
        ),
        candidate=candidate,
        entry_errors=entry,
        eigenvalue_errors=eigen,
        refits=len(matrices),
        network=network,
        network_options=fitted.options,
        evidence=trial.evidence,
        peers=peers,
        certificate=certificate(network, symmetry, rep, test, wider.kinds(test.points), claim.output_space),
        held_out=(found.held_out[0], own.flatten().numpy()[: len(found.held_out[0])]),
        wider=wider,
        notices=with_few(found, trial.evidence, posed),
    )


def _network_out(fitted: Fitted, claim: Claim, posed: Posed, candidate: QuadraticForm | None) -> InFrame:
    """The network of the frame, for the given coordinates."""
    # Odd outputs change their sign with a frame that does; the samples of the frame were taken as even.
    sign = -1.0 if claim.odd and float(torch.linalg.det(posed.frame.W)) < 0 else 1.0
    W = posed.frame.W
    if posed.frames:
        n = posed.given.train.n  # shorter vectors are filled up with zeros
        frames = [posed.frames[space].W for space in claim.spaces]
        W = torch.stack([torch.block_diag(W, torch.eye(n - len(W), dtype=W.dtype)) for W in frames])
    return InFrame(fitted.network, W, sign * posed.unit, candidate, posed.x_unit)


def _form_errors(
    posed: Posed, claim: Claim, symmetry: Symmetry, matrices: Tensor, exact: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Standard errors of entries and eigenvalues of each form, in the given coordinates."""
    forms = matrices[:, : claim.forms]
    if claim.linked:  # the others follow from the first by their maps
        maps = matrices[:, claim.forms :]
        forms = torch.cat([forms, maps.mT @ forms @ maps], 1)
    frames = posed.frames or [posed.frame] * len(symmetry.forms)
    return [
        given_errors(frame, form, forms[:, place, : form.n, : form.n], exact)
        for place, (frame, form) in enumerate(zip(frames, symmetry.forms))
    ]


def _nested(
    entries: np.ndarray, values: np.ndarray
) -> tuple[tuple[tuple[float, ...], ...], tuple[float, ...]]:
    """Errors of entries and eigenvalues, as `Wider` keeps them."""
    return tuple(map(tuple, entries.tolist())), tuple(values.tolist())


def _map_errors(posed: Posed, maps: Tensor, exact: bool) -> tuple[float, ...]:
    """Standard errors of maps, as shares of their size, in the given coordinates; the first of the maps was found."""
    T = unit_form(posed.frame.inverse @ maps @ posed.frame.W)
    off = torch.linalg.matrix_norm(T[1:] - T[:1]).square().mean(0).sqrt() / posed.frame.n**0.5
    return tuple(((1.0 if exact else UNDERSTATED) * off).tolist()) if len(T) > 1 else ()


def _errors(trial: Trial, posed: Posed) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Standard errors of directions, in degrees, and of the origin, in the given coordinates."""
    claim, n = trial.end.claim, posed.frame.n
    factor = UNDERSTATED if trial.end.degree is None else 1.0
    back = posed.frame.inverse
    parts = [claim.split(theta, n)[1:] for theta in (trial.end.theta, *trial.refits)]
    s, c = (torch.stack([part[i] @ back.mT for part in parts]) for i in range(2))
    turned = (
        torch.stack([angles(t, s[0]) for t in s[1:]]).square().mean(0).sqrt() if len(s) > 1 else s[0, :, 0]
    )
    moved = posed.x_unit * (c[1:] - c[:1]).square().mean(0).sqrt().flatten()
    return tuple((factor * turned).tolist()), tuple((factor * moved).tolist())


# The pencil of forms that a direction leaves open


def without_open(symmetry: Symmetry, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standard errors of entries and eigenvalues of the form, not numbers where directions leave these open."""
    A, s = symmetry.form.matrix.numpy(), symmetry.directions.numpy()
    Q, _ = np.linalg.qr((s @ A).T)
    P, vectors = Q @ Q.T, np.linalg.eigh(A)[1]
    values = np.sqrt(np.square(np.einsum("ik,jk->kij", vectors, vectors) * entries).sum((1, 2)))
    # Not by eigenvectors, which mean nothing where eigenvalues are alike.
    nudge = NUDGE * np.linalg.norm(A, 2)
    along = np.abs(np.linalg.eigvalsh(A + nudge * P) - np.linalg.eigvalsh(A)) / nudge
    size = np.sqrt(np.outer(P.diagonal(), P.diagonal()))  # the most that an entry can move
    return np.where(size > OPEN, np.nan, entries), np.where(along > OPEN, np.nan, values)


def in_pencil(A: Tensor, B: Tensor, b: Tensor) -> float:
    """|s| of B = s (A + t (Ab)(Ab)ᵀ): what no t changes of A is as many times larger in B."""
    a = A @ b
    columns = torch.stack([A.flatten(), torch.outer(a, a).flatten()], 1)
    both = torch.linalg.lstsq(columns / columns.norm(dim=0), B.flatten()[:, None]).solution
    return abs(float(both[0])) / float(A.norm())


def with_form_of(found: Discovery, symmetry: Symmetry, convention: str) -> Discovery:
    """The discovery with another of the forms that its direction leaves open; its group is the same."""
    assert found.wider is not None and found.candidate is not None and found.network is not None
    scale = in_pencil(found.candidate.matrix, symmetry.form.matrix, symmetry.directions[0])
    entries, values = without_open(symmetry, scale * np.nan_to_num(np.array(found.wider.form_errors[0][0])))
    net = found.network
    return replace(
        found,
        candidate=symmetry.form,
        entry_errors=entries,
        eigenvalue_errors=values,
        network=InFrame(net.net, net.W, net.unit, symmetry.form, float(net.x_unit)),
        wider=replace(
            found.wider, symmetry=symmetry, form_errors=(_nested(entries, values),), convention=convention
        ),
    )
