"""Saved discoveries: written atomically, and verified when they are read."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as tensor_bytes
from torch import Tensor

from gortho.discovery.predictor import build_network
from gortho.discovery.result import Discovery
from gortho.files import write_whole
from gortho.forms import QuadraticForm
from gortho.nn.framed import InFrame
from gortho.stored import restored, stored

FORMAT = "gortho discovery 5"
FILE = "discovery.json"
#: What files of weights are called: nothing else that a run names is read or replaced.
WEIGHTS = re.compile(r"network-[0-9a-f]{12}\.safetensors")
#: Bytes that must be free before a search whose run is to be saved: more than a run takes.
ROOM = 20_000_000
#: Fields that runs of this format need not have: they came later.
LATER = {"formula", "reach", "scalar_columns"}
#: Parts of a stored network that follow from the form.
DERIVED = ("form.", "net.form.", "back")


def check_writable(directory: Path) -> None:
    """Find out, by doing it, that a run can be saved there; leaves no directory that was not there before."""
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is a file: give a directory")
    probe = directory / f".{FILE}.{os.getpid()}.tmp"
    made = [path for path in (directory, *directory.parents) if not path.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"?")
        probe.unlink()
        free = shutil.disk_usage(directory).free
    except OSError as error:
        raise ValueError(
            f"{directory} cannot be written to ({error.strerror}): choose another directory"
        ) from None
    finally:
        for path in made:
            with suppress(OSError):  # not made after all, or used by now
                path.rmdir()
    if free < ROOM:
        raise ValueError(f"{directory} has {free / 1e6:.0f} MB left: a run needs up to {ROOM / 1e6:.0f} MB")


def save(found: Discovery, directory: Path) -> Path:
    """Write a discovery: the weights under a name that tells their content, then the file that names them.

    A kill, a full disk or a second writer leaves the run that was there before, or a new one, never a mixture.
    """
    content = {"format": FORMAT, **stored(replace(found, network=None))}
    del content["network"]
    weights = _network_bytes(found)
    if weights is not None:
        digest = hashlib.sha256(weights).hexdigest()
        content["weights"] = {"file": f"network-{digest[:12]}.safetensors", "sha256": digest}
    content["sha256"] = _digest(content)
    text = json.dumps(content, indent=1)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(
            f"{directory} cannot be written to ({error.strerror}): choose another directory"
        ) from None
    before, named = _weights_named_in(directory), content.get("weights", {}).get("file")
    if weights is not None:
        write_whole(directory / named, lambda path: path.write_bytes(weights))
    try:
        write_whole(directory / FILE, lambda path: path.write_text(text, encoding="utf-8"))
    except BaseException:
        if named is not None and named != before:
            (directory / named).unlink(missing_ok=True)
        raise
    if before is not None and before != named:
        (directory / before).unlink(missing_ok=True)
    return directory


def load(directory: Path) -> Discovery:
    """Read what `save` wrote, or say what is missing, damaged or of another version."""
    path = directory / FILE
    if not path.is_file():
        raise FileNotFoundError(f"{directory} holds no {FILE}: give a directory written by save")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kind = content["format"]
    except (ValueError, KeyError, TypeError) as error:
        # The text of the error may hold the whole file.
        raise ValueError(
            f"{path} is not a saved discovery, or damaged ({type(error).__name__}): make it again, or copy it again"
        ) from None
    if kind != FORMAT:
        raise ValueError(
            f"{path} is not a saved discovery of this version: {_writer(content)} wrote {kind!r}, and {FORMAT!r} is "
            "read: make it again, or read it with that version"
        )
    if content.pop("sha256", None) != _digest(content):
        raise ValueError(
            f"{path} was damaged or changed since {_writer(content)} wrote it (its checksum is wrong): make it "
            "again, or copy it again"
        )
    del content["format"]
    weights = content.pop("weights", None)
    found = _of_json(content, path)
    if weights is None:
        return found
    if not WEIGHTS.fullmatch(str(weights["file"])):
        raise ValueError(
            f"{path} names {weights['file']!r} as its weights, which no version writes: make it again, or copy it again"
        )
    return replace(found, network=_network(directory / weights["file"], weights["sha256"], found))


def _network(path: Path, digest: str, found: Discovery) -> InFrame:
    """The predictor from its file, if that is the one that was written with the run."""
    writer = f"gortho {found.provenance.versions.get('gortho', 'of unknown version')}"
    if not path.is_file():
        raise ValueError(
            f"{path} is missing: {writer} wrote it beside {FILE}, copy it there or make the run again"
        )
    stored = path.read_bytes()
    if hashlib.sha256(stored).hexdigest() != digest:
        raise ValueError(
            f"{path} is damaged or belongs to another run: its checksum is not the one {writer} wrote"
        )
    try:
        return _network_of(load_tensors(stored), found)
    except (SafetensorError, RuntimeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} does not fit this version; {writer} wrote it ({error})") from None


def _writer(content: dict[str, Any]) -> str:
    try:
        # Runs of 0.1.0 have facts.
        versions = content["facts"] if "facts" in content else content["provenance"]["versions"]
        return f"gortho {versions['gortho']}"
    except (KeyError, TypeError):
        return "an unknown version of gortho"


def _digest(content: dict[str, Any]) -> str:
    """The checksum of JSON values, however they are laid out."""
    text = json.dumps(json.loads(json.dumps(content)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _weights_named_in(directory: Path) -> str | None:
    """The file of weights of the run that is there already."""
    try:
        name = json.loads((directory / FILE).read_text(encoding="utf-8"))["weights"]["file"]
        return name if WEIGHTS.fullmatch(name) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _of_json(content: dict[str, Any], path: Path) -> Discovery:
    known = {field.name for field in fields(Discovery)} - {"network"}
    for told, names in (("has no", known - set(content) - LATER), ("holds", set(content) - known)):
        if names:
            raise ValueError(
                f"{path} {told} {', '.join(sorted(names))}: {_writer(content)} wrote it, make it again"
            )
    try:
        return restored(content, Discovery)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} is not a saved discovery: {_writer(content)} wrote it ({error!r})"
        ) from None


def _network_bytes(found: Discovery) -> bytes | None:
    if found.network is None:
        return None
    stored = found.network.state_dict()
    state = {name: v.contiguous() for name, v in stored.items() if not name.startswith(DERIVED)}
    return tensor_bytes(state | {"A": found.network.net.form.value().matrix})


def _network_of(state: dict[str, Tensor], found: Discovery) -> InFrame:
    """The predictor from its stored weights and form in the frame."""
    A = state.pop("A")
    form = None if "symmetry" in found.network_options else QuadraticForm(A)
    net = build_network(form, found.output, found.network_options)
    whole = InFrame(net, state["W"], state["unit"], found.candidate, float(state["x_unit"]))
    derived = {k: v for k, v in whole.state_dict().items() if k.startswith(DERIVED)}
    whole.load_state_dict(state | derived)
    return whole
