"""Compiled functions of a point: several times faster, if there is a C compiler."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from designopt.collocation.statement.options import Options
from designopt.collocation.transcription.functions.functions import ProblemFunctions
from designopt.collocation.transcription.functions.per_point import SMALL
from designopt.collocation.transcription.mesh.points import PointFunctions
from designopt.dynamics.compile import CompilerError, find_compiler, load_library
from designopt.lazy import casadi as ca

logger = logging.getLogger(__name__)

#: Number of solves and of operations of a model from which compilation (0.1 to some seconds, once) pays.
SOLVES = 20
OPERATIONS = 2000

_NAMES = ("values", "jacobian", "cost", "cost_gradient", "hessian")


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
