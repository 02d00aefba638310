"""Many targets: the same vectors with every column, or every file of a folder, in parallel and resumable."""

from gortho.scanning.run import scan
from gortho.scanning.table import Scan

__all__ = ["Scan", "scan"]
