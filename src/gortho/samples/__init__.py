"""Reading users' files, checking their arrays before anything is computed from them, and writing predictions."""

from .checks import check_inputs, check_samples
from .errors import DataError, DataNotice
from .files import Dataset, read
from .sampling import MAX_SAMPLES
from .writing import check_writable, write

__all__ = [
    "MAX_SAMPLES",
    "DataError",
    "DataNotice",
    "Dataset",
    "check_inputs",
    "check_samples",
    "check_writable",
    "read",
    "write",
]
