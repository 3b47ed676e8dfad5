"""Type names of NumPy arrays in annotations; docstrings give their shapes and units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Floating-point arrays with any number of axes.
Floats = NDArray[np.float64]
#: Indices and other integers.
Indices = NDArray[np.int64]
Integers = NDArray[np.int64]
#: Boolean mask.
Mask = NDArray[np.bool_]
