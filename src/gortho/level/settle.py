"""What of a quadric is zero, as far as the points tell, and how certain the rest is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from gortho.discovery.verdict import SIGN_ERRORS, ZERO_ERRORS, ZERO_SHARE
from gortho.level.evidence import LevelEvidence
from gortho.level.fit import EXACT, Quadric
from gortho.samples.frame import form_distance

#: A zero eigenvalue cannot be, within two standard errors, larger than this share of the largest, in columns of unit
#: size; nor can an axis that leaves a column alone have a larger component there, if that is not told from zero.
ZERO_BOUND = 0.1


def settle(
    z: np.ndarray, quadric: Quadric, refits: list[Quadric], evidence: LevelEvidence, columns: np.ndarray
) -> tuple[Quadric, LevelEvidence]:
    """The quadric with zeros where the data allow them (singular directions, a cone), and how certain the rest is.

    ``columns`` takes points in columns of unit size to z.
    """
    values, Q = np.linalg.eigh(quadric.A)
    largest = np.abs(values).max()
    errors = np.std([np.einsum("ik,ij,jk->k", Q, r.A / np.linalg.norm(r.A), Q) for r in refits], axis=0)
    errors = errors * np.linalg.norm(quadric.A)
    zero = (
        (np.abs(values) <= ZERO_SHARE * largest)
        & (np.abs(values) <= np.maximum(ZERO_ERRORS * errors, EXACT * largest))
        & (_bounds(quadric, refits, Q, columns) <= ZERO_BOUND)
    )
    b, b_errors = Q.T @ quadric.b, np.std([Q.T @ r.b for r in refits], axis=0)
    off = zero & (np.abs(b) > np.maximum(ZERO_ERRORS * b_errors, EXACT * largest))
    kept = Q[:, ~zero]
    A = (Q * np.where(zero, 0.0, values)) @ Q.T
    settled = Quadric((A + A.T) / 2, kept @ (kept.T @ quadric.b), quadric.f)
    centres = np.array([centre_in(r, kept) for r in refits])
    distances = [form_distance(torch.from_numpy(quadric.A), torch.from_numpy(r.A)) for r in refits]
    levels = np.std([level_in(r, kept) / np.linalg.norm(r.A) for r in refits]) * np.linalg.norm(A)
    at = z - settled.centre
    typical = float(np.abs(((at @ kept) ** 2 * np.abs(values[~zero])).sum(1)).mean())
    sure = np.abs(values[~zero]) / np.maximum(errors[~zero], 1e-300)
    return settled, replace(
        evidence,
        spread=float(np.median(distances)),
        centre_error=float(centres.std(0).max()),
        weakest_eigenvalue=float(min(sure.min(), 1e6)),
        cone=bool(
            abs(settled.level) <= min(ZERO_SHARE * typical, max(ZERO_ERRORS * levels, EXACT * typical))
        ),
        runs_off=bool(off.any()),
    )


def _bounds(quadric: Quadric, refits: list[Quadric], Q: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """How large the forms of directions Q can be, as shares of the largest eigenvalue in columns of unit size.

    The frame stretches what is thin: a form that is small there, on a short arc, need not be small to the user.
    """
    along = np.linalg.solve(columns, Q)
    along = along / np.linalg.norm(along, axis=0)
    forms = [columns.T @ one.A @ columns for one in (quadric, *refits)]
    shares = np.array([np.einsum("ik,ij,jk->k", along, B, along) / np.linalg.norm(B, 2) for B in forms])
    return np.asarray(np.abs(shares[0]) + SIGN_ERRORS * shares[1:].std(0))


def free_columns(null: np.ndarray, refits: list[Quadric], columns: np.ndarray) -> np.ndarray:
    """In which columns ``(n,)`` the centre is free, as directions ``null`` (n, k) of the quadric are zero."""

    def projector(directions: np.ndarray) -> np.ndarray:
        basis = np.linalg.qr(np.linalg.solve(columns, directions))[0]
        return np.asarray(basis @ basis.T)

    P, zeros = projector(null), null.shape[1]
    changes = []
    for one in refits:
        values, Q = np.linalg.eigh(one.A)
        changes.append(np.linalg.norm(projector(Q[:, np.argsort(np.abs(values))[:zeros]]) - P, axis=0))
    errors = np.sqrt(np.square(changes).mean(0))
    told = np.minimum(ZERO_ERRORS * errors, ZERO_BOUND)
    return np.asarray(np.linalg.norm(P, axis=0) > np.maximum(told, EXACT))


def centre_in(quadric: Quadric, kept: np.ndarray) -> np.ndarray:
    """The centre, of directions ``kept`` (n, k) only."""
    return -kept @ np.linalg.solve(kept.T @ quadric.A @ kept, kept.T @ quadric.b)


def level_in(quadric: Quadric, kept: np.ndarray) -> float:
    """The level about that centre."""
    return -float(quadric.b @ centre_in(quadric, kept)) - quadric.f
