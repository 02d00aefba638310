"""Along a direction b the form is undetermined: that part is chosen by convention, and has no error (M16)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gortho.discovery.result import Discovery
from gortho.nn.framed import InFrame
from gortho.symmetry import Symmetry

#: Entries and eigenvalues are a convention where so much of them moves along (Ab)(Ab)ᵀ, as a share of its size.
OPEN = 0.1
#: How far the form is moved to see that, as a share of it.
NUDGE = 0.01


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


def with_form_of(found: Discovery, symmetry: Symmetry, convention: str) -> Discovery:
    """The discovery with another of the forms that its direction leaves open; its group is the same."""
    assert found.wider is not None and found.candidate is not None and found.network is not None
    old, new = found.candidate.matrix.numpy(), symmetry.form.matrix.numpy()
    b = symmetry.directions[0].numpy()
    across = np.eye(len(b)) - np.outer(b, b)  # b does not see what t changes, up to the gauge
    scale = np.linalg.norm(across @ new @ across) / np.linalg.norm(across @ old @ across)
    entries, values = without_open(symmetry, scale * np.nan_to_num(np.array(found.wider.form_errors[0][0])))
    net = found.network
    nested = tuple(map(tuple, entries.tolist())), tuple(values.tolist())
    return replace(
        found,
        candidate=symmetry.form,
        entry_errors=entries,
        eigenvalue_errors=values,
        network=InFrame(net.net, net.W, float(net.unit), symmetry.form, float(net.x_unit)),
        wider=replace(found.wider, symmetry=symmetry, form_errors=(nested,), convention=convention),
    )
