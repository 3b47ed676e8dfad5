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


@dataclass(frozen=True, eq=False)
class Sparsity:
    """The patterns of the Jacobian of the constraints and of the Hessian of the Lagrangian (both triangles)."""

    jacobian: Pattern
    hessian: Pattern


def sparsity(transcription: Transcription) -> Sparsity:
    """The patterns of a program: rows in blocks, phase after phase, columns in the order of time."""
    columns = _columns(transcription)
    J, H = transcription.jacobian.sparsity_out(1), transcription.hessian.sparsity_out(transcription.hessian.n_out() - 1)
    upper = np.array(H.get_triplet(), np.int64)
    off = upper[0] != upper[1]
    jacobian = _pattern(J.shape, np.array(J.get_triplet(), np.int64), _rows(transcription), columns)
    both_triangles = np.concatenate([upper, upper[::-1, off]], axis=1)
    return Sparsity(jacobian, _pattern(H.shape, both_triangles, columns, columns))


def _pattern(
    shape: tuple[int, int], positions: Counts, row_names: Iterable[tuple[str, int]],
    column_names: Iterable[tuple[str, int]],
) -> Pattern:  # fmt: skip
    """The pattern of the nonzeros at `positions` (2, n), rows and columns."""
    sides = min(shape[0], CELLS), min(shape[1], CELLS)
    counts = np.zeros((max(sides[0], 1), max(sides[1], 1)), np.int64)
    if positions.size:
        np.add.at(counts, tuple(positions[k] * sides[k] // shape[k] for k in (0, 1)), 1)
    return Pattern(shape, positions.shape[1], counts, tuple(row_names), tuple(column_names))


def _rows(transcription: Transcription) -> list[tuple[str, int]]:
    """Blocks of rows by name; neighbours with one name are merged."""
    phases = [phase.name for phase in transcription.problem_functions.problem.phases]
    row_blocks: list[tuple[str, int]] = []
    for block in transcription.blocks:
        name = TOGETHER.get(block.kind) or f"{'samples' if block.kind == 'sample' else block.kind} {block.names[0]}"
        if block.phase >= 0 and len(phases) > 1:
            name = f"{phases[block.phase]}: {name}"
        if block.rows.size and (not row_blocks or row_blocks[-1][0] != name):
            row_blocks.append((name, block.first))
    return row_blocks


def _columns(transcription: Transcription) -> list[tuple[str, int]]:
    """Blocks of variables by name: those of each phase point by point, then those of the whole program."""
    layout, several = transcription.layout, len(transcription.layout.phases) > 1
    column_blocks = [
        (f"{phase.name}: points" if several else "points of the motion", int(phase_layout.states[0, 0]))
        for phase, phase_layout in zip(transcription.problem_functions.problem.phases, layout.phases, strict=True)
    ]
    if layout.parameters:
        column_blocks.append(("parameters", min(layout.parameters.values())))
    if times := [t for phase_layout in layout.phases for t in phase_layout.times.values()]:
        column_blocks.append(("times", min(times)))
    if layout.integrals:
        column_blocks.append(("integrals", min(layout.integrals.values())))
    return column_blocks


def sparsity_arrays(sparsity: Sparsity) -> Arrays:
    """`sparsity` as arrays by name, with only its nonempty cells."""
    header: dict[str, Any] = {}
    arrays: Arrays = {}
    for name, pattern in vars(sparsity).items():
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
        pattern_header = header[name]
        counts = np.zeros(pattern_header["cells"], np.int64)
        rows, columns, numbers = np.asarray(arrays[f"{PREFIX}{name}"], np.int64)
        counts[rows, columns] = numbers
        blocks = (tuple((str(n), int(k)) for n, k in pattern_header[side]) for side in ("rows", "columns"))
        return Pattern(
            (pattern_header["shape"][0], pattern_header["shape"][1]), pattern_header["nonzeros"], counts, *blocks
        )

    return Sparsity(pattern("jacobian"), pattern("hessian"))
