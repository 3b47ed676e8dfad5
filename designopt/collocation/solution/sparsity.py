"""Sparsity patterns of the derivatives of a program, as small maps with names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.collocation.transcription.transcription import Transcription

Counts = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

#: Maximum number of cells of a map per side.
CELLS = 64
#: Common prefix of the names of its arrays.
PREFIX = "sparsity/"
#: Rows of one kind with a common name.
TOGETHER = {
    "defect": "rates",
    "residual": "equations of motion",
    "algebraic": "algebraic equations",
    "control": "controls of the scheme",
    "held": "held controls",
    "delay": "delays",
    "integral": "integrals",
    "ends": "between ends",
}


@dataclass(frozen=True, eq=False)
class Pattern:
    """Positions of the `nonzeros` of a sparse matrix of a `shape`: `counts` (r, c) in equal shares of its rows and
    columns.

    `rows` and `columns` are the names of its blocks, each with the number of its first row or column.
    """

    shape: tuple[int, int]
    nonzeros: int
    counts: Counts
    rows: tuple[tuple[str, int], ...]
    columns: tuple[tuple[str, int], ...]

    @property
    def density(self) -> float:
        """The share of nonzeros."""
        return self.nonzeros / max(self.shape[0] * self.shape[1], 1)


@dataclass(frozen=True, eq=False)
class Sparsity:
    """The patterns of the Jacobian of the constraints and of the Hessian of the Lagrangian (both triangles)."""

    jacobian: Pattern
    hessian: Pattern


def sparsity(made: Transcription) -> Sparsity:
    """The patterns of a program: rows in blocks, phase after phase, columns in the order of time."""
    columns = _columns(made)
    J, H = made.jacobian.sparsity_out(1), made.hessian.sparsity_out(made.hessian.n_out() - 1)
    upper = np.array(H.row(), np.int64), np.array(H.get_col(), np.int64)
    off = upper[0] != upper[1]
    row, column = (np.concatenate([a, b[off]]) for a, b in (upper, upper[::-1]))
    return Sparsity(
        _pattern(
            J.size1(), J.size2(), np.array(J.row(), np.int64), np.array(J.get_col(), np.int64), _rows(made), columns
        ),
        _pattern(H.size1(), H.size2(), row, column, columns, columns),
    )


def _pattern(
    rows: int, columns: int, row: Counts, column: Counts, row_names: Iterable[tuple[str, int]],
    column_names: Iterable[tuple[str, int]],
) -> Pattern:  # fmt: skip
    sides = min(rows, CELLS), min(columns, CELLS)
    counts = np.zeros((max(sides[0], 1), max(sides[1], 1)), np.int64)
    if len(row):
        np.add.at(counts, (row * sides[0] // rows, column * sides[1] // columns), 1)
    return Pattern((rows, columns), len(row), counts, tuple(row_names), tuple(column_names))


def _rows(made: Transcription) -> list[tuple[str, int]]:
    """Blocks of rows by name; neighbours with one name are merged."""
    phases = [phase.name for phase in made.statement.problem.phases]
    found: list[tuple[str, int]] = []
    for block in made.blocks:
        name = TOGETHER.get(block.kind) or f"{'samples' if block.kind == 'sample' else block.kind} {block.names[0]}"
        if block.phase >= 0 and len(phases) > 1:
            name = f"{phases[block.phase]}: {name}"
        if block.rows.size and (not found or found[-1][0] != name):
            found.append((name, block.first))
    return found


def _columns(made: Transcription) -> list[tuple[str, int]]:
    """Blocks of variables by name: those of each phase point by point, then those of the whole program."""
    places, several = made.layout, len(made.layout.phases) > 1
    found = [
        (f"{phase.name}: points" if several else "points of the motion", int(place.states[0, 0]))
        for phase, place in zip(made.statement.problem.phases, places.phases, strict=True)
    ]
    if places.parameters:
        found.append(("parameters", min(places.parameters.values())))
    if times := [t for place in places.phases for t in (place.t0, place.tf) if t >= 0]:
        found.append(("times", min(times)))
    if places.integrals:
        found.append(("integrals", min(places.integrals.values())))
    return found


def sparsity_arrays(found: Sparsity) -> Arrays:
    """`found` as arrays by name, with only its nonempty cells."""
    header: dict[str, Any] = {}
    arrays: Arrays = {}
    for name, pattern in vars(found).items():
        header[name] = {
            "shape": pattern.shape, "nonzeros": pattern.nonzeros, "cells": pattern.counts.shape,
            "rows": pattern.rows, "columns": pattern.columns,
        }  # fmt: skip
        cells = np.nonzero(pattern.counts)
        arrays[f"{PREFIX}{name}"] = np.stack([*cells, pattern.counts[cells]]).astype(np.int32)
    return {**arrays, f"{PREFIX}header": np.frombuffer(json.dumps(header).encode(), np.uint8)}


def sparsity_from(arrays: Mapping[str, NDArray[Any]]) -> Sparsity | None:
    """The inverse of `sparsity_arrays`; None without data."""
    if f"{PREFIX}header" not in arrays:
        return None
    header = json.loads(bytes(np.asarray(arrays[f"{PREFIX}header"], np.uint8)).decode())

    def pattern(name: str) -> Pattern:
        own = header[name]
        counts = np.zeros(own["cells"], np.int64)
        rows, columns, numbers = np.asarray(arrays[f"{PREFIX}{name}"], np.int64)
        counts[rows, columns] = numbers
        blocks = (tuple((str(n), int(k)) for n, k in own[side]) for side in ("rows", "columns"))
        return Pattern((own["shape"][0], own["shape"][1]), own["nonzeros"], counts, *blocks)

    return Sparsity(pattern("jacobian"), pattern("hessian"))
