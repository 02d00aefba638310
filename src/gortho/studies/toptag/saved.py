"""Taggers by size, and on disk: `model.safetensors` has the weights, `model.json` what to build around them.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as directory:
...     save_tagger(Tagger(**SIZES["1k"], spurions=[[1.0, 0, 0, 0]]), directory)
...     load_tagger(directory).parameter_count()
1321
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from gortho.files import write_text, write_whole
from gortho.forms import QuadraticForm
from gortho.nn.form import LearnableForm
from gortho.studies.toptag.tagger import Tagger

FORMAT = "gortho-tagger-1"
#: Width, pairs and depth by approximate number of parameters, without reference vectors.
SIZES: dict[str, dict[str, Any]] = {
    "1k": {"width": 8, "pairs": 8, "depth": 1},
    "4k": {"width": 12, "pairs": 12, "depth": 2},
    "11k": {"width": 18, "pairs": 16, "depth": 3},
    "50k": {"width": 40, "pairs": 32, "depth": 3},
    "200k": {"width": 72, "pairs": 48, "depth": 4},
}


def save_tagger(net: Tagger, directory: str | os.PathLike[str]) -> None:
    """Write a tagger to a directory."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    layer: Any = net.layers[0]
    content = {
        "format": FORMAT,
        "form": net.form.value().matrix.tolist(),
        "learnt": net.form.parametrisation if isinstance(net.form, LearnableForm) else None,
        "width": net.point_in.out_features,
        "pairs": layer.pair.shape[1],
        "depth": len(net.layers),
        "hidden": layer.down.in_features,
        "dropout": layer.dropout.p,
        "spurions": net.spurions.double().tolist(),
        "references": 0 if net.learnt is None else len(net.learnt),
    }
    tensors = {name: value.detach().cpu().contiguous() for name, value in net.state_dict().items()}
    write_whole(directory / "model.safetensors", lambda place: save_file(tensors, place))
    write_text(directory / "model.json", json.dumps(content, indent=1))


def load_tagger(directory: str | os.PathLike[str]) -> Tagger:
    """A tagger as `save_tagger` or `gortho train toptag` wrote it, ready to score: ``net(x, mask)``."""
    file = Path(directory) / "model.json"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"{directory} has no model.json: give a directory that gortho train toptag wrote"
        ) from None
    if content.pop("format", None) != FORMAT:
        raise ValueError(f"{file} is not of the format {FORMAT}: train the tagger again")
    form: Any = QuadraticForm(torch.tensor(content.pop("form"), dtype=torch.float64))
    parametrisation = content.pop("learnt")
    if parametrisation is not None:
        form = LearnableForm(form.n, parametrisation=parametrisation, start=form)
    net = Tagger(form, **content)
    tensors = load_file(Path(directory) / "model.safetensors")
    net.load_state_dict({name.replace("jet_", "set_"): value for name, value in tensors.items()})  # as of 0.1
    return net.eval()
