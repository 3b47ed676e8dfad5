"""A problem with the expressions of its points and ends, and their derivatives, independent of meshes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from designopt.collocation.statement.checks import check_statement
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.transcription.functions.ends import EndSymbols, end_symbols, linear_integrals
from designopt.collocation.transcription.functions.per_point import SMALL
from designopt.collocation.transcription.mesh.mesh import Mesh
from designopt.collocation.transcription.mesh.points import CollocationPoint, PointFunctions, equal_key, point_functions
from designopt.collocation.transcription.mesh.samples import SamplePoint, sample_points
from designopt.dynamics.compile import CompilerError, find_compiler, load_library
from designopt.lazy import casadi as ca

logger = logging.getLogger(__name__)

#: Number of solves and of operations of a model from which compilation (0.1 to some seconds, once) pays.
SOLVES = 20
OPERATIONS = 2000

_NAMES = ("values", "jacobian", "cost", "cost_gradient", "hessian")


@dataclass(frozen=True, eq=False)
class ProblemFunctions:
    """A problem with the expressions of its points, samples and ends, independent of meshes. `kept` integrals are
    variables, `direct` ones part of the cost with a factor."""

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
        return tuple(replace(mesh, left_point=left and not mesh.schemes[0].starts) for mesh, left in pairs)


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
    formed: dict[Any, PointFunctions] = {}  # phases with the same equations share them
    for i, point in enumerate(points):
        integrals = [j for phase, j in integral_variables if phase == i]
        weights = [(j, weight) for (phase, j), weight in direct.items() if phase == i]
        key = equal_key(point, integrals, weights) if len(points) > 1 else i
        if key not in formed:
            formed[key] = point_functions(point, integrals, weights)
        functions.append(formed[key])
    return ProblemFunctions(problem, points, tuple(functions), ends, integral_variables, sample_points(points), direct)


def with_compiled(statement: ProblemFunctions, options: Options, solves: int) -> ProblemFunctions:
    """`statement` with compiled functions if `options.compile` requests them, or is auto and compilation pays. Those of
    small models stay interpreted: a program compiles its functions as a whole (`interior.functions`).

    A failed compilation is logged; the interpreted functions give the same numbers.
    """
    operations = max(functions.operations for functions in statement.functions)
    if operations <= SMALL and find_compiler() is not None:  # CasADi's calls of the points would take longer
        return statement
    pays = solves > SOLVES and operations > OPERATIONS
    if options.compile == "never" or (options.compile == "auto" and not pays):
        return statement
    try:
        compiled_of = {id(functions): _compiled(functions) for functions in dict.fromkeys(statement.functions)}
        return replace(statement, functions=tuple(compiled_of[id(functions)] for functions in statement.functions))
    except CompilerError as error:
        logger.warning("the trajectory problem is solved with interpreted functions: %s", error)
        return statement


def _compiled(functions: PointFunctions) -> PointFunctions:
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
