"""Reading users' files and checking their arrays before anything is computed from them."""

from .checks import check_samples
from .errors import DataError, DataNotice
from .files import Dataset, read
from .sampling import MAX_SAMPLES

__all__ = ["MAX_SAMPLES", "DataError", "DataNotice", "Dataset", "check_samples", "read"]
