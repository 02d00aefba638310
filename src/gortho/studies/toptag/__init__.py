"""Top-quark tagging, the data side: jets made by Pythia 8 and a fast detector, or read from the public reference files.

>>> from gortho.studies.toptag import Jets
>>> import numpy as np
>>> jets = Jets(np.array([[3.0, 0, 4], [0, 1, 0]], np.float32), np.array([0, 2]), np.array([1], np.int8))
>>> vectors, mask = jets.padded(max_constituents=3)
>>> vectors[0].tolist(), mask[0].tolist()
([[5.0, 3.0, 0.0, 4.0], [1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [True, True, False])
"""

from .jets import Jets

__all__ = ["Jets"]
