"""Vectors of variables in what a phase or a problem says: one entry stands for all their components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.dynamics.signals import Signal, columns
from designopt.dynamics.variable import Vector

Vectors = Mapping[str, Vector]


def spread(given: Mapping[str, Any], vectors: Vectors, *, pair: bool) -> dict[str, Any]:
    """`given` with an entry for each component in place of those of vectors.

    A vector is given what a component would be (a number, or with `pair` a range of two), which then holds for all of
    them, or a mapping by component; or, for k components, an array (k,), with `pair` also (k, 2). Of two entries for
    one component the one by its own name counts. Raises `ValueError` for another shape.
    """
    made: dict[str, Any] = {}
    for name, value in given.items():
        if name in vectors:
            made.update(_components(vectors[name], value, pair))
    made.update({name: value for name, value in given.items() if name not in vectors})
    return made


def _components(vector: Vector, value: Any, pair: bool) -> dict[str, Any]:
    if isinstance(value, Mapping):
        if unknown := [part for part in value if part not in vector.parts]:
            raise ValueError(f"{vector.name} has no component '{unknown[0]}'; it has {', '.join(vector.parts)}")
        return {f"{vector.name}_{part}": entry for part, entry in value.items()}
    if isinstance(value, Signal) or np.ndim(value) == 0 or (pair and isinstance(value, tuple)):
        return dict.fromkeys(vector.names, value)
    array = np.asarray(value, float)
    if array.shape == (len(vector.parts),):
        return dict(zip(vector.names, array.tolist(), strict=True))
    if pair and array.shape == (len(vector.parts), 2):
        return {n: tuple(row) for n, row in zip(vector.names, array.tolist(), strict=True)}
    raise ValueError(f"{vector.name} has {len(vector.parts)} components, but is given an array of shape {array.shape}")


def spread_data(given: Mapping[str, Any], vectors: Vectors) -> dict[str, Any]:
    """Data of a phase with an entry for each component and for each column of a `SignalTable`.

    A table stands under the name of a vector, with its components as columns, or under any other name, with data
    entries as columns.
    """
    return spread(columns(given, list(vectors.values())), vectors, pair=False)
