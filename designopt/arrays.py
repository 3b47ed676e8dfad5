"""What arrays of numbers are called in annotations; their shapes and units stand in the docstrings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Floating-point numbers: along one axis, over two, over three, over any.
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Cube = NDArray[np.float64]
Array = NDArray[np.float64]
#: Places in other arrays, and other whole numbers.
Indices = NDArray[np.int64]
Integers = NDArray[np.int64]
#: True or False of each place.
Mask = NDArray[np.bool_]
