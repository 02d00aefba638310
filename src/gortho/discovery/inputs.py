"""What a discovery is applied to: vectors and scalars, those of tables by the names of their columns."""

from __future__ import annotations

from typing import Any

from gortho.nn.framed import InFrame
from gortho.samples.arranged import as_found
from gortho.samples.door import split_scalars
from gortho.samples.named import check_counts, check_lengths, check_rows


def vectors(found: Any, X: Any) -> Any:
    """Vectors ``(N, n)`` or ``(N, p, n)`` for a discovery."""
    symmetry = None if found.wider is None else found.wider.symmetry
    if symmetry is not None and len(set(symmetry.dims)) > 1:
        return as_found(X, [form.names for form in symmetry.forms], symmetry.spaces, found.columns)
    return as_found(X, [found.names], [0] * int(found.network_options.get("points", 1)), found.columns)


def inputs(found: Any, net: InFrame, X: Any, scalars: Any) -> tuple[Any, Any, Any]:
    """Vectors, scalars of points and scalars of samples for the predictor of a discovery."""
    check_rows(X=X, scalars=scalars)
    points = vectors(found, X)
    given = split_scalars(scalars, points.shape[1] if points.ndim == 3 else 1, found.scalar_columns)
    check_lengths(given, len(points))
    check_counts(given, (net.point_scalars, net.sample_scalars), found.scalar_columns)
    return points, *given
