"""Sensitivities of the optimum with respect to the numbers of its problem: d x* / d q, d f* / d q."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.postoptimal.directions import Directions, all_names, directions
from designopt.collocation.postoptimal.kkt import Kkt, active_set
from designopt.collocation.solution.reading import Reader
from designopt.collocation.solution.solution import Solution
from designopt.collocation.solve.program import Program
from designopt.collocation.statement.guess import Guess
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.transcription.boxes import ProgramBounds, boxes
from designopt.collocation.transcription.layout import TIMES
from designopt.collocation.transcription.transcription import Transcription
from designopt.lazy import casadi as ca

#: Tolerance of the solve before the analysis, tight enough to identify the active limits.
TIGHT = 1e-10
#: Step of the finite differences of figures, relative to the size of the varied number.
STEP = 1e-5
#: Maximum number of weakly active limits in a message.
NAMED = 3
#: Relative difference between two different optima; those below ZERO are not compared.
SAME, ZERO = 1e-5, 1e-8


@dataclass(frozen=True, eq=False)
class PhaseSensitivities:
    """Derivatives (slots, k) with respect to k numbers at all mesh points: of their `times`, and of the `values` there.

    With free times the points move with the ends: a value is that at a fixed fraction of the phase.
    """

    times: Floats
    values: Mapping[str, Floats]


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivities:
    """Derivatives of the optimum `solution` with respect to the numbers `names` (k) of its problem.

    `objective` (k,), `parameters` and `figures` (k,) by name, `phases` by name. They exist if `regular` is true: the
    active limits are independent, none has a zero multiplier, and the optimum is strict. `doubts` list violated
    conditions; if the matrix of the conditions is singular all derivatives are NaN.
    """

    solution: Solution
    names: tuple[str, ...]
    objective: Floats
    parameters: Mapping[str, Floats]
    figures: Mapping[str, Floats]
    phases: Mapping[str, PhaseSensitivities]
    doubts: tuple[str, ...]

    @property
    def regular(self) -> bool:
        """Whether the optimum is a differentiable function of the numbers."""
        return not self.doubts

    def __repr__(self) -> str:
        """Short text; the arrays would fill many screens."""
        derivatives_text = ", ".join(f"{n}: {v:.6g}" for n, v in zip(self.names, self.objective, strict=True))
        return (
            f"Sensitivities(objective by {derivatives_text}; {'regular' if self.regular else '; '.join(self.doubts)})"
        )

    def derivatives_of(self, result: str) -> dict[str, float]:
        """d result / d each number; `result` is "objective", a parameter or a figure. Raises `KeyError` for others."""
        tables = {"objective": self.objective, **self.figures, **self.parameters}
        if result not in tables:
            raise KeyError(f"there is no '{result}'; known: {', '.join(tables)}")
        return dict(zip(self.names, tables[result].tolist(), strict=True))


def sensitivities(
    problem: TrajectoryProblem, solution: Solution, names: Sequence[str] | None = None, options: Options | None = None
) -> Sensitivities:
    """Derivatives of the optimum `solution` of `problem` with respect to the numbers `names` of the problem (default:
    all).

    A number is a fixed parameter, a data entry (of all phases that have it, or "phase.entry"; a signal is shifted as a
    whole), a fixed time ("phase.tf") or a fixed end value ("phase.initial.angle"). The problem is solved again from
    `solution` on its meshes, to a tolerance of 1e-10, with the equations in the form of `options`. Raises
    `ProblemError` (bad_statement) for other names, (bad_guess) for a failed solution.

    The optimality conditions are linearised on the active limits: Fiacco, Introduction to Sensitivity and Stability
    Analysis in Nonlinear Programming, 1983, section 3.2.
    """
    if strange := [n for n in names or () if not isinstance(n, str)]:
        text = (
            f"{strange[0]!r} is not a name: give names of numbers of the problem, such as "
            f"{', '.join(all_names(problem)[:4])}"
        )
        raise ProblemError("bad_statement", "names", text)
    transcription, bounds, optimum, doubts = at_optimum(problem, solution, options)
    number_names = [names] if isinstance(names, str) else all_names(problem) if names is None else names
    moves = directions(
        problem, transcription, bounds, list(dict.fromkeys(number_names))
    )  # a spread counts each number once
    return _sensitivities(problem, transcription, bounds, optimum, moves, doubts)


def at_optimum(
    problem: TrajectoryProblem, solution: Solution, options: Options | None
) -> tuple[Transcription, ProgramBounds, Solution, list[str]]:
    """The program of `problem` on the meshes of `solution`, its numbers, its solution to a tight tolerance from there,
    and warnings if that is another optimum. Raises `ProblemError` (bad_guess) for a failed solution.
    """
    if not solution.success:
        raise ProblemError("bad_guess", "found", f"is not a result ({solution.status.name}): solve the problem first")
    options = replace(options or Options(), refine=None, starts=1, rollout=False, scales={})
    options = replace(options, tolerance=min(options.tolerance, TIGHT))
    meshes = [solution.phases[phase.name].mesh for phase in problem.phases]
    program = Program(problem, options, Guess.from_solution(solution), meshes=meshes)
    optimum = program.solve(guess=Guess.from_solution(solution))
    if not optimum.success:
        text = f"a solve from it, to a tolerance of {options.tolerance:g}, ends with {optimum.status.name}"
        raise ProblemError("bad_guess", "found", text)
    transcription = program.transcription
    bounds = boxes(transcription.problem_functions, problem, transcription.layout, transcription.blocks)
    doubts = []
    size = max(abs(solution.objective), abs(optimum.objective), ZERO)
    if abs(optimum.objective - solution.objective) > SAME * size:
        doubts.append(f"a solve from it ends in another optimum: {optimum.objective:.6g}, not {solution.objective:.6g}")
    return transcription, bounds, optimum, doubts


def _sensitivities(
    problem: TrajectoryProblem,
    transcription: Transcription,
    bounds: ProgramBounds,
    solution: Solution,
    directions: Directions,
    doubts: list[str],
) -> Sensitivities:
    rows = np.asarray(transcription.constraints(solution.iterate.x, bounds.parameters), float).ravel()
    kkt = Kkt(transcription, bounds, solution.iterate, active_set(transcription, bounds, solution.iterate, rows))
    doubts += doubts_of(transcription, solution, kkt)
    x, lam = solution.iterate.x, solution.iterate.constraint_multipliers
    of_cost, of_gradient, of_rows = _by_numbers(transcription, x, bounds.parameters, lam, directions.numbers)
    if kkt.factor is None:
        changes = np.full(directions.variables.shape, np.nan)
    else:
        changes, _ = kkt.changes(
            of_gradient,
            of_rows - directions.rows / transcription.row_scale[:, None],
            directions.variables / transcription.scale[:, None],
        )
    gradient = np.asarray(transcription.gradient(x, bounds.parameters)[1], float).ravel()
    dx = transcription.scale[:, None] * changes
    parameters = {name: dx[k] for name, k in transcription.layout.parameters.items()}
    phases = {}
    for i, phase in enumerate(problem.phases):
        phases[phase.name] = _phase_sensitivities(transcription, i, dx, directions)
    figures = _figures(
        transcription, transcription.shift + transcription.scale * x, bounds.parameters, dx, directions.numbers
    )
    return Sensitivities(
        solution=solution,
        names=directions.names,
        objective=(of_cost + gradient @ changes) / transcription.cost_scale,
        parameters=parameters,
        figures={name: figures[name] for name in (*problem.figures, *problem.terms)},
        phases=phases,
        doubts=tuple(doubts),
    )


def _by_numbers(
    transcription: Transcription, x: Floats, parameters: Floats, multipliers: Floats, numbers: Floats
) -> tuple[Floats, Floats, Floats]:
    """Derivatives of the scaled cost (k,), of the gradient of the Lagrangian (n, k) and of the rows (m, k) with respect
    to the program's parameters along `numbers` (p, k)."""
    size, count = numbers.shape
    n, m = len(x), len(multipliers)
    if not size or not numbers.any():
        return np.zeros(count), np.zeros((n, count)), np.zeros((m, count))
    X, P, L, D = ca.MX.sym("x", n), ca.MX.sym("p", size), ca.MX.sym("lam", m), ca.MX.sym("d", size)
    rows = transcription.constraints(X, P)
    gradient = transcription.gradient(X, P)[1] + transcription.jacobian(X, P)[1].T @ L
    changes = ca.jtimes(ca.vertcat(transcription.objective(X, P), gradient, rows), P, D)
    function = ca.Function("by_numbers", [X, P, L, D], [changes])
    derivatives = np.stack(
        [np.asarray(function(x, parameters, multipliers, d), float).ravel() for d in numbers.T], axis=1
    )
    return derivatives[0], derivatives[1 : 1 + n], derivatives[1 + n :]


def _phase_sensitivities(
    transcription: Transcription, i: int, dx: Floats, directions: Directions
) -> PhaseSensitivities:
    layout, point = transcription.layout.phases[i], transcription.problem_functions.points[i]
    mesh = layout.mesh
    at_points = dx[layout.point]  # (points, variables, k)
    left = [np.einsum("p,pvk->vk", mesh.left, at_points[: len(mesh.left)])[None]] if mesh.first else []
    point_changes = np.concatenate([*left, at_points])
    point_changes[: mesh.first, : point.nx] = dx[layout.states[: mesh.first]]
    fixed_times = iter(layout.constants + len(point.constant_names) + np.arange(2))
    begin, end = (dx[layout.times[t]] if t in layout.times else directions.numbers[next(fixed_times)] for t in TIMES)
    fractions = mesh.fractions[:, None]
    values = {name: point_changes[:, j] for j, name in enumerate(point.names)}
    return PhaseSensitivities((1.0 - fractions) * begin + fractions * end, values)


def _figures(
    transcription: Transcription, x: Floats, parameters: Floats, dx: Floats, numbers: Floats
) -> dict[str, Floats]:
    """Derivatives (k,) of the figures: central differences along the change of the optimum."""
    reader = Reader(transcription.problem_functions, transcription.layout)
    phases = range(len(transcription.layout.phases))
    names = list(transcription.problem_functions.ends.figures)
    slopes = np.full((len(names), dx.shape[1]), np.nan)
    for k in range(dx.shape[1]):
        if not np.isfinite(dx[:, k]).all() or not names:
            continue
        largest = max(
            float(np.abs(dx[:, k] / transcription.scale).max(initial=0.0)), _relative_change(numbers[:, k], parameters)
        )
        step = STEP / max(largest, 1e-300)
        sides = []
        for sign in (step, -step):
            at, numbers_moved = x + sign * dx[:, k], parameters + sign * numbers[:, k]
            figures = reader.figures([reader.phase(i, at, numbers_moved) for i in phases], at)[1]
            sides.append(np.array([figures[name] for name in names]))
        slopes[:, k] = (sides[0] - sides[1]) / (2.0 * step)
    return dict(zip(names, slopes, strict=True))


def _relative_change(change: Floats, reference: Floats) -> float:
    return float((np.abs(change) / np.maximum(np.abs(reference), 1.0)).max(initial=0.0))


def doubts_of(transcription: Transcription, solution: Solution, kkt: Kkt) -> Iterator[str]:
    """Reasons why the optimum is not a differentiable function of its numbers."""
    weak = [_variable(transcription, solution, int(k)) for k in kkt.active.weak_variables]
    weak += [_row(transcription, solution, int(k)) for k in kkt.active.weak_rows]
    if weak:
        ending = f" and {len(weak) - NAMED} more" if len(weak) > NAMED else ""
        yield (
            f"active with a multiplier close to zero: {', '.join(weak[:NAMED])}{ending}; the derivatives on both sides"
            " differ there"
        )
    if not kkt.independent:
        yield "the active constraints are not independent: their multipliers are not unique"
    elif kkt.factor is None:
        arcs = ", ".join(dict.fromkeys(name for arc in solution.singular_arcs for name in arc.controls))
        names = f" ({arcs})" if arcs else ""
        yield f"the cost does not determine all variables{names}: several trajectories and parameters are equally good"
    elif not kkt.is_minimum:
        yield "the cost has negative curvature along some motions that the constraints allow: not a strict minimum"


def _variable(transcription: Transcription, solution: Solution, k: int) -> str:
    """A variable of the program in words."""
    for i, phase_layout in enumerate(transcription.layout.phases):
        name = list(solution.phases)[i]
        for table, first in ((phase_layout.states, 0), (phase_layout.point, phase_layout.mesh.first)):
            positions = np.argwhere(table == k)
            if len(positions):
                slot, j = positions[0]
                variable = transcription.problem_functions.points[i].names[j]
                return f"{variable} of {name} at {solution.phases[name].times[slot + first]:.4g} s"
        for time, index in phase_layout.times.items():
            if index == k:
                return f"{time} of {name}"
    names = {index: name for name, index in transcription.layout.parameters.items()}
    return names.get(k, "the limit of an integral")


def _row(transcription: Transcription, solution: Solution, k: int) -> str:
    """A row of the program in words."""
    block = next(b for b in transcription.blocks if b.first <= k < b.first + b.rows.size)
    slot, name = np.argwhere(block.rows == k)[0]
    if block.phase < 0:
        return str(block.names[name])
    phase = list(solution.phases)[block.phase]
    return f"{block.names[name]} of {phase} at {solution.phases[phase].times[block.slots[slot]]:.4g} s"
