"""Published problems in a file that every peer can read: equations as CasADi's own text, ends, bounds and guesses."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from designopt.collocation import TrajectoryProblem
from designopt.collocation.solve.guess.initial_point import default_trajectory
from designopt.collocation.solve.guess.multistart import perturbed
from designopt.collocation.statement.problem import ends

#: Guesses are known at so many fractions of the time.
POINTS = 41


def portable(problem: TrajectoryProblem, cost: str, guesses: int, seed: int = 0) -> dict[str, Any]:
    """A problem of one phase of explicit equations as plain data.

    `cost` is "integral" (its only integral), "duration", or the name of a state whose final value is maximised. The
    first guess is the straight line between the ends, the others are perturbed with random numbers of `seed`.
    """
    [phase] = problem.phases
    system = phase.system
    x, u, t = ca.SX.sym("x", len(system.states)), ca.SX.sym("u", len(system.controls)), ca.SX.sym("t")
    names = [v.name for v in (*system.states, *system.controls)]
    named = dict(zip(names, ca.vertsplit(ca.vertcat(x, u)), strict=True))
    integrands = [integral.value(named) for integral in phase.integrals.values()]
    rates = ca.Function("rates", [x, u, t], [system.rhs(x, u, [], [], [], t)])
    integrand = ca.Function("integrand", [x, u, t], [ca.SX(integrands[0]) if cost == "integral" else ca.SX(0.0)])
    boxes = {v.name: ends(phase.bounds.get(v.name, (v.low, v.high))) for v in (*system.states, *system.controls)}
    fractions = np.linspace(0.0, 1.0, POINTS)
    first = default_trajectory(phase)
    made = [{"tf": first.tf, "values": {n: first.at(fractions)[n].tolist() for n in names}}]
    for i in range(1, guesses):
        drawn = perturbed(problem, None, np.random.default_rng([seed, i])).phases[phase.name]
        values = drawn.at(fractions)
        made.append({"tf": drawn.tf, "values": {n: np.asarray(values[n]).tolist() for n in names}})
    return {
        "states": [v.name for v in system.states],
        "controls": [v.name for v in system.controls],
        "rates": rates.serialize(),
        "integrand": integrand.serialize(),
        "cost": cost,
        "bounds": {n: [_number(end) for end in box] for n, box in boxes.items()},
        "initial": {n: ends(box)[0] for n, box in phase.initial.items()},
        "final": {n: ends(box)[0] for n, box in phase.final.items()},
        "tf": list(ends(phase.tf)),
        "guesses": made,
    }


def _number(end: float) -> float | None:
    return float(end) if np.isfinite(end) else None
