"""Published problems in a file that every peer can read: equations as CasADi's own text, ends, bounds and guesses."""

from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from designopt.collocation import Symbols, TrajectoryProblem
from designopt.collocation.solve.guess.initial_point import default_trajectory, middle
from designopt.collocation.solve.guess.multistart import perturbed
from designopt.collocation.statement.stated_values import ends

#: Guesses are known at so many fractions of the time.
POINTS = 41


def portable(problem: TrajectoryProblem, cost: str, guesses: int, seed: int = 0) -> dict[str, Any]:
    """A problem of one phase of explicit equations as plain data.

    `cost` is "integral" (its only integral), "duration", or "final" (of states at the end). Path constraints are kept
    from zero on. The first guess is the straight line between the ends, the others are perturbed with random numbers of
    `seed`.
    """
    [phase] = problem.phases
    system = phase.system
    tables = {"x": system.states, "u": system.controls, "p": system.parameters}
    x, u, p = (ca.SX.sym(label, len(table)) for label, table in tables.items())
    t = ca.SX.sym("t")
    names = [v.name for v in (*system.states, *system.controls)]
    every = [*names, *(v.name for v in system.parameters)]
    named = Symbols(dict(zip(every, ca.vertsplit(ca.vertcat(x, u, p)), strict=True)), t)
    [integrand] = [integral.value(named) for integral in phase.integrals.values()] if cost == "integral" else [0.0]
    final = problem.cost(SimpleNamespace(final=named)) if cost == "final" else 0.0
    path = ca.vertcat(*(constraint.value(named) for constraint in phase.path.values()))
    assert all((c.low, c.high) == (0.0, float("inf")) for c in phase.path.values())

    def text(name: str, value: Any) -> str:
        return str(ca.Function(name, [x, u, p, t], [ca.SX(value)]).serialize())

    boxes = {v.name: ends(phase.bounds.get(v.name, (v.low, v.high))) for table in tables.values() for v in table}
    boxes |= {name: ends(box) for name, box in problem.parameters.items()}
    fractions = np.linspace(0.0, 1.0, POINTS)
    first = default_trajectory(phase)
    of_parameters = {v.name: problem.guess.get(v.name, middle(boxes[v.name])) for v in system.parameters}
    values = {n: first.at(fractions)[n].tolist() for n in names}
    starts = [{"tf": first.tf, "values": values, "parameters": of_parameters}]
    for i in range(1, guesses):
        guess = perturbed(problem, None, np.random.default_rng([seed, i]))
        trajectory = guess.phases[phase.name]
        values = {n: np.asarray(trajectory.at(fractions)[n]).tolist() for n in names}
        starts.append({"tf": trajectory.tf, "values": values, "parameters": dict(guess.parameters)})
    return {
        "states": [v.name for v in system.states],
        "controls": [v.name for v in system.controls],
        "parameters": list(of_parameters),
        "rates": text("rates", system.rhs(x, u, [], p, [], t)),
        "integrand": text("integrand", integrand),
        "final_cost": text("final_cost", final),
        "path": text("path", path),
        "cost": cost,
        "bounds": {n: [_number(end) for end in box] for n, box in boxes.items()},
        "initial": {n: ends(box)[0] for n, box in phase.initial.items()},
        "final": {n: ends(box)[0] for n, box in phase.final.items()},
        "tf": list(ends(phase.tf)),
        "guesses": starts,
    }


def _number(end: float) -> float | None:
    return float(end) if np.isfinite(end) else None
