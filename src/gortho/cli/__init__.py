"""The command line: `gortho discover`, `scan`, `level`, `predict`, `check`, `app` and others."""

from gortho.cli import browsing, levelling, measuring, predicting, scanning, searching  # noqa: F401 - they add commands
from gortho.cli.base import EXIT_CODES, EXITS, INTERRUPTED, as_options, main
from gortho.cli.options import EFFORTS

__all__ = ["EFFORTS", "EXITS", "EXIT_CODES", "INTERRUPTED", "as_options", "main"]
