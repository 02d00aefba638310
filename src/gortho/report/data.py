"""Everything the report shows, as plain numbers and words."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]
VERDICTS = ("FOUND", "NONE", "UNDERDETERMINED")


@dataclass(frozen=True)
class Peer:
    """The held-out error of one model."""

    model: str
    mse: float
    relative_mse: float
    parameters: int
    note: str = ""


@dataclass(frozen=True)
class RestartRow:
    """Where one independent search ended, compared with the best one."""

    start: str
    signature: str
    validation_error: float
    cosine: float
    distance: float


@dataclass(frozen=True)
class TwinRow:
    """What the best model of one kind leaves unexplained of held-out samples, or a difference, with its error."""

    kind: str
    model: str
    share: float
    error: float | None = None


@dataclass(frozen=True)
class Profile:
    """Means of what is left over, with standard errors, against one quantity; the share it tells by itself."""

    name: str
    share: float
    at: tuple[float, ...]
    means: tuple[float, ...]
    errors: tuple[float, ...]


@dataclass(frozen=True)
class FormulaRows:
    """The law for y: as text, its terms (each with its coefficient and half of its 95 % interval), and words on it."""

    text: str
    terms: list[tuple[str, float, float]]
    words: list[str]
    named: list[str] = field(default_factory=list)  # what else it names: origin, directions, maps


@dataclass(frozen=True, eq=False)
class ReportData:
    """What the report shows; whatever was not measured stays None or empty and is left out of the page."""

    verdict: str
    headline: str
    reason: str = ""
    # What else the symmetry has: directions, origin, other forms, maps.
    beside: list[str] = field(default_factory=list)
    advice: str = ""
    confidence: float = float("nan")
    confidence_note: str = ""
    law: str = ""
    formula: FormulaRows | None = None
    names: list[str] = field(default_factory=list)
    group_name: str = ""
    residual: str = ""  # what directions leave of it, where there are any: the group of the generators
    kept: str = "q"  # by the group of the generators
    signature: tuple[int, int, int] | None = None  # positive, negative, zero
    matrix: Array | None = None
    matrix_low: Array | None = None
    matrix_high: Array | None = None
    skew: Array | None = None  # a skew form, in place of A or beside it
    skew_half: Array | None = None  # half of the intervals of its entries
    eigenvalues: Array | None = None
    eigenvalues_low: Array | None = None
    eigenvalues_high: Array | None = None
    generators: Array | None = None
    output: str = ""
    true: Array | None = None
    predicted: Array | None = None
    errors: list[Peer] = field(default_factory=list)  # the equivariant predictor comes first
    twins: list[TwinRow] = field(default_factory=list)
    free_p: float | None = None  # one-sided: is the best free model better than the best twin?
    defect: tuple[float, float] | None = None  # 95 % interval of the share that the form cannot express
    defect_words: str = ""
    defect_open: bool = False  # the interval says nothing
    noise: str = ""  # what is known of the noise of the targets
    tolerance: float | None = None
    # True and predicted are then rows of indicators, probabilities.
    classes: list[str] = field(default_factory=list)
    violation: str = ""
    profiles: list[Profile] = field(default_factory=list)
    boosts: Array | None = None
    equivariance_errors: Array | None = None
    unconstrained_equivariance_errors: Array | None = None
    restarts: list[RestartRow] = field(default_factory=list)
    bootstrap_distances: Array | None = None
    spectral_gap: float | None = None
    facts: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    @property
    def approximate(self) -> bool:
        """Whether the form is found, but broken by a little."""
        return self.verdict == "FOUND" and self.defect is not None and self.defect[0] > 0

    @property
    def measure(self) -> str:
        """What shares are of."""
        return "explained log loss" if self.classes else "variance"

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"the verdict is one of {', '.join(VERDICTS)}, not {self.verdict!r}")
        if self.matrix is not None and self.matrix.shape != (len(self.names),) * 2:
            raise ValueError(f"{len(self.names)} names do not fit a matrix of shape {self.matrix.shape}")
