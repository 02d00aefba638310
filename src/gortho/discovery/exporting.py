"""The predictor for other programs: torch.export and ONNX, with A frozen."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from gortho.nn.framed import InFrame


def export(net: InFrame, path: Path) -> Path:
    """Write a predictor to ``.pt2`` or ``.onnx``; any batch size works there."""
    example: list[Tensor] = [torch.randn(4, net.points, net.n, dtype=torch.float64)]
    names = ["x"]
    if net.point_scalars:
        example.append(torch.randn(4, net.points, net.point_scalars, dtype=torch.float64))
        names.append("point_scalars")
    if net.sample_scalars:
        example.append(torch.randn(4, net.sample_scalars, dtype=torch.float64))
        names.append("sample_scalars")
    size = torch.export.Dim("batch", min=1)
    program = torch.export.export(
        net, (), dict(zip(names, example)), dynamic_shapes={name: {0: size} for name in names}
    )
    if path.suffix == ".pt2":
        torch.export.save(program, path)
    elif path.suffix == ".onnx":
        try:
            exported = torch.onnx.export(program, dynamo=True, verbose=False)
            assert exported is not None  # it is None for files that torch writes itself
            exported.save(path)
        except ModuleNotFoundError as error:
            raise ImportError(f"ONNX export needs {error.name}: pip install 'gortho[export]'") from None
    else:
        raise ValueError(f"{path.name}: choose the suffix .pt2 (torch.export) or .onnx")
    return path
