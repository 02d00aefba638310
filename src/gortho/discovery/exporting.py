"""For other programs: the predictor by torch.export and ONNX, with A frozen; the invariants as a table, and PySR."""

from __future__ import annotations

from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from gortho.discovery.inputs import vectors
from gortho.nn.framed import InFrame
from gortho.objectives.entropy import probabilities
from gortho.reps import Scalar, as_rep
from gortho.samples.called import Labels
from gortho.samples.door import split_scalars
from gortho.samples.named import check_lengths, check_rows, scalars_by_name

if TYPE_CHECKING:
    import pandas as pd

#: What predictors are written to.
SUFFIXES = (".pt2", ".onnx")


class Probabilities(nn.Module):
    """A network of logits, as `Discovery.predict_proba` gives probabilities."""

    def __init__(self, net: InFrame, least: float):
        super().__init__()
        self.net, self.least = net, least

    def forward(
        self, x: Tensor, point_scalars: Tensor | None = None, sample_scalars: Tensor | None = None
    ) -> Tensor:
        """Probabilities ``(batch, classes)``."""
        return probabilities(self.net(x, point_scalars, sample_scalars), self.least)


def export(found: Any, net: InFrame, path: Path) -> Path:
    """Write a predictor to ``.pt2`` or ``.onnx``; any batch size works there. Of classes, it gives probabilities."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path.name}: choose the suffix .pt2 (torch.export) or .onnx")
    example = {"x": torch.randn(4, net.points, net.n_in, dtype=torch.float64)}
    if net.point_scalars:
        example["point_scalars"] = torch.randn(4, net.points, net.point_scalars, dtype=torch.float64)
    if net.sample_scalars:
        example["sample_scalars"] = torch.randn(4, net.sample_scalars, dtype=torch.float64)
    size = torch.export.Dim("batch", min=1)
    model = Probabilities(net, found.least_probability) if found.classes else net
    program = torch.export.export(model, (), example, dynamic_shapes={name: {0: size} for name in example})
    if path.suffix == ".pt2":
        torch.export.save(program, path)
    else:
        _save_onnx(program, path)
    return path


def _save_onnx(program: torch.export.ExportedProgram, path: Path) -> None:
    try:
        from onnxscript import ir, opset18

        op: Any = opset18

        def scalar(s: Any, dtype: int, **more: Any) -> Any:
            """A number as such: torch would round it to float32 first."""
            return op.Constant(value=ir.tensor(float(s), dtype=ir.DataType(dtype)))

        def asinh(x: Any) -> Any:
            """onnxruntime has that of float32 alone."""
            size = op.Abs(x)
            one = op.CastLike(op.Constant(value_float=1.0), x)
            return op.Mul(op.Sign(x), op.Log(op.Add(size, op.Sqrt(op.Add(op.Mul(x, x), one)))))

        own: dict[Any, Any] = {
            torch.ops.aten.scalar_tensor.default: scalar,
            torch.ops.aten.asinh.default: asinh,
        }
        exported = torch.onnx.export(program, dynamo=True, verbose=False, custom_translation_table=own)
    except ModuleNotFoundError as error:
        raise ImportError(f"ONNX export needs {error.name}: pip install 'gortho[export]'") from None
    assert exported is not None  # it is None for files that torch writes itself
    exported.save(path)


def invariants(found: Any, X: Any, scalars: Any = None) -> pd.DataFrame:
    """Inner products ⟨x_i, x_j⟩ and scalars, one column each, named "q" or "q11", "q12", … and as in the formula."""
    import pandas as pd

    if found.symmetry is None or not found.symmetry.plain:
        met = found.symmetry or f"the verdict {found.verdict}"
        raise ValueError(f"a table of invariants is made for O(A) of one form alone, not for {met}")
    check_rows(X=X, scalars=scalars)
    x = np.asarray(vectors(found, X), float)
    x = x[:, None] if x.ndim == 2 else x
    gram = np.einsum("zin,nm,zjm->zij", x, found.symmetry.form.matrix.numpy(), x)
    pairs = list(combinations_with_replacement(range(x.shape[1]), 2))
    table = {f"q{i + 1}{j + 1}" if len(pairs) > 1 else "q": gram[:, i, j] for i, j in pairs}
    scalars = scalars_by_name(scalars, found.scalar_columns)
    given = split_scalars(scalars, x.shape[1])
    check_lengths(given, len(x))
    counts = [0 if s is None else s.shape[-1] for s in given]
    made = [int(found.network_options.get(name, 0)) for name in ("point_scalars", "sample_scalars")]
    if counts != made:
        told = " and ".join(f"{k} for each {of}" for k, of in zip(made, ("point", "sample")) if k) or "none"
        raise ValueError(
            f"the run was made with other scalars than were given: it needs {told}, give them by scalars="
        )
    names = Labels.of(None, None, scalars).full(found.names, x.shape[1], *counts).scalars
    if found.formula is not None and len(found.formula.scalars) == len(names):
        names = found.formula.scalars
    flat = [column for s in given if s is not None for column in s.reshape(len(x), -1).T]
    return pd.DataFrame(table | dict(zip(names, flat)))


def regress(found: Any, X: Any, y: Any, scalars: Any = None, **options: Any) -> Any:
    """PySR's regressor, fitted to y as a function of the invariants."""
    if as_rep(found.output) != Scalar() or found.classes:
        raise ValueError(f"symbolic regression is for scalars: the output was {found.output!r}")
    try:
        from pysr import PySRRegressor
    except ImportError:
        raise ImportError("found.symbolic() needs PySR: pip install 'gortho[pysr]'") from None
    return PySRRegressor(**options).fit(invariants(found, X, scalars), np.asarray(y, float))
