"""Check of a model's arrays against their declaration, for transfer and storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import Array

#: Maximum size of all stored arrays of one evaluation (bytes).
LARGEST = 512 * 2**20

#: Admissible kinds of NumPy types for each declared type.
_MADE_OF = {"float": "biuf", "float32": "biuf", "int": "biu", "bool": "b", "complex": "biufc", "str": "U"}
_TYPES = {"float": np.float64, "float32": np.float32, "bool": np.bool_, "complex": np.complex128}


def stored_arrays(
    result_arrays: Mapping[str, Any], names: Sequence[str], declarations: Mapping[str, Array]
) -> dict[str, NDArray[Any]]:
    """Those of the arrays `result_arrays` with the `names`, in their stored form.

    Raises `TypeError` and `ValueError`, with the array's name, for objects, undeclared text or structures, another
    number of axes, values outside the declared type or categories, and more than `LARGEST` bytes.
    """
    if not names:
        return {}
    arrays = {
        name: _array(name, result_arrays[name], declarations.get(name)) for name in names if name in result_arrays
    }
    size = sum(array.nbytes for array in arrays.values())
    if size > LARGEST:
        largest = max(arrays, key=lambda name: arrays[name].nbytes)
        raise ValueError(
            f"the arrays have {size / 2**20:.0f} MiB, and at most {LARGEST / 2**20:.0f} MiB per evaluation are kept;"
            f" the largest is '{largest}', of shape {arrays[largest].shape}"
        )
    return arrays


def _array(name: str, values: Any, declaration: Array | None) -> NDArray[Any]:
    array = np.asarray(values)
    kind, declared_type = array.dtype.kind, declaration.dtype if declaration else ""
    if array.dtype.hasobject:
        raise TypeError(f"the array '{name}' contains objects instead of numbers")
    if kind not in (_MADE_OF[declared_type] if declared_type else "biufc"):
        hint = "; declare Array(..., dtype='str') for text" if kind == "U" and not declared_type else ""
        raise TypeError(f"the array '{name}' has values of type {array.dtype}, not {declared_type or 'numbers'}{hint}")
    if declaration is None:
        return array
    if array.ndim != len(declaration.axes):
        axes = ", ".join(declaration.axes) or "none"
        raise ValueError(f"the array '{name}' has shape {array.shape}; its declared axes are: {axes}")
    if declaration.categories:
        return _categories(name, array, declaration)
    return array.astype(_TYPES[declared_type]) if declared_type in _TYPES else array


def _categories(name: str, array: NDArray[Any], declaration: Array) -> NDArray[Any]:
    count = len(declaration.categories)
    outside = array[(array < 0) | (array >= count)]
    if outside.size:
        raise ValueError(
            f"the array '{name}' has the value {outside.flat[0]}; its categories are numbers 0 to {count - 1}"
        )
    return array.astype(np.uint8 if count <= 256 else np.int64)
