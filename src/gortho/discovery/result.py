"""The result of a discovery: the verdict, the form with its intervals, and a predictor that respects it exactly."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import t as student_t

from gortho.discovery import display, exporting, words
from gortho.discovery.defect import Defect
from gortho.discovery.evidence import Evidence
from gortho.discovery.inputs import inputs
from gortho.discovery.provenance import Provenance, Restart
from gortho.discovery.reach import UNDEFINED, Extrapolated, Reach, collected
from gortho.discovery.verdict import Verdict
from gortho.discovery.violation import Violation
from gortho.discovery.wider.value import Wider
from gortho.files import write_whole
from gortho.forms import QuadraticForm
from gortho.formulas import Formula
from gortho.nn.framed import InFrame
from gortho.objectives.entropy import least_probability, probabilities
from gortho.report.data import Peer
from gortho.report.words import spoken
from gortho.samples.values import Samples
from gortho.skew import SkewForm
from gortho.symmetry import Symmetry
from gortho.testing import equivariance_error
from gortho.training import predict


class NotAccepted(UserWarning):
    """Warning: a prediction uses a form that the verdict does not accept."""


@dataclass(frozen=True, eq=False)
class Discovery:
    """Whether there is a quadratic form behind the data, which one, and how certain that is.

    Attributes:
        verdict: `Verdict.FOUND`, `NONE` or `UNDERDETERMINED`; ``reason`` and ``advice`` say why and what to do.
        output: how the targets transform.
        names: names of the coordinates.
        confidence: how often answers with similar evidence were right (see `gortho.discovery.verdict.confidence`).
        candidate: the best form, whatever the verdict; ``form`` is the same, but only if FOUND.
        entry_errors, eigenvalue_errors: standard errors from refits; `intervals` and `eigenvalue_intervals` are made
            of them.
        refits: number of refits.
        network: the predictor, in float64, with the candidate frozen inside.
        network_options: arguments that the predictor was built with, those of `gortho.nn.EquivariantNet`.
        certificate: relative equivariance error of the predictor by largest boost, in float64; ``free_certificate``
            is that of a network of the coordinates, for comparison.
        evidence: the measurements behind the verdict.
        peers: held-out errors of the predictor and of the models that it was compared with.
        held_out: true and predicted targets of the held-out samples, as flat arrays.
        notices: what was noticed about the data or done to them.
        classes: the classes, if the targets were labels.
        restarts: the forms at which the starts of the search ended, best first.
        provenance: samples, seed, errors, times, versions.
        columns: names of the columns that x came from, which `predict` finds in a data frame; "" for arrays beside it.
        scalar_columns: the same for the scalars, if they came from a table.
        violation: how the law deviates from the form, if it certainly does.
        wider: the symmetry instead of O(A), if the data respect another one (M15, M16, M17).
        formula: the law for y, if there is a short one: ``print(found.formula)``.
        reach: the ranges of the invariants that the predictor was fitted to; far outside them, `predict` warns.
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
    held_out: tuple[np.ndarray, np.ndarray] | None = None
    notices: tuple[str, ...] = ()
    classes: tuple[Any, ...] = ()
    columns: tuple[str, ...] = ()
    violation: Violation | None = None
    wider: Wider | None = None
    formula: Formula | None = None
    reach: Reach | None = None
    scalar_columns: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def form(self) -> QuadraticForm | None:
        """The discovered form; None unless the verdict is FOUND, and None if the law preserves only a skew form."""
        return self.candidate if self.verdict is Verdict.FOUND else None

    @property
    def defect(self) -> Defect:
        """95 % interval for the fraction of the variance that the candidate cannot express (M14)."""
        return Defect(0.0, 1.0) if self.evidence is None else self.evidence.defect

    @property
    def approximate(self) -> bool:
        """Whether the form is FOUND, but broken by a small fraction of the variance."""
        return self.verdict is Verdict.FOUND and self.defect.low > 0

    @property
    def group_name(self) -> str | None:
        """The name of the discovered group, before directions break it; None unless FOUND."""
        return self.symmetry.group_name if self.symmetry else None

    @property
    def symmetry(self) -> Symmetry | None:
        """The discovered symmetry; None unless FOUND."""
        if self.verdict is Verdict.FOUND and self.wider is not None:
            return self.wider.symmetry
        return None if self.form is None else Symmetry.of(self.form)

    @property
    def skew(self) -> SkewForm | None:
        """The discovered skew form, of symplectic and unitary groups; None unless FOUND."""
        return None if self.symmetry is None else self.symmetry.skew

    @property
    def directions(self) -> np.ndarray:
        """Directions that break the symmetry, ``(d, n)``, each of length one; none unless FOUND."""
        symmetry = self.symmetry
        return np.zeros((0, self.provenance.n)) if symmetry is None else symmetry.directions.numpy()

    @property
    def origin(self) -> np.ndarray | None:
        """The fixed point of the group, ``(n,)``; None if it is zero."""
        symmetry = self.symmetry
        return None if symmetry is None or symmetry.origin is None else symmetry.origin.numpy()

    @property
    def forms(self) -> tuple[QuadraticForm, ...]:
        """The discovered forms, one for each space; none unless FOUND."""
        return () if self.symmetry is None else self.symmetry.forms

    @property
    def generators(self) -> np.ndarray | None:
        """Orthonormal generators of the candidate's group, ``(d, n, n)``; for a wider symmetry, its own."""
        if self.wider is not None:
            return self.wider.symmetry.generators.numpy()
        return self.candidate.group().algebra().numpy() if self.candidate else None

    @property
    def interval_factor(self) -> float:
        """Half-width of a 95 % interval in standard errors, by Student's t, since there are few refits."""
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

    def law(self, digits: int | None = None) -> str:
        """The candidate as a formula, without small terms whose interval contains zero (`QuadraticForm.law`).

        Numbers have as many digits as their intervals justify, or the given number of decimals. A skew form is
        included, if there is one.
        """
        laws = [self.candidate.law(digits, display.half_widths(self))] if self.candidate else []
        if self.skew is not None:
            assert self.wider is not None
            laws.append(self.wider.law(digits, self.interval_factor))
        return ", ".join(laws)

    def _network(self, stacklevel: int = 3) -> InFrame:
        if self.network is None:
            raise ValueError(f"there is no predictor: the verdict is {self.verdict} ({self.reason})")
        if self.verdict is not Verdict.FOUND:
            told = f"predicting with a form that was not accepted: {self.verdict}"
            warnings.warn(told, NotAccepted, stacklevel=stacklevel)
        return self.network

    def predict(self, X: Any, scalars: Any = None) -> np.ndarray:
        """Predictions ``(N, …)`` for inputs as in `discover`, exactly equivariant under the candidate's group.

        Columns of a data frame are selected by name; several vectors may be next to each other in a row. For classes,
        the most probable class.
        """
        values = self._values(X, scalars)
        return np.array(self.classes)[values.argmax(1)] if self.classes else values

    def predict_proba(self, X: Any, scalars: Any = None) -> np.ndarray:
        """Probabilities of the classes ``(N, classes)``, in the order of ``classes``.

        None is below about 1 / (classes · samples): that many samples, even without a mistake, justify no smaller one.
        """
        if not self.classes:
            raise ValueError(f"probabilities are for classes: the output was {self.output!r}")
        return probabilities(torch.as_tensor(self._values(X, scalars)), self.least_probability).numpy()

    @property
    def least_probability(self) -> float:
        """The least probability that a class is given, before all are divided by their sum."""
        return least_probability(self.provenance.samples, len(self.classes))

    def _values(self, X: Any, scalars: Any) -> np.ndarray:
        net = self._network(stacklevel=4)
        points, point, sample = inputs(self, net, X, scalars)
        with collected(net) as pieces:
            values = predict(net, points, point, sample).numpy()
        beyond = "" if self.reach is None else self.reach.warning(torch.cat(pieces))
        if not np.isfinite(values).all():
            beyond = f"{UNDEFINED.format(int((~np.isfinite(values)).sum()))}{beyond and f'; {beyond}'}"
        if beyond:
            warnings.warn(beyond, Extrapolated, stacklevel=3)
        return values

    def equivariance_error(self, X: Any, scalars: Any = None, max_boost: float = 1.0, seed: int = 0) -> float:
        """Relative equivariance error of the predictor on given inputs, in float64."""
        net = self._network()
        points, *parts = inputs(self, net, X, scalars)
        given = [None if s is None else torch.as_tensor(s) for s in parts]
        w = self.wider
        return equivariance_error(
            net,
            net.form.value() if w is None else w.symmetry,
            "vector" if w is None else w.kinds(net.points),
            net.rep,
            points,
            max_boost=max_boost,
            seed=seed,
            arguments=tuple(given),
            output_space=0 if w is None else w.output_space,
        )

    # Words

    def headline(self) -> str:
        """The verdict in one sentence."""
        return words.headline(self)

    def exactly(self) -> str:
        """How exactly the law respects the form, in words."""
        return str(self.defect)

    def __str__(self) -> str:
        return words.text(self)

    @property
    def group_of_law(self) -> str:
        """The group of the forms in the law, without directions and other restrictions."""
        if self.skew is not None:
            assert self.symmetry is not None
            return self.symmetry.group_name
        return "" if self.candidate is None else spoken(self.candidate.group_name)

    def __repr__(self) -> str:
        return display.short(self)

    def latex(self, digits: int | None = None, of: str | None = None) -> str:
        """The law in LaTeX, without dollar signs: of "y" (the formula), of "q" (the form), or of both, aligned."""
        return display.latex(self, digits, of)

    def sympy(self, digits: int | None = None, of: str | None = None) -> Any:
        """The law in sympy, in the coordinates: of "y" (the formula) if there is one, otherwise of "q" (the form)."""
        return display.sympy_law(self, digits, of)

    def invariants(self, X: Any, scalars: Any = None) -> Any:
        """A data frame of the inner products and scalars of samples, for other tools that search for laws."""
        return exporting.invariants(self, X, scalars)

    def symbolic(self, X: Any, y: Any, scalars: Any = None, **options: Any) -> Any:
        """Find a formula with PySR (extra ``pysr``): returns its regressor, fitted to y on the `invariants` of X."""
        return exporting.regress(self, X, y, scalars, **options)

    def plot(self) -> Any:
        """A matplotlib figure of the form, its eigenvalues and the predictions of held-out samples."""
        return display.figure(self)

    def _repr_latex_(self) -> str | None:
        return f"${self.latex()}$" if self.latex() else None

    def _repr_html_(self) -> str:
        return display.as_html(self)

    # Files

    def to_html(self, path: str | Path) -> Path:
        """Write the report, one self-contained HTML page."""
        from gortho.discovery.page import report_data
        from gortho.report import render

        path = Path(path)
        page = render(report_data(self))
        write_whole(path, lambda place: place.write_text(page, encoding="utf-8"))
        return path

    def save(self, directory: str | Path) -> Path:
        """Write the discovery to a directory, atomically: weights as safetensors, everything else as JSON."""
        from gortho.discovery.saving import save

        return save(self, Path(directory))

    @classmethod
    def load(cls, directory: str | Path) -> Discovery:
        """Read what `save` wrote."""
        from gortho.discovery.saving import load

        return load(Path(directory))

    def export(self, path: str | Path) -> Path:
        """Write the predictor with A frozen: ``.pt2`` for torch.export, ``.onnx`` for ONNX (extra ``export``).

        The exported model takes float64 tensors x ``(batch, p, n)`` and the scalars, if any; any batch size works. Of
        classes, it gives the probabilities of `predict_proba`.
        """
        return exporting.export(self, self._network(), Path(path))


def with_reach(found: Discovery, samples: Samples) -> Discovery:
    """The discovery with the ranges of these samples, if it can predict."""
    return found if found.network is None else replace(found, reach=Reach.of(found.network, samples))
