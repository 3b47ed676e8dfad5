"""A problem with the expressions of its points and ends, and their derivatives, independent of meshes; functions of one
point for many points."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.collocation.statement.checks import check_statement
from designopt.collocation.statement.mesh import Mesh
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.symbols import Ends, EndVariables, NamedEntries, PhaseEnds, stacked_vectors
from designopt.collocation.transcription.functions.points import (
    CollocationPoint,
    PointFunctions,
    equal_key,
    expression_of,
    point_functions,
)
from designopt.collocation.transcription.functions.samples import SamplePoint, sample_points
from designopt.dynamics.compile import CompilerError, find_compiler, load_library
from designopt.dynamics.expressions import column
from designopt.lazy import casadi as ca


@dataclass(frozen=True, eq=False)
class EndSymbols:
    """Symbols for all functions of the ends, and the problem's expressions of them.

    `phases` has (initial variables, final variables, t0, tf, integrals, constants) of each; `cost`, `constraints` in
    their order, `figures` by name: terms of the cost and figures of the problem. `left` marks phases with an initial
    variable other than a state in these functions: those need a point at their left end.
    """

    phases: tuple[tuple[Any, Any, Any, Any, Any, Any], ...]
    parameters: Any
    cost: Any
    constraints: tuple[Any, ...]
    figures: Mapping[str, Any]
    left: tuple[bool, ...]

    @property
    def all(self) -> list[Any]:
        """All symbols, phase by phase, parameters at the end."""
        return [*(s for phase in self.phases for s in phase), self.parameters]


def end_symbols(problem: TrajectoryProblem, points: Sequence[CollocationPoint]) -> EndSymbols:
    """The functions of the ends. Raises `ProblemError` for unknown names in them."""
    phases, values_by_name = [], {}
    parameters = {v.name: ca.SX.sym(v.name) for v in problem.variables}
    for phase, point in zip(problem.phases, points, strict=True):
        states, vectors = point.names[: point.nx], phase.system.vectors
        x0 = {n: ca.SX.sym(f"{n}_initial") for n in point.names}
        xf = {n: ca.SX.sym(f"{n}_final") for n in point.names}
        t0, tf = ca.SX.sym("t0"), ca.SX.sym("tf")
        integral = {n: ca.SX.sym(n) for n in phase.integrals}
        constant = {n: ca.SX.sym(n) for n in point.constant_names}
        phases.append((
            column(x0.values()), column(xf.values()), t0, tf, column(integral.values()),
            column(constant.values()),
        ))  # fmt: skip
        values_by_name[phase.name] = PhaseEnds(
            EndVariables(x0, t0, states, vectors),
            EndVariables(xf, tf, states, vectors),
            t0,
            tf,
            NamedEntries(integral, "integral"),
            NamedEntries(constant, "data entry that is a number"),
        )
    parameter_multipliers = stacked_vectors(parameters, [v for phase in problem.phases for v in phase.system.vectors])
    e = Ends(NamedEntries(values_by_name, "phase"), NamedEntries({**parameters, **parameter_multipliers}, "parameter"))
    figures = {n: expression_of(f"terms.{n}", f, e, scalar=True) for n, f in problem.terms.items()}
    figures.update({n: expression_of(f"figures.{n}", f, e, scalar=True) for n, f in problem.figures.items()})
    cost = expression_of("cost", problem.cost, e, scalar=True)
    constraints = tuple(expression_of(f"constraints.{n}", c.value, e) for n, c in problem.constraints.items())
    every = ca.vertcat(cost, *constraints, *figures.values())
    left = tuple(
        point.nx < len(point.names) and bool(ca.depends_on(every, of_phase[0][point.nx :]))
        for point, of_phase in zip(points, phases, strict=True)
    )
    return EndSymbols(tuple(phases), column(parameters.values()), cost, constraints, figures, left)


def unlinked_warnings(problem: TrajectoryProblem, symbols: EndSymbols) -> tuple[str, ...]:
    """A warning for each phase that begins when the one before ends, but whose states, which that has too, begin
    anywhere: neither `initial` nor a constraint or the cost says where."""
    warnings = []
    terms = ca.vertcat(symbols.cost, *symbols.constraints)
    for i, (before, phase) in enumerate(zip(problem.phases, problem.phases[1:], strict=False), start=1):
        if phase.t0 is not None and phase.t0 != before.tf:  # not one motion
            continue
        vectors = [v for v in phase.system.vectors if v.name in phase.initial]
        stated_names = {*phase.initial, *(name for v in vectors for name in v.names)}
        controls = {v.name for v in phase.system.controls}
        common = {v.name for v in before.system.states if f"{v.name}_rate" not in controls}  # a control may jump
        loose = [
            v.name
            for j, v in enumerate(phase.system.states)
            if v.name in common and v.name not in stated_names and not ca.depends_on(terms, symbols.phases[i][0][j])
        ]
        if loose:
            names = ", ".join(loose[:4]) + (" ..." if len(loose) > 4 else "")
            warnings.append(
                f"unlinked: {names} of {phase.name} may begin anywhere, not where {before.name} ends: add the"
                f" constraint linked({before.name}, {phase.name}), or give 'initial' what it jumps to"
            )
    return tuple(warnings)


def linear_integrals(problem: TrajectoryProblem, symbols: EndSymbols) -> dict[tuple[int, int], float]:
    """The integrals (phase, number) that appear only in the cost and only with a constant factor: they need no
    variable."""
    factors = {}
    constraint_rows = column(symbols.constraints)
    for i, (phase, (_, _, _, _, integrals, _)) in enumerate(zip(problem.phases, symbols.phases, strict=True)):
        for j, integral in enumerate(phase.integrals.values()):
            symbol = integrals[j]
            slope = ca.jacobian(symbols.cost, symbol)
            has_limit = integral.low > -float("inf") or integral.high < float("inf")
            if slope.is_constant() and not has_limit and not ca.depends_on(constraint_rows, symbol):
                factors[i, j] = float(slope)
    return factors


logger = logging.getLogger(__name__)

#: Number of solves and of operations of a model from which compilation (0.1 to some seconds, once) pays.
SOLVES = 20
OPERATIONS = 2000

_NAMES = ("values", "jacobian", "cost", "cost_gradient", "hessian")


@dataclass(frozen=True, eq=False)
class ProblemFunctions:
    """A problem with the expressions of its points, samples and ends, independent of meshes.

    `integral_variables` are the integrals (phase, number) that are variables of a program; `direct` ones are part of
    the cost with a factor.
    """

    problem: TrajectoryProblem
    points: tuple[CollocationPoint, ...]
    functions: tuple[PointFunctions, ...]
    ends: EndSymbols
    integral_variables: tuple[tuple[int, int], ...]
    samples: tuple[SamplePoint, ...] = ()
    direct: Mapping[tuple[int, int], float] = field(default_factory=dict)

    def meshes(self, phase_meshes: Sequence[Mesh]) -> tuple[Mesh, ...]:
        """The meshes `phase_meshes` for the phases, with a point at the left end if the ends of a phase need one."""
        pairs = zip(phase_meshes, self.ends.left, strict=True)
        return tuple(replace(mesh, left_point=left and not mesh.schemes[0].collocates_left_end) for mesh, left in pairs)


def state(problem: TrajectoryProblem, *, residual: bool = True) -> ProblemFunctions:
    """All expressions of `problem` and their derivatives, in the residual form if the system has one.

    Raises `ProblemError` for invalid statements and those without a symbolic form.
    """
    check_statement(problem)
    points = tuple(CollocationPoint(phase, residual=residual) for phase in problem.phases)
    ends = end_symbols(problem, points)
    direct = linear_integrals(problem, ends)
    every = [(i, j) for i, phase in enumerate(problem.phases) for j in range(len(phase.integrals))]
    integral_variables = tuple(key for key in every if key not in direct)
    functions = []
    functions_by_key: dict[Any, PointFunctions] = {}  # phases with the same equations share them
    for i, point in enumerate(points):
        integrals = [j for phase, j in integral_variables if phase == i]
        weights = [(j, weight) for (phase, j), weight in direct.items() if phase == i]
        key = equal_key(point, integrals, weights) if len(points) > 1 else i
        if key not in functions_by_key:
            functions_by_key[key] = point_functions(point, integrals, weights)
        functions.append(functions_by_key[key])
    return ProblemFunctions(problem, points, tuple(functions), ends, integral_variables, sample_points(points), direct)


def with_compiled(problem_functions: ProblemFunctions, options: Options, solves: int) -> ProblemFunctions:
    """`problem_functions`, compiled if `options.compile` requests that, or is auto and compilation pays. Those of small
    models stay interpreted: a program compiles its functions as a whole (`interior/functions.py`).

    A failed compilation is logged; the interpreted functions give the same numbers.
    """
    operations = max(functions.operations for functions in problem_functions.functions)
    if operations <= SMALL and find_compiler() is not None:  # CasADi's calls of the points would take longer
        return problem_functions
    pays = solves > SOLVES and operations > OPERATIONS
    if options.compile == "never" or (options.compile == "auto" and not pays):
        return problem_functions
    try:
        compiled_of = {
            id(functions): _compile_functions(functions) for functions in dict.fromkeys(problem_functions.functions)
        }
        return replace(
            problem_functions, functions=tuple(compiled_of[id(functions)] for functions in problem_functions.functions)
        )
    except CompilerError as error:
        logger.warning("the trajectory problem is solved with interpreted functions: %s", error)
        return problem_functions


def _compile_functions(functions: PointFunctions) -> PointFunctions:
    generator = ca.CodeGenerator("point", {"with_header": False})
    try:
        for name in _NAMES:
            generator.add(getattr(functions, name))
        source = generator.dump()
    except RuntimeError as error:
        raise CompilerError(f"a function cannot be written in C: {error}") from error
    path = load_library(source, "the trajectory problem")._name
    external: dict[str, Any] = {name: ca.external(getattr(functions, name).name(), path) for name in _NAMES}
    return replace(functions, **external)


class PerPoint:
    """`function` for `count` points: a row of each argument and of each result for each point."""

    def __init__(self, function: Any, count: int) -> None:
        if not all(function.sparsity_out(k).is_dense() for k in range(function.n_out())):
            symbols = function.sx_in() if function.is_a("SXFunction") else function.mx_in()
            results = [ca.densify(result) for result in function.call(symbols)]
            function = ca.Function(function.name(), symbols, results)
        self._count = rows = count
        if is_mapped_in_blocks(function, count):  # the last one may be longer than the points
            blocks = -(-count // BLOCK)
            point_function, rows = function.map(BLOCK).expand().map(blocks), BLOCK * blocks
        else:
            point_function = function.map(count)
        self._arguments = [np.zeros((rows, function.size1_in(k))) for k in range(function.n_in())]
        self._results = [np.zeros((rows, function.size1_out(k))) for k in range(function.n_out())]
        buffer: Any
        buffer, self._call = point_function.buffer()
        self._buffer = buffer  # memory used by the call
        for k, argument in enumerate(self._arguments):
            if argument.size:
                buffer.set_arg(k, memoryview(argument.ravel().data))
        for k, result in enumerate(self._results):
            if result.size:
                buffer.set_res(k, memoryview(result.ravel().data))
        self._lock = threading.Lock()

    def __call__(self, *arguments: ArrayLike) -> list[Floats]:
        """The results (count, rows) at arguments (count, rows), or (rows,) for all points."""
        with self._lock:
            for argument, values in zip(self._arguments, arguments, strict=True):
                argument[: self._count] = values
            self._call()
            return [result[: self._count].copy() for result in self._results]


#: Points per call. CasADi's map takes 0.2 us for each, the operations of a small function a tenth of that.
BLOCK = 16
#: Number of operations from which a function gains nothing.
SMALL = 500


class SideBySide:
    """Arguments (rows, count) for `count` points, split into blocks once for all functions of one point."""

    def __init__(self, arguments: Sequence[Any], count: int) -> None:
        self.count, self.arguments = count, list(arguments)
        self._parts: list[Any] = []

    def with_more(self, *arguments: Any) -> SideBySide:
        """The same with further arguments of these points."""
        extended_points = SideBySide([*self.arguments, *arguments], self.count)
        extended_points._parts = self._parts.copy()
        return extended_points

    def parts(self) -> tuple[list[Any], list[Any]]:
        """The arguments of whole blocks, and those of the rest."""
        edges = [0, self.count - self.count % BLOCK, self.count]
        self._parts += [ca.horzsplit(each, edges) for each in self.arguments[len(self._parts) :]]
        return [first for first, _ in self._parts], [last for _, last in self._parts]


def is_mapped_in_blocks(function: Any, count: int) -> bool:
    """Whether a function of one point is called faster for blocks of the `count` points."""
    return bool(count >= BLOCK and function.is_a("SXFunction") and function.n_nodes() <= SMALL)


def map_side_by_side(function: Any, points: SideBySide) -> Any:
    """The results (rows, count), side by side, of a function with one result at all `points`."""
    count = points.count
    blocks, remainder = divmod(count, BLOCK)
    if not is_mapped_in_blocks(function, count):
        return function.map(count)(*points.arguments)
    block = function.map(BLOCK).expand()
    mapped_blocks = block.map(blocks) if blocks > 1 else block
    if not remainder:
        return mapped_blocks(*points.arguments)
    first, last = points.parts()
    return ca.horzcat(mapped_blocks(*first), function.map(remainder)(*last))
