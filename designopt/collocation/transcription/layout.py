"""Where each variable and each row of a program is: columns in the order of time, kinds and contents of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats, Indices
from designopt.collocation.statement.mesh import Mesh
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.transcription.functions.functions import ProblemFunctions
from designopt.collocation.transcription.functions.points import CollocationPoint
from designopt.collocation.transcription.functions.samples import SampleEntries, SamplePoint, sample_entries


@dataclass(frozen=True, eq=False)
class PhaseLayout:
    """Indices of one phase's variables and numbers.

    `states` (slots, nx); `point` (points, nw) of all variables of each collocation point; `theta` of the phase's
    parameters and free times; `times` of those, by name (`t0`, `tf`). Its parameters of the program's functions
    are those from `constants` to `signals`, the constants of all points, and from there to `numbers_end`, the signals
    point by point.
    """

    mesh: Mesh
    states: Indices
    point: Indices
    theta: Indices
    times: Mapping[str, int]
    constants: int
    signals: int
    numbers_end: int

    @property
    def fixed_times(self) -> list[str]:
        """The names of the times that are not variables."""
        return [time for time in TIMES if time not in self.times]

    def at_points(self, x: Floats) -> Floats:
        """The entries (points, nw) of the program's variables `x` at all collocation points, as a view: their indices
        follow each other."""
        return x[int(self.point[0, 0]) : int(self.point[-1, -1]) + 1].reshape(self.point.shape)

    def arguments(self, x: Floats, constants: Floats, signals: Floats) -> tuple[Floats, ...]:
        """The arguments (rows, points) of a function of a point, at all points, for the program's variables `x`."""
        count, fractions = len(self.point), self.mesh.fractions[None, self.mesh.first :]
        theta, constants = (np.tile(part[:, None], count) for part in (x[self.theta], constants))
        return self.at_points(x).T, theta, constants, signals.T, fractions

    def constants_and_signals(self, parameters: Floats) -> tuple[Floats, Floats]:
        """The constants (nc,) of all points and the signals (points, ns), as views of the program's `parameters`."""
        signals = parameters[self.signals : self.numbers_end].reshape(len(self.point), -1)
        return parameters[self.constants : self.signals], signals

    def times_at(self, x: Floats, constants: Floats) -> tuple[float, float]:
        """t0 and tf (s) at the program's variables `x`; fixed ones are the last `constants`."""
        fixed_times = iter(constants[len(constants) - len(TIMES) + len(self.times) :])
        t0, tf = (float(x[self.times[t]] if t in self.times else next(fixed_times)) for t in TIMES)
        return t0, tf

    def at_ends(self, x: Floats) -> tuple[Floats, Floats]:
        """All variables of a point (nw,) at both ends, of the program's variables `x`.

        Without a point at the left end, variables other than states are NaN there.
        """
        first = x[self.point[0]] if self.mesh.first == 0 else np.full(self.point.shape[1], np.nan)
        first[: self.states.shape[1]] = x[self.states[0]]
        return first, x[self.point[-1]]


@dataclass(frozen=True, eq=False)
class Layout:
    """Indices of all variables of a program: `size` of them. `parameters` by name, `integrals` by phase and number.

    `samples` are the places of all samples; `numbers` counts the parameters of the program's functions.
    """

    phases: tuple[PhaseLayout, ...]
    parameters: Mapping[str, int]
    integrals: Mapping[tuple[int, int], int]
    size: int
    samples: tuple[SampleEntries, ...]
    numbers: int


def layout(
    problem: TrajectoryProblem,
    points: Sequence[CollocationPoint],
    meshes: Sequence[Mesh],
    integral_keys: Sequence[tuple[int, int]],
    samples: Sequence[SamplePoint] = (),
) -> Layout:
    """Number the variables; `integral_keys` are the integrals (phase, number) that are variables of the program."""
    offset = 0
    index_tables = []
    for point, mesh in zip(points, meshes, strict=True):
        nw = len(point.names)
        sizes = np.full(mesh.slots, nw)
        sizes[: mesh.first] = point.nx
        starts = offset + np.concatenate([[0], np.cumsum(sizes)[:-1]])
        states = starts[:, None] + np.arange(point.nx)
        index_tables.append((states, starts[mesh.first :, None] + np.arange(nw)))
        offset += int(sizes.sum())
    parameters = {v.name: offset + i for i, v in enumerate(problem.variables)}
    offset += len(parameters)
    times: list[dict[str, int]] = []
    for phase, point in zip(problem.phases, points, strict=True):
        index_of = {}
        if phase.t0 is None and "tf" in times[-1]:
            index_of["t0"] = times[-1]["tf"]
        elif phase.t0 is not None and point.phase.free_times[0]:
            index_of["t0"], offset = offset, offset + 1
        if point.phase.free_times[1]:
            index_of["tf"], offset = offset, offset + 1
        times.append(index_of)
    integrals = {key: offset + i for i, key in enumerate(integral_keys)}
    phases: list[PhaseLayout] = []
    for (states, at_points), point, mesh, free_times in zip(index_tables, points, meshes, times, strict=True):
        theta = np.array([*(parameters[n] for n in point.parameter_names), *free_times.values()], np.int64)
        begin = phases[-1].numbers_end if phases else 0
        signals = begin + point.constants.numel()
        end = signals + point.signals.numel() * len(at_points)
        phases.append(PhaseLayout(mesh, states, at_points, theta, free_times, begin, signals, end))
    sample_places: list[SampleEntries] = []
    numbers = phases[-1].numbers_end
    for sample in samples:
        phase_layout = phases[sample.phase]
        phase = problem.phases[sample.phase]
        sample_places.append(
            sample_entries(
                sample, phase, phase_layout.mesh, phase_layout.states, phase_layout.point, phase_layout.theta, numbers
            )
        )
        numbers = sample_places[-1].end
    return Layout(tuple(phases), parameters, integrals, offset + len(integrals), tuple(sample_places), numbers)


#: The times of a phase.
TIMES = ("t0", "tf")
#: Tolerance for the ends of pieces at nodes of a mesh, as a share of a piece.
SAME = 1e-9


@dataclass(frozen=True)
class Block:
    """Rows of constraints of one kind: `kind` is defect, residual, algebraic, path, control, held, integral, sample
    or ends.

    `phase` is its number (-1: the ends), `names` (k) describe the rows of one point, `slots` (n) are their points; rows
    are counted from `first`, point by point.
    """

    kind: str
    phase: int
    names: tuple[str, ...]
    slots: Indices
    first: int

    @cached_property
    def rows(self) -> Indices:
        """Row numbers (n, k)."""
        return self.first + np.arange(len(self.slots) * len(self.names)).reshape(len(self.slots), len(self.names))


class RowCollector:
    """Numbers the rows and collects their contents: ``g = C x + sum of K_i y_i``, and the ends.

    y_i are the rows of all points of phase i, as many at each. Nothing is scaled.
    """

    def __init__(self, functions: ProblemFunctions, layout: Layout) -> None:
        self.problem_functions, self.layout = functions, layout
        self.blocks: list[Block] = []
        self.count = 0
        self._of_variables: list[tuple[Any, ...]] = []
        self._of_points: list[list[tuple[Any, ...]]] = [[] for _ in layout.phases]
        for i, phase_layout in enumerate(layout.phases):
            self._defects(i, phase_layout)
            self._equations(i, phase_layout)
            self._control_rows(i, phase_layout)
            self._held_controls(i, phase_layout)
            self._integrals(i, phase_layout)
        self._samples()
        self.ends_first = self.count
        for name, value in zip(functions.problem.constraints, functions.ends.constraints, strict=True):
            self._block("ends", -1, _row_names(name, value.numel()), np.zeros(1, np.int64))

    def of_variables(self) -> tuple[Indices, Indices, Floats]:
        """C as rows, columns and factors."""
        return _in_columns(self._of_variables, 3)

    def of_points(self, phase: int) -> tuple[Indices, Indices, Indices, Floats]:
        """K of a phase as rows, rows of the point, numbers of the point and factors."""
        return _in_columns(self._of_points[phase], 4)

    def scales(self, scale: Floats) -> Floats:
        """Scales of rows (m,): of defects that of their state, of integrals that of the integral, else 1."""
        row_scales = np.ones(self.count)
        for block in self.blocks:
            if block.kind == "defect":
                row_scales[block.rows] = scale[self.layout.phases[block.phase].states[0]]
            elif block.kind == "held":
                column = self.problem_functions.points[block.phase].names.index(block.names[0])
                row_scales[block.rows] = scale[self.layout.phases[block.phase].point[0, column]]
            elif block.kind == "integral":
                number = list(self.problem_functions.problem.phases[block.phase].integrals).index(block.names[0])
                row_scales[block.rows] = scale[self.layout.integrals[block.phase, number]]
        return row_scales

    def _block(self, kind: str, phase: int, names: tuple[str, ...], slots: Indices) -> Indices:
        block = Block(kind, phase, names, slots, self.count)
        self.blocks.append(block)
        self.count += block.rows.size
        return block.rows

    def _variables(self, rows: Any, columns: Any, factors: Any) -> None:
        self._of_variables.append(np.broadcast_arrays(rows, columns, factors))

    def _points(self, phase: int, rows: Any, of_point: Any, points: Any, factors: Any) -> None:
        self._of_points[phase].append(np.broadcast_arrays(rows, of_point, points, factors))

    def _defects(self, i: int, layout: PhaseLayout) -> None:
        mesh, point = layout.mesh, self.problem_functions.points[i]
        rows = self._block("defect", i, tuple(point.names[: point.nx]), np.arange(1, mesh.slots))
        state = np.arange(point.nx)
        for scheme, intervals in mesh.groups:
            base, width = mesh.bases[intervals], mesh.widths[intervals, None]
            for a in range(scheme.steps):
                of_defect = rows[base + a]
                for r in range(scheme.steps + 1):
                    if scheme.P[a, r] != 0.0:
                        self._variables(of_defect, layout.states[base + r], scheme.P[a, r])
                    if scheme.Q[a, r] != 0.0:
                        self._points(i, of_defect, state, (base + r - mesh.first)[:, None], -scheme.Q[a, r] * width)

    def _equations(self, i: int, layout: PhaseLayout) -> None:
        point, row_ranges = self.problem_functions.points[i], self.problem_functions.functions[i].rows
        phase = self.problem_functions.problem.phases[i]
        tables = [
            ("residual", tuple(v.name for v in point.form.unknowns) if point.form else (), row_ranges.residuals),
            ("algebraic", tuple(v.name for v in phase.system.algebraic), row_ranges.algebraic),
        ]
        begin = row_ranges.path.start
        for name, size in zip(phase.path, point.path_sizes, strict=True):
            tables.append(("path", _row_names(name, size), range(begin, begin + size)))
            begin += size
        slots = np.arange(layout.mesh.first, layout.mesh.slots)
        at = np.arange(len(slots))[:, None]
        for kind, names, of_point in tables:
            if names:
                self._points(i, self._block(kind, i, names, slots), np.array(of_point), at, 1.0)

    def _control_rows(self, i: int, layout: PhaseLayout) -> None:
        mesh, point = layout.mesh, self.problem_functions.points[i]
        of_controls = slice(point.nx + point.ns, point.nx + point.ns + point.nu)
        if not point.nu:
            return
        if mesh.left_point:
            rows = self._block("control", i, tuple(point.names[of_controls]), np.zeros(1, np.int64))
            self._variables(rows, layout.point[0, of_controls], 1.0)
            for k, weight in enumerate(mesh.left, 1):
                self._variables(rows, layout.point[k, of_controls], -weight)
        for scheme, intervals in mesh.groups:
            for combination in scheme.control_rows:
                rows = self._block("control", i, tuple(point.names[of_controls]), mesh.bases[intervals] + 1)
                for r in np.flatnonzero(combination):
                    controls = layout.point[mesh.bases[intervals] + r - mesh.first, of_controls]
                    self._variables(rows, controls, combination[r])

    def _held_controls(self, i: int, layout: PhaseLayout) -> None:
        """Controls that are constant on each piece of the phase: each point has the control of the one before it."""
        mesh, point, phase = layout.mesh, self.problem_functions.points[i], self.problem_functions.problem.phases[i]
        intervals = np.repeat(np.arange(len(mesh)), [scheme.steps for scheme in mesh.schemes])  # of slots from 1 on
        for name, pieces in phase.pieces.items():
            if not isinstance(phase.held_controls[name], int):
                pieces_of(mesh, pieces, f"{phase.name}: held_controls.{name}")  # boxes fix it at its values
                continue
            of_slots = pieces_of(mesh, pieces, f"{phase.name}: held_controls.{name}")[intervals]
            slots = 2 + np.flatnonzero(of_slots[1:] == of_slots[:-1])
            column = point.names.index(name)
            rows = self._block("held", i, (name,), slots)[:, 0]
            self._variables(rows, layout.point[slots - mesh.first, column], 1.0)
            self._variables(rows, layout.point[slots - 1 - mesh.first, column], -1.0)

    def _integrals(self, i: int, layout: PhaseLayout) -> None:
        row_ranges = self.problem_functions.functions[i].rows
        names = list(self.problem_functions.problem.phases[i].integrals)
        weights = layout.mesh.weights[layout.mesh.first :]
        integral_keys = [key for key in self.problem_functions.integral_variables if key[0] == i]
        for of_point, key in zip(row_ranges.integrands, integral_keys, strict=True):
            rows = self._block("integral", i, (names[key[1]],), np.zeros(1, np.int64))
            self._variables(rows, self.layout.integrals[key], 1.0)
            self._points(i, rows, of_point, np.arange(len(weights)), -weights)

    def _samples(self) -> None:
        """The rows of constraints at samples; the transcription adds their contents."""
        for point, layout in zip(self.problem_functions.samples, self.layout.samples, strict=True):
            if point.kind == "constraint":
                fractions = self.layout.phases[point.phase].mesh.fractions
                nearest = np.abs(layout.fractions[:, None] - fractions).argmin(axis=1)
                self._block("sample", point.phase, _row_names(point.name, point.size), nearest)


def pieces_of(mesh: Mesh, pieces: int, position: str) -> Indices:
    """The index (N,) of the equal piece of the phase in which each interval lies.

    Raises `ProblemError` (bad_statement) for a scheme whose intervals share controls, and if a piece does not end at a
    node of the mesh.
    """
    if mesh.schemes[0].collocates_left_end:
        text = f"controls of {mesh.schemes[0].name} have one value at the node between two pieces: use radau"
        raise ProblemError("bad_statement", position, text)
    ends = mesh.nodes * pieces
    edges = np.arange(pieces + 1)
    if np.abs(ends[np.clip(np.searchsorted(ends, edges - 0.5 * SAME), 0, len(mesh))] - edges).max() > SAME:
        text = f"the mesh has no nodes between {pieces} equal pieces: make the number of intervals a multiple of them"
        raise ProblemError("bad_statement", position, text)
    return np.minimum((0.5 * (ends[1:] + ends[:-1])).astype(np.int64), pieces - 1)


def _in_columns(parts: list[tuple[Any, ...]], width: int) -> tuple[Any, ...]:
    if not parts:
        return tuple(np.empty(0, np.int64) for _ in range(width))
    return tuple(np.concatenate([array.ravel() for array in part]) for part in zip(*parts, strict=True))


def _row_names(name: str, count: int) -> tuple[str, ...]:
    """Names of the rows of one constraint."""
    return (name,) if count == 1 else tuple(f"{name}[{i}]" for i in range(count))
