"""Scales of variables, so that a tolerance is a share of a variable's range, and the range of the entries of the scaled
Jacobian that results at the initial point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.arrays import Floats, Integers
from designopt.collocation.solution.explain import WORDS
from designopt.collocation.statement.stated_values import check_names
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.functions.functions import ProblemFunctions
from designopt.collocation.transcription.layout import Layout
from designopt.collocation.transcription.transcription import Transcription

#: Range beyond which a box does not indicate the size of a variable.
WIDEST = 1e6
#: Ratio of the largest to the smallest entry beyond which the linear algebra of the solver loses digits.
LARGEST_RATIO = 1e8
#: Relative size of an entry in its row below which it is a rounding error.
ROUNDING = 1e-13
#: Change of the scaled variables that distinguishes a small entry from one that is zero at the guess only.
NEARBY = 1e-3


def scales(
    functions: ProblemFunctions,
    layout: Layout,
    bounds: ProgramBounds,
    guess: Floats,
    scales_of_names: Mapping[str, float],
) -> tuple[Floats, Floats]:
    """Scale and shift (n,) of all variables.

    They are half the range and its middle if the box is finite and at most `WIDEST`, else the largest guess, at least
    1, and 0. Integrals have the size of their guess. `scales_of_names` take precedence, then the scales of a phase; the
    names of free times are t0 and tf, for all phases.
    """
    scale, shift = np.ones(layout.size), np.zeros(layout.size)
    names = set()

    def set_scale(indices: Any, low: float, high: float, size: float | None) -> None:
        if size is not None:
            scale[indices] = size
        elif np.isfinite(low) and np.isfinite(high) and 0.0 < high - low <= WIDEST:
            scale[indices], shift[indices] = 0.5 * (high - low), 0.5 * (high + low)
        else:
            scale[indices] = max(1.0, float(np.abs(guess[indices]).max()))

    for i, phase_layout in enumerate(layout.phases):
        point = functions.points[i]
        sizes = {**point.phase.scales, **scales_of_names}
        check_names(f"{point.phase.name}: scales", point.phase.scales, [*point.names, "t0", "tf"], "variable")
        for j, name in enumerate(point.names):
            points = phase_layout.states[:, j] if j < point.nx else phase_layout.point[:, j]
            names.add(name)
            # the ends may have boxes of their own
            inner = points[1:-1] if len(points) > 2 else points
            set_scale(points, *bounds.box(inner[0]), sizes.get(name))
        for name, index in phase_layout.times.items():
            names.add(name)
            set_scale(index, *bounds.box(index), sizes.get(name))
    for name, index in layout.parameters.items():
        names.add(name)
        set_scale(index, *bounds.box(index), scales_of_names.get(name))
    for index in layout.integrals.values():
        set_scale(index, -np.inf, np.inf, None)
    check_names("scales", scales_of_names, sorted(names), "variable")
    return scale, shift


@dataclass(frozen=True)
class Conditioning:
    """The smallest and the largest nonzero entry, each with its row and variable."""

    smallest: float
    largest: float
    smallest_entry: str = ""
    largest_entry: str = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning if their ratio is too large."""
        if not self.largest > LARGEST_RATIO * self.smallest:
            return ()
        return (
            f"badly_scaled: entries of the scaled Jacobian at the guess range from {self.smallest:.2g}"
            f" ({self.smallest_entry}) and {self.largest:.2g} ({self.largest_entry}); give these variables bounds or"
            " scales, or state them in other units",
        )


def conditioning(transcription: Transcription, x: Floats, parameters: Floats) -> Conditioning:
    """The conditioning at scaled variables `x`. An entry of the size of rounding errors counts only if it is the
    largest of its column.

    If the conditioning is bad, it is assessed again with the largest entry of each quantity by each other quantity,
    because short intervals have small entries, and at a point near `x`, because an entry may be zero at `x` alone, up
    to rounding.
    """
    at_guess = _conditioning(transcription, transcription.jacobian(x, parameters)[1])
    if not at_guess.warnings:
        return at_guess
    nearby = x + NEARBY * np.maximum(np.abs(x), 1.0) * np.where(np.arange(len(x)) % 2, 1.0, -1.0)
    return _conditioning(transcription, transcription.jacobian(nearby, parameters)[1], by_name=True)


def _conditioning(transcription: Transcription, matrix: Any, *, by_name: bool = False) -> Conditioning:
    sizes = np.abs(np.array(matrix.nonzeros(), float))
    rows, columns = np.array(matrix.sparsity().get_triplet(), np.int64)
    is_counted = np.isfinite(sizes) & (sizes > 0.0)
    if not is_counted.any():
        return Conditioning(np.nan, np.nan)
    sizes, rows, columns = sizes[is_counted], rows[is_counted], columns[is_counted]
    row_largest, column_largest = np.zeros(len(transcription.row_scale)), np.zeros(transcription.layout.size)
    np.maximum.at(row_largest, rows, sizes)
    np.maximum.at(column_largest, columns, sizes)
    is_relevant = (sizes > ROUNDING * row_largest[rows]) | (sizes >= column_largest[columns])
    if by_name:
        row_ids, column_ids = _quantities(transcription)
        _, pair = np.unique(row_ids[rows] * (column_ids.max() + 1) + column_ids[columns], return_inverse=True)
        pair_largest = np.zeros(pair.max() + 1)
        np.maximum.at(pair_largest, pair, sizes)
        is_relevant &= sizes >= pair_largest[pair]
    smallest, largest = int(np.where(is_relevant, sizes, np.inf).argmin()), int(sizes.argmax())
    if not sizes[largest] > LARGEST_RATIO * sizes[smallest]:
        return Conditioning(float(sizes[smallest]), float(sizes[largest]))
    names = [
        f"{row_name(transcription, rows[k])} by {variable_name(transcription, columns[k])}" for k in (smallest, largest)
    ]
    return Conditioning(float(sizes[smallest]), float(sizes[largest]), names[0], names[1])


def _quantities(transcription: Transcription) -> tuple[Integers, Integers]:
    """A number for the quantity of each row and of each variable, the same at all times."""
    rows = np.zeros(len(transcription.row_scale), np.int64)
    count = 0
    for block in transcription.blocks:
        rows[block.first : block.first + block.rows.size] = count + np.arange(block.rows.size) % len(block.names)
        count += len(block.names)
    columns = np.arange(transcription.layout.size, dtype=np.int64)
    count = len(columns)
    for point, phase_layout in zip(transcription.problem_functions.points, transcription.layout.phases, strict=True):
        for table in (phase_layout.point, phase_layout.states):
            for j in range(table.shape[1]):
                columns[table[table[:, j] >= 0, j]] = count + j
        count += len(point.names)
    return rows, columns


def row_name(transcription: Transcription, row: int) -> str:
    """Description of a row of the program."""
    block = next(b for b in transcription.blocks if b.first <= row < b.first + b.rows.size)
    k = (row - block.first) % len(block.names)
    if block.kind == "ends":
        number = [b for b in transcription.blocks if b.kind == "ends"].index(block)
        name, constraint = list(transcription.problem_functions.problem.constraints.items())[number]
        if constraint.states:
            return f"constraint '{name}' of '{constraint.states[k]}'"
    return f"{WORDS[block.kind]} '{block.names[k]}'"


def variable_name(transcription: Transcription, index: int) -> str:
    """Description of a variable of the program."""
    for point, phase_layout in zip(transcription.problem_functions.points, transcription.layout.phases, strict=True):
        for table in (phase_layout.point, phase_layout.states):
            _, columns = np.nonzero(table == index)
            if len(columns):
                return f"'{point.names[columns[0]]}'"
        for name, k in phase_layout.times.items():
            if k == index:
                return f"'{name}'"
    names = {k: name for name, k in transcription.layout.parameters.items()}
    return f"'{names[index]}'" if index in names else "an integral"
