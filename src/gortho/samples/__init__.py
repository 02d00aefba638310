"""Data as values, `Samples` and their `Frame`; reading files, checking input, writing predictions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .checks import check_inputs, check_samples
from .errors import DataError
from .files import Dataset, read
from .sampling import MAX_SAMPLES
from .slopes import Derivatives, derivatives
from .spaces import side_by_side
from .writing import check_writable, write

if TYPE_CHECKING:
    from .frame import Frame
    from .values import Samples


def __getattr__(name: str) -> Any:
    # Reading a file needs no torch, which takes a second to import.
    home = {"Frame": ".frame", "Samples": ".values"}.get(name)
    if home is None:
        raise AttributeError(f"module 'gortho.samples' has no attribute {name!r}")
    return getattr(import_module(home, __name__), name)


__all__ = [
    "MAX_SAMPLES",
    "DataError",
    "Dataset",
    "Derivatives",
    "Frame",
    "Samples",
    "check_inputs",
    "check_samples",
    "check_writable",
    "derivatives",
    "read",
    "side_by_side",
    "write",
]
