"""The functions of a system that an integrator calls, derived from its statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from designopt.dynamics.system import System

if TYPE_CHECKING:
    import casadi as ca


@dataclass(frozen=True, eq=False)
class RunFunctions:
    """What a run evaluates: CasADi functions whose results are dense columns, derivatives exact.

    `constants` (u, p, q) -> c holds what does not change in a run; the others are functions of (x, c, t): `f` -> xdot;
    `fj` -> xdot, df/dx (nx, nx), df/dt (the partial derivative: x held); `output` -> y; `guard` -> g.
    """

    constants: ca.Function
    f: ca.Function
    fj: ca.Function
    output: ca.Function | None
    guard: ca.Function | None


def run_functions(system: System) -> RunFunctions:
    """Derive them: as scalar expressions, from which all that depends on u, p and q alone is taken out.

    Systems that cannot be written so (look-up tables, external functions) keep their own operations, with u, p and q
    for c.
    """
    import casadi as ca

    try:
        return _scalar(system)
    except RuntimeError:
        x, t = ca.MX.sym("x", len(system.states)), ca.MX.sym("t")
        u, p, q = (ca.MX.sym(n, len(table)) for n, table in zip("upq", _tables(system), strict=True))
        c = ca.vertcat(u, p, q)
        flat = ca.MX.sym("c", c.numel())
        ends = [0, u.numel(), u.numel() + p.numel(), c.numel()]
        u_c, p_c, q_c = ca.vertsplit(flat, ends)
        results = _results(system, ca.MX, x, u_c, p_c, q_c, t)
        return _named(ca.Function("system_constants", [u, p, q], [c]), [x, flat, t], results)


def _scalar(system: System) -> RunFunctions:
    import casadi as ca

    x, t = ca.SX.sym("x", len(system.states)), ca.SX.sym("t")
    u, p, q = (ca.SX.sym(n, len(table)) for n, table in zip("upq", _tables(system), strict=True))
    results = _results(system, ca.SX, x, u, p, q, t)
    shared = ca.cse([e for entries in results.values() for e in entries])
    shared, symbols, constants = ca.extract_parametric(shared, ca.vertcat(u, p, q), {"extract_trivial": True})
    left = iter(shared)
    results = {name: [next(left) for _ in entries] for name, entries in results.items()}
    c, values = (ca.vertcat(*entries) if entries else ca.SX(0, 1) for entries in (symbols, constants))
    return _named(ca.Function("system_constants", [u, p, q], [values]), [x, c, t], results)


def _results(system: System, kind: Any, x: Any, u: Any, p: Any, q: Any, t: Any) -> dict[str, list[Any]]:
    import casadi as ca

    arguments = [x, u, kind(0, 1), p, q, t]
    xdot = ca.densify(system.rhs(*arguments))
    results = {"f": [xdot], "fj": [xdot, ca.densify(ca.jacobian(xdot, x)), ca.densify(ca.jacobian(xdot, t))]}
    for name, function in (("output", system.output), ("guard", system.guard)):
        if function is not None:
            results[name] = [ca.densify(function(*arguments))]
    return results


def _named(constants: ca.Function, arguments: list[Any], results: dict[str, list[Any]]) -> RunFunctions:
    import casadi as ca

    made = {name: ca.Function(f"system_{name}", arguments, entries) for name, entries in results.items()}
    return RunFunctions(constants, made["f"], made["fj"], made.get("output"), made.get("guard"))


def _tables(system: System) -> tuple[Any, Any, Any]:
    return system.controls, system.parameters, system.data
