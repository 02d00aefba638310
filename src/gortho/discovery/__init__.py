"""Discovery: one call from samples to a verdict (`discover`), and the one-solve spectral method (`spectral_form`)."""

from gortho.discovery.discover import discover
from gortho.discovery.evidence import Evidence
from gortho.discovery.large import Survey, survey
from gortho.discovery.result import Discovery
from gortho.discovery.settings import Settings
from gortho.discovery.spectral import SpectralForm, spectral_form
from gortho.discovery.verdict import Verdict
from gortho.objectives import Errors

__all__ = [
    "Discovery",
    "Errors",
    "Evidence",
    "Settings",
    "SpectralForm",
    "Survey",
    "Verdict",
    "discover",
    "spectral_form",
    "survey",
]
