"""What a discovery hands back: the verdict, the form with its intervals, and a predictor that respects it exactly."""

from __future__ import annotations

import json
import math
import textwrap
import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from scipy.stats import t as student_t
from torch import Tensor

from gortho.checkpoints import write_whole
from gortho.discovery.predictor import Kind, build_network
from gortho.discovery.search import Errors
from gortho.discovery.verdict import Evidence, Verdict
from gortho.forms import ZERO_TOLERANCE, QuadraticForm
from gortho.nn.framed import InFrame
from gortho.report.words import with_interval
from gortho.samples.door import as_tuples, split_scalars
from gortho.testing import equivariance_error
from gortho.training import predict

_FORMAT = "gortho discovery 2"
#: Columns of the sentences in the printed answer.
WIDTH = 96


class NotAccepted(UserWarning):
    """A prediction was asked of a form that the verdict does not accept."""


@dataclass(frozen=True)
class Peer:
    """One row of the table of held-out errors."""

    model: str
    mse: float
    relative_mse: float
    parameters: int
    note: str = ""


@dataclass(frozen=True)
class Restart:
    """Where one start of the search ended: its form, in the given coordinates, and the error to expect there."""

    start: str
    form: QuadraticForm
    criterion: float
    distance: float  # to the best one, in the frame


@dataclass(frozen=True)
class Source:
    """The file that samples were read from, and the columns or arrays of each part ("x", "y", "scalars")."""

    file: str
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Provenance:
    """Where an answer comes from: what was given, and how it was found."""

    samples: int
    points: int
    n: int
    seed: int
    errors: Errors = Errors.ABSOLUTE
    predictor: Kind | None = None
    stages: dict[str, float] = field(default_factory=dict)  # seconds
    versions: dict[str, str] = field(default_factory=dict)
    source: Source | None = None

    @property
    def seconds(self) -> float:
        """Seconds in all."""
        return sum(self.stages.values())

    def facts(self) -> dict[str, str]:
        """The same in words, for the report."""
        facts = {
            "samples": f"{self.samples}",
            "vectors in a sample": f"{self.points}",
            "dimension": f"{self.n}",
            "errors": self.errors.value,
            "seed": f"{self.seed}",
            "seconds": f"{self.seconds:.1f}",
            "seconds by stage": ", ".join(f"{name} {s:.1f}" for name, s in self.stages.items()),
        }
        if self.predictor is not None:
            facts["predictor"] = self.predictor.value
        if self.source is not None:
            facts["file"] = self.source.file
            facts |= {f"{part} read from": ", ".join(names) for part, names in self.source.columns.items()}
        return facts | self.versions


@dataclass(frozen=True)
class Discovery:
    """The answer to: is there a quadratic form behind my data, which one, and how sure are you?

    Attributes:
        verdict: `Verdict.FOUND`, `NONE` or `UNDERDETERMINED`; ``reason`` and ``advice`` say why and what to do.
        confidence: probability that the signature is right (see `gortho.discovery.verdict.confidence`).
        candidate: the best form there is, whatever the verdict; ``form`` is the same, but only when FOUND.
        entry_errors, eigenvalue_errors: standard errors from refits; `intervals` and `eigenvalue_intervals` are made
            of them.
        refits: how many refits there were.
        network: the predictor, in float64, with the candidate frozen inside.
        network_options: what it was built with.
        certificate: relative equivariance error of the predictor by largest boost, in float64.
        evidence: the measurements behind the verdict.
        restarts: where the starts of the search ended, the best first.
        provenance: samples, seed, errors, times, versions.
    """

    verdict: Verdict
    reason: str
    advice: str
    confidence: float
    output: str
    names: tuple[str, ...]
    provenance: Provenance
    candidate: QuadraticForm | None = None
    entry_errors: np.ndarray | None = None
    eigenvalue_errors: np.ndarray | None = None
    refits: int = 0
    network: InFrame | None = None
    network_options: dict[str, Any] = field(default_factory=dict)
    evidence: Evidence | None = None
    peers: tuple[Peer, ...] = ()
    certificate: dict[float, float] = field(default_factory=dict)
    free_certificate: dict[float, float] = field(default_factory=dict)
    restarts: tuple[Restart, ...] = ()
    held_out: tuple[np.ndarray, np.ndarray] | None = None  # true and predicted, flat
    notices: tuple[str, ...] = ()

    @property
    def form(self) -> QuadraticForm | None:
        """The discovered form; None unless the verdict is FOUND."""
        return self.candidate if self.verdict is Verdict.FOUND else None

    @property
    def group_name(self) -> str | None:
        """The name of the discovered group; None unless FOUND."""
        return self.form.group_name if self.form else None

    @property
    def generators(self) -> np.ndarray | None:
        """Orthonormal generators of the candidate's group, ``(d, n, n)``."""
        return self.candidate.group().algebra().numpy() if self.candidate else None

    @property
    def interval_factor(self) -> float:
        """Half of a 95 % interval in standard errors: Student's t, since a few refits tell an error only roughly."""
        return float(student_t.ppf(0.975, self.refits - 1)) if self.refits > 1 else math.nan

    @property
    def intervals(self) -> tuple[np.ndarray, np.ndarray] | None:
        """95 % intervals of the entries of the gauge-fixed A: lower and upper ``(n, n)``."""
        if self.candidate is None or self.entry_errors is None:
            return None
        A, half = self.candidate.matrix.numpy(), self.interval_factor * self.entry_errors
        return A - half, A + half

    @property
    def eigenvalue_intervals(self) -> tuple[np.ndarray, np.ndarray] | None:
        """95 % intervals of the eigenvalues, ascending: lower and upper ``(n,)``."""
        if self.candidate is None or self.eigenvalue_errors is None:
            return None
        values, half = self.candidate.eigenvalues.numpy(), self.interval_factor * self.eigenvalue_errors
        return values - half, values + half

    def law(self, digits: int = 2) -> str:
        """The candidate as a formula, without small terms whose interval holds zero (`QuadraticForm.law`)."""
        if self.candidate is None:
            return ""
        half = None if self.entry_errors is None else self.interval_factor * self.entry_errors
        return self.candidate.law(digits, half)

    def _network(self) -> InFrame:
        if self.network is None:
            raise ValueError(f"there is no predictor: the verdict is {self.verdict} ({self.reason})")
        if self.verdict is not Verdict.FOUND:
            warnings.warn(
                f"predicting with a form that was not accepted: {self.verdict}", NotAccepted, stacklevel=3
            )
        return self.network

    def predict(self, X: Any, scalars: Any = None) -> np.ndarray:
        """Predictions ``(N, …)`` for inputs as in `discover`, exactly equivariant under the candidate's group."""
        net = self._network()
        points = as_tuples(X)
        point, sample = split_scalars(scalars, points.shape[1] if points.ndim == 3 else 1)
        return predict(net, points, point, sample).numpy()

    def equivariance_error(self, X: Any, scalars: Any = None, max_boost: float = 1.0, seed: int = 0) -> float:
        """Relative equivariance error of the predictor on given inputs, in float64."""
        net = self._network()
        points = as_tuples(X)
        given = [
            None if s is None else torch.as_tensor(s)
            for s in split_scalars(scalars, points.shape[1] if points.ndim == 3 else 1)
        ]
        return equivariance_error(
            net,
            net.form.value(),
            "vector",
            net.rep,
            points,
            max_boost=max_boost,
            seed=seed,
            arguments=tuple(given),
        )

    # Words

    def headline(self) -> str:
        """The verdict in one sentence."""
        if self.verdict is Verdict.FOUND and self.candidate is not None:
            sure = (
                f"confidence {100 * self.confidence:.0f} %"
                if self.confidence < 0.995
                else "confidence above 99 %"
            )
            return f"The data respects a quadratic form with group {self.candidate.group_name} ({sure})."
        return {
            Verdict.NONE: "The data does not respect any quadratic form.",
            Verdict.UNDERDETERMINED: "The data cannot tell whether, or which, quadratic form it respects.",
            Verdict.FOUND: "",
        }[self.verdict]

    def __str__(self) -> str:
        lines = [f"{self.verdict.name}: {self.headline()}"]
        if self.candidate is not None:
            label = "law" if self.verdict is Verdict.FOUND else "best candidate, not accepted"
            lines.append(f"  {label}: {self.law()}   [{self.candidate.group_name}]")
            lines.append(f"  {self._eigenvalue_words()}")
        lines += [_sentences(f"  why: {self.reason}"), _sentences(f"  next: {self.advice}")]
        for peer in self.peers:
            lines.append(
                f"  held-out error, {peer.model}: {peer.relative_mse:.2e} of the variance (MSE {peer.mse:.2e})"
            )
        if self.certificate:
            boost, error = next(reversed(self.certificate.items()))
            lines.append(f"  equivariance error of the predictor (boosts to {boost:g}): {error:.1e}")
        lines += [_sentences(f"  note: {notice}") for notice in self.notices]
        return "\n".join(lines)

    def _eigenvalue_words(self) -> str:
        assert self.candidate is not None
        values = self.candidate.eigenvalues.numpy()
        values = np.where(np.abs(values) < ZERO_TOLERANCE * np.abs(values).max(), 0.0, values)
        half = None if self.eigenvalue_errors is None else self.interval_factor * self.eigenvalue_errors
        known = half is not None and bool(np.isfinite(half).all())
        halves = half if half is not None and known else np.full(len(values), math.nan)
        pairs = [with_interval(float(v), float(h), digits=1) for v, h in zip(values, halves)]
        text = ", ".join(f"{v} ± {h[1:]}" if known else v for v, h in pairs).replace("−", "-")
        return f"eigenvalues (± 95 %): {text}" if known else f"eigenvalues: {text} (error bars not computed)"

    # Files

    def to_html(self, path: str | Path) -> Path:
        """Write the report, one self-contained HTML page."""
        from gortho.discovery.page import report_data
        from gortho.report import render

        path = Path(path)
        path.write_text(render(report_data(self)), encoding="utf-8")
        return path

    def save(self, directory: str | Path) -> Path:
        """Write the discovery to a directory: weights as safetensors, all else as JSON."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        p = self.provenance
        content: dict[str, Any] = {
            "format": _FORMAT,
            "verdict": self.verdict.name,
            "candidate": None if self.candidate is None else json.loads(self.candidate.to_json()),
            "entry_errors": None if self.entry_errors is None else self.entry_errors.tolist(),
            "eigenvalue_errors": None if self.eigenvalue_errors is None else self.eigenvalue_errors.tolist(),
            "evidence": None if self.evidence is None else asdict(self.evidence),
            "peers": [asdict(peer) for peer in self.peers],
            "certificate": list(self.certificate.items()),
            "free_certificate": list(self.free_certificate.items()),
            "restarts": [vars(r) | {"form": json.loads(r.form.to_json())} for r in self.restarts],
            "held_out": None if self.held_out is None else [part.tolist() for part in self.held_out],
            "provenance": asdict(p)
            | {"errors": p.errors.name, "predictor": p.predictor and p.predictor.name},
        }
        plain = (
            "reason", "advice", "confidence", "output", "names", "refits", "network_options", "notices"
        )  # fmt: skip
        content |= {name: getattr(self, name) for name in plain}
        if self.network is not None:
            state = {
                k: v.contiguous() for k, v in self.network.state_dict().items() if not k.startswith(_DERIVED)
            }
            state["A"] = self.network.net.form.value().matrix
            write_whole(directory / "network.safetensors", lambda path: save_file(state, path))
        text = json.dumps(content, indent=1)
        write_whole(directory / "discovery.json", lambda path: path.write_text(text, encoding="utf-8"))
        return directory

    @classmethod
    def load(cls, directory: str | Path) -> Discovery:
        """Read what `save` wrote."""
        directory = Path(directory)
        path = directory / "discovery.json"
        if not path.is_file():
            raise FileNotFoundError(f"{directory} holds no discovery.json: give a directory written by save")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.pop("format") != _FORMAT:
                raise KeyError("format")
            candidate = content["candidate"]
            content["candidate"] = None if candidate is None else _form(candidate)
            content["verdict"] = Verdict[content["verdict"]]
            for name in ("names", "notices"):
                content[name] = tuple(content[name])
            for name in ("entry_errors", "eigenvalue_errors"):
                content[name] = None if content[name] is None else np.array(content[name])
            content["evidence"] = None if content["evidence"] is None else Evidence(**content["evidence"])
            content["peers"] = tuple(Peer(**peer) for peer in content["peers"])
            content["certificate"] = {float(b): float(e) for b, e in content["certificate"]}
            content["free_certificate"] = {float(b): float(e) for b, e in content["free_certificate"]}
            content["restarts"] = tuple(
                Restart(**(r | {"form": _form(r["form"])})) for r in content["restarts"]
            )
            content["provenance"] = _provenance(content["provenance"])
            if content["held_out"] is not None:
                content["held_out"] = tuple(np.array(part) for part in content["held_out"])
            found = cls(**content)
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} is not a saved discovery, or of another version ({error!r})") from None
        weights = directory / "network.safetensors"
        if found.candidate is not None and weights.exists():
            try:
                network = _network_of(load_file(weights), found)
            except (SafetensorError, RuntimeError, KeyError) as error:
                raise ValueError(f"{weights} is damaged or belongs to another run ({error})") from None
            found = replace(found, network=network)
        return found

    def export(self, path: str | Path) -> Path:
        """Write the predictor with A frozen: ``.pt2`` for torch.export, ``.onnx`` for ONNX (extra ``export``).

        The exported model takes float64 tensors x ``(batch, p, n)`` and the scalars, if any; any batch size works.
        """
        net, path = self._network(), Path(path)
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
                torch.onnx.export(program, dynamo=True, verbose=False).save(path)  # type: ignore[union-attr]
            except ModuleNotFoundError as error:
                raise ImportError(f"ONNX export needs {error.name}: pip install 'gortho[export]'") from None
        else:
            raise ValueError(f"{path.name}: choose the suffix .pt2 (torch.export) or .onnx")
        return path


def _form(content: dict[str, Any]) -> QuadraticForm:
    return QuadraticForm.from_json(json.dumps(content))


def _provenance(content: dict[str, Any]) -> Provenance:
    source = content["source"]
    if source is not None:
        columns = {part: tuple(names) for part, names in source["columns"].items()}
        source = Source(source["file"], columns)
    kind = content["predictor"]
    return Provenance(
        **content | {"errors": Errors[content["errors"]], "predictor": kind and Kind[kind], "source": source}
    )


#: Parts of a stored network that follow from the form.
_DERIVED = ("form.", "net.form.", "back")


def _network_of(state: dict[str, Tensor], found: Discovery) -> InFrame:
    """The predictor from its stored weights and form in the frame."""
    net = build_network(QuadraticForm(state.pop("A")), found.output, found.network_options)
    whole = InFrame(net, state["W"], float(state["unit"]), found.candidate, float(state["x_unit"]))
    derived = {k: v for k, v in whole.state_dict().items() if k.startswith(_DERIVED)}
    whole.load_state_dict(state | derived)
    return whole


def _sentences(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="    ", break_on_hyphens=False)
